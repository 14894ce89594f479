"""Running a server as a process: signals, an orderly end, and a look at a loop that hangs.

Only `Server.run` comes here; a server that is embedded in somebody's program leaves its
signals, its threads and its exit alone.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from ...errors import TransportError
from ...transports.stdio.server import StdioServer

if TYPE_CHECKING:
    import socket

    from ...transports.addresses import Tcp, Unix
    from ..app import Server
    from ..settings import SocketLimits

__all__ = ["StallWatch", "run_listening", "run_stdio"]

_log: Final = logging.getLogger("trunkline.server")

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# How long tasks that are left over may take to end, in seconds. One that does not is left.
_LEFTOVERS_TIMEOUT_S: Final = 1.0


def run_stdio(app: Server) -> None:
    """Serve the standard streams; return when everything owed was answered.

    Raises:
        RuntimeError: an event loop is running; `await app.serve(...)` is for there.
        SystemExit: there are no standard streams to serve.
    """
    _run(app, lambda: app.serve(StdioServer(app._core.policy)))


def run_listening(
    app: Server,
    address: str | Tcp | Unix,
    limits: SocketLimits,
    *,
    sock: socket.socket | Sequence[socket.socket] | None = None,
    on_ready: Callable[[Tcp | Unix], object] | None = None,
) -> None:
    """Listen until a signal comes; return when everything owed was answered.

    `on_ready` is called once it listens, with the address it came to be.

    Raises:
        RuntimeError: an event loop is running; `app.listen(...)` is for there.
        SystemExit: the address cannot be listened on.
    """
    listening = app.listen(address, limits=limits, sock=sock)

    async def listen() -> None:
        async with listening:
            if on_ready is not None:
                on_ready(listening.address)
            await listening.wait()

    _run(app, listen)


def _run(app: Server, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a server in a loop of its own, and leave nothing of it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError(
            "run() starts an event loop of its own; in one, await app.serve(...) or app.listen(...)"
        )
    loop = asyncio.new_event_loop()
    is_clean = False
    problem: TransportError | None = None
    try:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(_serve(app, work))
        except TransportError as error:
            problem = error
        is_clean = _end_leftovers(loop)
    finally:
        if is_clean:
            loop.run_until_complete(loop.shutdown_asyncgens())
            asyncio.set_event_loop(None)
            loop.close()
    if not is_clean:
        # Some handler swallows its own cancellation; it would hold up the exit for ever.
        logging.shutdown()
        sys.stderr.flush()
        os._exit(0 if problem is None else 1)
    if problem is not None:
        # There is nothing that a traceback could add.
        sys.exit(f"{app.name}: {problem}")


async def _serve(app: Server, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop = asyncio.get_running_loop()
    watch = StallWatch(app, loop)
    serving = loop.create_task(work())
    signals = _catch(app, loop, serving)
    watch.start()
    # What was made to start up stays: the collector need not look at it again.
    gc.freeze()
    try:
        try:
            await serving
        except asyncio.CancelledError:
            pass  # by a signal: there is nothing else that could
        await app._core.finish_tasks()
    finally:
        watch.stop()
        for each in signals:
            loop.remove_signal_handler(each)


def _catch(
    app: Server, loop: asyncio.AbstractEventLoop, serving: asyncio.Task[None]
) -> list[signal.Signals]:
    """End in order on the first signal, and at once on the second."""
    seen: list[signal.Signals] = []

    def on_signal(number: signal.Signals) -> None:
        seen.append(number)
        app.stop(at_once=len(seen) > 1)
        # There is no connection to stop while the lifespan is entered or left. Entering is given
        # up at once; leaving is what we are asked to do, so that takes a second signal.
        if not app._core.connections and (len(seen) > 1 or not app._core.was_opened):
            serving.cancel()

    caught = []
    for each in _SIGNALS:
        try:
            loop.add_signal_handler(each, on_signal, each)
        except (NotImplementedError, RuntimeError, ValueError):
            continue  # not this platform, or not the main thread: signals are somebody else's
        caught.append(each)
    return caught


def _end_leftovers(loop: asyncio.AbstractEventLoop) -> bool:
    """Cancel what still runs; say whether all of it ended."""
    tasks = asyncio.all_tasks(loop)
    if not tasks:
        return True
    for task in tasks:
        task.cancel()
    _, left = loop.run_until_complete(asyncio.wait(tasks, timeout=_LEFTOVERS_TIMEOUT_S))
    for task in left:
        _log.warning("a task does not end though it was cancelled: %s", task.get_name())
    return not left


class StallWatch:
    """Reports a handler that keeps the event loop from moving, and where it is.

    A thread asks the loop, now and then while handlers are at work, to answer; a loop that
    did not by the next time is looked at from outside.
    """

    def __init__(self, app: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._app = app
        self._loop = loop
        self._watched = threading.get_ident()
        self._stop = threading.Event()
        self._answered = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="trunkline-stall", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join(1.0)

    def _watch(self) -> None:
        seconds = self._app._core.limits.stall
        asked = reported = False
        while not self._stop.wait(seconds):
            if asked and not self._answered.is_set():
                if not reported:
                    self._report(seconds)
                reported = True
                continue
            asked, reported = self._app._core.in_flight > 0, False
            if asked:
                self._answered.clear()
                try:
                    self._loop.call_soon_threadsafe(self._answered.set)
                except RuntimeError:
                    return  # the loop is closed

    def _report(self, seconds: float) -> None:
        frame = sys._current_frames().get(self._watched)
        where = "" if frame is None else f"; it is in {_place(frame)}"
        _log.warning(
            "the event loop has not moved for %g s%s. A handler that blocks belongs on a thread: "
            "make it a plain function, without inline=True",
            seconds,
            where,
        )


def _place(frame: FrameType) -> str:
    """Return the innermost place that is not ours: that is the handler, or what it called."""
    ours = os.path.dirname(os.path.dirname(__file__))
    for each in reversed(traceback.extract_stack(frame)):
        if not each.filename.startswith(ours) and f"{os.sep}asyncio{os.sep}" not in each.filename:
            return f"{each.name}() ({os.path.basename(each.filename)}:{each.lineno})"
    return "asyncio"
