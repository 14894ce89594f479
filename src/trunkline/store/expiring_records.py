"""Records in memory: what there is, when it expires, and how much room it takes.

What a record holds is the affair of whoever puts it here. The rules that live here:

* A record is gone the moment it expires, whether or not its memory is free yet: that happens
  when somebody looks for it, a few at each write, and as far as needed when room is short.
* Room is taken before anything changes, so that a refusal leaves everything as it was.
* Nothing that is alive is thrown out to make room.
* The clock is read by `find` and `scan`, with which every operation begins: in the middle of
  one no time passes, and what was found stays.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf
from typing import ClassVar, Final, TypeAlias, TypeVar

from .errors import StoreFull
from .sorted_names import SortedNames
from .values import Key, RecordPage, StoreLimits

__all__ = ["ENTRY_COST", "RECORD_COST", "ExpiringRecords", "Record"]

# What a record, and an entry in one, takes up beside the bytes it holds, as measured and rounded.
# Without it a million empty values would be free.
RECORD_COST: Final = 640
ENTRY_COST: Final = 128
# Records that a write looks at, to free those that have expired: more than it can add, so that
# they cannot pile up, and too few to be felt.
_MAX_SWEPT: Final = 16
# Entries for what is gone stay in the heap until they outnumber the others.
_MAX_STALE: Final = 64


class Record:
    """One thing under a key; its class says which of the things that a key may have."""

    __slots__ = ("expires", "key", "size")

    # Whether scans list it.
    is_listed: ClassVar[bool] = False

    def __init__(self, key: Key) -> None:
        self.key = key
        self.expires = inf
        self.size = 0


Kind = TypeVar("Kind", bound=Record)
_Place: TypeAlias = tuple[type[Record], Key]


class _Room:
    """How much is taken, by all or by one tenant."""

    __slots__ = ("bytes", "keys")

    def __init__(self) -> None:
        self.keys = 0
        self.bytes = 0


class ExpiringRecords:
    """Every record of one store."""

    def __init__(self, limits: StoreLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self.now = clock()
        self._records: dict[_Place, Record] = {}
        self._names: dict[tuple[type[Record], str, str], SortedNames] = {}
        # When to look at a place again, at the latest when what is there expires. A record that
        # was given more time since is put back with its new time, so touching it costs nothing
        # here. Places and no records, for one that is gone must not be kept alive.
        self._heap: list[tuple[float, int, _Place]] = []
        self._pushed = 0  # breaks ties: places do not compare
        self._all = _Room()
        self._tenants: dict[str, _Room] = {}

    def __len__(self) -> int:
        return len(self._records)

    def find(self, kind: type[Kind], key: Key) -> Kind | None:
        """Return the record of this kind under `key`, if it is there and has not expired."""
        self.now = self._clock()
        record = self._records.get((kind, key))
        if record is None or not isinstance(record, kind):
            return None
        if record.expires <= self.now:
            self.remove(record)
            return None
        return record

    def add(self, record: Record, size: int, ttl: float | None) -> None:
        """Put up a record of which there is none yet, with so many bytes in it.

        Raises:
            StoreFull: it is not there, and nothing has changed.
        """
        key = record.key
        size += RECORD_COST + len(key.tenant) + len(key.kind) + len(key.name)
        self._take(key.tenant, 1, size)
        record.size = size
        self._records[type(record), key] = record
        if record.is_listed:
            self._names.setdefault((type(record), key.tenant, key.kind), SortedNames()).add(
                key.name
            )
        self.expire(record, ttl)

    def grow(self, record: Record, by: int) -> None:
        """Take so many bytes more for a record, or give them back.

        Raises:
            StoreFull: nothing has changed.
        """
        self._take(record.key.tenant, 0, by)
        record.size += by

    def expire(self, record: Record, ttl: float | None) -> None:
        """Let a record expire in `ttl` seconds from now, in place of any earlier time."""
        before, record.expires = record.expires, inf if ttl is None else self.now + ttl
        # A time before this one is in the heap already, and leads to this one.
        if record.expires < before:
            self._push(record)

    def remove(self, record: Record) -> None:
        """Take a record away, and give its room back."""
        key = record.key
        del self._records[type(record), key]
        if record.is_listed:
            names = self._names[type(record), key.tenant, key.kind]
            names.remove(key.name)
            if not names:
                del self._names[type(record), key.tenant, key.kind]
        self._note(key.tenant, -1, -record.size)
        self._tidy()

    def scan(self, kind: type[Record], prefix: Key, after: str | None, limit: int) -> RecordPage:
        """Return a page of keys; a name of an expired record is looked at, but not returned."""
        names = self._names.get((kind, prefix.tenant, prefix.kind), SortedNames())
        self.now = self._clock()
        keys: list[Key] = []
        last = None
        for looked_at, name in enumerate(names.behind(prefix.name, after)):
            if looked_at == limit:
                return RecordPage(tuple(keys), last)
            last = name
            record = self._records[kind, Key(prefix.tenant, prefix.kind, name)]
            if record.expires > self.now:
                keys.append(record.key)
        return RecordPage(tuple(keys), None)

    # Room

    def _take(self, tenant: str, keys: int, size: int) -> None:
        self._sweep(_MAX_SWEPT)
        while (full := self._lacking(tenant, keys, size)) is not None:
            if not self._sweep(1):
                raise full
        self._note(tenant, keys, size)

    def _lacking(self, tenant: str, keys: int, size: int) -> StoreFull | None:
        """Return what there is no room for, if anything."""
        limits = self._limits
        own = self._tenants.get(tenant) or _Room()
        bounds = (
            ("keys", limits.keys, self._all.keys, keys),
            ("total_bytes", limits.total_bytes, self._all.bytes, size),
            ("tenant_keys", limits.tenant_keys, own.keys, keys),
            ("tenant_bytes", limits.tenant_bytes, own.bytes, size),
        )
        for name, limit, taken, more in bounds:
            if limit is not None and taken + more > limit:
                return StoreFull(name, limit)
        return None

    def _note(self, tenant: str, keys: int, size: int) -> None:
        own = self._tenants.setdefault(tenant, _Room())
        for room in (self._all, own):
            room.keys += keys
            room.bytes += size
        if not own.keys:
            del self._tenants[tenant]

    # Expiry

    def _sweep(self, count: int) -> int:
        """Look at up to `count` places where something may have expired; return at how many."""
        looked_at = 0
        while looked_at < count and self._heap and self._heap[0][0] <= self.now:
            record = self._records.get(heappop(self._heap)[2])
            looked_at += 1
            if record is None:
                continue
            if record.expires > self.now:
                self._push(record)
            else:
                self.remove(record)
        return looked_at

    def _push(self, record: Record) -> None:
        if record.expires == inf:
            return
        self._pushed += 1
        heappush(self._heap, (record.expires, self._pushed, (type(record), record.key)))
        self._tidy()

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._records) + _MAX_STALE:
            self._pushed = 0
            self._heap = []
            for place, record in self._records.items():
                if record.expires < inf:
                    self._pushed += 1
                    self._heap.append((record.expires, self._pushed, place))
            heapify(self._heap)
