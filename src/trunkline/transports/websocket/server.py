"""The server's end of a WebSocket: the handshake in an HTTP request, and what follows it.

A `WebSocketRoute` serves the requests to an `McpEndpoint` that ask for a WebSocket. They have
passed the gate of the listener: Host, Origin, principal and rate. The connection is one of the HTTP
server, with its limits.

The rules that live here, and only here:

* A client that offers subprotocols has to offer `mcp`, which is then chosen; one that offers none
  is admitted.                                                  [RFC 6455, section 4.2.2]
* A version other than 13 is answered with 426 and the version that is served.
                                                                [RFC 6455, section 4.4]
* Each message counts for the rate of the client. Beyond it, nothing is read from the connection
  until the next message is due. The elements of a batch cannot wait: each beyond the rate is
  refused.
* A connection ends with status 3000 when the credential of its handshake does.
* A server that stops closes with 1001, after the requests that were begun are answered.
                                                                [RFC 6455, section 7.4.1]
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from websockets.datastructures import Headers
from websockets.frames import CloseCode
from websockets.http11 import Request
from websockets.protocol import SERVER
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from ...accounts.account import ReceivedBytes
from ...errors import TransportError
from ...spec.http_conditions import HTTP
from ..base import ignore
from ..http.response import STOPPING, TOO_MANY_SESSIONS, Refusal
from .connection import READ_BYTES, SILENT, SUBPROTOCOL, WebSocketFrames, WebSocketTransport

if TYPE_CHECKING:
    from ...accounts.account import Account
    from ..base import Frame
    from ..http.endpoint.endpoint import McpEndpoint
    from ..http.gate.authentication import Owner
    from ..http.request import HttpRequest
    from ..http.response import OpenExchange
    from ..http.server.http_server import HttpServer

__all__ = ["AcceptedWebSocket", "WebSocketRoute", "serve_websocket"]

_VERSION: Final = b"13"
# The status of a connection whose credential has ended: "unauthorized" in IANA's registry.
_UNAUTHORIZED: Final = 3000
_WRONG_VERSION: Final = Refusal(
    HTTP["upgrade-version-unsupported"],
    "The version of WebSocket is not 13",
    ((b"upgrade", b"websocket"), (b"sec-websocket-version", _VERSION)),
)
_WRONG_SUBPROTOCOL: Final = Refusal(
    HTTP["upgrade-malformed"], f"Sec-WebSocket-Protocol does not offer {SUBPROTOCOL}"
)


class AcceptedWebSocket(WebSocketTransport):
    """A connection that a server has accepted."""

    _other = "client"

    def __init__(
        self,
        server: HttpServer,
        request: HttpRequest,
        limit: int | None,
        buffer: memoryview,
        *,
        account: Account,
        owner: Owner | None = None,
        rate_wait: Callable[[], float | None] | None = None,
    ) -> None:
        super().__init__(limit, buffer)
        # The request that opened it; handlers see its headers.
        self.request = request
        # That of the client, which the connection uses until it ends.
        self.account = account
        self.owner = owner
        self.peer = request.client
        self.exchange: OpenExchange | None = None
        # Called to end the connection when the credential of its owner has ended.
        self.on_end: Callable[[], object] = ignore
        self._is_expired = False
        self._server = server
        # Returns the seconds until the next message is admitted, or None if it is.
        self.rate_wait = rate_wait
        # The bytes of an unfinished message, which count for the client.
        self._received: ReceivedBytes | None = None
        self._held: deque[Frame] = deque()
        self._releasing: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        state = "open" if self.is_connected else "closed"
        return f"<AcceptedWebSocket from {self.peer or 'a client'}, {state}>"

    async def connect(self) -> None:
        """Raise: an accepted connection is connected.

        Raises:
            TransportError: always.
        """
        raise TransportError("a transport connects once")

    def connection_made(self, transport: Any) -> None:
        """Begin to carry messages."""
        super().connection_made(transport)
        self.account.uses += 1
        self._begin(WebSocketFrames(SERVER, max_size=self._limit))

    def _note_unfinished(self, size: int) -> None:
        if self._received is None:
            self.account.uses += 1
            self._received = ReceivedBytes(self.account)
        if not self._received.weigh(size):
            self._fail(CloseCode.TRY_AGAIN_LATER, "too many bytes of messages at once")
            self._flush()

    def _deliver(self, frame: Frame, route: Any = None) -> None:
        if self._received is not None and self._received.size:
            self._received.weigh(0)  # the message is complete, and counts with its request
        if self.rate_wait is None:
            super()._deliver(frame, self)
            return
        self._held.append(frame)
        if self._releasing is None:
            self._release()

    def _release(self) -> None:
        """Deliver messages until the rate of the client is reached."""
        self._releasing = None
        while self._held and not self._is_reported:
            seconds = None if self.rate_wait is None else self.rate_wait()
            if seconds is not None:
                self.pause()
                self._releasing = self._loop.call_later(seconds, self._release)
                return
            super()._deliver(self._held.popleft(), self)
        self.resume()

    def _close_code(self) -> int:
        if self._is_expired:
            return _UNAUTHORIZED
        return CloseCode.GOING_AWAY if self._server.is_stopping else CloseCode.NORMAL_CLOSURE

    def _stop(self) -> None:
        self._held.clear()
        if self._releasing is not None:
            self._releasing.cancel()
            self._releasing = None
        self._server.forget(self)
        if self._received is not None:
            self._received.close()
        self.account.close()

    # -- as a connection of the HTTP server --------------------------------------------------

    def tick(self, now: float) -> None:
        """Apply the timeouts, and end with the credential; called every second."""
        expires_at = None if self.owner is None else self.owner.expires_at
        if expires_at is not None and time.time() >= expires_at and not self._is_expired:
            self._is_expired = True
            self.on_end()
            return
        limits = self._server.limits
        self.check_rate(now, limits.body_timeout)
        self.check(now, limits.keep_alive)

    def drop(self) -> None:
        """Close at once; a WebSocket is not idle between two requests."""
        self.abort()

    def abort(self) -> None:
        """Close at once, whatever was not written."""
        self._abort()


class WebSocketRoute:
    """WebSocket at the path of an endpoint; `on_connection` gets each connection."""

    def __init__(
        self,
        endpoint: McpEndpoint,
        server: HttpServer,
        limit: int | None,
        buffer: memoryview,
        on_connection: Callable[[AcceptedWebSocket], object],
    ) -> None:
        self._endpoint = endpoint
        self._server = server
        self._limit = limit
        self._buffer = buffer
        self._on_connection = on_connection

    def takes(self, request: HttpRequest) -> bool:
        """Return True if a request asks for a WebSocket."""
        if request.method != "GET" or request.http_version != "1.1":
            return False
        return b"websocket" in _tokens(request, b"upgrade") and b"upgrade" in _tokens(
            request, b"connection"
        )

    def admit(self, request: HttpRequest) -> Refusal | None:
        """Decide on a request by its head, after Host and Origin; None lets it in."""
        if request.all(b"sec-websocket-version") != [_VERSION]:
            return _WRONG_VERSION
        offered = _tokens(request, b"sec-websocket-protocol")
        if offered and SUBPROTOCOL.encode() not in offered:
            return _WRONG_SUBPROTOCOL
        return (
            None
            if self._response(request)
            else Refusal(HTTP["upgrade-malformed"], "Malformed WebSocket handshake")
        )

    def open(
        self,
        request: HttpRequest,
        body: Any,
        responder: Any,
        owner: Owner | None,
        client: str,
    ) -> None:
        """Accept the WebSocket of a request that was admitted."""
        endpoint, server = self._endpoint, self._server
        if not endpoint.service.is_ready or server.is_stopping:
            endpoint.routes.refuse(responder, STOPPING, request)
            return
        if not endpoint.has_session_room(owner):
            endpoint.routes.refuse(responder, TOO_MANY_SESSIONS, request)
            return
        rate_wait = endpoint.routes.rate_of(client)
        account = endpoint.open_account(responder, owner, client)
        connection = AcceptedWebSocket(
            server,
            request,
            self._limit,
            self._buffer,
            account=account,
            owner=owner,
            rate_wait=rate_wait,
        )
        if responder.upgrade(self._response(request), connection):
            self._on_connection(connection)
        else:
            endpoint.routes.refuse(
                responder,
                Refusal(HTTP["upgrade-malformed"], "Malformed WebSocket handshake"),
                request,
            )
        account.close()

    def _response(self, request: HttpRequest) -> bytes:
        """Return the answer that accepts a handshake, or nothing if it is malformed."""
        headers = Headers()
        for name, value in request.headers:
            headers[name.decode("latin-1")] = value.decode("latin-1")
        offered = [Subprotocol(SUBPROTOCOL)] if "Sec-WebSocket-Protocol" in headers else None
        protocol = ServerProtocol(subprotocols=offered, logger=SILENT)
        response = protocol.accept(Request(request.path, headers))
        return response.serialize() if response.status_code == 101 else b""


def serve_websocket(
    endpoint: McpEndpoint,
    server: HttpServer,
    limit: int | None,
    on_connection: Callable[[AcceptedWebSocket], object],
) -> None:
    """Serve WebSocket too, at the paths of an endpoint; `limit` is the size of a message."""
    buffer = memoryview(bytearray(READ_BYTES))
    endpoint.route.upgrade = WebSocketRoute(endpoint, server, limit, buffer, on_connection)


def _tokens(request: HttpRequest, name: bytes) -> list[bytes]:
    """Return the elements of a header that is a list, in lower case."""
    values = b",".join(request.all(name)).lower().split(b",")
    return [each.strip(b" \t") for each in values if each.strip(b" \t")]
