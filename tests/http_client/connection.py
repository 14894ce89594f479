"""HTTP/1.1 for a test client: requests, responses as they arrive, and a few kept connections.

Strict about what a server sends: a response that is not well formed, or bytes that answer
nothing, end the connection with an `HttpFault`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from tests.rigs.http_requests import request_head
from trunkline.errors import TransportError
from trunkline.transports.base import ignore

# How long a step may take that a server answers at once, in seconds. Far beyond what it takes on
# a busy machine.
STEP_TIMEOUT_S: Final = 30.0
# Connections that are kept for the next request.
_MAX_IDLE: Final = 4
_MAX_HEAD_BYTES: Final = 64 * 1024


class HttpFault(TransportError):
    """The server sent what is not HTTP, or ended before its response was complete."""


class Exchange:
    """One request, and its response as it arrives."""

    def __init__(
        self,
        method: str,
        target: str,
        headers: dict[str, str],
        body: bytes | None = None,
    ) -> None:
        self.method = method
        self.target = target
        self.sent_headers = headers
        self.sent_body = body
        self.status = 0
        # Names in lower case.
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.on_head: Callable[[], object] = ignore
        # Called with each part of the body, instead of keeping it, if it is set.
        self.on_data: Callable[[bytes], object] | None = None
        # Called with None after the whole response, else with the fault.
        self.on_end: Callable[[HttpFault | None], object] = ignore
        self.has_head = asyncio.Event()
        self.is_over = asyncio.Event()
        self.connection: HttpConnection | None = None

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def begin(self, status: int, headers: dict[str, str]) -> None:
        self.status, self.headers = status, headers
        self.on_head()
        self.has_head.set()

    def receive(self, data: bytes) -> None:
        if self.on_data is None:
            self.body += data
        else:
            self.on_data(data)

    def end(self, fault: HttpFault | None) -> None:
        if self.is_over.is_set():
            return
        self.connection = None
        self.on_end(fault)
        self.has_head.set()
        self.is_over.set()

    def abort(self) -> None:
        """Close the connection; the end is not reported."""
        self.on_end = ignore
        if self.connection is not None:
            self.connection.abort()
        self.end(None)


class HttpConnection(asyncio.Protocol):
    """A keep-alive connection: one request at a time, and its response."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._buffer = bytearray()
        # Reads one part of a response, and returns False if it needs more bytes.
        self._step: Callable[[], bool] = self._read_head
        self._left = 0
        self._keeps_alive = True
        self.lost = asyncio.Event()
        # Called when a response is complete and the connection can be used again.
        self.on_idle: Callable[[HttpConnection], object] = ignore
        self.on_lost: Callable[[HttpConnection], object] = ignore

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, exchange: Exchange, host: str) -> None:
        """Write a request."""
        assert self._transport is not None
        assert self._exchange is None
        exchange.connection = self
        self._exchange = exchange
        body = exchange.sent_body
        headers = {"Host": host, **exchange.sent_headers}
        if body is not None:
            headers["Content-Length"] = str(len(body))
        head = request_head(exchange.method, exchange.target, headers)
        self._transport.write(head + (body or b""))

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            if self._exchange is None:
                raise HttpFault("the server sent bytes that answer nothing")
            while self._buffer and self._exchange is not None and self._step():
                pass
        except HttpFault as fault:
            self._finish(fault)
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._exchange is not None:
            is_complete = self._step == self._read_to_the_end and exc is None
            why = f"the connection ended during the response: {exc or 'end of input'}"
            self._finish(None if is_complete else HttpFault(why))
        self.lost.set()
        self.on_lost(self)

    # The parts of a response

    def _read_head(self) -> bool:
        assert self._exchange is not None
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MAX_HEAD_BYTES:
                raise HttpFault("the head of a response is too long")
            return False
        first, *lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        version, _, rest = first.partition(" ")
        code = rest[:3]
        if version not in ("HTTP/1.1", "HTTP/1.0") or not code.isdigit():
            raise HttpFault(f"not a status line: {first!r}")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or name != name.strip() or not name:
                raise HttpFault(f"not a header: {line!r}")
            name = name.lower()
            value = value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        status = int(code)
        if status < 200:
            return True  # an interim response
        kept = headers.get("connection", "").lower()
        self._keeps_alive = kept != "close" and (version == "HTTP/1.1" or kept == "keep-alive")
        self._exchange.begin(status, headers)
        self._choose_body(status, headers)
        return True

    def _choose_body(self, status: int, headers: dict[str, str]) -> None:
        if self._exchange is None:  # aborted by what it delivered
            return
        length = headers.get("content-length")
        is_chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        if is_chunked and length is not None:
            raise HttpFault("a response has both a length and chunks")
        if is_chunked:
            self._step = self._read_chunk_size
        elif status in (204, 304) or self._exchange.method == "HEAD":
            self._finish(None)
        elif length is None:
            self._keeps_alive = False
            self._step = self._read_to_the_end
        elif not length.isdigit():
            raise HttpFault(f"not a length: {length!r}")
        elif int(length) == 0:
            self._finish(None)
        else:
            self._left = int(length)
            self._step = self._read_length

    def _read_length(self) -> bool:
        self._take()
        if not self._left:
            self._finish(None)
        return True

    def _read_to_the_end(self) -> bool:
        self._left = len(self._buffer)
        self._take()
        return True

    def _read_chunk_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        try:
            self._left = int(line.partition(b";")[0], 16)
        except ValueError:
            raise HttpFault(f"not the size of a chunk: {line!r}") from None
        self._step = self._read_chunk if self._left else self._read_trailer
        return True

    def _read_chunk(self) -> bool:
        self._take()
        if not self._left:
            self._step = self._read_chunk_end
        return True

    def _read_chunk_end(self) -> bool:
        line = self._line()
        if line is None:
            return False
        if line:
            raise HttpFault("a chunk is longer than its size")
        self._step = self._read_chunk_size
        return True

    def _read_trailer(self) -> bool:
        line = self._line()
        if line is None:
            return False
        if not line:
            self._finish(None)
        return True

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _take(self) -> None:
        """Give the exchange what has come of its body."""
        part = bytes(self._buffer[: self._left])
        del self._buffer[: len(part)]
        self._left -= len(part)
        if self._exchange is not None:
            self._exchange.receive(part)

    def _finish(self, fault: HttpFault | None) -> None:
        exchange, self._exchange = self._exchange, None
        self._step = self._read_head
        if not self._keeps_alive and self._transport is not None:
            self._transport.close()
        elif fault is None and self.is_open:
            if self._buffer:
                fault = HttpFault("the server sent bytes after its response")
                self.abort()
            else:
                self.on_idle(self)
        if exchange is not None:
            exchange.end(fault)


class Url(NamedTuple):
    """Where a server is."""

    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, text: str) -> Url:
        parts = urlsplit(text)
        if parts.scheme != "http" or parts.hostname is None or parts.port is None:
            raise ValueError(f"a test client connects to http://HOST:PORT/PATH, not to {text!r}")
        return cls(parts.hostname, parts.port, parts.path or "/")

    def __str__(self) -> str:
        return f"http://{self.authority}{self.path}"

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Pool:
    """The connections to one server; a few idle ones are kept."""

    def __init__(self, url: Url) -> None:
        self._url = url
        self._idle: list[HttpConnection] = []
        self._all: set[HttpConnection] = set()

    async def send(self, exchange: Exchange) -> None:
        """Write a request on an idle connection, or on a new one.

        Raises:
            TransportError: no connection can be opened.
        """
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                break
        else:
            connection = await self._open()
        connection.send(exchange, self._url.authority)

    async def _open(self) -> HttpConnection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(STEP_TIMEOUT_S):
                _, connection = await loop.create_connection(
                    HttpConnection, self._url.host, self._url.port
                )
        except (OSError, TimeoutError) as error:
            raise TransportError(f"cannot connect to {self._url}: {error}") from error
        self._all.add(connection)
        connection.on_lost = self._all.discard
        # The first request makes sure that the server has accepted the connection. Else a message
        # that is written later, on another one, would be read before.
        first = Exchange("GET", "/healthz", {})
        connection.send(first, self._url.authority)
        await within_step(first.is_over.wait(), "the first response on a connection")
        connection.on_idle = self._keep
        if not connection.is_open:
            raise TransportError(f"{self._url} closes every connection after one request")
        return connection

    async def warm_up(self) -> None:
        """Open a connection ahead of its use."""
        self._keep(await self._open())

    def _keep(self, connection: HttpConnection) -> None:
        if len(self._idle) < _MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.abort()

    async def close(self) -> None:
        """Close all connections at once."""
        for connection in list(self._all):
            connection.abort()
            await connection.lost.wait()
        self._idle.clear()


async def within_step(work: Coroutine[Any, Any, Any], what: str) -> None:
    """Wait for what a server does at once.

    Raises:
        TransportError: it did not.
    """
    try:
        async with asyncio.timeout(STEP_TIMEOUT_S):
            await work
    except TimeoutError:
        raise TransportError(f"{what} did not come within {STEP_TIMEOUT_S:g} s") from None
