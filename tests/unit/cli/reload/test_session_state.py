"""What is read of messages to know whose they are, and what is remembered of a client."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET, Raw
from msgspec.json import decode, encode

from trunkline.cli.reload.session_state import (
    NegotiatedFields,
    ReplayedSession,
    cancelled_request,
    decode_as,
    message,
    owned,
    parse_heads,
    request_key,
)


def test_a_message_is_read_as_far_as_it_takes() -> None:
    (head,), is_batch = parse_heads(
        b' {"id": 7, "method": "a", "params": {"deep": [1]}, "more": 1}'
    )
    assert (head.id, head.method, is_batch) == (7, "a", False)
    (head,), _ = parse_heads(b'{"id": "7", "result": {}}')
    assert head.method is UNSET
    heads, is_batch = parse_heads(b'[{"id": 1, "method": "a"}, {"method": "b"}]')
    assert [each.method for each in heads] == ["a", "b"]
    assert is_batch


@pytest.mark.parametrize("frame", [b"", b"{", b"[1]", b"7", b'"x"', b"\xff", b"null", b"[" * 9999])
def test_unreadable_frame_has_no_heads(frame: bytes) -> None:
    assert parse_heads(frame) == ([], False)


def test_ids_that_look_alike_are_two() -> None:
    keys = [request_key(each) for each in (1, "1", True)]
    assert len(set(keys)) == 3
    assert [request_key(each) for each in (None, 1.5, {}, UNSET)] == [None] * 4


def test_cancelled_request_id_is_read_from_the_params() -> None:
    (head,), _ = parse_heads(b'{"method": "notifications/cancelled", "params": {"requestId": 3}}')
    assert cancelled_request(head) == request_key(3)
    (head,), _ = parse_heads(b'{"method": "notifications/cancelled", "params": [3]}')
    assert cancelled_request(head) is None


def track(session: ReplayedSession, method: str, **params: Any) -> bytes:
    frame = encode({"id": 1, "method": method, "params": params})
    ((head,), _) = parse_heads(frame)
    session.track(head, frame)
    return frame


def test_a_session_keeps_what_still_holds() -> None:
    session = ReplayedSession(request_key(1), b"")
    track(session, "logging/setLevel", level="info")
    level = track(session, "logging/setLevel", level="debug")
    track(session, "resources/subscribe", uri="a:1")
    second = track(session, "resources/subscribe", uri="a:2")
    track(session, "resources/unsubscribe", uri="a:1")
    track(session, "resources/subscribe", uri=3)
    track(session, "tools/call", name="x")
    assert session.requests_to_replay() == [level, second]


def test_changed_lists_are_those_declared_with_list_changed() -> None:
    session = ReplayedSession(request_key(1), b"")
    session.capabilities = {"tools": {"listChanged": True}, "prompts": {}, "resources": 1}
    assert session.changed_lists() == []
    track(session, "notifications/initialized")
    assert session.changed_lists() == ["notifications/tools/list_changed"]


def test_a_result_that_is_something_else_is_read_as_an_empty_one() -> None:
    assert (
        decode_as(Raw(b'{"protocolVersion": "x", "more": 1}'), NegotiatedFields).protocolVersion
        == "x"
    )
    for odd in (Raw(b"[1]"), Raw(b'{"capabilities": 3}'), UNSET):
        assert decode_as(odd, NegotiatedFields) == NegotiatedFields()


def test_owned_copy_does_not_reference_the_frame() -> None:
    (head,), _ = parse_heads(b'{"id": 1, "result": {"a": 1}}')
    copied = owned(head.result)
    assert copied is not head.result
    assert copied == head.result
    assert owned(UNSET) is UNSET


def test_a_message_has_only_the_members_that_are_set() -> None:
    assert decode(message(id=UNSET, method="a")) == {"jsonrpc": "2.0", "method": "a"}
