"""Connections to one origin that are kept alive between requests, with a bound.

The rules that live here, and only here:

* A connection that was idle for `IDLE_TIMEOUT_S` is closed and not used again: a request on one
  that the server is closing is lost. Many servers close theirs after 5 s (uvicorn, Node).
* The latest used connection is used next, so that the others become idle and close.
* A response of which no byte came for `read_timeout` is lost: its server, or a router on the way,
  has gone without a word.
* At most `connections` are open; requests beyond that wait for one, in order. What a request in
  flight may wait for has a few more: replies, notifications and the stream of a session.
* Through a proxy, TLS is spoken with the server: the proxy sees the name of the host alone.
                                                                 [RFC 9110, section 9.3.6]
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from ....errors import TransportError
from ...addresses import Tls
from ...base import ignore
from .connection import HttpClientConnection
from .proxy import ProxyAddress, dial, failure_text, open_tunnel

if TYPE_CHECKING:
    import socket

    from ...addresses import Http

__all__ = ["ConnectionPool"]

IDLE_TIMEOUT_S: Final = 4.0
_READ_BYTES: Final = 256 * 1024
# Of a connection that has memory of its own.
_OWN_READ_BYTES: Final = 64 * 1024
# How often the pool looks for quiet responses within `read_timeout`.
_LOOKS: Final = 4
# Connections beyond the bound, for messages without which open requests would not end.
_RESERVED: Final = 8


class ConnectionPool:
    """The connections to one server."""

    def __init__(
        self,
        address: Http,
        *,
        connections: int,
        connect_timeout: float,
        read_timeout: float | None = None,
        context: ssl.SSLContext | None,
        proxy: ProxyAddress | None,
    ) -> None:
        self._address = address
        self._most = connections
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._context = context
        self._proxy = proxy
        self._loop = asyncio.get_running_loop()
        self._idle: list[HttpClientConnection] = []
        self._open: set[HttpClientConnection] = set()
        self._opening = 0
        # Called when a request has to wait for a connection.
        self.on_full: Callable[[], object] = ignore
        # Each gets a connection that became idle, or None to open one.
        self._waiting: deque[asyncio.Future[HttpClientConnection | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._quiet_timer: asyncio.TimerHandle | None = None
        # Those with a stream that stays open; they are not counted.
        self._streams: set[HttpClientConnection] = set()
        self._is_closed = False
        # Called with each socket that is connected to the server itself, not to a proxy.
        self.on_dialled: Callable[[socket.socket], object] = ignore

    def __repr__(self) -> str:
        return f"<ConnectionPool, {len(self._open)} connections, {len(self._idle)} idle>"

    @property
    def unsent(self) -> int:
        """The number of bytes of requests that the system has not taken."""
        return sum(each.unsent for each in self._open)

    def take(self) -> HttpClientConnection | None:
        """Return an idle connection, or None."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_usable:
                continue
            # The timer is late if the event loop was blocked, or the machine asleep.
            if self._loop.time() - connection.idle_since < IDLE_TIMEOUT_S:
                return connection
            connection.close()
        return None

    async def open(self, *, is_reserved: bool = False) -> HttpClientConnection:
        """Return a connection: an idle one, or a new one.

        With `is_reserved` it may be one of those beyond the bound.

        Raises:
            TransportError: the server cannot be reached; the text says why.
        """
        is_first = is_reserved
        while (connection := self.take()) is None:
            if self._is_closed:
                raise TransportError("the client was closed")
            most = self._most + (_RESERVED if is_reserved else len(self._streams))
            if len(self._open) + self._opening < most:
                return await self._connect()
            self.on_full()
            connection = await self._wait(is_first=is_first)
            is_first = True  # it has waited already, should another be faster
            if connection is not None and connection.is_usable:
                return connection
        return connection

    async def _wait(self, *, is_first: bool) -> HttpClientConnection | None:
        """Wait for a connection that becomes idle, or for None: one more may be opened."""
        future: asyncio.Future[HttpClientConnection | None] = self._loop.create_future()
        if is_first:
            self._waiting.appendleft(future)
        else:
            self._waiting.append(future)
        try:
            return await future
        except asyncio.CancelledError:
            # What it was given is for the next that waits.
            if future.done() and not future.cancelled():
                given = future.result()
                if given is None:
                    self._wake(None)
                elif given.is_usable:
                    self.release(given)
            raise

    async def _connect(self) -> HttpClientConnection:
        self._opening += 1
        try:
            connection = await self._reach()
        except BaseException:  # a cancelled task too: another may be opened
            self._opening -= 1
            self._wake(None)
            raise
        self._opening -= 1
        if self._is_closed:
            connection.close()
            raise TransportError("the client was closed")
        self._open.add(connection)
        if self._quiet_timer is None:
            self._look_again()
        return connection

    async def _reach(self) -> HttpClientConnection:
        try:
            async with asyncio.timeout(self._connect_timeout):
                return await self._dial()
        except TransportError as error:  # of a proxy
            raise TransportError(f"{self._address} cannot be reached: {error.reason}") from None
        except TimeoutError:
            seconds = f"{self._connect_timeout:g} s"
            raise TransportError(f"{self._address} did not accept within {seconds}") from None
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", "") or error.reason or "TLS failed"
            raise TransportError(f"{self._address} cannot be trusted: {reason}") from None
        except OSError as error:
            reason = failure_text(error)
            raise TransportError(f"{self._address} cannot be reached: {reason}") from None
        except UnicodeError:
            raise TransportError(f"{self._address} has a host that is not valid") from None

    def _look_again(self) -> None:
        """Look for quiet responses after a while, if there can be any."""
        self._quiet_timer = None
        if self._read_timeout is not None and self._open:
            delay = self._read_timeout / _LOOKS
            self._quiet_timer = self._loop.call_later(delay, self._end_quiet)

    def _end_quiet(self) -> None:
        """End responses of which nothing came for too long."""
        for connection in [each for each in self._open if each.is_waiting]:
            connection.quiet += 1
            if connection.quiet > _LOOKS:
                connection.give_up(f"nothing came for {self._read_timeout:g} s")
        self._look_again()

    async def _dial(self) -> HttpClientConnection:
        address, loop = self._address, self._loop
        if address.unix is not None:
            path = str(address.socket.path)  # type: ignore[union-attr]  # a Unix
            _, made = await loop.create_unix_connection(self._make, path)
            return made
        name: str | None = None
        if self._context is not None:
            given = address.tls.server_name if isinstance(address.tls, Tls) else None
            name = given or address.host
        if self._proxy is not None:
            sock = await open_tunnel(self._proxy, address.host, address.port)
        else:
            sock = await dial(address.host, address.port)
            self.on_dialled(sock)
        _, made = await loop.create_connection(
            self._make, sock=sock, ssl=self._context, server_hostname=name
        )
        return made

    def _make(self) -> HttpClientConnection:
        return HttpClientConnection(_buffer_of(self._loop), self.release, self._lost)

    def release(self, connection: HttpClientConnection) -> None:
        """Take back a connection that is free for a request."""
        self._streams.discard(connection)
        if len(self._open) + self._opening > self._most + len(self._streams):
            connection.close()  # it was a reserved one, or a stream whose place was taken
            return
        if self._wake(connection):
            return
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._timer is None:
            self._timer = self._loop.call_later(IDLE_TIMEOUT_S, self._reap)

    def hold(self, connection: HttpClientConnection) -> None:
        """Note that a stream will stay on a connection: requests may use one more."""
        self._streams.add(connection)
        self._wake(None)

    def _lost(self, connection: HttpClientConnection) -> None:
        self._open.discard(connection)
        self._streams.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._wake(None)

    def _wake(self, connection: HttpClientConnection | None) -> bool:
        """Give a connection, or leave to open one, to the first that waits."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(connection)
                return True
        return False

    def _reap(self) -> None:
        """Close connections that were idle for too long."""
        now, self._timer = self._loop.time(), None
        while self._idle and now - self._idle[0].idle_since >= IDLE_TIMEOUT_S:
            self._idle.pop(0).close()
        if self._idle:
            oldest = self._idle[0].idle_since
            self._timer = self._loop.call_at(oldest + IDLE_TIMEOUT_S, self._reap)

    async def close(self) -> None:
        """Close every connection."""
        self._is_closed = True
        for timer in (self._timer, self._quiet_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._quiet_timer = None
        self._read_timeout = None
        for each in list(self._open):
            each.forget()
        while self._waiting:
            self._wake(None)
        while self._open:
            await asyncio.sleep(0)  # `abort` closes in the next turn of the loop


# Memory to read into, by event loop: a loop reads and parses in one step, so that the clients on
# it can share one.
_buffers: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview]] = WeakKeyDictionary()


def _buffer_of(loop: asyncio.AbstractEventLoop) -> memoryview:
    """Return the memory that a connection reads into."""
    if sys.platform == "win32" and isinstance(loop, asyncio.ProactorEventLoop):
        # This one reads in the background.
        return memoryview(bytearray(_OWN_READ_BYTES))
    buffer = _buffers.get(loop)
    if buffer is None:
        buffer = _buffers[loop] = memoryview(bytearray(_READ_BYTES))
    return buffer
