"""The `Server` class: register tools, resources and prompts, mount other servers, run.

A `Server` is the same for every revision and every transport.

    app = Server("weather", version="1.0.0")

    @app.tool
    async def forecast(city: str, days: int = 3) -> Forecast: ...

    app.run()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ...engine.limits import SocketLimits
from ...jsonrpc.policy import Policy
from ...mcp.types import Implementation
from ...migration_hints import (
    RUN_OPTIONS,
    RUN_TRANSPORTS,
    SERVER_ATTRIBUTES,
    MissingClassAttribute,
    missing_attribute,
    with_hints,
)
from ..methods.methods import OwnMethod
from ..registry import register
from ..registry.extensions import Extension
from ..registry.registration_methods import RegistrationMethods
from .core import ServerCore, core_of

if TYPE_CHECKING:
    import socket

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from ...auth.server.settings import Auth
    from ...transports.addresses import Http, Tcp, Unix
    from ...transports.base import Transport
    from ...transports.http.settings import HttpLimits, HttpSettings
    from ..context import Middleware
    from ..observability.stats import ServerStats
    from ..registry.options import (
        MountOptions,
        PromptOptions,
        ResourceOptions,
        ServerOptions,
        ToolOptions,
    )
    from ..runtime.asgi import AsgiApp
    from ..runtime.http_listener import HttpListener
    from ..runtime.listener import ServerListener

__all__ = ["Server"]

F = TypeVar("F", bound=Callable[..., Any])


class Server(RegistrationMethods):
    """An MCP server: what it offers, to any client, in any revision, on any transport.

        app = Server("weather", version="1.0.0")

    It serves nothing until `run`, `serve`, `listen` or `asgi` is called.
    """

    def _set_up(self, options: ServerOptions) -> None:
        options.check()
        self._core = ServerCore(self, options)
        for extension in options.extensions:
            self.add_extension(extension)

    def __repr__(self) -> str:
        return repr(self._core)

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute("Server", name, SERVER_ATTRIBUTES, self)

        as_proxy = MissingClassAttribute(SERVER_ATTRIBUTES["as_proxy"][1])
        from_client = MissingClassAttribute(SERVER_ATTRIBUTES["from_client"][1])
        from_fastapi = MissingClassAttribute(SERVER_ATTRIBUTES["from_fastapi"][1])
        from_openapi = MissingClassAttribute(SERVER_ATTRIBUTES["from_openapi"][1])

    @property
    def name(self) -> str:
        """The name of the server."""
        return self._core.name

    @property
    def info(self) -> Implementation:
        """How the server introduces itself: name, version, title, icons."""
        return self._core.info

    @property
    def instructions(self) -> str | None:
        """How a model should use the server."""
        return self._core.options.instructions

    @property
    def revisions(self) -> tuple[str, ...]:
        """The revisions of MCP that are served, newest first."""
        return self._core.revisions

    @property
    def state(self) -> Any:
        """What the lifespan yielded; None without a lifespan and while nothing is served."""
        return self._core.runtime.state

    # -- tools -------------------------------------------------------------------------------

    def _add_tool(self, handler: Callable[..., Any], options: ToolOptions) -> None:
        core = self._core
        entry = register.tool(core, handler, options)
        if entry.task != "never":
            from ..methods.extension_methods import extend_with_tasks  # here: few have tasks

            extend_with_tasks(core)
        core.catalog.tools.add(entry.name, entry)

    def remove_tool(self, name: str) -> None:
        """Remove a tool; connected clients are notified.

        Raises:
            LookupError: no tool has that name.
        """
        register.remove(self._core.catalog.tools, name, "tool")

    # -- resources ---------------------------------------------------------------------------

    def _add_resource(
        self, handler: Callable[..., Any], uri: str, options: ResourceOptions
    ) -> None:
        core = self._core
        entry = register.resource(core, handler, uri, options)
        (core.catalog.resources if entry.template is None else core.catalog.templates).add(
            uri, entry
        )

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a template; connected clients are notified.

        Raises:
            LookupError: no resource or template has that URI.
        """
        core = self._core
        register.remove(
            core.catalog.templates if uri in core.catalog.templates else core.catalog.resources,
            uri,
            "resource",
        )

    # -- prompts and completion --------------------------------------------------------------

    def _add_prompt(self, handler: Callable[..., Any], options: PromptOptions) -> None:
        entry = register.prompt(self._core, handler, options)
        self._core.catalog.prompts.add(entry.name, entry)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt; connected clients are notified.

        Raises:
            LookupError: no prompt has that name.
        """
        register.remove(self._core.catalog.prompts, name, "prompt")

    def completion(
        self,
        *,
        argument: str,
        prompt: str | None = None,
        resource: str | None = None,
        inline: bool = False,
        timeout: float | None = None,
    ) -> Callable[[F], F]:
        """Register a function that completes an argument of a prompt or of a URI template.

            @app.completion(prompt="compare", argument="one")
            def cities(typed: str) -> list[str]: ...

        The function gets the text typed so far and, if it has a second parameter, a dict of the
        arguments that are filled in already. It returns any number of texts.

        Args:
            argument: the argument to complete.
            prompt, resource: the name of the prompt, or the URI template, that has the argument.
            inline: run a plain function on the event loop, not on a thread; it must be quick.
            timeout: seconds until the handler is cancelled.

        Raises:
            TypeError: not exactly one of prompt and resource is given, or the signature is wrong.
            ValueError: the argument has a completion already.
        """

        def decorate(handler: F) -> F:
            key, completer = register.completer(
                self._core, handler, argument, prompt, resource, inline, timeout
            )
            self._core.catalog.completions[key] = completer
            return handler

        return decorate

    # -- methods, extensions, middleware, mounting -------------------------------------------

    def method(self, name: str, /, *, inline: bool = False) -> Callable[[F], F]:
        """Register a function as a method outside the specification, in every revision.

            @app.method("stars/list")
            async def list_stars(limit: int = 10) -> list[Star]: ...

        `inline` runs a plain function on the event loop, not on a thread; it must be quick.

        Raises:
            TypeError: the signature cannot be a method's.
            ValueError: MCP has a method of that name, or it is registered already.
        """
        register.check_name_given(name, "@app.method")

        def decorate(handler: F) -> F:
            entry = register.own_method(self._core, name, handler, inline)
            self._core.own_methods[name] = OwnMethod(entry)
            return handler

        return decorate

    def notification(self, name: str, /) -> Callable[[F], F]:
        """Register a function that is called with the params of a notification, as a dict.

            @app.notification("notifications/stars/moved")
            async def moved(params: dict[str, Any]) -> None: ...

        Raises:
            ValueError: MCP has a notification of that name, or it is registered already.
        """
        register.check_name_given(name, "@app.notification")

        def decorate(handler: F) -> F:
            hear = register.own_notification(self._core, name, handler)
            self._core.own_notifications[name] = hear
            return handler

        return decorate

    def add_extension(self, extension: Extension) -> None:
        """Add an extension: it is advertised, and its methods serve clients that declare it.

        In revisions without extensions its methods do not exist.

        Raises:
            ValueError: an extension of that id, or one with the same method or result type, was
                added before.
        """
        from ..methods.extension_methods import extend  # here: few servers have one

        extend(self._core, extension)

    def middleware(self, function: Middleware) -> Middleware:
        """Wrap every request in a function: `async def timed(context, proceed): ...`.

        `await proceed()` serves the request. It returns what the handler returned, and the typed
        result of a request without a handler, such as a `ListToolsResult`; it raises what the
        handler raised, and a `RequestError` if the request is refused. What the function returns
        takes the place of the result. `context.method` and `context.params` are the request; the
        params may be replaced before `proceed`. The first one registered is the outermost.

        `initialize` is not passed through middleware. That of a mounted server is around its
        handlers alone.

        Raises:
            TypeError: it is not a coroutine function.
        """
        register.check_middleware(function)
        self._core.middleware = (*self._core.middleware, function)
        return function

    def _mount(self, other: Any, options: MountOptions) -> None:
        from .mount import mount  # here: most servers mount nothing

        if not isinstance(other, Server):
            found = type(other).__name__
            raise TypeError(
                f"mount takes a Server of this process, not a value of type {found}: "
                "a server elsewhere cannot be mounted yet; register tools that return what "
                "`await client.call_tool(...)` returned"
            )
        mount(self._core, core_of(other), options.prefix, options.guard(None))

    def notify_resource_updated(self, uri: str) -> None:
        """Notify clients that are subscribed to a resource that it has changed.

        Clients of a server that this one is mounted in are notified too. May be called from any
        thread, and while nothing is served. Changes of lists are announced by themselves.
        """
        self._core.services.streams.resource_updated(uri)

    # -- running -----------------------------------------------------------------------------

    def stats(self) -> ServerStats:
        """Return gauges and counters: what is at work, waits, was refused or dropped.

        A server that is mounted in another one counts the connections of its own only.
        """
        from ..observability.stats import stats_of  # here: most programs never ask

        return stats_of(self._core)

    # -- metrics and tracing -----------------------------------------------------------------

    def enable_metrics(self) -> None:
        """Measure how long requests take, for `metrics_page`.

        Connections that are open already are not measured, so call it before the server runs.
        """
        # Imported here, as below: a server without it has none of it in memory.
        from ..observability.prometheus import enable_metrics

        enable_metrics(self._core)

    def metrics_page(self) -> bytes:
        """Return the metrics of this server in the Prometheus text format.

        It has what `stats` returns and, after `enable_metrics`, the durations of requests. Its
        content type is `trunkline.server.METRICS_CONTENT_TYPE`. May be called from any thread.
        """
        from ..observability.prometheus import metrics_page

        return metrics_page(self._core)

    def enable_tracing(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        client_context: bool = True,
        record_content: bool = False,
    ) -> None:
        """Record a span and a duration of each request with OpenTelemetry.

        Connections that are open already are not traced, so call it before the server runs.

        Args:
            tracer_provider, meter_provider: where spans and durations go; the global ones of
                OpenTelemetry by default.
            client_context: a span is a child of the span that the client names in `_meta`, and
                handlers get the client's baggage. False ignores both, for untrusted clients.
            record_content: also record arguments and results of tools, URIs of resources and
                texts of errors, with credentials hidden.

        Raises:
            ImportError: the `otel` extra is not installed.
            RuntimeError: tracing is enabled already.
        """
        from ..observability.tracing import enable_tracing

        enable_tracing(
            self._core,
            tracer_provider,
            meter_provider,
            client_context=client_context,
            record_content=record_content,
        )

    @with_hints(RUN_OPTIONS)
    def run(
        self,
        address: str | Http | Tcp | Unix | None = None,
        *,
        limits: HttpLimits | SocketLimits | None = None,
        http: HttpSettings | None = None,
        auth: Auth | None = None,
    ) -> None:
        """Serve until the client ends the connection, or SIGTERM or SIGINT comes.

            app.run()                               standard input and output; also "stdio"
            app.run("http://127.0.0.1:8000/mcp")    HTTP
            app.run("tcp://127.0.0.1:9000")         a TCP port
            app.run("unix:/run/weather.sock")       a Unix socket

        Returns after open requests were answered. `limits` bounds the connections: `HttpLimits`
        for HTTP, `SocketLimits` for sockets. `http` is which requests are admitted, and `auth` how
        callers are recognised, in place of that of the server.

        Raises:
            ValueError: the text is not an address.
            RuntimeError: an event loop is running; use `serve` or `listen` there.
        """
        from . import run

        if address is None or address == "stdio":
            run.run_stdio(self, auth)
        elif isinstance(address, str) and address in RUN_TRANSPORTS:
            raise ValueError(f"cannot run on {address!r}: {RUN_TRANSPORTS[address]}")
        else:
            run.run_listening(self, address, limits, http=http, auth=auth)

    @overload
    def listen(
        self,
        address: Tcp | Unix,
        *,
        limits: SocketLimits | None = None,
        auth: Auth | None = None,
        sock: socket.socket | Sequence[socket.socket] | None = None,
    ) -> ServerListener: ...

    @overload
    def listen(
        self,
        address: Http,
        *,
        limits: HttpLimits | None = None,
        http: HttpSettings | None = None,
        auth: Auth | None = None,
        sock: socket.socket | Sequence[socket.socket] | None = None,
    ) -> HttpListener: ...

    @overload
    def listen(
        self,
        address: str | Http | Tcp | Unix,
        *,
        limits: HttpLimits | SocketLimits | None = None,
        http: HttpSettings | None = None,
        auth: Auth | None = None,
        sock: socket.socket | Sequence[socket.socket] | None = None,
    ) -> HttpListener | ServerListener: ...

    def listen(
        self,
        address: str | Http | Tcp | Unix,
        *,
        limits: HttpLimits | SocketLimits | None = None,
        http: HttpSettings | None = None,
        auth: Auth | None = None,
        sock: socket.socket | Sequence[socket.socket] | None = None,
    ) -> HttpListener | ServerListener:
        """Listen on an address inside an `async with`, beside other tasks of the event loop.

        `limits`, `http` and `auth` are as for `run`. `sock` is a bound socket to listen on in place
        of a new one, or several.

        Raises:
            ValueError: the text is not an address, or `sock` holds no socket; HTTP on an address
                that other machines can reach, without the names of its hosts.
            TypeError: the limits are those of another kind of address.
        """
        # Imported here: a server on standard streams has no sockets.
        from ..runtime.listen import listen

        return listen(self._core, address, limits, http, sock, auth)

    def asgi(
        self,
        path: str = "/mcp",
        *,
        hosts: Sequence[str] = (),
        http: HttpSettings | None = None,
        limits: HttpLimits | None = None,
        auth: Auth | None = None,
    ) -> AsgiApp:
        """Return the server as an ASGI application, to run by itself or to mount in another one.

            app = Starlette(routes=[Mount("/", server.asgi(hosts=["mcp.example.org"]))])

        It needs no lifespan events: the first request enters the lifespan of the server. Each
        process that serves it has its own sessions, and each event loop needs its own application.

        Args:
            path: where MCP is served, below the mount point or in all.
            hosts: names that clients use for this server, beside `localhost`; requests to any
                other are refused. They are added to those in `http`.
            http: as for `run`.
            limits: as for `run`; those of connections are up to the server that runs it.
            auth: as for `run`.

        Raises:
            ValueError: the path or a host is not one, or a setting needs a socket of its own.
        """
        # Imported here: a server on standard streams has no HTTP.
        from ..runtime.asgi import asgi

        return asgi(self._core, path, hosts, http, limits, auth)

    async def serve(self, transport: Transport, *, auth: Auth | None = None) -> None:
        """Serve one connection until it ends; return after open requests were answered.

        `auth` is as for `run`: on a single connection it is `Fixed(...)`.

        Raises:
            TransportError: the transport could not connect.
            ValueError: `auth` cannot recognise the client of such a connection.
            PermissionError: it does not know the client.
        """
        from ..runtime.serve import serve  # here: a server over HTTP needs it not

        await serve(self._core, transport, auth)

    def stop(self, *, at_once: bool = False) -> None:
        """Begin to end every connection: new requests are refused, running handlers may finish.

        `at_once` cancels the handlers. May be called from any thread.
        """
        self._core.stop(at_once=at_once)

    def transport(self, policy: Policy) -> Transport:
        """Return the client's end of a new connection to this server, in this process.

        It makes a server an address: `Client(app)`.
        """
        from ..runtime.serve import connect_in_process

        return connect_in_process(self._core)
