"""Arguments that are texts in place of numbers, booleans and JSON."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import Any, Literal

import pydantic
import pytest
from msgspec import Struct

from trunkline import Client, Server
from trunkline.engine import counters
from trunkline.mcp import coercion
from trunkline.mcp.coercion import coerced
from trunkline.spec.revisions import REVISIONS

CANARY = "canary-7f3a"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Place(Struct):
    name: str
    height: int = 0


@dataclass
class Point:
    x: int
    y: float = 0.0


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    count: int
    inner: Model | None = None


def served(annotation: Any, **options: Any) -> Server:
    app = Server("tests", **options)

    def tool(value: Any) -> str:
        return repr(value)

    tool.__annotations__ = {"value": annotation, "return": str}
    app.tool(tool)
    return app


def call(app: Server, arguments: dict[str, Any], revision: str | None = None) -> tuple[bool, str]:
    async def main() -> tuple[bool, str]:
        async with Client(app, revision=revision or "2026-07-28") as client:
            result = await client.call_tool("tool", arguments)
            return result.is_error, result.text

    return asyncio.run(main())


ACCEPTED: list[tuple[Any, Any, Any]] = [
    (int, "5", 5),
    (int, "-5", -5),
    (int, "0", 0),
    (int, "5.0", 5),
    (int, "9007199254740993", 9007199254740993),
    (int, "9223372036854775807", 9223372036854775807),
    (int | None, "5", 5),
    (int | None, "null", None),
    (float, "1.5", 1.5),
    (float, "1e3", 1000.0),
    (float, "5", 5.0),
    (float | bool, "true", True),
    (bool, "true", True),
    (bool, "True", True),
    (bool, "false", False),
    (bool, "False", False),
    (Level, "2", Level.HIGH),
    (Literal[1, 2], "2", 2),
    (list[int], "[1, 2]", [1, 2]),
    (list[int], ["1", "2"], [1, 2]),
    (list[int], '["1", "2"]', [1, 2]),
    (list[int], " [1]", [1]),
    (list[Any], "[1, null]", [1, None]),
    (tuple[int, bool], ["1", "true"], (1, True)),
    (set[int], "[1]", {1}),
    (dict[str, int], '{"a": 1}', {"a": 1}),
    (dict[str, int], {"a": "1"}, {"a": 1}),
    (Place, '{"name": "5", "height": "5"}', Place("5", 5)),
    (Place, {"name": "5", "height": "5"}, Place("5", 5)),
    (list[Place], ['{"name": "Galdhoeppigen", "height": 2469}'], [Place("Galdhoeppigen", 2469)]),
    (Point, '{"x": "1"}', Point(1)),
    (Model, '{"count": "1", "inner": {"count": "2"}}', Model(count=1, inner=Model(count=2))),
    (Model | None, {"count": "1"}, Model(count=1)),
    # Beside one that is coerced, digits beyond those of a double stay as they are.
    (dict[str, int], {"a": "1", "b": 9007199254740993}, {"a": 1, "b": 9007199254740993}),
]


@pytest.mark.parametrize(("annotation", "sent", "expected"), ACCEPTED)
def test_text_is_read_as_the_value_that_it_says(annotation: Any, sent: Any, expected: Any) -> None:
    app = served(annotation, coerce_arguments=True)
    assert call(app, {"value": sent}) == (False, repr(expected))
    assert app.stats().coerced_calls == 1
    strict = served(annotation)
    assert call(strict, {"value": sent})[0] is True
    assert strict.stats().coerced_calls == 0


REFUSED: list[tuple[Any, Any]] = [
    *((int, each) for each in ("", " 5 ", "5 ", "+5", "05", "0x10", "1_000", "5.5", "five", "nan")),
    *((int, each) for each in ("1e400", "9" * 5000, "true", "null", "[5]", "\u0665", "5\n", '"5"')),
    *((float, each) for each in ("", " 1.5", "1,5", "nan", "inf", "Infinity", ".5", "5.", "1e400")),
    *((bool, each) for each in ("", "yes", "1", "TRUE", "on", " true", 1, 0)),
    *((list[int], each) for each in ("", "1,2", "[1", "[1,]", "5", '{"a": 1}', "[NaN]", '"[1]"')),
    (list[int], '["[1]"]'),
    (list[list[int]], '["[1]"]'),  # JSON in JSON
    (Place, '{"height": 5}'),
    (Place, "name"),
    (Literal["a", 1], "1"),  # a text may be meant
    (str, 5),  # nothing becomes a text
    (str, True),
    (Decimal, "0x10"),
    (dict[str, int], '{"a": "\\ud800"}'),
]


@pytest.mark.parametrize(("annotation", "sent"), REFUSED)
def test_any_other_text_is_refused_as_without_coercion(annotation: Any, sent: Any) -> None:
    app = served(annotation, coerce_arguments=True)
    failed, text = call(app, {"value": sent})
    assert failed
    assert "Invalid arguments for tool 'tool'" in text
    assert app.stats().coerced_calls == 0


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [(str, "5"), (str | int, "5"), (Any, "[1]"), (list[str], ["5"]), (dict[str, Any], {"a": "5"})],
)
def test_text_stays_a_text_where_the_schema_has_texts(annotation: Any, sent: Any) -> None:
    app = served(annotation, coerce_arguments=True)
    assert call(app, {"value": sent}) == (False, repr(sent))
    assert app.stats().coerced_calls == 0


def test_arguments_that_fit_are_not_coerced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(coercion, "coerced")
    assert call(served(int, coerce_arguments=True), {"value": 5}) == (False, "5")


def test_option_of_a_tool_overrides_that_of_its_server() -> None:
    for of_server, of_tool, is_error in ((True, False, True), (False, True, False)):
        app = Server("tests", coerce_arguments=of_server)

        @app.tool(name="tool", coerce_arguments=of_tool)
        def own(value: int) -> int:
            return value

        assert call(app, {"value": "5"})[0] is is_error


def test_mounted_tool_follows_its_own_server() -> None:
    outer = Server("outer", coerce_arguments=True)
    outer.mount(served(int))
    assert call(outer, {"value": "5"})[0] is True
    outer = Server("outer")
    outer.mount(served(int, coerce_arguments=True))
    assert call(outer, {"value": "5"}) == (False, "5")
    assert outer.stats().coerced_calls == 1


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 1},
        "at": {"$ref": "#/definitions/at"},
        "either": {"oneOf": [{"type": "boolean"}, {"type": ["null", "number"]}]},
        "text": {"type": ["string", "integer"]},
        "free": {},
    },
    "additionalProperties": {"type": "array", "items": {"type": "boolean"}},
    "definitions": {
        "at": {"allOf": [{"type": "object", "properties": {"x": {"type": "integer"}}}]},
    },
}


def by_hand(**options: Any) -> tuple[Server, list[dict[str, Any]]]:
    app, seen = Server("tests"), []

    def handler(arguments: dict[str, Any]) -> str:
        seen.append(arguments)
        return "done"

    app.add_tool(handler, "tool", input_schema=SCHEMA, **options)
    return app, seen


def test_schema_written_by_hand_is_followed_too() -> None:
    app, seen = by_hand(coerce_arguments=True)
    sent = {
        "n": "5",
        "at": '{"x": "1", "y": "1"}',
        "either": "1.5",
        "text": "5",
        "free": "5",
        "flags": ["true"],
    }
    assert call(app, sent) == (False, "done")
    read = {**sent, "n": 5, "at": {"x": 1, "y": "1"}, "either": 1.5, "flags": [True]}
    assert seen == [read]
    problem = '"n" breaks "minimum": expected at least 1'
    assert call(app, {"n": "0"}) == (True, f"Invalid arguments for tool 'tool': {problem}")
    assert call(app, {"n": "1e400"})[0] is True
    assert call(by_hand()[0], sent)[0] is True


def test_listed_schema_is_the_same() -> None:
    async def listed(app: Server) -> list[Any]:
        async with Client(app) as client:
            return await client.list_tools()

    lenient, strict = served(int, coerce_arguments=True), served(int)
    assert asyncio.run(listed(lenient)) == asyncio.run(listed(strict))
    assert asyncio.run(listed(by_hand(coerce_arguments=True)[0]))[0].input_schema == SCHEMA


@pytest.mark.parametrize("revision", REVISIONS)
def test_coercion_works_in_every_revision(revision: str) -> None:
    app = served(list[int], coerce_arguments=True)
    assert call(app, {"value": "[1]"}, revision) == (False, "[1]")


def test_what_still_does_not_fit_is_named_after_coercion() -> None:
    app = Server("tests", coerce_arguments=True)

    @app.tool(name="tool")
    def pair(one: int, two: int) -> int:
        return one + two

    assert call(app, {"one": "5", "two": "five"})[1] == (
        "Invalid arguments for tool 'tool': argument \"two\": expected an integer, got a string"
    )


def test_large_argument_and_deep_or_many_places_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "integer"}},
            "more": {"type": "array", "items": {"type": "integer"}},
            "n": {"type": "integer"},
            "text": {"type": "string"},
            "deep": {"$ref": "#/$defs/deep"},
        },
        "$defs": {"deep": {"type": "array", "items": {"$ref": "#/$defs/deep"}}},
    }

    def read(**arguments: Any) -> Any:
        found = coerced(json.dumps(arguments).encode(), schema)
        return None if found is None else json.loads(found)

    assert read(rows="[" + "1," * 200_000 + "1]", n="5")["n"] == 5
    assert type(read(rows="[" + "1," * 200_000 + "1]", n="5")["rows"]) is str
    assert read(deep="[" * 100_000) is None
    # Numbers are no places, and texts that stay texts do not count.
    large = [1] * 60_000
    assert read(text="x" * 1_000_000, rows=large, n="5")["n"] == 5
    # The bound holds for all arguments of a call.
    some = ["1"] * 9_000
    assert read(rows=large, more=some)["more"] == [1] * 9_000
    assert read(rows=large, more=some + large) is None
    inner = "[" * 60 + "]" * 60
    assert read(deep=inner) == {"deep": json.loads(inner)}
    monkeypatch.setattr(coercion, "_MAX_PLACES", 3)
    assert read(rows=["1", "2", "3"]) == {"rows": [1, 2, "3"]}


def test_recursive_and_endless_schemas_end() -> None:
    for inner in ({"$ref": "#/$defs/a"}, {"anyOf": [{"$ref": "#/$defs/a"}] * 3}):
        schema = {"type": "object", "properties": {"a": inner}, "$defs": {"a": inner}}
        assert coerced(b'{"a": "5"}', schema) is None


def test_refusal_that_the_switch_would_accept_is_logged_once_per_second(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(counters.time, "monotonic", lambda: now)
    caplog.set_level(logging.WARNING, "trunkline.server")
    app = served(int)
    expected = "arguments of tool 'tool' refused: they have texts in place of numbers"
    for value in ("5", "6"):
        failed, text = call(app, {"value": value})
        assert failed
        assert "coerce" not in text
    assert [each.startswith(expected) for each in caplog.messages] == [True]
    assert "Server(coerce_arguments=True)" in caplog.messages[0]
    now += 1
    call(app, {"value": "7"})
    assert len(caplog.messages) == 2
    now += 1
    call(app, {"value": CANARY})  # the switch would not help
    assert len(caplog.messages) == 2
    assert CANARY not in caplog.text


def test_schema_tool_logs_the_switch_too(caplog: pytest.LogCaptureFixture) -> None:
    app, _ = by_hand()
    assert call(app, {"n": "5"})[0] is True
    assert "coerce_arguments=True" in caplog.text


def test_deprecated_tool_is_logged_after_coercion_too(caplog: pytest.LogCaptureFixture) -> None:
    app = Server("tests", coerce_arguments=True)

    @app.tool(name="tool", deprecated=True)
    def old(value: int) -> int:
        return value

    assert call(app, {"value": "5"}) == (False, "5")
    assert "deprecated" in caplog.text


def test_allow_gets_the_coerced_values() -> None:
    app, seen = Server("tests", coerce_arguments=True), []

    def allow(ctx: Any, value: int) -> bool:
        seen.append(value)
        return True

    @app.tool(name="tool", allow=allow)
    def guarded(value: int) -> int:
        return value

    assert call(app, {"value": "5"}) == (False, "5")
    assert seen == [5]
