"""What a task asks its client: through its record, so that any server can bring the answer.

A question is put into the record, and the handler waits until the answer is there. In the
extension's form clients read it with `tasks/get` and answer with `tasks/update`. In the core's
it has to be sent as a request: a call of `tasks/result` that waits carries it, in whichever
server that call has come to, and writes the answer into the record just so.

The rules that live here, and only here:

* So many questions of a task may be open at once.
* A question goes out as long as somebody waits for its answer, and only then. When the call
  that carries it is lost, another one does.
* What a client has answered is not asked again because a store does not answer.
* What carries a question names the task.     [MCP 2025-11-25, basic/utilities/tasks]
* `once` simply does its work: a task is never run again. What rounds before it have brought
  counts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw
from msgspec.json import Decoder, encode

from ...errors import LocalProtocolError, PeerError, RequestAborted, RequestTimeout, ToolError
from ...jsonrpc.error_codes import peer_error
from ...jsonrpc.messages import ErrorObject
from ...jsonrpc.policy import Policy
from ...mcp.types import InputRequest, ListRootsRequestParams
from ...store.errors import StoreError, StoreFull, StoreUnavailable
from ...store.values import Lease
from ..client_requests import capabilities as asks
from ..dispatch.handler_run import Ending, course_of
from . import wire as forms
from .records import InputResponse, TaskRecord, answered, with_question, without_question

if TYPE_CHECKING:
    from ..dispatch.handler_run import Question
    from .lifecycle import RunningTask, Tasks
    from .result_waiters import ResultWaiter

__all__ = ["InputCarriers", "TaskAsker", "method_of"]

_log: Final = logging.getLogger("trunkline.server")

# How long a handler that stops waiting may take to say so to the store, in seconds.
_WITHDRAW_TIMEOUT_S: Final = 1.0
# How long a store that does not answer is tried for a question, or for its answer, in seconds:
# somebody has thought about that one.
_STORE_TIMEOUT_S: Final = 30.0
# How long a server that carries a question has the right to, in seconds; it renews that in time.
# When it dies another one may ask after so long.
_LEASE_TTL_S: Final = 5.0

_read: Final[Decoder[InputRequest]] = Decoder(InputRequest)


def method_of(question: Raw) -> str:
    """Return by which method a question of a task is asked."""
    return _read.decode(question).method


class TaskAsker:
    """Asks through the record of a task."""

    __slots__ = ("_before", "_running", "_tasks")

    def __init__(self, tasks: Tasks, running: RunningTask, before: Ending | None) -> None:
        self._tasks = tasks
        self._running = running
        # What was learnt in rounds before the call was a task.
        self._before = before

    async def ask(self, question: Question) -> Raw:
        """Return what the client answered, unread.

        Raises:
            PeerError: it answered with an error.
            RequestTimeout: it took longer than the handler, or the server, waits.
            RequestAborted: the task has ended, and left what asks behind.
        """
        known = None if self._before is None else self._before.known(question)
        if known is not None:
            return known
        context = self._running.context
        course = course_of(context)
        try:
            with course.paused(context):
                reply = await self._answer(question, course.waits)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if course.is_done and (task is None or not task.cancelling()):
                raise RequestAborted("the task has ended", method=question.method) from None
            raise
        return _result(reply, question, self._running.surface.policy)

    async def _answer(self, question: Question, waits: set[asyncio.Future[Any]]) -> InputResponse:
        running, key = self._running, question.key
        most = self._tasks.settings.open_inputs
        if len(running.waits) >= most:
            raise ToolError(f"No more than {most} questions can be open at once.")
        future: asyncio.Future[InputResponse] = asyncio.get_running_loop().create_future()
        running.waits[key] = future
        waits.add(future)
        try:
            async with asyncio.timeout(question.timeout):
                await self._put(question, future)
                return await future
        except BaseException as error:
            # Nobody waits for it any more; also when the handler was told to stop.
            await self._withdraw(key)
            if isinstance(error, TimeoutError):
                raise _late(question) from None
            raise
        finally:
            del running.waits[key]
            waits.discard(future)

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Do it: nothing is run again here, but it may have been done before."""
        done = None if self._before is None else self._before.done(key)
        return await work() if done is None else done

    async def _put(self, question: Question, future: asyncio.Future[InputResponse]) -> None:
        running = self._running
        request: dict[str, Any] = {"method": question.method}
        if question.params is not None:
            request["params"] = running.surface.narrowed(question.params)
        raw = Raw(encode(request))

        def to(record: TaskRecord) -> TaskRecord | None:
            # It may be there already, and even answered, though the store did not say so.
            return None if future.done() else with_question(record, question.key, raw)

        try:
            records = self._tasks.records
            change = await records.insist(running.tenant, running.id, to, _STORE_TIMEOUT_S)
        except (StoreFull, StoreUnavailable) as error:
            _log.error("%r cannot ask in its task: %s", running.context.name, error)
            raise ToolError("The question cannot be kept.") from None
        if change.record is None or change.record.is_over:
            running.stop()  # it has ended, and this is how we learn of it
            await asyncio.sleep(0)  # where the handler is stopped
            raise RequestAborted("the task has ended", method=question.method)
        self._tasks.tell(running, change.record)
        self._tasks.carriers.offer(change.record)

    async def _withdraw(self, key: str) -> None:
        running, tasks = self._running, self._tasks
        tasks.carriers.drop(running.id, key)
        if running.is_over:
            return
        try:
            async with asyncio.timeout(_WITHDRAW_TIMEOUT_S):
                to = partial(without_question, key=key)
                change = await tasks.records.change(running.tenant, running.id, to)
        except (StoreError, TimeoutError) as error:
            _log.warning("a question that nobody waits for stays in the store: %r", error)
            return
        if change.is_ours and change.record is not None:
            tasks.tell(running, change.record)


class _Carried:
    """A question on its way, and the call that carries it."""

    __slots__ = ("is_lost", "key", "question", "record", "waiter", "work")

    def __init__(self, waiter: ResultWaiter, record: TaskRecord, key: str, question: Raw) -> None:
        self.waiter = waiter
        self.record = record
        self.key = key
        self.question = question
        self.work: asyncio.Task[None] | None = None
        # Whether another call has to carry it.
        self.is_lost = False

    def stop(self) -> None:
        if self.work is not None:
            self.work.cancel()


class InputCarriers:
    """The questions that calls of this server are carrying to clients just now."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._at_work: dict[tuple[str, str], _Carried] = {}

    def offer(self, record: TaskRecord) -> None:
        """Send out what a task wants to know, where a call of its owner waits for it."""
        if record.form != "core":
            return  # whoever looks at the task sees it
        for key, question in record.questions.items():
            place = record.id, key
            waiter = None if place in self._at_work else self._find(record, question)
            if waiter is not None:
                carried = _Carried(waiter, record, key, question)
                self._at_work[place] = carried
                carried.work = self._tasks.spawn(self._carry(carried))
                carried.work.add_done_callback(partial(self._done, place))

    def _done(self, place: tuple[str, str], _: asyncio.Task[None]) -> None:
        carried = self._at_work.pop(place)
        if carried.is_lost:
            record = carried.record
            self._tasks.spawn(self._tasks.watch(record.tenant, record.id))

    def drop(self, id: str, key: str | None = None) -> None:
        """Ask no more, because the task has ended or the question was withdrawn."""
        for place, carried in list(self._at_work.items()):
            if place[0] == id and key in (None, place[1]):
                carried.stop()

    def lose(self, waiter: ResultWaiter) -> None:
        """Let others carry what a call did, which its client has cancelled."""
        for carried in list(self._at_work.values()):
            if carried.waiter is waiter:
                carried.is_lost = True
                carried.stop()

    def _find(self, record: TaskRecord, question: Raw) -> ResultWaiter | None:
        """Return a call that may carry a question: its client can be asked such things."""
        request = _read.decode(question)
        for waiter in self._tasks.waiting.open(record.tenant, record.id):
            if not waiter.can_carry:
                continue
            session = waiter.connection.session
            try:
                asks.check(session, waiter.surface, request.method, _params(request))
            except LocalProtocolError:
                continue
            return waiter
        return None

    async def _carry(self, carried: _Carried) -> None:
        """Ask a client, and write down what it says; a call that is lost leaves it to another."""
        records, record, key = self._tasks.records, carried.record, carried.key
        lease = await records.claim(record, key, _LEASE_TTL_S)
        if lease is None:
            return  # somebody is at it, maybe in another server
        renewing = self._tasks.spawn(self._renew(lease))
        try:
            reply = await self._ask(carried.waiter, record, _read.decode(carried.question))
            if reply is None:
                carried.waiter.can_carry = False
                carried.is_lost = True
                return
            # From here on nothing stops it: it would have to be asked again.
            await asyncio.shield(self._tasks.track(self._bring(record, key, reply)))
        finally:
            renewing.cancel()
            await records.unclaim(lease)

    async def _bring(self, record: TaskRecord, key: str, reply: InputResponse) -> None:
        to = partial(answered, replies={key: reply})
        change = await self._tasks.records.insist(record.tenant, record.id, to, _STORE_TIMEOUT_S)
        self._tasks.pass_on(change)

    async def _renew(self, lease: Lease) -> None:
        while True:
            await asyncio.sleep(_LEASE_TTL_S / 3)
            try:
                await self._tasks.records.keep_claim(lease, _LEASE_TTL_S)
            except StoreUnavailable as error:
                _log.warning("the right to carry a question is not renewed: %s", error)

    async def _ask(
        self, waiter: ResultWaiter, record: TaskRecord, request: InputRequest
    ) -> InputResponse | None:
        """Return what a client says to a question; None where nobody will know."""
        connection, surface = waiter.connection, waiter.surface
        params = forms.message_of(_params(request), record.id, surface)
        try:
            raw = await connection.ask(waiter.asked, surface, request.method, params, None)
        except PeerError as error:
            data = UNSET if error.data is None else error.data
            return InputResponse(error=ErrorObject(error.code, error.message, data))
        except RequestTimeout:
            return InputResponse(is_late=True)
        except RequestAborted:
            return None
        return InputResponse(result=raw)


def _params(request: InputRequest) -> Any:
    return ListRootsRequestParams() if request.params is UNSET else request.params


def _late(question: Question) -> RequestTimeout:
    return RequestTimeout("no answer from the client in time", method=question.method)


def _result(reply: InputResponse, question: Question, policy: Policy) -> Raw:
    """Return what a reply brought.

    Raises:
        PeerError: it is an error.
        RequestTimeout: there was none in time.
    """
    if reply.result is not UNSET:
        return reply.result
    if reply.error is UNSET:
        raise _late(question)
    raise peer_error(reply.error, question.method, policy)
