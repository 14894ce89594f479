"""Tasks: of 2025-11-25, where either side runs them, and of the extension after it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.judge.rules.recording import (
    TASKS,
    answer,
    ask,
    breaks,
    call,
    complete,
    found,
    keeps,
    opened,
    passes_over,
    refuse,
    tell,
)
from trunkline.judge import TraceEntry
from trunkline.spec.rows import Role

ERROR = "error"
WHEN = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}


def facts(status: str, **more: Any) -> dict[str, Any]:
    return {"taskId": "t", "status": status, "ttl": None, **WHEN, **more}


# -- in the core -----------------------------------------------------------------------------

CAN = {"list": {}, "cancel": {}}
SERVER = {"tools": {}, "tasks": {**CAN, "requests": {"tools": {"call": {}}}}}
CLIENT = {"sampling": {}, "tasks": {**CAN, "requests": {"sampling": {"createMessage": {}}}}}
START = opened(client=CLIENT, server=SERVER)
RUN = ask(1, "tools/call", name="a", task={})
MADE = answer(1, task=facts("working"))


def got(id: int, status: str, by: Role = "server") -> list[TraceEntry]:
    asker: Role = "client" if by == "server" else "server"
    return [
        ask(id, "tasks/get", by=asker, taskId="t"),
        answer(id, by=by, **facts(status)),
    ]


@pytest.mark.parametrize("status", ["completed", "input_required"])
def test_a_task_starts_working(status: str) -> None:
    rule = "mcp.tasks.starts-working"
    keeps(rule, *START, RUN, MADE)
    breaks(rule, ERROR, "/result/task/status", *START, RUN, answer(1, task=facts(status)))
    passes_over(rule, *START, ask(1, "tools/call", name="a"), answer(1, content=[]))


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_a_task_that_has_ended_stays_as_it_ended(end: str) -> None:
    rule = "mcp.tasks.final-stays"
    keeps(rule, *START, RUN, MADE, *got(2, "working"), *got(3, end), *got(4, end))
    breaks(rule, ERROR, "/result/status", *START, RUN, MADE, *got(3, end), *got(4, "working"))
    passes_over(rule, *START, RUN, MADE, *got(3, "working"), *got(4, end))


def test_a_notification_says_how_a_task_ended_too() -> None:
    rule, ended = "mcp.tasks.final-stays", tell("notifications/tasks/status", **facts("failed"))
    keeps(rule, *START, RUN, MADE, ended, *got(2, "failed"))
    breaks(rule, ERROR, "/result/status", *START, RUN, MADE, ended, *got(2, "completed"))


def test_the_first_end_of_a_task_counts() -> None:
    rule = "mcp.tasks.final-stays"
    ended = tell("notifications/tasks/status", **facts("failed"))
    other = tell("notifications/tasks/status", **facts("completed"))
    keeps(rule, *START, RUN, MADE, ended, other, *got(2, "failed"))


@pytest.mark.parametrize("status", ["working", "input_required"])
def test_a_result_that_was_fetched_is_that_of_a_task_that_has_ended(status: str) -> None:
    rule = "mcp.tasks.result-blocks"
    fetched = ask(2, "tasks/result", taskId="t"), answer(2, content=[])
    keeps(rule, *START, RUN, MADE, *fetched, *got(3, "completed"))
    breaks(rule, ERROR, "/result/status", *START, RUN, MADE, *fetched, *got(3, status))
    passes_over(rule, *START, RUN, MADE, *got(3, status))


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_a_server_does_not_cancel_a_task_that_has_ended(end: str) -> None:
    rule, cancel = "mcp.tasks.cancel-final-server", ask(3, "tasks/cancel", taskId="t")
    conversation = [*START, RUN, MADE, *got(2, end), cancel]
    keeps(rule, *conversation, refuse(3, -32602))
    breaks(rule, ERROR, "/error/code", *conversation, answer(3, **facts("cancelled")))
    passes_over(rule, *START, RUN, MADE, cancel, answer(3, **facts("cancelled")))


def test_a_client_does_not_cancel_a_task_that_has_ended() -> None:
    rule = "mcp.tasks.cancel-final-client"
    params = {"messages": [], "maxTokens": 1, "task": {}}
    sample = ask(1, "sampling/createMessage", by="server", **params)
    made = answer(1, by="client", task=facts("working"))
    cancel = ask(3, "tasks/cancel", by="server", taskId="t")
    conversation = [*START, sample, made, *got(2, "completed", by="client"), cancel]
    keeps(rule, *conversation, refuse(3, -32602, by="client"))
    done = answer(3, by="client", **facts("cancelled"))
    breaks(rule, ERROR, "/error/code", *conversation, done)


def test_tasks_of_client_and_server_are_kept_apart() -> None:
    mine = ask(3, "tasks/cancel", by="server", taskId="t")
    reply = refuse(3, -32603, by="client")
    conversation = [*START, RUN, MADE, *got(2, "completed"), mine, reply]
    passes_over("mcp.tasks.cancel-final-client", *conversation)


def test_a_task_that_is_not_known_is_judged_by_its_report_alone() -> None:
    assert found(*START, *got(2, "completed")) == []
    assert found(*START, ask(2, "tasks/get", taskId="t"), refuse(2, -32602)) == []
    assert found(*reported(2, "working")) == []


def test_a_reply_to_nothing_says_nothing_of_a_task() -> None:
    assert found(*START, answer(9, **facts("working"))) == [("mcp.id.echoed", ERROR, "/id")]
    lost = complete(9, resultType="task", **modern("working"))
    assert found(*began(), lost) == [("mcp.id.echoed", ERROR, "/id")]


# -- in the extension ------------------------------------------------------------------------


def modern(status: str, **more: Any) -> dict[str, Any]:
    return {"taskId": "t", "status": status, "ttlMs": None, **WHEN, **more}


def began(**more: Any) -> list[TraceEntry]:
    first = call(1, "tools/call", name="a", declared=TASKS)
    return [first, complete(1, resultType="task", **modern("working", **more))]


def about(id: int, method: str, **params: Any) -> TraceEntry:
    return call(id, f"tasks/{method}", taskId="t", declared=TASKS, **params)


def reported(id: int, status: str, **more: Any) -> list[TraceEntry]:
    return [about(id, "get"), complete(id, **modern(status, **more))]


def test_a_task_is_made_for_a_client_that_knows_them() -> None:
    rule = "mcp.tasks.declared-only"
    keeps(rule, *began())
    made = complete(1, resultType="task", **modern("working"))
    undeclared = call(1, "tools/call", name="a")
    also = ("mcp.capability.extension-server",)
    breaks(rule, ERROR, "/result/resultType", undeclared, made, also=also)
    passes_over(rule, undeclared, complete(1, content=[]))


@pytest.mark.parametrize("method", ["update", "cancel"])
@pytest.mark.parametrize(
    "result", [{"resultType": "task"}, {"taskId": "t"}, {"status": "working"}, {"task": {}}]
)
def test_an_acknowledgement_says_nothing_of_the_task(method: str, result: dict[str, Any]) -> None:
    rule = "mcp.tasks.ack-only"
    params = {"inputResponses": {}} if method == "update" else {}
    keeps(rule, *began(), about(2, method, **params), complete(2))
    passes_over(rule, *began(), about(2, method, **params), refuse(2, -32602))
    broken = found(*began(), about(2, method, **params), complete(2, **result))
    assert (rule, ERROR, "/result") in broken


def test_a_report_of_a_task_is_complete() -> None:
    rule = "mcp.tasks.get-complete"
    keeps(rule, *began(), *reported(2, "working"))
    bad = complete(2, **modern("working", resultType="task"))
    assert (rule, ERROR, "/result/resultType") in found(*began(), about(2, "get"), bad)


BROKEN = {"code": -32603, "message": "no"}


def test_a_task_has_an_error_where_it_failed_and_only_there() -> None:
    rule = "mcp.tasks.failed-has-error"
    done = {"result": {"content": [], "resultType": "complete"}}
    keeps(rule, *began(), *reported(2, "failed", error=BROKEN))
    keeps(rule, *began(), *reported(2, "completed", **done))
    also = ("mcp.type.required",)
    breaks(rule, ERROR, "/result/status", *began(), *reported(2, "failed"), also=also)


def test_the_end_of_a_task_stays_as_it_is() -> None:
    rule = "mcp.tasks.end-stays"
    first = [*began(), *reported(2, "failed", error=BROKEN)]
    keeps(rule, *first, *reported(3, "failed", error=BROKEN))
    other = {"code": -32602, "message": "no"}
    breaks(rule, ERROR, "/result/status", *first, *reported(3, "failed", error=other))
    breaks(rule, ERROR, "/result/status", *first, *reported(3, "cancelled"))
    passes_over(rule, *began(), *reported(2, "working"), *reported(3, "cancelled"))
    one, two = ({"content": [], "resultType": "complete", "n": n} for n in (1, 2))
    done = [*began(), *reported(2, "completed", result=one)]
    breaks(rule, ERROR, "/result/status", *done, *reported(3, "completed", result=two))


def test_the_end_of_a_task_is_what_a_report_says_and_no_notification() -> None:
    listen = call(8, "subscriptions/listen", notifications={"taskIds": ["t"]}, declared=TASKS)
    meta = {"io.modelcontextprotocol/subscriptionId": 8}
    granted = {"notifications": {"taskIds": ["t"]}, "_meta": meta}
    start = [*began(), listen, tell("notifications/subscriptions/acknowledged", **granted)]
    note = tell("notifications/tasks", **modern("failed", error=BROKEN), _meta=meta)
    other = {"code": -32602, "message": "no"}
    passes_over("mcp.tasks.end-stays", *start, note, *reported(3, "failed", error=other))


ROOTS = {"method": "roots/list"}
SAMPLE = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}


def test_a_key_of_a_task_means_one_question() -> None:
    rule = "mcp.tasks.keys-not-reused"
    first = [*began(), *reported(2, "input_required", inputRequests={"r": ROOTS})]
    keeps(rule, *first, *reported(3, "input_required", inputRequests={"r": ROOTS, "q": SAMPLE}))
    again = reported(3, "input_required", inputRequests={"r": SAMPLE})
    breaks(rule, ERROR, "/result/inputRequests/r", *first, *again)


def test_a_task_lives_as_long_as_the_server_said() -> None:
    rule = "mcp.tasks.durable"

    def at(seconds: float, *entries: TraceEntry) -> list[TraceEntry]:
        return [replace(entry, at=seconds) for entry in entries]

    gone = [about(2, "get"), refuse(2, -32602)]
    keeps(rule, *began(), *reported(2, "working"))
    breaks(rule, ERROR, "/error/code", *began(), *gone)
    short = at(10, *began(ttlMs=1000))
    breaks(rule, ERROR, "/error/code", *short, *at(10.9, *gone))
    passes_over(rule, *short, *at(11, *gone))
    # Where the recording has no clock, the task may have lived out its time.
    passes_over(rule, *began(ttlMs=1000), *gone)
    passes_over(rule, *began(ttlMs=1000), *at(10, *gone))
    passes_over(rule, *short, *gone)
    passes_over(rule, *gone)


def test_the_method_that_was_removed_is_refused() -> None:
    rule, run = "mcp.tasks.result-removed", about(2, "result")
    also = ("mcp.method.no-longer",)
    keeps(rule, run, refuse(2, -32601), also=also)
    breaks(rule, ERROR, "/error/code", run, refuse(2, -32602), also=also)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "subscriptions/listen"])
def test_a_request_about_tasks_takes_the_extension(method: str) -> None:
    rule = "mcp.tasks.undeclared-refused"
    listens = method == "subscriptions/listen"
    params: dict[str, Any] = {"notifications": {"taskIds": []}} if listens else {"taskId": "t"}
    run = call(2, method, **params)
    data = {"requiredCapabilities": TASKS}
    keeps(rule, run, refuse(2, -32021, **data))
    breaks(rule, ERROR, "/error/code", run, refuse(2, -32602))
    passes_over(rule, call(2, method, declared=TASKS, **params), refuse(2, -32602))
