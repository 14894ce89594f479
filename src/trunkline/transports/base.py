"""The transport contract: a connection that carries whole frames, in order, both ways.

A server or a client works with any object that has these members. A transport handles bytes,
framing and I/O, and does not read the content of frames. The rules, which
`trunkline.testing.transport_contract` checks for any transport:

* The user of the transport sets `on_message` and `on_error` before `connect`; they are called
  on the event loop that ran `connect`. All other members are used there too: a transport
  belongs to one loop, and to the thread that runs it.
* Frames are delivered whole and in the order they were sent. An `Oversize` (or another framing
  fault) is delivered in place of a frame that could not be read.
* `send` does not wait; frames are written later, in order. `backlog` is the number of bytes
  still to be written, and `on_drained` is called when it falls below LOW_WATER. `written` is the
  number of bytes that have left the backlog: it grows for as long as the other side reads. Frames
  sent after the end are dropped silently, because the end was, or is about to be, reported.
* The end is reported by `on_error` exactly once: with None when the other side or `close` ended
  the connection normally, else with the error. No frame follows it. None means the end of the
  input only: where the two directions end separately, `is_connected` stays true and frames are
  still written until `close`. (`printf ... | server` expects its answers.)
* `close` writes what was sent, for as long as the other side reads it, then ends. It may be
  called twice, at any time, by any task. When it returns no task, descriptor, thread or child
  process is left. Cancelling a caller of `close` does not stop it.
* A transport may also have `pause`, `resume`, `finish` and `is_abandoned`, as those of `framed`
  do: a relay between a fast and a slow side needs them, and a server whose client does not read.
* A transport that repeats parts of a request beside its frame, as HTTP does in headers, may set
  `reads_requests` to True: `send` then gets the `SentRequest` as the route of each request of a
  client, and need not decode the frame. Other transports get no route there.
* A transport with one stream for each message has `answer` and `settled`, the `write_answer` and
  `on_settled` of a `Peer`.
* `connect` is called once; a second call raises TransportError and changes nothing. If the first
  raises TransportError, nothing is left open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from ..errors import TransportError
from ..jsonrpc.framing.framing import Fault
from ..jsonrpc.limits import TransportName
from ..jsonrpc.policy import Policy

__all__ = [
    "HIGH_WATER",
    "LOW_WATER",
    "Address",
    "Frame",
    "Transport",
    "TransportBase",
    "ignore",
    "log_raised",
]

_log: Final = logging.getLogger("trunkline.transports")

# What a transport delivers: a frame, or the fault in place of one that could not be read.
Frame: TypeAlias = bytes | Fault

# Above this backlog, in bytes, the other side reads too slowly: no new work is started for it.
# 4 MiB is a handful of large results; a pipe of the system holds 64 KiB.
HIGH_WATER: Final = 4 * 1024 * 1024
# Below this backlog, in bytes, work resumes. Far enough from HIGH_WATER that a reader as fast as
# the writer does not stop and restart work with every message.
LOW_WATER: Final = HIGH_WATER // 4


@runtime_checkable
class Transport(Protocol):
    """One connection that carries whole frames."""

    # Selects the size limit and the spec row.
    name: TransportName
    # Called with a frame and its route: an opaque token that `send` gets with the answer, for
    # transports with more than one stream to the other side.
    on_message: Callable[[Frame, Any], object]
    # Called once, when the connection has ended: with None if it ended normally.
    on_error: Callable[[TransportError | None], object]
    # Called when a backlog that was above HIGH_WATER has fallen below LOW_WATER.
    on_drained: Callable[[], object]

    @property
    def is_connected(self) -> bool:
        """Whether frames can be sent."""

    @property
    def backlog(self) -> int:
        """The number of bytes sent and not written yet."""

    @property
    def written(self) -> int:
        """The number of bytes that have left the backlog, in total."""

    async def connect(self) -> None:
        """Open the connection, and start to call `on_message`."""

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send one frame, without waiting."""

    async def close(self) -> None:
        """Write what was sent, and end the connection."""


@runtime_checkable
class Address(Protocol):
    """Where a client connects to, as a value that can be kept and used again."""

    def transport(self, policy: Policy) -> Transport:
        """Return a new transport to this address, not yet connected."""


def ignore(*_: object) -> None:
    """Do nothing: the default of a callback."""


class TransportBase:
    """The name of a transport, and its callbacks, which do nothing until they are set."""

    # No slots: pyright takes callbacks in slots for methods, and then this is not a `Transport`.

    def __init__(self, name: TransportName) -> None:
        self.name: TransportName = name
        self.on_message: Callable[[Frame, Any], object] = ignore
        self.on_error: Callable[[TransportError | None], object] = ignore
        self.on_drained: Callable[[], object] = ignore


def log_raised(error: BaseException, what: str) -> None:
    """Log an exception of a callback, redacted and cut: it may repeat what a peer sent."""
    # Imported here: most callbacks never raise.
    from ..exception_text import as_redacted

    _log.error("%s\n%s", what, as_redacted(error))
