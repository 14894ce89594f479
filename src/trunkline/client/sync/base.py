"""What `SyncClient` and its handles do differently from `Client`: waiting, and iterating.

The methods of `sync.client` and `sync.handles` are generated from the async ones; their base
classes are here.

The rules that live here, and only here:

* `result(timeout)` waits like that of a `concurrent.futures.Future`: after `timeout` seconds it
  raises `TimeoutError`, and the call continues.
* An interrupt (Ctrl-C) while waiting for a call cancels the call. A task is not cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, cast

from ...errors import Cancelled, RequestTimeout, TrunklineError
from ...migration_hints import (
    CLIENT_ATTRIBUTES,
    MissingClassAttribute,
    missing_attribute,
    unknown_call_option,
)
from ..client import Client, state_of
from ..requests.call import future_of
from ..session.options import check_seconds
from ..subscriptions.stream import was_entered
from .callbacks import Callbacks
from .event_loop_thread import NOT_CONNECTED, LoopProxy, PartProxy

if TYPE_CHECKING:
    from ...mcp.types import TaskStatus
    from ..requests.batch import CallBatch
    from ..requests.call import PendingCall
    from ..requests.tool_result import ToolResult
    from ..subscriptions.dispatch import ServerChange, SubscriptionTopics
    from ..subscriptions.stream import Subscription
    from ..tasks.task_call import TaskHandle
    from .client import SyncClient

__all__ = ["BatchBase", "PendingCallBase", "SubscriptionBase", "SyncClientBase", "TaskHandleBase"]

T = TypeVar("T")

_END: Final = object()

# Callbacks of notifications and events: synchronous ones are called on a thread of their own.
_CALLBACKS: Final = (
    "on_log",
    "on_progress",
    "on_notification",
    "on_list_changed",
    "on_list_refreshed",
    "on_resource_updated",
    "on_event",
)


class SyncClientBase:
    """A `Client` on the event loop thread, and the proxy to it."""

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute("SyncClient", name, CLIENT_ATTRIBUTES, self)

        from_config = MissingClassAttribute(CLIENT_ATTRIBUTES["from_config"][1])

    def __init__(self, target: Any, **options: Any) -> None:
        callbacks = Callbacks()
        for name in _CALLBACKS:
            if name in options:
                options[name] = callbacks.told(name, options[name])
        self._client = Client(target, **options)
        # A client that another thread closes is found without a session on the event loop.
        callbacks.budget = state_of(self._client).use_threads(NOT_CONNECTED)
        self._proxy = LoopProxy(self._client, callbacks)

    def _check_unknown(self, name: str, unknown: Mapping[str, Any]) -> None:
        """Raise TypeError for an option that `call_tool` does not have."""
        if unknown:
            raise unknown_call_option(name, next(iter(unknown)))

    def __repr__(self) -> str:
        return repr(self._client).replace("<Client ", "<SyncClient ", 1)

    def __enter__(self) -> Self:
        self._proxy.connect()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._proxy.close()

    @property
    def servers(self) -> Mapping[str, SyncClient]:
        """The client of each server of a configuration, by name."""
        return {name: self._part(each) for name, each in self._client.servers.items()}

    @property
    def failures(self) -> Mapping[str, Exception]:
        """Why servers of a configuration cannot be used, by name; empty with one server."""
        return self._client.failures

    def _part(self, client: Client) -> SyncClient:
        """Return the synchronous client of one server of several."""
        made = self
        if client is not self._client:
            made = object.__new__(type(self))
            made._client, made._proxy = client, PartProxy(self._proxy, client)
        return cast("SyncClient", made)

    def _connected(self) -> Client:
        if not state_of(self._client).has_session:
            raise TrunklineError(NOT_CONNECTED)
        return self._client


class _Handle:
    """What `Client` returned, and the proxy to the event loop thread that it is used on."""

    __slots__ = ("_inner", "_proxy")

    def __init__(
        self,
        proxy: LoopProxy,
        inner: PendingCall[Any] | CallBatch | TaskHandle[Any] | Subscription,
    ) -> None:
        self._proxy = proxy
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner).replace("<", "<Sync", 1)


class PendingCallBase(_Handle, Generic[T]):
    """A `PendingCall` of another thread."""

    __slots__ = ()
    _inner: PendingCall[T]

    @property
    def method(self) -> str:
        """The method of the request."""
        return self._inner.method

    def done(self) -> bool:
        """Return True once the call has a result, has failed or was cancelled."""
        return self._inner.done()

    def cancelled(self) -> bool:
        """Return True if the call was cancelled."""
        return self._inner.cancelled()

    def cancel(self) -> bool:
        """Cancel the request, and notify the server; return False if it had ended already."""
        return not self.done() and self._proxy.call(self._inner.cancel)

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, up to `timeout` seconds, and return it.

        Raises:
            TrunklineError: the request failed; the class says how. `Cancelled`: it was cancelled.
            TimeoutError: it has not ended yet, and continues.
        """
        call = self._inner
        # Also after its end, while callbacks that came before it have not been called.
        if not call.done() or (self._proxy.callbacks.is_behind and self._proxy.is_usable):
            self._proxy.run(self._wait, timeout)
        if call.cancelled():
            raise Cancelled("the call was cancelled", method=call.method)
        error = call.exception()
        if error is None:
            return call.result()
        try:
            raise error.with_traceback(None)
        finally:
            del error  # or the traceback and this frame would refer to each other

    def exception(self, timeout: float | None = None) -> TrunklineError | None:
        """Wait as `result`, and return the error it would raise, or None if it would return."""
        try:
            self.result(timeout)
        except TrunklineError as error:
            return error
        return None

    def add_done_callback(self, fn: Callable[[Self], object]) -> None:
        """Call `fn` with this call once it has ended, on the callback thread."""
        told = self._proxy.callbacks.told("a callback of a call", fn)
        if told is not None:
            self._proxy.call(self._inner.add_done_callback, lambda _: told(self))

    async def _wait(self, seconds: float | None) -> None:
        if seconds is not None:
            check_seconds("timeout", seconds)
        try:
            # `wait` does not cancel the future after the timeout.
            done, _ = await asyncio.wait([future_of(self._inner)], timeout=seconds)
        except asyncio.CancelledError:
            self._inner.cancel()
            raise
        if not done:
            raise TimeoutError(f"no answer to {self.method} within {seconds:g} s; it continues")


class BatchBase(_Handle):
    """A `CallBatch` of another thread."""

    __slots__ = ()
    _inner: CallBatch
    __repr__ = object.__repr__  # a batch has no text of its own

    def __enter__(self) -> Self:
        self._proxy.run(self._inner.__aenter__)
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self._proxy.run(self._inner.__aexit__, *exc_info)


class TaskHandleBase(_Handle, Generic[T]):
    """A `TaskHandle` of another thread."""

    __slots__ = ()
    _inner: TaskHandle[T]

    def done(self) -> bool:
        """Return True if the task has ended, as of its last known status."""
        return self._inner.done()

    def result(self, timeout: float | None = None) -> ToolResult[T]:
        """Wait for the result, up to `timeout` seconds, and return it; the task continues if not.

        Raises:
            PeerError: the task failed, or is unknown; a tool that ran and failed is a result whose
                `is_error` is true.
            Cancelled: it was cancelled.
            InputRequestFailed: an input request of the task could not be answered.
            RequestAborted: a request timed out, or the connection is lost.
            TimeoutError: there was no result within `timeout` seconds.
        """
        return self._proxy.run(_within, self._inner.result, timeout)

    def __iter__(self) -> Iterator[TaskStatus]:
        """Yield the status, then each change of it or of its message, until the task ends."""
        statuses: Any = self._inner.__aiter__()
        try:
            while (status := self._proxy.run(_next, statuses)) is not _END:
                yield status
        finally:
            # Not awaited: this may run in the garbage collector.
            self._proxy.later(statuses.aclose)


class SubscriptionBase(_Handle):
    """A `Subscription` of another thread."""

    __slots__ = ()
    _inner: Subscription

    @property
    def wanted(self) -> SubscriptionTopics:
        """What was requested."""
        return self._inner.wanted

    @property
    def honoured(self) -> SubscriptionTopics:
        """What the server acknowledged, of what was requested."""
        self._check_entered()
        return self._inner.honoured

    def __enter__(self) -> Self:
        try:
            self._proxy.run(self._inner.__aenter__)
        except BaseException:  # interrupted, perhaps after it was entered: then it must be left
            self._proxy.later(partial(self._inner.__aexit__, None, None, None))
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._proxy.is_usable:  # otherwise it has ended with the client
            self._proxy.run(self._inner.__aexit__, *exc_info)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ServerChange:
        change = self.get()
        if change is None:
            raise StopIteration
        return change

    def get(self, timeout: float | None = None) -> ServerChange | None:
        """Return the next change, or None once the subscription has ended.

        Raises:
            TimeoutError: there was none within `timeout` seconds; the subscription continues.
        """
        self._check_entered()
        found = self._proxy.run(_within, partial(_next, self._inner), timeout)
        return None if found is _END else found

    def _check_entered(self) -> None:
        if not was_entered(self._inner):
            raise TrunklineError("enter the subscription first: `with client.listen(...)`")


async def _next(given: Any) -> Any:
    """Return the next item, or `_END`: StopAsyncIteration cannot leave a coroutine."""
    try:
        return await anext(given)
    except StopAsyncIteration:
        return _END


async def _within(work: Callable[[], Coroutine[Any, Any, T]], seconds: float | None) -> T:
    if seconds is None:
        return await work()
    check_seconds("timeout", seconds)
    try:
        return await asyncio.wait_for(work(), seconds)
    except RequestTimeout:
        raise  # of a request within the work
    except TimeoutError:
        raise TimeoutError(f"nothing within {seconds:g} s") from None
