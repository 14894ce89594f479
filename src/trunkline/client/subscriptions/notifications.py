"""What a server tells without being asked, and whom it is told to.

A plain function is called where the message is read, so what it sees is in order with the
replies. What an async function returns is awaited by one task, one after the other: in order
among themselves, and never more at a time than a server likes.

What a callback raises goes to the log: it must not end a connection that others use too.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import UNSET

from ...jsonrpc.decode_errors import UNREADABLE
from ...mcp.types import LoggingMessageNotificationParams, ResourceUpdatedNotificationParams
from ...redaction import show
from ..diagnostics import RateLimitedLog, current_task, wait_cancelled
from ..requests.cache import Cache
from ..requests.decode import decoder

__all__ = ["NotificationCallbacks", "NotificationListeners"]

OnLog: TypeAlias = Callable[[LoggingMessageNotificationParams], object]
OnNotification: TypeAlias = Callable[[str, dict[str, Any]], object]
OnListChanged: TypeAlias = Callable[[str], object]
OnResourceUpdated: TypeAlias = Callable[[str], object]

# A server decides how much it tells; what its client cannot follow is dropped from here on.
WAITING: Final = 1000

_NEW_TOOLS: Final = "notifications/tools/list_changed"
# What lists have changed, by notification: its name for the user, and the methods that list it.
_LISTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    _NEW_TOOLS: ("tools", ("tools/list",)),
    "notifications/prompts/list_changed": ("prompts", ("prompts/list",)),
    "notifications/resources/list_changed": (
        "resources",
        ("resources/list", "resources/templates/list"),
    ),
}
# Some servers send what only clients do; nothing follows from it.
_STRAYS: Final = frozenset(("notifications/initialized",))


class NotificationListeners(NamedTuple):
    """The functions that a user wants called."""

    on_log: OnLog | None = None
    on_notification: OnNotification | None = None
    on_list_changed: OnListChanged | None = None
    on_resource_updated: OnResourceUpdated | None = None


class NotificationCallbacks:
    """Tells what comes in to whoever listens."""

    __slots__ = ("_cache", "_listeners", "_on_new_tools", "_server_log", "_task", "_waiting")

    def __init__(
        self,
        listeners: NotificationListeners,
        server_log: RateLimitedLog,
        cache: Cache | None,
        on_new_tools: Callable[[], object],
    ) -> None:
        self._listeners = listeners
        self._server_log = server_log
        self._cache = cache
        # Told when the list of tools is not what it was, before any listener is.
        self._on_new_tools = on_new_tools
        # Made when it is needed: most servers tell nothing, and an empty one is not small.
        self._waiting: deque[tuple[str, Awaitable[Any]]] | None = None
        self._task: asyncio.Task[None] | None = None

    def take(self, method: str, params: Any) -> None:
        """Tell of one notification."""
        if method in _STRAYS:
            return
        listeners = self._listeners
        if method in _LISTS:
            self.drop_kept(method)
            if listeners.on_list_changed is not None:
                self.call("on_list_changed", listeners.on_list_changed, _LISTS[method][0])
                return
        elif method == "notifications/resources/updated":
            if self._updated(params):
                return
        elif method == "notifications/message" and listeners.on_log is not None:
            message = self.read(method, params, LoggingMessageNotificationParams)
            if message is not None:
                self.call("on_log", listeners.on_log, message)
            return
        if listeners.on_notification is not None:
            given = self.read(method, params, dict[str, Any]) if params is not UNSET else {}
            if given is not None:
                self.call("on_notification", listeners.on_notification, method, given)

    def _updated(self, params: Any) -> bool:
        method, listener = "notifications/resources/updated", self._listeners.on_resource_updated
        note = self.read(method, params, ResourceUpdatedNotificationParams)
        if note is not None:
            self.drop_kept(method, note.uri)
        if note is not None and listener is not None:
            self.call("on_resource_updated", listener, note.uri)
        return listener is not None

    def drop_kept(self, method: str, uri: str | None = None) -> None:
        """Forget the results that a notification makes stale, and what else is known by them."""
        if method == _NEW_TOOLS:
            self._on_new_tools()
        if self._cache is None:
            return
        if uri is not None:
            self._cache.drop("resources/read", what=uri)
        elif method in _LISTS:
            self._cache.drop(*_LISTS[method][1])

    def read(self, method: str, params: Any, kind: Any) -> Any:
        """Return the params of a notification, or None where they cannot be used."""
        try:
            return decoder(kind)(b"{}" if params is UNSET else params)
        except UNREADABLE as error:
            text = "the params of %s cannot be read: %s"
            self._server_log.warning(text, show(method), show(str(error)))
            return None

    def call(self, name: str, listener: Callable[..., object], *args: Any) -> None:
        """Call a function of the user's."""
        try:
            given = listener(*args)
        except Exception as error:  # noqa: BLE001  # somebody else's code
            self._server_log.exception(error, name)
            return
        if inspect.isawaitable(given):
            self._await(name, given)

    def _await(self, name: str, given: Awaitable[Any]) -> None:
        if self._waiting is None:
            self._waiting = deque()
        if len(self._waiting) >= WAITING:
            text = "%s cannot follow what the server sends: one notification is dropped"
            self._server_log.warning(text, name)
            _discard(given)
            return
        self._waiting.append((name, given))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(self._waiting))

    async def _run(self, waiting: deque[tuple[str, Awaitable[Any]]]) -> None:
        while waiting:
            name, given = waiting.popleft()
            try:
                await given
            except asyncio.CancelledError as error:
                task = current_task()
                if task is None or task.cancelling():
                    raise
                self._server_log.exception(error, name)  # the listener's own; others still wait
            except Exception as error:  # noqa: BLE001  # somebody else's code
                self._server_log.exception(error, name)

    async def end(self, caller: asyncio.Task[Any] | None = None) -> None:
        """Stop telling; who waits for this is not stopped."""
        while self._waiting:
            _discard(self._waiting.popleft()[1])
        task = self._task
        if task is None or task is caller:
            return
        task.cancel()
        await wait_cancelled([task])


def _discard(given: Awaitable[Any]) -> None:
    """Let go of what will not be awaited, without a warning that it was not."""
    if isinstance(given, Coroutine):
        given.close()
