"""A server that is started by `reloading`, in a process of its own: that process' end of it.

The rules that live here, and only here:

* Before it serves anybody it reports: that it could be loaded, or not, and from which files.
* It ends when whoever started it does.
* It lets nobody in any more when it is told that another does: by a word on the same socket that
  its report went by.
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

from ..command import UsageError
from ..exit_codes import SUCCESS, USAGE_ERROR
from ..loader import LoadError, load_app, parse_app_target, stdout_on_stderr
from .file_watch import is_own

if TYPE_CHECKING:
    from ...server.app import Server

__all__ = ["WorkerOrders", "WorkerReport", "main"]


class WorkerOrders(Struct, frozen=True):
    """What a process is told by whoever started it."""

    # Those of `trunkline serve`, by name.
    options: dict[str, Any]
    # The descriptor to report to.
    control: int
    # The descriptors to listen on; None is standard streams.
    listen: list[int] | None
    # How many were started before this one, for the same client.
    generation: int


class WorkerReport(Struct, frozen=True):
    """What a process says of itself."""

    # Whether it is ready to serve.
    is_ready: bool
    # What it loaded from its own folder.
    files: list[str]
    framing: str = "newline"
    # The largest message that it takes, in bytes.
    size: int | None = None
    # How long it may take to end, in seconds.
    grace: float = 0.0


# So many numbers belong to one generation, so that what two of them ask is not mixed up.
_NUMBERS_EACH: Final = 2**32


def main(text: str) -> int:
    """Do as ordered, in JSON; return the exit status."""
    orders = decode(text, type=WorkerOrders)
    # What the server starts has no business with it.
    os.set_inheritable(orders.control, False)
    reporter = _Reporter(socket.socket(fileno=orders.control))
    options: Any = SimpleNamespace(**orders.options)
    # A compiled file counts as current if it is of the same second and size as its source, which
    # after an edit it may be without being so.
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
        # Whatever it was: a file that does not load, a port, a lifespan.
        reporter.tell_failure()
    return SUCCESS


def _serve(app: Server, orders: WorkerOrders, options: Any, reporter: _Reporter) -> None:
    from ...server.runtime.run import run_listening, run_stdio
    from ..commands.serve import begin_log, limits_of, parse_listen_address, set_framing

    set_framing(app, options)
    begin_log(options)
    address = parse_listen_address(options)
    if address is None or orders.listen is None:
        _number(app, orders.generation)
        reporter.tell_ready(app)
        run_stdio(app)
        return

    def ready(_: object) -> None:
        reporter.tell_ready(app)
        _heed(reporter.control, app)

    for each in orders.listen:
        os.set_inheritable(each, False)
    socks = [socket.socket(fileno=each) for each in orders.listen]
    run_listening(app, address, limits_of(options), sock=socks, on_ready=ready)


class _Reporter:
    """Says once how it went."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.folder = os.getcwd()
        # Besides those of the modules: a file that could not be loaded is no module.
        self.files: list[str] = []
        self._has_told = False

    def tell_ready(self, app: Server) -> None:
        """Say that the server is ready, and what there is to know of it."""
        policy = app._core.policy
        size = policy.limits.message_size("stdio")
        self._tell(
            WorkerReport(True, self._own_files(), policy.framing, size, app._core.limits.grace)
        )

    def tell_failure(self) -> None:
        """Say that it is not, unless it was said that it is."""
        if not self._has_told:
            self._tell(WorkerReport(False, self._own_files()))

    def _tell(self, report: WorkerReport) -> None:
        self._has_told = True
        try:
            self.control.sendall(encode(report) + b"\n")
        except OSError:
            # Whoever started us has ended, and so do we.
            sys.exit(SUCCESS)

    def _own_files(self) -> list[str]:
        """Return the files of modules that lie in the folder, and are its author's own."""
        found = [getattr(each, "__file__", None) for each in list(sys.modules.values())]
        paths = {os.path.abspath(each) for each in found if isinstance(each, str)}
        return sorted(each for each in paths | {*self.files} if is_own(each, self.folder))


def _number(app: Server, generation: int) -> None:
    """Have a server number its requests as no other does that the same client talks to."""
    policy = app._core.policy
    first = policy.first_id + generation * _NUMBERS_EACH
    if first < policy.max_id:
        app._core.policy = policy.replace(first_id=first)


def _heed(control: socket.socket, app: Server) -> None:
    """Let nobody in any more when we are told so; stop when whoever started us is gone."""
    import asyncio

    loop = asyncio.get_running_loop()

    def hear() -> None:
        try:
            is_word = bool(control.recv(64))
        except BlockingIOError:
            return
        except OSError:
            is_word = False
        if is_word:
            # There is one thing to be told.
            for each in app._core.listeners:
                each.stop_accepting()
            return
        loop.remove_reader(control)
        app.stop()

    control.setblocking(False)
    loop.add_reader(control, hear)
