"""Options that all verbs share that connect to a server, and the words before the command.

A server is named by TARGET, which `client.connect.resolve` reads, by `--config FILE NAME`, or
started by the command after `--`. After `take_words` there is either an address in
`options.target` or a command in `options.command`, with the variables, the folder and the headers
of a configured entry beside it; `options.typed` is TARGET as it was typed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...redaction import show
from ...spec.mcp.meta import LOG_LEVELS
from ...spec.revisions import REVISIONS
from ..command import UsageError, check_text, declare_options

if TYPE_CHECKING:
    from ...transports.stdio.client import Stdio

__all__ = [
    "ADDRESSES",
    "CONFIG_TABLE",
    "FORMS",
    "FRAMINGS",
    "SERVER_TABLE",
    "add_output",
    "add_target",
    "check_options",
    "command_of",
    "is_http",
    "parse_seconds",
    "stdio_of",
    "take_words",
    "tls_of",
    "wants_json",
]

# Seconds for a server that we started to exit, and again after SIGTERM: the user waits for the
# shell prompt.
_EXIT_TIMEOUT_S: Final = 1.0
# Repeated here because the modules that own them are slow to load.
ADDRESSES: Final = (
    *("tcp://", "tls://", "unix:"),
    *("http://", "https://", "http+unix:", "ws://", "wss://"),
)
FRAMINGS: Final = ("newline", "content-length", "length-prefix", "detect")
FORMS: Final = (
    "server.py, server.py:app or package.module:app; http://HOST:PORT/PATH, https://HOST/PATH, "
    "tcp://HOST:PORT, tls://HOST:PORT or unix:PATH; claude:NAME, cursor:NAME or vscode:NAME for an "
    "entry of a host"
)
# As a table, for help.
_TARGETS: Final = """\
TARGET is one of:
  server.py              a file with a server; server.py:app names the object
  package.module:app     a module with a server
  https://HOST/PATH      an address; also http://, ws://, wss://, tcp://HOST:PORT, tls://, unix:PATH
  claude:NAME            an entry of a host; also cursor:NAME, vscode:NAME
  mcp.json:NAME          an entry of a configuration file; also NAME --config FILE
  -- COMMAND ...         a command that starts a server, after all other words"""
# Tables of options, for `declare_options`.
CONFIG_TABLE: Final = """\
--config FILE  configuration file such as mcp.json; TARGET is then the name of a server in it
"""
SERVER_TABLE: Final = """\
--env KEY=VALUE             environment variable for a server that is started; repeatable
--header NAME=VALUE         header of every HTTP request, visible in the process list; repeatable
--header-env NAME=VARIABLE  header whose value is in an environment variable; repeatable
"""
_CONNECTION_TABLE: Final = f"""\
--revision R       MCP revision to speak: {", ".join(REVISIONS)}; default: negotiated
--timeout SECONDS  seconds to wait for each answer; default: 60, and 30 to connect
{SERVER_TABLE}
--framing NAME     message framing: {", ".join(FRAMINGS)}; default: newline
--tls-ca FILE      CA certificates to trust; default: the system's
--tls-cert FILE    client certificate; default: none
--tls-key FILE     key of the client certificate; default: in the same file
"""
_ANSWER_TABLE: Final = """\
--answer [FIELD=]VALUE  answer a question in advance; one with several fields needs FIELD;
                        default: ask at the terminal; repeatable
"""
_ROOT_TABLE: Final = """\
--root DIR  folder to offer to the server as a root; repeatable
"""
_DIAGNOSIS_TABLE: Final = f"""\
--log LEVEL             show log messages of the server from this level on:
                        {", ".join(LOG_LEVELS)}; default: warning, and none in 2026-07-28
--trace, --record FILE  record all messages to a file
-v, --verbose           show what the server writes to stderr; default: only when it fails
"""
# Addresses whose requests have headers, and those that TLS protects.
_WITH_HEADERS: Final = ("http://", "https://", "http+unix:", "ws://", "wss://")
_WITH_TLS: Final = ("tls://", "https://", "wss://")


def add_target(
    parser: argparse.ArgumentParser,
    words: str = "",
    *,
    json_help: str = "",
    target: tuple[str, str] | None = None,
    takes_roots: bool = True,
    takes_answers: bool = True,
    takes_config: bool = True,
    takes_output: bool = True,
) -> None:
    """Declare TARGET, the `words` after it, and the options of every verb that connects.

    `json_help` is the help of `--json` where it takes a value; `target` is the name and the help
    of the first positional argument if it is not TARGET. `--root` is for verbs whose result can
    depend on roots, `--answer` for those whose requests run handlers, which can ask a question,
    `--config` for those with one target, `-o` and `--json` for those that print one result.
    """
    shown, prog = f"{f' {words}' if words else ''} [options]", parser.prog
    parser.usage = f"{prog} TARGET{shown}\n       {prog}{shown} -- COMMAND ..."
    parser.set_defaults(prog=parser.prog, root=[], answer=[])
    # Options may stand between the words.
    parser.parse_args = parser.parse_intermixed_args  # type: ignore[method-assign]  # of this one
    add = parser.add_argument
    if target is None:
        parser.description = f"{parser.description}\n\n{_TARGETS}"
        target = ("TARGET", "the server, as above; left out with a command after --")
    add("words", nargs="*", metavar=target[0], help=target[1])
    if takes_output:
        _add_output(parser, json_help)
    declare_options(
        parser.add_argument_group("connection"),
        f"{CONFIG_TABLE if takes_config else ''}{_CONNECTION_TABLE}",
        revision={"choices": REVISIONS},
        timeout={"type": parse_seconds},
        framing={"choices": FRAMINGS},
    )
    if takes_roots or takes_answers:
        declare_options(
            parser.add_argument_group("questions of the server"),
            f"{_ANSWER_TABLE if takes_answers else ''}{_ROOT_TABLE}",
        )
    declare_options(
        parser.add_argument_group("diagnosis"), _DIAGNOSIS_TABLE, log={"choices": LOG_LEVELS}
    )


def _add_output(parser: argparse.ArgumentParser, json_help: str) -> None:
    add = parser.add_argument
    add(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        metavar="FORMAT",
        help="output format: text or json; default: text",
    )
    if json_help:
        add("--json", nargs="?", const=True, default=None, metavar="OBJECT", help=json_help)
    else:
        add("--json", action="store_true", help="the same as -o json")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Declare `-o` of a command that has no connection of its own."""
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="output format; default: text",
    )


def parse_seconds(text: str) -> float:
    """Return the seconds of an option, which are above 0."""
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


def take_words(options: argparse.Namespace, *names: str, can_list: bool = False) -> list[str]:
    """Resolve the first word as the target, unless there is a command; return the others.

    With `can_list` there may be none: the verb shows what the server has.

    Raises:
        UsageError: TARGET, or one of the words called `names`, is missing; TARGET names no
            server; or an option was given that has no effect with this target.
    """
    words: list[str] = options.words
    options.target, options.typed = None, ""
    if options.command is None:
        if not words and options.config is not None:
            # Imported here, as below: most commands name one.
            from .target import config_names

            raise UsageError(
                f"no server given: name one of {show(options.config)}, as --config FILE NAME; "
                f"{config_names(options.config)}"
            )
        if not words:
            raise UsageError(
                "no server given: name a file, an address or an entry of a host, or put a "
                f"command after --; try {options.prog} --help"
            )
        # Imported here: a command after `--` needs none of it.
        from .target import take_target

        words = take_target(options, words)
    elif options.config is not None:
        raise UsageError("give --config and a name, or a command after --, not both")
    elif words and words[0].startswith(ADDRESSES) and not _is_uri(words, names):
        raise UsageError(f"give the address {show(words[0])} or a command after --, not both")
    if len(words) < len(names) and not (can_list and not words):
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


def check_options(options: argparse.Namespace, *targets: str | None) -> None:
    """Reject options that have no effect with any of the targets.

    Raises:
        UsageError: one was given; the text says what it needs.
    """
    given = [each for each in targets if each is not None]
    if tls_of(options) and not any(each.startswith(_WITH_TLS) for each in given):
        raise UsageError("the --tls-… options need an address of the form tls:// or https://")
    if (options.header or options.header_env) and not any(map(is_http, given)):
        raise UsageError(
            "--header and --header-env need an address of the form http:// or https://"
        )
    if getattr(options, "framing", None) and targets and all(map(is_http, targets)):
        raise UsageError("--framing is for streams: HTTP frames messages itself")


def tls_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the files of the `--tls-…` options that were given, by their field of `Tls`."""
    given = {name: getattr(options, f"tls_{name}", None) for name in ("ca", "cert", "key")}
    return {name: value for name, value in given.items() if value is not None}


def stdio_of(
    options: argparse.Namespace, on_stderr: Callable[[str], object] | None = None
) -> Stdio:
    """Return the address that starts the command in the options.

    Raises:
        UsageError: the command is empty, or `--env` is not KEY=VALUE.
    """
    from ...transports.stdio.client import Stdio

    (command, *args), env = command_of(options)
    cwd = getattr(options, "cwd", None)
    return Stdio(
        command, args, env=env or None, cwd=cwd, on_stderr=on_stderr, grace=_EXIT_TIMEOUT_S
    )


def command_of(options: argparse.Namespace) -> tuple[list[str], dict[str, str]]:
    """Return the command that starts the server, and the environment variables set for it.

    Raises:
        UsageError: the command is empty, or `--env` is not KEY=VALUE.
    """
    if not options.command:
        raise UsageError("the command after -- is missing")
    if not options.command[0]:
        raise UsageError("the command after -- is empty")
    env = dict(getattr(options, "entry_env", ()))
    for word in getattr(options, "env", ()):
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise UsageError("--env takes KEY=VALUE")
        env[name] = value
    return options.command, env
