"""Deadlines by id, without a clock: a heap that is filled lazily.

The caller passes the time. `set` and `drop` cost O(1), `earliest` and `due`
O(log n), amortized; memory is proportional to the deadlines that are set.

Most requests end long before their deadline, and a timer looks once in many of
them. So a deadline enters the heap at the next look, unless it was dropped before.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, Generic, TypeVar

__all__ = ["Deadlines"]

# Dropped entries stay in the heap until they outnumber the live ones: else a flood of calls
# would stay in memory until the next look.
_MAX_STALE_ENTRIES: Final = 64
# The heap is rebuilt if more than one in so many of its entries would be pushed.
_FEW: Final = 8

Key = TypeVar("Key", bound=Hashable)


class Deadlines(Generic[Key]):
    """The deadlines of open requests, by id."""

    __slots__ = ("_count", "_entries", "_heap", "_ordered")

    def __init__(self) -> None:
        # In the order they were set. An entry of the heap is live while it is the one here.
        self._entries: dict[Key, tuple[float, int, Key]] = {}
        self._heap: list[tuple[float, int, Key]] = []
        # Breaks ties, the older first: ids of different types do not compare.
        self._count = 0
        # Entries up to this count are in the heap.
        self._ordered = 0

    def __len__(self) -> int:
        return len(self._entries)

    def set(self, id: Key, when: float) -> None:
        """Set or replace the deadline of `id`.

        Raises:
            ValueError: `when` is NaN, which is neither before nor after any time.
        """
        if when != when:
            raise ValueError("a deadline is a time, not NaN")
        entries = self._entries
        if id in entries:
            self.drop(id)  # keeps the order of `_entries`
        self._count = count = self._count + 1
        entries[id] = (when, count, id)

    def drop(self, id: Key) -> None:
        """Remove the deadline of `id`."""
        if self._entries.pop(id, None) is not None and self._heap:
            self._tidy()

    def earliest(self) -> float | None:
        """Return the next deadline, for a timer to wait for."""
        self._order()
        heap = self._heap
        while heap:
            entry = heap[0]
            if self._entries.get(entry[2]) is entry:
                return entry[0]
            heappop(heap)
        return None

    def due(self, now: float) -> list[Key]:
        """Remove and return the ids that are due at `now`, the earliest first."""
        found = []
        while (when := self.earliest()) is not None and when <= now:
            id = heappop(self._heap)[2]
            del self._entries[id]
            found.append(id)
        self._tidy()
        return found

    def _order(self) -> None:
        """Push what was set since the last look."""
        added, since = self._count - self._ordered, self._ordered
        if added * _FEW > len(self._heap):
            self._rebuild()
        elif added:
            self._ordered = self._count
            for entry in islice(reversed(self._entries.values()), added):
                if entry[1] > since:  # not one that is here because later ones were dropped
                    heappush(self._heap, entry)

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._entries) + _MAX_STALE_ENTRIES:
            self._rebuild()

    def _rebuild(self) -> None:
        self._heap = list(self._entries.values())
        heapify(self._heap)
        self._ordered = self._count
