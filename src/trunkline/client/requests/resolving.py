"""Results that are not complete yet, and who completes them.

A result says of which type it is. What is not complete is handed to the resolver of its type:
`input_required` has one of the client's own, an extension that was declared brings another.

The rules that live here, and only here:

* A type that nobody resolves is invalid.                    [MCP 2026-07-28, basic]
* What a resolver gives may again be of another type: a call whose questions are answered may
  become a task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Raw

from ...errors import TooManyRoundTrips
from .decode import COMPLETE, NotComplete, result_type

if TYPE_CHECKING:
    from ..session import OutgoingRequest, Session

__all__ = ["Resolver", "complete"]

# Given the connection, the request as its caller put it and the result that came: another
# result, which is complete or of a type that somebody else resolves.
Resolver: TypeAlias = Callable[["Session", "OutgoingRequest", Raw], Awaitable[Raw]]

# How often a result may change its type. Questions and then a task are two; a server that goes
# from one to the other without end would keep its caller for good.
_MOST_TURNS: Final = 16


async def complete(
    resolvers: Mapping[str, Resolver], session: Session, request: OutgoingRequest, raw: Raw
) -> Raw:
    """Return the complete result that comes of `raw`.

    Raises:
        NotComplete: it is of a type that nobody resolves.
        TooManyRoundTrips: it became one type after the other, and never complete.
        TrunklineError: what else the resolver of its type raises.
    """
    for _ in range(_MOST_TURNS):
        found = result_type(raw)
        if found == COMPLETE:
            return raw
        resolver = resolvers.get(found) if type(found) is str else None
        if resolver is None:
            raise NotComplete(found)
        raw = await resolver(session, request, raw)
    raise TooManyRoundTrips(f"no complete result after {_MOST_TURNS} others", method=request.method)
