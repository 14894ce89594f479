"""Rules about single messages and the replies to them: envelope, ids, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rigs.messages import META
from tests.unit.judge.rules.recording import (
    PREFIX,
    answer,
    ask,
    batch,
    breaks,
    call,
    complete,
    found,
    keeps,
    listed,
    opened,
    over,
    passes_over,
    refuse,
    sent,
    tell,
)
from trunkline.judge import Conversation, TraceEntry, judge
from trunkline.judge.rules.messages import other
from trunkline.spec.rows import Role

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


def test_unknown_notification_is_not_an_occasion() -> None:
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
def test_trace_context_keys_have_the_form_of_their_headers(key: str) -> None:
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


def test_finding_without_requirement_keeps_its_rule() -> None:
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


# -- ids and replies --


def test_the_other_side_of_an_unknown_sender_is_unknown() -> None:
    assert (other("client"), other("server"), other(None)) == ("server", "client", None)


def test_an_id_is_used_once_in_a_session() -> None:
    rule = "mcp.id.session-unique"
    keeps(rule, *opened(), PING, PONG, ask(2, "ping"), answer(2))
    breaks(rule, ERROR, "/id", *opened(), PING, PONG, PING)


def test_each_side_and_each_json_type_has_ids_of_its_own() -> None:
    same = [ask("1", "ping"), answer("1"), ask(1, "ping", by="server"), answer(1, by="client")]
    keeps("mcp.id.session-unique", *opened(), PING, PONG, *same)


def test_a_new_session_may_use_the_ids_of_the_one_before() -> None:
    start = [over(place, entry) for place, entry in enumerate(opened())]
    info = start[0].message["params"]
    again = [
        over(8, ask("j", "initialize", **info)),
        over(8, answer("j", **start[1].message["result"])),
        start[2],
    ]
    keeps("mcp.id.session-unique", *start, PING, PONG, *again, PING, PONG)
    breaks("mcp.id.session-unique", ERROR, "/id", *start, PING, PONG, *again, PING, PONG, PING)


def test_an_id_is_free_again_once_its_request_is_answered() -> None:
    rule = "mcp.id.open-unique"
    first = call(1, "tools/list")
    keeps(rule, first, listed(1), first, listed(1))
    breaks(rule, ERROR, "/id", first, first)


@pytest.mark.parametrize("id", [2, "1"])
def test_a_reply_has_the_id_of_an_open_request(id: int | str) -> None:
    rule = "mcp.id.echoed"
    keeps(rule, *opened(), PING, PONG)
    breaks(rule, ERROR, "/id", *opened(), PING, answer(id))


def test_a_request_is_answered_once() -> None:
    breaks("mcp.id.echoed", ERROR, "/id", *opened(), PING, PONG, PONG)


def test_second_reply_is_distinguished_from_an_unmatched_reply() -> None:
    def expected(reply: TraceEntry) -> str:
        talk = Conversation()
        for entry in (*opened(), PING, PONG):
            talk.feed(entry)
        (finding,) = talk.feed(reply)
        return finding.expected

    assert expected(PONG) == f"{expected(answer(2))}; this one was answered before"


def test_an_id_of_a_wrong_type_is_not_looked_up() -> None:
    breaks("mcp.id.type", ERROR, "/id", *opened(), PING, answer(1.5))


def test_a_request_that_may_have_been_forgotten_is_not_called_unknown() -> None:
    pings = [ask(id, "ping") for id in range(1025)]
    keeps("mcp.id.echoed", *opened(), *pings, answer(0), answer(1024))


def test_a_side_does_not_answer_its_own_request() -> None:
    breaks("mcp.id.echoed", ERROR, "/id", *opened(), PING, answer(1, by="client"))


NOTE = tell("notifications/roots/list_changed", by="client")
NO_ID = refuse(None, -32600)
ROOTS = {"roots": {"listChanged": True}}


def test_a_notification_is_not_answered() -> None:
    rule = "mcp.jsonrpc.notification-unanswered"
    keeps(rule, *opened(client=ROOTS), NOTE, PING, PONG)
    breaks(rule, ERROR, "", *opened(client=ROOTS), NOTE, NO_ID)
    # An error without an id may be about the request that came after the notification.
    keeps(rule, *opened(client=ROOTS), NOTE, PING, NO_ID, PONG)


def test_an_http_answer_may_say_why_a_notification_is_refused() -> None:
    refused = over(1, NO_ID, status=400)
    keeps("mcp.jsonrpc.notification-unanswered", *opened(client=ROOTS), NOTE, refused)


@pytest.mark.parametrize(
    ("rule", "asker", "answerer"),
    [
        ("mcp.batch.server-receives", "client", "server"),
        ("mcp.batch.client-receives", "server", "client"),
    ],
)
def test_every_request_of_a_batch_is_answered(rule: str, asker: Role, answerer: Role) -> None:
    start = opened("2025-03-26")
    both = batch(ask(1, "ping", by=asker), ask(2, "ping", by=asker))
    replies = batch(answer(1, by=answerer), answer(2, by=answerer))
    keeps(rule, *start, both, replies)
    # The end of the conversation shows it: its index is that of the message after the last.
    conversation: list[TraceEntry] = [*start, both, answer(1, by=answerer)]
    assert found(*conversation) == [(rule, ERROR, "")]
    cancelled = tell("notifications/cancelled", by=asker, requestId=2)
    keeps(rule, *conversation, cancelled)
    # The revision of the batch asks for it, whatever was spoken last.
    later = [call("m", "tools/list"), listed("m")]
    assert found(*conversation, *later) == [(rule, ERROR, "")]


def test_a_request_outside_a_batch_may_stay_open() -> None:
    passes_over("mcp.batch.server-receives", *opened("2025-03-26"), PING, ask(2, "ping"), PONG)


# -- refusals --

LIST = call(1, "tools/list")


def over_http(request: TraceEntry, reply: TraceEntry, status: int | None) -> list[TraceEntry]:
    return [over(1, request), over(1, reply, status=status)]


# -- statuses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "code", "data", "status"),
    [
        (
            "mcp.http.unsupported-version-400",
            -32022,
            {"supported": ["2099-01-01"], "requested": "2026-07-28"},
            400,
        ),
        ("mcp.http.missing-capability-400", -32021, {"requiredCapabilities": {}}, 400),
        ("mcp.http.unknown-method-404", -32601, {}, 404),
    ],
)
def test_an_error_has_the_status_of_its_code(
    rule: str, code: int, data: dict[str, Any], status: int
) -> None:
    reply = refuse(1, code, **data)
    keeps(rule, *over_http(LIST, reply, status))
    breaks(rule, ERROR, "", *over_http(LIST, reply, 200))
    passes_over(rule, LIST, reply)
    passes_over(rule, *over_http(LIST, refuse(1, -32602), 200))


def test_the_status_of_a_stream_holds_for_all_its_messages() -> None:
    start = [over(1, LIST), over(1, by="server", status=200)]
    breaks("mcp.http.unknown-method-404", ERROR, "", *start, over(1, refuse(1, -32601)))


def test_a_reply_to_nothing_refuses_nothing() -> None:
    assert found(LIST, refuse(9, -32601)) == [("mcp.id.echoed", ERROR, "/id")]


# -- incomplete requests ---------------------------------------------------------------------


def bare(missing: str) -> TraceEntry:
    meta = {name: value for name, value in META.items() if name != PREFIX + missing}
    return ask(1, "tools/list", _meta=meta)


LATEST = "2026-07-28"


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
def test_a_request_whose_meta_is_incomplete_is_refused(missing: str) -> None:
    rule = "mcp.meta.incomplete-refused"
    short = "version" if missing == "protocolVersion" else "capabilities"
    also = (f"mcp.meta.{short}-present",)
    request = bare(missing)
    keeps(rule, request, refuse(1, -32602), also=also, revision=LATEST)
    breaks(rule, ERROR, "/error/code", request, listed(1), also=also, revision=LATEST)
    breaks(rule, ERROR, "/error/code", request, refuse(1, -32020), also=also, revision=LATEST)
    passes_over(rule, LIST, refuse(1, -32603))


def test_over_http_the_check_of_headers_may_come_first() -> None:
    rule = "mcp.meta.incomplete-refused"
    also = ("mcp.meta.capabilities-present",)
    keeps(rule, *over_http(bare("clientCapabilities"), refuse(1, -32020), 400), also=also)


def test_a_request_whose_meta_is_incomplete_gets_status_400() -> None:
    rule = "mcp.http.incomplete-meta-400"
    also = ("mcp.meta.capabilities-present",)
    request = bare("clientCapabilities")
    keeps(rule, *over_http(request, refuse(1, -32602), 400), also=also)
    breaks(rule, ERROR, "", *over_http(request, refuse(1, -32602), 200), also=also)


# -- versions --------------------------------------------------------------------------------


def test_a_version_that_the_server_does_not_have_is_refused() -> None:
    rule = "mcp.version.unsupported-refused"

    def start(version: str) -> list[TraceEntry]:
        facts = {"supportedVersions": [version], "capabilities": {}, "ttlMs": 0}
        return [
            call(0, "server/discover"),
            complete(0, **facts, cacheScope="public"),
            LIST,
        ]

    data = {"supported": ["2099-01-01"], "requested": LATEST}
    keeps(rule, *start("2099-01-01"), refuse(1, -32022, **data))
    breaks(rule, ERROR, "/error/code", *start("2099-01-01"), listed(1))
    passes_over(rule, *start(LATEST), listed(1))
    passes_over(rule, LIST, listed(1))


def test_a_foreign_version_that_the_header_does_not_have_is_refused_for_either() -> None:
    rule = "mcp.version.unsupported-refused"
    facts = {"supportedVersions": [LATEST], "capabilities": {}, "ttlMs": 0}
    start = [call(0, "server/discover"), complete(0, **facts, cacheScope="public")]
    foreign = call(1, "tools/list", meta={PREFIX + "protocolVersion": "2099-01-01"})

    def exchange(version: str, code: int) -> list[TraceEntry]:
        headers = {**HEADERS, "Mcp-Protocol-Version": version}
        request = over(1, foreign, method="POST", headers=headers)
        return [*start, request, over(1, refuse(1, code), status=400)]

    meta, differs = "mcp.meta.version", "mcp.headers.version-as-body"
    keeps(rule, *exchange(LATEST, -32020), also=(meta, differs))
    breaks(rule, ERROR, "/error/code", *exchange("2099-01-01", -32020), also=(meta,))
    also = (meta, differs, "mcp.headers.version-mismatch-refused")
    breaks(rule, ERROR, "/error/code", *exchange(LATEST, -32602), also=also)


# -- headers ---------------------------------------------------------------------------------

HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Mcp-Protocol-Version": LATEST,
    "Mcp-Method": "tools/list",
}
FAULTS = [
    ("mcp.headers.missing-refused", {"Mcp-Method": None}, "mcp.headers.method"),
    ("mcp.headers.missing-refused", {"Mcp-Protocol-Version": None}, "mcp.headers.version-on-post"),
    ("mcp.headers.mismatch-refused", {"Mcp-Method": "x"}, "mcp.headers.method"),
    (
        "mcp.headers.version-mismatch-refused",
        {"Mcp-Protocol-Version": "2025-11-25"},
        "mcp.headers.version-as-body",
    ),
]


def posted(changes: dict[str, Any]) -> TraceEntry:
    given = {name: value for name, value in {**HEADERS, **changes}.items() if value is not None}
    return over(1, LIST, method="POST", headers=given)


@pytest.mark.parametrize(("rule", "changes", "fault"), FAULTS)
def test_headers_that_differ_from_the_body_are_refused(
    rule: str, changes: dict[str, Any], fault: str
) -> None:
    request, reply = posted(changes), refuse(1, -32020)
    keeps(rule, request, over(1, reply, status=400), also=(fault,))
    keeps(rule, request, over(1, reply), also=(fault,))
    breaks(rule, ERROR, "/error/code", request, over(1, reply, status=200), also=(fault,))
    other = over(1, refuse(1, -32602), status=400)
    breaks(rule, ERROR, "/error/code", request, other, also=(fault,))
    passes_over(rule, posted({}), over(1, refuse(1, -32602), status=400))


def test_the_first_fault_of_the_headers_counts() -> None:
    request = posted({"Mcp-Protocol-Version": "2025-11-25", "Mcp-Method": "x"})
    also = ("mcp.headers.version-as-body", "mcp.headers.method")
    reply = over(1, refuse(1, -32602), status=400)
    rule = "mcp.headers.version-mismatch-refused"
    breaks(rule, ERROR, "/error/code", request, reply, also=also)


@pytest.mark.parametrize(("rule", "changes", "fault"), FAULTS[2:])
def test_headers_that_differ_from_the_body_get_no_result(
    rule: str, changes: dict[str, Any], fault: str
) -> None:
    validated = "mcp.security.headers-validated"
    keeps(validated, posted(changes), over(1, refuse(1, -32020), status=400), also=(fault,))
    reply = over(1, listed(1), status=200)
    breaks(validated, ERROR, "/result", posted(changes), reply, also=(fault, rule))


def test_headers_that_are_missing_cannot_differ() -> None:
    rules = [rule for rule, *_ in found(posted({"Mcp-Method": None}), over(1, listed(1)))]
    assert rules == ["mcp.headers.method", "mcp.headers.missing-refused"]
