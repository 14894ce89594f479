"""HTTP listener of a proxy: a socket, and the endpoint whose service is an `HttpSource`."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ...transports.addresses import Http, Tcp
from ...transports.http.endpoint.endpoint import McpEndpoint
from ...transports.http.endpoint.routes import Routes
from ...transports.http.gate.admission import Admission
from ...transports.http.server.http_server import HttpServer
from ...transports.sockets.listener import Listener

if TYPE_CHECKING:
    from ...jsonrpc.policy import Policy
    from ...transports.http.settings import HttpLimits, HttpSettings
    from .http_source import HttpSource

__all__ = ["HttpSourceListener"]

# For clients to read what they were sent, after the last request was answered.
_FLUSH_TIMEOUT_S: Final = 0.5
# Unfinished TLS handshakes; they are not connections yet.
_MAX_HANDSHAKES: Final = 256


class HttpSourceListener:
    """Accepts the connections of clients.

    Raises:
        ValueError: other machines can reach the address, and no name of it is allowed.
    """

    def __init__(
        self,
        address: Http,
        policy: Policy,
        settings: HttpSettings,
        limits: HttpLimits,
        source: HttpSource,
    ) -> None:
        self.address = address
        self._settings = settings
        self._limits = limits
        self._policy = policy
        self._source = source
        self._admission(address)
        self._accepting: dict[asyncio.Task[Any], None] = {}
        self._http: HttpServer | None = None
        self._listener = Listener(
            address.socket, policy, on_socket=self._take, backlog=limits.backlog
        )

    def _admission(self, address: Http) -> Admission:
        is_unix = address.unix is not None
        bound = [] if is_unix else [(address.host, address.port)]
        return Admission(self._settings, bound, is_unix=is_unix, is_secure=bool(address.tls))

    async def open(self) -> None:
        """Start to listen; `address` then has the port that the system chose.

        Raises:
            TransportError: the address cannot be used.
        """
        await self._listener.open()
        where = self._listener.address
        if isinstance(where, Tcp):
            self.address = replace(self.address, port=where.port)
        clock = asyncio.get_running_loop().time
        routes = Routes(self._admission(self.address), self._settings, clock)
        routes.add_probes()
        endpoint = McpEndpoint(
            self._source, routes, self._settings, self._limits, self.address.path
        )
        self._source.on_session_end = endpoint.sessions.discard
        self._http = HttpServer(
            routes,
            self._limits,
            self._policy.limits.message_size("http"),
            is_secure=bool(self.address.tls),
        )
        if self._settings.websocket:
            self._serve_websocket(endpoint, self._http)

    def _serve_websocket(self, endpoint: McpEndpoint, http: HttpServer) -> None:
        # Imported here: most proxies do not offer it.
        from ...transports.websocket.connection import READ_BYTES
        from ...transports.websocket.server import WebSocketRoute

        limit = self._policy.limits.message_size("websocket")
        buffer = memoryview(bytearray(READ_BYTES))
        opened = self._source.open_websocket
        endpoint.route.upgrade = WebSocketRoute(endpoint, http, limit, buffer, opened)

    def stop(self) -> None:
        """Stop accepting connections and requests."""
        self._source.is_ready = False
        self._listener.close()
        if self._http is not None:
            self._http.stop()

    async def close(self) -> None:
        """Close every connection, after its client has read what was sent."""
        self.stop()
        for each in list(self._accepting):
            each.cancel()
        if self._http is not None:
            await self._http.close(_FLUSH_TIMEOUT_S)

    def _take(self, sock: socket.socket) -> None:
        """Begin to serve an accepted connection."""
        http = self._http
        if http is None or http.is_stopping:
            sock.close()
            return
        if len(self._accepting) >= _MAX_HANDSHAKES:
            next(iter(self._accepting)).cancel()
        tls = self._listener.context
        accepting = http.loop.create_task(
            http.loop.connect_accepted_socket(
                http.protocol,
                sock,
                ssl=tls,
                ssl_handshake_timeout=self._limits.tls_handshake if tls is not None else None,
            )
        )
        self._accepting[accepting] = None
        accepting.add_done_callback(self._accepted)

    def _accepted(self, accepting: asyncio.Task[Any]) -> None:
        del self._accepting[accepting]
        if not accepting.cancelled():
            accepting.exception()  # a client that cannot do TLS has gone
