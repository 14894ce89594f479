"""The contract of `trunkline.store.base` as tests, for authors of store drivers.

    class TestClayTablets(StoreContract):
        async def make(self):
            return TabletStore(kiln)

Pytest collects a subclass like any class of tests, without a plugin: each test runs its own event
loop, on an empty store that is closed after it. Time passes by `advance`: a driver with a clock of
its own moves it there, and no test sleeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from ..store.base import ChannelSubscription, Store
from ..store.errors import (
    EndReason,
    StoreClosed,
    StoreError,
    StoreFull,
    SubscriptionEnded,
)
from ..store.values import Cursor, Key, Lease, LogPage, Retention, StoreLimits
from ..transports.http.endpoint.event_log import EventLog
from ..transports.http.settings import HttpLimits

__all__ = ["HOSTILE_NAMES", "StoreContract"]

# Ends a test that hangs.
_TEST_TIMEOUT_S: Final = 30.0

# Names that could be taken for others, or for a pattern or a path.
HOSTILE_NAMES: Final = (
    "",
    "a",
    "a:b",
    "a/b",
    "a\x00b",
    "a\nb",
    "*",
    "a*",
    "[a-z]",
    "?",
    "{a}",
    "}:{",
    "%2f",
    "%",
    "\\",
    "../a",
    "'; --",
    "b:session:a",
    "\x1f",
    "\x7f",
    "ä",
    "a\u0308",
    "\U0010ffff",
    "x" * 512,
)

_KEY: Final = Key("acme", "thing", "one")
_UNUSED: Final = 987_654_321_987  # not a version or token of any entry


_Script = Callable[["StoreContract", Store, Store], Coroutine[Any, Any, None]]


def _rule(*, limits: StoreLimits | None = None) -> Callable[[_Script], Callable[[Any], None]]:
    """Make a test of a script over a new store and a second connection to it."""

    def decorate(script: _Script) -> Callable[[Any], None]:
        def test(self: StoreContract) -> None:
            asyncio.run(asyncio.wait_for(_run(self, script, limits), _TEST_TIMEOUT_S))

        # Not functools.wraps: pytest would take the parameters of the script for fixtures.
        test.__name__, test.__qualname__ = script.__name__, script.__qualname__
        test.__doc__ = script.__doc__
        return test

    return decorate


async def _run(contract: StoreContract, script: _Script, limits: StoreLimits | None) -> None:
    made = contract.make() if limits is None else contract.make_limited(limits)
    store = await made
    if store is None:
        return
    other = await contract.another(store)
    try:
        await script(contract, store, other)
    finally:
        await other.close()
        await store.close()


class StoreContract:
    """Tests of every rule; a subclass makes the store."""

    # The unit of time of the tests, in seconds. With a clock of its own it may be anything; with
    # a real one, 2 units and 3 have to differ measurably.
    tick = 1.0

    async def make(self) -> Store:
        """Return a new, empty store."""
        raise NotImplementedError

    async def make_limited(self, limits: StoreLimits) -> Store | None:
        """Return an empty store with these limits, or None if its engine sets them."""
        return None

    async def another(self, store: Store) -> Store:
        """Return a second connection to the same data, as another process has."""
        return store

    async def advance(self, seconds: float) -> None:
        """Let this many seconds pass for the engine."""
        await asyncio.sleep(seconds)

    # Values

    @_rule()
    async def test_a_value_is_there_until_it_is_deleted(self, store: Store, other: Store) -> None:
        """Every connection gets what was put, until it is deleted."""
        assert await store.get(_KEY) is None
        version = await store.put(_KEY, b"\x00\xff", ttl=None)
        found = await other.get(_KEY)
        assert found is not None
        assert (found.value, found.version) == (b"\x00\xff", version)
        assert [await other.delete(_KEY), await store.delete(_KEY)] == [True, False]
        assert await store.get(_KEY) is None

    @_rule()
    async def test_a_value_expires(self, store: Store, other: Store) -> None:
        """A value is gone after its ttl; another write sets a new ttl."""
        brief, renewed, lasting = (Key("acme", "thing", name) for name in "brl")
        await store.put(brief, b"1", ttl=2 * self.tick)
        await store.put(renewed, b"1", ttl=2 * self.tick)
        await store.put(renewed, b"2", ttl=8 * self.tick)
        await store.put(lasting, b"1", ttl=2 * self.tick)
        await store.put(lasting, b"2", ttl=None)
        assert await _names(store, Key("acme", "thing", "")) == {"b", "r", "l"}
        await self.advance(3 * self.tick)
        assert await store.get(brief) is None
        assert not await store.touch(brief, ttl=self.tick)
        assert not await store.delete(brief)
        assert await _names(store, Key("acme", "thing", "")) == {"r", "l"}
        await self.advance(6 * self.tick)
        assert await _names(store, Key("acme", "thing", "")) == {"l"}

    @_rule()
    async def test_touching_changes_the_ttl_and_not_the_version(
        self, store: Store, other: Store
    ) -> None:
        """`touch` sets a longer or shorter ttl and keeps the version."""
        version = await store.put(_KEY, b"1", ttl=2 * self.tick)
        assert await store.touch(_KEY, ttl=8 * self.tick)
        await self.advance(3 * self.tick)
        assert await _version(store, _KEY) == version
        assert await store.touch(_KEY, ttl=2 * self.tick)
        await self.advance(3 * self.tick)
        assert await store.get(_KEY) is None

    @_rule()
    async def test_one_of_many_wins_a_comparison(self, store: Store, other: Store) -> None:
        """Of several writers with the same version one succeeds, the others change nothing."""

        async def race(version: int | None) -> int:
            results = await asyncio.gather(
                *(
                    one.compare_and_set(_KEY, b"%d" % at, version=version, ttl=None)
                    for at in range(10)
                    for one in (store, other)
                )
            )
            (won,) = [result for result in results if result is not None]
            assert await _version(store, _KEY) == won
            return won

        first = await race(None)
        second = await race(first)
        assert first != second
        for stale in (None, first, _UNUSED):
            assert await store.compare_and_set(_KEY, b"", version=stale, ttl=None) is None

    @_rule()
    async def test_a_version_is_not_reused(self, store: Store, other: Store) -> None:
        """A key that was deleted or has expired gets another version."""
        versions = [await store.put(_KEY, b"same", ttl=None)]
        await store.delete(_KEY)
        versions.append(await store.put(_KEY, b"same", ttl=2 * self.tick))
        await self.advance(3 * self.tick)
        versions.append(await store.put(_KEY, b"same", ttl=None))
        assert len(set(versions)) == 3
        for old in versions[:2]:
            assert await store.compare_and_set(_KEY, b"", version=old, ttl=None) is None
            assert not await store.delete(_KEY, version=old)
        assert await store.delete(_KEY, version=versions[2])

    @_rule()
    async def test_an_expired_value_compares_as_absent(self, store: Store, other: Store) -> None:
        """After it has expired, the version to compare with is None."""
        old = await store.put(_KEY, b"old", ttl=2 * self.tick)
        await self.advance(3 * self.tick)
        assert await store.compare_and_set(_KEY, b"x", version=old, ttl=None) is None
        assert await store.compare_and_set(_KEY, b"new", version=None, ttl=None) is not None

    # Keys

    @_rule()
    async def test_hostile_names_are_names(self, store: Store, other: Store) -> None:
        """Names are distinct; none is a separator, a pattern or another spelling of one."""
        keys = [Key("acme", "thing", name) for name in HOSTILE_NAMES]
        for at, key in enumerate(keys):
            await store.put(key, b"%d" % at, ttl=None)
        for at, key in enumerate(keys):
            found = await store.get(key)
            assert found is not None
            assert found.value == b"%d" % at
        assert await _names(store, Key("acme", "thing", "")) == set(HOSTILE_NAMES)
        for prefix in HOSTILE_NAMES:
            expected = {name for name in HOSTILE_NAMES if name.startswith(prefix)}
            assert await _names(store, Key("acme", "thing", prefix)) == expected

    @_rule()
    async def test_no_name_reaches_another_tenant_or_kind(self, store: Store, other: Store) -> None:
        """A scan returns the keys of its tenant and kind, whatever their names."""
        for tenant in HOSTILE_NAMES:
            for kind in ("session", "session-log"):
                await store.put(Key(tenant, kind, "mine"), tenant.encode(), ttl=None)
        for tenant in HOSTILE_NAMES:
            assert await _names(store, Key(tenant, "session", "")) == {"mine"}
            found = await store.get(Key(tenant, "session", "mine"))
            assert found is not None
            assert found.value == tenant.encode()
            for name in HOSTILE_NAMES:
                assert await store.get(Key(tenant, "session", name)) is None
                assert await _names(store, Key(tenant, "session", name)) <= {"mine"}
            assert await _names(store, Key(tenant, "sess", "")) == set()
        assert await store.delete(Key("a", "session", "mine"))
        assert await store.get(Key("a:b", "session", "mine")) is not None

    @_rule()
    async def test_tenants_share_no_log_channel_marker_or_lease(
        self, store: Store, other: Store
    ) -> None:
        """Two tenants with the same name have separate logs, channels, markers and leases."""
        ours, theirs = Key("a", "thing", "b:c"), Key("a:b", "thing", "c")
        subscription = await store.subscribe(ours)
        for key in (ours, theirs):
            assert await store.take(key, ttl=9 * self.tick)
            assert await store.acquire(key, ttl=9 * self.tick)
            assert (await store.append(key, b"x", retention=self._keeping(5))).number == 1
        await store.publish(theirs, b"theirs")
        await store.publish(ours, b"ours")
        assert await _next(subscription) == b"ours"

    @_rule()
    async def test_value_log_marker_and_lease_of_a_key_are_independent(
        self, store: Store, other: Store
    ) -> None:
        """Each is created and deleted without the others."""
        await store.append(_KEY, b"entry", retention=self._keeping(5))
        assert await store.take(_KEY, ttl=9 * self.tick)
        assert await store.acquire(_KEY, ttl=9 * self.tick)
        assert await store.get(_KEY) is None
        assert await _names(store, Key("acme", "thing", "")) == set()
        await store.put(_KEY, b"value", ttl=None)
        assert await store.delete_log(_KEY)
        assert await store.delete(_KEY)
        assert not await store.take(_KEY, ttl=9 * self.tick)
        assert await store.acquire(_KEY, ttl=9 * self.tick) is None

    # Scans

    @_rule()
    async def test_a_scan_is_paged_and_complete(self, store: Store, other: Store) -> None:
        """The pages of a scan have every key with the prefix, at most `limit` each."""
        names = {f"{letter}{number}" for letter in "abc" for number in range(40)}
        for name in names:
            await store.put(Key("acme", "thing", name), b"", ttl=None)
        assert await _names(store, Key("acme", "thing", ""), limit=7) == names
        expected = {f"b{number}" for number in range(40)}
        assert await _names(store, Key("acme", "thing", "b"), limit=7) == expected
        assert await _names(store, Key("acme", "thing", "b"), limit=1) == expected
        assert await _names(store, Key("acme", "thing", "zz")) == set()

    @_rule()
    async def test_a_scan_finds_what_stays_while_others_come_and_go(
        self, store: Store, other: Store
    ) -> None:
        """A key that exists from the first page to the last is on one of them."""
        for number in range(60):
            await store.put(Key("acme", "thing", f"{number:02}"), b"", ttl=None)
        found: set[str] = set()
        after = None
        for turn in range(200):
            page = await store.scan(Key("acme", "thing", ""), after=after, limit=5)
            found |= {key.name for key in page.keys}
            # Every third is deleted, in no order; others are added before and behind.
            await store.delete(Key("acme", "thing", f"{turn * 21 % 60:02}"))
            await store.put(Key("acme", "thing", f"{turn:02}+"), b"", ttl=2 * self.tick)
            after = page.cursor
            if after is None:
                break
        assert after is None
        assert {f"{number:02}" for number in range(60) if number % 3} <= found

    # Logs

    @_rule()
    async def test_a_log_is_read_in_order_from_any_place(self, store: Store, other: Store) -> None:
        """Numbers rise by one from 1; a cursor continues where it stopped."""
        nothing = await store.read(_KEY)
        assert (nothing.entries, nothing.cursor, nothing.missed) == ((), None, 0)
        places = [
            await one.append(_KEY, b"%d" % number, retention=self._keeping(100))
            for number, one in enumerate([store, other] * 10, 1)
        ]
        assert [place.number for place in places] == list(range(1, 21))
        assert len({place.epoch for place in places}) == 1
        page = await other.read(_KEY, limit=15)
        assert _read(page) == list(range(1, 16))
        page = await store.read(_KEY, after=page.cursor, limit=15)
        assert (_read(page), page.missed, page.cursor) == (list(range(16, 21)), 0, places[-1])
        page = await store.read(_KEY, after=page.cursor)
        assert (_read(page), page.missed, page.cursor) == ([], 0, places[-1])
        assert _read(await store.read(_KEY, after=places[9], limit=3)) == [11, 12, 13]

    @_rule()
    async def test_appending_at_once_leaves_no_gap(self, store: Store, other: Store) -> None:
        """Concurrent appends get distinct, consecutive numbers."""
        places = await asyncio.gather(
            *(one.append(_KEY, b"0", retention=self._keeping(100)) for one in [store, other] * 20)
        )
        assert sorted(place.number for place in places) == list(range(1, 41))

    @_rule()
    async def test_events_of_an_http_session_are_kept_in_order(
        self, store: Store, other: Store
    ) -> None:
        """A server appends events in callbacks of its loop, where a driver may use timeouts."""
        failures: list[object] = []

        def log(connection: Store) -> EventLog:
            limits = HttpLimits(replay_ttl=100 * self.tick)
            return EventLog(connection, "session", limits, lambda *each: failures.append(each))

        events, numbers = log(store), range(1, 21)
        for number in numbers:
            asyncio.get_running_loop().call_soon(events.append, 1, number, b"%d" % number)
        await asyncio.sleep(0)
        assert await events.read(1, 0) == [(number, b"%d" % number) for number in numbers]
        assert await log(other).read(1, 18) == [(19, b"19"), (20, b"20")]
        await events.delete()
        assert await log(other).read(1, 0) == []
        assert failures == []

    @_rule(limits=StoreLimits(value_bytes=100))
    async def test_a_refused_append_uses_no_number(self, store: Store, other: Store) -> None:
        """An entry that is too large leaves no gap in the log."""
        await store.append(_KEY, b"1", retention=self._keeping(100))
        too_large = store.append(_KEY, b"x" * 101, retention=self._keeping(100))
        assert await _bound(too_large) == "value_bytes"
        await other.append(_KEY, b"2", retention=self._keeping(100))
        assert _read(await store.read(_KEY)) == [1, 2]

    @_rule()
    async def test_a_reader_learns_how_many_were_trimmed(self, store: Store, other: Store) -> None:
        """Only the newest entries are kept, and the gap is counted."""
        places = [
            await store.append(_KEY, b"%d" % number, retention=self._keeping(4))
            for number in range(1, 11)
        ]
        page = await store.read(_KEY)
        assert (_read(page), page.missed) == ([7, 8, 9, 10], 6)
        page = await store.read(_KEY, after=places[1])
        assert (_read(page), page.missed) == ([7, 8, 9, 10], 4)
        page = await store.read(_KEY, after=places[5])
        assert (_read(page), page.missed) == ([7, 8, 9, 10], 0)
        await store.append(_KEY, b"11", retention=self._keeping(1))
        page = await store.read(_KEY, after=places[7])
        assert (_read(page), page.missed) == ([11], 2)

    @_rule()
    async def test_old_entries_are_not_read_and_are_counted(
        self, store: Store, other: Store
    ) -> None:
        """An entry can be read for `max_age`; the log stays, with its numbers and its epoch."""
        keeping = self._keeping(10, max_age=4)
        first = await store.append(_KEY, b"1", retention=keeping)
        await store.append(_KEY, b"2", retention=keeping)
        await self.advance(3 * self.tick)
        await store.append(_KEY, b"3", retention=keeping)
        assert _read(await store.read(_KEY)) == [1, 2, 3]
        await self.advance(2 * self.tick)
        page = await store.read(_KEY, after=first)
        assert (_read(page), page.missed) == ([3], 1)
        await self.advance(5 * self.tick)
        page = await store.read(_KEY, after=first)
        assert (_read(page), page.missed, page.cursor) == ([], 2, Cursor(first.epoch, 3))
        assert (await store.read(_KEY, after=page.cursor)).missed == 0
        assert await store.append(_KEY, b"4", retention=keeping) == Cursor(first.epoch, 4)

    @_rule()
    async def test_a_reader_learns_that_a_log_was_lost_or_restarted(
        self, store: Store, other: Store
    ) -> None:
        """A cursor of a lost log reads the new one, with `missed` unknown (None)."""
        for lose in (self._delete_log, self._outlive_log):
            old = await store.append(_KEY, b"1", retention=self._keeping(10))
            old = await store.append(_KEY, b"2", retention=self._keeping(10))
            await lose(store)
            page = await store.read(_KEY, after=old)
            assert (_read(page), page.cursor, page.missed) == ([], None, None)
            new = await store.append(_KEY, b"1", retention=self._keeping(10))
            new = await store.append(_KEY, b"2", retention=self._keeping(10))
            assert new.epoch != old.epoch
            page = await store.read(_KEY, after=old)
            assert (_read(page), page.cursor, page.missed) == ([1, 2], new, None)

    @_rule()
    async def test_a_cursor_ahead_of_the_log_counts_as_lost(
        self, store: Store, other: Store
    ) -> None:
        """So does one that no log can have returned."""
        place = await store.append(_KEY, b"1", retention=self._keeping(10))
        for number in (2, 2**70, -1):
            page = await store.read(_KEY, after=Cursor(place.epoch, number))
            assert (_read(page), page.cursor, page.missed) == ([1], place, None)

    @_rule()
    async def test_a_log_lives_from_its_last_append(self, store: Store, other: Store) -> None:
        """Each append restarts the ttl of the whole log."""
        places = []
        for _ in range(3):
            places.append(await store.append(_KEY, b"0", retention=self._keeping(9, ttl=4)))
            await self.advance(3 * self.tick)
        assert [place.number for place in places] == [1, 2, 3]
        await self.advance(2 * self.tick)
        assert (await store.read(_KEY)).cursor is None
        assert not await store.delete_log(_KEY)

    # Messages

    @_rule()
    async def test_subscribers_receive_messages_in_order(self, store: Store, other: Store) -> None:
        """A subscriber receives all later messages on its channels, and no earlier ones."""
        left, right = (Key("acme", "channel", name) for name in ("left", "right"))
        await store.publish(left, b"too early")
        one = await store.subscribe(left)
        both = await other.subscribe(left, right, left)
        for number in range(5):
            await store.publish(left, b"l%d" % number)
            await store.publish(right, b"r%d" % number)
        assert [await _next(one) for _ in range(5)] == [b"l0", b"l1", b"l2", b"l3", b"l4"]
        heard = [await asyncio.wait_for(anext(both), _TEST_TIMEOUT_S) for _ in range(10)]
        for channel, letter in ((left, b"l"), (right, b"r")):
            own = [message.data for message in heard if message.channel == channel]
            assert own == [letter + b"%d" % number for number in range(5)]

    @_rule()
    async def test_a_cancelled_wait_loses_no_message(self, store: Store, other: Store) -> None:
        """A message wakes the waiting reader; after a cancelled wait it is kept."""
        subscription = await store.subscribe(_KEY)
        waiting = asyncio.ensure_future(_next(subscription))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        waiting = asyncio.ensure_future(_next(subscription))
        await asyncio.sleep(0)
        await other.publish(_KEY, b"1")
        await other.publish(_KEY, b"2")
        assert [await waiting, await _next(subscription)] == [b"1", b"2"]

    @_rule()
    async def test_a_closed_subscription_stops(self, store: Store, other: Store) -> None:
        """It ends without an error; closing twice is allowed."""
        subscription = await store.subscribe(_KEY)
        stays = await store.subscribe(_KEY)
        waiting = asyncio.ensure_future(_all(subscription))
        await asyncio.sleep(0)
        await subscription.close()
        await subscription.close()
        await store.publish(_KEY, b"later")
        assert await waiting == []
        assert await _all(subscription) == []
        assert await _next(stays) == b"later"

    @_rule(limits=StoreLimits(backlog=4))
    async def test_a_slow_subscriber_is_ended_with_a_reason(
        self, store: Store, other: Store
    ) -> None:
        """Every read raises the reason; other subscribers and the publisher do not wait."""
        slow, quick = await store.subscribe(_KEY), await store.subscribe(_KEY)
        for number in range(8):
            await store.publish(_KEY, b"%d" % number)
            assert await _next(quick) == b"%d" % number
        for _ in range(2):
            assert (await _ending(slow)).reason is EndReason.SLOW
        await slow.close()
        again = await store.subscribe(_KEY)
        await store.publish(_KEY, b"fresh")
        assert [await _next(again), await _next(quick)] == [b"fresh", b"fresh"]

    # Markers

    @_rule()
    async def test_a_marker_is_taken_once(self, store: Store, other: Store) -> None:
        """Within its ttl one of many attempts succeeds; afterwards one more."""

        async def takers() -> int:
            tries = [one.take(_KEY, ttl=3 * self.tick) for one in [store, other] * 10]
            return sum(await asyncio.gather(*tries))

        assert await takers() == 1
        await self.advance(2 * self.tick)
        # A failed attempt does not extend the ttl.
        assert await takers() == 0
        await self.advance(2 * self.tick)
        assert await takers() == 1

    # Leases

    @_rule()
    async def test_a_lease_is_held_by_one(self, store: Store, other: Store) -> None:
        """After release or expiry it is free, and the next token is higher."""

        async def race() -> Lease:
            tries = [one.acquire(_KEY, ttl=3 * self.tick) for one in [store, other] * 10]
            (lease,) = [lease for lease in await asyncio.gather(*tries) if lease is not None]
            assert lease.key == _KEY
            return lease

        leases = [await race()]
        assert await other.release(leases[0])
        leases.append(await race())
        await self.advance(4 * self.tick)
        leases.append(await race())
        tokens = [lease.token for lease in leases]
        assert tokens == sorted(set(tokens))

    @_rule()
    async def test_only_its_holder_keeps_a_lease(self, store: Store, other: Store) -> None:
        """An expired holder, or another client, can neither renew nor release it."""
        lease = await store.acquire(_KEY, ttl=3 * self.tick)
        assert lease is not None
        for _ in range(3):
            await self.advance(2 * self.tick)
            assert await store.renew(lease, ttl=3 * self.tick)
        await self.advance(4 * self.tick)
        assert not await store.renew(lease, ttl=3 * self.tick)
        taken = await other.acquire(_KEY, ttl=9 * self.tick)
        assert taken is not None
        for stranger in (lease, Lease(_KEY, _UNUSED)):
            assert not await store.renew(stranger, ttl=9 * self.tick)
            assert not await store.release(stranger)
        assert await store.acquire(_KEY, ttl=self.tick) is None
        assert [await other.release(taken), await other.release(taken)] == [True, False]

    # Bounds

    @_rule(limits=StoreLimits(keys=4))
    async def test_a_full_store_refuses_and_keeps_what_it_has(
        self, store: Store, other: Store
    ) -> None:
        """Existing keys stay and may be changed; deletion and expiry make room."""
        kept, brief = Key("acme", "thing", "kept"), Key("acme", "thing", "brief")
        await store.put(kept, b"1", ttl=None)
        await store.append(_KEY, b"1", retention=self._keeping(5))
        assert await store.take(_KEY, ttl=99 * self.tick)
        await store.put(brief, b"1", ttl=2 * self.tick)
        new = Key("acme", "thing", "new")
        attempts: list[Callable[[], Awaitable[object]]] = [
            lambda: store.put(new, b"", ttl=None),
            lambda: store.compare_and_set(new, b"", version=None, ttl=None),
            lambda: store.append(new, b"", retention=self._keeping(5)),
            lambda: store.take(new, ttl=self.tick),
            lambda: store.acquire(new, ttl=self.tick),
        ]
        for attempt in attempts:
            assert await _bound(attempt()) == "keys"
        assert await store.get(new) is None
        assert (await store.read(new)).cursor is None
        await store.put(kept, b"2", ttl=None)
        assert not await store.take(_KEY, ttl=99 * self.tick)
        await self.advance(3 * self.tick)
        assert await store.acquire(new, ttl=9 * self.tick)
        assert await store.delete(kept)
        assert await store.take(new, ttl=9 * self.tick)

    @_rule(limits=StoreLimits(value_bytes=64, log_entries=5))
    async def test_what_is_too_large_is_refused(self, store: Store, other: Store) -> None:
        """Values, entries and messages have a size limit; logs have a length limit."""
        subscription = await store.subscribe(_KEY)
        await store.put(_KEY, b"x" * 64, ttl=None)
        place = await store.append(_KEY, b"x" * 64, retention=self._keeping(5))
        large = b"x" * 65
        assert await _bound(store.put(_KEY, large, ttl=None)) == "value_bytes"
        assert await _bound(store.append(_KEY, large, retention=self._keeping(5))) == "value_bytes"
        assert await _bound(store.publish(_KEY, large)) == "value_bytes"
        long = self._keeping(6)
        assert await _bound(store.append(_KEY, b"", retention=long)) == "log_entries"
        assert (await store.read(_KEY)).cursor == place
        found = await store.get(_KEY)
        assert found is not None
        assert found.value == b"x" * 64
        await store.publish(_KEY, b"small")
        assert await _next(subscription) == b"small"

    @_rule(limits=StoreLimits(subscriptions=4))
    async def test_subscriptions_are_counted_by_channel(self, store: Store, other: Store) -> None:
        """One more than the limit is refused; closing one makes room."""
        keys = [Key("acme", "channel", str(number)) for number in range(4)]
        three = await store.subscribe(*keys[:3])
        assert await _bound(store.subscribe(*keys[2:])) == "subscriptions"
        one = await store.subscribe(keys[3])
        assert await _bound(store.subscribe(keys[3])) == "subscriptions"
        await three.close()
        again = await store.subscribe(*keys[:3])
        await store.publish(keys[3], b"still")
        await store.publish(keys[2], b"again")
        assert [await _next(one), await _next(again)] == [b"still", b"again"]

    @_rule()
    async def test_an_invalid_ttl_or_limit_is_refused(self, store: Store, other: Store) -> None:
        """The store is unchanged then."""
        lease = await store.acquire(_KEY, ttl=9 * self.tick)
        assert lease is not None
        for ttl in (0.0, -1.0, float("nan"), float("inf")):
            attempts: list[Awaitable[object]] = [
                store.put(_KEY, b"", ttl=ttl),
                store.compare_and_set(_KEY, b"", version=None, ttl=ttl),
                store.touch(_KEY, ttl=ttl),
                store.take(_KEY, ttl=ttl),
                store.acquire(Key("acme", "thing", "two"), ttl=ttl),
                store.renew(lease, ttl=ttl),
            ]
            for attempt in attempts:
                assert await _is_refused(attempt)
        for limit in (0, -1, 1001):
            assert await _is_refused(store.scan(_KEY, limit=limit))
            assert await _is_refused(store.read(_KEY, limit=limit))
        assert await store.get(_KEY) is None
        assert await store.take(_KEY, ttl=self.tick)
        assert await store.renew(lease, ttl=self.tick)

    # The end

    @_rule()
    async def test_a_closed_store_ends_its_subscriptions_and_refuses(
        self, store: Store, other: Store
    ) -> None:
        """Subscriptions end with the reason, operations raise StoreClosed, no task is left."""
        before = asyncio.all_tasks()
        subscription = await store.subscribe(_KEY)
        await store.publish(_KEY, b"waits")
        idle = await store.subscribe(_KEY)
        waiting = asyncio.ensure_future(_ending(idle))
        lease = await store.acquire(_KEY, ttl=self.tick)
        assert lease is not None
        await asyncio.sleep(0)
        await store.close()
        await store.close()
        assert (await waiting).reason is EndReason.STORE_CLOSED
        assert (await _ending(subscription)).reason is EndReason.STORE_CLOSED
        attempts: list[Awaitable[object]] = [
            store.get(_KEY),
            store.put(_KEY, b"", ttl=None),
            store.compare_and_set(_KEY, b"", version=None, ttl=None),
            store.touch(_KEY, ttl=None),
            store.delete(_KEY),
            store.scan(_KEY),
            store.append(_KEY, b"", retention=self._keeping(1)),
            store.read(_KEY),
            store.delete_log(_KEY),
            store.publish(_KEY, b""),
            store.subscribe(_KEY),
            store.take(_KEY, ttl=self.tick),
            store.acquire(_KEY, ttl=self.tick),
            store.renew(lease, ttl=self.tick),
            store.release(lease),
        ]
        for attempt in attempts:
            assert isinstance(await _error(attempt), StoreClosed)
        await subscription.close()
        assert asyncio.all_tasks() <= before

    def _keeping(self, entries: int, *, max_age: float | None = None, ttl: float = 50) -> Retention:
        age = None if max_age is None else max_age * self.tick
        return Retention(entries, age, ttl * self.tick)

    async def _delete_log(self, store: Store) -> None:
        assert await store.delete_log(_KEY)

    async def _outlive_log(self, store: Store) -> None:
        await store.append(_KEY, b"last", retention=self._keeping(10, ttl=2))
        await self.advance(3 * self.tick)


async def _names(store: Store, prefix: Key, *, limit: int = 100) -> set[str]:
    """Return the names of a scan; check the size and the scope of each page."""
    found: set[str] = set()
    after = None
    for _ in range(1000):
        page = await store.scan(prefix, after=after, limit=limit)
        assert len(page.keys) <= limit
        assert all((key.tenant, key.kind) == (prefix.tenant, prefix.kind) for key in page.keys)
        found |= {key.name for key in page.keys}
        after = page.cursor
        if after is None:
            return found
    raise AssertionError("the scan does not end")


async def _version(store: Store, key: Key) -> int | None:
    found = await store.get(key)
    return None if found is None else found.version


def _read(page: LogPage) -> list[int]:
    """Return the numbers of a page; check that entries hold their own number, or 0."""
    assert all(entry.data in (b"0", b"%d" % entry.number) for entry in page.entries)
    return [entry.number for entry in page.entries]


async def _next(subscription: ChannelSubscription) -> bytes:
    return (await asyncio.wait_for(anext(subscription), _TEST_TIMEOUT_S)).data


async def _all(subscription: ChannelSubscription) -> list[bytes]:
    async with asyncio.timeout(_TEST_TIMEOUT_S):
        return [message.data async for message in subscription]


async def _ending(subscription: ChannelSubscription) -> SubscriptionEnded:
    ended = await _error(asyncio.wait_for(anext(subscription), _TEST_TIMEOUT_S))
    assert isinstance(ended, SubscriptionEnded)
    return ended


async def _error(attempt: Awaitable[Any]) -> StoreError | None:
    try:
        await attempt
    except StoreError as error:
        return error
    return None


async def _bound(attempt: Awaitable[Any]) -> str | None:
    error = await _error(attempt)
    return error.bound if isinstance(error, StoreFull) else None


async def _is_refused(attempt: Awaitable[Any]) -> bool:
    try:
        await attempt
    except ValueError:
        return True
    return False
