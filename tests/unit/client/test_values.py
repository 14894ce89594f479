"""Values that callers see: absent members are None, and go wherever None goes."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from msgspec import UNSET, Struct

from tests.cases import for_each
from tests.unit.client.scripted import Place, discovery, initialized, run
from trunkline import Client, Server
from trunkline.errors import PeerError, RemoteProtocolError
from trunkline.mcp.types import CreateMessageResult, ElicitResult, TextContent
from trunkline.server import Context
from trunkline.spec.revisions import LATEST, REVISIONS

each_revision = for_each("revision", REVISIONS)


def members(value: Any) -> list[Any]:
    """Return every value in a value, at any depth."""
    if isinstance(value, Struct):
        inner: list[Any] = [getattr(value, name) for name in value.__struct_fields__]
    elif isinstance(value, dict):
        inner = list(value.values())
    else:
        inner = list(value) if isinstance(value, list | tuple) else []
    return [value, *(found for each in inner for found in members(each))]


@each_revision
def test_what_a_server_says_of_itself_and_lists_has_no_unset(revision: str) -> None:
    app = Server("plain")

    @app.tool
    def tool() -> str:
        return "x"

    @app.resource("a://b")
    def resource() -> bytes:
        return b"x"

    @app.resource("a://{c}")
    def template(c: str) -> str:
        return c

    @app.prompt
    def prompt(topic: str) -> str:
        return topic

    async def main() -> list[Any]:
        async with Client(app, revision=revision) as client:
            return [
                client.server_info,
                client.server_capabilities,
                await client.list_tools_page(),
                await client.list_resources_page(),
                await client.list_resource_templates_page(),
                await client.list_prompts_page(),
                await client.read_resource("a://b"),
                await client.get_prompt("prompt", {"topic": "t"}),
                (await client.call_tool("tool")).content,
            ]

    found = run(main())
    assert UNSET not in members(found)
    listed = found[2].tools[0]
    assert listed.title is None
    assert f"{listed.description}" == "None"
    assert json.loads(json.dumps({"title": listed.title})) == {"title": None}


@each_revision
def test_a_loop_over_pages_ends_at_a_cursor_that_is_none(revision: str) -> None:
    app = Server("pages", page_size=2)
    for number in range(3):
        app.add_tool(lambda: "x", f"t{number}")

    async def main() -> list[list[str]]:
        found: list[list[str]] = []
        cursor: str | None = None
        async with Client(app, revision=revision) as client:
            while len(found) < 6:
                page = await client.list_tools_page(cursor)
                found.append([tool.name for tool in page.tools])
                if page.next_cursor is None:
                    break
                cursor = page.next_cursor
        return found

    assert run(main()) == [["t0", "t1"], ["t2"]]


@for_each("revision", ["2025-11-25", LATEST])
def test_what_callbacks_and_handlers_get_has_no_unset(revision: str) -> None:
    app = Server("asking")
    seen: list[Any] = []

    @app.tool
    async def ask(ctx: Context) -> str:
        seen.append(ctx.client.capabilities)
        seen.append(ctx.client.info)
        seen.append(await ctx.sample("hi", max_tokens=5))
        seen.append((await ctx.elicit("sure?", bool)).accepted)
        return "done"

    def on_sample(params: Any) -> CreateMessageResult:
        seen.append(params)
        return CreateMessageResult(TextContent("hi"), "model", "assistant")

    def on_elicit(params: Any) -> ElicitResult:
        seen.append(params)
        return ElicitResult("decline")

    async def main() -> None:
        options: dict[str, Any] = {"on_sample": on_sample, "on_elicit": on_elicit}
        async with Client(app, revision=revision, **options) as client:
            assert (await client.call_tool("ask")).text == "done"

    run(main())
    assert len(seen) >= 6
    assert UNSET not in members(seen)


NULLS = {
    "tools": [{"name": "t", "inputSchema": {"type": "object"}, "title": None}],
    "nextCursor": None,
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}


def test_null_in_a_result_is_absent_for_a_client() -> None:
    async def main() -> Any:
        async with Client(Place({"tools/list": NULLS})) as client:
            page = await client.list_tools_page()
            return page.next_cursor, page.tools[0].title, len(await client.list_tools())

    assert run(main()) == (None, None, 1)


def test_a_client_that_validates_reports_null_in_a_result(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(validate: Any) -> None:
        async with Client(Place({"tools/list": NULLS}), validate=validate) as client:
            await client.list_tools()

    with caplog.at_level(logging.WARNING):
        run(main("warn"))
    assert "/result/nextCursor" in caplog.text
    with pytest.raises(RemoteProtocolError) as caught:
        run(main("raise"))
    assert caught.value.where in ("/result/nextCursor", "/result/tools/0/title")


@pytest.mark.parametrize(
    ("result", "has_value"),
    [
        ({"content": [], "structuredContent": None}, True),
        ({"content": []}, False),
        ({"content": [{"type": "text", "text": "x"}]}, False),
    ],
)
def test_a_value_that_is_null_is_told_from_none(result: dict[str, Any], has_value: bool) -> None:
    async def main() -> Any:
        async with Client(Place({"tools/call": {**result, "resultType": "complete"}})) as client:
            return await client.call_tool("t")

    found = run(main())
    assert found.has_value is has_value
    assert found.structured_content is None


# -- integers that are written as doubles ----------------------------------------------------


@each_revision
def test_an_argument_that_is_written_as_a_double_is_an_integer(revision: str) -> None:
    app = Server("adding")

    @app.tool
    def add(a: int, b: int | None = None, more: list[int] | None = None) -> str:
        return repr((a, b, more))

    @app.method("acme/double")
    def double(n: int) -> dict[str, int]:
        return {"n": 2 * n}

    async def main() -> list[Any]:
        async with Client(app, revision=revision) as client:
            given = {"a": 1.0, "b": 2.0, "more": [3.0]}
            found = [await client.call_tool("add", given), await client.call_tool("add", {"a": 5})]
            refused = await called(client, {"a": 1.5})
            doubled = await client.request("acme/double", {"n": 4.0})
            return [*(each.text for each in found), refused, doubled]

    async def called(client: Client, arguments: dict[str, Any]) -> str:
        try:
            return (await client.call_tool("add", arguments)).text
        except PeerError as error:
            return str(error)

    added, plain, refused, doubled = run(main())
    assert (added, plain) == ("(1, 2, [3])", "(5, None, None)")
    assert 'argument "a": expected an integer, got a number' in refused
    assert doubled["n"] == 8


def test_a_time_to_live_that_is_written_as_a_double_is_read() -> None:
    hints = {"ttlMs": 60_000.0, "cacheScope": "private", "resultType": "complete"}
    listed = [{"name": "t", "inputSchema": {"type": "object"}}]
    place = Place({"tools/list": {"tools": listed, **hints}})
    place.answers["server/discover"] = {**discovery(LATEST), **hints}
    linked = {"type": "resource_link", "name": "n", "uri": "x:y", "size": 7.0}
    place.answers["tools/call"] = {"content": [linked], "resultType": "complete"}

    async def main() -> list[Any]:
        async with Client(place) as client:
            page = await client.list_tools_page()
            await client.list_tools_page()
            linked = (await client.call_tool("t")).content[0]
            return [client.revision, page.ttl_ms, (await client.discover()).ttl_ms, linked]

    revision, ttl, discovered, link = run(main())
    assert (revision, ttl, discovered) == (LATEST, 60_000, 60_000)
    assert link.size == 7
    asked = [each["method"] for each in place.line.sent]
    assert asked.count("tools/list") == 1  # the second was cached


# -- discovery -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lacking", [["ttlMs"], ["cacheScope"], ["ttlMs", "cacheScope", "capabilities", "resultType"]]
)
def test_discovery_without_hints_is_accepted_as_connecting_accepts_it(lacking: list[str]) -> None:
    found = {name: value for name, value in discovery().items() if name not in lacking}

    async def main() -> Any:
        async with Client(Place({"server/discover": found})) as client:
            return client.revision, await client.discover()

    revision, result = run(main())
    assert revision == LATEST
    assert result.supported_versions == [LATEST]
    assert (result.ttl_ms, result.cache_scope) == (0, "private")


def test_the_era_that_a_strict_client_concludes_is_not_remembered() -> None:
    place = Place({"initialize": initialized("2025-11-25")})
    del place.answers["server/discover"]["ttlMs"]

    async def main() -> list[str]:
        found = []
        for validate in ("off", "raise", "off", "warn"):
            mode: Any = validate
            async with Client(place, validate=mode) as client:
                found.append(client.revision)
        return found

    assert run(main()) == [LATEST, "2025-11-25", LATEST, LATEST]


def test_a_value_that_is_written_as_a_double_is_an_integer_of_the_type_asked_for() -> None:
    answer = {"content": [], "structuredContent": {"n": 5.0}, "resultType": "complete"}

    async def main() -> Any:
        async with Client(Place({"tools/call": answer})) as client:
            return (await client.call_tool("t", result_type=dict[str, int])).value

    assert run(main()) == {"n": 5}
