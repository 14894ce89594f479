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

from ...spec.http_conditions import HTTP
from ...transports.addresses import Http, Tcp, is_exposed, parse_host_and_port
from ...transports.http.gate.admission import Admission
from ...transports.http.response import Refusal, method_not_allowed
from ...transports.http.server.http_server import HttpServer
from ...transports.http.settings import HttpLimits, HttpSettings
from ...transports.sockets.listener import Listener
from ..observability.prometheus import CONTENT_TYPE, enable_metrics, metrics_page

if TYPE_CHECKING:
    from ...transports.http.request import HttpRequest
    from ...transports.http.response import Responder
    from ..api.core import ServerCore

__all__ = ["MetricsListener"]

_log: Final = logging.getLogger("trunkline.server")

METRICS_PATH: Final = "/metrics"
# One scraper needs one; beyond that the longest idle one gives way.
_LIMITS: Final = HttpLimits(connections=64, header_bytes=16 * 1024)
# A scraper sends no body.
_MAX_BODY_BYTES: Final = 1024
# For scrapers to read the page when the server ends.
_FLUSH_TIMEOUT_S: Final = 1.0


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
        self._http = HttpServer(_MetricsRoutes(self._core, self._address), _LIMITS, _MAX_BODY_BYTES)

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


class _MetricsRoutes:
    """What the listener serves, as its HTTP server sees it."""

    def __init__(self, core: ServerCore, address: Http) -> None:
        self._core = core
        self._checks_host = not is_exposed(address)
        bound = [(address.host, address.port)] if self._checks_host else []
        self.admission = Admission(HttpSettings(), bound)

    def admit(self, request: HttpRequest) -> Refusal | None:
        """Decide on a request by its head; None lets it in."""
        refusal = self.admission.check(request) if self._checks_host else None
        if refusal is not None:
            return refusal
        if request.path != METRICS_PATH:
            return Refusal(HTTP["path-unknown"], "Not found")
        if request.method not in ("GET", "HEAD"):
            return method_not_allowed(b"GET, HEAD")
        return None

    def handle(self, request: HttpRequest, body: Any, responder: Responder) -> None:
        """Answer with the page."""
        headers = ((b"content-type", CONTENT_TYPE.encode()), (b"cache-control", b"no-store"))
        responder.respond(200, metrics_page(self._core), headers)

    def refuse(self, responder: Responder, refusal: Refusal, request: HttpRequest | None) -> None:
        """Answer with an HTTP error."""
        body = json.encode({"error": refusal.message})
        headers = ((b"content-type", b"application/json"), *refusal.headers)
        responder.respond(refusal.status, body, headers)

    def reap(self, now: float) -> None:
        """Do nothing: there are no sessions."""
