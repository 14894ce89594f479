"""What the HTTP client does that a server cannot see from its messages alone.

Where a server has to break a rule, or to lose a stream, it is the stub of `tests.http_client`;
these scripts are played over one transport, since a stub is not hosted by any other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.conversation.rig import Record, Rig
from tests.conversation.rules import STREAMABLE, rule
from tests.http_client.stub_server import (
    Asked,
    McpStub,
    event,
    method_of,
    reply_to,
    tool_text,
)
from trunkline import Client
from trunkline.errors import ConnectionLost, PeerError, TrunklineError
from trunkline.spec.requirements import requirement
from trunkline.spec.revisions import V2025_03_26, V2025_11_25, V2026_07_28

NEW = V2026_07_28
STUBBED = ("http",)


@asynccontextmanager
async def client_of(stub: McpStub, **options: Any) -> AsyncIterator[Client]:
    async with stub, Client(stub.url, revision=stub.revision, **options) as client:
        yield client


def methods(stub: McpStub) -> list[str]:
    return [method_of(each) for each in stub.requests]


def was_judged(record: Record, revision: str, *ids: str) -> None:
    """Fail unless each rule that the revision has was kept, and had an occasion."""
    here = [id for id in ids if requirement(id).when.holds(revision)]
    assert {id: record.verdict(id) for id in here} == dict.fromkeys(here, "pass")


@rule("BP-081", "BP-086", "BP-091", since=V2025_03_26, until=NEW, over=STREAMABLE, fresh=True)
async def test_a_client_sends_the_headers_of_its_session(rig: Rig) -> None:
    client, record = await rig.connect_recorded()
    await client.call_tool("echo", {"text": "hello"})
    was_judged(
        record,
        rig.revision,
        "mcp.http.accept-both",
        "mcp.http.accepted-202",
        "mcp.session.id-sent",
        "mcp.headers.version-sent",
        "mcp.headers.version-negotiated",
    )


@rule("BP-110", "BP-112", "BP-113", "BP-115", "BP-116", since=NEW, over=STREAMABLE, fresh=True)
async def test_a_client_repeats_version_method_name_and_arguments_in_headers(rig: Rig) -> None:
    client, record = await rig.connect_recorded()
    await client.list_tools()
    await client.call_tool("forecast", {"city": "Oslo", "days": 1, "region": "søuth"})
    with pytest.raises(PeerError):
        await client.get_prompt("nöwhere")
    was_judged(
        record,
        rig.revision,
        "mcp.http.accept-both-types",
        "mcp.headers.version-on-post",
        "mcp.headers.version-as-body",
    )


@rule("BP-119", since=NEW, over=STREAMABLE, fresh=True)
async def test_a_client_refused_over_a_header_lists_the_tools_and_calls_again(rig: Rig) -> None:
    client, record = await rig.connect_recorded()
    before = len(record.lines)
    result = await client.call_tool("forecast", {"city": "Oslo", "days": 1, "region": "søuth"})
    assert not result.is_error
    sent = [line for sender, line in record.lines[before:] if sender == "client"]
    assert b'"tools/call"' in sent[0]
    assert b'"tools/call"' in sent[-1]
    assert all(b'"tools/list"' in line for line in sent[1:-1])
    assert len(sent) >= 3
    assert any(b"-32020" in line for sender, line in record.lines if sender == "server")


@rule("BP-064", since=NEW, over=STUBBED, fresh=True)
async def test_status_400_with_an_error_of_the_new_era_is_not_followed_by_a_handshake(
    rig: Rig,
) -> None:
    def refuse(asked: Asked) -> None:
        error = {"code": -32022, "message": "Unsupported", "data": {"supported": ["2031-01-01"]}}
        asked.json({"jsonrpc": "2.0", "id": asked.id, "error": error}, 400)

    stub = McpStub()
    stub.on["server/discover"] = refuse
    async with stub:
        client = Client(stub.url)
        with pytest.raises(TrunklineError, match="2031-01-01"):
            await client.connect()
        await client.close()
    assert "initialize" not in methods(stub)


@rule("BP-064", since=NEW, over=STUBBED, fresh=True)
async def test_status_400_with_anything_else_is_followed_by_a_handshake(rig: Rig) -> None:
    stub = McpStub(V2025_11_25)
    stub.on["server/discover"] = lambda asked: asked.status(400, body="Bad Request")
    async with stub, Client(stub.url) as client:
        assert client.revision == V2025_11_25
    assert methods(stub)[:2] == ["server/discover", "initialize"]


@rule("BP-094", since=V2025_03_26, until=NEW, over=STUBBED, fresh=True)
async def test_a_client_that_closes_deletes_its_session_whatever_the_answer(rig: Rig) -> None:
    for status in (200, 405):
        stub = McpStub(rig.revision)
        stub.on["DELETE"] = lambda asked, status=status: asked.status(status)  # type: ignore[misc]
        async with client_of(stub) as client:
            await client.ping()
        assert [each.headers["mcp-session-id"] for each in stub.asked("DELETE")] == ["s1"]
        assert methods(stub)[-1] == "DELETE"


@rule("BP-097", since=V2025_11_25, until=NEW, over=STUBBED, fresh=True)
async def test_a_client_resumes_a_stream_by_get_with_the_last_event_id_it_saw(rig: Rig) -> None:
    calls: list[Asked] = []

    def call(asked: Asked) -> None:
        calls.append(asked)
        progress = {"progressToken": asked.message["params"]["_meta"]["progressToken"]}
        told = {"method": "notifications/progress", "params": {**progress, "progress": 1}}
        asked.stream("id: a-0\nretry: 1\ndata:\n\n", event({"jsonrpc": "2.0", **told}, id="a-1"))

    def get(asked: Asked) -> None:
        if "last-event-id" in asked.headers:
            asked.stream(event(reply_to(calls[0], tool_text("resumed")), id="a-2"))
        else:
            asked.status(405)

    stub = McpStub(rig.revision)
    stub.on |= {"tools/call": call, "GET": get}
    steps: list[float] = []
    async with client_of(stub) as client:
        result = await client.call_tool("echo", on_progress=lambda at, *_: steps.append(at))
        assert result.text == "resumed"
    assert steps == [1]
    resumed = [each for each in stub.asked("GET") if "last-event-id" in each.headers]
    assert [each.headers["last-event-id"] for each in resumed] == ["a-1"]
    assert resumed[0].headers["mcp-session-id"] == "s1"
    assert len(stub.asked("tools/call")) == 1


@rule("BP-098", since=V2025_03_26, until=NEW, over=STUBBED, fresh=True)
async def test_a_client_refused_initialize_by_post_looks_for_the_older_transport(
    rig: Rig,
) -> None:
    for status in (400, 404, 405):
        await _fall_back(status, rig.revision)


async def _fall_back(status: int, revision: str) -> None:
    streams: list[Asked] = []

    def get(asked: Asked) -> None:
        streams.append(asked)
        asked.stream("event: endpoint\ndata: /messages?session=1\n\n", ends=False)

    def post(asked: Asked) -> None:
        if asked.path == "/mcp":
            asked.status(status)
            return
        asked.status(202)
        if method_of(asked) == "initialize":
            result = {"protocolVersion": revision, "capabilities": {"tools": {}}}
            streams[0].chunk(
                event(reply_to(asked, {**result, "serverInfo": {"name": "old", "version": "1"}}))
            )
        elif method_of(asked) == "tools/call":
            streams[0].chunk(event(reply_to(asked, tool_text("old"))))

    stub = McpStub(revision)
    stub.answer = lambda asked: get(asked) if asked.method == "GET" else post(asked)
    events: list[str] = []
    async with client_of(stub, on_event=lambda kind, _: events.append(kind)) as client:
        assert (await client.call_tool("echo")).text == "old"
    assert events == ["fallback"]
    assert {each.path for each in stub.asked("tools/call")} == {"/messages?session=1"}


@rule("BP-117", since=NEW, over=STUBBED, fresh=True)
async def test_a_tool_with_a_faulty_header_annotation_is_left_out_with_a_warning(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    def tool(name: str, header: str) -> dict[str, Any]:
        properties = {"region": {"type": "string", "x-mcp-header": header}}
        return {"name": name, "inputSchema": {"type": "object", "properties": properties}}

    stub = McpStub(tools=[tool("good", "Region"), tool("bad", "no spaces allowed")])
    with caplog.at_level(logging.WARNING, "trunkline.client"):
        async with client_of(stub) as client:
            assert [each.name for each in await client.list_tools()] == ["good"]
            await client.list_tools(fresh=True)
            await client.call_tool("good", {"region": "eu"})
    assert caplog.text.count("left out") == 1
    assert "bad" in caplog.text
    assert stub.asked("tools/call")[0].headers["mcp-param-region"] == "eu"


@rule("BP-126", since=NEW, over=STUBBED, fresh=True)
async def test_a_client_skips_comments_of_a_stream(rig: Rig) -> None:
    def call(asked: Asked) -> None:
        asked.stream(
            ":\n\n",
            ": ping\n",
            event(reply_to(asked, tool_text("through")), comment="data: not data"),
        )

    stub = McpStub()
    stub.on["tools/call"] = call
    async with client_of(stub) as client:
        assert (await client.call_tool("echo")).text == "through"


@rule("BP-127", since=NEW, over=STUBBED, fresh=True)
async def test_a_call_whose_stream_is_lost_is_not_resumed_and_gets_a_new_id(rig: Rig) -> None:
    def call(asked: Asked) -> None:
        if len(stub.asked("tools/call")) == 1:
            asked.stream("id: a-1\ndata:\n\n", ends=False)
            asked.reset()
        else:
            asked.text("again")

    stub = McpStub()
    stub.on["tools/call"] = call
    async with client_of(stub) as client:
        with pytest.raises(ConnectionLost, match="outcome is unknown"):
            await client.call_tool("echo")
        assert (await client.call_tool("echo")).text == "again"
    first, second = (each.id for each in stub.asked("tools/call"))
    assert first != second
    assert stub.asked("GET") == []


@rule("BP-127", since=NEW, over=STUBBED, fresh=True)
async def test_a_lost_stream_of_changes_is_opened_again_with_a_new_id(rig: Rig) -> None:
    told: list[Any] = []
    listening = asyncio.Event()

    def listen(asked: Asked) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": asked.id}
        params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
        begun = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"}
        asked.stream(event({**begun, "params": params}), ends=False)
        if len(stub.asked("subscriptions/listen")) == 1:
            asyncio.get_running_loop().call_soon(asked.reset)
        else:
            listening.set()

    stub = McpStub(capabilities={"tools": {"listChanged": True}})
    stub.on["subscriptions/listen"] = listen
    events: list[str] = []
    listeners = {
        "on_list_changed": lambda *_: told.append(True),
        "on_event": lambda *it: events.append(": ".join(it)),
    }
    async with client_of(stub, **listeners) as client:
        await listening.wait()
        await stub.until(lambda: bool(told))
        assert client.is_connected
    first, second = (each.id for each in stub.asked("subscriptions/listen"))
    assert first != second
    assert [each.rpartition(", in ")[0] for each in events] == [
        "reconnect: the subscription to changes"
    ]
