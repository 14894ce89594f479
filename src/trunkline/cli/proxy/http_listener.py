"""HTTP listener of a proxy: a socket, and the endpoint whose service is an `HttpSource`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ...transports.http.endpoint.endpoint import McpEndpoint
from ...transports.http.endpoint.routes import Routes
from ...transports.http.server.http_server import HttpServer
from ...transports.http.server.listener import HttpSocketListener, admission_of

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from ...jsonrpc.policy import Policy
    from ...transports.addresses import Http
    from ...transports.http.settings import HttpLimits, HttpSettings
    from .http_source import HttpSource

__all__ = ["HttpSourceListener"]

# For clients to read what they were sent, after the last request was answered.
_FLUSH_TIMEOUT_S: Final = 0.5


class HttpSourceListener(HttpSocketListener):
    """Accepts the connections of clients, for one `async with`.

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
        super().__init__(address, policy, limits, _FLUSH_TIMEOUT_S)
        self._policy = policy
        self._settings = settings
        self._source = source
        admission_of(address, settings)

    async def _open(self, opening: AsyncExitStack) -> None:
        await self._bind(opening)
        address, settings, source = self.address, self._settings, self._source
        clock = asyncio.get_running_loop().time
        routes = Routes(admission_of(address, settings), settings, clock)
        routes.add_probes()
        endpoint = McpEndpoint(source, routes, settings, self._limits, address.path)
        source.on_session_end = endpoint.sessions.discard
        sizes = self._policy.limits
        self._http = HttpServer(
            routes,
            self._limits,
            sizes.message_size("http"),
            is_secure=bool(address.tls),
            accounts=source.accounts,
        )
        if settings.websocket:
            # Imported here: most proxies do not offer it.
            from ...transports.websocket.server import serve_websocket

            limit = sizes.message_size("websocket")
            serve_websocket(endpoint, self._http, limit, source.open_websocket)
