"""Subscriptions: acknowledged first, limited to what was asked, each message with its id."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.judge.rules.recording import (
    PREFIX,
    SERVER_META,
    TASKS,
    breaks,
    call,
    complete,
    found,
    keeps,
    over,
    passes_over,
    refuse,
    tell,
)
from trunkline.judge import TraceEntry

ERROR, WARN = "error", "warn"
ID = PREFIX + "subscriptionId"
AT_ID = "/params/_meta/io.modelcontextprotocol~1subscriptionId"
TOOLS = {"toolsListChanged": True}


def listen(id: Any = 1, **filter: Any) -> TraceEntry:
    return call(id, "subscriptions/listen", notifications=filter, declared=TASKS)


def notified(method: str, id: Any = 1, **params: Any) -> TraceEntry:
    return tell(f"notifications/{method}", **params, _meta={ID: id})


def acknowledged(id: Any = 1, **granted: Any) -> TraceEntry:
    return notified("subscriptions/acknowledged", id, notifications=granted)


CHANGED = notified("tools/list_changed")
START = [listen(**TOOLS), acknowledged(**TOOLS)]


# -- the id ----------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [2, "1"])
def test_each_message_has_the_id_of_its_subscription(id: int | str) -> None:
    rule = "mcp.subscriptions.id-carried"
    keeps(rule, *START, CHANGED)
    breaks(rule, ERROR, AT_ID, *START, notified("tools/list_changed", id))


def test_the_id_is_that_of_a_subscription() -> None:
    rule, other = "mcp.subscriptions.id-carried", call(2, "tools/list")
    breaks(rule, ERROR, AT_ID, *START, other, notified("tools/list_changed", 2))


def test_a_message_without_an_id_belongs_to_a_subscription_by_its_method() -> None:
    rule = "mcp.subscriptions.id-carried"
    breaks(rule, ERROR, AT_ID, *START, tell("notifications/tools/list_changed"))


def test_a_message_with_an_id_belongs_to_a_subscription_whatever_its_method() -> None:
    rule = "mcp.subscriptions.id-carried"
    unknown = ("mcp.notification.unknown",)
    keeps(rule, *START, notified("tools/y"), also=unknown)
    breaks(rule, ERROR, AT_ID, *START, notified("tools/y", 2), also=unknown)
    log = call(2, "tools/list", meta={PREFIX + "logLevel": "info"})
    message = tell("notifications/message", level="info", data="x")
    passes_over(rule, listen(**TOOLS), log, message)


def test_a_subscription_that_may_have_been_forgotten_is_not_called_unknown() -> None:
    many = [listen(id, **TOOLS) for id in range(1, 1026)]
    assert found(*many, CHANGED) == []


def test_the_id_in_a_message_of_the_client_is_not_looked_at() -> None:
    rule = "mcp.subscriptions.id-carried"
    cancelled = tell("notifications/cancelled", by="client", requestId=1, _meta={ID: 9})
    passes_over(rule, START[0], cancelled)


def http(stream: int, entry: TraceEntry) -> TraceEntry:
    return over(stream, entry, status=200) if entry.sender == "server" else over(stream, entry)


def test_the_id_is_that_of_the_stream_it_comes_on() -> None:
    rule = "mcp.subscriptions.id-carried"
    both = [http(1, listen(1, **TOOLS)), http(2, listen(2, **TOOLS))]
    both += [http(1, acknowledged(1, **TOOLS)), http(2, acknowledged(2, **TOOLS))]
    keeps(rule, *both, http(1, CHANGED))
    breaks(rule, ERROR, AT_ID, *both, http(2, CHANGED))


def test_notification_on_a_listen_stream_is_judged_as_part_of_it() -> None:
    start = [http(1, each) for each in START]
    bare = http(1, tell("notifications/tools/list_changed"))
    breaks("mcp.subscriptions.id-carried", ERROR, AT_ID, *start, bare)
    unasked = http(1, tell("notifications/prompts/list_changed"))
    rules = [rule for rule, *_ in found(*start, unasked)]
    assert rules == ["mcp.subscriptions.asked-only", "mcp.subscriptions.id-carried"]


# -- what it brings --------------------------------------------------------------------------


def test_a_subscription_is_acknowledged_before_it_brings_anything() -> None:
    rule = "mcp.subscriptions.acknowledged-first"
    keeps(rule, *START)
    keeps(rule, *START, CHANGED)
    breaks(rule, ERROR, "/method", START[0], CHANGED)
    # One that is acknowledged does not stand for another.
    breaks(rule, ERROR, "/method", *START, listen(2, **TOOLS), notified("tools/list_changed", 2))


@pytest.mark.parametrize(
    ("asked", "granted", "where"),
    [
        ({}, TOOLS, "toolsListChanged"),
        ({"toolsListChanged": False}, TOOLS, "toolsListChanged"),
        (TOOLS, {**TOOLS, "promptsListChanged": True}, "promptsListChanged"),
        (
            {"resourceSubscriptions": ["a:b"]},
            {"resourceSubscriptions": ["a:b", "a:c"]},
            "resourceSubscriptions",
        ),
        ({}, {"resourceSubscriptions": ["a:b"]}, "resourceSubscriptions"),
    ],
)
def test_no_more_is_acknowledged_than_was_asked(asked: Any, granted: Any, where: str) -> None:
    rule = "mcp.subscriptions.acknowledged-subset"
    keeps(rule, listen(**granted), acknowledged(**granted))
    keeps(rule, listen(**granted), acknowledged())
    keeps(rule, listen(**asked), acknowledged(**{where: False} if where in TOOLS else {}))
    place = f"/params/notifications/{where}"
    breaks(rule, ERROR, place, listen(**asked), acknowledged(**granted))


@pytest.mark.parametrize(
    ("method", "switch"),
    [
        ("tools/list_changed", "toolsListChanged"),
        ("prompts/list_changed", "promptsListChanged"),
        ("resources/list_changed", "resourcesListChanged"),
    ],
)
def test_a_change_comes_only_where_it_was_asked_for(method: str, switch: str) -> None:
    rule = "mcp.subscriptions.asked-only"
    keeps(rule, listen(**{switch: True}), acknowledged(), notified(method))
    breaks(rule, ERROR, "/method", listen(**{switch: False}), acknowledged(), notified(method))
    breaks(rule, ERROR, "/method", listen(), acknowledged(), notified(method))
    passes_over(rule, listen(), acknowledged())


@pytest.mark.parametrize(
    ("asked", "uri", "is_kept"),
    [
        ("a:/b", "a:/b", True),
        ("a:/b", "a:/b/c", True),
        ("a:/b/", "a:/b/c", True),
        ("a:/b", "a:/bc", False),
        ("a:/b/c", "a:/b", False),
    ],
)
def test_a_resource_is_one_that_was_asked_for_or_below_it(
    asked: str, uri: str, is_kept: bool
) -> None:
    rule = "mcp.subscriptions.asked-only"
    start = listen(resourceSubscriptions=["x:y", asked]), acknowledged()
    if is_kept:
        keeps(rule, *start, notified("resources/updated", uri=uri))
    else:
        breaks(rule, ERROR, "/method", *start, notified("resources/updated", uri=uri))


def test_update_without_requested_resources_is_a_breach() -> None:
    rule, updated = "mcp.subscriptions.asked-only", notified("resources/updated", uri="a:b")
    breaks(rule, ERROR, "/method", listen(), acknowledged(), updated)


def test_a_task_is_one_that_was_asked_for() -> None:
    rule = "mcp.subscriptions.asked-only"
    when = "2026-01-01T00:00:00Z"
    start = listen(taskIds=["t"]), acknowledged(taskIds=["t"])

    def note(id: str) -> TraceEntry:
        facts = {"status": "working", "createdAt": when, "lastUpdatedAt": when, "ttlMs": None}
        return notified("tasks", taskId=id, **facts)

    keeps(rule, *start, note("t"))
    breaks(rule, ERROR, "/method", *start, note("u"))


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("progress", {"progressToken": "p", "progress": 1}),
        ("message", {"level": "info", "data": "x"}),
    ],
)
def test_progress_and_logs_do_not_come_on_a_subscription(method: str, params: Any) -> None:
    rule = "mcp.subscriptions.no-progress-or-logs"
    extra = {"progressToken": "p", PREFIX + "logLevel": "info"}
    busy = call(2, "tools/list", meta=extra)
    keeps(rule, *START, busy, CHANGED)
    breaks(rule, ERROR, "/method", *START, busy, notified(method, **params))
    passes_over(rule, START[0], busy, tell(f"notifications/{method}", **params))
    # On the stream of a subscription they break this rule and not that about its id.
    start = [http(1, START[0]), http(1, START[1]), http(2, busy)]
    broken = found(*start, http(1, tell(f"notifications/{method}", **params)))
    own = [each for each in broken if each[0].startswith("mcp.subscriptions.")]
    assert own == [(rule, ERROR, "/method")]


# -- the end ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"_meta": {**SERVER_META, ID: 2}},
        {"_meta": {**SERVER_META, ID: "1"}},
        {"_meta": {**SERVER_META, ID: 1}, "more": 1},
        {"_meta": {**SERVER_META, ID: 1}, "resultType": "x"},
    ],
)
def test_a_subscription_ends_with_its_id_and_nothing_more(result: dict[str, Any]) -> None:
    rule = "mcp.subscriptions.end-result-form"
    keeps(rule, *START, complete(1, _meta={**SERVER_META, ID: 1}))
    assert (rule, WARN, "/result") in found(*START, complete(1, **result))


def test_the_end_of_another_request_has_no_such_form() -> None:
    run = call(2, "tools/call", name="a")
    rule = "mcp.subscriptions.end-result-form"
    passes_over(rule, *START, run, complete(2, content=[]))
    passes_over(rule, *START, refuse(1, -32603))
    assert found(*START, complete(9)) == [("mcp.id.echoed", ERROR, "/id")]


def test_a_subscription_that_has_ended_brings_nothing() -> None:
    end = complete(1, _meta={**SERVER_META, ID: 1})
    breaks("mcp.subscriptions.id-carried", ERROR, AT_ID, *START, end, CHANGED)
