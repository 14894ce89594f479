"""What is no message, or none that a server knows: each gets its answer, and harms nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.conversation.rig import Rig, bounded
from tests.conversation.rules import rule
from trunkline.spec.revisions import V2025_11_25

# By why: what is sent, the code, and the id that could be read (None where none could).
FAULTS: dict[str, tuple[Any, int, Any]] = {
    "no JSON": ("{nonsense", -32700, None),
    "half a message": ('{"jsonrpc":"2.0","id":"f0","method":"pi', -32700, "f0"),
    "no UTF-8": (b'{"jsonrpc":"2.0","id":"a","method":"p\xff"}', -32700, "a"),
    "two values": ('{"a":1} {"b":2}', -32700, None),
    "a number": ("5", -32600, None),
    "a text": ('"hello"', -32600, None),
    "an empty object": ("{}", -32600, None),
    "no version": ('{"id":"f1","method":"tools/list"}', -32600, "f1"),
    "another version": ('{"jsonrpc":"1.0","id":"f2","method":"tools/list"}', -32600, "f2"),
    "a null id": ('{"jsonrpc":"2.0","id":null,"method":"tools/list"}', -32600, None),
    "a fractional id": ('{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}', -32600, None),
    "a boolean id": ('{"jsonrpc":"2.0","id":true,"method":"tools/list"}', -32600, None),
    "no method": ('{"jsonrpc":"2.0","id":"f3"}', -32600, "f3"),
    "a method that is a number": ('{"jsonrpc":"2.0","id":"f4","method":5}', -32600, "f4"),
    "an empty method": ('{"jsonrpc":"2.0","id":"f5","method":""}', -32600, "f5"),
    "params that are an array": (
        '{"jsonrpc":"2.0","id":"f6","method":"tools/list","params":[]}',
        -32602,
        "f6",
    ),
    "params that are null": (
        '{"jsonrpc":"2.0","id":"f7","method":"tools/list","params":null}',
        -32602,
        "f7",
    ),
    "params that are a text": (
        '{"jsonrpc":"2.0","id":"f8","method":"tools/list","params":"x"}',
        -32602,
        "f8",
    ),
    "a method and a result": (
        '{"jsonrpc":"2.0","id":"f9","method":"tools/list","result":{}}',
        -32600,
        "f9",
    ),
    "nesting without end": ("[" * 5000, -32600, None),
}


@rule(
    *("BP-001", "BP-003", "BP-008", "BP-010", "K-34"),
    may_provoke=(
        "mcp.jsonrpc.notification-unanswered",  # takes an id of null for none
        "mcp.id.echoed",  # takes what has only an id for a reply
        "mcp.meta.incomplete-refused",  # looks at `_meta` before the envelope
    ),
)
@pytest.mark.parametrize("why", FAULTS)
async def test_malformed_message_gets_an_error_and_the_connection_stays_open(
    rig: Rig, why: str
) -> None:
    sent, code, id = FAULTS[why]
    # A WebSocket carries text: what is not UTF-8 is answered, and ends it.  [RFC 6455, section 8.1]
    is_end = rig.transport == "websocket" and why == "no UTF-8"
    raw = await rig.line() if is_end else rig.raw
    raw.send(sent)
    if id is None:
        answer = await raw.answer_without_id()
        # Up to 2025-06-18 null stands for an id that could not be read; after, nothing does.
        assert ("id" in answer) == (not rig.since(V2025_11_25))
    else:
        answer = await raw.reply(id)
    assert answer["error"]["code"] == code
    if is_end:
        async with bounded():
            while raw.wire.is_open:
                await asyncio.sleep(0.01)
    else:
        assert await raw.settle() == [answer]


@rule("BP-021", "F-39", "P-52", "K-23")
async def test_unknown_method_error_names_the_method_and_has_the_request_id(rig: Rig) -> None:
    for method in ("no/such/method", "tools/run", "TOOLS/LIST", "shutdown", "rpc.x"):
        id = f"unknown-{rig.raw.new_id()}"
        reply = await rig.raw.ask(method, {"some": "params"}, id=id)
        assert reply["id"] == id
        assert reply["error"]["code"] == -32601
        assert f"Unknown method: {method}" in reply["error"]["message"]


WITHOUT_ID: list[dict[str, Any]] = [
    {"method": "notifications/no/such"},
    {"method": "notifications/cancelled", "params": {"requestId": []}},
    {"method": "notifications/progress", "params": {"progressToken": "nobody", "progress": 1}},
    {"method": "notifications/progress", "params": {}},
    {"method": "notifications/initialized", "params": {"extra": 1}},
    {"method": "tools/list"},
    {"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}},
    {"method": "notifications/roots/list_changed", "params": []},
    {"method": ""},
]


@rule("BP-009", "F-32")
async def test_notifications_are_never_answered(rig: Rig) -> None:
    for message in WITHOUT_ID:
        rig.raw.received.clear()
        rig.raw.send({"jsonrpc": "2.0", **message})
        assert await rig.raw.settle() == [], message


STRAY: list[dict[str, Any]] = [
    {"id": 99_999, "result": {}},
    {"id": "nobody", "error": {"code": -1, "message": "no"}},
    {"id": None, "error": {"code": -32700, "message": "Parse error"}},
    {"error": {"code": -32700, "message": "Parse error"}},
    {"id": 1, "result": {}, "error": {"code": 1, "message": "both"}},
]


@rule("BP-007", "K-20")
async def test_unmatched_reply_is_not_answered(rig: Rig) -> None:
    for message in STRAY:
        rig.raw.received.clear()
        rig.raw.send({"jsonrpc": "2.0", **message})
        assert await rig.raw.settle() == [], message


@rule("BP-070", "E-129")
async def test_server_writes_each_message_as_one_line(rig: Rig) -> None:
    text = "one\ntwo\r\nthree\u2028four\x00five"
    before = len(rig.raw.record.lines)
    assert (await rig.raw.call("echo", text=text))["content"][0]["text"] == text
    lines = [line for who, line in rig.raw.record.lines[before:] if who == "server"]
    assert len(lines) == 1
    assert b"\n" not in lines[0]
    assert b"\r" not in lines[0]


@rule("BP-014", "BP-070")
async def test_members_in_any_order_and_space_between_them_are_read(rig: Rig) -> None:
    raw = rig.raw
    message = raw.request("tools/call", {"arguments": {"text": "å"}, "name": "echo"})
    turned = dict(reversed(message.items()))
    raw.send(" " + json.dumps(turned, separators=(" ,  ", " :  "), ensure_ascii=True) + "\t")
    reply = await raw.reply(message["id"])
    assert reply["result"]["content"][0]["text"] == "å"


@rule("K-33", "BP-006")
async def test_unknown_members_of_a_request_are_ignored(rig: Rig) -> None:
    raw = rig.raw
    message = raw.request("tools/call", {"name": "echo", "arguments": {"text": "x"}, "more": 1})
    raw.send({**message, "extra": {"a": 1}})
    assert "result" in await raw.reply(message["id"])
