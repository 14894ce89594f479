"""Calls that wait for a task to end: they block, and take up nothing but themselves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from tests.unit.server.task_talk import CORE, RELATED, talking
from trunkline import Server, ServerLimits, TaskSettings
from trunkline.engine.tasks import runner
from trunkline.store import Key, MemoryStore, StoreUnavailable


@pytest.fixture(autouse=True)
def _never_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found only by looking every few seconds is not found; some tests look often."""
    monkeypatch.setattr(runner, "CHECK_INTERVAL_S", 3600.0)


def waiting_server(**options: Any) -> tuple[Server, asyncio.Event]:
    app, gate = Server("test", **options), asyncio.Event()

    @app.tool(task="optional")
    async def work() -> dict[str, int]:
        await gate.wait()
        return {"a": 1}

    return app, gate


def test_a_call_for_a_result_is_answered_what_the_request_would_have_been() -> None:
    async def main() -> None:
        app, gate = waiting_server()
        async with talking(app, CORE) as talk:
            task = await talk.begin("work")
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            await until_async(lambda: len(app._core.services.tasks.result_waiters) == 1)
            assert app._core.runtime.in_flight == 0
            gate.set()
            result = (await talk.wire.answer(waiting))["result"]
            direct = await talk.ask("tools/call", name="work")
            assert result.pop("_meta") == {RELATED: {"taskId": task["taskId"]}}
            assert result == direct
            # Asked again it is the same.
            again = await talk.ask("tasks/result", taskId=task["taskId"])
            assert again["structuredContent"] == {"a": 1}

    asyncio.run(main())


def test_calls_for_results_take_no_place_among_handlers() -> None:
    async def main() -> None:
        app, gate = waiting_server(limits=ServerLimits(in_flight=1, in_flight_overall=1))
        async with talking(app, CORE) as talk:
            task = await talk.begin("work")
            calls = [talk.send("tasks/result", taskId=task["taskId"]) for _ in range(5)]
            assert (await talk.ask("tasks/get", taskId=task["taskId"]))["status"] == "working"
            gate.set()
            for id in calls:
                assert "result" in await talk.wire.answer(id)

    asyncio.run(main())


def test_a_call_for_a_result_can_be_cancelled() -> None:
    async def main() -> None:
        app, gate = waiting_server(tasks=TaskSettings(waiting_results=1))
        async with talking(app, CORE) as talk:
            task = await talk.begin("work")
            id = talk.send("tasks/result", taskId=task["taskId"])
            await until_async(lambda: len(app._core.services.tasks.result_waiters) == 1)
            talk.wire.tell("notifications/cancelled", {"requestId": id})
            # It counts no more: there is room for another.
            other = talk.send("tasks/result", taskId=task["taskId"])
            await asyncio.sleep(0.02)
            gate.set()
            assert "result" in await talk.wire.answer(other)
            assert [each for each in talk.wire.got if each.get("id") == id] == []
            assert (await talk.until(task))["status"] == "completed"

    asyncio.run(main())


def test_calls_that_wait_are_bounded() -> None:
    async def main() -> None:
        app, gate = waiting_server(tasks=TaskSettings(waiting_results=2))
        async with talking(app, CORE) as talk:
            task = await talk.begin("work")
            calls = [talk.send("tasks/result", taskId=task["taskId"]) for _ in range(2)]
            await until_async(lambda: len(app._core.services.tasks.result_waiters) == 2)
            error = await talk.refused("tasks/result", taskId=task["taskId"])
            assert error["code"] == -32603
            assert error["data"]["retryAfterMs"] > 0
            gate.set()
            for id in calls:
                assert "result" in await talk.wire.answer(id)
            assert len(app._core.services.tasks.result_waiters) == 0

    asyncio.run(main())


def test_calls_of_one_client_leave_room_for_others() -> None:
    async def main() -> None:
        app, gate = waiting_server(tasks=TaskSettings(waiting_results=4))
        runtime, waiters = app._core.runtime, app._core.services.tasks.result_waiters
        async with talking(app, CORE) as eve:
            (first,) = runtime.connections
            first.use_account(runtime.accounts.open("eve"))
            async with talking(app, CORE) as ann:
                (second,) = set(runtime.connections) - {first}
                second.use_account(runtime.accounts.open("ann"))
                task, other = await eve.begin("work"), await ann.begin("work")
                calls = [eve.send("tasks/result", taskId=task["taskId"]) for _ in range(2)]
                await until_async(lambda: len(waiters) == 2)
                error = await eve.refused("tasks/result", taskId=task["taskId"])
                assert error["code"] == -32603
                waiting = ann.send("tasks/result", taskId=other["taskId"])
                await until_async(lambda: len(waiters) == 3)
                gate.set()
                assert "result" in await ann.wire.answer(waiting)
                for id in calls:
                    assert "result" in await eve.wire.answer(id)

    asyncio.run(main())


def test_a_lost_connection_releases_its_calls() -> None:
    async def main() -> None:
        app, gate = waiting_server()
        async with talking(app, CORE) as talk:
            task = await talk.begin("work")
        async with talking(app, CORE) as talk:
            talk.send("tasks/result", taskId=task["taskId"])
            await until_async(lambda: len(app._core.services.tasks.result_waiters) == 1)
        assert len(app._core.services.tasks.result_waiters) == 0
        assert app._core.services.tasks._requestors == {}
        gate.set()

    asyncio.run(main())


def test_a_call_that_a_store_has_failed_does_not_wait() -> None:
    class Fading(MemoryStore):
        gets = 1000

        async def get(self, key: Key) -> Any:
            self.gets -= 1
            if self.gets < 0:
                raise StoreUnavailable("away")
            return await super().get(key)

    async def main() -> None:
        store = Fading()
        app, gate = waiting_server(store=store)
        async with talking(app, CORE) as talk:
            task = await talk.begin("work")
            store.gets = 1  # enough to find the task, and not to look at it again
            error = await talk.refused("tasks/result", taskId=task["taskId"])
            assert error["data"]["retryAfterMs"] > 0
            assert len(app._core.services.tasks.result_waiters) == 0
            store.gets = 1000
            gate.set()
            assert "result" in await talk.reply("tasks/result", taskId=task["taskId"])

    asyncio.run(main())


def test_one_requestor_does_not_take_the_room_of_all() -> None:
    async def main() -> None:
        app, gate = waiting_server(tasks=TaskSettings(waiting_results=3, waiting_results_each=2))
        async with talking(app, CORE) as one, talking(app, CORE) as two:
            task = await one.begin("work")
            calls = [one.send("tasks/result", taskId=task["taskId"]) for _ in range(2)]
            await until_async(lambda: len(app._core.services.tasks.result_waiters) == 2)
            error = await one.refused("tasks/result", taskId=task["taskId"])
            assert error["data"]["retryAfterMs"] > 0
            other = two.send("tasks/result", taskId=task["taskId"])
            await until_async(lambda: len(app._core.services.tasks.result_waiters) == 3)
            gate.set()
            for talk, id in [*((one, each) for each in calls), (two, other)]:
                assert "result" in await talk.wire.answer(id)

    asyncio.run(main())


@pytest.mark.parametrize("how", ["stop", "end of input"])
def test_waiting_tasks_result_is_answered_within_the_grace_period(how: str) -> None:
    async def main() -> None:
        app, gate = waiting_server(limits=ServerLimits(grace=30, linger=30))
        async with talking(app, CORE) as talk:
            task = await talk.begin("work")
            id = talk.send("tasks/result", taskId=task["taskId"])
            await until_async(lambda: len(app._core.services.tasks.result_waiters) == 1)
            if how == "stop":
                app.stop()
            else:
                next(iter(app._core.runtime.connections))._input_ended(None)
            await asyncio.sleep(0.02)
            assert [each for each in talk.wire.got if each.get("id") == id] == []
            gate.set()
            assert "result" in await talk.wire.answer(id)
        await until_async(lambda: not app._core.runtime.is_open)

    asyncio.run(main())


@pytest.mark.parametrize("at_once", [True, False])
def test_stopping_server_answers_waiting_tasks_result_with_retry_after(at_once: bool) -> None:
    async def main() -> None:
        store = MemoryStore()
        app, gate = waiting_server(store=store)
        far, _ = waiting_server(store=store, limits=ServerLimits(grace=30 if at_once else 0.05))
        async with talking(app, CORE) as near, talking(far, CORE) as talk:
            task = await near.begin("work")
            id = talk.send("tasks/result", taskId=task["taskId"])
            await until_async(lambda: len(far._core.services.tasks.result_waiters) == 1)
            far.stop(at_once=at_once)
            error = (await talk.wire.answer(id))["error"]
            assert error["code"] == -32603
            assert error["data"]["retryAfterMs"] > 0
            gate.set()
        await until_async(lambda: not app._core.runtime.is_open)

    asyncio.run(main())


def test_a_cancelled_task_has_no_result() -> None:
    async def main() -> None:
        app, _ = waiting_server()
        async with talking(app, CORE) as talk:
            task = await talk.begin("work")
            id = talk.send("tasks/result", taskId=task["taskId"])
            await until_async(lambda: len(app._core.services.tasks.result_waiters) == 1)
            await talk.ask("tasks/cancel", taskId=task["taskId"])
            expected = {"code": -32603, "message": "The task was cancelled."}
            assert (await talk.wire.answer(id))["error"] == expected
            assert await talk.refused("tasks/result", taskId=task["taskId"]) == expected

    asyncio.run(main())
