"""Servers of HTTP+SSE, which refuse `initialize` by POST."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import trunkline.transports.http.client.transport as transport_module
from tests.http_client.stub_server import (
    SESSION,
    WAIT,
    Asked,
    McpStub,
    event,
    reply_to,
    tool_text,
)
from tests.unit.transports.http.client.test_post import play
from trunkline import Client, HttpOptions
from trunkline.errors import ConnectionLost, PeerError, TrunklineError

ENDPOINT = "event: endpoint\ndata: {}\n\n"


class OldServer(McpStub):
    """A server of HTTP+SSE; `endpoint` is where its stream says that messages go."""

    def __init__(self, endpoint: str = "/messages?session=1", refuses: int = 405) -> None:
        super().__init__(SESSION)
        self.answer = self._answer
        self.endpoint = endpoint
        self.refuses = refuses
        self.streams: list[Asked] = []
        self.accepts = 202

    def _answer(self, asked: Asked) -> None:
        if asked.method == "GET":
            self.streams.append(asked)
            asked.stream(ENDPOINT.format(self.endpoint), ends=False)
        elif asked.path == "/mcp":
            asked.status(self.refuses)
        else:
            asked.status(self.accepts)
            self._tell(asked)

    def _tell(self, asked: Asked) -> None:
        message = asked.message
        result: Any = None
        if message["method"] == "initialize":
            result = {"protocolVersion": SESSION, "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "old", "version": "1"}
        elif message["method"] == "tools/call":
            result = tool_text("done")
        if result is not None and self.accepts == 202:
            self.streams[0].chunk(event(reply_to(asked, result)))


@pytest.mark.parametrize(
    ("endpoint", "path"),
    [
        ("/messages?session=1", "/messages?session=1"),
        ("messages", "/messages"),
        ("{here}/far?x=y", "/far?x=y"),
    ],
)
def test_messages_go_to_the_address_in_the_first_event(endpoint: str, path: str) -> None:
    stub = OldServer()

    async def scene() -> None:
        async with stub:
            stub.endpoint = endpoint.format(here=stub.url.removesuffix("/mcp"))
            async with Client(stub.url, revision=SESSION) as client:
                assert (await client.call_tool("echo")).text == "done"

    asyncio.run(scene())
    posts = [each.path for each in stub.requests if each.method == "POST"]
    assert posts == ["/mcp", path, path, path]


def test_fallback_to_sse_is_reported_and_messages_keep_their_order() -> None:
    stub = OldServer()

    async def script(client: Client) -> None:
        await asyncio.gather(*(client.call_tool("echo") for _ in range(10)))

    assert play(stub, script) == [("fallback", "the server speaks HTTP+SSE of 2024-11-05")]
    sent = [each.message for each in stub.requests if each.path.startswith("/messages")]
    assert [each["method"] for each in sent[:2]] == ["initialize", "notifications/initialized"]
    ids = [each["id"] for each in sent if each["method"] == "tools/call"]
    assert ids == sorted(ids)
    assert len(ids) == 10


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://example.invalid/messages",
        "//example.invalid/messages",
        "https://127.0.0.1/messages",
        "/messages ä",
        "/mess ages",
    ],
)
def test_an_address_of_another_origin_is_refused(endpoint: str) -> None:
    stub = OldServer(endpoint)

    async def scene() -> None:
        async with stub:
            with pytest.raises(TrunklineError, match="status 405"):
                await Client(stub.url, revision=SESSION).connect()

    asyncio.run(scene())
    assert {each.path for each in stub.requests} == {"/mcp"}


def test_server_without_sse_stream_raises_the_first_status() -> None:
    stub = McpStub(SESSION)
    stub.on["initialize"] = lambda asked: asked.status(404)

    async def scene() -> None:
        async with stub:
            with pytest.raises(TrunklineError, match="status 404"):
                await Client(stub.url, revision=SESSION).connect()

    asyncio.run(scene())
    assert len(stub.asked("GET")) == 1


@pytest.mark.parametrize("first", [": nothing\n\n", "data: {}\n\n"])
def test_a_stream_that_does_not_begin_with_an_address_leaves_the_first_refusal(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "_ENDPOINT_TIMEOUT_S", 0.05)
    stub = McpStub(SESSION)
    stub.on["initialize"] = lambda asked: asked.error(-32602, "no such revision", 400)
    stub.on["GET"] = lambda asked: asked.stream(first, ends=False)

    async def scene() -> None:
        async with asyncio.timeout(WAIT), stub:
            with pytest.raises(PeerError, match="no such revision"):
                await Client(stub.url, revision=SESSION).connect()

    asyncio.run(scene())


def test_one_connection_for_requests_is_enough() -> None:
    async def script(client: Client) -> None:
        assert (await client.call_tool("echo")).text == "done"

    play(OldServer(), script, http=HttpOptions(connections=1))


def test_a_message_whose_connection_is_lost_has_an_unknown_outcome() -> None:
    stub = OldServer()

    async def script(client: Client) -> None:
        answer, stub.answer = stub.answer, Asked.drop
        with pytest.raises(ConnectionLost, match="the outcome is unknown") as caught:
            await client.call_tool("echo")
        assert stub.url in str(caught.value)
        stub.answer = answer

    play(stub, script)


def test_a_message_that_is_refused_ends_its_call_and_the_end_of_the_stream_all() -> None:
    stub = OldServer()

    async def script(client: Client) -> None:
        stub.accepts = 500
        with pytest.raises(ConnectionLost, match="refused a message: status 500"):
            await client.call_tool("echo")
        stub.accepts = 201  # without an answer
        call = asyncio.create_task(client.call_tool("echo"))
        await stub.until(lambda: len(stub.asked("tools/call")) == 2)
        stub.streams[0].drop()
        with pytest.raises(ConnectionLost, match="ended the event stream"):
            await call

    play(stub, script)
