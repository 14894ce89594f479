"""A pair of transports joined in memory: what one sends, the other receives.

For a server and a client in one program, and for tests. Frames are not copied, framed or
limited, and `send` calls the other end's `on_message` before it returns, in the same tick of the
event loop. Both ends belong to one loop, and to the thread that runs it.

The rules that live here, and only here:

* A frame sent while another is being delivered is queued, and the outermost `send` delivers the
  queue. So order is kept, and two ends that answer each other do not recurse.
* Frames are delivered once both ends are connected. If one end closes without having connected,
  the other reports the end, now or when it connects.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from ..errors import TransportError
from .base import HIGH_WATER, LOW_WATER, TransportBase, ignore, log_raised

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..jsonrpc.messages import RequestId

__all__ = ["MemoryTransport", "memory_pair"]


# After so many frames the event loop gets a turn: two ends that answer each other for ever would
# block it.
_MAX_FRAMES_PER_TURN: Final = 1000


def memory_pair() -> tuple[MemoryTransport, MemoryTransport]:
    """Return two joined transports, neither connected yet."""
    wire = _Wire()
    one, other = MemoryTransport(wire), MemoryTransport(wire)
    one._other, other._other = other, one
    return one, other


class MemoryTransport(TransportBase):
    """One end of a pair; `memory_pair` makes them."""

    _other: MemoryTransport
    # Called with the id of a request and what its handler raised; set by `raise_exceptions`.
    on_handler_error: Callable[[RequestId, Exception], object]

    def __init__(self, wire: _Wire) -> None:
        super().__init__("default")
        # Bytes that are queued until the other end connects, or for their turn.
        self.backlog = 0
        # Those of them that the other end has received since; not what it got at once.
        self.written = 0
        self._wire = wire
        self._connected = False
        self._ended = False
        # Why the other end closed, if it failed.
        self._failure: TransportError | None = None
        self._is_high = False  # on_drained is owed

    @property
    def is_connected(self) -> bool:
        """Whether frames can be sent."""
        return self._connected and not self._ended

    async def connect(self) -> None:
        """Connect this end, and receive what the other end has sent so far."""
        if self._connected or self._ended:
            raise TransportError("a transport connects once")
        self._connected = True
        if self._other._connected or self._other._ended:
            self._wire.is_open = True
            self._wire.start(asyncio.get_running_loop())

    def send(self, frame: bytes, route: Any = None) -> None:
        """Deliver one frame to the other end, now or in its turn."""
        wire = self._wire
        if wire.is_idle:
            wire.is_idle = False
            try:
                self._other.on_message(frame, None)
            except Exception as error:  # noqa: BLE001  # the sender did not fail
                log_raised(error, "memory transport: on_message raised, frame dropped")
            finally:
                if wire.waiting:
                    wire.deliver()
                else:
                    wire.is_idle = wire.is_open
        elif self._connected and not self._ended:
            self.backlog += len(frame)
            self._is_high = self._is_high or self.backlog > HIGH_WATER
            wire.waiting.append((self._other, frame))

    async def fail(self, error: TransportError) -> None:
        """Close both ends; the other end reports `error`."""
        self._other._failure = error
        await self.close()

    def report_exception(self, id: RequestId, error: BaseException) -> None:
        """Fail a request of the other end with what its handler raised, if it asked for that."""
        if hasattr(self._other, "on_handler_error") and isinstance(error, Exception):
            self._other.on_handler_error(id, error)

    def raise_exceptions(self) -> None:
        """Let requests of this end fail with what the handlers of the other end raise."""
        self.on_handler_error = ignore  # until a session sets its own

    async def close(self) -> None:
        """Close both ends; the other end reports it after it has received what was sent."""
        if self._ended:
            return
        wire = self._wire
        wire.waiting.append((self._other, None))
        if not self._connected:
            self._end(report=False)
            if self._other._connected:
                wire.start(asyncio.get_running_loop())
            return
        if wire.is_idle:
            wire.deliver()
        # Not before: what was sent by now has reached the other end, and its answers this one.
        if not self._ended:
            self._end()

    def _end(self, *, report: bool = True) -> None:
        self._ended = True
        self._wire.is_open = self._wire.is_idle = False
        if not report:
            return
        try:
            self.on_error(self._failure)
        except Exception as error:  # noqa: BLE001  # the caller of `close` did not fail
            log_raised(error, "memory transport: on_error raised")


class _Wire:
    """The queue between two ends, and whether it is being delivered."""

    __slots__ = ("_loop", "is_idle", "is_open", "waiting")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        # Both ends are connected and neither has ended.
        self.is_open = False
        # Open, the queue is empty, and no delivery runs: a frame is delivered directly.
        self.is_idle = False
        # The receiver and the frame; None is the end.
        self.waiting: deque[tuple[MemoryTransport, bytes | None]] = deque()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.deliver()

    def deliver(self) -> None:
        """Deliver the queue, and what is sent meanwhile."""
        self.is_idle = False
        waiting = self.waiting
        left = _MAX_FRAMES_PER_TURN
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
                sender.written += len(frame)
                if sender._is_high:
                    self._tell_if_drained(sender)
                if end._ended:
                    continue
                try:
                    end.on_message(frame, None)
                except Exception as error:  # noqa: BLE001  # the sender did not fail
                    log_raised(error, "memory transport: on_message raised, frame dropped")
        finally:
            # Also after a KeyboardInterrupt: what is left is delivered before new frames.
            if waiting and self._loop is not None:
                self._loop.call_soon(self.deliver)
            else:
                self.is_idle = self.is_open

    def _tell_if_drained(self, sender: MemoryTransport) -> None:
        if sender.backlog < LOW_WATER:
            sender._is_high = False
            if self._loop is not None and not sender._ended:
                self._loop.call_soon(sender.on_drained)
