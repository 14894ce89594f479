"""Running the handlers of one connection: concurrency limit, queue, timeout, cancellation.

Each request that a `RequestRunner` takes is answered with the outcome of its handler, or with
an error because the server stops, or it was cancelled and is not answered.

The rules that live here, and only here:

* A cancelled request is not answered, and its handler is stopped; what it still returns is
  dropped.                                  [MCP 2025-11-25, basic/utilities/cancellation]
* The number of running handlers is bounded; further requests wait in order, and too many of
  those close the connection. A cancelled request does not count.
* What a connection holds is bounded in bytes, and so is what a client with several connections
  and what the server hold; a request beyond that is refused before it is decoded. A connection
  without other requests, or a client that holds nothing, is not refused for its own bytes, so
  that one message of any permitted size always fits.
* No handler starts while the client does not read. A large result of a handler is dropped, and
  an error sent in its place, if the client has a whole budget of unread answers, a quarter of it
  in the batch of the request, or its share of the bytes of the server.
* A handler keeps its decoded arguments, not the frame they came in, unless the frame is small or
  the handler may ask its client inside a result: the digest of the request is made from the frame.
* The handler of a notification counts as a running handler. A notification beyond the bounds is
  dropped: it has no answer, and a queue of them would have no end.
* With `batch_order="sequential"` the requests of a batch run one after the other.
* A detached handler runs on without its request: the connection does not count, answer or stop
  it any more, and a callback gets its outcome.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw

from ..concurrency.thread_pool import NoThreadFree, ThreadShare
from ..errors import LocalProtocolError, TransportError
from ..exception_text import as_redacted
from ..jsonrpc.error_codes import named_error, serialization_error
from ..jsonrpc.messages import ErrorObject, Failure, RequestId, Success
from ..jsonrpc.peer.incoming import IncomingRequest
from ..jsonrpc.policy import Policy
from ..redaction import show
from ..spec.error_kinds import ErrorKind
from ..transports.base import HIGH_WATER
from .budget import copied, size_of
from .counters import reached
from .handler_run import SuspendHandler, handler_run_of
from .request import HandledRequest, HandlerEntry, ResultRenderer, Run
from .unread import WEIGHED_BYTES, UnreadAnswers

if TYPE_CHECKING:
    from ..accounts.account import Account
    from ..accounts.budget import ByteBudget
    from ..jsonrpc.peer.peer import Peer
    from ..transports.base import Transport
    from .handler_run import HandlerRun
    from .runtime import ServerRuntime

__all__ = ["RETRY_AFTER_MS", "SMALL_BYTES", "HandlerTimeout", "RequestRunner"]

_log: Final = logging.getLogger("trunkline.server")

# A smaller request is not weighed while its handler runs: `in_flight_overall` bounds those to
# 10 MiB, and most calls are that small.
SMALL_BYTES: Final = 1024
# What a small request weighs that waits, and one of a batch beside its params: the objects made
# for it take about as much.
_REQUEST_BYTES: Final = 2048
# A request from this size on is refused before it is decoded, whatever its method; what needs no
# handler and is smaller is served.
_LARGE_BYTES: Final = 64 * 1024
# `retryAfterMs` of an error because of overload.
RETRY_AFTER_MS: Final = 1000
# The methods of unanswered requests that the log names; extensions may have any number.
_MAX_NAMED_METHODS: Final = 10
# An answer up to this size is sent though too much is unread: an error would be hardly smaller,
# and 1000 handlers at work cannot add more than 4 MiB.
_SMALL_ANSWER_BYTES: Final = 4096


class HandlerTimeout(Exception):
    """A handler exceeded its timeout."""


class RequestRunner:
    """The handlers of one connection."""

    __slots__ = (
        "_end",
        "_is_draining",
        "_is_turning",
        "_loop",
        "_new_task",
        "_notified",
        "_peer",
        "_room",
        "_runtime",
        "_serve",
        "_transport",
        "_turns",
        "account",
        "at_work",
        "budget",
        "is_stopping",
        "running",
        "threads",
        "unread",
        "waiting",
    )

    def __init__(
        self,
        runtime: ServerRuntime,
        peer: Peer,
        transport: Transport,
        budget: ByteBudget,
        serve: Callable[[IncomingRequest], object],
        end: Callable[[TransportError], object],
    ) -> None:
        self._runtime = runtime
        self.budget = budget
        self.unread = UnreadAnswers(runtime, budget, peer, transport, end)
        self.threads = ThreadShare()
        # That of the client; None on stdio and in the same process.
        self.account: Account | None = None
        self._peer = peer
        self._transport = transport
        # Serves a request that waited, and closes the connection.
        self._serve = serve
        self._end = end
        self._loop = loop = asyncio.get_running_loop()
        self._new_task = runtime.new_task(loop)
        self.at_work: dict[IncomingRequest, HandledRequest] = {}
        self.waiting: dict[IncomingRequest, None] = {}
        # Handlers that count, of requests and of notifications.
        self.running = 0
        self._notified: dict[asyncio.Task[None], None] = {}
        self._room: list[asyncio.Future[None]] = []
        # Requests of sequential batches that have not been served yet, by batch.
        self._turns: dict[int, deque[IncomingRequest]] = {}
        self._is_draining = False
        self._is_turning = False
        # Whether new requests are refused because the server stops.
        self.is_stopping = False

    # -- starting ----------------------------------------------------------------------------

    def take(self, asked: IncomingRequest, size: int, policy: Policy) -> None:
        """Serve a request, let it wait, or refuse it for its size before it is decoded."""
        if asked.slot is not None:
            # Each one: a batch may have a thousand, and there is no limit on batches.
            size = asked.size = size_of(asked.params) + _REQUEST_BYTES
        elif size >= SMALL_BYTES:
            asked.size = size
        if self._transport.backlog > HIGH_WATER:
            self.unread.weigh()
            self._queue(asked, policy)
        elif (size >= _LARGE_BYTES or asked.slot is not None) and (
            limit := self._exceeded(size)
        ) is not None:
            self._refuse(asked, policy, limit)
        elif asked.slot is not None and policy.batch_order == "sequential":
            self._take_turn(asked)
        else:
            self._serve(asked)

    def begin(self, request: HandledRequest, action: Run) -> None:
        """Run the handler of a request, now or when one of the others ends."""
        runtime, message = self._runtime, request.message
        calls, account, size = runtime.calls, self.account, message.size
        waits = self.waiting and not (self._is_draining or self._is_turning)
        if waits or self.running >= runtime.limits.in_flight:
            self._queue(message, request.policy)
        elif self.is_stopping:
            self._peer.fail(message, _unavailable(request.policy))
        elif calls.used >= calls.limit:
            self._refuse(message, request.policy, "in_flight_overall")
        elif account is not None and account.calls >= calls.few and not account.admits_call():
            self._refuse(message, request.policy, "client_in_flight")
        elif (size or self.unread.bytes) and (limit := self._exceeded(size)) is not None:
            self._refuse(message, request.policy, limit)
        elif runtime.tenancy is not None and not runtime.tenancy.begin(request.principal, message):
            self._refuse(message, request.policy, "tenant_in_flight")
        else:
            calls.used += 1
            if account is not None:
                account.calls += 1
            self.running += 1
            self.at_work[message] = request
            entry = action.entry
            arguments, run = entry.arguments, request.run
            may_ask = arguments.wants_context or entry.path
            if size:
                self.budget.charge(size)
                if not (may_ask and request.keeps_params):
                    message.set_params(UNSET)
            if may_ask and request.context is None:
                request.make_context()
            plain = not (arguments.is_async or entry.path)
            if entry.inline and plain and (run is None or run.begin is None):
                self._run_inline(request, action.renderer, entry, action.values)
            else:
                work = self._run(request, action.renderer, entry, action.values)
                request.task = self._new_task(work)

    def _run_inline(
        self, request: HandledRequest, renderer: ResultRenderer, entry: HandlerEntry, values: Any
    ) -> None:
        """Run a handler on the event loop: its author set `inline`."""
        try:
            value = entry.arguments.call(values, request.context)
            if isawaitable(value):
                work = self._run(request, renderer, entry, values, value)
                request.task = self._new_task(work)
                return
            outcome = (
                renderer.finish(entry, request, value)
                if request.run is None
                else _finished(renderer, entry, request, value)
            )
        except BaseException as error:  # noqa: BLE001  # SystemExit too: handlers end nothing
            outcome = self._failed(renderer, entry, request, error)
        self._done(request, outcome)

    async def _run(
        self,
        request: HandledRequest,
        renderer: ResultRenderer,
        entry: HandlerEntry,
        values: Any,
        begun: Any = None,
    ) -> None:
        """Run a handler in its own asyncio task, so that it can be cancelled."""
        try:
            if request.run is not None and request.run.begin is not None:
                await request.run.begin(request)
            if begun is not None:
                value = await begun
            elif entry.arguments.is_async and entry.timeout is None and not entry.path:
                value = entry.arguments.call(values, request.context)
                # A wrapper around a coroutine function may return something else.
                if type(value) is CoroutineType or isawaitable(value):
                    value = await value
            else:
                value = await self.call(entry, values, request)
            outcome = (
                renderer.finish(entry, request, value)
                if request.run is None
                else _finished(renderer, entry, request, value)
            )
        except BaseException as error:  # noqa: BLE001  # SystemExit too: handlers end nothing
            outcome = self._failed(renderer, entry, request, error)
        self._done(request, outcome)

    async def call(self, entry: Any, values: Any, request: HandledRequest) -> Any:
        """Call a handler with the middleware of mounted servers, timeout or thread."""
        if entry.timeout is None:
            return await _invoke(self._runtime, entry, values, request)
        try:
            async with asyncio.timeout(entry.timeout) as limit:
                request.limit = limit
                try:
                    return await _invoke(self._runtime, entry, values, request)
                finally:
                    request.limit = None  # a task that it left behind may still use it
        except TimeoutError:
            if not limit.expired():
                raise  # raised by the handler itself
        request.cancelled = True  # for a handler on a thread
        if request.run is not None:
            request.run.stop()  # or it would go on waiting
        raise HandlerTimeout

    # -- ending ------------------------------------------------------------------------------

    def _failed(
        self,
        renderer: ResultRenderer,
        entry: HandlerEntry,
        request: HandledRequest,
        error: BaseException,
    ) -> Any:
        """Return the outcome of a failed handler, or None if it is not answered."""
        policy, run = request.policy, request.run
        if run is not None and run.on_end is not None:
            # The callback knows why it was stopped; or the event loop ends.
            stopped = isinstance(error, asyncio.CancelledError) and _is_stopped(request)
            return None if stopped else _failure_of(renderer, entry, request, error)
        if request.message not in self._peer.incoming:
            return None
        if run is not None and run.is_over and not _failed_by_itself(error):
            return _suspended_result(request, run)
        if isinstance(error, asyncio.CancelledError) and self.is_stopping:
            return _unavailable(policy)
        if isinstance(error, NoThreadFree):
            self._runtime.counters.refuse("waiting_for_thread")
            return named_error(ErrorKind.OVERLOADED, policy=policy, retryAfterMs=RETRY_AFTER_MS)
        return _failure_of(renderer, entry, request, error)

    def detach(self, request: HandledRequest, on_end: Callable[[Any], object]) -> None:
        """Let a handler run on without its request; `on_end` gets its outcome.

        The outcome is what the client would be sent, or None if the handler was stopped. The
        caller answers the request.
        """
        handler_run_of(request).on_end = on_end
        if self.at_work.pop(request.message, None) is not None:
            # Its arguments are still held, and count until it has ended.
            self._count_less()
            if self._runtime.tenancy is not None:
                self._runtime.tenancy.end(request.message)
            self._start_next(request.message)

    def _count_less(self) -> None:
        """Count a handler less."""
        self._runtime.calls.used -= 1
        if self.account is not None:
            self.account.calls -= 1
        self.running -= 1

    def _done(self, request: HandledRequest, outcome: Any) -> None:
        """Answer a request whose handler has ended, and start those that wait."""
        asked, run = request.message, request.run
        # The two hold each other, and would stay until the next garbage collection.
        request.context = None
        if run is not None and run.on_end is not None:
            self.budget.release(asked.size)
            run.on_end(outcome)
            run.end()
            return
        unread = self.unread
        try:
            if outcome is not None:
                if (
                    unread.is_over
                    or (asked.slot is not None and self._is_batch_full(asked))
                    or (
                        self.account is not None
                        and self._runtime.budget.used > self._runtime.budget.limit >> 1
                        and self._is_client_over(self.account)
                    )
                ) and self._is_large(asked, outcome):
                    outcome = self._dropped(request)
                if type(outcome) is ErrorObject:
                    self._peer.fail(asked, outcome)
                else:
                    self._peer.answer(asked, outcome)
        except LocalProtocolError as error:
            self._not_encoded(asked, request.policy, error)
        finally:
            del self.at_work[asked]
            # As `_count_less` does: once for every request.
            self._runtime.calls.used -= 1
            if self.account is not None:
                self.account.calls -= 1
            self.running -= 1
            if self._runtime.tenancy is not None:
                self._runtime.tenancy.end(asked)
            if asked.size:
                self.budget.release(asked.size)
            if run is not None:
                run.end()
        # From now on the answer is weighed as unread.
        if self._transport.backlog > WEIGHED_BYTES or unread.bytes or asked.slot is not None:
            unread.weigh()
        if self.waiting or self._turns:
            self._start_next(asked)

    def _is_batch_full(self, asked: IncomingRequest) -> bool:
        """Return True if the answers of a batch fill a quarter of the budget.

        Joined, and then written, they take three times as much again.
        """
        held: int = asked.slot[0].held
        return held > self.budget.limit // 4

    def _is_client_over(self, account: Account) -> bool:
        """Return True if a client has its share of the bytes of the server."""
        return not account.budget.has_room(1) or not account.budget.has_shared_room(1)

    def _is_large(self, asked: IncomingRequest, outcome: Any) -> bool:
        is_error = type(outcome) is ErrorObject
        reply = Failure(asked.id, outcome) if is_error else Success(asked.id, outcome)
        try:
            return len(self._peer.codec.encode(reply)) > _SMALL_ANSWER_BYTES
        except LocalProtocolError:
            return False  # `answer` sends an error in its place

    def _dropped(self, request: HandledRequest) -> ErrorObject:
        """Return the error in place of a result, for a client that does not read."""
        counters = self._runtime.counters
        counters.dropped_answers += 1
        counters.warn(
            "answer",
            "answer to %s %s dropped: the client has not read %d bytes of earlier answers",
            request.method,
            show(request.name),
            self.unread.bytes,
        )
        # Without `retryAfterMs`: the handler has run, and may have changed something.
        text = "The answer was dropped: too many earlier answers are unread"
        return named_error(ErrorKind.OVERLOADED, policy=request.policy, message=text)

    def _start_next(self, asked: IncomingRequest) -> None:
        if self._turns and asked.slot is not None:
            self._end_turn(asked)
        if self.waiting:
            self.drain()

    def answer(self, asked: IncomingRequest, outcome: Any, policy: Policy) -> None:
        """Answer a request with a result or an `ErrorObject`; a cancelled one is not answered."""
        try:
            if type(outcome) is ErrorObject:
                self._peer.fail(asked, outcome)
            else:
                self._peer.answer(asked, outcome)
        except LocalProtocolError as error:
            self._not_encoded(asked, policy, error)

    def _not_encoded(
        self, asked: IncomingRequest, policy: Policy, error: LocalProtocolError
    ) -> None:
        _log.error(
            "the answer to %s cannot be encoded, answering with an internal error: %s",
            asked.method,
            error,
        )
        self._peer.fail(asked, serialization_error(policy))

    def is_open(self, id: RequestId) -> bool:
        """Return True if a request with this id is being served."""
        return self._peer.incoming.find(id) is not None

    def cancel(self, id: RequestId) -> None:
        """Stop the handler of a request, which is not answered; ignore one that is not open."""
        asked = self._peer.incoming.find(id)
        if asked is None:
            return
        request = self.at_work.get(asked)
        self._peer.drop(asked)
        self._runtime.request_cancelled(asked)
        self._unqueue(asked)
        if request is not None:
            self._stop(request)
        elif self._turns and asked.slot is not None:
            self._end_turn(asked)

    def cancel_all(self) -> None:
        """Stop every handler; `finish` answers their requests."""
        for request in list(self.at_work.values()):
            self._stop(request)
        for task in list(self._notified):
            task.cancel()

    def _stop(self, request: HandledRequest) -> None:
        request.stop()
        task = request.task
        if task is not None:
            # A task that is cancelled before its first step never runs its `except`.
            task.add_done_callback(lambda _: self._ended_before_start(request))

    def _ended_before_start(self, request: HandledRequest) -> None:
        if request.message in self.at_work:
            self._done(request, _unavailable(request.policy))

    def abandon(self, waited: float = 0.0) -> None:
        """Close all open requests without an answer, since the client has closed its output."""
        left = [asked for asked in self._peer.incoming if self._peer.drop(asked)]
        if left:
            methods = Counter(asked.method for asked in left).most_common(_MAX_NAMED_METHODS)
            _log.warning(
                "end of input: %d requests unfinished after %g s are not answered: %s",
                len(left),
                waited,
                ", ".join(f"{count} {show(method)}" for method, count in methods),
            )

    async def finish(self, cleanup: float, policy: Policy) -> None:
        """Stop all handlers, wait for them for `cleanup` seconds, and answer their requests."""
        self.is_stopping = True
        self.cancel_all()
        await self.wait(cleanup)
        for asked, request in self.at_work.items():
            what = show(request.name)
            _log.warning("handler of %s %s does not end after cancellation", asked.method, what)
        turns = [asked for others in self._turns.values() for asked in others]
        for asked in (*self.at_work, *self.waiting, *turns):
            self._peer.fail(asked, _unavailable(policy))
        self.budget.release(sum(asked.size for asked in (*self.waiting, *turns)))
        self.waiting.clear()
        self._turns.clear()

    async def wait(self, seconds: float) -> None:
        """Wait for running handlers and waiting requests."""
        until = self._loop.time() + seconds
        while (self.running or self.waiting) and (left := until - self._loop.time()) > 0:
            tasks = (request.task for request in self.at_work.values())
            waits: list[asyncio.Future[None]] = [task for task in tasks if task is not None]
            waits += self._notified
            if not waits:
                # The rest waits for the client to read.
                waits = [self._loop.create_future()]
                self._room += waits
            await asyncio.wait(waits, timeout=left)

    # -- queue -------------------------------------------------------------------------------

    async def room(self) -> None:
        """Wait until the client has read most of what was sent, or has closed the connection."""
        if self._transport.backlog > HIGH_WATER and not self.is_stopping:
            future = self._loop.create_future()
            self._room.append(future)
            await future

    def drain(self) -> None:
        """Serve waiting requests, since the client has read or a handler has ended."""
        if self.unread.bytes:
            self.unread.weigh()
        room, self._room = self._room, []
        for future in room:
            if not future.done():
                future.set_result(None)
        if self._is_draining:  # an inline handler has ended; the loop below continues
            return
        self._is_draining = True
        waiting, most, transport = self.waiting, self._runtime.limits.in_flight, self._transport
        try:
            while waiting and self.running < most and transport.backlog <= HIGH_WATER:
                asked = next(iter(waiting))
                self._unqueue(asked)
                self._serve(asked)
                if self._turns and asked.slot is not None and asked not in self.at_work:
                    self._end_turn(asked)  # it was refused, or done at once
        finally:
            self._is_draining = False

    def _queue(self, asked: IncomingRequest, policy: Policy) -> None:
        """Queue a request; too many close the connection, one too large is refused."""
        limits = self._runtime.limits
        if len(self.waiting) >= limits.waiting:
            self._refuse(asked, policy, "waiting")
            self._end(TransportError(f"the client has {limits.waiting} waiting requests"))
        elif (limit := self._exceeded(asked.size or _REQUEST_BYTES)) is not None:
            self._refuse(asked, policy, limit)
        else:
            self._hold(asked)
            self.waiting[asked] = None

    def _hold(self, asked: IncomingRequest) -> None:
        """Charge a request that is served later."""
        if not asked.size:
            asked.size = _REQUEST_BYTES
        self.budget.charge(asked.size)
        if asked.slot is not None:
            # Or it would keep the frame of its whole batch.
            asked.set_params(copied(asked.params))

    def _unqueue(self, asked: IncomingRequest) -> None:
        if asked in self.waiting:
            del self.waiting[asked]
            self.budget.release(asked.size)

    def _exceeded(self, size: int) -> str | None:
        """Return the limit that so many more bytes would exceed, or None if they fit."""
        if self._is_draining or self._is_turning:
            return None  # the request was accepted before it waited
        budget, overall, unread = self.budget, self._runtime.budget, self.unread
        if unread.bytes:
            unread.weigh()
        if budget.used + size > budget.limit and (self.running or self.waiting or self._turns):
            return "connection_bytes"
        if budget.parent is not overall and not budget.has_shared_room(size):
            return "client_bytes"
        if overall.used + size > overall.limit and self._runtime.calls.used:
            return "server_bytes"
        return None

    def has_room(self, size: int) -> bool:
        """Return True if a request of so many bytes would be served."""
        return self._exceeded(size) is None

    def _refuse(self, asked: IncomingRequest, policy: Policy, limit: str) -> None:
        self._runtime.counters.refuse(limit)
        error = named_error(ErrorKind.OVERLOADED, policy=policy, retryAfterMs=RETRY_AFTER_MS)
        self._peer.fail(asked, error)

    def weigh_reply(self, asked: IncomingRequest, raw: Raw) -> bool:
        """Charge the reply to a question of a handler; return False if there is no room for it."""
        size = size_of(raw)
        if asked in self.at_work:
            if self.budget.used + size > self.budget.limit and self.running > 1:
                return False
            self.budget.charge(size)
            asked.size += size
        return True

    # -- notifications -----------------------------------------------------------------------

    def begin_notification(self, entry: HandlerEntry, raw: Any, read: Callable[[Any], Any]) -> None:
        """Run the handler of a notification, or drop the notification if there is no room."""
        runtime, size = self._runtime, size_of(raw)
        limit = self._exceeded(size)
        if self.running >= runtime.limits.in_flight:
            limit = "in_flight"
        elif runtime.calls.used >= runtime.calls.limit:
            limit = "in_flight_overall"
        elif self.account is not None and not self.account.admits_call():
            limit = "client_in_flight"
        if limit is not None or self.is_stopping:
            why = "the server stops" if limit is None else reached(limit)
            runtime.counters.drop_notification(entry.name, why)
            return
        values = {} if raw is UNSET else read(raw)
        runtime.calls.used += 1
        if self.account is not None:
            self.account.calls += 1
        self.running += 1
        self.budget.charge(size)
        task = self._new_task(self._run_notification(entry, values))
        self._notified[task] = None
        task.add_done_callback(partial(self._notification_ended, size))

    async def _run_notification(self, entry: HandlerEntry, values: Any) -> None:
        runtime = self._runtime
        try:
            call = partial(entry.arguments.call, values, None)
            value = await runtime.threads.run(call, self.threads) if entry.on_thread else call()
            if isawaitable(value):
                await value
        except asyncio.CancelledError:
            pass  # the connection has ended, or the handler cancelled itself
        except NoThreadFree:
            why = "ServerLimits.waiting_for_thread is reached"
            runtime.counters.drop_notification(entry.name, why)
        except BaseException as error:  # noqa: BLE001  # SystemExit too: handlers end nothing
            _log.error(
                "handler of notification %s failed\n%s", show(entry.name), as_redacted(error)
            )

    def _notification_ended(self, size: int, task: asyncio.Task[None]) -> None:
        self._notified.pop(task, None)
        self._count_less()
        self.budget.release(size)
        if self.waiting:
            self.drain()

    # -- sequential batches ------------------------------------------------------------------

    def _take_turn(self, asked: IncomingRequest) -> None:
        batch = id(asked.slot[0])
        turns = self._turns.get(batch)
        if turns is None:
            self._turns[batch] = deque()
            self._serve_batch(batch, asked)
        else:
            self._hold(asked)
            turns.append(asked)

    def _end_turn(self, asked: IncomingRequest) -> None:
        """Serve the next request of a batch after this one ended or was cancelled."""
        batch = id(asked.slot[0])
        turns = self._turns.get(batch)
        if turns is None or self._is_turning:
            return  # not sequential, or `_serve_batch` is running
        if asked in turns:
            turns.remove(asked)
            self.budget.release(asked.size)
        else:
            self._serve_batch(batch, self._next_turn(turns))

    def _next_turn(self, turns: deque[IncomingRequest]) -> IncomingRequest | None:
        if not turns:
            return None
        asked = turns.popleft()
        self.budget.release(asked.size)
        return asked

    def _serve_batch(self, batch: int, asked: IncomingRequest | None) -> None:
        """Serve requests of a batch until one has a running handler."""
        self._is_turning = True
        try:
            while asked is not None:
                if asked in self._peer.incoming:  # or it was cancelled
                    self._serve(asked)
                if asked in self.at_work or asked in self.waiting:
                    return  # `_end_turn` continues
                asked = self._next_turn(self._turns[batch])
            del self._turns[batch]
        finally:
            self._is_turning = False


def _failed_by_itself(error: BaseException) -> bool:
    """Return True if a handler failed for another reason than its suspension."""
    found: BaseException | None = error
    while found is not None and isinstance(error, Exception):
        if isinstance(found, SuspendHandler):
            return False  # the handler caught it, and raised this
        found = found.__cause__ or found.__context__
    return isinstance(error, Exception)


def _is_stopped(request: HandledRequest) -> bool:
    """Return True if a handler was cancelled, here or by the end of the event loop."""
    return request.cancelled or (request.task is not None and request.task.cancelling() > 0)


def _unwrapped(error: BaseException) -> BaseException:
    """Return an exception without exception groups that hold nothing else."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _finished(
    renderer: ResultRenderer, entry: HandlerEntry, request: HandledRequest, value: Any
) -> Any:
    """Return the outcome of a handler that has returned."""
    run = request.run
    if run is not None and run.is_over and run.on_end is None:
        return _suspended_result(request, run)  # it caught the suspension
    return renderer.finish(entry, request, value)


def _suspended_result(request: HandledRequest, run: HandlerRun) -> Any:
    """Return the result with the input requests of a suspended handler."""
    if run.round is None:
        raise ValueError("this handler is not suspended")
    try:
        return run.round.ending()
    except Exception as error:  # noqa: BLE001  # a defect here; the client gets an answer
        _log.error(
            "internal error while encoding the input requests of %s\n%s",
            request.method,
            as_redacted(error),
        )
        return named_error(ErrorKind.INTERNAL_ERROR, policy=request.policy)


def _failure_of(
    renderer: ResultRenderer, entry: HandlerEntry, request: HandledRequest, error: BaseException
) -> Any:
    try:
        return renderer.fail(entry, request, _unwrapped(error))
    except Exception as another:  # noqa: BLE001  # an exception whose repr fails
        _log.error(
            "internal error while encoding the failure of %s\n%s",
            request.method,
            as_redacted(another),
        )
        return named_error(ErrorKind.INTERNAL_ERROR, policy=request.policy)


def _unavailable(policy: Policy) -> ErrorObject:
    return named_error(ErrorKind.SERVICE_UNAVAILABLE, policy=policy, retryAfterMs=RETRY_AFTER_MS)


async def _invoke(
    runtime: ServerRuntime, entry: HandlerEntry, values: Any, request: HandledRequest
) -> Any:
    """Call a handler through the middleware of mounted servers, the outermost first."""
    proceed: Callable[[], Awaitable[Any]] = partial(_call, runtime, entry, values, request)
    for server in reversed(entry.path):
        for function in reversed(server.middleware):
            proceed = partial(function, request.context, proceed)
    return await proceed()


async def _call(
    runtime: ServerRuntime, entry: HandlerEntry, values: Any, request: HandledRequest
) -> Any:
    """Call a handler: on the event loop if it is a coroutine or inline, else on a thread."""
    call = entry.arguments.call
    if entry.on_thread:
        share = request.connection.runner.threads
        value = await runtime.threads.run(partial(call, values, request.context), share)
    else:
        value = call(values, request.context)
    # A plain function may return a coroutine, as lambdas and wrappers do.
    return await value if isawaitable(value) else value
