"""Every type of an argument and of a result, in every revision, through a client.

The rows are in `tests/type_matrix.py`: the schema that is listed, JSON that is accepted and the
value that the handler gets, JSON that is refused, and what a client sees of a returned value.
"""

from __future__ import annotations

import asyncio
import collections
import json
from typing import Any

import pytest

from tests.rigs.types import Aliased, Box, Dog, Level, Numbers, Pair, Point, PTree, Tree, Wind
from tests.type_matrix import ARGUMENTS, NOT_LISTED_HERE, RESULTS, Argument, Result
from trunkline import Client, PeerError, Server
from trunkline.server.handlers.schema_validator import SchemaCheck
from trunkline.spec.mcp.behaviour import BAD_ARGUMENTS_ARE_RESULTS
from trunkline.spec.revisions import REVISIONS, V2025_06_18, V2026_07_28, Window

# Revisions in which structured content exists, and in which it is an object.
STRUCTURED = Window(V2025_06_18)
WRAPPING = Window(V2025_06_18, V2026_07_28)


def test_the_matrix_has_as_many_types_as_it_promises() -> None:
    assert len({row.name for row in ARGUMENTS}) == len(ARGUMENTS) >= 70
    assert len({row.name for row in RESULTS}) == len(RESULTS) >= 50


@pytest.mark.parametrize("row", ARGUMENTS, ids=[row.name for row in ARGUMENTS])
def test_an_argument(row: Argument) -> None:
    seen: list[Any] = []

    def tool(x):  # type: ignore[no-untyped-def]  # annotated below
        seen.append(x)

    tool.__annotations__ = {"x": row.type, "return": None}
    app = Server("matrix")
    app.add_tool(tool, inline=True)

    async def main() -> None:
        for revision in REVISIONS:
            async with Client(app, revision=revision) as client:
                (listed,) = await client.list_tools()
                assert listed.input_schema["required"] == ["x"]
                member = listed.input_schema["properties"]["x"]
                if row.name not in NOT_LISTED_HERE:
                    assert member == row.schema
                check = SchemaCheck(listed.input_schema)
                for given, value in row.accepted:
                    seen.clear()
                    result = await client.call_tool("tool", {"x": given})
                    assert not result.is_error, result.text
                    assert seen == [value]
                    assert type(seen[0]) is type(value)
                    if row.name != "before validator":  # it takes what the schema does not say
                        assert check.problem({"x": given}) is None
                for given in row.refused:
                    seen.clear()
                    await refused(client, given)
                    assert seen == []

    asyncio.run(main())


async def refused(client: Client, given: Any) -> None:
    """Look that a value is refused: by an error up to 2025-06-18, then by a result."""
    if BAD_ARGUMENTS_ARE_RESULTS.holds(client.revision):
        result = await client.call_tool("tool", {"x": given})
        assert result.is_error, given
        text = result.text
    else:
        with pytest.raises(PeerError) as error:
            await client.call_tool("tool", {"x": given})
        assert error.value.code == -32602
        text = str(error.value)
    assert "Invalid arguments for tool 'tool': argument \"x" in text


@pytest.mark.parametrize("row", RESULTS, ids=[row.name for row in RESULTS])
def test_a_result(row: Result) -> None:
    def tool() -> Any:
        return row.value

    tool.__annotations__ = {} if row.type is ... else {"return": row.type}
    app = Server("matrix")
    app.add_tool(tool, inline=True)

    async def main() -> None:
        for revision in REVISIONS:
            async with Client(app, revision=revision, validate="raise") as client:
                (listed,) = await client.list_tools()
                result = await client.call_tool("tool")
                assert not result.is_error, result.text
                look_at_text(row, result)
                look_at_structure(row, revision, listed, result)
                look_at_value(row, revision, result)

    asyncio.run(main())


def look_at_text(row: Result, result: Any) -> None:
    """Look that the text is the same in every revision: a text bare, any other value as JSON."""
    if isinstance(row.seen, str):
        assert result.text == row.seen
    else:
        assert json.loads(result.text) == row.seen


def look_at_structure(row: Result, revision: str, listed: Any, result: Any) -> None:
    """Look at schema and structured content, as one revision has them."""
    if row.schema is None or not STRUCTURED.holds(revision):
        assert listed.output_schema is None
        assert not result.has_value
        assert not result.structured_content
        return
    is_object = row.schema.get("type") == "object"
    schema, sent = row.schema, row.seen
    if WRAPPING.holds(revision) and not is_object:
        schema = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
        sent = {"result": sent}
    assert listed.output_schema == schema
    assert result.has_value
    assert result.structured_content == sent
    assert type(result.structured_content) is type(sent)
    assert SchemaCheck(schema).problem(sent) is None


def look_at_value(row: Result, revision: str, result: Any) -> None:
    """Look that the value is that of the handler as JSON; without structure it is the text."""
    if row.schema is not None and STRUCTURED.holds(revision):
        assert result.value == row.seen
        assert type(result.value) is type(row.seen)
    else:
        assert result.value == (result.text if result.content else None)


# -- integers that are written as 5.0 --------------------------------------------------------

# By name, JSON that is accepted because 5.0 is an integer, and the value that the handler gets.
DOUBLES: dict[str, tuple[Any, Any]] = {
    "int": (5.0, 5),
    "int enum": (2.0, Level.HIGH),
    "list of int": ([5.0, 6], [5, 6]),
    "nested list": ([[5.0], [6.0]], [[5], [6]]),
    "sequence": ([5.0], [5]),
    "iterable": ([5.0], [5]),
    "deque": ([5.0], collections.deque([5])),
    "set": ([5.0], {5}),
    "frozenset": ([5.0], frozenset([5])),
    "open tuple": ([5.0, 6.0], (5, 6)),
    "tuple": ([5.0, "a"], (5, "a")),
    "dict of int": ({"a": 5.0}, {"a": 5}),
    "mapping": ({"a": 5.0}, {"a": 5}),
    "ordered dict": ({"a": 5.0}, collections.OrderedDict(a=5)),
    "mixed literal": (1.0, 1),
    "optional": (5.0, 5),
    "old optional": (5.0, 5),
    "int or str": (5.0, 5),
    "bool or int": (5.0, 5),
    "list or int": ([5.0], [5]),
    "list of union": ([5.0, "a"], [5, "a"]),
    "two lists": ([5.0, 6.0], [5, 6]),
    "dataclasses": ({"name": "a", "age": 5.0}, Dog("a", 5)),
    "struct or dataclass": ({"x": 5.0, "y": 6.0}, Point(5, 6)),
    "recursive dataclass": ({"v": 5.0, "kids": [{"v": 6.0}]}, Tree(5, [Tree(6)])),
    "struct": ({"x": 5.0}, Point(5)),
    "attrs": ({"speed": 5.0}, Wind(5)),
    "typed dict": ({"a": 5.0}, {"a": 5}),
    "named tuple": ([5.0], Pair(5)),
    "generic model": ({"v": 5.0}, Box[int](v=5)),
    "recursive model": ({"v": 5.0, "kids": [{"v": 6.0}]}, PTree(v=5, kids=[PTree(v=6)])),
    "aliased model": ({"userId": 5.0}, Aliased(userId=5)),
    "root model": ([5.0], Numbers([5])),
    "positive int": (5.0, 5),
    "meta": (5.0, 5),
    "field bounds": (4.0, 4),
    "annotated types": (5.0, 5),
    "items with bounds": ([5.0], [5]),
    "length": ([5.0], [5]),
    "after validator": (5.0, 10),
}
ROWS = {row.name: row for row in ARGUMENTS}
# Its schema has an integer, and what is sent is another value.
WITHOUT_INTEGERS = {"before validator"}


def test_every_type_with_an_integer_is_tried_with_a_double() -> None:
    with_integer = {row.name for row in ARGUMENTS if '"integer"' in json.dumps(row.schema)}
    tried = with_integer | {"mixed literal", "recursive dataclass", "recursive model"}
    assert DOUBLES.keys() == tried - WITHOUT_INTEGERS


@pytest.mark.parametrize("name", DOUBLES)
def test_a_number_without_a_fraction_is_an_integer_and_no_fault_beside_another(name: str) -> None:
    seen: list[Any] = []
    given, value = DOUBLES[name]

    def tool(x, other):  # type: ignore[no-untyped-def]  # annotated below
        seen.append(x)

    tool.__annotations__ = {"x": ROWS[name].type, "other": bool, "return": None}
    app = Server("matrix")
    app.add_tool(tool, inline=True)

    async def main() -> None:
        async with Client(app) as client:
            result = await client.call_tool("tool", {"x": given, "other": True})
            assert not result.is_error, result.text
            assert repr(seen) == repr([value])
            result = await client.call_tool("tool", {"x": given, "other": "yes"})
            assert result.text == (
                "Invalid arguments for tool 'tool': "
                'argument "other": expected a boolean, got a string'
            )

    asyncio.run(main())
