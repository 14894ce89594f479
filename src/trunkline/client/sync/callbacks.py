"""The plain callbacks of a client that blocks: on one thread per client, one after the other.

What they are told is put in a queue on the event loop, which waits for none of them. What they
are told of, and whose loop it is, is not known here.

The rules that live here, and only here:

* The thread begins with the first that is told anything, and ends with the connection.
* An outcome waits for the callbacks that came before it, as it does where callbacks run on the
  loop (`after`).
* Only so many wait; what comes beyond that is dropped, and logged.
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

# A server decides how much it tells; what callbacks cannot follow is dropped from here on.
_WAITING: Final = 1000


class _Teller:
    """A thread that calls one thing after the other, until it is told to end."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_ending = False
        # Each is counted by one thread only: the loop's, and ours.
        self._put = 0
        self._done = 0
        self._thread = threading.Thread(target=self._work, name="trunkline-told", daemon=True)
        self._thread.start()

    @property
    def behind(self) -> int:
        """How much waits, or is being called."""
        return self._put - self._done

    @property
    def is_here(self) -> bool:
        """Whether it is what is being called that asks."""
        return self._thread.ident == threading.get_ident()

    def put(self, item: Callable[[], object]) -> bool:
        """Have something called, on the loop; say whether it will be."""
        with self._lock:
            if self._is_ending:
                return False
            self._put += 1
            self._queue.put(item)
            return True

    def end(self) -> None:
        """End, once what waits was called."""
        with self._lock:
            self._is_ending = True
            self._queue.put(None)

    def join(self) -> None:
        """Wait a little for the end."""
        if not self.is_here:
            self._thread.join(CANCEL_TIMEOUT_S)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            item()
            # Not kept until the next comes: it may hold a client that nobody else does.
            del item
            self._done += 1


class Callbacks:
    """The plain callbacks of one client, on a thread that begins with the first."""

    def __init__(self) -> None:
        self._teller: _Teller | None = None
        self._server_log = RateLimitedLog()
        # Waits for what a plain function returns that has to be awaited; there with a loop.
        self.wait_for: Callable[[Awaitable[object]], object] | None = None

    def told(self, name: str, given: Callable[P, object] | None) -> Callable[P, object] | None:
        """Return a callback as one that is called on the thread; an async one stays on the loop."""
        if given is None or inspect.iscoroutinefunction(given):
            return given
        callback = given

        def tell(*args: P.args, **kwargs: P.kwargs) -> None:
            self._put(name, partial(self._call, name, callback, *args, **kwargs))

        return tell

    @property
    def is_here(self) -> bool:
        """Whether it is a callback that asks."""
        return self._teller is not None and self._teller.is_here

    @property
    def is_behind(self) -> bool:
        """Whether there are callbacks to wait for, for who is none himself."""
        teller = self._teller
        return teller is not None and teller.behind > 0 and not teller.is_here

    def after(self, item: Callable[[], object]) -> None:
        """Call something now, or once all callbacks have been called that were to be before."""
        teller = self._teller
        if teller is None or not teller.behind or not teller.put(item):
            item()

    def end(self, *, wait: bool = True) -> None:
        """End the thread; what waits is called first, and waited for a little."""
        teller = self._teller
        if teller is not None:
            # First: who is interrupted in between leaves no thread.
            teller.end()
            self._teller = None
            if wait:
                teller.join()
            self._server_log.end()

    def _put(self, name: str, item: Callable[[], object]) -> None:
        if self._teller is None:
            try:
                self._teller = _Teller()
            except RuntimeError:  # the system has no more threads, or the program ends
                self._server_log.warning("no thread could be started, so %s is not called", name)
                return
        if self._teller.behind >= _WAITING:
            text = "%s cannot follow what the server sends: one call is dropped"
            self._server_log.warning(text, name)
        else:
            self._teller.put(item)

    def _call(self, name: str, callback: Callable[..., object], *args: Any, **kwargs: Any) -> None:
        try:
            given = callback(*args, **kwargs)
            if inspect.isawaitable(given) and self.wait_for is not None:
                self.wait_for(given)
        except Exception as error:  # noqa: BLE001  # somebody else's code
            self._server_log.exception(error, name)
        except BaseException as error:  # noqa: BLE001  # it would end the thread, not the program
            text = "%s raised %s, which ends nothing here"
            self._server_log.warning(text, name, type(error).__name__)
