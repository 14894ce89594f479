"""Match incoming replies to the requests we sent.

A `OutgoingRequests` is one side's memory of its own unanswered requests. It holds no
clock, task or byte: the peer tells it what went out and what came back, and it
answers one question, "whose reply is this?".

The rules that live here, and only here:

* An id names one open request at a time.              [MCP 2026-07-28, basic]
* Ids match by type and value: 7 and "7" are two ids.  [JSON-RPC 2.0, section 5]
  The codec lets only str and int through, so an id is its own dict key.
* A request that draws ONE reply closes on the first;
  one that draws MANY, on an error or a release.       [A2A 1.0, section 9.4.2]
* A reply and a deadline race; whoever takes the request out first has it.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from ..errors import LocalProtocolError
from ..redaction import show
from ..spec.jsonrpc import LOCAL_RULES
from .deadlines import Deadlines
from .messages import RequestId

__all__ = ["OutgoingRequests", "Pending", "Replies", "UnmatchedReply"]

# Closed ids are kept only to tell a late reply from an invented one. The bound
# keeps a long session, or a hostile peer, from growing that memory.
CLOSED_IDS_KEPT: Final = 256


class Replies(Enum):
    """How many replies a request draws; a column of the method table."""

    ONE = "one"
    MANY = "many"


class UnmatchedReply(Enum):
    """Why a reply belongs to no open request."""

    LATE = "we stopped waiting"  # legal: our cancel crossed the reply on the wire
    DUPLICATE = "already answered"
    UNKNOWN = "never asked"


# To look a member up in its class takes longer than to take a request out.
_ONE: Final = Replies.ONE
_DUPLICATE: Final = UnmatchedReply.DUPLICATE


class Pending(Struct, frozen=True, eq=False):
    """A request we sent and still expect something for."""

    id: RequestId
    method: str
    replies: Replies = Replies.ONE
    # Whatever the layer above waits with: it is handed back with the reply, unread.
    waiter: Any = None

    def __repr__(self) -> str:
        return f"Pending(id={show(self.id)}, method={show(self.method)}, replies={self.replies})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        # A Struct's own would show the waiter, whatever that holds.
        return [("id", show(self.id)), ("method", show(self.method))]


class OutgoingRequests:
    """The open requests of one side of one session."""

    __slots__ = ("_closed", "_closed_in_order", "_deadlines", "_open")

    def __init__(self) -> None:
        self._open: dict[RequestId, Pending] = {}
        # Which, and in which order: an OrderedDict would know both, and takes twice as long.
        self._closed: dict[RequestId, UnmatchedReply] = {}
        self._closed_in_order: deque[RequestId] = deque()
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
        """Say whose reply this is, closing the request if it expects no more."""
        request = self._open.get(reply_id)
        if request is None:
            return self._closed.get(reply_id, UnmatchedReply.UNKNOWN)
        if is_error or request.replies is _ONE:
            self._close(reply_id, _DUPLICATE)
        return request

    def find(self, id: RequestId) -> Pending | None:
        """Return the open request with this id, for progress that names it."""
        return self._open.get(id)

    def remembers(self, id: RequestId) -> bool:
        """Say whether a request with this id is open, or was until lately."""
        return id in self._open or id in self._closed

    def set_deadline(self, request: Pending, deadline: float) -> bool:
        """Give an open request a deadline, in place of any it had; say whether it was open."""
        if self._open.get(request.id) is not request:
            return False
        self._deadlines.set(request.id, deadline)
        return True

    def release(self, request: Pending) -> bool:
        """Stop waiting, because we cancelled or saw the stream end; say whether we still were."""
        if self._open.get(request.id) is not request:
            return False
        self._close(request.id, UnmatchedReply.LATE)
        return True

    def expire(self, now: float) -> list[Pending]:
        """Release what is due, so that a reply from now on is late."""
        return [self._close(id, UnmatchedReply.LATE) for id in self._deadlines.due(now)]

    def next_deadline(self) -> float | None:
        """Return when `expire` will next have something to do."""
        return self._deadlines.earliest()

    def drain(self) -> list[Pending]:
        """Release everything, oldest first, because the connection is gone."""
        return [self._close(id, UnmatchedReply.LATE) for id in list(self._open)]

    def _close(self, id: RequestId, stray: UnmatchedReply) -> Pending:
        request = self._open.pop(id)
        self._deadlines.drop(id)
        self._closed[id] = stray
        self._closed_in_order.append(id)
        if len(self._closed) > CLOSED_IDS_KEPT:
            del self._closed[self._closed_in_order.popleft()]
        return request
