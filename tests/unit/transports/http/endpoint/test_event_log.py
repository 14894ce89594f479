"""The log of a session: what is kept of its streams, and what a gap in it means."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from trunkline import HttpLimits
from trunkline.store.errors import StoreError, StoreFull, StoreUnavailable
from trunkline.store.memory import MemoryStore
from trunkline.store.values import Cursor, Key, Retention
from trunkline.transports.http.endpoint.event_log import EventLog, parse_event_id


class SlowStore(MemoryStore):
    """A store whose appends wait for a gate, and may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.began: list[bytes] = []
        self.fails: dict[bytes, StoreError] = {}

    async def append(self, key: Key, data: bytes, *, retention: Retention) -> Cursor:
        self.began.append(data)
        await self.gate.wait()
        if data in self.fails:
            raise self.fails[data]
        return await super().append(key, data, retention=retention)


class Made:
    """A log, and what it reports."""

    def __init__(self, store: MemoryStore | None = None, **limits: Any) -> None:
        self.store = store or MemoryStore()
        self.reported: list[str] = []
        self.log = EventLog(self.store, "name", HttpLimits(**limits), self.report)

    def report(self, text: str, error: StoreError) -> None:
        self.reported.append(text % error)

    def append(self, stream: int, *numbers: int) -> None:
        for number in numbers:
            self.log.append(stream, number, b"%d/%d" % (stream, number))

    async def read(self, stream: int, after: int) -> list[int] | None:
        """Return the numbers of the events; each has its own frame."""
        found = await self.log.read(stream, after)
        if found is None:
            return None
        assert all(frame == b"%d/%d" % (stream, number) for number, frame in found)
        return [number for number, _ in found]


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await work

    asyncio.run(bounded())


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"1-0", (1, 0)),
        (b"12-345", (12, 345)),
        (b"", None),
        (b"1", None),
        (b"1-", None),
        (b"-1", None),
        (b"1-2-3", None),
        (b"1-x", None),
        (b"-1-2", None),
        ("\u0661-\u0662".encode(), None),
        (b"1-" + b"9" * 39, None),
        # Exchanges that cannot be resumed have no number.
        (b"0-0", None),
        (b"00-1", None),
    ],
)
def test_an_event_id_is_a_stream_and_a_number(text: bytes, place: tuple[int, int] | None) -> None:
    assert parse_event_id(text) == place


def test_events_of_one_stream_are_read_after_a_number() -> None:
    async def work() -> None:
        made = Made()
        made.append(1, 1)
        made.append(11, 1)
        made.append(123, 1)
        made.append(1, 2)
        made.append(2, 1)
        made.append(1, 3)
        assert await made.read(1, 0) == [1, 2, 3]
        assert await made.read(1, 2) == [3]
        assert await made.read(1, 3) == []
        assert await made.read(11, 0) == [1]
        assert await made.read(3, 0) == []
        # The memory of this process needs no task.
        assert made.log._writer is None

    run(work())


def test_more_events_than_one_page_are_read() -> None:
    async def work() -> None:
        made = Made(replay_events=2000)
        made.append(1, *range(1, 1201))
        assert await made.read(1, 0) == [*range(1, 1201)]
        assert await made.read(1, 1000) == [*range(1001, 1201)]

    run(work())


def test_only_so_many_events_are_kept_and_those_before_are_lost() -> None:
    async def work() -> None:
        made = Made(replay_events=3)
        made.append(1, 1, 2, 3, 4, 5)
        assert await made.read(1, 2) == [3, 4, 5]
        assert await made.read(1, 1) is None
        assert await made.read(1, 0) is None

    run(work())


def test_only_so_many_bytes_are_kept_but_always_the_last_event() -> None:
    async def work() -> None:
        made = Made(replay_bytes=30_000)
        for number in range(1, 6):
            made.log.append(1, number, b"x" * 10_000)
        found = await made.log.read(1, 3)
        assert found is not None
        assert [number for number, _ in found] == [4, 5]
        assert await made.log.read(1, 2) is None
        made.log.append(1, 6, b"x" * 100_000)
        found = await made.log.read(1, 5)
        assert found is not None
        assert [number for number, _ in found] == [6]
        assert await made.log.read(1, 4) is None

    run(work())


def test_events_during_a_slow_store_write_are_kept_in_order() -> None:
    async def work() -> None:
        store = SlowStore()
        made = Made(store)
        made.append(1, 1, 2, 3)
        await asyncio.sleep(0)
        assert len(store.began) == 1
        reading = asyncio.create_task(made.read(1, 0))
        await asyncio.sleep(0)
        made.append(1, 4)
        assert not reading.done()
        store.gate.set()
        assert await reading == [1, 2, 3, 4]
        made.append(1, 5)
        assert await made.read(1, 4) == [5]

    run(work())


def test_events_waiting_for_the_store_are_bounded() -> None:
    async def work() -> None:
        store = SlowStore()
        made = Made(store, replay_events=10)
        made.append(1, *range(1, 1001))
        assert len(made.log._waiting) <= 10
        store.gate.set()
        assert await made.read(1, 990) == [*range(991, 1001)]
        assert await made.read(1, 900) is None
        for number in range(1001, 1101):
            store.gate.clear()
            made.log.append(1, number, b"x" * 1_000_000)
        assert sum(map(len, made.log._waiting)) <= 8 * 1024 * 1024
        store.gate.set()
        await made.log.read(1, 0)

    run(work())


def test_an_event_that_was_not_kept_is_a_gap_and_is_reported() -> None:
    async def work() -> None:
        store = SlowStore()
        store.gate.set()
        made = Made(store)
        store.fails[b"1-2 1/2"] = StoreFull("entries", 1)
        made.append(1, 1, 2, 3)
        made.append(2, 1)
        assert await made.read(1, 0) is None
        assert await made.read(1, 1) is None
        # Behind the gap, and on other streams, nothing is lost.
        assert await made.read(1, 2) == [3]
        assert await made.read(2, 0) == [1]
        assert len(made.reported) == 1
        assert made.reported[0].startswith("event of a session not kept, its stream cannot be")

    run(work())


class TimedStore(MemoryStore):
    """A store that bounds its waits, as drivers of engines do."""

    async def append(self, key: Key, data: bytes, *, retention: Retention) -> Cursor:
        async with asyncio.timeout(30):
            await asyncio.sleep(0)
            return await super().append(key, data, retention=retention)


def test_driver_with_timeouts_keeps_events_that_are_sent_outside_a_task() -> None:
    async def work() -> None:
        made = Made(TimedStore())
        for number in range(1, 11):
            asyncio.get_running_loop().call_soon(made.append, 1, number)
        await asyncio.sleep(0)
        assert await made.read(1, 0) == [*range(1, 11)]
        assert made.reported == []

    run(work())


def test_error_of_a_driver_is_a_gap_and_later_events_are_kept() -> None:
    class Buggy(TimedStore):
        async def append(self, key: Key, data: bytes, *, retention: Retention) -> Cursor:
            if data == b"1-2 1/2":
                raise LookupError("no such engine: redis://user:secret@host")
            return await super().append(key, data, retention=retention)

    async def work() -> None:
        made = Made(Buggy())
        made.append(1, 1, 2, 3)
        assert await made.read(1, 0) is None
        assert await made.read(1, 2) == [3]
        (line,) = made.reported
        assert "not kept, its stream cannot be resumed: LookupError: no such engine" in line
        assert "secret" not in line

    run(work())


def test_log_that_is_deleted_before_its_first_write_keeps_nothing() -> None:
    async def work() -> None:
        store = SlowStore()
        store.gate.set()
        made = Made(store)
        made.append(1, 1)
        await made.log.delete()
        await asyncio.sleep(0)
        assert (store.began, made.log._writer) == ([], None)

    run(work())


def test_a_store_that_does_not_answer_is_an_error_of_the_reader() -> None:
    class Broken(MemoryStore):
        async def read(self, *_: Any, **__: Any) -> Any:
            raise StoreUnavailable("read", TimeoutError())

    async def work() -> None:
        made = Made(Broken())
        made.append(1, 1)
        with pytest.raises(StoreError):
            await made.read(1, 0)

    run(work())


def test_a_deleted_log_is_gone_also_what_waited() -> None:
    async def work() -> None:
        store = SlowStore()
        made = Made(store)
        made.append(1, 1, 2)
        reading = asyncio.create_task(made.read(1, 0))
        await asyncio.sleep(0)
        assert len(store.began) == 1
        await made.log.delete()
        assert await reading is None
        store.gate.set()
        made.append(1, 3)
        await asyncio.sleep(0)
        assert len(store.began) == 1
        assert (await store.read(Key("", "http-events", "name"))).entries == ()
        assert made.log._writer is None

    run(work())


def test_a_log_that_was_never_used_is_not_deleted_from_the_store() -> None:
    class Counting(MemoryStore):
        deleted = 0

        async def delete_log(self, key: Key) -> bool:
            self.deleted += 1
            return await super().delete_log(key)

    async def work() -> None:
        store = Counting()
        await Made(store).log.delete()
        assert store.deleted == 0
        made = Made(store)
        made.append(1, 1)
        await made.log.delete()
        assert store.deleted == 1

    run(work())


def test_a_log_that_cannot_be_deleted_is_reported() -> None:
    class Broken(MemoryStore):
        async def delete_log(self, key: Key) -> bool:
            raise StoreFull("entries", 1)

    async def work() -> None:
        made = Made(Broken())
        made.append(1, 1)
        await made.log.delete()
        assert made.reported[0].startswith("events of an ended session not deleted")

    run(work())
