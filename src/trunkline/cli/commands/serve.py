"""The verb `serve`: run the server of a file, on standard streams or on a socket.

What is served is found in `loading`, and how it is served is `trunkline.server`'s. This module
knows the options. With `--reload` the work is done by processes that `reloading` looks after.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final, get_args

from ..command import UsageError
from ..exit_codes import SUCCESS, USAGE_ERROR
from ..loader import AppTarget, LoadError, load_app, parse_app_target, stdout_on_stderr

if TYPE_CHECKING:
    from ...server.app import Server
    from ...server.settings import SocketLimits
    from ...transports.addresses import Tcp, Unix

__all__ = ["address_of", "begin_log", "configure", "limits_of", "run", "with_framing"]

_LEVELS: Final = ("debug", "info", "warning", "error", "critical")
# Options that say something about sockets, and how they are written.
_OF_SOCKETS: Final = {
    "max_connections": "--max-connections",
    "idle": "--idle",
    "keep_alive": "--keep-alive",
}
_OF_TLS: Final = {
    "tls_cert": "--tls-cert",
    "tls_key": "--tls-key",
    "tls_client_ca": "--tls-client-ca",
}


# What can be said


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    # Imported here: a server needs it in any case.
    from ...jsonrpc.framing import FramingName

    framings = get_args(FramingName)
    parser.set_defaults(prog=parser.prog)
    parser.add_argument(
        "target",
        metavar="FILE[:object]",
        help="a Python file or a module, and the Server in it, or the function that makes one",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--stdio", action="store_true", help="standard streams; the default")
    where.add_argument(
        "--tcp", metavar="HOST:PORT", help="listen there; PORT alone is on this machine"
    )
    where.add_argument("--unix", metavar="PATH", help="listen on this socket file")
    parser.add_argument("--tls-cert", metavar="FILE", help="encrypt, and show this certificate")
    parser.add_argument("--tls-key", metavar="FILE", help="the key, if not in the same file")
    parser.add_argument(
        "--tls-client-ca", metavar="FILE", help="take only clients these authorities vouch for"
    )
    parser.add_argument(
        "--framing", choices=framings, metavar="NAME", help=f"one of {', '.join(framings)}"
    )
    parser.add_argument(
        "--max-connections", type=_count, metavar="N", help="connections at once; default: 1024"
    )
    parser.add_argument(
        "--idle",
        type=_seconds,
        metavar="S",
        help="seconds a client may be silent that cannot be asked; 0 is for ever, default: 300",
    )
    parser.add_argument(
        "--keep-alive",
        type=_seconds,
        metavar="S",
        help="seconds after which a silent client is asked; 0 is never, default: 30",
    )
    parser.add_argument(
        "--log", choices=_LEVELS, type=str.lower, metavar="LEVEL", help="default: warning"
    )
    parser.add_argument(
        "--reload", action="store_true", help="start anew when a file of the server changes"
    )
    parser.add_argument(
        "--reload-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="with --reload: watch the Python files in here too",
    )


def _count(text: str) -> int:
    count = int(text)
    if not 1 <= count < 10**9:
        raise ValueError(text)
    return count


def _seconds(text: str) -> float:
    seconds = float(text)
    if seconds != 0 and not 0.001 <= seconds < 10**9:
        raise ValueError(text)
    return seconds


def address_of(options: argparse.Namespace) -> Tcp | Unix | None:
    """Return where to listen, or None for standard streams.

    Raises:
        Misuse: the options name no address, or say something of it that does not go together.
    """
    for name, written in _OF_TLS.items():
        if getattr(options, name) is None:
            continue
        if options.tcp is None:
            raise UsageError(f"{written} is for --tcp")
        if options.tls_cert is None:
            raise UsageError(f"{written} belongs to a certificate: give --tls-cert too")
    if options.tcp is None and options.unix is None:
        for name, written in _OF_SOCKETS.items():
            if getattr(options, name) is not None:
                raise UsageError(f"{written} is for --tcp and --unix")
        return None
    # Imported here: who serves standard streams has no address.
    from ...transports.addresses import Tls, Unix, parse_address

    try:
        if options.unix is not None:
            return Unix(options.unix)
        text = options.tcp
        if text.isascii() and text.isdecimal():
            text = f"127.0.0.1:{text}"
        if options.tls_cert is None:
            return parse_address(f"tcp://{text}")
        tls = Tls(cert=options.tls_cert, key=options.tls_key, ca=options.tls_client_ca)
        return parse_address(f"tls://{text}", tls=tls)
    except ValueError as error:
        raise UsageError(str(error)) from None


def limits_of(options: argparse.Namespace) -> SocketLimits:
    """Return the limits that the options set, and the usual ones for the rest."""
    from ...server.settings import SocketLimits

    given: dict[str, Any] = {}
    if options.max_connections is not None:
        given["connections"] = options.max_connections
    for name in ("idle", "keep_alive"):
        if getattr(options, name) is not None:
            given[name] = getattr(options, name) or None
    return SocketLimits(**given)


# Serving


def run(options: argparse.Namespace) -> int:
    """Serve until a signal, or the client, ends it; return the exit status."""
    address = address_of(options)
    target = parse_app_target(options.target)
    if options.reload_dir and not options.reload:
        raise UsageError("--reload-dir is for --reload")
    if options.reload:
        # Imported here: whoever does not develop does not need it.
        from ..reload.supervisor import run_reloading

        _say_what_for(options, address)
        return run_reloading(options, target, address)
    try:
        return _serve(options, target, address)
    except LoadError as error:
        print(error.trace, file=sys.stderr)
        return USAGE_ERROR


def _serve(options: argparse.Namespace, target: AppTarget, address: Tcp | Unix | None) -> int:
    if address is None:
        with stdout_on_stderr():
            app = load_app(target)
    else:
        app = load_app(target)
    with_framing(app, options)
    begin_log(options)
    _say_what_for(options, address)
    from ...server.runtime.run import run_listening, run_stdio

    try:
        if address is None:
            run_stdio(app)
        else:
            run_listening(app, address, limits_of(options), on_ready=_say_where)
    except SystemExit as end:  # it cannot be served there, and this says why
        if not isinstance(end.code, str):
            raise
        print(f"{options.prog}: {end.code}", file=sys.stderr)
        return USAGE_ERROR
    return SUCCESS


def _say_what_for(options: argparse.Namespace, address: Tcp | Unix | None) -> None:
    """Tell who sits at a terminal, and sees nothing happen, what is waited for."""
    is_meant = address is not None or options.stdio
    if not is_meant and sys.stdin is not None and sys.stdin.isatty():
        print(
            f"{options.prog}: waiting for a client on standard input; to listen on a socket: "
            f"{options.prog} {options.target} --tcp 9000",
            file=sys.stderr,
        )


def _say_where(address: Tcp | Unix) -> None:
    print(f"listening on {address}", file=sys.stderr, flush=True)


def with_framing(app: Server, options: argparse.Namespace) -> None:
    """Have a server tell messages apart as the options say."""
    if options.framing is not None:
        # The policy is read when a transport is made, and none was made yet.
        app._core.policy = app._core.policy.replace(framing=options.framing)


def begin_log(options: argparse.Namespace) -> None:
    """Log to standard error, unless the file has seen to its log itself."""
    import logging

    level = (options.log or "warning").upper()
    # After the file was loaded: what it has set up stays.
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s")
    if options.log is not None:
        logging.getLogger().setLevel(level)
