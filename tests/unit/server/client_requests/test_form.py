"""Forms: what each kind of answer is asked as, in each revision, and how it is read back."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import logging
import uuid
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import annotated_types
import attrs
import pydantic
import pytest
from msgspec import UNSET, Meta, Struct, UnsetType, field

from trunkline.errors import LocalProtocolError
from trunkline.judge import judge_type
from trunkline.server.client_requests.form import ChoiceTitles, form_of
from trunkline.spec.types import UnknownRevision

OLD, NEW, NEWEST = "2025-06-18", "2025-11-25", "2026-07-28"


class Colour(enum.Enum):
    """Of the bike.

    Members:
        RED: Deep
            red
    """

    RED = "r"
    GREEN = "g"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Labelled(enum.Enum):
    def __new__(cls, value: str, text: str) -> Labelled:
        made = object.__new__(cls)
        made._value_ = value
        made.__doc__ = text
        return made

    ONE = "1st", "The first"


class Day(Struct, tag="day", forbid_unknown_fields=True, rename="camel"):
    """A day.

    Attributes:
        first_name: Whose day.
    """

    first_name: Annotated[str, Meta(title="Name", min_length=2, max_length=9, pattern="^a")]
    mail: Annotated[str, Meta(extra_json_schema={"format": "email"})] | None
    day: datetime.date
    at: datetime.datetime
    age: Annotated[int, Meta(gt=0, le=150)] = 30
    score: Annotated[float, Meta(ge=0.5, lt=100)] = 95.5
    colour: Colour = Colour.RED
    level: Level = Level.HIGH
    sure: bool = True
    number: uuid.UUID | None = None


class Many(Struct):
    plain: Annotated[list[Literal["a", "b"]], Meta(min_length=1, max_length=2)]
    titled: list[Annotated[Literal["a", "b"], ChoiceTitles(a="Ah")]] = field(
        default_factory=lambda: ["a"]
    )
    colours: set[Colour] = field(default_factory=set)


@dataclasses.dataclass
class Place:
    name: Annotated[str, "What it is called."]
    colours: list[Colour] = dataclasses.field(default_factory=lambda: [Colour.RED])


@attrs.define
class Wind:
    speed: int = 3


class Options(TypedDict):
    deep: bool
    note: NotRequired[str]
    left: str | None


class Model(pydantic.BaseModel):
    level: Level = Level.LOW
    note: str | None = None
    kinds: list[Literal["a", "b"]] = pydantic.Field(default_factory=lambda: ["a"], min_length=1)
    mail: Annotated[str, pydantic.Field(alias="eMail", json_schema_extra={"format": "email"})]
    size: Annotated[Literal["s", "m"], ChoiceTitles(s="Small")] = "s"


DEFAULTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}
TITLED = [{"const": "v1", "title": "One"}, {"const": "v2", "title": "Two"}]
ENUMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["o1", "o2"]},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["x", "y"], "enumNames": ["X", "Y"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["o1", "o2"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}, "minItems": 1},
    },
    "required": ["untitledSingle"],
}


def raw(properties: Any, **rest: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **rest}


def properties(kind: Any, revision: str = NEW) -> dict[str, Any]:
    found: dict[str, Any] = form_of(kind).schema(revision)["properties"]
    return found


def value(kind: Any, revision: str = NEW) -> Any:
    return properties(kind, revision)["value"]


KINDS: list[Any] = [
    Day,
    Many,
    Place,
    Wind,
    Options,
    Model,
    DEFAULTS,
    ENUMS,
    None,
    str,
    int,
    float,
    bool,
    int | float,
    datetime.date,
    decimal.Decimal,
    Colour,
    Level,
    Labelled,
    Literal["a", "b"],
    Literal[1, 2],
    Colour | None,
    Literal["a", None],
    list[Colour],
    frozenset[Literal["a"]],
    Annotated[list[Literal["a", "b"]], Meta(max_length=1), ChoiceTitles(a="Ah")],
    Annotated[int, annotated_types.Ge(1)],
    Annotated[str, ["not", "hashable"]],
]
SEVERAL = (Many, Place, Model, ENUMS, list[Colour], frozenset[Literal["a"]], KINDS[-3])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("revision", [OLD, NEW, NEWEST])
def test_each_kind_is_asked_as_the_revision_has_it(kind: Any, revision: str) -> None:
    form = form_of(kind)
    if revision == OLD and kind in SEVERAL:
        with pytest.raises(LocalProtocolError) as caught:
            form.schema(revision)
        assert caught.value.rule == "mcp.elicitation.field-kind"
        assert OLD in caught.value.expected
        return
    params = {"message": "?", "requestedSchema": form.schema(revision)}
    assert judge_type(params, "ElicitRequestParams", revision) == []


def test_judge_reports_a_keyword_that_form_schemas_do_not_allow() -> None:
    # Else the test above could not fail.
    params = {"message": "?", "requestedSchema": raw({"a": {"type": "string", "pattern": "x"}})}
    assert judge_type(params, "ElicitRequestParams", NEW)


def test_class_becomes_form_fields_with_constraints_and_descriptions() -> None:
    assert form_of(Day).schema(NEW) == {
        "type": "object",
        "properties": {
            "firstName": {
                "type": "string",
                "title": "Name",
                "description": "Whose day.",
                "minLength": 2,
                "maxLength": 9,
            },
            "mail": {"type": "string", "format": "email"},
            "day": {"type": "string", "format": "date"},
            "at": {"type": "string", "format": "date-time"},
            "age": {"type": "integer", "minimum": 1, "maximum": 150, "default": 30},
            "score": {"type": "number", "minimum": 0.5, "default": 95.5},
            "colour": {
                "type": "string",
                "description": "Of the bike.",
                "oneOf": [{"const": "r", "title": "Deep red"}, {"const": "g", "title": "g"}],
                "default": "r",
            },
            "level": {
                "type": "string",
                "oneOf": [{"const": "1", "title": "LOW"}, {"const": "2", "title": "HIGH"}],
                "default": "2",
            },
            "sure": {"type": "boolean", "default": True},
            "number": {"type": "string"},
        },
        "required": ["firstName", "day", "at"],
    }


def test_form_schema_of_2025_06_18_omits_newer_keywords() -> None:
    told = properties(Day, OLD)
    assert told["age"] == {"type": "integer", "minimum": 1, "maximum": 150}
    assert told["sure"] == {"type": "boolean", "default": True}
    assert told["colour"] == {
        "type": "string",
        "description": "Of the bike.",
        "enum": ["r", "g"],
        "enumNames": ["Deep red", "g"],
    }
    assert value(Literal["a", "b"], OLD) == {"type": "string", "enum": ["a", "b"]}


def test_choices_of_several_are_arrays() -> None:
    assert properties(Many) == {
        "plain": {
            "type": "array",
            "items": {"type": "string", "enum": ["a", "b"]},
            "minItems": 1,
            "maxItems": 2,
        },
        "titled": {
            "type": "array",
            "items": {"anyOf": [{"const": "a", "title": "Ah"}, {"const": "b", "title": "b"}]},
            "default": ["a"],
        },
        "colours": {
            "type": "array",
            "items": {"anyOf": [{"const": "r", "title": "Deep red"}, {"const": "g", "title": "g"}]},
        },
    }
    assert properties(Place)["colours"]["default"] == ["r"]


def test_a_model_is_asked_by_its_own_schema() -> None:
    assert form_of(Model).schema(NEW)["required"] == ["eMail"]
    told = properties(Model)
    assert told["eMail"] == {"type": "string", "format": "email"}
    assert told["kinds"]["minItems"] == 1
    assert told["level"]["default"] == "1"
    assert told["size"]["oneOf"][0] == {"const": "s", "title": "Small"}


@pytest.mark.parametrize("revision", [NEW, NEWEST])
@pytest.mark.parametrize("schema", [DEFAULTS, ENUMS], ids=["defaults", "enums"])
def test_a_schema_that_a_revision_has_words_for_is_sent_as_it_was_written(
    schema: dict[str, Any], revision: str
) -> None:
    written = form_of(schema).schema(revision)
    assert written["properties"] == schema["properties"]
    assert written.get("required", []) == schema["required"]


def test_a_written_schema_is_narrowed_too() -> None:
    only = {name: ENUMS["properties"][name] for name in ("titledSingle", "legacyEnum")}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    form = form_of(raw(only, **{"$schema": dialect, "title": "no place for it"}))
    assert form.schema(OLD) == raw(
        {
            "titledSingle": {"type": "string", "enum": ["v1", "v2"], "enumNames": ["One", "Two"]},
            "legacyEnum": only["legacyEnum"],
        }
    )
    assert form.schema(NEW) == raw(only, **{"$schema": dialect})
    assert form_of(raw(only)).schema(NEW) == raw(only)
    assert properties(DEFAULTS, OLD)["name"] == {"type": "string"}


def test_titles_stand_beside_a_type_or_with_the_members_of_an_enum() -> None:
    shown = [{"const": "r", "title": "Deep red"}, {"const": "g", "title": "Grass"}]
    assert value(Annotated[Colour, ChoiceTitles({Colour.GREEN: "Grass"})])["oneOf"] == shown
    assert value(Labelled)["oneOf"] == [{"const": "1st", "title": "The first"}]
    assert value(Annotated[Literal[1, 2], ChoiceTitles({1: "One"})])["oneOf"][0]["title"] == "One"
    assert ChoiceTitles(a="A") == ChoiceTitles({"a": "A"}) != ChoiceTitles(a="B")
    assert hash(ChoiceTitles(a="A")) == hash(ChoiceTitles({"a": "A"}))
    assert repr(ChoiceTitles(a="A")) == "ChoiceTitles({'a': 'A'})"


def test_fields_and_choices_stand_in_the_order_they_were_written_in() -> None:
    assert value(Literal["s", "m", "l"])["enum"] == ["s", "m", "l"]
    assert value(Literal["m", "s", "l"])["enum"] == ["m", "s", "l"]
    assert value(list[Literal["m", "s"]] | None)["items"]["enum"] == ["m", "s"]
    assert value(Literal[10, 9])["enum"] == ["10", "9"]
    assert list(properties(Options)) == ["deep", "note", "left"]
    assert list(properties(ENUMS)) == list(ENUMS["properties"])


def test_a_form_is_made_once() -> None:
    assert form_of(Day) is form_of(Day)
    assert form_of(dict(DEFAULTS)) is form_of(DEFAULTS)
    assert form_of(Day).schema(NEW) is form_of(Day).schema(NEW)
    assert form_of(Annotated[str, Meta(min_length=1)]) is form_of(
        Annotated[str, Meta(min_length=1)]
    )
    assert "firstName" in repr(form_of(Day))


def test_form_is_unaffected_by_later_changes_to_its_schema() -> None:
    mine = raw({"a": {"type": "string"}})
    form = form_of(mine)
    mine["properties"]["a"]["type"] = "integer"
    assert form.schema(NEW)["properties"]["a"] == {"type": "string"}
    assert form_of(mine) is not form


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26"])
def test_a_revision_without_forms_is_refused(revision: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        form_of(None).schema(revision)
    assert caught.value.rule == "mcp.elicitation.form"


def test_an_unknown_revision_is_refused_and_not_kept() -> None:
    with pytest.raises(UnknownRevision):
        form_of(str).schema("2031-01-01")


# -- what cannot be asked --------------------------------------------------------------------


class Pair(NamedTuple):
    left: int


class Row(Struct, array_like=True):
    left: int


class Root(pydantic.RootModel[list[int]]):
    pass


class Nested(pydantic.BaseModel):
    it: Model


def struct_of(hint: Any) -> Any:
    return type("Made", (Struct,), {"__annotations__": {"it": hint}, "__module__": __name__})


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        (Wind, "it is an object"),
        (dict[str, int], "it is an object"),
        (list[Wind], "it is a list, and not of choices"),
        (list[str], "it is a list, and not of choices"),
        (Pair, "it is a list, and not of choices"),
        (list[Literal["a"] | None], "it may be of several kinds"),
        (int | str, "it may be of several kinds"),
        (Any, "it may be of any kind"),
        (bytes, "it is made of bytes"),
        (complex, "values of complex cannot be decoded from JSON"),
        (Literal[True], "its choices are neither texts nor integers"),
        (Literal["1", 1], "two of its choices look the same"),
        (Annotated[str, ChoiceTitles(a="A")], '"a" has a title and is not one of its choices'),
        (
            Annotated[Literal["b"], ChoiceTitles(a="A")],
            '"a" has a title and is not one of its choices',
        ),
    ],
)
def test_field_type_unsupported_by_forms_is_refused_with_the_field_name(
    hint: Any, why: str
) -> None:
    with pytest.raises(TypeError) as caught:
        form_of(struct_of(hint))
    text = str(caught.value)
    assert text.startswith(f'Made: field "it" cannot be asked in a form: {why}')
    assert text.endswith("choices of one or several texts")


@pytest.mark.parametrize(
    "kind",
    [
        Pair,
        Row,
        Root,
        Nested,
        dict[str, int],
        list[Wind],
        int | str,
        bytes,
        Any,
        3,
        [],
        "x",
        object,
    ],
)
def test_type_unsupported_by_forms_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="cannot be asked in a form"):
        form_of(kind)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string", "properties": {}}, 'its type must be "object"'),
        ({"type": "object"}, '"properties": it is required'),
        (raw({}, required=["a"]), '"a" is required and not among the properties'),
        (raw({"a": {"type": "object", "properties": {}}}), 'field "a".*it is an object'),
        (raw({"a": {"type": "array", "items": {"type": "string"}}}), "not of choices"),
        (raw({"a": {"type": ["string", "integer"]}}), "several kinds"),
        (raw({"a": {"oneOf": [{"type": "string"}]}}), "several kinds"),
        (raw({"a": {"type": "null"}}), "it is of type null"),
        (raw({"a": {"$ref": "#/$defs/a"}}), "outside the form"),
        (raw({"a": {"type": "string", "minLength": "1"}}), 'field "a": "minLength": expected an i'),
        (raw({"a": {"type": "string", "minLength": -1}}), 'field "a" cannot'),
        (raw({"a": {"type": "string", "pattern": "("}}), 'field "a" cannot'),
        (raw({"a": {"type": "integer", "default": "x"}}), "its default"),
        (raw({"a": {"type": "integer", "default": True}}), "its default"),
        (raw({"a": {"enum": ["x"], "default": "y"}}), "its default"),
        (raw({"a": {"enum": []}}), "it has no choices"),
        (raw({"a": {"enum": ["x"], "enumNames": ["X", "Y"]}}), "not as many enumNames"),
        (raw({"a": {"oneOf": [{"const": "x", "title": 1}]}}), "title of a choice is a text"),
        ({"type": object()}, "the schema of a form"),
    ],
)
def test_a_schema_that_is_not_of_a_form_is_refused(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(TypeError, match=why):
        form_of(schema)


# -- reading ---------------------------------------------------------------------------------


def test_a_class_is_read_back_with_its_types_and_defaults() -> None:
    filled = {
        "firstName": "abe",
        "day": "2026-01-31",
        "at": "2026-01-31T09:30:00Z",
        "age": 5.0,
        "level": "1",
        "not asked for": {"deep": 1},
    }
    assert form_of(Day).read(filled) == Day(
        first_name="abe",
        mail=None,
        day=datetime.date(2026, 1, 31),
        at=datetime.datetime(2026, 1, 31, 9, 30, tzinfo=datetime.UTC),
        age=5,
        level=Level.LOW,
    )


@pytest.mark.parametrize(
    ("kind", "content", "read"),
    [
        (None, {"any": 1}, None),
        (str, {"value": "x"}, "x"),
        (float, {"value": 3}, 3.0),
        (int | float, {"value": 3}, 3),
        (bool, {"value": False}, False),
        (Colour, {"value": "g"}, Colour.GREEN),
        (Literal[1, 2], {"value": "2"}, 2),
        (Colour | None, {}, None),
        (Colour | None, {"value": None}, None),
        (list[Colour], {"value": ["g", "r"]}, [Colour.GREEN, Colour.RED]),
        (frozenset[Literal["a"]], {"value": ["a", "a"]}, frozenset("a")),
        (Many, {"plain": ["b"]}, Many(["b"], ["a"], set())),
        (Place, {"name": "x"}, Place("x", [Colour.RED])),
        (Wind, None, Wind(3)),
        (Options, {"deep": True}, {"deep": True, "left": None}),
        (Model, {"eMail": "a@b.c"}, Model(eMail="a@b.c")),
        (DEFAULTS, {"age": 25, "score": 88}, None),
        (ENUMS, {"untitledSingle": "o1", "titledMulti": ["v1", "v2"], "extra": 1}, None),
    ],
)
def test_content_is_read_as_what_was_asked_for(kind: Any, content: Any, read: Any) -> None:
    if kind is DEFAULTS:
        read = {"name": "John Doe", "age": 25, "score": 88, "status": "active", "verified": True}
    if kind is ENUMS:
        read = {"untitledSingle": "o1", "titledMulti": ["v1", "v2"]}
    found = form_of(kind).read(content)
    assert found == read
    assert type(found) is type(read)


def test_a_default_that_was_read_is_the_callers_own() -> None:
    form = form_of(raw({"a": {"type": "array", "items": {"enum": ["x"]}, "default": ["x"]}}))
    form.read({})["a"].append("changed")
    assert form.read(None) == {"a": ["x"]}


def test_integers_to_choose_from_in_a_schema_are_integers_again() -> None:
    form = form_of(raw({"a": {"type": "integer", "enum": [1, 2], "default": 2}}))
    assert form.schema(NEW)["properties"]["a"] == {
        "type": "string",
        "enum": ["1", "2"],
        "default": "2",
    }
    assert form.read({}) == {"a": 2}
    assert form.read({"a": "1"}) == {"a": 1}


SECRET = "hunter2"
BOUNDS = raw(
    {
        "text": {"type": ["string", "null"], "maxLength": 5, "pattern": "^h"},
        "whole": {"type": "integer", "minimum": 0.5, "exclusiveMaximum": 4},
        "number": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
        "some": {"type": "array", "items": {"enum": ["v"]}, "minItems": 1},
        "yes": {"type": "boolean"},
    },
    required=["whole"],
)


@pytest.mark.parametrize(
    ("kind", "content", "sentence"),
    [
        (str, {}, 'field "value": it is required'),
        (str, None, 'field "value": it is required'),
        (str, {"value": 1}, 'field "value": expected a string, got an integer'),
        (int, {"value": SECRET}, 'field "value": expected an integer, got a string'),
        (int, {"value": 1.5}, 'field "value": expected an integer, got a number'),
        (int, {"value": True}, 'field "value": expected an integer, got a boolean'),
        (Colour, {"value": SECRET}, 'field "value": not one of the allowed values (r, g)'),
        (Colour, {"value": ["r"]}, 'field "value": not one of the allowed values (r, g)'),
        (list[Colour], {"value": [SECRET]}, 'field "value": not one of the allowed values (r, g)'),
        (list[Colour], {"value": SECRET}, 'field "value": expected an array, got a string'),
        (Many, {"plain": []}, 'field "plain": expected an array of length >= 1'),
        (datetime.date, {"value": SECRET}, 'field "value": expected a date like 2026-01-31'),
        (Day, {"firstName": SECRET}, "field \"firstName\": expected a string matching regex '^a'"),
        (Wind, {"speed": None}, 'field "speed": expected an integer, got null'),
        (Model, {"eMail": 5}, 'field "eMail": input should be a valid string'),
        (
            Model,
            {"eMail": "", "level": SECRET},
            'field "level": not one of the allowed values (1, 2)',
        ),
        (BOUNDS, {}, 'field "whole": it is required'),
        (BOUNDS, {"whole": 0}, 'field "whole": expected an integer >= 1'),
        (BOUNDS, {"whole": 4}, 'field "whole": expected an integer <= 3'),
        (BOUNDS, {"whole": 1, "text": SECRET}, 'field "text": expected a string of length <= 5'),
        (BOUNDS, {"whole": 1, "number": 0}, 'field "number": expected a number > 0.0'),
        (BOUNDS, {"whole": 1, "some": []}, 'field "some": expected an array of length >= 1'),
        (BOUNDS, {"whole": 1, "yes": SECRET}, 'field "yes": expected a boolean, got a string'),
        (ENUMS, {"untitledSingle": SECRET}, 'field "untitledSingle": not one of the allowed'),
        (str, [SECRET], "the content of a form is an object"),
    ],
)
def test_invalid_form_content_error_names_the_field_but_not_the_value(
    kind: Any, content: Any, sentence: str
) -> None:
    with pytest.raises(ValueError) as caught:
        form_of(kind).read(content)
    assert str(caught.value).startswith(sentence)
    assert SECRET not in str(caught.value)


def test_a_schema_that_takes_null_takes_it() -> None:
    assert form_of(BOUNDS).read({"whole": 2.0, "text": None}) == {"whole": 2, "text": None}


def test_many_choices_are_not_listed() -> None:
    form = form_of(raw({"a": {"enum": [str(each) for each in range(30)]}}))
    with pytest.raises(ValueError, match=r"allowed values$"):
        form.read({"a": "x"})


def test_a_model_that_refuses_as_a_whole_names_no_field() -> None:
    class Strict(pydantic.BaseModel):
        a: int

        @pydantic.model_validator(mode="after")
        def never(self) -> Strict:
            raise ValueError(SECRET)

    with pytest.raises(ValueError, match=r"^refused by the model$"):
        form_of(Strict).read({"a": 1})


# -- secrets ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (raw({"api_key": {"type": "string"}, "city": {"type": "string"}}), "api_key"),
        (raw({"word": {"type": "string", "format": "password"}}), "word"),
    ],
)
def test_a_form_that_asks_for_a_secret_is_warned_of_once(
    schema: dict[str, Any], named: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "trunkline.server"):
        form_of({**schema, "description": "first"})
        form_of({**schema, "description": "first"})
    (record,) = caplog.records
    assert f"asks for {named}," in record.getMessage()
    assert "elicit_url" in record.getMessage()


def test_a_class_that_asks_for_a_secret_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    class Login(Struct):
        user: str
        password: str
        note: str | UnsetType = UNSET

    with caplog.at_level(logging.WARNING, "trunkline.server"):
        assert form_of(Login).schema(NEW)["required"] == ["user", "password"]
        form_of(Colour)
    (record,) = caplog.records
    assert record.getMessage().startswith("form of Login asks for password,")
