"""Task lifecycle: starts tasks, follows their records, ends them, and shuts them down.

`Tasks` owns the handlers that run after their request was answered. The state of a task is in its
record (`records.py`), which any server on the same store may change; the server that runs the
handler reads the record and acts. What is sent about a task is written by the dialect of its
protocol (`dialect.py`).

The rules that live here, and only here:

* A task is in the store before the client learns its id.                           [SEP-2663]
* The first to reach the record decides: an outcome after a cancel, or a cancel after the outcome,
  is dropped.
* When the TTL passes, the task is gone and its handler is cancelled.
* A task runs only on the server that created it. If that server ends, the task has failed: the
  server writes so, or the next server that reads the record finds the heartbeat expired.
* Running tasks keep the server's lifespan open.
* A client's response is handed to the handler first and removed from the record afterwards, in an
  asyncio task that the cancellation of a request does not reach.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from msgspec.structs import replace

from ...accounts.shares import SharedLimit
from ...concurrency.backoff import backoff
from ...errors import RequestAborted, RequestError
from ...exception_text import as_redacted
from ...jsonrpc.peer.incoming import IncomingRequest
from ...spec.error_kinds import ErrorKind
from ...store.base import Store
from ...store.errors import StoreClosed, StoreError, StoreFull
from ..handler_run import handler_run_of
from ..limits import TaskSettings
from ..runner import RETRY_AFTER_MS
from .input_requests import InputCarriers, TaskAsker
from .progress import TaskProgress
from .records import (
    Record,
    RetainedTask,
    TaskChange,
    TaskOutcome,
    TaskRecords,
    TaskRetention,
    new_id,
    requestor_id,
    with_message,
    without_responses,
)
from .result_waiters import ResultWaiters
from .runner import TaskRunner

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from ..runtime import ServerRuntime
    from .dialect import TaskConnection, TaskDialect, TaskRequest

__all__ = ["RunningTask", "Tasks"]

_log: Final = logging.getLogger("trunkline.server")

T = TypeVar("T")

# Records read concurrently in the periodic check: the store has other users.
_MAX_CONCURRENT_CHECKS: Final = 50
# For cancelled handlers to clean up, and for the store to record their end.
_CLEANUP_TIMEOUT_S: Final = 1.0
# Backoff while the store does not accept the outcome of a task.
_MIN_RETRY_DELAY_S: Final = 0.1
_MAX_RETRY_DELAY_S: Final = 5.0

_RUNNER_GONE: Final = "The server that ran the task has ended."
_TOO_LARGE: Final = "The result is too large to store."
_NO_ROOM: Final = "The store has no room for the result."


class RunningTask(Generic[Record]):
    """A task whose handler runs in this server."""

    def __init__(
        self, request: TaskRequest, record: Record, requestor: str, client: str | None
    ) -> None:
        self.request = request
        self.connection: TaskConnection = request.connection
        # The record as created.
        self.record = record
        self.tenant = record.tenant
        self.id = record.id
        # For the limits of one requestor, and for its list of tasks; for the share of a client, the
        # key of its account.
        self.requestor = requestor
        self.client = client
        # Whether the request was answered and the handler runs without it.
        self.is_detached = False
        # Whether the record is final, so that the handler's outcome is dropped.
        self.is_over = False
        # What the handler reports, if the record shows it.
        self.progress: TaskProgress | None = None
        # Of the result in the record, in bytes.
        self.size = 0
        # The state that was last sent in a notification.
        self.notified_status: str = record.status
        self.notified_at = record.updated
        # Of open questions, by key; and what raises ValueError for a response that does not fit.
        self.input_futures: dict[str, asyncio.Future[Any]] = {}
        self.input_checks: dict[str, Callable[[Any], None]] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.lifespan: AbstractAsyncContextManager[None] | None = None
        loop = self.connection.loop
        # What the handler returned; and resolved when the task is forgotten.
        self.outcome: asyncio.Future[Any] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()

    @property
    def handler_task(self) -> asyncio.Task[None]:
        """The asyncio task of the handler."""
        task = self.request.task
        assert task is not None  # set before the handler could detach
        return task

    def set_outcome(self, outcome: Any) -> None:
        """Record what the handler returned; None if it was cancelled."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)

    def stop(self) -> None:
        """Cancel the handler: the record is final."""
        self.is_over = True
        # Once: a second cancellation would interrupt its cleanup.
        if self.is_detached and not self.request.cancelled:
            self.request.stop()


class Tasks(Generic[Record]):
    """The tasks of one server, in one protocol."""

    def __init__(
        self,
        name: str,
        runtime: ServerRuntime,
        store: Store,
        settings: TaskSettings,
        dialect: TaskDialect[Record],
    ) -> None:
        self._name = name
        self._runtime = runtime
        self.settings = settings
        self.dialect = dialect
        self.records = TaskRecords(store, dialect.record_type)
        self.running: dict[str, RunningTask[Record]] = {}
        accounts = runtime.accounts
        self._shared = SharedLimit(settings.running, accounts.shares, accounts)
        waiting = SharedLimit(settings.waiting_results, accounts.shares, accounts)
        self.result_waiters = ResultWaiters(dialect, waiting, settings.waiting_results_each)
        self.retention = TaskRetention[Record](settings.kept_each, settings.kept_bytes_each)
        self.carriers = InputCarriers(self)
        self._runner = TaskRunner(store, self._check_all, self._wake)
        # Random ids of connections without a principal.
        self._requestors: dict[TaskConnection, str] = {}
        self._spawned: set[asyncio.Task[Any]] = set()
        self._ends: set[asyncio.Task[None]] = set()
        # The loop of the running tasks.
        self._loop: asyncio.AbstractEventLoop | None = None
        # Seconds the last connection spent waiting for results. Counted against the grace period
        # of the server, since a client that waits for the process to exit sees one delay.
        self.waited = 0.0
        # Whether new tasks are rejected because the server shuts down.
        self.is_stopping = False

    def __repr__(self) -> str:
        return f"<Tasks of {self._name!r}: {len(self.running)} running>"

    # -- start -------------------------------------------------------------------------------

    async def begin(self, request: TaskRequest, *, ttl: float | None) -> None:
        """Turn a call into a task: store its record, detach its handler, answer its request.

        Raises:
            RequestError: a limit is reached, the store is unavailable, or the server shuts down.
            RequestAborted: the call has ended meanwhile.
            SuspendHandler: client requests go out first; the client retries the call.
        """
        run = handler_run_of(request)
        if run.round is not None:
            await run.round.give_way()
        if self.is_stopping or request.connection.runner.is_stopping:
            raise _unavailable(ErrorKind.SERVICE_UNAVAILABLE)
        requestor = self.requestor(request)
        own = sum(each.requestor == requestor for each in self.running.values())
        account = request.connection.runner.account
        client = None if account is None else account.key
        of_client = 0 if client is None else sum(e.client == client for e in self.running.values())
        self._shared.used = len(self.running)
        if own >= self.settings.running_each or not self._shared.admits(of_client):
            raise _unavailable(ErrorKind.OVERLOADED)
        tenancy = self._runtime.tenancy
        if tenancy is not None:
            tenant = request.tenant
            theirs = sum(each.tenant == tenant for each in self.running.values())
            if not tenancy.has_task_room(tenant, theirs, self.settings.running):
                raise _unavailable(ErrorKind.OVERLOADED)
        progress = run.progress if isinstance(run.progress, TaskProgress) else None
        message = "" if progress is None else progress.first_message()
        record = self._new_record(request, ttl, message)
        running = RunningTask(request, record, requestor, client)
        running.progress = progress
        self.running[record.id] = running  # counted before the first await
        self._loop = running.connection.loop
        try:
            record = await self._store(running, record)
            if run.round is not None:
                await run.round.give_way()  # for client requests made meanwhile
        except BaseException as error:
            # A cancellation included: the record may have been written.
            await self._forget(running)
            await self._remove(running, record)
            if isinstance(error, StoreError):
                kind, name = self.dialect.kind, request.name
                _log.warning("%s %r: task not started, store error: %s", kind, name, error)
                raise _unavailable(ErrorKind.SERVICE_UNAVAILABLE) from None
            raise
        self._detach(running, record)

    def _new_record(self, request: TaskRequest, ttl: float | None, message: str) -> Record:
        settings, now = self.settings, self.records.clock()
        wanted = settings.ttl if ttl is None else ttl
        bound = settings.longest_ttl
        if bound is not None:
            wanted = bound if wanted is None else min(wanted, bound)
        kind = self.dialect.record_type
        return kind(
            id=new_id(),
            tenant=request.tenant or "",
            owner=request.principal_key,
            runner="",
            created=now,
            updated=now,
            ttl=wanted,
            status=kind.statuses.initial,
            status_message=message,
            **self.dialect.members(request, settings),
        )

    async def _store(self, running: RunningTask[Record], record: Record) -> Record:
        await self._runner.begin()
        lifespan = self._runtime.opened()
        await lifespan.__aenter__()
        running.lifespan = lifespan
        record = replace(record, runner=self._runner.name)
        await self.records.add(record, self._listing(running.requestor, record))
        if running.is_over or self.is_stopping:
            raise _unavailable(ErrorKind.SERVICE_UNAVAILABLE)
        request = running.request
        if request.message not in running.connection.peer.incoming:
            # The handler did not await this, and has returned.
            raise RequestAborted("the call has ended", method=request.method)
        return record

    def _detach(self, running: RunningTask[Record], record: Record) -> None:
        # Synchronous: between detaching the handler and answering, no other code may run.
        request, connection, loop = running.request, running.connection, running.connection.loop
        running.is_detached = True
        connection.runner.detach(request, running.set_outcome)
        end = loop.create_task(_logged(self._run_to_end(running)))
        self._ends.add(end)
        end.add_done_callback(self._ends.discard)
        run = handler_run_of(request)
        run.asker = TaskAsker(self, running, run.round)
        run.outlet = partial(self._report, running)
        if running.progress is not None:
            running.progress.attach(loop, self.spawn, partial(self._show, running))
        left = record.remaining(self.records.clock())
        if left is not None:
            running.timer = loop.call_later(max(left, 0), self._expire, running)
        created = self.dialect.created(record, request)
        connection.answer(request.message, created, request.policy)

    async def _remove(self, running: RunningTask[Record], record: Record) -> None:
        try:
            async with asyncio.timeout(_CLEANUP_TIMEOUT_S):
                await self.records.remove(record, self._listing(running.requestor, record))
        except (StoreError, TimeoutError) as error:
            _log.warning("record of a task that did not start may remain in the store: %r", error)

    def _listing(self, requestor: str, record: Record) -> str | None:
        """Return where a task is listed; None if its requestor does not find it without its id."""
        return requestor if self.dialect.is_listed(record) else None

    def requestor(self, request: TaskRequest) -> str:
        """Return the identity that limits apply to: the principal, the client or the connection."""
        principal = request.principal
        if principal is not None:
            return requestor_id(f"principal {principal.key}")
        connection: TaskConnection = request.connection
        client = connection.client_key
        if client is not None:
            return requestor_id(f"client {client}")
        made = requestor_id(f"connection {new_id()}")
        if connection.peer.is_closed:
            return made  # `release` has run: an entry would never be removed
        return self._requestors.setdefault(connection, made)

    # -- while it runs -----------------------------------------------------------------------

    def _report(self, running: RunningTask[Record], method: str, params: Any) -> None:
        if not running.is_over:
            self.dialect.report(running.record, running.request, method, params)

    async def _show(self, running: RunningTask[Record], message: str) -> None:
        """Show the progress of a running task as its status message."""
        to = partial(with_message, message=message)
        change = await self.records.change(running.tenant, running.id, to)
        if change.is_ours and change.record is not None and not running.is_over:
            self.notify_status(running, change.record)

    def notify_status(self, running: RunningTask[Record], record: Record) -> None:
        """Notify clients of a new state; a state older than the last one sent is dropped."""
        if record.updated < running.notified_at:
            return
        is_new = record.status != running.notified_status
        self.dialect.notify_status(record, running.request, is_new=is_new)
        running.notified_status, running.notified_at = record.status, record.updated

    async def change(
        self, record: Record, to: Callable[[Record], Record | None]
    ) -> TaskChange[Record]:
        """Change a task for a client, and propagate the change even if the request is cancelled.

        Raises:
            StoreError: the change may have been applied, or not.
        """

        async def work() -> TaskChange[Record]:
            change = await self.records.change(record.tenant, record.id, to)
            self.propagate(change)
            return change

        return await asyncio.shield(self.track(work()))

    def propagate(self, change: TaskChange[Record]) -> None:
        """Act on a changed record here, or wake the server that runs the task.

        A change that was not applied is propagated too: it may repeat one whose reply was lost.
        """
        record = change.record
        if record is None:
            return
        running = self.running.get(record.id)
        if running is not None:
            self.spawn(self.sync(running))
        elif change.is_ours or record.is_over or record.responses:
            self.spawn(self._runner.wake(record.runner, record.id))
        if record.is_over:
            self.settle(record.tenant, record.id, record)

    async def sync(self, running: RunningTask[Record]) -> None:
        """Read the record of a running task: deliver responses, stop the handler if it is final."""
        record = await self.records.get(running.tenant, running.id)
        if running.is_over or not running.is_detached:
            return
        if record is None or record.is_over:
            running.stop()
            if record is not None:
                self.notify_status(running, record)
            self.settle(running.tenant, running.id, record)
            return
        for key, response in record.responses.items():
            future = running.input_futures.get(key)
            if future is not None and not future.done():
                future.set_result(response)
        if record.status != running.notified_status or record.updated > running.notified_at:
            self.notify_status(running, record)
        self.carriers.offer(record)
        if record.responses:
            # All are delivered or unwanted by now; delivering one twice has no effect.
            to = partial(without_responses, keys=record.responses)
            await self.records.change(running.tenant, running.id, to, quietly=True)

    async def fail_if_orphaned(self, record: Record) -> Record | None:
        """Return the current record; it has failed if the server that ran the task is gone."""
        running = self.running.get(record.id)
        if running is not None and record.is_over and not running.is_over:
            self.spawn(self.sync(running))  # the wake-up message was lost
        if record.is_over or running is not None:
            return record
        # A task of this server would be in `running`.
        is_ours = record.runner == self._runner.name
        if not is_ours and await self._runner.is_alive(record.runner):
            return record
        outcome = self.dialect.failure(record, None, _RUNNER_GONE)
        change = await self.records.change(record.tenant, record.id, outcome.applied_to)
        if change.is_ours and change.record is not None:
            self.dialect.notify_status(change.record, None, is_new=True)
        return change.record

    def settle(self, tenant: str, id: str, record: Record | None) -> None:
        """Answer the requests that wait for a finished task and withdraw its questions."""
        self.carriers.drop(id)
        self.result_waiters.settle(tenant, id, record)

    async def watch(self, tenant: str, id: str) -> None:
        """Read a task for the requests that wait for it here; it may run on another server."""
        found = await self.records.get(tenant, id)
        record = None if found is None else await self.fail_if_orphaned(found)
        if record is None or record.is_over:
            self.settle(tenant, id, record)
        else:
            self.carriers.offer(record)

    async def _check_all(self) -> None:
        self.retention.tidy(self.records.clock())
        checks: list[Callable[[], Coroutine[Any, Any, None]]] = [
            *(partial(self.sync, running) for running in self.running.values()),
            *(
                partial(self.watch, tenant, id)
                for tenant, id in self.result_waiters.tasks()
                if id not in self.running
            ),
        ]
        for at in range(0, len(checks), _MAX_CONCURRENT_CHECKS):
            await asyncio.gather(*(check() for check in checks[at : at + _MAX_CONCURRENT_CHECKS]))

    async def _wake(self, id: str) -> None:
        running = self.running.get(id)
        if running is not None:
            await self.sync(running)

    # -- end of a task -----------------------------------------------------------------------

    async def _run_to_end(self, running: RunningTask[Record]) -> None:
        """Wait for the handler and write its outcome, unless the record is final already."""
        try:
            try:
                outcome = await running.outcome
            except asyncio.CancelledError:
                # The event loop shuts down, and has cancelled the handler as well. A second
                # cancellation would interrupt its cleanup.
                running.is_over = running.request.cancelled = True
                await asyncio.wait([running.handler_task], timeout=_CLEANUP_TIMEOUT_S)
                raise
            if not running.is_over:
                await self._conclude(running, self._outcome(running, outcome))
        finally:
            await self._forget(running)

    def _outcome(self, running: RunningTask[Record], outcome: Any) -> TaskOutcome:
        if outcome is None:
            return self._failure(running, _RUNNER_GONE)
        found = self.dialect.outcome(running.record, running.request, outcome)
        if found.message or running.progress is None:
            return found
        return found._replace(message=running.progress.last_message())

    def _failure(self, running: RunningTask[Record], message: str) -> TaskOutcome:
        return self.dialect.failure(running.record, running.request, message)

    async def _conclude(self, running: RunningTask[Record], outcome: TaskOutcome) -> None:
        """Write the outcome of a task, retrying until the store accepts it or the TTL passes."""
        delays = backoff(_MIN_RETRY_DELAY_S, _MAX_RETRY_DELAY_S)
        while not running.is_over:
            try:
                change = await self.records.change(running.tenant, running.id, outcome.applied_to)
            except StoreFull as full:
                kind, name = self.dialect.kind, running.request.name
                _log.error("%s %r: task result not stored: %s", kind, name, full)
                if outcome.message in (_TOO_LARGE, _NO_ROOM):
                    return  # the next reader finds the task orphaned
                text = _TOO_LARGE if full.bound == "value_bytes" else _NO_ROOM
                outcome = self._failure(running, text)
            except StoreClosed:
                return
            except StoreError as error:
                delay = next(delays)
                _log.warning("task outcome not stored, retrying in %.2g s: %s", delay, error)
                await asyncio.sleep(delay)
            else:
                running.is_over = True
                record = change.record
                if record is not None:
                    values = (record.result, record.error)
                    running.size = sum(memoryview(each).nbytes for each in values if each)
                    self.notify_status(running, record)
                self.settle(running.tenant, running.id, record)

    def _expire(self, running: RunningTask[Record]) -> None:
        running.stop()
        self.settle(running.tenant, running.id, None)

    async def _forget(self, running: RunningTask[Record]) -> None:
        if self.running.get(running.id) is not running:
            return
        del self.running[running.id]
        if running.timer is not None:
            running.timer.cancel()
        if running.progress is not None:
            running.progress.detach()
        if running.is_detached:
            retained = RetainedTask(running.record, running.size)
            requestor = running.requestor
            for record in self.retention.add(requestor, retained, self.records.clock()):
                self.spawn(self.records.remove(record, self._listing(requestor, record)))
        if not running.done.done():
            running.done.set_result(None)
        lifespan, running.lifespan = running.lifespan, None
        if lifespan is not None:
            await lifespan.__aexit__(None, None, None)

    # -- end of a connection, and of the server ----------------------------------------------

    def give_up(self, asked: IncomingRequest) -> None:
        """Drop a waiting request that its client has cancelled."""
        waiter = self.result_waiters.drop(asked)
        if waiter is not None:
            self.carriers.lose(waiter)

    def release(self, connection: TaskConnection) -> None:
        """Fail the waiting requests of a closing connection; its tasks continue."""
        self.result_waiters.release(connection)
        self._requestors.pop(connection, None)

    async def finish_results(self, connection: TaskConnection, seconds: float) -> None:
        """Wait up to `seconds` for the waiting requests of a closing connection."""
        begun = connection.loop.time()
        await self.result_waiters.finish(connection, seconds)
        self.waited = connection.loop.time() - begun

    def stop_soon(self, *, at_once: bool = False) -> None:
        """Stop tasks as `stop` does. May be called from any thread."""
        # Also without running tasks: a running handler may want to become one.
        self.is_stopping = self._runtime.is_open
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(partial(self.stop, at_once=at_once))
            except RuntimeError:
                pass  # the loop is closed: no task runs on it

    def stop(self, *, at_once: bool = False) -> None:
        """Reject new tasks, and end the running ones after the grace period, or `at_once`."""
        self.is_stopping = self._runtime.is_open
        if self.running:
            self.spawn(self.finish(0 if at_once else self._runtime.limits.grace))

    async def finish(self, seconds: float) -> None:
        """Wait up to `seconds` for the running tasks; mark the rest as failed and cancel them."""
        await self._wait(seconds)
        await asyncio.gather(*map(self._fail, list(self.running.values())))
        await self._wait(_CLEANUP_TIMEOUT_S)
        for running in list(self.running.values()):
            name = running.request.name
            _log.warning(
                "%s %r: task still runs %g s after it was cancelled",
                self.dialect.kind,
                name,
                _CLEANUP_TIMEOUT_S,
            )
            running.set_outcome(None)  # stop waiting for it
        # The last of them ends the lifespan if no connection is open. A store that hangs is not
        # waited for: other servers find the heartbeat expired.
        if self._ends:
            _, left = await asyncio.wait(self._ends, timeout=_CLEANUP_TIMEOUT_S)
            for end in left:
                end.cancel()
            if left:
                await asyncio.wait(left, timeout=_CLEANUP_TIMEOUT_S)

    async def _fail(self, running: RunningTask[Record]) -> None:
        try:
            async with asyncio.timeout(_CLEANUP_TIMEOUT_S):
                await self._conclude(running, self._failure(running, _RUNNER_GONE))
        except TimeoutError:
            _log.warning("task not marked as failed: no answer from the store")
        running.stop()

    async def _wait(self, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        while self.running and (left := until - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait([each.done for each in self.running.values()], timeout=left)

    async def close(self) -> None:
        """Cancel background work and remove the heartbeat, after the last connection and task."""
        self.is_stopping = False
        self._loop = None
        ours = asyncio.current_task()
        spawned = [each for each in self._spawned if each is not ours]
        for each in spawned:
            each.cancel()
        await asyncio.gather(*spawned, return_exceptions=True)
        await self._runner.close()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` in the background, logging its errors, until the server closes."""
        task = self.track(_logged(work))
        # Cancelled before its first step, it would warn that it was never awaited.
        task.add_done_callback(lambda _: work.close())
        return task

    def track(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` in a task that outlives its waiter, until the server closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)
        return task

    async def start_runner(self) -> None:
        """Start the periodic check, so that tasks of other servers are watched too."""
        await self._runner.begin()


def _unavailable(kind: str) -> RequestError:
    return RequestError(kind, data={"retryAfterMs": RETRY_AFTER_MS})


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except StoreError as error:
        _log.warning("store error while updating a task: %s", error)
    except Exception as error:  # noqa: BLE001  # a lifespan's, or ours; it has no caller
        _log.error("background work of a task failed\n%s", as_redacted(error))
