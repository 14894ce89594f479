"""The verb `proxy`: joins a client and a server over any two transports.

    trunkline proxy --record talk.jsonl -- python server.py     in the place of the server
    trunkline proxy unix:/run/x.sock -- python server.py        a process for each client
    trunkline proxy https://mcp.example.org/mcp                 a remote server on stdio
    trunkline proxy http://127.0.0.1:8000/mcp -- python server.py   a command over HTTP

This module has the options; `proxy.run` does the work.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...redaction import show
from ...spec.revisions import REVISIONS
from ..command import UsageError, declare_options
from ..connect.options import (
    ADDRESSES,
    CONFIG_TABLE,
    FORMS,
    FRAMINGS,
    SERVER_TABLE,
    check_options,
    is_http,
)
from ..connect.target import (
    check_http,
    check_websocket,
    parse_target,
    take_target,
)
from ..output.terminal import is_terminal, tell

if TYPE_CHECKING:
    from ...transports.addresses import Http, Tcp, Unix
    from ...transports.base import Address
    from ..recording import Recording

__all__ = ["EXAMPLES", "TAKES_COMMAND", "configure", "run"]

TAKES_COMMAND: Final = True
EXAMPLES: Final = """\
trunkline proxy --record talk.jsonl --judge -- python server.py
trunkline proxy https://mcp.example.org/mcp --header-env Authorization=TOKEN
trunkline proxy http://127.0.0.1:8000/mcp -- python server.py
"""

_PROG: Final = "trunkline proxy"
_NEEDS_TLS: Final = "the --source-tls-… options need a SOURCE of the form tls:// or https://"
_MESSAGE_TABLE: Final = f"""\
--record, --trace FILE  record all messages to a file; a recording that is there is continued
--judge                report broken protocol rules on standard error
--fail                 like --judge, and exit with status 1 after an error
--revision R           MCP revision to judge messages by that name none: {", ".join(REVISIONS)};
                       default: the newest
--source-framing NAME  message framing at the SOURCE: {", ".join(FRAMINGS)}; default: newline
--target-framing NAME  message framing at the TARGET: {", ".join(FRAMINGS)}; default: newline
--max-size SIZE        largest message to forward, in bytes, or as 512K, 64M or 1G; default: 256M
"""
_CONNECTION_TABLE: Final = """\
--tls-ca FILE               CA certificates for the server; default: the system's
--tls-cert FILE             client certificate for the server
--tls-key FILE              key of the client certificate
--source-tls-cert FILE      certificate for a SOURCE of tls:// or https://
--source-tls-key FILE       key of the SOURCE certificate
--source-tls-ca FILE        require client certificates signed by these CAs
--allowed-host HOST[:PORT]  name by which clients may reach a SOURCE of http://; repeatable
--allowed-origin ORIGIN     origin of web pages that may use a SOURCE of http://; repeatable
--sse                       also serve HTTP+SSE of 2024-11-05 at a SOURCE of http://, at /sse and
                            /messages
--ws                        also serve WebSocket at a SOURCE of http://; needs trunkline[ws]
"""
_SIZES: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    prog = parser.prog
    parser.usage = (
        f"{prog} [SOURCE] TARGET [options]\n       {prog} [SOURCE] [options] -- COMMAND ..."
    )
    # Options may stand between the words.
    parser.parse_args = parser.parse_intermixed_args  # type: ignore[method-assign]  # of this one
    parser.set_defaults(prog=prog)
    parser.add_argument(
        "words",
        nargs="*",
        metavar="SOURCE TARGET",
        help="SOURCE: where clients connect: stdio (the default), or an address to listen on; "
        f"TARGET: the server: {FORMS}",
    )
    framing = {"choices": FRAMINGS, "default": "newline"}
    declare_options(
        parser,
        _MESSAGE_TABLE,
        revision={"choices": REVISIONS},
        source_framing=framing,
        target_framing=framing,
        max_size={"type": _size, "default": 256 * 1024**2},
    )
    declare_options(parser, f"{CONFIG_TABLE}{SERVER_TABLE}{_CONNECTION_TABLE}")


def _size(text: str) -> int:
    unit = text[-1:].upper() if text[-1:].isalpha() else ""
    number = text[:-1] if unit else text
    if unit not in _SIZES or not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(
            f"a number of bytes, or a size such as 512K, 64M or 1G, not {text!r}"
        )
    return int(number) * _SIZES[unit]


def run(options: argparse.Namespace) -> int:
    """Forward messages until either side ends; return the exit status."""
    # Imported here: help needs none of it.
    from ..proxy.run import join

    source, target = _ends(options)
    if source is None and is_terminal(sys.stdin):
        tell(
            f"{_PROG}: waiting for a client on standard input; to listen on a socket: "
            f"{_PROG} tcp://127.0.0.1:9000 ..."
        )
    with _recording(options) as record:
        return join(options, source, target, record)


class _Ends(NamedTuple):
    # None for the standard streams.

    source: Http | Tcp | Unix | None
    target: Address


def _ends(options: argparse.Namespace) -> _Ends:
    words = list(options.words)
    options.target, options.typed = None, ""
    what = "a command after --" if options.command is not None else "TARGET"
    if options.command is None:
        if not words:
            raise UsageError(
                "no server given: name a file, an address or an entry of a host, or put a "
                f"command after --; try {_PROG} --help"
            )
        last = words.pop()
        if last == "stdio":
            raise UsageError("stdio is a SOURCE; TARGET is a server, or a command after --")
        take_target(options, [last])
    elif options.config is not None:
        raise UsageError("give --config and a name, or a command after --, not both")
    if len(words) > 1:
        raise UsageError(f"proxy takes one SOURCE and {what}; try {_PROG} --help")
    source = _source(words[0], options) if words and words[0] != "stdio" else None
    if source is None and _source_tls(options):
        raise UsageError(_NEEDS_TLS)
    if not (words and is_http(words[0])):
        for name in ("allowed_host", "allowed_origin", "sse", "ws"):
            if getattr(options, name):
                option = name.replace("_", "-")
                raise UsageError(f"--{option} needs a SOURCE of the form http:// or https://")
    if options.target_framing != "newline" and is_http(options.target):
        raise UsageError("--target-framing is for streams: HTTP frames messages itself")
    check_options(options, options.target)
    return _Ends(source, parse_target(options))


def _source(text: str, options: argparse.Namespace) -> Http | Tcp | Unix:
    from ...transports.addresses import Tls, Ws, parse_address

    if not text.startswith(ADDRESSES):
        raise UsageError(
            f"SOURCE: {show(text)} is not an address; "
            "use stdio, http://HOST:PORT/PATH, tcp://HOST:PORT, tls://HOST:PORT or unix:PATH"
        )
    given = _source_tls(options)
    if text.startswith(("tls://", "https://")) != bool(given):
        if given:
            raise UsageError(_NEEDS_TLS)
        scheme = text.partition("://")[0]
        raise UsageError(f"a SOURCE of {scheme}:// needs --source-tls-cert and --source-tls-key")
    if options.source_framing != "newline" and is_http(text):
        raise UsageError("--source-framing is for streams: HTTP frames messages itself")
    if is_http(text):
        check_http()
    if options.ws:
        check_websocket()
    try:
        address = parse_address(text, tls=Tls(**given) if given else None, listening=True)
    except ValueError as error:
        raise UsageError(f"SOURCE: {error}; or use stdio") from None
    if isinstance(address, Ws):
        raise UsageError(
            "SOURCE: to listen for WebSocket use http://HOST:PORT/PATH and the option --ws"
        )
    return address


def _source_tls(options: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(options, f"source_tls_{name}") for name in ("ca", "cert", "key")}
    return {name: value for name, value in given.items() if value is not None}


@contextmanager
def _recording(options: argparse.Namespace) -> Iterator[Recording | None]:
    if options.record is None:
        yield None
        return
    from ..recording import continued_recording

    with continued_recording(options.record) as record:
        yield record
