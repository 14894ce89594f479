"""Calls that take long: a server may make a task of them, which is asked about until it ends.

`call_tool` hides all of it. Who wants the task itself calls `call_tool_as_task`.

The rules that live here, and only here:

* Since 2026-07-28 the server decides what becomes a task; in 2025-11-25 the client asks for it,
  and some tools have to be asked. Before there are none, and a call is a call.
                              [MCP 2025-11-25, basic/utilities/tasks; SEP-2663]
* A caller who waits for a result and goes away, or runs out of time, ends the task as well. One
  who holds the task does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias, TypeVar, overload

from msgspec import UNSET, Raw

from ..errors import IdsExhausted, PeerError, TimedOut, TrunklineError
from ..jsonrpc.named import named_error
from ..mcp.types import CallToolRequestParams, ListTasksResult, Task, TaskMetadata
from ..spec.kinds import ErrorKind
from .calls import Call, Gate
from .changes import ChangeVerbs
from .options import check_seconds
from .permitted import declares, refuse
from .questions import OnProgress, Question
from .reading import COMPLETE, result_type
from .resolving import complete
from .results import ToolResult, tool_result
from .session import Session

if TYPE_CHECKING:
    from .following import Following
    from .task_calls import TaskCall

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
    following: Following | None


class _TaskGate(Gate):
    """Takes an answer in the place of a call's future, and calls again what must be a task."""

    __slots__ = ("_call_again",)

    def __init__(self, call: Call[Any], call_again: Callable[[PeerError], _Again | None]) -> None:
        super().__init__(call, _nothing_to_go_on)
        self._call_again = call_again

    def set_exception(self, error: BaseException) -> None:
        """End the call, or begin it again."""
        again = self._call_again(error) if isinstance(error, PeerError) else None
        if again is None:
            super().set_exception(error)
        else:
            self._call._task = again
            again.add_done_callback(self._completed)


class TaskVerbs(ChangeVerbs):
    """What a client has to do with tasks."""

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
    ) -> TaskCall[T]: ...

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
    ) -> TaskCall[Any]: ...

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
    ) -> TaskCall[Any]:
        """Call a tool, and return its task as soon as there is one.

        Where there is none, because the tool, the server or the revision has no tasks, this
        returns when the tool is done. `ttl` is for how many seconds the server should keep the
        task; a server since 2026-07-28 is not asked. `timeout` is that of each request.

        Raises:
            PeerError: the server could not serve the call.
            RequestEnded: no answer came: time ran out, or the connection is gone.
            RemoteProtocolError: the answer is no result of a tool, and no task.
        """
        if ttl is not None:
            check_seconds("ttl", ttl)
        fields = {"name": name, "arguments": UNSET if arguments is None else arguments}
        question = Question("tools/call", CallToolRequestParams, fields, timeout, on_progress, meta)
        begun = await self._begin_task(question, ttl)
        if begun.following is None:
            result = tool_result(begun.raw, result_type, begun.session.revision)
            return _task_call(self, result_type, result=result)
        return _task_call(self, result_type, begun.following)

    @overload
    def task(
        self, id: str, *, result_type: type[T], timeout: float | None = None
    ) -> TaskCall[T]: ...

    @overload
    def task(
        self, id: str, *, result_type: Any = None, timeout: float | None = None
    ) -> TaskCall[Any]: ...

    def task(
        self, id: str, *, result_type: Any = None, timeout: float | None = None
    ) -> TaskCall[Any]:
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
        from .following import Following

        return _task_call(self, result_type, Following(self, id, timeout=timeout))

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

    async def _resolve_task(self, session: Session, question: Question, raw: Raw) -> Raw:
        """Complete a result of the type `task`: wait for the end of it."""
        following = self._follow(raw, session, question)
        return raw if following is None else await self._to_the_end(session, following)

    def _follow(
        self,
        raw: Raw,
        session: Session,
        question: Question,
        on_end: Callable[[], None] | None = None,
    ) -> Following | None:
        """Return the task that a call became, or None where it has a result."""
        # Imported here, as below: most clients never see a task.
        from .following import Following, created

        state = created(raw, session)
        if state is None:
            if on_end is not None:
                on_end()
            return None
        return Following(self, state.task_id, state, question.timeout, on_end)

    async def _to_the_end(self, session: Session, following: Following) -> Raw:
        try:
            async with asyncio.timeout(self._max_timeout) as limit:
                return await following.outcome(session)
        except TimeoutError:
            following.cancel_aside()
            if not limit.expired():
                raise
            reason = f"no result within {self._max_timeout:g} s, which is the most there is"
            raise TimedOut(reason, method="tools/call") from None
        except BaseException:  # a cancelled caller too: nobody would know of the task
            following.cancel_aside()
            raise

    def _must_be_task(self, error: PeerError) -> bool:
        session = self._session
        if session is None or not _takes_tasks(session):
            return False
        return error.code == _number(ErrorKind.TASK_REQUIRED, session)

    async def _call_as_task(self, question: Question) -> tuple[Raw, Session]:
        begun = await self._ask_as_task(question, None)
        raw, session, following = begun
        if following is not None:
            raw = await self._to_the_end(session, following)
        return raw, session

    def _start(
        self, call: Call[Any], question: Question, session: Session, future: asyncio.Future[Any]
    ) -> None:
        if question.method != "tools/call" or not _takes_tasks(session):
            super()._start(call, question, session, future)
            return

        async def run() -> Raw:
            return (await self._call_as_task(question))[0]

        def call_again(error: PeerError) -> _Again | None:
            return self._keep_task(run()) if self._must_be_task(error) else None

        call.sent_as(session.start(question, _TaskGate(call, call_again)), session)

    async def _ask_as_task(self, question: Question, ttl: float | None) -> _Begun:
        """Ask for a task; progress on the call is told for as long as that lasts."""
        session = self._connected()
        asked = _as_task(question, ttl)
        try:
            pending = session.start(asked)
        except IdsExhausted:
            session = await self._renew(session)
            pending = session.start(asked)
        forget = session.outlive(pending)
        try:
            raw: Raw = await pending.waiter
            return _Begun(raw, session, self._follow(raw, session, question, forget))
        except asyncio.CancelledError:
            session.abandon(pending)
            forget()
            raise
        except TrunklineError:
            forget()
            raise

    # -- in the open -------------------------------------------------------------------------

    async def _begin_task(self, question: Question, ttl: float | None) -> _Begun:
        """Call a tool, as a task where that is for us to say."""
        session = self._connected()
        if _takes_tasks(session):
            try:
                return await self._ask_as_task(question, ttl)
            except PeerError as error:
                if error.code != _number(ErrorKind.TASK_NOT_ALLOWED, session):
                    raise
        raw, session = await self._ask(question)
        if not session.is_per_request or result_type(raw) == COMPLETE:
            return _Begun(raw, session, None)
        try:
            return _Begun(await self._completed(session, question, raw), session, None)
        except _BecameTask as became:
            raw = became.raw
        return _Begun(raw, session, self._follow(raw, session, question))

    async def _completed(self, session: Session, question: Question, raw: Raw) -> Raw:
        """Complete a result, but for one that is a task."""

        async def keep(_: Session, __: Question, raw: Raw) -> Raw:
            raise _BecameTask(raw)

        resolvers = dict(self._resolvers)
        if TASK in resolvers:
            resolvers[TASK] = keep
        with session.held():
            return await complete(resolvers, session, question, raw)


def _nothing_to_go_on(_: Raw) -> NoReturn:
    raise TrunklineError("a result of the handshake is complete")


def _takes_tasks(session: Session) -> bool:
    """Say whether a call can ask to be a task, and this server takes it."""
    agreement = session.agreement
    if _CORE_RESULT not in session.methods or agreement is None:
        return False
    return declares(agreement.capabilities, _TAKES_TASKS)


def _as_task(question: Question, ttl: float | None) -> Question:
    metadata = TaskMetadata(UNSET if ttl is None else max(1, round(ttl * 1000)))
    return question._replace(fields={**question.fields, "task": metadata})


def _number(kind: ErrorKind, session: Session) -> int | None:
    try:
        return named_error(kind, policy=session.policy).code
    except LookupError:
        return None  # another system's codes, which have none for this


def _task_call(
    verbs: ChangeVerbs,
    kind: Any,
    following: Following | None = None,
    result: ToolResult[Any] | None = None,
) -> TaskCall[Any]:
    from .task_calls import TaskCall

    return TaskCall(verbs, kind, following, result)
