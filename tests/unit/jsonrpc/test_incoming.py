"""What we owe an answer: every rule of the inbox, obeyed and broken."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from trunkline.jsonrpc import IncomingRequest, IncomingRequests, RequestId


def opened(
    inbox: IncomingRequests, id: RequestId | None, *, deadline: float | None = None
) -> IncomingRequest:
    asked = IncomingRequest(id, "tools/call")
    assert inbox.open(asked, deadline=deadline)
    return asked


def test_a_request_is_open_until_it_is_taken_out() -> None:
    inbox = IncomingRequests()
    asked = opened(inbox, 1)
    assert asked in inbox
    assert len(inbox) == 1
    assert inbox.take(asked)
    assert asked not in inbox
    assert len(inbox) == 0


def test_only_the_first_to_take_a_request_out_finds_it() -> None:
    inbox = IncomingRequests()
    asked = opened(inbox, 1)
    assert [inbox.take(asked) for _ in range(3)] == [True, False, False]


def test_the_id_of_an_open_request_is_refused_and_nothing_changes() -> None:
    inbox = IncomingRequests()
    first, second = opened(inbox, 1, deadline=5.0), IncomingRequest(1, "other")
    assert not inbox.open(second, deadline=1.0)
    assert second not in inbox
    assert not inbox.take(second)
    assert inbox.next_deadline() == 5.0
    assert inbox.find(1) is first


@pytest.mark.parametrize("id", [1, "1", 0, "", None])
def test_ids_of_every_kind_are_told_apart(id: RequestId | None) -> None:
    inbox = IncomingRequests()
    others = [opened(inbox, other) for other in (1, "1", 0, "", None) if other != id]
    asked = opened(inbox, id)
    assert inbox.take(asked)
    assert all(other in inbox for other in others)


def test_an_id_may_be_used_again_once_its_request_is_out() -> None:
    inbox = IncomingRequests()
    inbox.take(opened(inbox, 1))
    assert opened(inbox, 1) in inbox


def test_a_late_answer_does_not_take_the_place_of_a_new_request_with_the_same_id() -> None:
    inbox = IncomingRequests()
    old = opened(inbox, 1)
    inbox.take(old)
    new = opened(inbox, 1, deadline=5.0)
    assert old not in inbox
    assert not inbox.take(old)
    assert not inbox.set_deadline(old, 1.0)
    assert inbox.next_deadline() == 5.0
    assert inbox.take(new)


def test_a_cancel_finds_the_open_request_it_names() -> None:
    inbox = IncomingRequests()
    asked = opened(inbox, 7)
    assert inbox.find(7) is asked
    assert inbox.find("7") is None
    inbox.take(asked)
    assert inbox.find(7) is None


@pytest.mark.parametrize("id", [1, "a", None])
def test_a_request_that_is_due_is_taken_out_whatever_its_id(id: RequestId | None) -> None:
    inbox = IncomingRequests()
    asked = opened(inbox, id, deadline=5.0)
    assert inbox.next_deadline() == 5.0
    assert inbox.expire(4.9) == []
    assert inbox.expire(5.0) == [asked]
    assert inbox.expire(9.0) == []
    assert not inbox.take(asked)
    assert inbox.next_deadline() is None


def test_a_request_taken_out_is_never_due() -> None:
    inbox = IncomingRequests()
    inbox.take(opened(inbox, 1, deadline=5.0))
    opened(inbox, 1)
    assert inbox.next_deadline() is None
    assert inbox.expire(9.0) == []
    assert len(inbox) == 1


def test_a_deadline_may_be_set_and_put_off_while_a_request_is_open() -> None:
    inbox = IncomingRequests()
    asked = opened(inbox, 1)
    assert inbox.set_deadline(asked, 5.0)
    assert inbox.set_deadline(asked, 8.0)
    assert inbox.expire(7.0) == []
    assert inbox.expire(8.0) == [asked]
    assert not inbox.set_deadline(asked, 9.0)
    assert inbox.next_deadline() is None


def test_draining_takes_everything_out_oldest_first() -> None:
    inbox = IncomingRequests()
    everything = [opened(inbox, id, deadline=9.0 - n) for n, id in enumerate([2, "1", None, 1])]
    assert inbox.drain() == everything
    assert inbox.drain() == []
    assert len(inbox) == 0
    assert inbox.next_deadline() is None
    assert inbox.expire(99.0) == []
    assert not any(inbox.take(asked) for asked in everything)


def test_requests_compare_by_identity_and_cannot_be_changed_under_the_inbox() -> None:
    asked = IncomingRequest(1, "tools/call")
    assert asked != IncomingRequest(1, "tools/call")
    assert {asked: 1}[asked] == 1
    with pytest.raises(AttributeError):
        asked.id = 2  # type: ignore[misc]  # the point


def test_a_printed_request_shows_nothing_that_was_sent_with_it() -> None:
    asked = IncomingRequest(1, "tools/call", {"token": "secret"}, "route", None, {"auth": "secret"})
    assert repr(asked) == "Asked(id=1, method='tools/call')"
    assert IncomingRequest(1, "ping").params is UNSET


def test_a_request_that_stays_open_for_long_lets_go_of_what_it_asked_with() -> None:
    inbox = IncomingRequests()
    asked = IncomingRequest(7, "listen", b"x" * 1000, "route")
    assert inbox.open(asked)
    light = inbox.lighten(asked)
    assert (light.id, light.method, light.route, light.params) == (7, "listen", "route", UNSET)
    assert light in inbox
    assert asked not in inbox
    assert not inbox.take(asked)
    assert inbox.take(light)


def test_a_request_that_was_answered_meanwhile_is_not_opened_again() -> None:
    inbox = IncomingRequests()
    asked = IncomingRequest(7, "listen")
    assert inbox.open(asked)
    assert inbox.take(asked)
    assert inbox.lighten(asked) not in inbox
