"""The memory driver under the published contract, and what it promises beyond it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from inspect import iscoroutinefunction
from typing import Any

import pytest

from tests.rigs.clock import Clock
from trunkline.store import (
    EndReason,
    Key,
    MemoryStore,
    Retention,
    Store,
    StoreFull,
    StoreLimits,
    SubscriptionEnded,
)
from trunkline.testing.store_contract import StoreContract

KEY = Key("acme", "thing", "one")
OPERATIONS = {name for name, each in vars(Store).items() if iscoroutinefunction(each)}


class TestMemoryStore(StoreContract):
    def setup_method(self) -> None:
        self.clock = Clock()

    async def make(self) -> Store:
        return MemoryStore(clock=self.clock)

    async def make_limited(self, limits: StoreLimits) -> Store:
        return MemoryStore(limits, clock=self.clock)

    async def advance(self, seconds: float) -> None:
        self.clock.now += seconds


class TimedStore(MemoryStore):
    """A store that waits, and bounds its waits, as drivers of engines do."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in OPERATIONS:
            return found

        async def operate(*args: Any, **options: Any) -> Any:
            async with asyncio.timeout(30):
                await asyncio.sleep(0)
                return await found(*args, **options)

        return operate


class TestStoreWithTimeouts(TestMemoryStore):
    async def make(self) -> Store:
        return TimedStore(clock=self.clock)

    async def make_limited(self, limits: StoreLimits) -> Store:
        return TimedStore(limits, clock=self.clock)


def run(
    script: Callable[[MemoryStore, Clock], Coroutine[Any, Any, None]],
    limits: StoreLimits | None = None,
) -> None:
    clock = Clock()
    asyncio.run(
        asyncio.wait_for(script(MemoryStore(limits or StoreLimits(), clock=clock), clock), 10)
    )


def named(name: object, tenant: str = "acme") -> Key:
    return Key(tenant, "thing", str(name))


def test_memory_store_is_a_store_without_arguments() -> None:
    async def script() -> None:
        store: Store = MemoryStore()
        assert isinstance(store, Store)
        await store.put(KEY, b"1", ttl=60)
        assert await store.get(KEY) is not None

    asyncio.run(script())


def test_record_is_gone_at_the_moment_it_expires() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        await store.put(KEY, b"", ttl=10)
        clock.now += 9.999
        assert await store.get(KEY) is not None
        clock.now += 0.001
        assert await store.get(KEY) is None

    run(script)


def test_no_operation_gives_way_to_another_task() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        for operation in (
            store.put(KEY, b"", ttl=None),
            store.append(KEY, b"", retention=Retention(5, 5, 5)),
            store.publish(KEY, b""),
            store.take(KEY, ttl=1),
            store.scan(KEY),
        ):
            with pytest.raises(StopIteration):
                operation.send(None)

    run(script)


# Room


def test_bytes_are_counted_and_given_back() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        await store.put(KEY, b"x" * 600, ttl=None)
        with pytest.raises(StoreFull, match="total_bytes is limited to 2000"):
            await store.put(named("two"), b"x" * 600, ttl=None)
        with pytest.raises(StoreFull):
            await store.put(KEY, b"x" * 1400, ttl=None)
        found = await store.get(KEY)
        assert found is not None
        assert len(found.value) == 600
        await store.put(KEY, b"", ttl=None)
        await store.put(named("two"), b"x" * 600, ttl=None)

    run(script, StoreLimits(total_bytes=2000))


def test_empty_values_and_entries_are_not_free() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        with pytest.raises(StoreFull) as met:
            for number in range(1000):
                await store.put(named(number), b"", ttl=None)
        assert met.value.bound == "total_bytes"
        with pytest.raises(StoreFull):
            for _ in range(1000):
                await store.append(KEY, b"", retention=Retention(1000, None, 60))

    run(script, StoreLimits(total_bytes=100_000))


def test_a_full_log_goes_on_in_a_full_store() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        for _ in range(5):
            await store.append(KEY, b"x" * 50, retention=Retention(5, None, 60))
        with pytest.raises(StoreFull):
            await store.put(named("two"), b"x" * 100, ttl=None)
        # The oldest goes for it, so no more room is taken.
        place = await store.append(KEY, b"x" * 50, retention=Retention(5, None, 60))
        assert place.number == 6
        with pytest.raises(StoreFull):
            await store.append(KEY, b"x" * 500, retention=Retention(5, None, 60))
        page = await store.read(KEY)
        assert [entry.number for entry in page.entries] == [2, 3, 4, 5, 6]

    run(script, StoreLimits(total_bytes=1650))


def test_trimmed_entries_give_their_room_back() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        for number in range(200):
            await store.append(KEY, b"x" * 100, retention=Retention(100, 10, 1000))
            clock.now += 5 * (number % 2)
        for number in range(2):
            await store.put(named(number), b"x" * 300, ttl=None)

    run(script, StoreLimits(total_bytes=3500))


def test_one_tenant_cannot_take_the_room_of_all() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        for number in range(3):
            await store.put(named(number, "greedy"), b"", ttl=10)
        with pytest.raises(StoreFull, match="tenant_keys"):
            await store.take(named("more", "greedy"), ttl=10)
        with pytest.raises(StoreFull, match="tenant_bytes"):
            await store.put(named(1, "greedy"), b"x" * 2000, ttl=10)
        await store.put(named(1, "modest"), b"", ttl=10)
        clock.now += 10
        assert await store.take(named("more", "greedy"), ttl=10)

    run(script, StoreLimits(tenant_keys=3, tenant_bytes=3000))


def test_nothing_is_counted_when_everything_is_gone() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        for number in range(50):
            key = named(number, f"tenant {number % 7}")
            await store.put(key, b"x" * number, ttl=None if number % 2 else 5)
            await store.append(key, b"x" * number, retention=Retention(5, 2, 5))
            assert await store.take(key, ttl=5)
            await store.acquire(key, ttl=5)
        for number in range(1, 50, 2):
            await store.delete(named(number, f"tenant {number % 7}"))
        clock.now += 5
        for _ in range(50):  # each frees a few
            await store.put(KEY, b"", ttl=None)
        await store.delete(KEY)
        records = store._records
        assert (len(records), records._all.keys, records._all.bytes) == (0, 0, 0)
        assert (records._tenants, records._names) == ({}, {})

    run(script)


# Expiry


def test_expired_records_do_not_accumulate() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        for number in range(2000):
            await store.put(named(number), b"", ttl=10)
            clock.now += 1
        assert len(store._records) <= 12
        assert len(store._records._heap) <= 2 * 12 + 64

    run(script)


def test_keeping_something_alive_does_not_grow_anything() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        for number in range(5000):
            await store.put(KEY, b"", ttl=100)
            assert await store.touch(KEY, ttl=100 + number % 3)
            clock.now += number % 2
        assert len(store._records._heap) <= 66

    run(script)


def test_one_write_frees_only_a_few() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        for number in range(500):
            await store.put(named(number), b"", ttl=10)
        clock.now += 10
        await store.put(KEY, b"", ttl=None)
        assert 480 <= len(store._records) < 500

    run(script)


def test_touch_changes_when_a_record_is_swept() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        await store.put(named("longer"), b"", ttl=10)
        await store.touch(named("longer"), ttl=100)
        await store.put(named("shorter"), b"", ttl=100)
        await store.touch(named("shorter"), ttl=10)
        await store.put(named("for ever"), b"", ttl=10)
        await store.touch(named("for ever"), ttl=None)
        clock.now += 20
        await store.put(KEY, b"", ttl=None)
        assert len(store._records) == 3
        clock.now += 200
        await store.put(KEY, b"", ttl=None)
        assert len(store._records) == 2
        assert await store.get(named("for ever")) is not None

    run(script)


def test_time_that_passes_within_an_operation_changes_nothing() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        await store.put(KEY, b"1", ttl=10)
        # Whenever the clock is read it is later: the value is found, and would be swept.
        clock.now += 9
        ticking = iter(range(10_000))
        store._records._clock = lambda: clock.now + next(ticking)
        version = await store.put(KEY, b"1234", ttl=1000)
        found = await store.get(KEY)
        assert found is not None
        assert (found.value, found.version) == (b"1234", version)
        assert len(store._records) == 1

    run(script)


# Scans


def test_a_scan_is_in_order_and_looks_at_no_more_names_than_asked() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        for number in range(40):
            await store.put(named(f"{number:02}"), b"", ttl=10 if number < 20 else None)
        clock.now += 10
        first = await store.scan(named(""), limit=20)
        assert first.keys == ()
        assert first.cursor is not None
        second = await store.scan(named(""), after=first.cursor, limit=20)
        assert [key.name for key in second.keys] == [f"{number}" for number in range(20, 40)]
        assert second.cursor is None

    run(script)


# Messages


def test_backlog_of_a_subscriber_is_bounded_in_bytes() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        subscription = await store.subscribe(KEY)
        for _ in range(5):
            for _ in range(3):
                await store.publish(KEY, b"x" * 200)
            for _ in range(3):
                await anext(subscription)
        for _ in range(4):
            await store.publish(KEY, b"x" * 200)
        with pytest.raises(SubscriptionEnded) as ended:
            await anext(subscription)
        assert ended.value.reason is EndReason.SLOW
        assert "fell behind" in str(ended.value)

    run(script, StoreLimits(backlog_bytes=1000))


def test_a_dropped_subscriber_holds_nothing_and_makes_room() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        slow = await store.subscribe(KEY, named("two"))
        for _ in range(3):
            await store.publish(KEY, b"")
        assert store._channels._subscriptions == {}
        assert not slow._waiting
        await store.subscribe(KEY, named("two"))

    run(script, StoreLimits(backlog=2, subscriptions=2))


def test_concurrent_readers_of_one_subscription_share_its_messages() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        subscription = await store.subscribe(KEY)
        waiting = [asyncio.ensure_future(anext(subscription)) for _ in range(3)]
        await asyncio.sleep(0)
        for number in range(3):
            await store.publish(KEY, b"%d" % number)
        heard = await asyncio.gather(*waiting)
        assert sorted(message.data for message in heard) == [b"0", b"1", b"2"]

    run(script)


def test_a_subscription_needs_a_channel() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        with pytest.raises(ValueError, match="at least one channel"):
            await store.subscribe()

    run(script)


# The rest


def test_only_bytes_are_kept() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        for wrong in (bytearray(b"x"), memoryview(b"x"), "x", 5, None):
            with pytest.raises(TypeError, match="keeps bytes"):
                await store.put(KEY, wrong, ttl=None)
            with pytest.raises(TypeError, match="keeps bytes"):
                await store.publish(KEY, wrong)

    run(script)


def test_fencing_token_of_an_expired_lease_is_smaller_than_the_next() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        greatest = 0

        def write(token: int) -> bool:
            nonlocal greatest
            greatest = max(greatest, token)
            return token == greatest

        early = await store.acquire(KEY, ttl=10)
        assert early is not None
        assert write(early.token)
        clock.now += 10
        late = await store.acquire(KEY, ttl=10)
        assert late is not None
        assert [write(late.token), write(early.token)] == [True, False]

    run(script)


def test_another_store_has_other_epochs() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        keeping = Retention(5, None, 60)
        old = await store.append(KEY, b"1", retention=keeping)
        await store.close()
        restarted = MemoryStore(clock=clock)
        await restarted.append(KEY, b"2", retention=keeping)
        page = await restarted.read(KEY, after=old)
        assert page.missed is None
        assert [entry.data for entry in page.entries] == [b"2"]

    run(script)


def test_deleted_or_overwritten_value_is_released_before_its_expiry() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        value = bytes(bytearray(b"a value of its own"))
        holders = sys.getrefcount(value)
        for number in range(50):
            await store.put(KEY, value, ttl=3600)
            await store.append(KEY, value, retention=Retention(5, None, 3600))
            await store.put(named(number), value, ttl=3600)
            await store.put(named(number), b"", ttl=3600)
            await store.delete(KEY)
            await store.delete_log(KEY)
        assert sys.getrefcount(value) == holders
        assert len(store._records._heap) <= 2 * 50 + 64

    run(script)


def test_a_closed_store_holds_nothing() -> None:
    async def script(store: MemoryStore, clock: Clock) -> None:
        value = bytes(bytearray(b"a value of its own"))
        holders = sys.getrefcount(value)
        await store.put(KEY, value, ttl=None)
        await store.append(KEY, value, retention=Retention(5, None, 60))
        subscription = await store.subscribe(KEY)
        await store.publish(KEY, value)
        assert sys.getrefcount(value) > holders
        await store.close()
        assert sys.getrefcount(value) == holders
        assert store._channels._subscriptions == {}
        await subscription.close()

    run(script)
