"""What is read of messages to know whose they are, and what is remembered of a client.

How the whole of it behaves is in `tests/terminal/test_serve.py`.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.json import encode

from tests.faults.scene import nothing_left
from trunkline.cli.standing_in import _cancelled, _heads, _key, _Pipes, _Session
from trunkline.jsonrpc.policy import Policy


def test_a_message_is_read_as_far_as_it_takes() -> None:
    (head,), is_batch = _heads(b' {"id": 7, "method": "a", "params": {"deep": [1]}, "more": 1}')
    assert (head.id, head.method, is_batch) == (7, "a", False)
    (head,), _ = _heads(b'{"id": "7", "result": {}}')
    assert head.method is UNSET
    heads, is_batch = _heads(b'[{"id": 1, "method": "a"}, {"method": "b"}]')
    assert [each.method for each in heads] == ["a", "b"]
    assert is_batch


@pytest.mark.parametrize("frame", [b"", b"{", b"[1]", b"7", b'"x"', b"\xff", b"null", b"[" * 9999])
def test_what_cannot_be_read_is_for_others_to_judge(frame: bytes) -> None:
    assert _heads(frame) == ([], False)


def test_ids_that_look_alike_are_two() -> None:
    keys = [_key(each) for each in (1, "1", True)]
    assert len(set(keys)) == 3
    assert [_key(each) for each in (None, 1.5, {}, UNSET)] == [None] * 4


def test_what_is_cancelled_is_named_in_the_params() -> None:
    (head,), _ = _heads(b'{"method": "notifications/cancelled", "params": {"requestId": 3}}')
    assert _cancelled(head) == _key(3)
    (head,), _ = _heads(b'{"method": "notifications/cancelled", "params": [3]}')
    assert _cancelled(head) is None


def hear(session: _Session, method: str, **params: Any) -> bytes:
    frame = encode({"id": 1, "method": method, "params": params})
    ((head,), _) = _heads(frame)
    session.hear(head, frame)
    return frame


def test_a_session_keeps_what_still_holds() -> None:
    session = _Session(_key(1), b"")
    hear(session, "logging/setLevel", level="info")
    level = hear(session, "logging/setLevel", level="debug")
    hear(session, "resources/subscribe", uri="a:1")
    second = hear(session, "resources/subscribe", uri="a:2")
    hear(session, "resources/unsubscribe", uri="a:1")
    hear(session, "resources/subscribe", uri=3)
    hear(session, "tools/call", name="x")
    assert session.wishes() == [level, second]


def test_a_client_is_told_of_the_lists_it_was_told_may_change() -> None:
    session = _Session(_key(1), b"")
    session.capabilities = {"tools": {"listChanged": True}, "prompts": {}, "resources": 1}
    assert session.changed_lists() == []
    hear(session, "notifications/initialized")
    assert session.changed_lists() == ["notifications/tools/list_changed"]


def test_the_directions_of_pipes_end_one_by_one() -> None:
    async def script() -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        pipes = _Pipes(Policy(), (ours_in, ours_out))
        came = asyncio.Queue[Any]()
        pipes.on_message = lambda frame, _: came.put_nowait(frame)
        pipes.on_error = came.put_nowait
        await pipes.connect()
        pipes.send(b"{}")
        await pipes.finish()
        assert os.read(theirs_in, 100) == b"{}\n"
        assert os.read(theirs_in, 100) == b""
        os.write(theirs_out, b"[]\n")
        assert await asyncio.wait_for(came.get(), 10) == b"[]"
        os.close(theirs_out)
        assert await asyncio.wait_for(came.get(), 10) is None
        await pipes.close()
        os.close(theirs_in)

    with nothing_left():
        asyncio.run(script())
