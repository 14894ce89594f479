"""The state behind a `Server`, shared by the modules of the server package.

`Server` in `app.py` is the face for authors and holds nothing but a `ServerCore`. Here are the
registered entries, the open connections, the settings, and the services they share: threads,
subscriptions, tasks, the lifespan. What happens on a connection is in `dispatch/connection.py`,
what a revision looks like in `dispatch/revision.py`, what serves a method in `dispatch/methods.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ..concurrency.thread_pool import ThreadPool
from ..errors import TransportError
from ..jsonrpc.policy import Policy
from ..mcp.meta import CallerMemo
from ..spec.mcp.tasks_extension import EXTENSION as TASKS
from .client_requests.request_state import StateSealer
from .dispatch.budget import ByteBudget, server_bytes
from .dispatch.connection import Connection
from .dispatch.methods import NotificationHandler, method_handlers, notification_handlers
from .dispatch.middleware import Middleware
from .dispatch.request import MethodHandler, ServerRequest
from .dispatch.revision import ServerRevision
from .extensions import Extended
from .registry import register as registration
from .registry.entries import Completer, Entry, PromptEntry, ResourceEntry, ToolEntry
from .registry.paged_list import PagedList
from .runtime.lifespan import SharedLifespan
from .settings import CacheHint
from .stats import Counters
from .subscriptions.registry import SubscriptionRegistry

if TYPE_CHECKING:
    from ..auth.principal import Principal
    from ..auth.scopes import ImpliedScopes
    from ..jsonrpc.peer.incoming import IncomingRequest
    from ..spec.rows import EntryKind
    from ..store.base import Store
    from ..transports.base import Transport
    from ..transports.memory import MemoryTransport
    from .access.envelope import EnvelopeAuth
    from .access.tenancy import Tenancy
    from .access.tool_sets import ToolSets
    from .app import Server
    from .client_requests.multi_round_trip import RoundTrips
    from .observability.operations import Observer, OperationRecorder, Serve
    from .registry.options import ServerOptions
    from .runtime.asgi import AsgiApp
    from .runtime.http_listener import HttpListener
    from .runtime.listener import ServerListener
    from .tasks.lifecycle import Tasks

__all__ = ["ServerCore"]

_log: Final = logging.getLogger("trunkline.server")

# Entries on one page of a list, unless the author gives another number.
PAGE_SIZE: Final = 100


class ServerCore:
    """What one `Server` has registered, what is connected to it, and how it is set up."""

    def __init__(self, app: Server, options: ServerOptions) -> None:
        self.app = app
        # How callers are recognised, unless a listener has its own.
        self.auth: Any = options.auth
        self.info = options.info()
        self.name = options.name
        self.instructions = options.instructions
        # Newest first.
        self.revisions = tuple(sorted(set(options.revisions), reverse=True))
        registration.check_revisions(self.revisions)
        policy = options.policy
        self.policy = Policy.mcp(self.revisions[0]) if policy is None else policy
        self.cache = options.cache
        self.limits = limits = options.limits
        self.experimental = dict(options.experimental or {})
        # Kinds that are switched off; of the others, clients are notified of changed lists, and may
        # subscribe to resources.
        capabilities = options.switches()
        self._switched_off = frozenset(name for name, on in capabilities.items() if not on)
        # Also without a completion so far.
        self._always_completes = capabilities.get("completions", False)
        self.list_changed = options.list_changed
        self.subscribe = options.subscribe
        # Access: scopes that grant others, and whether lists leave out what lacks scopes.
        self._implies = options.implies
        if options.implies is not None:
            _ = self.implied_scopes  # on the line of the author
        self.hide_unscoped = options.hide_unscoped
        # The tools of each tenant, and what tenants share; None without tenants.
        self.tool_sets: ToolSets | None = None
        self.tenancy: Tenancy | None = None
        # Whether requests pass a gate before they are served: of these two.
        self.is_gated = False
        # Finds callers by what messages carry; None unless the policy has such an envelope.
        self.envelope_auth: EnvelopeAuth | None = None
        # What the lifespan yielded, while it lasts.
        self.state: Any = None
        self._lifespan = options.lifespan
        # Made now, before any fork, so that all worker processes share it.
        self._seal = StateSealer(tuple(options.state_keys))
        self._cursor_key = self._seal.first
        # Whether lists are one page in revisions with a handshake, up to a size in bytes.
        self.has_whole_lists = options.page_size is None
        size = PAGE_SIZE if options.page_size is None else options.page_size
        make = registration.list_maker(size, self._cursor_key, self)
        self.tools: PagedList[ToolEntry] = make("tools", self._tool_row)
        self.resources: PagedList[ResourceEntry] = make("resources", lambda each, _: each.row())
        self.templates: PagedList[ResourceEntry] = make(
            "resourceTemplates", lambda each, _: each.row()
        )
        self.prompts: PagedList[PromptEntry] = make("prompts", lambda each, _: each.row())
        self.lists: dict[EntryKind | None, PagedList[Any]] = {
            "tool": self.tools,
            "prompt": self.prompts,
            "resource": self.resources,
            "template": self.templates,
        }
        # By ("prompt" or "resource", name or template, argument).
        self.completions: dict[tuple[str, str, str], Completer] = {}
        self.own_methods: dict[str, MethodHandler] = {}
        self.own_notifications: dict[str, NotificationHandler] = {}
        # By id, those of mounted servers included, and the handlers of their methods.
        self.extensions: dict[str, Extended] = {}
        self.extension_methods: dict[str, MethodHandler] = {}
        self.middleware: tuple[Middleware, ...] = ()
        # Metrics and tracing; `observe` wraps the requests of a new connection, None if off.
        self.observers: tuple[Observer, ...] = ()
        self.observe: Callable[[Connection, Serve, Serve], OperationRecorder] | None = None
        # Called with the list that changed, for servers that mount this one; servers mounted here.
        self.mount_updates: list[Callable[[str], None]] = []
        self.mounted: list[ServerCore] = []
        self.connections: set[Connection] = set()
        self.listeners: set[AsgiApp | HttpListener | ServerListener] = set()
        self.streams = SubscriptionRegistry(self)
        self.streams.honoured_task_ids = self._honoured_task_ids
        # Made on first use if none was given.
        self._store = options.store
        self._task_settings = options.tasks
        self._tasks: Tasks | None = None
        self.in_flight = 0
        self.budget = ByteBudget(server_bytes(limits, self.policy.limits))
        self.counters = Counters()
        self.threads = ThreadPool(
            limits.threads,
            limits.waiting_for_thread,
            name="trunkline-handler",
            is_shared=lambda: len(self.connections) > 1,
            on_late=self._threads_are_late,
        )
        self.callers = CallerMemo()
        self.notification_handlers = notification_handlers
        self.revisions_in_use: dict[str, ServerRevision] = {}
        # The cache hint of each list, until it changes.
        self._cache_hints: dict[int, CacheHint] = {}
        # Whether a list differs between callers, until it changes.
        self._varying: dict[int, bool] = {}
        self._guarded: dict[int, bool] = {}
        self._life = SharedLifespan(f"<Server {self.name!r}>", self._enter)
        self._serving: set[asyncio.Task[None]] = set()
        self._new_task: tuple[Any, Callable[[Any], asyncio.Task[Any]]] | None = None
        self._warned: set[str] = set()

    def __repr__(self) -> str:
        return f"<Server {self.name!r}, {len(self.tools)} tools>"

    # -- what was registered -----------------------------------------------------------------

    def find_resources(self, uri: str) -> Iterator[tuple[ResourceEntry, dict[str, str]]]:
        """Yield the resources that a URI may name, best first, with the values of variables."""
        entry = self.resources.get(uri)
        if entry is not None:
            yield entry, {}
        if not len(self.templates):
            return
        # Imported here: a server without templates need not know how they are read.
        from .registry.uri_template import RequestedUri

        asked = RequestedUri(uri)
        for entry in self.templates:
            if (values := entry.match(asked)) is not None:
                yield entry, values

    def offers(self, capability: str) -> bool:
        """Return True if a capability, or what it is part of, is not switched off."""
        if capability == "resources.subscribe" and not self.subscribe:
            return False
        return capability.partition(".")[0] not in self._switched_off

    @property
    def has_completions(self) -> bool:
        """Whether arguments may have completions, here or in a mounted server."""
        if "completions" in self._switched_off:
            return False
        return (
            self._always_completes
            or bool(self.completions)
            or any(each.has_completions for each in self.mounted)
        )

    def scopes_of_resource(self, uri: str) -> frozenset[str]:
        """Return the scopes that reading a resource needs."""
        if not (self.has_guards(self.resources) or self.has_guards(self.templates)):
            return frozenset()
        found = next((entry.guard for entry, _ in self.served_resources(uri)), None)
        return frozenset() if found is None else found.scopes

    def served_resources(self, uri: str) -> Iterator[tuple[ResourceEntry, Any]]:
        """Yield the resources that a URI names, best first, with the arguments of their handlers.

        Unlike `find_resources`, it leaves out templates whose handlers do not take the values.
        """
        from msgspec import ValidationError, convert

        from .handlers.custom_types import read_custom

        for entry, texts in self.find_resources(uri):
            try:
                values = convert(texts, entry.arguments.struct, strict=False, dec_hook=read_custom)
            except ValidationError:
                continue  # no resource of the template has such a name
            yield entry, values

    def has_guards(self, listed: PagedList[Any]) -> bool:
        """Return True if an entry of a list has a guard."""
        found = self._guarded.get(id(listed))
        if found is None:
            found = self._guarded[id(listed)] = any(each.guard is not None for each in listed)
        return found

    def completed_entries(self, kind: str, name: str) -> Iterator[Entry]:
        """Yield the prompt, or the resources and templates, that a completion may refer to."""
        entry: Entry | None
        entry = self.prompts.get(name) if kind == "prompt" else self.templates.get(name)
        if entry is not None:
            yield entry
        elif kind != "prompt":
            yield from (found for found, _ in self.find_resources(name))

    def completer(self, kind: str, entries: Iterable[Entry], argument: str) -> Completer | None:
        """Return the completer of an argument of one of these entries, or None."""
        for entry in entries:
            if isinstance(entry, ResourceEntry):
                own = entry.own_uri or entry.uri
            else:
                own = entry.own_name or entry.name
            owner: ServerCore = entry.owner
            completer = owner.completions.get((kind, own, argument))
            if completer is not None:
                # It runs through the middleware of what it completes.
                return replace(completer, path=entry.path) if entry.path else completer
        return None

    def extension_settings(self) -> dict[str, dict[str, Any]]:
        """Return the settings of extensions by id, as they are advertised."""
        return {id: taken.extension.settings for id, taken in self.extensions.items()}

    def cache_of(self, listed: PagedList[Any]) -> CacheHint:
        """Return the cache hint of a list."""
        found = self._cache_hints.get(id(listed))
        if found is None:
            found = registration.cache_of(listed, self.cache)
            if self.varies(listed):
                found = replace(found, scope="private")
            self._cache_hints[id(listed)] = found
        return found

    def varies(self, listed: PagedList[Any]) -> bool:
        """Return True if a list differs between callers."""
        found = self._varying.get(id(listed))
        if found is None:
            found = self._varying[id(listed)] = self._find_varying(listed)
        return found

    def _find_varying(self, listed: PagedList[Any]) -> bool:
        if self.tool_sets is not None and listed is self.tools:
            return True
        guards = (entry.guard for entry in listed if entry.guard is not None)
        return any(each.visible or (each.scopes and self.hide_unscoped) for each in guards)

    @cached_property
    def implied_scopes(self) -> ImpliedScopes:
        """Which scopes grant others."""
        from ..auth.scopes import ImpliedScopes  # here: most servers have no guards

        return ImpliedScopes(self._implies)

    def warn_deprecated(self, entry: ToolEntry) -> None:
        """Log a warning, once per tool, that a deprecated tool is called."""
        if entry.name not in self._warned:
            self._warned.add(entry.name)
            _log.warning("deprecated tool %r was called: %s", entry.name, entry.deprecated)

    def _threads_are_late(self, more: int, waiting: int, seconds: float) -> None:
        self.counters.late_threads += more
        self.counters.warn(
            "threads",
            "%d calls wait for one of %d threads, the first for %.1f s",
            waiting,
            self.limits.threads,
            seconds,
        )

    def _tool_row(self, entry: ToolEntry, revision: str) -> Any:
        return entry.row(self.revision(revision).output_schema(entry.output))

    # -- revisions ---------------------------------------------------------------------------

    def revision(self, revision: str) -> ServerRevision:
        """Return this server in one of its revisions."""
        found = self.revisions_in_use.get(revision)
        if found is None:
            found = self.revisions_in_use.setdefault(
                revision, ServerRevision(self, revision, method_handlers)
            )
        return found

    @property
    def newest_revision(self) -> ServerRevision:
        """The newest revision of this server."""
        return self.revision(self.revisions[0])

    @property
    def handshake_revision(self) -> ServerRevision | None:
        """The newest revision that opens with a handshake, if any."""
        for revision in self.revisions:
            if self.revision(revision).has_handshake:
                return self.revision(revision)
        return None

    # -- notifying clients -------------------------------------------------------------------

    def notify_list_changed(self, what: str) -> None:
        """Notify clients, soon and once, that a list has changed. May be called from any thread."""
        self.forget_lists()
        for follow in self.mount_updates:
            follow(what)
        if self.list_changed and self.offers(what):
            self.streams.list_changed(what)

    def forget_lists(self) -> None:
        """Drop what is cached about lists."""
        self._cache_hints.clear()
        self._varying.clear()
        self._guarded.clear()

    def new_task(self, loop: asyncio.AbstractEventLoop) -> Callable[[Any], asyncio.Task[Any]]:
        """Return what makes tasks of a loop, one object for all connections."""
        if self._new_task is None or self._new_task[0] is not loop:
            # As `create_task` would, without looking for a task factory each time.
            is_plain = loop.get_task_factory() is None and isinstance(loop, asyncio.BaseEventLoop)
            make = partial(asyncio.Task, loop=loop) if is_plain else loop.create_task
            self._new_task = loop, make
        return self._new_task[1]

    def _on_loops(self, act: Callable[[Connection], object]) -> None:
        """Call `act` with each connection, on its own event loop."""
        for connection in list(self.connections):
            try:
                connection.loop.call_soon_threadsafe(act, connection)
            except RuntimeError:
                # Its event loop is closed.
                self.connections.discard(connection)

    # -- running -----------------------------------------------------------------------------

    async def serve(self, transport: Transport, auth: Any = None) -> None:
        """Serve one connection until it ends; return after open requests were answered.

        Raises:
            TransportError: the transport could not connect.
            ValueError: `auth` cannot recognise the client of such a connection.
            PermissionError: it does not know the client.
        """
        principal = None
        auth = self.auth if auth is None else auth
        if auth is not None:
            # Imported here: most connections have no principal.
            from ..auth.server.peers import peer_rules_of
            from .runtime.auth_setup import use_auth

            auth = use_auth(self, auth)
            principal = peer_rules_of(auth, transport.name).principal_of(transport)
        await self._serve(transport, principal)

    async def _serve(self, transport: Transport, principal: Principal | None) -> None:
        async with self.opened():
            connection = Connection(self, transport)
            if principal is not None:
                connection.use_principal(principal)
            await self.serve_connection(connection)

    async def serve_connection(self, connection: Connection) -> None:
        """Serve one connection, with the lifespan entered, until it ends."""
        self.connections.add(connection)
        try:
            await connection.run()
        finally:
            self.connections.discard(connection)
            self.threads.leave(connection.runner.threads)

    def stop(self, *, at_once: bool = False) -> None:
        """Begin to end every connection; see `Server.stop`."""
        for each in list(self.listeners):
            each.stop(at_once=at_once)
        self._on_loops(lambda connection: connection.stop(at_once=at_once))
        if self._tasks is not None:
            self._tasks.stop_soon(at_once=at_once)

    def connect_in_process(self) -> Transport:
        """Return the client's end of a new connection to this server, in this process."""
        from ..transports.memory import memory_pair

        near, far = memory_pair()
        task = asyncio.get_running_loop().create_task(self._serve_here(far))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        return near

    async def _serve_here(self, transport: MemoryTransport) -> None:
        try:
            # The program itself is the client: without a rule for it, it is anonymous.
            await self._serve(transport, self._own_principal())
        except Exception as error:  # noqa: BLE001  # the lifespan's; the client is told
            from .errors import as_redacted, one_line

            _log.error("in-process connection failed and is closed\n%s", as_redacted(error))
            failure = TransportError(
                f"the server failed: {type(error).__name__}: {one_line(error)}"
            )
            failure.__cause__ = error
            await transport.fail(failure)

    def _own_principal(self) -> Principal | None:
        if self.auth is None:
            return None
        # Imported here, as above.
        from ..auth.server.peers import Fixed
        from ..auth.server.settings import settings_of

        rules = settings_of(self.auth).verifiers
        return next((each.principal for each in rules if isinstance(each, Fixed)), None)

    @property
    def is_open(self) -> bool:
        """Whether the lifespan is entered."""
        return self._life.is_held

    @property
    def has_lifespan(self) -> bool:
        """Whether this server, or a mounted one, has a lifespan."""
        return self._lifespan is not None or any(each.has_lifespan for each in self.mounted)

    @property
    def was_opened(self) -> bool:
        """Whether the lifespan was ever entered."""
        return self._life.was_entered

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Hold the lifespan: entered for the first connection, left after the last."""
        return self._life.held()

    async def _enter(self, stack: AsyncExitStack) -> None:
        registration.warn_of_completions(self)
        for mounted in self.mounted:
            await stack.enter_async_context(mounted.opened())
        if self._lifespan is not None:
            self.state = await stack.enter_async_context(self._lifespan(self.app))
        stack.push_async_callback(self._end_tasks)
        stack.callback(self.threads.close)
        stack.callback(self._clear_state)

    def _clear_state(self) -> None:
        self.state = None

    # -- tasks -------------------------------------------------------------------------------

    @property
    def has_own_store(self) -> bool:
        """Whether the author gave a store, or one was made for tasks."""
        return self._store is not None

    @property
    def store(self) -> Store:
        """Where tasks are kept; the memory of this process by default."""
        if self._store is None:
            from ..store.memory import MemoryStore

            self._store = MemoryStore()
        return self._store

    @cached_property
    def rounds(self) -> RoundTrips:
        """Requests to clients inside results, for revisions without requests from the server."""
        from .client_requests.multi_round_trip import RoundTrips  # here: most servers never ask

        return RoundTrips(self._seal, self.limits, server=self.name)

    @property
    def tasks(self) -> Tasks:
        """The tasks of this server."""
        if self._tasks is None:
            from .tasks.lifecycle import Tasks

            self._tasks = Tasks(self, self.store, self._task_settings, self._cursor_key)
        return self._tasks

    def connection_ended(self, connection: Connection) -> None:
        """Stop what waits on a connection."""
        if self._tasks is not None:
            self._tasks.release(connection)

    def request_cancelled(self, asked: IncomingRequest) -> None:
        """Stop what waits for a request."""
        if self._tasks is not None:
            self._tasks.give_up(asked)

    async def finish_results(self, connection: Connection, seconds: float) -> None:
        """Wait for the `tasks/result` calls of a connection, for so many seconds."""
        if self._tasks is not None:
            await self._tasks.finish_results(connection, seconds)

    async def finish_tasks(self) -> None:
        """Let tasks finish for a moment after the last connection, then stop them."""
        if self._tasks is not None:
            limits, tasks = self.limits, self._tasks
            seconds = limits.grace if tasks.is_stopping else limits.linger
            await tasks.finish(max(0, seconds - tasks.waited))

    async def _end_tasks(self) -> None:
        if self._tasks is not None:
            await self._tasks.close()

    def _honoured_task_ids(self, request: ServerRequest, ids: list[str]) -> list[str]:
        if TASKS not in self.extensions:
            return []
        return self.tasks.honoured_task_ids(request, ids)
