"""One HTTP exchange, without I/O: its answer as JSON, as an event stream or as a status.

An `Exchange` is the route of what a POST carried: the peer hands it to the transport with every
message about that POST. It decides the form of the response and writes it through a `Responder`,
which is the HTTP server or the ASGI adapter. A stream opened by GET is an exchange too, one that
is never answered.

The rules that live here, and only here:

* A request is answered with one JSON object, unless another message precedes the answer, the
  answer takes longer than `HttpLimits.stream_after`, or the client accepts event streams only.
* An error that names the scopes of an operation has the status 403 and a challenge with these
  scopes, or 401 for an anonymous caller. In a batch, and in a stream that was begun, it is an
  error like any other.     [MCP 2026-07-28, basic/authorization#scope-challenge-handling]
* What carries no request is answered with 202 and no body.
                                          [MCP 2025-11-25, basic/transports#sending-messages]
* Where streams can be resumed, each event has an id that names its stream. Since 2025-11-25 a
  stream begins with an empty event that has an id and a retry delay, so that the server may close
  the connection and the client may poll.           [MCP 2025-11-25, basic/transports]
* A stream of a session outlives its connection: a later GET resumes it. Elsewhere the end of the
  connection cancels the request.      [MCP 2026-07-28, basic/transports/streamable-http]
* The connection of a stream ends with the credential that it was opened or resumed with. A client
  of a session resumes it with another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from ....jsonrpc.framing.sse import encode_event
from ....mcp.header_values import ENCODED
from ....spec.http_conditions import HTTP
from ....spec.lookup import http_status
from ....spec.mcp.http_status import MCP
from ...base import ignore
from ..response import EVENT_STREAM, JSON, JSON_HEADERS, STOPPING, STREAM_HEADERS, Refusal
from .request_headers import header_mismatch, param_mismatch

if TYPE_CHECKING:
    from ....errors import InvalidMessage, TransportError
    from ....jsonrpc.limits import TransportName
    from ....jsonrpc.messages import ErrorObject
    from ....mcp.param_headers import ParamPath
    from ...base import Frame
    from ..gate.authentication import Authenticator, Owner
    from ..request import HttpRequest
    from ..response import Headers, Responder

__all__ = [
    "EVENTS_NOT_ACCEPTED",
    "Carrier",
    "Exchange",
    "ExchangeTransport",
    "accepted_types",
    "event_of",
]

# The HTTP status of an error, in the revision that the exchange is in.
StatusOf: TypeAlias = "Callable[[ErrorObject | InvalidMessage], int]"

_UNAUTHENTICATED: Final = HTTP["authentication-required"].status
_DENIED: Final = HTTP["permission-denied"].status
# Statuses of answers that say when to try again.
_RETRIED: Final = (HTTP["rate-limited"].status, HTTP["overloaded"].status)
_NOT_ACCEPTED: Final = MCP["not-accepted"].status
_KEEP_ALIVE: Final = b":\n\n"
EVENTS_NOT_ACCEPTED: Final = Refusal(HTTP["wrong-accept"], "Accept must allow text/event-stream")
_LF: Final = 10
_CR: Final = 13

# The states of an exchange.
_OPEN: Final = 0  # nothing was sent
_STREAMING: Final = 1
_DONE: Final = 2


class Carrier(Protocol):
    """What an exchange belongs to: a session, or a single request."""

    # Whether streams begin with an event that lets clients resume them.
    primes: bool

    def event(self, exchange: Exchange, frame: bytes) -> bytes:
        """Return a message as an event, with an id where the stream can be resumed."""

    def priming_event(self, exchange: Exchange) -> bytes:
        """Return the event that a stream begins with, or nothing."""

    def exchange_ended(self, exchange: Exchange) -> None:
        """Forget an exchange whose response is complete."""

    def client_gone(self, exchange: Exchange) -> None:
        """React to the end of the connection before the response was complete."""

    def undeliverable(self, exchange: Exchange, frame: bytes) -> None:
        """Send a message that the client does not accept here another way, or drop it."""

    def is_slow(self, exchange: Exchange, value: bool) -> None:
        """Note that the client reads slowly, or again as it should."""


class ExchangeTransport:
    """A transport over exchanges: what a session and a single request have in common."""

    __slots__ = ("_sent", "is_connected", "name", "on_drained", "on_error", "on_message", "primes")

    def __init__(self, name: TransportName) -> None:
        self.name: TransportName = name
        self.on_message: Callable[[Frame, Any], object] = ignore
        self.on_error: Callable[[TransportError | None], object] = ignore
        self.on_drained: Callable[[], object] = ignore
        self.is_connected = False
        self.primes = False
        # The number of bytes in all.
        self._sent = 0

    @property
    def backlog(self) -> int:
        """The number of bytes that the client has not taken."""
        raise NotImplementedError

    @property
    def written(self) -> int:
        """The number of bytes that have left the backlog, in total."""
        return self._sent - self.backlog

    async def connect(self) -> None:
        """Begin to carry messages."""
        self.is_connected = True


# Clients send one of a few texts. Bounded, because a client can send any.
@lru_cache(maxsize=64)
def accepted_types(accept: bytes | None) -> tuple[bool, bool]:
    """Return whether an Accept header allows JSON, and whether it allows event streams.

    A missing header and `*/*` allow both.
    """
    if accept is None:
        return True, True
    ranges: dict[bytes, bool] = {}
    for part in accept.lower().split(b","):
        kind, *parameters = part.replace(b" ", b"").replace(b"\t", b"").split(b";")
        quality = next((each[2:] for each in parameters if each[:2] == b"q="), b"1")
        ranges[kind] = bool(quality.strip(b"0."))
    return _allows(ranges, JSON), _allows(ranges, EVENT_STREAM)


def _allows(ranges: dict[bytes, bool], kind: bytes) -> bool:
    """Return what the most specific range says about a type.     [RFC 9110, section 12.5.1]"""
    for each in (kind, kind.partition(b"/")[0] + b"/*", b"*/*"):
        if each in ranges:
            return ranges[each]
    return False


def event_of(frame: bytes, id: bytes | None = None) -> bytes:
    """Return a message as an event."""
    if _LF in frame or _CR in frame:  # JSON of an author that has line breaks between its members
        return encode_event(frame, id=None if id is None else id.decode())
    if id is None:
        return b"data: %b\n\n" % frame
    return b"id: %b\ndata: %b\n\n" % (id, frame)


class Exchange:
    """One POST and its response, or one stream opened by GET."""

    __slots__ = (
        "_state",
        "_touched",
        "accepts_events",
        "accepts_json",
        "authenticator",
        "began",
        "carrier",
        "expires_at",
        "extra_headers",
        "is_receiving",
        "last_event",
        "opening_headers",
        "owner",
        "rate_wait",
        "request",
        "responder",
        "settled_status",
        "status",
        "status_of",
        "stream",
    )

    def __init__(
        self,
        request: HttpRequest,
        responder: Responder | None,
        carrier: Carrier,
        status_of: StatusOf,
        now: float,
        owner: Owner | None = None,
    ) -> None:
        self.request = request
        # None once the client has gone.
        self.responder = responder
        self.carrier = carrier
        self.status_of = status_of
        self.accepts_json, self.accepts_events = accepted_types(request.accept)
        self.began = now
        # Makes the challenges of refusals; None without authentication.
        self.authenticator: Authenticator | None = None
        # The authenticated client that sent the request.
        self.owner = owner
        # When the credential ends that the stream was opened or resumed with, as Unix time.
        self.expires_at = None if owner is None else owner.expires_at
        # Counts the elements of a batch for the rate of the client; see `Routes.rate_of`.
        self.rate_wait: Callable[[], float | None] | None = None
        # Sent with the response, whatever its form.
        self.extra_headers: Headers = ()
        # Of a session that this POST opens: sent if it succeeds. Empty if it opens none.
        self.opening_headers: Headers = ()
        # The status of the answer if it was decided before, else 0.
        self.status = 0
        # The status of a POST that carries no request.
        self.settled_status = 202
        # Whether the POST is being read: what is settled meanwhile carried no request.
        self.is_receiving = False
        # Of a stream that can be resumed: its number, and that of its last event.
        self.stream = 0
        self.last_event = 0
        self._state = _OPEN
        self._touched = now

    def __repr__(self) -> str:
        state = ("open", "streaming", "done")[self._state]
        return f"<Exchange of {self.request!r}, {state}>"

    # -- what a server asks of it ------------------------------------------------------------

    @property
    def protocol_version(self) -> str | None:
        """The value of `MCP-Protocol-Version`."""
        version = self.request.protocol_version
        return None if version is None else version.decode("latin-1")

    def mismatch(self, method: str, version: str, name: str | None) -> str | None:
        """Return how the headers differ from a request, or None; see `header_mismatch`."""
        headers = self.request.headers
        # Most are literal. None of these headers occurs twice: `read_headers` refuses that.
        if (
            self.request.protocol_version == version.encode("utf-8", "surrogatepass")
            and (b"mcp-method", method.encode("utf-8", "surrogatepass")) in headers
            and name is not None
            and name.isascii()
            and name.isprintable()
            and not name.startswith(ENCODED)
            and (b"mcp-name", name.encode()) in headers
        ):
            return None
        return header_mismatch(self.request, method, version, name)

    def param_mismatch(self, annotated: tuple[ParamPath, ...], arguments: Any) -> str | None:
        """Return how the `Mcp-Param-*` headers differ from arguments, or None."""
        return param_mismatch(self.request, annotated, arguments)

    def use_status(self, kind: str, revision: str) -> None:
        """Answer with the status of a kind of error."""
        self.status = http_status(kind, revision)

    def not_accepted(self) -> None:
        """Answer what carries no request with the status of a message that is not accepted."""
        self.settled_status = _NOT_ACCEPTED

    # -- the response ------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether the response is complete."""
        return self._state == _DONE

    @property
    def is_streaming(self) -> bool:
        """Whether an event stream was begun and has not ended."""
        return self._state == _STREAMING

    @property
    def unread(self) -> int:
        """The number of bytes sent that the client has not taken."""
        return 0 if self.responder is None else self.responder.unread

    def send(self, frame: bytes) -> None:
        """Send a message that is not the answer."""
        if self._state == _OPEN:
            if not self.accepts_events:
                self.carrier.undeliverable(self, frame)
                return
            self.start_stream()
        if self._state == _STREAMING:
            event = self.carrier.event(self, frame)
            if self.responder is not None:
                self.responder.write(event)

    def answer(self, frame: bytes, error: ErrorObject | InvalidMessage | None = None) -> None:
        """Send the answer, which ends the exchange."""
        if self._state == _STREAMING:
            event = self.carrier.event(self, frame)
            if self.responder is not None:
                self.responder.write(event)
                self.responder.end()
        elif self._state == _OPEN:
            status = self.status or (200 if error is None else self.status_of(error))
            challenge: Headers = ()
            if self.authenticator is not None and error is not None:
                status, challenge = self._refused(self.authenticator, status, error)
            if self.responder is None:
                pass
            elif self.accepts_json or status != 200:
                headers = JSON_HEADERS
                if self.extra_headers or challenge:
                    headers += self.extra_headers + challenge
                if self.opening_headers and error is None:
                    headers += self.opening_headers
                if status in _RETRIED:
                    headers += _retry_after(error)
                self.responder.respond(status, frame, headers)
            else:
                # Whole at once: a client that does not get it has no id to resume from.
                headers = STREAM_HEADERS + self.extra_headers
                if self.opening_headers and error is None:
                    headers += self.opening_headers
                self.responder.respond(200, event_of(frame), headers)
        self._end()

    def _refused(
        self, authenticator: Authenticator, status: int, error: ErrorObject | InvalidMessage
    ) -> tuple[int, Headers]:
        """Return the status of an error, and its challenge if it is a refusal of access."""
        owner, data = self.owner, getattr(error, "data", None)
        scopes = data.get("requiredScopes") if isinstance(data, dict) else None
        if isinstance(scopes, list) and scopes:
            named = frozenset(each for each in scopes if isinstance(each, str))
            refused = _DENIED if owner is not None else _UNAUTHENTICATED
            return refused, authenticator.insufficient(named, owner)
        if status == _UNAUTHENTICATED and owner is None:
            return status, authenticator.insufficient(frozenset(), None)
        return status, ()

    def settle(self) -> None:
        """End an exchange without an answer: it carried no request, or they were cancelled."""
        if self._state == _OPEN and self.responder is not None:
            if self.is_receiving:
                self.responder.respond(self.settled_status, b"", self.extra_headers)
            elif self.accepts_events:
                self.responder.respond(200, b"", STREAM_HEADERS + self.extra_headers)
            else:
                self.responder.respond(202, b"", self.extra_headers)
        elif self._state == _STREAMING and self.responder is not None:
            self.responder.end()
        self._end()

    def start_stream(self) -> None:
        """Begin an event stream."""
        self._state = _STREAMING
        if self.responder is not None:
            self.responder.start(STREAM_HEADERS + self.extra_headers)
        priming = self.carrier.priming_event(self)
        if priming and self.responder is not None:
            self.responder.write(priming)

    def attach(
        self, responder: Responder, events: list[bytes], now: float, extra: Headers = ()
    ) -> None:
        """Resume a stream on another connection: send what was missed, then what follows."""
        former, self.responder = self.responder, responder
        if former is not None:
            self.carrier.is_slow(self, False)
            former.end()
        self._touched = now
        self._state = _STREAMING
        responder.start(STREAM_HEADERS + extra)
        for event in events:
            responder.write(event)

    def close_stream(self) -> bool:
        """End the connection of a stream that the client can resume; return False if it cannot."""
        if self._state == _DONE or not (self.carrier.primes and self.accepts_events):
            return False
        if self._state == _OPEN:
            self.start_stream()
        responder, self.responder = self.responder, None
        if responder is not None:
            self.carrier.is_slow(self, False)
            responder.end()
        return True

    def tick(self, now: float, stream_after: float, keep_alive: float) -> None:
        """Begin a stream if the answer takes long; keep a stream alive, or end an expired one."""
        if self._state == _OPEN:
            if now - self.began >= stream_after and self.accepts_events and not self.status:
                self.start_stream()
                self._keep_alive(now)
        elif self.expires_at is not None and time.time() >= self.expires_at:
            self._expire()
        elif now - self._touched >= keep_alive:
            self._keep_alive(now)

    def _expire(self) -> None:
        """End the connection of a stream whose credential has ended, as if the client had left."""
        responder, self.responder = self.responder, None
        if responder is not None:
            responder.end()
        self.carrier.client_gone(self)

    def _keep_alive(self, now: float) -> None:
        self._touched = now
        # A client that does not read has enough to read.
        if self.responder is not None and not self.responder.unread:
            self.responder.write(_KEEP_ALIVE)

    def note_slow(self, is_slow: bool) -> None:
        """Note that the client reads slowly, or again as it should."""
        self.carrier.is_slow(self, is_slow)

    def disconnected(self) -> None:
        """Note that the client has gone."""
        if self._state != _DONE:
            self.responder = None
            self.carrier.client_gone(self)

    def close(self) -> None:
        """End the exchange without an answer, because its session or the server ends."""
        if self._state == _STREAMING and self.responder is not None:
            self.responder.end()
        elif self._state == _OPEN and self.responder is not None:
            self.responder.respond(STOPPING.status, b"", STOPPING.headers)
        self._end()

    def _end(self) -> None:
        if self._state != _DONE:
            self._state = _DONE
            self.responder = None
            self.carrier.exchange_ended(self)


def _retry_after(error: Any) -> Headers:
    data = getattr(error, "data", None)
    milliseconds = data.get("retryAfterMs", 0) if isinstance(data, dict) else 0
    seconds = max(1, -(-int(milliseconds) // 1000))
    return ((b"retry-after", b"%d" % seconds),)
