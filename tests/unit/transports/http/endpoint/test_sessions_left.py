"""`HttpSession` and `SessionTable`: what a client that fails or goes away leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.fuzz.fuzz_http import (
    LIMITS,
    REVISION,
    FuzzedConnection,
    FuzzedHttpServer,
    body_of,
    opened,
    plain,
    scene,
)
from tests.rigs.messages import INFO
from trunkline import HttpLimits
from trunkline.accounts.shares import ClientShares
from trunkline.transports.http.endpoint.sessions import HttpSession, SessionTable


def run(act: Callable[[FuzzedHttpServer], Awaitable[None]]) -> None:
    """Act on a server that runs; end what is left."""
    stage = scene()

    async def acted() -> None:
        stage.released = asyncio.Event()
        async with asyncio.timeout(10):
            try:
                await act(stage)
            finally:
                for connection in list(stage.http.connections):
                    connection.abort()
                for session in stage.endpoint.sessions:
                    session.on_end()
                while len(stage.endpoint.sessions) or stage.http.connections:
                    await asyncio.sleep(0)

    stage.runner.run(acted())
    assert stage.faults == []


def only_session(stage: FuzzedHttpServer) -> HttpSession:
    (session,) = stage.endpoint.sessions
    assert isinstance(session, HttpSession)
    return session


@pytest.mark.parametrize(
    ("params", "id", "status"),
    [
        ({"protocolVersion": 7, "capabilities": {}, "clientInfo": INFO}, 1, 200),
        ({}, 1, 200),
        ({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": INFO}, None, 202),
    ],
)
def test_an_initialize_that_fails_leaves_no_session(
    params: dict[str, object], id: int | None, status: int
) -> None:
    async def act(stage: FuzzedHttpServer) -> None:
        wire = FuzzedConnection(stage.http)
        await wire.feed(plain(body_of("initialize", params, id)))
        while not wire.responses() or len(stage.endpoint.sessions) or stage.service._ending:
            await asyncio.sleep(0)
        (response,) = wire.responses()
        assert response.status == status
        assert b"mcp-session-id" not in response.headers
        assert not stage.service._sessions

    run(act)


def test_a_stream_that_another_has_replaced_is_forgotten_with_its_client() -> None:
    async def act(stage: FuzzedHttpServer) -> None:
        id = await opened(stage)
        head = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: %b\r\n\r\n" % id
        wires = [FuzzedConnection(stage.http) for _ in range(3)]
        for wire in wires:
            await wire.feed(head, turns=2)
        session = only_session(stage)
        assert len(session.exchanges) == 3
        for wire in wires[:2]:
            await wire.lose()
        assert len(session.exchanges) == 1
        # The last can be resumed.
        await wires[2].lose()
        assert len(session.exchanges) == 1
        assert not session.is_busy

    run(act)


def test_a_session_is_idle_from_the_end_of_its_last_request() -> None:
    async def act(stage: FuzzedHttpServer) -> None:
        id = await opened(stage)
        wire = FuzzedConnection(stage.http)
        await wire.feed(
            plain(
                body_of("tools/call", {"name": "hold", "arguments": {"text": ""}}, 1),
                b"Mcp-Session-Id: %b\r\n" % id,
            ),
            turns=2,
        )
        session, idle = only_session(stage), LIMITS.session_idle
        began = session.used
        stage.endpoint.reap(began + 3 * idle)
        stage.released.set()
        while session.is_busy:
            await asyncio.sleep(0)
        stage.endpoint.reap(began + 4 * idle - 1)
        assert only_session(stage) is session
        stage.endpoint.reap(began + 4 * idle + 1)
        assert not len(stage.endpoint.sessions)

    run(act)


def test_a_session_gives_way_whose_streams_have_no_client() -> None:
    async def act(stage: FuzzedHttpServer) -> None:
        id = await opened(stage)
        wire = FuzzedConnection(stage.http)
        head = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: %b\r\n\r\n" % id
        await wire.feed(head, turns=2)
        session = only_session(stage)
        table = SessionTable(HttpLimits(sessions=1), ClientShares())
        assert table.add(session)
        other = stage.app._core.runtime.accounts.open("other")
        assert table.new(None, 0.0, other) is None
        await wire.lose()
        assert session.exchanges
        assert table.new(None, 0.0, other) is not None
        assert table.ended["evicted"] == 1

    run(act)
