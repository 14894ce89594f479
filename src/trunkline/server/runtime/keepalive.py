"""Whether a client that says nothing is still there, and how long it may say nothing.

A pipe that is open is alive; a socket may lead to a machine that is gone, or to a program that
forgot about it. `KeepAlive` looks at one connection now and then, and costs its messages nothing.

The rules that live here, and only here:

* Where the revision has `ping`, a silent client is asked, and one that does not answer is lost.
                                                       [MCP 2025-11-25, basic/utilities/ping]
* A client that cannot be asked may be silent for as long as something of its own is open: a
  call, a stream of changes. After that it is idle, and its connection is closed in order.
* A client that takes nothing of what waits for it is lost, whatever it has open: what it does
  not read is held in memory.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

from ...errors import LocalProtocolError, TransportError
from ...mcp.names import spoken
from ...spec.lookup import method as method_row

if TYPE_CHECKING:
    from ..dispatch.connection import Connection
    from ..settings import SocketLimits

__all__ = ["ByteCounters", "KeepAlive"]

_log: Final = logging.getLogger("trunkline.server")

# How often one looks in the time that is to be noticed.
_CHECKS_PER_TIMEOUT: Final = 4


class ByteCounters(Protocol):
    """A transport that counts, in bytes, what it has received and what it has still to write."""

    received: int
    peer: str

    @property
    def backlog(self) -> int:
        """How many bytes were sent and are not written yet."""
        ...

    @property
    def written(self) -> int:
        """How many bytes the other side has taken."""
        ...


class KeepAlive:
    """Looks after one connection from `start` to `stop`."""

    def __init__(
        self, connection: Connection, transport: ByteCounters, limits: SocketLimits
    ) -> None:
        self._connection = connection
        self._transport = transport
        self._limits = limits
        times = [each for each in (limits.keep_alive, limits.idle) if each is not None]
        self._step = min(times) / _CHECKS_PER_TIMEOUT if times else None
        self._seen = 0
        self._silence = 0.0
        self._has_asked = False
        self._written = 0
        self._unread = 0.0  # for how long nothing of a backlog was taken
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to look."""
        if self._step is not None:
            self._timer = self._connection.loop.call_later(self._step, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        transport, step = self._transport, self._step or 0.0
        before, self._written = self._written, transport.written
        # Who reads is there, and may have to read much before it comes to our question. What was
        # written while nothing is left says nothing: the system has taken it.
        is_reading = self._written != before and transport.backlog > 0
        if transport.received != self._seen or is_reading:
            self._seen, self._silence, self._has_asked = transport.received, 0.0, False
        else:
            self._silence += step
        is_stuck = transport.backlog > 0 and self._written == before
        self._unread = self._unread + step if is_stuck else 0.0
        if not self._act():
            self._timer = self._connection.loop.call_later(step, self._look)

    def _act(self) -> bool:
        """Do what the silence calls for; say whether that ends the connection."""
        connection, limits, silence = self._connection, self._limits, self._silence
        alive, idle = limits.keep_alive, limits.idle
        if idle is not None and self._unread >= idle:
            connection.end(TransportError(f"the client has read nothing for {self._unread:g} s"))
            return True
        if alive is not None and self._can_be_asked():
            if silence >= alive and not self._has_asked:
                self._has_asked = True
                self._ask()
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

    def _can_be_asked(self) -> bool:
        session = self._connection.session
        return session is not None and method_row("ping", session.surface.revision) is not None

    def _ask(self) -> None:
        connection = self._connection
        session = connection.session
        if session is None:
            return
        answered: asyncio.Future[Any] = connection.loop.create_future()
        # Any answer will do, an error too: what counts is that something came.
        answered.add_done_callback(lambda future: future.cancelled() or future.exception())
        try:
            method = spoken("ping", session.surface.policy)
            connection.peer.send_request(method, waiter=answered)
        except LocalProtocolError as error:
            _log.debug("ping could not be sent: %s", error)
