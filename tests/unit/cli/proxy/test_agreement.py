"""`proxy --judge` and `validate` of its recording find the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import for_each
from tests.unit.judge.trace.test_writer import CANARY, DAMAGE, frame
from trunkline.cli import main
from trunkline.cli.proxy.observer import ConnectionObserver, ProxyObserver, Side
from trunkline.cli.recording import recording
from trunkline.judge import Finding, TraceEntry, read_trace

VECTORS = Path(__file__).parents[3] / "vectors" / "conversations"
CONVERSATIONS = [
    case
    for file in sorted(VECTORS.glob("*.json"))
    for case in json.loads(file.read_text())
    # What HTTP adds is not recorded by the proxy.
    if not any("http" in entry or "stream" in entry for entry in case["entries"])
]


def fact(finding: Finding) -> tuple[str, ...]:
    return (finding.rule, finding.level, finding.where, finding.expected, finding.source)


def live_and_recorded(
    frames: Iterable[tuple[int | None, Side, bytes]],
    path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Counter[tuple[str, ...]], Counter[tuple[str, ...]]]:
    """Return what the proxy reports of frames, and `validate` of what it recorded."""
    live: Counter[tuple[str, ...]] = Counter()
    monkeypatch.setattr(
        ConnectionObserver, "_report", lambda self, finding, about: live.update([fact(finding)])
    )
    said: list[str] = []
    with recording(str(path)) as record:
        run = ProxyObserver(said.append, record=record, judges=True)
        connections: dict[int | None, ConnectionObserver] = {}
        for number, sender, data in frames:
            if number not in connections:
                connections[number] = run.connection(number, "stdio", "stdio")
            connections[number].receive(sender, data)
        for connection in connections.values():
            connection.end()
        assert run.jobs.wait(60)
    assert said == []
    main(["validate", str(path), "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert report["left_out"] == {"messages": 0, "findings": {}}
    recorded = Counter(
        (each["rule"], each["level"], each["where"], each["expected"], each["source"])
        for message in report["messages"]
        for each in message["findings"]
    )
    return live, recorded


def test_there_are_conversations_to_replay() -> None:
    assert len(CONVERSATIONS) > 150


@for_each("case", CONVERSATIONS, ids=[case["name"] for case in CONVERSATIONS])
def test_a_conversation_is_judged_the_same_live_and_recorded(
    case: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames: list[tuple[int | None, Side, bytes]] = []
    for entry in read_trace(json.dumps(each) for each in case["entries"]):
        if isinstance(entry, TraceEntry):
            raw = entry.raw if entry.raw is not None else json.dumps(entry.message)
            data = raw if isinstance(raw, bytes) else raw.encode()
            frames.append((None, entry.sender or "client", data))
    live, recorded = live_and_recorded(frames, tmp_path / "t", capsys, monkeypatch)
    assert live == recorded


def message(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


SCHEMA = {
    "type": "object",
    "properties": {
        "user": {"type": "string"},
        "token": {"type": "integer"},
        "auth": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "required": ["token", "user"],
}
OUTPUT = {
    "type": "object",
    "properties": {"token": {"type": "integer"}, "sessionId": {"type": "integer"}},
}
TOOL = {
    "name": "login",
    "description": "Basic authentication of a user: Basic complexity.",
    "inputSchema": SCHEMA,
    "outputSchema": OUTPUT,
}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "c", "version": "1"},
}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "prompts": {}, "experimental": {"auth": {"on": True}}},
    "serverInfo": {"name": "s", "version": "1"},
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
}
SERVED = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
ARGUMENTS = {"user": "a", "token": 5, "auth": {"x": 1}}
FORM = {"type": "object", "properties": {"password_hint": {"type": "string"}}}
QUESTION = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "Sure?", "requestedSchema": FORM},
}
RESULT = {"content": [{"type": "text", "text": "token=1"}], "structuredContent": {"token": 1}}

# A server with arguments, results, forms and questions whose names are those of secrets.
HANDSHAKE: list[tuple[Side, bytes]] = [
    ("client", message(id=0, method="initialize", params=INITIALIZE)),
    ("server", message(id=0, result=INITIALIZED)),
    ("client", message(method="notifications/initialized")),
    ("client", message(id=1, method="tools/list")),
    ("server", message(id=1, result={"tools": [TOOL]})),
    (
        "client",
        message(id=2, method="tools/call", params={"name": "login", "arguments": ARGUMENTS}),
    ),
    ("server", message(id=9, method="elicitation/create", params=QUESTION["params"])),
    ("client", message(id=9, result={"action": "accept", "content": {"password_hint": "x"}})),
    ("server", message(id=2, result=RESULT)),
    (
        "client",
        message(id=3, method="prompts/get", params={"name": "p", "arguments": {"token": "a"}}),
    ),
    ("server", message(id=3, result={"messages": []})),
]
CALL = {"name": "login", "arguments": ARGUMENTS, "_meta": META}
LISTED = {"resultType": "complete", "tools": [TOOL], "ttlMs": 0, "cacheScope": "private"}
ASKED = {"resultType": "input_required", "inputRequests": {"auth": QUESTION}, "requestState": "s"}
ANSWERS = {"auth": {"action": "accept", "content": {"password_hint": "x"}}}
PER_REQUEST: list[tuple[Side, bytes]] = [
    ("client", message(id=1, method="tools/list", params={"_meta": META})),
    ("server", message(id=1, result={**LISTED, "_meta": SERVED})),
    ("client", message(id=2, method="tools/call", params=CALL)),
    ("server", message(id=2, result={**ASKED, "_meta": SERVED})),
    (
        "client",
        message(
            id=3,
            method="tools/call",
            params={**CALL, "inputResponses": ANSWERS, "requestState": "s"},
        ),
    ),
    ("server", message(id=3, result={**RESULT, "resultType": "complete", "_meta": SERVED})),
]


@pytest.mark.parametrize("talk", [HANDSHAKE, PER_REQUEST], ids=["handshake", "per request"])
def test_a_server_with_names_of_secrets_is_not_blamed_for_what_was_hidden(
    talk: list[tuple[Side, bytes]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames: list[tuple[int | None, Side, bytes]] = [(None, *each) for each in talk]
    live, recorded = live_and_recorded(frames, tmp_path / "t", capsys, monkeypatch)
    assert live == recorded == Counter()
    text = (tmp_path / "t").read_text()
    assert '"description":"Basic authentication of a user: Basic complexity."' in text
    assert '"required":["token","user"]' in text
    assert '"hidden":["/params/arguments/token","/params/arguments/auth"]' in text


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_a_damaged_frame_is_judged_the_same_and_shows_no_secret(
    damage: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = message(id=7, error={"code": -32700, "message": "Parse error"})
    frames: list[tuple[int | None, Side, bytes]] = [
        (1, "client", frame(damage)),
        (2, "client", frame()),
        (1, "server", answer),
        (2, "server", message(id=7, result={"content": []})),
    ]
    live, recorded = live_and_recorded(frames, tmp_path / "t", capsys, monkeypatch)
    assert live == recorded
    assert live
    assert CANARY not in (tmp_path / "t").read_text()


def test_connections_of_one_recording_are_judged_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same ids on each: within one conversation they would not be unique.
    frames = [(number, *each) for each in HANDSHAKE for number in (1, 2, 3)]
    live, recorded = live_and_recorded(frames, tmp_path / "t", capsys, monkeypatch)
    assert live == recorded == Counter()


def test_a_message_that_names_no_revision_is_judged_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    frames: list[tuple[int | None, Side, bytes]] = [
        (None, "client", message(id=1, method="ping")),
        (None, "server", message(id=1, result={})),
        (None, "server", b"Listening on port 80"),
        (None, "client", b'{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}'),
        (None, "client", message(id=4, method="tools/list", params={"title": HIDDEN_TEXT})),
    ]
    live, recorded = live_and_recorded(frames, tmp_path / "t", capsys, monkeypatch)
    assert live == recorded
    assert {"mcp.stdio.stdout-clean", "jsonrpc.text.duplicate-key"} <= {each[0] for each in live}


# A peer that sends the placeholder hides nothing with it.
HIDDEN_TEXT = "[redacted]"
