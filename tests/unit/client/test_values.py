"""Values that callers see: absent members are None, and go wherever None goes."""

from __future__ import annotations

import json
import logging
import pickle
from typing import Any

import pytest
from msgspec import UNSET, Struct

from tests.cases import for_each
from tests.unit.client.scripted import SILENT, Place, discovery, initialized, run
from trunkline import Client, Server, SyncClient
from trunkline.errors import PeerError, RemoteProtocolError, RequestTimeout, TrunklineError
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
def test_server_info_and_lists_contain_no_unset(revision: str) -> None:
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
def test_arguments_of_callbacks_and_handlers_contain_no_unset(revision: str) -> None:
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
def test_null_value_is_distinguished_from_an_absent_one(
    result: dict[str, Any], has_value: bool
) -> None:
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


# -- log messages ----------------------------------------------------------------------------


def logging_server() -> Server:
    app = Server("logging")

    @app.tool
    async def noisy(ctx: Context) -> str:
        ctx.log("debug", "hum")
        ctx.log("error", "boom")
        return "x"

    return app


@each_revision
@pytest.mark.parametrize(
    ("level", "heard"), [(None, ["boom"]), ("debug", ["hum", "boom"]), ("alert", [])]
)
def test_on_log_gets_messages_without_setting_a_level(
    revision: str, level: Any, heard: list[str]
) -> None:
    async def main() -> list[Any]:
        got: list[Any] = []
        options: dict[str, Any] = {"on_log": lambda params: got.append(params.data)}
        async with Client(
            logging_server(), revision=revision, logging_level=level, **options
        ) as client:
            await client.call_tool("noisy")
            await client.call_tool("noisy")  # what the first call logged has arrived by now
            return got

    found = run(main())
    assert found[: len(heard)] == heard
    assert set(found) == set(heard)


@pytest.mark.parametrize(("on_log", "level"), [(None, None), (print, "info")])
def test_a_log_level_is_sent_only_if_it_is_of_use(on_log: Any, level: str | None) -> None:
    place = Place({"tools/call": {"content": [], "resultType": "complete"}})

    async def main() -> None:
        async with Client(place, on_log=on_log) as client:
            await client.call_tool("t")
            if on_log is not None:
                await client.set_logging_level(None)
                await client.call_tool("t")

    run(main())
    sent = [
        each["params"]["_meta"] for each in place.line.sent if each.get("method") == "tools/call"
    ]
    key = "io.modelcontextprotocol/logLevel"
    assert [meta.get(key) for meta in sent] == ([level] if on_log is None else [level, None])


def test_no_log_level_is_requested_in_a_handshake_revision_by_default() -> None:
    capabilities = {"tools": {}, "logging": {}}
    opened = initialized("2025-11-25", capabilities=capabilities)
    place = Place({"initialize": opened, "logging/setLevel": {}}, revision="2025-11-25")

    async def main() -> None:
        async with Client(place, on_log=print) as client:
            await client.ping()

    run(main())
    assert "logging/setLevel" not in place.line.methods()


# -- errors ----------------------------------------------------------------------------------


def test_the_timeout_of_a_request_is_a_timeout_error() -> None:
    async def main() -> None:
        async with Client(Place({"tools/call": SILENT}), timeout=0.01) as client:
            await client.call_tool("t")

    with pytest.raises(TimeoutError) as caught:
        run(main())
    assert isinstance(caught.value, RequestTimeout)
    assert isinstance(caught.value, TrunklineError)
    assert str(caught.value).startswith("tools/call: no answer within ")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (RequestTimeout, str(caught.value))


def test_the_timeout_of_a_request_is_not_that_of_a_synchronous_wait() -> None:
    with (
        SyncClient(Place({"tools/call": SILENT})) as client,
        pytest.raises(RequestTimeout, match="tools/call"),
    ):
        client.call_tool("t", timeout=0.01)


def test_pinned_revision_missing_on_the_server_raises_with_both_versions() -> None:
    place = Place(revision="2024-11-05")
    with pytest.raises(RemoteProtocolError) as caught:
        run(opened(place, "2025-06-18"))
    assert caught.value.got == "2024-11-05"
    assert caught.value.expected == "2025-06-18, the only revision that the client was told to use"


async def opened(place: Place, revision: str) -> None:
    async with Client(place, revision=revision):
        pass


# -- forms -----------------------------------------------------------------------------------

FISH = {
    "type": "object",
    "properties": {
        "fish": {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a"]},
        "name": {"type": "string", "default": "x"},
    },
}


@pytest.mark.parametrize(
    ("revision", "given", "content"),
    [
        ("2025-06-18", {}, {"name": "x"}),
        ("2025-06-18", {"fish": ["b"]}, {"fish": ["b"], "name": "x"}),
        ("2025-11-25", {}, {"fish": ["a"], "name": "x"}),
    ],
)
def test_a_default_that_the_revision_has_no_answer_for_is_left_out(
    revision: str, given: dict[str, Any], content: dict[str, Any]
) -> None:
    place = Place(revision=revision)
    params = {"message": "m", "requestedSchema": FISH}
    asked = {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": params}

    async def main() -> Any:
        async with Client(place, revision=revision, on_elicit=lambda params: given):
            place.line.say(asked)
            return (await place.line.until_reply(7))["result"]

    assert run(main()) == {"action": "accept", "content": content}


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
