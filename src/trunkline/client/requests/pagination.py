"""Reads all pages of a list, within bounds.

The server decides how many pages a list has, how long each takes and how large it is, so all of
that is bounded for the list as a whole.

The rules that live here, and only here:

* A list is read to its end; a cursor may be empty, and a repeated cursor is an error, since the
  list would never end.                  [MCP 2026-07-28, server/utilities/pagination]
* If the server rejects a cursor the list has changed: it is read again from the start, once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ...errors import PeerError, RemoteProtocolError, RequestTimeout
from ...jsonrpc.messages import shown_tuple
from ...spec.error_kinds import ErrorKind

__all__ = ["ListLimits", "Page", "read_all"]


class ListLimits(NamedTuple):
    """The bounds of a list."""

    pages: int = 10_000
    items: int = 100_000
    # Bytes of the results as received; decoded they take a few times as much.
    size: int = 64 * 1024 * 1024


class Page(NamedTuple):
    """One page: its items, the cursor of the next or None, and its size in bytes."""

    items: list[Any]
    next_cursor: str | None
    size: int

    def __repr__(self) -> str:
        return shown_tuple(self)


# Requests the page of a cursor, with a timeout in seconds.
GetPage = Callable[[str | None, float], Awaitable[Page]]


class _Deadline(NamedTuple):
    """The deadline of a whole list."""

    now: Callable[[], float]
    seconds: float
    until: float

    def left(self, method: str) -> float:
        """Return the seconds that are left.

        Raises:
            RequestTimeout: the deadline has passed.
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
    """Return the items of all pages; `restart` is called before they are read again.

    Raises:
        RequestTimeout: it took longer than `seconds` in total.
        RemoteProtocolError: the list does not end, or exceeds `limits`.
    """
    deadline = _Deadline(now, seconds, now() + seconds)
    limits = limits or ListLimits()
    found = await _follow(method, get, deadline, limits, is_last=False)
    if found is None:
        restart()
        found = await _follow(method, get, deadline, limits, is_last=True)
    return found or []


async def _follow(
    method: str, get: GetPage, deadline: _Deadline, limits: ListLimits, *, is_last: bool
) -> list[Any] | None:
    """Return the items of all pages, or None if the server rejected a cursor."""
    found: list[Any] = []
    seen: set[str | None] = set()
    cursor: str | None = None
    size = 0
    while cursor not in seen and len(seen) < limits.pages:
        seen.add(cursor)
        try:
            page = await get(cursor, deadline.left(method))
        except PeerError as error:
            if is_last or cursor is None or error.kind != ErrorKind.INVALID_PARAMS:
                raise
            return None
        except RequestTimeout:
            deadline.left(method)  # raises if the deadline of the list has passed
            raise
        found += page.items
        size += page.size
        if len(found) > limits.items or size > limits.size:
            break
        if page.next_cursor is None:
            return found
        cursor = page.next_cursor
    raise RemoteProtocolError(
        "mcp.pagination.end",
        where="/nextCursor",
        got=cursor,
        expected=f"a list that ends: no cursor twice, and no more than {limits.pages} pages, "
        f"{limits.items} items or {limits.size} bytes",
    )
