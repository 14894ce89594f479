"""Client requests of tasks: questions and responses travel through the task record.

The handler writes a question into the record and waits for its response there. Clients find the
question in the state of the task and respond about the task; or, if the dialect says so, it is
sent on an open request that waits for the task (its carrier), on any server of the store, and the
carrier writes the response into the record.

The rules that live here, and only here:

* The number of open questions of a task is limited.
* A question is sent only while a handler waits for its response, on exactly one carrier. When its
  carrier is lost, the next one sends it.
* A question the client has answered is not sent again because the store is unavailable.
* `once` runs its work: a task is never replayed. Results from round trips before the call became
  a task are reused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic

from msgspec import UNSET, Raw

from ...errors import RequestAborted, RequestTimeout, ToolError
from ...jsonrpc.error_codes import peer_error
from ...jsonrpc.policy import Policy
from ...store.errors import StoreError, StoreFull, StoreUnavailable
from ...store.values import Lease
from ..handler_run import RoundTripState, handler_run_of
from .records import InputResponse, Record, answered, with_question, without_question

if TYPE_CHECKING:
    from ..handler_run import InputQuestion
    from .lifecycle import RunningTask, Tasks
    from .result_waiters import ResultWaiter

__all__ = ["InputCarriers", "TaskAsker"]

_log: Final = logging.getLogger("trunkline.server")

# To remove a question from the record when its handler stops waiting.
_WITHDRAW_TIMEOUT_S: Final = 1.0
# Retries of an unavailable store for a question or its response, which a person may have typed.
_STORE_TIMEOUT_S: Final = 30.0
# Lease of the server that carries a question, renewed three times as often. After a crash another
# server may send the question when the lease expires.
_LEASE_TTL_S: Final = 5.0


class TaskAsker(Generic[Record]):
    """Asker of a running task: sends client requests through the task record."""

    __slots__ = ("_before", "_running", "_tasks")

    def __init__(
        self,
        tasks: Tasks[Record],
        running: RunningTask[Record],
        before: RoundTripState | None,
    ) -> None:
        self._tasks = tasks
        self._running = running
        # The round trips before the call became a task.
        self._before = before

    async def ask(self, question: InputQuestion) -> Raw:
        """Return the client's response, undecoded.

        Raises:
            PeerError: the client responded with an error.
            RequestTimeout: no response within the timeout of the handler or the server.
            RequestAborted: the task has ended; the caller is a task its handler left behind.
        """
        known = None if self._before is None else self._before.known(question)
        if known is not None:
            return known
        request = self._running.request
        run = handler_run_of(request)
        try:
            with run.paused(request):
                response = await self._response(question, run.waits)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if run.is_done and (task is None or not task.cancelling()):
                raise RequestAborted("the task has ended", method=question.method) from None
            raise
        return _result(response, question, request.policy)

    async def _response(
        self, question: InputQuestion, waits: set[asyncio.Future[Any]]
    ) -> InputResponse:
        running, key = self._running, question.key
        limit = self._tasks.settings.open_inputs
        if len(running.input_futures) >= limit:
            raise ToolError(f"No more than {limit} questions can be open at once.")
        future: asyncio.Future[InputResponse] = asyncio.get_running_loop().create_future()
        running.input_futures[key] = future
        if question.check is not None:
            running.input_checks[key] = question.check
        waits.add(future)
        try:
            async with asyncio.timeout(question.timeout):
                await self._put(question, future)
                return await future
        except BaseException as error:
            # The handler no longer waits for it; a cancellation included.
            await self._withdraw(key)
            if isinstance(error, TimeoutError):
                raise _timeout(question) from None
            raise
        finally:
            del running.input_futures[key]
            running.input_checks.pop(key, None)
            waits.discard(future)

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Return the result of an earlier run of the handler, or run `work`."""
        done = None if self._before is None else self._before.done(key)
        return await work() if done is None else done

    async def _put(self, question: InputQuestion, future: asyncio.Future[InputResponse]) -> None:
        running, dialect = self._running, self._tasks.dialect
        raw = dialect.question(question, running.request)

        def to(record: Record) -> Record | None:
            # An attempt whose reply was lost may have written it, and it may be answered by now.
            return None if future.done() else with_question(record, question.key, raw)

        try:
            records = self._tasks.records
            change = await records.change_with_retry(
                running.tenant, running.id, to, _STORE_TIMEOUT_S
            )
        except (StoreFull, StoreUnavailable) as error:
            name = running.request.name
            _log.error("%s %r: task question not stored: %s", dialect.kind, name, error)
            raise ToolError("The question cannot be stored.") from None
        if change.record is None or change.record.is_over:
            running.stop()  # its record is final or gone; no wake-up has arrived yet
            await asyncio.sleep(0)  # the cancellation of the handler arrives here
            raise RequestAborted("the task has ended", method=question.method)
        self._tasks.notify_status(running, change.record)
        self._tasks.carriers.offer(change.record)

    async def _withdraw(self, key: str) -> None:
        running, tasks = self._running, self._tasks
        tasks.carriers.drop(running.id, key)
        if running.is_over:
            return
        try:
            async with asyncio.timeout(_WITHDRAW_TIMEOUT_S):
                change = await tasks.records.change(
                    running.tenant, running.id, lambda record: without_question(record, key)
                )
        except (StoreError, TimeoutError) as error:
            _log.warning("withdrawn task question remains in the store: %r", error)
            return
        if change.is_ours and change.record is not None:
            tasks.notify_status(running, change.record)


class _CarriedQuestion(Generic[Record]):
    """A question on its way to the client, and its carrier."""

    __slots__ = ("is_lost", "key", "question", "record", "waiter", "work")

    def __init__(self, waiter: ResultWaiter, record: Record, key: str, question: Raw) -> None:
        self.waiter = waiter
        self.record = record
        self.key = key
        self.question = question
        self.work: asyncio.Task[None] | None = None
        # Whether another carrier has to send it.
        self.is_lost = False

    def stop(self) -> None:
        if self.work is not None:
            self.work.cancel()


class InputCarriers(Generic[Record]):
    """The questions that waiting requests of this server carry to clients now."""

    def __init__(self, tasks: Tasks[Record]) -> None:
        self._tasks = tasks
        self._in_flight: dict[tuple[str, str], _CarriedQuestion[Record]] = {}

    def offer(self, record: Record) -> None:
        """Send the open questions of a task that have a carrier and are not on their way."""
        if not self._tasks.dialect.is_carried(record):
            return
        for key, question in record.questions.items():
            place = record.id, key
            waiter = None if place in self._in_flight else self._find(record, question)
            if waiter is not None:
                carried = _CarriedQuestion(waiter, record, key, question)
                self._in_flight[place] = carried
                carried.work = self._tasks.spawn(self._carry(carried))
                carried.work.add_done_callback(partial(self._done, place))

    def _done(self, place: tuple[str, str], _: asyncio.Task[None]) -> None:
        carried = self._in_flight.pop(place)
        if carried.is_lost:
            record = carried.record
            self._tasks.spawn(self._tasks.watch(record.tenant, record.id))

    def drop(self, id: str, key: str | None = None) -> None:
        """Cancel the questions of a task that has ended, or one that was withdrawn."""
        for place, carried in list(self._in_flight.items()):
            if place[0] == id and key in (None, place[1]):
                carried.stop()

    def lose(self, waiter: ResultWaiter) -> None:
        """Move the questions of a carrier to others: its client has cancelled the request."""
        for carried in list(self._in_flight.values()):
            if carried.waiter is waiter:
                carried.is_lost = True
                carried.stop()

    def _find(self, record: Record, question: Raw) -> ResultWaiter | None:
        can_carry = self._tasks.dialect.can_carry
        for waiter in self._tasks.result_waiters.open(record.tenant, record.id):
            if waiter.can_carry and can_carry(question, waiter.request):
                return waiter
        return None

    async def _carry(self, carried: _CarriedQuestion[Record]) -> None:
        """Send a question and store its response; if the carrier is lost, leave it to another."""
        records, record, key = self._tasks.records, carried.record, carried.key
        lease = await records.claim(record, key, _LEASE_TTL_S)
        if lease is None:
            return  # sent by another carrier, maybe in another server
        renewing = self._tasks.spawn(self._renew(lease))
        try:
            request = carried.waiter.request
            response = await self._tasks.dialect.carry(record, carried.question, request)
            if response is None:
                carried.waiter.can_carry = False
                carried.is_lost = True
                return
            # Not cancelled from here on: the client would be asked a second time.
            await asyncio.shield(self._tasks.track(self._deliver(record, key, response)))
        finally:
            renewing.cancel()
            await records.release_claim(lease)

    async def _deliver(self, record: Record, key: str, response: InputResponse) -> None:
        change = await self._tasks.records.change_with_retry(
            record.tenant,
            record.id,
            lambda now: answered(now, {key: response}),
            _STORE_TIMEOUT_S,
        )
        self._tasks.propagate(change)

    async def _renew(self, lease: Lease) -> None:
        while True:
            await asyncio.sleep(_LEASE_TTL_S / 3)
            try:
                await self._tasks.records.renew_claim(lease, _LEASE_TTL_S)
            except StoreUnavailable as error:
                _log.warning("lease of a task question not renewed: %s", error)


def _timeout(question: InputQuestion) -> RequestTimeout:
    return RequestTimeout("no response from the client within the timeout", method=question.method)


def _result(response: InputResponse, question: InputQuestion, policy: Policy) -> Raw:
    if response.result is not UNSET:
        return response.result
    if response.error is UNSET:
        raise _timeout(question)
    raise peer_error(response.error, question.method, policy)
