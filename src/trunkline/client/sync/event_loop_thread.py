"""The event loop thread of all synchronous clients of a process.

A `LoopProxy` starts calls on the loop, and the calling thread waits for the outcome: one wake-up
of the loop, and one lock.

The rules that live here, and only here:

* The loop starts with the first client that connects, and stops with the last that closes. At
  exit all open clients are closed, so no child process is left.
* An interrupt (Ctrl-C) while waiting cancels the call, which notifies the server, and waits up to
  2 s for that. `close` continues to its end. A second Ctrl-C returns at once.
* Waiting on the loop's own thread is rejected: it would be a deadlock.
* The loop is created, and its lock taken, on threads that receive no signals. Steps that an
  interrupt may have left half done are idempotent and done again: starting the loop, beginning to
  close, releasing.
* An outcome waits for the synchronous callbacks queued before it (`callbacks`), unless the waiting
  thread is that of the callbacks.
* A forked process has no loop, and cannot use the connections of its parent.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import warnings
from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

from ...errors import ConnectionLost, TrunklineError
from ..client import Client, state_of
from ..requests.call import PendingCall
from ..session.diagnostics import CANCEL_TIMEOUT_S, log
from ..session.session import CLOSED
from .callbacks import Callbacks

__all__ = ["NOT_CONNECTED", "LoopProxy", "PartProxy"]

P = ParamSpec("P")
T = TypeVar("T")

NOT_CONNECTED: Final = "this client is not connected: use `with`, or call `connect()` first"
_ON_THE_LOOP: Final = (
    "this is the thread of the event loop, and a call would wait for itself: make the handler a "
    "plain function, which runs on another thread, or use a Client"
)
_FORKED: Final = (
    "this client was connected by the process that this one was forked from, and is of no use "
    "here: make another"
)

# Errors raised without the frames of this library: the traceback ends at the caller's line.
_SHORT_TRACEBACK: Final = (TrunklineError, ValueError, TimeoutError)

# Seconds that an interrupted thread waits for the cancellation of its call.
_CANCEL_WAIT_S: Final = 2.0
# Seconds that a program waits at exit for open clients: more than it takes to kill a child.
_EXIT_WAIT_S: Final = 15.0
# The longest single wait for a lock, in seconds: a signal that arrives just before the wait is
# handled when the wait ends.
_SIGNAL_CHECK_INTERVAL_S: Final = 0.2


class LoopCall(Generic[T]):
    """A call on the loop, and the thread that waits for it."""

    __slots__ = ("_after", "_error", "_loop_thread", "_value", "gate", "has_ended", "task")

    def __init__(self, loop_thread: LoopThread, after: Callbacks | None) -> None:
        self._loop_thread = loop_thread
        # Callbacks that are called before the outcome is released.
        self._after = after
        self._value: Any = None
        self._error: BaseException | None = None
        # Held until there is an outcome.
        self.gate: LockType = allocate_lock()
        self.gate.acquire()
        self.has_ended = False
        self.task: asyncio.Task[None] | None = None

    def call(self, function: Callable[[], T]) -> None:
        """Call a function, on the loop."""
        try:
            value = function()
        except BaseException as error:  # noqa: BLE001  # raised in the waiting thread
            self.end(None, error)
        else:
            self.end(value)

    def begin(self, function: Callable[[], Coroutine[Any, Any, T]]) -> None:
        """Start to await a coroutine function, on the loop."""
        # The caller may have left before it started, or have started it twice after an interrupt.
        if self.has_ended:
            self._loop_thread.forget(self)
        elif self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._await(function))

    async def _await(self, function: Callable[[], Coroutine[Any, Any, T]]) -> None:
        # Called in the task: a task that is cancelled before its first step would leave a
        # coroutine that is never awaited.
        try:
            value = await function()
        except BaseException as error:  # noqa: BLE001  # as above
            self.end(None, error)
        else:
            self.end(value)

    def end(self, value: Any, error: BaseException | None = None) -> None:
        """Release the outcome; on the loop, or after its end."""
        if self.has_ended:
            return
        self._value, self._error, self.has_ended = value, error, True
        # First: the waiting thread checks whether the loop ends with this call.
        self._loop_thread.forget(self)
        if self._after is None:
            self.gate.release()
        else:
            self._after.after(self.gate.release)

    def cancel(self) -> None:
        """Cancel the call, on the loop, unless it has an outcome."""
        if self.task is None:
            self.end(None, asyncio.CancelledError())
        else:
            # A task that never took its first step does not call `end` itself.
            self.task.add_done_callback(lambda _: self.end(None, asyncio.CancelledError()))
            # After the first step, which may be scheduled and not taken yet: what it awaits
            # is cancelled with it.
            asyncio.get_running_loop().call_soon(self.task.cancel)

    def drop(self) -> None:
        """Cancel the `PendingCall` that was created, on the loop: the caller never received it."""
        if isinstance(self._value, PendingCall):
            self._value.cancel()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the outcome; return False after `seconds`."""
        until = inf if seconds is None else monotonic() + seconds
        while (left := until - monotonic()) > 0:
            if self.gate.acquire(timeout=min(left, _SIGNAL_CHECK_INTERVAL_S)):
                return True
        return False

    def outcome(self) -> T:
        """Return or raise the outcome, in the waiting thread."""
        error = self._error
        if error is None:
            return cast(T, self._value)
        try:
            if isinstance(error, asyncio.CancelledError):
                raise ConnectionLost(CLOSED) from None
            raise error.with_traceback(None) if isinstance(error, _SHORT_TRACEBACK) else error
        finally:
            # Or the traceback and this frame would refer to each other.
            del error
            self._error = None


class LoopThread:
    """An event loop on a thread; it runs as long as there are clients or calls."""

    # Set by `_launch`.
    _loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self._thread = threading.Thread(target=self._main, name="trunkline-loop", daemon=True)
        self._launching = threading.Lock()
        self._is_launched = False
        # Why the loop could not be started.
        self._failure: Exception | None = None
        # Held until the loop was started.
        self._gate: LockType = allocate_lock()
        self._gate.acquire()
        self._works: set[LoopCall[Any]] = set()
        self._is_stopping = False
        # Clients that use this loop.
        self.clients: set[Client] = set()
        # Whether this is a copy of the loop of the parent process.
        self.is_inherited = False

    def start(self) -> None:
        """Create the loop and start its thread, once.

        Raises:
            TrunklineError: the system has no thread or no descriptor left.
        """
        # An interrupt in `Thread.start`, or while a loop is created, leaves an unknown state. So
        # both are done on a thread that receives no signals.
        if not self._is_launched:
            try:
                start_new_thread(self._launch, ())
            except RuntimeError:
                self._launch()  # fails as well, unless another thread has just ended
        while not self._is_launched:
            self._gate.acquire(timeout=_SIGNAL_CHECK_INTERVAL_S)
        if self._failure is not None:
            raise TrunklineError(f"no event loop could be started: {self._failure}")

    def _launch(self) -> None:
        # An interrupted caller may have started this before.
        with self._launching:
            if self._is_launched:
                return
            try:
                self._loop = asyncio.new_event_loop()
                try:
                    self._thread.start()
                except RuntimeError:
                    self._loop.close()
                    raise
            except (RuntimeError, OSError) as error:
                self._failure, self._is_stopping = error, True
            self._is_launched = True
            self._gate.release()

    @property
    def is_running(self) -> bool:
        """Whether calls can run on the loop."""
        return not self.is_inherited and not self._is_stopping

    # -- for other threads -------------------------------------------------------------------

    def run(
        self,
        work: LoopCall[T],
        begin: Callable[[], object],
        *,
        wait: float | None = _CANCEL_WAIT_S,
    ) -> T:
        """Start a call and return its outcome.

        An interrupt cancels it, and waits up to `wait` seconds for that; None has no limit.
        """
        try:
            self._begin(work, begin)
            while not work.gate.acquire(timeout=_SIGNAL_CHECK_INTERVAL_S):
                pass
        except BaseException:  # a signal handler may raise anything
            if work in self._works:
                self.soon(work.cancel)
                work.wait(wait)
            raise
        return work.outcome()

    def run_through(
        self, work: LoopCall[T], begin: Callable[[], object], *, wait: float | None = None
    ) -> T | None:
        """Start a call and return its outcome; an interrupt is raised after its end.

        Returns None if it takes longer than `wait` seconds.
        """
        try:
            self._begin(work, begin)
            has_ended = work.wait(wait)
        except TrunklineError:
            raise
        except BaseException:  # as above
            if not work.has_ended:
                self._begin_surely(work, begin)
                work.wait(wait)
            raise
        return work.outcome() if has_ended else None

    def later(self, function: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Start a call without waiting, and without taking a lock."""
        work: LoopCall[object] = LoopCall(self, None)
        try:
            if not self.is_inherited:
                self._works.add(work)
                self._loop.call_soon_threadsafe(work.begin, function)
        except RuntimeError:
            self._works.discard(work)  # the loop is closed

    def soon(self, function: Callable[[], object]) -> None:
        """Call a function on the loop, unless it is closed."""
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            pass  # the loop is closed

    def join(self) -> None:
        """Wait for the end of the thread, if it is ending."""
        if self._is_stopping and not self.is_here:
            self._thread.join(CANCEL_TIMEOUT_S * 2)

    @property
    def is_here(self) -> bool:
        """Whether the current thread is that of the loop."""
        return self._thread.ident == threading.get_ident()

    def _begin_surely(self, work: LoopCall[Any], begin: Callable[[], object]) -> None:
        """Start a call that may have been started, or have ended."""
        try:
            self._begin(work, begin)
        except TrunklineError:
            work.end(None)  # the loop is closed, and the client with it

    def _begin(self, work: LoopCall[Any], begin: Callable[[], object]) -> None:
        if self.is_inherited:
            raise TrunklineError(_FORKED)
        if self._is_stopping:
            raise TrunklineError(NOT_CONNECTED)
        if self.is_here:
            raise TrunklineError(_ON_THE_LOOP)
        # First: a call that starts while the loop stops is found there, and ended.
        self._works.add(work)
        try:
            self._loop.call_soon_threadsafe(begin)
        except RuntimeError:
            self._works.discard(work)
            raise TrunklineError(NOT_CONNECTED) from None

    def wait_for(self, given: Awaitable[T]) -> T:
        """Return the result of an awaitable."""

        async def wait() -> T:
            return await given

        work: LoopCall[T] = LoopCall(self, None)
        return self.run(work, partial(work.begin, wait))

    # -- on the loop -------------------------------------------------------------------------

    def forget(self, work: LoopCall[Any]) -> None:
        """Remove a call that has ended; stop the loop if it is idle."""
        self._works.discard(work)
        if not self.clients:
            self._stop_if_idle()

    def _stop_if_idle(self) -> None:
        with _shared.lock:
            if self.clients or self._works or self._is_stopping:
                return
            self._is_stopping = True
            if _shared.loop_thread is self:
                _shared.loop_thread = None
        self._loop.stop()

    async def close_all(self) -> None:
        """Close all clients, at exit."""
        clients = list(self.clients)
        await asyncio.gather(*(each.close() for each in clients), return_exceptions=True)
        self.clients.clear()

    def _main(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            # Waits for the lock that the connecting client holds, unless it was interrupted.
            loop.call_soon(self._stop_if_idle)
            while not self._is_stopping:
                self._run_until(loop.run_forever)
            self._run_until(lambda: loop.run_until_complete(self._clear_up()))
        finally:
            loop.close()
            while self._works:
                self._works.pop().end(None, ConnectionLost(CLOSED))

    def _run_until(self, run: Callable[[], object]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001  # such as sys.exit() in a callback; the loop continues
            log.error("%s on the event loop, which ends nothing here", type(error).__name__)

    async def _clear_up(self) -> None:
        """Cancel the remaining tasks."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT_S)
        await self._loop.shutdown_asyncgens()


class _Hold:
    """A client that is about to use the event loop thread, and the outcome."""

    __slots__ = ("client", "error", "gate", "is_abandoned", "is_done", "loop_thread")

    def __init__(self, client: Client) -> None:
        self.client = client
        self.loop_thread: LoopThread | None = None
        self.error: Exception | None = None
        self.is_done = False
        # Whether the caller was interrupted, and may have looked for the client too early.
        self.is_abandoned = False
        # Held until it is done.
        self.gate: LockType = allocate_lock()
        self.gate.acquire()


class _Shared:
    """The event loop thread of this process, if there is one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loop_thread: LoopThread | None = None
        # Loops of the parent process, kept: collecting one would close its descriptors, and one of
        # those is shared with the parent.
        self._inherited: list[LoopThread] = []
        self._is_told = False

    def hold(self, client: Client) -> LoopThread:
        """Return the running loop thread, used by `client`.

        The lock is taken by a thread that receives no signals. On the main thread an interrupt
        could arrive between the lock and the block that would release it.
        """
        if self.loop_thread is not None and self.loop_thread.is_here:
            raise TrunklineError(_ON_THE_LOOP)
        request = _Hold(client)
        try:
            try:
                start_new_thread(self._hold, (request,))
            except RuntimeError:
                self._hold(request)  # fails as well, unless another thread has just ended
            while not request.is_done:
                request.gate.acquire(timeout=_SIGNAL_CHECK_INTERVAL_S)
        except BaseException:  # interrupted
            request.is_abandoned = True
            if not request.is_done:
                # A moment, in which it is usually done: the caller then finds what to release.
                request.gate.acquire(timeout=_SIGNAL_CHECK_INTERVAL_S)
            raise
        if request.error is not None:
            raise request.error
        assert request.loop_thread is not None
        return request.loop_thread

    def _hold(self, request: _Hold) -> None:
        try:
            with self.lock:
                if not request.is_abandoned:
                    request.loop_thread = self._used_by(request.client)
        except (TrunklineError, RuntimeError) as error:
            request.error = error
        request.is_done = True
        request.gate.release()
        if request.is_abandoned and request.loop_thread is not None:
            request.loop_thread.soon(partial(_abandon, request.loop_thread, request.client))

    def _used_by(self, client: Client) -> LoopThread:
        if not self._is_told:
            atexit.register(self._exit)
            if hasattr(os, "register_at_fork"):  # not where processes cannot fork
                os.register_at_fork(after_in_child=self._forked)
            self._is_told = True
        if self.loop_thread is None or not self.loop_thread.is_running:
            self.loop_thread = LoopThread()
        self.loop_thread.start()
        self.loop_thread.clients.add(client)
        return self.loop_thread

    def release(self, client: Client) -> None:
        """Undo `hold` after a failed connect; the loop stops if it is idle."""
        loop_thread = self.loop_thread
        if loop_thread is None or loop_thread.is_here or client not in loop_thread.clients:
            return
        work: LoopCall[None] = LoopCall(loop_thread, None)
        try:
            loop_thread.run_through(
                work, partial(work.call, partial(_release, loop_thread, client))
            )
        except TrunklineError:
            pass  # the loop has ended meanwhile
        loop_thread.join()

    def _exit(self) -> None:
        loop_thread = self.loop_thread
        if loop_thread is None:
            return
        work: LoopCall[None] = LoopCall(loop_thread, None)
        try:
            loop_thread.start()  # an interrupted caller may not have started it
            loop_thread.run_through(
                work, partial(work.begin, loop_thread.close_all), wait=_EXIT_WAIT_S
            )
            loop_thread.join()
        except (KeyboardInterrupt, TrunklineError):
            pass  # it was closed all the same, or is being closed

    def _forked(self) -> None:
        # A thread of the parent may hold the lock.
        self.lock = threading.Lock()
        if self.loop_thread is not None:
            self.loop_thread.is_inherited = True
            self._inherited.append(self.loop_thread)
            self.loop_thread = None


_shared: Final = _Shared()


class LoopProxy:
    """Runs the methods of a client on the event loop thread."""

    def __init__(self, client: Client, callbacks: Callbacks) -> None:
        self.client = client
        self.callbacks = callbacks
        self._loop_thread: LoopThread | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the client has a running loop."""
        return self._loop_thread is not None and self._loop_thread.is_running

    def connect(self) -> None:
        """Connect; an interrupt leaves nothing open."""
        client = self.client
        if self._loop_thread is not None and self._loop_thread.is_inherited:
            raise TrunklineError(_FORKED)
        try:
            self._loop_thread = loop_thread = _shared.hold(client)
            self.callbacks.wait_for = loop_thread.wait_for
            work: LoopCall[None] = LoopCall(loop_thread, None)
            begin = partial(work.begin, partial(_connect, loop_thread, client))
            loop_thread.run(work, begin, wait=None)
        except BaseException as error:
            if not isinstance(error, Exception) and client.is_connected:
                self.close()  # interrupted after it was connected
            else:
                _shared.release(client)
                if self._loop_thread is not None:
                    self._loop_thread.join()
            if isinstance(error, _SHORT_TRACEBACK):
                error.__traceback__ = None
            raise

    def close(self) -> None:
        """Close the client, and stop the loop if it is idle."""
        loop_thread = self._loop_thread
        if loop_thread is None or loop_thread.is_inherited:
            return
        if loop_thread.is_here:
            raise TrunklineError(_ON_THE_LOOP)
        work: LoopCall[None] = LoopCall(loop_thread, None)
        try:
            if loop_thread.is_running:
                begin = partial(work.begin, partial(_close, loop_thread, self.client))
                loop_thread.run_through(work, begin)
        except TrunklineError:
            pass  # closed by another thread meanwhile
        finally:
            self.callbacks.end()
            loop_thread.join()

    def run(
        self, function: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a coroutine function on the loop; return its result."""
        loop_thread = self._loop_thread
        if loop_thread is None:
            raise TrunklineError(NOT_CONNECTED)
        work: LoopCall[T] = LoopCall(loop_thread, self._after())
        try:
            return loop_thread.run(work, partial(work.begin, partial(function, *args, **kwargs)))
        except _SHORT_TRACEBACK as error:
            error.__traceback__ = None
            raise

    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function on the loop; return its result."""
        loop_thread = self._loop_thread
        if loop_thread is None:
            raise TrunklineError(NOT_CONNECTED)
        work: LoopCall[T] = LoopCall(loop_thread, None)
        try:
            return loop_thread.run(work, partial(work.call, partial(function, *args, **kwargs)))
        except _SHORT_TRACEBACK as error:
            error.__traceback__ = None
            raise
        except BaseException:  # interrupted
            loop_thread.soon(work.drop)
            raise

    def later(self, function: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Start a coroutine function on the loop without waiting."""
        if self._loop_thread is not None:
            self._loop_thread.later(function)

    def _after(self) -> Callbacks | None:
        # A callback must not wait for the calls queued after it.
        return None if self.callbacks.is_here else self.callbacks

    def __del__(self) -> None:
        loop_thread = self._loop_thread
        if (
            loop_thread is None
            or not loop_thread.is_running
            or self.client not in loop_thread.clients
        ):
            return
        # Called by the garbage collector on any thread, which may hold any lock: do not wait.
        loop_thread.later(partial(_forgotten, loop_thread, self.client, self.callbacks))
        warnings.warn(f"a client was not closed: {self.client!r}", ResourceWarning, stacklevel=2)


class PartProxy(LoopProxy):
    """Runs the methods of one client of a group, on the loop that the group has."""

    def __init__(self, whole: LoopProxy, client: Client) -> None:
        self._whole = whole
        super().__init__(client, whole.callbacks)

    @property
    def _loop_thread(self) -> LoopThread | None:
        return self._whole._loop_thread

    @_loop_thread.setter
    def _loop_thread(self, _: LoopThread | None) -> None:
        pass  # that of the group

    def connect(self) -> None:
        """Connect, once the group has a loop."""
        self.run(self.client.connect)

    def close(self) -> None:
        """Close this client alone."""
        if self.is_usable:
            self.run(self.client.close)


async def _connect(loop_thread: LoopThread, client: Client) -> None:
    loop_thread.clients.add(client)  # another thread may have closed it meanwhile
    try:
        await client.connect()
    finally:
        _release(loop_thread, client)


async def _close(loop_thread: LoopThread, client: Client) -> None:
    try:
        await client.close()
    finally:
        _release(loop_thread, client)


async def _forgotten(loop_thread: LoopThread, client: Client, callbacks: Callbacks) -> None:
    try:
        await _close(loop_thread, client)
    finally:
        callbacks.end(wait=False)


def _abandon(loop_thread: LoopThread, client: Client) -> None:
    _release(loop_thread, client)
    loop_thread._stop_if_idle()


def _release(loop_thread: LoopThread, client: Client) -> None:
    """Remove a client that has no session on the loop."""
    if state_of(client).is_unused:
        loop_thread.clients.discard(client)
