"""`serve --workers N`: several processes that serve HTTP on one port.

The supervisor loads the server, binds one socket for each worker (SO_REUSEPORT, so that the system
spreads the connections), and forks. Keys for request state were made with the server, so each
worker can continue a round that another one began.

The rules that live here, and only here:

* A server that keeps something between requests in memory is refused: a client would find it in
  one process and not in the next, and each process would allow as much as one is meant to.
* A worker that exits by itself is replaced after a delay: exponential backoff per worker, 0.1 s to
  5 s, from the beginning again for a worker that ran for 30 s.
* Workers are replaced without end once one of them has listened. If none ever does, the sixth
  failed start in a row stops all of them.
* SIGTERM, SIGINT and SIGHUP stop all workers in order; a second one, at once. From the first on
  connections are refused.
* A worker ends with its supervisor, however that died: it reads a pipe whose other end only the
  supervisor has open. It stops in order, then at once, then exits.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..concurrency.backoff import backoff
from ..server.runtime.workers import obstacles
from ..transports.addresses import Http, Tcp
from ..transports.http.settings import HttpLimits
from ..transports.sockets.listener import bind_all
from .command import UsageError
from .exit_codes import SUCCESS, USAGE_ERROR
from .loader import core_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from ..server.api.app import Server
    from ..transports.http.settings import HttpSettings

    _Handler = Callable[[int, FrameType | None], object] | int | None

__all__ = ["run_workers"]

_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
)
# Starts of one worker that fail before any worker has listened.
_MAX_FAILED_STARTS: Final = 6
_MIN_DELAY_S: Final = 0.1
# A client may wait for this long: connections of a worker are queued while it is replaced.
_MAX_DELAY_S: Final = 5.0
# A worker that ran for longer was not a failed start.
_STEADY_S: Final = 30.0
# For a worker without a supervisor to exit, beyond the grace period of its handlers.
_ORPHAN_TIMEOUT_S: Final = 5.0
_WAKE_UP_BYTES: Final = 4096


def run_workers(
    app: Server, address: object, options: argparse.Namespace, http: HttpSettings | None
) -> int:
    """Serve in several processes until a signal; return the exit status.

    Raises:
        UsageError: the server or the address cannot be shared by processes.
    """
    found = obstacles(core_of(app), http)
    if found:
        raise UsageError(
            "--workers needs a server that keeps nothing between requests: " + "; ".join(found)
        )
    if not isinstance(address, Http) or not isinstance(address.socket, Tcp):
        raise UsageError("--workers needs --http with a port, not a Unix domain socket")
    if not hasattr(socket, "SO_REUSEPORT") or not hasattr(os, "fork"):
        raise UsageError("--workers needs a system with fork and SO_REUSEPORT")
    try:
        # A worker that cannot listen would be replaced again and again.
        app.listen(address, http=http)
    except ValueError as error:
        raise UsageError(str(error)) from None
    sockets = _bound(address.socket, options.workers, HttpLimits().backlog)
    address = replace(address, port=sockets[0][0].getsockname()[1])
    print(f"listening on {address} with {options.workers} workers", file=sys.stderr, flush=True)
    return _Workers(app, address, options, http, sockets).run()


def _bound(address: Tcp, count: int, backlog: int) -> list[list[socket.socket]]:
    """Return sockets on one port for each worker, one per address of the host."""
    port = address.port
    found: list[list[socket.socket]] = []
    try:
        infos = socket.getaddrinfo(address.host, port, type=socket.SOCK_STREAM)
        rows: list[tuple[int, tuple[object, ...]]] = [(info[0], info[4]) for info in infos]
        # A port that others share already would be shared with them.
        _close([bind_all(rows, port)])
        for _ in range(count):
            found.append(bind_all(rows, port, is_shared=True))
            port = found[0][0].getsockname()[1]
            for sock in found[-1]:
                # From now on connections wait in the backlog, also while a worker is replaced.
                sock.listen(backlog)
    except OSError as error:
        _close(found)
        raise UsageError(f"{address} cannot be listened on: {error.strerror}") from None
    return found


def _close(found: list[list[socket.socket]]) -> None:
    for sockets in found:
        for sock in sockets:
            sock.close()


def _delays() -> Iterator[float]:
    return backoff(_MIN_DELAY_S, _MAX_DELAY_S)


class _Place:
    """A worker, or the place of one that is to be started."""

    __slots__ = ("delays", "failures", "pid", "sockets", "time")

    def __init__(self, sockets: list[socket.socket]) -> None:
        self.sockets = sockets
        self.pid: int | None = None
        # When it was started, or is to be started if there is no process.
        self.time = 0.0
        self.delays = _delays()
        # In a row.
        self.failures = 0


class _Workers:
    """The processes of one server; it runs no event loop and no thread, so that it can fork."""

    def __init__(
        self,
        app: Server,
        address: Http,
        options: argparse.Namespace,
        http: HttpSettings | None,
        sockets: list[list[socket.socket]],
    ) -> None:
        self._app = app
        self._address = address
        self._options = options
        self._http = http
        self._sockets = sockets
        self._places = [_Place(each) for each in sockets]
        self._has_listened = False
        # Signals that arrived, and those that were passed on to the workers.
        self._signals = 0
        self._passed_on = 0
        self._status = SUCCESS
        # Written to by workers that listen, and by signals.
        self._ready = self._wake_up = (-1, -1)
        # Ends when this process does.
        self._lifeline = (-1, -1)
        self._on_child: _Handler = None

    def run(self) -> int:
        """Run until all workers have ended."""
        self._ready, self._wake_up, self._lifeline = os.pipe(), os.pipe(), os.pipe()
        for fd in (*self._ready, *self._wake_up):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self._wake_up[1], warn_on_full_buffer=False)
        for each in _SIGNALS:
            signal.signal(each, self._on_signal)
        # A signal without a handler does not wake up.
        self._on_child = signal.signal(signal.SIGCHLD, lambda _, __: None)
        while True:
            self._pass_signals_on()
            now = time.monotonic()
            for place in () if self._signals else self._places:
                if place.pid is None and place.time <= now:
                    self._start(place)
            if self._signals and all(place.pid is None for place in self._places):
                return self._status
            self._wait()
            self._reap()

    def _wait(self) -> None:
        """Wait for a signal, the end of a child, or the time of a start."""
        due = [place.time for place in self._places if place.pid is None]
        timeout = None
        if due and not self._signals:
            timeout = max(0.0, min(due) - time.monotonic())
        woken, _, _ = select.select([self._ready[0], self._wake_up[0]], [], [], timeout)
        for fd in woken:
            os.read(fd, _WAKE_UP_BYTES)
            self._has_listened |= fd == self._ready[0]

    def _reap(self) -> None:
        for place in self._places:
            if place.pid is None:
                continue
            # By its id: the server may have children of its own.
            try:
                pid, status = os.waitpid(place.pid, os.WNOHANG)
            except ChildProcessError:
                pid, status = place.pid, 0  # the server has waited for it
            if pid:
                self._ended(place, os.waitstatus_to_exitcode(status))

    def _start(self, place: _Place) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                self._work(place)
            place.pid, place.time = pid, time.monotonic()
        except OSError as error:
            self._failed(place, f"worker not started ({error.strerror})")
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _work(self, place: _Place) -> None:
        """Serve, in the process of a worker; this does not return."""
        status = 1
        try:
            # Signals of the terminal reach the supervisor alone.
            os.setsid()
            # First of all: while one worker has it open, no other one sees its end.
            os.close(self._lifeline[1])
            grace = core_of(self._app).limits.grace
            threading.Thread(
                target=_end_with_supervisor, args=(self._lifeline[0], grace), daemon=True
            ).start()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, self._on_child or signal.SIG_DFL)
            for each in _SIGNALS:
                signal.signal(each, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            for fd in (self._ready[0], *self._wake_up):
                os.close(fd)
            _close([other.sockets for other in self._places if other is not place])
            from ..server.api.run import run_listening
            from .commands.serve import limits_of

            run_listening(
                self._app,
                self._address,
                limits_of(self._options),
                http=self._http,
                sock=place.sockets,
                on_ready=self._report_ready,
            )
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
        except BaseException:  # noqa: BLE001  # shown as the interpreter would, before the exit
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _report_ready(self, _: object) -> None:
        """Report to the supervisor that a worker listens, in its process."""
        try:
            os.write(self._ready[1], b".")
        except OSError:
            pass  # there are reports enough, or no supervisor
        os.close(self._ready[1])

    def _ended(self, place: _Place, status: int) -> None:
        pid, place.pid = place.pid, None
        if self._signals:
            return
        if time.monotonic() - place.time >= _STEADY_S:
            place.failures, place.delays = 0, _delays()
        self._failed(place, f"worker {pid} exited with {status}")

    def _failed(self, place: _Place, what: str) -> None:
        """Start a worker later in place of one that failed, or stop all of them."""
        place.failures += 1
        if not self._has_listened and place.failures >= _MAX_FAILED_STARTS:
            print(
                f"trunkline serve: {what}; no worker has listened after {place.failures} starts, "
                "stopping",
                file=sys.stderr,
            )
            self._status = USAGE_ERROR
            self._signals += 1
            return
        delay = next(place.delays)
        place.time = time.monotonic() + delay
        print(f"trunkline serve: {what}, replaced in {delay:.1f} s", file=sys.stderr)

    def _on_signal(self, number: int, frame: object) -> None:
        self._signals += 1

    def _pass_signals_on(self) -> None:
        while self._passed_on < self._signals:
            self._passed_on += 1
            # Or connections would wait in the backlog for workers that do not accept them any more.
            _close(self._sockets)
            for place in self._places:
                try:
                    if place.pid is not None:
                        os.kill(place.pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass  # the server has waited for it


def _end_with_supervisor(lifeline: int, grace: float) -> None:
    """Stop this worker when the other end of a pipe is closed, which its supervisor has open."""
    os.read(lifeline, 1)
    # In order, then at once: what the loop does with them.
    for seconds in (grace + _ORPHAN_TIMEOUT_S, _ORPHAN_TIMEOUT_S):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(seconds)
    os._exit(1)
