"""What one client has set going: handlers at work, requests that wait, and the order they run in.

`RequestRunner` runs the handlers of one connection and bounds them. Every request that comes here
leaves in one of three ways: its handler's outcome answers it, the server's end does, or it
was cancelled and nothing does. Finding a handler for a request is not its affair.

The rules that live here, and only here:

* A cancelled request is not answered, and its handler is stopped; what it still returns is
  dropped.                                  [MCP 2025-11-25, basic/utilities/cancellation]
* So many handlers are at work for one client, further requests wait in order, and one too
  many of those ends the connection. A request that was cancelled does not count.
* Where a policy says so the requests of a batch run one after the other.
* A handler that is detached goes on without its request: the connection counts, answers and
  stops it no more, and whoever detached it gets its outcome.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from inspect import isawaitable
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Raw

from ...concurrency.thread_pool import NoThreadFree
from ...errors import LocalProtocolError, TransportError
from ...jsonrpc.error_codes import named_error
from ...jsonrpc.incoming import IncomingRequest
from ...jsonrpc.messages import ErrorObject, RequestId
from ...jsonrpc.policy import Policy
from ...redaction import show
from ...spec.error_kinds import ErrorKind
from ...transports.base import HIGH_WATER
from ..context import Context
from ..errors import HandlerTimeout, as_redacted
from .handler_run import SuspendHandler, handler_run_of
from .middleware import invoke
from .params import ToolCall

if TYPE_CHECKING:
    from ...jsonrpc.peer import Peer
    from ...transports.base import Transport
    from ..core import ServerCore
    from ..registry.entries import Entry
    from .handler_run import HandlerRun

__all__ = ["RETRY_AFTER_MS", "RequestRunner", "ResultRenderer"]

_log: Final = logging.getLogger("trunkline.server")

# What a refusal for lack of room tells the client, in milliseconds.
RETRY_AFTER_MS: Final = 1000


class ResultRenderer(Protocol):
    """One kind of handler: what becomes of what it returns, and of what it raises."""

    def finish(self, entry: Any, context: Context, value: Any) -> Any:
        """Return the result as it is sent."""
        ...

    def fail(self, entry: Any, context: Context, error: BaseException) -> Any:
        """Return the result, or the `ErrorObject`, that says so."""
        ...


class RequestRunner:
    """The handlers of one connection."""

    __slots__ = (
        "_core",
        "_end",
        "_held",
        "_is_draining",
        "_is_turning",
        "_loop",
        "_new_task",
        "_peer",
        "_room",
        "_serve",
        "_transport",
        "_turns",
        "at_work",
        "is_stopping",
        "waiting",
    )

    def __init__(
        self,
        core: ServerCore,
        peer: Peer,
        transport: Transport,
        serve: Callable[[IncomingRequest], object],
        end: Callable[[TransportError], object],
    ) -> None:
        self._core = core
        self._peer = peer
        self._transport = transport
        # How a request that waited is served after all, and how the connection is ended.
        self._serve = serve
        self._end = end
        self._loop = loop = asyncio.get_running_loop()
        # What the loop would do, without asking for a factory each time.
        is_plain = loop.get_task_factory() is None and isinstance(loop, asyncio.BaseEventLoop)
        self._new_task = partial(asyncio.Task, loop=loop) if is_plain else loop.create_task
        self.at_work: dict[IncomingRequest, Context] = {}
        self.waiting: dict[IncomingRequest, None] = {}
        self._held = 0  # bytes, by those that wait
        self._room: list[asyncio.Future[None]] = []
        # Of batches whose requests run one after the other: those whose turn has not come.
        self._turns: dict[int, deque[IncomingRequest]] = {}
        self._is_draining = False
        self._is_turning = False
        # Whether new work is refused, because the server is to end.
        self.is_stopping = False

    # -- beginning ---------------------------------------------------------------------------

    def take(self, asked: IncomingRequest, policy: Policy) -> None:
        """Take in a request: serve it, or let it wait."""
        if self._transport.backlog > HIGH_WATER:
            self._hold(asked, policy)
        elif asked.slot is not None and policy.batch_order == "sequential":
            self._take_turn(asked)
        else:
            self._serve(asked)

    def begin(self, work: ResultRenderer, entry: Entry, values: Any, context: Context) -> None:
        """Run the handler of a request, now or when there is room."""
        core, asked = self._core, context._asked
        waits = self.waiting and not (self._is_draining or self._is_turning)
        if waits or len(self.at_work) >= core.limits.in_flight:
            self._hold(asked, context._rev.policy)
        elif core.in_flight >= core.limits.in_flight_overall or self.is_stopping:
            kind = ErrorKind.SERVICE_UNAVAILABLE if self.is_stopping else ErrorKind.OVERLOADED
            self._refuse(asked, context._rev.policy, kind)
        else:
            core.in_flight += 1
            self.at_work[asked] = context
            plain = not (entry.arguments.is_async or entry.path or core.middleware)
            run = context._run
            if entry.inline and plain and (run is None or run.begin is None):
                self._run_inline(work, entry, values, context)
            else:
                context._task = self._new_task(self._run(work, entry, values, context))

    def _run_inline(self, work: ResultRenderer, entry: Any, values: Any, context: Context) -> None:
        """Run a handler here and now: its author said that it is quick."""
        try:
            value = entry.arguments.call(values, context)
            if isawaitable(value):
                context._task = self._new_task(self._run(work, entry, values, context, value))
                return
            outcome = (
                work.finish(entry, context, value)
                if context._run is None
                else _finished(work, entry, context, value)
            )
        except BaseException as error:  # noqa: BLE001  # SystemExit too: handlers end nothing
            outcome = self._failed(work, entry, context, error)
        self._done(context, outcome)

    async def _run(
        self, work: ResultRenderer, entry: Any, values: Any, context: Context, begun: Any = None
    ) -> None:
        """Run a handler as a task of its own, so that it can be cancelled."""
        try:
            if context._run is not None and context._run.begin is not None:
                await context._run.begin(context)
            if begun is not None:
                value = await begun
            elif entry.is_plain and not self._core.middleware:
                value = entry.arguments.call(values, context)
                # Or a wrapper around a coroutine function gave back something else.
                if type(value) is CoroutineType or isawaitable(value):
                    value = await value
            else:
                value = await self._call_guarded(entry, values, context)
            outcome = (
                work.finish(entry, context, value)
                if context._run is None
                else _finished(work, entry, context, value)
            )
        except BaseException as error:  # noqa: BLE001  # SystemExit too: handlers end nothing
            outcome = self._failed(work, entry, context, error)
        self._done(context, outcome)

    async def _call_guarded(self, entry: Any, values: Any, context: Context) -> Any:
        """Call a handler with what was switched on for it: middleware, a timeout, a thread."""
        if entry.timeout is None:
            return await invoke(self._core, entry, values, context)
        context.deadline = self._loop.time() + entry.timeout
        try:
            async with asyncio.timeout_at(context.deadline) as limit:
                context._limit = limit
                try:
                    return await invoke(self._core, entry, values, context)
                finally:
                    context._limit = None  # a task that it left behind may still ask
        except TimeoutError:
            if not limit.expired():
                raise  # one of the handler's own
        context.cancelled = True  # a handler on a thread has to look
        if context._run is not None:
            context._run.stop()  # or wait for something that nobody wants any more
        raise HandlerTimeout

    # -- ending ------------------------------------------------------------------------------

    def _failed(
        self, work: ResultRenderer, entry: Any, context: Context, error: BaseException
    ) -> Any:
        """Return what says that a handler failed, or None where nobody is to hear of it."""
        policy, run = context._rev.policy, context._run
        if run is not None and run.on_end is not None:
            # To whoever detached it, who knows why it was stopped; or the whole loop ends.
            stopped = isinstance(error, asyncio.CancelledError) and _is_stopped(context)
            return None if stopped else _told(work, entry, context, error)
        if context._asked not in self._peer.incoming:
            return None
        if run is not None and run.is_over and not _failed_by_itself(error):
            return _ending(context, run)
        if isinstance(error, asyncio.CancelledError) and self.is_stopping:
            return _unavailable(policy)
        if isinstance(error, NoThreadFree):
            return named_error(ErrorKind.OVERLOADED, policy=policy, retryAfterMs=RETRY_AFTER_MS)
        return _told(work, entry, context, error)

    def detach(self, context: Context, on_end: Callable[[Any], object]) -> None:
        """Let a handler go on without its request; `on_end` gets its outcome.

        That is what the client would be sent, or None if the handler was stopped. The request
        itself is still to be answered, by who detaches.
        """
        handler_run_of(context).on_end = on_end
        if self.at_work.pop(context._asked, None) is not None:
            self._core.in_flight -= 1
            self._go_on_after(context._asked)

    def _done(self, context: Context, outcome: Any) -> None:
        """Answer a request whose handler has ended, and begin what waited for that."""
        asked, run = context._asked, context._run
        if run is not None and run.on_end is not None:
            run.on_end(outcome)
            run.end()
            return
        try:
            if outcome is not None:
                self.answer(asked, outcome, context._rev.policy)
        finally:
            del self.at_work[asked]
            self._core.in_flight -= 1
            if run is not None:
                run.end()
        self._go_on_after(asked)

    def _go_on_after(self, asked: IncomingRequest) -> None:
        if self._turns and asked.slot is not None:
            self._end_turn(asked)
        if self.waiting:
            self.drain()

    def answer(self, asked: IncomingRequest, outcome: Any, policy: Policy) -> None:
        """Answer a request, with a result or an `ErrorObject`; a cancelled one is left alone."""
        try:
            if type(outcome) is ErrorObject:
                self._peer.fail(asked, outcome)
            else:
                self._peer.answer(asked, outcome)
        except LocalProtocolError as error:
            _log.error("the answer to %s cannot be written: %s", asked.method, error)
            self._peer.fail(asked, named_error(ErrorKind.INTERNAL_ERROR, policy=policy))

    def cancel(self, id: RequestId) -> None:
        """Stop serving a request, and do not answer it; one that is not open is ignored."""
        asked = self._peer.incoming.find(id)
        if asked is None:
            return
        context = self.at_work.get(asked)
        self._peer.drop(asked)
        self._core.request_cancelled(asked)
        self._let_go(asked)
        if context is not None:
            self._stop(context)
        elif self._turns and asked.slot is not None:
            self._end_turn(asked)

    def cancel_all(self) -> None:
        """Stop every handler; who is answered what is for `finish` to see to."""
        for context in list(self.at_work.values()):
            self._stop(context)

    def _stop(self, context: Context) -> None:
        context._stop()
        task = context._task
        if task is not None:
            # A task that is cancelled before its first step never runs, not even its `except`.
            task.add_done_callback(lambda _: self._never_begun(context))

    def _never_begun(self, context: Context) -> None:
        if context._asked in self.at_work:
            self._done(context, _unavailable(context._rev.policy))

    async def finish(self, seconds: float, cleanup: float, policy: Policy) -> None:
        """Let handlers finish for so long; then stop those that are left, and answer for them."""
        await self._wait(seconds)
        self.is_stopping = True
        self.cancel_all()
        await self._wait(cleanup)
        for asked, context in self.at_work.items():
            what = show(context.name)
            _log.warning("%s %s does not end though it was cancelled", asked.method, what)
        turns = [asked for others in self._turns.values() for asked in others]
        for asked in (*self.at_work, *self.waiting, *turns):
            self._peer.fail(asked, _unavailable(policy))
        self.waiting.clear()
        self._turns.clear()

    async def _wait(self, seconds: float) -> None:
        """Wait for handlers at work, those that wait for their turn included."""
        until = self._loop.time() + seconds
        while (self.at_work or self.waiting) and (left := until - self._loop.time()) > 0:
            tasks = (context._task for context in self.at_work.values())
            waits: list[asyncio.Future[None]] = [task for task in tasks if task is not None]
            if not waits:
                # What is left waits for the client to read.
                waits = [self._loop.create_future()]
                self._room += waits
            await asyncio.wait(waits, timeout=left)

    # -- room --------------------------------------------------------------------------------

    async def room(self) -> None:
        """Wait until the client has read most of what was written, or is gone."""
        if self._transport.backlog > HIGH_WATER and not self.is_stopping:
            future = self._loop.create_future()
            self._room.append(future)
            await future

    def drain(self) -> None:
        """Go on with what waited: there is room again."""
        room, self._room = self._room, []
        for future in room:
            if not future.done():
                future.set_result(None)
        if self._is_draining:  # an inline handler has ended: whoever began it goes on
            return
        self._is_draining = True
        waiting, most, transport = self.waiting, self._core.limits.in_flight, self._transport
        try:
            while waiting and len(self.at_work) < most and transport.backlog <= HIGH_WATER:
                asked = next(iter(waiting))
                self._let_go(asked)
                self._serve(asked)
                if self._turns and asked.slot is not None and asked not in self.at_work:
                    self._end_turn(asked)  # it was refused, or done at once
        finally:
            self._is_draining = False

    def _hold(self, asked: IncomingRequest, policy: Policy) -> None:
        """Let a request wait; one too many ends the connection, one too large is refused."""
        limits = self._core.limits
        size = _size(asked)
        if len(self.waiting) >= limits.waiting:
            self._refuse(asked, policy, ErrorKind.OVERLOADED)
            self._end(TransportError(f"the client has {limits.waiting} requests waiting"))
        elif self._held + size > limits.waiting_bytes:
            self._refuse(asked, policy, ErrorKind.OVERLOADED)
        else:
            self._held += size
            self.waiting[asked] = None

    def _let_go(self, asked: IncomingRequest) -> None:
        if asked in self.waiting:
            del self.waiting[asked]
            self._held -= _size(asked)

    def _refuse(self, asked: IncomingRequest, policy: Policy, kind: str) -> None:
        self._peer.fail(asked, named_error(kind, policy=policy, retryAfterMs=RETRY_AFTER_MS))

    # -- one after the other -----------------------------------------------------------------

    def _take_turn(self, asked: IncomingRequest) -> None:
        batch = id(asked.slot[0])
        turns = self._turns.get(batch)
        if turns is None:
            self._turns[batch] = deque()
            self._go_on(batch, asked)
        else:
            turns.append(asked)

    def _end_turn(self, asked: IncomingRequest) -> None:
        """Begin the next request of a batch, now that this one is done with, or cancelled."""
        batch = id(asked.slot[0])
        turns = self._turns.get(batch)
        if turns is None or self._is_turning:
            return  # in no particular order, or whoever began this one goes on
        if asked in turns:
            turns.remove(asked)
        else:
            self._go_on(batch, turns.popleft() if turns else None)

    def _go_on(self, batch: int, asked: IncomingRequest | None) -> None:
        """Serve requests of a batch until one is still at work."""
        self._is_turning = True
        try:
            while asked is not None:
                if asked in self._peer.incoming:  # or it was cancelled meanwhile
                    self._serve(asked)
                if asked in self.at_work or asked in self.waiting:
                    return  # its end goes on from here
                turns = self._turns[batch]
                asked = turns.popleft() if turns else None
            del self._turns[batch]
        finally:
            self._is_turning = False


def _failed_by_itself(error: BaseException) -> bool:
    """Say whether a handler has failed for another reason than that its round is over."""
    found: BaseException | None = error
    while found is not None and isinstance(error, Exception):
        if isinstance(found, SuspendHandler):
            return False  # it was caught, and this is what came of it
        found = found.__cause__ or found.__context__
    return isinstance(error, Exception)


def _is_stopped(context: Context) -> bool:
    """Say whether a handler was told to stop, by us or by whoever ends the loop."""
    return context.cancelled or (context._task is not None and context._task.cancelling() > 0)


def _alone(error: BaseException) -> BaseException:
    """Return what was raised, without the groups that hold nothing else."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _finished(work: ResultRenderer, entry: Any, context: Context, value: Any) -> Any:
    """Return the outcome of a handler that has returned."""
    run = context._run
    if run is not None and run.is_over and run.on_end is None:
        return _ending(context, run)  # it caught what was to end it
    return work.finish(entry, context, value)


def _ending(context: Context, run: HandlerRun) -> Any:
    """Return the questions of a handler that was ended for them."""
    if run.round is None:
        raise ValueError("this handler was not ended")
    try:
        return run.round.ending()
    except Exception as error:  # noqa: BLE001  # ours; the client is not left waiting
        _log.error("%s cannot ask\n%s", context.method, as_redacted(error))
        return named_error(ErrorKind.INTERNAL_ERROR, policy=context._rev.policy)


def _told(work: ResultRenderer, entry: Any, context: Context, error: BaseException) -> Any:
    """Return how it is said that a handler failed."""
    try:
        return work.fail(entry, context, _alone(error))
    except Exception as another:  # noqa: BLE001  # an exception that cannot even be shown
        _log.error("%s cannot tell how it failed\n%s", context.method, as_redacted(another))
        return named_error(ErrorKind.INTERNAL_ERROR, policy=context._rev.policy)


def _unavailable(policy: Policy) -> ErrorObject:
    """Return what a request is answered whose handler the server did not let finish."""
    return named_error(ErrorKind.SERVICE_UNAVAILABLE, policy=policy, retryAfterMs=RETRY_AFTER_MS)


def _size(asked: IncomingRequest) -> int:
    """Return how many bytes a request that waits keeps."""
    params = asked.params
    if type(params) is ToolCall:
        return sum(_length(getattr(params, name)) for name in params.__struct_fields__)
    return _length(params)


def _length(raw: Any) -> int:
    return memoryview(raw).nbytes if isinstance(raw, Raw) else 0
