"""What a `SyncClient` hands out: calls, batches, tasks and streams, for threads that may wait.

Each stands for what `Client` gives under the same name, which lives on the event loop and is
touched nowhere else. Any thread may use them, and several at once.

The rules that live here, and only here:

* `result(timeout)` waits as that of a `concurrent.futures.Future`: when the time is up it raises
  `TimeoutError`, and what was waited for goes on.
* Who is interrupted (Ctrl-C) while he waits for a call has cancelled it. A task is left be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar, overload

from ...errors import Cancelled, TrunklineError
from ...mcp.types import TaskStatus
from ..options import check_seconds
from ..requests.batch import CallBatch
from ..requests.call import PendingCall
from ..requests.request import OnProgress
from ..requests.tool_result import ToolResult
from ..subscriptions.dispatch import ServerChange, SubscriptionTopics
from ..subscriptions.stream import Subscription
from ..tasks.task_call import TaskHandle
from .event_loop_thread import LoopProxy

__all__ = ["SyncCallBatch", "SyncPendingCall", "SyncSubscription", "SyncTaskHandle"]

T = TypeVar("T")

_END: Final = object()


class SyncPendingCall(Generic[T]):
    """A request that was sent: wait for its `result`, or have it call you."""

    __slots__ = ("_call", "_proxy")

    def __init__(self, proxy: LoopProxy, call: PendingCall[T]) -> None:
        self._proxy = proxy
        self._call = call

    @property
    def method(self) -> str:
        """The method of the request."""
        return self._call.method

    def done(self) -> bool:
        """Say whether it has ended: answered, failed or cancelled."""
        return self._call.done()

    def cancelled(self) -> bool:
        """Say whether it was cancelled."""
        return self._call.cancelled()

    def cancel(self) -> bool:
        """Stop waiting and tell the server so; say whether it was still under way."""
        return not self.done() and self._proxy.call(self._call.cancel)

    def result(self, timeout: float | None = None) -> T:
        """Wait for the answer, up to `timeout` seconds, and return it.

        Raises:
            TrunklineError: the request failed; the kind says how. `Cancelled`: it was.
            TimeoutError: it is still under way, and stays so.
        """
        call = self._call
        # Also when it is done, where there is something to be told before.
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
            del error  # or the trace would hold this frame, and this frame the trace

    def exception(self, timeout: float | None = None) -> TrunklineError | None:
        """Wait likewise, and return what `result` would raise, or None where it would return."""
        try:
            self.result(timeout)
        except TrunklineError as error:
            return error
        return None

    def add_done_callback(self, fn: Callable[[SyncPendingCall[T]], object]) -> None:
        """Have `fn` called with this call once it has ended, on the thread of callbacks."""
        told = self._proxy.callbacks.told("a callback of a call", fn)
        if told is not None:
            self._proxy.call(self._call.add_done_callback, lambda _: told(self))

    def __repr__(self) -> str:
        return repr(self._call).replace("<Call ", "<SyncCall ", 1)

    async def _wait(self, seconds: float | None) -> None:
        if seconds is not None:
            check_seconds("timeout", seconds)
        try:
            # Which leaves it be when the time is up.
            done, _ = await asyncio.wait([self._call._future], timeout=seconds)
        except asyncio.CancelledError:
            self._call.cancel()
            raise
        if not done:
            raise TimeoutError(f"no answer to {self.method} within {seconds:g} s; it goes on")


class SyncCallBatch:
    """Calls that are collected, to be sent as one message when the block is left."""

    __slots__ = ("_batch", "_proxy")

    def __init__(self, proxy: LoopProxy, batch: CallBatch) -> None:
        self._proxy = proxy
        self._batch = batch

    def __enter__(self) -> Self:
        self._proxy.run(self._batch.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._proxy.run(self._batch.__aexit__, kind, error, trace)

    def submit(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[dict[str, Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> SyncPendingCall[dict[str, Any]]:
        """Add any request; return the call, whose result comes after the block."""
        told = self._proxy.callbacks.told
        call = self._proxy.call(
            self._batch.submit,
            method,
            params,
            timeout=timeout,
            on_progress=told("on_progress", on_progress),
            on_success=told("on_success", on_success),
            on_error=told("on_error", on_error),
        )
        return SyncPendingCall(self._proxy, call)

    @overload
    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: type[T],
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[ToolResult[T]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> SyncPendingCall[ToolResult[T]]: ...

    @overload
    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[ToolResult[Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> SyncPendingCall[ToolResult[Any]]: ...

    @overload
    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[ToolResult[Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> SyncPendingCall[ToolResult[Any]]: ...

    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[ToolResult[Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> SyncPendingCall[ToolResult[Any]]:
        """Add a call of a tool; return it, its result comes after the block."""
        told = self._proxy.callbacks.told
        call = self._proxy.call(
            self._batch.submit_tool,
            name,
            arguments,
            result_type=result_type,
            timeout=timeout,
            on_progress=told("on_progress", on_progress),
            on_success=told("on_success", on_success),
            on_error=told("on_error", on_error),
        )
        return SyncPendingCall(self._proxy, call)

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Add a notification."""
        self._proxy.call(self._batch.notify, method, params)


class SyncTaskHandle(Generic[T]):
    """A call that became a task: ask how it stands, wait for its result, or end it.

    A tool that was done at once has a result and no task; its `id` is None.
    """

    __slots__ = ("_proxy", "_task")

    def __init__(self, proxy: LoopProxy, task: TaskHandle[T]) -> None:
        self._proxy = proxy
        self._task = task

    @property
    def id(self) -> str | None:
        """What the server calls the task, to come back to it by `client.task(id)`."""
        return self._task.id

    @property
    def status(self) -> TaskStatus | None:
        """How the task stood when the server last told; None where it has not yet."""
        return self._task.status

    @property
    def message(self) -> str | None:
        """What the server said about the status, for people."""
        return self._task.message

    def done(self) -> bool:
        """Say whether the task has ended, as far as is known."""
        return self._task.done()

    def refresh(self) -> TaskStatus:
        """Ask how the task stands. What it asks for is answered from then on.

        Raises:
            PeerError: there is no such task, or not any more.
            RequestAborted: no answer came: time ran out, or the connection is gone.
        """
        return self._proxy.run(self._task.refresh)

    def result(self, timeout: float | None = None) -> ToolResult[T]:
        """Return the result, once there is one; who waits no longer leaves the task be.

        Raises:
            PeerError: the task failed, or is not known any more; a tool that ran and failed is
                a result whose `is_error` is true.
            Cancelled: it was cancelled.
            InputRequestFailed: what it asked for could not be given.
            RequestAborted: no answer came: time ran out, or the connection is gone.
            TimeoutError: there was none within `timeout` seconds.
        """
        return self._proxy.run(_in_time, self._task.result, timeout)

    def cancel(self) -> None:
        """Ask the server to end the task; it may take its time, and may have ended before.

        Raises:
            PeerError: the server does not.
            RequestAborted: no answer came: time ran out, or the connection is gone.
        """
        self._proxy.run(self._task.cancel)

    def __iter__(self) -> Iterator[TaskStatus]:
        """Give the status as it is, then each change of it or of its message, to the end."""
        statuses: Any = self._task.__aiter__()
        try:
            while (status := self._proxy.run(_next, statuses)) is not _END:
                yield status
        finally:
            # Whoever leaves the loop early may never come back, or be collected: not waited for.
            self._proxy.later(statuses.aclose)

    def __repr__(self) -> str:
        return repr(self._task).replace("<TaskCall", "<SyncTaskCall", 1)


class SyncSubscription:
    """Changes as they come: enter it, then iterate.

    `honoured` is what the server will tell of. The iteration stops when the server ends the
    stream, and `reason` is then what it said, if anything.

    Raises, from the iteration:
        ConnectionLost: the server is gone.
        PeerError: it ended the stream with an error.
        Cancelled: 1000 changes waited, and nobody read them; those are given first.
    """

    __slots__ = ("_proxy", "_stream")

    def __init__(self, proxy: LoopProxy, stream: Subscription) -> None:
        self._proxy = proxy
        self._stream = stream

    @property
    def wanted(self) -> SubscriptionTopics:
        """What was asked for."""
        return self._stream.wanted

    @property
    def honoured(self) -> SubscriptionTopics:
        """What the server acknowledged, of what was asked for."""
        self._check_entered()
        return self._stream.honoured

    @property
    def reason(self) -> str | None:
        """Why the server ended the stream, in its words; None where it did not say, or did not."""
        return self._stream.reason

    def __enter__(self) -> Self:
        try:
            self._proxy.run(self._stream.__aenter__)
        except BaseException:  # interrupted, perhaps when it was entered: nobody would leave it
            self._proxy.later(partial(self._stream.__aexit__, None, None, None))
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._proxy.is_usable:  # or the stream has ended with the client
            self._proxy.run(self._stream.__aexit__, kind, error, trace)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ServerChange:
        change = self.get()
        if change is None:
            raise StopIteration
        return change

    def get(self, timeout: float | None = None) -> ServerChange | None:
        """Return the next change, or None where the stream has ended.

        Raises:
            TimeoutError: there was none within `timeout` seconds; the stream goes on.
        """
        self._check_entered()
        found = self._proxy.run(_in_time, self._next, timeout)
        return found if isinstance(found, ServerChange) else None

    def __repr__(self) -> str:
        return repr(self._stream).replace("<Subscription", "<SyncChangeStream", 1)

    async def _next(self) -> Any:
        return await _next(self._stream)

    def _check_entered(self) -> None:
        if self._stream._honoured is None:
            raise TrunklineError("a stream of changes is entered first: `with client.listen(...)`")


async def _next(given: Any) -> Any:
    """Return what comes next, or `_END`: what ends an iteration cannot leave a coroutine."""
    try:
        return await anext(given)
    except StopAsyncIteration:
        return _END


async def _in_time(work: Callable[[], Coroutine[Any, Any, T]], seconds: float | None) -> T:
    if seconds is None:
        return await work()
    check_seconds("timeout", seconds)
    try:
        return await asyncio.wait_for(work(), seconds)
    except TimeoutError:
        raise TimeoutError(f"nothing within {seconds:g} s") from None
