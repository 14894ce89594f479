"""An HTTP/1.1 server on asyncio and httptools: the connections of one listener, and their limits.

The rules that live here, and only here:

* When all connections are in use, one of the client that has most gives way: the longest idle
  one, else one that has been sending a request for long, else the oldest. If no client has more
  than the one that connects, or that has half of them while there are others, an idle one of its
  own gives way. Behind a proxy the clients are those of the requests that are served. Without a
  connection that gives way, the new one is answered 503 and closed. So is a request beyond
  `HttpLimits.requests`, or the share of its client, except those for health checks; its connection
  stays open.
* When descriptors run out, some idle connections are closed, or such as have been sending one
  request for long: first those of the client that has most.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final, Protocol

from ....accounts.account import Accounts
from ....accounts.client_key import client_key, peer_uid, user_key
from ....accounts.shares import Holdings, by_most
from ....exception_text import as_redacted
from ...lifecycle import MADE_ROOM
from ...receive_limits import MAX_BYTES_PER_TURN
from ..open_requests import OpenRequests
from ..response import JSON_HEADERS
from .connection import HttpServerConnection
from .known_heads import MAX_HEAD_BYTES, MAX_KNOWN_BYTES, MAX_VALUE_BYTES
from .response_writer import http_date

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ....accounts.account import Account
    from ..endpoint.routes import Routes
    from ..response import OpenExchange
    from ..settings import HttpLimits

__all__ = ["ConnectionCounters", "HttpServer", "ServedConnection"]

_log: Final = logging.getLogger("trunkline.http")

# One buffer for all connections of a loop: reading and processing are one step. More than
# `MAX_BYTES_PER_TURN` is read of a body alone.
_READ_BYTES: Final = 256 * 1024
# Seconds between two looks at timeouts and streams.
_TICK_S: Final = 1.0
# Seconds after which a request that was not read to its end gives way to a new connection.
_SLOW_REQUEST_S: Final = 2.0


class ServedConnection(Protocol):
    """A connection of the server, in HTTP or in the protocol it was handed to."""

    # That of the client.
    account: Account

    @property
    def exchange(self) -> OpenExchange | None:
        """The exchange of the request that is served, if it is in HTTP."""

    def tick(self, now: float) -> None:
        """Apply the timeouts; called every second."""

    def drop(self) -> None:
        """Close an idle connection."""

    def abort(self) -> None:
        """Close at once, whatever was not written."""


class ConnectionCounters(Protocol):
    """Counts connections that were refused, and idle ones that gave way to others."""

    refused_connections: int
    dropped_connections: int


class HttpServer:
    """The connections of one listener."""

    def __init__(
        self,
        routes: Routes,
        limits: HttpLimits,
        message_size: int | None,
        *,
        is_secure: bool = False,
        access_log: bool = False,
        counters: ConnectionCounters | None = None,
        accounts: Accounts | None = None,
    ) -> None:
        self.routes = routes
        self.limits = limits
        self.message_size = message_size
        # Requests up to this size are compared with those before. Where the limits on
        # headers are below what a known head may have, each is parsed.
        self.known_bytes = min(MAX_KNOWN_BYTES, message_size or MAX_KNOWN_BYTES)
        if limits.header_bytes < MAX_HEAD_BYTES or limits.header_line_bytes < MAX_VALUE_BYTES:
            self.known_bytes = 0
        self.is_secure = is_secure
        self.access_log = access_log
        self.loop = asyncio.get_running_loop()
        self.buffer = memoryview(bytearray(_READ_BYTES))
        self.turn_buffer = self.buffer[:MAX_BYTES_PER_TURN]
        # Of the clients; those of a listener alone share its requests and nothing else.
        if accounts is None:
            accounts = Accounts(limits.requests)
        self.accounts = accounts
        self.connections: dict[ServedConnection, None] = {}
        self.held: Holdings[ServedConnection] = Holdings(limits.connections, self.accounts.shares)
        # Those between two requests, the longest idle first.
        self.idle: dict[HttpServerConnection, None] = {}
        self.is_stopping = False
        # A connection has one request at a time: more of them than connections do not exist.
        self.requests: OpenRequests | None = None
        if limits.requests < limits.connections:
            self.requests = OpenRequests(limits.requests, accounts)
            routes.admits_request = self.requests.admits
        self._counters = counters
        self.now = self.loop.time()
        self.head = self.json_head = b""
        self._set_date()
        self._closed: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = self.loop.call_later(_TICK_S, self._tick)

    def protocol(self) -> HttpServerConnection:
        """Return the protocol of a new connection."""
        return HttpServerConnection(self)

    def open_account(self, address: str, transport: asyncio.BaseTransport) -> Account:
        """Use the account of a new connection, before any request tells its client."""
        if self.routes.admission.is_proxy(address):
            return self.accounts.open(f"proxy {address}", is_many=True)
        if address:
            return self.accounts.open(client_key(address))
        uid = peer_uid(transport.get_extra_info("socket"))
        return self.accounts.open(user_key(uid))

    @property
    def in_flight(self) -> int:
        """The number of requests that are being served."""
        return sum(each.exchange is not None for each in self.connections)

    def admit(self, connection: HttpServerConnection) -> bool:
        """Count a new connection, perhaps in place of another; return False if that fails."""
        account = connection.account
        if not self.held.has_room(account):
            other = self._taken_back(account)
            if other is None:
                if self._counters is not None:
                    self._counters.refused_connections += 1
                return False
            self._count_dropped()
            if other in self.idle:
                other.drop()
            else:
                other.abort()
                self.forget(other)  # now, not when the loop has closed it
        self.add(connection)
        return True

    def add(self, connection: ServedConnection) -> None:
        """Count a connection that was admitted."""
        self.connections[connection] = None
        self.held.add(connection.account, connection)

    def move(self, connection: ServedConnection, account: Account) -> None:
        """Count a connection for another account: a request has told its principal."""
        self.held.discard(connection.account, connection)
        connection.account = account
        self.held.add(account, connection)

    def _taken_back(self, account: Account) -> ServedConnection | None:
        """Return the connection that gives way to a new one of an account."""
        may_take = self.held.may_take
        idle = [*self.idle, *self._slow(len(self.connections), self.connections)]
        taken = [each for each in idle if may_take(account, each.account, is_idle=True)]
        for each in taken:
            if each.account is not account and not each.account.is_many:
                return each
        if taken:
            return taken[0]
        for donor in self.held.largest():
            if may_take(account, donor, is_idle=False):
                return next(self.held.of(donor))
        return self._taken_back_from_proxies()

    def _taken_back_from_proxies(self) -> ServedConnection | None:
        """Return the oldest connection of proxies that serves the client with most of them.

        Without a client that has several, none gives way.
        """
        client_of = self.routes.admission.client_of
        clients = {
            each: client_key(client_of(exchange.request))
            for each in self.connections
            if each.account.is_many and (exchange := each.exchange) is not None
        }
        for each in by_most(clients)[:1]:
            if list(clients.values()).count(clients[each]) > 1:
                return each
        return None

    def _slow(self, most: int, among: Iterable[ServedConnection]) -> list[HttpServerConnection]:
        """Return connections that have been sending one request for long, the longest first."""
        since = self.loop.time() - _SLOW_REQUEST_S
        found = [
            each
            for each in among
            if isinstance(each, HttpServerConnection)
            and each.is_reading_request
            and each.began() <= since
        ]
        return sorted(found, key=HttpServerConnection.began)[:most]

    def make_room(self) -> bool:
        """Close some connections, because descriptors ran out; return False without any.

        They are idle, or have been sending one request for long; first those of the client that
        has most.
        """
        given = self.idle or self._slow(len(self.connections), self.connections)
        taken = by_most({each: each.account for each in given})[:MADE_ROOM]
        for each in taken:
            self._count_dropped()
            each.abort()
        return bool(taken)

    def _count_dropped(self) -> None:
        if self._counters is not None:
            self._counters.dropped_connections += 1

    def forget(self, connection: ServedConnection) -> None:
        """Forget a closed connection."""
        self.connections.pop(connection, None)
        self.held.discard(connection.account, connection)
        if isinstance(connection, HttpServerConnection):
            self.idle.pop(connection, None)
        if not self.connections and self._closed is not None and not self._closed.done():
            self._closed.set_result(None)

    def stop(self) -> None:
        """Close idle connections; others close after the response they wait for."""
        self.is_stopping = True
        for each in list(self.idle):
            each.close()

    async def close(self, seconds: float) -> None:
        """Wait for the clients to read their responses, then close every connection."""
        self.stop()
        if self.connections:
            self._closed = self.loop.create_future()
            await asyncio.wait([self._closed], timeout=seconds)
        for each in list(self.connections):
            each.abort()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self.now = now = self.loop.time()
        self._set_date()
        self._timer = self.loop.call_later(_TICK_S, self._tick)
        for each in list(self.connections):
            try:
                each.tick(now)
            except Exception as error:  # noqa: BLE001  # a defect; the other connections go on
                _log.error("internal error of an HTTP connection\n%s", as_redacted(error))
        self.routes.reap(now)

    def _set_date(self) -> None:
        self.head = b"\r\ndate: " + http_date(time.time()) + b"\r\n"
        # All of the most frequent response up to its length.
        lines = [*(b"%b: %b" % each for each in JSON_HEADERS), b"content-length: "]
        self.json_head = b"HTTP/1.1 200 OK" + self.head + b"\r\n".join(lines)
