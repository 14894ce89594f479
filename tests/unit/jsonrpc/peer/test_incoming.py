"""What we owe an answer: every rule of `IncomingRequests`, obeyed and broken."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from trunkline.jsonrpc import IncomingRequest, IncomingRequests, RequestId
from trunkline.jsonrpc.messages import Call


def opened(
    incoming: IncomingRequests, id: RequestId | None, *, deadline: float | None = None
) -> IncomingRequest:
    asked = IncomingRequest(id, "tools/call")
    assert incoming.open(asked, deadline=deadline)
    return asked


def test_a_request_is_open_until_it_is_taken_out() -> None:
    incoming = IncomingRequests()
    asked = opened(incoming, 1)
    assert asked in incoming
    assert len(incoming) == 1
    assert incoming.take(asked)
    assert asked not in incoming
    assert len(incoming) == 0


def test_only_the_first_to_take_a_request_out_finds_it() -> None:
    incoming = IncomingRequests()
    asked = opened(incoming, 1)
    assert [incoming.take(asked) for _ in range(3)] == [True, False, False]


def test_the_id_of_an_open_request_is_refused_and_nothing_changes() -> None:
    incoming = IncomingRequests()
    first, second = opened(incoming, 1, deadline=5.0), IncomingRequest(1, "other")
    assert not incoming.open(second, deadline=1.0)
    assert second not in incoming
    assert not incoming.take(second)
    assert incoming.next_deadline() == 5.0
    assert incoming.find(1) is first


@pytest.mark.parametrize("id", [1, "1", 0, "", None])
def test_ids_are_distinguished_by_type_and_value(id: RequestId | None) -> None:
    incoming = IncomingRequests()
    others = [opened(incoming, other) for other in (1, "1", 0, "", None) if other != id]
    asked = opened(incoming, id)
    assert incoming.take(asked)
    assert all(other in incoming for other in others)


def test_an_id_may_be_used_again_once_its_request_is_out() -> None:
    incoming = IncomingRequests()
    incoming.take(opened(incoming, 1))
    assert opened(incoming, 1) in incoming


def test_a_late_answer_does_not_take_the_place_of_a_new_request_with_the_same_id() -> None:
    incoming = IncomingRequests()
    old = opened(incoming, 1)
    incoming.take(old)
    new = opened(incoming, 1, deadline=5.0)
    assert old not in incoming
    assert not incoming.take(old)
    assert not incoming.set_deadline(old, 1.0)
    assert incoming.next_deadline() == 5.0
    assert incoming.take(new)


def test_a_cancel_finds_the_open_request_it_names() -> None:
    incoming = IncomingRequests()
    asked = opened(incoming, 7)
    assert incoming.find(7) is asked
    assert incoming.find("7") is None
    incoming.take(asked)
    assert incoming.find(7) is None


@pytest.mark.parametrize("id", [1, "a", None])
def test_a_request_that_is_due_is_taken_out_whatever_its_id(id: RequestId | None) -> None:
    incoming = IncomingRequests()
    asked = opened(incoming, id, deadline=5.0)
    assert incoming.next_deadline() == 5.0
    assert incoming.expire(4.9) == []
    assert incoming.expire(5.0) == [asked]
    assert incoming.expire(9.0) == []
    assert not incoming.take(asked)
    assert incoming.next_deadline() is None


def test_a_request_taken_out_is_never_due() -> None:
    incoming = IncomingRequests()
    incoming.take(opened(incoming, 1, deadline=5.0))
    opened(incoming, 1)
    assert incoming.next_deadline() is None
    assert incoming.expire(9.0) == []
    assert len(incoming) == 1


def test_a_deadline_may_be_set_and_put_off_while_a_request_is_open() -> None:
    incoming = IncomingRequests()
    asked = opened(incoming, 1)
    assert incoming.set_deadline(asked, 5.0)
    assert incoming.set_deadline(asked, 8.0)
    assert incoming.expire(7.0) == []
    assert incoming.expire(8.0) == [asked]
    assert not incoming.set_deadline(asked, 9.0)
    assert incoming.next_deadline() is None


def test_draining_takes_everything_out_oldest_first() -> None:
    incoming = IncomingRequests()
    everything = [opened(incoming, id, deadline=9.0 - n) for n, id in enumerate([2, "1", None, 1])]
    assert incoming.drain() == everything
    assert incoming.drain() == []
    assert len(incoming) == 0
    assert incoming.next_deadline() is None
    assert incoming.expire(99.0) == []
    assert not any(incoming.take(asked) for asked in everything)


def test_requests_compare_by_identity_also_after_their_params_were_replaced() -> None:
    asked = IncomingRequest(1, "tools/call", b"{}")
    kept = {asked: 1}
    assert asked != IncomingRequest(1, "tools/call", b"{}")
    asked.set_params(UNSET)
    assert kept[asked] == 1


def test_a_printed_request_shows_nothing_that_was_sent_with_it() -> None:
    asked = IncomingRequest(1, "tools/call", {"token": "secret"}, "route", None, {"auth": "secret"})
    assert repr(asked) == "IncomingRequest(id=1, method='tools/call')"
    assert IncomingRequest(1, "ping").params is UNSET


def test_replaced_params_are_gone_from_the_request_and_from_its_envelope() -> None:
    incoming = IncomingRequests()
    call = Call(id=7, method="listen", params=b"x" * 1000)
    asked = IncomingRequest(7, "listen", call.params, "route", None, call)
    assert incoming.open(asked)
    asked.set_params(UNSET)
    assert asked.params is UNSET
    assert call.params is UNSET
    assert (asked.id, asked.method, asked.route) == (7, "listen", "route")
    assert incoming.take(asked)
