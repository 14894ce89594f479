"""Lists that come in pages: where they end, and when to stop asking for more.

A server decides how many pages a list has, how long each takes and how much is in it, so all of
that is bounded for the list as a whole. How one page is had is not known here.

The rules that live here, and only here:

* A list is followed to its end; a cursor may be empty, and one that comes a second time
  would never end.                       [MCP 2026-07-28, server/utilities/pagination]
* A cursor that the server no longer takes is of a list that has changed: start again, once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from msgspec import UNSET

from ...errors import PeerError, RemoteProtocolError, RequestTimeout
from ...spec.error_kinds import ErrorKind

__all__ = ["ListLimits", "Page", "read_all"]


class ListLimits(NamedTuple):
    """How long a list may be. No list that anybody reads is longer."""

    pages: int = 10_000
    items: int = 100_000
    # As they came; what is made of them takes a few times as much.
    size: int = 64 * 1024 * 1024


class Page(NamedTuple):
    """One page: its items, the cursor of the next or UNSET, and how many bytes it came in."""

    items: list[Any]
    next_cursor: Any
    size: int


# Asks for the page of a cursor, in so many seconds.
GetPage = Callable[[str | None, float], Awaitable[Page]]


class _Clock(NamedTuple):
    """How long it may take to read a list."""

    now: Callable[[], float]
    seconds: float
    until: float

    def left(self, method: str) -> float:
        """Return the seconds that are left.

        Raises:
            RequestTimeout: none are.
        """
        left = self.until - self.now()
        if left <= 0:
            raise RequestTimeout(f"the list did not end within {self.seconds:g} s", method=method)
        return left


async def read_all(
    method: str,
    get: GetPage,
    restart: Callable[[], object],
    seconds: float,
    now: Callable[[], float],
    limits: ListLimits | None = None,
) -> list[Any]:
    """Return what all pages hold; `restart` is called when they have to be asked for anew.

    Raises:
        RequestTimeout: it took longer than `seconds` in all.
        RemoteProtocolError: the list does not end, or not soon enough.
    """
    clock = _Clock(now, seconds, now() + seconds)
    limits = limits or ListLimits()
    found = await _follow(method, get, clock, limits, is_last=False)
    if found is None:
        restart()
        found = await _follow(method, get, clock, limits, is_last=True)
    return found or []


async def _follow(
    method: str, get: GetPage, clock: _Clock, limits: ListLimits, *, is_last: bool
) -> list[Any] | None:
    """Return what all pages hold, or None where the server no longer takes a cursor."""
    found: list[Any] = []
    seen: set[str | None] = set()
    cursor: str | None = None
    size = 0
    while cursor not in seen and len(seen) < limits.pages:
        seen.add(cursor)
        try:
            page = await get(cursor, clock.left(method))
        except PeerError as error:
            if is_last or cursor is None or error.kind != ErrorKind.INVALID_PARAMS:
                raise
            return None
        except RequestTimeout:
            clock.left(method)  # says of which time there was too little
            raise
        found += page.items
        size += page.size
        if len(found) > limits.items or size > limits.size:
            break
        if page.next_cursor is UNSET:
            return found
        cursor = page.next_cursor
    raise RemoteProtocolError(
        "mcp.pagination.end",
        where="/nextCursor",
        got=cursor,
        expected=f"a list that ends: no cursor twice, and no more than {limits.pages} pages, "
        f"{limits.items} items or {limits.size} bytes",
    )
