"""Synchronous callbacks of a `SyncClient`: called on one thread per client, in order.

The event loop queues the calls and waits for none of them.

The rules that live here, and only here:

* The thread starts with the first call, and ends with the connection.
* An outcome waits for the callbacks that were queued before it (`after`), as it does where
  callbacks run on the event loop.
* At most 1000 calls are queued; further ones are dropped and logged.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, ParamSpec

from ..diagnostics import CANCEL_TIMEOUT_S, RateLimitedLog

__all__ = ["Callbacks"]

P = ParamSpec("P")

# The server decides how many notifications it sends; beyond this many calls they are dropped.
_MAX_QUEUED: Final = 1000


class _CallbackThread:
    """A thread that makes one queued call after the other."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_ending = False
        # Each is written by one thread only: the event loop thread, and this one.
        self._put = 0
        self._done = 0
        self._thread = threading.Thread(target=self._work, name="trunkline-told", daemon=True)
        self._thread.start()

    @property
    def behind(self) -> int:
        """How many calls are queued or in progress."""
        return self._put - self._done

    @property
    def is_here(self) -> bool:
        """Whether this is the current thread."""
        return self._thread.ident == threading.get_ident()

    def put(self, item: Callable[[], object]) -> bool:
        """Queue a call, from the event loop; return False if the thread is ending."""
        with self._lock:
            if self._is_ending:
                return False
            self._put += 1
            self._queue.put(item)
            return True

    def end(self) -> None:
        """End after the queued calls."""
        with self._lock:
            self._is_ending = True
            self._queue.put(None)

    def join(self) -> None:
        """Wait for the end, up to `CANCEL_TIMEOUT_S`."""
        if not self.is_here:
            self._thread.join(CANCEL_TIMEOUT_S)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            item()
            # Not kept until the next call: it may hold the last reference to a client.
            del item
            self._done += 1


class Callbacks:
    """The synchronous callbacks of one client."""

    def __init__(self) -> None:
        self._runner: _CallbackThread | None = None
        self._server_log = RateLimitedLog()
        # Awaits what a synchronous callback returned, on the event loop; set on connecting.
        self.wait_for: Callable[[Awaitable[object]], object] | None = None

    def told(self, name: str, given: Callable[P, object] | None) -> Callable[P, object] | None:
        """Return a callback that queues calls for the thread; an async one is returned as it is."""
        if given is None or inspect.iscoroutinefunction(given):
            return given
        callback = given

        def tell(*args: P.args, **kwargs: P.kwargs) -> None:
            self._put(name, partial(self._call, name, callback, *args, **kwargs))

        return tell

    @property
    def is_here(self) -> bool:
        """Whether the current thread is that of the callbacks."""
        return self._runner is not None and self._runner.is_here

    @property
    def is_behind(self) -> bool:
        """Whether calls are queued, and the current thread is not that of the callbacks."""
        teller = self._runner
        return teller is not None and teller.behind > 0 and not teller.is_here

    def after(self, item: Callable[[], object]) -> None:
        """Call `item` after the queued calls, or now if there are none."""
        teller = self._runner
        if teller is None or not teller.behind or not teller.put(item):
            item()

    def end(self, *, wait: bool = True) -> None:
        """End the thread after the queued calls; `wait` for that up to `CANCEL_TIMEOUT_S`."""
        teller = self._runner
        if teller is not None:
            # First: an interrupt in between must not leave the thread running.
            teller.end()
            self._runner = None
            if wait:
                teller.join()
            self._server_log.end()

    def _put(self, name: str, item: Callable[[], object]) -> None:
        if self._runner is None:
            try:
                self._runner = _CallbackThread()
            except RuntimeError:  # the system has no more threads, or the program ends
                self._server_log.warning(
                    "no callback thread could be started: %s was not called", name
                )
                return
        if self._runner.behind >= _MAX_QUEUED:
            text = "%s is too slow for the server: one call dropped"
            self._server_log.warning(text, name)
        else:
            self._runner.put(item)

    def _call(self, name: str, callback: Callable[..., object], *args: Any, **kwargs: Any) -> None:
        try:
            given = callback(*args, **kwargs)
            if inspect.isawaitable(given) and self.wait_for is not None:
                self.wait_for(given)
        except Exception as error:  # noqa: BLE001  # application code
            self._server_log.exception(error, name)
        except BaseException as error:  # noqa: BLE001  # it would end the thread, not the program
            text = "%s raised %s: ignored on the callback thread"
            self._server_log.warning(text, name, type(error).__name__)
