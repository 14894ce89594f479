"""The event loop of the clients that block: on a thread of its own, one for all of a process.

A `LoopProxy` is one client's way there and back. What it runs is begun on the loop, and the thread
that asked waits for the outcome: one wake-up of the loop, and one lock. What the client's
verbs do is not known here.

The rules that live here, and only here:

* The loop begins with the first client that connects and ends with the last that closes, and
  with the program: whatever a script forgot to close is closed then, so no child is left.
* Who is interrupted while waiting (Ctrl-C) has what he waited for cancelled, which tells the
  server, and waits a little for that. To close goes on to its end. A second Ctrl-C gives up
  at once; what is left goes on without him.
* Who would wait on the loop's own thread is refused: it would wait for itself.
* The loop is made where no signal comes. What Ctrl-C may have left half done is done again: to
  launch it, to begin to close and to let go are done once however often they are asked for.
* An outcome waits for the plain callbacks that came before it (`callbacks`), but not if such a
  callback is who waits.
* A process that was forked has no loop, and the connections of its parent are not its own.
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
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar, cast

from ...errors import ConnectionLost, TrunklineError
from ..diagnostics import CANCEL_TIMEOUT_S, log
from ..requests.call import PendingCall
from ..session import CLOSED
from .callbacks import Callbacks

if TYPE_CHECKING:
    from ..client import Client

__all__ = ["NOT_CONNECTED", "LoopProxy"]

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

# Errors whose text says it all: whoever reads the trace looks for his own line, so it ends where
# our part begins.
_TELLING: Final = (TrunklineError, ValueError, TimeoutError)

# How long whoever is interrupted waits for his call to be cancelled. That takes no time unless
# an async handler holds it up.
_CANCEL_WAIT: Final = 2.0
# How long a program that ends waits for what it forgot to close: more than it takes to end
# children that have to be killed.
_EXIT_WAIT: Final = 15.0
# How often whoever waits looks up. A signal that comes in the moment before a lock is waited for
# is seen when that wait ends, so no wait is longer than this.
_LOOK_UP: Final = 0.2


class LoopCall(Generic[T]):
    """Something to be done on the loop, and the thread that waits for it."""

    __slots__ = ("_after", "_error", "_loop_thread", "_value", "gate", "has_ended", "task")

    def __init__(self, loop_thread: LoopThread, after: Callbacks | None) -> None:
        self._loop_thread = loop_thread
        # Whose callbacks are run before the outcome is told.
        self._after = after
        self._value: Any = None
        self._error: BaseException | None = None
        # Held until the outcome is there.
        self.gate: LockType = allocate_lock()
        self.gate.acquire()
        self.has_ended = False
        self.task: asyncio.Task[None] | None = None

    def call(self, function: Callable[[], T]) -> None:
        """Call a function, on the loop."""
        try:
            value = function()
        except BaseException as error:  # noqa: BLE001  # all of it is for who waits
            self.end(None, error)
        else:
            self.end(value)

    def begin(self, function: Callable[[], Coroutine[Any, Any, T]]) -> None:
        """Begin to await what a function returns, on the loop."""
        # He may have given up before it began, or have begun it twice to be sure.
        if self.has_ended:
            self._loop_thread.forget(self)
        elif self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._await(function))

    async def _await(self, function: Callable[[], Coroutine[Any, Any, T]]) -> None:
        # The function is called in here: a task that is cancelled before its first step would
        # else leave a coroutine that nobody awaits.
        try:
            value = await function()
        except BaseException as error:  # noqa: BLE001  # as above
            self.end(None, error)
        else:
            self.end(value)

    def end(self, value: Any, error: BaseException | None = None) -> None:
        """Tell the outcome; on the loop, or when there is none any more."""
        if self.has_ended:
            return
        self._value, self._error, self.has_ended = value, error, True
        # First: whoever has waited looks whether the loop ends with this.
        self._loop_thread.forget(self)
        if self._after is None:
            self.gate.release()
        else:
            self._after.after(self.gate.release)

    def cancel(self) -> None:
        """Cancel it, on the loop; the outcome is that, or whatever came before."""
        if self.task is None:
            self.end(None, asyncio.CancelledError())
        else:
            # Where the task never took its first step nobody else tells.
            self.task.add_done_callback(lambda _: self.end(None, asyncio.CancelledError()))
            self.task.cancel()

    def drop(self) -> None:
        """Cancel the call that came of it, on the loop: it was handed to nobody."""
        if isinstance(self._value, PendingCall):
            self._value.cancel()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the outcome, for so long or without end; say whether it is there."""
        until = inf if seconds is None else monotonic() + seconds
        while (left := until - monotonic()) > 0:
            if self.gate.acquire(timeout=min(left, _LOOK_UP)):
                return True
        return False

    def outcome(self) -> T:
        """Return or raise what came of it, for the thread that waited."""
        error = self._error
        if error is None:
            return cast(T, self._value)
        try:
            if isinstance(error, asyncio.CancelledError):
                raise ConnectionLost(CLOSED) from None
            raise error.with_traceback(None) if isinstance(error, _TELLING) else error
        finally:
            # Or the trace would hold this frame, and this frame the trace.
            del error
            self._error = None


class LoopThread:
    """An event loop on a thread, and what keeps it going: clients, and work under way."""

    # Made by who launches it.
    _loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self._thread = threading.Thread(target=self._main, name="trunkline-loop", daemon=True)
        self._launching = threading.Lock()
        self._is_launched = False
        # Why there is no loop, although it was launched.
        self._failure: Exception | None = None
        # Held until it is launched.
        self._gate: LockType = allocate_lock()
        self._gate.acquire()
        self._works: set[LoopCall[Any]] = set()
        self._is_stopping = False
        # Clients that have something on this loop.
        self.clients: set[Client] = set()
        # Whether this is the memory of a loop that another process runs.
        self.is_inherited = False

    def start(self) -> None:
        """Make the loop and start its thread, unless that was done.

        Raises:
            TrunklineError: the system has no thread or no descriptor left.
        """
        # Whoever is interrupted in `Thread.start` cannot know whether it was started, and in the
        # making of a loop leaves half of one. So both are done by a thread where no signal comes.
        if not self._is_launched:
            try:
                start_new_thread(self._launch, ())
            except RuntimeError:
                self._launch()  # it fails as well, unless some thread has just ended
        while not self._is_launched:
            self._gate.acquire(timeout=_LOOK_UP)
        if self._failure is not None:
            raise TrunklineError(f"no event loop could be started: {self._failure}")

    def _launch(self) -> None:
        # Whoever was interrupted may have begun this before.
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
        """Whether there is a loop that something can be run on."""
        return not self.is_inherited and not self._is_stopping

    # -- for other threads -------------------------------------------------------------------

    def run(
        self,
        work: LoopCall[T],
        begin: Callable[[], object],
        *,
        wait: float | None = _CANCEL_WAIT,
    ) -> T:
        """Begin some work and return what comes of it.

        Who is interrupted meanwhile waits up to `wait` seconds until it is cancelled; None is
        without end.
        """
        try:
            self._begin(work, begin)
            while not work.gate.acquire(timeout=_LOOK_UP):
                pass
        except BaseException:  # what a signal handler raises is anybody's guess
            if work in self._works:
                self.soon(work.cancel)
                work.wait(wait)
            raise
        return work.outcome()

    def run_through(
        self, work: LoopCall[T], begin: Callable[[], object], *, wait: float | None = None
    ) -> T | None:
        """Do the same, but go on to the end when interrupted, and then say so.

        Returns None where it takes longer than `wait` seconds.
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
        """Have something done without waiting for it: also where no lock may be taken."""
        work: LoopCall[object] = LoopCall(self, None)
        try:
            if not self.is_inherited:
                self._works.add(work)
                self._loop.call_soon_threadsafe(work.begin, function)
        except RuntimeError:
            self._works.discard(work)  # the loop is closed, and nothing is left to be done

    def soon(self, function: Callable[[], object]) -> None:
        """Have something called on the loop, where there still is one."""
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            pass  # it is closed, and whoever closed it has ended everything

    def join(self) -> None:
        """Wait until the thread has ended, if it is about to."""
        if self._is_stopping and not self.is_here:
            self._thread.join(CANCEL_TIMEOUT_S * 2)

    @property
    def is_here(self) -> bool:
        """Whether it is the loop's own thread that asks."""
        return self._thread.ident == threading.get_ident()

    def _begin_surely(self, work: LoopCall[Any], begin: Callable[[], object]) -> None:
        """Begin some work that may have been begun, or be over."""
        try:
            self._begin(work, begin)
        except TrunklineError:
            work.end(None)  # the loop is gone, and so is what it was to be done to

    def _begin(self, work: LoopCall[Any], begin: Callable[[], object]) -> None:
        if self.is_inherited:
            raise TrunklineError(_FORKED)
        if self._is_stopping:
            raise TrunklineError(NOT_CONNECTED)
        if self.is_here:
            raise TrunklineError(_ON_THE_LOOP)
        # First: what is begun while the loop ends is found there, and told so.
        self._works.add(work)
        try:
            self._loop.call_soon_threadsafe(begin)
        except RuntimeError:
            self._works.discard(work)
            raise TrunklineError(NOT_CONNECTED) from None

    def wait_for(self, given: Awaitable[T]) -> T:
        """Return what something comes to that is to be awaited."""

        async def wait() -> T:
            return await given

        work: LoopCall[T] = LoopCall(self, None)
        return self.run(work, partial(work.begin, wait))

    # -- on the loop -------------------------------------------------------------------------

    def forget(self, work: LoopCall[Any]) -> None:
        """Take note that some work has ended."""
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
        """Close all clients: the program ends."""
        clients = list(self.clients)
        await asyncio.gather(*(each.close() for each in clients), return_exceptions=True)
        self.clients.clear()

    def _main(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            # Which waits until whoever has launched it is on it, or has been interrupted.
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
        except BaseException as error:  # noqa: BLE001  # sys.exit() in a callback; others go on
            log.error("%s on the event loop, which ends nothing here", type(error).__name__)

    async def _clear_up(self) -> None:
        """End whatever tasks others have left."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT_S)
        await self._loop.shutdown_asyncgens()


class _Shared:
    """The background of this process, if there is one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loop_thread: LoopThread | None = None
        # What the parent's process runs, kept: to collect a loop would close its descriptors,
        # and one of those is shared with the parent.
        self._inherited: list[LoopThread] = []
        self._is_told = False

    def hold(self, client: Client) -> LoopThread:
        """Return the loop_thread, started, with a client to keep it going."""
        with self.lock:
            if self.loop_thread is not None and self.loop_thread.is_here:
                raise TrunklineError(_ON_THE_LOOP)
            if not self._is_told:
                # Twice does no harm, and who is interrupted does it again.
                atexit.register(self._exit)
                os.register_at_fork(after_in_child=self._forked)
                self._is_told = True
            if self.loop_thread is None or not self.loop_thread.is_running:
                self.loop_thread = LoopThread()
            # Who is interrupted here has added nobody, and the loop ends again by itself.
            self.loop_thread.start()
            self.loop_thread.clients.add(client)
            return self.loop_thread

    def let_go(self, client: Client) -> None:
        """Undo that, where nothing came of it; the loop ends if nobody else is on it."""
        loop_thread = self.loop_thread
        if loop_thread is None or loop_thread.is_here or client not in loop_thread.clients:
            return
        work: LoopCall[None] = LoopCall(loop_thread, None)
        try:
            loop_thread.run_through(
                work, partial(work.call, partial(_release, loop_thread, client))
            )
        except TrunklineError:
            pass  # it has ended meanwhile
        loop_thread.join()

    def _exit(self) -> None:
        loop_thread = self.loop_thread
        if loop_thread is None:
            return
        work: LoopCall[None] = LoopCall(loop_thread, None)
        try:
            loop_thread.start()  # it may be that who was to do so was interrupted
            loop_thread.run_through(
                work, partial(work.begin, loop_thread.close_all), wait=_EXIT_WAIT
            )
            loop_thread.join()
        except (KeyboardInterrupt, TrunklineError):
            pass  # it was closed all the same, or is closed by somebody else

    def _forked(self) -> None:
        # Somebody may have held it, and is not here to give it back.
        self.lock = threading.Lock()
        if self.loop_thread is not None:
            self.loop_thread.is_inherited = True
            self._inherited.append(self.loop_thread)
            self.loop_thread = None


_shared: Final = _Shared()


class LoopProxy:
    """A client, and the way to its loop and back."""

    def __init__(self, client: Client, callbacks: Callbacks) -> None:
        self.client = client
        self.callbacks = callbacks
        self._loop_thread: LoopThread | None = None

    @property
    def is_usable(self) -> bool:
        """Whether there is a loop that the client is on."""
        return self._loop_thread is not None and self._loop_thread.is_running

    def connect(self) -> None:
        """Connect; who is interrupted leaves nothing open."""
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
                self.close()  # interrupted when it was done, and nobody else would know
            else:
                _shared.let_go(client)
                if self._loop_thread is not None:
                    self._loop_thread.join()
            if isinstance(error, _TELLING):
                error.__traceback__ = None
            raise

    def close(self) -> None:
        """Close, and end the loop if nobody else is on it."""
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
            pass  # somebody else has closed it meanwhile
        finally:
            self.callbacks.end()
            loop_thread.join()

    def run(
        self, function: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return what a coroutine function returns, on the loop."""
        loop_thread = self._loop_thread
        if loop_thread is None:
            raise TrunklineError(NOT_CONNECTED)
        work: LoopCall[T] = LoopCall(loop_thread, self._after())
        try:
            return loop_thread.run(work, partial(work.begin, partial(function, *args, **kwargs)))
        except _TELLING as error:
            error.__traceback__ = None
            raise

    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a function returns, on the loop."""
        loop_thread = self._loop_thread
        if loop_thread is None:
            raise TrunklineError(NOT_CONNECTED)
        work: LoopCall[T] = LoopCall(loop_thread, None)
        try:
            return loop_thread.run(work, partial(work.call, partial(function, *args, **kwargs)))
        except _TELLING as error:
            error.__traceback__ = None
            raise
        except BaseException:  # interrupted
            loop_thread.soon(work.drop)
            raise

    def later(self, function: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Have something done on the loop without waiting for it; nothing is raised."""
        if self._loop_thread is not None:
            self._loop_thread.later(function)

    def _after(self) -> Callbacks | None:
        # A callback that waits for what comes after it would wait for itself.
        return None if self.callbacks.is_here else self.callbacks

    def __del__(self) -> None:
        loop_thread = self._loop_thread
        if (
            loop_thread is None
            or not loop_thread.is_running
            or self.client not in loop_thread.clients
        ):
            return
        # This may be any thread, with any lock in hand: nothing may be waited for.
        loop_thread.later(partial(_forgotten, loop_thread, self.client, self.callbacks))
        warnings.warn(f"a client was not closed: {self.client!r}", ResourceWarning, stacklevel=2)


async def _connect(loop_thread: LoopThread, client: Client) -> None:
    loop_thread.clients.add(client)  # somebody may have closed it meanwhile
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


def _release(loop_thread: LoopThread, client: Client) -> None:
    """Let go of a client that has nothing on the loop."""
    if client._connection.is_unused:
        loop_thread.clients.discard(client)
