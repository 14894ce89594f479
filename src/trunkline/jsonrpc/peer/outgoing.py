"""Requests we sent that still await a reply.

`OutgoingRequests` maps ids to open requests. It has no clock, task or I/O: the
peer records what it sent and asks which request a reply belongs to.

The rules that live here, and only here:

* An id names one open request at a time.              [MCP 2026-07-28, basic]
* Ids match by type and value: 7 and "7" differ.       [JSON-RPC 2.0, section 5]
  The codec accepts only str and int, so an id is its own dict key.
* A request with ONE reply closes on the first reply;
  one with MANY, on an error or on release.            [A2A 1.0, section 9.4.2]
* Of a reply and a deadline, the first to close the request wins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from ...errors import LocalProtocolError
from ...redaction import show
from ...spec.jsonrpc import LOCAL_RULES
from ..messages import RequestId
from .deadlines import Deadlines

__all__ = ["OutgoingRequests", "Pending", "Replies", "UnmatchedReply"]

# Closed ids are kept to tell a late reply from an unknown one. The bound limits what a long
# session or a hostile peer can make us remember.
MAX_CLOSED_IDS: Final = 256


class Replies(Enum):
    """How many replies a request has; a column of the method table."""

    ONE = "one"
    MANY = "many"


class UnmatchedReply(Enum):
    """Why a reply matches no open request."""

    LATE = "we stopped waiting"  # legal: our cancel crossed the reply on the wire
    DUPLICATE = "already answered"
    UNKNOWN = "never asked"


# Looking up an enum member in its class takes longer than closing a request.
_ONE: Final = Replies.ONE
_DUPLICATE: Final = UnmatchedReply.DUPLICATE


class Pending(Struct, frozen=True, eq=False):
    """An open request of ours."""

    id: RequestId
    method: str
    replies: Replies = Replies.ONE
    # Of the layer above, such as a future; passed back with the reply.
    waiter: Any = None
    # Decodes a result, and raises one of `decode_errors.UNREADABLE` if it cannot. The peer calls it
    # for a large reply, whose result is then the value in place of raw JSON.
    read: Callable[[Any], Any] | None = None

    def __repr__(self) -> str:
        return f"Pending(id={show(self.id)}, method={show(self.method)}, replies={self.replies})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        # A Struct's own would show the waiter, whatever that holds.
        return [("id", show(self.id)), ("method", show(self.method))]


# Of a side that has sent no request: an empty deque takes 600 bytes.
_NO_IDS: Final[deque[RequestId]] = deque(maxlen=0)


class OutgoingRequests:
    """The open requests of one side of one connection."""

    __slots__ = ("_closed", "_closed_in_order", "_deadlines", "_open")

    def __init__(self) -> None:
        self._open: dict[RequestId, Pending] = {}
        # Two containers, because an OrderedDict takes twice as long.
        self._closed: dict[RequestId, UnmatchedReply] = {}
        self._closed_in_order = _NO_IDS
        self._deadlines: Deadlines[RequestId] = Deadlines()

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, id: RequestId) -> bool:
        return id in self._open

    def open(self, request: Pending, *, deadline: float | None = None) -> None:
        """Record `request` as sent.

        Raises:
            LocalProtocolError: its id is still open; nothing is changed.
            ValueError: the deadline is NaN; nothing is changed.
        """
        id = request.id
        if id in self._open:
            rule = "jsonrpc.id.in-use"
            raise LocalProtocolError(rule, got=id, expected=LOCAL_RULES[rule])
        if deadline is not None:
            self._deadlines.set(id, deadline)
        if id in self._closed:
            del self._closed[id]
            self._closed_in_order.remove(id)
        self._open[id] = request

    def match(self, reply_id: RequestId, *, is_error: bool) -> Pending | UnmatchedReply:
        """Return the request a reply belongs to; close it if no more replies are due."""
        request = self._open.get(reply_id)
        if request is None:
            return self._closed.get(reply_id, UnmatchedReply.UNKNOWN)
        if is_error or request.replies is _ONE:
            # As `_close`, without another call: most requests end here.
            del self._open[reply_id]
            self._deadlines.drop(reply_id)
            closed = self._closed
            closed[reply_id] = _DUPLICATE
            if self._closed_in_order is _NO_IDS:
                self._closed_in_order = deque()
            self._closed_in_order.append(reply_id)
            if len(closed) > MAX_CLOSED_IDS:
                del closed[self._closed_in_order.popleft()]
        return request

    def find(self, id: RequestId) -> Pending | None:
        """Return the open request with this id."""
        return self._open.get(id)

    def remembers(self, id: RequestId) -> bool:
        """Return True if a request with this id is open, or was closed lately."""
        return id in self._open or id in self._closed

    def set_deadline(self, request: Pending, deadline: float) -> bool:
        """Set or replace the deadline of a request; return False if it is not open."""
        if self._open.get(request.id) is not request:
            return False
        self._deadlines.set(request.id, deadline)
        return True

    def release(self, request: Pending) -> bool:
        """Close a request that was cancelled or lost its stream; return False if not open."""
        if self._open.get(request.id) is not request:
            return False
        self._close(request.id, UnmatchedReply.LATE)
        return True

    def expire(self, now: float) -> list[Pending]:
        """Release the requests whose deadline has passed; later replies are LATE."""
        return [self._close(id, UnmatchedReply.LATE) for id in self._deadlines.due(now)]

    def next_deadline(self) -> float | None:
        """Return the earliest deadline."""
        return self._deadlines.earliest()

    def drain(self) -> list[Pending]:
        """Release all requests, oldest first, because the connection is lost."""
        return [self._close(id, UnmatchedReply.LATE) for id in list(self._open)]

    def _close(self, id: RequestId, reason: UnmatchedReply) -> Pending:
        request = self._open.pop(id)
        self._deadlines.drop(id)
        self._closed[id] = reason
        if self._closed_in_order is _NO_IDS:
            self._closed_in_order = deque()
        self._closed_in_order.append(id)
        if len(self._closed) > MAX_CLOSED_IDS:
            del self._closed[self._closed_in_order.popleft()]
        return request
