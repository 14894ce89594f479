"""Options of an HTTP client: headers, credentials, proxies, timeouts, bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NewType

from msgspec import Struct
from msgspec.structs import force_setattr

from ....mcp.header_values import is_token
from ....redaction import show

if TYPE_CHECKING:
    from .authorization import ClientAuth
else:
    # Loaded on first use; `help` and `inspect.signature` of a Struct need a name.
    ClientAuth = NewType("ClientAuth", object)

__all__ = ["HttpOptions"]

# Headers that the transport itself sends; another value would contradict the message.
_OWN: Final = frozenset(
    (
        *("accept", "accept-encoding", "connection", "content-length", "content-type"),
        *("expect", "host"),
        *("last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
        *("sec-websocket-extensions", "sec-websocket-key"),
        *("sec-websocket-protocol", "sec-websocket-version"),
    )
)


class HttpOptions(Struct, frozen=True, kw_only=True):
    """How a client reaches an HTTP server. Times are in seconds."""

    # Headers of every request, such as Authorization. Their values appear in no log and no repr.
    headers: Mapping[str, str] = {}
    # Credentials of every request, such as `trunkline.auth.OAuth()`.
    auth: ClientAuth | None = None
    # The URL of a proxy; None uses HTTP_PROXY, HTTPS_PROXY and NO_PROXY, "" no proxy.
    proxy: str | None = None
    # Time for a connection, with its TLS handshake.
    connect_timeout: float = 10.0
    # Time without a byte of a response, after which it is lost; None waits for ever. Keepalive
    # comments of event streams count. The `timeout` of a call bounds it as a whole.
    read_timeout: float | None = 300.0
    # Open connections. Each request in flight takes one; the stream of a session, replies and
    # notifications have a few more.
    connections: int = 100
    # Refusals with Retry-After (429, 503) after which a request is sent again, and the longest
    # delay that is waited for.
    retries: int = 2
    longest_retry: float = 10.0
    # Attempts to reopen a stream that was lost, before it is given up.
    reconnects: int = 5

    def __post_init__(self) -> None:
        given: Any = self.headers
        if not isinstance(given, Mapping):
            raise ValueError(f"HttpOptions.headers is a mapping, not {show(given)}")
        for name, value in given.items():
            if not isinstance(name, str) or not is_token(name):
                raise ValueError(f"HttpOptions.headers has {show(name)}, which is not a name")
            if name.lower() in _OWN:
                raise ValueError(f"HttpOptions.headers has {name}, which the client itself sends")
            if not isinstance(value, str) or not _is_value(value):
                # Without the value: it may be a secret.
                raise ValueError(f"HttpOptions.headers: the value of {name} cannot be sent")
        if len({name.lower() for name in given}) != len(given):
            raise ValueError("HttpOptions.headers has a name twice, which differs in case alone")
        force_setattr(self, "headers", dict(given))
        if self.auth is not None:
            if not callable(getattr(self.auth, "for_server", None)):
                # Without the value: it may be a secret.
                kind = type(self.auth).__name__
                advice = "such as OAuth() or Bearer(token)"
                raise ValueError(f"HttpOptions.auth is one of trunkline.auth, {advice}, not {kind}")
            if any(name.lower() == "authorization" for name in given):
                raise ValueError("HttpOptions has auth, and an Authorization header: give one")
        for name in ("connect_timeout", "read_timeout", "longest_retry"):
            value = getattr(self, name)
            if value is None and name == "read_timeout":
                continue
            if type(value) not in (int, float) or not 0.001 <= value < 10**9:
                raise ValueError(f"HttpOptions.{name} is a number of seconds, not {show(value)}")
        for name, least in (("connections", 1), ("retries", 0), ("reconnects", 0)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value < 10**6:
                raise ValueError(f"HttpOptions.{name} is an integer, not {show(value)}")

    def __repr__(self) -> str:
        return f"HttpOptions({', '.join(f'{name}={text}' for name, text in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        shown = [("headers", f"<{len(self.headers)}>")]
        shown += [] if self.auth is None else [("auth", f"<{type(self.auth).__name__}>")]
        return shown + [
            (name, repr(getattr(self, name)))
            for name in self.__struct_fields__
            if name not in ("headers", "auth", "proxy")
        ]


def _is_value(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip()
