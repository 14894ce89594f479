"""What pydantic's `Field` and other constraints say of a parameter holds, or is refused."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import sys
from typing import Annotated, Any, Literal, TypedDict

import annotated_types
import msgspec
import pydantic
import pytest
from msgspec import Meta, Struct
from pydantic import Field

from tests.rigs.handler_arguments import passed, refusal, taking
from trunkline.server.handlers.arguments import ParamHeader, arguments_of
from trunkline.server.handlers.output import output_of


def listed(annotation: Any, *default: Any) -> dict[str, Any]:
    (member,) = arguments_of(taking(annotation, *default)).schema["properties"].values()
    return dict(member)


def test_an_alias_is_the_name_on_the_wire() -> None:
    def find(user: Annotated[int, Field(alias="userId")], more: str = "m") -> str:
        """Find a user.

        Args:
            user: the number of the user.
        """
        return f"{user}{more}"

    arguments = arguments_of(find)
    assert arguments.names == ("userId", "more")
    assert arguments.required == ("userId",)
    assert arguments.schema["properties"]["userId"] == {
        "type": "integer",
        "description": "the number of the user.",
    }
    assert arguments.schema["required"] == ["userId"]
    assert passed(arguments, b'{"userId":7}') == "7m"
    told = refusal(arguments, b'{"user":7}')
    assert told == (
        'argument "userId" is required; unknown argument "user": the arguments are userId, more'
    )


@pytest.mark.parametrize("alias", ["user-id", "_x", "class", "__doc__", "a b"])
def test_an_alias_may_be_any_text(alias: str) -> None:
    arguments = arguments_of(taking(Annotated[int, Field(alias=alias)]))
    assert arguments.names == (alias,)
    assert passed(arguments, msgspec.json.encode({alias: 3})) == 3


def test_a_validation_alias_is_the_name_on_the_wire_and_wins() -> None:
    assert arguments_of(taking(Annotated[int, Field(validation_alias="v")])).names == ("v",)
    both = Annotated[int, Field(alias="a", validation_alias="v")]
    assert arguments_of(taking(both)).names == ("v",)


def test_two_arguments_do_not_share_a_name() -> None:
    def both(a: Annotated[int, Field(alias="x")], x: int) -> None: ...

    with pytest.raises(TypeError, match=r'both\(\) has two arguments named "x"'):
        arguments_of(both)


def test_a_header_is_kept_by_the_name_on_the_wire() -> None:
    arguments = arguments_of(taking(Annotated[str, Field(alias="in"), ParamHeader("Region")]))
    assert arguments.headers == {"in": "Region"}
    assert arguments.schema["properties"]["in"]["x-mcp-header"] == "Region"


def test_a_default_in_a_field_makes_the_argument_optional() -> None:
    arguments = arguments_of(taking(Annotated[int, Field(default=3)]))
    assert arguments.required == ()
    assert arguments.schema["properties"] == {"x": {"type": "integer", "default": 3}}
    assert passed(arguments, b"{}") == 3
    both = arguments_of(taking(Annotated[int, Field(default=3)], 5))
    assert passed(both, b"{}") == 5


def test_a_default_factory_is_called_for_each_call() -> None:
    made: list[list[int]] = []

    def make() -> list[int]:
        made.append([])
        return made[-1]

    arguments = arguments_of(taking(Annotated[list[int], Field(default_factory=make)]))
    assert arguments.required == ()
    assert arguments.schema["properties"] == {"x": {"type": "array", "items": {"type": "integer"}}}
    assert passed(arguments, b"{}") is made[0]
    assert passed(arguments, b"{}") is made[1]
    assert passed(arguments, b'{"x":[1]}') == [1]


def test_a_field_in_the_place_of_the_default_is_read_like_one_beside_the_type() -> None:
    def find(
        limit: int = Field(default=3, ge=1, description="how many"),
        city: str = Field(description="where"),
        name: str = Field(...),
    ) -> str:
        return f"{limit}{city}{name}"

    arguments = arguments_of(find)
    assert arguments.required == ("city", "name")
    assert arguments.schema["properties"]["limit"] == {
        "type": "integer",
        "minimum": 1,
        "description": "how many",
        "default": 3,
    }
    assert passed(arguments, b'{"city":"o","name":"n"}') == "3on"
    assert refusal(arguments, b'{"limit":0,"city":"","name":""}').startswith('argument "limit"')


LISTED: list[tuple[Any, dict[str, Any]]] = [
    (Annotated[str, Field(json_schema_extra={"enum": ["a"]})], {"type": "string", "enum": ["a"]}),
    (Annotated[int, Field(deprecated=True)], {"type": "integer", "deprecated": True}),
    (Annotated[int, Field(deprecated="use y")], {"type": "integer", "deprecated": True}),
    (
        Annotated[int, Field(deprecated=True, json_schema_extra={"x-a": 1})],
        {"type": "integer", "deprecated": True, "x-a": 1},
    ),
    (
        Annotated[str, Field(title="T", description="D", examples=["e"])],
        {"type": "string", "title": "T", "description": "D", "examples": ["e"]},
    ),
    (
        Annotated[int, Field(gt=0, multiple_of=5)],
        {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 5},
    ),
    (
        Annotated[str, Field(pattern="^a", min_length=1)],
        {"type": "string", "pattern": "^a", "minLength": 1},
    ),
    (Annotated[float, Field(allow_inf_nan=False)], {"type": "number"}),
    (Annotated[int, Field(strict=True, validate_default=True)], {"type": "integer"}),
    (Annotated[int, pydantic.Strict()], {"type": "integer"}),
    (
        Annotated[int, annotated_types.Interval(ge=1, lt=9)],
        {"type": "integer", "minimum": 1, "exclusiveMaximum": 9},
    ),
    (
        Annotated[list[int], annotated_types.Len(1, 2)],
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
    ),
    (
        Annotated[str, pydantic.StringConstraints(max_length=3)],
        {"type": "string", "maxLength": 3},
    ),
    (Annotated[str, "one", Field(description="two")], {"type": "string", "description": "two"}),
    (
        list[Annotated[int, Field(ge=1)]],
        {"type": "array", "items": {"type": "integer", "minimum": 1}},
    ),
]


@pytest.mark.parametrize(("annotation", "schema"), LISTED, ids=[str(row[1])[:60] for row in LISTED])
def test_constraints_of_a_field_are_listed_in_the_schema(
    annotation: Any, schema: dict[str, Any]
) -> None:
    assert listed(annotation) == schema


REFUSED: list[tuple[Any, str]] = [
    (Annotated[int, Field(exclude=True)], "Field(exclude=...) has no meaning for an argument"),
    (Annotated[int, Field(frozen=True)], "Field(frozen=...) has no meaning"),
    (Annotated[int, Field(repr=False)], "Field(repr=...) has no meaning"),
    (Annotated[int, Field(serialization_alias="s")], "Field(serialization_alias=...) has no"),
    (
        Annotated[int, Field(validation_alias=pydantic.AliasChoices("a", "b"))],
        "an alias of a parameter is one text",
    ),
    (Annotated[int, Field(json_schema_extra=lambda schema: None)], "json_schema_extra is a dict"),
    (
        Annotated[int, Field(default_factory=lambda data: data)],
        "a default_factory is called without arguments",
    ),
    (list[Annotated[int, Field(alias="a")]], "is for the parameter as a whole"),
    (Annotated[int, Field(default=1)] | None, "default is for the parameter as a whole"),
    (Annotated[int, Field(discriminator="kind")], "a discriminator is for a union of classes"),
    (
        Annotated[str, Meta(min_length=1), pydantic.AfterValidator(str.upper)],
        "a constraint in Meta cannot stand beside one that pydantic applies",
    ),
]


@pytest.mark.parametrize(("annotation", "text"), REFUSED, ids=[row[1][:50] for row in REFUSED])
def test_unsupported_field_options_are_refused(annotation: Any, text: str) -> None:
    with pytest.raises(TypeError) as refused:
        arguments_of(taking(annotation))
    assert str(refused.value).startswith('handler(): parameter "x"')
    assert text in str(refused.value)


def test_an_alias_in_what_a_tool_returns_is_refused() -> None:
    def tool() -> Annotated[int, Field(alias="a")]:
        return 1

    with pytest.raises(TypeError, match="for the parameter as a whole"):
        output_of(tool)


def doubled(value: int) -> int:
    return value * 2


def never(value: Any) -> Any:
    raise ValueError(f"canary {value}")


APPLIED: list[tuple[Any, bytes, Any, bytes, str]] = [
    (
        Annotated[int, pydantic.AfterValidator(doubled)],
        b"2",
        4,
        b'"2"',
        'argument "x": input should be a valid integer',
    ),
    (
        Annotated[str, pydantic.BeforeValidator(lambda value: value + "!")],
        b'"a"',
        "a!",
        b"1",
        'argument "x": ',
    ),
    (
        Annotated[str, pydantic.StringConstraints(strip_whitespace=True, max_length=2)],
        b'" ab "',
        "ab",
        b'"abc"',
        'argument "x": string should have at most 2 characters',
    ),
    (
        Annotated[decimal.Decimal, Field(ge=1)],
        b'"1.5"',
        decimal.Decimal("1.5"),
        b'"0.5"',
        'argument "x": input should be greater than or equal to 1',
    ),
    (
        Annotated[datetime.date, Field(gt=datetime.date(2026, 1, 1))],
        b'"2026-01-02"',
        datetime.date(2026, 1, 2),
        b'"2026-01-01"',
        'argument "x": input should be greater than 2026-01-01',
    ),
    (
        Annotated[str, annotated_types.Predicate(str.islower)],
        b'"a"',
        "a",
        b'"A"',
        'argument "x": does not fit (predicate failed)',
    ),
    (
        Annotated[decimal.Decimal, Field(max_digits=3)],
        b'"1.25"',
        decimal.Decimal("1.25"),
        b'"1.255"',
        'argument "x": does not fit (decimal max digits)',
    ),
    (
        list[Annotated[int, pydantic.AfterValidator(doubled)]],
        b"[1,2]",
        [2, 4],
        b'[1,"a"]',
        'argument "x[1]": input should be a valid integer',
    ),
    (
        Annotated[int, Field(strict=False)],
        b'"5"',
        5,
        b'"a"',
        'argument "x": does not fit (int parsing)',
    ),
]


@pytest.mark.parametrize(
    ("annotation", "good", "value", "bad", "text"), APPLIED, ids=[row[4][:60] for row in APPLIED]
)
def test_validators_of_pydantic_are_applied_by_pydantic(
    annotation: Any, good: bytes, value: Any, bad: bytes, text: str
) -> None:
    arguments = arguments_of(taking(annotation))
    assert passed(arguments, b'{"x":' + good + b"}") == value
    assert refusal(arguments, b'{"x":' + bad + b"}").startswith(text)


def test_the_text_of_a_validator_is_not_shown() -> None:
    arguments = arguments_of(taking(Annotated[str, pydantic.AfterValidator(never)]))
    assert refusal(arguments, b'{"x":"secret"}') == 'argument "x": refused by the model'


def test_a_description_beside_a_validator_is_listed() -> None:
    both = Annotated[int, "how many", pydantic.AfterValidator(doubled)]
    assert listed(both) == {"type": "integer", "description": "how many"}


@dataclasses.dataclass
class Order:
    count: Annotated[int, Field(ge=1)]
    note: Literal["a", "b"] = "a"


@pydantic.dataclasses.dataclass
class Checked:
    count: int = Field(ge=1)


class Typed(TypedDict):
    count: Annotated[int, annotated_types.Ge(1)]


class Plain(Struct):
    count: Annotated[int, Field(ge=1)]


@pytest.mark.parametrize("type_", [Order, list[Order], Checked, Order | None])
def test_constraints_on_the_members_of_a_class_hold(type_: Any) -> None:
    arguments = arguments_of(taking(type_))
    around = (b'{"x":[', b"]}") if type_ == list[Order] else (b'{"x":', b"}")
    value = passed(arguments, around[0] + b'{"count":1}' + around[1])
    (one,) = value if isinstance(value, list) else (value,)
    assert one.count == 1
    assert isinstance(one, Checked if type_ is Checked else Order)
    told = refusal(arguments, around[0] + b'{"count":0}' + around[1])
    assert '"count": input should be greater than or equal to 1' in told
    assert "minimum" in str(arguments.schema)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic reads them there")
@pytest.mark.parametrize("type_", [Typed])
def test_constraints_on_members_that_pydantic_cannot_read_are_refused(type_: Any) -> None:
    with pytest.raises(TypeError, match=r"only pydantic can read the members of Typed"):
        arguments_of(taking(type_))


def test_constraints_of_pydantic_on_the_members_of_a_struct_are_refused() -> None:
    with pytest.raises(TypeError, match=r"only pydantic can read the members of Plain"):
        arguments_of(taking(Plain))


def test_annotation_that_needs_pydantic_is_refused_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    annotation = Annotated[str, annotated_types.Predicate(str.isalpha)]
    with pytest.raises(TypeError, match=r"Predicate is applied by pydantic, which is not inst"):
        arguments_of(taking(annotation))
