"""The second listener of `HttpSettings.metrics`: it serves the metrics of a server at `/metrics`.

The rules that live here, and only here:

* Nothing else is served there, and nothing is accepted: GET and HEAD only.
* On a loopback address the names of this machine are the only ones, as on any listener: a web page
  could read the metrics by DNS rebinding. On another address any Host is accepted, because a
  scraper uses whatever name or address its operator configured.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any, Final

from msgspec import json

from ...transports.addresses import Http, Tcp, is_exposed, parse_host_and_port
from ...transports.http.endpoint.routes import Route, Routes
from ...transports.http.gate.admission import Admission
from ...transports.http.server.http_server import HttpServer
from ...transports.http.settings import HttpLimits, HttpSettings
from ...transports.sockets.listener import Listener
from ..observability.prometheus import CONTENT_TYPE, enable_metrics, metrics_page

if TYPE_CHECKING:
    from ...transports.http.gate.authentication import Owner
    from ...transports.http.request import HttpRequest
    from ...transports.http.response import Headers, Refusal, Responder
    from ..core import ServerCore

__all__ = ["MetricsListener"]

_log: Final = logging.getLogger("trunkline.server")

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


class MetricsListener:
    """Listens from `open` to `close`."""

    def __init__(self, core: ServerCore, where: str) -> None:
        host, port = parse_host_and_port(where, shown=where)
        self._core = core
        self._address = Http(host, port, METRICS_PATH)
        self._listener = Listener(
            self._address.socket, core.policy, on_socket=self._take, make_room=self._make_room
        )
        self._http: HttpServer | None = None
        self._accepting: set[asyncio.Task[Any]] = set()

    @property
    def address(self) -> Http:
        """The address of the page; port 0 is replaced by the actual port."""
        return self._address

    async def open(self) -> None:
        """Begin to measure, and to listen.

        Raises:
            TransportError: the address cannot be used; the text says why.
        """
        enable_metrics(self._core)
        await self._listener.open()
        where = self._listener.address
        if isinstance(where, Tcp):
            self._address = Http(where.host, where.port, METRICS_PATH)
        self._http = HttpServer(self._routes(), _LIMITS, _MAX_BODY_BYTES)

    def _routes(self) -> Routes:
        address, settings = self._address, HttpSettings()
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

    async def close(self) -> None:
        """Stop to listen, and close every connection."""
        self._listener.close()
        if self._http is not None:
            await self._http.close(_FLUSH_TIMEOUT_S)
            self._http = None

    def _take(self, sock: socket.socket) -> None:
        http = self._http
        if http is None:
            sock.close()
            return
        accepting = http.loop.create_task(http.loop.connect_accepted_socket(http.protocol, sock))
        self._accepting.add(accepting)
        accepting.add_done_callback(self._accepted)

    def _accepted(self, accepting: asyncio.Task[Any]) -> None:
        self._accepting.discard(accepting)
        if not accepting.cancelled() and (error := accepting.exception()) is not None:
            _log.debug("connection for metrics not accepted: %s", error)

    def _make_room(self) -> bool:
        return self._http is not None and self._http.make_room()


class _AnyHost(Admission):
    """The gate of a page that scrapers find by any name."""

    def check(self, request: HttpRequest) -> Refusal | None:
        """Admit every request."""
        return None


def _error_body(message: str, id: object) -> bytes:
    return json.encode({"error": message})
