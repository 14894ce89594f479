"""HTTP+SSE of 2024-11-05: one event stream from the server, and POSTs to the address in it.

A GET opens a session and its stream; the first event has the address to which the client sends its
messages by POST. The session is a connection like one on a socket, whatever revision is
negotiated, and ends with its stream.

The rules that live here, and only here:

* The first event is `endpoint`, with the URI for messages; each message of the server is an event
  `message`.                                  [MCP 2024-11-05, basic/transports#http-with-sse]
* The URI is on the same origin, below what a proxy or a framework has put before the paths. It has
  256 random bits, and is of use to the principal of the stream alone: to others there is no such
  session.                                                                          [SEC-06]
* A POST is answered with 202, and its requests on the stream. An error that names no request could
  not be matched there: it is the body of the POST's response, with 400.
* The specification has no resumption: what is sent after the stream has broken is lost.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from ....errors import InvalidMessage
from ....spec.http_conditions import HTTP
from ....spec.mcp.http_status import MCP
from ...base import ignore
from ..gate.authentication import key_of
from ..response import JSON_HEADERS, STOPPING, TOO_MANY_SESSIONS
from .exchange import EVENTS_NOT_ACCEPTED, Exchange, ExchangeTransport, accepted_types, event_of
from .routes import Route
from .sessions import SESSION_UNKNOWN

if TYPE_CHECKING:
    from ....accounts.account import Account
    from ....jsonrpc.framing.framing import Oversize
    from ....jsonrpc.messages import ErrorObject
    from ..gate.authentication import Owner
    from ..request import HttpRequest
    from ..response import Refusal, Responder
    from .endpoint import McpEndpoint

__all__ = ["OldSseRoutes", "OldSseSession"]

_ACCEPTED: Final = MCP["accepted"].status
_TOO_LARGE: Final = HTTP["body-too-large"].status
# Random bytes of a session id.
_ID_BYTES: Final = 32
_STREAM_NAME: Final = "sse"
_POST_NAME: Final = "messages"
# The parameter with the session id. A query with more than a few is not one of ours.
_PARAMETER: Final = "session_id"
_MAX_PARAMETERS: Final = 8


class _Post:
    """The route of what a POST carried: its request, for handlers, and how it is answered."""

    __slots__ = ("body", "owner", "rate_wait", "request", "status")

    def __init__(self, request: HttpRequest, owner: Owner | None, status: int) -> None:
        self.request = request
        self.owner = owner
        self.status = status
        self.body = b""
        # Counts the elements of a batch for the rate of the client; see `Routes.rate_of`.
        self.rate_wait: Callable[[], float | None] | None = None


class OldSseSession(ExchangeTransport):
    """One session; it implements the transport contract, with one stream for everything."""

    __slots__ = ("_exchange", "account", "began", "id", "on_closed", "on_end", "owner", "uri")

    # For the table of sessions: its stream waits.
    is_busy = True

    def __init__(
        self, id: str, owner: Owner | None, uri: bytes, now: float, account: Account
    ) -> None:
        super().__init__("sse")
        # That of the client.
        self.account = account
        # Called to end the session, and when its stream has ended.
        self.on_end: Callable[[], object] = ignore
        self.on_closed: Callable[[OldSseSession], object] = ignore
        self.id = id
        self.owner = owner
        self.began = now
        # Where the client sends its messages.
        self.uri = uri
        self._exchange: Exchange | None = None

    def __repr__(self) -> str:
        return f"<OldSseSession, {'open' if self._exchange else 'closed'}>"

    # -- the transport contract --------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """The number of bytes that the client has not taken."""
        return 0 if self._exchange is None else self._exchange.unread

    def send(self, frame: bytes, route: _Post | None = None) -> None:
        """Send a message on the stream."""
        if self._exchange is not None:
            self._exchange.send(frame)
            self._sent += len(frame)

    def answer(
        self, frame: bytes, route: _Post, error: ErrorObject | InvalidMessage | None
    ) -> None:
        """Send an answer on the stream, or in response to the POST if it names no request."""
        if isinstance(error, InvalidMessage) and error.id is None:
            route.body = frame
            if route.status == _ACCEPTED:
                route.status = MCP["invalid-message"].status
        else:
            self.send(frame)

    async def close(self) -> None:
        """End the stream."""
        self.is_connected = False
        if self._exchange is not None:
            self._exchange.close()

    # -- the stream --------------------------------------------------------------------------

    def open(self, exchange: Exchange) -> None:
        """Begin the stream."""
        self._exchange = exchange
        exchange.start_stream()

    def receive(
        self,
        frame: bytes | Oversize,
        request: HttpRequest,
        owner: Owner | None,
        rate_wait: Callable[[], float | None] | None = None,
    ) -> _Post:
        """Process the body of a POST; return how it is answered."""
        post = _Post(request, owner, _ACCEPTED if type(frame) is bytes else _TOO_LARGE)
        post.rate_wait = rate_wait
        self.on_message(frame, post)
        return post

    def event(self, exchange: Exchange, frame: bytes) -> bytes:
        """Return a message as an event."""
        return b"event: message\n%b" % event_of(frame)

    def priming_event(self, exchange: Exchange) -> bytes:
        """Return the event that the stream begins with."""
        return b"event: endpoint\ndata: %b\n\n" % self.uri

    def exchange_ended(self, exchange: Exchange) -> None:
        """Forget the stream, and the session with it."""
        self._exchange = None
        self.on_closed(self)

    def client_gone(self, exchange: Exchange) -> None:
        """End the session."""
        self.is_connected = False
        exchange.close()
        self.on_error(None)

    def undeliverable(self, exchange: Exchange, frame: bytes) -> None:
        """Drop a message; this does not happen, because the client accepts events."""

    def is_slow(self, exchange: Exchange, value: bool) -> None:
        """Note that the client reads again as it should."""
        if not value:
            self.on_drained()


class OldSseRoutes:
    """The two routes of an endpoint, and their sessions.

    Raises:
        ValueError: MCP is served at one of the two paths.
    """

    def __init__(self, endpoint: McpEndpoint) -> None:
        folder = endpoint.path.rpartition("/")[0]
        stream, posts = f"{folder}/{_STREAM_NAME}", f"{folder}/{_POST_NAME}"
        if endpoint.path in (stream, posts):
            raise ValueError(
                f"HttpSettings.old_sse needs {endpoint.path}: serve MCP at another path"
            )
        rows = (
            (stream, Route(self._open, ("GET",), _check_accept)),
            (posts, Route(self._post, ("POST",), endpoint.check_content_type)),
        )
        for path, route in rows:
            endpoint.routes.add(path, route)
            endpoint.routes.add(f"{path}/", route)
        self._endpoint = endpoint
        self._uri = _uri_of(endpoint, posts)
        self._sessions: dict[str, OldSseSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def _open(
        self,
        request: HttpRequest,
        body: Any,
        responder: Responder,
        owner: Owner | None,
        client: str,
    ) -> None:
        endpoint = self._endpoint
        if not endpoint.service.is_ready:
            endpoint.routes.refuse(responder, STOPPING, request)
            return
        id, now = secrets.token_urlsafe(_ID_BYTES), endpoint.routes.clock()
        prefix = "" if endpoint.settings.public_url else quote(request.mount)
        uri = f"{prefix}{self._uri}?{_PARAMETER}={id}".encode()
        account = endpoint.open_account(responder, owner, client)
        session = OldSseSession(id, owner, uri, now, account)
        has_room = endpoint.has_session_room(owner) and endpoint.sessions.add(session)
        account.close()
        if not has_room:
            endpoint.routes.refuse(responder, TOO_MANY_SESSIONS, request)
            return
        session.on_closed = self._forget
        self._sessions[id] = session
        service = endpoint.service
        service.open_old_sse(session)
        exchange = Exchange(request, responder, session, service.handshake_status, now, owner)
        exchange.extra_headers = endpoint.routes.cors_headers(request)
        responder.exchange = exchange
        session.open(exchange)

    def _post(
        self,
        request: HttpRequest,
        body: Any,
        responder: Responder,
        owner: Owner | None,
        client: str,
    ) -> None:
        session = self._sessions.get(_id_in(request.query))
        if session is None or key_of(session.owner) != key_of(owner):
            self._endpoint.routes.refuse(responder, SESSION_UNKNOWN, request)
            return
        post = session.receive(body, request, owner, self._endpoint.routes.rate_of(client))
        headers = JSON_HEADERS if post.body else ()
        responder.respond(
            post.status, post.body, headers + self._endpoint.routes.cors_headers(request)
        )

    def _forget(self, session: OldSseSession) -> None:
        if self._sessions.pop(session.id, None) is not None:
            self._endpoint.sessions.discard(session)

    def reap(self, now: float, lifetime: float) -> None:
        """End sessions that are too old."""
        for session in list(self._sessions.values()):
            if now - session.began >= lifetime:
                session.on_end()


def _check_accept(request: HttpRequest) -> Refusal | None:
    return None if accepted_types(request.accept)[1] else EVENTS_NOT_ACCEPTED


def _uri_of(endpoint: McpEndpoint, posts: str) -> str:
    """Return where messages are sent, as clients see it."""
    public = endpoint.settings.public_url
    if public is None:
        return posts
    path = urlsplit(public).path.rstrip("/")
    if path.endswith(endpoint.path.rstrip("/")):
        return path.removesuffix(endpoint.path.rstrip("/")) + posts
    # The proxy has other names for the paths: what is beside the stream is its to say.
    return _POST_NAME


def _id_in(query: str) -> str:
    try:
        found = [
            value
            for name, value in parse_qsl(query, max_num_fields=_MAX_PARAMETERS)
            if name == _PARAMETER
        ]
    except ValueError:
        return ""
    return found[0] if len(found) == 1 else ""
