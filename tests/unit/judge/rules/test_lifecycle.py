"""Opening a session, the revision and the capabilities it settles."""

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
    listed,
    opened,
    passes_over,
    refuse,
    sent,
    tell,
)
from trunkline.judge import TraceEntry

ERROR, WARN = "error", "warn"
TOOLS = {"tools": {}}
LIST = ask(1, "tools/list")
LISTED = answer(1, tools=[])
OLD = "2025-03-26"


# -- the order -------------------------------------------------------------------------------


def test_a_session_begins_with_initialize() -> None:
    rule = "mcp.lifecycle.initialize-first"
    keeps(rule, *opened(server=TOOLS), LIST, LISTED)
    breaks(rule, ERROR, "/method", LIST)


def test_a_session_without_initialize_is_reported_once() -> None:
    again = [ask(2, "tools/list"), answer(2, tools=[])]
    assert found(LIST, LISTED, *again) == [("mcp.lifecycle.initialize-first", ERROR, "/method")]


def test_a_ping_may_come_before_initialize() -> None:
    keeps("mcp.lifecycle.initialize-first", ask(0, "ping"), answer(0), *opened())


@pytest.mark.parametrize("name", ["protocolVersion", "capabilities", "clientInfo"])
def test_initialize_has_all_its_fields(name: str) -> None:
    rule = "mcp.lifecycle.initialize-fields"
    first = opened()[0]
    params = {key: value for key, value in first.message["params"].items() if key != name}
    keeps(rule, first)
    breaks(rule, ERROR, f"/params/{name}", ask("i", "initialize", **params))


def test_the_first_field_that_initialize_lacks_is_reported() -> None:
    rule, first = "mcp.lifecycle.initialize-fields", ask("i", "initialize", capabilities={})
    places = [where for each, _, where in found(first) if each == rule]
    assert places == ["/params/protocolVersion"]


def test_initialize_is_not_part_of_a_batch() -> None:
    rule = "mcp.batch.no-initialize"
    first, second, third = opened(OLD)
    keeps(rule, first, second, third)
    assert found(batch(first), second, third) == [(rule, ERROR, "/0/method")]


def test_the_client_waits_for_the_result_of_initialize() -> None:
    rule = "mcp.lifecycle.client-waits"
    first, second, third = opened(server=TOOLS)
    keeps(rule, first, ask(0, "ping"), answer(0), second, third, LIST, LISTED)
    breaks(rule, WARN, "/method", first, LIST)


def test_the_client_says_that_it_is_initialized_before_it_goes_on() -> None:
    rule = "mcp.lifecycle.initialized-sent"
    start = opened(server=TOOLS)
    keeps(rule, *start, LIST, LISTED)
    breaks(rule, ERROR, "/method", *start[:2], LIST)
    again = [ask(2, "tools/list"), answer(2, tools=[])]
    assert found(*start[:2], LIST, LISTED, *again) == [(rule, ERROR, "/method")]


def test_the_server_waits_until_the_client_is_initialized() -> None:
    rule = "mcp.lifecycle.server-waits"
    start, roots = opened(client={"roots": {}}), ask(1, "roots/list", by="server")
    keeps(rule, *start, roots, answer(1, by="client", roots=[]))
    keeps(rule, *start)
    breaks(rule, WARN, "/method", start[0], roots)
    breaks(rule, WARN, "/method", *start[:2], roots)
    passes_over(rule, *start[:2], ask(1, "ping", by="server"), answer(1, by="client"))


def test_a_server_that_refuses_initialize_has_no_session() -> None:
    first, second, third = opened(server=TOOLS)
    again = ask("j", "initialize", **first.message["params"])
    agreed = answer("j", **second.message["result"])
    keeps("mcp.lifecycle.initialized-sent", first, refuse("i", -32602), again, agreed, third, LIST)
    rule = "mcp.lifecycle.initialize-first"
    breaks(rule, ERROR, "/method", first, refuse("i", -32602), LIST)


@pytest.mark.parametrize(
    ("reply", "where"), [(answer(1, a=1, b=2), "/result/a"), (refuse(1, -32601), "/error")]
)
def test_the_answer_to_a_ping_is_empty(reply: Any, where: str) -> None:
    rule = "mcp.lifecycle.ping-empty"
    keeps(rule, *opened(), ask(1, "ping"), answer(1))
    keeps(rule, *opened(), ask(1, "ping"), answer(1, _meta={"a": 1}))
    breaks(rule, ERROR, where, *opened(), ask(1, "ping"), reply)


def test_a_reply_to_nothing_is_left_to_the_rule_about_ids() -> None:
    assert found(*opened(), answer(9)) == [("mcp.id.echoed", ERROR, "/id")]
    assert found(*opened(), answer(9, tools=[])) == [("mcp.id.echoed", ERROR, "/id")]


def test_before_there_is_a_session_the_server_has_nothing_to_wait_for() -> None:
    passes_over("mcp.lifecycle.server-waits", ask(1, "roots/list", by="server"))


# -- after a newer beginning -----------------------------------------------------------------


@pytest.mark.parametrize(("supported", "is_kept"), [("2025-11-25", True), ("2026-07-28", False)])
def test_a_server_that_speaks_a_newer_revision_is_not_asked_for_a_session(
    supported: str, is_kept: bool
) -> None:
    rule = "mcp.version.no-fallback"
    refused = refuse(1, -32022, supported=[supported], requested="2026-07-28")
    conversation = [call(1, "server/discover"), refused, opened()[0]]
    if is_kept:
        keeps(rule, *conversation)
    else:
        breaks(rule, ERROR, "/method", *conversation)


# -- what was negotiated ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("revision", "rule", "level"),
    [
        (OLD, "mcp.version.negotiated-preferred", WARN),
        ("2025-06-18", "mcp.version.negotiated-only", ERROR),
    ],
)
def test_a_session_keeps_to_the_methods_of_its_revision(
    revision: str, rule: str, level: str
) -> None:
    start = opened(revision, server=TOOLS)
    keeps(rule, *start, LIST, LISTED)
    later = ask(1, "tasks/list")
    breaks(rule, level, "/method", *start, later)
    # A method that no revision has is an extension, and pings are always in order.
    passes_over(rule, *start[:2], ask(1, "ping"), answer(1))
    assert rule not in [each for each, *_ in found(*start, ask(1, "x/y"))]


def test_before_a_revision_is_agreed_on_there_is_none_to_keep_to() -> None:
    early = found(opened()[0], ask(1, "server/discover"))
    assert "mcp.version.negotiated-only" not in [rule for rule, *_ in early]


KINDS = [
    ("audio", "2024-11-05", OLD),
    ("resource_link", OLD, "2025-06-18"),
]
BLOCKS: dict[str, dict[str, Any]] = {
    "audio": {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
    "resource_link": {"type": "resource_link", "uri": "file:///a", "name": "a"},
    "text": {"type": "text", "text": "a"},
}


def _version_rules(*entries: Any) -> list[tuple[str, str, str]]:
    return [each for each in found(*entries) if each[0].startswith("mcp.version.")]


@pytest.mark.parametrize(("kind", "before", "since"), KINDS)
def test_a_tool_result_keeps_to_the_content_of_its_revision(
    kind: str, before: str, since: str
) -> None:
    run, reply = ask(1, "tools/call", name="a"), answer(1, content=[BLOCKS["text"], BLOCKS[kind]])
    preferred = ("mcp.version.negotiated-preferred", WARN, "/result/content/1/type")
    assert _version_rules(*opened(before, server=TOOLS), run, reply) == [preferred]
    assert _version_rules(*opened(since, server=TOOLS), run, reply) == []


@pytest.mark.parametrize(("kind", "before", "since"), KINDS)
def test_a_prompt_keeps_to_the_content_of_its_revision(kind: str, before: str, since: str) -> None:
    start = {"prompts": {}}
    messages = [{"role": "user", "content": BLOCKS[each]} for each in ("text", kind)]
    run, reply = ask(1, "prompts/get", name="a"), answer(1, messages=messages)
    preferred = ("mcp.version.negotiated-preferred", WARN, "/result/messages/1/content/type")
    assert _version_rules(*opened(before, server=start), run, reply) == [preferred]
    assert _version_rules(*opened(since, server=start), run, reply) == []


@pytest.mark.parametrize("kind", ["tool_use", "tool_result"])
def test_a_sample_keeps_to_the_content_of_its_revision(kind: str) -> None:
    run = ask(1, "sampling/createMessage", by="server", messages=[], maxTokens=1)
    content = {"type": kind, "id": "1", "name": "a", "input": {}}
    reply = answer(1, by="client", role="assistant", model="m", content=content)
    only = ("mcp.version.negotiated-only", ERROR, "/result/content/type")
    can = {"sampling": {}}
    assert _version_rules(*opened("2025-06-18", client=can), run, reply) == [only]
    assert _version_rules(*opened("2025-11-25", client=can), run, reply) == []


# -- capabilities ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("revision", "rule", "level"),
    [
        (OLD, "mcp.capability.negotiated-preferred", WARN),
        ("2025-06-18", "mcp.capability.negotiated-only", ERROR),
    ],
)
def test_a_session_uses_what_was_declared(revision: str, rule: str, level: str) -> None:
    keeps(rule, *opened(revision, server=TOOLS), LIST, LISTED)
    breaks(rule, level, "/method", *opened(revision), LIST)
    roots = ask(1, "roots/list", by="server")
    keeps(rule, *opened(revision, client={"roots": {}}), roots)
    breaks(rule, level, "/method", *opened(revision), roots)
    changed = tell("notifications/tools/list_changed")
    keeps(rule, *opened(revision, server={"tools": {"listChanged": True}}), changed)
    breaks(rule, level, "/method", *opened(revision, server=TOOLS), changed)


def test_a_server_that_answers_has_declared_it() -> None:
    rule = "mcp.capability.server-declares"
    keeps(rule, *opened(server=TOOLS), LIST, LISTED)
    unasked = ("mcp.capability.negotiated-only", ERROR, "/method")
    assert found(*opened(), LIST, LISTED) == [unasked, (rule, ERROR, "/result")]
    assert found(*opened(), LIST, refuse(1, -32601)) == [unasked]


def test_a_client_that_answers_has_declared_it() -> None:
    rule = "mcp.capability.client-declares"
    roots, reply = ask(1, "roots/list", by="server"), answer(1, by="client", roots=[])
    keeps(rule, *opened(client={"roots": {}}), roots, reply)
    unasked = ("mcp.capability.negotiated-only", ERROR, "/method")
    assert found(*opened(), roots, reply) == [unasked, (rule, ERROR, "/result")]
    assert found(*opened(), roots, refuse(1, -32601, by="client")) == [unasked]


def test_capabilities_say_nothing_before_the_session_is_agreed_on() -> None:
    first = opened()[0]
    early = sent("client", method="notifications/roots/list_changed")
    passes_over("mcp.capability.negotiated-only", first, early)


def test_capabilities_say_nothing_of_a_request_from_the_wrong_side() -> None:
    conversation = [*opened(), ask(1, "tools/list", by="server")]
    assert found(*conversation) == [("mcp.method.direction", ERROR, "/method")]


def test_capabilities_say_nothing_of_a_method_that_there_is_not() -> None:
    rules = [rule for rule, *_ in found(*opened(), ask(1, "tools/y"), answer(1))]
    assert rules == ["mcp.method.unknown"]


# -- versions that were never released -------------------------------------------------------


def answered(version: str) -> list[TraceEntry]:
    asked, agreed, _ = opened()
    result = {**agreed.message["result"], "protocolVersion": version}
    return [asked, answer("i", **result)]


def test_the_version_of_an_answer_is_a_released_one() -> None:
    rule = "mcp.version.answer-released"
    keeps(rule, *answered("2024-11-05"))
    breaks(rule, WARN, "/result/protocolVersion", *answered("2025-01-01"))
    breaks(rule, WARN, "/result/protocolVersion", *answered("DRAFT-2026-v1"))


def test_a_client_does_not_go_on_in_a_version_that_there_is_not() -> None:
    rule, also = "mcp.version.disconnects", ("mcp.version.answer-released",)
    told = tell("notifications/initialized", by="client")
    keeps(rule, *answered("2025-01-01"), also=also)
    breaks(rule, WARN, "", *answered("2025-01-01"), told, also=also)
    # Said once, and not of a client that tries another version.
    goes_on = [*answered("2025-01-01"), told, ask(1, "ping"), answer(1)]
    assert [each for each, *_ in found(*goes_on)].count(rule) == 1
    again = ask("j", "initialize", **answered("x")[0].message["params"])
    keeps(rule, *answered("2025-01-01"), again, also=also)
    passes_over(rule, *opened(), ask(1, "ping"), answer(1))


# -- capabilities that are declared and not served -------------------------------------------


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/templates/list"])
def test_a_capability_that_is_declared_is_served(method: str) -> None:
    rule = "mcp.capability.declared-served"
    start = opened(server={"tools": {}, "prompts": {}, "resources": {}})
    breaks(rule, WARN, "/error/code", *start, ask(1, method), refuse(1, -32601))
    keeps(rule, *start, ask(1, method), refuse(1, -32603))
    # An error of a call may be about the tool.
    passes_over(rule, *start, ask(1, "tools/call", name="x"), refuse(1, -32601))
    undeclared = found(*opened(), ask(1, method), refuse(1, -32601))
    assert rule not in {each for each, *_ in undeclared}


def test_a_client_serves_what_it_declares() -> None:
    rule = "mcp.capability.declared-served"
    start = opened(client={"roots": {}})
    asked = ask(1, "roots/list", by="server")
    breaks(rule, WARN, "/error/code", *start, asked, refuse(1, -32601, by="client"))
    keeps(rule, *start, asked, answer(1, by="client", roots=[]))


def test_capability_of_discover_is_served() -> None:
    rule = "mcp.capability.declared-served"
    facts = {"supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "public"}
    discovery = complete(1, capabilities={"tools": {}}, **facts)
    start = [call(1, "server/discover"), discovery, call(2, "tools/list")]
    breaks(rule, WARN, "/error/code", *start, refuse(2, -32601))
    keeps(rule, *start, listed(2))
