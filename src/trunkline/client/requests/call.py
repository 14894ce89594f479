"""Requests that are sent now and awaited later: `PendingCall`, and the methods that return one.

A `PendingCall` can be awaited, polled, given callbacks and cancelled, all on the event loop of
the client. An outcome that is neither awaited nor given a callback is dropped.

A call ends once, with a complete result. Where a server may return an incomplete one, a
`CompletingWaiter` takes the place of the call's future and completes the result in a task.
"""

from __future__ import annotations

from asyncio import Future, Task, get_running_loop
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from msgspec import UNSET, Raw, UnsetType

from ...errors import NOTHING, RemoteProtocolError, RequestAborted, TrunklineError
from ...mcp.shaping import narrow
from ...mcp.types import (
    CallToolRequestParams,
    CompleteRequestParams,
    CompleteRequestParamsArgument,
    CompleteRequestParamsContext,
    PromptReference,
    ResourceTemplateReference,
)
from ...redaction import show
from ..session.decode import NotComplete, read_own
from ..session.diagnostics import report
from ..session.method_checks import check_method
from ..session.request import OnProgress, OutgoingRequest
from .tool_result import ToolResult, tool_result

if TYPE_CHECKING:
    from ...jsonrpc.peer.outgoing import Pending
    from ..session.session import Session

__all__ = [
    "CompletingWaiter",
    "PendingCall",
    "SubmitMethods",
    "completion_request",
    "future_of",
    "sent_as",
    "tool_call",
]

T = TypeVar("T")


class PendingCall(Generic[T]):
    """A request that was sent: `await` it, or add a callback."""

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
        read: Callable[[Any], T],
        on_success: Callable[[T], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> None:
        self.method = method
        self._session = session
        self._future: Future[Any] = get_running_loop().create_future()
        self._read = read
        self._pending: Pending | None = None
        # Completes a result that was not complete.
        self._task: Task[Raw] | None = None
        self._value: Any = NOTHING
        self._error: TrunklineError | None = None
        self._future.add_done_callback(self._settle)
        if on_success is not None or on_error is not None:
            self.add_done_callback(lambda call: call._notify(on_success, on_error))

    def done(self) -> bool:
        """Return True once the call has a result, has failed or was cancelled."""
        return self._future.done()

    def cancelled(self) -> bool:
        """Return True if the call was cancelled."""
        return self._future.cancelled()

    def cancel(self) -> bool:
        """Cancel the request, and notify the server; return False if it had ended already."""
        was_open = self._future.cancel()
        if was_open:
            self._stop()
        return was_open

    def result(self) -> T:
        """Return the result.

        Raises:
            TrunklineError: the request failed; the class says how.
            CancelledError: it was cancelled.
            InvalidStateError: it has not ended yet.
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
            except Exception as error:  # whatever a decoder raises, callbacks get a TrunklineError
                self._error = RemoteProtocolError(
                    "mcp.type.json-type", expected=f"a result of {self.method} that can be read"
                )
                raise self._error from error
        return self._value  # type: ignore[no-any-return]  # what `_read` returned

    def exception(self) -> TrunklineError | None:
        """Return the error that `result` would raise, or None if it would return."""
        try:
            self.result()
        except TrunklineError as error:
            return error
        return None

    def add_done_callback(self, fn: Callable[[PendingCall[T]], object]) -> None:
        """Call `fn` with this call once it has ended; what `fn` raises is logged."""

        def run(_: Future[Any]) -> None:
            try:
                fn(self)
            except Exception as error:  # noqa: BLE001  # application code
                report(error, f"a callback of {self.method}")

        self._future.add_done_callback(run)

    def __await__(self) -> Generator[Any, None, T]:
        yield from self._future.__await__()
        return self.result()

    def __repr__(self) -> str:
        if not self.done():
            state = "pending"
        elif self.cancelled():
            state = "cancelled"
        else:
            state = "failed" if self._future.exception() is not None else "answered"
        return f"<PendingCall {show(self.method)}, {state}>"

    def _settle(self, future: Future[Any]) -> None:
        if future.cancelled():
            # By a task that awaited it and was cancelled.
            self._stop()
        else:
            # Retrieved, so that asyncio does not log an error that is never awaited.
            future.exception()

    def _stop(self) -> None:
        if self._pending is not None:
            self._session.abandon(self._pending)
        if self._task is not None:
            self._task.cancel()

    def _notify(
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


def sent_as(call: PendingCall[Any], pending: Pending, session: Session) -> None:
    """Say under which request, and on which session, a call was sent."""
    call._pending, call._session = pending, session


def future_of(call: PendingCall[Any]) -> Future[Any]:
    """Return the future of the undecoded result of a call."""
    return call._future


class CompletingWaiter:
    """Takes the reply in place of a call's future, and passes on only complete results.

    `complete` starts a task that completes any other; its caller holds a reference to the task.
    """

    __slots__ = ("_call", "_complete")

    def __init__(self, call: PendingCall[Any], complete: Callable[[Raw], Task[Raw]]) -> None:
        self._call = call
        self._complete = complete

    def done(self) -> bool:
        """Return True once the call has ended."""
        return self._call.done()

    def set_exception(self, error: BaseException) -> None:
        """End the call with an error."""
        self._call._future.set_exception(error)

    def set_result(self, raw: Raw) -> None:
        """End the call, or start to complete its result."""
        call = self._call
        try:
            call._value = call._read(raw)
        except NotComplete:
            self.wait_for(self._complete(raw))
            return
        except Exception:  # noqa: BLE001  # `PendingCall.result` decodes again and raises it
            pass
        call._future.set_result(raw)

    def wait_for(self, task: Task[Raw]) -> None:
        """End the call with the outcome of a task."""
        self._call._task = task
        task.add_done_callback(self._completed)

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
            report(error, f"completing a result of {call.method}")
            call._future.set_exception(
                RequestAborted("its result could not be completed", method=call.method)
            )


class SubmitMethods:
    """`submit` and `submit_tool`: a client sends at once, a batch when its block ends."""

    def submit(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[dict[str, Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> PendingCall[dict[str, Any]]:
        """Send any request; return a call to await, poll or cancel later."""
        revision = self._revision()
        check_method(method, revision, "request")
        return self._submit(
            OutgoingRequest(method, None, dict(params or {}), timeout, on_progress),
            lambda raw: read_own(raw, dict[str, Any], method, revision),
            on_success,
            on_error,
        )

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
    ) -> PendingCall[ToolResult[T]]: ...

    @overload
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
    ) -> PendingCall[ToolResult[Any]]: ...

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
    ) -> PendingCall[ToolResult[Any]]:
        """Call a tool; return a call to await, poll or cancel later."""
        revision = self._revision()
        given = UNSET if arguments is None else arguments
        return self._submit(
            tool_call(name, given, timeout, on_progress),
            lambda raw: tool_result(raw, result_type, revision),
            on_success,
            on_error,
        )

    def _revision(self) -> str:
        raise NotImplementedError

    def _submit(
        self,
        request: OutgoingRequest,
        reader: Callable[[Any], T],
        on_success: Callable[[T], object] | None,
        on_error: Callable[[TrunklineError], object] | None,
    ) -> PendingCall[T]:
        raise NotImplementedError


def completion_request(
    argument: str,
    value: str,
    prompt: str | None,
    resource: str,
    context: dict[str, str] | None,
    timeout: float | None,
    revision: str,
) -> OutgoingRequest:
    """Return the request of a completion for a prompt, or else for a resource template."""
    params: Any = narrow(
        CompleteRequestParams(
            CompleteRequestParamsArgument(argument, value),
            ResourceTemplateReference(resource) if prompt is None else PromptReference(prompt),
            context=UNSET if context is None else CompleteRequestParamsContext(context),
        ),
        revision,
    )
    fields = {"argument": params.argument, "ref": params.ref, "context": params.context}
    return OutgoingRequest("completion/complete", CompleteRequestParams, fields, timeout)


def tool_call(
    name: str,
    arguments: dict[str, Any] | UnsetType,
    timeout: float | None = None,
    on_progress: OnProgress | None = None,
    meta: Mapping[str, Any] | None = None,
) -> OutgoingRequest:
    """Return the request of a tool call."""
    fields = {"name": name, "arguments": arguments}
    return OutgoingRequest("tools/call", CallToolRequestParams, fields, timeout, on_progress, meta)
