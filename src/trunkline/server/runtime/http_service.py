"""The server behind an HTTP endpoint: connections for sessions and for single requests.

`HttpService` makes a `Connection` for each session, and keeps some for single requests, which are
used again and again.

The rules that live here, and only here:

* A single request needs headers that agree with its body; so does one inside a session that names
  a version itself.                     [MCP 2026-07-28, basic/transports/streamable-http]
* Single requests of one client, which is a principal or an address, share a byte budget, a number
  of running requests and their share of the threads. Those of a session belong to the session.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw
from msgspec.json import Decoder

from ...concurrency.thread_pool import ThreadShare
from ...errors import TransportError
from ...jsonrpc.peer.incoming import IncomingRequest
from ...jsonrpc.peer.outgoing import UnmatchedReply
from ...jsonrpc.peer.peer import ProtocolProblem, UnmatchedReplyEvent
from ...mcp.meta import BadMeta, Caller
from ...spec.error_kinds import ErrorKind
from ...spec.lookup import http_status, http_statuses
from ...spec.mcp.http_status import MCP
from ...spec.mcp.transports import POLLED, RESUMED_STREAMS
from ...spec.profiles import profile
from ...store.errors import StoreError
from ...transports.http.endpoint.endpoint import McpEndpoint
from ...transports.http.endpoint.request_headers import header_mismatch, name_member, param_mismatch
from ...transports.http.endpoint.single_request import SingleRequest
from ..dispatch.budget import ByteBudget, connection_bytes
from ..dispatch.connection import Connection, HandshakeSession, brief, only_meta
from ..dispatch.log_limit import LogLimit
from ..dispatch.params import UNREADABLE, ToolCall, members_of
from ..dispatch.revision import ServerRevision
from ..settings import SocketLimits
from .keepalive import KeepAlive

if TYPE_CHECKING:
    from ...auth.principal import Principal
    from ...errors import InvalidMessage
    from ...jsonrpc.messages import ErrorObject
    from ...store.base import Store
    from ...transports.base import Transport
    from ...transports.http.endpoint.event_log import EventLog
    from ...transports.http.endpoint.old_sse import OldSseSession
    from ...transports.http.endpoint.routes import Routes
    from ...transports.http.endpoint.sessions import HttpSession
    from ...transports.http.gate.authentication import Owner
    from ...transports.http.settings import HttpLimits, HttpSettings
    from ...transports.websocket.server import AcceptedWebSocket
    from ..core import ServerCore

__all__ = ["HttpService", "status_of_error"]

_log: Final = logging.getLogger("trunkline.server")

# Connections for single requests that are kept for the next ones.
_MAX_IDLE: Final = 256
# Clients whose budgets are kept while they have no request.
_MAX_CLIENTS: Final = 10_000

# Codes of errors that have a status by their kind, and of others that have none.
_AMBIGUOUS: Final = (-32602, -32603)

_text: Final = Decoder(str).decode
_any: Final = Decoder().decode


class _ServiceConnection(Connection):
    """A connection that an `HttpService` ends."""

    __slots__ = ("service",)

    def __init__(self, core: ServerCore, transport: Transport, service: HttpService) -> None:
        super().__init__(core, transport)
        self.service = service
        self.attach()

    def principal_of(self, asked: IncomingRequest) -> Principal | None:
        """Return the client that sent a request, as the credential of that request has it.

        A session goes on with another token, and a task outlives its request: the connection may
        serve another client by then.
        """
        if asked.route is None or asked.owner is not None:
            return self.principal if asked.owner is None else asked.owner
        principal: Principal | None = asked.route.owner
        return principal

    def _has_ended(self) -> None:
        self.service.finish(self)


class _WebSocketConnection(_ServiceConnection):
    """The connection of a WebSocket, which ends when it is idle as long as a session may be."""

    __slots__ = ("_keepalive",)

    def __init__(
        self, core: ServerCore, transport: AcceptedWebSocket, service: HttpService, idle: float
    ) -> None:
        super().__init__(core, transport, service)
        # The transport pings by itself.
        limits = SocketLimits(keep_alive=None, idle=idle)
        self._keepalive = KeepAlive(self, transport, limits)
        self._keepalive.start()

    def expire(self) -> None:
        """End the connection, because the credential of its client has ended."""
        self.end(TransportError("the credential of the client has ended"))

    def _has_ended(self) -> None:
        self._keepalive.stop()
        super()._has_ended()


class _HttpConnection(_ServiceConnection):
    """The connection of a session."""

    __slots__ = ()

    def use_session(self, session: HandshakeSession) -> None:
        """Use a negotiated session, whose revision decides about its streams."""
        super().use_session(session)
        revision, transport = session.rev.revision, self.transport
        transport.is_resumable = RESUMED_STREAMS.holds(revision)  # type: ignore[attr-defined]  # an HttpSession
        transport.primes = POLLED.holds(revision)  # type: ignore[attr-defined]  # as above

    def _stateless(self, asked: IncomingRequest, caller: Caller) -> ServerRevision | None:
        version = caller.protocol_version
        if self._rev is not None and version == self._rev.revision:
            return self._rev  # the negotiated one, whose requests have no such headers
        fault = self._header_fault(asked, caller)
        if fault is not None:
            policy, revision = self.core.newest_revision.policy, self.core.newest_revision.revision
            if asked.slot is None:  # the status of a batch is that of all its requests
                asked.route.status = http_status(ErrorKind.HEADER_MISMATCH, revision)
            self.refuse(asked, policy, ErrorKind.HEADER_MISMATCH, f"Header mismatch: {fault}")
            return None
        return super()._stateless(asked, caller)

    def _header_fault(self, asked: IncomingRequest, caller: Caller) -> str | None:
        request, params, method = asked.route.request, asked.params, asked.method
        version = caller.protocol_version
        if type(params) is ToolCall:
            fault = header_mismatch(request, method, version, params.name)
            entry = self.core.tools.get(params.name)
            if entry is None or not entry.param_headers or self._hides(entry, asked, caller):
                return fault
            if fault is None:
                given = {} if params.arguments is UNSET else _any(params.arguments)
                fault = param_mismatch(request, entry.param_headers, given)
            return fault
        return header_mismatch(request, method, version, _name_in(params, name_member(method)))

    def _hides(self, entry: Any, asked: IncomingRequest, caller: Caller) -> bool:
        """Return True if a tool does not exist for the caller: its headers tell nothing of it."""
        core = self.core
        if entry.guard is None and core.tool_sets is None:
            return False
        # Imported here: most servers have no guards.
        from ..context import Context
        from ..dispatch.guarded import hides

        rev, owner = core.newest_revision, entry.owner
        return hides(Context(self, asked, rev, caller, owner, entry.name), entry)

    def _lacks_meta(self, asked: IncomingRequest, rev: ServerRevision) -> None:
        asked.route.status = http_status(ErrorKind.MISSING_REQUEST_META, rev.revision)
        super()._lacks_meta(asked, rev)

    def _on_problem(self, problem: ProtocolProblem, route: Any) -> None:
        if isinstance(problem, UnmatchedReplyEvent):
            is_refused = problem.why is not UnmatchedReply.LATE
        else:
            is_refused = not problem.answerable
        if is_refused:
            route.settled_status = MCP["not-accepted"].status
        super()._on_problem(problem, route)


class _SingleConnection(_HttpConnection):
    """A connection for one request at a time; between two of them it keeps nothing."""

    __slots__ = ("client",)

    client: _Client

    @property
    def client_key(self) -> str | None:
        """The client of the request."""
        return self.client.key

    @property
    def is_free(self) -> bool:
        """Whether nothing is left of the request before."""
        runner = self.runner
        return not (
            runner.running
            or runner.waiting
            or len(self.peer.incoming)
            or self._is_ended
            or self.budget.used
        )

    def cancel_requests(self) -> None:
        """Cancel what the client has not waited for."""
        for asked in self.peer.incoming:
            if asked.id is not None:
                self.core.streams.cancel(self, asked.id)
                self.runner.cancel(asked.id)

    def _refuse_params(self, asked: IncomingRequest, kind: str, text: str) -> None:
        if not self._has_readable_meta(asked.params):
            revision = self.core.newest_revision.revision
            asked.route.status = http_status(ErrorKind.MISSING_REQUEST_META, revision)
        super()._refuse_params(asked, kind, text)

    def _has_readable_meta(self, params: Any) -> bool:
        try:
            raw = params.meta if type(params) is ToolCall else only_meta(params).meta
            if raw is UNSET:
                return False
            self.core.callers.read(bytes(raw))
        except (BadMeta, *UNREADABLE):
            return False
        return True

    def _unopened(self, asked: IncomingRequest, caller: Caller | None) -> ServerRevision | None:
        """Refuse a request that names no version in its body."""
        core, header = self.core, asked.route.request.protocol_version
        version = None if header is None else header.decode("latin-1")
        if version is not None and version not in core.revisions:
            kind = ErrorKind.UNSUPPORTED_PROTOCOL_VERSION
            supported, policy = list(core.revisions), core.newest_revision.policy
            self.refuse(asked, policy, kind, supported=supported, requested=brief(version))
            return None
        if core.handshake_revision is None:
            return super()._unopened(asked, caller)
        self._lacks_meta(asked, core.newest_revision)
        return None


class _Client:
    """What single requests of one client share."""

    __slots__ = ("budget", "in_flight", "key", "threads")

    def __init__(self, key: str, budget: ByteBudget) -> None:
        self.key = key
        self.budget = budget
        self.threads = ThreadShare()
        self.in_flight = 0


class HttpService:
    """A server as an endpoint sees it."""

    def __init__(self, core: ServerCore, limits: HttpLimits, log_limit: LogLimit) -> None:
        self._core = core
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._log_limit = log_limit
        revisions = {each: core.revision(each) for each in core.revisions}
        self.handshake = frozenset(
            each.encode() for each, rev in revisions.items() if rev.has_handshake
        )
        self.per_request = frozenset(each.encode() for each in revisions) - self.handshake
        self._status_revisions = (
            max(self.handshake, default=b"").decode(),
            max(self.per_request, default=b"").decode(),
        )
        self.is_ready = True
        self._idle: list[_SingleConnection] = []
        self._clients: OrderedDict[str, _Client] = OrderedDict()
        self._sessions: dict[HttpSession | OldSseSession, Connection] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._store: Store | None = None
        largest = core.policy.limits.message_size("http")
        self._client_bytes = connection_bytes(core.limits, largest)
        # Made by the endpoint; forgets a session that the server ends.
        self.on_session_end: Any = None

    def add_routes(self, routes: Routes, settings: HttpSettings, path: str) -> McpEndpoint:
        """Serve MCP at a path of a listener."""
        endpoint = McpEndpoint(self, routes, settings, self._limits, path)
        self.on_session_end = endpoint.sessions.discard
        if self._core.tenancy is not None:
            endpoint.session_check = self.has_session_room
        return endpoint

    # -- sessions ----------------------------------------------------------------------------

    def open_session(self, session: HttpSession) -> None:
        """Serve a new session."""
        self._open(session, _HttpConnection(self._core, session, self))

    def open_old_sse(self, session: OldSseSession) -> None:
        """Serve a new session of HTTP+SSE, whose stream is like a socket."""
        self._open(session, _ServiceConnection(self._core, session, self))

    def open_websocket(self, transport: AcceptedWebSocket) -> None:
        """Serve a new WebSocket."""
        connection = _WebSocketConnection(self._core, transport, self, self._limits.session_idle)
        self._place(connection, transport.owner)
        transport.on_end = connection.expire
        connection.log_limit = self._log_limit
        self._core.connections.add(connection)

    def _open(self, session: HttpSession | OldSseSession, connection: Connection) -> None:
        self._place(connection, session.owner)
        connection.log_limit = self._log_limit
        session.is_connected = True
        session.on_end = connection.end
        self._core.connections.add(connection)
        self._sessions[session] = connection

    def _place(self, connection: Connection, owner: Any) -> None:
        """Let a connection belong to its owner, and count it for the tenant."""
        connection.principal = _principal(owner)
        tenancy = self._core.tenancy
        if tenancy is not None and owner is not None:
            tenancy.attach(connection)
            tenancy.session_opened(owner.tenant)

    def has_session_room(self, owner: Owner | None) -> bool:
        """Return True if the tenant of an owner may open a session."""
        tenancy = self._core.tenancy
        if tenancy is None or owner is None:
            return True
        return tenancy.has_session_room(owner.tenant, self._limits.sessions)

    def event_log(self, session: HttpSession) -> EventLog:
        """Return a log for the events of a session."""
        # Imported here: single requests have none.
        from ...transports.http.endpoint.event_log import EventLog

        name = hashlib.sha256(session.id.encode()).hexdigest()
        tenant = (None if session.owner is None else session.owner.tenant) or ""
        return EventLog(self._event_store(), name, self._limits, self._store_failed, tenant)

    def has_session(self, session: HttpSession) -> bool:
        """Return True if `initialize` succeeded."""
        connection = self._sessions.get(session)
        return connection is not None and connection.session is not None

    def _event_store(self) -> Store:
        if self._store is None:
            if self._core.has_own_store:
                self._store = self._core.store
            else:
                from ...store.memory import MemoryStore

                # Not that of tasks: events of many clients must not fill it.
                self._store = MemoryStore()
        return self._store

    def _store_failed(self, text: str, error: StoreError) -> None:
        self._log_limit.warning(text, error)

    # -- single requests ---------------------------------------------------------------------

    def single(self, client: str, owner: Any) -> SingleRequest | None:
        """Return a transport for one request, or None if the client has too many.

        The owner is a `Principal`, which a transport knows as an `Owner`.
        """
        found = self._clients.get(client) or self._new_client(client, owner)
        if found.in_flight >= self._core.limits.in_flight:
            self._core.counters.refuse("in_flight")
            return None
        while True:
            connection = self._idle.pop() if self._idle else self._new_single()
            if connection.is_free:
                break
        found.in_flight += 1
        connection.client = found
        connection.principal = owner
        connection.budget.parent = found.budget
        connection.runner.threads = found.threads
        self._core.connections.add(connection)
        transport: SingleRequest = connection.transport  # type: ignore[assignment]  # made so
        return transport

    def _new_single(self) -> _SingleConnection:
        transport = SingleRequest()
        connection = _SingleConnection(self._core, transport, self)
        connection.log_limit = self._log_limit
        transport.on_gone = connection.cancel_requests
        transport.on_free = partial(self._release, connection)
        return connection

    def _release(self, connection: _SingleConnection) -> None:
        self._core.connections.discard(connection)
        # The table of subscriptions would keep a connection that is not used again.
        self._core.streams.leave(connection)
        connection.client.in_flight -= 1
        if len(self._idle) < _MAX_IDLE and not connection.runner.is_stopping:
            self._idle.append(connection)

    def _new_client(self, key: str, owner: Any) -> _Client:
        for oldest in list(islice(self._clients, max(0, len(self._clients) - _MAX_CLIENTS + 1))):
            if self._clients[oldest].in_flight:
                self._clients.move_to_end(oldest)
            else:
                self._core.threads.leave(self._clients.pop(oldest).threads)
        tenancy = self._core.tenancy
        tenant = None if tenancy is None else tenancy.of(owner)
        above = self._core.budget if tenant is None else tenant.budget
        self._clients[key] = found = _Client(key, ByteBudget(self._client_bytes, above))
        if tenant is not None:
            found.threads.group = tenant.threads
        return found

    # -- the end -----------------------------------------------------------------------------

    def finish(self, connection: Connection) -> None:
        """Finish what a connection that ends has begun."""
        task = self._loop.create_task(self._finishing(connection))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _finishing(self, connection: Connection) -> None:
        session: Any = connection.transport
        if self._sessions.pop(session, None) is not None and self.on_session_end is not None:
            self.on_session_end(session)
        try:
            await connection.finish()
        finally:
            self._core.connections.discard(connection)
            if not isinstance(connection, _SingleConnection):
                self._core.threads.leave(connection.runner.threads)
                if self._core.tenancy is not None and connection.principal is not None:
                    self._core.tenancy.session_opened(connection.principal.tenant, by=-1)

    def stop(self, *, at_once: bool = False) -> None:
        """Refuse new requests; running handlers may finish, unless `at_once`."""
        self.is_ready = False
        self._idle.clear()
        for connection in list(self._core.connections):
            if isinstance(connection, _ServiceConnection):
                connection.stop(at_once=at_once)

    async def close(self) -> None:
        """Wait until every connection has ended."""
        self.stop()
        while self._ending:
            await asyncio.wait(list(self._ending))

    # -- statuses ----------------------------------------------------------------------------

    def handshake_status(self, error: ErrorObject | InvalidMessage) -> int:
        """Return the HTTP status of an error, in a session."""
        return status_of_error(error, self._status_revisions[0])

    def per_request_status(self, error: ErrorObject | InvalidMessage) -> int:
        """Return the HTTP status of an error to a single request."""
        return status_of_error(error, self._status_revisions[1] or self._status_revisions[0])


def _principal(owner: Any) -> Principal | None:
    """Return an owner by its type in this package: authenticators return principals."""
    principal: Principal | None = owner
    return principal


def _name_in(params: Any, member: str | None) -> str | None:
    """Return a text in params that are not decoded yet, or None."""
    if member is None or not isinstance(params, Raw):
        return None
    try:
        value = members_of(params).get(member)
        return None if value is None else _text(value)
    except UNREADABLE:
        return None


def status_of_error(error: Any, revision: str) -> int:
    """Return the HTTP status of an error, in a revision."""
    data = getattr(error, "data", None)
    if isinstance(data, dict) and "retryAfterMs" in data:
        return http_status(ErrorKind.OVERLOADED, revision)
    return _statuses(revision).get(error.code, 200)


@cache
def _statuses(revision: str) -> dict[int, int]:
    """Return the statuses of errors by code, of codes that tell enough."""
    codes = profile("mcp")
    found: dict[int, int] = {}
    for row in http_statuses(revision):
        for kind in row.kinds:
            code = codes.to_send(kind, revision)[0]
            if code not in _AMBIGUOUS:
                found[code] = row.status
    return found
