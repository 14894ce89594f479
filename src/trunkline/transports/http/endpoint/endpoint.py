"""The endpoint of MCP over HTTP: the era of each message, and which exchange serves a request.

An `McpEndpoint` adds its rows to the `Routes` of a listener, gets the requests that pass the gate,
and answers them through their `Responder`. It has no I/O of its own. What a message means is up to
the server behind it, a `Service`.

The rules that live here, and only here:

* The era is decided per message. A version header that names a revision without a handshake, or
  none that is served, makes a POST a single request. Any other belongs to the session that it
  names; without one, it opens a session if its method is `initialize`.
                                               [MCP 2026-07-28, basic/versioning]
* GET and DELETE belong to sessions; without revisions that have sessions they are 405.
                                  [MCP 2026-07-28, basic/transports/streamable-http]
* A session of another principal is answered as one that does not exist.            [SEC-06]
* A path that names a tenant is served as the path of MCP is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import UNSET, DecodeError, Struct, UnsetType, ValidationError, field
from msgspec.json import Decoder

from ....jsonrpc.messages import Shown
from ....spec.http_conditions import HTTP
from ....spec.mcp.http_status import MCP
from ....spec.mcp.meta import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION
from ....store.errors import StoreError
from ..response import (
    STOPPING,
    STREAM_HEADERS,
    TOO_MANY_REQUESTS,
    TOO_MANY_SESSIONS,
    Refusal,
)
from .exchange import EVENTS_NOT_ACCEPTED, Exchange, accepted_types, event_of
from .routes import Route
from .sessions import SESSION_UNKNOWN, SessionTable

if TYPE_CHECKING:
    from ....accounts.account import Account, Accounts
    from ....errors import InvalidMessage
    from ....jsonrpc.messages import ErrorObject
    from ..gate.authentication import Owner
    from ..request import HttpRequest
    from ..response import Responder
    from ..settings import HttpLimits, HttpSettings
    from .event_log import EventLog
    from .old_sse import OldSseRoutes, OldSseSession
    from .routes import Routes
    from .sessions import HttpSession
    from .single_request import SingleRequest

__all__ = ["MCP_CORS", "McpEndpoint", "Service"]

_log: Final = logging.getLogger("trunkline.http")

_JSON_TYPE: Final = b"application/json"
_TOO_LARGE: Final = HTTP["body-too-large"].status
# The conditions of methods that belong to sessions, where there are none.
_NOT_OFFERED: Final = {"GET": MCP["get-not-offered"], "DELETE": MCP["delete-not-offered"]}
# What a page may use: methods, headers of requests and of responses, and parameters of tools, whose
# names are not fixed.
MCP_CORS: Final = (
    (b"POST", b"GET", b"DELETE"),
    (
        *(b"Content-Type", b"Accept", b"Authorization", b"DPoP", b"Mcp-Session-Id"),
        *(b"MCP-Protocol-Version", b"Last-Event-ID", b"Mcp-Method", b"Mcp-Name"),
    ),
    (b"Mcp-Session-Id", b"WWW-Authenticate", b"DPoP-Nonce", b"Retry-After"),
    re.compile(rb"mcp-param-[!#$%&'*+.^_`|~0-9a-z-]+", re.IGNORECASE),
)


class Service(Protocol):
    """The server behind an endpoint of MCP."""

    # The revisions that are served, as headers spell them.
    handshake: frozenset[bytes]
    per_request: frozenset[bytes]
    is_ready: bool
    # Of the clients of the server.
    accounts: Accounts

    def open_account(self, client: str, owner: Owner | None) -> Account:
        """Use the account of a client, which is a principal or an address."""

    def open_session(self, session: HttpSession) -> None:
        """Serve a new session; it sets the callbacks of the session."""

    def open_old_sse(self, session: OldSseSession) -> None:
        """Serve a new session of HTTP+SSE; it sets the callbacks of the session."""

    def single(self, account: Account, owner: Owner | None) -> SingleRequest | None:
        """Return a transport for one request, or None if the client has too many.

        It closes the account when the request has ended, also with None.
        """

    def event_log(self, session: HttpSession) -> EventLog:
        """Return a log for the events of a session."""

    def handshake_status(self, error: ErrorObject | InvalidMessage) -> int:
        """Return the HTTP status of an error, in a session."""

    def per_request_status(self, error: ErrorObject | InvalidMessage) -> int:
        """Return the HTTP status of an error to a single request."""

    def stop(self, *, at_once: bool = False) -> None:
        """Refuse new requests; running handlers may finish, unless `at_once`."""

    async def close(self) -> None:
        """Return when every session and request has ended."""


class _OpeningMeta(Shown, Struct, frozen=True):
    protocol_version: Any = field(default=UNSET, name=PROTOCOL_VERSION)
    capabilities: Any = field(default=UNSET, name=CLIENT_CAPABILITIES)
    client_info: Any = field(default=UNSET, name=CLIENT_INFO)
    log_level: Any = field(default=UNSET, name=LOG_LEVEL)

    @property
    def lacks_version(self) -> bool:
        """Whether it has keys of a revision without a handshake, and no version."""
        keys = (self.capabilities, self.client_info, self.log_level)
        return self.protocol_version is UNSET and any(key is not UNSET for key in keys)


class _OpeningParams(Shown, Struct, frozen=True):
    meta: _OpeningMeta | UnsetType = field(default=UNSET, name="_meta")


class _Opening(Shown, Struct, frozen=True):
    """What tells a message that opens a session from one that stands by itself."""

    method: str | UnsetType = UNSET
    params: _OpeningParams | UnsetType = UNSET
    id: int | str | None = None


_opening: Final = Decoder(_Opening).decode


class McpEndpoint:
    """MCP at one path of a listener, and at those of tenants."""

    def __init__(
        self,
        service: Service,
        routes: Routes,
        settings: HttpSettings,
        limits: HttpLimits,
        path: str,
    ) -> None:
        """Add MCP at a path to the routes of a listener.

        Raises:
            ValueError: something else is served at the path.
        """
        self.service = service
        self.routes = routes
        self.settings = settings
        self.limits = limits
        self.path = path
        self.sessions = SessionTable(limits, service.accounts.shares)
        self._authenticator = routes.authenticator
        self._clock = routes.clock
        self._cors = routes.cors
        self._limits_rate = settings.rate is not None
        # Decides whether an owner may open a session; None without limits of tenants.
        self.session_check: Callable[[Owner | None], bool] | None = None
        self._old_sse: OldSseRoutes | None = None
        # One object for all sessions.
        self._make_log = service.event_log
        methods = ("POST", "GET", "DELETE") if service.handshake else ("POST",)
        self.route = Route(self.handle, methods, self.admit, refusals=_NOT_OFFERED)
        self._add_routes()

    def _add_routes(self) -> None:
        routes, path = self.routes, self.path
        routes.add_endpoint(self)
        routes.add(path, self.route)
        if not path.endswith("/"):
            routes.add(f"{path}/", self.route)
        if self._authenticator is not None:
            for place, document in self._authenticator.documents(path).items():
                routes.add_document(place, document)
            routes.add_pattern(self._authenticator.serves_path, self.route)
        if self.settings.old_sse:
            from .old_sse import OldSseRoutes  # here: most servers do not offer it

            self._old_sse = OldSseRoutes(self)
        if self._cors is not None:
            from ..gate.cors import CorsPolicy  # here: most servers have no pages

            self._cors.add(CorsPolicy(*MCP_CORS))

    def has_session_room(self, owner: Owner | None) -> bool:
        """Return True if an owner may open a session."""
        return self.session_check is None or self.session_check(owner)

    def open_account(self, responder: Responder, owner: Owner | None, client: str) -> Account:
        """Use the account of a client once more, and count its connection for it."""
        account = responder.account
        if owner is None and not account.is_many:
            account.uses += 1
            return account
        found = self.service.open_account(client, owner)
        if found is not account and not account.is_many:
            responder.use_account(found)
        return found

    # -- admission ---------------------------------------------------------------------------

    def admit(self, request: HttpRequest) -> Refusal | None:
        """Decide on a request by its head, after gate and method; None lets it in."""
        if request.method != "POST":
            if request.protocol_version in self.service.per_request:
                return self.route.refuse_method(request.method)
            return None
        refusal = self.check_content_type(request)
        if refusal is not None:
            return refusal
        if not any(accepted_types(request.accept)):
            return Refusal(
                HTTP["wrong-accept"], "Accept must allow application/json or text/event-stream"
            )
        return None

    def check_content_type(self, request: HttpRequest) -> Refusal | None:
        """Refuse a body that is not JSON."""
        kind = request.content_type
        if kind != _JSON_TYPE and not _is_json(kind):
            return Refusal(HTTP["wrong-content-type"], "Content-Type must be application/json")
        return None

    # -- requests ----------------------------------------------------------------------------

    def handle(
        self,
        request: HttpRequest,
        body: Any,
        responder: Responder,
        owner: Owner | None,
        client: str,
    ) -> None:
        """Serve a request that has passed the gate."""
        service, version, id = self.service, request.protocol_version, request.session_id
        if not service.is_ready:
            self.routes.refuse(responder, STOPPING, request)
        elif request.method != "POST":
            self._session_request(request, responder, owner)
        elif version is not None and version not in service.handshake:
            self._single(request, body, responder, owner, client)
        elif id is not None:
            now = self._clock()
            session = self.sessions.get(id.decode("latin-1"), owner, now)
            if session is None:
                self.routes.refuse(responder, SESSION_UNKNOWN, request)
            else:
                exchange = self._exchange(request, responder, session, owner, now)
                if self._limits_rate:
                    exchange.rate_wait = self.routes.rate_of(client)
                _receive(session, body, exchange)
        else:
            self._open(request, body, responder, owner, client)

    def _exchange(
        self,
        request: HttpRequest,
        responder: Responder,
        session: HttpSession,
        owner: Owner | None,
        now: float,
        *,
        listens: bool = False,
    ) -> Exchange:
        status = self.service.handshake_status
        exchange = Exchange(request, responder, session, status, now, owner)
        exchange.authenticator = self._authenticator
        if self._cors is not None:
            exchange.extra_headers = self._cors.headers(request)
        responder.exchange = exchange
        account = responder.account
        if account is not session.account and owner is not None and not account.is_many:
            responder.use_account(session.account)
        session.open(exchange, listens=listens)
        return exchange

    def _single(
        self,
        request: HttpRequest,
        body: Any,
        responder: Responder,
        owner: Owner | None,
        client: str,
    ) -> None:
        account = responder.account
        if account.key == client or (owner is None and not account.is_many):
            account.uses += 1  # as `open_account` does: most requests are of the same client
        else:
            account = self.open_account(responder, owner, client)
        carrier = self.service.single(account, owner)
        if carrier is None:
            self.routes.refuse(responder, TOO_MANY_REQUESTS, request)
            return
        status = self.service.per_request_status
        exchange = Exchange(request, responder, carrier, status, self._clock(), owner)
        exchange.authenticator = self._authenticator
        if self._limits_rate:
            exchange.rate_wait = self.routes.rate_of(client)
        if self._cors is not None:
            exchange.extra_headers = self._cors.headers(request)
        responder.exchange = carrier.exchange = exchange
        _receive(carrier, body, exchange)

    def _open(
        self,
        request: HttpRequest,
        body: Any,
        responder: Responder,
        owner: Owner | None,
        client: str,
    ) -> None:
        """Open a session for `initialize`; refuse what belongs to a session and names none."""
        kind, id = _kind_of(body)
        if kind != "initialize" or not self.service.handshake:
            is_other = kind == "other" or (kind == "versionless" and not self.service.per_request)
            if is_other and self.service.handshake:
                refusal = Refusal(
                    MCP["session-required"], "Mcp-Session-Id is missing: send initialize first"
                )
                self.routes.refuse(responder, refusal, request, id)
            else:
                self._single(request, body, responder, owner, client)
            return
        now = self._clock()
        account = self.open_account(responder, owner, client)
        has_room = self.has_session_room(owner)
        session = self.sessions.new(owner, now, account) if has_room else None
        account.close()
        if session is None:
            self.routes.refuse(responder, TOO_MANY_SESSIONS, request)
            return
        session.make_log = self._make_log
        self.service.open_session(session)
        exchange = self._exchange(request, responder, session, owner, now)
        exchange.opening_headers = ((b"mcp-session-id", session.id.encode()),)
        _receive(session, body, exchange)

    # -- GET and DELETE ----------------------------------------------------------------------

    def _session_request(
        self, request: HttpRequest, responder: Responder, owner: Owner | None
    ) -> None:
        version = request.protocol_version
        if version is not None and version not in self.service.handshake:
            refusal = Refusal(
                MCP["version-header-unsupported"],
                "MCP-Protocol-Version names no revision that is served",
            )
            self.routes.refuse(responder, refusal, request)
            return
        if request.session_id is None:
            self.routes.refuse(
                responder, Refusal(MCP["session-required"], "Mcp-Session-Id is missing"), request
            )
            return
        id = request.session_id.decode("latin-1")
        session = self._session_of(id, owner)
        if session is None:
            self.routes.refuse(responder, SESSION_UNKNOWN, request)
        elif request.method == "DELETE":
            self.sessions.discard(session)
            session.on_end()
            cors = self.routes.cors_headers(request)
            responder.respond(204, b"", cors)
        elif not accepted_types(request.accept)[1]:
            self.routes.refuse(responder, EVENTS_NOT_ACCEPTED, request)
        elif request.last_event_id is not None:
            self.routes.spawn(self._resume(session, request, responder, owner))
        else:
            now = self._clock()
            exchange = self._exchange(request, responder, session, owner, now, listens=True)
            exchange.start_stream()

    def _session_of(self, id: str, owner: Owner | None) -> HttpSession | None:
        """Return the session of an owner, also one whose messages carry the credentials."""
        now = self._clock()
        session = self.sessions.get(id, owner, now)
        if session is None and owner is not None:
            session = self.sessions.get(id, None, now)
            if session is not None and session.binding is None:
                return None  # of an anonymous client
        if session is not None and session.binding is not None and not session.binding(owner):
            return None
        return session

    async def _resume(
        self,
        session: HttpSession,
        request: HttpRequest,
        responder: Responder,
        owner: Owner | None,
    ) -> None:
        """Send again what followed an event, then what the stream carries next."""
        from .event_log import parse_event_id  # here: few streams break

        place = parse_event_id(request.last_event_id or b"")
        try:
            events = None if place is None else await _missed(session, *place)
        except StoreError as error:
            _log.warning("stream of session %s not resumed: %s", session.shown_id, error)
            if not responder.is_gone:
                self.routes.refuse(
                    responder,
                    Refusal(HTTP["service-unavailable"], "Events cannot be read now"),
                    request,
                )
            return
        if responder.is_gone:
            return
        if place is None or events is None:
            refusal = Refusal(
                MCP["event-id-unknown"], "The events after Last-Event-ID are not kept any more"
            )
            self.routes.refuse(responder, refusal, request)
            return
        encoded = [event_of(frame, b"%d-%d" % (place[0], number)) for number, frame in events]
        exchange, extra = session.find(place[0]), self.routes.cors_headers(request)
        if exchange is not None:
            responder.exchange = exchange
            exchange.expires_at = None if owner is None else owner.expires_at
            exchange.attach(responder, encoded, self._clock(), extra)
        else:
            responder.respond(200, b"".join(encoded), STREAM_HEADERS + extra)

    # -- time and the end --------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether the server behind it serves requests."""
        return self.service.is_ready

    @property
    def is_idle(self) -> bool:
        """Whether there is no session."""
        return not len(self.sessions)

    def reap(self, now: float) -> None:
        """End expired sessions."""
        self.sessions.reap(now)
        if self._old_sse is not None:
            self._old_sse.reap(now, self.limits.session_lifetime)

    def stop(self, *, at_once: bool = False) -> None:
        """Refuse new requests; running handlers may finish, unless `at_once`."""
        self.service.stop(at_once=at_once)

    async def close(self) -> None:
        """Return when every session and request has ended."""
        await self.service.close()


def _receive(carrier: HttpSession | SingleRequest, body: Any, exchange: Exchange) -> None:
    if type(body) is not bytes:
        exchange.status = _TOO_LARGE
    exchange.is_receiving = True
    carrier.on_message(body, exchange)
    exchange.is_receiving = False


async def _missed(session: HttpSession, stream: int, after: int) -> list[tuple[int, bytes]] | None:
    """Return the events of a stream after a number; None if they are not known."""
    if session.log is None:
        return None
    before = -1
    while True:
        # Before the log is read: it may end meanwhile, and its last event was not read then.
        exchange = session.find(stream)
        events = await session.log.read(stream, after)
        if events is None:
            return None
        if exchange is None:
            return events or None
        if after + len(events) == exchange.last_event:
            return events
        if len(events) == before:
            return None  # the last ones were not kept, or never sent
        before = len(events)  # some were sent while the store was read


def _kind_of(body: Any) -> tuple[str, int | str | None]:
    """Return what a message without a session is, and its id.

    It is "initialize", "per-request" (it names a version), "versionless" (it has other keys of
    such a request), "invalid" or "other".
    """
    if type(body) is not bytes:
        return "invalid", None
    try:
        opening = _opening(body)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        # A batch, or a message with a member of a wrong type.
        is_batch = isinstance(error, ValidationError) and body.lstrip()[:1] == b"["
        return "other" if is_batch else "invalid", None
    meta = UNSET if opening.params is UNSET else opening.params.meta
    if meta is not UNSET and meta.protocol_version is not UNSET:
        return "per-request", opening.id
    if opening.method == "initialize":
        return "initialize", opening.id
    is_versionless = meta is not UNSET and meta.lacks_version
    return "versionless" if is_versionless else "other", opening.id


def _is_json(kind: bytes | None) -> bool:
    return kind is not None and kind.partition(b";")[0].strip().lower() == _JSON_TYPE
