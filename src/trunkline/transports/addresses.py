"""Addresses of sockets, HTTP endpoints and WebSockets as values, and their text form.

    tcp://127.0.0.1:9000    tls://mcp.example.org:9443    unix:/run/weather.sock
    http://127.0.0.1:8000/mcp    https://mcp.example.org:8443/mcp    http+unix:/run/weather.sock
    ws://127.0.0.1:8000/mcp    wss://mcp.example.org/mcp

A server listens on the same value that a client connects to, except that a WebSocket is served
beside HTTP, at its address. Nothing is opened here.

The rules that live here, and only here:

* An address is complete: a host and a port, or a path. There are no defaults, so that a server
  does not listen on every network because a part was left out. The exception is the port of a
  URL, 80 for `http` and `ws`, 443 for `https` and `wss`.
  [RFC 9110, sections 4.2.1 and 4.2.2; RFC 6455, section 3]
* A URL without a path names the root, `/`.  [RFC 9110, section 4.2.3]
  A server does not listen there by omission: it needs a path.
* The path of an HTTP endpoint is compared as it is written, so it has one spelling: no dot
  segments and no fragment. A query is for clients: it is sent, and may be a secret, so that it
  appears in no text and no repr.
* A client verifies the certificate against the system's trust store and the host name it
  dialled, unless another store or name is given. No option disables verification; an
  `ssl.SSLContext` of the caller can.
* The password of a key appears in no repr.
"""

from __future__ import annotations

import os
import sys
from dataclasses import KW_ONLY, dataclass, field, replace
from string import hexdigits
from typing import TYPE_CHECKING, ClassVar, Final

from ..redaction import redact, show

if TYPE_CHECKING:
    import ssl

    from ..jsonrpc.policy import Policy
    from .base import Transport
    from .http.client.settings import HttpOptions

__all__ = [
    "HTTP_SCHEMES",
    "SCHEMES",
    "WS_SCHEMES",
    "Http",
    "Tcp",
    "Tls",
    "Unix",
    "Ws",
    "is_exposed",
    "parse_address",
    "parse_host_and_port",
    "parse_socket_address",
    "path_advice",
]

# How an address of each kind is written: of a socket, of an HTTP endpoint, and of a WebSocket.
SCHEMES: Final = ("tcp://HOST:PORT", "tls://HOST:PORT", "unix:PATH")
HTTP_SCHEMES: Final = ("http://HOST:PORT/PATH", "https://HOST:PORT/PATH", "http+unix:PATH")
WS_SCHEMES: Final = ("ws://HOST:PORT/PATH", "wss://HOST:PORT/PATH")

_MAX_PORT: Final = 65_535
# Delimiters of other parts of a URL, which no host contains.
_NOT_IN_HOST: Final = " /\\?#@[]"
# The system's limit, with the terminating byte, is 108 on Linux and 104 elsewhere.
_MAX_PATH_BYTES: Final = 103
_HTTP_PORT: Final = 80
_HTTPS_PORT: Final = 443
_HTTP_PATH: Final = "/mcp"
# Characters of a path beside letters, digits and percent-encodings.  [RFC 3986, section 3.3]
_IN_HTTP_PATH: Final = "/-._~!$&'()*+,;=:@"
# The same of a query.  [RFC 3986, section 3.4]
_IN_HTTP_QUERY: Final = f"{_IN_HTTP_PATH}?"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Tls:
    """Certificates and trust of a TLS connection.

    A client trusts the system's store, or the authorities in the file `ca`, expects a
    certificate for the host it dials, or for `server_name`, and presents its own `cert`. A
    server presents its `cert`, and with `ca` accepts only clients with a certificate of those
    authorities. Files are PEM; `key` may be in the file of `cert`. The minimum is TLS 1.2.
    """

    ca: str | os.PathLike[str] | None = None
    cert: str | os.PathLike[str] | None = None
    key: str | os.PathLike[str] | None = None
    password: str | None = None
    server_name: str | None = None

    def __post_init__(self) -> None:
        if self.key is not None and self.cert is None:
            raise ValueError("Tls.key belongs to a certificate: give cert too")

    def __repr__(self) -> str:
        shown = [
            f"{name}={getattr(self, name)!r}"
            for name in ("ca", "cert", "key", "server_name")
            if getattr(self, name) is not None
        ]
        return f"Tls({', '.join(shown)})"


# A client remembers by the address, weakly, which era a server belongs to.
@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
class Tcp:
    """A server at a host and a port; with `tls` the connection is encrypted.

    `tls` is True, a `Tls`, or an `ssl.SSLContext`. Port 0 is for servers: the system chooses
    one. A client tries each address of a host in turn.
    """

    # The server exists before and after a connection, so a client can reconnect.
    outlives_connections: ClassVar[bool] = True

    host: str
    port: int
    _: KW_ONLY
    tls: bool | Tls | ssl.SSLContext = field(default=False, hash=False)

    def __post_init__(self) -> None:
        _check_network(self)

    def __str__(self) -> str:
        return f"{'tls' if self.tls else 'tcp'}://{_authority(self)}"

    def __repr__(self) -> str:
        tls = f", tls={self.tls!r}" if self.tls else ""
        return f"Tcp({redact(self.host)!r}, {self.port}{tls})"

    def transport(self, policy: Policy) -> Transport:
        """Return a new connection to this address, not yet connected."""
        # Imported here: an address costs nothing until it is used.
        from .sockets.connection import DialledSocket

        return DialledSocket(self, policy)


@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
class Unix:
    """A server at a path of this machine.

    `mode` is for servers: the permissions of the file, which say who may connect. The default,
    0o600, is the user who started the server.
    """

    outlives_connections: ClassVar[bool] = True  # as of a `Tcp`

    path: str | os.PathLike[str]
    _: KW_ONLY
    mode: int = field(default=0o600, compare=False)

    def __post_init__(self) -> None:
        path = os.fspath(self.path) if isinstance(self.path, os.PathLike) else self.path
        # Not `isprintable`: a file name may be bytes of any encoding.
        if not isinstance(path, str) or not path or any(c < " " or c == "\x7f" for c in path):
            raise ValueError(f"Unix.path is the path of a socket, not {show(path)}")
        if len(os.fsencode(path)) > _MAX_PATH_BYTES:
            raise ValueError(
                f"Unix.path has {len(os.fsencode(path))} bytes, and the limit of the system is "
                f"{_MAX_PATH_BYTES}: use a shorter or a relative path"
            )
        if type(self.mode) is not int or self.mode & ~0o777:
            raise ValueError(f"Unix.mode is permissions such as 0o600, not {show(self.mode)}")
        object.__setattr__(self, "path", path)

    def __str__(self) -> str:
        return f"unix:{self.path}"

    def __repr__(self) -> str:
        mode = "" if self.mode == 0o600 else f", mode={self.mode:#o}"
        return f"Unix({redact(str(self.path))!r}{mode})"

    def transport(self, policy: Policy) -> Transport:
        """Return a new connection to this address, not yet connected."""
        # Imported here, as above.
        from .sockets.connection import DialledSocket

        return DialledSocket(self, policy)


@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
class Http:
    """An HTTP endpoint: a host, a port and a path; with `tls` it is `https`.

    `tls` is as in `Tcp`. With `unix`, a path or a `Unix`, HTTP is spoken on a Unix socket, and
    there is no host, port or TLS.
    """

    outlives_connections: ClassVar[bool] = True  # as of a `Tcp`

    host: str = ""
    port: int = 0
    path: str = _HTTP_PATH
    _: KW_ONLY
    tls: bool | Tls | ssl.SSLContext = field(default=False, hash=False)
    unix: str | os.PathLike[str] | Unix | None = None
    # Of a client that connects: what follows the "?" of the URL; its headers, proxy and bounds.
    query: str = ""
    options: HttpOptions | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.unix is None:
            _check_network(self)
        elif self.host or self.port or self.tls:
            raise ValueError("Http.unix is a socket of this machine: give no host, port or tls")
        elif not isinstance(self.unix, Unix):
            object.__setattr__(self, "unix", Unix(self.unix))
        if not _is_http_path(self.path):
            raise ValueError(f"Http.path is a path such as {_HTTP_PATH}, not {show(self.path)}")
        if self.query and not _is_http_text(self.query, _IN_HTTP_QUERY):
            raise ValueError("Http.query has characters that are to be percent-encoded")

    @property
    def socket(self) -> Tcp | Unix:
        """The address of the socket that carries HTTP."""
        if isinstance(self.unix, Unix):
            return self.unix
        return Tcp(self.host, self.port, tls=self.tls)

    def __str__(self) -> str:
        if isinstance(self.unix, Unix):
            # The path follows a second colon, as in nginx. It is written where a reader would
            # otherwise take a part of the file name for it.
            has_path = self.path != _HTTP_PATH or ":/" in str(self.unix.path)
            return f"http+{self.unix}{f':{self.path}' if has_path else ''}"
        return f"{'https' if self.tls else 'http'}://{_authority(self)}{self.path}"

    def __repr__(self) -> str:
        shown = [] if self.unix is not None else [repr(redact(self.host)), repr(self.port)]
        if self.path != _HTTP_PATH:
            shown.append(f"path={redact(self.path)!r}")
        shown += ["query=<hidden>"] if self.query else []
        shown += [f"tls={self.tls!r}"] if self.tls else []
        shown += [f"unix={self.unix!r}"] if self.unix is not None else []
        return f"Http({', '.join(shown)})"

    def transport(self, policy: Policy) -> Transport:
        """Return a new transport to this address, not yet connected.

        Raises:
            ImportError: HTTP needs the extra `http`.
        """
        # Imported here, as above.
        from .http.client.settings import HttpOptions

        try:
            from .http.client.transport import HttpTransport
        except ModuleNotFoundError as error:
            if error.name != "httptools":
                raise
            from ..extras import install_command

            raise ImportError(f"HTTP needs httptools: {install_command('http')}") from None

        return HttpTransport(self, policy, self.options or HttpOptions())


@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
class Ws:
    """A WebSocket endpoint that a client connects to; with `tls` it is `wss`.

    `tls` is as in `Tcp`.
    """

    outlives_connections: ClassVar[bool] = True  # as of a `Tcp`

    host: str
    port: int
    path: str = _HTTP_PATH
    _: KW_ONLY
    tls: bool | Tls | ssl.SSLContext = field(default=False, hash=False)
    # The headers of the client, its proxy and its connect timeout.
    options: HttpOptions | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        _check_network(self)
        if not _is_http_path(self.path):
            raise ValueError(f"Ws.path is a path such as {_HTTP_PATH}, not {show(self.path)}")

    def __str__(self) -> str:
        return f"{'wss' if self.tls else 'ws'}://{_authority(self)}{self.path}"

    def __repr__(self) -> str:
        path = f", path={redact(self.path)!r}" if self.path != _HTTP_PATH else ""
        tls = f", tls={self.tls!r}" if self.tls else ""
        return f"Ws({redact(self.host)!r}, {self.port}{path}{tls})"

    def transport(self, policy: Policy) -> Transport:
        """Return a new connection to this address, not yet connected.

        Raises:
            ImportError: WebSocket needs the extra `ws`.
        """
        # Imported here, as above.
        from .http.client.settings import HttpOptions

        try:
            from .websocket.client import DialledWebSocket
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "websockets":
                raise
            from ..extras import install_command

            raise ImportError(f"WebSocket needs websockets: {install_command('ws')}") from None

        return DialledWebSocket(self, policy, self.options or HttpOptions())


def parse_address(
    text: str, *, tls: Tls | None = None, listening: bool = False
) -> Tcp | Unix | Http | Ws:
    """Return the address that a text names; `tls` is for `tls://`, `https://` and `wss://`.

    Raises:
        ValueError: the text is not an address, or it is for `listening` and has no path; the
            message shows the forms.
    """
    for scheme in ("http", "https"):
        if text.startswith(f"{scheme}://"):
            if listening and "/" not in text.removeprefix(f"{scheme}://"):
                raise ValueError(f"{show(text)} needs a path, as in {scheme}://127.0.0.1:8000/mcp")
            is_secure = scheme == "https"
            # Without the query, which an error would show otherwise.
            url, _, query = text.partition("?")
            parts = _parts(url, scheme, is_secure)
            return Http(*parts, tls=(tls or True) if is_secure else False, query=query)
    for scheme in ("ws", "wss"):
        if text.startswith(f"{scheme}://"):
            is_secure = scheme == "wss"
            url, query, _ = text.partition("?")
            if query:  # which may have a secret
                raise ValueError(f"{show(url)} has a query, which {scheme}:// has not here")
            return Ws(*_parts(text, scheme, is_secure), tls=(tls or True) if is_secure else False)
    if text.startswith("http+unix:"):
        file, path = text.removeprefix("http+"), _HTTP_PATH
        if ":/" in file.removeprefix("unix:"):
            file, _, path = file.rpartition(":/")
            path = f"/{path}"
        return Http(unix=_unix_address(file), path=path)
    return _socket_address(text, tls, (*SCHEMES, *HTTP_SCHEMES, *WS_SCHEMES))


def parse_socket_address(text: str, *, tls: Tls | None = None) -> Tcp | Unix:
    """Return the address of a socket that a text names; `tls` is used for `tls://`.

    Raises:
        ValueError: the text is not an address of a socket; the message shows the forms.
    """
    return _socket_address(text, tls, SCHEMES)


def _socket_address(text: str, tls: Tls | None, forms: tuple[str, ...]) -> Tcp | Unix:
    if text.startswith("unix:"):
        return _unix_address(text)
    for scheme in ("tcp", "tls"):
        if text.startswith(f"{scheme}://"):
            host, port = parse_host_and_port(text.removeprefix(f"{scheme}://"), shown=text)
            if scheme == "tcp":
                return Tcp(host, port)
            return Tcp(host, port, tls=tls or True)
    raise ValueError(f"{show(text)} is not an address; expected {', '.join(forms)}")


def _unix_address(text: str) -> Unix:
    path = text.removeprefix("unix:")
    if path.startswith("//"):
        path = path.removeprefix("//")
        if not path.startswith("/"):
            raise ValueError(f"{show(text)} names a host; write unix:PATH or unix:///PATH")
    if not path:
        raise ValueError("unix: needs a path, as in unix:/run/weather.sock")
    if path.startswith("@"):
        raise ValueError(
            "unix:@NAME is an abstract socket, which every user of this machine can open: "
            "give a path, as in unix:/run/weather.sock"
        )
    return Unix(path)


def _parts(text: str, scheme: str, is_secure: bool) -> tuple[str, int, str]:
    """Return host, port and path of a URL."""
    authority, _, path = text.removeprefix(f"{scheme}://").partition("/")
    has_port = ":" in authority.rpartition("]")[2]
    if authority and not has_port:
        authority = f"{authority}:{_HTTPS_PORT if is_secure else _HTTP_PORT}"
    host, port = parse_host_and_port(authority, shown=text)
    return host, port, f"/{path}"


def path_advice(address: Http | Ws) -> str:
    """Return the advice to add the usual path to an address without one; "" if it has a path."""
    if address.path != "/":
        return ""
    return f"; did you mean {replace(address, path=_HTTP_PATH)}?"


def is_exposed(address: Tcp | Unix | Http) -> bool:
    """Return True if other machines can connect to an address without authentication."""
    if isinstance(address, Http):
        address = address.socket
    if not isinstance(address, Tcp) or address.host == "localhost":
        return False
    if isinstance(address.tls, Tls) and address.tls.ca is not None:
        return False
    if not isinstance(address.tls, bool | Tls):
        return False  # a context decides by itself what it verifies
    # Imported here: a client does not need it.
    from ipaddress import ip_address

    try:
        return not ip_address(address.host).is_loopback
    except ValueError:
        return True  # a name may resolve to anything


def parse_host_and_port(given: str, *, shown: str) -> tuple[str, int]:
    """Return the two parts of `HOST:PORT`; a host with colons is in brackets.

    Raises:
        ValueError: there is no host or port; the message shows the text `shown`.
    """
    host, colon, port = given.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{show(shown)} has too many colons; IPv6 is written [::1]:PORT")
    if not colon or not host:
        advice = "127.0.0.1 for this machine alone, 0.0.0.0 for every network"
        raise ValueError(f"{show(shown)} needs a host and a port: {advice}")
    # Not `isdecimal` alone: it accepts digits of other scripts.
    if not (port.isascii() and port.isdecimal() and len(port) < 6 and int(port) <= _MAX_PORT):
        raise ValueError(f"{show(shown)} needs a port from 0 to {_MAX_PORT} after its last colon")
    return host, int(port)


def _check_network(address: Tcp | Http | Ws) -> None:
    kind, host, port, tls = type(address).__name__, address.host, address.port, address.tls
    if not _is_host(host):
        raise ValueError(f"{kind}.host is a host name or an IP address, not {show(host)}")
    if type(port) is not int or not 0 <= port <= _MAX_PORT:
        raise ValueError(f"{kind}.port is from 0 to {_MAX_PORT}, not {show(port)}")
    if not isinstance(tls, bool | Tls) and not _is_context(tls):
        raise ValueError(f"{kind}.tls is a bool, a Tls or an SSLContext, not {show(tls)}")


def _authority(address: Tcp | Http | Ws) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{host}:{address.port}"


def _is_host(host: object) -> bool:
    if not isinstance(host, str) or not host:
        return False
    return host.isprintable() and not any(each in _NOT_IN_HOST for each in host)


def _is_http_path(path: object) -> bool:
    if not isinstance(path, str) or not path.startswith("/"):
        return False
    if any(part in (".", "..") for part in path.split("/")):
        return False
    return _is_http_text(path, _IN_HTTP_PATH)


def _is_http_text(text: object, allowed: str) -> bool:
    """Return True if a text has letters, digits, percent-encodings and `allowed` alone."""
    if not isinstance(text, str) or not text.isascii():
        return False
    plain, *encoded = text.split("%")
    if not all(
        len(each) >= 2 and all(digit in hexdigits for digit in each[:2]) for each in encoded
    ):
        return False
    rest = plain + "".join(each[2:] for each in encoded)
    return all(each.isalnum() or each in allowed for each in rest)


def _is_context(tls: object) -> bool:
    # A context cannot exist before `ssl` is imported; an address alone does not load it.
    ssl = sys.modules.get("ssl")
    return ssl is not None and isinstance(tls, ssl.SSLContext)
