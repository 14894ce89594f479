"""HTTP listener of a server: a socket, the endpoint behind it, and their shutdown in order.

    async with app.listen("http://127.0.0.1:8000/mcp") as listening:
        await listening.wait()

The rules that live here, and only here:

* The lifespan lasts as long as the listener.
* Shutdown is ordered: stop accepting, answer `subscriptions/listen`, finish running requests, close
  the connections, then the listener of metrics, exit the lifespan.
* A server that other machines can reach without authentication logs a warning.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from ...errors import TrunklineError
from ...transports.addresses import Http, Tcp, is_exposed
from ...transports.http.authority import DEFAULT_PORTS, parse_authority
from ...transports.http.endpoint.routes import Routes
from ...transports.http.gate.admission import Admission
from ...transports.http.server.http_server import HttpServer
from ...transports.sockets.listener import Listener
from ..dispatch.log_limit import LogLimit
from .http_service import HttpService

if TYPE_CHECKING:
    from ...auth.server.resource_server import ResourceServer
    from ...transports.http.endpoint.endpoint import McpEndpoint
    from ...transports.http.endpoint.routes import AddRoutes
    from ...transports.http.settings import HttpLimits, HttpSettings
    from ..core import ServerCore
    from .metrics_listener import MetricsListener

__all__ = ["HttpListener"]

_log: Final = logging.getLogger("trunkline.server")

# For clients to read what they were sent, after the last request was answered.
_FLUSH_TIMEOUT_S: Final = 2.0
# Unfinished TLS handshakes; they are not connections yet.
_MAX_HANDSHAKES: Final = 256


class HttpListener:
    """A server that listens for HTTP; `Server.listen` makes one, for one `async with`."""

    def __init__(
        self,
        app: ServerCore,
        address: Http,
        settings: HttpSettings,
        limits: HttpLimits,
        sock: socket.socket | Sequence[socket.socket] | None = None,
        auth: Any = None,
        add_routes: Sequence[AddRoutes] = (),
    ) -> None:
        self._app = app
        self._auth = auth
        # Those of other protocols, beside MCP.
        self._add_routes = add_routes
        self._settings = settings
        self._limits = limits
        self._address = address
        # Before anything is opened: an address beyond this machine needs the names of hosts.
        self._admission(address)
        self._authenticator(address, None)
        self._listener = Listener(
            address.socket,
            app.policy,
            on_socket=self._take,
            backlog=limits.backlog,
            make_room=self._make_room,
            sock=sock,
        )
        self._open = AsyncExitStack()
        self._is_used = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        # Connections whose TLS handshake is not finished, oldest first.
        self._accepting: dict[asyncio.Task[Any], None] = {}
        self._http: HttpServer | None = None
        self._routes: Routes | None = None
        self._endpoint: McpEndpoint | None = None
        self._metrics: MetricsListener | None = None

    def __repr__(self) -> str:
        return f"<HttpListener on {self.address}, {self.connections} connections>"

    @property
    def address(self) -> Http:
        """The address it listens on; port 0 is replaced by the actual port."""
        return self._address

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return 0 if self._http is None else len(self._http.connections)

    @property
    def sessions(self) -> int:
        """The number of open sessions."""
        return 0 if self._endpoint is None else self._endpoint.sessions.count

    @property
    def metrics_address(self) -> Http | None:
        """The address of the metrics, if `HttpSettings.metrics` is set; port 0 is replaced."""
        return None if self._metrics is None else self._metrics.address

    async def __aenter__(self) -> Self:
        """Enter the lifespan and start to listen.

        Raises:
            TransportError: the address cannot be used; the text says why.
        """
        if self._is_used:
            raise TrunklineError("an HttpListener is entered once: call listen() again")
        self._is_used = True
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        async with AsyncExitStack() as opening:
            await opening.enter_async_context(self._app.opened())
            if self._settings.metrics is not None:
                await self._open_metrics(self._settings.metrics, opening)
            await self._listen(opening)
            opening.callback(self._listener.close)
            self._app.listeners.add(self)
            opening.callback(self._app.listeners.discard, self)
            self._open = opening.pop_all()
        _log.info("listening on %s", self.address)
        if self._metrics is not None:
            _log.info("metrics are at %s", self._metrics.address)
        if not self._requires_credentials and is_exposed(self._address):
            _log.warning(
                "%s accepts requests of other machines without authentication", self.address
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def wait(self) -> None:
        """Wait until `stop` or `close` is called, or the server is stopped."""
        if self._stopping is not None:
            await self._stopping.wait()

    def stop(self, *, at_once: bool = False) -> None:
        """Start shutdown: stop accepting, and let running requests finish.

        May be called from any thread, and again: `at_once` cancels running handlers.
        """
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop, at_once)

    def stop_accepting(self) -> None:
        """Stop accepting; open connections continue until `stop` or `close`."""
        self._listener.close()

    async def close(self) -> None:
        """Shut down; return when every connection is closed and the lifespan has ended."""
        if self._stopping is None:
            return
        self._stop(at_once=False)
        if self._routes is not None:
            await self._routes.close()
        for each in list(self._accepting):
            each.cancel()  # its handshake would outlast the server
        if self._http is not None:
            await self._http.close(_FLUSH_TIMEOUT_S)
        opened, self._open = self._open, AsyncExitStack()
        await opened.aclose()

    def _stop(self, at_once: bool) -> None:
        self.stop_accepting()
        if self._http is not None:
            self._http.stop()
        if self._routes is not None:
            self._routes.stop(at_once=at_once)
        if self._stopping is not None:
            self._stopping.set()

    # -- opening -----------------------------------------------------------------------------

    def _admission(self, address: Http) -> Admission:
        is_unix = address.unix is not None
        bound = [] if is_unix else [(address.host, address.port)]
        return Admission(self._settings, bound, is_unix=is_unix, is_secure=bool(address.tls))

    def _authenticator(self, address: Http, admission: Admission | None) -> ResourceServer | None:
        if self._auth is None:
            return None
        # Imported here: most servers that are not public have none.
        from ...auth.server.resource_server import resource_server_of

        return resource_server_of(
            self._auth,
            path=address.path,
            public_url=self._settings.public_url,
            address=_url(address, self._settings),
            scheme_of=None if admission is None else admission.scheme_of,
            host_of=None if admission is None else admission.host_of,
            is_from_proxy=None if admission is None else admission.is_from_proxy,
        )

    @property
    def _requires_credentials(self) -> bool:
        return self._routes is not None and self._routes.requires_credentials

    async def _open_metrics(self, where: str, opening: AsyncExitStack) -> None:
        # Imported here: most servers have none.
        from .metrics_listener import MetricsListener

        self._metrics = MetricsListener(self._app, where)
        # Closed after the connections: the end of a server can be watched.
        opening.push_async_callback(self._metrics.close)
        await self._metrics.open()

    async def _listen(self, opening: AsyncExitStack) -> None:
        loop, limits, app = asyncio.get_running_loop(), self._limits, self._app
        await self._listener.open()
        where = self._listener.address
        if isinstance(where, Tcp):
            self._address = replace(self._address, port=where.port)
        address = self._address
        log_limit = LogLimit(loop, is_shared=True)
        opening.callback(log_limit.end)
        service = HttpService(app, limits, log_limit)
        admission = self._admission(address)
        authenticator = self._authenticator(address, admission)
        routes = self._routes = Routes(admission, self._settings, loop.time, authenticator)
        routes.add_probes()
        endpoint = self._endpoint = service.add_routes(routes, self._settings, address.path)
        for add in self._add_routes:
            add(routes)
        self._http = HttpServer(
            routes,
            limits,
            app.policy.limits.message_size("http"),
            is_secure=bool(address.tls),
            access_log=self._settings.access_log,
            counters=app.counters,
        )
        if self._settings.websocket:
            self._serve_websocket(endpoint, self._http, service)

    def _serve_websocket(
        self, endpoint: McpEndpoint, http: HttpServer, service: HttpService
    ) -> None:
        # Imported here: most servers do not offer it.
        from ...transports.websocket.connection import READ_BYTES
        from ...transports.websocket.server import WebSocketRoute

        limit = self._app.policy.limits.message_size("websocket")
        buffer = memoryview(bytearray(READ_BYTES))
        opened = service.open_websocket
        endpoint.route.upgrade = WebSocketRoute(endpoint, http, limit, buffer, opened)

    def _take(self, sock: socket.socket) -> None:
        """Begin to serve an accepted connection."""
        http, loop = self._http, self._loop
        if http is None or loop is None or http.is_stopping:
            sock.close()
            return
        if len(self._accepting) >= _MAX_HANDSHAKES:
            # The oldest gives way, as it would to a client that sends nothing.
            next(iter(self._accepting)).cancel()
        tls = self._listener.context
        timeout = self._limits.tls_handshake if tls is not None else None
        accepting = loop.create_task(
            loop.connect_accepted_socket(
                http.protocol, sock, ssl=tls, ssl_handshake_timeout=timeout
            )
        )
        self._accepting[accepting] = None
        accepting.add_done_callback(self._accepted)

    def _accepted(self, accepting: asyncio.Task[Any]) -> None:
        del self._accepting[accepting]
        if not accepting.cancelled() and (error := accepting.exception()) is not None:
            _log.debug("connection not accepted: %s", error)

    def _make_room(self) -> bool:
        return self._http is not None and self._http.make_room()


def _url(address: Http, settings: HttpSettings) -> str | None:
    """Return the URL of a listener as its clients use it; None on a Unix socket."""
    if address.unix is not None:
        return None
    scheme = "https" if address.tls else "http"
    host = f"[{address.host}]" if ":" in address.host else address.host
    if settings.hosts and is_exposed(address):
        # Bound to every interface, perhaps: clients use the name.
        host = settings.hosts[0]
    authority = parse_authority(host)
    has_port = authority is not None and authority.port is not None
    is_plain = has_port or address.port == DEFAULT_PORTS[scheme]
    return f"{scheme}://{host}{'' if is_plain else f':{address.port}'}{address.path}"
