"""Results that a server said may be used again, for as long as it said.

Kept are the bytes of a result, not its value: what a caller changes in his copy is not what
the next one gets. A client is one authorization context, so what is private to that is kept
like the rest.                               [MCP 2026-07-28, server/utilities/caching]

The rules that live here, and only here:

* A result is fresh while less time has passed since it came than its `ttlMs`, and never for
  longer than a day: a server that names an age of the world is not believed.
* Word of a change makes what was kept stale at once, and what is on its way, too: it may
  have been written before the change.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple, TypeAlias

__all__ = ["Cache", "Key", "fresh_until"]

# A server decides how much it has to list: this is a few thousand tools, or some large texts.
ENTRIES_KEPT: Final = 256
BYTES_KEPT: Final = 8 * 1024 * 1024
LONGEST_MS: Final = 24 * 60 * 60 * 1000

# The method, and the cursor or URI it was asked with.
Key: TypeAlias = tuple[str, str | None]


def fresh_until(now: float, ttl_ms: int) -> float:
    """Return until when a result may be used that came `now`."""
    # Compared before it is divided: an integer of JSON may be too large for a float.
    return now + min(ttl_ms, LONGEST_MS) / 1000


class _CachedResult(NamedTuple):
    result: bytes
    until: float


class Cache:
    """Results by what was asked. The clock is the caller's."""

    __slots__ = ("_changes", "_entries", "_size")

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, _CachedResult] = OrderedDict()
        self._size = 0
        # How many changes there were; a result asked for before the last is not kept.
        self._changes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def changes(self) -> int:
        """How many times something was dropped because it had changed."""
        return self._changes

    def get(self, key: Key, now: float) -> bytes | None:
        """Return a result that is still fresh."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if now >= entry.until:
            self._remove(key)
            return None
        self._entries.move_to_end(key)
        return entry.result

    def keep(self, key: Key, result: bytes, until: float, changes: int) -> None:
        """Keep a result that was asked for when there had been so many `changes`."""
        self._remove(key)
        if changes != self._changes or len(result) > BYTES_KEPT:
            return
        self._entries[key] = _CachedResult(result, until)
        self._size += len(result)
        while self._size > BYTES_KEPT or len(self._entries) > ENTRIES_KEPT:
            self._remove(next(iter(self._entries)))

    def drop(self, *methods: str, what: str | None = None) -> None:
        """Forget the results of methods, or of these only what was asked with `what`."""
        self._changes += 1
        for key in list(self._entries):
            if key[0] in methods and (what is None or key[1] == what):
                self._remove(key)

    def clear(self) -> None:
        """Forget everything: another server may answer from now on."""
        self._changes += 1
        self._entries.clear()
        self._size = 0

    def _remove(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= len(entry.result)
