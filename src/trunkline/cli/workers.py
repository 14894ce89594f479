"""`serve --workers N`: several processes that serve HTTP on one port.

The supervisor loads the server, binds one socket for each worker (SO_REUSEPORT, so that the system
spreads the connections), and forks. Keys for request state were made with the server, so each
worker can continue a round that another one began.

The rules that live here, and only here:

* A server that keeps something between requests in memory is refused: a client would find it in
  one process and not in the next, and each process would allow as much as one is meant to.
* A worker that exits by itself is replaced after a delay, at most `_MAX_REPLACEMENTS` times in a
  row; then all of them are stopped.
* SIGTERM, SIGINT and SIGHUP stop all workers in order; a second one, at once. From the first on
  connections are refused.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import time
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
    from ..server.api.app import Server
    from ..transports.http.settings import HttpSettings

__all__ = ["run_workers"]

_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
)
_MAX_REPLACEMENTS: Final = 5
# A worker that ran for longer was not a failed start.
_STEADY_S: Final = 30.0


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
        # By process: its place, and when it was started.
        self._running: dict[int, tuple[int, float]] = {}
        self._delays = backoff(0.1, 5.0)
        self._replaced = 0
        self._signals = 0
        self._status = SUCCESS

    def run(self) -> int:
        """Run until all workers have ended."""
        for each in _SIGNALS:
            signal.signal(each, self._on_signal)
        for place in range(len(self._sockets)):
            self._start(place)
        while self._running:
            try:
                pid, status = os.wait()
            except ChildProcessError:
                break
            self._ended(pid, os.waitstatus_to_exitcode(status))
        return self._status

    def _start(self, place: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                self._work(place)
            self._running[pid] = place, time.monotonic()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _work(self, place: int) -> None:
        """Serve, in the process of a worker; this does not return."""
        status = 1
        try:
            # Signals of the terminal reach the supervisor alone.
            os.setsid()
            for each in _SIGNALS:
                signal.signal(each, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            for other, sockets in enumerate(self._sockets):
                for sock in sockets if other != place else ():
                    sock.close()
            from ..server.api.run import run_listening
            from .commands.serve import limits_of

            limits, sockets = limits_of(self._options), self._sockets[place]
            run_listening(self._app, self._address, limits, http=self._http, sock=sockets)
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

    def _ended(self, pid: int, status: int) -> None:
        place, since = self._running.pop(pid, (-1, 0.0))
        if place < 0 or self._signals:
            return
        if time.monotonic() - since >= _STEADY_S:
            self._replaced, self._delays = 0, backoff(0.1, 5.0)
        self._replaced += 1
        if self._replaced > _MAX_REPLACEMENTS:
            print("trunkline serve: workers exit again and again: stopping", file=sys.stderr)
            self._status = USAGE_ERROR
            self._stop()
            return
        print(f"trunkline serve: worker exited with {status}, replaced", file=sys.stderr)
        time.sleep(next(self._delays))
        if not self._signals:
            self._start(place)

    def _on_signal(self, number: int, frame: object) -> None:
        self._stop()

    def _stop(self) -> None:
        self._signals += 1
        # Or connections would wait in the backlog for workers that do not accept them any more.
        _close(self._sockets)
        for pid in list(self._running):
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass  # it has just exited
