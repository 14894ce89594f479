"""The `Server` class: register tools, resources and prompts, mount other servers, run.

A `Server` is the same for every revision and every transport.

    app = Server("weather", version="1.0.0")

    @app.tool
    async def forecast(city: str, days: int = 3) -> Forecast: ...

    app.run()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from ..jsonrpc.policy import Policy
from ..mcp.types import Annotations, Icon, Implementation, ToolAnnotations
from ..migration_hints import (
    MOUNT_OPTIONS,
    PROMPT_OPTIONS,
    RESOURCE_OPTIONS,
    RUN_OPTIONS,
    RUN_TRANSPORTS,
    SERVER_ATTRIBUTES,
    SERVER_OPTIONS,
    TOOL_OPTIONS,
    missing_attribute,
    with_hints,
)
from ..spec.mcp.tasks_extension import EXTENSION as TASKS
from ..spec.revisions import REVISIONS
from .core import Lifespan, ServerCore
from .dispatch import extension_methods
from .dispatch.methods import OwnMethod
from .dispatch.middleware import Middleware
from .extensions import Extension
from .handlers.output import DERIVE
from .mount import mount
from .registry import options, register
from .settings import (
    CacheHint,
    CapabilitySwitches,
    ServerLimits,
    SocketLimits,
    TaskSettings,
    check_switches,
)
from .stats import ServerStats, stats_of

if TYPE_CHECKING:
    import socket

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from ..auth.server.settings import Auth
    from ..store.base import Store
    from ..transports.addresses import Http, Tcp, Unix
    from ..transports.base import Transport
    from ..transports.http.settings import HttpLimits, HttpSettings
    from .runtime.asgi import AsgiApp
    from .runtime.http_listener import HttpListener
    from .runtime.listener import ServerListener

__all__ = ["Server"]

F = TypeVar("F", bound=Callable[..., Any])


def _options_of(function: Callable[..., Any]) -> Callable[[F], F]:
    """Show the options of `function` as those of a decorator that passes them on."""

    def show(decorator: F) -> F:
        own = list(signature(decorator).parameters.values())[:2]
        options = signature(function).parameters.values()
        keywords = [each for each in options if each.kind is Parameter.KEYWORD_ONLY]
        shown = signature(decorator).replace(parameters=[*own, *keywords])
        decorator.__signature__ = shown  # type: ignore[attr-defined]  # read by `inspect`
        return decorator

    return show


class Server:
    """An MCP server: what it offers, to any client, in any revision, on any transport.

        app = Server("weather", version="1.0.0")

    Args:
        name: how the server is called, in its introduction and in logs.
        version: the version of the server, not of a protocol.
        title: a name for people.
        description: what the server does, in a sentence.
        website_url: where people read more.
        icons: addresses of icons, or `Icon`s.
        instructions: how a model should use the server, as a text for its prompt.
        revisions: the revisions of MCP to serve; all five by default.
        policy: how messages are written and read, for peers with quirks.
        page_size: entries on one page of a list. By default 100 in 2026-07-28, and up to
            2025-11-25 as many as fit in 512 KiB, since many clients read one page only.
        cache: how long clients may cache lists and results, unless an entry has its own.
        lifespan: a function of the server that returns an async context manager, entered
            before the first connection; what it yields is `ctx.state`.
        limits: bounds on requests, threads and waiting times.
        state_keys: keys for the state that clients carry between round trips; give the same
            keys to all processes that serve the same clients.
        experimental: experimental capabilities to declare.
        extensions: extensions to add, as `add_extension` does.
        capabilities: kinds to switch off, as in `{"prompts": False, "logging": False}`; see
            `CapabilitySwitches`. They are not declared, their methods are unknown, and what is
            registered of them is not offered.
        list_changed: False for a server whose lists never change while it runs: it does not
            declare `listChanged`, and notifies of no change.
        subscribe: False for a server whose resources cannot be subscribed to.
        store: where tasks are kept; memory by default.
        tasks: how long tasks are kept and how many may run.
        implies: scopes that grant others, as in `{"files:admin": ["files:read", "files:write"]}`.
        hide_unscoped: leave entries out of lists whose scopes the caller lacks. By default they
            are listed, so that clients can ask their user for more scopes.
        auth: how callers are recognised, on every listener that has no `auth` of its own: a
            verifier of `trunkline.auth`, a list of them, a function of the request, or
            `AuthSettings`. Without it callers are anonymous.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an unknown revision or kind, or an extension that cannot be added.
    """

    @with_hints(SERVER_OPTIONS)
    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Iterable[Icon | str] = (),
        revisions: Iterable[str] = REVISIONS,
        policy: Policy | None = None,
        page_size: int | None = None,
        cache: CacheHint = CacheHint(),  # noqa: B008  # immutable
        lifespan: Lifespan | None = None,
        limits: ServerLimits = ServerLimits(),  # noqa: B008  # immutable
        state_keys: Sequence[bytes] = (),
        experimental: Mapping[str, dict[str, Any]] | None = None,
        extensions: Iterable[Extension] = (),
        capabilities: CapabilitySwitches | None = None,
        list_changed: bool = True,
        subscribe: bool = True,
        store: Store | None = None,
        tasks: TaskSettings = TaskSettings(),  # noqa: B008  # immutable
        implies: Mapping[str, Iterable[str]] | None = None,
        hide_unscoped: bool = False,
        auth: Auth | None = None,
    ) -> None:
        options.check_server(
            name=name,
            version=version,
            texts={
                "title": title,
                "description": description,
                "instructions": instructions,
                "website_url": website_url,
            },
            flags={
                "list_changed": list_changed,
                "subscribe": subscribe,
                "hide_unscoped": hide_unscoped,
            },
            page_size=page_size,
            lifespan=lifespan,
            state_keys=state_keys,
            experimental=experimental,
            revisions=revisions,
        )
        options.instance_of("limits", limits, ServerLimits)
        options.instance_of("cache", cache, CacheHint)
        options.instance_of("tasks", tasks, TaskSettings)
        if policy is not None:
            options.instance_of("policy", policy, Policy)
        options.check_store(store)
        info = Implementation(
            name,
            version,
            description=description or None,
            icons=options.icons_of(icons),
            title=title or None,
            website_url=website_url or None,
        )
        self._core = ServerCore(
            self,
            info,
            instructions=instructions,
            revisions=revisions,
            policy=policy,
            page_size=page_size,
            cache=cache,
            lifespan=lifespan,
            limits=limits,
            state_keys=state_keys,
            experimental=dict(experimental or {}),
            capabilities=check_switches({} if capabilities is None else capabilities),
            list_changed=list_changed,
            subscribe=subscribe,
            store=store,
            tasks=tasks,
            implies=implies,
            hide_unscoped=hide_unscoped,
            auth=auth,
        )
        for extension in extensions:
            self.add_extension(extension)

    def __repr__(self) -> str:
        return repr(self._core)

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute("Server", name, SERVER_ATTRIBUTES)

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
        return self._core.instructions

    @property
    def revisions(self) -> tuple[str, ...]:
        """The revisions of MCP that are served, newest first."""
        return self._core.revisions

    @property
    def state(self) -> Any:
        """What the lifespan yielded; None without a lifespan and while nothing is served."""
        return self._core.state

    # -- tools -------------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | str] = (),
        meta: dict[str, Any] | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: Any = DERIVE,
        inline: bool = False,
        timeout: float | None = None,
        cache: CacheHint | None = None,
        deprecated: bool | str = False,
        task: Literal["never", "optional", "required"] = "never",
        task_start: Literal["call", "handler"] = "call",
        scopes: Iterable[str] = (),
        allow: Callable[..., Any] | None = None,
        visible: Callable[[Any], object] | None = None,
    ) -> Callable[[F], F]: ...

    def tool(self, name: Any = None, **options: Any) -> Any:
        """Register a function as a tool: `@app.tool`, or `@app.tool("name", timeout=5)`.

        The function is returned unchanged. Its parameters become the tool's arguments, its
        docstring the description, its return type the output schema.

            @app.tool(title="Weather forecast", annotations={"readOnlyHint": True}, timeout=10)
            async def forecast(city: str, days: int = 3) -> Forecast: ...

        Args:
            name: the tool's name; the function's by default.
            title: a name for people.
            description: what the tool does; the docstring by default.
            annotations: hints such as `{"readOnlyHint": True}`, or a `ToolAnnotations`.
            icons: addresses of icons, or `Icon`s.
            meta: the `_meta` of the tool in lists.
            input_schema: a JSON Schema in place of the signature; the handler then takes one
                dict, and the context if it has a parameter for it. Needs the `schema` extra.
            output_schema: a type or JSON Schema for structured output; None for text only.
            inline: run a plain function on the event loop, not on a thread; it must be quick.
            timeout: seconds until the handler is cancelled.
            cache: how long clients may cache the list entry.
            deprecated: True, or what to use instead; it is put before the description.
            task: "optional" allows clients to run calls as tasks, "required" demands it.
            task_start: "handler" makes a call a task when it awaits `ctx.become_task()`.
            scopes: the scopes that a caller needs; anonymous callers have none.
            allow: a function of the context and of arguments, by name, that decides on each call;
                a coroutine function if it has to wait. False and PermissionError refuse.
            visible: a function of the context that decides whether the tool exists for the
                caller.

        Raises:
            TypeError: the signature cannot be a tool's, or an option has the wrong type.
            ValueError: a tool of that name exists, or the name is not valid.
        """
        if callable(name):
            self.add_tool(name, **options)
            return name

        def decorate(handler: F) -> F:
            self.add_tool(handler, name, **options)
            return handler

        return decorate

    @with_hints(TOOL_OPTIONS)
    def add_tool(
        self,
        handler: Callable[..., Any],
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | str] = (),
        meta: dict[str, Any] | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: Any = DERIVE,
        inline: bool = False,
        timeout: float | None = None,
        cache: CacheHint | None = None,
        deprecated: bool | str = False,
        task: Literal["never", "optional", "required"] = "never",
        task_start: Literal["call", "handler"] = "call",
        scopes: Iterable[str] = (),
        allow: Callable[..., Any] | None = None,
        visible: Callable[[Any], object] | None = None,
    ) -> None:
        """Register a tool without a decorator; the options are those of `tool`.

            app.add_tool(forecast, title="Weather forecast")
            app.add_tool(lookup, "lookup", input_schema={"type": "object", ...})

        Connected clients are notified that the list of tools has changed.

        Raises:
            TypeError: the signature cannot be a tool's, or an option has the wrong type.
            ValueError: a tool of that name exists, or the name is not valid.
        """
        core = self._core
        entry = register.tool(
            core,
            handler,
            name,
            annotations=annotations,
            input_schema=input_schema,
            output_schema=output_schema,
            deprecated=deprecated,
            task=task,
            task_start=task_start,
            shared=register.SharedOptions(
                title, description, icons, meta, inline, timeout, cache, scopes, allow, visible
            ),
        )
        if entry.task != "never" and TASKS not in core.extensions:
            from .tasks.methods import tasks_extension

            self.add_extension(tasks_extension())
        core.tools.add(entry.name, entry)

    if not TYPE_CHECKING:  # shows in `help`; a type checker reads the overload
        tool = _options_of(add_tool)(tool)

    def remove_tool(self, name: str) -> None:
        """Remove a tool; connected clients are notified.

        Raises:
            LookupError: no tool has that name.
        """
        register.remove(self._core.tools, name, "tool")

    # -- resources ---------------------------------------------------------------------------

    @with_hints(RESOURCE_OPTIONS)
    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | str] = (),
        meta: dict[str, Any] | None = None,
        inline: bool = False,
        timeout: float | None = None,
        cache: CacheHint | None = None,
        unsafe: bool = False,
        fixed_uri: bool = False,
        scopes: Iterable[str] = (),
        allow: Callable[..., Any] | None = None,
        visible: Callable[[Any], object] | None = None,
    ) -> Callable[[F], F]:
        """Register a function as a resource; `{name}` in the URI makes it a template.

            @app.resource("city://{name}", mime_type="text/plain")
            def city(name: str) -> str: ...

        Args:
            name: the resource's name in lists; the function's by default.
            title: a name for people.
            description: what the resource holds; the docstring by default.
            mime_type: the type of the content; by default that of a text, of JSON or of bytes.
            size: bytes of the content, if known.
            annotations: hints such as `{"audience": ["user"]}`, or an `Annotations`.
            icons: addresses of icons, or `Icon`s.
            meta: the `_meta` of the resource in lists.
            inline: run a plain function on the event loop, not on a thread; it must be quick.
            timeout: seconds until the handler is cancelled.
            cache: how long clients may cache the content.
            unsafe: call the handler of a template for any value. By default a value that leads
                out of a folder, such as `../x`, `/x` or `..%2Fx`, is a resource that does not
                exist.
            fixed_uri: keep the URI where this server is mounted with a prefix; for URIs that
                appear in what the server sends.
            scopes: the scopes that a caller needs; anonymous callers have none.
            allow: a function of the context and of arguments, by name, that decides on each call;
                a coroutine function if it has to wait. False and PermissionError refuse.
            visible: a function of the context that decides whether the resource exists for the
                caller.

        Raises:
            TypeError: the parameters are not the variables of the template.
            ValueError: a resource of that URI exists, or the URI is not valid, or is not a
                template and `unsafe`.
        """
        register.check_name_given(uri, "@app.resource")

        def decorate(handler: F) -> F:
            self.add_resource(
                handler,
                uri,
                name=name,
                title=title,
                description=description,
                mime_type=mime_type,
                size=size,
                annotations=annotations,
                icons=icons,
                meta=meta,
                inline=inline,
                timeout=timeout,
                cache=cache,
                unsafe=unsafe,
                fixed_uri=fixed_uri,
                scopes=scopes,
                allow=allow,
                visible=visible,
            )
            return handler

        return decorate

    @with_hints(RESOURCE_OPTIONS)
    def add_resource(
        self,
        handler: Callable[..., Any],
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | str] = (),
        meta: dict[str, Any] | None = None,
        inline: bool = False,
        timeout: float | None = None,
        cache: CacheHint | None = None,
        unsafe: bool = False,
        fixed_uri: bool = False,
        scopes: Iterable[str] = (),
        allow: Callable[..., Any] | None = None,
        visible: Callable[[Any], object] | None = None,
    ) -> None:
        """Register a resource or a template without a decorator; options as for `resource`.

            app.add_resource(read_city, "city://{name}", mime_type="text/plain")

        Connected clients are notified that the list of resources has changed.

        Raises:
            TypeError: the parameters are not the variables of the template.
            ValueError: a resource of that URI exists, or the URI is not valid, or is not a
                template and `unsafe`.
        """
        core = self._core
        entry = register.resource(
            core,
            handler,
            uri,
            name=name,
            mime_type=mime_type,
            size=size,
            annotations=annotations,
            unsafe=unsafe,
            fixed_uri=fixed_uri,
            shared=register.SharedOptions(
                title, description, icons, meta, inline, timeout, cache, scopes, allow, visible
            ),
        )
        (core.resources if entry.template is None else core.templates).add(uri, entry)

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a template; connected clients are notified.

        Raises:
            LookupError: no resource or template has that URI.
        """
        core = self._core
        register.remove(
            core.templates if uri in core.templates else core.resources, uri, "resource"
        )

    # -- prompts and completion --------------------------------------------------------------

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Icon | str] = (),
        meta: dict[str, Any] | None = None,
        inline: bool = False,
        timeout: float | None = None,
        scopes: Iterable[str] = (),
        allow: Callable[..., Any] | None = None,
        visible: Callable[[Any], object] | None = None,
    ) -> Callable[[F], F]: ...

    def prompt(self, name: Any = None, **options: Any) -> Any:
        """Register a function as a prompt: `@app.prompt`, or `@app.prompt("name", title="…")`.

        The function returns a text, or messages. Its parameters become the prompt's arguments.

            @app.prompt(title="Compare two cities")
            def compare(one: str, other: str) -> str: ...

        Args:
            name: the prompt's name; the function's by default.
            title: a name for people.
            description: what the prompt is for; the docstring by default.
            icons: addresses of icons, or `Icon`s.
            meta: the `_meta` of the prompt in lists.
            inline: run a plain function on the event loop, not on a thread; it must be quick.
            timeout: seconds until the handler is cancelled.
            scopes: the scopes that a caller needs; anonymous callers have none.
            allow: a function of the context and of arguments, by name, that decides on each call;
                a coroutine function if it has to wait. False and PermissionError refuse.
            visible: a function of the context that decides whether the prompt exists for the
                caller.

        Raises:
            TypeError: the signature cannot be a prompt's.
            ValueError: a prompt of that name exists, or the name is not valid.
        """
        if callable(name):
            self.add_prompt(name, **options)
            return name

        def decorate(handler: F) -> F:
            self.add_prompt(handler, name, **options)
            return handler

        return decorate

    @with_hints(PROMPT_OPTIONS)
    def add_prompt(
        self,
        handler: Callable[..., Any],
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Icon | str] = (),
        meta: dict[str, Any] | None = None,
        inline: bool = False,
        timeout: float | None = None,
        scopes: Iterable[str] = (),
        allow: Callable[..., Any] | None = None,
        visible: Callable[[Any], object] | None = None,
    ) -> None:
        """Register a prompt without a decorator; the options are those of `prompt`.

            app.add_prompt(compare, title="Compare two cities")

        Connected clients are notified that the list of prompts has changed.

        Raises:
            TypeError: the signature cannot be a prompt's.
            ValueError: a prompt of that name exists, or the name is not valid.
        """
        core = self._core
        shared = register.SharedOptions(
            title, description, icons, meta, inline, timeout, None, scopes, allow, visible
        )
        entry = register.prompt(core, handler, name, shared=shared)
        core.prompts.add(entry.name, entry)

    if not TYPE_CHECKING:  # as above
        prompt = _options_of(add_prompt)(prompt)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt; connected clients are notified.

        Raises:
            LookupError: no prompt has that name.
        """
        register.remove(self._core.prompts, name, "prompt")

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
            self._core.completions[key] = completer
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
        extension_methods.extend(self._core, extension)

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

    @with_hints(MOUNT_OPTIONS)
    def mount(
        self,
        other: Server,
        *,
        prefix: str = "",
        scopes: Iterable[str] = (),
        allow: Callable[..., Any] | None = None,
        visible: Callable[[Any], object] | None = None,
    ) -> None:
        """Offer what another server offers, its tools and prompts under `prefix_`.

        The prefix is the first segment of its URIs and templates: `config://app` is
        `config://prefix/app` here. What the other server registers or removes later is added or
        removed here too; its handlers keep its middleware, its lifespan and its state.

        Its extensions are advertised here too. Its own methods and notifications are not.

        `scopes`, `allow` and `visible` guard all of its tools, resources and prompts, together
        with what guards each of them there; `implies` is that of this server.

        Raises:
            ValueError: a name is taken, the two mount each other, or both have an extension of
                one id and the two differ.
            RuntimeError: this server is being served, and the other has a lifespan to enter.
        """
        guarded = register.SharedOptions(
            None, None, (), None, False, None, None, scopes, allow, visible
        )
        mount(self._core, other._core, prefix, guarded.guard(None))

    def notify_resource_updated(self, uri: str) -> None:
        """Notify clients that are subscribed to a resource that it has changed.

        Clients of a server that this one is mounted in are notified too. May be called from any
        thread, and while nothing is served. Changes of lists are announced by themselves.
        """
        self._core.streams.resource_updated(uri)

    # -- running -----------------------------------------------------------------------------

    def stats(self) -> ServerStats:
        """Return gauges and counters: what is at work, waits, was refused or dropped.

        A server that is mounted in another one counts the connections of its own only.
        """
        return stats_of(self._core)

    # -- metrics and tracing -----------------------------------------------------------------

    def enable_metrics(self) -> None:
        """Measure how long requests take, for `metrics_page`.

        Connections that are open already are not measured, so call it before the server runs.
        """
        # Imported here, as below: a server without it has none of it in memory.
        from .observability.prometheus import enable_metrics

        enable_metrics(self._core)

    def metrics_page(self) -> bytes:
        """Return the metrics of this server in the Prometheus text format.

        It has what `stats` returns and, after `enable_metrics`, the durations of requests. Its
        content type is `trunkline.server.METRICS_CONTENT_TYPE`. May be called from any thread.
        """
        from .observability.prometheus import metrics_page

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
        from .observability.tracing import enable_tracing

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
        from .runtime import run

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
        from .runtime.listen import listen

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
        from .runtime.asgi import asgi

        return asgi(self._core, path, hosts, http, limits, auth)

    async def serve(self, transport: Transport, *, auth: Auth | None = None) -> None:
        """Serve one connection until it ends; return after open requests were answered.

        `auth` is as for `run`: on a single connection it is `Fixed(...)`.

        Raises:
            TransportError: the transport could not connect.
            ValueError: `auth` cannot recognise the client of such a connection.
            PermissionError: it does not know the client.
        """
        await self._core.serve(transport, auth)

    def stop(self, *, at_once: bool = False) -> None:
        """Begin to end every connection: new requests are refused, running handlers may finish.

        `at_once` cancels the handlers. May be called from any thread.
        """
        self._core.stop(at_once=at_once)

    def transport(self, policy: Policy) -> Transport:
        """Return the client's end of a new connection to this server, in this process.

        It makes a server an address: `Client(app)`.
        """
        return self._core.connect_in_process()
