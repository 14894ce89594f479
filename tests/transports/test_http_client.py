"""The plain HTTP client that scripts use, against servers that send what a test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.http_client.connection import Exchange, HttpConnection
from tests.http_client.messages import header_paths, header_text, per_request_headers
from tests.http_client.old_sse import OldSseTransport
from tests.http_client.streamable import StreamableHttpTransport
from trunkline.errors import TransportError
from trunkline.jsonrpc import Policy
from trunkline.spec.revisions import V2026_07_28
from trunkline.testing.transport_contract import Observed, leftovers

VERSION = "io.modelcontextprotocol/protocolVersion"


# -- HTTP/1.1 --------------------------------------------------------------------------------


class Pipe(asyncio.Transport):
    """A socket that keeps what is written, and can be closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def write(self, data: Any) -> None: ...

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True

    close = abort


def read(*parts: bytes, ends: bool = False) -> tuple[Exchange, HttpConnection, list[Any]]:
    """Return an exchange whose response came in these parts, and how it ended."""
    connection, exchange, ended = HttpConnection(), Exchange("GET", "/", {}), []
    exchange.on_end = ended.append
    connection.connection_made(Pipe())
    connection.send(exchange, "host")
    for part in parts:
        connection.data_received(part)
    if ends:
        connection.connection_lost(None)
    return exchange, connection, ended


RESPONSES = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nX-A:2\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1, 2\r\n\r\n"
    b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: t\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-A: 1, 2\r\nContent-Length: 5\r\n\r\nhello",
]


@pytest.mark.parametrize("response", RESPONSES)
def test_a_response_is_the_same_however_it_is_split(response: bytes) -> None:
    for at in range(1, len(response)):
        exchange, connection, ended = read(response[:at], response[at:])
        assert (exchange.status, bytes(exchange.body)) == (200, b"hello")
        assert exchange.headers["x-a"] == "1, 2"
        assert ended == [None]
        assert connection.is_open
    exchange, _, ended = read(*(response[n : n + 1] for n in range(len(response))))
    assert (bytes(exchange.body), ended) == (b"hello", [None])


def test_a_response_without_a_length_ends_with_its_connection() -> None:
    exchange, _, ended = read(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", ends=True)
    assert (bytes(exchange.body), ended) == (b"hello", [None])


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-A : 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
    ],
)
def test_malformed_response_ends_the_connection_with_http_fault(response: bytes) -> None:
    _, connection, ended = read(response)
    assert [type(each).__name__ for each in ended] == ["HttpFault"]
    assert not connection.is_open


def test_a_response_that_is_cut_is_a_fault() -> None:
    for response in RESPONSES:
        for at in range(len(response)):
            _, _, ended = read(response[:at], ends=True)
            assert [type(each).__name__ for each in ended] == ["HttpFault"]


# -- headers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain text", "plain text"),
        ("", ""),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        (True, "true"),
        (42, "42"),
        (None, None),
        (["a"], None),
    ],
)
def test_a_value_is_written_as_a_header_can_carry_it(value: Any, text: str | None) -> None:
    assert header_text(value) == text


def test_headers_repeat_what_a_tool_declares() -> None:
    schema = {
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "inner": {"properties": {"deep": {"type": "boolean", "x-mcp-header": "Deep"}}},
        }
    }
    params = {"name": "f", "arguments": {"region": None, "inner": {"deep": False}}}
    message = {"method": "tools/call", "params": params}
    assert per_request_headers(message, "v", {"f": list(header_paths(schema))}) == {
        "MCP-Protocol-Version": "v",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "f",
        "Mcp-Param-Deep": "false",
    }


# -- conversations ---------------------------------------------------------------------------


class ReceivedRequest:
    """A request as the server reads it."""

    def __init__(self, head: str, body: bytes) -> None:
        first, *lines = head.split("\r\n")
        self.method, self.target, _ = first.split(" ")
        self.headers = {
            name.lower(): value.strip()
            for name, _, value in (each.partition(":") for each in lines)
        }
        self.message = json.loads(body) if body else None


Answering = Callable[[ReceivedRequest, asyncio.StreamWriter], None]


class Scripted:
    """A server that answers each request as a function says."""

    def __init__(self, answer: Answering) -> None:
        self.asked: list[ReceivedRequest] = []
        self.closed = 0
        self._answer = answer
        self._writers: list[asyncio.StreamWriter] = []
        self.changed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode()
                length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
                asked = ReceivedRequest(head, await reader.readexactly(int(length or 0)))
                if asked.target == "/healthz":
                    writer.write(response(204))
                    continue
                self.asked.append(asked)
                self._answer(asked, writer)
                self.changed.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed += 1
            self.changed.set()
        finally:
            writer.close()

    async def until(self, so: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not so():
                self.changed.clear()
                await self.changed.wait()

    def end(self) -> None:
        for writer in self._writers:
            writer.close()


def response(status: int, body: bytes = b"", content_type: str = "", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Some"]
    if status != 204:
        lines.append(f"Content-Length: {len(body)}")
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def events(text: str, *, ends: bool = True) -> bytes:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"%x\r\n%s\r\n" % (len(text), text.encode()) if text else b""
    return head + chunk + (b"0\r\n\r\n" if ends else b"")


def as_json(value: Any) -> bytes:
    return response(200, json.dumps(value).encode(), "application/json")


def result(asked: ReceivedRequest, value: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked.message["id"], "result": value or {}}


def request(id: Any, method: str, revision: str | None = None, **params: Any) -> bytes:
    if revision is not None:
        params["_meta"] = {VERSION: revision}
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return json.dumps(message).encode()


def notification(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


@asynccontextmanager
async def scripted_connection(
    answer: Answering, dial: Any = StreamableHttpTransport
) -> AsyncIterator[tuple[Observed, Scripted]]:
    """A connected client, and its server; nothing is left of either."""
    before = leftovers()
    scripted = Scripted(answer)
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = Observed(dial(f"http://127.0.0.1:{port}/mcp", Policy()))
    async with asyncio.timeout(60):
        await client.transport.connect()
        try:
            yield client, scripted
        finally:
            await client.transport.close()
            scripted.end()
            server.close()
            await server.wait_closed()
    await asyncio.sleep(0)
    after = leftovers()
    assert {name: after[name] - before[name] for name in ("tasks", "threads")} == {
        "tasks": set(),
        "threads": set(),
    }


def open_session(asked: ReceivedRequest, writer: asyncio.StreamWriter) -> bool:
    """Answer what opens and ends a session; return False for anything else."""
    method = asked.message and asked.message.get("method")
    if method == "initialize":
        body = json.dumps(result(asked, {"protocolVersion": "2025-11-25"})).encode()
        writer.write(response(200, body, "application/json", Mcp_Session_Id="s1"))
    elif method == "notifications/initialized":
        writer.write(response(202))
    elif asked.method == "GET" and "last-event-id" not in asked.headers:
        writer.write(events("", ends=False))
    elif asked.method == "DELETE":
        writer.write(response(200))
    else:
        return False
    return True


def test_a_session_is_opened_kept_and_ended() -> None:
    def answer(asked: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        if not open_session(asked, writer):
            writer.write(as_json(result(asked)))

    async def script() -> None:
        async with scripted_connection(answer) as (client, server):
            # All at once: what needs the session waits for it.
            client.transport.send(request(1, "initialize"))
            client.transport.send(notification("notifications/initialized"))
            client.transport.send(request(2, "ping"))
            first, second = await client.received(2)
            assert (json.loads(first)["id"], json.loads(second)["id"]) == (1, 2)
            await client.transport.close()
            assert client.ends == [None]
        methods = [(each.method, (each.message or {}).get("method")) for each in server.asked]
        assert methods == [
            ("POST", "initialize"),
            ("POST", "notifications/initialized"),
            ("GET", None),
            ("POST", "ping"),
            ("DELETE", None),
        ]
        assert "mcp-session-id" not in server.asked[0].headers
        for each in server.asked[1:]:
            assert each.headers["mcp-session-id"] == "s1"
            assert each.headers["mcp-protocol-version"] == "2025-11-25"
        assert server.asked[0].headers["accept"] == "application/json, text/event-stream"
        assert server.asked[2].headers["accept"] == "text/event-stream"

    asyncio.run(script())


def test_a_stream_that_ends_early_is_resumed_from_its_last_event() -> None:
    def answer(asked: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        if open_session(asked, writer):
            return
        if asked.method == "POST":
            note = notification("notifications/progress").decode()
            writer.write(events(f"id: a-0\nretry: 1\ndata:\n\nid: a-1\ndata: {note}\n\n"))
        elif asked.headers["last-event-id"] == "a-1":
            writer.write(events("id: a-2\ndata: {}\n\n"))
        else:
            writer.write(events('data: {"jsonrpc":"2.0","id":2,"result":{}}\n\n'))

    async def script() -> None:
        async with scripted_connection(answer) as (client, server):
            client.transport.send(request(1, "initialize"))
            client.transport.send(request(2, "tools/call"))
            frames = await client.received(4)
            assert json.loads(frames[-1])["id"] == 2
            resumed = [each.headers["last-event-id"] for each in server.asked if not each.message]
            assert resumed == ["a-1", "a-2"]

    asyncio.run(script())


def test_a_cancelled_request_of_the_per_request_era_closes_its_connection() -> None:
    def answer(asked: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        if asked.message["id"] == 2:
            writer.write(as_json(result(asked)))

    async def script() -> None:
        async with scripted_connection(answer) as (client, server):
            client.transport.send(request(1, "tools/call", V2026_07_28, name="a"))
            await server.until(lambda: len(server.asked) == 1)
            client.transport.send(notification("notifications/cancelled", requestId=1))
            await server.until(lambda: server.closed == 1)
            client.transport.send(request(2, "tools/call", V2026_07_28, name="b"))
            await client.received(1)
            assert [each.headers["mcp-name"] for each in server.asked] == ["a", "b"]

    asyncio.run(script())


@pytest.mark.parametrize("status", [400, 404, 503])
def test_an_error_with_a_message_is_delivered_and_one_without_ends_the_connection(
    status: int,
) -> None:
    refusal = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'

    def answer(asked: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        body = refusal if asked.message["id"] == 1 else b"<html>"
        writer.write(response(status, body, "application/json"))

    async def script() -> None:
        async with scripted_connection(answer) as (client, _):
            client.transport.send(request(1, "no/such", V2026_07_28))
            assert await client.received(1) == [refusal]
            client.transport.send(request(2, "no/such", V2026_07_28))
            error = await client.ended()
            assert isinstance(error, TransportError)
            assert str(status) in str(error)

    asyncio.run(script())


def test_a_response_without_its_answer_ends_the_connection() -> None:
    async def script() -> None:
        async with scripted_connection(lambda asked, writer: writer.write(events(""))) as (
            client,
            _,
        ):
            client.transport.send(request(1, "tools/list", V2026_07_28))
            assert "without an answer" in str(await client.ended())

    asyncio.run(script())


def test_the_older_transport_posts_to_the_place_that_its_stream_names() -> None:
    streams: list[asyncio.StreamWriter] = []

    def answer(asked: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        if asked.method == "GET":
            streams.append(writer)
            writer.write(events("event: endpoint\ndata: /messages?id=7\n\n", ends=False))
        else:
            data = f"event: message\ndata: {json.dumps(result(asked))}\n\n"
            streams[0].write(b"%x\r\n%s\r\n" % (len(data), data.encode()))
            writer.write(response(202, b"Accepted"))

    async def script() -> None:
        async with scripted_connection(answer, OldSseTransport) as (client, server):
            client.transport.send(request(1, "initialize"))
            (frame,) = await client.received(1)
            assert json.loads(frame)["id"] == 1
            assert [each.target for each in server.asked] == ["/mcp", "/messages?id=7"]
            streams[0].close()
            assert isinstance(await client.ended(), TransportError)

    asyncio.run(script())
