"""Connects a verb to its server: the options they share, the connection, and its errors.

A server is named by an address, or started by the command after `--`. One event loop serves one
verb: it connects, runs the verb and closes.

The rules that live here, and only here:

* Results go to standard output, everything else to standard error.
* An error is one sentence, and an exit status that tells wrong usage, a refusal of the server
  and a failed connection apart.
* Ctrl-C, SIGTERM and SIGHUP end the verb at any point and leave nothing behind: no child
  process, no half-drawn progress line.
* Headers of HTTP can be secrets: no error quotes one, and `--header-env` keeps them out of the
  process list.
* Elicitations are answered at the terminal. Without a terminal and without `--answer` the client
  does not declare elicitation.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

from ...errors import (
    AuthorizationFailed,
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
    "add_env",
    "add_headers",
    "add_target",
    "check_http",
    "check_options",
    "check_websocket",
    "is_http",
    "parse_http_address",
    "parse_server_address",
    "parse_target",
    "take_words",
    "talk",
    "unknown_name",
    "wants_json",
]

Work = Callable[["Client", Console], Awaitable[int]]

# Seconds for a server that we started to exit, and again after SIGTERM: the user waits for the
# shell prompt.
_EXIT_TIMEOUT_S: Final = 1.0
_MAX_NAMES_SHOWN: Final = 20
# Repeated here because the modules that own them are slow to load.
ADDRESSES: Final = (
    *("tcp://", "tls://", "unix:"),
    *("http://", "https://", "http+unix:", "ws://", "wss://"),
)
FRAMINGS: Final = ("newline", "content-length", "length-prefix", "detect")
_FORMS: Final = (
    "http://HOST:PORT/PATH, https://HOST/PATH, tcp://HOST:PORT, tls://HOST:PORT, unix:PATH"
)
# Addresses whose requests have headers, and those that TLS protects.
_WITH_HEADERS: Final = ("http://", "https://", "http+unix:", "ws://", "wss://")
_WITH_TLS: Final = ("tls://", "https://", "wss://")


# Options


def add_target(
    parser: argparse.ArgumentParser,
    words: str = "",
    *,
    json_help: str = "",
    target: tuple[str, str] = ("TARGET", f"{_FORMS}; left out with a command after --"),
) -> None:
    """Declare TARGET, the `words` after it, and the options of every verb that connects.

    `json_help` is the help of `--json` where it takes a value; `target` is the name and the help
    of the first positional argument.
    """
    shown, prog = f"{f' {words}' if words else ''} [options]", parser.prog
    parser.usage = f"{prog} TARGET{shown}\n       {prog}{shown} -- COMMAND ..."
    parser.set_defaults(prog=parser.prog)
    # Options may stand between the words.
    parser.parse_args = parser.parse_intermixed_args  # type: ignore[method-assign]  # of this one
    add = parser.add_argument
    add("words", nargs="*", metavar=target[0], help=target[1])
    add(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="output format; default: text",
    )
    if json_help:
        add("--json", nargs="?", const=True, default=None, metavar="OBJECT", help=json_help)
    else:
        add("--json", action="store_true", help="the same as -o json")
    add(
        "--revision",
        choices=REVISIONS,
        metavar="R",
        help=f"MCP revision to speak: {', '.join(REVISIONS)}; default: negotiated",
    )
    add(
        "--timeout",
        type=_seconds,
        metavar="SECONDS",
        help="seconds to wait for each answer; default: 60, and 30 to connect",
    )
    add("--trace", metavar="FILE", help="record all messages to a file")
    add(
        "--framing",
        choices=FRAMINGS,
        metavar="NAME",
        help=f"message framing: {', '.join(FRAMINGS)}; default: newline",
    )
    add("--tls-ca", metavar="FILE", help="CA certificates to trust; default: the system's")
    add("--tls-cert", metavar="FILE", help="client certificate")
    add(
        "--tls-key", metavar="FILE", help="key of the client certificate; default: in the same file"
    )
    add_env(parser)
    add_headers(parser)
    add(
        "--root",
        action="append",
        default=[],
        metavar="DIR",
        help="folder to offer to the server as a root; repeatable",
    )
    add(
        "--answer",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="answer a question of the server in advance; repeatable",
    )
    add(
        "--log",
        choices=LOG_LEVELS,
        metavar="LEVEL",
        help="show log messages of the server from this level on: "
        f"{', '.join(LOG_LEVELS)}; default: warning",
    )
    add("-v", "--verbose", action="store_true", help="show what the server writes to stderr")


def add_env(parser: argparse.ArgumentParser) -> None:
    """Declare `--env`."""
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="environment variable for the command after --; repeatable",
    )


def add_headers(parser: argparse.ArgumentParser) -> None:
    """Declare `--header` and `--header-env`."""
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="header of every HTTP request, visible in the process list; repeatable",
    )
    parser.add_argument(
        "--header-env",
        action="append",
        default=[],
        metavar="NAME=VARIABLE",
        help="header whose value is in an environment variable; repeatable",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"a number of seconds above 0, not {text!r}")
    return seconds


def wants_json(options: argparse.Namespace) -> bool:
    """Return True if the result is to be printed as JSON."""
    return options.output == "json" or options.json is True


def take_words(options: argparse.Namespace, *names: str) -> list[str]:
    """Set `options.target` from the first word, unless there is a command; return the others.

    Raises:
        UsageError: TARGET, or one of the words called `names`, is missing; or an option was
            given that has no effect with this target.
    """
    words: list[str] = options.words
    options.target = None
    if options.command is None:
        if not words:
            raise UsageError(
                "no server given: name its address, or put its command after --; "
                f"try {options.prog} --help"
            )
        _check_target(words, options.prog)
        options.target, words = words[0], words[1:]
    elif words and words[0].startswith(ADDRESSES) and not _is_uri(words, names):
        raise UsageError(f"give the address {show(words[0])} or a command after --, not both")
    if len(words) < len(names):
        missing = " and ".join(names[len(words) :])
        raise UsageError(f"{missing} is missing; try {options.prog} --help")
    for name, word in zip(names, words, strict=False):
        check_text(word, name)
    check_options(options, options.target)
    return words


def _is_uri(words: list[str], names: tuple[str, ...]) -> bool:
    """Return True if the only word is the URI of a resource, which may look like an address."""
    return names == ("URI",) and len(words) == 1


def is_http(target: str | None) -> bool:
    """Return True if the requests to a target have headers."""
    return target is not None and target.startswith(_WITH_HEADERS)


def _check_target(words: list[str], prog: str) -> None:
    """Raise if the first word is not an address, with advice on what was probably meant."""
    first, *rest = words
    if first.startswith(ADDRESSES):
        return
    address = next((each for each in rest if each.startswith(ADDRESSES)), None)
    if address is not None:
        others = [each for each in words if each is not address]
        raise UsageError(f"the address comes first: {_shown(prog, address, *others)}")
    if first.endswith(".py") or os.path.isfile(first):
        line = _shown(prog, *rest, "--", "trunkline", "serve", first)
        raise UsageError(f"{show(first)} is a file, not an address; to run it as a server: {line}")
    # Imported here: it is slow to load.
    from shutil import which

    is_argument = any("=" in each for each in rest)
    if rest and not is_argument and os.sep not in first and which(first):
        raise UsageError(f"put the command after --: {_shown(prog, '--', *words)}")
    raise UsageError(
        f"{show(first)} is not the address of a server; "
        f"name the server first ({_FORMS}), or put its command after --"
    )


def _shown(*words: str) -> str:
    return " ".join(visible(str(redact(each)), kept="") for each in words)


def check_options(options: argparse.Namespace, *targets: str | None) -> None:
    """Reject options that have no effect with any of the targets.

    Raises:
        UsageError: one was given; the text says what it needs.
    """
    given = [each for each in targets if each is not None]
    if _tls_of(options) and not any(each.startswith(_WITH_TLS) for each in given):
        raise UsageError("the --tls-… options need an address of the form tls:// or https://")
    if (options.header or options.header_env) and not any(map(is_http, given)):
        raise UsageError(
            "--header and --header-env need an address of the form http:// or https://"
        )
    if getattr(options, "framing", None) and targets and all(map(is_http, targets)):
        raise UsageError("--framing is for streams: HTTP frames messages itself")


def check_websocket() -> None:
    """Reject WebSocket if its library is not installed.

    Raises:
        UsageError: it is not; the text says how to install it.
    """
    from importlib.util import find_spec

    if find_spec("websockets") is None:
        raise UsageError("WebSocket needs websockets: pip install trunkline[ws]")


def check_http() -> None:
    """Reject HTTP if its library is not installed.

    Raises:
        UsageError: it is not; the text says how to install it.
    """
    from importlib.util import find_spec

    if find_spec("httptools") is None:
        raise UsageError("HTTP needs httptools: pip install trunkline[http]")


def _tls_of(options: argparse.Namespace) -> dict[str, str]:
    given = {name: getattr(options, f"tls_{name}", None) for name in ("ca", "cert", "key")}
    return {name: value for name, value in given.items() if value is not None}


def parse_target(options: argparse.Namespace) -> Address:
    """Return the address in `options.target`, or the command in `options.command`.

    Raises:
        UsageError: it is not an address, or the command is empty.
    """
    if options.target is not None:
        return parse_server_address(options.target, options)
    return _stdio(options, None)


def parse_server_address(text: str, options: argparse.Namespace) -> Address:
    """Return the address that a text names, with the TLS options and the headers.

    Raises:
        UsageError: it is not an address; the text says how one is written.
    """
    # Imported here: most verbs of this command connect to nothing.
    from ...transports.addresses import Tls, parse_address

    _check_target([text], getattr(options, "prog", "trunkline proxy"))
    if getattr(options, "env", None):
        raise UsageError("--env needs a command after --")
    if text.startswith(("ws://", "wss://")):
        check_websocket()
    elif is_http(text):
        check_http()
    given = _tls_of(options)
    try:
        address = parse_address(text, tls=Tls(**given) if given else None)
        return _with_headers(address, options) if is_http(text) else address
    except ValueError as error:
        scheme, sign, host = text.partition("://")
        if sign and host and ":" not in host and not is_http(text):
            raise UsageError(
                f"{show(text)} needs a port, as in {scheme}://{_shown(host)}:9000"
            ) from None
        raise UsageError(f"{error}; or put a command after --") from None


def parse_http_address(text: str, options: argparse.Namespace | None = None) -> Any:
    """Return the address of an HTTP server, without headers and without a login.

    Raises:
        UsageError: it is not the URL of one.
    """
    from ...transports.addresses import Tls, parse_address

    if not text.startswith(("http://", "https://", "ws://", "wss://")):
        raise UsageError(f"{show(text)} is not the URL of a server, such as https://HOST/PATH")
    check_http()
    ca = getattr(options, "tls_ca", None)
    try:
        return parse_address(text, tls=Tls(ca=ca) if ca is not None else None)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _has_logins() -> bool:
    """Return True if there is a folder of logins.

    As `default_folder` of the files of `auth`, which are not loaded for users without one.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.isdir(os.path.join(state, "trunkline", "tokens"))


def _login_for(address: Any, headers: dict[str, str]) -> Any:
    """Return the login that is kept for a server; None if a header has a credential already."""
    if "authorization" in map(str.lower, headers) or not _has_logins():
        return None
    from .login import kept_login

    return kept_login(address)


def _with_headers(address: Any, options: argparse.Namespace) -> Any:
    """Return an address whose requests have the headers in the options, or a login."""
    headers = _headers_of(options)
    auth = _login_for(address, headers)
    if not headers and auth is None:
        return address
    from dataclasses import replace

    from ...transports.http.client.settings import HttpOptions

    try:
        return replace(address, options=HttpOptions(headers=headers, auth=auth))
    except ValueError as error:
        raise UsageError(str(error).replace("HttpOptions.headers", "--header")) from None


def _headers_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the headers in the options. No error quotes a word: it may be a secret."""
    # Imported here: most targets have no headers.
    from ...mcp.header_values import is_token

    headers: dict[str, str] = {}
    for option in ("header", "header_env"):
        form = "NAME=VALUE" if option == "header" else "NAME=VARIABLE"
        for word in getattr(options, option, ()):
            name, sign, value = word.partition("=")
            if not sign or not is_token(name):
                raise UsageError(f"--{option.replace('_', '-')} takes {form}")
            if option == "header_env":
                found = os.environ.get(value)
                if found is None:
                    raise UsageError(f"--header-env {name}: there is no such environment variable")
                value = found
            if name.lower() in map(str.lower, headers):
                raise UsageError(f"the header {name} is given twice")
            headers[name] = value
    return headers


def _stdio(options: argparse.Namespace, on_stderr: Callable[[str], object] | None) -> Stdio:
    from ...transports.stdio.client import Stdio

    (command, *args), env = _command_of(options)
    return Stdio(command, args, env=env or None, on_stderr=on_stderr, grace=_EXIT_TIMEOUT_S)


def _command_of(options: argparse.Namespace) -> tuple[list[str], dict[str, str]]:
    """Return the command after `--`, and the environment variables set for it."""
    if not options.command:
        raise UsageError("the command after -- is missing")
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
def _started(options: argparse.Namespace) -> Iterator[Popen[bytes] | None]:
    """Start the command before anything else is imported: both load at the same time."""
    if options.target is not None or not hasattr(os, "killpg"):
        yield None
        return
    from ...transports.stdio.process import discard, launch

    command, env = _command_of(options)
    process = None
    try:
        with signals_deferred():
            try:
                process = launch(command, env={**os.environ, **env}, cwd=None)
            except TransportError:
                pass  # reported by the transport, which tries again
        yield process
    finally:
        # The transport ends the process; this is for the cases in which it did not get that far.
        if process is not None:
            with signals_deferred():
                discard(process)


# The connection


def talk(options: argparse.Namespace, work: Work) -> int:
    """Connect, run `work`, close; return the exit status.

    Raises:
        UsageError: the command line names something that does not exist.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP; the server is gone by then.
    """
    console = Console(level=options.log or "warning", is_verbose=options.verbose)
    _check_save(getattr(options, "save", None))
    with (
        clean_termination(),
        _started(options) as process,
        _trace(options, console) as on_frame,
        _library_log(console),
    ):
        # Imported here: help needs none of it.
        import asyncio

        try:
            # Everything loaded so far lives until the end: collecting would find no garbage.
            gc.disable()
            runner = asyncio.Runner()
            with signals_deferred():
                runner.get_loop()  # half made, it would complain when it is collected
            talking = _talk(options, work, console, on_frame, process)
            with closing(talking), runner:
                return runner.run(talking)
        except TrunklineError as error:
            console.note(f"{options.prog}: {_sentence(error, options)}")
            return _status(error)
        except KeyboardInterrupt:
            if is_terminal(sys.stderr):
                console.note("")  # ends the line on which the terminal shows ^C
            raise
        finally:
            gc.enable()


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
    client = _client(options, console, on_frame, prompt, process)
    try:
        await client.connect()
    except ProtocolError as error:
        raise TransportError(f"cannot connect to the server: {error}") from None
    gc.enable()
    try:
        if prompt is not None and client.server_info is not None:
            prompt.server = client.server_info.name
        await _set_log_level(client, options.log)
        return await work(client, console)
    finally:
        # For good: late progress must not be drawn after the result.
        console.pause()
        await client.close()


def _client(
    options: argparse.Namespace,
    console: Console,
    on_frame: FrameListener | None,
    prompt: ElicitationPrompt | None,
    process: Popen[bytes] | None,
) -> Client:
    from ...client.client import Client

    address: Address
    if options.target is not None:
        address = parse_target(options)
    else:
        address = command = _stdio(options, console.server_line if options.verbose else None)
        if process is not None:
            from ...transports.stdio.client import StartedServer

            address = StartedServer(command, process)
    if on_frame is not None:
        from ...transports.tap import Tapped

        address = Tapped(address, on_frame)
    return Client(
        address,
        revision=options.revision,
        on_log=console.log,
        on_elicit=None if prompt is None else prompt.form,
        on_elicit_url=prompt.page if prompt is not None and prompt.can_ask else None,
        **_client_options(options),
    )


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


async def _set_log_level(client: Client, level: str | None) -> None:

    if client.era == "per_request":
        await client.set_logging_level(level or "warning")  # type: ignore[arg-type]  # one of LEVELS
    elif level is not None and client.server_capabilities.logging is not None:
        await client.set_logging_level(level)  # type: ignore[arg-type]  # as above


@contextmanager
def _library_log(console: Console) -> Iterator[None]:
    """Show the library's own log with `--verbose`, and drop it without."""
    import logging

    class ConsoleHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
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

    transport = _transport_name(options.target)

    def say(text: str) -> None:
        console.note(f"{options.prog}: {text}")

    with recorded(options.trace, transport, say) as on_frame:
        yield on_frame


def _transport_name(target: str | None) -> str:
    if target is None:
        return "stdio"
    if is_http(target):
        return "websocket" if target.startswith("ws") else "http"
    return "unix" if target.startswith("unix:") else "tcp"


# Errors


def _sentence(error: TrunklineError, options: argparse.Namespace) -> str:
    """Return what happened, what the server added to it, and what to do."""
    if isinstance(error, AuthorizationFailed):
        return _refused_sentence(error, options)
    if isinstance(error, RemoteProtocolError):
        return f"the server broke a rule of the protocol: {error}"
    if isinstance(error, TransportError) and error.exit_status == 0 and not options.verbose:
        return f"{error}; is it an MCP server on stdio? -v shows its stderr"
    if not isinstance(error, PeerError):
        return str(error)
    if error.method == "server/discover" and error.kind == "METHOD_NOT_FOUND" and options.revision:
        return (
            f"the server does not speak MCP {options.revision}; leave --revision out to negotiate"
        )
    kind = f", {error.kind}" if error.kind else ""
    text = str(error).removesuffix(")")
    data = "" if error.data is None else f"\n  data: {visible(show(error.data), kept='')}"
    advice = ""
    if error.kind == "MISSING_REQUIRED_CLIENT_CAPABILITY":
        advice = "\n  answer questions at a terminal or by --answer; offer roots by --root"
    return f"the server refused {text}{kind}){data}{advice}"


def _refused_sentence(error: AuthorizationFailed, options: argparse.Namespace) -> str:
    """Return why a server refused, and how to log in unless a header had a credential."""
    target = visible(options.target or "", kept="")
    words = (*options.header, *options.header_env)
    if any(word.lower().startswith("authorization=") for word in words):
        return f"{target} refused the Authorization header"
    # Imported here: it is rare.
    from ..output.login_advice import is_about_login, login_advice

    if not is_about_login(error):
        return str(error)
    advice = f"\n  log in: {login_advice(error, target)}"
    is_plain = error.step == "request" and error.error is None and error.status == 401
    return f"{target} asks for a login{advice}" if is_plain else f"{error}{advice}"


def _status(error: TrunklineError) -> int:
    if isinstance(error, TransportError | RequestTimeout | ConnectionLost):
        return UNREACHABLE
    return USAGE_ERROR if isinstance(error, LocalProtocolError) else PROBLEMS_FOUND


def unknown_name(name: str, names: Iterable[str], what: str) -> UsageError:
    """Return the error for a name the server does not have: the closest one, or a list."""
    from .tool_arguments import closest_name

    known = list(names)
    close = closest_name(name, known)
    if close is not None:
        advice = f"did you mean {show(close)}?"
    elif not known:
        advice = "it has none"
    else:
        shown = ", ".join(visible(each, kept="") for each in known[:_MAX_NAMES_SHOWN])
        advice = f"it has: {shown}{', …' if len(known) > _MAX_NAMES_SHOWN else ''}"
    return UsageError(f"the server has no {what} {show(name)}; {advice}")
