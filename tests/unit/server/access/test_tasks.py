"""Guards of tools whose calls become tasks: at the call, and for every later request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.rigs.messages import HANDSHAKE, META, PER_REQUEST
from tests.rigs.server_connection import WAIT
from tests.unit.server.access.callers import BOTH, CallerWire, caller, connected_as
from trunkline import Context, Server, TaskSettings

pytestmark = pytest.mark.anyio

RUN = "jobs:run"
EXTENSION = "io.modelcontextprotocol/tasks"
WITH_TASKS = {
    **META,
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}},
}


class Jobs:
    def __init__(self, **options: Any) -> None:
        self.app = Server("jobs", tasks=TaskSettings(quick=0))
        self.begun: list[str] = []
        self.gate = asyncio.Event()

        @self.app.tool(task="required", **options)
        async def job(name: str) -> str:
            """Run a job."""
            self.begun.append(name)
            await self.gate.wait()
            return name


async def ask(wire: CallerWire, method: str, **params: Any) -> Any:
    wire._last += 1
    id = f"t{wire._last}"
    if wire.revision == PER_REQUEST:
        params["_meta"] = WITH_TASKS
    wire.ask(id, method, params)
    reply = await wire.answer(id)
    return reply.get("error") or reply["result"]


async def start(wire: CallerWire, name: str = "a") -> Any:
    wanted: dict[str, Any] = {} if wire.revision == PER_REQUEST else {"task": {}}
    found = await ask(wire, "tools/call", name="job", arguments={"name": name}, **wanted)
    return found if "code" in found else found.get("task", found)["taskId"]


@pytest.mark.parametrize("revision", BOTH)
async def test_a_task_is_created_and_used_with_the_scopes_of_its_tool(revision: str) -> None:
    jobs = Jobs(scopes=[RUN])
    async with connected_as(jobs.app, caller("ann"), revision) as wire:
        assert (await start(wire))["code"] == 403
        assert not jobs.app._core.services.tasks.running
        wire.become(caller("ann", RUN))
        id = await start(wire)
        assert (await ask(wire, "tasks/get", taskId=id))["status"] == "working"
        methods = ["tasks/get", "tasks/cancel"]
        methods += ["tasks/result"] if revision == HANDSHAKE else []
        wire.become(caller("ann"))
        for method in methods:
            refused = await ask(wire, method, taskId=id)
            assert (refused["code"], refused["data"]["requiredScopes"]) == (403, [RUN])
        if revision == PER_REQUEST:
            refused = await ask(wire, "tasks/update", taskId=id, inputResponses={})
            assert refused["code"] == 403
        else:
            assert (await ask(wire, "tasks/list"))["tasks"] == []
        # For another principal it does not exist, whatever its scopes.
        wire.become(caller("bob", RUN))
        for method in methods:
            assert (await ask(wire, method, taskId=id))["code"] == -32602
        wire.become(caller("ann", RUN))
        if revision == HANDSHAKE:
            assert [each["taskId"] for each in (await ask(wire, "tasks/list"))["tasks"]] == [id]
        jobs.gate.set()
        async with asyncio.timeout(WAIT):
            while (await ask(wire, "tasks/get", taskId=id))["status"] != "completed":
                await asyncio.sleep(0.005)


@pytest.mark.parametrize("revision", BOTH)
async def test_the_scopes_of_a_task_outlive_its_tool(revision: str) -> None:
    jobs = Jobs(scopes=[RUN])
    async with connected_as(jobs.app, caller("ann", RUN), revision) as wire:
        id = await start(wire)
        jobs.app.remove_tool("job")
        wire.become(caller("ann"))
        assert (await ask(wire, "tasks/get", taskId=id))["code"] == 403
        wire.become(caller("ann", RUN))
        assert "taskId" in await ask(wire, "tasks/get", taskId=id)
        jobs.gate.set()


@pytest.mark.parametrize("revision", BOTH)
async def test_the_task_of_a_tool_that_is_hidden_now_does_not_exist(revision: str) -> None:
    shown = True
    jobs = Jobs(visible=lambda context: shown)
    async with connected_as(jobs.app, caller("ann"), revision) as wire:
        id = await start(wire)
        shown = False
        hidden = await ask(wire, "tasks/get", taskId=id)
        assert hidden == await ask(wire, "tasks/get", taskId=id[:-1] + "x")
        jobs.gate.set()


@pytest.mark.parametrize("quick", [0, 0.01])
async def test_a_call_that_allow_refuses_never_becomes_a_task(quick: float) -> None:
    decided = asyncio.Event()

    async def allow(context: Context, name: str) -> bool:
        await decided.wait()
        return name == "good"

    app, begun = Server("jobs", tasks=TaskSettings(quick=quick)), []
    gate = asyncio.Event()

    @app.tool(task="optional", allow=allow)
    async def job(name: str) -> str:
        """Run a job."""
        begun.append(name)
        await gate.wait()
        return name

    async with connected_as(app, caller("ann"), PER_REQUEST) as wire:
        for name in ("bad", "good"):
            params = {"name": "job", "arguments": {"name": name}, "_meta": WITH_TASKS}
            wire.ask(name, "tools/call", params)
        # Longer than `quick`: it is decided after that time.
        for _ in range(5):
            await asyncio.sleep(0.01)
        assert not app._core.services.tasks.running
        assert wire.got == []
        decided.set()
        assert (await wire.answer("bad"))["error"]["code"] == 403
        assert (await wire.answer("good"))["result"]["resultType"] == "task"
        # With no quick time a call is a task before its handler has begun.
        async with asyncio.timeout(WAIT):
            while not begun:
                await asyncio.sleep(0)
        assert begun == ["good"]
        gate.set()


async def test_the_changes_of_a_task_are_sent_to_callers_with_its_scopes() -> None:
    jobs = Jobs(scopes=[RUN])
    async with connected_as(jobs.app, caller("ann", RUN), PER_REQUEST) as wire:
        id = await start(wire)
        for number, scopes in enumerate(((), (RUN,))):
            wire.become(caller("ann", *scopes))
            wire.got.clear()
            params = {"notifications": {"taskIds": [id]}, "_meta": WITH_TASKS}
            wire.ask(f"s{number}", "subscriptions/listen", params)
            await wire.until(1)
            honoured = wire.got[0]["params"]["notifications"]
            assert honoured.get("taskIds", []) == ([id] if scopes else [])
        jobs.gate.set()
