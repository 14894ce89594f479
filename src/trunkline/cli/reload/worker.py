"""The worker process of `serve --reload`; `supervisor` starts it.

The rules that live here, and only here:

* Before it serves it reports whether the server could be loaded, and from which files.
* It ends when the supervisor does.
* It stops accepting connections when a byte arrives on the control socket.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.json import decode, encode

from ...jsonrpc.messages import Shown
from ..command import UsageError
from ..exit_codes import SUCCESS, USAGE_ERROR
from ..loader import LoadError, core_of, load_app, parse_app_target, stdout_on_stderr
from .file_watch import is_own

if TYPE_CHECKING:
    from ...server.api.app import Server

__all__ = ["WorkerOrders", "WorkerReport", "main"]


class WorkerOrders(Shown, Struct, frozen=True):
    """What the supervisor tells a worker."""

    # The options of `trunkline serve`.
    options: dict[str, Any]
    # The descriptor of the control socket.
    control: int
    # The descriptors to listen on; None for standard streams.
    listen: list[int] | None
    # The number of workers started before.
    generation: int


class WorkerReport(Shown, Struct, frozen=True):
    """What a worker tells the supervisor."""

    is_ready: bool
    # Files loaded from the folder of the server.
    files: list[str]
    framing: str = "newline"
    # The largest message it accepts, in bytes.
    size: int | None = None
    # Seconds it may take to stop.
    grace: float = 0.0


# Request ids of each generation, so that those of two workers do not collide.
_IDS_PER_GENERATION: Final = 2**32


def main(text: str) -> int:
    """Run the worker by its orders, in JSON; return the exit status."""
    orders = decode(text, type=WorkerOrders)
    # Children of the server must not inherit it.
    os.set_inheritable(orders.control, False)
    reporter = _Reporter(socket.socket(fileno=orders.control))
    options: Any = SimpleNamespace(**orders.options)
    # A compiled file counts as current if second and size match its source, which can be wrong
    # after an edit.
    sys.dont_write_bytecode = True
    try:
        target = parse_app_target(options.target)
        reporter.folder = target.folder
        with stdout_on_stderr() if orders.listen is None else nullcontext():
            app = load_app(target)
        _serve(app, orders, options, reporter)
    except LoadError as error:
        print(error.trace, file=sys.stderr)
        reporter.files = error.files
        return USAGE_ERROR
    except UsageError as error:
        print(f"{options.prog}: {error}", file=sys.stderr)
        return USAGE_ERROR
    finally:
        # For any failure: the file, the port or the lifespan.
        reporter.report_failure()
    return SUCCESS


def _serve(app: Server, orders: WorkerOrders, options: Any, reporter: _Reporter) -> None:
    from ...server.api.run import run_listening, run_stdio
    from ..commands.serve import (
        begin_log,
        http_settings_of,
        limits_of,
        parse_listen_address,
        set_options,
    )

    set_options(app, options)
    begin_log(options)
    address = parse_listen_address(options)
    if address is None or orders.listen is None:
        _set_first_id(app, orders.generation)
        reporter.report_ready(app)
        run_stdio(app)
        return

    def ready(_: object) -> None:
        reporter.report_ready(app)
        _follow_control(reporter.control, app)

    for each in orders.listen:
        os.set_inheritable(each, False)
    socks = [socket.socket(fileno=each) for each in orders.listen]
    http = http_settings_of(options)
    run_listening(app, address, limits_of(options), http=http, sock=socks, on_ready=ready)


class _Reporter:
    """Sends one report."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.folder = os.getcwd()
        # Besides those of the modules: a file that failed to load is not a module.
        self.files: list[str] = []
        self._has_reported = False

    def report_ready(self, app: Server) -> None:
        """Report that the server is ready."""
        core = core_of(app)
        size = core.policy.limits.message_size("stdio")
        self._send(
            WorkerReport(True, self._own_files(), core.policy.framing, size, core.limits.grace)
        )

    def report_failure(self) -> None:
        """Report a failure, unless the server was reported ready."""
        if not self._has_reported:
            self._send(WorkerReport(False, self._own_files()))

    def _send(self, report: WorkerReport) -> None:
        self._has_reported = True
        try:
            self.control.sendall(encode(report) + b"\n")
        except OSError:
            # The supervisor has ended.
            sys.exit(SUCCESS)

    def _own_files(self) -> list[str]:
        found = [getattr(each, "__file__", None) for each in list(sys.modules.values())]
        paths = {os.path.abspath(each) for each in found if isinstance(each, str)}
        return sorted(each for each in paths | {*self.files} if is_own(each, self.folder))


def _set_first_id(app: Server, generation: int) -> None:
    core = core_of(app)
    policy = core.policy
    first = policy.first_id + generation * _IDS_PER_GENERATION
    if first < policy.max_id:
        core.policy = policy.replace(first_id=first)


def _follow_control(control: socket.socket, app: Server) -> None:
    """Stop accepting at a byte on the control socket; stop the server at its end."""
    import asyncio

    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        try:
            has_byte = bool(control.recv(64))
        except BlockingIOError:
            return
        except OSError:
            has_byte = False
        if has_byte:
            for each in core_of(app).runtime.listeners:
                each.stop_accepting()
            return
        loop.remove_reader(control)
        app.stop()

    control.setblocking(False)
    loop.add_reader(control, on_readable)
