"""The second listener of `HttpSettings.metrics`: it serves the metrics of a server at `/metrics`.

The rules that live here, and only here:

* Nothing else is served there, and nothing is accepted: GET and HEAD only.
* On a loopback address the names of this machine are the only ones, as on any listener: a web page
  could read the metrics by DNS rebinding. On another address any Host is accepted, because a
  scraper uses whatever name or address its operator configured.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from msgspec import json

from ...transports.addresses import Http, is_exposed, parse_host_and_port
from ...transports.http.endpoint.routes import Route, Routes
from ...transports.http.gate.admission import Admission
from ...transports.http.server.http_server import HttpServer
from ...transports.http.server.listener import HttpSocketListener
from ...transports.http.settings import HttpLimits, HttpSettings
from ..observability.prometheus import CONTENT_TYPE, enable_metrics, metrics_page

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from ...transports.http.gate.authentication import Owner
    from ...transports.http.request import HttpRequest
    from ...transports.http.response import Headers, Refusal, Responder
    from ..api.core import ServerCore

__all__ = ["MetricsListener"]

METRICS_PATH: Final = "/metrics"
# One scraper needs one; beyond that the longest idle one gives way.
_LIMITS: Final = HttpLimits(connections=64, header_bytes=16 * 1024)
# A scraper sends no body.
_MAX_BODY_BYTES: Final = 1024
# For scrapers to read the page when the server ends.
_FLUSH_TIMEOUT_S: Final = 1.0

_PAGE_HEADERS: Final[Headers] = (
    (b"content-type", CONTENT_TYPE.encode()),
    (b"cache-control", b"no-store"),
)


class MetricsListener(HttpSocketListener):
    """Serves the page, for one `async with`."""

    def __init__(self, core: ServerCore, where: str) -> None:
        host, port = parse_host_and_port(where, shown=where)
        address = Http(host, port, METRICS_PATH)
        super().__init__(address, core.policy, _LIMITS, _FLUSH_TIMEOUT_S)
        self._core = core

    async def _open(self, opening: AsyncExitStack) -> None:
        enable_metrics(self._core)
        await self._bind(opening)
        self._http = HttpServer(self._routes(), _LIMITS, _MAX_BODY_BYTES)

    def _routes(self) -> Routes:
        address, settings = self.address, HttpSettings()
        admission = (
            _AnyHost(settings, [])
            if is_exposed(address)
            else Admission(settings, [(address.host, address.port)])
        )
        clock = asyncio.get_running_loop().time
        routes = Routes(admission, settings, clock, error_body=_error_body)
        routes.add(METRICS_PATH, Route(self._respond_page, ("GET", "HEAD")))
        return routes

    def _respond_page(
        self,
        request: HttpRequest,
        body: Any,
        responder: Responder,
        owner: Owner | None,
        client: str,
    ) -> None:
        responder.respond(200, metrics_page(self._core), _PAGE_HEADERS)


class _AnyHost(Admission):
    """The gate of a page that scrapers find by any name."""

    def check(self, request: HttpRequest) -> Refusal | None:
        """Admit every request."""
        return None


def _error_body(refusal: Refusal, id: object) -> bytes:
    return json.encode({"error": refusal.message})
