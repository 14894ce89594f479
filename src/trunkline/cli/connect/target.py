"""How the verbs that talk to a server reach it: what they are told, and how it ends.

A server is named by an address, or started by the command after `--`. One event loop serves one
verb: it connects, lets the verb work, and closes.

The rules that live here, and only here:

* Results are on standard output; all else is on standard error.
* What goes wrong is one sentence, and a status that says whose fault it is: ours, the
  server's, or that of the way between.
* Ctrl-C, SIGTERM and SIGHUP end the verb at any point with nothing left behind: no child, no
  line half drawn.
* What the server asks is answered by whoever sits at a terminal; without one, and without
  answers in advance, it is told that nobody is there.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ...errors import (
    ConnectionLost,
    LocalProtocolError,
    PeerError,
    ProtocolError,
    RemoteProtocolError,
    RequestTimeout,
    TransportError,
    TrunklineError,
    visible,
)
from ...redaction import redact, show
from ...spec.mcp.levels import LOG_LEVELS
from ...spec.revisions import REVISIONS
from ..command import UsageError, check_text
from ..exit_codes import PROBLEMS_FOUND, UNREACHABLE, USAGE_ERROR
from ..output.progress import Console, is_interactive
from ..output.terminal import is_terminal
from ..signals import clean_termination, signals_deferred

if TYPE_CHECKING:
    from subprocess import Popen

    from ...client.client import Client
    from ...transports.base import Address
    from ...transports.stdio.client import Stdio
    from ..recording import FrameListener
    from .elicitation import ElicitationPrompt

__all__ = [
    "ADDRESSES",
    "FRAMINGS",
    "Work",
    "add_target",
    "address_of",
    "check_tls",
    "near",
    "talk",
    "target_of",
    "wants_json",
    "words_of",
]

Work = Callable[["Client", Console], Awaitable[int]]

# What whoever typed the command can do about it, by error.
_ADVICE: Final = {
    "MISSING_REQUIRED_CLIENT_CAPABILITY": "\n  questions are answered at a terminal, or ahead by "
    "--answer; roots are given by --root",
}
# How long a server that we started may take to leave, and again after SIGTERM: somebody waits
# for their prompt.
_GRACE: Final = 1.0
_NAMES_SHOWN: Final = 20
# How an address begins, and the framings by name; those who know more of both are slow to load.
ADDRESSES: Final = ("tcp://", "tls://", "unix:")
FRAMINGS: Final = ("newline", "content-length", "length-prefix", "detect")


# What a verb is told


def add_target(parser: argparse.ArgumentParser, words: str = "", *, json_gives: str = "") -> None:
    """Declare TARGET, the `words` after it, and the options of every verb that talks.

    `json_gives` names what `--json` takes as its value, where it takes one.
    """
    after = f" {words}" if words else ""
    shown, prog = f"{after} [options]", parser.prog
    parser.usage = f"{prog} TARGET{shown}\n       {prog}{shown} -- COMMAND ..."
    parser.set_defaults(prog=parser.prog)
    # Options may stand between the words, as they do with most commands.
    parser.parse_args = parser.parse_intermixed_args  # type: ignore[method-assign]  # of this one
    parser.add_argument(
        "words",
        nargs="*",
        metavar="TARGET",
        help="tcp://HOST:PORT, tls://HOST:PORT or unix:PATH; none with a command after --",
    )
    _add_output(parser, json_gives)
    parser.add_argument("--revision", choices=REVISIONS, metavar="R", help="speak this revision")
    parser.add_argument(
        "--timeout", type=_seconds, metavar="S", help="how many seconds an answer may take"
    )
    parser.add_argument("--trace", metavar="FILE", help="record the conversation in a file")
    parser.add_argument(
        "--framing",
        choices=FRAMINGS,
        metavar="NAME",
        help="how messages are told apart; default: newline",
    )
    parser.add_argument("--tls-ca", metavar="FILE", help="trust these authorities")
    parser.add_argument("--tls-cert", metavar="FILE", help="show this certificate")
    parser.add_argument("--tls-key", metavar="FILE", help="the key of the certificate")
    parser.add_argument(
        "--env", action="append", default=[], metavar="KEY=VALUE", help="set for the command"
    )
    parser.add_argument(
        "--root", action="append", default=[], metavar="DIR", help="offer this folder as a root"
    )
    parser.add_argument(
        "--answer", action="append", default=[], metavar="KEY=VALUE", help="answer a question ahead"
    )
    parser.add_argument(
        "--log", choices=LOG_LEVELS, metavar="LEVEL", help="show the server's log from"
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show what the server writes on stderr"
    )


def _add_output(parser: argparse.ArgumentParser, json_gives: str) -> None:
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="default: text"
    )
    if json_gives:
        parser.add_argument(
            "--json", nargs="?", const=True, default=None, metavar="OBJECT", help=json_gives
        )
    else:
        parser.add_argument("--json", action="store_true", help="the same as -o json")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"a number of seconds above 0, not {text!r}")
    return seconds


def wants_json(options: argparse.Namespace) -> bool:
    """Say whether the result is to be printed for programs."""
    return options.output == "json" or options.json is True


def words_of(options: argparse.Namespace, *names: str) -> list[str]:
    """Take TARGET off the words, unless there is a command; return the others.

    Raises:
        Misuse: TARGET, or one of the words that `names` calls for, is missing; or an option is
            given that is of no use with such a target.
    """
    words: list[str] = options.words
    options.target = None
    if options.command is None:
        if not words:
            raise UsageError("name an address, or put a command after --; try --help")
        _check_order(words, options.prog)
        options.target, words = words[0], words[1:]
    elif words and words[0].startswith(ADDRESSES):
        raise UsageError(f"there is an address, {show(words[0])}, and a command after --: give one")
    if len(words) < len(names):
        missing = " and ".join(names[len(words) :])
        raise UsageError(f"{missing} is missing; try {options.prog} --help")
    for name, word in zip(names, words, strict=False):
        check_text(word, name)
    check_tls(options, options.target)
    return words


def _check_order(words: list[str], prog: str) -> None:
    """Refuse an address that is not the first word, where another word is."""
    found = next((each for each in words if each.startswith(ADDRESSES)), None)
    if found is not None and not words[0].startswith(ADDRESSES):
        first = [found, *(each for each in words if each is not found)]
        shown = " ".join(visible(str(redact(each)), kept="") for each in first)
        raise UsageError(f"the address comes first: {prog} {shown}")


def check_tls(options: argparse.Namespace, *targets: str | None) -> None:
    """Refuse the TLS options where none of the targets is spoken to by TLS.

    Raises:
        Misuse: one was given, which would be of no effect.
    """
    if _tls_of(options) and not any(each and each.startswith("tls://") for each in targets):
        raise UsageError("--tls-… is for an address of tls://HOST:PORT")


def _tls_of(options: argparse.Namespace) -> dict[str, str]:
    given = {name: getattr(options, f"tls_{name}", None) for name in ("ca", "cert", "key")}
    return {name: value for name, value in given.items() if value is not None}


def target_of(options: argparse.Namespace) -> Address:
    """Return the address that `options.target` names, or the command of `options.command`.

    Raises:
        Misuse: it names none.
    """
    if options.target is not None:
        return address_of(options.target, options)
    return _command_of(options, None)


def address_of(text: str, options: argparse.Namespace) -> Address:
    """Return the address that a text names, with the TLS options.

    Raises:
        Misuse: it names none; the sentence says how one is written.
    """
    # Imported here: most verbs of this command connect to nothing.
    from ...transports.addresses import Tls, parse_address

    if getattr(options, "env", None):
        raise UsageError("--env is for a command after --")
    given = _tls_of(options)
    try:
        return parse_address(text, tls=Tls(**given) if given else None)
    except ValueError as error:
        raise UsageError(f"{error}; or put a command after --") from None


def _command_of(options: argparse.Namespace, on_stderr: Callable[[str], object] | None) -> Stdio:
    from ...transports.stdio.client import Stdio

    (command, *args), env = _words_of_command(options)
    return Stdio(command, args, env=env or None, on_stderr=on_stderr, grace=_GRACE)


def _words_of_command(options: argparse.Namespace) -> tuple[list[str], dict[str, str]]:
    """Return the command after `--`, and what is set for it."""
    if not options.command:
        raise UsageError("there is no command after --")
    if not options.command[0]:
        raise UsageError("the command after -- is empty")
    env = {}
    for word in getattr(options, "env", ()):
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise UsageError("--env takes KEY=VALUE")
        env[name] = value
    return options.command, env


@contextmanager
def _begun(options: argparse.Namespace) -> Iterator[Popen[bytes] | None]:
    """Start the command first of all: it loads while we do, and takes as long for it."""
    import os

    if options.target is not None or not hasattr(os, "killpg"):
        yield None
        return
    from ...transports.stdio.launching import discard, launch

    command, env = _words_of_command(options)
    process = None
    try:
        with signals_deferred():
            try:
                process = launch(command, env={**os.environ, **env}, cwd=None)
            except TransportError:
                pass  # it is told by who tries again
        yield process
    finally:
        # Whoever talked to it has ended it in order; this is for when nobody came to that.
        if process is not None:
            with signals_deferred():
                discard(process)


# A conversation


def talk(options: argparse.Namespace, work: Work) -> int:
    """Connect, have `work` done, close; return the exit status.

    Raises:
        Misuse: the command names something there is not.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP; by then nothing is left.
    """
    console = Console(level=options.log or "warning", is_verbose=options.verbose)
    _check_save(getattr(options, "save", None))
    with (
        clean_termination(),
        _begun(options) as process,
        _recording(options, console) as hear,
        _own_log(console),
    ):
        # Imported here: help needs none of it.
        import asyncio

        try:
            # What is loaded now stays until the end: there is no garbage among it to look for.
            gc.disable()
            return asyncio.run(_talk(options, work, console, hear, process))
        except TrunklineError as error:
            console.note(f"{options.prog}: {_sentence(error)}")
            return _status(error)
        except KeyboardInterrupt:
            if is_terminal(sys.stderr):
                console.note("")  # behind the ^C that the terminal shows
            raise
        finally:
            gc.enable()


def _check_save(folder: str | None) -> None:
    """Refuse a folder where nothing can be saved, before a tool has done its work."""
    import os

    if folder is None:
        return
    if not os.path.isdir(folder):
        raise UsageError(f"--save takes a folder, and {show(folder)} is none")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"nothing can be saved in {show(folder)}: it is not ours to write")


async def _talk(
    options: argparse.Namespace,
    work: Work,
    console: Console,
    hear: FrameListener | None,
    process: Popen[bytes] | None,
) -> int:
    asking = _asking(options, console)
    client = _client(options, console, hear, asking, process)
    try:
        await client.connect()
    except ProtocolError as error:
        raise TransportError(f"there is no way to talk to it: {error}") from None
    gc.enable()
    try:
        if asking is not None and client.server_info is not None:
            asking.server = client.server_info.name
        await _begin_log(client, options.log)
        return await work(client, console)
    finally:
        # For good: a late report must not be drawn behind the result.
        console.pause()
        await client.close()


def _client(
    options: argparse.Namespace,
    console: Console,
    hear: FrameListener | None,
    asking: ElicitationPrompt | None,
    process: Popen[bytes] | None,
) -> Client:
    from ...client.client import Client

    address: Address
    if options.target is not None:
        address = target_of(options)
    else:
        address = command = _command_of(options, console.server_line if options.verbose else None)
        if process is not None:
            from ...transports.stdio.client import Begun

            address = Begun(command, process)
    if hear is not None:
        from ...transports.tap import Tapped

        address = Tapped(address, hear)
    return Client(
        address,
        revision=options.revision,
        on_log=console.log,
        on_elicit=None if asking is None else asking.form,
        on_elicit_url=asking.page if asking is not None and asking.can_ask else None,
        **_more(options),
    )


def _more(options: argparse.Namespace) -> dict[str, Any]:
    """Return what a client is told only if somebody asked for it."""
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
    import os
    from urllib.parse import quote

    if not os.path.isdir(folder):
        raise UsageError(f"--root takes a folder, and {show(folder)} is none")
    # Its bytes: the name of a folder need not be a text.
    return f"file://{quote(os.fsencode(os.path.abspath(folder)))}"


def _asking(options: argparse.Namespace, console: Console) -> ElicitationPrompt | None:
    """Return who answers questions, or None where nobody does."""
    if not options.answer and not is_interactive():
        return None
    # Imported here: in a script nobody is asked.
    from .elicitation import ElicitationPrompt

    return ElicitationPrompt(console, options.answer)


async def _begin_log(client: Client, level: str | None) -> None:
    """Ask for the log, where that can be done; a warning is for whoever runs the command."""
    from msgspec import UNSET

    if client.era == "per_request":
        await client.set_log_level(level or "warning")  # type: ignore[arg-type]  # one of LEVELS
    elif level is not None and client.server_capabilities.logging is not UNSET:
        await client.set_log_level(level)  # type: ignore[arg-type]  # as above


@contextmanager
def _own_log(console: Console) -> Iterator[None]:
    """Have what the library logs told like all else, if anybody wants to know."""
    import logging

    class Teller(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if console.is_verbose:
                console.note(visible(record.getMessage(), kept="\t\n"), is_dim=True)

    # Without any, Python would print warnings itself.
    log, teller = logging.getLogger("trunkline"), Teller()
    log.addHandler(teller)
    try:
        yield
    finally:
        log.removeHandler(teller)


@contextmanager
def _recording(options: argparse.Namespace, console: Console) -> Iterator[FrameListener | None]:
    """Open the file of `--trace`, if there is one."""
    if options.trace is None:
        yield None
        return
    from ..recording import recorded

    target = options.target
    transport = "stdio" if target is None else "unix" if target.startswith("unix:") else "tcp"

    def say(text: str) -> None:
        console.note(f"{options.prog}: {text}")

    with recorded(options.trace, transport, say) as hear:
        yield hear


# What goes wrong


def _sentence(error: TrunklineError) -> str:
    """Return what to say of an error: what happened, and what the server added to it."""
    if isinstance(error, RemoteProtocolError):
        return f"the server broke a rule: {error}"
    if not isinstance(error, PeerError):
        return str(error)
    kind = f", {error.kind}" if error.kind else ""
    text = str(error).removesuffix(")")
    data = "" if error.data is None else f"\n  data: {visible(show(error.data), kept='')}"
    advice = _ADVICE.get(error.kind, "")
    return f"the server refused {text}{kind}){data}{advice}"


def _status(error: TrunklineError) -> int:
    if isinstance(error, TransportError | RequestTimeout | ConnectionLost):
        return UNREACHABLE
    return USAGE_ERROR if isinstance(error, LocalProtocolError) else PROBLEMS_FOUND


def near(name: str, names: Iterable[str], what: str) -> UsageError:
    """Return what to raise for a name there is not: what may have been meant, or what there is."""
    from .tool_arguments import closest_name

    known = list(names)
    close = closest_name(name, known)
    if close is not None:
        advice = f"did you mean {show(close)}?"
    elif not known:
        advice = "it has none"
    else:
        shown = ", ".join(visible(each, kept="") for each in known[:_NAMES_SHOWN])
        advice = f"there is {shown}{', …' if len(known) > _NAMES_SHOWN else ''}"
    return UsageError(f"the server has no {what} {show(name)}; {advice}")
