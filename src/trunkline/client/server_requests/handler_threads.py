"""Threads for handlers that are no coroutines: one for each question, and not too many.

The event loop has a pool of its own. A handler that waits for a user would take a thread of it
from whoever else needs one, and a program could not end before the user has answered. Here a
thread belongs to one question, and a program that ends does not wait for it.

A handler cannot be stopped. The server may have lost interest in its answer meanwhile, which is
then dropped; its thread counts until it returns, so that asking and cancelling makes no crowd.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from ...errors import TrunklineError

__all__ = ["NoThreadFree", "Threads"]


class NoThreadFree(TrunklineError):
    """As many handlers are at work as may be."""


class Threads:
    """A bounded number of threads, each of which runs one call."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()  # a client may go from one event loop to another
        self._running = 0

    def run(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        """Run `call` on a thread; return what will hold its result, on the running loop.

        Raises:
            NoThreadFree: there are too many already; nothing was begun.
        """
        future = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._running >= self._most:
                raise NoThreadFree("too many handlers are at work")
            self._running += 1
        context = copy_context()
        work = (lambda: context.run(call), future)
        thread = threading.Thread(target=self._work, args=work, name="trunkline-asked", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system has no more threads
            with self._lock:
                self._running -= 1
            raise NoThreadFree("no thread could be started") from error
        return future

    def _work(self, call: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        value: Any = None
        failure: Exception | None = None
        try:
            value = call()
        except Exception as error:  # noqa: BLE001  # somebody else's code
            failure = error
        except BaseException as error:  # noqa: BLE001  # it would end the loop, not the thread
            failure = RuntimeError(f"the handler raised {type(error).__name__}")
        with self._lock:
            self._running -= 1
        try:
            future.get_loop().call_soon_threadsafe(_deliver, future, value, failure)
        except RuntimeError:
            pass  # the loop is closed: nobody waits


def _deliver(future: asyncio.Future[Any], value: Any, failure: Exception | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(value)
    elif isinstance(failure, StopIteration):
        # A future cannot carry it: awaiting would end the coroutine that awaits.
        future.set_exception(RuntimeError("the handler raised StopIteration"))
    else:
        future.set_exception(failure)
