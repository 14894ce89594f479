"""The table of routes of an HTTP listener: which handler serves a path, behind which gate.

The HTTP server and the ASGI adapter hand each request to the `Routes` of their listener. A protocol
adds its rows, and itself for what is not about one request: expired sessions, readiness, shutdown.

    routes = Routes(admission, settings, clock, authenticator)
    routes.add("/own", Route(own.handle, ("GET", "POST"), own.admit))
    routes.add_endpoint(own)

The rules that live here, and only here:

* A path has one row: that of the path itself, else that of its longest prefix, else that of a
  pattern. Without one the answer is 404, and 405 if the row does not take the method; `Allow` lists
  those that it takes.                             [RFC 9110, sections 15.5.5, 15.5.6]
* The gate is passed before the body is read, on every row but public ones: health checks, which
  tell nothing, and documents for everybody. With authentication, a request without a credential is
  refused there; method and types are looked at when its caller is known. A credential that can be
  verified without the network is verified before a body is read that did not come with its head.
* OPTIONS is a CORS preflight, unless the row takes it. A preflight carries no authorization, so it
  is answered before that is checked.               [WHATWG Fetch, CORS protocol]
* A GET that asks for another protocol, which is served at its path, passes the same gate.
* What the gate and a row decide by the head of a request follows from that head alone: a head that
  a connection repeats is not decided on again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from msgspec.json import encode

from ....accounts.account import UNCOUNTED_BYTES, ReceivedBytes
from ....accounts.client_key import client_key, principal_key
from ....exception_text import as_redacted
from ....spec.http_conditions import HTTP
from ..response import (
    INTERNAL_ERROR,
    JSON_HEADERS,
    TOO_MANY_REQUESTS,
    TOO_MUCH_RECEIVED,
    Refusal,
)

if TYPE_CHECKING:
    from ....accounts.account import Account
    from ....jsonrpc.framing.framing import Oversize
    from ....spec.rows import HttpStatus
    from ..gate.admission import Admission
    from ..gate.authentication import Authenticator, Owner
    from ..gate.cors import Cors
    from ..request import HttpRequest
    from ..response import Headers, Responder
    from ..settings import HttpSettings

__all__ = ["AddRoutes", "Handler", "HttpEndpoint", "Route", "Routes", "UpgradeRoute"]

_log: Final = logging.getLogger("trunkline.http")

HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"

# JSON-RPC "invalid request": the code of an error that has no code of its own.
_INVALID_REQUEST: Final = -32600
_NOT_FOUND: Final = Refusal(HTTP["path-unknown"], "Not found")
_NOT_ALLOWED: Final = HTTP["method-not-allowed"]
_WRONG_ORIGIN: Final = Refusal(HTTP["origin-not-allowed"], "Not an allowed origin")
_TEXT_HEADERS: Final[Headers] = ((b"content-type", b"text/plain"),)

# Of documents that any page may read: they are public, and tell nothing of a caller.
_DOCUMENT_HEADERS: Final[Headers] = (
    *JSON_HEADERS,
    (b"access-control-allow-origin", b"*"),
    (b"cache-control", b"max-age=300"),
)
_DOCUMENT_PREFLIGHT: Final[Headers] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, HEAD"),
    (b"access-control-allow-headers", b"*"),
    (b"access-control-max-age", b"600"),
)

# Serves an admitted request: its head and body, its responder, its owner (None if anonymous), and
# the client that it counts for: a principal or an address.
Handler: TypeAlias = "Callable[[HttpRequest, Any, Responder, Owner | None, str], None]"
# Adds the rows of a protocol to the table of a listener, when that is made.
AddRoutes: TypeAlias = "Callable[[Routes], object]"


class HttpEndpoint(Protocol):
    """A protocol behind a listener: what it is asked for beside the requests of its rows."""

    @property
    def is_ready(self) -> bool:
        """Whether it serves requests; the readiness of the listener is that of all."""

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing that could expire."""

    def reap(self, now: float) -> None:
        """End what has expired; called every second."""

    def stop(self, *, at_once: bool = False) -> None:
        """Refuse new requests; running handlers may finish, unless `at_once`."""

    async def close(self) -> None:
        """Return when every request is answered."""


class UpgradeRoute(Protocol):
    """Another protocol at the path of a row, which a client asks for with `Upgrade`."""

    def takes(self, request: HttpRequest) -> bool:
        """Return True if a request asks for this protocol."""

    def admit(self, request: HttpRequest) -> Refusal | None:
        """Decide on a request by its head, after Host, Origin and caller; None lets it in."""

    def open(
        self, request: HttpRequest, body: Any, responder: Any, owner: Owner | None, client: str
    ) -> None:
        """End HTTP on the connection of a request, or refuse to."""


class Route:
    """One row: the handler of a path, and the requests that it takes."""

    __slots__ = ("_refusals", "admit", "handle", "is_public", "methods", "upgrade")

    def __init__(
        self,
        handle: Handler,
        methods: tuple[str, ...] = (),
        admit: Callable[[HttpRequest], Refusal | None] | None = None,
        *,
        is_public: bool = False,
        refusals: Mapping[str, HttpStatus] | None = None,
    ) -> None:
        """Describe the row.

        methods: those that it takes; none is any.
        admit: decides on a request by its head, when gate and method have; None lets it in.
        is_public: it is served without the gate.
        refusals: the conditions of methods that it does not take, where the protocol names them.
        """
        self.handle = handle
        self.methods = methods
        self.admit = admit
        self.is_public = is_public
        self.upgrade: UpgradeRoute | None = None
        self._refusals = refusals or {}

    def check(self, request: HttpRequest) -> Refusal | None:
        """Decide on a request by its head, when the gate has; None lets it in."""
        method, upgrade = request.method, self.upgrade
        if upgrade is not None and method == "GET" and upgrade.takes(request):
            return upgrade.admit(request)
        if method not in self.methods and self.methods:
            return self.refuse_method(method)
        return None if self.admit is None else self.admit(request)

    def refuse_method(self, method: str) -> Refusal:
        """Return the refusal of a method that is not served; `Allow` has those that are."""
        row = self._refusals.get(method, _NOT_ALLOWED)
        allowed = ", ".join(self.methods).encode()
        return Refusal(row, "Method not allowed", ((b"allow", allowed),))


class Routes:
    """The routes of one listener."""

    def __init__(
        self,
        admission: Admission,
        settings: HttpSettings,
        clock: Callable[[], float],
        authenticator: Authenticator | None = None,
        error_body: Callable[[Refusal, int | str | None], bytes] | None = None,
    ) -> None:
        """Describe the gate; rows are added.

        error_body: returns the body of a refusal, by the id of the request that its body has, if
            that is known; without it, a JSON-RPC error.
        """
        self.admission = admission
        self.authenticator = authenticator
        self.clock = clock
        # The CORS headers of the listener; None if CORS is off.
        self.cors: Cors | None = _cors(settings)
        # Decides, by the key of a principal, if it may have one more request; None if none is
        # limited.
        self.admits_request: Callable[[str], bool] | None = None
        # Called with the refusal of a request that may be sent again: the server is busy.
        self.on_overload: Callable[[Refusal], object] | None = None
        # Paths that are served however many requests there are.
        self.probes: frozenset[str] = frozenset()
        self._limits_rate = settings.rate is not None
        # Whether a client is more than the address of its connection.
        self._identifies = bool(
            authenticator is not None or self._limits_rate or settings.trusted_proxies
        )
        self._error_body = error_body or _jsonrpc_error
        self._paths: dict[str, Route] = {}
        # Looked at in this order, if no row has the path itself.
        self._prefixes: list[tuple[str, Route]] = []
        self._patterns: list[tuple[Callable[[str], bool], Route]] = []
        self._endpoints: list[HttpEndpoint] = []
        self._tasks: set[asyncio.Task[None]] = set()

    # -- the table ---------------------------------------------------------------------------

    def add(self, path: str, route: Route) -> None:
        """Serve a path.

        Raises:
            ValueError: another row has it.
        """
        if path in self._paths:
            raise ValueError(f"{path} is served already: choose another path")
        self._paths[path] = route

    def add_prefix(self, prefix: str, route: Route) -> None:
        """Serve every path that begins with a prefix and has no row of its own."""
        self._prefixes.append((prefix, route))
        self._prefixes.sort(key=lambda row: len(row[0]), reverse=True)

    def add_pattern(self, matches: Callable[[str], bool], route: Route) -> None:
        """Serve every path for which a function returns True, and that no other row has."""
        self._patterns.append((matches, route))

    def add_document(self, path: str, document: bytes) -> None:
        """Serve a JSON document for everybody, such as metadata at a well-known path."""

        def handle(
            request: HttpRequest, body: Any, responder: Responder, owner: Owner | None, client: str
        ) -> None:
            if request.method == "OPTIONS":
                responder.respond(204, b"", _DOCUMENT_PREFLIGHT)
            else:
                responder.respond(200, document, _DOCUMENT_HEADERS)

        self.add(path, Route(handle, ("GET", "HEAD", "OPTIONS"), is_public=True))

    def add_probes(self) -> None:
        """Serve the health checks: alive, and ready if every endpoint is."""
        self.add(HEALTH_PATH, Route(_respond_alive, ("GET", "HEAD"), is_public=True))
        self.add(READY_PATH, Route(self._respond_ready, ("GET", "HEAD"), is_public=True))
        self.probes = frozenset((HEALTH_PATH, READY_PATH))

    def add_endpoint(self, endpoint: HttpEndpoint) -> None:
        """Let a protocol take part in readiness, expiry and shutdown of the listener."""
        self._endpoints.append(endpoint)

    def find(self, path: str) -> Route | None:
        """Return the row of a path."""
        found = self._paths.get(path)
        if found is not None:
            return found
        for prefix, route in self._prefixes:
            if path.startswith(prefix):
                return route
        for matches, route in self._patterns:
            if matches(path):
                return route
        return None

    def is_upgrade(self, request: HttpRequest) -> bool:
        """Return True if a request asks for another protocol that is served at its path."""
        route = self.find(request.path)
        return route is not None and route.upgrade is not None and route.upgrade.takes(request)

    @property
    def requires_credentials(self) -> bool:
        """Whether every request needs a credential."""
        return self.authenticator is not None and self.authenticator.is_required

    # -- requests ----------------------------------------------------------------------------

    def admit(self, request: HttpRequest) -> Refusal | None:
        """Decide on a request by its head; None lets it in."""
        route = self._paths.get(request.path) or self.find(request.path)
        if route is None:
            # Checked first: what is served here is not for pages that guess names.
            return self.admission.check(request) or _NOT_FOUND
        if route.is_public:
            return route.check(request)
        refusal = self.admission.check(request)
        if refusal is not None:
            return refusal
        if request.method == "OPTIONS" and self.cors is not None:
            return None
        if self.authenticator is not None:
            # What else is wrong with a request is not for callers that are not known.
            refusal = self.authenticator.precheck(request)
            if refusal is not None:
                client = self.admission.client_of(request)
                self.authenticator.note_refusal(request, refusal, client)
            return refusal
        return route.check(request)

    def check_head(self, request: HttpRequest) -> Refusal | None:
        """Decide on an admitted request whose body is not complete; None lets the rest be read."""
        authenticator = self.authenticator
        if authenticator is None:
            return None
        route = self.find(request.path)
        if route is None or route.is_public:
            return None
        if request.method == "OPTIONS" and self.cors is not None:
            return None
        refusal = authenticator.check_head(request)
        if refusal is None:
            return None
        client = self.admission.client_of(request)
        limited = self._check_rate(client)
        if limited is not None:
            return limited
        authenticator.note_refusal(request, refusal, client)
        return refusal

    def open_client_account(self, request: HttpRequest, account: Account) -> Account:
        """Use the account of the client of a request; that of its connection, unless of a proxy."""
        if account.is_many:
            return account.open_other(client_key(self.admission.client_of(request)))
        account.uses += 1
        return account

    def handle(self, request: HttpRequest, body: bytes | Oversize, responder: Responder) -> None:
        """Serve a request that was admitted; it is answered through the responder."""
        try:
            route = self._paths[request.path]
        except KeyError:
            found = self.find(request.path)
            if found is None:  # never: it would not have been admitted
                self.refuse(responder, _NOT_FOUND, request)
                return
            route = found
        handle = route.handle
        if route.upgrade is not None and request.method == "GET" and route.upgrade.takes(request):
            handle = route.upgrade.open
        if route.is_public:
            handle(request, body, responder, None, request.client)
        elif request.method == "OPTIONS" and route.methods and "OPTIONS" not in route.methods:
            self._respond_preflight(request, responder)
        elif self._identifies:
            self._identify(request, body, responder, route, handle)
        else:
            handle(request, body, responder, None, request.client)

    def refuse(
        self,
        responder: Responder,
        refusal: Refusal,
        request: HttpRequest | None,
        id: int | str | None = None,
    ) -> None:
        """Answer a request with an HTTP error; `id` is that of the JSON-RPC request in its body."""
        if refusal.retry_after_ms and self.on_overload is not None:
            self.on_overload(refusal)
        headers = JSON_HEADERS + refusal.headers
        if request is not None and self.cors is not None:
            headers += self.cors.headers(request)
        responder.respond(refusal.status, self._error_body(refusal, id), headers)

    def cors_headers(self, request: HttpRequest) -> Headers:
        """Return the CORS headers of a response; none if CORS is off."""
        return () if self.cors is None else self.cors.headers(request)

    def _respond_preflight(self, request: HttpRequest, responder: Responder) -> None:
        found = None if self.cors is None else self.cors.preflight(request)
        if found is None:
            self.refuse(responder, _WRONG_ORIGIN, request)
        else:
            responder.respond(found[0], b"", found[1])

    def _respond_ready(
        self,
        request: HttpRequest,
        body: Any,
        responder: Responder,
        owner: Owner | None,
        client: str,
    ) -> None:
        if all(each.is_ready for each in self._endpoints):
            responder.respond(200, b"ok\n", _TEXT_HEADERS)
        else:
            responder.respond(HTTP["overloaded"].status, b"unavailable\n", _TEXT_HEADERS)

    # -- callers -----------------------------------------------------------------------------

    def _identify(
        self, request: HttpRequest, body: Any, responder: Responder, route: Route, handle: Handler
    ) -> None:
        """Find the owner of a request and check its rate, then serve it."""
        client = self.admission.client_of(request)
        if self.authenticator is None:
            if not self._limits_rate or self._may_go(client, request, responder):
                handle(request, body, responder, None, client)
            return
        found = self.authenticator.authenticate(request)
        if isinstance(found, Awaitable):
            self.spawn(self._decide(found, request, body, responder, client, route, handle))
        else:
            self._identified(found, request, body, responder, client, route, handle)

    async def _decide(
        self,
        deciding: Awaitable[Owner | Refusal | None],
        request: HttpRequest,
        body: Any,
        responder: Responder,
        client: str,
        route: Route,
        handle: Handler,
    ) -> None:
        """Serve a request when its credential is verified; its body counts for its client."""
        received = ReceivedBytes(self.open_client_account(request, responder.account))
        size = len(body) if type(body) is bytes else 0
        has_room = size <= UNCOUNTED_BYTES or received.weigh(size)
        if not has_room:
            body = None
        try:
            found = await deciding
        finally:
            received.close()
        if responder.is_gone:
            return
        if not has_room and not isinstance(found, Refusal):
            self.refuse(responder, TOO_MUCH_RECEIVED, request)
            return
        try:
            self._identified(found, request, body, responder, client, route, handle)
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
        route: Route,
        handle: Handler,
    ) -> None:
        owner, refusal = (None, found) if isinstance(found, Refusal) else (found, None)
        # Those that are refused count by their address: credentials cannot be tried in turn.
        key = client if owner is None else principal_key(owner.key)
        if self._limits_rate and not self._may_go(key, request, responder):
            return
        if refusal is not None and self.authenticator is not None:
            self.authenticator.note_refusal(request, refusal, client)
        refusal = refusal or route.check(request)
        if owner is not None and self.admits_request is not None and refusal is None:
            refusal = None if self.admits_request(key) else TOO_MANY_REQUESTS
        if refusal is not None:
            self.refuse(responder, refusal, request)
        else:
            handle(request, body, responder, owner, key)

    def rate_of(self, client: str) -> Callable[[], float | None] | None:
        """Return what counts a request of a client that has passed the gate, or None.

        It returns the seconds until one is admitted, or None if it is, and then it counts.
        Without a rate there is nothing to count.
        """
        if not self._limits_rate:
            return None
        return lambda: self.admission.wait(client, self.clock())

    def _may_go(self, client: str, request: HttpRequest, responder: Responder) -> bool:
        refusal = self._check_rate(client)
        if refusal is not None:
            self.refuse(responder, refusal, request)
        return refusal is None

    def _check_rate(self, client: str) -> Refusal | None:
        """Count a request of a client, or refuse it."""
        wait = self.admission.wait(client, self.clock())
        if wait is None:
            return None
        seconds = b"%d" % max(1, -int(-wait // 1))
        return Refusal(HTTP["rate-limited"], "Too many requests", ((b"retry-after", seconds),))

    # -- time and the end --------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine for a request, as a task that is kept until it ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing that could expire."""
        return all(each.is_idle for each in self._endpoints)

    def reap(self, now: float) -> None:
        """End what has expired; called every second."""
        for each in self._endpoints:
            each.reap(now)

    def stop(self, *, at_once: bool = False) -> None:
        """Refuse new requests; running handlers may finish, unless `at_once`."""
        for each in self._endpoints:
            each.stop(at_once=at_once)

    async def close(self) -> None:
        """Return when every request is answered."""
        for each in self._endpoints:
            await each.close()


def _respond_alive(
    request: HttpRequest, body: Any, responder: Responder, owner: Owner | None, client: str
) -> None:
    responder.respond(200, b"ok\n", _TEXT_HEADERS)


def _cors(settings: HttpSettings) -> Cors | None:
    if not settings.cors:
        return None
    # Imported here: most servers have no pages.
    from ..gate.cors import Cors

    return Cors(settings.cors)


def _jsonrpc_error(refusal: Refusal, id: int | str | None) -> bytes:
    """Return a JSON-RPC error, without an id unless it is known."""
    named = {} if id is None else {"id": id}
    error: dict[str, object] = {"code": _INVALID_REQUEST, "message": refusal.message}
    if refusal.retry_after_ms:
        error["data"] = {"retryAfterMs": refusal.retry_after_ms}
    return encode({"jsonrpc": "2.0", **named, "error": error})
