"""`Server.run`: event loop, signal handling, graceful shutdown and the stall watchdog.

Only `Server.run` uses this; a server embedded in a program does not touch the program's signals,
threads and exit.
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

from ...concurrency.signal_handlers import handle_signals
from ...errors import TransportError
from ...transports.stdio.server import StdioServer
from .core import core_of

if TYPE_CHECKING:
    import socket

    from ...engine.limits import SocketLimits
    from ...transports.addresses import Http, Tcp, Unix
    from ...transports.http.settings import HttpLimits, HttpSettings
    from .app import Server

__all__ = ["StallWatch", "run_listening", "run_stdio"]

_log: Final = logging.getLogger("trunkline.server")

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# For cancelled asyncio tasks to end after the server has; one that does not is abandoned.
_LEFTOVERS_TIMEOUT_S: Final = 1.0
# The largest block whose memory the process reuses. A call with a text of 1 MB has five copies of
# it in turn; returned to the system after each call, their pages take longer than the call.
_REUSED_BYTES: Final = 4 * 1024 * 1024


def run_stdio(app: Server, auth: Any = None) -> None:
    """Serve stdin and stdout; return when all requests are answered.

    Raises:
        RuntimeError: an event loop is running; `await app.serve(...)` there.
        ValueError: `auth` cannot recognise the client on standard streams.
        SystemExit: the process has no standard streams, or stdout cannot be written: the disk is
            full, for example. A client that has closed its end is not an error.
    """
    auth = core_of(app).auth if auth is None else auth
    if auth is not None:
        # Imported here: most servers on standard streams have none. It raises before a loop runs.
        from ...auth.server.peers import peer_rules_of

        peer_rules_of(auth, "stdio")

    async def serve() -> None:
        transport = StdioServer(core_of(app).policy)
        await app.serve(transport, auth=auth)
        if transport.write_error is not None:
            raise transport.write_error

    _run(app, serve)


def run_listening(
    app: Server,
    address: str | Http | Tcp | Unix,
    limits: HttpLimits | SocketLimits | None,
    *,
    http: HttpSettings | None = None,
    auth: Any = None,
    sock: socket.socket | Sequence[socket.socket] | None = None,
    on_ready: Callable[[Http | Tcp | Unix], object] | None = None,
) -> None:
    """Listen until a signal arrives; return when all requests are answered.

    `on_ready` is called with the actual address when the server listens.

    Raises:
        RuntimeError: an event loop is running; use `app.listen(...)` there.
        SystemExit: the address cannot be used.
    """
    listening = app.listen(address, limits=limits, http=http, auth=auth, sock=sock)

    async def listen() -> None:
        async with listening:
            if on_ready is not None:
                on_ready(listening.address)
            await listening.wait()

    _run(app, listen)


def _run(app: Server, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError(
            "run() starts its own event loop; inside one, await app.serve(...) or app.listen(...)"
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
        # A handler suppresses its cancellation and would block the exit for ever.
        logging.shutdown()
        sys.stderr.flush()
        os._exit(0 if problem is None else 1)
    if problem is not None:
        # Without a traceback: the text names the cause.
        sys.exit(f"{app.name}: {problem}")


def _reuse_freed_memory() -> None:
    """Have the allocator keep the memory of large messages, up to 8 MiB, for the next ones.

    When glibc frees a large block, it takes from its heap what is smaller from then on, and keeps
    twice that size there. No page of this block is touched. Other allocators do as they do.
    """
    bytes(_REUSED_BYTES)


async def _serve(app: Server, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop = asyncio.get_running_loop()
    watch = StallWatch(app, loop)
    serving = loop.create_task(work())
    restore_signals = _catch(app, loop, serving)
    watch.start()
    # Objects of the startup live until exit: exclude them from garbage collection.
    gc.freeze()
    _reuse_freed_memory()
    try:
        try:
            await serving
        except asyncio.CancelledError:
            pass  # only the signal handler cancels it
        await core_of(app).services.finish_tasks()
    finally:
        watch.stop()
        restore_signals()


def _catch(
    app: Server, loop: asyncio.AbstractEventLoop, serving: asyncio.Task[None]
) -> Callable[[], None]:
    """Shut down in order on the first signal, and at once on the second."""
    seen: list[signal.Signals] = []

    def on_signal(number: signal.Signals) -> None:
        seen.append(number)
        app.stop(at_once=len(seen) > 1)
        # Without connections the lifespan is being entered or exited. Entering is cancelled at
        # once; exiting is what the signal asks for, so that takes a second signal.
        runtime = core_of(app).runtime
        if not runtime.connections and (len(seen) > 1 or not runtime.was_opened):
            serving.cancel()

    return handle_signals(loop, _SIGNALS, on_signal)


def _end_leftovers(loop: asyncio.AbstractEventLoop) -> bool:
    """Cancel the remaining asyncio tasks; return True if all of them ended."""
    tasks = asyncio.all_tasks(loop)
    if not tasks:
        return True
    for task in tasks:
        task.cancel()
    _, left = loop.run_until_complete(asyncio.wait(tasks, timeout=_LEFTOVERS_TIMEOUT_S))
    for task in left:
        _log.warning(
            "asyncio task %s still runs %g s after it was cancelled, exiting without it",
            task.get_name(),
            _LEFTOVERS_TIMEOUT_S,
        )
    return not left


# How often the watchdog looks in the time that it reports.
_LOOKS: Final = 4


class StallWatch:
    """Watchdog thread that logs a handler blocking the event loop, with its source line.

    While handlers run, it schedules a callback four times in `limits.stall` seconds. If one has
    not run after `limits.stall` seconds, it reads the stack of the event loop's thread. So a
    handler is reported that blocks for `limits.stall` seconds and a quarter.
    """

    def __init__(self, app: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._app = app
        self._loop = loop
        self._watched = threading.get_ident()
        self._stop = threading.Event()
        self._answered = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="trunkline-stall", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, waiting at most 1 s for it."""
        self._stop.set()
        self._thread.join(1.0)

    def _watch(self) -> None:
        seconds = core_of(self._app).limits.stall
        waited = 0  # quarters since the callback was scheduled
        is_asked = False
        while not self._stop.wait(seconds / _LOOKS):
            if is_asked and not self._answered.is_set():
                waited += 1
                if waited == _LOOKS:
                    self._report(seconds)
                continue
            waited, is_asked = 0, core_of(self._app).runtime.in_flight > 0
            if is_asked:
                self._answered.clear()
                try:
                    self._loop.call_soon_threadsafe(self._answered.set)
                except RuntimeError:
                    return  # the loop is closed

    def _report(self, seconds: float) -> None:
        frame = sys._current_frames().get(self._watched)
        where = "" if frame is None else f"; it is in {_place(frame)}"
        _log.warning(
            "the event loop was blocked for %g s%s. Run a blocking handler on a thread: make it a "
            "plain function, without inline=True",
            seconds,
            where,
        )


def _place(frame: FrameType) -> str:
    # The innermost frame outside this library: the handler, or what it called.
    ours = os.path.dirname(os.path.dirname(__file__))
    for each in reversed(traceback.extract_stack(frame)):
        if not each.filename.startswith(ours) and f"{os.sep}asyncio{os.sep}" not in each.filename:
            return f"{each.name}() ({os.path.basename(each.filename)}:{each.lineno})"
    return "asyncio"
