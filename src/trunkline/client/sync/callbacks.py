"""Synchronous callbacks of a `SyncClient`: called on one thread per client, in order.

The event loop queues the calls and waits for none of them.

The rules that live here, and only here:

* The thread starts with the first call, and ends with the connection.
* An outcome waits for the callbacks that were queued before it (`after`), as it does where
  callbacks run on the event loop.
* At most 1000 notifications are queued, within the byte budget of the client; further ones are
  dropped, counted and logged. Callbacks of calls are never dropped: a call has one outcome.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, Generic, ParamSpec

from ...jsonrpc.limits import Limits
from ..session.diagnostics import CANCEL_TIMEOUT_S, RateLimitedLog
from ..subscriptions.budget import NotificationBudget, WeighedCallback

__all__ = ["Callbacks"]

P = ParamSpec("P")

# The server decides how many notifications it sends; beyond this many they are dropped.
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
        # That of the client; set when the client is made.
        self.budget = NotificationBudget(Limits())
        # Awaits what a synchronous callback returned, on the event loop; set on connecting.
        self.wait_for: Callable[[Awaitable[object]], object] | None = None

    def told(self, name: str, given: Callable[P, object] | None) -> Callable[P, object] | None:
        """Return a callback that queues calls for the thread; an async one is returned as it is."""
        if given is None or inspect.iscoroutinefunction(given):
            return given
        return _QueuedCallback(self, name, given)

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

    def put(self, name: str, item: Callable[[], object]) -> None:
        """Queue a call for the thread."""
        runner = self._started(name)
        if runner is not None:
            runner.put(partial(self._call, name, item))

    def put_notification(self, name: str, item: Callable[[], object], weight: int) -> None:
        """Queue a call for a notification, or drop it if too many or too large ones wait."""
        runner = self._started(name)
        if runner is None:
            self.budget.drop()
            return
        if runner.behind >= _MAX_QUEUED:
            self.budget.drop()
        elif self.budget.take(weight, is_empty=not runner.behind):
            if not runner.put(partial(self._call, name, item, weight)):
                self.budget.release(weight)
            return
        text = "%s is too slow for the server: one notification dropped"
        self._server_log.warning(text, name)

    def _started(self, name: str) -> _CallbackThread | None:
        if self._runner is None:
            try:
                self._runner = _CallbackThread()
            except RuntimeError:  # the system has no more threads, or the program ends
                self._server_log.warning(
                    "no callback thread could be started: %s was not called", name
                )
        return self._runner

    def _call(self, name: str, item: Callable[[], object], weight: int = 0) -> None:
        try:
            given = item()
            if inspect.isawaitable(given) and self.wait_for is not None:
                self.wait_for(given)
        except Exception as error:  # noqa: BLE001  # application code
            self._server_log.exception(error, name)
        except BaseException as error:  # noqa: BLE001  # it would end the thread, not the program
            text = "%s raised %s: ignored on the callback thread"
            self._server_log.warning(text, name, type(error).__name__)
        finally:
            self.budget.release(weight)


class _QueuedCallback(WeighedCallback, Generic[P]):
    """A synchronous callback that is called on the thread."""

    def __init__(self, callbacks: Callbacks, name: str, given: Callable[P, object]) -> None:
        self._callbacks = callbacks
        self._name = name
        self._given = given

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        self._callbacks.put(self._name, partial(self._given, *args, **kwargs))

    def call_weighed(self, weight: int, *args: Any) -> None:
        """Queue a call for a notification, or drop it if the budget is used up."""
        given: Callable[..., object] = self._given
        self._callbacks.put_notification(self._name, partial(given, *args), weight)
