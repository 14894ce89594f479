"""`HttpServerConnection`: requests that are read while another one is served."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.fuzz.fuzz_http import (
    LIMITS,
    MESSAGE_BYTES,
    FuzzedConnection,
    FuzzedHttpServer,
    Response,
    body_of,
    opened,
    plain,
    scene,
)
from trunkline import HttpLimits
from trunkline.spec.revisions import LATEST
from trunkline.transports.http.server.connection import HttpServerConnection
from trunkline.transports.http.server.http_server import HttpServer

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
META = {
    "io.modelcontextprotocol/protocolVersion": LATEST,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/logLevel": "info",
}


def call(tool: str, text: str = "text") -> bytes:
    params = {"name": tool, "arguments": {"text": text}, "_meta": META}
    headers = f"MCP-Protocol-Version: {LATEST}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    return plain(body_of("tools/call", params, 1), headers.encode())


def run(act: Callable[[FuzzedHttpServer, FuzzedConnection], Awaitable[None]]) -> None:
    """Act on a connection of a server that runs; end what is left of it."""
    stage = scene()

    async def acted() -> None:
        stage.released = asyncio.Event()
        wire = FuzzedConnection(stage.http)
        try:
            async with asyncio.timeout(10):
                await act(stage, wire)
        finally:
            stage.released.set()
            await wire.lose()
            for session in stage.endpoint.sessions:
                session.on_end()
            while stage.app._core.runtime.in_flight or len(stage.endpoint.sessions):
                await asyncio.sleep(0)

    stage.runner.run(acted())
    assert stage.faults == []


async def received(wire: FuzzedConnection, count: int) -> list[Response]:
    while len([each for each in wire.responses() if each.is_whole]) < count:
        await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)
    return wire.responses()


def test_malformed_request_is_answered_after_the_requests_before_it() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        await wire.feed(call("hold") + call("echo") + b"nonsense\r\n\r\n" + HEALTH, turns=5)
        stage.released.set()
        responses = await received(wire, 3)
        assert [each.status for each in responses] == [200, 200, 400]
        assert [each.closes for each in responses] == [False, False, True]
        assert wire.transport.has_ended

    run(act)


def test_a_body_that_arrives_after_the_response_before_it_is_not_counted_as_a_head() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        request = call("echo", "x" * (LIMITS.header_bytes + 100))
        await wire.feed(call("hold") + request[:400], turns=5)
        stage.released.set()
        await received(wire, 1)
        assert wire.protocol not in stage.http.idle
        await wire.feed(request[400:1000])
        await wire.feed(request[1000:])
        assert [each.status for each in await received(wire, 2)] == [200, 200]

    run(act)


@pytest.mark.parametrize("endless", [b"X-A: b\r\n", b"x", b"X: "])
def test_a_head_without_end_is_refused_while_another_request_is_served(endless: bytes) -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        await wire.feed(call("hold") + b"GET /mcp HTTP/1.1\r\n", turns=5)
        piece = endless * (1000 // len(endless))
        for _ in range(20):
            await wire.feed(piece)
        stage.released.set()
        assert [each.status for each in await received(wire, 2)] == [200, 431]

    run(act)


def test_a_header_after_the_body_is_not_one_of_the_request() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        body = body_of("no/such", {"_meta": META}, 1)
        head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += b"MCP-Protocol-Version: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % LATEST.encode()
        trailer = b"Mcp-Method: no/such\r\n"
        await wire.feed(head + b"%x\r\n%b\r\n0\r\n%b\r\n" % (len(body), body, trailer))
        (response,) = await received(wire, 1)
        assert response.status == 400
        assert b"Mcp-Method is missing" in response.body

    run(act)


def test_headers_without_end_after_the_body_are_refused() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        await wire.feed(head + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: ")
        for _ in range(LIMITS.header_bytes // 500 + 1):
            await wire.feed(b"x" * 500)
        assert [each.status for each in await received(wire, 1)] == [431]

    run(act)


def test_a_head_request_that_is_refused_has_no_body() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        twice = b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"
        await wire.feed(twice + HEALTH)
        assert [each.status for each in await received(wire, 2)] == [400, 200]

    run(act)


def test_a_malformed_request_after_a_head_request_has_a_body() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        await wire.feed(HEALTH.replace(b"GET", b"HEAD") + b"nonsense\r\n\r\n")
        responses = await received(wire, 2)
        assert b"Malformed" in responses[1].body

    run(act)


def test_requests_that_offer_other_protocols_are_served_one_after_the_other() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        offer = HEALTH[:-2] + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"
        await wire.feed(offer * 3 + b"nonsense\r\n\r\n")
        assert [each.status for each in await received(wire, 4)] == [200, 200, 200, 400]

    run(act)


def test_the_form_of_a_response_is_that_of_its_own_request() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        await wire.feed(call("reports"))
        await wire.feed(HEALTH.replace(b"HTTP/1.1", b"HTTP/1.0"), turns=5)
        stage.released.set()
        responses = await received(wire, 2)
        assert [each.closes for each in responses] == [False, True]
        assert responses[0].headers[b"transfer-encoding"] == b"chunked"

    run(act)


def test_a_client_that_resets_its_connection_after_nonsense_leaves_nothing() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        wire.transport.is_reset = True
        await wire.feed(b"nonsense\r\n\r\n", turns=2)
        assert [each.status for each in wire.responses()] == [400]
        assert wire.transport.is_closed
        assert wire.protocol not in stage.http.connections

    run(act)


def test_empty_lines_are_not_the_start_of_a_request() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        await wire.feed(HEALTH + b"\r\n")
        await wire.feed(b"\r\n\r\n")
        assert wire.protocol in stage.http.idle
        wire.protocol.tick(stage.http.loop.time() + LIMITS.header_timeout + 1)
        assert [each.status for each in wire.responses()] == [200]
        await wire.feed(HEALTH[:10])
        wire.protocol.tick(stage.http.loop.time() + LIMITS.header_timeout + 1)
        assert [each.status for each in wire.responses()] == [200, 408]

    run(act)


def test_a_defect_after_a_response_does_not_answer_the_next_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        handle = stage.http.routes.handle

        def fail_after(*given: Any) -> None:
            handle(*given)
            if given[0].path == "/healthz":
                raise RuntimeError("a defect")

        monkeypatch.setattr(stage.http.routes, "handle", fail_after)
        await wire.feed(call("hold") + HEALTH + call("echo"), turns=5)
        stage.released.set()
        while not wire.transport.is_closed:
            await asyncio.sleep(0)
        assert [each.status for each in wire.responses()] == [200, 200]

    run(act)
    assert "a defect" in caplog.text


def test_a_request_beyond_the_limit_is_answered_with_503() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        # One place is for newcomers.
        http = HttpServer(stage.http.routes, HttpLimits(requests=3), MESSAGE_BYTES)
        wires = [FuzzedConnection(http) for _ in range(4)]
        for each in wires[:3]:
            await each.feed(call("hold"), turns=5)
        await wires[3].feed(HEALTH, turns=5)
        found = [[each.status for each in wire.responses()] for wire in wires]
        assert found == [[], [], [503], [200]]
        (refused,) = wires[2].responses()
        assert refused.headers[b"retry-after"] == b"1"
        assert not refused.closes
        stage.released.set()
        await received(wires[0], 1)
        await wires[2].feed(call("echo"))
        assert [each.status for each in await received(wires[2], 2)] == [503, 200]
        for each in wires:
            await each.lose()
        await http.close(0)

    run(act)


def test_a_connection_that_serves_is_not_idle() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        await wire.feed(HEALTH + call("hold"), turns=5)
        assert wire.protocol not in stage.http.idle
        stage.released.set()
        await received(wire, 2)
        assert wire.protocol in stage.http.idle
        await wire.feed(HEALTH + HEALTH[:20])
        assert wire.protocol not in stage.http.idle

    run(act)


def test_a_client_is_not_asked_for_a_body_before_its_turn() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        expecting = call("echo").replace(b"\r\n", b"\r\nExpect: 100-continue\r\n", 1)
        session = await opened(stage)
        resumed = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 9-9\r\n"
        resumed += b"Mcp-Session-Id: %b\r\n\r\n" % session
        for count, first in enumerate((call("hold"), resumed)):
            await wire.feed(first + expecting)
            assert b"100 Continue" not in b"".join(wire.transport.written)
            stage.released.set()
            responses = await received(wire, 2 * count + 2)
            assert [each.interim for each in responses] == [()] * len(responses)
        await wire.feed(expecting)
        assert (await received(wire, 5))[-1].interim == (100,)

    run(act)


def test_request_read_between_two_responses_waits_for_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serve_next = HttpServerConnection._serve_next

    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        def read_first(protocol: HttpServerConnection) -> None:
            # In the same turn of the event loop the socket was readable.
            monkeypatch.undo()
            protocol.get_buffer(-1)[: len(HEALTH)] = HEALTH
            protocol.buffer_updated(len(HEALTH))
            serve_next(protocol)

        monkeypatch.setattr(HttpServerConnection, "_serve_next", read_first)
        await wire.feed(call("hold") + call("echo"), turns=5)
        stage.released.set()
        responses = await received(wire, 3)
        assert [each.body[:2] for each in responses] == [b'{"', b'{"', b"ok"]

    run(act)


def test_request_that_waits_is_not_served_once_the_connection_is_lost() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}}
        params["clientInfo"] = {"name": "test", "version": "1"}
        await wire.feed(call("hold") + plain(body_of("initialize", params, 1)), turns=5)
        stage.released.set()
        while not wire.responses():
            await asyncio.sleep(0)
        assert len(wire.responses()) == 1
        wire.protocol.abort()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not len(stage.endpoint.sessions)

    run(act)
