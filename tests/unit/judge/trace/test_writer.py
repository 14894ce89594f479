"""What a recording keeps of a frame: values with secrets hidden, faults of the text, outlines."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from tests.canaries import CANARY, SECRETS
from tests.cases import for_each
from trunkline.errors import NOTHING
from trunkline.jsonrpc.framing.framing import BadHeader, Oversize, Truncated
from trunkline.judge import Conversation, TraceEntry, TraceFault, judge, read_trace
from trunkline.judge.trace.reader import TextFault, UnreadFrame
from trunkline.judge.trace.writer import (
    MAX_TOLERANT_BYTES,
    capture,
    encode_entry,
    frame_entry,
    write_entry,
)
from trunkline.redaction import HIDDEN

# Bytes that take the place of a note, and make the frame anything but JSON.
DAMAGE = {
    "a cut emoji": b"\\ud83d",
    "bad UTF-8": b"\xe9t\xe9",
    "a number that is too large": b'x","n":1e400,"z":"',
    "an integer that is too long": b'x","n":' + b"9" * 5000 + b',"z":"',
    "NaN": b'x","n":NaN,"z":"',
    "minus infinity": b'x","n":-Infinity,"z":"',
    "a raw tab": b"a\tb",
    "a raw NUL": b"a\0b",
    # What no reader makes sense of.
    "a quote": b'a"b',
    "an open bracket": b'x","n":[[[,"z":"',
    "nesting": b'x","n":' + b"[" * 100_000 + b',"z":"',
    "a backslash": b"\\x41",
    "no value": b'x","n":,"z":"',
}


def frame(note: bytes = b"plain", **members: Any) -> bytes:
    arguments = {**SECRETS, "note": "NOTE"}
    params = {"name": "login", "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params, **members}
    return json.dumps(message).encode().replace(b"NOTE", note)


def recorded(data: Any) -> TraceEntry:
    line = encode_entry(frame_entry(data, TraceEntry(sender="client", transport="stdio")))
    assert CANARY.encode() not in line
    assert line.endswith(b"\n")
    (entry,) = read_trace([line])
    assert isinstance(entry, TraceEntry)
    return entry


@for_each("damage", list(DAMAGE.values()), ids=list(DAMAGE))
def test_a_damaged_frame_shows_no_secret_and_keeps_its_method_and_id(damage: bytes) -> None:
    entry = recorded(frame(damage))
    assert [each.rule for each in entry.faults]
    if entry.message is not NOTHING:  # a lone surrogate, read as U+FFFD
        assert (entry.message["method"], entry.message["id"]) == ("tools/call", 7)
        assert entry.message["params"]["arguments"]["password"] == {"value": HIDDEN}
        return
    assert entry.unread is not None
    assert entry.unread.length == len(frame(damage))
    value = entry.unread.value
    if value is NOTHING:
        assert (entry.unread.method, entry.unread.id) == ("tools/call", 7)
        assert entry.unread.digest == f"sha256:{sha256(frame(damage)).hexdigest()}"
    else:
        assert (value["method"], value["id"]) == ("tools/call", 7)
        assert value["params"]["arguments"]["password"] == {"value": HIDDEN}
        assert entry.unread.digest == ""


@for_each("damage", list(DAMAGE.values()), ids=list(DAMAGE))
def test_the_fault_of_a_damaged_frame_is_that_of_its_text(damage: bytes) -> None:
    found = {each.rule for each in judge(frame(damage), sender="client")}
    entry = recorded(frame(damage))
    again = Conversation("2026-07-28").feed(entry)
    if entry.message is NOTHING:
        assert found == {each.rule for each in entry.faults}
    else:
        # The rest of its message is judged too, by the conversation with its own rules.
        assert [each.rule for each in entry.faults] == ["jsonrpc.text.surrogate"]
        assert "jsonrpc.text.surrogate" in found & {each.rule for each in again}
        return
    # Stated by a requirement of MCP, in one case.
    named = {"mcp.jsonrpc.utf8": "jsonrpc.text.utf8"}
    assert {named.get(each.rule, each.rule) for each in again} == found


def test_damaged_frame_is_recorded_as_the_tolerant_reader_reads_it() -> None:
    data = b'{"a":NaN,"b":-1e999,"c":"\xff\\ud83d","d":[1.5,2],"e":' + b"1" * 400 + b"}"
    entry = recorded(data)
    assert entry.unread is not None
    assert entry.unread.value == {
        "a": "NaN",
        "b": "-1e999",
        "c": "\ufffd\ufffd",
        "d": [1.5, 2],
        "e": "1" * 400,
    }


def test_a_frame_that_is_too_large_for_the_tolerant_reader_is_outlined() -> None:
    data = frame(b"\xff" + b"x" * MAX_TOLERANT_BYTES)
    entry = recorded(data)
    assert entry.unread is not None
    assert entry.unread.value is NOTHING
    assert (entry.unread.length, entry.unread.id) == (len(data), 7)


@pytest.mark.parametrize(
    ("data", "method", "id"),
    [
        (b'{"id":1,"method":"a","method":"b",', "", 1),
        (b'{"id":1,"id":2,"method":"a",', "a", None),
        (b'{"params":{"method":"x","id":1},', "", None),
        (b'{"method":"a b","id":"' + b"x" * 200 + b'",', "", None),
        (b'{"id":"sk-' + b"A1b2" * 8 + b'","method":"tools/call",', "tools/call", HIDDEN),
        (b"Listening on port 80", "", None),
    ],
)
def test_an_outline_has_only_what_is_certain(data: bytes, method: str, id: Any) -> None:
    entry = recorded(data)
    assert entry.unread is not None
    assert (entry.unread.method, entry.unread.id) == (method, id)


def test_a_frame_that_was_not_framed_keeps_none_of_its_bytes() -> None:
    head = b'{"id":5,"method":"tools/call","params":{"auth":"CANARY'
    assert recorded(Oversize(head, 99, 10)).unread == UnreadFrame(
        length=99, method="tools/call", id=5
    )
    assert recorded(Oversize(head, None, 10)).faults == (
        TextFault("jsonrpc.limit.message-size", "", "a message within the size limit"),
    )
    assert recorded(BadHeader("CANARY", lost=True)).unread == UnreadFrame(length=0)
    assert recorded(Truncated(5, None)).unread == UnreadFrame(length=0)


def test_a_duplicate_name_is_recorded_beside_the_message() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}'
    entry = recorded(data)
    assert entry.message["params"] == {"a": 2}
    (fault,) = entry.faults
    assert (fault.rule, fault.where) == ("jsonrpc.text.duplicate-key", "/params/a")
    found = Conversation().feed(entry)
    assert "jsonrpc.text.duplicate-key" in [each.rule for each in found]
    spelt = data.replace(b',"a":2', b',"b":"\\u0041"')
    assert recorded(spelt).faults == ()


def test_hidden_pointers_are_listed_and_an_empty_list_means_none() -> None:
    hidden = recorded(frame()).hidden
    assert "/params/arguments/password" in hidden
    assert len(hidden) == len(SECRETS)
    plain = json.loads(write_entry(TraceEntry(message={"a": 1})))
    assert "hidden" not in plain
    sent = json.loads(write_entry(TraceEntry(message={"a": HIDDEN})))
    assert sent["hidden"] == []


def test_a_recording_without_the_list_is_read_by_its_placeholders() -> None:
    message = {"params": {"token": HIDDEN, "list": [1, f"a {HIDDEN} b"], "x": {HIDDEN: 1}}}
    (entry,) = read_trace([json.dumps({"from": "client", "message": message})])
    assert isinstance(entry, TraceEntry)
    assert set(entry.hidden) == {"/params/token", "/params/list/1", f"/params/x/{HIDDEN}"}
    (entry,) = read_trace([json.dumps({"from": "client", "message": message, "hidden": []})])
    assert isinstance(entry, TraceEntry)
    assert entry.hidden == ()


def test_to_write_an_entry_again_hides_no_less() -> None:
    once = capture(TraceEntry(message={"text": "Bearer A1b2C3d4", "token": 1}))
    assert capture(once) == once
    (again,) = read_trace([write_entry(once)])
    assert isinstance(again, TraceEntry)
    assert set(again.hidden) == {"/text", "/token"}
    damaged = recorded(frame(b"\xff"))
    (again,) = read_trace([write_entry(damaged)])
    assert isinstance(again, TraceEntry)
    assert again == damaged


@pytest.mark.parametrize(
    "entry",
    [
        {"hidden": "x"},
        {"hidden": [1]},
        {"faults": {}},
        {"faults": [{"where": "/x"}]},
        {"faults": [{"rule": 5}]},
        {"faults": ["x"]},
        {"unread": []},
        {"unread": {"length": "x"}},
        {"unread": {"length": 1, "id": [1]}},
        {"unread": {"method": 5}},
    ],
)
def test_malformed_members_are_a_fault_of_the_line(entry: dict[str, Any]) -> None:
    (fault,) = read_trace([json.dumps({"from": "client", **entry})])
    assert isinstance(fault, TraceFault)


def test_a_damaged_request_is_remembered_and_a_damaged_reply_ends_its_request() -> None:
    talk = Conversation("2026-07-28")
    talk.feed(recorded(frame(b"\xff")))
    refusal = {"jsonrpc": "2.0", "id": 7, "error": {"code": -32700, "message": "Parse error"}}
    found = talk.feed(refusal, "server", "stdio")
    assert [each.rule for each in found if each.level == "error"] == []
    talk = Conversation("2025-11-25")
    talk.feed({"jsonrpc": "2.0", "id": 1, "method": "ping"}, "client", "stdio")
    talk.feed(b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}', "server", "stdio")
    assert talk.end() == []
