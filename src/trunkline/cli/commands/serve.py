"""The verb `serve`: runs the server in a file, on standard streams, a socket or over HTTP.

This module has the options; `loader` finds the server and `trunkline.server` runs it. With
`--reload` the server runs in worker processes of `reload.supervisor`.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec.structs import replace

from ...extras import install_command
from ..command import UsageError, declare_options
from ..exit_codes import SUCCESS, USAGE_ERROR
from ..loader import AppTarget, LoadError, core_of, load_app, parse_app_target, stdout_on_stderr
from ..output.progress import is_interactive
from ..output.terminal import is_terminal

if TYPE_CHECKING:
    from ...auth.server.settings import AuthSettings
    from ...engine.limits import SocketLimits
    from ...server.api.app import Server
    from ...transports.addresses import Http, Tcp, Unix
    from ...transports.http.settings import HttpLimits, HttpSettings

__all__ = [
    "EXAMPLES",
    "begin_log",
    "configure",
    "http_settings_of",
    "limits_of",
    "parse_listen_address",
    "run",
    "set_options",
]

EXAMPLES: Final = """\
trunkline serve notes.py
trunkline serve notes.py --http 8000
trunkline serve notes.py --http 0.0.0.0:8000 --allowed-host mcp.example.org
trunkline serve notes.py --http 8000 --auth auth.toml
trunkline serve notes.py:app --tcp 9000 --reload
"""
_LEVELS: Final = ("debug", "info", "warning", "error", "critical")
_SOCKET_OPTIONS: Final = ("max_connections", "idle", "keep_alive")
# Options of HTTP, and the setting that each is.
_HTTP_OPTIONS: Final = {
    "allowed_host": "hosts",
    "allowed_origin": "origins",
    "cors": "cors",
    "public_url": "public_url",
    "trusted_proxy": "trusted_proxies",
    "sse": "old_sse",
    "ws": "websocket",
    "rate": "rate",
    "access_log": "access_log",
    "metrics": "metrics",
}
_TLS_OPTIONS: Final = ("tls_cert", "tls_key", "tls_client_ca")

_ADDRESS_TABLE: Final = """\
--stdio             serve standard input and output; the default
--http [HOST:]PORT  serve HTTP; default HOST: 127.0.0.1; unix:PATH for a Unix domain socket
--tcp [HOST:]PORT   listen on TCP; default HOST: 127.0.0.1
--unix PATH         listen on a Unix domain socket
"""
_HTTP_TABLE: Final = """\
--path PATH                 path of the endpoint; default: /mcp
--sse                       also serve HTTP+SSE of 2024-11-05, at /sse and /messages
--ws                        also serve WebSocket, at the path of the endpoint; needs trunkline[ws]
--allowed-host HOST[:PORT]  name by which clients may reach this server; repeatable
--allowed-origin ORIGIN     origin of web pages that may send requests; repeatable
--cors ORIGIN               origin of web pages that may read responses; repeatable
--trusted-proxy ADDRESS     proxy or network whose Forwarded headers are believed; repeatable
--public-url URL            URL of the endpoint for clients behind a proxy
--rate N                    requests per second of one client; default: any
--access-log                log each HTTP request to stderr
--metrics HOST:PORT         serve metrics for Prometheus at /metrics there
--workers N                 worker processes for --http; for servers that keep nothing between
                            requests; default: 1
"""
_TLS_TABLE: Final = """\
--tls-cert FILE       certificate; turns TLS on for --http and --tcp
--tls-key FILE        key of the certificate; default: in the same file
--tls-client-ca FILE  require client certificates signed by these CA certificates
"""
_CONNECTION_TABLE: Final = """\
--max-connections N   open connections; default: 1024
--idle SECONDS        close idle connections that do not support ping after this many seconds;
                      0 disables; default: 300
--keep-alive SECONDS  ping idle clients after this many seconds; 0 disables; default: 30
--linger SECONDS      time for running requests to finish after end of input; on standard streams
                      those that do not are not answered; default: that of the server, 1.5
"""
_GENERAL_TABLE: Final = f"""\
--auth FILE       TOML file that says how callers are recognised; replaces the auth= of the server;
                  needs trunkline[auth]
--log LEVEL       least level of the library's log on stderr: {", ".join(_LEVELS)};
                  default: warning
--log-json        log JSON, one object on each line
--reload          restart when a file of the server changes
--reload-dir DIR  with --reload: also watch the Python files in this folder; repeatable
"""


# Options


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    # Imported here: a server needs it in any case.
    from ...jsonrpc.framing.framing import FramingName

    framings = get_args(FramingName)
    parser.set_defaults(prog=parser.prog)
    parser.usage = "%(prog)s FILE[:object] [--http PORT | --tcp PORT | --unix PATH] [options]"
    parser.add_argument(
        "target",
        metavar="FILE[:object]",
        help="a Python file or module, and the Server in it or a function that returns one; "
        "default object: the only Server, else app, server or mcp",
    )
    declare_options(parser.add_mutually_exclusive_group(), _ADDRESS_TABLE)
    declare_options(
        parser.add_argument_group("HTTP"),
        _HTTP_TABLE,
        rate={"type": _rate},
        workers={"type": _count},
    )
    declare_options(parser.add_argument_group("TLS"), _TLS_TABLE)
    declare_options(
        parser.add_argument_group("connections"),
        f"--framing NAME  message framing: {', '.join(framings)}; "
        f"default: that of the server, newline\n{_CONNECTION_TABLE}",
        framing={"choices": framings},
        max_connections={"type": _count},
        idle={"type": _seconds},
        keep_alive={"type": _seconds},
        linger={"type": _seconds},
    )
    declare_options(parser, _GENERAL_TABLE, log={"choices": _LEVELS, "type": str.lower})


def _rate(text: str) -> float:
    rate = float(text)
    if not 0.001 <= rate < 10**9:
        raise ValueError(text)
    return rate


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


def parse_listen_address(options: argparse.Namespace) -> Http | Tcp | Unix | None:
    """Return where to listen, or None for standard streams.

    Raises:
        UsageError: an address is malformed, or an option does not go with it.
    """
    for name in _TLS_OPTIONS:
        if getattr(options, name) is None:
            continue
        if options.tcp is None and options.http is None:
            raise UsageError(f"{_option(name)} needs --http or --tcp")
        if options.tls_cert is None:
            raise UsageError(f"{_option(name)} needs --tls-cert")
    if options.http is None:
        for name in ("path", "workers", *_HTTP_OPTIONS):
            if getattr(options, name):
                raise UsageError(f"{_option(name)} needs --http")
    if options.tcp is None and options.unix is None:
        allowed = _SOCKET_OPTIONS[:1] if options.http is not None else ()
        for name in _SOCKET_OPTIONS:
            if getattr(options, name) is not None and name not in allowed:
                raise UsageError(f"{_option(name)} needs --tcp or --unix")
        if options.http is None:
            return None
    # Imported here: standard streams have no address.
    from ...transports.addresses import Tls, Unix, parse_socket_address

    try:
        if options.http is not None:
            return _http_address(options)
        if options.unix is not None:
            return Unix(options.unix)
        text = options.tcp
        if text.isascii() and text.isdecimal():
            text = f"127.0.0.1:{text}"
        if options.tls_cert is None:
            return parse_socket_address(f"tcp://{text}")
        tls = Tls(cert=options.tls_cert, key=options.tls_key, ca=options.tls_client_ca)
        return parse_socket_address(f"tls://{text}", tls=tls)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _http_address(options: argparse.Namespace) -> Http:
    from ...transports.addresses import Http, Tls, parse_host_and_port

    text, path = options.http, options.path or "/mcp"
    if text.startswith("unix:"):
        if options.tls_cert is not None:
            raise UsageError("--tls-cert is not for a Unix domain socket")
        return Http(path=path, unix=text.removeprefix("unix:"))
    if text.isascii() and text.isdecimal():
        text = f"127.0.0.1:{text}"
    host, port = parse_host_and_port(text, shown=f"--http {text}")
    tls: bool | Tls = False
    if options.tls_cert is not None:
        tls = Tls(cert=options.tls_cert, key=options.tls_key, ca=options.tls_client_ca)
    return Http(host, port, path, tls=tls)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def http_settings_of(options: argparse.Namespace) -> HttpSettings | None:
    """Return the settings of HTTP in the options, or None if they are for something else.

    Raises:
        UsageError: one of them cannot be used; the text says why.
    """
    if options.http is None:
        return None
    from ...transports.http.settings import HttpSettings

    # Imported here: `serve` connects to nothing.
    from ..connect.target import check_http, check_websocket

    check_http()
    if options.ws:
        check_websocket()
    given = {setting: getattr(options, name) for name, setting in _HTTP_OPTIONS.items()}
    try:
        return HttpSettings(**{name: value for name, value in given.items() if value})
    except ValueError as error:
        raise UsageError(str(error)) from None


def limits_of(options: argparse.Namespace) -> HttpLimits | SocketLimits:
    """Return the limits on connections in the options, with defaults for the rest."""
    from ...engine.limits import SocketLimits

    given: dict[str, Any] = {}
    if options.max_connections is not None:
        given["connections"] = options.max_connections
    if options.http is not None:
        from ...transports.http.settings import HttpLimits

        return HttpLimits(**given)
    for name in ("idle", "keep_alive"):
        if getattr(options, name) is not None:
            given[name] = getattr(options, name) or None
    return SocketLimits(**given)


# Serving


def run(options: argparse.Namespace) -> int:
    """Serve until a signal or the client ends it; return the exit status."""
    address = parse_listen_address(options)
    target = parse_app_target(options.target)
    if options.reload_dir and not options.reload:
        raise UsageError("--reload-dir needs --reload")
    has_workers = options.workers is not None and options.workers > 1
    if has_workers and options.reload:
        raise UsageError("--workers and --reload do not go together")
    if options.metrics is not None and (has_workers or options.reload):
        # Each process would need the port for itself, and knows only its own requests.
        other = "--workers" if has_workers else "--reload"
        raise UsageError(f"--metrics and {other} do not go together")
    if options.reload:
        # Imported here: only development needs it.
        from ..reload.supervisor import run_reloading

        _hint_at_terminal(options, address)
        return _ended(run_reloading(options, target, address))
    try:
        return _serve(options, target, address)
    except LoadError as error:
        print(error.trace, file=sys.stderr)
        return USAGE_ERROR


def _serve(
    options: argparse.Namespace, target: AppTarget, address: Http | Tcp | Unix | None
) -> int:
    if address is None:
        with stdout_on_stderr():
            app = load_app(target)
    else:
        app = load_app(target)
    set_options(app, options)
    begin_log(options)
    _hint_at_terminal(options, address)
    http = http_settings_of(options)
    if options.workers is not None and options.workers > 1:
        # Imported here: few servers have several processes.
        from ..workers import run_workers

        return _ended(run_workers(app, address, options, http))
    from ...server.api.run import run_listening, run_stdio

    try:
        if address is None:
            run_stdio(app)
        else:
            run_listening(app, address, limits_of(options), http=http, on_ready=_say_where)
    # An address beyond this machine without the names of hosts, or auth= that is not for it.
    except ValueError as error:
        raise UsageError(str(error)) from None
    except SystemExit as end:  # the address cannot be listened on, and this says why
        if not isinstance(end.code, str):
            raise
        print(f"{options.prog}: {end.code}", file=sys.stderr)
        return USAGE_ERROR
    return _ended(SUCCESS)


def _ended(status: int) -> int:
    """End the line on which a terminal shows ^C, and return the status."""
    if is_interactive():
        print(file=sys.stderr)
    return status


def _hint_at_terminal(options: argparse.Namespace, address: Http | Tcp | Unix | None) -> None:
    """Print a hint for a user who started `serve` at a terminal without `--stdio`."""
    is_meant = address is not None or options.stdio
    if not is_meant and is_terminal(sys.stdin):
        print(
            f"{options.prog}: waiting for a client on standard input; to serve HTTP: "
            f"{options.prog} {options.target} --http 8000",
            file=sys.stderr,
        )


def _say_where(address: Http | Tcp | Unix) -> None:
    print(f"listening on {address}", file=sys.stderr, flush=True)


def set_options(app: Server, options: argparse.Namespace) -> None:
    """Set the framing, limits and authentication in the options, before they are read.

    Raises:
        UsageError: the file with the authentication cannot be used.
    """
    core = core_of(app)
    if options.framing is not None:
        core.policy = core.policy.replace(framing=options.framing)
    if options.linger is not None:
        core.limits = replace(core.limits, linger=options.linger)
    if options.auth is not None:
        core.auth = _auth_of(options.auth)


def _auth_of(path: str) -> AuthSettings:
    # Imported here: most servers have none.
    try:
        from ...auth.server.config import AuthConfigError, load_auth_file

        return load_auth_file(path)
    except ModuleNotFoundError as error:
        raise UsageError(f"--auth needs {error.name}: {install_command('auth')}") from None
    except AuthConfigError as error:
        raise UsageError(f"--auth {error}") from None


def begin_log(options: argparse.Namespace) -> None:
    """Log what the library reports to standard error, unless the file has configured logging.

    Only the logger `trunkline` is set up: the root logger belongs to the file.
    """
    import logging

    log = logging.getLogger("trunkline")
    # Called after the file was loaded, so its own handlers stay.
    is_configured = log.hasHandlers()
    if options.log is not None or not is_configured:
        log.setLevel((options.log or "warning").upper())
    if options.access_log:
        logging.getLogger("trunkline.access").setLevel(logging.INFO)
    if is_configured and not options.log_json:
        return
    handler = logging.StreamHandler()
    if options.log_json:
        # Imported here: most servers log text.
        from ...server.observability.json_log import JsonFormatter

        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    log.addHandler(handler)
    # Or a handler of the root logger would write each line a second time.
    log.propagate = False
