"""Recordings: what is read, what is written, and what is hidden."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from trunkline.errors import NOTHING
from trunkline.judge.trace.reader import (
    TraceEntry,
    TraceFault,
    TraceHttp,
    read_trace,
)
from trunkline.judge.trace.writer import TraceWriter, write_entry
from trunkline.redaction import HIDDEN, conceal

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def only(*lines: str | bytes) -> TraceEntry:
    (entry,) = read_trace(lines)
    assert isinstance(entry, TraceEntry)
    return entry


def test_an_entry_is_read_back_as_it_was_written() -> None:
    entry = TraceEntry(
        at=1.5,
        sender="server",
        transport="http",
        message=PING,
        http=TraceHttp(status=200, headers={"Content-Type": "application/json"}),
        stream=3,
        connection="c",
        event={"id": "7"},
        ends=True,
        line=1,
    )
    assert only(write_entry(entry)) == entry


def test_the_writer_begins_with_the_header() -> None:
    lines: list[bytes] = []
    TraceWriter(lines.append, program="x").write(TraceEntry(message=PING))
    assert json.loads(lines[0]) == {"trunkline-trace": 1, "program": "x"}
    assert only(*lines).message == PING


def test_bare_messages_are_entries_without_a_sender() -> None:
    entry = only(json.dumps(PING))
    assert (entry.sender, entry.message, entry.line) == (None, PING, 1)
    assert only(json.dumps([PING])).message == [PING]


def test_the_text_of_a_bare_message_is_kept() -> None:
    text = b'{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}'
    assert only(text).raw == text


def test_text_and_bytes_of_other_recorders_are_read() -> None:
    assert only('{"raw":"hello"}').raw == "hello"
    assert only('{"base64":"/wA="}').raw == b"\xff\x00"


def test_a_message_with_a_lone_surrogate_is_read_and_its_text_is_kept() -> None:
    message = r'{"jsonrpc":"2.0","id":1,"result":{"x":"\ud83d"}}'
    (entry,) = read_trace([f'{{"from":"server","message": {message} }}'])
    assert isinstance(entry, TraceEntry)
    assert entry.message["result"] == {"x": "\ufffd"}
    assert entry.raw == message.encode()
    (bare,) = read_trace([message])
    assert isinstance(bare, TraceEntry)
    assert (bare.message, bare.raw) == (entry.message, entry.raw)
    (elsewhere,) = read_trace([r'{"from":"server","transport":"\ud83d"}'])
    assert isinstance(elsewhere, TraceEntry)
    assert (elsewhere.transport, elsewhere.raw) == ("\ufffd", None)


def test_a_message_that_is_null_is_not_a_missing_one() -> None:
    assert only(write_entry(TraceEntry(message=None))).message is None
    assert only(write_entry(TraceEntry(sender="client"))).message is NOTHING


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "5",
        '{"from":"nobody","message":{}}',
        '{"at":"noon","message":{}}',
        '{"at":true,"message":{}}',
        '{"http":5}',
        '{"http":{"headers":[]}}',
        '{"http":{"status":"200"}}',
        '{"base64":"*"}',
        '{"base64":5}',
        '{"trunkline-trace":2}',
    ],
)
def test_a_bad_line_is_a_fault_and_reading_goes_on(line: str) -> None:
    fault, entry = read_trace([line, json.dumps(PING)])
    assert isinstance(fault, TraceFault)
    assert fault.line == 1
    assert isinstance(entry, TraceEntry)


def test_reading_takes_one_line_at_a_time() -> None:
    taken = 0

    def lines() -> Iterator[str]:
        nonlocal taken
        for _ in range(5):
            taken += 1
            yield json.dumps(PING)

    next(iter(read_trace(lines())))
    assert taken == 1


def test_headers_are_found_in_any_case() -> None:
    http = TraceHttp(headers={"MCP-Session-Id": "x"})
    assert http.header("mcp-session-id") == "x"
    assert http.header("accept") is None


@pytest.mark.parametrize(
    ("http", "written"),
    [
        (
            TraceHttp(method="POST", path="/mcp", headers={"accept": "*/*"}),
            {"method": "POST", "path": "/mcp", "headers": {"accept": "*/*"}},
        ),
        (TraceHttp(status=202, headers={}), {"status": 202, "headers": {}}),
    ],
)
def test_absent_members_of_an_http_exchange_are_not_written(http: TraceHttp, written: Any) -> None:
    found = json.loads(write_entry(TraceEntry(sender="client", transport="http", http=http)))
    assert found["http"] == written
    assert next(iter(read_trace([json.dumps(found)]))).http == http


def test_secrets_are_hidden_wherever_they_stand() -> None:
    entry = TraceEntry(
        message={"params": {"password": "hunter2", "text": "Bearer abcdefgh", "progressToken": 1}},
        http=TraceHttp(path="/mcp?access_token=hunter2", headers={"Authorization": "x hunter2"}),
        raw=None,
    )
    written = write_entry(entry)
    assert b"hunter2" not in written
    assert b"abcdefgh" not in written
    assert json.loads(written)["message"]["params"]["progressToken"] == 1


def test_nothing_is_cut() -> None:
    value = {"list": list(range(1000)), "text": "x" * 100_000}
    assert conceal(value) == value
    deep: object = "end"
    for _ in range(5000):
        deep = [deep]
    shown = conceal(deep)
    for _ in range(5000):
        assert isinstance(shown, list)
        shown = shown[0]
    assert shown == "end"


@pytest.mark.parametrize("before", [0, 5, 1000, 1020, 1024, 2040, 5000])
@pytest.mark.parametrize("size", [10, 3000])
def test_a_credential_in_a_long_text_is_hidden_whole(before: int, size: int) -> None:
    secret = "s3cr" * size
    for text in (f"token={secret} tail", f"Bearer {secret} tail", f"cookie: {secret}\ntail"):
        shown = conceal("." * before + " " + text)
        assert isinstance(shown, str)
        assert "s3cr" not in shown
        assert HIDDEN in shown
        assert shown.endswith("tail")


def test_a_long_private_key_is_hidden_whole() -> None:
    lines = "\n".join(["MIIEv" * 12] * 80)
    text = f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY----- tail"
    assert conceal(text) == f"{HIDDEN} tail"


def test_pairs_that_are_headers_are_hidden() -> None:
    assert conceal([["X-Api-Key", "k"]]) == [["X-Api-Key", HIDDEN]]
    assert conceal({"name": "X-Api-Key", "value": "k"}) == {"name": "X-Api-Key", "value": HIDDEN}


def test_a_message_that_contains_itself_is_refused_and_not_copied_without_end() -> None:
    loop: dict[str, object] = {}
    loop["params"] = loop
    with pytest.raises(RecursionError):
        write_entry(TraceEntry(at=0.0, sender="client", transport="stdio", message=loop))


def test_secrets_are_hidden_in_a_frame_that_is_not_utf8() -> None:
    frame = b'{"password":"canary-hunter2hunter2","note":"\xff"}'
    line = write_entry(TraceEntry(sender="client", raw=frame))
    assert b"canary" not in line
    entry = only(line)
    assert entry.unread is not None
    assert entry.unread.value == {"password": HIDDEN, "note": "\ufffd"}
    assert entry.hidden == ("/password",)
