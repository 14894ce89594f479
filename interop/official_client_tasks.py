"""Calls to our server that become tasks, made by the official client.

Of 2026-07-28 with an extension to it, see `official_tasks`; of 2025-11-25 with what it has types
for. Elsewhere there are no tasks, and the same tools are called.
"""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from trunkline.spec.revisions import V2025_11_25, V2026_07_28, Window

from .checks import ANY, Checks, expect, raised, until
from .official_client import STRUCTURED, Talk, said, until_given_up
from .official_tasks import cancel, show
from .recordings import sent

__all__ = ["CHECKS", "CORE_CHECKS"]

PER_REQUEST = Window(V2026_07_28)
CORE = Window(V2025_11_25, V2026_07_28)
STATUS = "notifications/tasks/status"
CHECKS = Checks()
# For connections without a `Client`, which keeps to itself what is below its verbs.
CORE_CHECKS = Checks()


@CHECKS.about(ANY)
async def long_work_has_a_result(talk: Talk) -> None:
    """A call that may become a task has its result in the end, as one or as none."""
    expect(await said(talk, "brew", {"cups": 3}), "3 cups")
    if PER_REQUEST.holds(talk.revision):
        created = talk.tasks.created[-1]
        expect((created.status, talk.tasks.seen[-1]), ("working", "completed"))


@CHECKS.about(STRUCTURED)
async def long_work_asks(talk: Talk) -> None:
    """What is asked in the middle is asked of the same callbacks."""
    talk.tasks.seen.clear()
    expect(await said(talk, "brew_asking"), "Oslo Which way? That way.")
    if PER_REQUEST.holds(talk.revision):
        expect("input_required" in talk.tasks.seen, True, str(talk.tasks.seen))


@CHECKS.about(ANY)
async def long_work_fails(talk: Talk) -> None:
    """A tool that failed has a result that says so, and its task has completed."""
    result = await talk.caller.call_tool("brew_failing", {})
    expect((result.is_error, result.content[0].text), (True, "no beans"))
    if PER_REQUEST.holds(talk.revision):
        expect(talk.tasks.seen[-1], "completed")


@CHECKS.about(PER_REQUEST)
async def a_task_is_cancelled(talk: Talk) -> None:
    """The handler of a task that is cancelled stops."""
    before = int(await said(talk, "given_up"))
    task_id = await _begun(talk, "brew_slow", {})
    expect((await show(talk.session, task_id)).status, "working")
    await cancel(talk.session, task_id)
    await until_given_up(talk, before + 1)
    expect((await show(talk.session, task_id)).status, "cancelled")


@CHECKS.about(PER_REQUEST)
async def a_task_of_nobody_is_refused(talk: Talk) -> None:
    """A task that is not there is -32602."""
    for work in (show(talk.session, "none"), cancel(talk.session, "none")):
        expect((await raised(work, MCPError)).error.code, -32602)


@CHECKS.about(PER_REQUEST)
async def a_task_is_told_of(talk: Talk) -> None:
    """How a task comes along is told on a stream that names it, to the end."""
    task_id = await _begun(talk, "brew_asking", {})
    wanted = types.SubscriptionFilter.model_validate({"taskIds": [task_id]})
    params = types.SubscriptionsListenRequestParams(notifications=wanted)
    request = types.SubscriptionsListenRequest(params=params)
    # By hand: the SDK passes on what else is in a filter, and has no name for it.
    listening = asyncio.create_task(
        talk.session.send_request(request, types.SubscriptionsListenResult)
    )
    try:
        await until(lambda: bool(talk.acknowledged), "word that the stream is open")
        expect((talk.acknowledged[-1].model_extra or {}).get("taskIds"), [task_id], "honoured")
        await cancel(talk.session, task_id)
        await until(lambda: any(each.status == "cancelled" for each in talk.tasks.told), "end")
        expect({each.task_id for each in talk.tasks.told}, {task_id})
    finally:
        listening.cancel()
        await asyncio.wait([listening])


@CHECKS.about(PER_REQUEST)
async def rounds_come_before_a_task(talk: Talk) -> None:
    """A call that asks, becomes a task, and asks again, each in its way."""
    talk.tasks.seen.clear()
    expect(await said(talk, "brew_later"), "Oslo True accept")
    expect("input_required" in talk.tasks.seen, True, str(talk.tasks.seen))


@CHECKS.about(PER_REQUEST)
async def a_tool_may_be_a_task_or_nothing(talk: Talk) -> None:
    """What is never a mere call is a task for a client that can have one."""
    expect(await said(talk, "brew_only"), "brewed")


async def _begun(talk: Talk, name: str, arguments: dict[str, Any]) -> str:
    """Return the task that a call becomes, which is then left alone."""
    talk.tasks.leaves_tasks = True
    try:
        expect(await said(talk, name, arguments), "left")
    finally:
        talk.tasks.leaves_tasks = False
    return talk.tasks.created[-1].task_id


# -- 2025-11-25 ------------------------------------------------------------------------------


@CHECKS.about(CORE)
async def a_call_asks_to_be_a_task(talk: Talk) -> None:
    """The verb of the SDK that sends `task` takes a task for an answer."""
    params = types.CallToolRequestParams(
        name="brew", arguments={"cups": 3}, task=types.TaskMetadata(ttl=60_000)
    )
    request = types.CallToolRequest(params=params)
    told = len(sent(talk.recording, "server", STATUS))
    try:
        created = await talk.session.send_request(request, types.CreateTaskResult)
        expect(created.task.status, "working")
    finally:
        # A message that comes while the SDK closes its event stream is a BrokenResourceError there.
        await until(lambda: len(sent(talk.recording, "server", STATUS)) > told, "end of the task")


@CORE_CHECKS.about(CORE)
async def a_task_of_the_core_is_followed(talk: Talk) -> None:
    """What our server says of a task fits the types that the SDK has for it, to the result."""
    task = await _asked(talk, "brew", {"cups": 3})
    expect((task.status, task.ttl), ("working", 60_000))
    params = types.GetTaskRequestParams(task_id=task.task_id)
    shown = await talk.session.send_request(
        types.GetTaskRequest(params=params), types.GetTaskResult
    )
    expect(shown.task_id, task.task_id)
    result = await _result(talk, task.task_id)
    expect(result.content[0].text, "3 cups")
    shown = await talk.session.send_request(
        types.GetTaskRequest(params=params), types.GetTaskResult
    )
    expect(shown.status, "completed")
    listed = await talk.session.send_request(types.ListTasksRequest(), types.ListTasksResult)
    expect(task.task_id in [each.task_id for each in listed.tasks], True, "in the list")


@CORE_CHECKS.about(CORE)
async def a_task_of_the_core_asks(talk: Talk) -> None:
    """What a task asks is asked on the wire, while its result is waited for."""
    task = await _asked(talk, "brew_asking", {})
    result = await _result(talk, task.task_id)
    expect(result.content[0].text, "Oslo Which way? That way.")
    related = (talk.asked[-1].meta or {}).get("io.modelcontextprotocol/related-task")
    expect(related, {"taskId": task.task_id}, "which task it is about")


@CORE_CHECKS.about(CORE)
async def a_task_of_the_core_is_cancelled(talk: Talk) -> None:
    """A task that is cancelled is so at once, and cannot be again."""
    before = int(await said(talk, "given_up"))
    task = await _asked(talk, "brew_slow", {})
    params = types.CancelTaskRequestParams(task_id=task.task_id)
    request = types.CancelTaskRequest(params=params)
    ended = await talk.session.send_request(request, types.CancelTaskResult)
    expect(ended.status, "cancelled")
    await until_given_up(talk, before + 1)
    error = await raised(talk.session.send_request(request, types.CancelTaskResult), MCPError)
    expect(error.error.code, -32602)


async def _asked(talk: Talk, name: str, arguments: dict[str, Any]) -> types.Task:
    """Call a tool as a task, below the verb that would refuse the answer."""
    params = {"name": name, "arguments": arguments, "task": {"ttl": 60_000}}
    assert talk.dispatcher is not None
    raw = await talk.dispatcher.send_raw_request("tools/call", params, {})
    return types.CreateTaskResult.model_validate(raw).task


async def _result(talk: Talk, task_id: str) -> types.CallToolResult:
    params = types.GetTaskPayloadRequestParams(task_id=task_id)
    request = types.GetTaskPayloadRequest(params=params)
    result: types.CallToolResult = await talk.session.send_request(request, types.CallToolResult)
    return result
