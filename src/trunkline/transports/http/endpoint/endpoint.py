"""The routes of an HTTP listener, and the era of each message: which exchange serves a request.

An `Endpoint` gets parsed requests from the HTTP server or the ASGI adapter, and answers them
through their `Responder`. It has no I/O of its own. What a message means is up to the server
behind it, a `Service`.

The rules that live here, and only here:

* The era is decided per message. A version header that names a revision without a handshake, or
  none that is served, makes a POST a single request. Any other belongs to the session that it
  names; without one, it opens a session if its method is `initialize`.
                                               [MCP 2026-07-28, basic/versioning]
* GET and DELETE belong to sessions; without revisions that have sessions they are 405.
                                  [MCP 2026-07-28, basic/transports/streamable-http]
* A session of another principal is answered as one that does not exist.            [SEC-06]
* A GET that asks for another protocol, which is served beside HTTP, passes the same gate.
* The gate is passed before the body is read, on every route but those for health checks, which
  tell nothing, and public documents. With authentication, a request without a credential is refused
  there; method, types and sessions are looked at when its caller is known.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from msgspec import UNSET, DecodeError, Struct, UnsetType, ValidationError, field
from msgspec.json import Decoder, encode

from ....exception_text import as_redacted
from ....jsonrpc.messages import Shown
from ....spec.http_conditions import HTTP
from ....spec.mcp.http_status import MCP
from ....spec.mcp.meta import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION
from ....store.errors import StoreError
from ..response import (
    INTERNAL_ERROR,
    JSON_HEADERS,
    STOPPING,
    STREAM_HEADERS,
    TOO_MANY_SESSIONS,
    Refusal,
    method_not_allowed,
)
from .event_log import parse_event_id
from .exchange import Exchange, accepted_types, event_of
from .sessions import SessionTable

if TYPE_CHECKING:
    from ....errors import InvalidMessage
    from ....jsonrpc.framing.framing import Oversize
    from ....jsonrpc.messages import ErrorObject
    from ..gate.admission import Admission
    from ..gate.authentication import Authenticator, Owner
    from ..request import HttpRequest
    from ..response import Headers, Responder
    from ..settings import HttpLimits, HttpSettings
    from .event_log import EventLog
    from .old_sse import OldSseRoutes, OldSseSession
    from .sessions import HttpSession
    from .single_request import SingleRequest

__all__ = ["Endpoint", "Service", "UpgradeRoute", "error_body"]

_log: Final = logging.getLogger("trunkline.http")

HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"

# JSON-RPC "invalid request": the code of an error that has no code of its own.
_INVALID_REQUEST: Final = -32600
_JSON_TYPE: Final = b"application/json"
_TOO_LARGE: Final = HTTP["body-too-large"].status
# The refusals of methods that belong to sessions, where there are none.
_NOT_OFFERED: Final = {
    "GET": Refusal(MCP["get-not-offered"], "Method not allowed"),
    "DELETE": Refusal(MCP["delete-not-offered"], "Method not allowed"),
}

# What a request is handed to when its owner is known.
Proceed: TypeAlias = "Callable[[HttpRequest, Any, Responder, Owner | None, str], None]"

# Of documents that any page may read: they are public, and tell nothing of a caller.
_DOCUMENT_HEADERS: Final[Headers] = (
    (b"access-control-allow-origin", b"*"),
    (b"cache-control", b"max-age=300"),
)
_DOCUMENT_PREFLIGHT: Final[Headers] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, HEAD"),
    (b"access-control-allow-headers", b"*"),
    (b"access-control-max-age", b"600"),
)


class Service(Protocol):
    """The server behind an endpoint."""

    # The revisions that are served, as headers spell them.
    handshake: frozenset[bytes]
    per_request: frozenset[bytes]
    is_ready: bool

    def open_session(self, session: HttpSession) -> None:
        """Serve a new session; it sets the callbacks of the session."""
        ...

    def open_old_sse(self, session: OldSseSession) -> None:
        """Serve a new session of HTTP+SSE; it sets the callbacks of the session."""
        ...

    def single(self, client: str, owner: Owner | None) -> SingleRequest | None:
        """Return a transport for one request, or None if the client has too many."""
        ...

    def event_log(self, session: HttpSession) -> EventLog:
        """Return a log for the events of a session."""
        ...

    def handshake_status(self, error: ErrorObject | InvalidMessage) -> int:
        """Return the HTTP status of an error, in a session."""
        ...

    def per_request_status(self, error: ErrorObject | InvalidMessage) -> int:
        """Return the HTTP status of an error to a single request."""
        ...


class UpgradeRoute(Protocol):
    """Another protocol at the path of MCP, which a client asks for with `Upgrade`."""

    def takes(self, request: HttpRequest) -> bool:
        """Return True if a request asks for this protocol."""
        ...

    def admit(self, request: HttpRequest) -> Refusal | None:
        """Decide on a request by its head, after Host, Origin and caller; None lets it in."""
        ...

    def open(
        self,
        request: HttpRequest,
        body: Any,
        responder: Any,
        owner: Owner | None,
        client: str,
    ) -> None:
        """End HTTP on the connection of a request, or refuse to."""
        ...


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


def error_body(message: str, code: int = _INVALID_REQUEST, id: int | str | None = None) -> bytes:
    """Return a JSON-RPC error, without an id unless it is known, as the body of an HTTP error."""
    named = {} if id is None else {"id": id}
    return encode({"jsonrpc": "2.0", **named, "error": {"code": code, "message": message}})


class Endpoint:
    """The routes of one listener."""

    def __init__(
        self,
        service: Service,
        admission: Admission,
        settings: HttpSettings,
        limits: HttpLimits,
        path: str,
        clock: Callable[[], float],
        authenticator: Authenticator | None = None,
    ) -> None:
        self.service = service
        self.admission = admission
        self.settings = settings
        self.limits = limits
        self.path = path
        self.authenticator = authenticator
        self.sessions = SessionTable(limits)
        self._clock = clock
        self._has_cors = bool(settings.cors)
        # Whether a client is more than the address of its connection.
        self._identifies = bool(
            authenticator is not None or settings.rate is not None or settings.trusted_proxies
        )
        self._routes: dict[str, Callable[[HttpRequest, Any, Responder], None]] = {
            path: self._mcp,
            HEALTH_PATH: self._health,
            READY_PATH: self._ready,
        }
        if path != "/" and not path.endswith("/"):
            self._routes[f"{path}/"] = self._mcp
        # Public documents, by path.
        self._documents: dict[str, bytes] = {}
        if authenticator is not None:
            self._documents = authenticator.documents(path)
            self._routes |= dict.fromkeys(self._documents, self._document)
        # Decides whether an owner may open a session; None without limits of tenants.
        self.session_check: Callable[[Owner | None], bool] | None = None
        # Set by the listener, if it has one.
        self.upgrade_route: UpgradeRoute | None = None
        self._old_sse: OldSseRoutes | None = None
        if settings.old_sse:
            from .old_sse import OldSseRoutes  # here: most servers do not offer it

            self._old_sse = OldSseRoutes(self, clock)
            self._routes |= dict.fromkeys(self._old_sse.paths, self._older)
        self._tasks: set[asyncio.Task[None]] = set()
        # One object for all sessions.
        self._make_log = service.event_log

    @property
    def requires_credentials(self) -> bool:
        """Whether every request needs a credential."""
        return self.authenticator is not None and self.authenticator.is_required

    def has_route(self, path: str) -> bool:
        """Return True if something is served at a path."""
        return self._route_of(path) is not None

    def _route_of(self, path: str) -> Callable[[HttpRequest, Any, Responder], None] | None:
        found = self._routes.get(path)
        if found is None and self.authenticator is not None:
            return self._mcp if self.authenticator.serves_path(path) else None
        return found

    def has_session_room(self, owner: Owner | None) -> bool:
        """Return True if an owner may open a session."""
        return self.session_check is None or self.session_check(owner)

    def is_upgrade(self, request: HttpRequest) -> bool:
        """Return True if a request asks for another protocol that is served at its path."""
        route = self.upgrade_route
        is_mcp = self._route_of(request.path) == self._mcp
        return route is not None and is_mcp and route.takes(request)

    # -- admission ---------------------------------------------------------------------------

    def admit(self, request: HttpRequest) -> Refusal | None:
        """Decide on a request by its head; None lets it in."""
        if request.path not in self._routes and not self.has_route(request.path):
            # Checked first: what a route answers is not for pages that guess names.
            return self.admission.check(request) or Refusal(HTTP["path-unknown"], "Not found")
        if request.path in (HEALTH_PATH, READY_PATH):
            if request.method not in ("GET", "HEAD"):
                return method_not_allowed(b"GET, HEAD")
            return None
        if request.path in self._documents:
            return _admit_document(request)
        refusal = self.admission.check(request)
        if refusal is not None:
            return refusal
        if request.method == "OPTIONS" and self._has_cors:
            return None
        if self.authenticator is not None:
            # What else is wrong with a request is not for callers that are not known.
            refusal = self.authenticator.precheck(request)
            if refusal is not None:
                client = self.admission.client_of(request)
                self.authenticator.note_refusal(request, refusal, client)
            return refusal
        return self._admit_known(request)

    def _admit_known(self, request: HttpRequest) -> Refusal | None:
        """Decide on a request by its head, after its caller was identified."""
        if self._old_sse is not None and request.path in self._old_sse.paths:
            return self._old_sse.admit(request)
        if request.method == "POST":
            return self._admit_post(request)
        if self.upgrade_route is not None and self.upgrade_route.takes(request):
            return self.upgrade_route.admit(request)
        if not self._allows(request):
            allowed = b"POST, GET, DELETE" if self.service.handshake else b"POST"
            not_offered = _NOT_OFFERED.get(request.method)
            if not_offered is not None:
                return not_offered._replace(headers=((b"allow", allowed),))
            return method_not_allowed(allowed)
        return None

    def _allows(self, request: HttpRequest) -> bool:
        if request.protocol_version in self.service.per_request:
            return False
        return bool(self.service.handshake) and request.method in ("GET", "DELETE")

    def check_content_type(self, request: HttpRequest) -> Refusal | None:
        """Refuse a body that is not JSON."""
        kind = request.content_type
        if kind != _JSON_TYPE and not _is_json(kind):
            return Refusal(HTTP["wrong-content-type"], "Content-Type must be application/json")
        return None

    def _admit_post(self, request: HttpRequest) -> Refusal | None:
        refusal = self.check_content_type(request)
        if refusal is not None:
            return refusal
        if not any(accepted_types(request.accept)):
            return Refusal(
                HTTP["wrong-accept"], "Accept must allow application/json or text/event-stream"
            )
        return None

    # -- requests ----------------------------------------------------------------------------

    def handle(self, request: HttpRequest, body: bytes | Oversize, responder: Responder) -> None:
        """Serve a request that was admitted; it is answered through the responder."""
        try:
            route = self._routes[request.path]
        except KeyError:  # its path names a tenant, or it would not have been admitted
            route = self._mcp
        route(request, body, responder)

    def refuse(
        self,
        responder: Responder,
        refusal: Refusal,
        request: HttpRequest | None,
        id: int | str | None = None,
    ) -> None:
        """Answer a request with an HTTP error; `id` is that of the JSON-RPC request in its body."""
        headers = JSON_HEADERS + refusal.headers
        if request is not None and self._has_cors:
            headers += self.admission.cors(request)
        responder.respond(refusal.status, error_body(refusal.message, id=id), headers)

    def _health(self, request: HttpRequest, body: Any, responder: Responder) -> None:
        responder.respond(200, b"ok\n", ((b"content-type", b"text/plain"),))

    def _ready(self, request: HttpRequest, body: Any, responder: Responder) -> None:
        is_ready = self.service.is_ready
        text = b"ok\n" if is_ready else b"unavailable\n"
        responder.respond(
            200 if is_ready else HTTP["overloaded"].status,
            text,
            ((b"content-type", b"text/plain"),),
        )

    def _document(self, request: HttpRequest, body: Any, responder: Responder) -> None:
        if request.method == "OPTIONS":
            responder.respond(204, b"", _DOCUMENT_PREFLIGHT)
        else:
            document = self._documents[request.path]
            responder.respond(200, document, JSON_HEADERS + _DOCUMENT_HEADERS)

    def cors(self, request: HttpRequest) -> Headers:
        """Return the CORS headers of a response; none if CORS is off."""
        return self.admission.cors(request) if self._has_cors else ()

    def _mcp(self, request: HttpRequest, body: Any, responder: Responder) -> None:
        if request.method == "OPTIONS":
            self._preflight(request, responder)
        elif self.upgrade_route is not None and self.upgrade_route.takes(request):
            self.identify(request, body, responder, self.upgrade_route.open)
        elif self._identifies:
            self.identify(request, body, responder, self._dispatch)
        else:
            self._dispatch(request, body, responder, None, request.client)

    def _older(self, request: HttpRequest, body: Any, responder: Responder) -> None:
        if request.method == "OPTIONS":
            self._preflight(request, responder)
        elif self._old_sse is not None:
            self._old_sse.handle(request, body, responder)

    def _preflight(self, request: HttpRequest, responder: Responder) -> None:
        preflight = self.admission.preflight(request)
        if preflight is None:
            self.refuse(
                responder, Refusal(HTTP["origin-not-allowed"], "Not an allowed origin"), request
            )
        else:
            responder.respond(preflight[0], b"", preflight[1])

    def identify(
        self,
        request: HttpRequest,
        body: Any,
        responder: Responder,
        proceed: Proceed,
    ) -> None:
        """Find the owner of a request and check its rate, then proceed with it."""
        client = self.admission.client_of(request)
        if self.authenticator is None:
            if self.settings.rate is None or self._may_go(client, request, responder):
                proceed(request, body, responder, None, client)
            return
        found = self.authenticator.authenticate(request)
        if isinstance(found, Awaitable):
            self._spawn(self._identify(found, request, body, responder, client, proceed))
        else:
            self._identified(found, request, body, responder, client, proceed)

    async def _identify(
        self,
        deciding: Awaitable[Owner | Refusal | None],
        request: HttpRequest,
        body: Any,
        responder: Responder,
        client: str,
        proceed: Proceed,
    ) -> None:
        found = await deciding
        if responder.is_gone:
            return
        try:
            self._identified(found, request, body, responder, client, proceed)
        except Exception as error:  # noqa: BLE001  # a defect; the client gets an answer
            _log.error("internal error while serving an HTTP request\n%s", as_redacted(error))
            if not responder.is_gone:
                self.refuse(responder, INTERNAL_ERROR, request)

    def _identified(
        self,
        found: Owner | Refusal | None,
        request: HttpRequest,
        body: Any,
        responder: Responder,
        client: str,
        proceed: Proceed,
    ) -> None:
        owner, refusal = (None, found) if isinstance(found, Refusal) else (found, None)
        # Those that are refused count by their address: credentials cannot be tried in turn.
        key = client if owner is None else f"principal {owner.key}"
        if self.settings.rate is not None and not self._may_go(key, request, responder):
            return
        if refusal is not None and self.authenticator is not None:
            self.authenticator.note_refusal(request, refusal, client)
        refusal = refusal or self._admit_known(request)
        if refusal is not None:
            self.refuse(responder, refusal, request)
        else:
            proceed(request, body, responder, owner, key)

    def _may_go(self, client: str, request: HttpRequest, responder: Responder) -> bool:
        wait = self.admission.wait(client, self._clock())
        if wait is None:
            return True
        seconds = b"%d" % max(1, -int(-wait // 1))
        self.refuse(
            responder,
            Refusal(HTTP["rate-limited"], "Too many requests", ((b"retry-after", seconds),)),
            request,
        )
        return False

    def _dispatch(
        self,
        request: HttpRequest,
        body: Any,
        responder: Responder,
        owner: Owner | None,
        client: str,
    ) -> None:
        service, version, id = self.service, request.protocol_version, request.session_id
        if not service.is_ready:
            self.refuse(responder, STOPPING, request)
        elif request.method != "POST":
            self._session_request(request, responder, owner)
        elif version is not None and version not in service.handshake:
            self._single(request, body, responder, owner, client)
        elif id is not None:
            now = self._clock()
            session = self.sessions.get(id.decode("latin-1"), owner, now)
            if session is None:
                self.refuse(
                    responder, Refusal(MCP["session-unknown"], "Session not found"), request
                )
            else:
                _receive(session, body, self._exchange(request, responder, session, owner, now))
        else:
            self._open(request, body, responder, owner, client)

    def _exchange(
        self,
        request: HttpRequest,
        responder: Responder,
        session: HttpSession,
        owner: Owner | None,
        now: float,
    ) -> Exchange:
        status = self.service.handshake_status
        exchange = Exchange(request, responder, session, status, now)
        exchange.authenticator = self.authenticator
        if owner is not None:
            exchange.owner, exchange.expires_at = owner, owner.expires_at
        if self._has_cors:
            exchange.extra_headers = self.admission.cors(request)
        responder.exchange = exchange
        session.open(exchange)
        return exchange

    def _single(
        self,
        request: HttpRequest,
        body: Any,
        responder: Responder,
        owner: Owner | None,
        client: str,
    ) -> None:
        carrier = self.service.single(client, owner)
        if carrier is None:
            headers: Headers = ((b"retry-after", b"1"),)
            self.refuse(
                responder,
                Refusal(HTTP["overloaded"], "Too many requests at once", headers),
                request,
            )
            return
        status = self.service.per_request_status
        exchange = Exchange(request, responder, carrier, status, self._clock())
        exchange.authenticator = self.authenticator
        if owner is not None:
            exchange.owner, exchange.expires_at = owner, owner.expires_at
        if self._has_cors:
            exchange.extra_headers = self.admission.cors(request)
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
                self.refuse(responder, refusal, request, id)
            else:
                self._single(request, body, responder, owner, client)
            return
        now = self._clock()
        session = self.sessions.new(owner, now) if self.has_session_room(owner) else None
        if session is None:
            self.refuse(responder, TOO_MANY_SESSIONS, request)
            return
        session.make_log = self._make_log
        self.service.open_session(session)
        exchange = self._exchange(request, responder, session, owner, now)
        exchange.session_id = session.id.encode()
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
            self.refuse(responder, refusal, request)
            return
        if request.session_id is None:
            self.refuse(
                responder, Refusal(MCP["session-required"], "Mcp-Session-Id is missing"), request
            )
            return
        id = request.session_id.decode("latin-1")
        session = self._session_of(id, owner)
        if session is None:
            self.refuse(responder, Refusal(MCP["session-unknown"], "Session not found"), request)
        elif request.method == "DELETE":
            self.sessions.discard(session)
            session.on_end()
            cors = self.admission.cors(request) if self._has_cors else ()
            responder.respond(204, b"", cors)
        elif not accepted_types(request.accept)[1]:
            self.refuse(
                responder,
                Refusal(HTTP["wrong-accept"], "Accept must allow text/event-stream"),
                request,
            )
        elif request.last_event_id is not None:
            self._spawn(self._resume(session, request, responder, owner))
        else:
            exchange = Exchange(
                request, responder, session, self.service.handshake_status, self._clock()
            )
            if owner is not None:
                exchange.owner, exchange.expires_at = owner, owner.expires_at
            if self._has_cors:
                exchange.extra_headers = self.admission.cors(request)
            responder.exchange = exchange
            session.open(exchange, listens=True)
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
        place = parse_event_id(request.last_event_id or b"")
        try:
            events = None if place is None else await _missed(session, *place)
        except StoreError as error:
            _log.warning("stream of session %s not resumed: %s", session.shown_id, error)
            if not responder.is_gone:
                self.refuse(
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
            self.refuse(responder, refusal, request)
            return
        encoded = [event_of(frame, b"%d-%d" % (place[0], number)) for number, frame in events]
        exchange, extra = session.find(place[0]), self.cors(request)
        if exchange is not None:
            responder.exchange = exchange
            exchange.expires_at = None if owner is None else owner.expires_at
            exchange.attach(responder, encoded, self._clock(), extra)
        else:
            responder.respond(200, b"".join(encoded), STREAM_HEADERS + extra)

    # -- time --------------------------------------------------------------------------------

    def reap(self, now: float) -> None:
        """End expired sessions."""
        self.sessions.reap(now)
        if self._old_sse is not None:
            self._old_sse.reap(now, self.limits.session_lifetime)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


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


def _admit_document(request: HttpRequest) -> Refusal | None:
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return None
    return method_not_allowed(b"GET, HEAD, OPTIONS")


def _is_json(kind: bytes | None) -> bool:
    return kind is not None and kind.partition(b";")[0].strip().lower() == _JSON_TYPE
