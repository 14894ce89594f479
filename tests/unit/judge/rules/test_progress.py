"""Progress, cancellation and logging: messages about a request that is under way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.judge.rules.recording import (
    PREFIX,
    TASKS,
    answer,
    ask,
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
    tell,
)
from trunkline.judge import TraceEntry

ERROR, WARN = "error", "warn"
START = opened(server={"tools": {}, "logging": {}})


def run(id: int, token: Any) -> TraceEntry:
    return ask(id, "tools/call", name="a", _meta={"progressToken": token})


def report(value: float, token: Any = "t", **more: Any) -> TraceEntry:
    return tell("notifications/progress", progressToken=token, progress=value, **more)


DONE = answer(1, content=[])


# -- progress --------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [1.5, None, True])
def test_a_progress_token_is_text_or_a_whole_number(token: object) -> None:
    rule = "mcp.progress.token-type"
    keeps(rule, *START, run(1, "t"), run(2, 0))
    breaks(rule, ERROR, "/params/_meta/progressToken", *START, run(1, token))


def test_a_progress_token_belongs_to_one_open_request() -> None:
    rule = "mcp.progress.token-unique"
    keeps(rule, *START, run(1, 7), run(2, "7"))
    keeps(rule, *START, run(1, "t"), DONE, run(2, "t"))
    breaks(rule, ERROR, "/params/_meta/progressToken", *START, run(1, "t"), run(2, "t"))


def test_progress_is_reported_under_a_known_token() -> None:
    rule = "mcp.progress.known-token"
    keeps(rule, *START, run(1, "t"), report(1))
    breaks(rule, ERROR, "/params/progressToken", *START, run(1, 7), report(1, "7"))
    # The token is one of the other side.
    own = report(1, by="client")
    breaks(rule, ERROR, "/params/progressToken", *START, run(1, "t"), own)


def test_a_token_that_may_have_been_forgotten_is_not_called_unknown() -> None:
    assert found(*START, *[run(id, id) for id in range(1025)], report(1, 0)) == []


@pytest.mark.parametrize("value", [2, 1, 1.5])
def test_progress_grows(value: float) -> None:
    rule = "mcp.progress.grows"
    keeps(rule, *START, run(1, "t"), report(0), report(0.5), report(2))
    breaks(rule, ERROR, "/params/progress", *START, run(1, "t"), report(2), report(value))


def test_each_token_grows_by_itself() -> None:
    keeps("mcp.progress.grows", *START, run(1, "t"), run(2, "u"), report(2), report(1, "u"))


def test_progress_stops_with_the_reply() -> None:
    rule = "mcp.progress.stops"
    keeps(rule, *START, run(1, "t"), report(1), DONE)
    breaks(rule, ERROR, "/params/progressToken", *START, run(1, "t"), DONE, report(1))


WHEN = "2026-01-01T00:00:00Z"
TASK: dict[str, Any] = {"taskId": "k", "createdAt": WHEN, "lastUpdatedAt": WHEN}


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_progress_of_a_task_stops_with_the_task(status: str) -> None:
    rule = "mcp.progress.stops"
    can = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    asked = ask(1, "tools/call", name="a", task={}, _meta={"progressToken": "t"})
    made = answer(1, task={**TASK, "status": "working", "ttl": None})
    ended = ask(2, "tasks/get", taskId="k"), answer(2, **TASK, status=status, ttl=None)
    keeps(rule, *opened(server=can), asked, made, report(1))
    breaks(
        rule, ERROR, "/params/progressToken", *opened(server=can), asked, made, *ended, report(1)
    )


def test_a_token_is_taken_as_long_as_its_task_runs() -> None:
    meta = {"progressToken": "t"}
    first = call(1, "tools/call", name="a", declared=TASKS, meta=meta)
    second = call(2, "tools/call", name="a", meta=meta)
    made = complete(1, resultType="task", **TASK, status="working", ttlMs=None)
    where = "/params/_meta/progressToken"
    breaks("mcp.progress.token-unique", ERROR, where, first, made, second)


# -- cancellation ----------------------------------------------------------------------------


def cancel(id: object, **more: Any) -> TraceEntry:
    return tell("notifications/cancelled", requestId=id, **more)


def test_a_side_cancels_its_own_requests() -> None:
    rule = "mcp.cancel.own-request"
    keeps(rule, *START, run(1, "t"), cancel(1, by="client"))
    # The reply and the cancellation may cross.
    keeps(rule, *START, run(1, "t"), DONE, cancel(1, by="client"))
    breaks(rule, ERROR, "/params/requestId", *START, run(1, "t"), cancel(2, by="client"))
    breaks(rule, ERROR, "/params/requestId", *START, run(1, "t"), cancel(1))


def test_a_request_that_may_have_been_forgotten_may_be_cancelled() -> None:
    open_ = [run(id, id) for id in range(1025)]
    passes_over("mcp.cancel.own-request", *START, *open_, cancel(0, by="client"))


def test_initialize_is_not_cancelled() -> None:
    rule = "mcp.cancel.not-initialize"
    keeps(rule, *START, run(1, "t"), cancel(1, by="client"))
    breaks(rule, ERROR, "/params/requestId", START[0], cancel("i", by="client"))
    roots = ask(1, "roots/list", by="server")
    passes_over(rule, *opened(client={"roots": {}}), roots, cancel(1))


def test_a_cancellation_of_nothing_is_left_to_the_judge_of_single_messages() -> None:
    rules = [rule for rule, *_ in found(*START, tell("notifications/cancelled", by="client"))]
    assert not [rule for rule in rules if rule.startswith("mcp.cancel.")]


LISTEN = call(1, "subscriptions/listen", notifications={})


def test_a_server_cancels_subscriptions_alone() -> None:
    rule = "mcp.cancel.server-only-listen"
    keeps(rule, LISTEN, cancel(1))
    listing = call(2, "tools/list")
    breaks(rule, ERROR, "/params/requestId", LISTEN, listing, cancel(2))
    breaks(rule, ERROR, "/params/requestId", LISTEN, cancel(2))
    passes_over(rule, listing, cancel(2, by="client"))


# -- logging ---------------------------------------------------------------------------------


def listing(id: int, level: str | None = None) -> TraceEntry:
    return call(id, "tools/list", meta={} if level is None else {PREFIX + "logLevel": level})


def log(level: str) -> TraceEntry:
    return tell("notifications/message", level=level, data="x")


def test_a_log_is_sent_only_to_a_request_that_asks_for_it() -> None:
    rule = "mcp.logging.asked-only"
    keeps(rule, listing(1, "info"), log("info"))
    breaks(rule, ERROR, "/method", listing(1), log("info"))
    breaks(rule, ERROR, "/method", listing(1, "info"), listed(1), log("info"))
    passes_over(rule, *START, log("info"))


@pytest.mark.parametrize("level", ["debug", "info"])
def test_a_log_is_as_severe_as_was_asked(level: str) -> None:
    rule = "mcp.logging.level-kept"
    keeps(rule, listing(1, "notice"), log("notice"), log("error"))
    breaks(rule, ERROR, "/params/level", listing(1, "notice"), log(level))
    # Of several requests, the log may be that of the one that asks for most.
    keeps(rule, listing(1, "notice"), listing(2, "debug"), log(level))


def test_a_level_that_there_is_not_is_not_compared() -> None:
    also = ("mcp.type.constant",)
    keeps("mcp.logging.asked-only", listing(1, "notice"), log("loud"), also=also)


def test_a_log_comes_on_the_stream_of_its_request() -> None:
    rule = "mcp.logging.own-stream"
    ask_one, ask_two = over(1, listing(1, "info")), over(2, listing(2))
    keeps(rule, ask_one, ask_two, over(1, log("info"), status=200))
    breaks(rule, ERROR, "/method", ask_one, ask_two, over(2, log("info"), status=200))
    passes_over(rule, listing(1, "info"), log("info"))


def test_the_level_of_a_stream_is_that_of_its_own_request() -> None:
    both = over(1, listing(1, "error")), over(2, listing(2, "debug"))
    rule, reply = "mcp.logging.level-kept", over(1, log("info"), status=200)
    breaks(rule, ERROR, "/params/level", *both, reply)


UNREAD = ("mcp.type.constant",)


def test_a_level_that_there_is_not_is_refused() -> None:
    rule, bad = "mcp.logging.bad-level", ask(1, "logging/setLevel", level="loud")
    keeps(rule, *START, bad, refuse(1, -32602), also=UNREAD)
    breaks(rule, WARN, "/error/code", *START, bad, answer(1), also=UNREAD)
    breaks(rule, WARN, "/error/code", *START, bad, refuse(1, -32603), also=UNREAD)
    passes_over(rule, *START, ask(1, "logging/setLevel", level="info"), answer(1))


def test_a_level_that_there_is_not_is_refused_in_each_request() -> None:
    rule, bad = "mcp.logging.bad-request-level", listing(1, "loud")
    keeps(rule, bad, refuse(1, -32602), also=UNREAD)
    breaks(rule, WARN, "/error/code", bad, listed(1), also=UNREAD)
    passes_over(rule, listing(1, "info"), listed(1))
