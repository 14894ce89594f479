"""The `trunkline` command: finds the verb, runs it and returns the exit status.

A verb is a module of `commands`, imported only when it is used: `--version` and `--help` load
nothing else of the library. It has `configure(parser)`, `run(options) -> int` and `EXAMPLES` for
its help; `TAKES_COMMAND = True` if a command may follow `--`, `COMPLETES` if there are words
for shell completion, and `expand(words)` if words are short for others.

The rules that live here, and only here:

* A signal whose exception the interpreter dropped is sent again.
"""

from __future__ import annotations

# Built in: their import runs no code that a signal could interrupt.
import _thread
import sys
import time
from collections.abc import Callable, Iterable, Sequence

from .. import __version__
from .exit_codes import EXIT_CODES, INTERRUPTED, SUCCESS, USAGE_ERROR

__all__ = ["VERBS", "main", "send_again"]

# Each verb with its summary for `--help`, by group.
_GROUPS = {
    "use a server": {
        "list": "show what a server offers",
        "call": "call a tool",
        "read": "read a resource",
        "prompt": "get a prompt",
        "ping": "check that a server answers, and how fast",
        "shell": "talk to a server in an interactive session",
    },
    "log in at a server": {
        "login": "log in at a server, for all other verbs",
        "logout": "revoke a login and delete it",
        "auth": "show the logins that are kept",
    },
    "write a server": {
        "init": "create a server project, with tests",
        "serve": "run a server from a file, on stdio, over HTTP or on a socket",
        "proxy": "join a client and a server; record and check their messages",
        "diff": "compare two servers: what changed, and whether it breaks clients",
    },
    "add a server to a host, such as Claude or Cursor": {
        "install": "add a server to the configuration of a host",
        "uninstall": "remove a server from the configuration of a host",
        "hosts": "show the hosts that are here, their servers, and which fail to start",
    },
    "look up and check the protocol": {
        "spec": "look up what the protocol says, in any revision",
        "validate": "check a message, a list of messages or a recording",
        "completion": "print a completion script for bash, zsh or fish",
    },
}
VERBS = {name: summary for group in _GROUPS.values() for name, summary in group.items()}

_EXAMPLES = (
    "trunkline list server.py",
    "trunkline call server.py find text=tea",
    "trunkline list https://mcp.example.org/mcp",
    "trunkline call find text=tea -- npx some-server",
)

# Verbs of similar commands, and what they are called here.
_ELSEWHERE = {
    "add": "install",
    "browse": "list",
    "check": "validate",
    "clients": "hosts",
    "complete": "completion",
    "completions": "completion",
    "config": "hosts",
    "configure": "install",
    "connect": "shell",
    "console": "shell",
    "create": "init",
    "curl": "call",
    "delete": "uninstall",
    "describe": "list",
    "dev": "serve --reload",
    "doctor": "hosts --check",
    "exec": "call",
    "get": "read",
    "info": "list",
    "inspect": "list",
    "inspector": "list",
    "interactive": "shell",
    "invoke": "call",
    "lint": "validate",
    "ls": "list",
    "new": "init",
    "prompts": "list prompts",
    "record": "proxy --record FILE",
    "remove": "uninstall",
    "repl": "shell",
    "resources": "list resources",
    "rm": "uninstall",
    "run": "serve",
    "scaffold": "init",
    "schema": "spec schema",
    "server": "serve",
    "servers": "hosts",
    "setup": "install",
    "sniff": "proxy",
    "start": "serve",
    "status": "ping",
    "tap": "proxy",
    "tools": "list tools",
    "version": "--version",
}
_MIN_WIDTH = 40
_MAX_WIDTH = 120
# Before a signal is sent again: what dropped it has returned by then.
_RETRY_DELAY_S = 0.01


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status, one of `trunkline.cli.exit_codes`."""
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    if words[:1] == ["help"] and len(words) > 1:
        # The verb may be followed by words of its own: `help spec method`.
        words = [*words[1:], "--help"] if words[1] in VERBS else words[1:]
    if not words or words[0] in ("--help", "-h", "help"):
        return _print(_help())
    if words[0] in ("--version", "-V"):
        return _print(f"trunkline {__version__}\n")
    if words[0] not in VERBS:
        _print_error(_unknown(words[0]))
        return USAGE_ERROR
    shown = sys.unraisablehook
    try:
        sys.unraisablehook = _repeating_signals(shown)
        # Imported here: only a verb needs it.
        from .command import run

        return run(words[0], words[1:])
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        sys.unraisablehook = shown
        if arguments is None:
            _prepare_exit()


def _repeating_signals(
    shown: Callable[[sys.UnraisableHookArgs], object],
) -> Callable[[sys.UnraisableHookArgs], None]:
    """Return an unraisable hook that sends a signal again whose exception was dropped.

    The exception of Ctrl-C is raised in any function that runs. In the callback of a weak
    reference, which every import runs, the interpreter prints and drops it. All other exceptions
    go to `shown`.
    """
    main_thread = _thread.get_ident()

    def hook(dropped: sys.UnraisableHookArgs) -> None:
        is_of_signal = issubclass(dropped.exc_type, KeyboardInterrupt)
        if not is_of_signal or _thread.get_ident() != main_thread:
            shown(dropped)
            return
        # SIGTERM and SIGHUP have statuses of their own.
        status = getattr(dropped.exc_value, "status", INTERRUPTED)
        # By another thread: here, the exception would be raised in this hook, and dropped.
        _thread.start_new_thread(send_again, (main_thread, status - 128))

    return hook


def send_again(main_thread: int, number: int) -> None:
    """Send the main thread a signal after 10 ms; called on another thread.

    `threading` must not be imported here: it would take this thread for the main one.
    """
    time.sleep(_RETRY_DELAY_S)
    import signal  # here: `--version` does not need it

    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main_thread, number)
    else:
        _thread.interrupt_main(signal.Signals(number))  # all that Windows has


def _prepare_exit() -> None:
    """Skip the garbage collection at interpreter exit, and the traceback of a late Ctrl-C."""
    import gc
    import signal

    gc.freeze()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _print(text: str) -> int:
    if sys.stdout is None:  # it was closed when Python started
        return SUCCESS
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # The interpreter must not try to flush the rest at exit.
        sys.stdout = None
        if isinstance(error, BrokenPipeError):
            return SUCCESS  # the reader has closed the pipe, as `head` does
        _print_error(f"trunkline: standard output: {error.strerror}")
        return USAGE_ERROR
    return SUCCESS


def _print_error(text: str) -> None:
    # With a closed standard error, `print` would write to standard output instead.
    if sys.stderr is not None:
        print(text, file=sys.stderr)


def _help() -> str:
    width = _width()
    lines = [
        "usage: trunkline VERB ...",
        "       trunkline [--version] [--help]",
        "",
        *_row("", "Tools for JSON-RPC 2.0 and the Model Context Protocol (MCP).", 0, width),
    ]
    for title, group in _GROUPS.items():
        lines += ["", f"{title}:"]
        for name, summary in group.items():
            lines += _row(f"  {name}", summary, 14, width)
    lines += ["", "examples:", *(f"  {line}" for line in _EXAMPLES)]
    more = "`trunkline help VERB` shows the options of a verb, with examples."
    lines += ["", *_row("", more, 0, width), "", "exit status, for every verb:"]
    for code, meaning in EXIT_CODES.items():
        lines += _row(f"  {code}", meaning, 7, width)
    return "\n".join([*lines, ""])


def _row(name: str, text: str, indent: int, width: int) -> Iterable[str]:
    """Yield a name and a text beside it, wrapped at words. `textwrap` is slow to load."""
    line = name.ljust(indent)
    is_empty = True
    for word in text.split():
        if not is_empty and len(line) + 1 + len(word) > width:
            yield line
            line, is_empty = " " * indent, True
        line += word if is_empty else f" {word}"
        is_empty = False
    yield line


def _width() -> int:
    """Return the columns to fill; as `output.terminal`, which is slow to load."""
    import os  # here: `--version` needs no more than the interpreter

    told = os.environ.get("COLUMNS", "")
    columns = int(told) if told.isdecimal() else 0
    for descriptor in (1, 2, 0):
        if columns:
            break
        try:
            columns = os.get_terminal_size(descriptor).columns
        except (OSError, ValueError):
            pass  # not a terminal
    return max(_MIN_WIDTH, min(_MAX_WIDTH, columns or 80))


def _unknown(word: str) -> str:
    from difflib import get_close_matches

    near = [_ELSEWHERE[word]] if word in _ELSEWHERE else get_close_matches(word, VERBS, n=1)
    advice = f"did you mean {near[0]!r}?" if near else "try trunkline --help"
    kind = "option" if word.startswith("-") else "verb"
    return f"trunkline: unknown {kind} {word!r}; {advice}"
