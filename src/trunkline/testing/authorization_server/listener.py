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
from ...transports.lifecycle import ListenerLifecycle

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from ...transports.http.gate.authentication import Owner
    from ...transports.http.request import HttpRequest
    from ...transports.http.response import Refusal, Responder
    from .messages import EndpointResponse

__all__ = ["EndpointListener"]

_log: Final = logging.getLogger("trunkline.testing")

_MAX_BODY_BYTES: Final = 256 * 1024
_LIMITS: Final = HttpLimits(connections=256)
# For clients to read their responses when the server ends.
_FLUSH_TIMEOUT_S: Final = 0.5

# None closes the connection without an answer.
Handle = Callable[["HttpRequest", bytes], Awaitable["EndpointResponse | None"]]


class EndpointListener(ListenerLifecycle):
    """Answers each request with what a function returns, for one `async with`.

    Raises:
        ValueError: the host is not this machine.
    """

    def __init__(
        self, host: str, port: int, context: ssl.SSLContext | None, handle: Handle
    ) -> None:
        super().__init__()
        if not is_loopback_host(host):
            raise ValueError(
                f"an AuthorizationServer is for development only and listens on this machine "
                f"alone, not on {show(host)}"
            )
        self.port = port
        self._host = host
        self._context = context
        self._handle = handle
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def _open(self, opening: AsyncExitStack) -> None:
        is_secure = self._context is not None
        http = HttpServer(self._routes(), _LIMITS, _MAX_BODY_BYTES, is_secure=is_secure)
        opening.push_async_callback(http.close, _FLUSH_TIMEOUT_S)
        # Not a `Listener`: tests of clients also run where descriptors cannot be watched.
        self._server = await http.loop.create_server(
            http.protocol, self._host, self.port, ssl=self._context
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def stop_accepting(self) -> None:
        """Stop to listen."""
        if self._server is not None:
            self._server.close()

    def _stop_serving(self, at_once: bool) -> None:
        for each in list(self._tasks):
            each.cancel()

    def _routes(self) -> Routes:
        settings, loop = HttpSettings(), asyncio.get_running_loop()
        admission = Admission(settings, [(self._host, 0)])
        routes = Routes(admission, settings, loop.time, error_body=_error_body)

        async def answer(request: HttpRequest, body: bytes, responder: Responder) -> None:
            try:
                found = await self._handle(request, body)
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


def _error_body(refusal: Refusal, id: object) -> bytes:
    return json.encode({"error": "invalid_request", "error_description": refusal.message})
