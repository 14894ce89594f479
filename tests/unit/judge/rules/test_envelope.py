"""What the judge of single messages finds, as requirements of a conversation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.judge.rules.recording import (
    answer,
    ask,
    batch,
    breaks,
    call,
    complete,
    found,
    keeps,
    opened,
    passes_over,
    refuse,
    sent,
)
from trunkline.judge import Conversation, TraceEntry, judge

ERROR = "error"
PING, PONG = ask(1, "ping"), answer(1)
START = opened()


def raw(text: str | bytes, by: Any = "client", **facts: Any) -> TraceEntry:
    return TraceEntry(sender=by, raw=text, **facts)


TEXT = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.mark.parametrize(
    ("rule", "where", "bad"),
    [
        ("mcp.jsonrpc.version-present", "/jsonrpc", {"id": 1, "method": "ping"}),
        ("mcp.jsonrpc.version-value", "/jsonrpc", {"jsonrpc": "1.0", "id": 1, "method": "ping"}),
        ("mcp.id.type", "/id", {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}),
    ],
)
def test_a_breach_of_the_envelope_is_one_of_its_requirement(
    rule: str, where: str, bad: dict[str, Any]
) -> None:
    keeps(rule, *START, PING, PONG)
    breaks(rule, ERROR, where, *START, TraceEntry(sender="client", message=bad))
    # Alone, the message breaks the rule of the envelope.
    assert rule not in [each.rule for each in judge(bad, "2025-11-25", "client")]


def test_an_id_is_not_null() -> None:
    rule = "mcp.id.not-null"
    keeps(rule, *START, PING, PONG)
    breaks(rule, ERROR, "/id", *START, sent("client", id=None, method="ping"))


def test_a_batch_is_refused_where_there_are_none() -> None:
    rule = "mcp.batch.removed"
    keeps(rule, *opened("2025-06-18"))
    breaks(rule, ERROR, "", *opened("2025-06-18"), batch(PING))
    passes_over(rule, *opened("2025-03-26"), batch(PING), batch(PONG))


def test_text_is_utf8() -> None:
    rule = "mcp.jsonrpc.utf8"
    keeps(rule, *START, raw(TEXT))
    rules = [
        each for each in found(*START, raw(TEXT.replace(b"ping", b"p\xff"))) if each[0] == rule
    ]
    assert rules == [(rule, ERROR, "")]
    passes_over(rule, *START, raw(TEXT.decode()))


def test_a_reply_has_one_outcome() -> None:
    rule = "mcp.jsonrpc.one-outcome"
    keeps(rule, *START, PING, PONG)
    both = sent("server", id=1, result={}, error={"code": -32603, "message": "no"})
    assert (rule, ERROR) in [each[:2] for each in found(*START, PING, both)]
    passes_over(rule, START[0])


@pytest.mark.parametrize(
    ("rule", "where", "error"),
    [
        ("mcp.jsonrpc.error-code", "/error/code", {"code": "x", "message": "no"}),
        ("mcp.jsonrpc.error-message", "/error/message", {"code": 1, "message": None}),
    ],
)
def test_an_error_has_a_code_and_a_message(rule: str, where: str, error: Any) -> None:
    listing = ask(1, "tools/list")
    start = opened(server={"tools": {}})
    keeps(rule, *start, listing, refuse(1, -32603))
    breaks(rule, ERROR, where, *start, listing, sent("server", id=1, error=error))
    passes_over(rule, *start, listing, answer(1, tools=[]))


def test_a_notification_has_no_id() -> None:
    rule = "mcp.jsonrpc.notification-no-id"
    keeps(rule, *START)
    bad = sent("client", id=1, method="notifications/roots/list_changed")
    broken = [each for each in found(*START, bad) if each[0] == rule]
    assert broken == [(rule, ERROR, "/id")]


def test_a_notification_of_no_revision_is_no_occasion() -> None:
    note = sent("client", method="x/y")
    talk = Conversation("2025-11-25")
    talk.feed(note)
    assert talk.outcomes()["mcp.jsonrpc.notification-no-id"].verdict == "not-observed"


# -- _meta -----------------------------------------------------------------------------------


def meta(key: str, value: Any = 1) -> TraceEntry:
    return ask(1, "ping", _meta={key: value})


def test_the_keys_of_meta_have_a_grammar() -> None:
    rule = "mcp.meta.key-grammar"
    keeps(rule, *START, meta("a"))
    breaks(rule, ERROR, "/params/_meta/a b", *START, meta("a b"))
    passes_over(rule, *START, PING, PONG)


@pytest.mark.parametrize(
    ("revision", "rule", "key"),
    [
        ("2025-06-18", "mcp.meta.reserved-any-label", "x.mcp.y/a"),
        ("2025-11-25", "mcp.meta.reserved-second-label", "x.mcp/a"),
    ],
)
def test_the_prefixes_of_the_protocol_are_reserved(revision: str, rule: str, key: str) -> None:
    start = opened(revision)
    keeps(rule, *start, meta("x.test/a"))
    breaks(rule, ERROR, f"/params/_meta/{key.replace('/', '~1')}", *start, meta(key))
    passes_over(rule, *start, meta("a"))


@pytest.mark.parametrize("key", ["traceparent", "tracestate", "baggage"])
def test_what_traces_a_request_has_the_form_of_a_header(key: str) -> None:
    rule = "mcp.meta.trace-values"
    fine = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    value = fine if key == "traceparent" else "a=1"
    keeps(rule, call(1, "tools/list", meta={key: value}))
    breaks(rule, ERROR, f"/params/_meta/{key}", call(1, "tools/list", meta={key: "\n"}))
    passes_over(rule, call(1, "tools/list"))


# -- lines -----------------------------------------------------------------------------------


def line(text: str | bytes, by: Any = "client") -> TraceEntry:
    return raw(text, by, transport="stdio")


@pytest.mark.parametrize(
    ("rule", "by"), [("mcp.stdio.stdin-clean", "client"), ("mcp.stdio.stdout-clean", "server")]
)
def test_standard_streams_carry_messages_alone(rule: str, by: Any) -> None:
    keeps(rule, *START, line(TEXT, by))
    broken = [each for each in found(*START, line("hello", by)) if each[0] == rule]
    assert broken == [(rule, ERROR, "")]
    passes_over(rule, *START, raw(TEXT, by))
    passes_over(rule, *START, line("", by))


@pytest.mark.parametrize("kind", [str, bytes])
def test_a_message_is_one_line(kind: type) -> None:
    rule = "mcp.stdio.one-line"
    keeps(rule, *START, line(TEXT + b"\n" if kind is bytes else TEXT.decode() + "\n"))
    two = TEXT.replace(b",", b",\n", 1)
    given = two if kind is bytes else two.decode()
    broken = [each for each in found(*START, line(given)) if each[0] == rule]
    assert broken == [(rule, ERROR, "")]
    parsed = TraceEntry(sender="client", transport="stdio", message=PING.message)
    keeps(rule, *START, parsed)


# -- what is left ----------------------------------------------------------------------------


def test_what_no_requirement_states_keeps_its_rule() -> None:
    bad = ask(1, "tools/call", name=1)
    assert ("mcp.type.json-type", ERROR, "/params/name") in found(
        *opened(server={"tools": {}}), bad
    )


def test_a_requirement_says_it_better_than_the_type_of_the_place() -> None:
    run = call(1, "tools/list")
    hints = {"tools": [], "ttlMs": -1, "cacheScope": "public"}
    broken = found(run, complete(1, **hints))
    assert broken == [("mcp.caching.ttl-not-negative", ERROR, "/result/ttlMs")]


def test_a_name_that_is_there_twice_is_a_question_only_among_questions() -> None:
    head = '{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s",'
    own = '"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x","version":"1"}}'
    twice = raw(head + own + ',"requestState":"s"}}', "server")
    rules = [each for each, *_ in found(call(1, "tools/call", name="a"), twice)]
    assert rules == ["jsonrpc.text.duplicate-key"]


def test_a_breach_inside_a_batch_has_its_place() -> None:
    bad = ask(2, "ping", _meta={"progressToken": 1.5})
    broken = found(*opened("2025-03-26"), batch(PING, bad), batch(PONG, answer(2)))
    assert broken == [("mcp.progress.token-type", ERROR, "/1/params/_meta/progressToken")]
