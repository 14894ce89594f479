"""Requests we received that still await our answer.

Answering, cancelling and expiring a request all remove it from `IncomingRequests`, and
only the first of them finds it there: so a request is answered at most once.

The rules that live here, and only here:

* A sender's id names one open request at a time.            [MCP 2026-07-28, basic]
* A request is removed by identity, not by id: a late answer to a request
  whose id was reused must not answer the new request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, Struct

from ...redaction import show
from ..messages import RequestId
from .deadlines import Deadlines

__all__ = ["IncomingRequest", "IncomingRequests"]


class IncomingRequest(Struct, eq=False):
    """A request we received, and where its answer goes."""

    id: RequestId | None
    method: str
    # Raw JSON, the typed value where the codec knows the type, or UNSET.
    params: Any = UNSET
    # The transport's token for where the answer goes; opaque to other layers.
    route: Any = None
    # The place of its answer in the answer to a batch, if it came in one.
    slot: Any = None
    # The call as it was decoded: some dialects have members beside the params.
    envelope: Any = None
    # Bytes that it weighs, for those that limit how much they hold.
    size: int = 0
    # Its authenticated sender, where messages carry credentials themselves.
    owner: Any = None

    def set_params(self, params: Any) -> None:
        """Replace the params, also those of the envelope: they keep their frame in memory."""
        self.params = params
        if self.envelope is not None:
            self.envelope.params = params

    def __repr__(self) -> str:
        return f"IncomingRequest(id={show(self.id)}, method={show(self.method)})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        # A Struct's own would show params and route, secrets and all.
        return [("id", show(self.id)), ("method", show(self.method))]


class IncomingRequests:
    """The open requests of the other side."""

    __slots__ = ("_deadlines", "_open")

    def __init__(self) -> None:
        # In plain JSON-RPC null is an id, and names one request at a time too.
        self._open: dict[RequestId | None, IncomingRequest] = {}
        # Most servers bound their handlers by other means and never set one.
        self._deadlines: Deadlines[RequestId | None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[IncomingRequest]:
        return iter(list(self._open.values()))

    def __contains__(self, asked: IncomingRequest) -> bool:
        return self._open.get(asked.id) is asked

    def open(self, asked: IncomingRequest, *, deadline: float | None = None) -> bool:
        """Record a request; return False, and change nothing, if its id is open."""
        id = asked.id
        if id in self._open:
            return False
        if deadline is not None:
            self._set_deadline(id, deadline)
        self._open[id] = asked
        return True

    def set_deadline(self, asked: IncomingRequest, deadline: float) -> bool:
        """Set or replace the deadline of a request; return False if it is not open."""
        if self._open.get(asked.id) is not asked:
            return False
        self._set_deadline(asked.id, deadline)
        return True

    def _set_deadline(self, id: RequestId | None, deadline: float) -> None:
        if self._deadlines is None:
            self._deadlines = Deadlines()
        self._deadlines.set(id, deadline)

    def find(self, id: RequestId) -> IncomingRequest | None:
        """Return the open request with this id."""
        return self._open.get(id)

    def take(self, asked: IncomingRequest) -> bool:
        """Remove a request, to answer or drop it; return False if it is not open any more."""
        id = asked.id
        if self._open.get(id) is not asked:
            return False
        del self._open[id]
        if self._deadlines is not None:
            self._deadlines.drop(id)
        return True

    def expire(self, now: float) -> list[IncomingRequest]:
        """Remove and return the requests whose deadline has passed."""
        due = () if self._deadlines is None else self._deadlines.due(now)
        return [self._open.pop(id) for id in due]

    def next_deadline(self) -> float | None:
        """Return the earliest deadline."""
        return None if self._deadlines is None else self._deadlines.earliest()

    def drain(self) -> list[IncomingRequest]:
        """Remove and return all requests, oldest first, because the connection is lost."""
        everything = list(self._open.values())
        self._open.clear()
        self._deadlines = None
        return everything
