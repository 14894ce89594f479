"""What a transport is: a connection that carries whole frames, in order, both ways.

Anything with these members plugs into a server or a client, so each transport is one
module and knows neither. Bytes, framing and the outside world are its own affair; what a
frame says is not. The rules, which `trunkline.testing.transport_contract` checks for any transport:

* `on_message` and `on_error` are set by whoever uses the transport, before `connect`, and
  are called on the event loop that called it. Everything else is called there too: a
  transport belongs to one loop, and to the thread that runs it.
* Frames come out whole and in the order they went in. An `Oversize` (or another fault of
  the framing) stands in the place of a frame that could not be read.
* `send` returns at once, whatever the other side does; what it was given is written later,
  in order. `backlog` says how much is still to be written, and `on_drained` is called when
  it has become little again. What is sent after the end is dropped without a word: the end
  was, or is about to be, reported.
* The end is reported by `on_error` exactly once: with None when the other side, or `close`,
  ended the connection in order, else with what went wrong. No frame comes after it. None says
  that much and no more: where the two directions end one by one, `is_connected` stays true
  and what is sent is still written until `close`. (`printf ... | server` wants its answers.)
* `close` writes what was sent, for as long as the other side takes it, then ends; it may be
  called twice, at any time, by any task, and when it returns nothing of the transport is
  left: no task, descriptor, thread or child. Cancelling who waits for it does not stop it.
* For whoever joins two transports, and is fast on one side and slow on the other, a transport may
  also have `pause`, `resume`, `finish` and `is_abandoned`, as those of `framed` do.
* `connect` is called once. It raises TransportError when there is nothing to connect to,
  and then nothing is left either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from ..errors import TransportError
from ..jsonrpc.framing import Fault
from ..jsonrpc.limits import TransportName
from ..jsonrpc.policy import Policy

__all__ = ["HIGH_WATER", "LOW_WATER", "Address", "Frame", "Transport", "ignore"]

# What a transport hands up: a frame, or what stands in the place of one.
Frame: TypeAlias = bytes | Fault

# From this backlog on, in bytes, the other side reads too slowly: no new work is begun for it.
# 4 MiB is a handful of large results; a pipe of the system holds 64 KiB.
HIGH_WATER: Final = 4 * 1024 * 1024
# Below this a backlog is small again. Far enough from the other mark that a reader as fast as
# we write does not make work stop and start with every message.
LOW_WATER: Final = HIGH_WATER // 4


@runtime_checkable
class Transport(Protocol):
    """One connection that carries whole frames."""

    # Whose size limit and spec row it goes by.
    name: TransportName
    # Called with a frame and its route; a route is where an answer to it goes, for transports
    # that have more than one way back, and is handed to `send` unread.
    on_message: Callable[[Frame, Any], object]
    # Called once, when the connection has ended: None if in order.
    on_error: Callable[[TransportError | None], object]
    # Called when a backlog that was above HIGH_WATER has fallen below LOW_WATER.
    on_drained: Callable[[], object]

    @property
    def is_connected(self) -> bool:
        """Whether frames can be sent."""
        ...

    @property
    def backlog(self) -> int:
        """How many bytes were sent and are not written yet."""
        ...

    async def connect(self) -> None:
        """Open the connection, and begin to call `on_message`."""
        ...

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send one frame, without waiting."""
        ...

    async def close(self) -> None:
        """Write what was sent, and end the connection."""
        ...


@runtime_checkable
class Address(Protocol):
    """Where a client connects to, as a value: it can be kept, and connected to again."""

    def transport(self, policy: Policy) -> Transport:
        """Return a new transport to this address, not yet connected."""
        ...


def ignore(*_: object) -> None:
    """Stand in for a callback that nobody has set."""
