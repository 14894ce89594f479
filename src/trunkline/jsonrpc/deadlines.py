"""What is due by now.

The clock is outside: whoever has one hands in deadlines and asks, with the time
it is, what has passed. Setting and dropping cost O(1), asking O(log n), averaged
over many; memory follows what is set, not what was.

Most requests end long before they are due, and a timer asks once in many of them.
So a deadline is put in order only when somebody asks: what was dropped by then
never was.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, Generic, TypeVar

__all__ = ["Deadlines"]

# Entries whose request has ended are left in the heap and dropped when they outnumber the
# living ones: a flood of calls that a timer looked at would be remembered until the next look.
_STALE_KEPT: Final = 64
# A heap is made anew where more than one in so many of its entries would be pushed.
_FEW: Final = 8

Key = TypeVar("Key", bound=Hashable)


class Deadlines(Generic[Key]):
    """The deadlines of open requests, by id."""

    __slots__ = ("_count", "_entries", "_heap", "_ordered")

    def __init__(self) -> None:
        # In the order they were set. An entry of the heap is alive while it is the one here.
        self._entries: dict[Key, tuple[float, int, Key]] = {}
        self._heap: list[tuple[float, int, Key]] = []
        # Breaks ties, the older first: ids of several kinds do not compare.
        self._count = 0
        # Up to which count entries are in the heap.
        self._ordered = 0

    def __len__(self) -> int:
        return len(self._entries)

    def set(self, id: Key, when: float) -> None:
        """Record that `id` is due at `when`, in place of any earlier deadline it had.

        Raises:
            ValueError: `when` is not a number, which is neither before nor after any time.
        """
        if when != when:
            raise ValueError("a deadline is a time, not NaN")
        entries = self._entries
        if id in entries:
            self.drop(id)  # what is set last stands last
        self._count = count = self._count + 1
        entries[id] = (when, count, id)

    def drop(self, id: Key) -> None:
        """Forget the deadline of `id`."""
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
        """Return, and forget, what is due at `now` or was before, the earliest first."""
        found = []
        while (when := self.earliest()) is not None and when <= now:
            id = heappop(self._heap)[2]
            del self._entries[id]
            found.append(id)
        self._tidy()
        return found

    def _order(self) -> None:
        """Put what was set since the last look into the heap."""
        added, since = self._count - self._ordered, self._ordered
        if added * _FEW > len(self._heap):
            self._rebuild()
        elif added:
            self._ordered = self._count
            for entry in islice(reversed(self._entries.values()), added):
                if entry[1] > since:  # not one that stands here because later ones were dropped
                    heappush(self._heap, entry)

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._entries) + _STALE_KEPT:
            self._rebuild()

    def _rebuild(self) -> None:
        self._heap = list(self._entries.values())
        heapify(self._heap)
        self._ordered = self._count
