"""Connects a verb to its server, runs it and closes the connection.

One event loop serves one verb: it connects, runs the verb and closes.

The rules that live here, and only here:

* Results go to standard output, everything else to standard error.
* Ctrl-C, SIGTERM and SIGHUP end the verb at any point and leave nothing behind: no child
  process, no half-drawn progress line.
* Values of `--env` are hidden in what the server writes to standard error.
* Elicitations are answered at the terminal. Without a terminal and without `--answer` the client
  does not declare elicitation.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import InvalidMessage, ProtocolError, TransportError, TrunklineError, visible
from ...redaction import HIDDEN, is_secret_name, show
from ..command import UsageError
from ..output.progress import Console, is_interactive
from ..output.terminal import is_terminal
from ..signals import clean_termination, signals_deferred
from .options import command_of, is_http, stdio_of

if TYPE_CHECKING:
    from subprocess import Popen

    from ...client.client import Client
    from ...transports.base import Address
    from ..recording import FrameListener
    from .elicitation import ElicitationPrompt

__all__ = ["Work", "make_client", "run_conversation", "set_log_level", "talk", "transport_name"]

Work = Callable[["Client", Console], Awaitable[int]]


def talk(options: argparse.Namespace, work: Work) -> int:
    """Connect, run `work`, close; return the exit status.

    Raises:
        UsageError: the command line names something that does not exist.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP; the server is gone by then.
    """
    console = Console(level=options.log or "warning", is_verbose=options.verbose)
    _check_save(getattr(options, "save", None))
    return run_conversation(options, console, partial(_talk, options, work, console))


def run_conversation(
    options: argparse.Namespace,
    console: Console,
    begin: Callable[[FrameListener | None, Popen[bytes] | None], Coroutine[Any, Any, int]],
) -> int:
    """Run what `begin` returns on an event loop; return the exit status.

    `begin` gets the function that records frames, and the process of the command after `--`.

    Raises:
        UsageError: the command line names something that does not exist.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP; the server is gone by then.
    """
    with (
        clean_termination(),
        _started(options) as process,
        _trace(options, console) as on_frame,
        _library_log(console),
    ):
        # Imported here: help needs none of it.
        import asyncio

        from ..event_loop import run_interruptible

        try:
            # Everything loaded so far lives until the end: collecting would find no garbage.
            gc.disable()
            runner = asyncio.Runner()
            with signals_deferred():
                runner.get_loop()  # half made, it would complain when it is collected
            ended = run_interruptible(begin(on_frame, process), runner)
            if console.failure is not None:
                from .errors import explain_failure

                # After the end of the server: by then all that it wrote was read.
                explain_failure(console.failure, console)
            return ended
        except TrunklineError as error:
            # Imported here: most verbs succeed.
            from .errors import explain, status

            explain(error, options, console)
            return status(error)
        except KeyboardInterrupt:
            if is_terminal(sys.stderr):
                console.note("")  # ends the line on which the terminal shows ^C
            raise
        finally:
            gc.enable()


@contextmanager
def _started(options: argparse.Namespace) -> Iterator[Popen[bytes] | None]:
    """Start the command before anything else is imported: both load at the same time."""
    if options.target is not None or not hasattr(os, "killpg"):
        yield None
        return
    from ...transports.stdio.process import discard, launch

    command, env = command_of(options)
    process = None
    try:
        with signals_deferred():
            try:
                process = launch(
                    command, env={**os.environ, **env}, cwd=getattr(options, "cwd", None)
                )
            except TransportError:
                pass  # reported by the transport, which tries again
        yield process
    finally:
        # The transport ends the process; this is for the cases in which it did not get that far.
        if process is not None:
            with signals_deferred():
                discard(process)


def _check_save(folder: str | None) -> None:
    """Reject a folder that is not writable before a tool has run."""
    if folder is None:
        return
    if not os.path.isdir(folder):
        raise UsageError(f"--save: {show(folder)} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--save: the folder {show(folder)} is not writable")


async def _talk(
    options: argparse.Namespace,
    work: Work,
    console: Console,
    on_frame: FrameListener | None,
    process: Popen[bytes] | None,
) -> int:
    prompt = _prompt(options, console)
    client = make_client(options, console, on_frame, prompt, process)
    try:
        with console.waiting("connecting"):
            await client.connect()
    except ProtocolError as error:
        raise TransportError(f"cannot connect to the server: {error}") from None
    gc.enable()
    try:
        if prompt is not None and client.server_info is not None:
            prompt.server = client.server_info.name
        await set_log_level(client, options)
        return await work(client, console)
    finally:
        # For good: late progress must not be drawn after the result.
        console.pause()
        await client.close()


def make_client(
    options: argparse.Namespace,
    console: Console,
    on_frame: FrameListener | None,
    prompt: ElicitationPrompt | None,
    process: Popen[bytes] | None,
    on_end: Callable[[TransportError | None], object] | None = None,
    **listeners: Any,
) -> Client:
    """Return a client of the target in the options, not connected; `listeners` are given to it.

    `process` is the command after `--`, if it was started already: for one connection. `on_end`
    is called when a connection has ended, if there is an `on_frame`.
    """
    from ...client.client import Client

    address: Address
    if options.target is not None:
        # Imported here: a command after `--` needs none of it.
        from .target import parse_target

        address = parse_target(options)
    else:
        address = command = stdio_of(options, _hiding(options, console.server_line))
        if process is not None:
            from ...transports.stdio.client import StartedServer

            address = StartedServer(command, process)
    if on_frame is not None:
        from ...transports.tap import Tapped

        address = Tapped(address, on_frame) if on_end is None else Tapped(address, on_frame, on_end)
    return Client(
        address,
        revision=options.revision,
        on_log=console.log,
        on_elicit=None if prompt is None else prompt.form,
        on_elicit_url=prompt.page if prompt is not None and prompt.can_ask else None,
        **_client_options(options),
        **listeners,
    )


def _hiding(options: argparse.Namespace, take: Callable[[str], object]) -> Callable[[str], object]:
    """Return a callback for lines of the server, in which the values of variables are hidden."""
    _, env = command_of(options)
    least = {name: 4 if is_secret_name(name) else 6 for name in env}
    # Line by line, as they arrive; and as a repr shows them.
    parts = {
        part
        for name, value in env.items()
        for line in value.splitlines()
        for part in (line, repr(line)[1:-1])
        if len(part) >= least[name]
    }
    secrets = sorted(parts, key=len, reverse=True)

    def on_line(line: str) -> None:
        for each in secrets:
            line = line.replace(each, HIDDEN)
        take(line)

    return on_line if secrets else take


def _client_options(options: argparse.Namespace) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if options.timeout is not None:
        given["timeout"] = given["connect_timeout"] = options.timeout
        given["max_timeout"] = max(600.0, options.timeout)
        given["probe_timeout"] = min(3.0, options.timeout)
    if options.framing is not None:
        from ...jsonrpc.policy import Policy

        given["policy"] = Policy(framing=options.framing)
    if options.root:
        given["roots"] = [_root(each) for each in options.root]
    return given


def _root(folder: str) -> str:
    from urllib.parse import quote

    if not os.path.isdir(folder):
        raise UsageError(f"--root: {show(folder)} is not a folder")
    # As bytes: the name of a folder need not be valid text.
    return f"file://{quote(os.fsencode(os.path.abspath(folder)))}"


def _prompt(options: argparse.Namespace, console: Console) -> ElicitationPrompt | None:
    if not options.answer and not is_interactive():
        return None
    # Imported here: a script answers no questions.
    from .elicitation import ElicitationPrompt

    return ElicitationPrompt(console, options.answer)


async def set_log_level(client: Client, options: argparse.Namespace) -> None:
    """Request log messages from the level in the options on, if they have one."""
    level = options.log
    if client.era == "per_request":
        # Without a level such a server logs nothing. Sending one is deprecated.
        await client.set_logging_level(level)
    elif level is not None and client.server_capabilities.logging is not None:
        await client.set_logging_level(level)


@contextmanager
def _library_log(console: Console) -> Iterator[None]:
    """Show the library's own log with `--verbose`, and drop it without.

    The beginning of lines that are not messages is kept: the client logs the first ten.
    """
    import logging

    class ConsoleHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            fault = record.args[0] if isinstance(record.args, tuple) and record.args else None
            if isinstance(fault, InvalidMessage) and fault.excerpt:
                console.printed.append(fault.excerpt)
            if console.is_verbose:
                console.note(visible(record.getMessage(), kept="\t\n"), is_dim=True)

    # Without any handler Python would print warnings itself.
    log, handler = logging.getLogger("trunkline"), ConsoleHandler()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


@contextmanager
def _trace(options: argparse.Namespace, console: Console) -> Iterator[FrameListener | None]:
    if options.trace is None:
        yield None
        return
    from ..recording import recorded

    transport = transport_name(options.target)

    def say(text: str) -> None:
        console.error(options.prog, text)

    with recorded(options.trace, transport, say) as on_frame:
        yield on_frame


def transport_name(target: str | None) -> str:
    """Return what a recording calls the transport of a target; None is a command."""
    if target is None:
        return "stdio"
    if is_http(target):
        return "websocket" if target.startswith("ws") else "http"
    return "unix" if target.startswith("unix:") else "tcp"
