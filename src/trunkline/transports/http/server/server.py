"""An HTTP/1.1 server on asyncio and httptools, for an `Endpoint`.

`HttpServer` accepts connections and bounds them; an `HttpProtocol` reads the requests of one
connection and writes their responses, one at a time.

The rules that live here, and only here:

* Requests on one connection are answered in order. While one is served, further ones wait, and
  beyond `_MAX_PIPELINED` the connection is not read.               [RFC 9112, section 9.3.2]
* A response of known length is one write. A stream is sent in chunks; to a client of HTTP/1.0 it
  ends with the connection.                                         [RFC 9112, section 7.1]
* A message whose length is ambiguous is refused, and its connection closed: two readers that
  disagree on where a message ends are a way around a proxy.        [RFC 9112, sections 5, 6.3]
* The head of a request, its body, an idle connection and a client that does not read each have a
  timeout. When all connections are in use, the longest idle one gives way; without one, the new
  connection is answered 503 and closed. So is a request beyond `HttpLimits.requests`, except those
  for health checks; its connection stays open.
* A target in absolute form counts as its Host header does.         [RFC 9112, section 3.2.2]
* A connection is handed to another protocol if the routes serve one there. The client has to wait
  for that: data that follows its request is refused.               [RFC 9110, section 7.8]
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

import httptools

from ....exception_text import as_redacted
from ....jsonrpc.framing.framing import Oversize, head_size
from ....redaction import show
from ....spec.http_conditions import HTTP
from ..endpoint.endpoint import HEALTH_PATH, READY_PATH
from ..endpoint.exchange import Exchange
from ..request import HttpRequest, read_headers
from ..response import INTERNAL_ERROR, JSON_HEADERS, TOO_MANY_REQUESTS, Refusal, overloaded
from .known_heads import MAX_HEAD_BYTES, MAX_KNOWN_BYTES, MAX_VALUE_BYTES, KnownHeads

if TYPE_CHECKING:
    from ..gate.admission import Admission
    from ..response import Headers, Responder
    from ..settings import HttpLimits

__all__ = ["ConnectionCounters", "HttpServer", "Routes", "ServedConnection"]

_log: Final = logging.getLogger("trunkline.http")
_access: Final = logging.getLogger("trunkline.access")

# One buffer for all connections of a loop: reading and processing are one step.
_READ_BYTES: Final = 256 * 1024
# Requests of one connection that wait for the response before theirs.
_MAX_PIPELINED: Final = 16
# The same of one read, which cannot be stopped halfway, and of their bodies.
_MAX_WAITING: Final = 256
_MAX_WAITING_BYTES: Final = 1024 * 1024
# The longest request target.
_MAX_TARGET_BYTES: Final = 8192
# Above this many unread bytes a client reads slowly.
_SLOW_BYTES: Final = 64 * 1024
# Idle connections that are closed when descriptors run out.
_MADE_ROOM: Final = 8
# Seconds between two looks at timeouts and streams.
_TICK_S: Final = 1.0
# Seconds for a client to read the answer to a request that was not read to its end.
_LINGER_S: Final = 1.0
# Seconds after which a request that was not read to its end gives way to a new connection.
_SLOW_REQUEST_S: Final = 2.0
# Seconds in which a client takes none of what it was sent before it is disconnected.
_UNREAD_TIMEOUT_S: Final = 60.0

_REASONS: Final = {each.value: each.phrase.encode() for each in HTTPStatus}
_REASONS[HTTP["body-too-large"].status] = b"Content Too Large"

_FRAMING: Final = (b"content-length", b"transfer-encoding")

_DAYS: Final = (b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun")
_MONTHS: Final = (
    *(b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun"),
    *(b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"),
)

# What a connection is doing.
_IDLE: Final = 0  # between requests
_HEAD: Final = 1
_BODY: Final = 2
_SERVING: Final = 3
_CLOSING: Final = 4
_NEXT: Final = 5  # a response has ended, and a request that waits is about to be served


class Routes(Protocol):
    """What a listener serves: an `Endpoint`, or less."""

    @property
    def admission(self) -> Admission:
        """The gate of the listener."""
        ...

    def admit(self, request: HttpRequest) -> Refusal | None:
        """Decide on a request by its head; None lets it in."""
        ...

    def handle(self, request: HttpRequest, body: bytes | Oversize, responder: Responder) -> None:
        """Serve a request that was admitted; it is answered through the responder."""
        ...

    def refuse(self, responder: Responder, refusal: Refusal, request: HttpRequest | None) -> None:
        """Answer a request with an HTTP error."""
        ...

    def reap(self, now: float) -> None:
        """End what has expired; called every second."""
        ...


class ServedConnection(Protocol):
    """A connection of the server, in HTTP or in the protocol it was handed to."""

    # The request that is served, if it is in HTTP.
    exchange: Exchange | None

    def tick(self, now: float) -> None:
        """Apply the timeouts; called every second."""
        ...

    def drop(self) -> None:
        """Close an idle connection."""
        ...

    def abort(self) -> None:
        """Close at once, whatever was not written."""
        ...


class ConnectionCounters(Protocol):
    """Counts connections that were refused, and idle ones that gave way to others."""

    refused_connections: int
    dropped_connections: int


class HttpServer:
    """The connections of one listener."""

    def __init__(
        self,
        endpoint: Routes,
        limits: HttpLimits,
        message_size: int | None,
        *,
        is_secure: bool = False,
        access_log: bool = False,
        counters: ConnectionCounters | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.limits = limits
        self.message_size = message_size
        # Requests up to this size are compared with those before. Where the limits on
        # headers are below what a known head may have, each is parsed.
        self.known_bytes = min(MAX_KNOWN_BYTES, message_size or MAX_KNOWN_BYTES)
        if limits.header_bytes < MAX_HEAD_BYTES or limits.header_line_bytes < MAX_VALUE_BYTES:
            self.known_bytes = 0
        self.is_secure = is_secure
        self.access_log = access_log
        self.loop = asyncio.get_running_loop()
        self.buffer = memoryview(bytearray(_READ_BYTES))
        # Returns True if a request asks for another protocol that is served where it asks.
        self.is_upgrade: Callable[[HttpRequest], bool] = lambda _: False
        self.connections: dict[ServedConnection, None] = {}
        # Those between two requests, the longest idle first.
        self.idle: dict[HttpProtocol, None] = {}
        self.is_stopping = False
        # A connection has one request at a time: more of them than connections do not exist.
        self.is_limited = limits.requests < limits.connections
        self._counters = counters
        self.now = self.loop.time()
        self.head = self.json_head = b""
        self._set_date()
        self._closed: asyncio.Future[None] | None = None
        self._ticks = 0
        self._timer: asyncio.TimerHandle | None = self.loop.call_later(_TICK_S, self._tick)

    def protocol(self) -> HttpProtocol:
        """Return the protocol of a new connection."""
        return HttpProtocol(self)

    @property
    def in_flight(self) -> int:
        """The number of requests that are being served."""
        return sum(each.exchange is not None for each in self.connections)

    def admit(self, connection: HttpProtocol) -> bool:
        """Count a new connection, perhaps in place of an idle one; return False if that fails."""
        if len(self.connections) >= self.limits.connections:
            oldest = list(islice(self.idle, 1)) or self._slow(1)
            if not oldest:
                if self._counters is not None:
                    self._counters.refused_connections += 1
                return False
            self._count_dropped()
            oldest[0].drop()
        self.connections[connection] = None
        return True

    def is_busy_for(self, request: HttpRequest) -> bool:
        """Return True if too many connections have a request, and this is not a health check."""
        active = len(self.connections) - len(self.idle)
        return active > self.limits.requests and request.path not in (HEALTH_PATH, READY_PATH)

    def _slow(self, most: int) -> list[HttpProtocol]:
        """Return connections that have been sending one request for long, the longest first."""
        since = self.loop.time() - _SLOW_REQUEST_S
        found = [
            each
            for each in self.connections
            if isinstance(each, HttpProtocol) and each.is_reading_request and each.began() <= since
        ]
        return sorted(found, key=HttpProtocol.began)[:most]

    def make_room(self) -> bool:
        """Close some connections, because descriptors ran out; return False without any.

        They are idle, or have been sending one request for long.
        """
        oldest = list(islice(self.idle, _MADE_ROOM)) or self._slow(_MADE_ROOM)
        for each in oldest:
            self._count_dropped()
            each.abort()
        return bool(oldest)

    def _count_dropped(self) -> None:
        if self._counters is not None:
            self._counters.dropped_connections += 1

    def forget(self, connection: ServedConnection) -> None:
        """Forget a closed connection."""
        self.connections.pop(connection, None)
        if isinstance(connection, HttpProtocol):
            self.idle.pop(connection, None)
        if not self.connections and self._closed is not None and not self._closed.done():
            self._closed.set_result(None)

    def stop(self) -> None:
        """Close idle connections; others close after the response they wait for."""
        self.is_stopping = True
        for each in list(self.idle):
            each.close()

    async def close(self, seconds: float) -> None:
        """Wait for the clients to read their responses, then close every connection."""
        self.stop()
        if self.connections:
            self._closed = self.loop.create_future()
            await asyncio.wait([self._closed], timeout=seconds)
        for each in list(self.connections):
            each.abort()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self.now = now = self.loop.time()
        self._set_date()
        self._timer = self.loop.call_later(_TICK_S, self._tick)
        for each in list(self.connections):
            try:
                each.tick(now)
            except Exception as error:  # noqa: BLE001  # a defect; the other connections go on
                _log.error("internal error of an HTTP connection\n%s", as_redacted(error))
        self._ticks += 1
        self.endpoint.reap(now)

    def _set_date(self) -> None:
        self.head = b"\r\ndate: " + http_date(time.time()) + b"\r\n"
        # All of the most frequent response up to its length.
        lines = [*(b"%b: %b" % each for each in JSON_HEADERS), b"content-length: "]
        self.json_head = b"HTTP/1.1 200 OK" + self.head + b"\r\n".join(lines)


class HttpProtocol(asyncio.BufferedProtocol):
    """One connection: reads requests, and is the responder of the one that is served."""

    __slots__ = (
        "_began",
        "_body",
        "_body_bytes",
        "_chunks",
        "_has_upgrade",
        "_head_bytes",
        "_headers",
        "_is_chunked",
        "_is_discarding",
        "_is_reading",
        "_is_slow",
        "_is_upgrade",
        "_keeps_alive",
        "_known",
        "_learnt",
        "_length",
        "_logged",
        "_out",
        "_parser",
        "_peer",
        "_queue",
        "_queue_bytes",
        "_reads",
        "_refusal",
        "_request",
        "_serves_head",
        "_since",
        "_state",
        "_status",
        "_target",
        "_transport",
        "_unread",
        "_unread_since",
        "_version",
        "exchange",
        "server",
    )

    def __init__(self, server: HttpServer) -> None:
        self.server = server
        self.exchange: Exchange | None = None
        self._transport: Any = None
        self._peer = ""
        self._parser: Any = httptools.HttpRequestParser(self)
        # What the connection does, and since when.
        self._state = _IDLE
        self._since = self._began = 0.0
        # The request that is read, perhaps while another is served: which part of it, and the
        # bytes since its start, its head or the last of its body.
        self._reads = _IDLE
        self._request: HttpRequest | None = None
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._body: bytes | None = None
        self._chunks: list[bytes] | None = None
        self._body_bytes = 0
        self._length = 0
        # Whether it offered another protocol, so that llhttp does not read its body.
        self._has_upgrade = False
        # Whether it asks for a protocol that the connection may be handed to.
        self._is_upgrade = False
        # Heads that the client repeats; and the request that was read, if its head is learnt.
        self._known: KnownHeads | None = None
        self._learnt: HttpRequest | None = None
        # Why it is refused, and whether the rest of it is not read.
        self._refusal: Refusal | None = None
        self._is_discarding = False
        # Requests that were read while another is served.
        self._queue: deque[tuple[HttpRequest, bytes | Oversize | Refusal, bool]] = deque()
        self._queue_bytes = 0
        self._is_reading = True
        # The response that is written.
        self._keeps_alive = True
        self._serves_head = False
        self._version = "1.1"
        self._logged: tuple[HttpRequest, float] | None = None
        self._is_chunked = False
        self._out: list[bytes] | None = None
        self._status = 0
        self._is_slow = False
        # The unread bytes when `tick` looked, and since when they are as many.
        self._unread = 0
        self._unread_since = 0.0

    # -- the connection ----------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Begin to read, if there is room for the connection."""
        self._transport = transport
        self._since = self.server.loop.time()
        peer = transport.get_extra_info("peername")
        self._peer = peer[0] if isinstance(peer, tuple) else ""
        transport.set_write_buffer_limits(high=_SLOW_BYTES)
        if self.server.is_stopping or not self.server.admit(self):
            refusal = overloaded("Too many connections")
            self._answer_and_close(refusal)
            return
        self.server.idle[self] = None

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end to the request that is served."""
        self._state = _CLOSING
        self._transport = None
        self._queue.clear()
        exchange, self.exchange = self.exchange, None
        self.server.forget(self)
        if exchange is not None:
            exchange.disconnected()
        if self._logged is not None:
            self._log_access()
        self._parser = None

    def eof_received(self) -> bool:
        """Close: a client that has closed its side is gone."""
        return False

    def pause_writing(self) -> None:
        """Note that the client reads slowly."""
        self._is_slow = True
        self._unread = 0
        if self.exchange is not None:
            self.exchange.carrier.is_slow(self.exchange, True)

    def resume_writing(self) -> None:
        """Note that the client has read."""
        self._is_slow = False
        if self.exchange is not None:
            self.exchange.carrier.is_slow(self.exchange, False)

    @property
    def is_gone(self) -> bool:
        """Whether the client has closed the connection."""
        return self._transport is None or self._state == _CLOSING

    @property
    def unread(self) -> int:
        """The number of bytes sent that the client has not taken."""
        if self._transport is None:
            return 0
        size: int = self._transport.get_write_buffer_size()
        return size

    @property
    def is_reading_request(self) -> bool:
        """Whether a part of a request was read, and nothing is served."""
        return self._state in (_HEAD, _BODY)

    def began(self) -> float:
        """Return when the request began that is read."""
        return self._began

    def drop(self) -> None:
        """Close an idle connection; at once, so that its place is free, also if data is unread."""
        self.server.forget(self)
        self._state = _CLOSING
        if self._transport is not None:
            if self.unread:
                self._transport.abort()
            else:
                self._transport.close()

    def close(self) -> None:
        """Close an idle connection when its client has read the last response."""
        self.server.idle.pop(self, None)
        self._close_in_order()

    def abort(self) -> None:
        """Close at once, whatever was not written."""
        if self._transport is not None:
            self._transport.abort()

    def tick(self, now: float) -> None:
        """Apply the timeouts; keep streams alive."""
        limits, waited = self.server.limits, now - self._since
        if self._is_slow or self._state == _CLOSING:
            unread = self.unread
            if unread != self._unread:
                self._unread, self._unread_since = unread, now
            elif unread and now - self._unread_since >= _UNREAD_TIMEOUT_S:
                self.abort()
                return
        if self._state == _SERVING:
            if self.exchange is not None:
                self.exchange.tick(now, limits.stream_after, limits.keep_alive)
        elif self._state == _IDLE:
            if waited >= limits.idle_timeout:
                self.drop()
        elif self._state == _HEAD:
            if waited >= limits.header_timeout:
                self._answer_and_close(
                    Refusal(HTTP["request-timeout"], "The request head took too long")
                )
        elif self._state == _BODY:
            if waited >= limits.body_timeout:
                self._answer_and_close(
                    Refusal(HTTP["request-timeout"], "The request body took too long")
                )
        elif self._state == _CLOSING and waited >= _LINGER_S and not self.unread:
            self.abort()

    # -- reading -----------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to read to."""
        return self.server.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse what was read."""
        state = self._state
        if state == _CLOSING or self._is_discarding:
            return  # the rest of a request that was refused
        learns = False
        if state == _IDLE:
            known = self._known
            if known is not None and nbytes <= self.server.known_bytes:
                if known and self._serve_known(known, nbytes):
                    return
                learns = known.learns
        if self._reads != _IDLE:
            self._head_bytes += nbytes
        data = self.server.buffer[:nbytes]
        whole = b""
        if learns:
            whole, self._learnt = bytes(data), None
        try:
            while True:
                try:
                    self._parser.feed_data(data)
                    break
                except httptools.HttpParserUpgrade as upgrade:
                    data = data[upgrade.args[0] :]
                    if self._is_upgrade:
                        self._hold(bool(data))
                        return
                    # Another protocol was offered. HTTP/1.1 goes on.
                    self._go_on()
        except httptools.HttpParserError as error:
            if self._state != _CLOSING and not self._is_discarding:
                _log.debug("malformed HTTP request: %s", error)
                self._reject(Refusal(HTTP["malformed-request"], "Malformed HTTP request"))
            return
        if self._reads != _IDLE and self._head_bytes > self.server.limits.header_bytes:
            self._reject(Refusal(HTTP["headers-too-large"], "The request head is too large"))
        if learns:
            self._learn(whole)
        if self._state == _HEAD and self._reads == _IDLE:
            # Empty lines alone, which some clients send after a body.  [RFC 9112, section 2.2]
            self._state = _IDLE
            self.server.idle[self] = None

    def _serve_known(self, known: KnownHeads, nbytes: int) -> bool:
        """Serve a request whose head the connection had before; return False if it had not."""
        found = known.find(bytes(self.server.buffer[:nbytes]))
        if found is None:
            return False
        self.server.idle.pop(self, None)
        self._serve(found[0], found[1], keeps_alive=True)
        return True

    def _learn(self, data: bytes) -> None:
        request, self._learnt = self._learnt, None
        if request is not None and self._known is not None and self._reads == _IDLE:
            self._known.learn(data, request)

    def _go_on(self) -> None:
        """Read on after the head of a request that offered another protocol.

        For llhttp the request has ended there, and what follows is of the other protocol.
        """
        if not self._has_upgrade:
            self._parser = httptools.HttpRequestParser(self)
            return
        self._has_upgrade = False
        lines = [
            b"POST / HTTP/1.1",
            *(b"%b: %b" % each for each in self._headers if each[0] in _FRAMING),
        ]
        if not self._parser.should_keep_alive():
            lines.append(b"connection: close")
        reader = _BodyReader(self)
        self._parser = httptools.HttpRequestParser(reader)
        self._parser.feed_data(b"\r\n".join([*lines, b"", b""]))
        reader.has_head = True

    def _hold(self, has_more: bool) -> None:
        """Serve a request that may end HTTP on this connection; read nothing meanwhile."""
        if self._state == _CLOSING:
            return
        request, transport = self._refused_request(), self._transport
        self._request, self._reads = None, _IDLE
        self._is_discarding = True
        if transport is not None:
            transport.pause_reading()
        if has_more:
            refusal = Refusal(
                HTTP["upgrade-malformed"], "The client has to wait for the response to its Upgrade"
            )
            self._submit(request, refusal, keeps_alive=False)
        else:
            self._submit(request, b"", keeps_alive=False)

    def on_message_begin(self) -> None:
        """Begin a request; empty lines before it are none of it.     [RFC 9112, section 2.2]"""
        if self._state == _IDLE:
            self._state = _HEAD
            self._since = self._began = self.server.loop.time()
            self.server.idle.pop(self, None)
        self._reads = _HEAD
        self._head_bytes = 0
        self._target = b""
        self._headers = []
        self._request = self._body = self._chunks = self._refusal = self._learnt = None
        self._body_bytes = self._length = 0

    def on_url(self, url: bytes) -> None:
        """Take a part of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; one that follows the body is dropped, because it was not checked."""
        if self._reads == _HEAD:
            # Blanks around a value are not part of it; llhttp drops those before it.
            #                                                       [RFC 9110, section 5.5]
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Decide on the request by its head."""
        if self._is_discarding or self._state == _CLOSING:
            return
        self._reads = _BODY
        self._head_bytes = 0
        if self._state < _SERVING:
            self._state = _BODY
            self._since = self.server.loop.time()
        refusal = self._read_head()
        request = self._request
        if refusal is None and request is not None:
            refusal = self.server.endpoint.admit(request)
        if refusal is not None:
            self._refuse(refusal)
            return
        if request is not None and request.header(b"expect") is not None:
            self._continue(request)
        if self._parser.should_upgrade():
            if _has_body(self._headers):
                self._has_upgrade = True
            elif request is not None and self.server.is_upgrade(request):
                self._is_upgrade = True

    def _read_head(self) -> Refusal | None:
        """Make the request of its head, or refuse it."""
        headers = self._headers
        read = read_headers(headers, self.server.limits)
        if isinstance(read, Refusal):
            return read
        known, self._length = read
        target = self._target
        if len(target) > _MAX_TARGET_BYTES:
            return Refusal(HTTP["target-too-long"], "The request target is too long")
        version = self._parser.get_http_version()
        path, refusal = _path_of(target, known[0])
        refusal = refusal or self._framing_fault(version)
        if refusal is not None:
            return refusal
        raw, _, query = path.partition(b"?")
        self._request = HttpRequest(
            self._parser.get_method().decode("latin-1"),
            raw.decode("latin-1"),
            query.decode("latin-1"),
            version,
            headers,
            self._peer,
            self.server.is_secure,
            *known,
        )
        return None

    def _framing_fault(self, version: str) -> Refusal | None:
        """Return why another reader might see another end of the request than llhttp does."""
        if version not in ("1.1", "1.0"):
            return Refusal(
                HTTP["http-version-unsupported"], "The version of HTTP is not 1.1 or 1.0"
            )
        if self._length:
            return None  # llhttp refuses both a length and a coding
        for name, value in self._headers:
            if name == b"transfer-encoding":
                if version == "1.0":  # which has no codings   [RFC 9112, section 6.1]
                    return Refusal(HTTP["malformed-request"], "HTTP/1.0 has no Transfer-Encoding")
                if value.lower() != b"chunked":
                    return Refusal(
                        HTTP["transfer-coding-unknown"], "The Transfer-Encoding is not chunked"
                    )
        return None

    def _continue(self, request: HttpRequest) -> None:
        """Ask for the body, if the client waits for that.      [RFC 9110, section 10.1.1]"""
        if (request.header(b"expect") or b"").lower() != b"100-continue":
            self._refuse(Refusal(HTTP["expectation-unknown"], "Unknown expectation"))
        elif self._state == _BODY and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _refuse(self, refusal: Refusal) -> None:
        """Answer a request by its head, in its turn.

        The connection is closed after that if a body follows, or what the client takes for a
        tunnel.
        """
        self._refusal = refusal
        if _has_body(self._headers) or self._parser.get_method() == b"CONNECT":
            self._is_discarding = True
            self._submit(self._refused_request(), refusal, keeps_alive=False)

    def _reject(self, refusal: Refusal) -> None:
        """Answer what cannot be read, in its turn; nothing after it is read."""
        self._is_discarding = True
        self._answer_and_close(refusal)

    def _answer_and_close(self, refusal: Refusal) -> None:
        """Answer a request that was not read to its end, and close."""
        request = self._refused_request() if self._reads == _BODY else _unknown_request()
        self._submit(request, refusal, keeps_alive=False)

    def _refused_request(self) -> HttpRequest:
        """Return the request, or what stands for one whose head could not be used."""
        if self._request is not None:
            return self._request
        return _unknown_request(self._parser.get_method().decode("latin-1"))

    def on_body(self, data: bytes) -> None:
        """Take a part of the body."""
        if self._is_discarding or self._state == _CLOSING:
            return
        self._head_bytes = 0
        if self._state == _BODY:
            self._since = self.server.now
        self._body_bytes += len(data)
        limit = self.server.message_size
        if limit is not None and max(self._body_bytes, self._length) > limit:
            self._refuse_size(data, limit)
        elif self._body is None:
            self._body = data
        elif self._chunks is None:
            self._chunks = [self._body, data]
        else:
            self._chunks.append(data)
            if self._state == _SERVING and self._body_bytes >= _MAX_WAITING_BYTES:
                self._pause_reading()

    def _refuse_size(self, data: bytes, limit: int) -> None:
        """Answer a body that is too large, when enough of it was read to find its id."""
        if self._chunks is None:
            self._chunks = [] if self._body is None else [self._body]
        self._chunks.append(data)
        wanted = min(head_size(limit), max(self._length, limit))
        if self._body_bytes < wanted:
            return
        head = b"".join(self._chunks)[:wanted]
        size = self._length or None
        self._is_discarding = True
        self._submit(self._refused_request(), Oversize(head, size, limit), keeps_alive=False)

    def on_message_complete(self) -> None:
        """Serve the request, or let it wait for the response before its own."""
        if self._is_discarding or self._has_upgrade or self._state == _CLOSING:
            return
        if self._is_upgrade:
            return  # what follows is reported next
        self._reads = _IDLE
        keeps_alive = self._parser.should_keep_alive()
        request = self._refused_request()
        if self._refusal is not None:
            self._submit(request, self._refusal, keeps_alive)
            return
        if keeps_alive:
            if self._known is None:
                self._known = KnownHeads()  # from the second request on
            elif self._known.learns:
                self._learnt = request
        body = b"" if self._body is None else self._body
        if self._chunks is not None:
            body = b"".join(self._chunks)
        self._request = self._body = self._chunks = None
        self._submit(request, body, keeps_alive)

    # -- serving -----------------------------------------------------------------------------

    def _submit(
        self, request: HttpRequest, payload: bytes | Oversize | Refusal, keeps_alive: bool
    ) -> None:
        if self._state != _SERVING and not self._queue:
            self._serve(request, payload, keeps_alive)
            return
        if len(self._queue) >= _MAX_WAITING:
            # All of one read: it cannot be read less.
            self._is_discarding = True
            self._queue[-1] = (*self._queue[-1][:2], False)
            return
        self._queue.append((request, payload, keeps_alive))
        if type(payload) is bytes:
            self._queue_bytes += len(payload)
        if self._has_enough:
            self._pause_reading()

    @property
    def _has_enough(self) -> bool:
        """Whether what waits for a response before its own is as much as may be held."""
        return len(self._queue) >= _MAX_PIPELINED or self._queue_bytes >= _MAX_WAITING_BYTES

    def _pause_reading(self) -> None:
        if self._is_reading and self._transport is not None:
            self._is_reading = False
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        self._is_reading = True
        if self._transport is not None:
            self._transport.resume_reading()

    def _serve(
        self, request: HttpRequest, payload: bytes | Oversize | Refusal, keeps_alive: bool
    ) -> None:
        server = self.server
        self._state = _SERVING
        self._since = server.now
        self._version = version = request.http_version
        # A client of HTTP/1.0 would have to be told that its connection stays open.
        self._keeps_alive = keeps_alive and version != "1.0" and not server.is_stopping
        self._serves_head = request.method == "HEAD"
        if server.access_log:
            self._logged = (request, server.loop.time())
        endpoint = server.endpoint
        if server.is_limited and type(payload) is not Refusal and server.is_busy_for(request):
            payload = TOO_MANY_REQUESTS
        try:
            if type(payload) is Refusal:
                endpoint.refuse(self, payload, request)
            else:
                endpoint.handle(request, payload, self)  # type: ignore[arg-type]  # not a refusal
        except Exception as error:  # noqa: BLE001  # a defect; the client gets an answer
            _log.error("internal error while serving an HTTP request\n%s", as_redacted(error))
            if self._state == _SERVING and not self._status:
                self._keeps_alive = False
                endpoint.refuse(self, INTERNAL_ERROR, request)
            else:
                self.abort()

    def _serve_next(self) -> None:
        if self._queue and self._state == _NEXT:
            request, payload, keeps_alive = self._queue.popleft()
            if type(payload) is bytes:
                self._queue_bytes -= len(payload)
            self._serve(request, payload, keeps_alive)
        if not self._is_reading and not self._has_enough:
            self._resume_reading()

    # -- writing -----------------------------------------------------------------------------

    def respond(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Send a whole response in one write."""
        transport = self._transport
        if transport is None or self._state != _SERVING:
            return
        self._status = status
        is_plain = headers is JSON_HEADERS and status == 200
        if is_plain and self._keeps_alive and not self._serves_head:
            transport.write(b"%b%d\r\n\r\n%b" % (self.server.json_head, len(body), body))
            self._end_response()
            return
        length = b"" if status == 204 else b"content-length: %d\r\n" % len(body)
        ending = b"\r\n" if self._keeps_alive else b"connection: close\r\n\r\n"
        lines = b"".join([b"%b: %b\r\n" % each for each in headers]) if headers else b""
        head = b"HTTP/1.1 %d %b%b%b%b%b" % (
            status,
            _REASONS.get(status, b"Unknown"),
            self.server.head,
            lines,
            length,
            ending,
        )
        if body and not self._serves_head:
            head += body
        transport.write(head)
        self._end_response()

    def upgrade(self, head: bytes, connection: Any) -> bool:
        """Send a response that ends HTTP, and hand the connection to another asyncio protocol.

        Returns False if the request did not ask for that.
        """
        transport = self._transport
        if transport is None or self._state != _SERVING or not self._is_upgrade:
            return False
        self._status = 101
        if self._logged is not None:
            self._log_access()
        self._state, self._transport, self._parser = _CLOSING, None, None
        server = self.server
        server.connections[connection] = None
        server.forget(self)
        transport.write(head)
        transport.set_protocol(connection)
        connection.connection_made(transport)
        transport.resume_reading()
        return True

    def start(self, headers: Headers) -> None:
        """Begin a stream."""
        if self._transport is None or self._state != _SERVING:
            return
        self._status = 200
        self._is_chunked = self._version != "1.0"
        if not self._is_chunked:
            self._keeps_alive = False
        lines = b"".join([b"%b: %b\r\n" % each for each in headers])
        if self._is_chunked:
            lines += b"transfer-encoding: chunked\r\n"
        if not self._keeps_alive:
            lines += b"connection: close\r\n"
        self._send(b"HTTP/1.1 200 OK%b%b\r\n" % (self.server.head, lines))

    def write(self, data: bytes) -> None:
        """Send a part of a stream."""
        if data and self._transport is not None and self._state == _SERVING:
            self._send(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    def end(self) -> None:
        """End a stream."""
        if self._transport is not None and self._state == _SERVING:
            if self._is_chunked:
                self._send(b"0\r\n\r\n")
            self._flush()
            self._end_response()

    def _send(self, data: bytes) -> None:
        # What is sent in one turn of the event loop is one write.
        if self._out is None:
            self._out = [data]
            self.server.loop.call_soon(self._flush)
        else:
            self._out.append(data)

    def _flush(self) -> None:
        out, self._out = self._out, None
        if out is not None and self._transport is not None:
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    def _end_response(self) -> None:
        """Be ready for the next request, or close."""
        if self._logged is not None:
            self._log_access()
        self.exchange = None
        self._status = 0
        if not self._keeps_alive:
            self._close_in_order()
            return
        if self._queue:
            # What is read meanwhile waits behind these.
            self._state = _NEXT
            self.server.loop.call_soon(self._serve_next)
            return
        # The next request may have been read in part.
        if not self._is_reading:
            self._resume_reading()
        self._state = self._reads
        self._since = self._began = self.server.now
        if self._state != _IDLE:
            return
        if self.server.is_stopping:
            self._close_in_order()
        else:
            self.server.idle[self] = None

    def _close_in_order(self) -> None:
        """Close after the client has read: data that is not read would reset the connection."""
        self._state = _CLOSING
        # Not `now`: the next look at timeouts would end it, however soon that is.
        self._since = self.server.loop.time()
        transport = self._transport
        if transport is None:
            return
        if not self._is_discarding or not transport.can_write_eof():
            transport.close()
        else:
            try:
                transport.write_eof()  # `tick` closes what the client does not
                transport.resume_reading()  # of its end
            except OSError:  # the client has reset the connection
                transport.abort()

    def _log_access(self) -> None:
        if self._logged is not None:
            request, began = self._logged
            self._logged = None
            milliseconds = (self.server.loop.time() - began) * 1000
            client = self.server.endpoint.admission.client_of(request)
            _access.info(
                "%s %s %s %d %.1f ms",
                client or self._peer or "unix",
                request.method,
                show(request.path),
                self._status,
                milliseconds,
            )


class _BodyReader:
    """Callbacks of a parser for the body of a request whose head was read by another one.

    The head that the parser needs is not reported; the body and further requests are.
    """

    def __init__(self, protocol: HttpProtocol) -> None:
        self.has_head = False
        self._protocol = protocol
        self.on_body = protocol.on_body
        self.on_message_complete = protocol.on_message_complete

    def on_message_begin(self) -> None:
        """Begin a request."""
        if self.has_head:
            self._protocol.on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a part of the target."""
        if self.has_head:
            self._protocol.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        if self.has_head:
            self._protocol.on_header(name, value)

    def on_headers_complete(self) -> None:
        """Decide on the request by its head."""
        if self.has_head:
            self._protocol.on_headers_complete()


def http_date(seconds: float) -> bytes:
    """Return a time since the epoch as a header has it."""
    # Written here: `email.utils` would do it, and loads 15 modules.
    year, month, day, hour, minute, second, weekday, *_ = time.gmtime(seconds)
    date = b"%b, %02d %b %04d" % (_DAYS[weekday], day, _MONTHS[month - 1], year)
    return b"%b %02d:%02d:%02d GMT" % (date, hour, minute, second)


def _unknown_request(method: str = "") -> HttpRequest:
    """Return a request that stands for one whose head could not be used."""
    return HttpRequest(method, "", "", "1.1", [], "", False)


def _has_body(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in headers
    )


def _path_of(target: bytes, host: bytes | None) -> tuple[bytes, Refusal | None]:
    """Return path and query of a target, which may be in absolute form."""
    if target[:1] == b"/":
        return target, None
    lowered = target[:8].lower()
    for scheme in (b"http://", b"https://"):
        if lowered.startswith(scheme):
            authority, slash, path = target[len(scheme) :].partition(b"/")
            if authority != host:
                return b"", Refusal(HTTP["target-invalid"], "The request target and Host differ")
            return slash + path if slash else b"/", None
    return b"", Refusal(HTTP["target-invalid"], "The request target is not a path")
