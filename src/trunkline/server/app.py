"""What an author writes a server with: register, mount, run.

A `Server` is the same for every revision and every transport. It holds what was registered
and what is set for all; what happens on a connection is in `connection.py`, how a revision
puts things in `surface.py`, what serves a method in `serving.py`.

    app = Server("weather", version="1.0.0")

    @app.tool
    async def forecast(city: str, days: int = 3) -> Forecast: ...

    app.run()
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, overload

from msgspec import UNSET
from msgspec.structs import replace

from ..concurrency.thread_pool import ThreadPool
from ..jsonrpc.policy import Policy
from ..mcp.meta import Caller, CallerMemo
from ..mcp.types import (
    Annotations,
    Icon,
    Implementation,
    ToolAnnotations,
)
from ..spec.mcp.tasks_extension import EXTENSION as TASKS
from ..spec.revisions import REVISIONS
from .client_requests.request_state import StateSealer
from .dispatch import extension_methods
from .dispatch.connection import Connection
from .dispatch.methods import HEARD, SERVED, Hear, OwnMethod
from .dispatch.middleware import Middleware
from .dispatch.revision import Serve, Surface
from .extensions import Extended, Extension
from .handlers.output import DERIVE
from .registry import register as registration
from .registry.entries import Completer, Entry, PromptEntry, ResourceEntry, ToolEntry, icons_of
from .registry.paged_list import Catalogue
from .runtime.lifespan import SharedLifespan
from .settings import CacheHint, ServerLimits, SocketLimits, TaskSettings
from .subscriptions.registry import SubscriptionRegistry

if TYPE_CHECKING:
    import socket

    from ..jsonrpc.incoming import IncomingRequest
    from ..store.base import Store
    from ..transports.addresses import Tcp, Unix
    from ..transports.base import Transport
    from .client_requests.multi_round_trip import RoundTrips
    from .runtime.listener import ServerListener
    from .tasks.lifecycle import Tasks

__all__ = ["Server"]

_log: Final = logging.getLogger("trunkline.server")

F = TypeVar("F", bound=Callable[..., Any])
Lifespan: TypeAlias = Callable[["Server"], AbstractAsyncContextManager[Any]]


class Server:
    """An MCP server: what it offers, to any client, in any revision, on any transport."""

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
        page_size: int = 100,
        cache: CacheHint = CacheHint(),  # noqa: B008  # immutable
        lifespan: Lifespan | None = None,
        limits: ServerLimits = ServerLimits(),  # noqa: B008  # immutable
        state_keys: Sequence[bytes] = (),
        experimental: Mapping[str, dict[str, Any]] | None = None,
        extensions: Iterable[Extension] = (),
        store: Store | None = None,
        tasks: TaskSettings = TaskSettings(),  # noqa: B008  # immutable
    ) -> None:
        self.name = name
        self.info = Implementation(
            name,
            version,
            description=description or UNSET,
            icons=icons_of(icons),
            title=title or UNSET,
            website_url=website_url or UNSET,
        )
        self.instructions = instructions
        # Newest first: what is offered to a client that asks for none of them.
        self.revisions = tuple(sorted(set(revisions), reverse=True))
        registration.check_revisions(self.revisions)
        self.policy = Policy.mcp(self.revisions[0]) if policy is None else policy
        self.cache = cache
        self.limits = limits
        self.experimental = dict(experimental or {})
        # What the lifespan gave, while it lasts.
        self.state: Any = None
        self._lifespan = lifespan
        # Drawn now, before any fork, so that all workers of one program share it.
        self._seal = StateSealer(state_keys)
        self._cursor_key = self._seal.first
        make = registration.catalogue_maker(page_size, self._cursor_key, self)
        self.tools: Catalogue[ToolEntry] = make("tools", self._tool_row)
        self.resources: Catalogue[ResourceEntry] = make("resources", lambda each, _: each.row())
        self.templates: Catalogue[ResourceEntry] = make(
            "resourceTemplates", lambda each, _: each.row()
        )
        self.prompts: Catalogue[PromptEntry] = make("prompts", lambda each, _: each.row())
        # By ("prompt" or "resource", name or template, argument).
        self.completions: dict[tuple[str, str, str], Completer] = {}
        self.own_methods: dict[str, Serve] = {}
        self.own_notifications: dict[str, Hear] = {}
        # By id, our own and those of mounted servers, and what serves their methods.
        self.extensions: dict[str, Extended] = {}
        self.extension_methods: dict[str, Serve] = {}
        self.chain: tuple[Middleware, ...] = ()
        # Who takes our entries over under other names, and whose we took over.
        self._mounted_in: list[Callable[[str], None]] = []
        self._mounts: list[Server] = []
        # Whether there ever was such a thing: what was announced stays announced.
        self.has_tools: bool = False
        self.has_resources: bool = False
        self.has_prompts: bool = False
        # Of all connections.
        self.connections: set[Connection] = set()
        # What listens for more of them.
        self.listeners: set[ServerListener] = set()
        self.streams = SubscriptionRegistry(self)
        self.streams.honoured_task_ids = self._honoured_task_ids
        # What outlives a request; made when it is first needed, where none was given.
        self._store = store
        self._task_settings = tasks
        self._tasks: Tasks | None = None
        self.in_flight = 0
        self.workers = ThreadPool(
            limits.threads, limits.waiting_for_thread, name="trunkline-handler"
        )
        self.callers = CallerMemo()
        self.heard = HEARD
        self._surfaces: dict[str, Surface] = {}
        # How long each list may be kept, until it changes.
        self._kept: dict[int, CacheHint] = {}
        self._life = SharedLifespan(f"<Server {name!r}>", self._enter)
        self._serving: set[asyncio.Task[None]] = set()
        self._hearing: set[asyncio.Task[None]] = set()
        self._warned: set[str] = set()
        for extension in extensions:
            self.extend(extension)

    def __repr__(self) -> str:
        return f"<Server {self.name!r}, {len(self.tools)} tools>"

    # -- registering -------------------------------------------------------------------------

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
    ) -> Callable[[F], F]: ...

    def tool(self, name: Any = None, **options: Any) -> Any:
        """Register a function as a tool: `@app.tool`, or `@app.tool("name", timeout=5)`.

        The function is returned unchanged. Its arguments become the tool's arguments, its
        docstring the description, its return type the output schema.

        With `task="optional"` a call may go on as a task, for clients that can follow one;
        with "required" it has to. It is one from the start, or with `task_start="handler"`
        from where the handler awaits `context.become_task()`.

        Raises:
            TypeError: the signature cannot be a tool's; the text says which part and why.
            ValueError: there is a tool of that name, or the name cannot be one.
        """
        if callable(name):
            self.add_tool(None, name, **options)
            return name

        def register(handler: F) -> F:
            self.add_tool(name, handler, **options)
            return handler

        return register

    def add_tool(
        self,
        name: str | None,
        handler: Callable[..., Any],
        *,
        input_schema: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Register a tool; `input_schema` takes a raw JSON Schema in place of a signature.

        With a schema of its own a handler is called with one argument, the dict of what was
        sent (and with the context, if it wants that), after it was checked. The schema is
        listed exactly as it is. The `schema` extra is needed for the check.

        Raises:
            TypeError: the signature, or an option, cannot be a tool's.
            ValueError: there is a tool of that name, or the name cannot be one.
        """
        entry = registration.tool(self, name, handler, input_schema, options)
        if entry.task != "never" and TASKS not in self.extensions:
            from .tasks.methods import tasks_extension

            self.extend(tasks_extension())
        self.has_tools = True
        self.tools.add(entry.name, entry)

    def remove_tool(self, name: str) -> None:
        """Take a tool away; clients are told.

        Raises:
            LookupError: there is no such tool.
        """
        registration.remove(self.tools, name, "tool")

    def resource(
        self,
        uri: str,
        /,
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
    ) -> Callable[[F], F]:
        """Register a function as a resource; `{name}` in the URI makes it a template.

        Raises:
            TypeError: the signature does not fit the template; the text says how.
            ValueError: there is such a resource already, or the URI cannot be one.
        """
        registration.must_be_name(uri, "@app.resource")
        options: dict[str, Any] = {
            "name": name,
            "title": title,
            "description": description,
            "mime_type": mime_type,
            "size": size,
            "annotations": annotations,
            "icons": icons,
            "meta": meta,
            "inline": inline,
            "timeout": timeout,
            "cache": cache,
        }

        def register(handler: F) -> F:
            self.add_resource(uri, handler, **options)
            return handler

        return register

    def add_resource(self, uri: str, handler: Callable[..., Any], **options: Any) -> None:
        """Register a resource or a template; the same as `resource`, without the decorator."""
        entry = registration.resource(self, uri, handler, options)
        self.has_resources = True
        (self.resources if entry.template is None else self.templates).add(uri, entry)

    def remove_resource(self, uri: str) -> None:
        """Take a resource, or a template, away; clients are told.

        Raises:
            LookupError: there is none of that URI.
        """
        where = self.templates if uri in self.templates else self.resources
        registration.remove(where, uri, "resource")

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
    ) -> Callable[[F], F]: ...

    def prompt(self, name: Any = None, **options: Any) -> Any:
        """Register a function as a prompt: `@app.prompt`, or `@app.prompt("name", title="…")`.

        Raises:
            TypeError: the signature cannot be a prompt's.
            ValueError: there is a prompt of that name.
        """
        if callable(name):
            self.add_prompt(None, name, **options)
            return name

        def register(handler: F) -> F:
            self.add_prompt(name, handler, **options)
            return handler

        return register

    def add_prompt(self, name: str | None, handler: Callable[..., Any], **options: Any) -> None:
        """Register a prompt; the same as `prompt`, without the decorator."""
        entry = registration.prompt(self, name, handler, options)
        self.has_prompts = True
        self.prompts.add(entry.name, entry)

    def remove_prompt(self, name: str) -> None:
        """Take a prompt away; clients are told.

        Raises:
            LookupError: there is no such prompt.
        """
        registration.remove(self.prompts, name, "prompt")

    def complete(
        self,
        *,
        argument: str,
        prompt: str | None = None,
        resource: str | None = None,
        inline: bool = False,
        timeout: float | None = None,
    ) -> Callable[[F], F]:
        """Register a function that suggests values for an argument of a prompt or a template.

        It is called with what was typed so far and, if it takes a second argument, with a
        dict of the arguments that are filled in already. It returns texts, as many as it has.

        Raises:
            TypeError: name either a prompt or a resource, or the signature does not fit.
        """

        def register(handler: F) -> F:
            key, completer = registration.completer(
                self, handler, argument, prompt, resource, inline, timeout
            )
            self.completions[key] = completer
            return handler

        return register

    def method(self, name: str, /, *, inline: bool = False) -> Callable[[F], F]:
        """Register a function as a method outside the specification, in every revision.

        Raises:
            TypeError: the signature cannot be a method's.
            ValueError: MCP has a method of that name.
        """

        registration.must_be_name(name, "@app.method")

        def register(handler: F) -> F:
            self.own_methods[name] = OwnMethod(registration.own_method(self, name, handler, inline))
            return handler

        return register

    def notification(self, name: str, /) -> Callable[[F], F]:
        """Register a function that is called with the params of a notification, as a dict.

        Raises:
            ValueError: MCP has a notification of that name, or there is a function for it.
        """
        registration.must_be_name(name, "@app.notification")

        def register(handler: F) -> F:
            self.own_notifications[name] = registration.own_notification(self, name, handler)
            return handler

        return register

    def extend(self, extension: Extension) -> None:
        """Take an extension: it is advertised, and its methods are served to who declares it.

        Only revisions that have extensions know of it; in others its methods do not exist.

        Raises:
            ValueError: there is one of that id, or a method or result type of it is taken.
        """
        extension_methods.extend(self, extension)

    def middleware(self, function: Middleware) -> Middleware:
        """Put a function around every handler: `async def timed(context, proceed): ...`.

        `await proceed()` runs the rest and returns what the handler returned; what the
        function returns takes its place. The first one registered is the outermost.

        Raises:
            TypeError: it is no coroutine function.
        """
        registration.check_middleware(function)
        self.chain = (*self.chain, function)
        return function

    def mount(self, other: Server, *, prefix: str = "") -> None:
        """Offer what another server offers, its tools and prompts under `prefix_`.

        URIs stay as they are. What the other one registers or removes later shows up, or
        goes, here too; its handlers keep its middleware, its lifespan and its state.

        Its extensions come along, and are advertised here too. Its own methods and
        notifications stay with it.

        Raises:
            ValueError: something of that name is here already, or the two mount each other,
                or both have an extension of one id and the two differ.
            RuntimeError: this server is being served, and the other has a lifespan to begin.
        """
        registration.mount(self, other, prefix)

    # -- what was registered -----------------------------------------------------------------

    def find_resources(self, uri: str) -> Iterator[tuple[ResourceEntry, dict[str, str]]]:
        """Yield what a URI may name, and the values of its variables; the first is the best."""
        entry = self.resources.get(uri)
        if entry is not None:
            yield entry, {}
        for entry in self.templates:
            if entry.template is not None and (values := entry.template.match(uri)) is not None:
                yield entry, values

    def knows_resource(self, uri: str) -> bool:
        """Say whether a URI, or a template as text, is offered."""
        return uri in self.templates or next(self.find_resources(uri), None) is not None

    @property
    def has_completions(self) -> bool:
        """Whether values are suggested for some argument, here or in what is mounted."""
        return bool(self.completions) or any(each.has_completions for each in self._mounts)

    def completer(self, kind: str, name: str, argument: str) -> Completer | None:
        """Return what suggests values for an argument, or None."""
        entries: Iterable[Entry]
        if kind == "prompt":
            prompt = self.prompts.get(name)
            entries = [] if prompt is None else [prompt]
        else:
            template = self.templates.get(name)
            found = (entry for entry, _ in self.find_resources(name))
            entries = found if template is None else [template]
        for entry in entries:
            own = entry.uri if isinstance(entry, ResourceEntry) else entry.own_name or entry.name
            owner: Server = entry.owner
            completer = owner.completions.get((kind, own, argument))
            if completer is not None:
                # It goes through what is around the thing that it completes.
                return replace(completer, path=entry.path) if entry.path else completer
        return None

    def extension_settings(self) -> dict[str, dict[str, Any]]:
        """Return what clients are told of extensions: their settings by id."""
        return {id: taken.extension.settings for id, taken in self.extensions.items()}

    def cache_of(self, catalogue: Catalogue[Any]) -> CacheHint:
        """Return how long a list may be kept: as long as each thing on it allows."""
        found = self._kept.get(id(catalogue))
        if found is None:
            found = self._kept[id(catalogue)] = registration.cache_of(catalogue, self.cache)
        return found

    def warn_deprecated(self, entry: ToolEntry) -> None:
        """Log, once per tool, that a deprecated one is in use."""
        if entry.name not in self._warned:
            self._warned.add(entry.name)
            _log.warning("tool %r is deprecated and in use: %s", entry.name, entry.deprecated)

    def _tool_row(self, entry: ToolEntry, revision: str) -> Any:
        return entry.row(self.surface(revision).output_schema(entry.output))

    # -- revisions ---------------------------------------------------------------------------

    def surface(self, revision: str) -> Surface:
        """Return what this server looks like in one of its revisions."""
        found = self._surfaces.get(revision)
        if found is None:
            found = self._surfaces.setdefault(revision, Surface(self, revision, SERVED))
        return found

    @property
    def newest(self) -> Surface:
        """The surface of the newest revision."""
        return self.surface(self.revisions[0])

    @property
    def opening(self) -> Surface | None:
        """The surface of the newest revision that opens with a handshake, if any."""
        for revision in self.revisions:
            if self.surface(revision).has_handshake:
                return self.surface(revision)
        return None

    # -- telling clients ---------------------------------------------------------------------

    def notify_resource_updated(self, uri: str) -> None:
        """Tell the clients that subscribed to a resource, or listen to it, that it has changed.

        Those of a server that this one is mounted in are told too. May be called from any
        thread, and while nobody is served.
        """
        self.streams.resource_updated(uri)

    def changed(self, what: str) -> None:
        """Tell clients, soon and once, that a list has changed. May be called from any thread."""
        self._kept.clear()
        for follow in self._mounted_in:
            follow(what)
        self.streams.list_changed(what)

    def _on_loops(self, act: Callable[[Connection], object]) -> None:
        """Do something for each connection, on its own loop."""
        for connection in list(self.connections):
            try:
                connection.loop.call_soon_threadsafe(act, connection)
            except RuntimeError:
                # Its loop was closed under it.
                self.connections.discard(connection)

    # -- running -----------------------------------------------------------------------------

    def run(
        self, address: str | Tcp | Unix | None = None, *, limits: SocketLimits | None = None
    ) -> None:
        """Serve this process' standard streams until the client ends, or a signal does.

        With an address, such as "tcp://127.0.0.1:9000" or "unix:/run/weather.sock", listen there
        until a signal comes. Returns after everything owed was answered. SIGTERM and SIGINT end
        it in order.
        """
        from .runtime import run

        if address is None:
            run.run_stdio(self)
        else:
            run.run_listening(self, address, limits or SocketLimits())

    def listen(
        self,
        address: str | Tcp | Unix,
        *,
        limits: SocketLimits = SocketLimits(),  # noqa: B008  # immutable
        sock: socket.socket | Sequence[socket.socket] | None = None,
    ) -> ServerListener:
        """Listen on an address for the time of an `async with`, beside whatever else runs.

        `sock` is a bound socket of the caller's to listen on in place of a new one, or several.

        Raises:
            ValueError: the text names no address, or there is no socket in `sock`.
        """
        # Imported here: a server on standard streams has no sockets.
        from .runtime.listener import ServerListener

        return ServerListener(self, address, limits, sock)

    async def serve(self, transport: Transport) -> None:
        """Serve one connection until it ends; return when everything owed is done.

        Raises:
            TransportError: there was nothing to connect to.
        """
        async with self.opened():
            await self.converse(Connection(self, transport))

    async def converse(self, connection: Connection) -> None:
        """Serve one connection of a server that is open, until it ends."""
        self.connections.add(connection)
        try:
            await connection.run()
        finally:
            self.connections.discard(connection)

    def stop(self, *, at_once: bool = False) -> None:
        """Begin to end every connection: nothing new is begun, what is at work may finish.

        `at_once` cancels what is at work. May be called from any thread.
        """
        for each in list(self.listeners):
            each.stop(at_once=at_once)
        self._on_loops(lambda connection: connection.stop(at_once=at_once))
        if self._tasks is not None:
            self._tasks.stop_soon(at_once=at_once)

    def transport(self, policy: Policy) -> Transport:
        """Return the client's end of a new connection to this server, in this process.

        It makes a server an address: `Client(app)`.
        """
        from ..transports.memory import memory_pair

        near, far = memory_pair()
        task = asyncio.get_running_loop().create_task(self._serve_here(far))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        return near

    async def _serve_here(self, transport: Transport) -> None:
        try:
            await self.serve(transport)
        except Exception as error:  # noqa: BLE001  # the lifespan's; the client sees the end
            from .errors import as_redacted

            _log.error("an in-process connection failed\n%s", as_redacted(error))
            await transport.close()

    @property
    def is_open(self) -> bool:
        """Whether somebody is being served."""
        return self._life.is_held

    @property
    def has_lifespan(self) -> bool:
        """Whether something has to begin before anybody is served, here or in what is mounted."""
        return self._lifespan is not None or any(each.has_lifespan for each in self._mounts)

    @property
    def was_opened(self) -> bool:
        """Whether somebody was ever served."""
        return self._life.was_entered

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Hold the lifespan open: entered for the first connection, left after the last."""
        return self._life.held()

    async def _enter(self, stack: AsyncExitStack) -> None:
        for mounted in self._mounts:
            await stack.enter_async_context(mounted.opened())
        if self._lifespan is not None:
            self.state = await stack.enter_async_context(self._lifespan(self))
        stack.push_async_callback(self._end_tasks)
        stack.callback(self.workers.close)
        stack.callback(self._forget)

    def _forget(self) -> None:
        self.state = None

    # -- tasks -------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """What outlives a request; in the memory of this process, where none was given."""
        if self._store is None:
            from ..store.memory import MemoryStore

            self._store = MemoryStore()
        return self._store

    @cached_property
    def rounds(self) -> RoundTrips:
        """How handlers ask where a server sends no requests."""
        from .client_requests.multi_round_trip import RoundTrips  # here: most servers never ask

        return RoundTrips(self._seal, self.limits, server=self.name)

    @property
    def tasks(self) -> Tasks:
        """The calls that go on as tasks."""
        if self._tasks is None:
            from .tasks.lifecycle import Tasks

            self._tasks = Tasks(self, self.store, self._task_settings, self._cursor_key)
        return self._tasks

    def release(self, connection: Connection) -> None:
        """Let a connection go, which ends, of whatever waits on it."""
        if self._tasks is not None:
            self._tasks.release(connection)

    def give_up(self, asked: IncomingRequest) -> None:
        """Let a request go, which its client has cancelled, of whatever waits for it."""
        if self._tasks is not None:
            self._tasks.give_up(asked)

    async def finish_results(self, connection: Connection, seconds: float) -> None:
        """Let the calls of a connection that wait for tasks to end do so, for a while."""
        if self._tasks is not None:
            await self._tasks.finish_results(connection, seconds)

    async def finish_tasks(self) -> None:
        """Let tasks go on for a moment after the last connection, then stop them."""
        if self._tasks is not None:
            limits, tasks = self.limits, self._tasks
            seconds = limits.grace if tasks.is_stopping else limits.linger
            await tasks.finish(max(0, seconds - tasks.waited))

    async def _end_tasks(self) -> None:
        if self._tasks is not None:
            await self._tasks.close()

    def _honoured_task_ids(
        self, connection: Connection, caller: Caller | None, ids: list[str]
    ) -> list[str]:
        if TASKS not in self.extensions:
            return []
        return self.tasks.honoured_task_ids(connection, caller, ids)
