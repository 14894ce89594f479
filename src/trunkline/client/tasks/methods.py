"""Tool calls that a server runs as tasks, which the client polls until they end.

`call_tool` hides tasks; `call_tool_as_task` returns the task itself.

The rules that live here, and only here:

* Since 2026-07-28 the server decides which calls become tasks. In 2025-11-25 the client requests
  a task, and some tools run only as tasks. Earlier revisions have no tasks.
                              [MCP 2025-11-25, basic/utilities/tasks; SEP-2663]
* A rejected call is repeated in the other form only if the tool list says that the tool supports
  no other: the error may come from a tool that has run. If the list is known beforehand, the call
  uses the right form at once. Some servers reject a call with an `isError` result: it stands
  unless the tool list says that the tool only runs as a task.
* The tool list is known until the server reports a change, or the session is replaced. One that
  a report crossed may be stale: a call that it made a task is repeated if no task is allowed.
* A caller that waits for a result and is cancelled, or times out, cancels the task too, even if
  the reply that names the task arrives later. A caller that holds a `TaskHandle` does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from msgspec import Raw

from ...errors import PeerError, TrunklineError
from ...jsonrpc.codec.decoders import UNREADABLE
from ...jsonrpc.error_codes import named_error
from ...jsonrpc.messages import shown_tuple
from ...mcp.capabilities import declares
from ...mcp.types import ListTasksResult, ListToolsResult, Task, TaskMetadata, Tool
from ...spec.error_kinds import ErrorKind
from ..requests.call import CompletingWaiter, PendingCall, sent_as
from ..requests.sender import RequestSender
from ..requests.tool_result import ErrorFlag, tool_result
from ..session.decode import COMPLETE, decoder, result_type
from ..session.method_checks import raise_not_sendable
from ..session.options import check_seconds
from ..session.request import OnProgress, OutgoingRequest
from ..session.session import NOT_SENT, Session

if TYPE_CHECKING:
    from .poller import TaskPoller
    from .task_call import TaskHandle

__all__ = ["TASK", "TaskRequests"]

# The `resultType` of a call that became a task.
TASK: Final = "task"
# A method of the tasks in the core protocol; the extension does not have it.
_CORE_RESULT: Final = "tasks/result"
# The server capability for tool calls as tasks in the core protocol.
_TASK_CALLS: Final = "tasks.requests.tools.call"
# Values of `execution.taskSupport`; a tool without one is forbidden to run as a task.
_REQUIRED: Final = "required"
_FORBIDDEN: Final = "forbidden"
# Each request about a task has at least this long, if the whole call has.
_MIN_REQUEST_TIMEOUT_S: Final = 5.0


class _BecameTask(BaseException):
    """Carries the result of a call that became a task out of its resolvers.

    Not an Exception: it is not a failure, and handlers of failures must not catch it.
    """

    def __init__(self, raw: Raw) -> None:
        super().__init__()
        self.raw = raw


class StartedCall(NamedTuple):
    """The reply to a tool call, its session, and its task if it became one."""

    raw: Raw
    session: Session
    poller: TaskPoller | None

    def __repr__(self) -> str:
        return shown_tuple(self)


class _TaskProgress:
    """Reports the progress of a task, which restarts the timeout of the waiting caller."""

    __slots__ = ("_on_progress", "poller")

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self.poller: TaskPoller | None = None

    def __call__(self, progress: float, total: float | None, message: str | None) -> object:
        if self.poller is not None:
            self.poller.renew()
        return self._on_progress(progress, total, message)


class _TaskRequiredWaiter(CompletingWaiter):
    """Repeats a call as a task, if it was rejected because its tool only runs as one."""

    __slots__ = ("_call_again", "_replace_refusal")

    def __init__(
        self,
        call: PendingCall[Any],
        call_again: Callable[[PeerError], asyncio.Task[Raw] | None],
        replace_refusal: Callable[[Raw], asyncio.Task[Raw] | None],
    ) -> None:
        super().__init__(call, _not_in_handshake)
        self._call_again = call_again
        self._replace_refusal = replace_refusal

    def set_result(self, raw: Raw) -> None:
        """End the call, or repeat it."""
        again = self._replace_refusal(raw)
        if again is None:
            super().set_result(raw)
        else:
            self.wait_for(again)

    def set_exception(self, error: BaseException) -> None:
        """End the call, or repeat it."""
        again = self._call_again(error) if isinstance(error, PeerError) else None
        if again is None:
            super().set_exception(error)
        else:
            self.wait_for(again)


class TaskRequests:
    """The task requests of a client, and which tools run as tasks."""

    def __init__(self, sender: RequestSender) -> None:
        # `taskSupport` by tool name; None while unknown, or where it makes no difference.
        self.support: dict[str, str] | None = None
        self._sender = sender
        self._connection = sender.connection
        # Whether a call may become a task that its caller did not request.
        self._enabled = enabled = sender.connection.options.tasks
        self._list_changes = 0
        # Whether a change was reported while the known tool list was read.
        self._is_crossed = False
        if enabled:
            sender.resolvers.setdefault(TASK, self._resolve_task)

    # -- the tool list -----------------------------------------------------------------------

    async def list_tools(self, fresh: bool, timeout: float | None) -> list[Tool]:
        """Return all tools, and remember which run as tasks."""
        before, changes = self._connection.session, self._list_changes
        tools: list[Tool] = await self._sender.all_pages(
            "tools/list", ListToolsResult, "tools", fresh, timeout
        )
        session = self._connection.session
        if session is before and self._enabled and session is not None and _has_task_calls(session):
            self.support = _task_support(tools)
            self._is_crossed = changes != self._list_changes
        return tools

    def forget_tools(self) -> None:
        """Forget the tool list: it has changed, or the session has."""
        self._list_changes += 1
        self.support = None

    async def _support_of(self, name: str, timeout: float | None) -> str | None:
        """Return the `taskSupport` of a tool; None if the tool is not in the list."""
        known = self.support
        if known is None:
            try:
                tools = await self.list_tools(False, self._sender.seconds(timeout))
            except TrunklineError:
                return None
            known = _task_support(tools)
        return known.get(name)

    def must_be_task(self, name: str) -> bool:
        """Return True if a tool is known to run only as a task."""
        return self.support is not None and self.support.get(name) == _REQUIRED

    # -- tasks that the caller does not see --------------------------------------------------

    async def is_task_required(self, error: PeerError, name: str, timeout: float | None) -> bool:
        """Return True if a call was rejected because its tool only runs as a task."""
        if not self._enabled or not self._has_code(error, ErrorKind.TASK_REQUIRED):
            return False
        return await self._support_of(name, timeout) == _REQUIRED

    async def is_task_refusal(self, name: str, timeout: float | None) -> bool:
        """Return True if an `isError` result rejects a call because its tool only runs as a task.

        The tool list is read if it is not known.
        """
        return self._may_be_refusal() and await self._support_of(name, timeout) == _REQUIRED

    def _may_be_refusal(self) -> bool:
        session = self._connection.session
        # A tool list that is known did not require a task, or the call would have been one.
        is_open = self._enabled and self.support is None and session is not None
        return is_open and session is not None and _has_task_calls(session)

    async def call(self, request: OutgoingRequest) -> tuple[Raw, Session]:
        """Run a tool call as a task to its end; return the result, and its session."""
        observed, on_progress = request, request.on_progress or self._connection.options.on_progress
        progress = None if on_progress is None else _TaskProgress(on_progress)
        if progress is not None:
            observed = request._replace(on_progress=progress)
        try:
            raw, session, poller = await self._start_task(observed, None)
        except PeerError as error:
            if not self._has_code(error, ErrorKind.TASK_NOT_ALLOWED):
                raise
            # The tool list may have changed without a notification: read it again next time.
            was_crossed = self._is_crossed and self.support is not None
            self.forget_tools()
            if not was_crossed:
                raise
            return await self._sender.ask(request)
        if poller is not None:
            if progress is not None:
                progress.poller = poller
            raw = await self._await_result(session, request, poller)
        return raw, session

    def start(self, call: PendingCall[Any], request: OutgoingRequest, session: Session) -> None:
        """Send the request of a call, as a task where its tool only runs as one."""
        name = request.fields.get("name")
        may_be_task = request.method == "tools/call" and self._enabled and _has_task_calls(session)
        if not may_be_task or not isinstance(name, str):
            self._sender.start(call, request, session)
            return
        waiter = _TaskRequiredWaiter(
            call,
            partial(self._call_again, request, name),
            partial(self._replace_refusal, request, name),
        )
        if self.must_be_task(name):
            waiter.wait_for(self._sender.in_background(self._call_raw(request)))
        else:
            sent_as(call, session.start(request, waiter), session)

    def _call_again(
        self, request: OutgoingRequest, name: str, error: PeerError
    ) -> asyncio.Task[Raw] | None:
        if not self._has_code(error, ErrorKind.TASK_REQUIRED):
            return None

        async def run() -> Raw:
            if not await self.is_task_required(error, name, request.timeout):
                raise error
            return await self._call_raw(request)

        return self._sender.in_background(run())

    def _replace_refusal(
        self, request: OutgoingRequest, name: str, raw: Raw
    ) -> asyncio.Task[Raw] | None:
        if not self._may_be_refusal() or not _is_error(raw):
            return None

        async def run() -> Raw:
            is_refusal = await self.is_task_refusal(name, request.timeout)
            return await self._call_raw(request) if is_refusal else raw

        return self._sender.in_background(run())

    async def _call_raw(self, request: OutgoingRequest) -> Raw:
        return (await self.call(request))[0]

    async def _resolve_task(self, session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        poller = self._poller(raw, session, request)
        return raw if poller is None else await self._await_result(session, request, poller)

    async def _await_result(
        self, session: Session, request: OutgoingRequest, poller: TaskPoller
    ) -> Raw:
        from .wait_timeout import TaskWaitTimeout

        seconds = self._sender.seconds(request.timeout)
        longest = self._connection.options.max_timeout
        # Tasks are for long work: without an explicit timeout a call waits for the longest one.
        wait = longest if request.timeout is None else seconds
        # Each request has less time than the call, so that a lost one can be repeated.
        each = min(seconds, max(seconds / 3, _MIN_REQUEST_TIMEOUT_S))
        return await poller.awaited(session, TaskWaitTimeout(wait, longest, session.clock), each)

    # -- tasks that the caller holds ---------------------------------------------------------

    async def begin(self, request: OutgoingRequest, name: str, ttl: float | None) -> StartedCall:
        """Call a tool, as a task where the client decides that."""
        session = self._connection.current()
        known = self.support or {}
        if _has_task_calls(session) and known.get(name) != _FORBIDDEN:
            try:
                return await self._start_task(request, ttl)
            except PeerError as error:
                if not self._has_code(error, ErrorKind.TASK_NOT_ALLOWED):
                    raise
                if await self._support_of(name, request.timeout) != _FORBIDDEN:
                    raise
        raw, session = await self._sender.ask(request)
        if not session.is_per_request or result_type(raw) == COMPLETE:
            return StartedCall(raw, session, None)
        try:
            return StartedCall(await self._completed(session, request, raw), session, None)
        except _BecameTask as became:
            raw = became.raw
        return StartedCall(raw, session, self._poller(raw, session, request))

    async def call_as_task(
        self, request: OutgoingRequest, name: str, ttl: float | None, kind: Any
    ) -> TaskHandle[Any]:
        """Call a tool, and return its task, or a handle of its result."""
        from .task_call import TaskHandle

        raw, session, poller = await self.begin(request, name, ttl)
        result = None if poller else tool_result(raw, kind, session.revision)
        return TaskHandle(self._sender, kind, poller, result)

    def handle(self, id: str, kind: Any, timeout: float | None) -> TaskHandle[Any]:
        """Return a handle of an existing task; see `Client.task`."""
        self._check_has("tasks/get")
        if timeout is not None:
            check_seconds("timeout", timeout)
        from .poller import TaskPoller
        from .task_call import TaskHandle

        return TaskHandle(self._sender, kind, TaskPoller(self._sender, id, timeout=timeout))

    async def list_tasks(self, timeout: float | None) -> list[Task]:
        """Return all tasks that this client may see; see `Client.list_tasks`."""
        self._check_has("tasks/list")
        return await self._sender.all_pages("tasks/list", ListTasksResult, "tasks", False, timeout)

    def _check_has(self, method: str) -> None:
        session = self._connection.current()
        if method not in session.methods:
            raise_not_sendable(method, session.revision)

    async def _completed(self, session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        """Complete a result, unless it is a task."""

        async def keep(_: Session, __: OutgoingRequest, raw: Raw) -> Raw:
            raise _BecameTask(raw)

        resolvers = dict(self._sender.resolvers)
        if TASK in resolvers:
            resolvers[TASK] = keep
        return await self._sender.resolve(session, request, raw, resolvers)

    async def _start_task(self, request: OutgoingRequest, ttl: float | None) -> StartedCall:
        """Request a task; progress on the call is reported until the task ends."""
        session = self._connection.current()
        metadata = TaskMetadata(None if ttl is None else max(1, round(ttl * 1000)))
        augmented = request._replace(fields={**request.fields, "task": metadata})
        try:
            pending = session.start(augmented)
        except NOT_SENT:
            session = await self._connection.renew(session)
            pending = session.start(augmented)
        end_progress = session.keep_progress(pending)
        try:
            raw: Raw = await pending.waiter
            return StartedCall(raw, session, self._poller(raw, session, request, end_progress))
        except asyncio.CancelledError:
            session.abandon(pending)
            end_progress()
            raise
        except TrunklineError:
            end_progress()
            raise

    def _poller(
        self,
        raw: Raw,
        session: Session,
        request: OutgoingRequest,
        on_end: Callable[[], None] | None = None,
    ) -> TaskPoller | None:
        """Return a poller of the task that a call became, or None if it has a result."""
        # Imported here, as above: most clients never see a task.
        from .poller import TaskPoller, created

        state = created(raw, session)
        if state is None:
            if on_end is not None:
                on_end()
            return None
        on_state = None
        on_progress = request.on_progress or self._connection.options.on_progress
        if on_progress is not None and _CORE_RESULT not in session.methods:
            from .status_progress import StatusProgress

            on_state = StatusProgress(self._connection, on_progress).update
        return TaskPoller(self._sender, state.task_id, state, request.timeout, on_end, on_state)

    def _has_code(self, error: PeerError, kind: ErrorKind) -> bool:
        """Return True if an error has the code of a task error, which other errors may share."""
        session = self._connection.session
        if session is None or not _has_task_calls(session):
            return False
        try:
            return error.code == named_error(kind, policy=session.policy).code
        except LookupError:
            return False  # the policy's profile has no code for it


def _not_in_handshake(_: Raw) -> NoReturn:
    raise TrunklineError("results of the handshake revisions are always complete")


def _is_error(raw: Raw) -> bool:
    try:
        return bool(decoder(ErrorFlag)(raw).is_error)
    except UNREADABLE:
        return False  # the caller is told what is wrong with it


def _task_support(tools: list[Tool]) -> dict[str, str]:
    found: dict[str, str] = {}
    for tool in tools:
        stated = None if tool.execution is None else tool.execution.task_support
        found[tool.name] = _FORBIDDEN if stated is None else stated
    return found


def _has_task_calls(session: Session) -> bool:
    """Return True if a call can request a task, and this server accepts that."""
    negotiated = session.negotiated
    if _CORE_RESULT not in session.methods or negotiated is None:
        return False
    return declares(negotiated.capabilities, _TASK_CALLS)
