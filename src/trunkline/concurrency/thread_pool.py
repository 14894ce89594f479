"""Thread pool for synchronous handlers, with a bound on threads and on waiting calls.

The default executor of asyncio has an unbounded queue and delays interpreter exit until every
call returns. A `ThreadPool` refuses a call beyond its bound at once, starts threads on demand, and
uses daemon threads, so that a handler that hangs delays neither shutdown nor exit.

A handler cannot be interrupted: a result that arrives after its request was cancelled is dropped,
and its thread counts as busy until the handler returns.

The rules that live here, and only here:

* Calls belong to shares, one for each connection. A share may use every thread, but takes no more
  than half of them, and of the places in the queue, while the pool is shared. Threads are given
  to waiting shares in turn.
* Shares may belong to groups, one for each client, and those to groups of tenants. Groups take
  turns, and the shares of a group take turns within it, so that a client with many connections
  gets as many turns as one with a single one. What holds for the half of a share holds for the half
  of a group.
* The group of a client has at most `ratio` times the threads, and the places in the queue, that it
  leaves free, so that a newcomer gets one at once.
* A share that has more than half, because it was alone before, does not delay others: they get
  further threads in place of those above half. The same holds for the threads of a share that has
  left, and for threads that wait for their client. All of these together are at most
  `max_threads`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, Final

from msgspec import Struct

from ..errors import TrunklineError

__all__ = ["NoThreadFree", "ThreadGroup", "ThreadPool", "ThreadShare", "deliver"]

# How long `close` waits for threads to end: idle ones end at once, and a thread inside a handler
# cannot be ended.
_CLOSE_TIMEOUT_S: Final = 0.1
# A call that waits longer for a thread is reported.
LATE_S: Final = 1.0


class NoThreadFree(TrunklineError):
    """All threads are busy and the queue of waiting calls is full, or no thread can be started."""


# Of a share without waiting calls, and of its group, as nearly all are: an empty deque takes 600
# bytes.
_NO_JOBS: Final[deque[_Job]] = deque(maxlen=0)
_NO_TURNS: Final[deque[ThreadShare | ThreadGroup]] = deque(maxlen=0)


class ThreadShare:
    """The calls of one connection: how many are on threads, and those that wait for one."""

    __slots__ = ("abandoned", "busy", "group", "is_gone", "jobs")

    def __init__(self, group: ThreadGroup | None = None) -> None:
        self.busy = 0
        self.jobs = _NO_JOBS
        self.is_gone = False
        # The client or tenant that the connection belongs to.
        self.group = group
        # Busy threads whose places were given to others, since this share has left.
        self.abandoned = 0


class ThreadGroup:
    """The shares of one client, or the groups of one tenant.

    `is_shared` returns True while there are others. `ratio` is what it may have of what is free,
    as a multiple of what it leaves; None is any.
    """

    __slots__ = ("busy", "group", "is_shared", "ratio", "turns", "waiting")

    def __init__(
        self,
        is_shared: Callable[[], bool] = bool,
        group: ThreadGroup | None = None,
        *,
        ratio: float | None = None,
    ) -> None:
        self.busy = 0
        # Calls of its shares that wait for a thread.
        self.waiting = 0
        self.is_shared = is_shared
        # The tenant that the client belongs to.
        self.group = group
        self.ratio = ratio
        # Shares and groups with waiting jobs, in turn.
        self.turns = _NO_TURNS


# A Struct: one is made for each call, and a Struct is made in C.
class _Job(Struct, eq=False):
    """One call, and where its result goes."""

    call: Callable[[], Any]
    future: asyncio.Future[Any]
    share: ThreadShare
    # When it began to wait, and whether that was reported.
    since: float = 0.0
    is_late: bool = False

    def __repr__(self) -> str:
        return "<_Job>"  # the arguments of the call may be a peer's


class _Worker(threading.Thread):
    """A thread of a pool, and the share it works for."""

    share: ThreadShare


class ThreadPool:
    """At most `max_threads` threads, and at most `max_waiting` calls that wait for one.

    Threads stay for the next call until `close`; with `keep_idle=False` a thread ends as soon as
    no call waits for it, and the pool needs no `close`.

    `is_shared` returns True while there are other shares than the one that asks. `on_late` is
    called with the number of calls that have waited for more than a second since the last time,
    the number that wait, and the seconds that the first has waited.
    """

    def __init__(
        self,
        max_threads: int,
        max_waiting: int = 0,
        *,
        keep_idle: bool = True,
        name: str,
        is_shared: Callable[[], bool] = bool,
        on_late: Callable[[int, int, float], object] | None = None,
    ) -> None:
        self._max_threads = max_threads
        self._half = max(1, max_threads // 2)
        self._max_waiting = max_waiting
        self._keep_idle = keep_idle
        self._name = name
        self._is_shared = is_shared
        self._on_late = on_late
        # Several event loops may share a pool, so everything below is guarded.
        self._lock = threading.Lock()
        # Jobs that have a thread; None ends a thread.
        self._handed: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        # Shares with threads, and the number of those that take a place.
        self._shares: set[ThreadShare] = set()
        self._charged = 0
        # Threads whose handler waits for its client, and uses no CPU meanwhile, or whose share
        # has left.
        self._blocked = 0
        # Shares and groups with waiting jobs, in turn, and the number of these jobs.
        self._turns: deque[ThreadShare | ThreadGroup] = deque()
        self._waiting = 0
        self._own_share = ThreadShare()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> int:
        """The number of threads inside a call."""
        return len(self._threads) - self._idle

    @property
    def waiting(self) -> int:
        """The number of calls that wait for a thread."""
        return self._waiting

    def run(self, call: Callable[[], Any], share: ThreadShare | None = None) -> asyncio.Future[Any]:
        """Run `call` on a thread; return a future of the running loop for its result.

        Raises:
            NoThreadFree: the pool is full; nothing was started.
        """
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        share = share or self._own_share
        job = _Job(partial(copy_context().run, call), future, share)
        with self._lock:
            if share.jobs or not self._start(job):
                self._queue(job, loop)
        return future

    def leave(self, share: ThreadShare) -> None:
        """Give the threads of a share to others, because its connection has ended.

        Calls that were not cancelled still get a thread: they belong to a task.
        """
        with self._lock:
            share.is_gone = True
            self._prune(share)
            share.abandoned = min(share.busy, self._max_threads - self._blocked)
            self._blocked += share.abandoned
            self._charged -= share.abandoned
            # There may be one share less than before, too.
            self._start_waiting()

    # -- starting; the lock is held ----------------------------------------------------------

    def _start(self, job: _Job) -> bool:
        """Give a job to a thread; return False if none is free, or its share has enough."""
        share = job.share
        if self._has_enough(share):
            return False
        if not self._idle and not self._start_thread(share):
            return False
        self._idle -= 1
        self._charge(share)
        self._handed.put(job)
        return True

    def _has_enough(self, share: ThreadShare) -> bool:
        """Return True if a share, or its group, has half of the threads, and others need some."""
        if share.busy >= self._half and self._is_shared():
            return True
        for group in _groups(share):
            if group.busy >= self._half and group.is_shared():
                return True
            if group.busy and group.ratio is not None:
                left = self._max_threads - self._charged - 1
                if group.busy + 1 > group.ratio * left:
                    # Less often: it looks at every share.
                    left += self._lent(share)
                    if group.busy + 1 > group.ratio * left:
                        return True
        return False

    def _charge(self, share: ThreadShare) -> None:
        if not share.busy:
            self._shares.add(share)
        self._charged += 1
        share.busy += 1
        for group in _groups(share):
            group.busy += 1

    def _discharge(self, share: ThreadShare) -> None:
        self._charged -= 1
        share.busy -= 1
        for group in _groups(share):
            group.busy -= 1

    def _start_thread(self, share: ThreadShare) -> bool:
        if len(self._threads) - self._blocked >= self._max_threads + self._lent(share):
            return False
        name = f"{self._name}-{len(self._threads) + 1}"
        thread = _Worker(target=self._work, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system has no more threads
            if not self._threads:
                raise NoThreadFree("no thread could be started") from error
            return False
        self._threads.add(thread)
        self._idle += 1
        return True

    def _lent(self, share: ThreadShare) -> int:
        """Return how many threads other shares and groups have beyond their half."""
        if _holder(share).busy >= self._half:
            return 0  # it is alone
        held: dict[ThreadShare | ThreadGroup, int] = {}
        for each in self._shares:
            holder = _holder(each)
            held[holder] = held.get(holder, 0) + each.busy - each.abandoned
        excess = sum(max(0, each - self._half) for each in held.values())
        return min(excess, self._max_threads - self._blocked)

    def _queue(self, job: _Job, loop: asyncio.AbstractEventLoop) -> None:
        share, most = job.share, self._max_waiting
        most_each = max(1, most // 2) if self._is_shared() else most
        is_full = self._waiting >= most or len(share.jobs) >= most_each
        for group in _groups(share):
            is_full = is_full or self._has_enough_waiting(group)
        if is_full and not self._prune(share):
            raise NoThreadFree("all threads are busy")
        self._take_turn(share)
        if share.jobs is _NO_JOBS:
            share.jobs = deque()
        share.jobs.append(job)
        self._count_waiting(share, 1)
        job.since = loop.time()
        if self._timer is None and self._on_late is not None:
            self._timer = loop.call_later(LATE_S, self._report_late, loop)

    def _has_enough_waiting(self, group: ThreadGroup) -> bool:
        """Return True if a group has its share of the places in the queue."""
        most = self._max_waiting
        if group.is_shared() and group.waiting >= max(1, most // 2):
            return True
        left = most - self._waiting - 1
        return bool(
            group.waiting and group.ratio is not None and group.waiting + 1 > group.ratio * left
        )

    def _take_turn(self, share: ThreadShare) -> None:
        """Give a share, and the groups above it, a place among those that take turns."""
        turn: ThreadShare | ThreadGroup = share
        for group in _groups(share):
            if group.turns is _NO_TURNS:
                group.turns = deque()
            if turn not in group.turns:
                group.turns.append(turn)
            turn = group
        if turn not in self._turns:
            self._turns.append(turn)

    def _count_waiting(self, share: ThreadShare, by: int) -> None:
        self._waiting += by
        for group in _groups(share):
            group.waiting += by

    def _prune(self, share: ThreadShare) -> int:
        """Drop the waiting jobs of a share that were cancelled; return their number."""
        before = len(share.jobs)
        share.jobs = deque(each for each in share.jobs if not each.future.cancelled())
        dropped = before - len(share.jobs)
        self._count_waiting(share, -dropped)
        return dropped

    def _next(self) -> _Job | None:
        """Return the job that is started next, of the share or group whose turn it is."""
        return self._next_of(self._turns)

    def _next_of(self, turns: deque[Any]) -> _Job | None:
        for _ in range(len(turns)):
            turn: ThreadShare | ThreadGroup = turns[0]
            if isinstance(turn, ThreadGroup):
                job, has_more = self._next_of(turn.turns), bool(turn.turns)
            else:
                job, has_more = self._take(turn), bool(turn.jobs)
            if job is None and not has_more:
                turns.popleft()
            else:
                turns.rotate(-1)
                if job is not None:
                    return job
        return None

    def _take(self, share: ThreadShare) -> _Job | None:
        """Return the next job of a share, unless it has none, or threads enough."""
        while share.jobs and share.jobs[0].future.cancelled():
            share.jobs.popleft()
            self._count_waiting(share, -1)
        if not share.jobs or self._has_enough(share):
            return None
        self._count_waiting(share, -1)
        return share.jobs.popleft()

    def _start_waiting(self) -> None:
        """Start waiting jobs for as long as there are threads for them."""
        while (job := self._next()) is not None:
            if not self._start(job):
                job.share.jobs.appendleft(job)
                self._count_waiting(job.share, 1)
                return

    # -- threads that do no work -------------------------------------------------------------

    @contextmanager
    def blocked(self) -> Iterator[None]:
        """Let another thread run while the calling one waits for its client.

        The bound on blocked threads is `max_threads` again: a client that never replies can
        neither stop the handlers of others nor start threads without limit.
        """
        with self._lock:
            # A thread that outlived `close` has no place to give up.
            thread = threading.current_thread()
            is_ours = thread in self._threads and self._blocked < self._max_threads
            share = thread.share if is_ours and isinstance(thread, _Worker) else None
            if share is not None and share.is_gone:
                share = None  # its place was given up already
            if share is not None:
                self._blocked += 1
                self._discharge(share)
                self._start_waiting()
        try:
            yield
        finally:
            with self._lock:
                # Unless the pool was closed meanwhile.
                if share is not None and thread in self._threads:
                    self._blocked -= 1
                    self._charge(share)

    def _report_late(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        with self._lock:
            jobs = [job for share in self._waiting_shares() for job in share.jobs]
            late = [job for job in jobs if now - job.since >= LATE_S and not job.is_late]
            for job in late:
                job.is_late = True
            self._timer = loop.call_later(LATE_S, self._report_late, loop) if jobs else None
        if self._on_late is not None and any(job.is_late for job in jobs):
            self._on_late(len(late), len(jobs), now - min(job.since for job in jobs))

    def _waiting_shares(self) -> Iterator[ThreadShare]:
        turns = list(self._turns)
        while turns:
            turn = turns.pop()
            if isinstance(turn, ThreadGroup):
                turns.extend(turn.turns)
            else:
                yield turn

    def close(self) -> None:
        """End the threads: idle ones now, others when their handler returns."""
        with self._lock:
            threads, self._threads = self._threads, set()
            for _ in threads:
                self._handed.put(None)
            # Threads that are still busy take their None from the old queue, not from the next.
            self._handed = SimpleQueue()
            shares = list(self._waiting_shares())
            waiting = [job for share in shares for job in share.jobs]
            for share in shares:
                share.jobs.clear()
                for group in _groups(share):
                    group.turns, group.waiting = _NO_TURNS, 0
            self._turns.clear()
            for share in self._shares:
                for group in _groups(share):
                    group.busy -= share.busy
            self._shares.clear()
            self._idle = self._blocked = self._waiting = self._charged = 0
            self._own_share = ThreadShare()
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        for job in waiting:
            _soon(job.future, job.future.cancel)
        until = time.monotonic() + _CLOSE_TIMEOUT_S
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        queue = self._handed
        thread: Any = threading.current_thread()
        job = queue.get()
        while job is not None:
            share, future = job.share, job.future
            thread.share = share
            value: Any = None
            error: BaseException | None = None
            try:
                # A call that was cancelled while it waited for a thread is not started.
                value = None if future.cancelled() else job.call()
            except BaseException as raised:  # noqa: BLE001  # SystemExit too: it is the handler's
                error = raised
            is_over = False
            with self._lock:
                job = None
                if queue is self._handed:  # or the pool was closed meanwhile
                    self._discharge(share)
                    if not share.busy or share.abandoned:
                        self._release(share)
                    if self._turns and (job := self._next()) is not None:
                        self._charge(job.share)
                    elif not self._keep_idle or self._has_too_many():
                        self._threads.discard(thread)
                        is_over = True
                    else:
                        self._idle += 1
            _soon(future, deliver, future, value, error)
            # Or an idle thread would keep them alive.
            del share, thread.share, future, value, error
            if is_over:
                return
            if job is None:
                job = queue.get()

    def _release(self, share: ThreadShare) -> None:
        """Correct the tables after the last call of a share, or one of a share that has left."""
        if share.abandoned:
            share.abandoned -= 1
            self._blocked -= 1
            self._charged += 1
        if not share.busy:
            self._shares.discard(share)

    def _has_too_many(self) -> bool:
        """Return True if threads took the place of others that have returned since."""
        return len(self._threads) - self._blocked > self._max_threads


def _groups(share: ThreadShare) -> Iterator[ThreadGroup]:
    """Iterate over the groups that a share belongs to, the innermost first."""
    group = share.group
    while group is not None:
        yield group
        group = group.group


def _holder(share: ThreadShare) -> ThreadShare | ThreadGroup:
    """Return the outermost group of a share, or the share itself."""
    holder: ThreadShare | ThreadGroup = share
    while holder.group is not None:
        holder = holder.group
    return holder


def _soon(future: asyncio.Future[Any], act: Callable[..., object], *given: Any) -> None:
    """Call `act` on the loop of a future."""
    try:
        future.get_loop().call_soon_threadsafe(act, *given)
    except RuntimeError:
        pass  # the loop is closed: the result is dropped


def deliver(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    """Set the outcome of a future, unless it is cancelled or has one already."""
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):
        # A future cannot carry it: awaiting would end the coroutine that awaits.
        future.set_exception(RuntimeError("the handler raised StopIteration"))
    else:
        future.set_exception(error)
