"""Unions are told apart by tags, by members and by trying, in a fixed order."""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
import uuid
from collections import deque
from typing import Annotated, Any, Literal, TypedDict

import attrs
import pydantic
import pytest
from msgspec import Struct
from pydantic import Field

from tests.rigs.handler_arguments import passed_as_x, refusal_as_x, taking
from tests.rigs.types import Aliased, Cat, Dog, Numbers, Pair, PCat, PDog
from trunkline.server.handlers.arguments import arguments_of
from trunkline.server.handlers.output import output_of


class Fish(Struct):
    depth: float


@attrs.define
class Bird:
    wings: int


class Cow(TypedDict):
    milk: bool


class Horse(TypedDict):
    speed: int


@dataclasses.dataclass
class Wolf:
    kind: Literal["wolf", "fox"]
    name: str = "w"


class Named(pydantic.BaseModel, populate_by_name=True):
    house: int = Field(alias="houseId")


DAY = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
ID = uuid.UUID(int=1)
TAGGED = Annotated[PCat | PDog, Field(discriminator="kind")]

# Values beside those of `tests/type_matrix.py`.
READ: list[tuple[Any, bytes, Any]] = [
    (Dog | Cat, b'{"name":"a"}', Dog("a")),
    (Cat | Dog, b'{"name":"a","age":5}', Dog("a", 5)),
    (Cat | Dog | None, b"null", None),
    (Cat | Fish, b'{"depth":1}', Fish(1.0)),
    (Cat | Bird, b'{"wings":2}', Bird(2)),
    (Cow | Horse, b'{"speed":2}', {"speed": 2}),
    (Cow | Horse | str, b'"a"', "a"),
    (Annotated[PCat | Wolf, Field(discriminator="kind")], b'{"kind":"fox"}', Wolf("fox")),
    (str | PCat, b'{"name":"a"}', PCat(name="a")),
    (Cat | PCat, b'{"name":"a"}', Cat("a")),
    (Cat | PCat, b'{"name":"a","kind":"cat"}', PCat(name="a")),
    (Aliased | Cat, b'{"userId":1}', Aliased(userId=1)),
    (Named | Cat, b'{"house":1}', Named(house=1)),
    (Numbers | Cat, b"[1]", Numbers([1])),
    (dict | Cat, b'{"other":1}', {"other": 1}),
    (dict[str, int] | dict[str, str], b'{"a":"b"}', {"a": "b"}),
    (datetime.datetime | str, b'"2026-01-02T00:00:00Z"', DAY),
    (str | datetime.datetime, b'"2026-01-02T00:00:00Z"', DAY),
    (datetime.datetime | str, b'"tomorrow"', "tomorrow"),
    (uuid.UUID | datetime.datetime, b'"00000000-0000-0000-0000-000000000001"', ID),
    (list[Cat | Dog], b'[{"name":"a","age":1}]', [Dog("a", 1)]),
    (dict[str, Cat | Dog], b'{"a":{"name":"a"}}', {"a": Cat("a")}),
    (tuple[int, ...] | Pair, b'[1,"a"]', Pair(1, "a")),
    (deque[Cat | Dog], b'[{"name":"a"}]', deque([Cat("a")])),
    (float | int | pathlib.Path, b"5", 5),
    (str | pathlib.Path, b'"a"', pathlib.Path("a")),
    (Annotated[Cat | Dog, "a pet"], b'{"name":"a"}', Cat("a")),
]


@pytest.mark.parametrize(("type_", "raw", "value"), READ, ids=[f"{row[0]}"[:60] for row in READ])
def test_a_value_of_a_union_is_read(type_: Any, raw: bytes, value: Any) -> None:
    found = passed_as_x(arguments_of(taking(type_)), raw)
    assert found == value
    assert type(found) is type(value)


def test_the_members_of_a_dataclass_in_a_union_are_filled() -> None:
    assert vars(passed_as_x(arguments_of(taking(Cat | Dog)), b'{"name":"a"}')) == {"name": "a"}
    (dog,) = passed_as_x(arguments_of(taking(list[Dog | Cat])), b'[{"name":"a"}]')
    assert vars(dog) == {"name": "a", "age": 3}


REFUSED: list[tuple[Any, bytes, str]] = [
    (Cat | Dog, b"1", 'argument "x": expected an object, got an integer'),
    (Cat | Dog, b'{"canary":1}', 'argument "x": expected an object with the members "name"'),
    (Cat | Fish, b"{}", 'argument "x": expected an object with the members "name" or "depth"'),
    (Cat | Dog, b'{"name":1}', 'argument "x": "name": expected a string, got an integer'),
    (
        PCat | PDog,
        b'{"kind":"canary","name":"a"}',
        'argument "x": "kind": not one of the allowed values (cat, dog)',
    ),
    (TAGGED, b'{"name":"a"}', 'argument "x": "kind": it is required'),
    (TAGGED, b'{"kind":["canary"],"name":"a"}', 'argument "x": "kind": not one of the allowed'),
    (TAGGED, b'{"kind":"dog"}', 'argument "x": "name": field required'),
    (
        datetime.datetime | uuid.UUID,
        b'"canary"',
        'argument "x": expected a date and time like 2026-01-31T09:30:00Z; or expected a UUID',
    ),
    (
        datetime.datetime | str,
        b"1",
        'argument "x": expected a date and time, got an integer; or expected a string, got an',
    ),
    (list[Cat | Dog], b'[{"name":"a"},2]', 'argument "x[1]": expected an object, got an integer'),
]


@pytest.mark.parametrize(("type_", "raw", "text"), REFUSED, ids=[row[2][:60] for row in REFUSED])
def test_a_value_that_fits_no_type_is_refused(type_: Any, raw: bytes, text: str) -> None:
    told = refusal_as_x(arguments_of(taking(type_)), raw)
    assert told.startswith(text)
    assert "canary" not in told


def test_the_schema_of_a_union_lists_its_types() -> None:
    def listed(annotation: Any) -> Any:
        return arguments_of(taking(annotation)).schema["properties"]["x"]

    name = {"name": {"type": "string"}}
    cat = {"type": "object", "properties": name, "required": ["name"]}
    assert listed(Cat | str | datetime.datetime) == {
        "anyOf": [cat, {"type": "string"}, {"type": "string", "format": "date-time"}]
    }
    tagged = listed(TAGGED)
    assert tagged["required"] == ["kind"]
    assert [each["properties"]["kind"]["const"] for each in tagged["anyOf"]] == ["cat", "dog"]
    assert listed(Annotated[Cat | Dog, "a pet"])["description"] == "a pet"


def test_a_class_that_is_in_two_unions_is_defined_once() -> None:
    def both(a: Cat | Dog, b: list[Cat | Fish]) -> None: ...

    schema = arguments_of(both).schema
    assert list(schema["$defs"]) == ["Cat"]
    assert schema["properties"]["a"]["anyOf"][0] == {"$ref": "#/$defs/Cat"}
    assert schema["properties"]["b"]["items"]["anyOf"][0] == {"$ref": "#/$defs/Cat"}


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[Cat | Dog, Field(discriminator="kind")],
        Annotated[PCat | PCat | Wolf, Field(discriminator="name")],
    ],
)
def test_discriminator_that_does_not_distinguish_the_classes_is_refused(annotation: Any) -> None:
    with pytest.raises(TypeError, match="does not tell the classes apart"):
        arguments_of(taking(annotation))


def test_a_callable_discriminator_is_applied_by_pydantic() -> None:
    tagged = Annotated[
        Annotated[PCat, pydantic.Tag("c")] | Annotated[PDog, pydantic.Tag("d")],
        pydantic.Discriminator(lambda value: "d" if value.get("barks") else "c"),
    ]
    arguments = arguments_of(taking(tagged))
    assert passed_as_x(arguments, b'{"name":"a","barks":true}') == PDog(name="a")
    assert passed_as_x(arguments, b'{"name":"a"}') == PCat(name="a")


@dataclasses.dataclass
class Owner:
    pet: Cat | Dog


class Kennel(Struct):
    pet: Cat | Dog


def test_a_union_in_a_member_of_a_dataclass_is_read_by_pydantic() -> None:
    arguments = arguments_of(taking(Owner))
    assert passed_as_x(arguments, b'{"pet":{"name":"a"}}') == Owner(Cat("a"))


def test_a_union_in_a_member_that_nothing_can_read_is_refused() -> None:
    with pytest.raises(TypeError, match="its types are all objects in JSON"):
        arguments_of(taking(Kennel))


RETURNED: list[tuple[Any, Any, bytes]] = [
    (Cat | Dog, Dog("a"), b'{"name":"a","age":3}'),
    (PCat | PDog, PDog(name="a"), b'{"kind":"dog","name":"a"}'),
    (list[PCat | PDog], [PCat(name="a")], b'[{"kind":"cat","name":"a"}]'),
    (PCat | str, "a", b'"a"'),
    (str | datetime.datetime, DAY, b'"2026-01-02T00:00:00Z"'),
    (Cat | pathlib.Path | None, pathlib.Path("a"), b'"a"'),
    (Aliased | Cat, Aliased(userId=1), b'{"userId":1}'),
]


@pytest.mark.parametrize(
    ("annotation", "value", "raw"), RETURNED, ids=[f"{row[0]}"[:60] for row in RETURNED]
)
def test_a_tool_may_return_any_union(annotation: Any, value: Any, raw: bytes) -> None:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    output = output_of(tool)
    assert bytes(output.render(value).structured_content) == raw  # type: ignore[arg-type]  # Raw
    assert output.schema is not None
    with pytest.raises(TypeError, match="does not fit its output schema"):
        output.render(12)
