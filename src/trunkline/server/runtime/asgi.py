"""A server as an ASGI 3 application, for `Server.asgi`.

    app = Starlette(routes=[Mount("/", server.asgi(path="/mcp", hosts=["mcp.example.org"]))])

The rules that live here, and only here:

* An application that is mounted in another one gets no lifespan events: the first request enters
  the lifespan. It is exited by `lifespan.shutdown`, by leaving `async with`, or when the event
  loop cancels its tasks, as `asyncio.run` does at its end.
* One task enters the lifespan, holds it and exits it: a task group inside needs that.
* Shutdown is ordered: refuse requests, answer `subscriptions/listen`, finish running requests, send
  their responses, exit the lifespan. Requests after that get 503 until it is started again.
* An application belongs to one event loop at a time.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec.structs import replace

from ...engine.log_limit import LogLimit
from ...redaction import show
from ...transports.addresses import Http
from ...transports.http.asgi import AsgiServer
from ...transports.http.endpoint.routes import Routes
from ...transports.http.gate.admission import Admission
from ...transports.http.settings import HttpLimits, HttpSettings
from ...transports.lifecycle import ListenerLifecycle
from ..errors import as_redacted
from .http_service import HttpService

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from ...auth.server.resource_server import ResourceServer
    from ...transports.http.asgi import Receive, Scope, Send
    from ...transports.http.endpoint.endpoint import McpEndpoint
    from ...transports.http.endpoint.routes import AddRoutes
    from ..api.core import ServerCore

__all__ = ["AsgiApp", "asgi"]

_log: Final = logging.getLogger("trunkline.server")

# For clients to read what they were sent, after the last request was answered.
_FLUSH_TIMEOUT_S: Final = 2.0


class AsgiApp:
    """A server as an ASGI application; `Server.asgi` makes one."""

    def __init__(
        self,
        core: ServerCore,
        path: str,
        settings: HttpSettings,
        limits: HttpLimits,
        auth: Any = None,
        add_routes: Sequence[AddRoutes] = (),
    ) -> None:
        """Serve MCP at a path, and what other protocols add to the routes.

        Raises:
            ValueError: the path is not one, or a setting needs a socket.
        """
        Http("localhost", path=path)  # checks it
        if "%" in path:
            raise ValueError(f"the path of an ASGI application is plain, not {show(path)}")
        if settings.metrics is not None:
            raise ValueError("HttpSettings.metrics needs a socket, which an ASGI app does not have")
        if settings.websocket:
            raise ValueError("HttpSettings.websocket needs a socket, as HttpSettings.metrics does")
        self.core = core
        self.path = path.rstrip("/") or "/"
        self.settings = settings
        self.limits = limits
        self.admission = Admission(settings, [])
        self.authenticator = _authenticator(auth, self.path, settings, self.admission)
        self.add_routes = add_routes
        self._context = contextvars.copy_context()
        self._run: _Run | None = None
        # Of the run, once it has started.
        self._server: AsgiServer | None = None

    def __repr__(self) -> str:
        run = self._run
        state = "not started" if run is None else "stopping" if run.is_stopping else "serving"
        return f"<AsgiApp {self.core.name!r} at {show(self.path)}, {state}>"

    @property
    def sessions(self) -> int:
        """The number of open sessions."""
        run = self._run
        return 0 if run is None or run.endpoint is None else run.endpoint.sessions.count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan, as ASGI has it."""
        kind = scope["type"]
        if kind == "http":
            server = self._server
            if server is None or server.loop is not asyncio.get_running_loop():
                server = await self._started()
            await server.serve(scope, receive, send)
        elif kind == "lifespan":
            await self._lifespan(receive, send)
        elif kind == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "MCP is served on HTTP"})
        else:
            raise ValueError(f"the ASGI scope {show(kind)} is not supported")

    async def __aenter__(self) -> Self:
        """Enter the lifespan of the server."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Enter the lifespan of the server now, not with the first request.

        Raises:
            RuntimeError: it is served on another event loop.
        """
        if self._run is not None and self._run.is_stopping:
            await self.close()
            self._run = self._server = None
        await self._started()

    def stop(self, *, at_once: bool = False) -> None:
        """Start shutdown: refuse requests, and let running ones finish.

        May be called from any thread, and again: `at_once` cancels running handlers.
        """
        run = self._run
        if run is not None and not run.loop.is_closed():
            run.loop.call_soon_threadsafe(run.stop_now, at_once)

    def stop_accepting(self) -> None:
        """Do nothing: the server that runs the application accepts connections."""

    async def close(self) -> None:
        """Shut down; return when every request is answered and the lifespan has ended."""
        run = self._run
        if run is not None and run.loop is asyncio.get_running_loop():
            run.stop_now()
            await asyncio.shield(run.task)

    async def _started(self) -> AsgiServer:
        """Return what serves on this event loop; start it, or wait for that."""
        loop, run = asyncio.get_running_loop(), self._run
        if run is not None and run.loop is not loop:
            if not run.loop.is_closed() and not run.task.done():
                raise RuntimeError(f"{self!r} is being served on another event loop")
            run = None
        if run is None:
            self._server = None
            run = self._run = _Run(self, self._context.copy())
        try:
            server = await asyncio.shield(run.ready)
        except BaseException:  # whatever the lifespan raised, and a cancelled request
            if run.ready.done() and self._run is run:
                self._run = None  # the next request tries again
            raise
        if self._run is run:
            self._server = server
        return server

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            is_start = message["type"] == "lifespan.startup"
            try:
                if is_start:
                    await self.start()
                else:
                    await self.close()
            except Exception as error:  # noqa: BLE001  # of the author's lifespan; the server is told
                _log.error("lifespan of %s failed\n%s", self.core.name, as_redacted(error))
                text = f"the lifespan of {self.core.name} raised {type(error).__name__}"
                await send({"type": f"{message['type']}.failed", "message": text})
                return
            await send({"type": f"{message['type']}.complete"})
            if not is_start:
                return


def asgi(
    core: ServerCore,
    path: str,
    hosts: Sequence[str],
    http: HttpSettings | None,
    limits: HttpLimits | None,
    auth: Any = None,
) -> AsgiApp:
    """Return the application for a path; see `Server.asgi`."""
    settings = HttpSettings(hosts=hosts) if http is None else http
    if http is not None and hosts:
        added = HttpSettings(hosts=hosts).hosts  # checks them
        settings = replace(http, hosts=(*http.hosts, *added))
    chosen = core.auth if auth is None else auth
    if chosen is not None:
        # Imported here: an application behind authentication of its own has none.
        from .auth_setup import use_auth

        chosen = use_auth(core, chosen)
    return AsgiApp(core, path, settings, HttpLimits() if limits is None else limits, chosen)


def _authenticator(
    auth: Any, path: str, settings: HttpSettings, admission: Admission
) -> ResourceServer | None:
    if auth is None:
        return None
    # Imported here: an application behind authentication of its own has none.
    from ...auth.server.resource_server import resource_server_of

    return resource_server_of(
        auth,
        path=path,
        public_url=settings.public_url,
        scheme_of=admission.scheme_of,
        host_of=admission.host_of,
        is_from_proxy=admission.is_from_proxy,
        client_of=admission.client_of if settings.trusted_proxies else None,
    )


class _Run(ListenerLifecycle):
    """One time that the server is up, on one event loop."""

    def __init__(self, app: AsgiApp, context: contextvars.Context) -> None:
        super().__init__()
        self.loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[AsgiServer] = self.loop.create_future()
        self.endpoint: McpEndpoint | None = None
        self.is_stopping = False
        self._app = app
        self._server: AsgiServer | None = None
        # Not in the context of a request, which may be traced or authenticated.
        self.task = self.loop.create_task(self._hold(), context=context)

    def stop_now(self, at_once: bool = False) -> None:
        """Refuse requests, on the event loop of the run; also before the lifespan is entered."""
        self._stop(at_once)

    async def _hold(self) -> None:
        try:
            try:
                async with self:
                    await self.wait()
            finally:
                # The event loop may cancel its tasks at its end while requests are finished.
                await self._opened.aclose()
        except BaseException as error:  # SystemExit of a lifespan too: requests wait for it
            if self.ready.done():
                raise
            self.is_stopping = True
            if isinstance(error, asyncio.CancelledError):
                self.ready.cancel()
            else:
                self.ready.set_exception(error)

    async def _open(self, opening: AsyncExitStack) -> None:
        app, loop = self._app, self.loop
        core, settings, limits = app.core, app.settings, app.limits
        await opening.enter_async_context(core.runtime.opened())
        log_limit = LogLimit(loop, is_shared=True)
        opening.callback(log_limit.end)
        routes = Routes(app.admission, settings, loop.time, app.authenticator)
        routes.add_probes()
        service = HttpService(core, limits, log_limit)
        self.endpoint = service.add_routes(routes, settings, app.path)
        for add in app.add_routes:
            add(routes)

        def on_wrong_host(host: str) -> None:
            log_limit.warning(
                "request refused: Host %s is not a name of this server; allow it with "
                'asgi(hosts=["..."])',
                host,
            )

        self._server = AsgiServer(
            routes,
            limits,
            core.policy.limits.message_size("http"),
            access_log=settings.access_log,
            accounts=core.runtime.accounts,
            on_wrong_host=on_wrong_host,
        )
        core.runtime.listeners.add(app)
        opening.callback(core.runtime.listeners.discard, app)
        self.ready.set_result(self._server)

    def _stop_serving(self, at_once: bool) -> None:
        self.is_stopping = True
        if self._server is not None:
            self._server.stop()
            self._server.routes.stop(at_once=at_once)

    async def _finish_serving(self) -> None:
        if self._server is not None:
            await self._server.routes.close()
            await self._server.close(_FLUSH_TIMEOUT_S)
