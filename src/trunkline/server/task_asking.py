"""What a task asks its client: through its record, so that any server can bring the answer.

A question is put into the record, and the handler waits until the answer is there. In the
extension's form clients read it with `tasks/get` and answer with `tasks/update`. In the core's
it has to be sent as a request: a call of `tasks/result` that waits carries it, in whichever
server that call has come to, and writes the answer into the record just so.

The rules that live here, and only here:

* So many questions of a task may be open at once.
* A question goes out as long as somebody waits for its answer, and only then.
* What carries a question names the task.     [MCP 2025-11-25, basic/utilities/tasks]
* `once` simply does its work: a task is never run again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw
from msgspec.json import Decoder, encode

from ..errors import LocalProtocolError, PeerError, RequestEnded, TimedOut, ToolError
from ..jsonrpc.messages import ErrorObject
from ..jsonrpc.named import peer_error
from ..jsonrpc.policy import Policy
from ..mcp.types import InputRequest, ListRootsRequestParams
from ..store.failures import StoreError
from . import asking as asks
from . import task_forms as forms
from .task_records import Reply, TaskRecord, answered, asking, withdrawn

if TYPE_CHECKING:
    from .course import Question
    from .task_results import Waiter
    from .tasks import Running, Tasks

__all__ = ["Carriers", "TaskAsker", "method_of"]

_log: Final = logging.getLogger("trunkline.server")

# How long a handler that stops waiting may take to say so to the store, in seconds.
_CLEANUP: Final = 1.0

_read: Final[Decoder[InputRequest]] = Decoder(InputRequest)


def method_of(question: Raw) -> str:
    """Return by which method a question of a task is asked."""
    return _read.decode(question).method


class TaskAsker:
    """Asks through the record of a task."""

    __slots__ = ("_running", "_tasks")

    def __init__(self, tasks: Tasks, running: Running) -> None:
        self._tasks = tasks
        self._running = running

    async def ask(self, question: Question) -> Raw:
        """Return what the client answered, unread.

        Raises:
            PeerError: it answered with an error.
            TimedOut: it took longer than the handler, or the server, waits.
        """
        running, key = self._running, question.key
        most = self._tasks.settings.open_inputs
        if len(running.waits) >= most:
            raise ToolError(f"No more than {most} questions can be open at once.")
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        running.waits[key] = future
        try:
            async with asyncio.timeout(question.timeout):
                await self._put(question)
                reply = await future
        except BaseException as error:
            # Nobody waits for it any more; also when the handler was told to stop.
            await self._withdraw(key)
            if isinstance(error, TimeoutError):
                raise _late(question) from None
            raise
        finally:
            del running.waits[key]
        return _result(reply, question, running.surface.policy)

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Do it: nothing is run again here."""
        return await work()

    async def _put(self, question: Question) -> None:
        running = self._running
        request: dict[str, Any] = {"method": question.method}
        if question.params is not None:
            request["params"] = running.surface.narrowed(question.params)
        to = partial(asking, key=question.key, question=Raw(encode(request)))
        change = await self._tasks.records.change(running.tenant, running.id, to)
        if change.record is None or not change.is_ours:
            running.stop()  # it has ended, and this is how we learn of it
            await asyncio.sleep(0)  # where the handler is stopped
            raise RequestEnded("the task has ended", method=question.method)
        self._tasks.tell(running, change.record)
        self._tasks.carriers.offer(change.record)

    async def _withdraw(self, key: str) -> None:
        running, tasks = self._running, self._tasks
        tasks.carriers.drop(running.id, key)
        if running.is_over:
            return
        try:
            async with asyncio.timeout(_CLEANUP):
                to = partial(withdrawn, key=key)
                change = await tasks.records.change(running.tenant, running.id, to)
        except (StoreError, TimeoutError) as error:
            _log.warning("a question that nobody waits for stays in the store: %r", error)
            return
        if change.is_ours and change.record is not None:
            tasks.tell(running, change.record)


class Carriers:
    """The questions that calls of this server are carrying to clients just now."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._at_work: dict[tuple[str, str], asyncio.Task[None]] = {}

    def offer(self, record: TaskRecord) -> None:
        """Send out what a task wants to know, where a call of its owner waits for it."""
        if record.form != "core":
            return  # whoever looks at the task sees it
        for key, question in record.questions.items():
            place = record.id, key
            waiter = None if place in self._at_work else self._find(record, question)
            if waiter is not None:
                work = self._tasks.spawn(self._carry(waiter, record, key, question))
                self._at_work[place] = work
                work.add_done_callback(partial(self._done, place))

    def _done(self, place: tuple[str, str], work: asyncio.Task[None]) -> None:
        if self._at_work.get(place) is work:
            del self._at_work[place]

    def drop(self, id: str, key: str | None = None) -> None:
        """Ask no more, because the task has ended or the question was withdrawn."""
        for place, work in list(self._at_work.items()):
            if place[0] == id and key in (None, place[1]):
                work.cancel()

    def _find(self, record: TaskRecord, question: Raw) -> Waiter | None:
        """Return a call that may carry a question: its client can be asked such things."""
        request = _read.decode(question)
        for waiter in self._tasks.waiting.open(record.tenant, record.id):
            session = waiter.connection.session
            try:
                asks.check(session, waiter.surface, request.method, _params(request))
            except LocalProtocolError:
                continue
            return waiter
        return None

    async def _carry(self, waiter: Waiter, record: TaskRecord, key: str, question: Raw) -> None:
        """Ask a client, and write down what it says; a call that is lost leaves it to another."""
        tasks = self._tasks
        lease = await tasks.records.claim(record, key, tasks.app.limits.ask_timeout)
        if lease is None:
            return  # somebody is at it, maybe in another server
        try:
            reply = await self._ask(waiter, record, _read.decode(question))
            if reply is not None:
                to = partial(answered, replies={key: reply})
                change = await tasks.records.change(record.tenant, record.id, to)
        finally:
            await tasks.records.unclaim(lease)
        if reply is not None:
            await tasks.pass_on(change)

    async def _ask(self, waiter: Waiter, record: TaskRecord, request: InputRequest) -> Reply | None:
        """Return what a client says to a question; None where nobody will know."""
        connection, surface = waiter.connection, waiter.surface
        params = forms.message_of(_params(request), record.id, surface)
        try:
            raw = await connection.ask(waiter.asked, surface, request.method, params, None)
        except PeerError as error:
            data = UNSET if error.data is None else error.data
            return Reply(error=ErrorObject(error.code, error.message, data))
        except TimedOut:
            return Reply(is_late=True)
        except RequestEnded:
            return None
        return Reply(result=raw)


def _params(request: InputRequest) -> Any:
    return ListRootsRequestParams() if request.params is UNSET else request.params


def _late(question: Question) -> TimedOut:
    return TimedOut("no answer from the client in time", method=question.method)


def _result(reply: Reply, question: Question, policy: Policy) -> Raw:
    """Return what a reply brought.

    Raises:
        PeerError: it is an error.
        TimedOut: there was none in time.
    """
    if reply.result is not UNSET:
        return reply.result
    if reply.error is UNSET:
        raise _late(question)
    raise peer_error(reply.error, question.method, policy)
