"""One connection of the HTTP server: what it is doing, which request is served, and its end.

A `RequestReader` reads the requests, a `ResponseWriter` writes the responses.

The rules that live here, and only here:

* Requests on one connection are answered in order. While one is served, further ones wait, and
  beyond `_MAX_PIPELINED` the connection is not read.               [RFC 9112, section 9.3.2]
* The head of a request, its body, an idle connection and a client that does not read each have a
  timeout; that of a body is a least rate. A connection that has sent nothing has as long as a head.
* One turn reads `MAX_BYTES_PER_TURN` of requests, and more of a body only: its bytes cost little.
* A connection whose client has not been read to its end is closed when the client has read the
  answer: data that is not read would reset the connection.         [RFC 9112, section 9.6]
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from ....accounts.account import UNCOUNTED_BYTES, ReceivedBytes
from ....exception_text import as_redacted
from ....spec.http_conditions import HTTP
from ...io.tls_backlog import TlsBacklog
from ...receive_limits import receive_timeout
from ..response import (
    INTERNAL_ERROR,
    TOO_MANY_REQUESTS,
    TOO_MUCH_RECEIVED,
    Refusal,
    overloaded,
)
from .request_reader import MAX_WAITING_BYTES, Part, RequestReader
from .response_writer import ResponseWriter

if TYPE_CHECKING:
    from ....accounts.account import Account
    from ....jsonrpc.framing.framing import Oversize
    from ..open_requests import OpenRequests
    from ..request import HttpRequest
    from ..response import OpenExchange
    from .http_server import HttpServer

__all__ = ["HttpServerConnection", "Phase"]

_log: Final = logging.getLogger("trunkline.http")

# Requests of one connection that wait for the response before theirs.
_MAX_PIPELINED: Final = 16
# The same of one read, which cannot be stopped halfway.
_MAX_WAITING: Final = 256
# Above this many unread bytes a client reads slowly.
_SLOW_BYTES: Final = 64 * 1024
# Seconds for a client to read the answer to a request that was not read to its end.
_LINGER_S: Final = 1.0
# Seconds in which a client takes none of what it was sent before it is disconnected.
_UNREAD_TIMEOUT_S: Final = 60.0

_SLOW_HEAD: Final = Refusal(HTTP["request-timeout"], "The request head took too long")
_SLOW_BODY: Final = Refusal(HTTP["request-timeout"], "The request body took too long")


class Phase(Enum):
    """What a connection is doing."""

    READY = auto()  # nothing is served; a part of a request may have been read
    SERVING = auto()
    NEXT = auto()  # a response has ended, and a request that waits is about to be served
    CLOSING = auto()


# Module constants: a member of an enum costs a lookup more.
_READY: Final = Phase.READY
_SERVING: Final = Phase.SERVING
_NEXT: Final = Phase.NEXT
_CLOSING: Final = Phase.CLOSING
_NONE: Final = Part.NONE


class HttpServerConnection(asyncio.BufferedProtocol):
    """One connection of an `HttpServer`."""

    __slots__ = (
        "_counted",
        "_is_reading",
        "_is_slow",
        "_queue",
        "_queue_bytes",
        "_tls",
        "_transport",
        "_unread",
        "_unread_charged",
        "_unread_since",
        "_waiting",
        "account",
        "peer",
        "phase",
        "reader",
        "server",
        "writer",
    )

    def __init__(self, server: HttpServer) -> None:
        self.server = server
        self.reader = RequestReader(server, self)
        self.writer = ResponseWriter(server, self)
        self.phase = _READY
        # The address of the client; empty on a Unix socket.
        self.peer = ""
        self._transport: Any = None
        # Requests that were read while another is served.
        self._queue: deque[tuple[HttpRequest, bytes | Oversize | Refusal, bool]] = deque()
        self._queue_bytes = 0
        # What they count for the client, if they are large.
        self._waiting: ReceivedBytes | None = None
        self._is_reading = True
        self._is_slow = False
        self._tls: TlsBacklog | None = None
        # The client that the request counts for that is served, if requests are limited.
        self._counted: Account | None = None
        # The unread bytes when `tick` looked, and since when they are as many.
        self._unread = 0
        self._unread_since = 0.0
        # The bytes of complete responses that count for the client. Those of a response that is
        # being written count with its exchange.
        self._unread_charged = 0

    @property
    def exchange(self) -> OpenExchange | None:
        """The exchange of the request that is served."""
        return self.writer.exchange

    @property
    def is_reading_request(self) -> bool:
        """Whether a part of a request was read, and nothing is served."""
        return self.phase is _READY and self.reader.part is not _NONE

    def began(self) -> float:
        """Return when the request began that is read."""
        return self.reader.began

    # -- asyncio -----------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Begin to read, if there is room for the connection."""
        self._transport = self.writer.transport = transport
        self.reader.since = self.server.loop.time()
        peer = transport.get_extra_info("peername")
        self.peer = peer[0] if isinstance(peer, tuple) else ""
        self.account = self.writer.account = self.server.open_account(self.peer, transport)
        transport.set_write_buffer_limits(high=_SLOW_BYTES)
        if self.server.is_secure:
            self._tls = TlsBacklog(
                self.server.loop,
                transport,
                _SLOW_BYTES,
                _SLOW_BYTES // 4,
                on_slow=self._reads_slowly,
                on_drained=self._has_read,
            )
        if self.server.is_stopping or not self.server.admit(self):
            self._refuse(overloaded("Too many connections"))
            return
        self.server.idle[self] = None

    def use_account(self, account: Account) -> None:
        """Count the connection for a client that a request has told."""
        account.uses += 1
        former, unread = self.account, self._unread_charged
        self._charge_unread(0)
        self.server.move(self, account)
        self._charge_unread(unread)
        self.writer.account = account
        if self._counted is not None and self.server.requests is not None:
            self._count_no_more()
            account.uses += 1
            self._counted = account
            self.server.requests.begin(account)
        former.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end to the request that is served."""
        self.phase = _CLOSING
        self._transport = None
        self._queue.clear()
        self.server.forget(self)
        self.writer.abandon()
        self.reader.close()
        self._end_waiting()
        self._end_tls()
        self._count_no_more()
        self._charge_unread(0)
        self.account.close()

    def _end_tls(self) -> None:
        if self._tls is not None:
            self._tls.close()
            self._tls = None

    def eof_received(self) -> bool:
        """Close: a client that has closed its side is gone."""
        return False

    def pause_writing(self) -> None:
        """Note that the client reads slowly, unless `TlsBacklog` does."""
        if self._tls is None:
            self._reads_slowly()

    def resume_writing(self) -> None:
        """Note that the client has read, unless `TlsBacklog` does."""
        if self._tls is None:
            self._has_read()

    def _reads_slowly(self) -> None:
        self._is_slow = True
        self._unread = 0
        self._note_slow(True)

    def _has_read(self) -> None:
        self._is_slow = False
        if self._unread_charged:
            self._charge_unread(0)
        self._note_slow(False)

    def _charge_unread(self, size: int) -> None:
        """Count so many unread bytes of complete responses for the client."""
        self.account.budget.charge(size - self._unread_charged)
        self._unread_charged = size

    def _note_slow(self, value: bool) -> None:
        exchange = self.writer.exchange
        if exchange is not None:
            exchange.note_slow(value)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to read to: what one turn may process, or more of a large body."""
        server, reader = self.server, self.reader
        if reader.part is _NONE:
            return server.turn_buffer
        left = reader.body_left
        return server.turn_buffer if left < len(server.turn_buffer) else server.buffer[:left]

    def buffer_updated(self, nbytes: int) -> None:
        """Serve a request whose head the connection had before, or parse what was read."""
        server, reader = self.server, self.reader
        if reader.is_stopped:
            return  # the rest of a request that was refused
        known = None
        if self.phase is _READY and reader.part is _NONE and nbytes <= server.known_bytes:
            known = reader.known
            if known is not None and known.heads:
                found = known.find(bytes(server.buffer[:nbytes]))
                if found is not None:
                    server.idle.pop(self, None)
                    self._serve(found[0], found[1], True)
                    return
        reader.feed(nbytes, known is not None)

    # -- requests ----------------------------------------------------------------------------

    def submit(
        self, request: HttpRequest, payload: bytes | Oversize | Refusal, keeps_alive: bool
    ) -> None:
        """Serve a request that was read, or refuse it; after those before it."""
        if self.phase is not _SERVING and not self._queue:
            self._serve(request, payload, keeps_alive)
            return
        if len(self._queue) >= _MAX_WAITING:
            # All of one read: it cannot be read less.
            self.reader.discard()
            self._queue[-1] = (*self._queue[-1][:2], False)
            return
        if type(payload) is bytes:
            if self._weigh_queue(request, self._queue_bytes + len(payload)):
                self._queue_bytes += len(payload)
            else:
                payload = TOO_MUCH_RECEIVED
        self._queue.append((request, payload, keeps_alive))
        if self._has_enough:
            self._pause_reading()

    def _weigh_queue(self, request: HttpRequest, size: int) -> bool:
        """Count the bodies that wait for the client; return False if there is no room."""
        waiting = self._waiting
        if waiting is None:
            if size <= UNCOUNTED_BYTES:
                return True
            account = self.server.routes.open_client_account(request, self.account)
            waiting = self._waiting = ReceivedBytes(account)
        has_room = waiting.weigh(size)
        if not waiting.size:
            self._end_waiting()
        return has_room

    def _end_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.close()
            self._waiting = None

    def _refuse(self, refusal: Refusal) -> None:
        """Answer a request that was not read to its end, and close."""
        self.submit(self.reader.current_request(), refusal, keeps_alive=False)

    def _serve(
        self, request: HttpRequest, payload: bytes | Oversize | Refusal, keeps_alive: bool
    ) -> None:
        server, writer = self.server, self.writer
        self.phase = _SERVING
        writer.begin(request, keeps_alive)
        routes = server.routes
        if server.requests is not None and not self._has_room_for(request, server.requests):
            payload = payload if type(payload) is Refusal else TOO_MANY_REQUESTS
        try:
            if type(payload) is Refusal:
                routes.refuse(writer, payload, request)
            else:
                routes.handle(request, payload, writer)  # type: ignore[arg-type]  # not a refusal
        except Exception as error:  # noqa: BLE001  # a defect; the client gets an answer
            _log.error("internal error while serving an HTTP request\n%s", as_redacted(error))
            if writer.is_open and not writer.status:
                writer.keeps_alive = False
                routes.refuse(writer, INTERNAL_ERROR, request)
            else:
                self.abort()

    def _has_room_for(self, request: HttpRequest, requests: OpenRequests) -> bool:
        """Count a request for its client; return False if that has its share."""
        account = self.server.routes.open_client_account(request, self.account)
        self._counted = account
        requests.begin(account)
        return requests.has_room(account) or request.path in self.server.routes.probes

    def _count_no_more(self) -> None:
        """Count the request that was served no longer."""
        account, self._counted = self._counted, None
        if account is not None and self.server.requests is not None:
            self.server.requests.end(account)
            account.close()

    def response_ended(self) -> None:
        """Be ready for the next request, or close."""
        if self._counted is not None:
            self._count_no_more()
        if self._tls is not None:
            self._tls.note_write()
        if self._is_slow:
            self._charge_unread(self.unread)
        if not self.writer.keeps_alive:
            self._close_in_order()
            return
        if self._queue:
            # What is read meanwhile waits behind these.
            self.phase = _NEXT
            self.server.loop.call_soon(self._serve_next)
            return
        if not self._is_reading:
            self._resume_reading()
        self.phase = _READY
        reader, server = self.reader, self.server
        reader.since = reader.began = server.now
        if reader.part is not _NONE:
            return  # the next request was read in part
        if server.is_stopping:
            self._close_in_order()
        else:
            server.idle[self] = None

    def _serve_next(self) -> None:
        if self.is_lost:
            return  # a response that nobody reads, and perhaps a session that nobody ends
        if self._queue and self.phase is _NEXT:
            request, payload, keeps_alive = self._queue.popleft()
            if type(payload) is bytes:
                self._queue_bytes -= len(payload)
                if self._waiting is not None:
                    self._weigh_queue(request, self._queue_bytes)
            self._serve(request, payload, keeps_alive)
        if not self._is_reading and not self._has_enough:
            self._resume_reading()

    # -- how much is read --------------------------------------------------------------------

    @property
    def _has_enough(self) -> bool:
        """Whether what waits for a response before its own is as much as may be held."""
        return len(self._queue) >= _MAX_PIPELINED or self._queue_bytes >= MAX_WAITING_BYTES

    def pause_while_serving(self) -> None:
        """Read no more of a large body before the request before it is answered."""
        if self.phase is _SERVING:
            self._pause_reading()

    def hold_reading(self) -> None:
        """Read nothing until the connection closes, or is handed to another protocol."""
        if self._transport is not None:
            self._transport.pause_reading()

    def _pause_reading(self) -> None:
        if self._is_reading and self._transport is not None:
            self._is_reading = False
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        self._is_reading = True
        if self._transport is not None:
            self._transport.resume_reading()

    def send_continue(self) -> None:
        """Ask for the body of the request that is read, unless another one is served."""
        if self.phase is _READY and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # -- time and the end --------------------------------------------------------------------

    @property
    def is_lost(self) -> bool:
        """Whether the connection is closing: nothing that is written is sent."""
        return self._transport is None or self._transport.is_closing()

    @property
    def unread(self) -> int:
        """The number of bytes sent that the client has not taken."""
        if self._transport is None:
            return 0
        if self._tls is not None:
            return self._tls.size
        size: int = self._transport.get_write_buffer_size()
        return size

    def note_write(self) -> None:
        """Look at what was written of a stream, if the connection is over TLS."""
        if self._tls is not None:
            self._tls.note_write()

    def tick(self, now: float) -> None:
        """Apply the timeouts; keep streams alive."""
        if self._is_slow or self.phase is _CLOSING:
            unread = self.unread
            if self._unread_charged:
                self._charge_unread(unread)
            if unread != self._unread:
                self._unread, self._unread_since = unread, now
            elif unread and now - self._unread_since >= _UNREAD_TIMEOUT_S:
                self.abort()
                return
        if self.phase is _READY:
            self._tick_reader(now)
        elif self.phase is _SERVING:
            exchange, limits = self.writer.exchange, self.server.limits
            if exchange is not None:
                exchange.tick(now, limits.stream_after, limits.keep_alive)
        elif self.phase is _CLOSING and now - self.reader.since >= _LINGER_S and not self.unread:
            self.abort()

    def _tick_reader(self, now: float) -> None:
        limits, reader = self.server.limits, self.reader
        part, waited = reader.part, now - reader.since
        if part is _NONE:
            is_new = not reader.began  # nothing was read of a request so far
            if waited >= (limits.header_timeout if is_new else limits.idle_timeout):
                self.drop()
        elif part is Part.HEAD:
            if waited >= limits.header_timeout:
                self._refuse(_SLOW_HEAD)
        elif waited >= receive_timeout(limits.body_timeout, reader.body_bytes):
            self._refuse(_SLOW_BODY)

    def hand_over(self, head: bytes, protocol: Any) -> None:
        """Send the last response of HTTP, and let another protocol have the connection."""
        transport, self._transport = self._transport, None
        self.phase = _CLOSING
        self.writer.transport = None
        self.reader.close()
        self.server.forget(self)
        self.server.add(protocol)
        self._end_tls()
        self._count_no_more()
        self.account.close()
        transport.write(head)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        transport.resume_reading()

    def drop(self) -> None:
        """Close an idle connection; at once, so that its place is free, also if data is unread."""
        self.server.forget(self)
        self._stop()
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

    def _stop(self) -> None:
        self.phase = _CLOSING
        self.reader.is_stopped = True
        self.writer.transport = None

    def _close_in_order(self) -> None:
        """Close after the client has read."""
        self._stop()
        # Not `now`: the next look at timeouts would end it, however soon that is.
        self.reader.since = self.server.loop.time()
        transport = self._transport
        if transport is None:
            return
        if not self.reader.is_discarding or not transport.can_write_eof():
            transport.close()
        else:
            try:
                transport.write_eof()  # `tick` closes what the client does not
                transport.resume_reading()  # of its end
            except OSError:  # the client has reset the connection
                transport.abort()
