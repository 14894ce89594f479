"""Cached results, for as long as the server allows.

The bytes of a result are cached, not its value: a caller may change the value. A client is one
authorization context, so private results are cached like public ones.
                                             [MCP 2026-07-28, server/utilities/caching]

The rules that live here, and only here:

* A result is fresh for `ttlMs`, and for at most one day.
* A notification of a change drops the cached results at once, and those still in flight: they may
  have been written before the change.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple, TypeAlias

from ...jsonrpc.messages import shown_tuple

__all__ = ["Cache", "Key", "fresh_until"]

# Enough for a few thousand tools, or some large texts.
MAX_ENTRIES: Final = 256
MAX_BYTES: Final = 8 * 1024 * 1024
MAX_TTL_MS: Final = 24 * 60 * 60 * 1000

# The method, and the cursor or URI of the request.
Key: TypeAlias = tuple[str, str | None]


def fresh_until(now: float, ttl_ms: int) -> float:
    """Return until when a result received `now` is fresh."""
    # Compared before it is divided: a JSON integer may be too large for a float.
    return now + min(ttl_ms, MAX_TTL_MS) / 1000


class _CachedResult(NamedTuple):
    result: bytes
    until: float

    def __repr__(self) -> str:
        return shown_tuple(self)


class Cache:
    """Results by request. The caller provides the time."""

    __slots__ = ("_changes", "_entries", "_size")

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, _CachedResult] = OrderedDict()
        self._size = 0
        # The number of changes; a result requested before the last one is not cached.
        self._changes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def changes(self) -> int:
        """The number of changes so far."""
        return self._changes

    def get(self, key: Key, now: float) -> bytes | None:
        """Return a result that is fresh, or None."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if now >= entry.until:
            self._remove(key)
            return None
        self._entries.move_to_end(key)
        return entry.result

    def keep(self, key: Key, result: bytes, until: float, changes: int) -> None:
        """Cache a result, unless there were `changes` since it was requested."""
        self._remove(key)
        if changes != self._changes or len(result) > MAX_BYTES:
            return
        self._entries[key] = _CachedResult(result, until)
        self._size += len(result)
        while self._size > MAX_BYTES or len(self._entries) > MAX_ENTRIES:
            self._remove(next(iter(self._entries)))

    def drop(self, *methods: str, what: str | None = None) -> None:
        """Drop the results of methods, or only those with the cursor or URI `what`."""
        self._changes += 1
        for key in list(self._entries):
            if key[0] in methods and (what is None or key[1] == what):
                self._remove(key)

    def clear(self) -> None:
        """Drop all results: the next session may have another server."""
        self._changes += 1
        self._entries.clear()
        self._size = 0

    def _remove(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= len(entry.result)
