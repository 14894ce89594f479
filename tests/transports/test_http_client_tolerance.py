"""`Client` over HTTP with servers that answer in unusual ways."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from trunkline import AuthorizationFailed, Client, TrunklineError
from trunkline.transports.addresses import Http
from trunkline.transports.http.client.pool import IDLE_TIMEOUT_S, ConnectionPool

INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "serverInfo": {"name": "scripted", "version": "1"},
}
# Status, headers and body of a response.
Response = tuple[int, dict[str, str], Any]
Answer = Callable[[str, dict[str, Any]], Response]


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[int]:
    """Serve connections on a port, and leave none of them behind."""
    running: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client closed a connection that it did not need
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            running.discard(task)

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as listener:
        yield listener.sockets[0].getsockname()[1]
        async with asyncio.timeout(10):
            while running:
                await asyncio.wait(running)


class Scripted:
    """An HTTP server that answers each request as a function says, one per connection."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.requests: list[str] = []
        self.targets: set[str] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lengths = [line for line in head.split("\r\n") if line.startswith("content-length: ")]
        body = await reader.readexactly(int(lengths[0].split()[1]) if lengths else 0)
        message = json.loads(body) if body else {}
        self.targets.add(head.split()[1])
        self.requests.append(message.get("method") or head.split()[0])
        status, headers, content = self._answer(head.split()[0], message)
        text = b"" if content is None else json.dumps(content).encode()
        lines = [f"HTTP/1.1 {status} X", "connection: close", f"content-length: {len(text)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("".join(f"{line}\r\n" for line in [*lines, ""]).encode() + text)
        await writer.drain()


@asynccontextmanager
async def scripted(answer: Answer) -> AsyncIterator[tuple[str, Scripted]]:
    """Serve; yield the URL, without a path, and the server."""
    server = Scripted(answer)
    async with listening(server.serve) as port:
        yield f"http://127.0.0.1:{port}", server


def reply(message: dict[str, Any], result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def json_of(body: Any, status: int = 200, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, {"content-type": "application/json", **named}, body


def test_a_body_in_answer_to_a_notification_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    def answer(method: str, message: dict[str, Any]) -> Response:
        if message.get("method") == "initialize":
            return json_of(reply(message, INITIALIZED), mcp_session_id="s")
        if message.get("method") == "tools/list":
            return json_of(reply(message, {"tools": []}))
        if message:
            return json_of({"jsonrpc": "2.0", "result": {}})
        return 405, {}, None

    async def main() -> None:
        async with (
            scripted(answer) as (url, server),
            Client(url, revision="2025-11-25") as client,
        ):
            assert await client.list_tools() == []
            # The stream of the session is asked for once the notification was accepted.
            await until_async(lambda: "GET" in server.requests)

    asyncio.run(main())
    assert "invalid message" not in caplog.text


def test_every_request_has_the_query_of_the_url_and_no_error_shows_it() -> None:
    def answer(method: str, message: dict[str, Any]) -> Response:
        if message.get("method") == "initialize":
            return json_of(reply(message, INITIALIZED), mcp_session_id="s")
        return (202, {}, None) if message.get("method") != "tools/list" else (500, {}, None)

    async def main() -> None:
        async with scripted(answer) as (url, server):
            async with Client(f"{url}/a?key=hunter2", revision="2025-11-25") as client:
                with pytest.raises(TrunklineError) as caught:
                    await client.list_tools()
                assert "hunter2" not in f"{caught.value} {client!r}"
            assert server.targets == {"/a?key=hunter2"}
            assert "DELETE" in server.requests

    asyncio.run(main())


@pytest.mark.parametrize("error", ["invalid_token", None, 5, ["a"]])
def test_error_body_that_is_not_json_rpc_is_raised_with_its_status(error: Any) -> None:
    def answer(method: str, message: dict[str, Any]) -> Response:
        return json_of({"error": error, "error_description": "no token"}, 401)

    async def main() -> None:
        async with scripted(answer) as (url, _):
            with pytest.raises(AuthorizationFailed, match="401"):
                await Client(url, revision="2026-07-28").connect()

    asyncio.run(main())


def test_a_connection_that_was_idle_for_too_long_is_not_used_though_no_timer_has_run() -> None:
    async def main() -> None:
        closed = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            closed.set()

        async with listening(serve) as port:
            pool = ConnectionPool(
                Http("127.0.0.1", port), connections=2, connect_timeout=10, context=None, proxy=None
            )
            old, fresh = await pool.open(), await pool.open()
            pool.release(old)
            pool.release(fresh)
            # As if the event loop had been blocked since.
            old.idle_since -= IDLE_TIMEOUT_S
            assert pool.take() is fresh
            assert pool.take() is None
            await asyncio.wait_for(closed.wait(), 10)
            await pool.close()

    # uvicorn, hypercorn and Node close a connection that is idle for 5 s.
    assert IDLE_TIMEOUT_S < 5
    asyncio.run(main())
