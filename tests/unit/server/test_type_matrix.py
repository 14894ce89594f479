"""Every type of an argument and of a result, in every revision, through a client.

The rows are in `tests/type_matrix.py`: the schema that is listed, JSON that is accepted and the
value that the handler gets, JSON that is refused, and what a client sees of a returned value.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.type_matrix import ARGUMENTS, NOT_LISTED_HERE, RESULTS, Argument, Result
from trunkline import Client, PeerError, Server
from trunkline.server.handlers.schema_validator import SchemaCheck
from trunkline.spec.revisions import REVISIONS

# Revisions whose structured content is an object; only the newest has any value there.
WRAPPING = ("2025-06-18", "2025-11-25")
NEWEST = "2026-07-28"


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
    if client.revision in ("2025-11-25", NEWEST):
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
            async with Client(app, revision=revision) as client:
                (listed,) = await client.list_tools()
                result = await client.call_tool("tool")
                assert not result.is_error, result.text
                if row.schema is None:
                    assert result.text == row.seen
                else:
                    look_at(row, revision, listed, result)

    asyncio.run(main())


def look_at(row: Result, revision: str, listed: Any, result: Any) -> None:
    """Look at a structured result, as one revision has it."""
    assert row.schema is not None
    is_object = row.schema.get("type") == "object"
    if revision == NEWEST:
        assert listed.output_schema == row.schema
        assert result.structured_content == row.seen
        assert SchemaCheck(listed.output_schema).problem(row.seen) is None
        assert result.value == row.seen
    elif revision in WRAPPING:
        wrapped = {"type": "object", "properties": {"result": row.schema}, "required": ["result"]}
        assert listed.output_schema == (row.schema if is_object else wrapped)
        sent = row.seen if is_object else {"result": row.seen}
        assert result.structured_content == sent
        assert SchemaCheck(listed.output_schema).problem(sent) is None
    else:
        assert not listed.output_schema
        assert not result.structured_content
    if not isinstance(row.seen, str):
        assert json.loads(result.text) == row.seen
        if revision in WRAPPING:
            assert result.value == row.seen
