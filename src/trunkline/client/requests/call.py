"""A request that is under way, as the handle its caller holds.

A `PendingCall` can be awaited, polled, given callbacks and cancelled. Everything happens on the
event loop of the client; an outcome that is neither awaited nor listened to is dropped.

It ends once, with a complete result. Where a server may answer with another, a `CompletingWaiter`
stands in the place of its future: what is not complete goes on behind it, in a task.
"""

from __future__ import annotations

from asyncio import Future, Task
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Raw

from ...errors import NOTHING, RemoteProtocolError, RequestAborted, TrunklineError
from ...redaction import show
from ..diagnostics import report
from .decode import NotComplete

if TYPE_CHECKING:
    from ...jsonrpc.outgoing import Pending
    from ..session import Session

__all__ = ["CompletingWaiter", "PendingCall"]

T = TypeVar("T")


class PendingCall(Generic[T]):
    """A request that was sent: `await` it, or have it call you."""

    __slots__ = (
        "_error",
        "_future",
        "_pending",
        "_read",
        "_session",
        "_task",
        "_value",
        "method",
    )

    def __init__(
        self,
        session: Session,
        method: str,
        future: Future[Any],
        read: Callable[[Any], T],
        on_success: Callable[[T], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> None:
        self.method = method
        self._session = session
        self._future = future
        self._read = read
        self._pending: Pending | None = None
        # What completes a result that was not complete.
        self._task: Task[Raw] | None = None
        self._value: Any = NOTHING
        self._error: TrunklineError | None = None
        future.add_done_callback(self._settle)
        if on_success is not None or on_error is not None:
            self.add_done_callback(lambda call: call._tell(on_success, on_error))

    def sent_as(self, pending: Pending, session: Session) -> None:
        """Take note of what the answer will belong to, and by which connection it comes."""
        self._pending = pending
        self._session = session

    def done(self) -> bool:
        """Say whether it has ended: answered, failed or cancelled."""
        return self._future.done()

    def cancelled(self) -> bool:
        """Say whether it was cancelled."""
        return self._future.cancelled()

    def cancel(self) -> bool:
        """Stop waiting and tell the server so; say whether it was still under way."""
        was_open = self._future.cancel()
        if was_open:
            self._stop()
        return was_open

    def result(self) -> T:
        """Return what was answered.

        Raises:
            TrunklineError: the request failed; the kind says how.
            CancelledError: it was cancelled.
            InvalidStateError: it is still under way.
        """
        raw = self._future.result()
        if self._error is not None:
            raise self._error
        if self._value is NOTHING:
            try:
                self._value = self._read(raw)
            except TrunklineError as error:
                self._error = error
                raise
            except Exception as error:  # whoever listens is told, whatever was wrong with it
                self._error = RemoteProtocolError(
                    "mcp.type.json-type", expected=f"a result of {self.method} that can be read"
                )
                raise self._error from error
        return self._value  # type: ignore[no-any-return]  # what `_read` made

    def exception(self) -> TrunklineError | None:
        """Return what `result` would raise, or None where it would return."""
        try:
            self.result()
        except TrunklineError as error:
            return error
        return None

    def add_done_callback(self, fn: Callable[[PendingCall[T]], object]) -> None:
        """Have `fn` called with this call once it has ended; what it raises is logged."""

        def run(_: Future[Any]) -> None:
            try:
                fn(self)
            except Exception as error:  # noqa: BLE001  # somebody else's code
                report(error, f"a callback of {self.method}")

        self._future.add_done_callback(run)

    def __await__(self) -> Generator[Any, None, T]:
        yield from self._future.__await__()
        return self.result()

    def __repr__(self) -> str:
        if not self.done():
            state = "under way"
        elif self.cancelled():
            state = "cancelled"
        else:
            state = "failed" if self._future.exception() is not None else "answered"
        return f"<Call {show(self.method)}, {state}>"

    def _settle(self, future: Future[Any]) -> None:
        if future.cancelled():
            # By a task that awaited it and was cancelled.
            self._stop()
        else:
            # Looked at, so that nobody is told of an error that no one waited for.
            future.exception()

    def _stop(self) -> None:
        """Stop whatever is under way for it."""
        if self._pending is not None:
            self._session.abandon(self._pending)
        if self._task is not None:
            self._task.cancel()

    def _tell(
        self,
        on_success: Callable[[T], object] | None,
        on_error: Callable[[TrunklineError], object] | None,
    ) -> None:
        if self.cancelled():
            return
        error = self.exception()
        if error is None:
            if on_success is not None:
                on_success(self.result())
        elif on_error is not None:
            on_error(error)


class CompletingWaiter:
    """Takes an answer in the place of a call's future, and lets through what is complete.

    `go_on` begins to complete what is not; whoever gives it keeps the task alive.
    """

    __slots__ = ("_call", "_go_on")

    def __init__(self, call: PendingCall[Any], go_on: Callable[[Raw], Task[Raw]]) -> None:
        self._call = call
        self._go_on = go_on

    def done(self) -> bool:
        """Say whether the call has ended."""
        return self._call.done()

    def set_exception(self, error: BaseException) -> None:
        """End the call: it failed."""
        self._call._future.set_exception(error)

    def set_result(self, raw: Raw) -> None:
        """End the call, or go on where the result is not complete."""
        call = self._call
        try:
            call._value = call._read(raw)
        except NotComplete:
            call._task = task = self._go_on(raw)
            task.add_done_callback(self._completed)
            return
        except Exception:  # noqa: BLE001  # read again, and told, when the call is asked
            pass
        call._future.set_result(raw)

    def _completed(self, task: Task[Raw]) -> None:
        call = self._call
        error = None if task.cancelled() else task.exception()
        if call.done():
            return
        if task.cancelled():
            call._future.cancel()
        elif error is None:
            call._future.set_result(task.result())
        elif isinstance(error, TrunklineError):
            call._future.set_exception(error)
        else:
            report(error, f"what completes a result of {call.method}")
            call._future.set_exception(
                RequestAborted("its result could not be completed", method=call.method)
            )
