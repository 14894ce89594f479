"""Thread pool for synchronous handlers, with a bound on threads and on waiting calls.

The default executor of asyncio has an unbounded queue and delays interpreter exit until every
call returns. A `ThreadPool` refuses a call beyond its bound at once, starts threads on demand, and
uses daemon threads, so that a handler that hangs delays neither shutdown nor exit.

A handler cannot be interrupted: a result that arrives after its request was cancelled is dropped,
and its thread counts as busy until the handler returns.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, Final, TypeAlias

from ..errors import TrunklineError

__all__ = ["NoThreadFree", "ThreadPool", "deliver"]

# How long `close` waits for threads to end: idle ones end at once, and a thread inside a handler
# cannot be ended.
_CLOSE_TIMEOUT_S: Final = 0.1

_Job: TypeAlias = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class NoThreadFree(TrunklineError):
    """All threads are busy and the queue of waiting calls is full, or no thread can be started."""


class ThreadPool:
    """At most `max_threads` threads, and at most `max_waiting` calls that wait for one.

    Threads stay for the next call until `close`; with `keep_idle=False` a thread ends as soon as
    no call waits for it, and the pool needs no `close`.
    """

    def __init__(
        self, max_threads: int, max_waiting: int = 0, *, keep_idle: bool = True, name: str
    ) -> None:
        self._max_threads = max_threads
        self._max_calls = max_threads + max_waiting
        self._keep_idle = keep_idle
        self._name = name
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        # Several event loops may share a pool, so its counters are guarded.
        self._lock = threading.Lock()
        self._calls = 0
        # Threads whose handler waits for its client, and uses no CPU meanwhile.
        self._blocked = 0

    def run(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        """Run `call` on a thread; return a future of the running loop for its result.

        Raises:
            NoThreadFree: the pool is full; nothing was started.
        """
        future = asyncio.get_running_loop().create_future()
        context = copy_context()
        with self._lock:
            if self._calls >= self._max_calls:
                raise NoThreadFree("all threads are busy")
            self._calls += 1
            try:
                self._start_if_needed()
            except RuntimeError as error:  # the system has no more threads
                if not self._threads:
                    self._calls -= 1
                    raise NoThreadFree("no thread could be started") from error
            self._queue.put((lambda: context.run(call), future))
        return future

    def _start_if_needed(self) -> None:
        """Start a thread if a call waits for one and the bound allows it; the lock is held."""
        available = len(self._threads) - self._blocked
        if self._calls - self._blocked > available and available < self._max_threads:
            name = f"{self._name}-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    @contextmanager
    def blocked(self) -> Iterator[None]:
        """Let another thread run while the calling one waits for its client.

        The bound on blocked threads is `max_threads` again: a client that never replies can
        neither stop the handlers of others nor start threads without limit.
        """
        with self._lock:
            # A thread that outlived `close` has no place to give up.
            is_ours = threading.current_thread() in self._threads
            is_counted = is_ours and self._blocked < self._max_threads
            if is_counted:
                self._blocked += 1
                self._start_if_needed()
        try:
            yield
        finally:
            if is_counted:
                with self._lock:
                    self._blocked -= 1

    def close(self) -> None:
        """End the threads: idle ones now, others when their handler returns."""
        with self._lock:
            threads, self._threads = self._threads, []
            for _ in threads:
                self._queue.put(None)
            # Threads that are still busy take their None from the old queue, not from the next.
            self._queue = SimpleQueue()
        until = time.monotonic() + _CLOSE_TIMEOUT_S
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        queue = self._queue
        while (job := queue.get()) is not None:
            call, future = job
            value: Any = None
            error: BaseException | None = None
            try:
                # A call that was cancelled while it waited for a thread is not started.
                value = None if future.cancelled() else call()
            except BaseException as raised:  # noqa: BLE001  # SystemExit too: it is the handler's
                error = raised
            with self._lock:
                self._calls -= 1
                # One thread for each call that is left: a thread that was started for a queued
                # call may not have taken it yet.
                is_last = not self._keep_idle and len(self._threads) > self._calls
                if is_last:
                    self._threads.remove(threading.current_thread())
            try:
                future.get_loop().call_soon_threadsafe(deliver, future, value, error)
            except RuntimeError:
                pass  # the loop is closed: the result is dropped
            del job, call, future, value, error  # or an idle thread would keep them alive
            if is_last:
                return


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
