"""From a signature to a call: every type, every kind of callable, every refusal."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import functools
import inspect
import re
import sys
import types
import typing
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import annotated_types
import msgspec
import pydantic
import pytest
from msgspec import Meta, Struct

from tests.rigs.handler_arguments import passed, taking
from tests.rigs.types import Circle, Options, Pair, Place, Square, Unit, Wind
from trunkline import Client, Server
from trunkline.server.context import Context
from trunkline.server.handlers.arguments import (
    Arguments,
    ParamHeader,
    arguments_of,
    explain,
    is_context,
    raw_arguments,
)

CANARY = "canary-7f3a"


class Model(pydantic.BaseModel):
    count: int = pydantic.Field(ge=1)
    when: datetime.date | None = None


class Strict(pydantic.BaseModel, strict=True):
    when: datetime.date


def refusal(arguments: Arguments, raw: bytes) -> str:
    with pytest.raises((msgspec.DecodeError, RecursionError)) as refused:
        arguments.decode(raw)
    return explain(refused.value, raw, arguments)


# As it was written before 3.10.
OPTIONAL = vars(typing)["Optional"][int]
INTEGER = 'argument "x": expected an integer, got a string'

# type, JSON that is read, the value it is read as, JSON that is refused, and the sentence.
READ: list[tuple[Any, bytes, Any, bytes, str]] = [
    (str, b'"a"', "a", b"1", 'argument "x": expected a string, got an integer'),
    (int, b"3", 3, b'"canary-7f3a"', INTEGER),
    (int, b"3", 3, b"3.5", 'argument "x": expected an integer, got a number'),
    (float, b"3", 3.0, b"true", 'argument "x": expected a number, got a boolean'),
    (bool, b"true", True, b"1", 'argument "x": expected a boolean, got an integer'),
    (None, b"null", None, b"1", 'argument "x": expected null, got an integer'),
    (str | None, b"null", None, b"[]", 'argument "x": expected a string or null, got an array'),
    (OPTIONAL, b"3", 3, b"{}", 'argument "x": expected an integer or null, got an object'),
    (int | str, b'"a"', "a", b"null", 'argument "x": expected an integer or a string, got null'),
    (
        list[int],
        b"[1,2]",
        [1, 2],
        b'[1,"canary-7f3a"]',
        'argument "x[1]": expected an integer, got a string',
    ),
    (
        dict[str, int],
        b'{"a":1}',
        {"a": 1},
        b'{"canary-7f3a":""}',
        'argument "x[...]": expected an integer, got a string',
    ),
    (
        dict[int, int],
        b'{"1":1}',
        {1: 1},
        b'{"canary-7f3a":1}',
        'argument "x": in the name of a member: expected an integer, got a string',
    ),
    (tuple[int, str], b'[1,"a"]', (1, "a"), b"[1]", 'argument "x": expected an array of length 2'),
    (tuple[int, ...], b"[1,2]", (1, 2), b"3", 'argument "x": expected an array, got an integer'),
    (
        set[int],
        b"[1,1]",
        {1},
        b'["canary-7f3a"]',
        'argument "x[0]": expected an integer, got a string',
    ),
    (
        frozenset[str],
        b'["a"]',
        frozenset("a"),
        b"null",
        'argument "x": expected an array, got null',
    ),
    (
        Literal["c", "f"],
        b'"c"',
        "c",
        b'"canary-7f3a"',
        'argument "x": not one of the allowed values (c, f)',
    ),
    (
        Unit,
        b'"k"',
        Unit.KELVIN,
        b'"canary-7f3a"',
        'argument "x": not one of the allowed values (k, c)',
    ),
    (
        datetime.datetime,
        b'"2026-01-02T03:04:05"',
        datetime.datetime(2026, 1, 2, 3, 4, 5),
        b'"canary-7f3a"',
        'argument "x": expected a date and time like 2026-01-31T09:30:00Z',
    ),
    (
        datetime.date,
        b'"2026-01-02"',
        datetime.date(2026, 1, 2),
        b'"canary-7f3a"',
        'argument "x": expected a date like 2026-01-31',
    ),
    (
        datetime.time,
        b'"03:04:05"',
        datetime.time(3, 4, 5),
        b'"canary-7f3a"',
        'argument "x": expected a time like 09:30:00Z',
    ),
    (
        datetime.timedelta,
        b'"PT1M"',
        datetime.timedelta(minutes=1),
        b'"canary-7f3a"',
        'argument "x": expected a duration like PT1H30M',
    ),
    (
        uuid.UUID,
        b'"00000000-0000-0000-0000-000000000001"',
        uuid.UUID(int=1),
        b'"canary-7f3a"',
        'argument "x": expected a UUID',
    ),
    (
        decimal.Decimal,
        b'"1.50"',
        decimal.Decimal("1.50"),
        b'"canary-7f3a"',
        'argument "x": expected a decimal number',
    ),
    (bytes, b'"YWJj"', b"abc", b'"!canary-7f3a"', 'argument "x": expected a Base64 string'),
    (Annotated[int, Meta(ge=1, le=9)], b"9", 9, b"10", 'argument "x": expected an integer <= 9'),
    (
        Annotated[str, Meta(min_length=2)],
        b'"ab"',
        "ab",
        b'"a"',
        'argument "x": expected a string of length >= 2',
    ),
    (
        Annotated[str, Meta(pattern="^a")],
        b'"ab"',
        "ab",
        b'"canary-7f3a"',
        "argument \"x\": expected a string matching regex '^a'",
    ),
    (
        Annotated[list[int], Meta(max_length=1)],
        b"[1]",
        [1],
        b"[1,2]",
        'argument "x": expected an array of length <= 1',
    ),
    (
        Annotated[int, annotated_types.Ge(1)],
        b"1",
        1,
        b"0",
        'argument "x": expected an integer >= 1',
    ),
    (
        Annotated[int, pydantic.Field(ge=1, le=9, description="d")],
        b"1",
        1,
        b"10",
        'argument "x": expected an integer <= 9',
    ),
    (
        list[Annotated[str, pydantic.Field(pattern="^a")]],
        b'["a"]',
        ["a"],
        b'["canary-7f3a"]',
        "argument \"x[0]\": expected a string matching regex '^a'",
    ),
    (
        Annotated[int, "a text"] | None,
        b"1",
        1,
        b'""',
        'argument "x": expected an integer or null, got a string',
    ),
    (Place, b'{"lat":1}', Place(1.0), b'{"name":"canary-7f3a"}', 'argument "x.lat" is required'),
    (
        Wind,
        b'{"speed":1}',
        Wind(1),
        b'{"speed":"canary-7f3a"}',
        'argument "x.speed": expected an integer, got a string',
    ),
    (Options, b'{"a":1}', {"a": 1}, b"{}", 'argument "x.a" is required'),
    (Pair, b"[1]", Pair(1), b"[]", 'argument "x": expected an array of length 1 to 2'),
    (
        Circle | Square,
        b'{"type":"square","side":1}',
        Square(1.0),
        b'{"type":"canary-7f3a"}',
        'argument "x.type": not one of the allowed values',
    ),
    (
        list[Circle],
        b'[{"type":"circle","radius":2}]',
        [Circle(2.0)],
        b'[{"type":"circle"}]',
        'argument "x[0].radius" is required',
    ),
    (
        Model,
        b'{"count":1,"when":"2026-01-02"}',
        Model(count=1, when=datetime.date(2026, 1, 2)),
        b'{"count":0}',
        'argument "x": "count": input should be greater than or equal to 1',
    ),
    (
        Model,
        b'{"count":1}',
        Model(count=1),
        b'{"count":"canary-7f3a"}',
        'argument "x": "count": does not fit (int parsing)',
    ),
    (
        Model | None,
        b"null",
        None,
        b'{"when":"canary-7f3a"}',
        'argument "x": "count": field required; "when": does not fit (date from datetime parsing)',
    ),
    (
        list[Model],
        b'[{"count":2}]',
        [Model(count=2)],
        b"[{}]",
        'argument "x[0]": "count": field required',
    ),
    (
        Strict,
        b'{"when":"2026-01-02"}',
        Strict(when=datetime.date(2026, 1, 2)),
        b'{"when":1}',
        'argument "x": "when": input should be a valid date',
    ),
]


@pytest.mark.parametrize(
    ("type_", "good", "value", "bad", "sentence"), READ, ids=[str(row[0])[:50] for row in READ]
)
def test_argument_of_each_type_is_decoded_or_refused_with_a_reason(
    type_: Any, good: bytes, value: Any, bad: bytes, sentence: str
) -> None:
    arguments = arguments_of(taking(type_))
    assert passed(arguments, b'{"x":' + good + b"}") == value
    told = refusal(arguments, b'{"x":' + bad + b"}")
    if "date from datetime" in sentence:
        told = re.sub(r"\(date.*?\)", "", told)
        sentence = re.sub(r"\(date.*?\)", "", sentence)
    assert told == sentence
    assert CANARY not in told


def test_a_parameter_without_annotation_takes_anything() -> None:
    arguments = arguments_of(lambda x, y=1: (x, y))
    assert passed(arguments, b'{"x":[1,{"a":null}]}') == ([1, {"a": None}], 1)
    assert arguments.schema["properties"] == {"x": {}, "y": {"default": 1}}


# -- names and defaults ----------------------------------------------------------------------


def test_an_argument_is_called_what_its_parameter_is_called() -> None:
    def handler(
        from_: int, self: int, copy: int, _x: int, name: int, json: int, __class_x: int, mro: int
    ) -> tuple[int, ...]:
        return (from_, self, copy, _x, name, json, __class_x, mro)

    arguments = arguments_of(handler)
    assert arguments.names == ("from_", "self", "copy", "_x", "name", "json", "__class_x", "mro")
    raw = msgspec.json.encode({name: place for place, name in enumerate(arguments.names)})
    assert passed(arguments, raw) == tuple(range(8))
    assert list(arguments.schema["properties"]) == list(arguments.names)
    assert refusal(arguments, b"{}") == (
        'arguments "from_", "self", "copy", "_x", "name", "json", "__class_x", "mro" are required'
    )


def test_a_required_argument_may_follow_one_with_a_default() -> None:
    def handler(a: int = 1, *, b: int, c: int = 3) -> tuple[int, ...]:
        return a, b, c

    arguments = arguments_of(handler)
    assert arguments.required == ("b",)
    assert passed(arguments, b'{"b":2}') == (1, 2, 3)
    assert passed(arguments, b'{"b":2,"a":5,"c":6}') == (5, 2, 6)


def test_a_default_that_can_change_is_copied_for_each_call() -> None:
    def handler(
        items: list[int] = [1],  # noqa: B006  # what this test is about
        table: dict[str, list[int]] = {"a": []},  # noqa: B006
        place: Place = Place(1.0),  # noqa: B008
    ) -> tuple[Any, ...]:
        return items, table, place

    arguments = arguments_of(handler)
    first, second = passed(arguments, b"{}"), passed(arguments, b"{}")
    assert first == second == ([1], {"a": []}, Place(1.0))
    first[0].append(2)
    first[1]["a"].append(3)
    first[2].name = "there"
    assert second == ([1], {"a": []}, Place(1.0)) == passed(arguments, b"{}")


def test_a_default_that_is_an_object_of_the_authors_is_passed_as_it_is() -> None:
    marker = object()

    def handler(x: int | None = marker, y: str | None = None) -> Any:  # type: ignore[assignment]  # as authors do
        return x, y

    arguments = arguments_of(handler)
    assert passed(arguments, b"{}") == (marker, None)
    assert "default" not in str(arguments.schema)


# -- kinds of callables ----------------------------------------------------------------------


class Tools:
    """Tools of one object."""

    factor = 2

    def times(self, x: int) -> int:
        """Multiply."""
        return self.factor * x

    async def later(self, x: int) -> int:
        return self.factor * x

    @classmethod
    def made(cls, x: int) -> int:
        return cls.factor * x

    @staticmethod
    def alone(x: int) -> int:
        return 2 * x

    def __call__(self, x: int) -> int:
        return self.factor * x


class Later:
    async def __call__(self, x: int) -> int:
        return 2 * x


def double(x: int) -> int:
    """Multiply."""
    return 2 * x


async def double_later(x: int) -> int:
    return 2 * x


def multiply(by: int, x: int, key: str = "") -> int:
    return by * x


async def multiply_later(x: int, *, by: int) -> int:
    return by * x


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def awaited(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


CALLABLES: list[tuple[str, Callable[..., Any], bool]] = [
    ("function", double, False),
    ("async function", double_later, True),
    ("method", Tools().times, False),
    ("async method", Tools().later, True),
    ("classmethod", Tools.made, False),
    ("staticmethod", Tools.alone, False),
    ("object", Tools(), False),
    ("async object", Later(), True),
    ("partial", functools.partial(multiply, 2), False),
    ("partial by keyword", functools.partial(multiply, by=2, key="s"), False),
    ("async partial", functools.partial(multiply_later, by=2), True),
    ("partial of partial", functools.partial(functools.partial(multiply, 2), key="s"), False),
    ("partial of async object", functools.partial(Later()), True),
    ("wrapped", logged(double), False),
    ("wrapped async", logged(double_later), True),
    ("made async", awaited(double), True),
    ("cached", functools.lru_cache(double), False),
    ("wrapped twice", logged(logged(Tools().later)), True),
    ("lambda", lambda x: 2 * x, False),
]


@pytest.mark.parametrize(
    ("function", "is_async"), [row[1:] for row in CALLABLES], ids=[row[0] for row in CALLABLES]
)
def test_every_kind_of_callable_is_called(function: Callable[..., Any], is_async: bool) -> None:
    arguments = arguments_of(function)
    assert arguments.names[0] == "x"
    assert arguments.is_async is is_async
    result = passed(arguments, b'{"x":3}')
    assert inspect.isawaitable(result) is is_async
    if is_async:

        async def wait() -> Any:
            return await asyncio.wait_for(result, 5)

        result = asyncio.run(wait())
    assert result == 6


def test_keyword_bound_by_a_partial_is_not_an_argument() -> None:
    arguments = arguments_of(functools.partial(multiply, by=2, key=CANARY))
    assert arguments.names == ("x",)
    assert refusal(arguments, b'{"x":1,"key":"mine"}') == (
        'unknown argument "key": the arguments are x'
    )
    assert CANARY not in f"{arguments!r} {arguments.schema}"


def test_positional_only_parameters_are_named_on_the_wire() -> None:
    def handler(a: int, b: int = 2, /, c: int = 3, *, d: int = 4) -> tuple[int, ...]:
        return a, b, c, d

    arguments = arguments_of(handler)
    assert passed(arguments, b'{"d":8,"a":5}') == (5, 2, 3, 8)


def test_a_handler_without_arguments_is_called_without_any() -> None:
    arguments = arguments_of(lambda: "x")
    assert passed(arguments, b"{}") == "x"
    assert arguments.schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert refusal(arguments, b'{"x":1}') == 'unknown argument "x": there are no arguments'


# -- the context -----------------------------------------------------------------------------


def first(context: Context, x: int, y: int) -> Any:
    return context, x, y


def middle(x: int, ctx: Context | None, y: int) -> Any:
    return ctx, x, y


def last(x: int, y: int, whatever: Annotated[Context, "the request"]) -> Any:
    return whatever, x, y


def by_name(x: int, *, y: int, ctx: Context | None = None) -> Any:
    return ctx, x, y


def by_name_in_front(x: int, ctx: Context, *, y: int) -> Any:
    return ctx, x, y


@pytest.mark.parametrize("function", [first, middle, last, by_name, by_name_in_front])
def test_the_context_is_put_where_its_parameter_is(function: Callable[..., Any]) -> None:
    arguments = arguments_of(function)
    marker = object()
    assert arguments.wants_context
    assert arguments.names == ("x", "y")
    assert arguments.call(arguments.decode(b'{"x":1,"y":2}'), marker) == (marker, 1, 2)


def test_a_handler_that_wants_no_context_gets_none() -> None:
    assert not arguments_of(double).wants_context


# -- annotations as texts --------------------------------------------------------------------


def test_a_type_of_the_enclosing_function_is_found() -> None:
    class Local(Struct):
        x: int

    def handler(a: Local, b: list[Local] | None = None) -> Any:
        return a

    assert passed(arguments_of(handler), b'{"a":{"x":1}}') == Local(1)


def test_a_type_that_only_the_closure_knows_is_found() -> None:
    def make() -> Callable[..., Any]:
        class Local(Struct):
            x: int

        def handler(a: Local) -> Any:
            return a, Local

        return handler

    value, local = passed(arguments_of(make()), b'{"a":{"x":1}}')
    assert value == local(1)


def test_unresolvable_parameter_annotation_is_named_in_the_error() -> None:
    def handler(a: int, b: list[Nowhere]) -> Any:  # type: ignore[name-defined]  # noqa: F821
        return a

    with pytest.raises(TypeError) as refused:
        arguments_of(handler)
    assert str(refused.value) == (
        'handler(): the annotation of parameter "b" names "Nowhere", which is not known there: '
        "define or import it at the top of the module"
    )


# -- refusals --------------------------------------------------------------------------------


class Opaque:
    pass


def takes_rest(a: int, *rest: int) -> None: ...
def takes_more(a: int, **more: int) -> None: ...
def takes_opaque(a: int, thing: Opaque) -> None: ...
def takes_two(a: Context, b: Context) -> None: ...
async def streams(a: int) -> Any:
    yield a


def generates(a: int) -> Any:
    yield a


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (takes_rest, "takes_rest() takes *rest: a caller names each argument"),
        (takes_more, "takes_more() takes **more: a caller names each argument"),
        (takes_opaque, 'takes_opaque(): parameter "thing" cannot be an argument: values of Opaque'),
        (takes_two, "takes_two() has two parameters of type Context"),
        (streams, "streams() is a generator"),
        (generates, "generates() is a generator"),
        (Place, "Place() is a class"),
        (vars(Tools)["made"], "a classmethod has no class yet"),
        (7, "int cannot be called"),
        (max, "the parameters of max() are not known"),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)[:30]),
)
def test_callable_unsuitable_as_a_handler_is_refused_with_a_reason(
    function: Any, sentence: str
) -> None:
    with pytest.raises(TypeError) as refused:
        arguments_of(function)
    assert str(refused.value).startswith(sentence)
    assert "msgspec" not in str(refused.value)


# -- headers ---------------------------------------------------------------------------------


def test_a_header_is_listed_and_known() -> None:
    def handler(
        region: Annotated[str, ParamHeader("Region"), "Where."],
        level: Annotated[Literal[1, 2], ParamHeader("Level")] = 1,
        unit: Annotated[Unit, ParamHeader("Unit")] = Unit.KELVIN,
        dry: Annotated[bool, ParamHeader("Dry-Run")] = False,
    ) -> str:
        return region

    arguments = arguments_of(handler)
    assert arguments.headers == {
        "region": "Region",
        "level": "Level",
        "unit": "Unit",
        "dry": "Dry-Run",
    }
    assert arguments.schema["properties"] == {
        "region": {"type": "string", "description": "Where.", "x-mcp-header": "Region"},
        "level": {"type": "integer", "enum": [1, 2], "default": 1, "x-mcp-header": "Level"},
        "unit": {"type": "string", "enum": ["k", "c"], "default": "k", "x-mcp-header": "Unit"},
        "dry": {"type": "boolean", "default": False, "x-mcp-header": "Dry-Run"},
    }


@pytest.mark.parametrize("type_", [float, list[str], str | None, Place, dict, None, Any])
def test_only_texts_integers_and_booleans_have_headers(type_: Any) -> None:
    with pytest.raises(TypeError, match=r'parameter "x" cannot be repeated in a header'):
        arguments_of(taking(Annotated[type_, ParamHeader("X")]))


@pytest.mark.parametrize("name", ["", "a b", "a:b", "ä", "a\n", "a/b"])
def test_a_header_has_the_name_of_a_header(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a header"):
        ParamHeader(name)


def test_two_headers_differ_in_more_than_case() -> None:
    def handler(
        a: Annotated[str, ParamHeader("Region")], b: Annotated[str, ParamHeader("REGION")]
    ) -> None: ...

    with pytest.raises(TypeError, match='has the header "REGION" of another parameter'):
        arguments_of(handler)


# -- schema, description, sentences ----------------------------------------------------------


def test_description_in_annotated_overrides_the_docstring() -> None:
    def handler(
        a: Annotated[int, "Beside."], b: int, c: Annotated[int, Meta(description="M.")]
    ) -> None:
        """Do it.

        Args:
            a: In the docstring.
            b: In the docstring.
            c: In the docstring.
        """

    arguments = arguments_of(handler)
    texts = {name: row["description"] for name, row in arguments.schema["properties"].items()}
    assert texts == {"a": "Beside.", "b": "In the docstring.", "c": "M."}
    assert arguments.description == "Do it."


def test_the_description_is_found_under_the_wrapping() -> None:
    for function in (double, logged(double), Tools().times, functools.partial(double)):
        assert arguments_of(function).description == "Multiply."
    assert arguments_of(Tools()).description == "Tools of one object."
    assert arguments_of(lambda: 1).description == ""


def test_all_missing_and_unknown_arguments_are_named_at_once() -> None:
    def handler(city: str, days: int, unit: str = "c") -> None: ...

    arguments = arguments_of(handler)
    assert refusal(arguments, b'{"cty":"a","dayz":1}') == (
        'arguments "city", "days" are required; unknown arguments "cty", "dayz": '
        "the arguments are city, days, unit"
    )
    assert refusal(arguments, b'{"city":"a","days":1,"x":1}') == (
        'unknown argument "x": the arguments are city, days, unit'
    )


def test_missing_and_unknown_arguments_are_named_despite_unreadable_values() -> None:
    def handler(a: int, b: int) -> None: ...

    # The value is a number that no float can hold.
    assert refusal(arguments_of(handler), b'{"x":1e999}') == (
        'arguments "a", "b" are required; unknown argument "x": the arguments are a, b'
    )


def no_parameter() -> None: ...
def two_parameters(values: dict[str, Any], more: int) -> None: ...
def two_contexts(one: Context, values: dict[str, Any], two: Context) -> None: ...
def only_a_context(context: Context) -> None: ...


@pytest.mark.parametrize("handler", [no_parameter, two_parameters, two_contexts, only_a_context])
def test_a_handler_with_a_schema_of_its_own_takes_the_arguments_as_one_dict(handler: Any) -> None:
    with pytest.raises(TypeError, match=f"{handler.__name__}.* it takes one parameter"):
        raw_arguments(handler)


def test_a_sentence_can_be_made_from_the_error_alone() -> None:
    arguments = arguments_of(double)
    for raw, sentence in (
        (b"{}", 'argument "x" is required'),
        (b'{"y":1}', 'unknown argument "y"'),
        (b'{"x":""}', INTEGER),
        (b"[]", "the arguments cannot be read: expected an object, got an array"),
        (b"{", "the arguments cannot be read: they are not valid JSON"),
        (b'{"x":"\xff"}', INTEGER),
    ):
        with pytest.raises(msgspec.DecodeError) as refused:
            arguments.decode(raw)
        assert explain(refused.value) == sentence


def test_too_deeply_nested_arguments_are_refused_with_a_reason() -> None:
    assert refusal(arguments_of(lambda x: x), b'{"x":' + b"[" * 100_000) == (
        "the arguments cannot be read: they are nested too deeply"
    )


def test_an_unknown_name_is_cut_and_a_secret_in_it_hidden() -> None:
    arguments = arguments_of(double)
    token = "sk-live-" + "a" * 30
    told = refusal(arguments, msgspec.json.encode({"x": 1, token: 1, "n" * 5000: 1}))
    assert token not in told
    assert len(told) < 300


def test_arguments_and_values_print_without_secrets() -> None:
    def handler(api_key: str, x: int = 1) -> None: ...

    arguments = arguments_of(handler)
    values = arguments.decode(b'{"api_key":"canary-7f3a"}')
    assert CANARY not in f"{arguments!r} {values!r}"
    assert repr(arguments) == "<Arguments of handler(): api_key, x>"
    assert repr(values) == "Values({'api_key': '[redacted]', 'x': 1})"
    assert CANARY not in str(values.__rich_repr__())


def test_raw_json_is_read_too() -> None:
    assert passed(arguments_of(double), msgspec.Raw(b'{"x":3}')) == 6  # type: ignore[arg-type]  # both are


# -- what is made when -----------------------------------------------------------------------


def test_nothing_is_made_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from trunkline.server.handlers import arguments as module

    made: list[str] = []
    plain = {
        name: getattr(module, name) for name in ("Decoder", "_struct_of", "object_schema", "read")
    }
    for name, function in plain.items():

        def counted(*args: Any, _name: str = name, _made: Any = function, **kwargs: Any) -> Any:
            made.append(_name)
            return _made(*args, **kwargs)

        monkeypatch.setattr(module, name, counted)
    arguments = arguments_of(double)
    assert made == []
    early = arguments.decode
    early(b'{"x":1}')
    assert made == ["_struct_of", "Decoder"]
    arguments.decode(b'{"x":1}')
    assert arguments.decode is not early
    assert isinstance(arguments.decode, types.BuiltinMethodType)
    assert arguments.schema is arguments.schema
    assert arguments.description == "Multiply."
    assert made == ["_struct_of", "Decoder", "read", "object_schema"]


def test_a_call_goes_through_one_frame_of_ours() -> None:
    arguments = arguments_of(lambda x: x)
    values = arguments.decode(b'{"x":1}')
    seen: list[str] = []

    def watch(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.append(frame.f_code.co_filename)

    sys.setprofile(watch)
    try:
        arguments.call(values, None)
    finally:
        sys.setprofile(None)
    assert [name for name in seen if name != __file__] == [inspect.getsourcefile(Arguments)]


def test_pydantic_is_not_imported_for_handlers_without_models() -> None:
    import subprocess

    code = (
        "import sys; from trunkline.server.handlers.arguments import arguments_of as a;"
        "from trunkline.server.handlers.output import output_of as o\n"
        "def f(x: int, y: list[str] = []) -> dict[str, int]: return {}\n"
        "g = a(f); g.schema; g.decode(b'{\"x\":1}'); r = o(f); r.schema; r.render({'a': 1})\n"
        "names = ('pydantic', 'jsonschema_rs', 'attrs', 'annotated_types')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "[]"


class State(Struct):
    name: str = "main"


def test_a_context_of_a_state_is_a_context() -> None:
    assert is_context(Context)
    assert is_context(Context[State])
    assert is_context(Context[State] | None)
    assert is_context(Annotated[Context[State], "x"])
    assert not is_context(State)
    assert not is_context(list[State])


def test_handlers_of_every_kind_get_a_context_of_a_state() -> None:
    @asynccontextmanager
    async def lifespan(app: Server) -> AsyncIterator[State]:
        yield State()

    app = Server("x", lifespan=lifespan)

    @app.tool
    async def tool(n: int, ctx: Context[State]) -> str:
        return ctx.state.name * n

    @app.resource("data://all")
    def resource(ctx: Context[State]) -> str:
        return ctx.state.name

    @app.prompt
    def prompt(ctx: Context[State] | None = None) -> str:
        assert ctx is not None
        return ctx.state.name

    async def script() -> None:
        async with Client(app) as client:
            (listed,) = await client.list_tools()
            assert list(listed.input_schema["properties"]) == ["n"]
            assert (await client.call_tool("tool", {"n": 2})).value == "mainmain"
            assert (await client.read_resource("data://all")).contents[0].text == "main"
            assert (await client.get_prompt("prompt")).messages[0].content.text == "main"

    asyncio.run(script())
