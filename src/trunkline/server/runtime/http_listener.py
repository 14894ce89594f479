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
from typing import TYPE_CHECKING, Any, Final

from ...engine.log_limit import LogLimit
from ...transports.addresses import Http, is_exposed
from ...transports.http.authority import DEFAULT_PORTS, parse_authority
from ...transports.http.endpoint.routes import Routes
from ...transports.http.server.http_server import HttpServer
from ...transports.http.server.listener import HttpSocketListener, admission_of
from .http_service import HttpService

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from ...auth.server.resource_server import ResourceServer
    from ...transports.http.endpoint.endpoint import McpEndpoint
    from ...transports.http.endpoint.routes import AddRoutes
    from ...transports.http.gate.admission import Admission
    from ...transports.http.settings import HttpLimits, HttpSettings
    from ..api.core import ServerCore
    from .metrics_listener import MetricsListener

__all__ = ["HttpListener"]

_log: Final = logging.getLogger("trunkline.server")

# For clients to read what they were sent, after the last request was answered.
_FLUSH_TIMEOUT_S: Final = 2.0


class HttpListener(HttpSocketListener):
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
        super().__init__(address, app.policy, limits, _FLUSH_TIMEOUT_S, sock)
        self._app = app
        self._auth = auth
        # Those of other protocols, beside MCP.
        self._add_routes = add_routes
        self._settings = settings
        # Before anything is opened: an address beyond this machine needs the names of hosts.
        admission_of(address, settings)
        self._authenticator(address, None)
        self._endpoint: McpEndpoint | None = None
        self._metrics: MetricsListener | None = None

    def __repr__(self) -> str:
        return f"<HttpListener on {self.address}, {self.connections} connections>"

    @property
    def sessions(self) -> int:
        """The number of open sessions."""
        return 0 if self._endpoint is None else self._endpoint.sessions.count

    @property
    def metrics_address(self) -> Http | None:
        """The address of the metrics, if `HttpSettings.metrics` is set; port 0 is replaced."""
        return None if self._metrics is None else self._metrics.address

    # -- opening -----------------------------------------------------------------------------

    async def _open(self, opening: AsyncExitStack) -> None:
        await opening.enter_async_context(self._app.runtime.opened())
        if self._settings.metrics is not None:
            await self._open_metrics(self._settings.metrics, opening)
        await self._listen(opening)
        self._app.runtime.listeners.add(self)
        opening.callback(self._app.runtime.listeners.discard, self)
        _log.info("listening on %s", self.address)
        if self._metrics is not None:
            _log.info("metrics are at %s", self._metrics.address)
        if self._http is not None and self._http.routes.requires_credentials:
            return
        if is_exposed(self.address):
            _log.warning(
                "%s accepts requests of other machines without authentication", self.address
            )

    def _authenticator(self, address: Http, admission: Admission | None) -> ResourceServer | None:
        if self._auth is None:
            return None
        # Imported here: most servers that are not public have none.
        from ...auth.server.resource_server import resource_server_of

        has_proxies = bool(self._settings.trusted_proxies)
        return resource_server_of(
            self._auth,
            path=address.path,
            public_url=self._settings.public_url,
            address=_url(address, self._settings),
            scheme_of=None if admission is None else admission.scheme_of,
            host_of=None if admission is None else admission.host_of,
            is_from_proxy=None if admission is None else admission.is_from_proxy,
            client_of=admission.client_of if admission is not None and has_proxies else None,
        )

    async def _open_metrics(self, where: str, opening: AsyncExitStack) -> None:
        # Imported here: most servers have none.
        from .metrics_listener import MetricsListener

        self._metrics = MetricsListener(self._app, where)
        # Closed after the connections: the end of a server can be watched.
        await opening.enter_async_context(self._metrics)

    async def _listen(self, opening: AsyncExitStack) -> None:
        loop, limits, app = asyncio.get_running_loop(), self._limits, self._app
        await self._bind(opening)
        address = self.address
        log_limit = LogLimit(loop, is_shared=True)
        opening.callback(log_limit.end)
        service = HttpService(app, limits, log_limit)
        admission = admission_of(address, self._settings)
        authenticator = self._authenticator(address, admission)
        routes = Routes(admission, self._settings, loop.time, authenticator)
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
            counters=app.runtime.counters,
            accounts=app.runtime.accounts,
        )
        if self._settings.websocket:
            # Imported here: most servers do not offer it.
            from ...transports.websocket.server import serve_websocket

            limit = app.policy.limits.message_size("websocket")
            serve_websocket(endpoint, self._http, limit, service.open_websocket)


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
