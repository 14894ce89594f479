"""Whose reply is this: every rule of `OutgoingRequests`, obeyed and broken."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable

import pytest

from trunkline.errors import LocalProtocolError
from trunkline.jsonrpc import OutgoingRequests, Pending, Replies, RequestId, UnmatchedReply
from trunkline.jsonrpc.peer.outgoing import MAX_CLOSED_IDS


def opened(
    outgoing: OutgoingRequests,
    id: RequestId,
    *,
    replies: Replies = Replies.ONE,
    deadline: float | None = None,
) -> Pending:
    request = Pending(id, "tools/call", replies)
    outgoing.open(request, deadline=deadline)
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
    outgoing = OutgoingRequests()
    first, second = opened(outgoing, 1), opened(outgoing, 2)
    assert outgoing.match(2, is_error=False) is second
    assert len(outgoing) == 1
    assert 2 not in outgoing
    assert outgoing.match(1, is_error=True) is first
    assert len(outgoing) == 0


def test_match_returns_the_waiter_of_the_request() -> None:
    outgoing, waiter = OutgoingRequests(), object()
    outgoing.open(Pending(1, "ping", waiter=waiter))
    found = outgoing.match(1, is_error=False)
    assert isinstance(found, Pending)
    assert found.waiter is waiter


@pytest.mark.parametrize("pair", [(7, "7"), (0, ""), (-1, "-1")])
def test_ids_match_by_type_and_value(pair: tuple[int, str]) -> None:
    outgoing = OutgoingRequests()
    number, text = opened(outgoing, pair[0]), opened(outgoing, pair[1])
    assert outgoing.match(pair[1], is_error=False) is text
    assert outgoing.match(pair[0], is_error=False) is number


def test_an_open_id_cannot_be_opened_again_and_trying_changes_nothing() -> None:
    outgoing = OutgoingRequests()
    first = opened(outgoing, 1, deadline=5.0)
    with pytest.raises(LocalProtocolError) as caught:
        outgoing.open(Pending(1, "other"), deadline=1.0)
    assert (caught.value.rule, caught.value.got) == ("jsonrpc.id.in-use", 1)
    assert len(outgoing) == 1
    assert outgoing.next_deadline() == 5.0
    assert outgoing.match(1, is_error=False) is first


def test_a_closed_id_may_be_opened_again_and_is_then_not_stray() -> None:
    outgoing = OutgoingRequests()
    opened(outgoing, 1)
    outgoing.match(1, is_error=False)
    second = opened(outgoing, 1)
    assert outgoing.match(1, is_error=False) is second


def test_an_open_request_is_found_by_its_id() -> None:
    outgoing = OutgoingRequests()
    request = opened(outgoing, "a")
    assert outgoing.find("a") is request
    assert outgoing.find("b") is None
    outgoing.release(request)
    assert outgoing.find("a") is None


# One reply, or many


def test_a_second_reply_is_a_duplicate() -> None:
    outgoing = OutgoingRequests()
    opened(outgoing, 1)
    outgoing.match(1, is_error=False)
    assert outgoing.match(1, is_error=False) is UnmatchedReply.DUPLICATE
    assert outgoing.match(1, is_error=True) is UnmatchedReply.DUPLICATE


def test_a_request_that_draws_many_replies_stays_open() -> None:
    outgoing = OutgoingRequests()
    request = opened(outgoing, 1, replies=Replies.MANY)
    assert [outgoing.match(1, is_error=False) for _ in range(3)] == [request] * 3
    assert 1 in outgoing


def test_an_error_closes_a_request_that_draws_many_replies() -> None:
    outgoing = OutgoingRequests()
    request = opened(outgoing, 1, replies=Replies.MANY)
    assert outgoing.match(1, is_error=True) is request
    assert outgoing.match(1, is_error=False) is UnmatchedReply.DUPLICATE


def test_a_release_closes_a_request_that_draws_many_replies() -> None:
    outgoing = OutgoingRequests()
    request = opened(outgoing, 1, replies=Replies.MANY)
    outgoing.match(1, is_error=False)
    assert outgoing.release(request)
    assert outgoing.match(1, is_error=False) is UnmatchedReply.LATE


# Strays


def test_reply_without_a_request_is_unknown() -> None:
    outgoing = OutgoingRequests()
    opened(outgoing, 1)
    assert outgoing.match(2, is_error=False) is UnmatchedReply.UNKNOWN
    assert outgoing.match("1", is_error=False) is UnmatchedReply.UNKNOWN
    assert len(outgoing) == 1


def test_reply_after_cancel_is_late_not_unknown() -> None:
    outgoing = OutgoingRequests()
    assert outgoing.release(opened(outgoing, 1))
    assert outgoing.match(1, is_error=False) is UnmatchedReply.LATE
    assert outgoing.match(1, is_error=False) is UnmatchedReply.LATE


def test_closed_ids_are_remembered_up_to_a_bound_the_oldest_forgotten_first() -> None:
    outgoing = OutgoingRequests()
    for id in range(MAX_CLOSED_IDS + 1):
        outgoing.release(opened(outgoing, id))
    assert outgoing.match(0, is_error=False) is UnmatchedReply.UNKNOWN
    assert outgoing.match(1, is_error=False) is UnmatchedReply.LATE
    assert outgoing.match(MAX_CLOSED_IDS, is_error=False) is UnmatchedReply.LATE


def test_a_peer_cannot_have_more_than_256_closed_ids_remembered() -> None:
    outgoing = OutgoingRequests()
    for id in range(1000):
        outgoing.release(opened(outgoing, id))
    assert [id for id in range(1000) if outgoing.remembers(id)] == [*range(1000 - 256, 1000)]


def test_an_id_closed_again_is_remembered_as_new() -> None:
    outgoing = OutgoingRequests()
    outgoing.release(opened(outgoing, "again"))
    for id in range(MAX_CLOSED_IDS - 1):
        outgoing.release(opened(outgoing, id))
    outgoing.release(opened(outgoing, "again"))
    assert outgoing.remembers(0)
    outgoing.release(opened(outgoing, "one more"))
    assert not outgoing.remembers(0)
    assert outgoing.remembers("again")


def test_open_and_recently_closed_ids_are_remembered() -> None:
    outgoing = OutgoingRequests()
    request = opened(outgoing, 1)
    assert outgoing.remembers(1)
    outgoing.release(request)
    assert outgoing.remembers(1)
    assert not outgoing.remembers("1")


# Letting go


def test_a_request_is_released_once() -> None:
    outgoing = OutgoingRequests()
    request = opened(outgoing, 1)
    assert outgoing.release(request)
    assert not outgoing.release(request)


def test_a_release_after_the_reply_is_too_late() -> None:
    outgoing = OutgoingRequests()
    request = opened(outgoing, 1)
    outgoing.match(1, is_error=False)
    assert not outgoing.release(request)
    assert outgoing.match(1, is_error=False) is UnmatchedReply.DUPLICATE


def test_a_release_of_an_old_request_leaves_the_new_one_with_its_id_alone() -> None:
    outgoing = OutgoingRequests()
    old = opened(outgoing, 1)
    outgoing.match(1, is_error=False)
    new = opened(outgoing, 1)
    assert not outgoing.release(old)
    assert not outgoing.set_deadline(old, 1.0)
    assert outgoing.next_deadline() is None
    assert outgoing.match(1, is_error=False) is new


def test_draining_releases_everything_oldest_first() -> None:
    outgoing = OutgoingRequests()
    ids: list[RequestId] = [3, "1", 2]
    requests = [opened(outgoing, id, deadline=9.0 - n) for n, id in enumerate(ids)]
    assert outgoing.drain() == requests
    assert outgoing.drain() == []
    assert len(outgoing) == 0
    assert outgoing.next_deadline() is None
    assert outgoing.match(3, is_error=False) is UnmatchedReply.LATE


# Deadlines


def test_a_request_expires_at_its_deadline_and_its_reply_is_then_late() -> None:
    outgoing = OutgoingRequests()
    request = opened(outgoing, 1, deadline=5.0)
    opened(outgoing, 2)
    assert outgoing.next_deadline() == 5.0
    assert outgoing.expire(4.9) == []
    assert outgoing.expire(5.0) == [request]
    assert outgoing.expire(99.0) == []
    assert outgoing.match(1, is_error=False) is UnmatchedReply.LATE
    assert 2 in outgoing


def test_a_reply_that_is_first_wins_over_the_deadline() -> None:
    outgoing = OutgoingRequests()
    request = opened(outgoing, 1, deadline=5.0)
    assert outgoing.match(1, is_error=False) is request
    assert outgoing.next_deadline() is None
    assert outgoing.expire(9.0) == []


def test_the_deadline_of_an_old_request_does_not_reach_the_new_one_with_its_id() -> None:
    outgoing = OutgoingRequests()
    opened(outgoing, 1, deadline=5.0)
    outgoing.match(1, is_error=False)
    opened(outgoing, 1)
    assert outgoing.expire(9.0) == []
    assert 1 in outgoing


def test_a_deadline_may_be_put_off_or_set_later_on() -> None:
    outgoing = OutgoingRequests()
    first, second = opened(outgoing, 1, deadline=5.0), opened(outgoing, 2)
    assert outgoing.set_deadline(first, 8.0)
    assert outgoing.set_deadline(second, 6.0)
    assert outgoing.expire(5.0) == []
    assert outgoing.expire(8.0) == [second, first]
    assert not outgoing.set_deadline(first, 9.0)


def test_a_part_of_many_replies_leaves_the_deadline_as_it_is() -> None:
    outgoing = OutgoingRequests()
    request = opened(outgoing, 1, replies=Replies.MANY, deadline=5.0)
    outgoing.match(1, is_error=False)
    assert outgoing.expire(5.0) == [request]


# What it costs


def test_requests_compare_by_identity_and_show_nothing_they_carry() -> None:
    request = Pending(1, "tools/call", waiter="secret")
    assert request != Pending(1, "tools/call", waiter="secret")
    assert {request: 1}[request] == 1
    assert repr(request) == "Pending(id=1, method='tools/call', replies=Replies.ONE)"


def test_a_pending_request_costs_under_400_bytes() -> None:
    outgoing, count = OutgoingRequests(), 10_000
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for id in range(1_000_000, 1_000_000 + count):
            outgoing.open(Pending(id, "tools/call"))
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

    def cost(outgoing: OutgoingRequests) -> int:
        def use() -> None:
            outgoing.open(request, deadline=deadline)
            outgoing.next_deadline()
            outgoing.match("new", is_error=False)

        return calls(use)

    assert cost(full) == cost(empty)
    assert len(full) == 100_000
