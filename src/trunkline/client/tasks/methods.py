"""Calls that take long: a server may make a task of them, which is asked about until it ends.

`call_tool` hides all of it. Who wants the task itself calls `call_tool_as_task`.

The rules that live here, and only here:

* Since 2026-07-28 the server decides what becomes a task; in 2025-11-25 the client asks for it,
  and some tools have to be asked. Before there are none, and a call is a call.
                              [MCP 2025-11-25, basic/utilities/tasks; SEP-2663]
* A call that was refused is made a second time, in the other way, only where the list of tools
  says that its tool runs in no other: the error may be that of a tool that has run. Where the
  list is known, the call is made in the right way at once.
* What a list says is known until the server says that it has changed, or the connection does.
* A caller who waits for a result and goes away, or runs out of time, ends the task as well: also
  where word of the task comes too late for him. One who holds the task does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias, TypeVar, overload

from msgspec import UNSET, Raw

from ...errors import PeerError, TrunklineError
from ...jsonrpc.error_codes import named_error
from ...mcp.types import ListTasksResult, Task, TaskMetadata, Tool
from ...spec.error_kinds import ErrorKind
from ..options import check_seconds
from ..requests.call import CompletingWaiter, PendingCall
from ..requests.decode import COMPLETE, result_type
from ..requests.method_checks import declares, refuse
from ..requests.request import OnProgress, OutgoingRequest
from ..requests.submitting import tool_call
from ..requests.tool_result import ToolResult, tool_result
from ..session import NOT_SENT, Session
from ..subscriptions.stream import ChangeVerbs

if TYPE_CHECKING:
    from .poller import TaskPoller
    from .task_call import TaskHandle

__all__ = ["TASK", "TaskVerbs"]

T = TypeVar("T")

# A call that is made once more, as a task.
_Again: TypeAlias = asyncio.Task[Raw]

# The type of result that says that a call became a task.
TASK: Final = "task"
# What only the core's form of tasks has.
_CORE_RESULT: Final = "tasks/result"
# What a server of the core declares that takes calls of tools as tasks.
_TAKES_TASKS: Final = "tasks.requests.tools.call"
# What a tool says of itself that runs only as a task; and one that never does, which is what one
# is that says nothing.
_REQUIRED: Final = "required"
_FORBIDDEN: Final = "forbidden"
# How many seconds each request about a task has at least, if the call has as many.
_LEAST_TIME: Final = 5.0


class _BecameTask(BaseException):
    """Carries the result of a call that became a task out of what completes results.

    It is no failure, so nothing that catches those may take it for one.
    """

    def __init__(self, raw: Raw) -> None:
        super().__init__()
        self.raw = raw


class _Begun(NamedTuple):
    """What a call was answered, by which connection, and the task it became, if it did."""

    raw: Raw
    session: Session
    poller: TaskPoller | None


class _Progress:
    """Tells of the progress of a task: whoever waits for it has his time again."""

    __slots__ = ("_tell", "poller")

    def __init__(self, tell: OnProgress) -> None:
        self._tell = tell
        self.poller: TaskPoller | None = None

    def __call__(self, progress: float, total: float | None, message: str | None) -> object:
        if self.poller is not None:
            self.poller.renew()
        return self._tell(progress, total, message)


class _TaskGate(CompletingWaiter):
    """Takes an answer in the place of a call's future, and calls again what must be a task."""

    __slots__ = ("_call_again",)

    def __init__(
        self, call: PendingCall[Any], call_again: Callable[[PeerError], _Again | None]
    ) -> None:
        super().__init__(call, _nothing_to_go_on)
        self._call_again = call_again

    def set_exception(self, error: BaseException) -> None:
        """End the call, or begin it again."""
        again = self._call_again(error) if isinstance(error, PeerError) else None
        if again is None:
            super().set_exception(error)
        else:
            self.wait_for(again)

    def wait_for(self, task: _Again) -> None:
        """End the call as a task ends."""
        self._call._task = task
        task.add_done_callback(self._completed)


class TaskVerbs(ChangeVerbs):
    """What a client has to do with tasks."""

    # Whether calls may become tasks that nobody asked to.
    _takes_tasks: bool
    _on_progress: OnProgress | None

    @overload
    async def call_tool_as_task(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: type[T],
        ttl: float | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> TaskHandle[T]: ...

    @overload
    async def call_tool_as_task(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any = None,
        ttl: float | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> TaskHandle[Any]: ...

    async def call_tool_as_task(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any = None,
        ttl: float | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> TaskHandle[Any]:
        """Call a tool, and return its task as soon as there is one.

        Where there is none, because the tool, the server or the revision has no tasks, this
        returns when the tool is done. `ttl` is for how many seconds the server should keep the
        task; a server since 2026-07-28 is not asked. `timeout` is that of each request.

        Raises:
            PeerError: the server could not serve the call.
            RequestAborted: no answer came: time ran out, or the connection is gone.
            RemoteProtocolError: the answer is no result of a tool, and no task.
        """
        if ttl is not None:
            check_seconds("ttl", ttl)
        given = UNSET if arguments is None else arguments
        request = tool_call(name, given, timeout, on_progress, meta)
        begun = await self._begin_task(request, name, ttl)
        if begun.poller is None:
            result = tool_result(begun.raw, result_type, begun.session.revision)
            return _task_call(self, result_type, result=result)
        return _task_call(self, result_type, begun.poller)

    @overload
    def task(
        self, id: str, *, result_type: type[T], timeout: float | None = None
    ) -> TaskHandle[T]: ...

    @overload
    def task(
        self, id: str, *, result_type: Any = None, timeout: float | None = None
    ) -> TaskHandle[Any]: ...

    def task(
        self, id: str, *, result_type: Any = None, timeout: float | None = None
    ) -> TaskHandle[Any]:
        """Return a task that was begun before, by this connection or another.

        Nothing is asked yet. `timeout` is that of each request.

        Raises:
            LocalProtocolError: the revision has no tasks.
        """
        session = self._connected()
        if "tasks/get" not in session.methods:
            refuse("tasks/get", session.revision)
        if timeout is not None:
            check_seconds("timeout", timeout)
        from .poller import TaskPoller

        return _task_call(self, result_type, TaskPoller(self, id, timeout=timeout))

    async def list_tasks(self, *, timeout: float | None = None) -> list[Task]:
        """Return all tasks of the server that are ours, in 2025-11-25.

        Raises:
            LocalProtocolError: the revision has no such list.
        """
        session = self._connected()
        if "tasks/list" not in session.methods:
            refuse("tasks/list", session.revision)
        return await self._every("tasks/list", ListTasksResult, "tasks", False, timeout)

    # -- hidden in a call --------------------------------------------------------------------

    async def _resolve_task(self, session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        """Complete a result of the type `task`: wait for the end of it."""
        poller = self._follow(raw, session, request)
        return raw if poller is None else await self._to_the_end(session, request, poller)

    def _follow(
        self,
        raw: Raw,
        session: Session,
        request: OutgoingRequest,
        on_end: Callable[[], None] | None = None,
    ) -> TaskPoller | None:
        """Return the task that a call became, or None where it has a result."""
        # Imported here, as below: most clients never see a task.
        from .poller import TaskPoller, created

        state = created(raw, session)
        if state is None:
            if on_end is not None:
                on_end()
            return None
        return TaskPoller(self, state.task_id, state, request.timeout, on_end)

    async def _to_the_end(
        self, session: Session, request: OutgoingRequest, poller: TaskPoller
    ) -> Raw:
        """Return the result of a task that its caller does not know of."""
        from .wait_timeout import TaskWaitTimeout

        seconds = self._seconds(request.timeout)
        # Long work is what tasks are for: only who says so waits for less than the longest.
        wait = self._max_timeout if request.timeout is None else seconds
        wait_timeout = TaskWaitTimeout(wait, self._max_timeout, session.clock)
        # So that a request that is lost is not all there was time for.
        each = min(seconds, max(seconds / 3, _LEAST_TIME))
        return await poller.awaited(session, wait_timeout, each)

    def _is_refusal(self, error: PeerError, kind: ErrorKind) -> bool:
        """Say whether an error has the number of one about tasks, which others may have too."""
        session = self._session
        return session is not None and _can_ask(session) and error.code == _number(kind, session)

    async def _must_be_task(self, error: PeerError, name: str, timeout: float | None) -> bool:
        if not self._takes_tasks or not self._is_refusal(error, ErrorKind.TASK_REQUIRED):
            return False
        return await self._support_of(name, timeout) == _REQUIRED

    async def _support_of(self, name: str, timeout: float | None) -> str | None:
        """Return what the list of tools says of one and tasks; None where it says nothing of it."""
        known = self._task_support
        if known is None:
            try:
                known = _supports(await self.list_tools(timeout=self._seconds(timeout)))
            except TrunklineError:
                return None  # who has no list to show has not said it
        return known.get(name)

    def _learn_tools(self, tools: list[Tool]) -> None:
        if self._takes_tasks and self._session is not None and _can_ask(self._session):
            self._task_support = _supports(tools)

    def _forget_tools(self) -> None:
        """Know nothing of the tools any more: they have changed, or the connection has."""
        self._tool_changes += 1
        self._task_support = None

    async def _call_as_task(self, request: OutgoingRequest) -> tuple[Raw, Session]:
        heard, tell = request, request.on_progress or self._on_progress
        progress = None if tell is None else _Progress(tell)
        if progress is not None:
            heard = request._replace(on_progress=progress)
        try:
            raw, session, poller = await self._ask_as_task(heard, None)
        except PeerError as error:
            if self._is_refusal(error, ErrorKind.TASK_NOT_ALLOWED):
                # The tools may have changed without a word: the next call finds out.
                self._forget_tools()
            raise
        if poller is not None:
            if progress is not None:
                progress.poller = poller
            raw = await self._to_the_end(session, request, poller)
        return raw, session

    def _start(
        self,
        call: PendingCall[Any],
        request: OutgoingRequest,
        session: Session,
        future: asyncio.Future[Any],
    ) -> None:
        name = request.fields.get("name")
        may_be_task = request.method == "tools/call" and self._takes_tasks and _can_ask(session)
        if not may_be_task or not isinstance(name, str):
            super()._start(call, request, session, future)
            return
        gate = _TaskGate(call, partial(self._call_again, request, name))
        if self._task_support is not None and self._task_support.get(name) == _REQUIRED:
            gate.wait_for(self._keep_task(self._call_only_task(request)))
        else:
            call.sent_as(session.start(request, gate), session)

    def _call_again(self, request: OutgoingRequest, name: str, error: PeerError) -> _Again | None:
        """Begin to call a tool as a task, if it was refused because it is one."""
        if not self._is_refusal(error, ErrorKind.TASK_REQUIRED):
            return None

        async def run() -> Raw:
            if not await self._must_be_task(error, name, request.timeout):
                raise error
            return await self._call_only_task(request)

        return self._keep_task(run())

    async def _call_only_task(self, request: OutgoingRequest) -> Raw:
        return (await self._call_as_task(request))[0]

    async def _ask_as_task(self, request: OutgoingRequest, ttl: float | None) -> _Begun:
        """Ask for a task; progress on the call is told for as long as that lasts."""
        session = self._connected()
        asked = _as_task(request, ttl)
        try:
            pending = session.start(asked)
        except NOT_SENT:
            session = await self._renew(session)
            pending = session.start(asked)
        forget = session.outlive(pending)
        try:
            raw: Raw = await pending.waiter
            return _Begun(raw, session, self._follow(raw, session, request, forget))
        except asyncio.CancelledError:
            session.abandon(pending)
            forget()
            raise
        except TrunklineError:
            forget()
            raise

    # -- in the open -------------------------------------------------------------------------

    async def _begin_task(self, request: OutgoingRequest, name: str, ttl: float | None) -> _Begun:
        """Call a tool, as a task where that is for us to say."""
        session = self._connected()
        known = self._task_support or {}
        if _can_ask(session) and known.get(name) != _FORBIDDEN:
            try:
                return await self._ask_as_task(request, ttl)
            except PeerError as error:
                if not self._is_refusal(error, ErrorKind.TASK_NOT_ALLOWED):
                    raise
                if await self._support_of(name, request.timeout) != _FORBIDDEN:
                    raise
        raw, session = await self._ask(request)
        if not session.is_per_request or result_type(raw) == COMPLETE:
            return _Begun(raw, session, None)
        try:
            return _Begun(await self._completed(session, request, raw), session, None)
        except _BecameTask as became:
            raw = became.raw
        return _Begun(raw, session, self._follow(raw, session, request))

    async def _completed(self, session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        """Complete a result, but for one that is a task."""
        from ..requests.resolving import complete

        async def keep(_: Session, __: OutgoingRequest, raw: Raw) -> Raw:
            raise _BecameTask(raw)

        resolvers = dict(self._resolvers)
        if TASK in resolvers:
            resolvers[TASK] = keep
        with session.held():
            return await complete(resolvers, session, request, raw)


def _nothing_to_go_on(_: Raw) -> NoReturn:
    raise TrunklineError("a result of the handshake is complete")


def _supports(tools: Iterable[Tool]) -> dict[str, str]:
    """Return what tools say of themselves and tasks, by name."""
    found: dict[str, str] = {}
    for tool in tools:
        said = UNSET if tool.execution is UNSET else tool.execution.task_support
        found[tool.name] = _FORBIDDEN if said is UNSET else said
    return found


def _can_ask(session: Session) -> bool:
    """Say whether a call can ask to be a task, and this server takes it."""
    negotiated = session.negotiated
    if _CORE_RESULT not in session.methods or negotiated is None:
        return False
    return declares(negotiated.capabilities, _TAKES_TASKS)


def _as_task(request: OutgoingRequest, ttl: float | None) -> OutgoingRequest:
    metadata = TaskMetadata(UNSET if ttl is None else max(1, round(ttl * 1000)))
    return request._replace(fields={**request.fields, "task": metadata})


def _number(kind: ErrorKind, session: Session) -> int | None:
    try:
        return named_error(kind, policy=session.policy).code
    except LookupError:
        return None  # another system's codes, which have none for this


def _task_call(
    verbs: ChangeVerbs,
    kind: Any,
    poller: TaskPoller | None = None,
    result: ToolResult[Any] | None = None,
) -> TaskHandle[Any]:
    from .task_call import TaskHandle

    return TaskHandle(verbs, kind, poller, result)
