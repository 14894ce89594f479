"""Calls the user's callbacks for notifications of the server.

A synchronous callback runs where the message is read, so it is in order with the replies.
Awaitables of async callbacks are awaited by one task, one after the other. At most 1000 wait,
within the byte budget of the client; further notifications are dropped, counted and logged.

An exception of a callback is logged; it does not end the connection.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import UNSET

from ...jsonrpc.codec.decoders import UNREADABLE
from ...mcp.types import LoggingMessageNotificationParams, ResourceUpdatedNotificationParams
from ...redaction import show
from ..requests.cache import Cache
from ..session.decode import decode_again, decoder
from ..session.diagnostics import RateLimitedLog, current_task, wait_cancelled
from .budget import NotificationBudget, WeighedCallback, weigh

__all__ = ["NotificationCallbacks", "NotificationListeners"]

OnLog: TypeAlias = Callable[[LoggingMessageNotificationParams], object]
OnNotification: TypeAlias = Callable[[str, dict[str, Any]], object]
OnListChanged: TypeAlias = Callable[[str], object]
OnListRefreshed: TypeAlias = Callable[[str, list[Any]], object]
OnResourceUpdated: TypeAlias = Callable[[str], object]

# The server decides how many notifications it sends; beyond this many they are dropped.
MAX_WAITING_CALLBACKS: Final = 1000

_TOOLS_CHANGED: Final = "notifications/tools/list_changed"
# By notification: the name of the list for `on_list_changed`, and the methods that return it.
_LISTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    _TOOLS_CHANGED: ("tools", ("tools/list",)),
    "notifications/prompts/list_changed": ("prompts", ("prompts/list",)),
    "notifications/resources/list_changed": (
        "resources",
        ("resources/list", "resources/templates/list"),
    ),
}
# A notification of clients that some servers send: ignored.
_IGNORED: Final = frozenset(("notifications/initialized",))


class NotificationListeners(NamedTuple):
    """The callbacks of a client."""

    on_log: OnLog | None = None
    on_notification: OnNotification | None = None
    on_list_changed: OnListChanged | None = None
    on_resource_updated: OnResourceUpdated | None = None
    # Fetches the list of a kind; a `ListRefresh`, if the client has `on_list_refreshed`.
    refresh: Callable[[str], object] | None = None

    @property
    def wants_lists(self) -> bool:
        """Whether a callback is about changes of lists."""
        return self.on_list_changed is not None or self.refresh is not None


class NotificationCallbacks:
    """Calls the callbacks of a client for one session."""

    __slots__ = (
        "_budget",
        "_cache",
        "_listeners",
        "_on_tools_changed",
        "_server_log",
        "_task",
        "_waiting",
    )

    def __init__(
        self,
        listeners: NotificationListeners,
        server_log: RateLimitedLog,
        cache: Cache | None,
        on_tools_changed: Callable[[], object],
        budget: NotificationBudget,
    ) -> None:
        self._listeners = listeners
        self._server_log = server_log
        self._cache = cache
        # Called when the tool list has changed, before any callback.
        self._on_tools_changed = on_tools_changed
        self._budget = budget
        # Created on demand: most servers send nothing, and an empty deque is not small.
        self._waiting: deque[tuple[str, Awaitable[Any], int]] | None = None
        self._task: asyncio.Task[None] | None = None

    def take(self, method: str, params: Any) -> None:
        """Call the callback of a notification."""
        if method in _IGNORED:
            return
        listeners = self._listeners
        if method in _LISTS:
            self.drop_cached(method)
            kind = _LISTS[method][0]
            if listeners.on_list_changed is not None:
                self.call("on_list_changed", listeners.on_list_changed, params, kind)
            if listeners.refresh is not None:
                self.call("on_list_refreshed", listeners.refresh, params, kind)
            if listeners.wants_lists:
                return
        elif method == "notifications/resources/updated":
            if self._updated(params):
                return
        elif method == "notifications/message" and listeners.on_log is not None:
            message = self.read(method, params, LoggingMessageNotificationParams)
            if message is not None:
                self.call("on_log", listeners.on_log, params, message)
            return
        if listeners.on_notification is not None:
            given = self.read(method, params, dict[str, Any]) if params is not UNSET else {}
            if given is not None:
                self.call("on_notification", listeners.on_notification, params, method, given)

    def _updated(self, params: Any) -> bool:
        method, listener = "notifications/resources/updated", self._listeners.on_resource_updated
        note = self.read(method, params, ResourceUpdatedNotificationParams)
        if note is not None:
            self.drop_cached(method, note.uri)
        if note is not None and listener is not None:
            self.call("on_resource_updated", listener, params, note.uri)
        return listener is not None

    def drop_cached(self, method: str, uri: str | None = None) -> None:
        """Drop the cached results that a notification makes stale."""
        if method == _TOOLS_CHANGED:
            self._on_tools_changed()
        if self._cache is None:
            return
        if uri is not None:
            self._cache.drop("resources/read", what=uri)
        elif method in _LISTS:
            self._cache.drop(*_LISTS[method][1])

    def read(self, method: str, params: Any, kind: Any) -> Any:
        """Return the params of a notification, or None if they are invalid."""
        given = b"{}" if params is UNSET else params
        try:
            return decoder(kind)(given)
        except UNREADABLE as error:
            return self._read_again(method, given, kind, error)

    def _read_again(self, method: str, given: Any, kind: Any, error: Exception) -> Any:
        try:
            return decode_again(given, kind, error)
        except UNREADABLE as still:
            text = "invalid params of %s, ignored: %s"
            self._server_log.warning(text, show(method), show(str(still)))
            return None

    def call(self, name: str, listener: Callable[..., object], params: Any, *args: Any) -> None:
        """Call a callback for a notification with `params`; what it raises is logged."""
        try:
            if isinstance(listener, WeighedCallback):
                listener.call_weighed(weigh(params), *args)
                return
            given = listener(*args)
        except Exception as error:  # noqa: BLE001  # application code
            self._server_log.exception(error, name)
            return
        if inspect.isawaitable(given):
            self._await(name, given, weigh(params))

    def _await(self, name: str, given: Awaitable[Any], weight: int) -> None:
        if self._waiting is None:
            self._waiting = deque()
        is_idle = self._task is None or self._task.done()
        if not self._admit(weight, is_empty=is_idle and not self._waiting):
            text = "%s is too slow for the server: one notification dropped"
            self._server_log.warning(text, name)
            _discard(given)
            return
        self._waiting.append((name, given, weight))
        if is_idle:
            self._task = asyncio.get_running_loop().create_task(self._run(self._waiting))

    def _admit(self, weight: int, *, is_empty: bool) -> bool:
        if self._waiting is not None and len(self._waiting) >= MAX_WAITING_CALLBACKS:
            self._budget.drop()
            return False
        return self._budget.take(weight, is_empty=is_empty)

    async def _run(self, waiting: deque[tuple[str, Awaitable[Any], int]]) -> None:
        while waiting:
            name, given, weight = waiting.popleft()
            try:
                await given
            except asyncio.CancelledError as error:
                task = current_task()
                if task is None or task.cancelling():
                    raise
                self._server_log.exception(
                    error, name
                )  # raised by the callback itself; others still wait
            except Exception as error:  # noqa: BLE001  # application code
                self._server_log.exception(error, name)
            finally:
                del given
                self._budget.release(weight)

    async def end(self, caller: asyncio.Task[Any] | None = None) -> None:
        """Stop the callbacks, except the one that calls this."""
        while self._waiting:
            _, given, weight = self._waiting.popleft()
            _discard(given)
            self._budget.release(weight)
        task = self._task
        if task is None or task is caller:
            return
        task.cancel()
        await wait_cancelled([task])


def _discard(given: Awaitable[Any]) -> None:
    """Close a coroutine that will not be awaited, so that Python does not warn."""
    if isinstance(given, Coroutine):
        given.close()
