"""Whose reply is this: every rule of the ledger, obeyed and broken."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable

import pytest

from trunkline.errors import LocalProtocolError
from trunkline.jsonrpc import OutgoingRequests, Pending, Replies, RequestId, UnmatchedReply
from trunkline.jsonrpc.outgoing import CLOSED_IDS_KEPT


def opened(
    ledger: OutgoingRequests,
    id: RequestId,
    *,
    replies: Replies = Replies.ONE,
    deadline: float | None = None,
) -> Pending:
    request = Pending(id, "tools/call", replies)
    ledger.open(request, deadline=deadline)
    return request


def calls(run: Callable[[], object]) -> int:
    """Return how many Python and C calls `run` makes."""
    counted = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return counted


# Opening and matching


def test_a_reply_finds_its_request_and_closes_it() -> None:
    ledger = OutgoingRequests()
    first, second = opened(ledger, 1), opened(ledger, 2)
    assert ledger.match(2, is_error=False) is second
    assert len(ledger) == 1
    assert 2 not in ledger
    assert ledger.match(1, is_error=True) is first
    assert len(ledger) == 0


def test_what_the_layer_above_waits_with_comes_back_with_the_reply() -> None:
    ledger, waiter = OutgoingRequests(), object()
    ledger.open(Pending(1, "ping", waiter=waiter))
    found = ledger.match(1, is_error=False)
    assert isinstance(found, Pending)
    assert found.waiter is waiter


@pytest.mark.parametrize("pair", [(7, "7"), (0, ""), (-1, "-1")])
def test_ids_match_by_type_and_value(pair: tuple[int, str]) -> None:
    ledger = OutgoingRequests()
    number, text = opened(ledger, pair[0]), opened(ledger, pair[1])
    assert ledger.match(pair[1], is_error=False) is text
    assert ledger.match(pair[0], is_error=False) is number


def test_an_open_id_cannot_be_opened_again_and_trying_changes_nothing() -> None:
    ledger = OutgoingRequests()
    first = opened(ledger, 1, deadline=5.0)
    with pytest.raises(LocalProtocolError) as caught:
        ledger.open(Pending(1, "other"), deadline=1.0)
    assert (caught.value.rule, caught.value.got) == ("jsonrpc.id.in-use", 1)
    assert len(ledger) == 1
    assert ledger.next_deadline() == 5.0
    assert ledger.match(1, is_error=False) is first


def test_a_closed_id_may_be_opened_again_and_is_then_not_stray() -> None:
    ledger = OutgoingRequests()
    opened(ledger, 1)
    ledger.match(1, is_error=False)
    second = opened(ledger, 1)
    assert ledger.match(1, is_error=False) is second


def test_an_open_request_is_found_by_its_id() -> None:
    ledger = OutgoingRequests()
    request = opened(ledger, "a")
    assert ledger.find("a") is request
    assert ledger.find("b") is None
    ledger.release(request)
    assert ledger.find("a") is None


# One reply, or many


def test_a_second_reply_is_a_duplicate() -> None:
    ledger = OutgoingRequests()
    opened(ledger, 1)
    ledger.match(1, is_error=False)
    assert ledger.match(1, is_error=False) is UnmatchedReply.DUPLICATE
    assert ledger.match(1, is_error=True) is UnmatchedReply.DUPLICATE


def test_a_request_that_draws_many_replies_stays_open() -> None:
    ledger = OutgoingRequests()
    request = opened(ledger, 1, replies=Replies.MANY)
    assert [ledger.match(1, is_error=False) for _ in range(3)] == [request] * 3
    assert 1 in ledger


def test_an_error_closes_a_request_that_draws_many_replies() -> None:
    ledger = OutgoingRequests()
    request = opened(ledger, 1, replies=Replies.MANY)
    assert ledger.match(1, is_error=True) is request
    assert ledger.match(1, is_error=False) is UnmatchedReply.DUPLICATE


def test_a_release_closes_a_request_that_draws_many_replies() -> None:
    ledger = OutgoingRequests()
    request = opened(ledger, 1, replies=Replies.MANY)
    ledger.match(1, is_error=False)
    assert ledger.release(request)
    assert ledger.match(1, is_error=False) is UnmatchedReply.LATE


# Strays


def test_a_reply_nobody_asked_for_is_unknown() -> None:
    ledger = OutgoingRequests()
    opened(ledger, 1)
    assert ledger.match(2, is_error=False) is UnmatchedReply.UNKNOWN
    assert ledger.match("1", is_error=False) is UnmatchedReply.UNKNOWN
    assert len(ledger) == 1


def test_reply_after_cancel_is_late_not_unknown() -> None:
    ledger = OutgoingRequests()
    assert ledger.release(opened(ledger, 1))
    assert ledger.match(1, is_error=False) is UnmatchedReply.LATE
    assert ledger.match(1, is_error=False) is UnmatchedReply.LATE


def test_closed_ids_are_remembered_up_to_a_bound_the_oldest_forgotten_first() -> None:
    ledger = OutgoingRequests()
    for id in range(CLOSED_IDS_KEPT + 1):
        ledger.release(opened(ledger, id))
    assert ledger.match(0, is_error=False) is UnmatchedReply.UNKNOWN
    assert ledger.match(1, is_error=False) is UnmatchedReply.LATE
    assert ledger.match(CLOSED_IDS_KEPT, is_error=False) is UnmatchedReply.LATE


def test_an_id_closed_again_is_remembered_as_new() -> None:
    ledger = OutgoingRequests()
    ledger.release(opened(ledger, "again"))
    for id in range(CLOSED_IDS_KEPT - 1):
        ledger.release(opened(ledger, id))
    ledger.release(opened(ledger, "again"))
    assert ledger.remembers(0)
    ledger.release(opened(ledger, "one more"))
    assert not ledger.remembers(0)
    assert ledger.remembers("again")


def test_what_is_open_or_closed_lately_is_remembered() -> None:
    ledger = OutgoingRequests()
    request = opened(ledger, 1)
    assert ledger.remembers(1)
    ledger.release(request)
    assert ledger.remembers(1)
    assert not ledger.remembers("1")


# Letting go


def test_a_request_is_released_once() -> None:
    ledger = OutgoingRequests()
    request = opened(ledger, 1)
    assert ledger.release(request)
    assert not ledger.release(request)


def test_a_release_after_the_reply_is_too_late() -> None:
    ledger = OutgoingRequests()
    request = opened(ledger, 1)
    ledger.match(1, is_error=False)
    assert not ledger.release(request)
    assert ledger.match(1, is_error=False) is UnmatchedReply.DUPLICATE


def test_a_release_of_an_old_request_leaves_the_new_one_with_its_id_alone() -> None:
    ledger = OutgoingRequests()
    old = opened(ledger, 1)
    ledger.match(1, is_error=False)
    new = opened(ledger, 1)
    assert not ledger.release(old)
    assert not ledger.set_deadline(old, 1.0)
    assert ledger.next_deadline() is None
    assert ledger.match(1, is_error=False) is new


def test_draining_releases_everything_oldest_first() -> None:
    ledger = OutgoingRequests()
    ids: list[RequestId] = [3, "1", 2]
    requests = [opened(ledger, id, deadline=9.0 - n) for n, id in enumerate(ids)]
    assert ledger.drain() == requests
    assert ledger.drain() == []
    assert len(ledger) == 0
    assert ledger.next_deadline() is None
    assert ledger.match(3, is_error=False) is UnmatchedReply.LATE


# Deadlines


def test_a_request_expires_at_its_deadline_and_its_reply_is_then_late() -> None:
    ledger = OutgoingRequests()
    request = opened(ledger, 1, deadline=5.0)
    opened(ledger, 2)
    assert ledger.next_deadline() == 5.0
    assert ledger.expire(4.9) == []
    assert ledger.expire(5.0) == [request]
    assert ledger.expire(99.0) == []
    assert ledger.match(1, is_error=False) is UnmatchedReply.LATE
    assert 2 in ledger


def test_a_reply_that_is_first_wins_over_the_deadline() -> None:
    ledger = OutgoingRequests()
    request = opened(ledger, 1, deadline=5.0)
    assert ledger.match(1, is_error=False) is request
    assert ledger.next_deadline() is None
    assert ledger.expire(9.0) == []


def test_the_deadline_of_an_old_request_does_not_reach_the_new_one_with_its_id() -> None:
    ledger = OutgoingRequests()
    opened(ledger, 1, deadline=5.0)
    ledger.match(1, is_error=False)
    opened(ledger, 1)
    assert ledger.expire(9.0) == []
    assert 1 in ledger


def test_a_deadline_may_be_put_off_or_set_later_on() -> None:
    ledger = OutgoingRequests()
    first, second = opened(ledger, 1, deadline=5.0), opened(ledger, 2)
    assert ledger.set_deadline(first, 8.0)
    assert ledger.set_deadline(second, 6.0)
    assert ledger.expire(5.0) == []
    assert ledger.expire(8.0) == [second, first]
    assert not ledger.set_deadline(first, 9.0)


def test_a_part_of_many_replies_leaves_the_deadline_as_it_is() -> None:
    ledger = OutgoingRequests()
    request = opened(ledger, 1, replies=Replies.MANY, deadline=5.0)
    ledger.match(1, is_error=False)
    assert ledger.expire(5.0) == [request]


# What it costs


def test_requests_compare_by_identity_and_show_nothing_they_carry() -> None:
    request = Pending(1, "tools/call", waiter="secret")
    assert request != Pending(1, "tools/call", waiter="secret")
    assert {request: 1}[request] == 1
    assert repr(request) == "Pending(id=1, method='tools/call', replies=Replies.ONE)"


def test_a_pending_request_costs_under_400_bytes() -> None:
    ledger, count = OutgoingRequests(), 10_000
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for id in range(1_000_000, 1_000_000 + count):
            ledger.open(Pending(id, "tools/call"))
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 64 < used / count < 400


@pytest.mark.parametrize("deadline", [None, 60.0])
def test_opening_and_matching_cost_the_same_with_a_hundred_thousand_pending(
    deadline: float | None,
) -> None:
    empty, full = OutgoingRequests(), OutgoingRequests()
    for id in range(100_000):
        full.open(Pending(id, "tools/call"), deadline=deadline)
    request = Pending("new", "tools/call")

    def cost(ledger: OutgoingRequests) -> int:
        def use() -> None:
            ledger.open(request, deadline=deadline)
            ledger.next_deadline()
            ledger.match("new", is_error=False)

        return calls(use)

    assert cost(full) == cost(empty)
    assert len(full) == 100_000
