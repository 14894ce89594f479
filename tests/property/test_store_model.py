"""The memory store against a few dicts that forget nothing and look at the clock each time."""

from __future__ import annotations

from collections.abc import Coroutine
from math import inf
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.effort import examples
from trunkline.store import Cursor, Key, Lease, MemoryStore, Retention, StoreLimits

Result = TypeVar("Result")

names = st.sampled_from(["", "a", "a:", "a:b", "b", "*"])
keys = st.builds(Key, st.sampled_from(["", "a", "a:b"]), st.sampled_from(["thing", "other"]), names)
ttls = st.sampled_from([1.0, 2.0, 5.0, 1000.0])
values = st.binary(max_size=4)


def now_or_never(operation: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of what does not wait."""
    try:
        operation.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    operation.close()
    raise AssertionError("an operation of the memory store waited")


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.store = MemoryStore(StoreLimits(), clock=lambda: self.now)
        # Each with when it expires.
        self.values: dict[Key, tuple[float, bytes, int]] = {}
        self.markers: dict[Key, float] = {}
        self.leases: dict[Key, tuple[float, Lease]] = {}
        # A log is when it expires, its epoch, its age and every entry with the time it came;
        # entries before `first` are trimmed.
        self.logs: dict[Key, tuple[float, str, Retention, list[tuple[float, bytes]], int]] = {}
        self.versions: set[int] = set()
        self.old_leases: list[Lease] = []
        self.old_cursors: list[Cursor] = []

    def value(self, key: Key) -> tuple[float, bytes, int] | None:
        found = self.values.get(key)
        return found if found is not None and found[0] > self.now else None

    @rule(by=st.sampled_from([0.5, 1.0, 3.0]))
    def time_passes(self, by: float) -> None:
        self.now += by

    @rule(key=keys, value=values, ttl=st.none() | ttls)
    def put(self, key: Key, value: bytes, ttl: float | None) -> None:
        self.wrote(key, value, ttl, now_or_never(self.store.put(key, value, ttl=ttl)))

    def wrote(self, key: Key, value: bytes, ttl: float | None, version: int) -> None:
        assert version not in self.versions
        self.versions.add(version)
        self.values[key] = (inf if ttl is None else self.now + ttl, value, version)

    @rule(key=keys, value=values, ttl=st.none() | ttls, data=st.data())
    def compare_and_set(
        self, key: Key, value: bytes, ttl: float | None, data: st.DataObject
    ) -> None:
        there = self.value(key)
        right = None if there is None else there[2]
        version = data.draw(st.sampled_from([right, right, None, *sorted(self.versions)[-3:]]))
        written = now_or_never(self.store.compare_and_set(key, value, version=version, ttl=ttl))
        assert (written is not None) is (version == right)
        if written is not None:
            self.wrote(key, value, ttl, written)

    @rule(key=keys, ttl=st.none() | ttls)
    def touch(self, key: Key, ttl: float | None) -> None:
        there = self.value(key)
        assert now_or_never(self.store.touch(key, ttl=ttl)) is (there is not None)
        if there is not None:
            self.values[key] = (inf if ttl is None else self.now + ttl, *there[1:])

    @rule(key=keys)
    def delete(self, key: Key) -> None:
        assert now_or_never(self.store.delete(key)) is (self.value(key) is not None)
        self.values.pop(key, None)

    @rule(prefix=keys, limit=st.integers(1, 4))
    def scan(self, prefix: Key, limit: int) -> None:
        found: list[Key] = []
        after = None
        while True:
            page = now_or_never(self.store.scan(prefix, after=after, limit=limit))
            found += page.keys
            after = page.cursor
            if after is None:
                break
        expected = {
            key
            for key in self.values
            if self.value(key)
            and (key.tenant, key.kind) == (prefix.tenant, prefix.kind)
            and key.name.startswith(prefix.name)
        }
        assert set(found) == expected
        assert len(found) == len(expected)

    @rule(key=keys, value=values, most=st.integers(1, 4), age=st.none() | ttls, ttl=ttls)
    def append(self, key: Key, value: bytes, most: int, age: float | None, ttl: float) -> None:
        keeping = Retention(most, age, ttl)
        place = now_or_never(self.store.append(key, value, retention=keeping))
        log = self.log(key)
        if log is None:
            entries, first = [], 1
            assert place.epoch not in {cursor.epoch for cursor in self.old_cursors}
        else:
            _, epoch, _, entries, first = log
            assert place.epoch == epoch
        entries.append((self.now, value))
        assert place.number == len(entries)
        self.old_cursors.append(place)
        first = max(first, len(entries) - most + 1)
        self.logs[key] = (self.now + ttl, place.epoch, keeping, entries, first)

    def log(self, key: Key) -> tuple[float, str, Retention, list[tuple[float, bytes]], int] | None:
        """Return the log if it is there, without what has become too old by now."""
        found = self.logs.get(key)
        if found is None or found[0] <= self.now:
            return None
        expires, epoch, keeping, entries, first = found
        if keeping.max_age is not None:
            while first <= len(entries) and entries[first - 1][0] + keeping.max_age <= self.now:
                first += 1
        self.logs[key] = (expires, epoch, keeping, entries, first)
        return self.logs[key]

    @rule(key=keys, limit=st.integers(1, 4), data=st.data())
    def read(self, key: Key, limit: int, data: st.DataObject) -> None:
        after = data.draw(st.none() | st.sampled_from([None, *self.old_cursors[-6:]]))
        page = now_or_never(self.store.read(key, after=after, limit=limit))
        log = self.log(key)
        if log is None:
            assert (page.entries, page.cursor) == ((), None)
            assert page.missed == (0 if after is None else None)
            return
        _, epoch, _, entries, first = log
        is_known = after is None or after.epoch == epoch
        start = after.number if after is not None and is_known else 0
        expected = [
            (number, entry[1])
            for number, entry in enumerate(entries, 1)
            if number >= first and number > start
        ][:limit]
        assert [(entry.number, entry.data) for entry in page.entries] == expected
        assert page.missed == (max(0, first - 1 - start) if is_known else None)
        last = expected[-1][0] if expected else len(entries)
        assert page.cursor == Cursor(epoch, last)

    @rule(key=keys)
    def delete_log(self, key: Key) -> None:
        assert now_or_never(self.store.delete_log(key)) is (self.log(key) is not None)
        self.logs.pop(key, None)

    @rule(key=keys, ttl=ttls)
    def take(self, key: Key, ttl: float) -> None:
        is_free = self.markers.get(key, -inf) <= self.now
        assert now_or_never(self.store.take(key, ttl=ttl)) is is_free
        if is_free:
            self.markers[key] = self.now + ttl

    def holds(self, lease: Lease) -> bool:
        expires, held = self.leases.get(lease.key, (-inf, None))
        return expires > self.now and held == lease

    @rule(key=keys, ttl=ttls)
    def acquire(self, key: Key, ttl: float) -> None:
        lease = now_or_never(self.store.acquire(key, ttl=ttl))
        assert (lease is None) is (self.leases.get(key, (-inf, None))[0] > self.now)
        if lease is not None:
            assert all(old.token < lease.token for old in self.old_leases)
            self.old_leases.append(lease)
            self.leases[key] = (self.now + ttl, lease)

    @rule(ttl=ttls, data=st.data())
    def renew(self, ttl: float, data: st.DataObject) -> None:
        if self.old_leases:
            lease = data.draw(st.sampled_from(self.old_leases[-6:]))
            assert now_or_never(self.store.renew(lease, ttl=ttl)) is self.holds(lease)
            if self.holds(lease):
                self.leases[lease.key] = (self.now + ttl, lease)

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self.old_leases:
            lease = data.draw(st.sampled_from(self.old_leases[-6:]))
            assert now_or_never(self.store.release(lease)) is self.holds(lease)
            if self.holds(lease):
                del self.leases[lease.key]

    @rule(key=keys)
    def get(self, key: Key) -> None:
        there = self.value(key)
        found = now_or_never(self.store.get(key))
        assert (found and (found.value, found.version)) == (there and there[1:])

    @invariant()
    def room_is_counted(self) -> None:
        shelf = self.store._records
        assert shelf._all.keys == len(shelf) == sum(one.keys for one in shelf._tenants.values())
        sizes = sum(record.size for record in shelf._records.values())
        assert shelf._all.bytes == sizes == sum(one.bytes for one in shelf._tenants.values())

    @invariant()
    def every_record_that_expires_is_in_the_heap(self) -> None:
        shelf = self.store._records
        earliest: dict[object, float] = {}
        for when, _, place in shelf._heap:
            earliest[place] = min(when, earliest.get(place, inf))
        for place, record in shelf._records.items():
            assert earliest.get(place, inf) <= record.expires
        assert len(shelf._heap) <= 2 * len(shelf) + 64


TestTheStoreAgreesWithDicts = StoreMachine.TestCase
TestTheStoreAgreesWithDicts.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None, derandomize=True
)
