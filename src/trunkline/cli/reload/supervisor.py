"""Supervisor of `serve --reload`: runs the server in a worker process, restarted on file changes.

The supervisor loads nothing of the server. It watches files, starts workers and owns what
outlives them: the listening sockets here, the client on standard streams in `stdio_front`.

The rules that live here, and only here:

* A worker takes over after it has reported ready. If it cannot be loaded, the one before
  continues, and the error is printed.
* No connection is refused during a reload: the sockets are bound once, for all workers. The old
  worker stops accepting when the new one starts, and is stopped 1 s later.
* Each worker leads a session of its own, so Ctrl-C reaches only the supervisor: the first stops
  the workers gracefully, the second at once, the third kills them. None outlives it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from msgspec import DecodeError
from msgspec.json import decode, encode

from ...errors import TransportError
from ...transports.io.fd import check_platform
from ..exit_codes import SUCCESS, USAGE_ERROR
from ..loader import AppTarget
from ..output.terminal import fitted
from .file_watch import FileWatch
from .worker import WorkerOrders, WorkerReport

if TYPE_CHECKING:
    from ...transports.addresses import Http, Tcp, Unix
    from ...transports.sockets.unix_path import SocketFile

__all__ = [
    "SocketFront",
    "Supervisor",
    "Worker",
    "WorkerFront",
    "WorkerRejected",
    "notify",
    "run_reloading",
]

# Files are polled, and have to be unchanged for the second interval: editors write in several
# steps, and tools write several files.
_WATCH_INTERVAL_S: Final = 0.3
_SETTLE_INTERVAL_S: Final = 0.1
_MAX_SETTLE_ROUNDS: Final = 20
# Added to a worker's own grace period before it is killed.
_EXIT_TIMEOUT_S: Final = 3.0
# Between the last accept of an old worker and its stop: a new client may still be in its
# handshake.
_LINGER_S: Final = 1.0
# A report lists files.
_MAX_REPORT_BYTES: Final = 16 * 1024 * 1024
# Not every platform has all of them.
_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
)
# The program of a worker. It has our `sys.path`, without the current folder in front: a server
# may be called `trunkline.py`.
_WORKER_PROGRAM: Final = """\
import sys
orders, sys.path[:] = sys.argv[1], sys.argv[2:]
from trunkline.cli.reload.worker import main
sys.exit(main(orders))
"""


class WorkerRejected(Exception):
    """A worker that was ready cannot take over; the text says why."""


def notify(text: str) -> None:
    """Print a line on standard error."""
    try:
        print(fitted(f"trunkline serve: {text}", hanging="  "), file=sys.stderr, flush=True)
    except OSError:
        pass  # a closed stderr must not end the server


# A worker


class Worker:
    """One process that runs the server; see `start`."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self._process = process
        self._control = control
        self.pid = process.pid
        # The pipes to it, if it serves standard streams.
        self.pipes: tuple[int, int] | None = None
        # Its report; None if it ended before.
        self.report: asyncio.Task[WorkerReport | None] = _task(self._read_report())
        # Done when it has exited; the result is its exit status.
        self.ended: asyncio.Task[int] = _task(self._wait())
        self.is_stopping = False
        self._grace = 0.0

    @classmethod
    async def start(cls, orders: WorkerOrders, listen: Sequence[socket.socket] | None) -> Worker:
        """Start a process that listens on sockets, or serves pipes if `listen` is None.

        Raises:
            OSError: the process cannot be started.
        """
        ours, theirs = socket.socketpair()
        pipes = _pipes() if listen is None else None
        fds = [theirs.fileno(), *(each.fileno() for each in listen or ())]
        try:
            process = await asyncio.create_subprocess_exec(
                *_python(),
                *(
                    "-c",
                    _WORKER_PROGRAM,
                    encode(_with_descriptors(orders, fds)).decode(),
                    *sys.path,
                ),
                stdin=asyncio.subprocess.DEVNULL if pipes is None else pipes[0],
                stdout=None if pipes is None else pipes[3],
                pass_fds=fds,
                start_new_session=True,
            )
        except BaseException:  # also a cancellation: no descriptor may leak
            ours.close()
            if pipes is not None:
                os.close(pipes[1])
                os.close(pipes[2])
            raise
        finally:
            theirs.close()
            if pipes is not None:
                os.close(pipes[0])
                os.close(pipes[3])
        worker = cls(process, ours)
        if pipes is not None:
            worker.pipes = pipes[2], pipes[1]
        return worker

    async def _read_report(self) -> WorkerReport | None:
        self._control.setblocking(False)
        loop, said = asyncio.get_running_loop(), b""
        while not said.endswith(b"\n") and len(said) < _MAX_REPORT_BYTES:
            try:
                data = await loop.sock_recv(self._control, 65_536)
            except OSError:
                return None
            if not data:
                return None
            said += data
        try:
            report = decode(said, type=WorkerReport)
        except DecodeError:
            return None
        self._grace = report.grace
        return report

    async def _wait(self) -> int:
        status = await self._process.wait()
        # Children that it left behind end with it.
        self._signal_group(signal.SIGTERM)
        return status if status >= 0 else 128 - status

    def stop_accepting(self) -> None:
        """Make it accept no more connections, and keep the open ones."""
        try:
            self._control.send(b"\n")
        except OSError:
            pass  # it has already exited

    def stop(self) -> None:
        """Send SIGTERM: the first ends it gracefully, the second at once."""
        self.is_stopping = True
        if not self.ended.done():
            try:
                self._process.send_signal(signal.SIGTERM)
            except ProcessLookupError:
                pass  # it has already exited

    def kill(self) -> None:
        """Send SIGKILL."""
        self.is_stopping = True
        if not self.ended.done():
            self._signal_group(signal.SIGKILL)

    async def end(self) -> int:
        """Wait for a stopped worker to exit, kill it after a timeout; return its status."""
        try:
            await asyncio.wait((self.ended,), timeout=self._grace + _EXIT_TIMEOUT_S)
        finally:
            # Also when the waiting task is cancelled.
            if not self.ended.done():
                notify("the worker did not exit in time: killing it")
                self.kill()
        status = await self.ended
        self.report.cancel()
        await asyncio.wait((self.report,))
        self._control.close()
        return status

    def _signal_group(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # no process of the group is left


def _with_descriptors(orders: WorkerOrders, fds: list[int]) -> WorkerOrders:
    return WorkerOrders(orders.options, fds[0], fds[1:] or None, orders.generation)


def _pipes() -> tuple[int, int, int, int]:
    first = os.pipe()
    try:
        return *first, *os.pipe()
    except OSError:  # out of descriptors
        os.close(first[0])
        os.close(first[1])
        raise


def _python() -> list[str]:
    words = [sys.executable, "-P"]
    words += [f"-W{each}" for each in sys.warnoptions]
    for name, value in sys._xoptions.items():
        words.append(f"-X{name}" if value is True else f"-X{name}={value}")
    return words


def _task(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return asyncio.get_running_loop().create_task(work)


# What outlives the workers


class WorkerFront:
    """Owns the side of the clients while workers are replaced."""

    # The sockets that workers listen on, or None.
    listen: list[socket.socket] | None = None

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        # The worker that serves, in the form the front has it.
        self._current: Any = None

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = _task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def open(self) -> None:
        """Open the sockets, if there are any."""

    async def adopt(self, worker: Worker, report: WorkerReport) -> None:
        """Let a ready worker take over, and stop the one before it.

        Raises:
            WorkerRejected: it cannot take over; the one before continues.
        """
        raise NotImplementedError

    async def serve_without_worker(self) -> None:
        """Continue although the first worker could not be started."""

    def on_worker_exit(self, worker: Worker, status: int) -> bool:
        """Handle the exit of a worker; return True if none is left."""
        raise NotImplementedError

    @property
    def is_served(self) -> bool:
        """True if a worker serves."""
        return self._current is not None

    async def close(self) -> None:
        """Stop all workers and release everything."""
        raise NotImplementedError


class SocketFront(WorkerFront):
    """Listening sockets, bound once and served by one worker after the other."""

    def __init__(self, address: Http | Tcp | Unix, options: dict[str, Any]) -> None:
        super().__init__()
        self._address = address
        self._options = options
        self._file: SocketFile | None = None
        self._current: Worker | None = None
        self._closing = asyncio.Event()

    async def open(self) -> None:
        """Bind the sockets and print the address.

        Raises:
            TransportError: an address cannot be bound.
        """
        from ...engine.limits import SocketLimits
        from ...transports.addresses import Http, Unix

        where, backlog = str(self._address), SocketLimits().backlog
        is_http = isinstance(self._address, Http)
        address = self._address.socket if isinstance(self._address, Http) else self._address
        if isinstance(address, Unix):
            # Imported here: only POSIX has it.
            from ...transports.sockets.unix_path import SocketFile

            self._file = SocketFile(address, backlog=backlog)
            self.listen = [self._file.socket]
        else:
            self.listen = await _bound(address)
            # The next worker uses the same port.
            port = self.listen[0].getsockname()[1]
            host = f"[{address.host}]" if ":" in address.host else address.host
            self._options["http" if is_http else "tcp"] = f"{host}:{port}"
            where = str(replace(self._address, port=port))
            # From now on connections wait in the backlog.
            for each in self.listen:
                each.listen(backlog)
        print(f"listening on {where}", file=sys.stderr, flush=True)

    async def adopt(self, worker: Worker, report: WorkerReport) -> None:
        """Make the worker before stop accepting, and stop it soon.

        Raises:
            WorkerRejected: the new worker has exited.
        """
        if worker.ended.done():
            raise WorkerRejected(f"the server exited with status {worker.ended.result()}")
        before, self._current = self._current, worker
        if before is not None:
            before.stop_accepting()
            self._spawn(self._retire(before))

    async def _retire(self, worker: Worker) -> None:
        """Stop a worker after `_LINGER_S`, or at once if the supervisor ends."""
        closing = _task(self._closing.wait())
        await asyncio.wait(
            (closing, worker.ended), timeout=_LINGER_S, return_when=asyncio.FIRST_COMPLETED
        )
        closing.cancel()
        worker.stop()
        await worker.end()

    def on_worker_exit(self, worker: Worker, status: int) -> bool:
        """Handle the exit of a worker; return True if none is left."""
        if worker is not self._current:
            return False
        self._current = None
        self._spawn(worker.end())
        return True

    async def close(self) -> None:
        """Stop all workers, close the sockets and remove their file."""
        self._closing.set()
        if self._current is not None:
            self._current.stop()
            self._spawn(self._current.end())
            self._current = None
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._file is not None:
            # Before the socket closes: a file without a listener refuses connections.
            self._file.remove()
        for each in self.listen or ():
            each.close()


async def _bound(address: Tcp) -> list[socket.socket]:
    from ...transports.sockets.listener import bound

    try:
        return await bound(asyncio.get_running_loop(), address)
    except OSError as error:
        raise TransportError(f"{address} cannot be listened on: {error.strerror}") from None


# The supervisor


class Supervisor:
    """Starts a worker on each file change, until a signal or `finish` ends it."""

    def __init__(
        self, options: dict[str, Any], target: AppTarget, watch: FileWatch, front: WorkerFront
    ) -> None:
        self._options = options
        self._target = target
        self._watch = watch
        self._front = front
        self._generation = 0
        self._workers: set[Worker] = set()  # all that have not exited
        self._attempt: asyncio.Task[None] | None = None
        self._is_adopting = False
        self._signals = 0
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def finish(self, status: int) -> None:
        """End with this exit status."""
        if not self._over.done():
            self._over.set_result(status)

    async def run(self) -> int:
        """Serve and reload until the end; return the exit status.

        Raises:
            TransportError: the address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        for each in _SIGNALS:
            loop.add_signal_handler(each, self._on_signal)
        watching: asyncio.Task[None] | None = None
        try:
            await self._front.open()
            self._begin()
            watching = _task(self._watch_files())
            await asyncio.wait((self._over, watching), return_when=asyncio.FIRST_COMPLETED)
            if not self._over.done():
                watching.result()  # it returns only by raising
        finally:
            await self._end(watching)
            for each in _SIGNALS:
                loop.remove_signal_handler(each)
        return self._over.result()

    async def _end(self, watching: asyncio.Task[None] | None) -> None:
        for task in (watching, self._attempt):
            if task is not None:
                task.cancel()
                await asyncio.wait((task,))
        await self._front.close()

    def _on_signal(self) -> None:
        self._signals += 1
        self.finish(SUCCESS)
        for worker in self._workers if self._signals > 1 else ():
            if self._signals == 2:
                worker.stop()
            else:
                worker.kill()

    async def _watch_files(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_INTERVAL_S)
            changed = self._watch.changes()
            if not changed:
                continue
            for _ in range(_MAX_SETTLE_ROUNDS):
                await asyncio.sleep(_SETTLE_INTERVAL_S)
                more = self._watch.changes()
                if not more:
                    break
                changed += more
            notify(f"{_file_summary(changed, self._target.folder)} changed")
            await self._cancel_attempt()
            self._begin()

    async def _cancel_attempt(self) -> None:
        """Cancel an attempt whose files have changed again."""
        attempt = self._attempt
        if attempt is not None and not attempt.done():
            if not self._is_adopting:
                attempt.cancel()
            await asyncio.wait((attempt,))

    def _begin(self) -> None:
        self._attempt = _task(self._attempt_reload())
        self._attempt.add_done_callback(self._log_fault)

    def _log_fault(self, attempt: asyncio.Task[None]) -> None:
        if not attempt.cancelled() and (error := attempt.exception()) is not None:
            notify(f"a worker could not be started: {error!r}")

    async def _attempt_reload(self) -> None:
        since = time.time_ns()
        orders = WorkerOrders(self._options, -1, None, self._generation)
        self._generation += 1
        is_first = self._generation == 1
        worker = await Worker.start(orders, self._front.listen)
        self._workers.add(worker)
        worker.ended.add_done_callback(lambda ended: self._ended(worker, ended))
        try:
            report = await asyncio.shield(worker.report)
            self._is_adopting = True
            files = [] if report is None else report.files
            is_ready = report is not None and report.is_ready
            self._watch.expect(files, since, is_complete=is_ready)
            if report is None or not report.is_ready:
                # The worker prints the reason, which comes first.
                await asyncio.wait((worker.ended,), timeout=_EXIT_TIMEOUT_S)
                raise WorkerRejected("the server could not be loaded")
            await self._front.adopt(worker, report)
        except WorkerRejected as error:
            await self._discard(worker, f"{error}; {self._outlook()}")
            if is_first:
                await self._front.serve_without_worker()
        except BaseException:  # most likely the attempt was cancelled
            await self._discard(worker)
            raise
        else:
            if not is_first:
                notify("reloaded")
        finally:
            self._is_adopting = False

    def _outlook(self) -> str:
        return (
            "still serving the previous version"
            if self._front.is_served
            else "waiting for a change"
        )

    async def _discard(self, worker: Worker, why: str = "") -> None:
        if why:
            notify(why)
        worker.stop()
        close_pipes(worker)
        await worker.end()

    def _ended(self, worker: Worker, ended: asyncio.Task[int]) -> None:
        self._workers.discard(worker)
        if ended.cancelled() or worker.is_stopping:
            return
        if self._front.on_worker_exit(worker, ended.result()):
            notify(f"the server exited with status {ended.result()}; waiting for a change")


def close_pipes(worker: Worker) -> None:
    """Close the pipes of a worker that was not adopted."""
    if worker.pipes is not None:
        for fd in worker.pipes:
            os.close(fd)
        worker.pipes = None


def _file_summary(paths: list[str], folder: str) -> str:
    names = [os.path.relpath(path, folder) for path in dict.fromkeys(paths)]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def run_reloading(
    options: argparse.Namespace, target: AppTarget, address: Http | Tcp | Unix | None
) -> int:
    """Serve a file and reload it when it changes; return the exit status."""
    for folder in options.reload_dir:
        if not os.path.isdir(folder):
            notify(f"--reload-dir: {folder!r} is not a folder")
            return USAGE_ERROR
    try:
        check_platform("--reload")
        return asyncio.run(_supervise(options, target, address))
    except TransportError as error:
        notify(str(error))
        return USAGE_ERROR


async def _supervise(
    options: argparse.Namespace, target: AppTarget, address: Http | Tcp | Unix | None
) -> int:
    given = {name: value for name, value in vars(options).items() if name != "command"}
    watch = FileWatch(target.folder, options.reload_dir)
    front: WorkerFront
    if address is not None:
        front = SocketFront(address, given)
        return await Supervisor(given, target, watch, front).run()
    # Imported here: only stdio needs it.
    from .stdio_front import StdioFront

    front = StdioFront(options.framing, options.linger)
    supervisor = Supervisor(given, target, watch, front)
    front.on_end = supervisor.finish
    return await supervisor.run()
