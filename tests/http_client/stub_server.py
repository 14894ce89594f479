"""An HTTP server whose every byte a test chooses, for what the HTTP client makes of it.

`StubServer` reads requests and hands each to `answer`. `McpStub` answers as an MCP server of either
era would, except where a test puts a function of its own:

    stub = McpStub()
    stub.on["tools/call"] = lambda ask: ask.status(503, {"Retry-After": "0"})
    async with stub, Client(stub.url) as client: ...
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, Self

SESSION: Final = "2025-11-25"
PER_REQUEST: Final = "2026-07-28"
INFO: Final = {"name": "stub", "version": "1"}
# Seconds for anything that could hang.
WAIT: Final = 20.0


class Asked:
    """One request, and how to answer it."""

    def __init__(
        self, head: bytes, body: bytes, connection: int, writer: asyncio.StreamWriter
    ) -> None:
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        self.method, self.path, _ = first.split(" ")
        self.headers = {
            name.lower(): value for name, value in (line.split(": ", 1) for line in lines)
        }
        self.raw = head + body
        self.body = body
        # Counted from 1, in order of acceptance.
        self.connection = connection
        self.writer = writer

    @property
    def message(self) -> Any:
        return json.loads(self.body)

    @property
    def id(self) -> Any:
        return self.message.get("id")

    def send(self, data: bytes) -> None:
        """Write bytes of a response."""
        self.writer.write(data)

    def status(
        self, status: int, headers: dict[str, str] | None = None, body: bytes | str = b""
    ) -> None:
        """Answer with a whole response."""
        body = body.encode() if isinstance(body, str) else body
        self.send(head_of(status, {**(headers or {}), "Content-Length": str(len(body))}) + body)

    def json(self, message: Any, status: int = 200, **headers: str) -> None:
        body = json.dumps(message)
        self.status(status, {"Content-Type": "application/json", **headers}, body)

    def result(self, result: Any, **headers: str) -> None:
        """Answer with a result."""
        self.json({"jsonrpc": "2.0", "id": self.id, "result": result}, **headers)

    def error(self, code: int, message: str, status: int = 200) -> None:
        error = {"code": code, "message": message}
        self.json({"jsonrpc": "2.0", "id": self.id, "error": error}, status)

    def text(self, text: str) -> None:
        """Answer with the result of a tool."""
        self.result(tool_text(text))

    def stream(self, *chunks: str, ends: bool = True) -> None:
        """Answer with events, as they are given."""
        headers = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        self.send(head_of(200, headers))
        for each in chunks:
            self.chunk(each)
        if ends:
            self.send(b"0\r\n\r\n")

    def chunk(self, text: str) -> None:
        data = text.encode()
        self.send(b"%x\r\n%b\r\n" % (len(data), data))

    def drop(self) -> None:
        """Close the connection."""
        self.writer.close()

    def reset(self) -> None:
        self.writer.transport.abort()


Answer = Callable[[Asked], Awaitable[object] | object]


def head_of(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Stub", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def event(message: Any, *, id: str = "", comment: str = "") -> str:
    """Return an event that carries a message."""
    parts = [f": {comment}\n\n" if comment else "", f"id: {id}\n" if id else ""]
    return "".join(parts) + f"data: {json.dumps(message)}\n\n"


def reply_to(asked: Asked, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked.id, "result": result}


def tool_text(text: str) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": text}]}


class StubServer:
    """Accepts connections on a loopback port, and has each request answered by `answer`."""

    def __init__(self, answer: Answer, *, context: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.requests: list[Asked] = []
        self.connections = 0
        self.open = 0
        # What `answer` failed with; raised at the end.
        self.failures: list[BaseException] = []
        self.port = 0
        self._context = context
        self._tasks: set[asyncio.Task[Any]] = set()
        self._arrived = asyncio.Event()

    @property
    def url(self) -> str:
        return f"{'https' if self._context else 'http'}://127.0.0.1:{self.port}/mcp"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, ssl=self._context
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self.failures and kind is None:
            raise self.failures[0]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.open += 1
        try:
            await self._serve(reader, writer, self.connections)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has closed, or the test is over
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        while not writer.is_closing():
            head = await reader.readuntil(b"\r\n\r\n")
            asked = Asked(head, b"", number, writer)
            if size := int(asked.headers.get("content-length", "0")):
                asked = Asked(head, await reader.readexactly(size), number, writer)
            self.requests.append(asked)
            self._arrived.set()
            try:
                answered = self.answer(asked)
                if isinstance(answered, Awaitable):
                    await answered
            except Exception as error:  # noqa: BLE001  # raised at the end of the test
                self.failures.append(error)
                return
            with suppress(ConnectionError):
                await writer.drain()

    async def until(self, so: Callable[[], bool]) -> None:
        """Wait until something is so, which a request or a turn of the loop brings about."""
        async with asyncio.timeout(WAIT):
            while not so():
                self._arrived.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._arrived.wait(), 0.01)


class McpStub(StubServer):
    """An MCP server of one revision; `on` has what a test answers by itself, by method."""

    def __init__(
        self,
        revision: str = PER_REQUEST,
        *,
        tools: list[dict[str, Any]] | None = None,
        capabilities: dict[str, Any] | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(self._answer, context=context)
        self.capabilities = {"tools": {}} if capabilities is None else capabilities
        self.revision = revision
        self.tools = (
            [{"name": "echo", "inputSchema": {"type": "object"}}] if tools is None else tools
        )
        # By the method of a message, or of HTTP; each is used for every such request.
        self.on: dict[str, Answer] = {}
        self.sessions = 0

    def asked(self, method: str) -> list[Asked]:
        """Return the requests with a method of a message, or of HTTP."""
        return [each for each in self.requests if method_of(each) == method]

    def _answer(self, asked: Asked) -> Awaitable[object] | object:
        method = method_of(asked)
        found = self.on.get(method)
        if found is None:
            found = getattr(self, "_" + method.replace("/", "_").lower(), self._otherwise)
        return found(asked)

    def _otherwise(self, asked: Asked) -> None:
        method = method_of(asked)
        if asked.method != "POST":
            asked.status(200 if asked.method == "DELETE" else 405)
        elif "id" in asked.message and method:
            asked.error(-32601, "Method not found", 404)
        else:
            asked.status(202)

    def _server_discover(self, asked: Asked) -> None:
        if self.revision != PER_REQUEST:
            asked.error(-32601, "Method not found", 404)
            return
        meta = {"io.modelcontextprotocol/serverInfo": INFO}
        lives = {"ttlMs": 0, "cacheScope": "private", "_meta": meta, "resultType": "complete"}
        asked.result(
            {"supportedVersions": [self.revision], "capabilities": self.capabilities, **lives}
        )

    def _initialize(self, asked: Asked) -> None:
        self.sessions += 1
        result = {"protocolVersion": self.revision, "capabilities": self.capabilities}
        asked.result({**result, "serverInfo": INFO}, **{"Mcp-Session-Id": f"s{self.sessions}"})

    def _ping(self, asked: Asked) -> None:
        asked.result({})

    def _tools_list(self, asked: Asked) -> None:
        lives = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
        asked.result({"tools": self.tools, **lives})

    def _tools_call(self, asked: Asked) -> None:
        asked.text("done")


def method_of(asked: Asked) -> str:
    """Return the method of a message, empty for a response; of HTTP for other requests."""
    if asked.method != "POST":
        return asked.method
    message = asked.message
    return str(message.get("method", "")) if isinstance(message, dict) else ""
