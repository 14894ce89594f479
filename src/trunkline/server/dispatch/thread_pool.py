"""Threads for handlers that are no coroutines, bounded and all our own.

The interpreter's shared pool has an endless queue and holds up exit for a call that hangs.
Here a call beyond the bound is refused at once, threads are started when there is work and
end when the server does, and one that hangs in a handler holds up nobody. A thread that waits
for an answer of its client is not counted among those at work.

A result that nobody waits for any more, because the request was cancelled, is dropped.
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

from ...errors import TrunklineError

__all__ = ["NoThreadFree", "Workers", "deliver"]

# How long `close` waits for threads to end, in seconds: idle ones do so at once, and one that
# is inside a handler cannot be made to.
_PATIENCE: Final = 0.1

_Job: TypeAlias = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class NoThreadFree(TrunklineError):
    """Every thread is at work and as many calls as allowed wait already."""


class Workers:
    """A bounded number of threads, started as they are needed."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._most_threads = threads
        self._most_calls = threads + waiting
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        # Several event loops may share a server, so counting is guarded.
        self._lock = threading.Lock()
        self._calls = 0
        # Threads whose handler waits for its client, and does nothing meanwhile.
        self._parked = 0

    def run(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        """Run `call` on a thread; return what will hold its result, on the running loop.

        Raises:
            NoThreadFree: there are too many calls already; nothing was begun.
        """
        future = asyncio.get_running_loop().create_future()
        context = copy_context()
        with self._lock:
            if self._calls >= self._most_calls:
                raise NoThreadFree
            self._calls += 1
            self._start_if_needed()
        self._queue.put((lambda: context.run(call), future))
        return future

    def _start_if_needed(self) -> None:
        """Start a thread if a call waits for one and there may be one more; the lock is held."""
        awake = len(self._threads) - self._parked
        if self._calls - self._parked > awake and awake < self._most_threads:
            name = f"trunkline-handler-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    @contextmanager
    def parked(self) -> Iterator[None]:
        """Let another thread take the place of this one while it waits for a client.

        As many as there may be threads at all: a client that answers nothing must neither keep
        the handlers of others from running, nor have threads without end.
        """
        with self._lock:
            # A thread that the end of the server left behind has no place to give.
            is_ours = threading.current_thread() in self._threads
            is_counted = is_ours and self._parked < self._most_threads
            if is_counted:
                self._parked += 1
                self._start_if_needed()
        try:
            yield
        finally:
            if is_counted:
                with self._lock:
                    self._parked -= 1

    def close(self) -> None:
        """End the threads: idle ones now, others when their handler returns."""
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._queue.put(None)
        # Those left behind still take their None from the old queue, not from the next one.
        self._queue = SimpleQueue()
        until = time.monotonic() + _PATIENCE
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        queue = self._queue
        while (job := queue.get()) is not None:
            call, future = job
            value: Any = None
            error: BaseException | None = None
            try:
                # Cancelled while it waited for a thread, it is not begun.
                value = None if future.cancelled() else call()
            except BaseException as raised:  # noqa: BLE001  # SystemExit too: it is the handler's
                error = raised
            with self._lock:
                self._calls -= 1
            try:
                future.get_loop().call_soon_threadsafe(deliver, future, value, error)
            except RuntimeError:
                pass  # the loop is closed: nobody waits
            del job, call, future, value, error  # or an idle thread would keep them alive


def deliver(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    """Hand a future what a thread has come to, unless nobody waits any more."""
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):
        # A future cannot carry it: awaiting would end the coroutine that awaits.
        future.set_exception(RuntimeError("the handler raised StopIteration"))
    else:
        future.set_exception(error)
