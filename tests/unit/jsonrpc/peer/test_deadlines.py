"""What is due by now, told without a clock."""

from __future__ import annotations

from math import inf, nan

import pytest

from trunkline.jsonrpc.peer.deadlines import _MAX_STALE_ENTRIES, Deadlines


def test_nothing_is_due_where_nothing_was_set() -> None:
    deadlines: Deadlines[int] = Deadlines()
    assert deadlines.earliest() is None
    assert deadlines.due(1e9) == []


def test_a_deadline_is_due_at_its_time_and_not_before() -> None:
    deadlines: Deadlines[int] = Deadlines()
    deadlines.set(1, 5.0)
    assert deadlines.due(4.999) == []
    assert deadlines.earliest() == 5.0
    assert deadlines.due(5.0) == [1]


def test_due_deadline_is_removed() -> None:
    deadlines: Deadlines[int] = Deadlines()
    deadlines.set(1, 5.0)
    deadlines.due(6.0)
    assert deadlines.due(6.0) == []
    assert deadlines.earliest() is None
    assert len(deadlines) == 0


def test_the_earliest_comes_first_and_of_equals_the_older() -> None:
    deadlines: Deadlines[int | str | None] = Deadlines()
    for id, when in [(10, 3.0), ("9", 2.0), (9, 2.0), (None, 2.0), ("a", 1.0)]:
        deadlines.set(id, when)  # type: ignore[arg-type]  # inferred as object
    assert deadlines.due(2.5) == ["a", "9", 9, None]
    assert deadlines.due(3.0) == [10]


def test_a_new_deadline_takes_the_place_of_the_old_whether_later_or_earlier() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("later", 1.0)
    deadlines.set("earlier", 9.0)
    deadlines.set("later", 5.0)
    deadlines.set("earlier", 2.0)
    assert len(deadlines) == 2
    assert deadlines.due(4.0) == ["earlier"]
    assert deadlines.due(9.0) == ["later"]


def test_a_deadline_moved_away_and_back_is_due_once() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for when in (5.0, 7.0, 5.0):
        deadlines.set(1, when)
    assert deadlines.due(9.0) == [1]
    assert deadlines.due(9.0) == []


def test_a_dropped_deadline_is_never_due() -> None:
    deadlines: Deadlines[int] = Deadlines()
    deadlines.set(1, 1.0)
    deadlines.set(2, 2.0)
    deadlines.drop(1)
    deadlines.drop(3)  # never set
    assert deadlines.earliest() == 2.0
    assert deadlines.due(9.0) == [2]


def test_an_id_set_again_after_a_drop_has_only_its_new_deadline() -> None:
    deadlines: Deadlines[int] = Deadlines()
    deadlines.set(1, 1.0)
    deadlines.drop(1)
    deadlines.set(1, 8.0)
    assert deadlines.due(7.0) == []
    assert deadlines.due(8.0) == [1]


def test_nan_deadline_is_refused_and_changes_nothing() -> None:
    deadlines: Deadlines[int] = Deadlines()
    deadlines.set(1, 5.0)
    for id in (1, 2):
        with pytest.raises(ValueError, match="NaN"):
            deadlines.set(id, nan)
    assert len(deadlines) == 1
    assert deadlines.due(5.0) == [1]


def test_an_endless_deadline_is_never_due_but_is_the_earliest_where_it_is_the_only_one() -> None:
    deadlines: Deadlines[int] = Deadlines()
    deadlines.set(1, inf)
    assert deadlines.due(1e308) == []
    assert deadlines.earliest() == inf


def test_deadlines_set_after_a_query_are_ordered_by_the_next() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for id in range(0, 1000, 10):
        deadlines.set(id, float(id))
    assert deadlines.earliest() == 0.0
    for id in (5, 995):
        deadlines.set(id, float(id))
    assert deadlines.due(10.0) == [0, 5, 10]
    for id in range(1, 1000, 2):
        deadlines.set(id, float(id))
    odd = list(range(1, 20, 2))
    assert deadlines.due(20.0) == [*odd, 20]


def test_dropped_deadlines_are_not_added_to_the_heap() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for id in range(100):
        deadlines.set(id, float(id))
    assert deadlines.earliest() == 0.0
    for id in (200, 201, 202):
        deadlines.set(id, 0.5)
    deadlines.drop(201)
    deadlines.drop(202)
    assert deadlines.earliest() == 0.0
    assert len(deadlines._heap) == 101
    assert deadlines.due(1.0) == [0, 200, 1]
    assert deadlines.due(1e9) == list(range(2, 100))


def test_calls_that_end_in_time_leave_little_behind() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for id in range(10_000):
        deadlines.set(id, 60.0 + id)
        assert deadlines.earliest() == 60.0 + id
        deadlines.drop(id)
        assert len(deadlines._heap) <= _MAX_STALE_ENTRIES
    assert deadlines.due(1e9) == []


def test_calls_that_end_before_any_query_leave_nothing_behind() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for id in range(1000):
        deadlines.set(id, 60.0 + id)
        deadlines.drop(id)
    assert deadlines._heap == []
    assert deadlines.earliest() is None


def test_a_flood_that_ends_leaves_little_behind_though_nothing_is_set_after_it() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for id in range(10_000):
        deadlines.set(id, float(id))
    assert deadlines.earliest() == 0.0
    for id in range(9_999):
        deadlines.drop(id)
    assert len(deadlines._heap) <= 2 + _MAX_STALE_ENTRIES
    assert deadlines.due(1e9) == [9_999]


def test_a_deadline_extended_without_end_leaves_little_behind() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for id in range(1, 1 + _MAX_STALE_ENTRIES):
        deadlines.set(-id, 1e8)
    for now in range(10_000):
        deadlines.set(1, now + 60.0)
        assert deadlines.earliest() == now + 60.0
        assert len(deadlines._heap) <= 2 * len(deadlines) + _MAX_STALE_ENTRIES
    assert deadlines.due(10_058.0) == []
    assert deadlines.due(10_059.0) == [1]


def test_deadlines_that_were_brought_forward_leave_little_behind_when_due() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for when in (100.0, 1.0):
        for id in range(1000):
            deadlines.set(id, when)
    deadlines.set(-1, 50.0)
    assert deadlines.due(1.0) == list(range(1000))
    assert len(deadlines._heap) <= 2 + _MAX_STALE_ENTRIES
    assert deadlines.due(1e9) == [-1]


def test_tidying_keeps_the_order() -> None:
    deadlines: Deadlines[int] = Deadlines()
    living = [id for id in range(1000) if id % 7 == 0]
    for id in range(1000):
        deadlines.set(id, float((id * 37) % 1000))
    for id in set(range(1000)) - set(living):
        deadlines.drop(id)
    assert deadlines.due(1e9) == sorted(living, key=lambda id: (id * 37) % 1000)
