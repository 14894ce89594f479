"""The JSON Schema of types: what is written, where, and what cannot be."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import re
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
import pydantic
import pytest
from msgspec import Meta, Struct

from tests.rigs.types import Circle, Level, Node, Pair, Wind
from trunkline.server.handlers.json_schema import check, default_shown, object_schema, schema_of
from trunkline.server.handlers.schema_validator import SchemaCheck

T = TypeVar("T")


class Unit(enum.Enum):
    """How it is measured."""

    KELVIN = "k"
    CELSIUS = "c"


@dataclasses.dataclass
class Place:
    """Where.

    Attributes:
        lat: North of the equator.
    """

    lat: float
    lon: Annotated[float, "East of Greenwich."]
    name: str = "here"


class Square(Struct, tag="square", forbid_unknown_fields=True):
    side: float


class Box(Struct, Generic[T]):
    item: T


class Model(pydantic.BaseModel):
    count: int = pydantic.Field(ge=1, description="How many.")


PLACE = {
    "type": "object",
    "description": "Where.",
    "properties": {
        "lat": {"type": "number", "description": "North of the equator."},
        "lon": {"type": "number", "description": "East of Greenwich."},
        "name": {"type": "string", "default": "here"},
    },
    "required": ["lat", "lon"],
}

# Types beside those of `tests/type_matrix.py`, whose schemas are looked at there.
WRITTEN: list[tuple[Any, dict[str, Any]]] = [
    (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (frozenset[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (
        dict[Annotated[str, Meta(max_length=3)], int],
        {
            "type": "object",
            "propertyNames": {"maxLength": 3},
            "additionalProperties": {"type": "integer"},
        },
    ),
    (Literal["b", "a"], {"type": "string", "enum": ["a", "b"]}),
    (Literal[1, "a"], {"enum": [1, "a"]}),
    (Unit, {"type": "string", "enum": ["k", "c"], "description": "How it is measured."}),
    (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    (
        Annotated[int, Meta(ge=1, lt=9, multiple_of=2, description="Even.", examples=[2])],
        {
            "type": "integer",
            "minimum": 1,
            "exclusiveMaximum": 9,
            "multipleOf": 2,
            "description": "Even.",
            "examples": [2],
        },
    ),
    (
        Annotated[str, Meta(min_length=1, max_length=5, pattern="^a", title="Letters")],
        {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a", "title": "Letters"},
    ),
    (
        Annotated[list[int], Meta(max_length=2)],
        {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
    ),
    (Place, PLACE),
    (list[Place], {"type": "array", "items": PLACE}),
    (
        Circle | Square,
        {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {
                        "type": {"type": "string", "enum": ["circle"]},
                        "radius": {"type": "number"},
                    },
                    "required": ["type", "radius"],
                },
                {
                    "type": "object",
                    "properties": {
                        "type": {"type": "string", "enum": ["square"]},
                        "side": {"type": "number"},
                    },
                    "required": ["type", "side"],
                    "additionalProperties": False,
                },
            ]
        },
    ),
    (
        Box[int],
        {"type": "object", "properties": {"item": {"type": "integer"}}, "required": ["item"]},
    ),
    (
        Model,
        {
            "type": "object",
            "properties": {"count": {"type": "integer", "minimum": 1, "description": "How many."}},
            "required": ["count"],
        },
    ),
]


@pytest.mark.parametrize(("type_", "schema"), WRITTEN, ids=lambda each: str(each)[:40])
def test_a_type_is_written_as_its_schema(type_: Any, schema: dict[str, Any]) -> None:
    assert schema_of(type_, is_input=True) == schema


def test_a_class_that_contains_itself_stands_at_the_root_and_under_defs() -> None:
    body = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    }
    assert schema_of(Node) == {**body, "$defs": {"Node": body}}


def test_a_class_met_twice_is_written_once() -> None:
    schema = object_schema({"a": Wind, "b": Wind}, ["a", "b"], {}, {}, {})
    assert schema["properties"] == {"a": {"$ref": "#/$defs/Wind"}, "b": {"$ref": "#/$defs/Wind"}}
    assert list(schema["$defs"]) == ["Wind"]


def test_two_classes_of_one_name_have_two_definitions() -> None:
    def another() -> Any:
        class Wind(Struct):
            force: str

        return Wind

    other = another()
    schema = schema_of(tuple[Wind, Wind, other, other])
    assert list(schema["$defs"]) == ["Wind", "Wind_2"]


def test_definitions_of_models_have_the_names_of_their_classes() -> None:
    class Inner(pydantic.BaseModel):
        x: int

    class Outer(pydantic.BaseModel):
        first: Inner
        second: Inner

    schema = schema_of(Outer, is_input=True)
    assert schema["type"] == "object"
    assert schema["properties"]["first"] == {"$ref": "#/$defs/Inner"}
    assert list(schema["$defs"]) == ["Inner"]


class Tree(pydantic.BaseModel):
    kids: list[Tree] = []


KIDS = {"default": [], "items": {"$ref": "#/$defs/Tree"}, "type": "array"}
TREE = {"type": "object", "properties": {"kids": KIDS}}


def test_a_model_that_contains_itself_stands_at_the_root() -> None:
    assert schema_of(Tree) == {**TREE, "$defs": {"Tree": TREE}}


def test_model_that_contains_itself_is_written_once_beside_others() -> None:
    for types in ({"a": Tree}, {"a": Tree, "b": Tree}, {"a": list[Tree], "b": Tree | None}):
        schema = object_schema(types, types, {}, {}, {})
        assert schema["$defs"] == {"Tree": TREE}
        assert json.dumps(schema).count('"properties"') == 2  # of the root, and of the model


def test_definition_of_a_model_is_shared_between_types() -> None:
    class Inner(pydantic.BaseModel):
        x: int

    class One(pydantic.BaseModel):
        inner: Inner

    class Two(pydantic.BaseModel):
        inner: Inner
        more: Inner

    types = {"a": One, "b": Two, "c": Inner, "d": Inner}
    schema = object_schema(types, types, {}, {}, {})
    assert list(schema["$defs"]) == ["Inner"]
    assert schema["properties"]["c"] == {"$ref": "#/$defs/Inner"}
    assert object_schema(dict(reversed(types.items())), [], {}, {}, {})["$defs"] == schema["$defs"]


def test_models_and_structs_of_one_name_have_definitions_of_their_own() -> None:
    def two() -> Any:
        class Inner(pydantic.BaseModel):
            y: str

        class Middle(pydantic.BaseModel):
            inner: list[Inner]

        class Wind(pydantic.BaseModel):
            middle: Middle
            kind: Literal["b"] = "b"

        return Wind, Middle

    class Inner(pydantic.BaseModel):
        x: int

    class Middle(pydantic.BaseModel):
        inner: list[Inner]

    class Outer(pydantic.BaseModel):
        middle: Middle
        kind: Literal["a"] = "a"

    other, other_middle = two()
    either = Annotated[Outer | other, pydantic.Field(discriminator="kind")]
    types = {
        "a": Outer,
        "b": other,
        "c": Wind,
        "d": Wind,
        "e": other,
        "f": other_middle,
        "g": pydantic.create_model("Either", it=(either, ...)),
    }
    schema = object_schema(types, types, {}, {}, {})
    names = {*schema["$defs"]}
    assert names >= {"Middle", "Inner", "Middle_2", "Inner_2", "Wind", "Wind_2"}
    used = set(re.findall(r'"#/\$defs/([^"]*)"', json.dumps(schema)))
    assert used == names
    check = SchemaCheck(schema)
    good_outer, good_other = {"middle": {"inner": [{"x": 1}]}}, {"middle": {"inner": [{"y": "1"}]}}
    wind = msgspec.to_builtins(Wind(1))
    good = {
        **{"a": good_outer, "b": good_other, "c": wind, "d": wind, "e": good_other},
        **{"f": good_other["middle"], "g": {"it": {**good_other, "kind": "b"}}},
    }
    assert check.problem(good) is None
    for name, wrong in (("a", good_other), ("b", good_outer), ("e", wind), ("d", good_other)):
        assert check.problem({**good, name: wrong}) is not None


def test_no_title_is_made_from_a_name() -> None:
    assert "title" not in str([schema_of(type_) for type_ in (Place, Circle, Unit, Model, Pair)])


def test_output_promises_a_zone_only_where_there_is_one() -> None:
    assert schema_of(datetime.datetime) == {"type": "string"}
    zoned = Annotated[datetime.datetime, Meta(tz=True)]
    assert schema_of(zoned) == {"type": "string", "format": "date-time"}


def test_an_object_without_members_has_empty_properties() -> None:
    assert object_schema({}, [], {}, {}, {}) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


class Opaque:
    """Nothing that JSON knows."""


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        (Opaque, "values of Opaque cannot be decoded from JSON"),
        (list[Opaque], "values of Opaque cannot be decoded from JSON"),
        (complex, "values of complex cannot be decoded from JSON"),
        (Place | Wind, "objects in JSON and cannot be told apart"),
        (Place | dict, "objects in JSON and cannot be told apart"),
        (Node | Box[int], "give each Struct a tag"),
        (list[int] | set[int], "arrays in JSON"),
        (str | datetime.date, "strings in JSON"),
        (int | Level, "integers in JSON"),
        (Model | int, "a class of another library"),
        (dict[Wind, int], "names of an object's members are texts"),
        (Annotated[str, Meta(ge=1)], "a constraint does not suit the type"),
        (Annotated[int, Meta(ge=1), Meta(ge=2)], "the same constraint is set twice"),
        (Literal[b"x"], "a Literal has only texts"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_a_type_that_cannot_be_read_is_refused_with_its_reason(type_: Any, reason: str) -> None:
    with pytest.raises(TypeError) as refused:
        check([type_])
    assert reason in str(refused.value)
    assert "msgspec" not in str(refused.value)
    assert "`" not in str(refused.value)


def test_only_models_need_a_hook() -> None:
    assert check([list[Model]])
    assert not check([str, list[Place], Node, dict[str, Circle | Square]])


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), object(), Opaque()])
def test_a_default_that_says_nothing_is_not_shown(value: Any) -> None:
    assert default_shown(value) is default_shown(None)


def test_a_default_is_shown_as_json() -> None:
    assert default_shown(Unit.KELVIN) == "k"
    assert default_shown(Place(1, 2)) == {"lat": 1, "lon": 2, "name": "here"}
    assert default_shown(Model(count=2)) == {"count": 2}
