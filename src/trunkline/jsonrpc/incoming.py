"""What we have been asked and not yet answered.

An `IncomingRequests` is one side's memory of the requests it owes an answer. Answering,
cancelling and running out of time all take the request out, and only the first
of them finds it there: so a request is answered at most once, whatever races.

The rules that live here, and only here:

* A sender's id names one open request at a time.            [MCP 2026-07-28, basic]
* A request is taken out by itself, not by its id: a late answer to a request
  whose id was used again must not take the new request's place.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct

from ..redaction import show
from .deadlines import Deadlines
from .messages import RequestId

__all__ = ["IncomingRequest", "IncomingRequests"]


class IncomingRequest(Struct, frozen=True, eq=False):
    """A request we received: what was asked, and where its answer goes."""

    id: RequestId | None
    method: str
    # Raw JSON, the typed value where the codec knows the type, or UNSET.
    params: Any = UNSET
    # The transport's token for where the answer goes; opaque to everybody else.
    route: Any = None
    # The place of its answer in the answer to a batch, if it came in one.
    slot: Any = None
    # The call as it was read: some dialects carry more in it than params.
    envelope: Any = None

    def __repr__(self) -> str:
        return f"Asked(id={show(self.id)}, method={show(self.method)})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        # A Struct's own would show params and route, secrets and all.
        return [("id", show(self.id)), ("method", show(self.method))]


class IncomingRequests:
    """The requests of the other side that we have not answered yet."""

    __slots__ = ("_deadlines", "_has_deadlines", "_open")

    def __init__(self) -> None:
        # Null is an id where plain JSON-RPC is spoken; it too names one request at a time.
        self._open: dict[RequestId | None, IncomingRequest] = {}
        self._deadlines: Deadlines[RequestId | None] = Deadlines()
        # Many a server bounds its handlers by other means and never sets one.
        self._has_deadlines = False

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, asked: IncomingRequest) -> bool:
        return self._open.get(asked.id) is asked

    def open(self, asked: IncomingRequest, *, deadline: float | None = None) -> bool:
        """Take a request in; say no, and change nothing, if its id is that of an open one."""
        id = asked.id
        if id in self._open:
            return False
        if deadline is not None:
            self._set_deadline(id, deadline)
        self._open[id] = asked
        return True

    def set_deadline(self, asked: IncomingRequest, deadline: float) -> bool:
        """Give an open request a deadline, in place of any it had; say whether it was open."""
        if self._open.get(asked.id) is not asked:
            return False
        self._set_deadline(asked.id, deadline)
        return True

    def _set_deadline(self, id: RequestId | None, deadline: float) -> None:
        self._deadlines.set(id, deadline)
        self._has_deadlines = True

    def find(self, id: RequestId) -> IncomingRequest | None:
        """Return the open request with this id, for a cancel that names it."""
        return self._open.get(id)

    def lighten(self, asked: IncomingRequest) -> IncomingRequest:
        """Let go of what an open request asked with, and return it as it is known from now on.

        For requests that stay open for long: their params, which have been read, may be large.
        """
        light = IncomingRequest(asked.id, asked.method, UNSET, asked.route, asked.slot)
        if self._open.get(asked.id) is asked:
            self._open[asked.id] = light
        return light

    def take(self, asked: IncomingRequest) -> bool:
        """Take a request out, to answer or to drop it; say whether it was still open."""
        id = asked.id
        if self._open.get(id) is not asked:
            return False
        del self._open[id]
        if self._has_deadlines:
            self._deadlines.drop(id)
        return True

    def expire(self, now: float) -> list[IncomingRequest]:
        """Take out what is due; nobody else can answer it from now on."""
        return [self._open.pop(id) for id in self._deadlines.due(now)]

    def next_deadline(self) -> float | None:
        """Return when `expire` will next have something to do."""
        return self._deadlines.earliest()

    def drain(self) -> list[IncomingRequest]:
        """Take everything out, oldest first, because the connection is gone."""
        everything = list(self._open.values())
        self._open.clear()
        self._deadlines = Deadlines()
        return everything
