"""The state behind a `Server`, shared by the modules of the server package.

`Server` in `api/app.py` is the face for authors and holds nothing but a `ServerCore`, which has
four parts: the options as the author gave them, the catalog of registered entries, the runtime
state, and the services. What happens on a connection is in `dispatch/connection.py`, what a
revision looks like in `dispatch/revision.py`, what serves a method in `dispatch/methods.py`.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from ...engine.runtime import ServerRuntime
from ...jsonrpc.policy import Policy
from ...mcp.meta import CallerMemo
from ..dispatch.revision import ServerRevision
from ..methods.methods import OwnMethod, method_handlers, notification_handlers
from ..registry import register
from ..registry.catalog import Catalog
from .services import ServerServices

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..context import Middleware
    from ..dispatch.request import MethodHandler
    from ..methods.methods import NotificationHandler
    from ..registry.entries import ToolEntry
    from ..registry.extensions import Extended
    from ..registry.options import ServerOptions
    from .app import Server

__all__ = ["ServerCore", "core_of"]


class ServerCore:
    """One `Server`: options, catalog, runtime and services, and its revisions and methods."""

    def __init__(self, app: Server, options: ServerOptions) -> None:
        self.app = app
        self.options = options
        self.name = options.name
        self.info = options.info()
        self.limits = options.limits
        # Newest first.
        self.revisions = tuple(sorted(set(options.revisions), reverse=True))
        register.check_revisions(self.revisions)
        self.policy = options.policy or Policy.mcp(self.revisions[0])
        # How callers are recognised, unless a listener has its own.
        self.auth: Any = options.auth
        self.services = ServerServices(self, options)
        self.catalog = Catalog(
            options, self.services.cursor_key, self._tool_row, self.notify_list_changed
        )
        self.runtime = ServerRuntime(self.name, self.limits, self.policy.limits, self._enter)
        self.runtime.request_cancelled = self.services.request_cancelled
        self.own_methods: dict[str, OwnMethod] = {}
        self.own_notifications: dict[str, NotificationHandler] = {}
        self.notification_handlers = notification_handlers
        # By id, those of mounted servers included, and the handlers of their methods.
        self.extensions: dict[str, Extended] = {}
        self.extension_methods: dict[str, MethodHandler] = {}
        self.middleware: tuple[Middleware, ...] = ()
        # Called with the list that changed, for servers that mount this one; servers mounted here.
        self.mount_updates: list[Callable[[str], None]] = []
        self.mounted: list[ServerCore] = []
        self.callers = CallerMemo()
        self.revisions_in_use: dict[str, ServerRevision] = {}

    def __repr__(self) -> str:
        return f"<Server {self.name!r}, {len(self.catalog.tools)} tools>"

    def extension_settings(self) -> dict[str, dict[str, Any]]:
        """Return the settings of extensions by id, as they are advertised."""
        return {id: taken.extension.settings for id, taken in self.extensions.items()}

    @property
    def can_log(self) -> bool:
        """Whether a handler, guard or middleware gets a context, by which it can log to clients."""
        if self.catalog.has_contexts or self._has_middleware():
            return True
        extended = (
            each for it in self.extensions.values() for each in it.extension.methods.values()
        )
        found = [each.arguments for each in extended if each.arguments is not None]
        found += [each.entry.arguments for each in self.own_methods.values() if each.entry]
        return any(each.wants_context for each in found)

    def _has_middleware(self) -> bool:
        return bool(self.middleware) or any(each._has_middleware() for each in self.mounted)

    def notify_list_changed(self, what: str) -> None:
        """Notify clients, soon and once, that a list has changed. May be called from any thread."""
        self.catalog.forget_lists()
        for follow in self.mount_updates:
            follow(what)
        if self.options.list_changed and self.catalog.offers(what):
            self.services.streams.list_changed(what)

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

    def _tool_row(self, entry: ToolEntry, revision: str) -> Any:
        return entry.row(self.revision(revision).output_schema(entry.output))

    # -- the lifespan ------------------------------------------------------------------------

    @property
    def has_lifespan(self) -> bool:
        """Whether this server, or a mounted one, has a lifespan."""
        return self.options.lifespan is not None or any(each.has_lifespan for each in self.mounted)

    async def _enter(self, stack: AsyncExitStack) -> None:
        register.warn_of_completions(self.catalog)
        for mounted in self.mounted:
            await stack.enter_async_context(mounted.runtime.opened())
        runtime = self.runtime
        if self.options.lifespan is not None:
            runtime.state = await stack.enter_async_context(self.options.lifespan(self.app))
        stack.push_async_callback(self.services.end_tasks)
        stack.callback(runtime.threads.close)
        stack.callback(self._clear_state)

    def _clear_state(self) -> None:
        self.runtime.state = None

    def stop(self, *, at_once: bool = False) -> None:
        """Begin to end every connection and task; see `Server.stop`."""
        self.runtime.stop(at_once=at_once)
        self.services.stop_tasks(at_once=at_once)


def core_of(app: Server) -> ServerCore:
    """Return the state behind a server, for the modules of this library."""
    return app._core
