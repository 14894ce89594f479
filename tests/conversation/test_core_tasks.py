"""Calls that go on as tasks, as 2025-11-25 had them: the client asks for them."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any

import pytest

from tests.conversation.interactive_call import FOLDERS, SAMPLE, accept
from tests.conversation.journal import HANGS
from tests.conversation.rig import PREFIX, TASKS, Raw, Rig, everything
from tests.conversation.rules import rule
from trunkline.errors import Cancelled, PeerError
from trunkline.spec.revisions import V2025_11_25, V2026_07_28

CORE = V2025_11_25
OVER = ("completed", "failed", "cancelled")
RELATED = f"{PREFIX}related-task"
STATUS = "notifications/tasks/status"


async def begin(raw: Raw, tool: str, ttl: int | None = None, **arguments: Any) -> dict[str, Any]:
    """Call a tool as a task; return the task."""
    wish = {} if ttl is None else {"ttl": ttl}
    params = {"name": tool, "arguments": arguments, "task": wish}
    result = await raw.result("tools/call", params)
    assert result.keys() == {"task"}
    task: dict[str, Any] = result["task"]
    return task


async def get(raw: Raw, task: dict[str, Any]) -> dict[str, Any]:
    return await raw.result("tasks/get", {"taskId": task["taskId"]})


async def until(raw: Raw, task: dict[str, Any], *statuses: str) -> dict[str, Any]:
    """Look at a task until it stands so, or has ended; return how it stands."""
    async with asyncio.timeout(HANGS):
        while (found := await get(raw, task))["status"] not in (statuses or OVER):
            await asyncio.sleep(0.01)
    return found


def statuses_of(raw: Raw, task: dict[str, Any]) -> list[str]:
    """Return how a task stood, each time that the server told of it."""
    return [
        each["status"] for each in raw.notifications(STATUS) if each["taskId"] == task["taskId"]
    ]


def fresh_key(raw: Raw) -> str:
    return f"task-{raw.new_id()}"


# -- beginning -------------------------------------------------------------------------------


@rule("BP-167", "BP-039", since=CORE, until=V2026_07_28, fresh=True)
async def test_tasks_are_declared_and_each_tool_says_whether_it_is_one(rig: Rig) -> None:
    raw = await rig.line("tasks", opened=False)
    capabilities = (await raw.shake_hands())["capabilities"]
    assert capabilities["tasks"]["requests"] == {"tools": {"call": {}}}
    assert capabilities["tasks"]["cancel"] == {}
    assert "extensions" not in capabilities
    rows = {row["name"]: row for row in (await raw.result("tools/list"))["tools"]}
    assert rows["held"]["execution"] == {"taskSupport": "optional"}
    assert rows["failing_job"]["execution"] == {"taskSupport": "required"}
    assert rows["greet"].get("execution", {"taskSupport": "forbidden"}) == {
        "taskSupport": "forbidden"
    }


@rule("BP-167", "mcp.tasks.starts-working", until=V2026_07_28)
async def test_call_with_task_params_creates_a_task_that_has_the_result(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    key = fresh_key(raw)
    task = await begin(raw, "held", 5000, key=key)
    assert (task["status"], task["ttl"]) == ("working", 5000)
    assert task["pollInterval"] > 0
    for name in ("createdAt", "lastUpdatedAt"):
        assert datetime.fromisoformat(task[name]).tzinfo is not None
    found = await get(raw, task)
    assert found["taskId"] == task["taskId"]
    assert found.keys().isdisjoint({"result", "error", "task", "resultType"})
    waiting = raw.start("tasks/result", {"taskId": task["taskId"]})
    await raw.settle()
    assert not any(each.get("id") == waiting for each in raw.received)
    await raw.call("release", key=key)
    result = (await raw.reply(waiting))["result"]
    assert result["content"] == [{"type": "text", "text": f"held {key}"}]
    assert result["_meta"][RELATED] == {"taskId": task["taskId"]}
    assert (await get(raw, task))["status"] == "completed"
    # Once more, and as often as one likes.
    assert await raw.result("tasks/result", {"taskId": task["taskId"]}) == result
    assert statuses_of(raw, task) == ["completed"]


@rule("BP-167", "SEC-36", until=V2026_07_28)
async def test_tasks_list_returns_the_tasks_of_its_requestor_in_pages(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    made = [(await begin(raw, "slow_compute", seconds=0))["taskId"] for _ in range(3)]
    listed, cursor = [], None
    while True:
        page = await raw.result("tasks/list", {} if cursor is None else {"cursor": cursor})
        listed += [each["taskId"] for each in page["tasks"]]
        if (cursor := page.get("nextCursor")) is None:
            break
    assert set(made) <= set(listed)
    assert min(map(len, made)) >= 22
    assert (await raw.error("tasks/list", {"cursor": "nonsense"}))["code"] == -32602


@rule("BP-167", until=V2026_07_28)
async def test_tool_refuses_a_task_call_it_does_not_support(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    assert (await raw.error("tools/call", {"name": "failing_job"}))["code"] == -32601
    wish = {"name": "greet", "arguments": {"name": "Ada"}, "task": {}}
    assert (await raw.error("tools/call", wish))["code"] == -32601
    assert await raw.text("slow_compute", seconds=0, label="plain") == "computed plain"


@rule("BP-167", until=V2026_07_28)
@pytest.mark.parametrize("task", [5, [], {"ttl": "long"}, {"ttl": -1}, {"ttl": 0}])
async def test_malformed_task_params_are_invalid(rig: Rig, task: Any) -> None:
    params = {"name": "held", "arguments": {"key": "never"}, "task": task}
    assert (await (await rig.able_line("tasks")).error("tools/call", params))["code"] == -32602


@rule("BP-167", "BP-036", until=CORE)
async def test_task_params_are_ignored_before_2025_11_25(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    params = {"name": "slow_compute", "arguments": {"seconds": 0, "label": "x"}, "task": {}}
    result = await raw.result("tools/call", params)
    assert result["content"][0]["text"] == "computed x"
    assert (await raw.error("tasks/get", {"taskId": "x"}))["code"] == -32601


@rule("BP-167", "BP-036", until=V2026_07_28, since=CORE, fresh=True)
async def test_declaring_the_tasks_extension_enables_nothing_in_2025_11_25(rig: Rig) -> None:
    declared = {**everything(CORE), "extensions": {TASKS: {}}}
    raw = await rig.line("tasks", capabilities=declared)
    result = await raw.call("slow_compute", seconds=0, label="x")
    assert result["content"][0]["text"] == "computed x"


@rule("BP-021", until=V2026_07_28, since=CORE)
async def test_tasks_update_of_the_extension_is_method_not_found(rig: Rig) -> None:
    update = {"taskId": "x", "inputResponses": {}}
    error = await (await rig.able_line("tasks")).error("tasks/update", update)
    assert error["code"] == -32601


@rule("BP-167", "K-77", until=V2026_07_28)
@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
async def test_a_task_that_is_not_there_is_invalid_params(rig: Rig, method: str) -> None:
    raw = await rig.able_line("tasks")
    for id in ("unknown", "", "x" * 500):
        error = await raw.error(method, {"taskId": id})
        assert (error["code"], error["message"]) == (-32602, "Task not found")
    assert (await raw.error(method, {}))["code"] == -32602


# -- ending ----------------------------------------------------------------------------------


@rule("BP-167", until=V2026_07_28)
async def test_a_tool_that_failed_is_a_failed_task_with_a_result(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    task = await begin(raw, "failing_job")
    assert (await until(raw, task))["status"] == "failed"
    result = await raw.result("tasks/result", {"taskId": task["taskId"]})
    assert result["isError"] is True
    assert result["content"][0]["text"] == "The job is lost."


@rule("BP-167", "K-77", until=V2026_07_28)
async def test_an_error_of_the_protocol_is_what_the_result_is_answered_with(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    task = await begin(raw, "protocol_error_job")
    assert (await until(raw, task))["status"] == "failed"
    error = await raw.error("tasks/result", {"taskId": task["taskId"]})
    assert (error["code"], error["message"]) == (-32603, "The job cannot be done")


@rule("BP-167", "mcp.tasks.cancel-final-server", "mcp.tasks.final-stays", until=V2026_07_28)
async def test_a_cancelled_task_is_cancelled_and_one_that_has_ended_cannot_be(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    key = fresh_key(raw)
    task = await begin(raw, "held", key=key)
    await raw.call("noted", key=key)
    waiting = raw.start("tasks/result", {"taskId": task["taskId"]})
    cancelled = await raw.result("tasks/cancel", {"taskId": task["taskId"]})
    assert (cancelled["taskId"], cancelled["status"]) == (task["taskId"], "cancelled")
    assert "error" in await raw.reply(waiting)
    assert await raw.text("noted", key=key, count=2) == ["began", "cancelled True"]
    assert (await raw.error("tasks/cancel", {"taskId": task["taskId"]}))["code"] == -32602
    assert (await get(raw, task))["status"] == "cancelled"


@rule("BP-150", "BP-151", since=CORE, until=V2026_07_28)
async def test_progress_of_a_task_keeps_its_token_and_names_the_task(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    key = fresh_key(raw)
    params = {"name": "held", "arguments": {"key": key}, "task": {}}
    task = (await raw.result("tools/call", params, progressToken=key))["task"]
    await raw.call("release", key=key)
    await until(raw, task)
    notified = await raw.wait_for_notifications("notifications/progress", 2)
    assert [(each["progress"], each["progressToken"]) for each in notified] == [(1, key), (2, key)]
    assert all(each["_meta"][RELATED] == {"taskId": task["taskId"]} for each in notified)


@rule("BP-167", until=V2026_07_28)
async def test_task_past_its_ttl_is_removed_and_its_handler_cancelled(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    key = fresh_key(raw)
    task = await begin(raw, "held", 50, key=key)
    assert task["ttl"] == 50
    assert await raw.text("noted", key=key, count=2) == ["began", "cancelled True"]
    async with asyncio.timeout(HANGS):
        while "error" not in (reply := await raw.ask("tasks/get", {"taskId": task["taskId"]})):
            await asyncio.sleep(0.01)
    assert reply["error"]["code"] == -32602


# -- asking ----------------------------------------------------------------------------------


@rule("BP-167", until=V2026_07_28)
async def test_elicitation_of_a_task_is_sent_while_tasks_result_waits(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    task = await begin(raw, "confirm_delete", filename="a.txt")
    assert (await until(raw, task, "input_required"))["status"] == "input_required"
    assert not any("method" in each and "id" in each for each in raw.received)
    waiting = raw.start("tasks/result", {"taskId": task["taskId"]})
    question = await raw.server_request("elicitation/create")
    assert question["params"]["message"] == "Delete a.txt?"
    assert question["params"]["_meta"] == {RELATED: {"taskId": task["taskId"]}}
    raw.send({"jsonrpc": "2.0", "id": question["id"], "result": accept(value=True)})
    result = (await raw.reply(waiting))["result"]
    assert result["content"][0]["text"] == "a.txt deleted"
    # Over HTTP that is told on another stream than the result.
    await raw.until(lambda _: len(statuses_of(raw, task)) == 3)
    assert statuses_of(raw, task) == ["input_required", "working", "completed"]


@rule("BP-167", until=V2026_07_28)
async def test_every_client_request_of_a_task_carries_the_task_id(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    task = await begin(raw, "consult")
    waiting = raw.start("tasks/result", {"taskId": task["taskId"]})
    for method, answer in (("sampling/createMessage", SAMPLE), ("roots/list", FOLDERS)):
        question = await raw.server_request(method)
        assert question["params"]["_meta"][RELATED] == {"taskId": task["taskId"]}
        raw.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
    text = (await raw.reply(waiting))["result"]["content"][0]["text"]
    assert json.loads(text) == ["model-1", "file:///home/script"]


@rule("BP-167", until=V2026_07_28)
async def test_a_call_that_asks_first_is_a_task_from_its_start(rig: Rig) -> None:
    raw = await rig.able_line("tasks")
    task = await begin(raw, "greet_later")
    waiting = raw.start("tasks/result", {"taskId": task["taskId"]})
    for message, answer in (("What is your name?", "Ada"), ("How are you?", "well")):
        question = await raw.server_request("elicitation/create")
        assert question["params"]["message"] == message
        raw.received.remove(question)
        raw.send({"jsonrpc": "2.0", "id": question["id"], "result": accept(value=answer)})
    text = (await raw.reply(waiting))["result"]["content"][0]["text"]
    assert text == "Hello, Ada, you are well"


# -- our client ------------------------------------------------------------------------------


@rule("BP-167", until=V2026_07_28)
async def test_our_client_calls_a_tool_that_must_be_a_task_as_any_other(rig: Rig) -> None:
    client, callbacks, _ = await rig.able_client("tasks")
    callbacks.content = {"value": True}
    assert (await client.call_tool("confirm_delete", {"filename": "e"})).text == "e deleted"
    failed = await client.call_tool("failing_job")
    assert (failed.is_error, failed.text) == (True, "The job is lost.")
    with pytest.raises(PeerError, match="cannot be done"):
        await client.call_tool("protocol_error_job")
    callbacks.content = {"value": "fine"}
    assert (await client.call_tool("multi_input")).text == "fine and fine"


@rule("BP-167", until=V2026_07_28)
async def test_our_client_holds_a_task_and_cancels_it(rig: Rig) -> None:
    client, _, _ = await rig.able_client("tasks")
    key = fresh_key(rig.raw)
    call = await client.call_tool_as_task("held", {"key": key}, ttl=60)
    assert call.status == "working"
    assert call.id in {each.task_id for each in await client.list_tasks()}
    await client.call_tool("release", {"key": key})
    assert (await call.result()).text == f"held {key}"
    other = await client.call_tool_as_task("held", {"key": f"{key}-2"})
    await other.cancel()
    with pytest.raises((Cancelled, PeerError)):
        await other.result()
    assert other.status == "cancelled"


@rule("BP-167", "BP-036", until=CORE)
async def test_client_calls_a_task_tool_directly_before_2025_11_25(rig: Rig) -> None:
    client, _, _ = await rig.able_client("tasks")
    call = await client.call_tool_as_task("slow_compute", {"seconds": 0, "label": "x"})
    assert (call.id, call.done()) == (None, True)
    assert (await call.result()).text == "computed x"
