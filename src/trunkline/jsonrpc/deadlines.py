"""What is due by now.

The clock is outside: whoever has one hands in deadlines and asks, with the time
it is, what has passed. Setting, dropping and asking cost O(log n), averaged over
many; memory follows what is set, not what was.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

__all__ = ["Deadlines"]

# Entries whose request has ended are left in the heap and dropped when they outnumber the
# living ones: with a minute's deadline and thousands of calls a second they would be millions.
_STALE_KEPT: Final = 64

Key = TypeVar("Key", bound=Hashable)


class Deadlines(Generic[Key]):
    """The deadlines of open requests, by id."""

    __slots__ = ("_count", "_entries", "_heap")

    def __init__(self) -> None:
        # An entry of the heap is alive while it is the one that stands here.
        self._entries: dict[Key, tuple[float, int, Key]] = {}
        self._heap: list[tuple[float, int, Key]] = []
        # Breaks ties, the older first: ids of several kinds do not compare.
        self._count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def set(self, id: Key, when: float) -> None:
        """Record that `id` is due at `when`, in place of any earlier deadline it had."""
        self._count += 1
        entry = (when, self._count, id)
        self._entries[id] = entry
        heappush(self._heap, entry)
        self._tidy()

    def drop(self, id: Key) -> None:
        """Forget the deadline of `id`."""
        if self._entries.pop(id, None) is not None:
            self._tidy()

    def earliest(self) -> float | None:
        """Return the next deadline, for a timer to wait for."""
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

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._entries) + _STALE_KEPT:
            self._heap = list(self._entries.values())
            heapify(self._heap)
