"""Polls one task until it ends, and returns its result.

In 2025-11-25 tasks are part of the core: a request of its own, `tasks/result`, waits for the
result, and input is requested by requests of the server. Since 2026-07-28 tasks are an extension:
`tasks/get` returns the result and the input requests.

The rules that live here, and only here:

* A task is polled at the server's poll interval, within bounds, with jitter.
                                          [MCP 2025-11-25, basic/utilities/tasks; SEP-2663]
* A new task is polled sooner at first, then less and less often: a call that is done at once must
  not take a whole poll interval.
* A poll that failed is repeated: it says nothing about the task.
* A task that was cancelled has no result, whatever else the server sends.
* Status notifications are optional in 2025-11-25, so they only wake the poller. A server that
  acknowledged a subscription to the task is polled rarely. All readers of a task share one
  subscription.
* A task whose caller waits for the result, and has no handle of it, is cancelled when the client
  closes its session.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType

from ...concurrency.backoff import backoff, jittered
from ...errors import (
    Cancelled,
    ConnectionLost,
    PeerError,
    RemoteProtocolError,
    RequestTimeout,
    TrunklineError,
)
from ...jsonrpc.messages import ErrorObject, Reply, Shown
from ...mcp.types import (
    CancelTaskRequestParams,
    CancelTaskResult,
    GetTaskPayloadRequestParams,
    GetTaskRequestParams,
    TaskStatus,
)
from ...redaction import show
from ..requests.tool_result import ErrorFlag
from ..server_requests.input_required import InputRequest
from ..session.decode import read
from ..session.diagnostics import log
from ..session.request import OutgoingRequest
from ..session.session import NOT_SENT, Session, error_from
from ..subscriptions.dispatch import (
    LISTEN,
    ListenStream,
    ServerChange,
    SubscriptionRouter,
    SubscriptionTopics,
)
from .cleanup import send_unawaited
from .input_requests import TaskInputRequests
from .retry import RetryPolicy

if TYPE_CHECKING:
    from ..requests.sender import RequestSender
    from .wait_timeout import TaskWaitTimeout

__all__ = ["CORE_RESULT", "ENDED", "TaskPoller", "TaskState", "created"]

# A method of the tasks in the core protocol; the extension does not have it.
CORE_RESULT: Final = "tasks/result"

ENDED: Final = frozenset(("completed", "failed", "cancelled"))

# Bounds of the server's poll interval: not so short that polling loads the server, and not so long
# that a lost task goes unnoticed.
MIN_POLL_INTERVAL_S: Final = 0.1
MAX_POLL_INTERVAL_S: Final = 60.0
# Without one: often at first, since most tasks are short, then less so.
FIRST_POLL_INTERVAL_S: Final = 0.25
USUAL_POLL_INTERVAL_S: Final = 5.0
_INTERVAL_FACTOR: Final = 1.5
# The factors between which an interval is spread.
_JITTER: Final = (1.0, 1.1)

# A new task is polled after this long, and each wait is this many times the one before, up to the
# poll interval: with an interval of 1 s that makes three polls in the first second.
FIRST_POLL_DELAY_S: Final = 0.05
_FIRST_POLLS_FACTOR: Final = 4

# How many status changes are buffered for a reader; the newest are kept.
_MAX_UNREAD_STATUSES: Final = 1000


class TaskState(Struct, frozen=True, rename="camel"):
    """The state of a task, as a server of any revision sends it."""

    task_id: str
    status: TaskStatus
    # Some servers write null for an absent member.
    status_message: str | None = None
    poll_interval: int | float | None = None  # in 2025-11-25
    poll_interval_ms: int | float | None = None  # since 2026-07-28
    result: Raw | UnsetType = UNSET
    error: ErrorObject | None = None
    input_requests: dict[str, InputRequest] | None = None

    def __repr__(self) -> str:
        # Task ids are bearer capabilities, and the result is the caller's: neither is shown.
        return f"<TaskState, {self.status}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]  # the Struct's own would show every member


class _CreatedTask(Shown, Struct, frozen=True):
    task: TaskState | UnsetType | None = UNSET


def created(raw: Raw, session: Session) -> TaskState | None:
    """Return the task that a call became, or None if the result is that of the tool.

    Raises:
        RemoteProtocolError: it is neither.
    """
    if CORE_RESULT not in session.methods:
        return read(raw, TaskState, "tools/call", session.revision)  # type: ignore[no-any-return]  # decoded as this type
    found: _CreatedTask = read(raw, _CreatedTask, "tools/call", session.revision)
    return found.task or None


class TaskPoller:
    """One task, and its last known state."""

    def __init__(
        self,
        sender: RequestSender,
        id: str,
        state: TaskState | None = None,
        timeout: float | None = None,
        on_end: Callable[[], None] | None = None,
        on_state: Callable[[TaskState], None] | None = None,
    ) -> None:
        self.id = id
        self.state = state
        # Called with each state.
        self._on_state = on_state
        # Called once the task has ended, or the caller has left.
        self._on_end = on_end
        self._sender = sender
        # The timeout of each request.
        self._timeout = timeout
        # Whether `state` is a result of `tasks/get`, and not of a notification.
        self._is_full = False
        # Exact: `_next_interval` has the jitter.
        self._intervals = backoff(
            FIRST_POLL_INTERVAL_S, USUAL_POLL_INTERVAL_S, factor=_INTERVAL_FACTOR, least=1.0
        )
        # The longest wait before the next poll of a new task; a task of an earlier call has none.
        self._first_delay = inf if state is None else FIRST_POLL_DELAY_S
        self._retry = RetryPolicy()
        # The delay before the next poll after an error.
        self._retry_delay = 0.0
        # Set while a caller without a handle waits: its timeout, and the session that cancels the
        # task when it is closed.
        self._wait_timeout: TaskWaitTimeout | None = None
        self._guard_session: Session | None = None
        self._wakers: set[asyncio.Future[None]] = set()
        self._readers: list[deque[TaskStatus]] = []
        # The subscription to the task, and its router.
        self._stream: ListenStream | None = None
        self._router: SubscriptionRouter | None = None
        # One reader opens the subscription at a time; `_refused` is a session that refused it.
        self._opening = asyncio.Lock()
        self._refused: Session | None = None
        self._inputs = TaskInputRequests(sender, id, timeout, self._wake, self._pause)
        if on_state is not None and state is not None:
            on_state(state)

    @property
    def has_ended(self) -> bool:
        """Whether the task has ended, as of its last known state."""
        return self.state is not None and self.state.status in ENDED

    # -- polling -----------------------------------------------------------------------------

    async def refresh(self) -> TaskState:
        """Poll the task; start to answer its input requests.

        Raises:
            PeerError: there is no such task, or it is not accessible.
            RequestAborted: the request timed out, or the connection is lost.
            RemoteProtocolError: the reply is not the state of a task.
        """
        raw, session = await self._ask("tasks/get", GetTaskRequestParams)
        state: TaskState = read(raw, TaskState, "tasks/get", session.revision)
        self._update(state, is_full=True)
        if not self.has_ended and state.input_requests:
            self._inputs.take(state.input_requests, session)
        return self.state or state

    async def cancel(self) -> None:
        """Cancel the task; one that has ended stays as it is.

        Raises:
            PeerError: the server rejected it.
            RequestAborted: the request timed out, or the connection is lost.
        """
        try:
            raw, session = await self._ask("tasks/cancel", CancelTaskRequestParams)
        except PeerError:
            # In 2025-11-25 it is an error to cancel a task that has ended.
            if (await self.refresh()).status not in ENDED:
                raise
            return
        result: CancelTaskResult = read(raw, CancelTaskResult, "tasks/cancel", session.revision)
        if result.status is not None:
            self._update(TaskState(self.id, result.status, result.status_message))

    async def _ask(self, method: str, params: type[Struct]) -> tuple[Raw, Session]:
        request = OutgoingRequest(method, params, {"task_id": self.id}, self._timeout)
        return await self._sender.ask(request)

    async def _poll(self) -> None:
        """Poll the task; after a transient error set the delay of the next poll."""
        self._retry_delay = 0.0
        try:
            await self.refresh()
        except (PeerError, RequestTimeout) as error:
            delay = self._retry.next_delay(error)
            if delay is None:
                raise
            log.debug("polling a task failed, next poll in %.2g s: %s", delay, show(str(error)))
            self._retry_delay = delay
        else:
            self._retry.reset()

    def _update(self, state: TaskState, *, is_full: bool = False) -> None:
        before = self.state
        if self.has_ended and not (is_full and state.status in ENDED):
            # An ended task stays so; this is from before its end.
            return
        self.state, self._is_full = state, is_full
        shown = state.status, state.status_message
        if before is None or (before.status, before.status_message) != shown:
            for reader in self._readers:
                reader.append(state.status)
            if before is not None:
                self.renew()
            if self._on_state is not None:
                self._on_state(state)
        if self.has_ended:
            self._stop()
        self._wake()

    # -- the result --------------------------------------------------------------------------

    async def outcome(self, session: Session) -> Raw:
        """Return the result that the original call would have returned, once the task has ended.

        Raises:
            PeerError: the task failed, or is unknown.
            Cancelled: it was cancelled.
            InputRequestFailed: an input request could not be answered; the task may still wait.
            RequestAborted, RemoteProtocolError: as `refresh`.
        """
        if CORE_RESULT in session.methods:
            return await self._core_result(session)
        is_polled = self.state is not None and not self.has_ended
        while self.state is None or not (self.has_ended and self._is_full):
            if is_polled or self._retry_delay:
                session, _ = await self._rest(session, self._next_poll())
            await self._poll()
            is_polled = True
            self._raise_input_error()
        return self._result_of(self.state, session)

    def _raise_input_error(self) -> None:
        error = self._inputs.take_error()
        if error is not None and not self.has_ended:
            raise error

    def _result_of(self, state: TaskState, session: Session) -> Raw:
        if state.status == "cancelled":
            raise self._cancelled(state)
        if state.result is not UNSET and bytes(state.result) != b"null":
            return state.result
        if state.error is not None:
            reply = Reply(id=None, error=state.error)
            raise error_from(reply, "tools/call", session.policy)
        what = "result" if state.status == "completed" else "error"
        raise RemoteProtocolError(
            "mcp.tasks.failed-has-error" if what == "error" else "mcp.type.required",
            where=f"/{what}",
            expected=f"the {what} of a task that is {state.status}",
        )

    def _cancelled(self, state: TaskState) -> Cancelled:
        message = f": {show(state.status_message)}" if state.status_message else ""
        return Cancelled(f"the task was cancelled{message}", method="tools/call")

    async def _core_result(self, session: Session) -> Raw:
        """Return the result of a core task, by `tasks/result`."""
        while True:
            try:
                raw = await self._core_result_once(session)
                break
            except PeerError as error:
                await self._raise_if_cancelled(error)
                # The error of a failed task may have any code, and is not retried.
                has_failed = self.state is not None and self.state.status == "failed"
                delay = None if has_failed else self._retry.next_delay(error, needs_hint=True)
                if delay is None:
                    raise
                session, _ = await self._rest(session, delay)
        if not self.has_ended:
            flag: ErrorFlag = read(raw, ErrorFlag, CORE_RESULT, session.revision)
            self._update(TaskState(self.id, "failed" if flag.is_error else "completed"))
        return raw

    async def _core_result_once(self, session: Session) -> Raw:
        pending, session = await self._send_result_request(session)
        waiter: asyncio.Future[Raw] = pending.waiter
        try:
            while not waiter.done():
                interval = max(self._next_interval(), self._retry_delay)
                await asyncio.wait({waiter}, timeout=interval)
                if not waiter.done():
                    await self._check_alive(waiter)
            return waiter.result()
        finally:
            if not waiter.done():
                session.abandon(pending)

    async def _send_result_request(self, session: Session) -> tuple[Any, Session]:
        """Send `tasks/result`, without a timeout."""
        for _ in range(2):
            params = GetTaskPayloadRequestParams(self.id, session.meta)
            try:
                pending = session.send(CORE_RESULT, params, inf)
            except NOT_SENT:
                session = await self._sender.connection.renew(session)
            else:
                self._guard(session)
                return pending, session
        raise ConnectionLost("no connection has request ids left", method=CORE_RESULT)

    async def _check_alive(self, waiter: asyncio.Future[Raw]) -> None:
        """Poll the task while `tasks/result` is pending."""
        try:
            await self._poll()
        except (PeerError, RequestTimeout):
            if not waiter.done():
                raise
        if self.has_ended and not waiter.done():
            # The result exists, so it arrives within the timeout of any request.
            seconds = self._sender.seconds(self._timeout)
            await asyncio.wait({waiter}, timeout=seconds)
            if not waiter.done():
                raise RequestTimeout(f"no answer within {seconds:g} s", method=CORE_RESULT)

    async def _raise_if_cancelled(self, error: PeerError) -> None:
        try:
            state = self.state if self.has_ended else await self.refresh()
        except TrunklineError:
            return
        if state is not None and state.status == "cancelled":
            raise self._cancelled(state) from error

    # -- status changes ----------------------------------------------------------------------

    async def statuses(self, session: Session) -> AsyncIterator[TaskStatus]:
        """Yield the status, then each change of it or of its message, until the task ends.

        Raises:
            PeerError, RequestAborted, RemoteProtocolError: as `refresh`.
        """
        while self.state is None:
            if self._retry_delay:
                session, _ = await self._rest(session, self._next_poll())
            await self._poll()
        changes: deque[TaskStatus] = deque(maxlen=_MAX_UNREAD_STATUSES)
        if self.state is not None:
            changes.append(self.state.status)
        self._readers.append(changes)
        try:
            await self._listen(session)
            while True:
                while changes:
                    yield changes.popleft()
                if self.has_ended:
                    return
                self._raise_input_error()
                # With a subscription the task is still polled, at the longest interval.
                is_subscribed = self._stream is not None
                is_quiet = is_subscribed and not self._retry_delay
                seconds = MAX_POLL_INTERVAL_S if is_quiet else self._next_poll()
                session, is_woken = await self._rest(session, seconds)
                if not (is_subscribed and is_woken) or self._lacks_input_requests():
                    await self._poll()
        finally:
            self._readers.remove(changes)
            if not self._readers:
                self._leave(session)

    def _lacks_input_requests(self) -> bool:
        """Whether a notification said that input is required; only a poll says which."""
        state = self.state
        return state is not None and state.status == "input_required" and not self._is_full

    async def _listen(self, session: Session) -> None:
        """Subscribe to the task, where the server supports it."""
        wanted = SubscriptionTopics(task_ids=(self.id,))
        if LISTEN not in session.methods:
            session.streams.join(self, wanted)
            return
        async with self._opening:
            if self._stream is None and self._refused is not session and not self.has_ended:
                await self._open_stream(session, wanted)

    async def _open_stream(self, session: Session, wanted: SubscriptionTopics) -> None:
        seconds = self._sender.seconds(self._timeout)
        try:
            stream = await session.streams.open(wanted, seconds, self)
        except (PeerError, RequestTimeout, *NOT_SENT, RemoteProtocolError) as error:
            log.debug("no subscription to a task, polling it: %s", show(str(error)))
            self._refused = session
            return
        if self.id not in stream.honoured.task_ids or stream.has_ended:
            session.streams.close(stream)
            self._refused = session
            return
        self._stream, self._router = stream, session.streams
        await self._poll()  # for a change before the subscription

    def _leave(self, session: Session) -> None:
        # The session may have been renewed in the meantime.
        for each in {session, self._sender.connection.session or session}:
            each.streams.leave(self)
        stream, self._stream = self._stream, None
        if stream is not None and self._router is not None:
            self._router.close(stream)

    def on_change(self, change: ServerChange, weight: int) -> None:
        """Take the state of the task from a notification; none is queued, so none is dropped."""
        del weight
        task = change.task
        if task is not None:
            message, interval = task.status_message, task.poll_interval_ms or task.poll_interval
            self._update(TaskState(self.id, task.status, message, poll_interval_ms=interval))

    def on_end(self, error: TrunklineError | None, reason: str | None) -> None:
        """Go back to polling: the subscription has ended."""
        del error, reason
        self._stream = None
        self._wake()

    # -- time --------------------------------------------------------------------------------

    def _next_interval(self) -> float:
        """Return the seconds until the next poll, with jitter."""
        state = self.state
        wanted = None if state is None else state.poll_interval_ms or state.poll_interval
        if wanted is None or wanted <= 0:
            seconds = next(self._intervals)
        else:
            # Compared before it is divided: a JSON integer may be too large for a float.
            seconds = max(min(wanted, MAX_POLL_INTERVAL_S * 1000) / 1000, MIN_POLL_INTERVAL_S)
        # Longer, not shorter: the server chose the shortest.
        return jittered(seconds, *_JITTER)

    def _next_poll(self) -> float:
        """Return the seconds until the next poll, which is sooner for a new task."""
        seconds = min(self._next_interval(), jittered(self._first_delay, *_JITTER))
        self._first_delay *= _FIRST_POLLS_FACTOR
        return max(seconds, self._retry_delay)

    async def _rest(self, session: Session, seconds: float) -> tuple[Session, bool]:
        """Wait, or until `_wake`; return the current session, and whether it was woken."""
        waker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wakers.add(waker)
        try:
            await asyncio.wait(
                {waker, session.over}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            self._wakers.discard(waker)
        current = self._sender.connection.session
        if current is None or current is session:
            session.check_open("tools/call")
            return session, waker.done()
        self._guard(current)
        return current, waker.done()

    def _wake(self) -> None:
        for each in self._wakers:
            if not each.done():
                each.set_result(None)

    # -- for a caller without a handle -------------------------------------------------------

    async def awaited(self, session: Session, wait_timeout: TaskWaitTimeout, timeout: float) -> Raw:
        """Return the result that the call would have returned; otherwise cancel the task.

        `timeout` is that of each request.

        Raises:
            RequestTimeout: `wait_timeout` expired.
            TrunklineError: as `outcome`.
        """
        self._wait_timeout = wait_timeout
        self._timeout = self._inputs.timeout = timeout
        self._guard(session)
        try:
            async with wait_timeout:
                return await self.outcome(session)
        except BaseException:  # cancellation too: no other caller knows the task
            self._cancel_unawaited()
            raise
        finally:
            self._wait_timeout = None
            if self._guard_session is not None:
                self._guard_session.closing_requests.pop(self, None)

    def renew(self) -> None:
        """Restart the timeout of the waiting caller."""
        if self._wait_timeout is not None:
            self._wait_timeout.renew()

    def _pause(self, is_paused: bool) -> None:
        if self._wait_timeout is None:
            return
        if is_paused:
            self._wait_timeout.pause()
        else:
            self._wait_timeout.resume()

    def _guard(self, session: Session) -> None:
        """Cancel the task when `session` is closed, and no longer with an earlier one."""
        if self._wait_timeout is None or self._guard_session is session:
            return
        if self._guard_session is not None:
            self._guard_session.closing_requests.pop(self, None)
        self._guard_session = session
        params = CancelTaskRequestParams(self.id, session.meta)
        session.closing_requests[self] = "tasks/cancel", params

    def _cancel_unawaited(self) -> None:
        self._stop()
        session = self._sender.connection.session
        if session is not None and not self.has_ended:
            send_unawaited(session, "tasks/cancel", CancelTaskRequestParams, task_id=self.id)

    def _stop(self) -> None:
        self._inputs.stop()
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()
