"""In-memory store of one process.

The default, and the reference for other drivers. No operation awaits, so each is atomic; expired
records are freed by later operations, without a background task. Operations never raise
StoreUnavailable, and subscriptions never end as LOST. Another process, or a restart, has another
store, with other epochs, and lease tokens that start over: a lease guards only what lives in this
process.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from itertools import count
from typing import ClassVar, Final, TypeVar

from .base import ChannelSubscription
from .channels import Channels
from .errors import EndReason, StoreClosed, StoreFull
from .expiring_records import ENTRY_COST_BYTES, ExpiringRecords, Record, record_size
from .values import (
    Cursor,
    Key,
    Lease,
    LogEntry,
    LogPage,
    RecordPage,
    Retention,
    Stored,
    StoreLimits,
    check_limit,
    check_ttl,
)

__all__ = ["MemoryStore"]

_DEFAULT_LIMITS: Final = StoreLimits()

Kind = TypeVar("Kind", bound=Record)


class _Value(Record):
    __slots__ = ("stored",)
    is_listed: ClassVar[bool] = True

    def __init__(self, key: Key, stored: Stored) -> None:
        super().__init__(key)
        self.stored = stored


class _TakenMarker(Record):
    __slots__ = ()


class _LeaseHolder(Record):
    __slots__ = ("token",)

    def __init__(self, key: Key, token: int) -> None:
        super().__init__(key)
        self.token = token


class _Log(Record):
    __slots__ = ("entries", "epoch", "first", "max_age", "next")

    def __init__(self, key: Key) -> None:
        super().__init__(key)
        self.epoch = secrets.token_hex(8)
        self.max_age: float | None = None
        # Time of arrival and data by number, from `first` to before `next`.
        self.entries: dict[int, tuple[float, bytes]] = {}
        self.first = 1
        self.next = 1

    def drop_oldest(self) -> int:
        """Drop the oldest entry; return its size in bytes."""
        _, data = self.entries.pop(self.first)
        self.first += 1
        return _cost(data)

    def is_stale(self, now: float) -> bool:
        """Return True if the oldest entry exceeds `max_age`."""
        if self.max_age is None or self.first == self.next:
            return False
        return self.entries[self.first][0] + self.max_age <= now


class MemoryStore:
    """A `Store` in the memory of this process.

    `clock` returns the seconds of a monotonic clock.
    """

    def __init__(
        self,
        limits: StoreLimits = _DEFAULT_LIMITS,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._records = ExpiringRecords(limits, clock)
        self._channels = Channels(limits)
        # One counter for versions and tokens of all keys: none repeats, and deleted keys need not
        # be remembered.
        self._numbers = count(1)
        self._is_closed = False

    # Values

    async def get(self, key: Key) -> Stored | None:
        """Return the value of `key`, or None."""
        record = self._find(_Value, key)
        return None if record is None else record.stored

    async def put(self, key: Key, value: bytes, *, ttl: float | None) -> int:
        """Write a value unconditionally, and return its version."""
        return self._write(self._find(_Value, key), key, value, ttl)

    async def compare_and_set(
        self, key: Key, value: bytes, *, version: int | None, ttl: float | None
    ) -> int | None:
        """Write a value if the current one has `version`; return the new version, or None."""
        record = self._find(_Value, key)
        if version != (None if record is None else record.stored.version):
            return None
        return self._write(record, key, value, ttl)

    async def touch(self, key: Key, *, ttl: float | None) -> bool:
        """Give the value of `key` a new `ttl`; return False if there is no value."""
        return self._extend(self._find(_Value, key), ttl)

    async def delete(self, key: Key, *, version: int | None = None) -> bool:
        """Delete the value of `key`, only at `version` if given; return True if it was deleted."""
        record = self._find(_Value, key)
        if record is not None and version is not None and record.stored.version != version:
            return False
        return self._remove(record)

    async def scan(self, prefix: Key, *, after: str | None = None, limit: int = 100) -> RecordPage:
        """Return keys with a value, in order; at most `limit` names are checked."""
        self._check_open()
        check_limit(limit)
        return self._records.scan(_Value, prefix, after, limit)

    # Logs

    async def append(self, key: Key, data: bytes, *, retention: Retention) -> Cursor:
        """Append an entry to the log of `key`, and return its position."""
        log = self._find(_Log, key)
        self._check_size(data)
        if retention.max_entries > self._limits.log_entries:
            raise StoreFull("log_entries", self._limits.log_entries)
        if log is None:
            log = _Log(key)
            self._records.add(log, _cost(data), retention.ttl)
        else:
            self._make_room(log, data, retention.max_entries)
            self._records.expire(log, retention.ttl)
        log.max_age = retention.max_age
        log.entries[log.next] = (self._records.now, data)
        log.next += 1
        self._trim(log)
        return Cursor(log.epoch, log.next - 1)

    async def read(self, key: Key, *, after: Cursor | None = None, limit: int = 100) -> LogPage:
        """Return up to `limit` entries after `after`, or from the oldest one."""
        log = self._find(_Log, key)
        check_limit(limit)
        if log is None:
            return LogPage((), None, 0 if after is None else None)
        self._trim(log)
        is_known = after is None or (after.epoch == log.epoch and 0 <= after.number < log.next)
        number = after.number if after is not None and is_known else 0
        start = max(number + 1, log.first)
        stop = min(start + limit, log.next)
        entries = tuple(LogEntry(at, log.entries[at][1]) for at in range(start, stop))
        missed = start - number - 1 if is_known else None
        return LogPage(entries, Cursor(log.epoch, stop - 1), missed)

    async def delete_log(self, key: Key) -> bool:
        """Delete the log of `key` with its epoch; return False if there was none."""
        return self._remove(self._find(_Log, key))

    # Messages

    async def publish(self, channel: Key, data: bytes) -> None:
        """Send a message to the current subscribers."""
        self._check_open()
        self._check_size(data)
        self._channels.publish(channel, data)

    async def subscribe(self, *channels: Key) -> ChannelSubscription:
        """Subscribe to channels: messages published after this returns arrive in order."""
        self._check_open()
        if not channels:
            raise ValueError("a subscription needs at least one channel")
        return self._channels.subscribe(channels)

    # Markers and leases

    async def take(self, key: Key, *, ttl: float) -> bool:
        """Return True for the first caller to take `key` within `ttl` seconds."""
        is_first = self._find(_TakenMarker, key) is None
        check_ttl(ttl)
        if is_first:
            self._records.add(_TakenMarker(key), 0, ttl)
        return is_first

    def max_markers(self, key: Key) -> int:
        """Return how many markers with keys like `key` fit if nothing else is stored."""
        limits, size = self._limits, record_size(key)
        bounds = (limits.keys, limits.tenant_keys)
        sizes = (limits.total_bytes, limits.tenant_bytes)
        return min(
            *(each for each in bounds if each is not None),
            *(each // size for each in sizes if each is not None),
        )

    async def acquire(self, key: Key, *, ttl: float) -> Lease | None:
        """Return a lease of `key`, or None while another one is held."""
        held = self._find(_LeaseHolder, key)
        check_ttl(ttl)
        if held is not None:
            return None
        lease = Lease(key, next(self._numbers))
        self._records.add(_LeaseHolder(key, lease.token), 0, ttl)
        return lease

    async def renew(self, lease: Lease, *, ttl: float) -> bool:
        """Extend a lease to `ttl` from now; return False if it was lost."""
        return self._extend(self._held(lease), ttl)

    async def release(self, lease: Lease) -> bool:
        """Release a lease; return False if it was lost."""
        return self._remove(self._held(lease))

    async def close(self) -> None:
        """End all subscriptions and drop all records."""
        self._is_closed = True
        self._channels.end(EndReason.STORE_CLOSED)
        self._records = ExpiringRecords(self._limits, self._clock)

    # Parts of operations

    def _find(self, kind: type[Kind], key: Key) -> Kind | None:
        self._check_open()
        return self._records.find(kind, key)

    def _held(self, lease: Lease) -> _LeaseHolder | None:
        held = self._find(_LeaseHolder, lease.key)
        return held if held is not None and held.token == lease.token else None

    def _write(self, record: _Value | None, key: Key, value: bytes, ttl: float | None) -> int:
        self._check_size(value)
        check_ttl(ttl)
        stored = Stored(value, next(self._numbers))
        if record is None:
            self._records.add(_Value(key, stored), len(value), ttl)
        else:
            self._records.grow(record, len(value) - len(record.stored.value))
            record.stored = stored
            self._records.expire(record, ttl)
        return stored.version

    def _extend(self, record: Record | None, ttl: float | None) -> bool:
        check_ttl(ttl)
        if record is not None:
            self._records.expire(record, ttl)
        return record is not None

    def _remove(self, record: Record | None) -> bool:
        if record is not None:
            self._records.remove(record)
        return record is not None

    def _make_room(self, log: _Log, data: bytes, max_entries: int) -> None:
        """Reserve space for one more entry, minus that of the entries it displaces."""
        self._trim(log)
        surplus = range(log.first, log.next + 1 - max_entries)
        self._records.grow(log, _cost(data) - sum(_cost(log.entries[at][1]) for at in surplus))
        for _ in surplus:
            log.drop_oldest()

    def _trim(self, log: _Log) -> None:
        freed = 0
        while log.is_stale(self._records.now):
            freed += log.drop_oldest()
        if freed:
            self._records.grow(log, -freed)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosed

    def _check_size(self, data: bytes) -> None:
        # A bytearray could be changed by its owner while it is stored.
        if not isinstance(data, bytes):
            raise TypeError(f"a store keeps bytes, not {type(data).__name__}")
        if len(data) > self._limits.value_bytes:
            raise StoreFull("value_bytes", self._limits.value_bytes)


def _cost(data: bytes) -> int:
    return len(data) + ENTRY_COST_BYTES
