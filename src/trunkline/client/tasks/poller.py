"""One task of a server, followed to its end.

A task is asked for by its id, time and again. 2025-11-25 has it in the core: its result is
waited for with a request of its own, and its questions come as requests. Since 2026-07-28 it is
an extension: all that it brings or needs is told when it is asked how it stands.

The rules that live here, and only here:

* A task is asked about as often as the server says, within reason, and never in step with
  others.                                 [MCP 2025-11-25, basic/utilities/tasks; SEP-2663]
* One that has just begun is looked at sooner, a few times and less and less often: a call that
  is done at once shall not take as long as the server wishes to be left alone.
* That it could not be asked about says nothing of the task: it is asked about again.
* A task that was cancelled has no result, whatever else the server says of it.
* Word that a task has changed may never come in 2025-11-25, so it only saves time there. Where
  a server has agreed to tell, it is hardly asked meanwhile. However many read the changes of a
  task, there is one stream of them.
* The task of a caller who waits for its result, and cannot know of it, ends with his connection.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType

from ...errors import (
    Cancelled,
    ConnectionLost,
    PeerError,
    RemoteProtocolError,
    RequestTimeout,
    TrunklineError,
)
from ...jsonrpc.messages import ErrorObject, Reply
from ...mcp.types import (
    CancelTaskRequestParams,
    CancelTaskResult,
    GetTaskPayloadRequestParams,
    GetTaskRequestParams,
    TaskStatus,
)
from ...redaction import show
from ..diagnostics import log
from ..requests.decode import read
from ..requests.request import OutgoingRequest
from ..server_requests.input_required import InputRequest
from ..session import NOT_SENT, Session, error_from
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
    from ..subscriptions.stream import ChangeVerbs
    from .wait_timeout import TaskWaitTimeout

__all__ = ["CORE_RESULT", "ENDED", "TaskPoller", "TaskState", "created"]

# What only the core's form of tasks has, and only the extension's.
CORE_RESULT: Final = "tasks/result"

ENDED: Final = frozenset(("completed", "failed", "cancelled"))

# How often a task is asked about, in seconds: what a server wishes, but not so often that it is
# busy with that, and not so seldom that nobody knows whether it is there.
SHORTEST_WAIT: Final = 0.1
LONGEST_WAIT: Final = 60.0
# Where it has no wish: at first often, for most tasks are short, then less so.
FIRST_WAIT: Final = 0.25
USUAL_WAIT: Final = 5.0
_GROWTH: Final = 1.5

# After how many seconds a task that has just begun is first looked at, and how many times longer
# each wait is than the one before, until it is as long as the server wishes: of a server that
# wishes for a second that makes three looks in the first one.
FIRST_LOOK: Final = 0.05
_LOOKS_GROW: Final = 4

# How many changes of its status wait for who reads them; of a server that changes it faster
# than that the newest count.
_UNREAD_KEPT: Final = 1000


class TaskState(Struct, frozen=True, rename="camel"):
    """How a task stands, as a server of any revision tells it."""

    task_id: str
    status: TaskStatus
    # Some servers write null for what is absent.
    status_message: str | None = None
    poll_interval: int | float | None = None  # in 2025-11-25
    poll_interval_ms: int | float | None = None  # since 2026-07-28
    result: Raw | UnsetType = UNSET
    error: ErrorObject | None = None
    input_requests: dict[str, InputRequest] | None = None

    def __repr__(self) -> str:
        # Without the id, which is a right, and what is the caller's.
        return f"<TaskState, {self.status}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]  # a Struct's own would show all of it


class _Created(Struct, frozen=True):
    """What a call is answered that became a task of the core."""

    task: TaskState | UnsetType | None = UNSET


class _ErrorFlag(Struct, frozen=True, rename="camel"):
    """Of a result, whether the tool has failed: so has its task, in the core's form."""

    is_error: bool | None = None


def created(raw: Raw, session: Session) -> TaskState | None:
    """Return the task that a call became, or None where the result is one of the tool.

    Raises:
        RemoteProtocolError: it is neither.
    """
    if CORE_RESULT not in session.methods:
        return read(raw, TaskState, "tools/call", session.revision)  # type: ignore[no-any-return]  # read as this type
    found: _Created = read(raw, _Created, "tools/call", session.revision)
    return found.task or None


class TaskPoller:
    """One task, and what is known of it."""

    def __init__(
        self,
        verbs: ChangeVerbs,
        id: str,
        state: TaskState | None = None,
        timeout: float | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        self.id = id
        self.state = state
        # Called once the task has ended, or nobody follows it any more.
        self._on_end = on_end
        self._verbs = verbs
        # How long each request about it may take.
        self._timeout = timeout
        # Whether the state has all that the server tells when asked.
        self._is_full = False
        self._wait = FIRST_WAIT
        # How long to wait at most before the next look at a task that has just begun. One that
        # is come back to has had its time.
        self._soon = inf if state is None else FIRST_LOOK
        self._retry = RetryPolicy()
        # For how long the server does not want to be asked, after one of those.
        self._respite = 0.0
        # How long a caller waits for it who does not know of it, and on which connection.
        self._wait_timeout: TaskWaitTimeout | None = None
        self._guarded: Session | None = None
        # Who waits for anything to happen.
        self._resting: set[asyncio.Future[None]] = set()
        self._readers: list[deque[TaskStatus]] = []
        # The stream by which the server tells of changes, and whose it is.
        self._stream: ListenStream | None = None
        self._streams: SubscriptionRouter | None = None
        # One who opens it at a time, and which connection does not tell.
        self._opening = asyncio.Lock()
        self._untold: Session | None = None
        self._questions = TaskInputRequests(verbs, id, timeout, self._wake, self._think)

    @property
    def has_ended(self) -> bool:
        """Whether the task has ended, as far as is known."""
        return self.state is not None and self.state.status in ENDED

    # -- asking how it stands ----------------------------------------------------------------

    async def refresh(self) -> TaskState:
        """Ask how the task stands; begin to answer what it asks.

        Raises:
            PeerError: there is no such task, or none for us.
            RequestAborted: no answer came.
            RemoteProtocolError: what came is not how a task stands.
        """
        request = OutgoingRequest(
            "tasks/get", GetTaskRequestParams, {"task_id": self.id}, self._timeout
        )
        raw, session = await self._verbs._ask(request)
        state: TaskState = read(raw, TaskState, "tasks/get", session.revision)
        self._learn(state, is_full=True)
        if not self.has_ended and state.input_requests:
            self._questions.take(state.input_requests, session)
        return self.state or state

    async def cancel(self) -> None:
        """Ask the server to end the task; one that has ended stays as it is.

        Raises:
            PeerError: the server does not.
            RequestAborted: no answer came.
        """
        fields = {"task_id": self.id}
        request = OutgoingRequest("tasks/cancel", CancelTaskRequestParams, fields, self._timeout)
        try:
            raw, session = await self._verbs._ask(request)
        except PeerError:
            # In 2025-11-25 it is an error to cancel what has ended.
            if (await self.refresh()).status not in ENDED:
                raise
            return
        said: CancelTaskResult = read(raw, CancelTaskResult, "tasks/cancel", session.revision)
        if said.status is not UNSET:
            message = None if said.status_message is UNSET else said.status_message
            self._learn(TaskState(self.id, said.status, message))

    def cancel_aside(self) -> None:
        """Ask the server to end the task, without waiting: the caller has gone."""
        self._stop()
        session = self._verbs._session
        if session is not None and not self.has_ended:
            send_unawaited(session, "tasks/cancel", CancelTaskRequestParams, task_id=self.id)

    async def _look(self) -> None:
        """Ask how the task stands; where that cannot be told just now, wait longer for the next."""
        self._respite = 0.0
        try:
            await self.refresh()
        except (PeerError, RequestTimeout) as error:
            respite = self._retry.next_delay(error)
            if respite is None:
                raise
            log.debug("a task is asked about again: %s", show(str(error)))
            self._respite = respite
        else:
            self._retry.over()

    def _learn(self, state: TaskState, *, is_full: bool = False) -> None:
        before = self.state
        if self.has_ended and not (is_full and state.status in ENDED):
            # What has ended stays so; only its result may still be asked for. A look that was on
            # its way meanwhile saw what was before.
            return
        self.state, self._is_full = state, is_full
        if before is None or _shown(before) != _shown(state):
            for reader in self._readers:
                reader.append(state.status)
            if before is not None:
                self.renew()
        if self.has_ended:
            self._stop()
        self._wake()

    # -- the end -----------------------------------------------------------------------------

    async def outcome(self, session: Session) -> Raw:
        """Return what the call would have been answered, once the task has ended.

        Raises:
            PeerError: the task has failed, or is not known any more.
            Cancelled: it was cancelled.
            InputRequestFailed: what it asked for could not be given; it may go on waiting for it.
            RequestAborted, RemoteProtocolError: as `refresh`.
        """
        if CORE_RESULT in session.methods:
            return await self._payload(session)
        is_seen = self.state is not None and not self.has_ended
        while self.state is None or not (self.has_ended and self._is_full):
            if is_seen or self._respite:
                session, _ = await self._rest(session, self._next_look())
            await self._look()
            is_seen = True
            self._raise_fault()
        return self._told(self.state, session)

    def _raise_fault(self) -> None:
        """Raise what kept a question from being answered, once, where the task still asks."""
        fault = self._questions.take_fault()
        if fault is not None and not self.has_ended:
            raise fault

    def _told(self, state: TaskState, session: Session) -> Raw:
        """Return the result that a task has brought along."""
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
        said = f": {show(state.status_message)}" if state.status_message else ""
        return Cancelled(f"the task was cancelled{said}", method="tools/call")

    async def _payload(self, session: Session) -> Raw:
        """Return the result of a task of the core, which a request of its own waits for."""
        while True:
            try:
                raw = await self._payload_once(session)
                break
            except PeerError as error:
                await self._explain(error)
                # What a task has failed with may look like anything.
                has_failed = self.state is not None and self.state.status == "failed"
                respite = None if has_failed else self._retry.next_delay(error, unsaid=False)
                if respite is None:
                    raise
                session, _ = await self._rest(session, respite)
        if not self.has_ended:
            failed: _ErrorFlag = read(raw, _ErrorFlag, CORE_RESULT, session.revision)
            self._learn(TaskState(self.id, "failed" if failed.is_error else "completed"))
        return raw

    async def _payload_once(self, session: Session) -> Raw:
        pending, session = await self._send_lasting(session)
        waiter: asyncio.Future[Raw] = pending.waiter
        try:
            while not waiter.done():
                await asyncio.wait({waiter}, timeout=max(self._next_wait(), self._respite))
                if not waiter.done():
                    await self._check(waiter)
            return waiter.result()
        finally:
            if not waiter.done():
                session.abandon(pending)

    async def _send_lasting(self, session: Session) -> tuple[Any, Session]:
        """Send what waits for the result: it may take as long as it likes."""
        for _ in range(2):
            params = GetTaskPayloadRequestParams(self.id, session.meta)
            try:
                pending = session.send(CORE_RESULT, params, inf)
            except NOT_SENT:
                session = await self._verbs._renew(session)
            else:
                self._guard(session)
                return pending, session
        raise ConnectionLost("there is no connection that has ids left", method=CORE_RESULT)

    async def _check(self, waiter: asyncio.Future[Raw]) -> None:
        """See that the task is still there while its result is waited for."""
        try:
            await self._look()
        except (PeerError, RequestTimeout):
            if not waiter.done():
                raise
        if self.has_ended and not waiter.done():
            # Its result is there, so it comes in the time of any answer.
            seconds = self._verbs._seconds(self._timeout)
            await asyncio.wait({waiter}, timeout=seconds)
            if not waiter.done():
                raise RequestTimeout(f"no answer within {seconds:g} s", method=CORE_RESULT)

    async def _explain(self, error: PeerError) -> None:
        """Raise that a task was cancelled, where that is why it has no result."""
        try:
            state = self.state if self.has_ended else await self.refresh()
        except TrunklineError:
            return
        if state is not None and state.status == "cancelled":
            raise self._cancelled(state) from error

    # -- each change -------------------------------------------------------------------------

    async def statuses(self, session: Session) -> AsyncIterator[TaskStatus]:
        """Give the status as it is, then each change of it or of its message, to the end.

        Raises:
            PeerError, RequestAborted, RemoteProtocolError: as `refresh`.
        """
        while self.state is None:
            if self._respite:
                session, _ = await self._rest(session, self._next_look())
            await self._look()
        changes: deque[TaskStatus] = deque(maxlen=_UNREAD_KEPT)
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
                self._raise_fault()
                # Who has agreed to tell is asked all the same, once in a while.
                is_told = self._stream is not None
                seconds = LONGEST_WAIT if is_told and not self._respite else self._next_look()
                session, has_news = await self._rest(session, seconds)
                if not (is_told and has_news) or self._wants_answers():
                    await self._look()
        finally:
            self._readers.remove(changes)
            if not self._readers:
                self._leave(session)

    def _wants_answers(self) -> bool:
        """Whether the task asks, and we were only told so."""
        state = self.state
        return state is not None and state.status == "input_required" and not self._is_full

    async def _listen(self, session: Session) -> None:
        """Have the server tell of changes, where it does."""
        wanted = SubscriptionTopics(task_ids=(self.id,))
        if LISTEN not in session.methods:
            session.streams.join(self, wanted)
            return
        async with self._opening:
            if self._stream is None and self._untold is not session and not self.has_ended:
                await self._open_stream(session, wanted)

    async def _open_stream(self, session: Session, wanted: SubscriptionTopics) -> None:
        seconds = self._verbs._seconds(self._timeout)
        try:
            stream = await session.streams.open(wanted, seconds, self)
        except (PeerError, RequestTimeout, *NOT_SENT, RemoteProtocolError) as error:
            log.debug("a task is asked about, not listened to: %s", show(str(error)))
            self._untold = session
            return
        if self.id not in stream.honoured.task_ids or stream.has_ended:
            session.streams.close(stream)
            self._untold = session
            return
        self._stream, self._streams = stream, session.streams
        await self._look()  # for what changed before it could be told

    def _leave(self, session: Session) -> None:
        # By now another connection may have taken over.
        for each in {session, self._verbs._session or session}:
            each.streams.leave(self)
        stream, self._stream = self._stream, None
        if stream is not None and self._streams is not None:
            self._streams.close(stream)

    def told(self, change: ServerChange, size: int) -> None:
        """Learn how the task stands."""
        del size
        told = change.task
        if told is not None:
            message = None if told.status_message is UNSET else told.status_message
            wish = told.poll_interval_ms or told.poll_interval or None
            self._learn(TaskState(self.id, told.status, message, poll_interval_ms=wish))

    def ended(self, error: TrunklineError | None, reason: str | None) -> None:
        """Learn that nobody tells any more: from now on the server is asked."""
        del error, reason
        self._stream = None
        self._wake()

    # -- time --------------------------------------------------------------------------------

    def _next_wait(self) -> float:
        """Return how many seconds to wait before the server is asked again."""
        state = self.state
        wish = None if state is None else state.poll_interval_ms or state.poll_interval
        if wish is None or wish <= 0:
            seconds = self._wait
            self._wait = min(_GROWTH * seconds, USUAL_WAIT)
        else:
            # Compared before it is divided: an integer of JSON may be too large for a float.
            seconds = max(min(wish, LONGEST_WAIT * 1000) / 1000, SHORTEST_WAIT)
        return seconds * random.uniform(1.0, 1.1)

    def _next_look(self) -> float:
        """Return how many seconds to wait before the next look at a task that may be short."""
        seconds = min(self._next_wait(), self._soon * random.uniform(1.0, 1.1))
        self._soon *= _LOOKS_GROW
        return max(seconds, self._respite)

    async def _rest(self, session: Session, seconds: float) -> tuple[Session, bool]:
        """Wait so long, or until something happens; return whom to ask, and whether it has."""
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._resting.add(news)
        try:
            await asyncio.wait(
                {news, session.over}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            self._resting.discard(news)
        current = self._verbs._session
        if current is None or current is session:
            session.check_open("tools/call")
            return session, news.done()
        self._guard(current)
        return current, news.done()  # another connection has taken over

    def _wake(self) -> None:
        for each in self._resting:
            if not each.done():
                each.set_result(None)

    # -- for a caller who does not know of it ------------------------------------------------

    async def awaited(self, session: Session, wait_timeout: TaskWaitTimeout, timeout: float) -> Raw:
        """Return what the call would have been answered; without a result the task is ended.

        `timeout` is how long each request about it may take.

        Raises:
            RequestTimeout: the patience is at an end.
            TrunklineError: as `outcome`.
        """
        self._wait_timeout = wait_timeout
        self._timeout = self._questions.timeout = timeout
        self._guard(session)
        try:
            async with wait_timeout:
                return await self.outcome(session)
        except BaseException:  # a cancelled caller too: nobody would know of the task
            self.cancel_aside()
            raise
        finally:
            self._wait_timeout = None
            if self._guarded is not None:
                self._guarded.closing_requests.pop(self, None)

    def renew(self) -> None:
        """Give whoever waits his time again: something goes on."""
        if self._wait_timeout is not None:
            self._wait_timeout.renew()

    def _think(self, is_thinking: bool) -> None:
        if self._wait_timeout is None:
            return
        if is_thinking:
            self._wait_timeout.hold()
        else:
            self._wait_timeout.go_on()

    def _guard(self, session: Session) -> None:
        """Have the task ended with a connection, and with none that was there before."""
        if self._wait_timeout is None or self._guarded is session:
            return
        if self._guarded is not None:
            self._guarded.closing_requests.pop(self, None)
        self._guarded = session
        session.closing_requests[self] = (
            "tasks/cancel",
            CancelTaskRequestParams(self.id, session.meta),
        )

    def _stop(self) -> None:
        """Let go of what only a task needs that goes on."""
        self._questions.stop()
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()


def _shown(state: TaskState) -> tuple[str, str | None]:
    """Return what makes one state another for who looks at it."""
    return state.status, state.status_message
