"""What is kept for one requestor: the oldest goes, and what is gone by itself does not count."""

from __future__ import annotations

from trunkline.server.tasks.kept import RetainedTask, TaskRetention
from trunkline.server.tasks.records import TaskRecord, new_id


def kept(size: int = 0, created: float = 0.0, ttl: float | None = 60.0) -> RetainedTask:
    record = TaskRecord(
        id=new_id(),
        tenant="",
        owner=None,
        form="extension",
        tool="t",
        runner="r",
        created=created,
        updated=created,
        ttl=ttl,
        poll_interval=1.0,
    )
    return RetainedTask(record, size)


def test_the_oldest_goes_when_there_is_one_too_many() -> None:
    keeper = TaskRetention(2, 1000)
    one, two, three = kept(), kept(), kept()
    assert keeper.add("a", one, 1.0) == []
    assert keeper.add("a", two, 1.0) == []
    assert keeper.add("b", kept(), 1.0) == []
    assert keeper.add("a", three, 1.0) == [one.record]
    assert len(keeper) == 3


def test_as_many_go_as_have_to_for_a_large_one_which_stays_itself() -> None:
    keeper = TaskRetention(10, 100)
    small = [kept(40), kept(40)]
    for each in small:
        assert keeper.add("a", each, 1.0) == []
    assert keeper.add("a", kept(90), 1.0) == [each.record for each in small]
    huge = kept(1000)
    assert len(keeper.add("a", huge, 1.0)) == 1
    assert len(keeper) == 1


def test_what_has_gone_by_itself_makes_room_first() -> None:
    keeper = TaskRetention(2, 1000)
    stays, gone = kept(ttl=None), kept(ttl=5.0)
    keeper.add("a", stays, 1.0)
    keeper.add("a", gone, 1.0)
    assert keeper.add("a", kept(), 10.0) == []
    assert len(keeper) == 2


def test_nothing_is_remembered_of_who_has_nothing_left() -> None:
    keeper = TaskRetention(2, 1000)
    keeper.add("a", kept(ttl=5.0), 1.0)
    keeper.add("b", kept(ttl=50.0), 1.0)
    keeper.tidy(10.0)
    assert len(keeper) == 1
    keeper.tidy(100.0)
    assert keeper._tasks == {}
