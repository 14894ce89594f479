"""The verb `proxy`: joins a client and a server, whatever ways they speak by, and listens.

    trunkline proxy --record talk.jsonl -- python server.py     in the place of the server
    trunkline proxy unix:/run/x.sock -- python server.py        a process for every client
    trunkline proxy tcp://mcp.example.org:9000                  a remote server, as if it were here

Here is what it is told; the work is done in `joining`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..command import UsageError

if TYPE_CHECKING:
    from ...transports.addresses import Tcp, Unix
    from ...transports.base import Address
    from ..recording import Recording

__all__ = ["TAKES_COMMAND", "configure", "run"]

TAKES_COMMAND: Final = True

_SIZES: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    # Imported here, as by every verb that talks: completion reads this module too.
    from ..connect.target import FRAMINGS

    prog = parser.prog
    parser.usage = (
        f"{prog} [SOURCE] TARGET [options]\n       {prog} [SOURCE] [options] -- COMMAND ..."
    )
    # Options may stand between the words, as they do with most commands.
    parser.parse_args = parser.parse_intermixed_args  # type: ignore[method-assign]  # of this one
    parser.add_argument(
        "words",
        nargs="*",
        metavar="SOURCE TARGET",
        help="SOURCE is where clients come from: stdio, which it is if left out, or an address "
        "to listen on; TARGET is the server's address: tcp://HOST:PORT, tls://HOST:PORT, unix:PATH",
    )
    parser.add_argument("--record", metavar="FILE", help="record the conversations in a file")
    parser.add_argument(
        "--judge", action="store_true", help="say on standard error what breaks the protocol"
    )
    parser.add_argument(
        "--fail", action="store_true", help="judge, and exit with 1 if there were errors"
    )
    _add_judging(parser)
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-framing",
            choices=FRAMINGS,
            default="newline",
            metavar="NAME",
            help="how messages are told apart there; default: newline",
        )
    parser.add_argument(
        "--max-size",
        type=_size,
        default=256 * 1024**2,
        metavar="SIZE",
        help="the largest message to pass on, such as 512K, 64M or 1G; default: 256M",
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="KEY=VALUE", help="set for the command"
    )
    _add_tls(parser)


def _add_judging(parser: argparse.ArgumentParser) -> None:
    from ...spec.revisions import REVISIONS

    parser.add_argument(
        "--revision", choices=REVISIONS, metavar="R", help="judge by this one what does not say"
    )


def _add_tls(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tls-ca", metavar="FILE", help="trust servers of these authorities")
    parser.add_argument("--tls-cert", metavar="FILE", help="show this certificate to the server")
    parser.add_argument("--tls-key", metavar="FILE", help="the key of that certificate")
    parser.add_argument(
        "--source-tls-cert", metavar="FILE", help="show this certificate to clients"
    )
    parser.add_argument("--source-tls-key", metavar="FILE", help="the key of that certificate")
    parser.add_argument(
        "--source-tls-ca", metavar="FILE", help="let in only clients of these authorities"
    )


def _size(text: str) -> int:
    unit = text[-1:].upper() if text[-1:].isalpha() else ""
    number = text[:-1] if unit else text
    if unit not in _SIZES or not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"a size such as 512K, 64M or 1G, not {text!r}")
    return int(number) * _SIZES[unit]


def run(options: argparse.Namespace) -> int:
    """Join the two until they end; return the exit status."""
    # Imported here: help needs none of it.
    from ..proxy.run import join

    source, target = _ends(options)
    with _recording(options) as record:
        return join(options, source, target, record)


class _Ends(NamedTuple):
    """Where clients come from, None for the standard streams, and where their server is."""

    source: Tcp | Unix | None
    target: Address


def _ends(options: argparse.Namespace) -> _Ends:
    from ..connect.target import check_tls, target_of

    words = list(options.words)
    options.target = None
    if options.command is None:
        if not words:
            raise UsageError(
                "name the address of a server, or put its command after --; try --help"
            )
        options.target = words.pop()
        if options.target == "stdio":
            raise UsageError(
                "stdio is where a client is; TARGET is an address, or a command after --"
            )
    if len(words) > 1:
        what = "a command after --" if options.command is not None else "TARGET"
        raise UsageError(f"there is one SOURCE and {what}, not more; try --help")
    source = _source(words[0], options) if words and words[0] != "stdio" else None
    if source is None and _source_tls(options):
        raise UsageError("--source-tls-… is for a SOURCE of tls://HOST:PORT")
    check_tls(options, options.target)
    return _Ends(source, target_of(options))


def _source(text: str, options: argparse.Namespace) -> Tcp | Unix:
    from ...transports.addresses import Tls, parse_address

    given = _source_tls(options)
    if text.startswith("tls://") != bool(given):
        if given:
            raise UsageError("--source-tls-… is for a SOURCE of tls://HOST:PORT")
        raise UsageError("to listen on tls:// takes --source-tls-cert, and --source-tls-key")
    try:
        return parse_address(text, tls=Tls(**given) if given else None)
    except ValueError as error:
        raise UsageError(f"SOURCE: {error}; or stdio") from None


def _source_tls(options: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(options, f"source_tls_{name}") for name in ("ca", "cert", "key")}
    return {name: value for name, value in given.items() if value is not None}


@contextmanager
def _recording(options: argparse.Namespace) -> Iterator[Recording | None]:
    if options.record is None:
        yield None
        return
    from ..recording import recording

    with recording(options.record) as record:
        yield record
