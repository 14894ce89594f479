"""Sorted set of names, for scans that continue from a cursor.

The names are kept in short sorted runs: a lookup is two bisections, and an insertion moves only the
rest of one run. The order is by code points, which equals the order of the UTF-8 bytes, so that
drivers that sort bytes agree.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Final

__all__ = ["SortedNames"]

# A longer run is split in two: few KiB to move, and few runs to search.
_MAX_RUN_NAMES: Final = 512


class SortedNames:
    """A sorted set of names that can be iterated from any position."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[list[str]] = []  # none is empty

    def __bool__(self) -> bool:
        return bool(self._runs)

    def add(self, name: str) -> None:
        """Add a name that is not in the set."""
        if not self._runs:
            self._runs.append([name])
            return
        at = self._run_of(name)
        run = self._runs[at]
        insort(run, name)
        if len(run) > _MAX_RUN_NAMES:
            half = len(run) // 2
            self._runs.insert(at + 1, run[half:])
            del run[half:]

    def remove(self, name: str) -> None:
        """Remove a name that is in the set."""
        at = self._run_of(name)
        run = self._runs[at]
        del run[bisect_left(run, name)]
        if not run:
            del self._runs[at]

    def behind(self, prefix: str, after: str | None) -> Iterator[str]:
        """Yield the names that begin with `prefix`, in order, only those after `after`."""
        if not self._runs:
            return
        at = self._run_of(max(prefix, after or ""))
        start = bisect_left(self._runs[at], prefix)
        if after is not None:
            start = max(start, bisect_right(self._runs[at], after))
        for run in self._runs[at:]:
            for place in range(start, len(run)):
                if not run[place].startswith(prefix):
                    return
                yield run[place]
            start = 0

    def _run_of(self, name: str) -> int:
        return max(0, bisect_right(self._runs, name, key=lambda run: run[0]) - 1)
