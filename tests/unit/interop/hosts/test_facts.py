"""`interop/hosts/facts.py`: what a recording shows of a host, in both eras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from interop.hosts.facts import NOT_ASKED, facts_of, judged_host, rules_of

Json = dict[str, Any]
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {"listChanged": True}, "elicitation": {}},
    "clientInfo": {"name": "host", "version": "1"},
}
AGREED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "warehouse", "version": "1"},
}


def recorded(path: Path, *messages: tuple[str, Json]) -> Path:
    entries = [
        {"from": sender, "transport": "stdio", "message": {"jsonrpc": "2.0", **message}}
        for sender, message in messages
    ]
    lines = [{"trunkline-trace": 1}, *entries]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def asked(number: int, method: str, **params: Any) -> tuple[str, Json]:
    return "client", {"id": number, "method": method, "params": params}


def answered(number: int, **result: Any) -> tuple[str, Json]:
    return "server", {"id": number, "result": result}


def test_a_session_shows_revision_capabilities_question_progress_and_calls(
    tmp_path: Path,
) -> None:
    ask = {"id": 3, "method": "elicitation/create", "params": {}}
    report = {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
    found = facts_of(
        [
            recorded(
                tmp_path / "talk.jsonl",
                asked(0, "initialize", **HELLO),
                answered(0, **AGREED),
                asked(1, "tools/list"),
                answered(1, tools=[]),
                # An id of the client and one of the server may be equal.
                asked(3, "tools/call", name="order", arguments={}, _meta={"progressToken": 1}),
                ("server", ask),
                ("client", {"id": 3, "result": {"action": "decline"}}),
                ("server", report),
                answered(3, content=[]),
                asked(4, "tools/call", name="audit", arguments={}),
                answered(4, content=[], isError=True),
                asked(5, "tools/call", name="gone", arguments={}),
                ("server", {"id": 5, "error": {"code": -32602, "message": "no"}}),
            )
        ]
    )
    assert found.revision == "2025-06-18"
    assert found.declared == "elicitation, roots (listChanged)"
    assert found.is_listed
    assert found.calls == {"order": "ok", "audit": "failed", "gone": "error -32602"}
    assert found.asked == "decline"
    assert (found.wants_progress, found.progress) == (True, 1)


def test_single_requests_show_them_too(tmp_path: Path) -> None:
    responses = {"elicitation-1": {"action": "cancel"}}
    found = facts_of(
        [
            recorded(
                tmp_path / "talk.jsonl",
                asked(1, "tools/call", name="order", arguments={}, _meta=META),
                answered(1, resultType="input_required", inputRequests={}),
                asked(2, "tools/call", name="order", inputResponses=responses, _meta=META),
                answered(2, resultType="complete", content=[]),
            )
        ]
    )
    assert (found.revision, found.declared) == ("2026-07-28", "elicitation (form)")
    assert (found.asked, found.calls) == ("cancel", {"order": "ok"})
    assert not found.wants_progress


def test_a_server_that_is_started_again_is_another_connection(tmp_path: Path) -> None:
    """Ids begin anew, and so does the handshake."""
    start = [
        asked(0, "initialize", **HELLO),
        answered(0, **AGREED),
        ("client", {"method": "notifications/initialized"}),
    ]
    listing = asked(1, "tools/list")
    path = recorded(tmp_path / "talk.jsonl", *start, listing)
    later = [
        {"from": sender, "transport": "stdio", "message": {"jsonrpc": "2.0", **message}}
        for sender, message in [*start, answered(1, tools=[])]
    ]
    first = path.read_text()
    path.write_text(first + "".join(f"{json.dumps(each)}\n" for each in later))
    assert facts_of([path]).is_listed
    assert judged_host([path], "stdio").theirs
    named = [{**each, "connection": "later"} for each in later[:3]]
    path.write_text(first + "".join(f"{json.dumps(each)}\n" for each in named))
    assert not facts_of([path]).is_listed
    found = judged_host([path], "stdio")
    assert [each.rule for each in [*found.ours, *found.theirs]] == ["trace.unanswered"]


def test_a_call_that_waits_for_an_answer_has_not_ended(tmp_path: Path) -> None:
    call = asked(1, "tools/call", name="order", arguments={}, _meta=META)
    path = recorded(tmp_path / "talk.jsonl", call, answered(1, resultType="input_required"))
    assert facts_of([path]).calls == {}


def test_a_host_without_elicitation_is_not_asked(tmp_path: Path) -> None:
    hello = {**HELLO, "capabilities": {}}
    path = recorded(tmp_path / "talk.jsonl", asked(0, "initialize", **hello))
    assert (facts_of([path]).asked, facts_of([path]).declared) == (NOT_ASKED, "nothing")


def test_a_recording_without_messages_shows_no_revision(tmp_path: Path) -> None:
    page = {"from": "server", "transport": "http", "stream": 1, "raw": "<html>"}
    path = recorded(tmp_path / "talk.jsonl")
    path.write_text(path.read_text() + json.dumps(page))
    assert facts_of([path]).revision == ""
    assert facts_of([]).revision == ""


def test_findings_of_all_recordings_are_those_of_who_sent_the_message(tmp_path: Path) -> None:
    early = asked(1, "tools/list")
    unasked = answered(7, tools=[])
    paths = [
        recorded(tmp_path / "first.jsonl", early),
        recorded(tmp_path / "second.jsonl", asked(0, "initialize", **HELLO), unasked),
    ]
    found = judged_host(paths, "stdio")
    assert "mcp.lifecycle.initialize-first" in [each.rule for each in found.theirs]
    assert found.errors()
    assert "error `mcp.lifecycle.initialize-first`" in rules_of([*found.theirs, *found.theirs])
    assert rules_of([each for each in found.theirs if each.level == "info"]) == []
