"""A task in the store: it ends once, waits as long as a question is open, and goes in time."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, ClassVar

import pytest
from msgspec import UNSET, Raw
from msgspec.structs import replace

from trunkline.engine.tasks.records import (
    InputResponse,
    RetainedTask,
    TaskRecord,
    TaskRecords,
    TaskRetention,
    TaskStatuses,
    answered,
    cancelled,
    ended,
    new_id,
    requestor_id,
    timestamp,
    with_question,
    without_question,
    without_responses,
)
from trunkline.jsonrpc.messages import ErrorObject
from trunkline.store import Key, MemoryStore, StoreFull, StoreLimits, StoreUnavailable

QUESTION = Raw(b'{"method":"roots/list"}')
YES = InputResponse(result=Raw(b'{"roots":[]}'))


class MadeUpRecord(TaskRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A task of a protocol that exists in this module alone."""

    statuses: ClassVar[TaskStatuses] = TaskStatuses(
        initial="accepted",
        working="working",
        input_required="input_required",
        cancelled="cancelled",
        final=frozenset(("completed", "failed", "cancelled")),
    )
    status: str = "working"
    note: str = ""


def record(**changes: Any) -> MadeUpRecord:
    made = MadeUpRecord(
        id=new_id(),
        tenant="",
        owner=None,
        runner="r",
        created=1000.0,
        updated=1000.0,
        ttl=60.0,
    )
    return replace(made, **changes)


def test_ids_are_long_and_never_the_same() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert {len(id) for id in ids} == {32}


def test_timestamp_is_iso_8601_in_utc() -> None:
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert timestamp(1_000_000.5) == "1970-01-12T13:46:40.500Z"


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_task_that_has_ended_stays_as_it_ended(status: Any) -> None:
    over = record(status=status)
    assert ended(over, "completed") is None
    assert cancelled(over) is None
    assert with_question(over, "a", QUESTION) is None
    assert answered(over, {"a": YES}) is None
    assert without_question(over, "a") is None


def test_a_task_waits_for_input_as_long_as_a_question_is_open() -> None:
    one = with_question(record(), "a", QUESTION)
    assert one is not None
    assert one.status == "input_required"
    two = with_question(one, "b", QUESTION)
    assert two is not None
    half = answered(two, {"a": YES, "nobody asked": YES})
    assert half is not None
    assert (half.status, set(half.questions), half.responses) == (
        "input_required",
        {"b"},
        {"a": YES},
    )
    whole = answered(half, {"b": YES})
    assert whole is not None
    assert (whole.status, whole.questions, set(whole.responses)) == ("working", {}, {"a", "b"})
    # What came after somebody looked stays.
    half = without_responses(whole, {"a", "gone"})
    assert half is not None
    assert set(half.responses) == {"b"}
    assert without_responses(half, {"a"}) is None


def test_adding_a_question_twice_changes_nothing() -> None:
    waiting = with_question(record(), "a", QUESTION)
    assert waiting is not None
    assert with_question(waiting, "a", QUESTION) is None
    there = answered(waiting, {"a": YES})
    assert there is not None
    assert with_question(there, "a", QUESTION) is None


def test_withdrawn_question_returns_the_task_to_working() -> None:
    waiting = with_question(record(), "a", QUESTION)
    assert waiting is not None
    free = without_question(waiting, "a")
    assert free is not None
    assert (free.status, free.questions) == ("working", {})
    assert without_question(free, "a") is None


def test_the_end_takes_open_questions_with_it() -> None:
    waiting = with_question(record(responses={"x": YES}), "a", QUESTION)
    assert waiting is not None
    over = ended(waiting, "completed", result=Raw(b"{}"))
    assert over is not None
    assert (over.questions, over.responses, over.status) == ({}, {}, "completed")


def test_a_record_comes_back_as_it_was_put() -> None:
    async def main() -> None:
        records = TaskRecords(MemoryStore(), MadeUpRecord, clock=lambda: 1000.0)
        late = InputResponse(error=ErrorObject(-1, "no", {"a": 1}))
        put = record(
            questions={"a": QUESTION},
            responses={"b": late, "c": InputResponse(is_timeout=True)},
            owner="me",
        )
        await records.add(put, None)
        got = await records.get("", put.id)
        assert got is not None
        assert (got.owner, bytes(got.questions["a"])) == ("me", bytes(QUESTION))
        assert got.responses["b"].error == late.error
        assert got.responses["c"].is_timeout
        assert got.result is UNSET

    asyncio.run(main())


@pytest.mark.parametrize("id", ["", "x", "x" * 31, "x" * 33, "x" * 100_000, "é" * 32, "\0" * 32])
def test_malformed_task_id_is_not_found(id: str) -> None:
    async def main() -> None:
        assert await TaskRecords(MemoryStore(), MadeUpRecord).get("", id) is None

    asyncio.run(main())


def test_a_tenant_does_not_see_the_task_of_another() -> None:
    async def main() -> None:
        records = TaskRecords(MemoryStore(), MadeUpRecord, clock=lambda: 1000.0)
        put = record(tenant="acme")
        await records.add(put, None)
        assert await records.get("acme", put.id) is not None
        assert await records.get("", put.id) is None
        assert await records.get("other", put.id) is None

    asyncio.run(main())


def test_a_task_is_gone_when_its_time_has_passed() -> None:
    async def main() -> None:
        now = [1000.0]
        store = MemoryStore(clock=lambda: now[0])
        records = TaskRecords(store, MadeUpRecord, clock=lambda: now[0])
        put = record()
        await records.add(put, None)
        now[0] += 59
        changed = await records.change(
            "", put.id, partial(with_question, key="a", question=QUESTION)
        )
        assert changed.is_ours
        now[0] += 2  # a change does not give it more time
        assert await records.get("", put.id) is None
        assert await store.get(Key("", "task", put.id)) is None
        assert (await records.change("", put.id, cancelled)).record is None

    asyncio.run(main())


def test_a_task_whose_time_has_passed_is_gone_even_if_the_store_is_slow_to_say_so() -> None:
    async def main() -> None:
        now = [1000.0]
        records = TaskRecords(MemoryStore(), MadeUpRecord, clock=lambda: now[0])
        put = record()
        await records.add(put, None)
        now[0] += 61
        assert await records.get("", put.id) is None

    asyncio.run(main())


def test_a_task_without_a_time_to_live_stays() -> None:
    async def main() -> None:
        now = [1000.0]
        records = TaskRecords(MemoryStore(clock=lambda: now[0]), MadeUpRecord, clock=lambda: now[0])
        put = record(ttl=None)
        await records.add(put, None)
        now[0] += 10**8
        assert await records.get("", put.id) is not None

    asyncio.run(main())


class Racing(MemoryStore):
    """A store in which somebody else is always first, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def compare_and_set(
        self, key: Key, value: bytes, *, version: int | None, ttl: float | None
    ) -> int | None:
        if version is not None and self.times > 0:
            self.times -= 1
            stored = await self.get(key)
            assert stored is not None
            await self.put(key, stored.value, ttl=ttl)
        return await super().compare_and_set(key, value, version=version, ttl=ttl)


def test_a_change_that_lost_a_race_is_made_to_what_won() -> None:
    async def main() -> None:
        store = Racing(0)
        records = TaskRecords(store, MadeUpRecord, clock=lambda: 1000.0)
        put = record()
        await records.add(put, None)
        store.times = 5
        seen: list[MadeUpRecord] = []

        def to(found: MadeUpRecord) -> MadeUpRecord | None:
            seen.append(found)
            return cancelled(found)

        change = await records.change("", put.id, to)
        assert change.is_ours
        assert change.record is not None
        assert change.record.status == "cancelled"
        assert len(seen) == 6

    asyncio.run(main())


def test_change_raises_store_unavailable_after_too_many_lost_races() -> None:
    async def main() -> None:
        store = Racing(0)
        records = TaskRecords(store, MadeUpRecord, clock=lambda: 1000.0)
        put = record()
        await records.add(put, None)
        store.times = 10_000
        with pytest.raises(StoreUnavailable):
            await records.change("", put.id, cancelled)

    asyncio.run(main())


def test_concurrent_cancel_and_completion_agree_on_one_status() -> None:
    async def main() -> None:
        records = TaskRecords(MemoryStore(), MadeUpRecord, clock=lambda: 1000.0)
        put = record()
        await records.add(put, None)
        finish = partial(ended, status="completed", result=Raw(b"{}"))
        one, two = await asyncio.gather(
            records.change("", put.id, cancelled), records.change("", put.id, finish)
        )
        assert [one.is_ours, two.is_ours].count(True) == 1
        assert one.record is not None
        assert two.record is not None
        assert one.record.status == two.record.status

    asyncio.run(main())


def test_a_change_that_has_no_room_leaves_the_task_as_it_was() -> None:
    async def main() -> None:
        records = TaskRecords(
            MemoryStore(StoreLimits(value_bytes=1000)), MadeUpRecord, clock=lambda: 1000.0
        )
        put = record()
        await records.add(put, None)
        large = partial(ended, status="completed", result=Raw(b'"%b"' % (b"x" * 2000)))
        with pytest.raises(StoreFull):
            await records.change("", put.id, large)
        found = await records.get("", put.id)
        assert found is not None
        assert found.status == "working"

    asyncio.run(main())


@pytest.mark.parametrize("value", [b"", b"{}", b'{"id":7}', b"\xff", b"[1,2]"])
def test_a_record_that_cannot_be_read_is_none(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        store, id = MemoryStore(), new_id()
        await store.put(Key("", "task", id), value, ttl=60)
        assert await TaskRecords(store, MadeUpRecord).get("", id) is None

    asyncio.run(main())
    assert "not readable" in caplog.text


def test_tasks_are_listed_for_their_circle_in_order_of_creation() -> None:
    async def main() -> None:
        records = TaskRecords(MemoryStore(), MadeUpRecord, clock=lambda: 1000.0)
        ours, theirs = requestor_id("us"), requestor_id("them")
        made = [record(created=1000.0 + at) for at in range(5)]
        for each in reversed(made):
            await records.add(each, ours)
        await records.add(record(), theirs)
        await records.add(record(), None)
        first, cursor = await records.page("", ours, None, 3)
        second, end = await records.page("", ours, cursor, 3)
        assert [each.id for each in (*first, *second)] == [each.id for each in made]
        assert end is None
        await records.remove(made[0], ours)
        left, _ = await records.page("", ours, None, 100)
        assert [each.id for each in left] == [each.id for each in made[1:]]

    asyncio.run(main())


def test_a_store_that_does_not_answer_is_asked_again_for_a_while() -> None:
    class Shaky(MemoryStore):
        fails = 3

        async def compare_and_set(self, key: Key, value: bytes, **options: Any) -> int | None:
            made = await super().compare_and_set(key, value, **options)
            self.fails -= 1
            if self.fails >= 0:
                raise StoreUnavailable("it happened, but nobody says so")
            return made

    async def main() -> None:
        store = Shaky()
        records, put = TaskRecords(store, MadeUpRecord), record(ttl=None)
        store.fails = 0
        await records.add(put, None)
        store.fails = 2
        to = partial(with_question, key="a", question=QUESTION)
        change = await records.change_with_retry(put.tenant, put.id, to, 10)
        assert change.record is not None
        assert (set(change.record.questions), change.is_ours) == ({"a"}, False)
        store.fails = 100
        with pytest.raises(StoreUnavailable):
            await records.change_with_retry(
                put.tenant, put.id, partial(with_question, key="b", question=QUESTION), 0
            )

    asyncio.run(main())


def test_a_change_that_no_client_would_notice_leaves_the_time_of_the_last() -> None:
    async def main() -> None:
        records, put = (
            TaskRecords(MemoryStore(), MadeUpRecord),
            record(ttl=None, responses={"a": YES}),
        )
        await records.add(put, None)
        to = partial(without_responses, keys={"a"})
        change = await records.change(put.tenant, put.id, to, quietly=True)
        assert change.record is not None
        assert (change.record.responses, change.record.updated) == ({}, put.updated)

    asyncio.run(main())


def test_claim_on_a_question_is_exclusive() -> None:
    async def main() -> None:
        records = TaskRecords(MemoryStore(), MadeUpRecord)
        put = record()
        lease = await records.claim(put, "k" * 5000, 10)
        assert lease is not None
        assert await records.claim(put, "k" * 5000, 10) is None
        assert await records.claim(put, "another", 10) is not None
        await records.release_claim(lease)
        assert await records.claim(put, "k" * 5000, 10) is not None

    asyncio.run(main())


def test_a_record_shows_neither_its_id_nor_what_is_in_it() -> None:
    made = record(result=Raw(b'"hunter2"'))
    assert made.id not in repr(made)
    assert "hunter2" not in repr(made)
    assert made.id not in repr(made.__rich_repr__())


# -- retention -------------------------------------------------------------------------------


def retained(
    size: int = 0, created: float = 0.0, ttl: float | None = 60.0
) -> RetainedTask[MadeUpRecord]:
    return RetainedTask(record(created=created, updated=created, ttl=ttl), size)


def test_the_oldest_goes_when_there_is_one_too_many() -> None:
    retention = TaskRetention[MadeUpRecord](2, 1000)
    one, two, three = retained(), retained(), retained()
    assert retention.add("a", one, 1.0) == []
    assert retention.add("a", two, 1.0) == []
    assert retention.add("b", retained(), 1.0) == []
    assert retention.add("a", three, 1.0) == [one.record]
    assert len(retention) == 3


def test_as_many_go_as_have_to_for_a_large_one_which_stays_itself() -> None:
    retention = TaskRetention[MadeUpRecord](10, 100)
    small = [retained(40), retained(40)]
    for each in small:
        assert retention.add("a", each, 1.0) == []
    assert retention.add("a", retained(90), 1.0) == [each.record for each in small]
    huge = retained(1000)
    assert len(retention.add("a", huge, 1.0)) == 1
    assert len(retention) == 1


def test_expired_tasks_are_evicted_first() -> None:
    retention = TaskRetention[MadeUpRecord](2, 1000)
    stays, gone = retained(ttl=None), retained(ttl=5.0)
    retention.add("a", stays, 1.0)
    retention.add("a", gone, 1.0)
    assert retention.add("a", retained(), 10.0) == []
    assert len(retention) == 2


def test_retention_forgets_owners_without_tasks() -> None:
    retention = TaskRetention[MadeUpRecord](2, 1000)
    retention.add("a", retained(ttl=5.0), 1.0)
    retention.add("b", retained(ttl=50.0), 1.0)
    retention.tidy(10.0)
    assert len(retention) == 1
    retention.tidy(100.0)
    assert retention._tasks == {}
