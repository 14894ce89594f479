"""Writes the responses of one HTTP connection: the responder of the request that is served.

The rules that live here, and only here:

* A response of known length is one write. A stream is sent in chunks; to a client of HTTP/1.0 it
  ends with the connection.                                         [RFC 9112, section 7.1]
* What a stream sends in one turn of the event loop is one write.
* A connection is handed to another protocol if its request asked for one.
                                                                    [RFC 9110, section 7.8]
"""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from ....redaction import show
from ....spec.http_conditions import HTTP
from ..response import JSON_HEADERS

if TYPE_CHECKING:
    from ....accounts.account import Account
    from ..request import HttpRequest
    from ..response import Headers, OpenExchange
    from .connection import HttpServerConnection
    from .http_server import HttpServer

__all__ = ["ResponseWriter", "http_date"]

_access: Final = logging.getLogger("trunkline.access")

_REASONS: Final = {each.value: each.phrase.encode() for each in HTTPStatus}
_REASONS[HTTP["body-too-large"].status] = b"Content Too Large"

_DAYS: Final = (b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun")
_MONTHS: Final = (
    *(b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun"),
    *(b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"),
)


class ResponseWriter:
    """Writes one response after the other, each from `begin` to its end."""

    __slots__ = (
        "_connection",
        "_is_chunked",
        "_is_head",
        "_logged",
        "_out",
        "_server",
        "_version",
        "account",
        "exchange",
        "is_open",
        "keeps_alive",
        "status",
        "transport",
    )

    # That of the connection, from when it is made.
    account: Account

    def __init__(self, server: HttpServer, connection: HttpServerConnection) -> None:
        self._server = server
        self._connection = connection
        # None before the connection is made, and once it closes.
        self.transport: Any = None
        self.exchange: OpenExchange | None = None
        # Whether a response is due or being written, and its status once it is begun.
        self.is_open = False
        self.status = 0
        # Whether another request may follow.
        self.keeps_alive = True
        self._version = "1.1"
        self._is_head = False
        self._is_chunked = False
        self._out: list[bytes] | None = None
        self._logged: tuple[HttpRequest, float] | None = None

    def use_account(self, account: Account) -> None:
        """Count the connection for a client that a request has told."""
        self._connection.use_account(account)

    def begin(self, request: HttpRequest, keeps_alive: bool) -> None:
        """Expect the response to a request."""
        server = self._server
        self.is_open = True
        self._version = version = request.http_version
        # A client of HTTP/1.0 would have to be told that its connection stays open.
        self.keeps_alive = keeps_alive and version != "1.0" and not server.is_stopping
        self._is_head = request.method == "HEAD"
        if server.access_log:
            self._logged = (request, server.loop.time())

    @property
    def is_gone(self) -> bool:
        """Whether the client has closed the connection."""
        return self.transport is None

    @property
    def unread(self) -> int:
        """The number of bytes sent that the client has not taken."""
        return 0 if self.transport is None else self._connection.unread

    # -- a whole response --------------------------------------------------------------------

    def respond(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Send a whole response in one write."""
        if not self.is_open:
            return
        self.status = status
        is_plain = headers is JSON_HEADERS and status == 200
        if is_plain and self.keeps_alive and not self._is_head:
            self.transport.write(b"%b%d\r\n\r\n%b" % (self._server.json_head, len(body), body))
            self._finish()
            return
        length = b"" if status == 204 else b"content-length: %d\r\n" % len(body)
        ending = b"\r\n" if self.keeps_alive else b"connection: close\r\n\r\n"
        lines = b"".join([b"%b: %b\r\n" % each for each in headers]) if headers else b""
        head = b"HTTP/1.1 %d %b%b%b%b%b" % (
            status,
            _REASONS.get(status, b"Unknown"),
            self._server.head,
            lines,
            length,
            ending,
        )
        if body and not self._is_head:
            head += body
        self.transport.write(head)
        self._finish()

    def upgrade(self, head: bytes, protocol: Any) -> bool:
        """Send a response that ends HTTP, and hand the connection to another asyncio protocol.

        Returns False if the request did not ask for that.
        """
        connection = self._connection
        if not self.is_open or not connection.reader.is_upgrade:
            return False
        self.status = 101
        self.log_access()
        self.is_open = False
        connection.hand_over(head, protocol)
        return True

    # -- a stream ----------------------------------------------------------------------------

    def start(self, headers: Headers) -> None:
        """Begin a stream."""
        if not self.is_open:
            return
        self.status = 200
        self._is_chunked = self._version != "1.0"  # which ends with the connection
        lines = b"".join([b"%b: %b\r\n" % each for each in headers])
        if self._is_chunked:
            lines += b"transfer-encoding: chunked\r\n"
        if not self.keeps_alive:
            lines += b"connection: close\r\n"
        self._send(b"HTTP/1.1 200 OK%b%b\r\n" % (self._server.head, lines))

    def write(self, data: bytes) -> None:
        """Send a part of a stream."""
        if data and self.is_open:
            self._send(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    def end(self) -> None:
        """End a stream."""
        if self.is_open:
            if self._is_chunked:
                self._send(b"0\r\n\r\n")
            self._flush()
            self._finish()

    def _send(self, data: bytes) -> None:
        if self._out is None:
            self._out = [data]
            self._server.loop.call_soon(self._flush)
        else:
            self._out.append(data)

    def _flush(self) -> None:
        out, self._out = self._out, None
        if out is not None and self.transport is not None:
            self.transport.write(out[0] if len(out) == 1 else b"".join(out))
            if self._server.is_secure:
                self._connection.note_write()

    def abort(self) -> None:
        """Close the connection without a response."""
        self._connection.abort()

    # -- the end -----------------------------------------------------------------------------

    def _finish(self) -> None:
        if self._logged is not None:
            self.log_access()
        self.exchange = None
        self.status = 0
        self.is_open = False
        self._connection.response_ended()

    def abandon(self) -> None:
        """Note that the client has gone, and report it to the request that is served."""
        self.transport = None
        self.is_open = False
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.disconnected()
        self.log_access()

    def log_access(self) -> None:
        """Log the request that was served, if that is wanted."""
        if self._logged is None:
            return
        request, began = self._logged
        self._logged = None
        milliseconds = (self._server.loop.time() - began) * 1000
        client = self._server.routes.admission.client_of(request)
        _access.info(
            "%s %s %s %d %.1f ms",
            client or self._connection.peer or "unix",
            request.method,
            show(request.path),
            self.status,
            milliseconds,
        )


def http_date(seconds: float) -> bytes:
    """Return a time since the epoch as a header has it."""
    # Written here: `email.utils` would do it, and loads 15 modules.
    year, month, day, hour, minute, second, weekday, *_ = time.gmtime(seconds)
    date = b"%b, %02d %b %04d" % (_DAYS[weekday], day, _MONTHS[month - 1], year)
    return b"%b %02d:%02d:%02d GMT" % (date, hour, minute, second)
