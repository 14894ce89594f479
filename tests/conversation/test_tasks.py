"""Calls that go on as tasks, by the extension of 2026-07-28."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any

import pytest

from tests.conversation.interactive_call import InteractiveCall, accept
from tests.conversation.journal import HANGS
from tests.conversation.rig import PREFIX, TASKS, Raw, Rig, everything
from tests.conversation.rules import SHARED, rule
from trunkline.errors import Cancelled, PeerError
from trunkline.spec.revisions import V2026_07_28

NEW = V2026_07_28
OVER = ("completed", "failed", "cancelled")
CAPABILITIES = f"{PREFIX}clientCapabilities"
WITHOUT = {
    CAPABILITIES: {key: value for key, value in everything(NEW).items() if key != "extensions"}
}
REQUIRED = {"extensions": {TASKS: {}}}
# What tells of a task, in every message that does.
FACTS = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"}


async def begin(raw: Raw, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that becomes a task; return what the call was answered."""
    result = await raw.call(tool, **arguments)
    assert result["resultType"] == "task", result
    return result


async def get(raw: Raw, task: dict[str, Any]) -> dict[str, Any]:
    return await raw.result("tasks/get", {"taskId": task["taskId"]})


async def until(raw: Raw, task: dict[str, Any], *statuses: str) -> dict[str, Any]:
    """Look at a task until it stands so, or has ended; return how it stands."""
    async with asyncio.timeout(HANGS):
        while (found := await get(raw, task))["status"] not in (statuses or OVER):
            await asyncio.sleep(0.01)
    return found


async def update(raw: Raw, task: dict[str, Any], **responses: Any) -> dict[str, Any]:
    params = {"taskId": task["taskId"], "inputResponses": responses}
    return await raw.result("tasks/update", params)


def fresh_key(raw: Raw) -> str:
    return f"task-{raw.new_id()}"


# -- beginning -------------------------------------------------------------------------------


@rule("BP-168", "BP-050", since=NEW)
async def test_the_extension_is_advertised_and_the_capability_of_old_is_not(rig: Rig) -> None:
    capabilities = (await (await rig.able_line("tasks")).result("server/discover"))["capabilities"]
    assert capabilities["extensions"] == {TASKS: {}}
    assert "tasks" not in capabilities
    rows = (await (await rig.able_line("tasks")).result("tools/list"))["tools"]
    assert not any("execution" in row for row in rows)


@rule("BP-168", "SEC-37", since=NEW)
async def test_a_call_that_becomes_a_task_says_so_flatly_and_can_be_asked_about_at_once(
    rig: Rig,
) -> None:
    raw = await rig.able_line("tasks")
    key = fresh_key(raw)
    task = await begin(raw, "held", key=key)
    assert task.keys() - {"pollIntervalMs", "statusMessage"} == FACTS | {"resultType", "_meta"}
    assert task["status"] == "working"
    for name in ("createdAt", "lastUpdatedAt"):
        assert datetime.fromisoformat(task[name]).tzinfo is not None
    assert task["ttlMs"] is None or task["ttlMs"] > 0
    assert isinstance(task["pollIntervalMs"], int)
    assert task["pollIntervalMs"] > 0
    found = await get(raw, task)
    assert found["resultType"] == "complete"
    # Its progress may have been stored meanwhile.
    assert found["lastUpdatedAt"] >= task["lastUpdatedAt"]
    constant = FACTS - {"lastUpdatedAt"}
    assert {name: found[name] for name in constant} == {name: task[name] for name in constant}
    assert found.keys().isdisjoint({"result", "error", "inputRequests", "requestState"})
    await raw.call("release", key=key)
    done = await until(raw, task)
    assert done["status"] == "completed"
    assert done["result"]["content"] == [{"type": "text", "text": f"held {key}"}]
    assert f"{PREFIX}related-task" not in done["result"].get("_meta", {})
    assert done["createdAt"] == task["createdAt"]
    assert done["lastUpdatedAt"] >= task["lastUpdatedAt"]
    # It stays as it ended.
    assert await get(raw, task) == done


@rule("BP-168", since=NEW)
async def test_tool_without_task_support_ignores_task_params(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    params = {"name": "greet", "arguments": {"name": "Ada"}, "task": {"ttl": 1000}}
    result = await raw.result("tools/call", params)
    assert result["resultType"] == "complete"
    assert result["content"] == [{"type": "text", "text": "Hello, Ada!"}]
    assert "taskId" not in result


@rule("BP-168", "BP-051", since=NEW)
async def test_without_the_extension_a_tool_runs_as_usual_if_it_can(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    params = {"name": "slow_compute", "arguments": {"seconds": 0.01, "label": "x"}}
    result = await raw.result("tools/call", params, **WITHOUT)
    assert result["resultType"] == "complete"
    assert result["content"][0]["text"] == "computed x"
    task = await begin(raw, "slow_compute", seconds=0, label="y")
    assert (await until(raw, task))["result"]["content"][0]["text"] == "computed y"


@rule("BP-168", "BP-047", "BP-051", since=NEW)
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "failing_job"}),
        ("tools/call", {"name": "confirm_delete", "arguments": {"filename": "a"}}),
        ("tools/call", {"name": "greet_later"}),
        ("tasks/get", {"taskId": "any"}),
        ("tasks/update", {"taskId": "any", "inputResponses": {}}),
        ("tasks/cancel", {"taskId": "any"}),
        ("subscriptions/listen", {"notifications": {"taskIds": ["any"]}}),
    ],
    ids=lambda each: json.dumps(each)[:40],
)
async def test_undeclared_tasks_extension_is_named_as_required_capability(
    rig: Rig, method: str, params: dict[str, Any]
) -> None:
    error = await (await rig.able_line("tasks")).error(method, params, **WITHOUT)
    assert error["code"] == -32021
    assert error["data"]["requiredCapabilities"] == REQUIRED


@rule("BP-168", since=NEW)
@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
async def test_methods_that_the_extension_has_dropped_are_not_found(rig: Rig, method: str) -> None:
    raw = await rig.able_line("tasks")
    task = await begin(raw, "slow_compute", seconds=0)
    params = {"taskId": task["taskId"]} if method == "tasks/result" else {}
    assert (await raw.error(method, params))["code"] == -32601


@rule("BP-168", "SEC-37", "K-77", since=NEW)
@pytest.mark.parametrize("id", ["unknown", "", "0" * 500, "é\n"])
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_unknown_task_is_invalid_params(rig: Rig, method: str, id: str) -> None:
    params: dict[str, Any] = {"taskId": id}
    if method == "tasks/update":
        params["inputResponses"] = {}
    error = await (await rig.able_line("tasks")).error(method, params)
    assert (error["code"], error["message"]) == (-32602, "Task not found")


@rule("BP-168", since=NEW)
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tasks/get", {}),
        ("tasks/get", {"taskId": 5}),
        ("tasks/update", {"taskId": "x"}),
        ("tasks/update", {"taskId": "x", "inputResponses": []}),
        ("tasks/cancel", {"taskId": None}),
    ],
    ids=lambda each: json.dumps(each)[:40],
)
async def test_task_params_without_task_id_are_invalid(
    rig: Rig, method: str, params: dict[str, Any]
) -> None:
    assert (await (await rig.able_line("tasks")).error(method, params))["code"] == -32602


@rule("SEC-37", since=NEW)
async def test_task_ids_are_long_unique_and_have_no_common_prefix(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    ids = [(await begin(raw, "slow_compute", seconds=0))["taskId"] for _ in range(20)]
    assert len(set(ids)) == 20
    assert min(map(len, ids)) >= 22
    # Nothing in common that would tell the next.
    assert len({id[:6] for id in ids}) > 15


# -- ending ----------------------------------------------------------------------------------


@rule("BP-168", since=NEW)
async def test_a_tool_that_failed_has_completed(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    done = await until(raw, await begin(raw, "failing_job"))
    assert done["status"] == "completed"
    assert done["result"]["isError"] is True
    assert done["result"]["content"][0]["text"] == "The job is lost."
    assert "error" not in done


@rule("BP-168", "K-77", since=NEW)
async def test_an_error_of_the_protocol_is_a_failed_task(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    done = await until(raw, await begin(raw, "protocol_error_job"))
    assert done["status"] == "failed"
    assert done["error"] == {"code": -32603, "message": "The job cannot be done"}
    assert "result" not in done


@rule("BP-168", since=NEW)
async def test_a_cancelled_task_is_stopped_and_its_cancel_merely_acknowledged(
    rig: Rig,
) -> None:
    raw = await rig.able_line("tasks")
    key = fresh_key(raw)
    task = await begin(raw, "held", key=key)
    await raw.call("noted", key=key)
    for _ in range(2):  # also when it has ended
        nod = await raw.result("tasks/cancel", {"taskId": task["taskId"]})
        assert nod.keys() == {"resultType", "_meta"}
        assert nod["resultType"] == "complete"
        done = await until(raw, task)
        assert done["status"] == "cancelled"
        assert done.keys().isdisjoint({"result", "error", "inputRequests"})
    assert await raw.text("noted", key=key, count=2) == ["began", "cancelled True"]


@rule("BP-168", since=NEW)
async def test_to_cancel_the_request_of_a_task_does_not_end_the_task(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    key = fresh_key(raw)
    id = raw.start("tools/call", {"name": "held", "arguments": {"key": key}})
    task = (await raw.reply(id))["result"]
    raw.notify("notifications/cancelled", {"requestId": id})
    assert (await get(raw, task))["status"] == "working"
    await raw.call("release", key=key)
    assert (await until(raw, task))["status"] == "completed"


@rule("BP-168", "BP-150", since=NEW)
async def test_progress_of_a_task_is_its_status_message_and_not_a_notification(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    key = fresh_key(raw)
    params = {"name": "held", "arguments": {"key": key}}
    task = await raw.result("tools/call", params, progressToken=key)
    async with asyncio.timeout(60):
        while (found := await get(raw, task)).get("statusMessage") is None:
            await asyncio.sleep(0.01)
    assert (found["status"], found["statusMessage"]) == ("working", "begun (1 of 2)")
    await raw.call("release", key=key)
    done = await until(raw, task)
    assert (done["status"], done["statusMessage"]) == ("completed", "done (2 of 2)")
    assert raw.notifications("notifications/progress") == []


# -- asking ----------------------------------------------------------------------------------


@rule("BP-168", "SEC-37", since=NEW)
@pytest.mark.parametrize(("answer", "outcome"), [(True, "deleted"), (False, "kept")])
async def test_task_with_input_requests_shows_them_and_continues_with_the_responses(
    rig: Rig, answer: bool, outcome: str
) -> None:
    raw = await rig.able_line("tasks")
    task = await begin(raw, "confirm_delete", filename="a.txt")
    asked = await until(raw, task, "input_required")
    assert asked["resultType"] == "complete"
    assert "requestState" not in asked
    question = asked["inputRequests"]["confirm"]
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "Delete a.txt?"
    nod = await update(raw, task, confirm=accept(value=answer))
    assert nod.keys() == {"resultType", "_meta"}
    done = await until(raw, task)
    assert done["result"]["content"][0]["text"] == f"a.txt {outcome}"
    assert "inputRequests" not in done
    # And nobody was asked in any other way.
    assert [each for each in raw.received if "method" in each] == []


@rule("BP-168", since=NEW)
async def test_a_task_waits_until_all_is_answered_and_shows_what_is_not(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    task = await begin(raw, "multi_input")
    async with asyncio.timeout(HANGS):
        while (asked := await get(raw, task)).get("inputRequests", {}).keys() != {
            "first",
            "second",
        }:
            await asyncio.sleep(0.01)
    await update(raw, task, second=accept(value="b"), nobody=accept(value="c"))
    asked = await get(raw, task)
    assert asked["status"] == "input_required"
    assert list(asked["inputRequests"]) == ["first"]
    await update(raw, task, first=accept(value="a"), second=accept(value="late"))
    assert (await until(raw, task))["result"]["content"][0]["text"] == "a and b"
    # To one that has ended nothing is given any more.
    await update(raw, task, first=accept(value="z"))
    assert (await get(raw, task))["result"]["content"][0]["text"] == "a and b"


@rule("BP-168", since=NEW)
@pytest.mark.parametrize("answer", [5, None, {}, {"action": "perhaps"}, {"roots": []}])
async def test_malformed_input_response_is_refused_and_a_valid_one_accepted(
    rig: Rig, answer: Any
) -> None:
    raw = await rig.able_line("tasks")
    task = await begin(raw, "confirm_delete", filename="b.txt")
    await until(raw, task, "input_required")
    params = {"taskId": task["taskId"], "inputResponses": {"confirm": answer}}
    assert (await raw.error("tasks/update", params))["code"] == -32602
    assert (await get(raw, task))["status"] == "input_required"
    await update(raw, task, confirm=accept(value=True))
    assert (await until(raw, task))["status"] == "completed"


@rule("BP-168", "BP-130", since=NEW)
async def test_a_call_may_ask_before_it_is_a_task_and_inside_it(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    call = InteractiveCall.of_tool(raw, "greet_later")
    asked = await call.round()
    assert list(asked["inputRequests"]) == ["user_name"]
    assert "taskId" not in asked
    call.answer(accept(value="Ada"))
    task = (await call.reply())["result"]
    assert task["resultType"] == "task"
    assert task.keys().isdisjoint({"requestState", "inputRequests"})
    asked = await until(raw, task, "input_required")
    assert list(asked["inputRequests"]) == ["mood"]
    await update(raw, task, mood=accept(value="well"))
    done = await until(raw, task)
    assert done["result"]["content"][0]["text"] == "Hello, Ada, you are well"


@rule("BP-168", since=NEW)
async def test_a_task_that_waits_for_an_answer_can_be_cancelled(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    task = await begin(raw, "confirm_delete", filename="c.txt")
    await until(raw, task, "input_required")
    await raw.result("tasks/cancel", {"taskId": task["taskId"]})
    done = await until(raw, task)
    assert (done["status"], "inputRequests" in done) == ("cancelled", False)


# -- listening -------------------------------------------------------------------------------


async def until_notified(raw: Raw) -> None:
    """Wait for the notification that a task has completed."""
    await raw.until(
        lambda _: any(
            each["status"] == "completed" for each in raw.notifications("notifications/tasks")
        )
    )


@rule("BP-168", "BP-140", "BP-142", since=NEW)
async def test_listen_stream_sends_the_status_of_the_tasks_it_asked_for(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    mine, other = fresh_key(raw), fresh_key(raw)
    task = await begin(raw, "held", key=mine)
    stranger = await begin(raw, "held", key=other)
    wanted = {"taskIds": [task["taskId"], "unknown"]}
    stream = raw.start("subscriptions/listen", {"notifications": wanted})
    (acknowledged,) = await raw.wait_for_notifications("notifications/subscriptions/acknowledged")
    assert acknowledged["notifications"] == {"taskIds": [task["taskId"]]}
    await raw.call("release", key=other)
    await until(raw, stranger)
    await raw.call("release", key=mine)
    done = await until(raw, task)
    await until_notified(raw)
    *earlier, notified = raw.notifications("notifications/tasks")
    assert {each["statusMessage"] for each in earlier} <= {"begun (1 of 2)", "done (2 of 2)"}
    assert {each["taskId"] for each in (*earlier, notified)} == {task["taskId"]}
    assert notified["_meta"] == {f"{PREFIX}subscriptionId": stream}
    assert notified["result"]["content"] == done["result"]["content"]
    assert {name: notified[name] for name in FACTS} == {name: done[name] for name in FACTS}
    raw.notify("notifications/cancelled", {"requestId": stream})
    await raw.settle()


@rule("BP-168", "BP-141", since=NEW)
async def test_a_stream_shows_what_a_task_asks_and_one_without_tasks_nothing(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    task = await begin(raw, "confirm_delete", filename="d.txt")
    plain = raw.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    about = {"taskIds": [task["taskId"]]}
    stream = raw.start("subscriptions/listen", {"notifications": about})
    await raw.wait_for_notifications("notifications/subscriptions/acknowledged", 2)
    await until(raw, task, "input_required")
    await update(raw, task, confirm=accept(value=True))
    await until(raw, task)
    await until_notified(raw)
    notified = raw.notifications("notifications/tasks")
    assert notified[-1]["status"] == "completed"
    assert {each["_meta"][f"{PREFIX}subscriptionId"] for each in notified} == {stream}
    for id in (plain, stream):
        raw.notify("notifications/cancelled", {"requestId": id})


# -- our client ------------------------------------------------------------------------------


@rule("BP-168", since=NEW)
async def test_our_client_calls_a_tool_that_becomes_a_task_as_any_other(rig: Rig) -> None:
    client, _, record = await rig.able_client("tasks")
    count = len(record.lines)
    assert (await client.call_tool("slow_compute", {"seconds": 0.03, "label": "z"})).text == (
        "computed z"
    )
    assert any(b"tasks/get" in line for who, line in record.lines[count:] if who == "client")
    failed = await client.call_tool("failing_job")
    assert (failed.is_error, failed.text) == (True, "The job is lost.")
    with pytest.raises(PeerError, match="cannot be done") as caught:
        await client.call_tool("protocol_error_job")
    assert caught.value.code == -32603


@rule("BP-168", "SEC-37", since=NEW)
async def test_our_client_answers_what_a_task_asks(rig: Rig) -> None:
    client, callbacks, _ = await rig.able_client("tasks")
    callbacks.content = {"value": True}
    assert (await client.call_tool("confirm_delete", {"filename": "e"})).text == "e deleted"
    callbacks.content = {"value": "fine"}
    assert (await client.call_tool("greet_later")).text == "Hello, fine, you are fine"
    assert (await client.call_tool("multi_input")).text == "fine and fine"
    consulted = await client.call_tool("consult", result_type=list[str])
    assert consulted.value == ["model-1", "file:///home/script"]
    assert len(callbacks.questions) == 6


@rule("BP-168", since=NEW)
async def test_client_keeps_a_task_handle_follows_it_and_resumes_it(rig: Rig) -> None:
    client, _, _ = await rig.able_client("tasks")
    key = fresh_key(rig.raw)
    call = await client.call_tool_as_task("held", {"key": key})
    assert call.status == "working"
    assert not call.done()
    assert call.id is not None
    await client.call_tool("noted", {"key": key})
    seen: list[str] = []

    async def watch() -> None:
        async for status in client.task(call.id):
            seen.append(status)

    watching = asyncio.create_task(watch())
    await client.call_tool("release", {"key": key})
    assert (await call.result()).text == f"held {key}"
    async with asyncio.timeout(HANGS):
        await watching
    assert seen[-1] == "completed"
    assert (await client.task(call.id).result()).text == f"held {key}"


@rule("BP-168", since=NEW)
async def test_our_client_cancels_a_task(rig: Rig) -> None:
    client, _, _ = await rig.able_client("tasks")
    key = fresh_key(rig.raw)
    call = await client.call_tool_as_task("held", {"key": key})
    await client.call_tool("noted", {"key": key})
    await call.cancel()
    with pytest.raises(Cancelled):
        await call.result()
    notes = await client.call_tool("noted", {"key": key, "count": 2}, result_type=list[str])
    assert notes.value == ["began", "cancelled True"]


@rule("BP-168", since=NEW)
async def test_cancelling_a_waiting_task_call_cancels_the_task(rig: Rig) -> None:
    client, _, _ = await rig.able_client("tasks")
    key = fresh_key(rig.raw)
    waiting = asyncio.create_task(client.call_tool("held", {"key": key}))
    await client.call_tool("noted", {"key": key})
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    notes = await client.call_tool("noted", {"key": key, "count": 2}, result_type=list[str])
    assert notes.value == ["began", "cancelled True"]


@rule("BP-168", "BP-051", since=NEW, fresh=True)
async def test_a_client_without_tasks_declares_none_and_gets_none(rig: Rig) -> None:
    client, record = await rig.connect_recorded("tasks", tasks=False)
    assert (await client.call_tool("slow_compute", {"seconds": 0})).text == "computed "
    with pytest.raises(PeerError) as caught:
        await client.call_tool("failing_job")
    assert caught.value.code == -32021
    assert not any(TASKS.encode() in line for who, line in record.lines if who == "client")


@rule("SEC-37", "SEC-36", over=SHARED)
async def test_task_is_accessible_by_id_without_authentication_but_not_listed(rig: Rig) -> None:
    maker, other = await rig.neighbours("tasks", [rig.revision] * 2)
    key = fresh_key(rig.raw)
    call = await maker.call_tool_as_task("held", {"key": key})
    assert call.id is not None
    if not rig.is_new:
        assert call.id in {each.task_id for each in await maker.list_tasks()}
        assert await other.list_tasks() == []
    await maker.close()
    # It goes on without who began it.
    await other.call_tool("release", {"key": key})
    assert (await other.task(call.id).result()).text == f"held {key}"


@rule("K-77", since="2025-11-25", fresh=True)
async def test_the_erlmcp_profile_has_codes_of_its_own_for_tasks(rig: Rig) -> None:
    raw = await rig.line("tasks-erlmcp", judged=False, capabilities=everything(rig.revision))
    error = await raw.error("tasks/get", {"taskId": "unknown"})
    if rig.is_new:  # which keeps that block of numbers for itself
        assert (error["code"], error["data"]) == (32081, {"originalCode": -32081})
    else:
        assert error["code"] == -32081
