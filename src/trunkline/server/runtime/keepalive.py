"""Timeouts of one socket connection: pings, and closing of dead, idle and slow connections.

An open pipe is alive; a socket may lead to a machine that is gone, or to a program that forgot
about it. `KeepAlive` checks byte counters on a timer and costs nothing per message.

The rules that live here, and only here:

* In a revision with `ping`, a silent client is pinged; if it stays silent, its connection is lost.
                                                       [MCP 2025-11-25, basic/utilities/ping]
* A client that cannot be pinged may be silent while it has a call or a subscription open. Otherwise
  it is idle after `idle` seconds, and its connection is closed in order.
* A message that has begun has `message_timeout` seconds, plus one for each 16 KiB of it that comes;
  then its connection is lost, whatever it has open.
* A client that reads nothing of its backlog for `idle` seconds is lost, whatever it has open: its
  unread data is held in memory.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

from ...errors import LocalProtocolError, TransportError
from ...mcp.names import spoken
from ...spec.lookup import method as method_row
from ...transports.receive_limits import receive_timeout

if TYPE_CHECKING:
    from ...engine.limits import SocketLimits
    from ..dispatch.connection import Connection
    from ..dispatch.initialize import HandshakeSession

__all__ = ["ByteCounters", "KeepAlive"]

_log: Final = logging.getLogger("trunkline.server")

# Checks within the shortest of the timeouts: a timeout is noticed at most a quarter late.
_CHECKS_PER_TIMEOUT: Final = 4


class ByteCounters(Protocol):
    """A transport that counts the bytes it has received and written."""

    received: int
    # As many as were received when the last message was complete.
    completed: int
    peer: str

    @property
    def is_receiving(self) -> bool:
        """Whether a message has begun, and its rest is awaited."""

    @property
    def backlog(self) -> int:
        """Bytes sent and not written yet."""

    @property
    def written(self) -> int:
        """Bytes the operating system has accepted."""


class KeepAlive:
    """Keep-alive and idle timer of one connection, from `start` to `stop`."""

    def __init__(
        self, connection: Connection, transport: ByteCounters, limits: SocketLimits
    ) -> None:
        self._connection = connection
        self._transport = transport
        self._limits = limits
        given = (limits.keep_alive, limits.idle, limits.message_timeout)
        times = [each for each in given if each is not None]
        self._interval = min(times) / _CHECKS_PER_TIMEOUT if times else None
        self._received = 0
        self._silence = 0.0
        self._has_pinged = False
        self._written = 0
        self._unread = 0.0  # seconds in which none of the backlog was written
        # Of an unfinished message: the seconds since a check found it, the bytes received then,
        # and `completed`, which the next message changes.
        self._receiving = 0.0
        self._received_then = 0
        self._completed = -1
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timer, unless all timeouts are disabled."""
        if self._interval is not None:
            self._timer = self._connection.loop.call_later(self._interval, self._check)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        transport, interval = self._transport, self._interval or 0.0
        before, self._written = self._written, transport.written
        # A client that reads a backlog is alive, though the ping may be at its end. Without a
        # backlog, written bytes prove nothing: the operating system has buffered them.
        is_reading = self._written != before and transport.backlog > 0
        if transport.received != self._received or is_reading:
            self._received, self._silence, self._has_pinged = transport.received, 0.0, False
        else:
            self._silence += interval
        is_stuck = transport.backlog > 0 and self._written == before
        self._unread = self._unread + interval if is_stuck else 0.0
        if self._limits.message_timeout is None or not transport.is_receiving:
            self._completed = -1
        elif transport.completed == self._completed:
            self._receiving += interval
        else:
            self._completed, self._received_then = transport.completed, transport.received
            self._receiving = 0.0
        if not self._act():
            self._timer = self._connection.loop.call_later(interval, self._check)

    def _act(self) -> bool:
        """Ping or close according to the counters; return True if the connection ends."""
        connection, limits, silence = self._connection, self._limits, self._silence
        session = connection.session
        alive, idle = limits.keep_alive, limits.idle
        if idle is not None and self._unread >= idle:
            connection.end(TransportError(f"the client has read nothing for {self._unread:g} s"))
            return True
        if self._is_too_slow():
            connection.end(TransportError(f"a message was not complete in {self._receiving:g} s"))
            return True
        if (
            alive is not None
            and session is not None
            and method_row("ping", session.rev.revision) is not None
        ):
            if silence >= alive and not self._has_pinged:
                self._has_pinged = True
                self._ping(session)
            elif silence >= 2 * alive:
                connection.end(TransportError(f"the client has not answered for {silence:g} s"))
                return True
        elif (
            idle is not None
            and silence >= idle
            and not (connection.is_busy or self._transport.backlog)
        ):
            _log.info("connection closed: idle for %g s", silence)
            connection.end()
            return True
        return False

    def _is_too_slow(self) -> bool:
        """Return True if a message arrives below the least rate."""
        seconds = self._limits.message_timeout
        if seconds is None or self._completed < 0:
            return False
        received = self._transport.received - self._received_then
        return self._receiving >= receive_timeout(seconds, received)

    def _ping(self, session: HandshakeSession) -> None:
        connection = self._connection
        answered: asyncio.Future[Any] = connection.loop.create_future()
        # Any response shows that the client is alive, an error too.
        answered.add_done_callback(lambda future: future.cancelled() or future.exception())
        try:
            method = spoken("ping", session.rev.policy)
            connection.peer.send_request(method, waiter=answered)
        except LocalProtocolError as error:
            _log.debug("ping not sent: %s", error)
