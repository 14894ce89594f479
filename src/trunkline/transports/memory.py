"""Two transports joined in one process: what one sends, the other is called with.

For a server and a client in one program, and for tests. Nothing is copied, framed or limited,
and no tick of the event loop passes: `send` calls the other end's `on_message` before it
returns. Both ends belong to one loop, and to the thread that runs it.

The rules that live here, and only here:

* A frame sent while another is being delivered waits for its turn, and whoever began to
  deliver goes on until nothing waits. So order is kept, and two ends that answer each other
  do not call each other deeper and deeper.
* Nothing is delivered before both ends are connected; until then frames wait. An end that
  leaves without having connected is told to the other, now or when that one connects.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from ..errors import TransportError
from .base import HIGH_WATER, LOW_WATER, ignore

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..jsonrpc.limits import TransportName
    from .base import Frame

__all__ = ["MemoryTransport", "memory_pair"]

_log: Final = logging.getLogger("trunkline.transports")

# Two ends that answer each other without end would keep the loop from everything else; after
# so many frames in one go it gets a turn.
_AT_ONCE: Final = 1000


def memory_pair() -> tuple[MemoryTransport, MemoryTransport]:
    """Return two ends that are joined to each other, neither connected yet."""
    wire = _Wire()
    one, other = MemoryTransport(wire), MemoryTransport(wire)
    one._other, other._other = other, one
    return one, other


class MemoryTransport:
    """One end of a pair; `memory_pair` makes them."""

    __slots__ = (
        "_connected",
        "_ended",
        "_is_high",
        "_other",
        "_wire",
        "backlog",
        "name",
        "on_drained",
        "on_error",
        "on_message",
    )

    _other: MemoryTransport

    def __init__(self, wire: _Wire) -> None:
        self.name: TransportName = "default"
        self.on_message: Callable[[Frame, Any], object] = ignore
        self.on_error: Callable[[TransportError | None], object] = ignore
        self.on_drained: Callable[[], object] = ignore
        # The bytes that wait for the other end to connect, or for their turn.
        self.backlog = 0
        self._wire = wire
        self._connected = False
        self._ended = False
        self._is_high = False  # on_drained is owed

    @property
    def is_connected(self) -> bool:
        """Whether frames can be sent."""
        return self._connected and not self._ended

    async def connect(self) -> None:
        """Take part, and receive what the other end has sent so far."""
        if self._connected or self._ended:
            raise TransportError("a transport connects once")
        self._connected = True
        if self._other._connected or self._other._ended:
            self._wire.open(asyncio.get_running_loop())

    def send(self, frame: bytes, route: Any = None) -> None:
        """Deliver one frame to the other end, now or in its turn."""
        wire = self._wire
        if wire.is_idle:
            wire.is_idle = False
            try:
                self._other.on_message(frame, None)
            except Exception:  # noqa: BLE001  # not the fault of who sent
                _log.exception("on_message raised")
            finally:
                if wire.waiting:
                    wire.deliver()
                else:
                    wire.is_idle = wire.is_open
        elif self._connected and not self._ended:
            self.backlog += len(frame)
            self._is_high = self._is_high or self.backlog > HIGH_WATER
            wire.waiting.append((self._other, frame))

    async def close(self) -> None:
        """End both ends; the other one is told after it has received what was sent."""
        if self._ended:
            return
        wire = self._wire
        wire.waiting.append((self._other, None))
        if not self._connected:
            self._end(report=False)
            if self._other._connected:
                wire.give_up(asyncio.get_running_loop())
            return
        if wire.is_idle:
            wire.deliver()
        # Not before: what was sent by now has reached the other end, and its answers this one.
        if not self._ended:
            self._end()

    def _end(self, *, report: bool = True) -> None:
        """Receive nothing more, send nothing more, and say so."""
        self._ended = True
        self._wire.end()
        if not report:
            return
        try:
            self.on_error(None)
        except Exception:  # noqa: BLE001  # not the fault of who closed
            _log.exception("on_error raised")


class _Wire:
    """What lies between two ends: who is delivering, and what waits for delivery."""

    __slots__ = ("_loop", "is_idle", "is_open", "waiting")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        # Both ends are connected and neither has ended.
        self.is_open = False
        # Open, nothing waits, and nobody is delivering: a frame goes straight through.
        self.is_idle = False
        # For whom, and what; None is the end.
        self.waiting: deque[tuple[MemoryTransport, bytes | None]] = deque()

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to deliver: both ends have connected, or one came and went."""
        self._loop = loop
        self.is_open = True
        self.deliver()

    def give_up(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell an end that waits that the other one will not come."""
        self._loop = loop
        self.deliver()

    def end(self) -> None:
        """Let nothing go straight through any more."""
        self.is_open = self.is_idle = False

    def deliver(self) -> None:
        """Hand out what waits, and what is sent meanwhile."""
        self.is_idle = False
        waiting = self.waiting
        left = _AT_ONCE
        try:
            while waiting and left:
                left -= 1
                end, frame = waiting.popleft()
                if frame is None:
                    if not end._ended:
                        end._end()
                    continue
                sender = end._other
                sender.backlog -= len(frame)
                if sender._is_high:
                    self._tell_if_drained(sender)
                if end._ended:
                    continue
                try:
                    end.on_message(frame, None)
                except Exception:  # noqa: BLE001  # not the fault of who sent
                    _log.exception("on_message raised")
        finally:
            # Also after a KeyboardInterrupt: what is left has its turn before anything new.
            if waiting and self._loop is not None:
                self._loop.call_soon(self.deliver)
            else:
                self.is_idle = self.is_open

    def _tell_if_drained(self, sender: MemoryTransport) -> None:
        if sender.backlog < LOW_WATER:
            sender._is_high = False
            if self._loop is not None and not sender._ended:
                self._loop.call_soon(sender.on_drained)
