"""What an HTTP server answers with: a `Responder` for each request, and refusals.

A `Responder` is the HTTP server or the ASGI adapter. What is behind them answers through it, and
knows neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from ...spec.http_conditions import HTTP

if TYPE_CHECKING:
    from ...accounts.account import Account
    from ...spec.rows import HttpStatus
    from .request import HttpRequest

__all__ = [
    "EVENT_STREAM",
    "INTERNAL_ERROR",
    "JSON",
    "JSON_HEADERS",
    "LARGER_THAN_SHARE",
    "STOPPING",
    "STREAM_HEADERS",
    "TOO_MANY_REQUESTS",
    "TOO_MANY_SESSIONS",
    "TOO_MUCH_RECEIVED",
    "Headers",
    "OpenExchange",
    "Refusal",
    "Responder",
    "overloaded",
]

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]

JSON: Final = b"application/json"
EVENT_STREAM: Final = b"text/event-stream"
JSON_HEADERS: Final[Headers] = ((b"content-type", JSON),)
STREAM_HEADERS: Final[Headers] = (
    (b"content-type", EVENT_STREAM),
    (b"cache-control", b"no-cache, no-transform"),
    # Proxies pass each event on at once.    [MCP 2026-07-28, basic/transports/streamable-http]
    (b"x-accel-buffering", b"no"),
)


class Refusal(NamedTuple):
    """The answer to a request that is not served; its row has the condition and the status."""

    row: HttpStatus
    message: str
    headers: Headers = ()
    # Of a request that may be sent again, milliseconds until then; 0 is none.
    retry_after_ms: int = 0

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.row.status


def overloaded(message: str, seconds: int = 1) -> Refusal:
    """Return the refusal of a request that may be sent again after some seconds."""
    headers = ((b"retry-after", b"%d" % seconds),)
    return Refusal(HTTP["overloaded"], message, headers, 1000 * seconds)


INTERNAL_ERROR: Final = Refusal(HTTP["internal-error"], "Internal error")
STOPPING: Final = overloaded("The server is stopping")
TOO_MANY_REQUESTS: Final = overloaded("Too many requests at once")
LARGER_THAN_SHARE: Final = Refusal(
    HTTP["body-too-large"], "The request body is more than one client may send at a time"
)
TOO_MUCH_RECEIVED: Final = overloaded("Too many bytes of requests at once")
TOO_MANY_SESSIONS: Final = overloaded("Too many sessions", 10)


class OpenExchange(Protocol):
    """A request whose response is not complete: what its responder reports to."""

    request: HttpRequest

    def tick(self, now: float, stream_after: float, keep_alive: float) -> None:
        """Begin a stream if the answer takes long, keep a stream alive; called every second."""

    def note_slow(self, is_slow: bool) -> None:
        """Note that the client reads slowly, or again as it should."""

    def disconnected(self) -> None:
        """Note that the client has gone."""


class Responder(Protocol):
    """Writes one HTTP response; what is written after the client has gone is dropped."""

    # Whose response is written, until it is complete. The end of the connection is reported to it.
    exchange: OpenExchange | None
    # That of the client, by its address until a request tells its principal.
    account: Account

    def use_account(self, account: Account) -> None:
        """Count the connection for a client that a request has told."""

    @property
    def is_gone(self) -> bool:
        """Whether the client has closed the connection."""

    def respond(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Send a whole response, and end it."""

    def start(self, headers: Headers) -> None:
        """Begin a response with status 200 whose length is not known."""

    def write(self, data: bytes) -> None:
        """Send a part of the body."""

    def end(self) -> None:
        """End the response."""

    @property
    def unread(self) -> int:
        """The number of bytes sent that the client has not taken."""
