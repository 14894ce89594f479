"""The store of one process: everything in its memory, and gone with it.

It is the default, and what other drivers are compared with. No operation waits, so each is
atomic by itself; nothing runs beside them, for what expires is freed by who comes by. The
engine is this object: it cannot be lost while somebody is there to ask it, so no operation
raises StoreUnavailable and no subscription ends as LOST. Another process, or this one after a
restart, has another store, with other epochs, and tokens of leases that begin anew: a lease
from here guards what lives in this process and nothing outside.
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
from .expiring_records import ENTRY_COST, ExpiringRecords, Record
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


class _Flag(Record):
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
        # By number, with the time it came: those from `first` to before `next`.
        self.entries: dict[int, tuple[float, bytes]] = {}
        self.first = 1
        self.next = 1

    def drop_oldest(self) -> int:
        """Drop one entry; return what it took up."""
        _, data = self.entries.pop(self.first)
        self.first += 1
        return _cost(data)

    def is_stale(self, now: float) -> bool:
        """Say whether the oldest entry is too old to be read."""
        if self.max_age is None or self.first == self.next:
            return False
        return self.entries[self.first][0] + self.max_age <= now


class MemoryStore:
    """A `Store` in the memory of this process.

    `clock` gives the seconds of any clock that does not go back.
    """

    def __init__(
        self,
        limits: StoreLimits = _DEFAULT_LIMITS,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._shelf = ExpiringRecords(limits, clock)
        self._channels = Channels(limits)
        # One count for versions and tokens of all keys: none comes twice, and no key that is
        # gone has to be remembered for it.
        self._numbers = count(1)
        self._is_closed = False

    # Values

    async def get(self, key: Key) -> Stored | None:
        """Return the value of `key`, or None where there is none."""
        record = self._find(_Value, key)
        return None if record is None else record.stored

    async def put(self, key: Key, value: bytes, *, ttl: float | None) -> int:
        """Write a value over whatever is there, and return its version."""
        return self._write(self._find(_Value, key), key, value, ttl)

    async def compare_and_set(
        self, key: Key, value: bytes, *, version: int | None, ttl: float | None
    ) -> int | None:
        """Write a value if `version` is that of the one there; return the new version."""
        record = self._find(_Value, key)
        if version != (None if record is None else record.stored.version):
            return None
        return self._write(record, key, value, ttl)

    async def touch(self, key: Key, *, ttl: float | None) -> bool:
        """Give the value of `key` a new `ttl`; say whether it is there."""
        return self._extend(self._find(_Value, key), ttl)

    async def delete(self, key: Key, *, version: int | None = None) -> bool:
        """Delete the value of `key`; say whether it did."""
        record = self._find(_Value, key)
        if record is not None and version is not None and record.stored.version != version:
            return False
        return self._remove(record)

    async def scan(self, prefix: Key, *, after: str | None = None, limit: int = 100) -> RecordPage:
        """Return keys with a value, in order; at most `limit` names are looked at."""
        self._check_open()
        check_limit(limit)
        return self._shelf.scan(_Value, prefix, after, limit)

    # Logs

    async def append(self, key: Key, data: bytes, *, retention: Retention) -> Cursor:
        """Append an entry to the log of `key`, and return its place."""
        log = self._find(_Log, key)
        self._check_size(data)
        if retention.max_entries > self._limits.log_entries:
            raise StoreFull("log_entries", self._limits.log_entries)
        if log is None:
            log = _Log(key)
            self._shelf.add(log, _cost(data), retention.ttl)
        else:
            self._make_room(log, data, retention.max_entries)
            self._shelf.expire(log, retention.ttl)
        log.max_age = retention.max_age
        log.entries[log.next] = (self._shelf.now, data)
        log.next += 1
        self._trim(log)
        return Cursor(log.epoch, log.next - 1)

    async def read(self, key: Key, *, after: Cursor | None = None, limit: int = 100) -> LogPage:
        """Return up to `limit` entries behind `after`, or from the oldest that is kept."""
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
        """Delete the log of `key` with its epoch; say whether there was one."""
        return self._remove(self._find(_Log, key))

    # Messages

    async def publish(self, channel: Key, data: bytes) -> None:
        """Send a message to those who are subscribed now."""
        self._check_open()
        self._check_size(data)
        self._channels.publish(channel, data)

    async def subscribe(self, *channels: Key) -> ChannelSubscription:
        """Listen to channels: what is published after this returns comes, in order."""
        self._check_open()
        if not channels:
            raise ValueError("a subscription has at least one channel")
        return self._channels.listen(channels)

    # Markers and leases

    async def take(self, key: Key, *, ttl: float) -> bool:
        """Say whether this caller is the first to take `key`."""
        is_first = self._find(_Flag, key) is None
        check_ttl(ttl)
        if is_first:
            self._shelf.add(_Flag(key), 0, ttl)
        return is_first

    async def acquire(self, key: Key, *, ttl: float) -> Lease | None:
        """Return a lease of `key`, or None while another one is held."""
        held = self._find(_LeaseHolder, key)
        check_ttl(ttl)
        if held is not None:
            return None
        lease = Lease(key, next(self._numbers))
        self._shelf.add(_LeaseHolder(key, lease.token), 0, ttl)
        return lease

    async def renew(self, lease: Lease, *, ttl: float) -> bool:
        """Hold a lease for `ttl` from now; say whether it was still held."""
        return self._extend(self._held(lease), ttl)

    async def release(self, lease: Lease) -> bool:
        """Give a lease up; say whether it was still held."""
        return self._remove(self._held(lease))

    async def close(self) -> None:
        """End every subscription, and forget everything."""
        self._is_closed = True
        self._channels.end(EndReason.STORE_CLOSED)
        self._shelf = ExpiringRecords(self._limits, self._clock)

    # What they are made of

    def _find(self, kind: type[Kind], key: Key) -> Kind | None:
        self._check_open()
        return self._shelf.find(kind, key)

    def _held(self, lease: Lease) -> _LeaseHolder | None:
        held = self._find(_LeaseHolder, lease.key)
        return held if held is not None and held.token == lease.token else None

    def _write(self, record: _Value | None, key: Key, value: bytes, ttl: float | None) -> int:
        self._check_size(value)
        check_ttl(ttl)
        stored = Stored(value, next(self._numbers))
        if record is None:
            self._shelf.add(_Value(key, stored), len(value), ttl)
        else:
            self._shelf.grow(record, len(value) - len(record.stored.value))
            record.stored = stored
            self._shelf.expire(record, ttl)
        return stored.version

    def _extend(self, record: Record | None, ttl: float | None) -> bool:
        check_ttl(ttl)
        if record is not None:
            self._shelf.expire(record, ttl)
        return record is not None

    def _remove(self, record: Record | None) -> bool:
        if record is not None:
            self._shelf.remove(record)
        return record is not None

    def _make_room(self, log: _Log, data: bytes, max_entries: int) -> None:
        """Take room for one entry more, less that of those which have to go for it."""
        self._trim(log)
        surplus = range(log.first, log.next + 1 - max_entries)
        self._shelf.grow(log, _cost(data) - sum(_cost(log.entries[at][1]) for at in surplus))
        for _ in surplus:
            log.drop_oldest()

    def _trim(self, log: _Log) -> None:
        """Let the entries go that are too old to be read."""
        freed = 0
        while log.is_stale(self._shelf.now):
            freed += log.drop_oldest()
        if freed:
            self._shelf.grow(log, -freed)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosed

    def _check_size(self, data: bytes) -> None:
        # A bytearray would change in the store when its owner changes it.
        if not isinstance(data, bytes):
            raise TypeError(f"a store keeps bytes, not {type(data).__name__}")
        if len(data) > self._limits.value_bytes:
            raise StoreFull("value_bytes", self._limits.value_bytes)


def _cost(data: bytes) -> int:
    return len(data) + ENTRY_COST
