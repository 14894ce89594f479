"""The server behind an HTTP endpoint: connections for sessions and for single requests.

`HttpService` makes a `Connection` for each session, and keeps some for single requests, which are
used again and again.

The rules that live here, and only here:

* Sessions, WebSockets and single requests of one client, which is a principal or an address, count
  for one account. Of single requests, it has as many as one connection may run handlers.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...accounts.client_key import client_key
from ...engine.limits import SocketLimits
from ...engine.log_limit import LogLimit
from ...errors import TransportError
from ...spec.error_kinds import ErrorKind
from ...spec.lookup import http_status, http_statuses
from ...spec.profiles import profile
from ...store.errors import StoreError
from ...transports.http.endpoint.endpoint import McpEndpoint
from ...transports.http.endpoint.single_request import SingleRequest
from ...transports.http.response import TOO_MUCH_RECEIVED
from ..dispatch.connection import Connection
from .keepalive import KeepAlive

if TYPE_CHECKING:
    from ...accounts.account import Account
    from ...auth.principal import Principal
    from ...errors import InvalidMessage
    from ...jsonrpc.messages import ErrorObject
    from ...store.base import Store
    from ...transports.http.endpoint.event_log import EventLog
    from ...transports.http.endpoint.old_sse import OldSseSession
    from ...transports.http.endpoint.routes import Routes
    from ...transports.http.endpoint.sessions import HttpSession
    from ...transports.http.gate.authentication import Owner
    from ...transports.http.response import Refusal
    from ...transports.http.settings import HttpLimits, HttpSettings
    from ...transports.websocket.server import AcceptedWebSocket
    from ..api.core import ServerCore

__all__ = ["HttpService", "status_of_error"]

_log: Final = logging.getLogger("trunkline.server")

# Connections for single requests that are kept for the next ones.
_MAX_IDLE: Final = 256

# Codes of errors that have a status by their kind, and of others that have none.
_AMBIGUOUS: Final = (-32602, -32603)

C = TypeVar("C", bound=Connection)


class _SingleConnection(Connection):
    """A connection for one request at a time; between two of them it keeps nothing."""

    __slots__ = ("account",)

    account: Account

    @property
    def client_key(self) -> str | None:
        """The client of the request."""
        return self.account.key

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
                self.core.services.streams.cancel(self, asked.id)
                self.runner.cancel(asked.id)


class HttpService:
    """A server as an endpoint sees it."""

    def __init__(self, core: ServerCore, limits: HttpLimits, log_limit: LogLimit) -> None:
        self._core = core
        self.accounts = core.runtime.accounts
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
        self._sessions: dict[HttpSession | OldSseSession, Connection] = {}
        # Connections that it serves now, those of single requests among them.
        self._connections: set[Connection] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._store: Store | None = None
        # Made by the endpoint; forgets a session that the server ends.
        self.on_session_end: Any = None

    def add_routes(self, routes: Routes, settings: HttpSettings, path: str) -> McpEndpoint:
        """Serve MCP at a path of a listener."""
        endpoint = McpEndpoint(self, routes, settings, self._limits, path)
        self.on_session_end = endpoint.sessions.discard
        routes.on_overload = self._note_overload
        if self._core.runtime.tenancy is not None:
            endpoint.session_check = self.has_session_room
        return endpoint

    def _note_overload(self, refusal: Refusal) -> None:
        if refusal is not TOO_MUCH_RECEIVED:  # which the account has noted
            text = "HTTP request refused: %s"
            self._core.runtime.counters.warn(refusal.message, text, refusal.message)

    def open_account(self, client: str, owner: Any) -> Account:
        """Use the account of a client; the owner is a `Principal`, for a transport an `Owner`."""
        if owner is None:
            client = client_key(client)
        return self._core.runtime.open_account(client, owner)

    # -- sessions ----------------------------------------------------------------------------

    def open_session(self, session: HttpSession) -> None:
        """Serve a new session."""
        self._open(session, self._serve(Connection(self._core, session)))

    def open_old_sse(self, session: OldSseSession) -> None:
        """Serve a new session of HTTP+SSE, whose stream is like a socket."""
        self._open(session, self._serve(Connection(self._core, session)))

    def open_websocket(self, transport: AcceptedWebSocket) -> None:
        """Serve a new WebSocket."""
        connection = self._serve(Connection(self._core, transport))
        # The transport pings by itself; it ends when it is idle as long as a session may be.
        limits = SocketLimits(keep_alive=None, idle=self._limits.session_idle)
        keepalive = KeepAlive(connection, transport, limits)
        keepalive.start()

        def ended() -> None:
            keepalive.stop()
            self.finish(connection)

        connection.on_ended = ended
        self._place(connection, transport.owner, transport.account)
        expired = TransportError("the credential of the client has ended")
        transport.on_end = partial(connection.end, expired)
        connection.log_limit = self._log_limit
        self._core.runtime.connections.add(connection)
        self._connections.add(connection)

    def _serve(self, connection: C) -> C:
        """Serve a connection that this service ends."""
        connection.on_ended = partial(self.finish, connection)
        connection.attach()
        return connection

    def _open(self, session: HttpSession | OldSseSession, connection: Connection) -> None:
        self._place(connection, session.owner, session.account)
        connection.log_limit = self._log_limit
        session.is_connected = True
        session.on_end = connection.end
        self._core.runtime.connections.add(connection)
        self._connections.add(connection)
        self._sessions[session] = connection

    def _place(self, connection: Connection, owner: Any, account: Account) -> None:
        """Let a connection belong to its owner, and count it for the client and the tenant."""
        connection.principal = _principal(owner)
        connection.use_account(account)
        tenancy = self._core.runtime.tenancy
        if tenancy is not None and owner is not None:
            tenancy.session_opened(owner.tenant)

    def has_session_room(self, owner: Owner | None) -> bool:
        """Return True if the tenant of an owner may open a session."""
        tenancy = self._core.runtime.tenancy
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
            if self._core.services.has_own_store:
                self._store = self._core.services.store
            else:
                from ...store.memory import MemoryStore

                # Not that of tasks: events of many clients must not fill it.
                self._store = MemoryStore()
        return self._store

    def _store_failed(self, text: str, error: StoreError) -> None:
        self._log_limit.warning(text, error)

    # -- single requests ---------------------------------------------------------------------

    def single(self, account: Account, owner: Any) -> SingleRequest | None:
        """Return a transport for one request, or None if the client has too many.

        The account is closed when the request has ended, also with None.
        """
        if account.requests >= self._core.limits.in_flight:
            self._core.runtime.counters.refuse("in_flight")
            account.close()
            return None
        while True:
            connection = self._idle.pop() if self._idle else self._new_single()
            if connection.is_free:
                break
        account.requests += 1
        connection.account = connection.runner.account = account
        connection.principal = owner
        connection.budget.parent = account.budget
        connection.runner.threads = account.share
        self._core.runtime.connections.add(connection)
        self._connections.add(connection)
        transport: SingleRequest = connection.transport  # type: ignore[assignment]  # made so
        return transport

    def _new_single(self) -> _SingleConnection:
        transport = SingleRequest()
        connection = self._serve(_SingleConnection(self._core, transport))
        connection.log_limit = self._log_limit
        transport.on_gone = connection.cancel_requests
        transport.on_free = partial(self._release, connection)
        return connection

    def _release(self, connection: _SingleConnection) -> None:
        self._core.runtime.connections.discard(connection)
        self._connections.discard(connection)
        streams = self._core.services.streams
        if connection in streams.connections:
            # The table of subscriptions would keep a connection that is not used again.
            streams.leave(connection)
        account = connection.account
        account.requests -= 1
        account.close()
        if len(self._idle) < _MAX_IDLE and not connection.runner.is_stopping:
            self._idle.append(connection)

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
            self._core.runtime.connections.discard(connection)
            self._connections.discard(connection)
            if not isinstance(connection, _SingleConnection):
                self._core.runtime.threads.leave(connection.runner.threads)
                connection.leave_account()
                if self._core.runtime.tenancy is not None and connection.principal is not None:
                    self._core.runtime.tenancy.session_opened(connection.principal.tenant, by=-1)

    def stop(self, *, at_once: bool = False) -> None:
        """Refuse new requests; running handlers may finish, unless `at_once`."""
        self.is_ready = False
        self._idle.clear()
        for connection in list(self._connections):
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
