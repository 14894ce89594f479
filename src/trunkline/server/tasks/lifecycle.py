"""Calls that go on as tasks: how one begins, what becomes of it, and how all of them end.

`Tasks` is the part of a server that knows the handlers at work without a request. What is
known of a task is in its record (`task_records.py`), which any server with the same store may
change; the one that runs the handler looks, and acts. How a task is put on the wire is in
`task_forms.py`, what serves `tasks/*` in `task_serving.py`.

The rules that live here, and only here:

* A task is in the store before the client learns its id.                           [SEP-2663]
* Of a handler and a cancel, whichever reaches the record first decides how the task ended;
  what comes later is dropped.
* A task whose time has passed is gone, and its handler is stopped.
* A task is worked at by the server that made it, and nowhere else. If that server ends, the
  task has failed: it says so itself, or whoever next asks finds that nobody is there.
* Tasks at work hold the server's lifespan open.
* What a client has brought is handed to the handler first, and then taken out of the record,
  by nobody whose request could be cancelled meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Raw, UnsetType
from msgspec.structs import replace

from ...errors import RequestAborted, RequestError
from ...jsonrpc.incoming import IncomingRequest
from ...mcp.meta import Caller
from ...spec.error_kinds import ErrorKind
from ...spec.mcp.tasks_extension import EXTENSION
from ...store.base import Store
from ...store.errors import StoreClosed, StoreError, StoreFull
from ..context import Context
from ..dispatch.connection import MAX_BACKLOG_BYTES, Connection
from ..dispatch.handler_run import course_of
from ..dispatch.requests import RETRY_AFTER
from ..errors import as_redacted
from ..extensions import declares
from ..registry.entries import ToolEntry
from ..settings import TaskSettings
from . import wire as forms
from .admission import admitted
from .input_requests import InputCarriers, TaskAsker
from .kept import RetainedTask, TaskRetention
from .records import (
    TaskChange,
    TaskForm,
    TaskRecord,
    TaskRecords,
    ended,
    new_id,
    requestor_id,
    without_responses,
)
from .result_waiters import ResultWaiters
from .runner import TaskRunner
from .start import DeferredTaskAsker, TaskStart
from .wire import TaskOutcome, task_form

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from ..core import ServerCore

__all__ = ["RunningTask", "Tasks"]

_log: Final = logging.getLogger("trunkline.server")

T = TypeVar("T")

# How many records are looked at together, every few seconds: an engine has others to serve.
_MAX_CONCURRENT_CHECKS: Final = 50
# How long handlers that were stopped may take to clean up, in seconds.
_CLEANUP_TIMEOUT_S: Final = 1.0
# Between two tries to write down how a task ended, in seconds: at first, and at most.
_MIN_RETRY_DELAY_S: Final = 0.1
_MAX_RETRY_DELAY_S: Final = 5.0

_RUNNER_GONE: Final = "The server that worked at the task has ended."
_TOO_LARGE: Final = "The result is too large to be kept."
_NO_ROOM: Final = "There is no room to keep the result."


class RunningTask:
    """One task at work in this server."""

    def __init__(self, context: Context, record: TaskRecord, circle: str) -> None:
        self.context = context
        self.connection: Connection = context._connection
        self.surface = context._surface
        # As it began.
        self.record = record
        self.tenant = record.tenant
        self.id = record.id
        self.form: TaskForm = record.form
        # Whose it is, for the bound on tasks of one requestor; and where it is listed.
        self.circle = circle
        # Whether the request was answered, and the handler goes on without it.
        self.is_detached = False
        # Whether the record has ended, so that the handler's outcome is of no use.
        self.is_over = False
        # How many bytes the record holds of what the task has brought.
        self.size = 0
        # How the task stood when somebody was last told.
        self.told: str = record.status
        self.told_at = record.updated
        self.waits: dict[str, asyncio.Future[Any]] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.hold: AbstractAsyncContextManager[None] | None = None
        loop = self.connection.loop
        # What the handler brought, and whether all is done about it.
        self.outcome: asyncio.Future[Any] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()

    @property
    def context_task(self) -> asyncio.Task[None]:
        """The asyncio task that the handler runs in."""
        task = self.context._task
        assert task is not None  # it was detached by what runs in it
        return task

    def ends(self, outcome: Any) -> None:
        """Take what the handler brought; None if it was stopped."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)

    def stop(self) -> None:
        """Stop the handler: how the task ended is decided."""
        self.is_over = True
        # Once: a second time would interrupt how it cleans up.
        if self.is_detached and not self.context.cancelled:
            self.context._stop()


class Tasks:
    """The tasks of one server."""

    def __init__(self, app: ServerCore, store: Store, settings: TaskSettings, key: bytes) -> None:
        self.app = app
        self.settings = settings
        # Signs the cursors of lists.
        self.cursor_key = key
        self.records = TaskRecords(store)
        self.running: dict[str, RunningTask] = {}
        self.waiting = ResultWaiters(settings.waiting_results, settings.waiting_results_each)
        self.kept = TaskRetention(settings.kept_each, settings.kept_bytes_each)
        self.carriers = InputCarriers(self)
        self._runner = TaskRunner(store, self._look_at_all, self._wake)
        # What a connection is known by, that nobody has a name on.
        self._circles: dict[Connection, str] = {}
        self._spawned: set[asyncio.Task[Any]] = set()
        self._ends: set[asyncio.Task[None]] = set()
        # Of the loop that tasks are at work on, while there are any.
        self._loop: asyncio.AbstractEventLoop | None = None
        # For how long the last connection has let tasks end, in seconds: of the time that they
        # have after it, which a client that waits for the process counts as one.
        self.waited = 0.0
        # Whether no more tasks are begun, because the server is to end.
        self.is_stopping = False

    def __repr__(self) -> str:
        return f"<Tasks of {self.app.name!r}: {len(self.running)} at work>"

    # -- beginning ---------------------------------------------------------------------------

    def admit(self, context: Context, entry: ToolEntry, wish: Raw | UnsetType) -> bool:
        """Say whether a call may be served as it came; one that may not was refused.

        A call that is a task from its start is made one before its handler is called. `wish`
        is the `task` of its params.
        """
        admission = admitted(self.app, context, entry, wish)
        if admission is None or admission.start is None:
            return admission is not None
        start = TaskStart(self, context, must=admission.must, ttl=admission.ttl)
        course = course_of(context)
        course.become = start
        if admission.start == "call" or (admission.start == "soon" and not self.settings.quick):
            course.begin = lambda _: start()
        elif admission.start == "soon":
            course.asker = DeferredTaskAsker(start, context, self.app.rounds)
            context._connection.loop.call_later(self.settings.quick, start.after_a_moment)
        return True

    async def begin(self, context: Context, *, ttl: float | None) -> None:
        """Make a call a task: keep its record, let its handler go on, answer its request.

        Raises:
            RequestError: there is no room, or no store, or the server stops.
            RequestAborted: the call has ended meanwhile.
            RoundOver: it ends with its questions, and comes again.
        """
        form = task_form(context.revision)
        assert form is not None
        course = course_of(context)
        if course.round is not None:
            await course.round.give_way()
        if self.is_stopping or context._connection.jobs.is_stopping:
            raise _unavailable(ErrorKind.SERVICE_UNAVAILABLE)
        circle = self.circle(context)
        self._check_room(circle)
        record = self._new_record(context, form, ttl)
        running = RunningTask(context, record, circle)
        self.running[record.id] = running  # it takes its place before anybody waits
        self._loop = running.connection.loop
        try:
            record = await self._keep(running, record)
            if course.round is not None:
                await course.round.give_way()  # if something was asked meanwhile
        except BaseException as error:
            # Also when the client cancels just now, and so it may have been kept.
            await self._let_go(running)
            await self._remove(running, record)
            if isinstance(error, StoreError):
                _log.warning("a task of %r could not be kept: %s", record.tool, error)
                raise _unavailable(ErrorKind.SERVICE_UNAVAILABLE) from None
            raise
        self._detach(running, record)

    def _new_record(self, context: Context, form: TaskForm, ttl: float | None) -> TaskRecord:
        settings, now = self.settings, self.records.clock()
        wanted = settings.ttl if ttl is None else ttl
        bound = settings.longest_ttl
        if bound is not None:
            wanted = bound if wanted is None else min(wanted, bound)
        return TaskRecord(
            id=new_id(),
            tenant=context.tenant or "",
            owner=context.principal,
            form=form,
            tool=context.name,
            runner="",
            created=now,
            updated=now,
            ttl=wanted,
            poll_interval=settings.poll_interval,
        )

    async def _keep(self, running: RunningTask, record: TaskRecord) -> TaskRecord:
        """Put a new task in the store, with a runner that can be found."""
        await self._runner.begin()
        hold = self.app.opened()
        await hold.__aenter__()
        running.hold = hold
        record = replace(record, runner=self._runner.name)
        await self.records.add(record, self._listed_under(running))
        if running.is_over or self.is_stopping:
            raise _unavailable(ErrorKind.SERVICE_UNAVAILABLE)
        context = running.context
        if context._asked not in running.connection.peer.incoming:
            # The handler did not wait for this: it has returned.
            raise RequestAborted("the call has ended", method=context.method)
        return record

    def _detach(self, running: RunningTask, record: TaskRecord) -> None:
        """Let the handler go on, and tell the client. Nothing is awaited between the two."""
        context, connection, loop = running.context, running.connection, running.connection.loop
        running.is_detached = True
        connection.jobs.detach(context, running.ends)
        end = loop.create_task(_logged(self._see_to_end(running)))
        self._ends.add(end)
        end.add_done_callback(self._ends.discard)
        course = context._course
        assert course is not None
        course.asker = TaskAsker(self, running, course.round)
        course.outlet = partial(self._report, running)
        left = record.left(self.records.clock())
        if left is not None:
            running.timer = loop.call_later(max(left, 0), self._expire, running)
        surface = running.surface
        connection.answer(context._asked, forms.created(record, surface), surface.policy)

    async def _remove(self, running: RunningTask, record: TaskRecord) -> None:
        """Take back a record of which nobody was told."""
        try:
            async with asyncio.timeout(_CLEANUP_TIMEOUT_S):
                await self.records.remove(record, self._listed_under(running))
        except (StoreError, TimeoutError) as error:
            _log.warning("a task that was not begun may be left in the store: %r", error)

    def _listed_under(self, running: RunningTask) -> str | None:
        """Return where a task is listed: nowhere, in a form that has no lists."""
        return running.circle if running.form == "core" else None

    def _check_room(self, circle: str) -> None:
        """Refuse to begin one task too many.

        Raises:
            RequestError: there is no room.
        """
        own = sum(each.circle == circle for each in self.running.values())
        if len(self.running) >= self.settings.running or own >= self.settings.running_each:
            raise _unavailable(ErrorKind.OVERLOADED)

    def circle(self, context: Context) -> str:
        """Return what tells a requestor from others: its principal, or else its connection."""
        if context.principal is not None:
            return requestor_id(f"principal {context.tenant or ''}\0{context.principal}")
        connection = context._connection
        made = requestor_id(f"connection {new_id()}")
        if connection.peer.is_closed:
            return made  # nothing would ever forget it
        return self._circles.setdefault(connection, made)

    # -- meanwhile ---------------------------------------------------------------------------

    def _report(self, running: RunningTask, method: str, params: Any) -> None:
        """Send progress, or a line of the log; the extension has neither in tasks."""
        connection = running.connection
        if running.form == "extension" or running.is_over:
            return
        if not self._is_behind(running):
            params = forms.message_of(params, running.id, running.surface)
            connection.notify(method, params)

    @staticmethod
    def _is_behind(running: RunningTask) -> bool:
        """Say whether a client has so much unread that it is told no more of a task."""
        return running.connection.transport.backlog > MAX_BACKLOG_BYTES

    def tell(self, running: RunningTask, record: TaskRecord) -> None:
        """Tell who wants to know how a task stands now; what is older than that is not told."""
        if record.updated < running.told_at:
            return
        params = forms.notification(record, running.surface)
        if running.form == "extension":
            self.app.streams.task_changed(running.id, params)
        elif record.status != running.told and not self._is_behind(running):
            running.connection.notify("notifications/tasks/status", params)
        running.told, running.told_at = record.status, record.updated

    async def alter(
        self, record: TaskRecord, to: Callable[[TaskRecord], TaskRecord | None]
    ) -> TaskChange:
        """Change a task for a client, and have that passed on though the client may leave.

        Raises:
            StoreError: it may have changed, or not.
        """

        async def work() -> TaskChange:
            change = await self.records.change(record.tenant, record.id, to)
            self.pass_on(change)
            return change

        return await asyncio.shield(self.track(work()))

    def pass_on(self, change: TaskChange) -> None:
        """Have a change of a record taken note of, here or in the server that runs the task.

        Also one that was not ours: who tries again may not have heard that it was.
        """
        record = change.record
        if record is None:
            return
        running = self.running.get(record.id)
        if running is not None:
            self.spawn(self.look(running))
        elif change.is_ours or record.is_over or record.replies:
            self.spawn(self._runner.call(record.runner, record.id))
        if record.is_over:
            self.settle(record.tenant, record.id, record)

    async def look(self, running: RunningTask) -> None:
        """Look at the record of a task at work: take replies, and stop what has ended."""
        record = await self.records.get(running.tenant, running.id)
        if running.is_over or not running.is_detached:
            return
        if record is None or record.is_over:
            running.stop()
            if record is not None:
                self.tell(running, record)
            self.settle(running.tenant, running.id, record)
            return
        for key, reply in record.replies.items():
            future = running.waits.get(key)
            if future is not None and not future.done():
                future.set_result(reply)
        if record.status != running.told or record.updated > running.told_at:
            self.tell(running, record)
        self.carriers.offer(record)
        if record.replies:
            # Each has its handler now, or nobody waits for it; to find it again does no harm.
            to = partial(without_responses, keys=record.replies)
            await self.records.change(running.tenant, running.id, to, quietly=True)

    async def checked(self, record: TaskRecord) -> TaskRecord | None:
        """Return a task as it is, failed if nobody works at it any more."""
        running = self.running.get(record.id)
        if running is not None and record.is_over and not running.is_over:
            self.spawn(self.look(running))  # it works for nothing: nobody has passed that on
        if record.is_over or running is not None:
            return record
        # Our own would be at work here.
        is_ours = record.runner == self._runner.name
        if not is_ours and await self._runner.is_alive(record.runner):
            return record
        surface = self.app.surface(self._revision_of(record.form))
        outcome = forms.stopped(_RUNNER_GONE, surface)
        change = await self.records.change(
            record.tenant, record.id, partial(_concluded, outcome=outcome)
        )
        if change.is_ours and change.record is not None and record.form == "extension":
            params = forms.notification(change.record, surface)
            self.app.streams.task_changed(record.id, params)
        return change.record

    def _revision_of(self, form: TaskForm) -> str:
        return next(each for each in self.app.revisions if task_form(each) == form)

    def settle(self, tenant: str, id: str, record: TaskRecord | None) -> None:
        """Answer who waits for the end of a task, and ask nothing more about it."""
        self.carriers.drop(id)
        self.waiting.settle(tenant, id, record)

    async def watch(self, tenant: str, id: str) -> None:
        """Look, for those who wait for its end, at a task that may be worked at elsewhere."""
        found = await self.records.get(tenant, id)
        record = None if found is None else await self.checked(found)
        if record is None or record.is_over:
            self.settle(tenant, id, record)
        else:
            self.carriers.offer(record)

    async def _look_at_all(self) -> None:
        self.kept.tidy(self.records.clock())
        looks: list[Callable[[], Coroutine[Any, Any, None]]] = [
            *(partial(self.look, running) for running in self.running.values()),
            *(partial(self.watch, *each) for each in self.waiting.tasks() if self._is_far(each)),
        ]
        for some in _batches(looks, _MAX_CONCURRENT_CHECKS):
            await asyncio.gather(*(look() for look in some))

    def _is_far(self, task: tuple[str, str]) -> bool:
        return task[1] not in self.running

    async def _wake(self, id: str) -> None:
        running = self.running.get(id)
        if running is not None:
            await self.look(running)

    # -- ending ------------------------------------------------------------------------------

    async def _see_to_end(self, running: RunningTask) -> None:
        """Write down how a handler ended, unless it was decided otherwise before."""
        try:
            try:
                outcome = await running.outcome
            except asyncio.CancelledError:
                # The whole loop ends, and whoever ends it has stopped the handler as well. A
                # second time would interrupt how it cleans up.
                running.is_over = running.context.cancelled = True
                await asyncio.wait([running.context_task], timeout=_CLEANUP_TIMEOUT_S)
                raise
            if not running.is_over:
                surface = running.surface
                told = (
                    forms.stopped(_RUNNER_GONE, surface)
                    if outcome is None
                    else forms.outcome_of(outcome, running.form, surface)
                )
                await self._conclude(running, told)
        finally:
            await self._let_go(running)

    async def _conclude(self, running: RunningTask, outcome: TaskOutcome) -> None:
        """Write the end of a task, until the store takes it or the task's time is over."""
        pause = _MIN_RETRY_DELAY_S
        while not running.is_over:
            try:
                change = await self.records.change(
                    running.tenant, running.id, partial(_concluded, outcome=outcome)
                )
            except StoreFull as full:
                _log.error("how %r ended cannot be kept: %s", running.context.name, full)
                if outcome.message in (_TOO_LARGE, _NO_ROOM):
                    return  # whoever asks next finds that nobody works at it
                text = _TOO_LARGE if full.bound == "value_bytes" else _NO_ROOM
                outcome = forms.stopped(text, running.surface)
            except StoreClosed:
                return
            except StoreError as error:
                _log.warning("the end of a task is not written yet: %s", error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MAX_RETRY_DELAY_S)
            else:
                running.is_over = True
                if change.record is not None:
                    running.size = _size(change.record)
                    self.tell(running, change.record)
                self.settle(running.tenant, running.id, change.record)

    def _expire(self, running: RunningTask) -> None:
        """Stop a task whose time has passed: its record is gone."""
        running.stop()
        self.settle(running.tenant, running.id, None)

    async def _let_go(self, running: RunningTask) -> None:
        """Forget a task that is not worked at any more."""
        if self.running.get(running.id) is not running:
            return
        del self.running[running.id]
        if running.timer is not None:
            running.timer.cancel()
        if running.is_detached:
            self._count_kept(running)
        if not running.done.done():
            running.done.set_result(None)
        hold, running.hold = running.hold, None
        if hold is not None:
            await hold.__aexit__(None, None, None)

    def _count_kept(self, running: RunningTask) -> None:
        """Keep no more for one requestor than it may have."""
        kept = RetainedTask(running.record, running.size)
        for record in self.kept.add(running.circle, kept, self.records.clock()):
            listed = running.circle if record.form == "core" else None
            self.spawn(self.records.remove(record, listed))

    # -- the end of a connection, and of the server ------------------------------------------

    def give_up(self, asked: IncomingRequest) -> None:
        """Let a call go that waits, because its client has cancelled it."""
        waiter = self.waiting.drop(asked)
        if waiter is not None:
            self.carriers.lose(waiter)

    def release(self, connection: Connection) -> None:
        """Let a connection go, which ends: its tasks go on, its calls that wait do not."""
        self.waiting.release(connection)
        self._circles.pop(connection, None)

    async def finish_results(self, connection: Connection, seconds: float) -> None:
        """Let the calls of a connection that is to end wait for so long."""
        begun = connection.loop.time()
        await self.waiting.finish(connection, seconds)
        self.waited = connection.loop.time() - begun

    def stop_soon(self, *, at_once: bool = False) -> None:
        """Stop tasks as `stop` does. May be called from any thread."""
        # Also where none is at work: a handler that is may want to become one.
        self.is_stopping = self.app.is_open
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(partial(self.stop, at_once=at_once))
            except RuntimeError:
                pass  # the loop is closed, and nothing is at work on it

    def stop(self, *, at_once: bool = False) -> None:
        """Begin no more tasks; those at work may end for a while, unless `at_once`."""
        self.is_stopping = self.app.is_open
        if self.running:
            self.spawn(self.finish(0 if at_once else self.app.limits.grace))

    async def finish(self, seconds: float) -> None:
        """Let tasks end for so long; then stop those that are left, and write that they failed."""
        await self._wait(seconds)
        await asyncio.gather(*map(self._fail, list(self.running.values())))
        await self._wait(_CLEANUP_TIMEOUT_S)
        for running in list(self.running.values()):
            _log.warning("a task of %r does not end though it was stopped", running.context.name)
            running.ends(None)  # it is not waited for any more
        # The last of them ends the lifespan, if no connection is there. A store that hangs is not
        # waited for: what it was to keep is told by the sign of life that runs out.
        if self._ends:
            _, left = await asyncio.wait(self._ends, timeout=_CLEANUP_TIMEOUT_S)
            for end in left:
                end.cancel()
            if left:
                await asyncio.wait(left, timeout=_CLEANUP_TIMEOUT_S)

    async def _fail(self, running: RunningTask) -> None:
        """Write that a task has failed, if the store takes it, and stop its handler."""
        try:
            async with asyncio.timeout(_CLEANUP_TIMEOUT_S):
                await self._conclude(running, forms.stopped(_RUNNER_GONE, running.surface))
        except TimeoutError:
            _log.warning("a task could not be marked as failed: the store does not answer")
        running.stop()

    async def _wait(self, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        while self.running and (left := until - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait([each.done for each in self.running.values()], timeout=left)

    async def close(self) -> None:
        """Leave nothing behind: nobody is served any more, and no task is at work."""
        self.is_stopping = False
        self._loop = None
        ours = asyncio.current_task()
        spawned = [each for each in self._spawned if each is not ours]
        for each in spawned:
            each.cancel()
        await asyncio.gather(*spawned, return_exceptions=True)
        await self._runner.close()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something that nobody waits for, until the server ends."""
        task = self.track(_logged(work))
        # One that is cancelled before its first step would complain that it was never awaited.
        task.add_done_callback(lambda _: work.close())
        return task

    def track(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do something that does not end with who waits for it, but with the server."""
        task = asyncio.get_running_loop().create_task(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)
        return task

    async def begin_to_watch(self) -> None:
        """See to it that tasks of other servers are looked at, for those who wait here."""
        await self._runner.begin()

    # -- who may know of a task --------------------------------------------------------------

    def honoured_task_ids(
        self, connection: Connection, caller: Caller | None, ids: list[str]
    ) -> list[str]:
        """Return those of some tasks that a client may be told of by this server.

        They are those at work here: of a task that has ended, or is worked at elsewhere, this
        server will have nothing to tell.

        Raises:
            RequestError: the client did not declare the extension.
        """
        app = self.app
        if not declares(caller, EXTENSION):
            raise RequestError(
                ErrorKind.MISSING_REQUIRED_CLIENT_CAPABILITY,
                f"The client did not declare the extension {EXTENSION}",
                data={"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
            )
        # Whose request it is, as a handler would be told.
        asked = IncomingRequest(None, "subscriptions/listen")
        context = Context(connection, asked, app.newest, caller, app, "subscriptions/listen")
        found = []
        for id in ids:
            running = self.running.get(id)
            if running is None or running.form != "extension" or running.is_over:
                continue
            theirs = running.context
            if (theirs.principal, theirs.tenant) == (context.principal, context.tenant):
                found.append(id)
        return found


def _concluded(record: TaskRecord, *, outcome: TaskOutcome) -> TaskRecord | None:
    return ended(
        record, outcome.status, outcome.message, result=outcome.result, error=outcome.error
    )


def _size(record: TaskRecord) -> int:
    """Return how many bytes a task has brought."""
    return sum(memoryview(each).nbytes for each in (record.result, record.error) if each)


def _batches(all: list[T], size: int) -> Iterator[list[T]]:
    rest = iter(all)
    while some := list(islice(rest, size)):
        yield some


def _unavailable(kind: str) -> RequestError:
    return RequestError(kind, data={"retryAfterMs": RETRY_AFTER})


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except StoreError as error:
        _log.warning("the store was no help with a task: %s", error)
    except Exception as error:  # noqa: BLE001  # a lifespan's, or ours; there is nobody to tell
        _log.error("something about a task failed\n%s", as_redacted(error))
