"""Records in memory with expiry and size accounting.

The rules that live here, and only here:

* A record is gone when it expires, though its memory is freed later: on lookup, a few records at
  each write, and as many as needed when space runs out.
* Space is reserved before anything changes, so that `StoreFull` leaves everything as it was.
* Live records are never evicted.
* `find` and `scan`, which begin every operation, read the clock: time does not advance within an
  operation, so a record that was found does not expire during it.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf
from typing import ClassVar, Final, TypeAlias, TypeVar

from .errors import StoreFull
from .sorted_names import SortedNames
from .values import Key, RecordPage, StoreLimits

__all__ = ["ENTRY_COST_BYTES", "RECORD_COST_BYTES", "ExpiringRecords", "Record", "record_size"]

# Overhead of a record, and of an entry in one, measured and rounded up. Without it a million empty
# values would cost nothing.
RECORD_COST_BYTES: Final = 640
ENTRY_COST_BYTES: Final = 128
# Records checked for expiry at each write: more than a write adds, so that expired ones cannot
# accumulate, and few enough to be cheap.
_MAX_SWEPT: Final = 16
# Outdated heap entries beyond the number of records before the heap is rebuilt.
_MAX_STALE: Final = 64


class Record:
    """A value, log, marker or lease of a key, by subclass."""

    __slots__ = ("expires", "key", "size")

    # Whether scans return it.
    is_listed: ClassVar[bool] = False

    def __init__(self, key: Key) -> None:
        self.key = key
        self.expires = inf
        self.size = 0


Kind = TypeVar("Kind", bound=Record)
_Place: TypeAlias = tuple[type[Record], Key]


class _Usage:
    """Keys and bytes in use, in total or by one tenant."""

    __slots__ = ("bytes", "keys")

    def __init__(self) -> None:
        self.keys = 0
        self.bytes = 0


def record_size(key: Key) -> int:
    """Return the bytes that a record of a key takes, without what it holds."""
    return RECORD_COST_BYTES + len(key.tenant) + len(key.kind) + len(key.name)


class ExpiringRecords:
    """The records of one store."""

    def __init__(self, limits: StoreLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self.now = clock()
        self._records: dict[_Place, Record] = {}
        self._names: dict[tuple[type[Record], str, str], SortedNames] = {}
        # When to check a place for expiry. A record whose time was extended is pushed back when
        # its old time comes, so that extending is free. Places, not records: a removed record must
        # not be kept in memory.
        self._heap: list[tuple[float, int, _Place]] = []
        self._pushed = 0  # breaks ties: places do not compare
        self._all = _Usage()
        self._tenants: dict[str, _Usage] = {}

    def __len__(self) -> int:
        return len(self._records)

    def find(self, kind: type[Kind], key: Key) -> Kind | None:
        """Return the live record of this kind under `key`, or None."""
        self.now = self._clock()
        record = self._records.get((kind, key))
        if record is None or not isinstance(record, kind):
            return None
        if record.expires <= self.now:
            self.remove(record)
            return None
        return record

    def add(self, record: Record, size: int, ttl: float | None) -> None:
        """Add a new record that holds `size` bytes.

        Raises:
            StoreFull: a limit is reached; nothing has changed.
        """
        key = record.key
        size += record_size(key)
        self._reserve(key.tenant, 1, size)
        record.size = size
        self._records[type(record), key] = record
        if record.is_listed:
            self._names.setdefault((type(record), key.tenant, key.kind), SortedNames()).add(
                key.name
            )
        self.expire(record, ttl)

    def grow(self, record: Record, by: int) -> None:
        """Reserve `by` more bytes for a record; negative values free them.

        Raises:
            StoreFull: a limit is reached; nothing has changed.
        """
        self._reserve(record.key.tenant, 0, by)
        record.size += by

    def expire(self, record: Record, ttl: float | None) -> None:
        """Set the expiry of a record to `ttl` seconds from now; None: never."""
        before, record.expires = record.expires, inf if ttl is None else self.now + ttl
        # Otherwise the heap has an earlier entry, which leads to this time.
        if record.expires < before:
            self._push(record)

    def remove(self, record: Record) -> None:
        """Remove a record and free its space."""
        key = record.key
        del self._records[type(record), key]
        if record.is_listed:
            names = self._names[type(record), key.tenant, key.kind]
            names.remove(key.name)
            if not names:
                del self._names[type(record), key.tenant, key.kind]
        self._account(key.tenant, -1, -record.size)
        self._tidy()

    def scan(self, kind: type[Record], prefix: Key, after: str | None, limit: int) -> RecordPage:
        """Return a page of keys; an expired record counts against `limit`, but is not returned."""
        names = self._names.get((kind, prefix.tenant, prefix.kind), SortedNames())
        self.now = self._clock()
        keys: list[Key] = []
        last = None
        for checked, name in enumerate(names.behind(prefix.name, after)):
            if checked == limit:
                return RecordPage(tuple(keys), last)
            last = name
            record = self._records[kind, Key(prefix.tenant, prefix.kind, name)]
            if record.expires > self.now:
                keys.append(record.key)
        return RecordPage(tuple(keys), None)

    # Space

    def _reserve(self, tenant: str, keys: int, size: int) -> None:
        self._sweep(_MAX_SWEPT)
        while (full := self._lacking(tenant, keys, size)) is not None:
            if not self._sweep(1):
                raise full
        self._account(tenant, keys, size)

    def _lacking(self, tenant: str, keys: int, size: int) -> StoreFull | None:
        limits = self._limits
        own = self._tenants.get(tenant) or _Usage()
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

    def _account(self, tenant: str, keys: int, size: int) -> None:
        own = self._tenants.setdefault(tenant, _Usage())
        for room in (self._all, own):
            room.keys += keys
            room.bytes += size
        if not own.keys:
            del self._tenants[tenant]

    # Expiry

    def _sweep(self, count: int) -> int:
        """Check up to `count` due places for expiry; return the number checked."""
        checked = 0
        while checked < count and self._heap and self._heap[0][0] <= self.now:
            record = self._records.get(heappop(self._heap)[2])
            checked += 1
            if record is None:
                continue
            if record.expires > self.now:
                self._push(record)
            else:
                self.remove(record)
        return checked

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
