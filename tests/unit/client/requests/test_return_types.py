"""`result.value` for every kind of return type, in every revision that has structured content."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import pytest
from msgspec import Meta, Struct

from tests.cases import for_each
from tests.unit.client.scripted import Place, run
from trunkline import Client, Server, ToolOutput
from trunkline.errors import ResultTypeMismatch, ToolFailed
from trunkline.mcp.types import ImageContent, TextContent
from trunkline.server.handlers.output import output_of
from trunkline.spec.revisions import REVISIONS

# 2024-11-05 and 2025-03-26 have content alone.
WITH_STRUCTURE = REVISIONS[2:]
ID = UUID("00000000-0000-0000-0000-00000000002a")

WHEN = datetime.datetime(2026, 7, 28, 1, 2)
NESTED = {"result": {"result": 1}}


class Cat(Struct):
    name: str


class Dog(Struct, tag=True):
    age: int


class Cow(Struct, tag=True):
    milk: float


@dataclasses.dataclass
class Point:
    x: int


class Movie(TypedDict):
    title: str


class Pair(NamedTuple):
    one: int
    two: str


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Holder(Struct):
    result: int


class Case(NamedTuple):
    """A return type, what a tool returns, and the plain value and the text of a client."""

    type: Any
    returned: Any
    plain: Any
    text: str

    @property
    def name(self) -> str:
        return f"{self.type}: {self.returned!r}"


CASES = [
    Case(str, "x", "x", "x"),
    Case(str, "", "", ""),
    Case(str, "5", "5", "5"),
    Case(str, '"x"', '"x"', '"x"'),
    Case(str, "null", "null", "null"),
    Case(str | None, "x", "x", "x"),
    Case(str | None, "null", "null", "null"),
    Case(str | None, "", "", ""),
    Case(str | None, None, None, ""),
    Case(None, None, None, ""),
    Case(int, 5, 5, "5"),
    Case(int, 0, 0, "0"),
    Case(bool, True, True, "true"),
    Case(bool, False, False, "false"),
    Case(float, 1.5, 1.5, "1.5"),
    Case(Annotated[int, Meta(ge=0)], 3, 3, "3"),
    Case(Literal["a", "b"], "a", "a", "a"),
    Case(Literal[1, "a"], 1, 1, "1"),
    Case(Literal[1, "a"], "a", "a", "a"),
    Case(Color, Color.RED, "red", "red"),
    Case(Level, Level.LOW, 1, "1"),
    Case(UUID, ID, str(ID), str(ID)),
    Case(datetime.date, datetime.date(2026, 7, 28), "2026-07-28", "2026-07-28"),
    Case(datetime.datetime, WHEN, "2026-07-28T01:02:00", "2026-07-28T01:02:00"),
    Case(datetime.time, datetime.time(1, 2), "01:02:00", "01:02:00"),
    Case(datetime.timedelta, datetime.timedelta(seconds=5), "PT5S", "PT5S"),
    Case(Decimal, Decimal("1.50"), "1.50", "1.50"),
    Case(int | None, 5, 5, "5"),
    Case(int | None, None, None, "null"),
    Case(int | str, 5, 5, "5"),
    Case(int | str, "x", "x", "x"),
    Case(int | str, "5", "5", "5"),
    Case(Cat | None, Cat("x"), {"name": "x"}, '{"name":"x"}'),
    Case(Cat | None, None, None, "null"),
    Case(Cat | str, "x", "x", "x"),
    Case(Cat | str, Cat("x"), {"name": "x"}, '{"name":"x"}'),
    Case(Cat | int | list[int], [1], [1], "[1]"),
    Case(Dog | Cow, Cow(1.5), {"type": "Cow", "milk": 1.5}, '{"type":"Cow","milk":1.5}'),
    Case(list[int], [1, 2], [1, 2], "[1,2]"),
    Case(list[int], [], [], "[]"),
    Case(list[str], ["a"], ["a"], '["a"]'),
    Case(list[list[str]], [["a"], []], [["a"], []], '[["a"],[]]'),
    Case(list[Cat], [Cat("x")], [{"name": "x"}], '[{"name":"x"}]'),
    Case(list[int | None], [None], [None], "[null]"),
    Case(tuple[int, str], (1, "a"), [1, "a"], '[1,"a"]'),
    Case(set[int], {1}, [1], "[1]"),
    Case(Pair, Pair(1, "a"), [1, "a"], '[1,"a"]'),
    Case(Cat, Cat("x"), {"name": "x"}, '{"name":"x"}'),
    Case(Point, Point(1), {"x": 1}, '{"x":1}'),
    Case(Movie, {"title": "t"}, {"title": "t"}, '{"title":"t"}'),
    Case(Holder, Holder(5), {"result": 5}, '{"result":5}'),
    Case(dict[str, int], {"a": 1}, {"a": 1}, '{"a":1}'),
    Case(dict[str, int], {"result": 1}, {"result": 1}, '{"result":1}'),
    Case(dict[str, Any], NESTED, NESTED, '{"result":{"result":1}}'),
    Case(dict[str, int] | None, {"result": 1}, {"result": 1}, '{"result":1}'),
]  # fmt: skip


def called(type_: Any, returned: Any, revision: str, result_type: Any = None) -> Any:
    app = Server("returning")

    def tool() -> Any:
        return returned

    tool.__annotations__["return"] = type_
    app.add_tool(tool)

    async def main() -> Any:
        async with Client(app, revision=revision, validate="raise") as client:
            return await client.call_tool("tool", result_type=result_type)

    return run(main())


@for_each("revision", WITH_STRUCTURE)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_value_is_the_same_in_every_revision(case: Case, revision: str) -> None:
    assert called(case.type, case.returned, revision).value == case.plain
    kind = type(None) if case.type is None else case.type
    assert called(case.type, case.returned, revision, kind).value == case.returned


@for_each("revision", REVISIONS)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_text_is_not_quoted_in_any_revision(case: Case, revision: str) -> None:
    assert called(case.type, case.returned, revision).text == case.text


# In content alone 5 and "5" are the same.
TOLD_BY_TEXT = [case for case in CASES if case.returned != "5" or case.type is str]


@for_each("revision", REVISIONS[:2])
@pytest.mark.parametrize("case", TOLD_BY_TEXT, ids=[case.name for case in TOLD_BY_TEXT])
def test_content_alone_is_read_as_the_type_that_was_asked_for(case: Case, revision: str) -> None:
    kind = type(None) if case.type is None else case.type
    assert called(case.type, case.returned, revision, kind).value == case.returned


@for_each("revision", WITH_STRUCTURE)
@pytest.mark.parametrize(
    ("type_", "output", "value"),
    [
        (ToolOutput[int], ToolOutput(5, text="five"), 5),
        (ToolOutput[int], ToolOutput(5, text=""), 5),
        (ToolOutput[int], ToolOutput(5, content=["more"]), 5),
        (ToolOutput[int], ToolOutput(5, meta={"a": 1}), 5),
        (ToolOutput[list[str]], ToolOutput(["a"], text="one"), ["a"]),
        (ToolOutput[Literal["a"]], ToolOutput("a", text="b"), "a"),
        (ToolOutput[int | None], ToolOutput(None, text="none"), None),
        (ToolOutput[dict[str, int]], ToolOutput({"result": 5}, text="five"), {"result": 5}),
        (ToolOutput[str], ToolOutput("x", text="y"), "y"),
    ],
    ids=str,
)
def test_a_text_of_its_own_does_not_change_the_value(
    type_: Any, output: ToolOutput[Any], value: Any, revision: str
) -> None:
    found = called(type_, output, revision)
    assert found.value == value
    assert output.meta is None or found.meta["a"] == 1


LIARS = [
    (str, {"a": 1}, "a text"),
    (str, 5, "a text"),
    (str, None, "a text"),
    (str, b"x", "a text"),
    (str, ["x"], "a text"),
    (str | None, 5, "a text or None"),
    (None, "x", "None"),
    (ToolOutput[str], ToolOutput(5), "a text"),
]


@for_each("revision", REVISIONS)
@pytest.mark.parametrize(("type_", "returned", "wanted"), LIARS, ids=str)
def test_a_promise_of_a_text_is_checked(
    type_: Any, returned: Any, wanted: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = called(type_, returned, revision)
    assert found.is_error
    with pytest.raises(ToolFailed):
        _ = found.value
    assert f"does not fit its return annotation: expected {wanted}, got" in caplog.text


def test_an_error_of_a_tool_need_not_be_the_text_that_it_promised() -> None:
    output = ToolOutput({"why": 1}, is_error=True)
    assert called(ToolOutput[str], output, REVISIONS[-1]).text == '{"why":1}'


# -- lists of anything -----------------------------------------------------------------------

PICTURE = ImageContent("QQ==", "image/png")
OPEN_LISTS = [list, list[Any], tuple, tuple[Any, ...], Sequence[Any], ToolOutput[list[Any]]]


@for_each("revision", REVISIONS)
@pytest.mark.parametrize("type_", OPEN_LISTS, ids=str)
def test_content_blocks_in_a_list_of_anything_are_sent_as_blocks(type_: Any, revision: str) -> None:
    found = called(type_, [TextContent("a"), "b", PICTURE], revision)
    assert found.content == [TextContent("a"), TextContent("b"), PICTURE]
    assert not found.has_value


@for_each("revision", WITH_STRUCTURE)
@pytest.mark.parametrize("type_", OPEN_LISTS, ids=str)
def test_a_list_of_anything_else_is_data(type_: Any, revision: str) -> None:
    for value in ([], [1, "a"], ["a", "b"], [{"a": None}]):
        found = called(type_, value, revision)
        assert (found.value, found.has_value) == (value, True)
    assert called(type_, {"a": 1}, revision).is_error


def test_a_list_of_anything_lists_no_schema_unless_one_is_asked_for() -> None:
    assert output_of(lister).schema is None
    assert output_of(lister).wrapped is None
    assert output_of(lister, list).schema == {"type": "array"}


def lister() -> list[Any]:
    return []


# -- servers written elsewhere ---------------------------------------------------------------


def texts(*found: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": each} for each in found]


IMAGE = {"type": "image", "data": "QQ==", "mimeType": "image/png"}

FOREIGN: list[tuple[Any, list[dict[str, Any]], Any]] = [
    ({"result": ["a", "b"]}, texts("a", "b"), ["a", "b"]),
    ({"result": ["a"]}, texts("a"), ["a"]),
    ({"result": []}, [], []),
    ({"result": None}, [], None),
    ({"result": [1, 2]}, texts("1", "2"), [1, 2]),
    ({"result": [["a"], ["b", None]]}, texts("a", "b"), [["a"], ["b", None]]),
    ({"result": [{"name": "x"}]}, texts('{\n  "name": "x"\n}'), [{"name": "x"}]),
    ({"result": "a"}, texts("a"), "a"),
    ({"result": "a"}, texts('"a"'), "a"),
    ({"result": 5}, texts("5"), 5),
    # What a tool itself calls a result stays.
    ({"result": 5}, texts('{"result": 5}'), {"result": 5}),
    ({"result": ["a", "b"]}, texts("two letters"), {"result": ["a", "b"]}),
    ({"result": ["a", "b"]}, texts("a", "c"), {"result": ["a", "b"]}),
    ({"result": ["a"]}, [*texts("a"), IMAGE], {"result": ["a"]}),
    ({"result": 5}, [], {"result": 5}),
]


@pytest.mark.parametrize(("structured", "content", "value"), FOREIGN, ids=str)
def test_wrapped_result_of_a_foreign_server_is_unwrapped(
    structured: Any, content: list[dict[str, Any]], value: Any
) -> None:
    answer = {"content": content, "structuredContent": structured, "resultType": "complete"}

    async def main() -> Any:
        async with Client(Place({"tools/call": answer})) as client:
            return (await client.call_tool("t")).value

    assert run(main()) == value


# -- types that do not fit -------------------------------------------------------------------


@for_each("revision", REVISIONS)
@pytest.mark.parametrize(
    ("type_", "returned", "kind", "where"),
    [
        (Cat, Cat("x"), Holder, ""),
        (int, 5, Cat, ""),
        (str, "x", int, "/content"),
        (str | None, None, int, "/content"),
    ],
)
def test_a_wrong_type_of_the_caller_does_not_blame_the_server(
    type_: Any, returned: Any, kind: Any, where: str, revision: str
) -> None:
    with pytest.raises(ResultTypeMismatch) as caught:
        _ = called(type_, returned, revision, kind).value
    assert caught.value.expected == kind.__name__
    assert caught.value.where.startswith(where or "/")
    assert f"result_type {kind.__name__} at " in str(caught.value)


def test_a_request_with_a_wrong_type_does_not_blame_the_server() -> None:
    async def main() -> None:
        async with Client(Place({"acme/own": {"ok": "yes"}})) as client:
            await client.request("acme/own", result_type=dict[str, int])

    with pytest.raises(ResultTypeMismatch, match=r"dict\[str, int\].*got `str`"):
        run(main())
