"""The HTTP listener of the development authorization server, on a loopback address alone."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import json

from ...exception_text import as_redacted
from ...redaction import show
from ...transports.http.client.fetch import is_loopback_host
from ...transports.http.endpoint.routes import Route, Routes
from ...transports.http.gate.admission import Admission
from ...transports.http.response import INTERNAL_ERROR
from ...transports.http.server.http_server import HttpServer
from ...transports.http.server.response_writer import ResponseWriter
from ...transports.http.settings import HttpLimits, HttpSettings

if TYPE_CHECKING:
    from ...transports.http.gate.authentication import Owner
    from ...transports.http.request import HttpRequest
    from ...transports.http.response import Responder
    from .messages import EndpointResponse

__all__ = ["EndpointListener"]

_log: Final = logging.getLogger("trunkline.testing")

_MAX_BODY_BYTES: Final = 256 * 1024
_LIMITS: Final = HttpLimits(connections=256)
# For clients to read their responses when the server ends.
_FLUSH_TIMEOUT_S: Final = 0.5

# None closes the connection without an answer.
Handle = Callable[["HttpRequest", bytes], Awaitable["EndpointResponse | None"]]


class EndpointListener:
    """Listens from `open` to `close`, and answers each request with what a function returns."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None) -> None:
        if not is_loopback_host(host):
            raise ValueError(
                f"an AuthorizationServer is for development only and listens on this machine "
                f"alone, not on {show(host)}"
            )
        self._host = host
        self._port = port
        self._context = context
        self._http: HttpServer | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, handle: Handle) -> int:
        """Listen, and return the port.

        Raises:
            OSError: the address cannot be used.
        """
        loop = asyncio.get_running_loop()
        routes = self._routes(handle)
        http = HttpServer(routes, _LIMITS, _MAX_BODY_BYTES, is_secure=self._context is not None)
        try:
            self._server = await loop.create_server(
                http.protocol, self._host, self._port, ssl=self._context
            )
        except OSError:
            await http.close(0)
            raise
        self._http = http
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def _routes(self, handle: Handle) -> Routes:
        settings, loop = HttpSettings(), asyncio.get_running_loop()
        admission = Admission(settings, [(self._host, 0)])
        routes = Routes(admission, settings, loop.time, error_body=_error_body)

        async def answer(request: HttpRequest, body: bytes, responder: Responder) -> None:
            try:
                found = await handle(request, body)
            except Exception as error:  # noqa: BLE001  # a defect; the client gets an answer
                _log.error("internal error of the authorization server\n%s", as_redacted(error))
                routes.refuse(responder, INTERNAL_ERROR, request)
                return
            if found is not None:
                responder.respond(found.status, found.body, found.headers)
            elif isinstance(responder, ResponseWriter):
                responder.abort()

        def respond(
            request: HttpRequest, body: Any, responder: Responder, owner: Owner | None, client: str
        ) -> None:
            data = body if isinstance(body, bytes) else b""
            task = loop.create_task(answer(request, data, responder))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        routes.add_prefix("/", Route(respond))
        return routes

    async def close(self) -> None:
        """Stop to listen, and close every connection."""
        server, http = self._server, self._http
        self._server = self._http = None
        if server is not None:
            server.close()
        for each in list(self._tasks):
            each.cancel()
        if http is not None:
            await http.close(_FLUSH_TIMEOUT_S)


def _error_body(message: str, id: object) -> bytes:
    return json.encode({"error": "invalid_request", "error_description": message})
