"""Task admission: which tool calls become tasks, when, and what happens if one cannot.

`admit` decides from the request and the tool; `TaskStart` turns one call into a task, at once,
after `TaskSettings.quick` seconds, or when the handler calls `become_task`.

The rules that live here, and only here:

* In the core form (2025-11-25) the client requests a task with `task` in the params. A tool with
  `task="never"` rejects that, and one with `task="required"` rejects a call without it.
                            [MCP 2025-11-25, basic/utilities/tasks#tool-level-negotiation]
* In the extension form the tool decides, for a client that declares the extension in the same
  request; `task` in the params is ignored.                                         [SEP-2663]
* There a call that cannot become a task now (no capacity, no store) runs as a normal call, unless
  the tool requires a task. An explicit request for a task gets a task or an error.
* A server without tasks, and a revision without them, ignore `task`.
* A call becomes a task at most once; all concurrent attempts share the outcome.
* If the handler has client requests pending for this round trip, they go out first: the retried
  call becomes the task.
* A call that becomes a task after a delay becomes one at its first client request, so that a
  replay of its handler does not depend on timing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import UNSET, Raw, UnsetType, ValidationError

from ...engine.handler_run import Asker, SuspendHandler, handler_run_of
from ...errors import RequestAborted, RequestError
from ...spec.error_kinds import ErrorKind
from ...spec.mcp.tasks_extension import EXTENSION
from ..errors import plain
from ..registry.extensions import declares, refuse_undeclared
from .wire import read_ttl, task_form

if TYPE_CHECKING:
    from ...engine.handler_run import InputQuestion
    from ...engine.request import Refuse
    from ..api.core import ServerCore
    from ..client_requests.multi_round_trip import RoundTrips
    from ..dispatch.request import ServerRequest
    from ..registry.entries import ToolEntry
    from .service import ServerTasks

__all__ = ["DeferredTaskAsker", "TaskAdmission", "TaskStart", "admit"]


class TaskAdmission(NamedTuple):
    """When a call becomes a task, if at all, and how long the task is kept."""

    # Before the handler runs, after `TaskSettings.quick`, or on `become_task`; None: never.
    start: Literal["call", "soon", "handler"] | None = None
    # Whether the call fails if it cannot become a task.
    must: bool = False
    # In seconds; None if the client did not request one.
    ttl: float | None = None


def admit(
    app: ServerCore, request: ServerRequest, entry: ToolEntry, requested: Raw | UnsetType
) -> TaskAdmission | Refuse:
    """Return how a call is served, or its refusal. `requested` is its `task` member."""
    form = task_form(request.revision)
    if form == "core" and EXTENSION in app.extensions:
        return _admit_core(request, entry, requested)
    if form == "extension":
        return _admit_extension(request, entry)
    return TaskAdmission()


def _admit_core(
    request: ServerRequest, entry: ToolEntry, requested: Raw | UnsetType
) -> TaskAdmission | Refuse:
    if requested is UNSET:
        if entry.task == "required":
            return request.refuse(ErrorKind.TASK_REQUIRED)
        return TaskAdmission()
    if entry.task == "never":
        return request.refuse(ErrorKind.TASK_NOT_ALLOWED)
    try:
        return TaskAdmission("call", must=True, ttl=read_ttl(requested))
    except ValidationError as error:
        return request.refuse(ErrorKind.INVALID_PARAMS, plain(error))


def _admit_extension(request: ServerRequest, entry: ToolEntry) -> TaskAdmission | Refuse:
    must = entry.task == "required"
    if entry.task == "never":
        return TaskAdmission()
    if declares(request.caller, EXTENSION):
        if entry.task_start == "handler":
            return TaskAdmission("handler", must=must)
        return TaskAdmission("call" if must else "soon", must=must)
    if must:
        return refuse_undeclared(request, EXTENSION)
    return TaskAdmission()


class TaskStart:
    """Turns one call into a task."""

    __slots__ = ("_begun", "_must", "_request", "_tasks", "_ttl")

    def __init__(
        self, tasks: ServerTasks, request: ServerRequest, *, must: bool, ttl: float | None = None
    ) -> None:
        self._tasks = tasks
        self._request = request
        self._must = must
        self._ttl = ttl
        # The attempt in progress, shared by all callers.
        self._begun: asyncio.Task[None] | None = None

    async def __call__(self) -> bool:
        """Turn the call into a task if possible; return True if it is one now.

        Raises:
            RequestError: the tool requires a task and none can start; the call continues if the
                handler catches this.
            RequestAborted: the call has ended.
            SuspendHandler: client requests go out first; the client retries the call.
        """
        run = handler_run_of(self._request)
        if run.on_end is not None:
            return True
        try:
            await asyncio.shield(self._begin())
        except RequestError:
            if self._must:
                raise
            return False
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if run.is_done and (task is None or not task.cancelling()):
                # The handler has returned and left behind the task that awaits this.
                text = "the call has ended"
                raise RequestAborted(text, method=self._request.method) from None
            raise
        return True

    def _begin(self) -> asyncio.Task[None]:
        if self._begun is None:
            waits = handler_run_of(self._request).waits
            begun = self._tasks.track(self._tasks.begin(self._request, ttl=self._ttl))
            self._begun = begun
            waits.add(begun)  # cancelled when the call ends
            begun.add_done_callback(waits.discard)
            begun.add_done_callback(self._over)
        return self._begun

    def _over(self, begun: asyncio.Task[None]) -> None:
        self._begun = None  # a failed attempt may be repeated
        if not begun.cancelled():
            begun.exception()  # retrieved here: no caller may be left to await it

    def start_if_running(self) -> None:
        """Turn the call into a task if its handler is still running after the delay."""
        request = self._request
        connection = request.connection
        is_running = connection.runner.at_work.get(request.message) is request
        if is_running and not handler_run_of(request).is_allowed:
            # It may still be refused, and is not a task before that is known.
            connection.loop.call_later(self._tasks.settings.quick, self.start_if_running)
            return
        # A client that has closed its sending side cannot poll a task.
        if is_running and connection.hears and not request.cancelled:
            self._tasks.spawn(self._try())

    async def _try(self) -> None:
        try:
            await self()
        except (RequestError, RequestAborted, SuspendHandler):
            pass  # the call continues as it was, or has ended


class DeferredTaskAsker:
    """Asker of a call that becomes a task after a delay: its first client request starts the task.

    If no task can start, client requests are sent as those of a normal call.
    """

    __slots__ = ("_fallback", "_request", "_rounds", "_start")

    def __init__(self, start: TaskStart, request: ServerRequest, rounds: RoundTrips) -> None:
        self._start = start
        self._request = request
        self._rounds = rounds
        self._fallback: Asker | None = None

    async def ask(self, question: InputQuestion) -> Raw:
        """Return the client's response, undecoded."""
        run = handler_run_of(self._request)
        if not await self._start() and run.asker is self:
            run.asker = self._round_trip()
        asker = run.asker
        assert asker is not None  # the task's, or the round trip's
        return await asker.ask(question)

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Run `work` and record its result: the handler may still be suspended and replayed."""
        return await self._round_trip().once(key, work)

    def _round_trip(self) -> Asker:
        if self._fallback is None:
            self._fallback = self._rounds.begin(self._request, handler_run_of(self._request))
        return self._fallback
