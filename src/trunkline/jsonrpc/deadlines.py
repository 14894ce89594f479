"""What is due by now.

The clock is outside: whoever has one hands in deadlines and asks, with the time
it is, what has passed. Setting, dropping and asking cost O(log n).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from .messages import RequestId

__all__ = ["Deadlines"]

# Entries whose request has ended are left in the heap and dropped when they outnumber the
# living ones: with a minute's deadline and thousands of calls a second they would be millions.
_STALE_KEPT: Final = 64


class Deadlines:
    """The deadlines of open requests."""

    __slots__ = ("_heap", "_when")

    def __init__(self) -> None:
        self._when: dict[RequestId, float] = {}
        # Ids of both kinds do not compare, so their text breaks ties.
        self._heap: list[tuple[float, str, RequestId]] = []

    def __len__(self) -> int:
        return len(self._when)

    def set(self, id: RequestId, when: float) -> None:
        """Record that `id` is due at `when`, in place of any earlier deadline it had."""
        self._when[id] = when
        heappush(self._heap, (when, repr(id), id))
        if len(self._heap) > 2 * len(self._when) + _STALE_KEPT:
            self._heap = [(due, repr(key), key) for key, due in self._when.items()]
            heapify(self._heap)

    def drop(self, id: RequestId) -> None:
        """Forget the deadline of `id`."""
        self._when.pop(id, None)

    def earliest(self) -> float | None:
        """Return the next deadline, for a timer to wait for."""
        while self._heap:
            when, _, id = self._heap[0]
            if self._when.get(id) == when:
                return when
            heappop(self._heap)
        return None

    def due(self, now: float) -> list[RequestId]:
        """Return, and forget, what is due at `now` or was before."""
        found = []
        while (when := self.earliest()) is not None and when <= now:
            id = heappop(self._heap)[2]
            del self._when[id]
            found.append(id)
        return found
