"""Settings and limits of an HTTP server.

Every text is checked where it is written, so that a server does not start with a host or an
origin that no request can match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from ...redaction import show
from ..addresses import parse_host_and_port
from .authority import parse_authority, parse_origin

__all__ = ["UNIX_PEER", "HttpLimits", "HttpSettings", "is_public_url"]

# What `trusted_proxies` calls a proxy that connects to a Unix socket.
UNIX_PEER: Final = "unix"

_MANY: Final = ("hosts", "origins", "cors", "trusted_proxies")
_FLAGS: Final = ("require_origin", "old_sse", "websocket", "access_log")


class HttpSettings(Struct, frozen=True, kw_only=True):
    """Which requests an HTTP server admits, and what it offers beside MCP.

    A server on a loopback address admits requests to `localhost`, `127.0.0.1` and `[::1]`. One
    on any other address needs `hosts` or `public_url`.
    """

    # Names that clients use for this server: "mcp.example.org" with any port, or
    # "mcp.example.org:8443" with that one. There are no wildcards.
    hosts: Sequence[str] = ()
    # Origins of web pages that may send requests, such as "https://app.example.org". The origins
    # of allowed hosts, and those in `cors`, are allowed too.
    origins: Sequence[str] = ()
    # Refuse requests without an Origin. Programs that are not browsers send none.
    require_origin: bool = False
    # Origins of web pages that may read responses: those get CORS headers. Empty is off.
    cors: Sequence[str] = ()
    # The URL that clients use, if a proxy in front of the server changes it. Its host is allowed.
    public_url: str | None = None
    # Addresses and networks of proxies whose Forwarded and X-Forwarded-… headers are believed,
    # such as "10.0.0.0/8", and "unix" for those that connect to a Unix socket. They have to
    # overwrite these headers, or append to them.
    trusted_proxies: Sequence[str] = ()
    # Serve HTTP+SSE of 2024-11-05 too, at /sse and /messages beside the path of MCP.
    old_sse: bool = False
    # Serve WebSocket too, at the path of MCP. Needs the extra `ws`.
    websocket: bool = False
    # Requests per second of one client, which is a principal or an address. Each request and
    # notification of a batch counts. None is off.
    rate: float | None = None
    # Requests that a client may send at once, with `rate`.
    burst: int = 20
    # Log each request, with the logger trunkline.access.
    access_log: bool = False
    # HOST:PORT of a second listener that serves /metrics. None is off.
    metrics: str | None = None

    def __post_init__(self) -> None:
        for name in _MANY:
            force_setattr(self, name, _texts(f"HttpSettings.{name}", getattr(self, name)))
        for each in self.hosts:
            if parse_authority(each) is None:
                raise ValueError(
                    f"HttpSettings.hosts has names such as 'mcp.example.org' or "
                    f"'mcp.example.org:8443', without wildcards, not {show(each)}"
                )
        for name in ("origins", "cors"):
            for each in getattr(self, name):
                if parse_origin(each) is None:
                    raise ValueError(
                        f"HttpSettings.{name} has origins such as 'https://app.example.org', "
                        f"without path or wildcards, not {show(each)}"
                    )
        for each in self.trusted_proxies:
            _check_proxy(each)
        if self.public_url is not None and not is_public_url(self.public_url):
            raise ValueError(
                "HttpSettings.public_url is a URL such as 'https://mcp.example.org/mcp', without "
                f"user, query or fragment, not {show(self.public_url)}"
            )
        for name in _FLAGS:
            if type(getattr(self, name)) is not bool:
                raise ValueError(f"HttpSettings.{name} is a bool, not {show(getattr(self, name))}")
        self._check_rate()
        if self.metrics is not None:
            if not isinstance(self.metrics, str):
                raise ValueError(f"HttpSettings.metrics is HOST:PORT, not {show(self.metrics)}")
            parse_host_and_port(self.metrics, shown=self.metrics)

    def _check_rate(self) -> None:
        rate = self.rate if self.rate is not None else 1.0
        if type(rate) not in (int, float) or not 0.001 <= rate < 10**9:
            raise ValueError(f"HttpSettings.rate is requests per second, not {show(rate)}")
        if type(self.burst) is not int or not 1 <= self.burst < 10**9:
            raise ValueError(f"HttpSettings.burst is an integer above 0, not {show(self.burst)}")


class HttpLimits(Struct, frozen=True, kw_only=True):
    """Limits on connections, requests, headers, streams and sessions of an HTTP server.

    Times are in seconds. The size of a body is limited by the policy, as that of any message.
    """

    # Open connections; each costs a descriptor and some kilobytes.
    connections: int = 1024
    # Requests of all connections that are not yet answered. One more is answered with 503.
    requests: int = 10_000
    # Headers of a request, their bytes together, and the bytes of one line. More is 431.
    header_count: int = 100
    header_bytes: int = 64 * 1024
    header_line_bytes: int = 8 * 1024
    # Time for all headers of a request, and for a new connection to send the first; the TLS
    # handshake counts separately.
    header_timeout: float = 10.0
    # Time for the body of a request or a WebSocket message, plus a second for each 16 KiB that
    # came: a least rate. A body that takes longer is 408, a message closes its connection.
    body_timeout: float = 30.0
    # Time between two requests on a connection. Proxies keep theirs for 60 s.
    idle_timeout: float = 75.0
    # Time after which a request that is not yet answered gets its answer as an event stream,
    # where keep-alive comments can be sent.
    stream_after: float = 10.0
    # Interval of keep-alive comments in event streams.
    keep_alive: float = 15.0
    # Sessions; the idlest gives way to a new one.
    sessions: int = 10_000
    # Time without a request after which a session ends, and its time in all.
    session_idle: float = 1800.0
    session_lifetime: float = 86_400.0
    # Milliseconds after which a client reconnects, sent as `retry`.
    retry_ms: int = 1000
    # Events of one session that are kept for clients that reconnect, their bytes, and how long.
    replay_events: int = 1000
    replay_bytes: int = 8 * 1024 * 1024
    replay_ttl: float = 300.0
    # Timeout of the TLS handshake, and connections that the system queues.
    tls_handshake: float = 10.0
    backlog: int = 128

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(_DEFAULTS[name], int):
                if type(value) is not int or not 1 <= value < 2**63:
                    raise ValueError(f"HttpLimits.{name} is an integer above 0, not {show(value)}")
            elif type(value) not in (int, float) or not 0.001 <= value < 10**9:
                raise ValueError(f"HttpLimits.{name} is a number of seconds, not {show(value)}")


_DEFAULTS: Final = dict(
    zip(HttpLimits.__struct_fields__, HttpLimits.__struct_defaults__, strict=True)
)


def is_public_url(url: object) -> bool:
    """Return True if a value is an `http` or `https` URL of a host, a port and a path alone."""
    if not isinstance(url, str):
        return False
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    origin = parse_origin(f"{scheme}://{authority}")
    if origin is None or origin.scheme not in ("http", "https"):
        return False
    return path.isascii() and path.isprintable() and not any(each in " ?#\\" for each in path)


def _texts(name: str, given: object) -> tuple[str, ...]:
    """Return the texts of a setting as a tuple; one text alone would be read letter by letter."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise ValueError(f"{name} is a list of texts, not {show(given)}")
    if not all(isinstance(each, str) for each in given):
        raise ValueError(f"{name} is a list of texts, not {show(list(given))}")
    return tuple(given)


def _check_proxy(given: str) -> None:
    # Imported here: most servers trust no proxy.
    from ipaddress import ip_network

    if given == UNIX_PEER:
        return
    try:
        ip_network(given)
    except ValueError as error:
        raise ValueError(
            "HttpSettings.trusted_proxies has addresses and networks such as '10.0.0.0/8', and "
            f"'unix', not {show(given)} ({error})"
        ) from None
