"""Calls that go on as tasks: kept before they are told of, ended once, and never left behind."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from tests.rigs.conditions import until_async
from tests.rigs.messages import META, PER_REQUEST
from tests.unit.server.task_talk import CORE, EXTENSION, Talk, accept, talking
from trunkline import Context, ErrorKind, RequestError, Server, ServerLimits, TaskSettings
from trunkline.engine.tasks import runner as task_runner
from trunkline.store import Key, MemoryStore, StoreFull, StoreLimits, StoreUnavailable

GONE = "The server that ran the task has ended."
NOT_FOUND = {"code": -32602, "message": "Task not found"}


@pytest.fixture(autouse=True)
def _never_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found only by looking every few seconds is not found; some tests look often."""
    monkeypatch.setattr(task_runner, "CHECK_INTERVAL_S", 3600.0)


class Bench:
    """A server whose one tool waits until a test lets it go on."""

    def __init__(self, **options: Any) -> None:
        self.app = app = Server("bench", **options)
        self.gate = asyncio.Event()
        self.ended: list[str] = []
        self.contexts: list[Context] = []

        @app.tool(task="required")
        async def work(context: Context, label: str = "x") -> str:
            self.contexts.append(context)
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.ended.append(f"{label} cancelled")
                raise
            self.ended.append(label)
            return label

        @app.tool(task="required")
        async def ask(context: Context) -> str:
            try:
                answer = await context.elicit("Who?", str, key="who")
            except asyncio.CancelledError:
                self.ended.append("ask cancelled")
                raise
            return f"for {answer.content}"


def others() -> set[asyncio.Task[Any]]:
    """Asyncio tasks beside the test itself."""
    return {each for each in asyncio.all_tasks() if each is not asyncio.current_task()}


# -- beginning -------------------------------------------------------------------------------


def test_a_task_is_in_the_store_before_its_client_learns_of_it() -> None:
    class Slow(MemoryStore):
        answered_early = False
        talk: Talk

        async def compare_and_set(self, key: Key, value: bytes, **options: Any) -> int | None:
            if key.kind == "task" and options["version"] is None:
                await asyncio.sleep(0.02)
                self.answered_early = bool(self.talk.wire.got)
            return await super().compare_and_set(key, value, **options)

    async def main() -> None:
        store = Slow()
        bench = Bench(store=store)
        async with talking(bench.app, PER_REQUEST) as talk:
            store.talk = talk
            task = await talk.begin("work")
            assert not store.answered_early
            assert await store.get(Key("", "task", task["taskId"])) is not None
            bench.gate.set()

    asyncio.run(main())


def test_a_request_that_is_cancelled_while_it_becomes_a_task_leaves_none() -> None:
    class Slow(MemoryStore):
        begun = False

        async def compare_and_set(self, key: Key, value: bytes, **options: Any) -> int | None:
            made = await super().compare_and_set(key, value, **options)
            self.begun = True
            await asyncio.sleep(0.05)
            return made

    async def main() -> None:
        store = Slow()
        bench = Bench(store=store)
        async with talking(bench.app, CORE) as talk:
            id = talk.send("tools/call", name="work", task={})
            await until_async(lambda: store.begun)
            talk.wire.tell("notifications/cancelled", {"requestId": id})
            await until_async(
                lambda: (
                    not bench.app._core.services.tasks.running
                    and not bench.app._core.runtime.in_flight
                )
            )
            await until_async(lambda: not bench.app._core.services.tasks._spawned)
            for kind in ("task", "task-of"):
                assert (await store.scan(Key("", kind, ""))).keys == ()
            assert [each for each in talk.wire.got if each.get("id") == id] == []
        assert bench.contexts == []

    asyncio.run(main())


def test_to_cancel_the_request_of_a_task_does_nothing() -> None:
    async def main() -> None:
        bench = Bench()
        async with talking(bench.app, CORE) as talk:
            id = talk.send("tools/call", name="work", task={})
            task = (await talk.wire.answer(id))["result"]["task"]
            talk.wire.tell("notifications/cancelled", {"requestId": id})
            assert (await talk.ask("tasks/get", taskId=task["taskId"]))["status"] == "working"
            bench.gate.set()
            assert (await talk.until(task))["status"] == "completed"

    asyncio.run(main())


def test_a_task_takes_no_place_among_the_handlers_of_a_connection() -> None:
    async def main() -> None:
        bench = Bench(limits=ServerLimits(in_flight=1, in_flight_overall=1))
        async with talking(bench.app, PER_REQUEST) as talk:
            for _ in range(5):
                await talk.begin("work")
            assert bench.app._core.runtime.in_flight == 0
            bench.gate.set()

    asyncio.run(main())


def test_a_call_that_waited_for_a_place_starts_when_another_becomes_a_task() -> None:
    async def main() -> None:
        app = Server("test", limits=ServerLimits(in_flight=1))
        started, gate = asyncio.Event(), asyncio.Event()

        @app.tool(task="optional")
        async def work(context: Context) -> str:
            started.set()
            await gate.wait()
            assert await context.become_task()
            await asyncio.Event().wait()
            raise AssertionError("it is cancelled")

        @app.tool
        async def next_one() -> str:
            return "next"

        async with talking(app, PER_REQUEST) as talk:
            first = talk.send("tools/call", name="work")
            await started.wait()
            second = talk.send("tools/call", name="next_one")
            gate.set()
            task = (await talk.wire.answer(first))["result"]
            reply = await talk.wire.answer(second)
            assert reply["result"]["content"][0]["text"] == "next"
            assert (await talk.ask("tasks/get", taskId=task["taskId"]))["status"] == "working"
            await talk.ask("tasks/cancel", taskId=task["taskId"])

    asyncio.run(main())


def test_tasks_at_work_are_bounded_for_all_and_for_each() -> None:
    async def main() -> None:
        bench = Bench(tasks=TaskSettings(running=3, running_each=2))
        async with talking(bench.app, PER_REQUEST) as one, talking(bench.app, CORE) as two:
            for _ in range(2):
                await one.begin("work")
            error = await one.refused("tools/call", name="work")
            assert error["code"] == -32603
            assert error["data"]["retryAfterMs"] > 0
            await two.begin("work")
            error = await two.refused("tools/call", name="work", task={})
            assert error["code"] == -32603
            bench.gate.set()
            await until_async(lambda: not bench.app._core.services.tasks.running)
            await one.begin("work")

    asyncio.run(main())


def test_tasks_of_one_client_leave_room_for_others() -> None:
    async def main() -> None:
        bench = Bench(tasks=TaskSettings(running=8, running_each=8))
        runtime = bench.app._core.runtime
        talks = []
        async with AsyncExitStack() as stack:
            for client in ("eve", "eve", "ann"):
                before = set(runtime.connections)
                talks.append(await stack.enter_async_context(talking(bench.app, CORE)))
                (connection,) = set(runtime.connections) - before
                connection.use_account(runtime.accounts.open(client))
            eve, again, ann = talks
            for each in (eve, eve, again, again):
                await each.begin("work")
            error = await again.refused("tools/call", name="work", task={})
            assert (error["code"], error["data"]["retryAfterMs"]) == (-32603, 1000)
            task = await ann.begin("work")
            bench.gate.set()
            assert (await ann.until(task))["status"] == "completed"
            await until_async(lambda: not bench.app._core.services.tasks.running)
            await again.begin("work")

    asyncio.run(main())


class Failing(MemoryStore):
    """A store that can be told not to answer."""

    def __init__(self, limits: StoreLimits | None = None) -> None:
        super().__init__(limits or StoreLimits())
        self.fails: dict[str, BaseException] = {}

    async def compare_and_set(self, key: Key, value: bytes, **options: Any) -> int | None:
        self._fail("compare_and_set" if key.kind == "task" else "")
        return await super().compare_and_set(key, value, **options)

    async def get(self, key: Key) -> Any:
        self._fail("get")
        return await super().get(key)

    async def subscribe(self, *channels: Key) -> Any:
        self._fail("subscribe")
        return await super().subscribe(*channels)

    async def put(self, key: Key, value: bytes, *, ttl: float | None) -> int:
        self._fail("put")
        return await super().put(key, value, ttl=ttl)

    def _fail(self, what: str) -> None:
        if what in self.fails:
            raise self.fails[what]


@pytest.mark.parametrize("where", ["compare_and_set", "subscribe", "put"])
@pytest.mark.parametrize("why", [StoreUnavailable("away"), StoreFull("keys", 1)])
def test_a_task_that_cannot_be_kept_is_refused(where: str, why: Exception) -> None:
    async def main() -> None:
        store = Failing()
        bench = Bench(store=store)
        async with talking(bench.app, PER_REQUEST) as talk:
            store.fails[where] = why
            error = await talk.refused("tools/call", name="work")
            assert error["code"] == -32603
            assert error["data"]["retryAfterMs"] > 0
            assert "away" not in str(error)
            assert not bench.app._core.services.tasks.running
            assert bench.contexts == []
            del store.fails[where]
            bench.gate.set()
            await talk.begin("work")
        await until_async(lambda: others() == set())

    asyncio.run(main())


def test_unavailable_store_is_answered_with_retry_after() -> None:
    async def main() -> None:
        store = Failing()
        bench = Bench(store=store)
        async with talking(bench.app, PER_REQUEST) as talk:
            task = await talk.begin("work")
            store.fails["get"] = StoreUnavailable("secret address")
            error = await talk.refused("tasks/get", taskId=task["taskId"])
            assert error["code"] == -32603
            assert error["data"]["retryAfterMs"] > 0
            assert "secret" not in str(error)
            store.fails.clear()
            bench.gate.set()
            await talk.until(task)

    asyncio.run(main())


# -- ending ----------------------------------------------------------------------------------


def test_a_task_goes_on_when_its_connection_is_gone() -> None:
    async def main() -> None:
        bench = Bench()
        for revision in (PER_REQUEST, CORE):
            async with talking(bench.app, revision) as talk:
                task = await talk.begin("work", label=revision)
            bench.gate.set()
            async with talking(bench.app, revision) as talk:
                assert (await talk.until(task))["status"] == "completed"
            bench.gate.clear()
        assert bench.ended == [PER_REQUEST, CORE]

    asyncio.run(main())


def test_tasks_hold_the_lifespan_open_and_leave_nothing_behind() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(app: Server) -> AsyncIterator[str]:
        seen.append("begins")
        yield "state"
        seen.append("ends")

    async def main() -> None:
        store = MemoryStore()
        bench = Bench(lifespan=lifespan, store=store)
        async with talking(bench.app, PER_REQUEST) as talk:
            await talk.begin("work")
        await asyncio.sleep(0)
        assert seen == ["begins"]
        assert bench.app.state == "state"
        bench.gate.set()
        await until_async(lambda: seen == ["begins", "ends"])
        await until_async(lambda: others() == set())
        assert (await store.scan(Key("", "task-runner", ""))).keys == ()
        assert not bench.app._core.runtime.is_open
        # And it can be served again.
        async with talking(bench.app, PER_REQUEST) as talk:
            assert (await talk.until(await talk.begin("work")))["status"] == "completed"
        await until_async(lambda: others() == set())

    asyncio.run(main())


def test_a_task_is_gone_when_its_time_has_passed_and_its_handler_is_stopped() -> None:
    async def main() -> None:
        bench = Bench(tasks=TaskSettings(ttl=0.2))
        async with talking(bench.app, PER_REQUEST) as talk:
            task = await talk.begin("work")
            await until_async(lambda: not bench.app._core.services.tasks.running)
            # Beside a busy core the time may pass before the handler begins.
            assert bench.ended == ["x cancelled" for _ in bench.contexts]
            assert await talk.refused("tasks/get", taskId=task["taskId"]) == NOT_FOUND
            assert await talk.refused("tasks/cancel", taskId=task["taskId"]) == NOT_FOUND
        async with talking(bench.app, CORE) as talk:
            task = await talk.begin("work")
            assert await talk.refused("tasks/result", taskId=task["taskId"]) == NOT_FOUND
            assert (await talk.ask("tasks/list"))["tasks"] == []
        await until_async(lambda: others() == set())

    asyncio.run(main())


def test_result_of_an_expired_task_is_not_found_before_the_next_check() -> None:
    async def main() -> None:
        bench = Bench(tasks=TaskSettings(ttl=60))
        bench.gate.set()
        async with talking(bench.app, PER_REQUEST) as talk:
            task = await talk.begin("work")
            assert (await talk.until(task))["status"] == "completed"
            bench.app._core.services.tasks.records.clock = lambda: time.time() + 59
            assert (await talk.until(task))["status"] == "completed"
            bench.app._core.services.tasks.records.clock = lambda: time.time() + 61
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                error = await talk.refused(method, taskId=task["taskId"], inputResponses={})
                assert error == NOT_FOUND

    asyncio.run(main())


def test_a_client_may_ask_for_hardly_any_time() -> None:
    async def main() -> None:
        bench = Bench()
        async with talking(bench.app, CORE) as talk:
            result = await talk.ask("tools/call", name="work", task={"ttl": 1})
            assert result["task"]["ttl"] == 1
            await until_async(lambda: not bench.app._core.services.tasks.running)
            error = await talk.refused("tasks/get", taskId=result["task"]["taskId"])
            assert error == NOT_FOUND

    asyncio.run(main())


def test_a_result_that_is_too_large_to_be_kept_is_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        bench = Bench(store=MemoryStore(StoreLimits(value_bytes=4096)))
        bench.gate.set()
        async with talking(bench.app, PER_REQUEST) as talk:
            over = await talk.until(await talk.begin("work", label="y" * 5000))
            assert over["status"] == "failed"
            assert over["error"]["message"] == "The result is too large to store."
        async with talking(bench.app, CORE) as talk:
            task = await talk.begin("work", label="y" * 5000)
            error = await talk.refused("tasks/result", taskId=task["taskId"])
            assert error["message"] == "The result is too large to store."

    asyncio.run(main())
    assert "yyyy" not in caplog.text


def test_an_error_that_is_too_large_to_be_kept_is_another() -> None:
    async def main() -> None:
        bench = Bench(store=MemoryStore(StoreLimits(value_bytes=4096)))

        @bench.app.tool(task="required")
        async def refuse() -> str:
            raise RequestError(ErrorKind.INTERNAL_ERROR, "no", data="y" * 5000)

        async with talking(bench.app, PER_REQUEST) as talk:
            over = await talk.until(await talk.begin("refuse"))
            assert over["error"]["message"] == "The result is too large to store."

    asyncio.run(main())


def test_task_whose_outcome_could_not_be_stored_is_reported_as_failed() -> None:
    async def main() -> None:
        store = Failing()
        bench = Bench(store=store)
        async with talking(bench.app, PER_REQUEST) as talk:
            task = await talk.begin("work")
            store.fails["compare_and_set"] = StoreFull("total_bytes", 1)
            bench.gate.set()
            await until_async(lambda: not bench.app._core.services.tasks.running)
            store.fails.clear()
            found = await talk.ask("tasks/get", taskId=task["taskId"])
            assert (found["status"], found["error"]["message"]) == ("failed", GONE)

    asyncio.run(main())


def test_the_timer_of_a_task_ends_with_it() -> None:
    async def main() -> None:
        bench = Bench()
        async with talking(bench.app, PER_REQUEST) as talk:
            task = await talk.begin("work")
            running = bench.app._core.services.tasks.running[task["taskId"]]
            assert running.timer is not None
            assert not running.timer.cancelled()
            bench.gate.set()
            await until_async(lambda: not bench.app._core.services.tasks.running)
            assert running.timer.cancelled()

    asyncio.run(main())


def test_an_end_is_written_when_the_store_is_there_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.engine.tasks.lifecycle._MIN_RETRY_DELAY_S", 0.01)

    async def main() -> None:
        store = Failing()
        bench = Bench(store=store)
        async with talking(bench.app, PER_REQUEST) as talk:
            task = await talk.begin("work")
            store.fails["compare_and_set"] = StoreUnavailable("away")
            bench.gate.set()
            await until_async(lambda: bench.ended == ["x"])
            assert (await talk.ask("tasks/get", taskId=task["taskId"]))["status"] == "working"
            store.fails.clear()
            assert (await talk.until(task))["status"] == "completed"

    asyncio.run(main())


def test_a_cancel_that_comes_with_the_end_leaves_one_of_the_two() -> None:
    async def main() -> None:
        bench = Bench()
        async with talking(bench.app, PER_REQUEST) as talk:
            for _ in range(20):
                bench.gate.clear()
                task = await talk.begin("work")
                bench.gate.set()
                talk.send("tasks/cancel", taskId=task["taskId"])
                first = await talk.until(task)
                assert first["status"] in ("completed", "cancelled")
                assert ("result" in first) == (first["status"] == "completed")
                await until_async(lambda: not bench.app._core.services.tasks.running)
                again = await talk.until(task)
                assert (again["status"], again["lastUpdatedAt"]) == (
                    first["status"],
                    first["lastUpdatedAt"],
                )

    asyncio.run(main())


def test_a_handler_is_stopped_once_and_may_clean_up() -> None:
    async def main() -> None:
        app = Server("test", limits=ServerLimits(grace=0))
        cleaned = asyncio.Event()
        seen: list[str] = []

        @app.tool(task="required")
        async def work() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                seen.append("stopped")
                await cleaned.wait()
                seen.append("tidied up")

        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("work")
            running = app._core.services.tasks.running[task["taskId"]]
            await talk.ask("tasks/cancel", taskId=task["taskId"])
            await until_async(lambda: seen == ["stopped"])
            # Its time passes, and the server stops, while it cleans up.
            app._core.services.tasks._expire(running)
            app.stop()
            await until_async(lambda: talk.wire.ended)
            cleaned.set()
            await until_async(lambda: not app._core.services.tasks.running)
        assert seen == ["stopped", "tidied up"]

    asyncio.run(main())


def test_progress_keeps_its_token_in_the_core_form_and_is_a_message_in_the_extension() -> None:
    async def main() -> None:
        app = Server("test")
        gate = asyncio.Event()

        @app.tool(task="required")
        async def work(context: Context) -> str:
            await gate.wait()
            await context.progress(1, 2)
            await context.log("error", "a line")
            return "done"

        told = {"progressToken": "token", "io.modelcontextprotocol/logLevel": "debug"}
        async with talking(app, CORE) as talk:
            result = await talk.ask("tools/call", name="work", task={}, meta=told)
            gate.set()
            await talk.until(result["task"])
            related = {"io.modelcontextprotocol/related-task": {"taskId": result["task"]["taskId"]}}
            progress = (await talk.heard("notifications/progress"))[0]["params"]
            assert (progress["progressToken"], progress["_meta"]) == ("token", related)
            assert (await talk.heard("notifications/message"))[0]["params"]["_meta"] == related
            statuses = [
                each["params"]["status"] for each in await talk.heard("notifications/tasks/status")
            ]
            assert statuses == ["completed"]
            # Progress belongs to a task that has not ended.
            order = [each.get("method") for each in talk.wire.got]
            ended = order.index("notifications/tasks/status")
            assert order.index("notifications/progress") < ended
        async with talking(app, PER_REQUEST) as talk:
            result = await talk.ask("tools/call", name="work", meta=told)
            assert (await talk.until(result))["statusMessage"] == "1 of 2"
            assert {each.get("method") for each in talk.wire.got} == {None}

    asyncio.run(main())


def test_a_tool_on_a_thread_may_be_a_task() -> None:
    async def main() -> None:
        app = Server("test")

        @app.tool(task="required")
        def work(context: Context) -> str:
            answer = context.elicit("Who?", str).wait()
            return f"for {answer.content}"

        @app.tool(task="required", inline=True)
        def quick() -> str:
            return "quick"

        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("work")
            found = await talk.until(task, "input_required")
            key = next(iter(found["inputRequests"]))
            await talk.ask("tasks/update", taskId=task["taskId"], inputResponses={key: accept("A")})
            over = await talk.until(task)
            assert over["result"]["content"][0]["text"] == "for A"
            over = await talk.until(await talk.begin("quick"))
            assert over["result"]["content"][0]["text"] == "quick"

    asyncio.run(main())


def test_a_handler_that_does_not_wait_to_become_a_task_becomes_none() -> None:
    async def main() -> None:
        app = Server("test")
        begun: list[asyncio.Future[bool]] = []

        @app.tool(task="optional", task_start="handler")
        async def hasty(context: Context) -> str:
            begun.append(asyncio.ensure_future(context.become_task()))
            return "done"

        @app.tool(task="optional", task_start="handler")
        async def twice(context: Context) -> str:
            first, second = await asyncio.gather(context.become_task(), context.become_task())
            return f"{first} {second}"

        store = MemoryStore()
        app._core.services._store = store
        async with talking(app, PER_REQUEST) as talk:
            assert (await talk.ask("tools/call", name="hasty"))["resultType"] == "complete"
            found = await asyncio.gather(*begun, return_exceptions=True)
            assert isinstance(found[0], Exception)
            task = await talk.ask("tools/call", name="twice")
            assert (await talk.until(task))["result"]["content"][0]["text"] == "True True"
            await until_async(lambda: not app._core.services.tasks.running)
            assert len((await store.scan(Key("", "task", ""))).keys) == 1

    asyncio.run(main())


# -- what must not be lost ------------------------------------------------------------------


class Unsure(MemoryStore):
    """A store that does what it is asked, and sometimes does not say so."""

    def __init__(self) -> None:
        super().__init__()
        self.loses: Any = None
        self.lost = 0

    async def compare_and_set(self, key: Key, value: bytes, **options: Any) -> int | None:
        made = await super().compare_and_set(key, value, **options)
        if self.loses is not None and self.loses(value):
            self.loses = None
            self.lost += 1
            raise StoreUnavailable("it happened, but nobody says so")
        return made


def test_input_response_survives_a_store_write_without_confirmation() -> None:
    async def main() -> None:
        store = Unsure()
        bench = Bench(store=store)
        async with talking(bench.app, PER_REQUEST) as talk:
            task = await talk.begin("ask")
            await talk.until(task, "input_required")
            # The write that takes the answer out of the record again.
            store.loses = lambda value: b'"responses"' not in value and b'"questions"' not in value
            answers = {"who": accept("Ada")}
            await talk.ask("tasks/update", taskId=task["taskId"], inputResponses=answers)
            over = await talk.until(task)
            assert over["result"]["content"][0]["text"] == "for Ada"
        assert store.lost == 1

    asyncio.run(main())


def test_an_answer_that_is_brought_again_though_it_was_there_is_passed_on() -> None:
    async def main() -> None:
        store = Unsure()
        bench = Bench(store=store)
        async with talking(bench.app, PER_REQUEST) as talk:
            task = await talk.begin("ask")
            await talk.until(task, "input_required")
            store.loses = lambda value: b'"responses"' in value
            call = {"taskId": task["taskId"], "inputResponses": {"who": accept("Ada")}}
            assert (await talk.refused("tasks/update", **call))["data"]["retryAfterMs"] > 0
            await talk.ask("tasks/update", **call)
            over = await talk.until(task)
            assert over["result"]["content"][0]["text"] == "for Ada"

    asyncio.run(main())


@pytest.mark.parametrize("revision", [PER_REQUEST, CORE])
@pytest.mark.parametrize("how", ["again", "by a look", "by looking now and then"])
def test_cancel_written_without_confirmation_stops_the_handler(
    revision: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "by looking now and then":
        monkeypatch.setattr(task_runner, "CHECK_INTERVAL_S", 0.02)

    async def main() -> None:
        store = Unsure()
        bench = Bench(store=store)
        async with talking(bench.app, revision) as talk:
            task = await talk.begin("work")
            store.loses = lambda value: b'"cancelled"' in value
            error = await talk.refused("tasks/cancel", taskId=task["taskId"])
            assert error["data"]["retryAfterMs"] > 0
            if how == "again":
                await talk.reply("tasks/cancel", taskId=task["taskId"])
            elif how == "by a look":
                await talk.ask("tasks/get", taskId=task["taskId"])
            await until_async(lambda: bench.ended == ["x cancelled"])
            await until_async(lambda: not bench.app._core.services.tasks.running)
            assert (await talk.until(task))["status"] == "cancelled"

    asyncio.run(main())


@pytest.mark.parametrize("method", ["tasks/update", "tasks/cancel"])
def test_stored_update_or_cancel_takes_effect_after_its_request_is_cancelled(method: str) -> None:
    class Slow(MemoryStore):
        is_slow = False
        writing = False

        async def compare_and_set(self, key: Key, value: bytes, **options: Any) -> int | None:
            made = await super().compare_and_set(key, value, **options)
            if self.is_slow:
                self.writing = True
                await asyncio.sleep(0.03)
            return made

    async def main() -> None:
        store = Slow()
        bench = Bench(store=store)
        async with talking(bench.app, PER_REQUEST) as talk:
            task = await talk.begin("ask")
            await talk.until(task, "input_required")
            store.is_slow = True
            id = talk.send(method, taskId=task["taskId"], inputResponses={"who": accept("Ada")})
            await until_async(lambda: store.writing)
            talk.wire.tell("notifications/cancelled", {"requestId": id})
            await until_async(lambda: not bench.app._core.services.tasks.running)
            over = await talk.until(task)
            assert over["status"] == ("completed" if method == "tasks/update" else "cancelled")
            assert [each for each in talk.wire.got if each.get("id") == id] == []

    asyncio.run(main())


@pytest.mark.parametrize("revision", [PER_REQUEST, CORE])
def test_the_oldest_tasks_of_a_requestor_make_room_for_its_next(revision: str) -> None:
    async def main() -> None:
        store = MemoryStore()
        bench = Bench(store=store, tasks=TaskSettings(kept_each=2))
        bench.gate.set()
        async with talking(bench.app, revision) as one, talking(bench.app, revision) as two:
            other = await two.begin("work")
            await two.until(other)
            made = []
            for _ in range(4):
                made.append(await one.begin("work"))
                await one.until(made[-1])
                await until_async(lambda: not bench.app._core.services.tasks.running)
            await until_async(lambda: not bench.app._core.services.tasks._spawned)
            for task in made[:2]:
                assert await one.refused("tasks/get", taskId=task["taskId"]) == NOT_FOUND
            for task in (*made[2:], other):
                assert (await one.until(task))["status"] == "completed"
            assert len((await store.scan(Key("", "task", ""))).keys) == 3
            if revision == CORE:
                listed = (await one.ask("tasks/list"))["tasks"]
                assert [each["taskId"] for each in listed] == [each["taskId"] for each in made[2:]]
                assert len((await store.scan(Key("", "task-of", ""))).keys) == 3

    asyncio.run(main())


def test_large_results_of_a_requestor_make_room_for_its_next() -> None:
    async def main() -> None:
        bench = Bench(tasks=TaskSettings(kept_bytes_each=5000))
        bench.gate.set()
        async with talking(bench.app, PER_REQUEST) as talk:
            first = await talk.begin("work", label="y" * 3000)
            await talk.until(first)
            second = await talk.begin("work", label="y" * 3000)
            await talk.until(second)
            await until_async(lambda: not bench.app._core.services.tasks.running)
            await until_async(lambda: not bench.app._core.services.tasks._spawned)
            assert await talk.refused("tasks/get", taskId=first["taskId"]) == NOT_FOUND
            assert (await talk.until(second))["status"] == "completed"

    asyncio.run(main())


def test_task_status_is_not_sent_to_a_client_with_a_full_backlog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trunkline.server.tasks.dialect.MAX_BACKLOG_BYTES", -1)

    async def main() -> None:
        bench = Bench()
        async with talking(bench.app, CORE) as talk:
            task = await talk.begin("work")
            bench.gate.set()
            await talk.until(task)
            assert [each for each in talk.wire.got if each.get("method")] == []

    asyncio.run(main())


def test_a_connection_that_has_ended_is_not_remembered() -> None:
    async def main() -> None:
        bench = Bench()
        async with talking(bench.app, CORE) as talk:
            await talk.begin("work")
            await until_async(lambda: bool(bench.contexts))
        context = bench.contexts[0]
        await until_async(lambda: context._request.connection.peer.is_closed)
        tasks = bench.app._core.services.tasks
        assert tasks.requestor(context._request) != tasks.requestor(context._request)
        assert tasks._requestors == {}
        bench.gate.set()

    asyncio.run(main())


# -- the end of the server -------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [True, False])
def test_a_server_that_stops_ends_its_tasks_and_says_that_they_failed(at_once: bool) -> None:
    async def main() -> None:
        store = MemoryStore()
        limits = ServerLimits(grace=60 if at_once else 0.02)
        bench = Bench(store=store, limits=limits)
        async with talking(bench.app, PER_REQUEST) as talk:
            task = await talk.begin("work")
            bench.app.stop(at_once=at_once)
            await until_async(lambda: talk.wire.ended)
        await until_async(lambda: not bench.app._core.runtime.is_open)
        assert bench.ended == ["x cancelled"]
        await until_async(lambda: others() == set())
        # Somebody who shares the store sees what became of it.
        async with talking(Bench(store=store).app, PER_REQUEST) as talk:
            found = await talk.ask("tasks/get", taskId=task["taskId"])
            assert (found["status"], found["error"]["message"]) == ("failed", GONE)

    asyncio.run(main())


def test_a_server_that_stops_while_a_call_becomes_a_task_makes_none_of_it() -> None:
    class Slow(MemoryStore):
        begun = False

        async def compare_and_set(self, key: Key, value: bytes, **options: Any) -> int | None:
            made = await super().compare_and_set(key, value, **options)
            self.begun = True
            await asyncio.sleep(0.05)
            return made

    async def main() -> None:
        store = Slow()
        bench = Bench(store=store, limits=ServerLimits(grace=30))
        async with talking(bench.app, PER_REQUEST) as talk:
            id = talk.send("tools/call", name="work")
            await until_async(lambda: store.begun)
            bench.app.stop()
            assert (await talk.wire.answer(id))["error"]["code"] == -32603
        assert (await store.scan(Key("", "task", ""))).keys == ()
        assert bench.contexts == []
        await until_async(lambda: others() == set())

    asyncio.run(main())


def test_a_task_that_ends_in_the_grace_of_a_stop_has_completed() -> None:
    async def main() -> None:
        store = MemoryStore()
        bench = Bench(store=store, limits=ServerLimits(grace=30))
        async with talking(bench.app, PER_REQUEST) as talk:
            task = await talk.begin("work")
            bench.app.stop()
            await until_async(lambda: talk.wire.ended)
        bench.gate.set()
        await until_async(lambda: not bench.app._core.runtime.is_open)
        async with talking(Bench(store=store).app, PER_REQUEST) as talk:
            assert (await talk.until(task))["status"] == "completed"
        await until_async(lambda: others() == set())

    asyncio.run(main())


def test_a_handler_that_does_not_let_itself_be_stopped_does_not_hold_up_the_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.engine.tasks.lifecycle._CLEANUP_TIMEOUT_S", 0.05)

    async def main() -> None:
        app = Server("test", limits=ServerLimits(grace=0))
        gate = asyncio.Event()

        @app.tool(task="required")
        async def stubborn() -> str:
            while not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    continue
            return "at last"

        async with talking(app, PER_REQUEST) as talk:
            await talk.begin("stubborn")
            app.stop()
            await until_async(lambda: talk.wire.ended)
        await until_async(lambda: not app._core.runtime.is_open)
        # All that is left is the handler itself.
        await until_async(lambda: len(others()) == 1)
        gate.set()
        await until_async(lambda: others() == set())

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert "task still runs" in caplog.text


def test_a_loop_that_ends_takes_tasks_with_it(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(app: Server) -> AsyncIterator[None]:
        yield
        seen.append("lifespan ended")

    async def main() -> None:
        bench = Bench(lifespan=lifespan)

        @bench.app.tool(task="optional")
        async def tidy() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.02)
                seen.append("tidied up")

        async with talking(bench.app, PER_REQUEST) as talk:
            for tool in ("work", "ask", "tidy"):
                await talk.begin(tool)
            await until_async(lambda: len(bench.contexts) == 1)
        seen.append("client gone")

    asyncio.run(main())  # as somebody's program that does not wait
    assert seen == ["client gone", "tidied up", "lifespan ended"]
    assert "Traceback" not in caplog.text
    assert "destroyed" not in caplog.text
    assert "never awaited" not in caplog.text


@pytest.mark.parametrize("others_at_work", [True, False])
def test_no_task_is_begun_by_a_server_that_stops(others_at_work: bool) -> None:
    async def main() -> None:
        bench = Bench(limits=ServerLimits(grace=30))
        refused: list[str] = []

        @bench.app.tool(task="required", task_start="handler")
        async def later(context: Context) -> str:
            await bench.gate.wait()
            try:
                await context.become_task()
            except Exception as error:  # whatever it is, it is looked at below
                refused.append(type(error).__name__)
                raise
            return "done"

        @bench.app.tool(task="optional", task_start="handler")
        async def maybe(context: Context) -> str:
            await bench.gate.wait()
            return str(await context.become_task())

        async with talking(bench.app, PER_REQUEST) as talk:
            if others_at_work:
                await talk.begin("work")
            calls = [talk.send("tools/call", name=name) for name in ("later", "maybe")]
            await until_async(lambda: bench.app._core.runtime.in_flight == 2)
            bench.app.stop()
            await asyncio.sleep(0.02)
            bench.gate.set()
            assert (await talk.wire.answer(calls[0]))["error"]["code"] == -32603
            # One that need not be a task goes on as it was.
            result = (await talk.wire.answer(calls[1]))["result"]
            assert result["content"][0]["text"] == "False"
        assert refused == ["RequestError"]
        await until_async(lambda: not bench.app._core.runtime.is_open)
        # Reset when the exit of the lifespan has finished.
        await until_async(lambda: not bench.app._core.services.tasks.is_stopping)

    asyncio.run(main())


PROGRAM = """
import asyncio
import sys
from contextlib import asynccontextmanager

from trunkline import Server

@asynccontextmanager
async def lifespan(app):
    yield
    await asyncio.sleep(0.05)
    print("ended", file=sys.stderr, flush=True)

app = Server("program", lifespan=lifespan)

@app.tool(task="required")
async def work() -> str:
    try:
        await asyncio.sleep(60)
    finally:
        print("stopped", file=sys.stderr, flush=True)
    return "x"

app.run()
"""


def test_a_process_ends_soon_after_its_client_though_a_task_is_at_work() -> None:
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}}}
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "work", "_meta": meta},
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(call).encode() + b"\n",
        capture_output=True,
        timeout=30,
        check=True,
    )
    assert json.loads(ran.stdout)["result"]["resultType"] == "task"
    assert ran.stderr.decode() == "stopped\nended\n"


# -- several servers -------------------------------------------------------------------------


def pair(**options: Any) -> tuple[Bench, Bench]:
    """Two servers that share a store, as two processes would."""
    store = MemoryStore()
    return Bench(store=store, **options), Bench(store=store, **options)


def test_any_server_sharing_the_store_answers_tasks_get() -> None:
    async def main() -> None:
        one, two = pair()
        for revision in (PER_REQUEST, CORE):
            async with talking(one.app, revision) as near, talking(two.app, revision) as far:
                task = await near.begin("work")
                assert (await far.ask("tasks/get", taskId=task["taskId"]))["status"] == "working"
                one.gate.set()
                over = await far.until(task)
                assert over["status"] == "completed"
                one.gate.clear()

    asyncio.run(main())


def test_a_cancel_reaches_the_server_that_works_at_the_task() -> None:
    async def main() -> None:
        one, two = pair()
        for revision in (PER_REQUEST, CORE):
            async with talking(one.app, revision) as near, talking(two.app, revision) as far:
                task = await near.begin("work", label=revision)
                await far.ask("tasks/cancel", taskId=task["taskId"])
                await until_async(lambda: not one.app._core.services.tasks.running)
                assert (await near.until(task))["status"] == "cancelled"
        assert one.ended == [f"{PER_REQUEST} cancelled", f"{CORE} cancelled"]
        await until_async(lambda: others() == set())

    asyncio.run(main())


def test_an_update_reaches_the_server_that_works_at_the_task() -> None:
    async def main() -> None:
        one, two = pair()
        async with talking(one.app, PER_REQUEST) as near, talking(two.app, PER_REQUEST) as far:
            task = await near.begin("ask")
            found = await far.until(task, "input_required")
            assert set(found["inputRequests"]) == {"who"}
            await far.ask(
                "tasks/update", taskId=task["taskId"], inputResponses={"who": accept("Ada")}
            )
            over = await near.until(task)
            assert over["result"]["content"][0]["text"] == "for Ada"
        await until_async(lambda: others() == set())

    asyncio.run(main())


def test_an_update_whose_call_was_lost_is_found_by_looking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task_runner, "CHECK_INTERVAL_S", 0.02)

    class Mute(MemoryStore):
        async def publish(self, channel: Key, data: bytes) -> None:
            """Lose every message: they come at most once."""

    async def main() -> None:
        store = Mute()
        one, two = Bench(store=store), Bench(store=store)
        async with talking(one.app, PER_REQUEST) as near, talking(two.app, PER_REQUEST) as far:
            task = await near.begin("ask")
            await far.until(task, "input_required")
            await far.ask(
                "tasks/update", taskId=task["taskId"], inputResponses={"who": accept("Ada")}
            )
            over = await near.until(task)
            assert over["result"]["content"][0]["text"] == "for Ada"
            task = await near.begin("ask")
            await far.until(task, "input_required")
            await far.ask("tasks/cancel", taskId=task["taskId"])
            await until_async(lambda: one.ended == ["ask cancelled"])

    asyncio.run(main())


def test_tasks_result_at_another_server_returns_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_runner, "CHECK_INTERVAL_S", 0.02)

    async def main() -> None:
        one, two = pair()
        async with talking(one.app, CORE) as near, talking(two.app, CORE) as far:
            task = await near.begin("work")
            waiting = far.send("tasks/result", taskId=task["taskId"])
            await until_async(lambda: len(two.app._core.services.tasks.result_waiters) == 1)
            one.gate.set()
            result = (await far.wire.answer(waiting))["result"]
            assert result["content"][0]["text"] == "x"
        await until_async(lambda: others() == set())

    asyncio.run(main())


def test_a_question_is_carried_by_the_server_to_which_the_client_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task_runner, "CHECK_INTERVAL_S", 0.02)

    async def main() -> None:
        one, two = pair()
        async with talking(one.app, CORE) as near, talking(two.app, CORE) as far:
            task = await near.begin("ask")
            waiting = far.send("tasks/result", taskId=task["taskId"])
            question = (await far.heard("elicitation/create"))[0]
            assert not [each for each in near.wire.got if each.get("method") == question["method"]]
            far.wire.send({"jsonrpc": "2.0", "id": question["id"], "result": accept("Ada")})
            result = (await far.wire.answer(waiting))["result"]
            assert result["content"][0]["text"] == "for Ada"
        await until_async(lambda: others() == set())

    asyncio.run(main())


def test_cancel_holds_though_its_wake_up_could_not_be_published() -> None:
    class Deaf(MemoryStore):
        async def publish(self, channel: Key, data: bytes) -> None:
            raise StoreUnavailable("away")

    async def main() -> None:
        store = Deaf()
        one, two = Bench(store=store), Bench(store=store)
        async with talking(one.app, CORE) as near, talking(two.app, CORE) as far:
            task = await near.begin("work")
            result = await far.ask("tasks/cancel", taskId=task["taskId"])
            assert result["status"] == "cancelled"
            # What the handler brings, which did not hear of it, is dropped.
            one.gate.set()
            await until_async(lambda: not one.app._core.services.tasks.running)
            assert (await near.until(task))["status"] == "cancelled"

    asyncio.run(main())


def test_a_store_that_does_not_answer_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trunkline.engine.tasks.lifecycle._CLEANUP_TIMEOUT_S", 0.1)

    async def main() -> None:
        store = Failing()
        bench = Bench(store=store, limits=ServerLimits(grace=0))
        async with talking(bench.app, PER_REQUEST) as talk:
            for _ in range(30):
                await talk.begin("work")
            store.fails["compare_and_set"] = StoreUnavailable("away")
            bench.app.stop()
            await until_async(lambda: talk.wire.ended)
        await until_async(lambda: not bench.app._core.runtime.is_open)
        assert len(bench.ended) == 30

    asyncio.run(main())


def test_two_servers_do_not_ask_the_same_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_runner, "CHECK_INTERVAL_S", 0.02)

    async def main() -> None:
        one, two = pair()
        async with talking(one.app, CORE) as near, talking(two.app, CORE) as far:
            task = await near.begin("ask")
            calls = [talk.send("tasks/result", taskId=task["taskId"]) for talk in (near, far)]
            await until_async(
                lambda: (
                    len(one.app._core.services.tasks.result_waiters)
                    + len(two.app._core.services.tasks.result_waiters)
                    == 2
                )
            )
            await asyncio.sleep(0.1)  # several looks
            asked = [
                (talk, each)
                for talk in (near, far)
                for each in talk.wire.got
                if each.get("method") == "elicitation/create"
            ]
            assert len(asked) == 1
            talk, question = asked[0]
            talk.wire.send({"jsonrpc": "2.0", "id": question["id"], "result": accept("Ada")})
            for talk, id in zip((near, far), calls, strict=True):
                result = (await talk.wire.answer(id))["result"]
                assert result["content"][0]["text"] == "for Ada"

    asyncio.run(main())


def test_a_question_is_taken_back_wherever_it_was_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_runner, "CHECK_INTERVAL_S", 0.02)

    async def main() -> None:
        one, two = pair()
        async with talking(one.app, CORE) as near, talking(two.app, CORE) as far:
            task = await near.begin("ask")
            waiting = far.send("tasks/result", taskId=task["taskId"])
            question = (await far.heard("elicitation/create"))[0]
            await near.ask("tasks/cancel", taskId=task["taskId"])
            told = (await far.heard("notifications/cancelled"))[0]
            assert told["params"]["requestId"] == question["id"]
            assert (await far.wire.answer(waiting))["error"]["code"] == -32603

    asyncio.run(main())


@pytest.mark.parametrize("revision", [PER_REQUEST, CORE])
def test_a_task_whose_server_is_dead_has_failed(revision: str) -> None:
    async def main() -> None:
        one, two = pair()
        async with talking(one.app, revision) as near, talking(two.app, revision) as far:
            task = await near.begin("work")
            record = await one.app._core.services.tasks.records.get("", task["taskId"])
            assert record is not None
            # As if it had died: its sign of life is gone, and nobody takes anything back.
            await one.app._core.services.store.delete(Key("", "task-runner", record.runner))
            found = await far.ask("tasks/get", taskId=task["taskId"])
            assert (found["status"], found["statusMessage"]) == ("failed", GONE)
            if revision == CORE:
                error = await far.refused("tasks/result", taskId=task["taskId"])
            else:
                error = found["error"]
            assert (error["code"], error["message"]) == (-32603, GONE)
            # It was only asleep; what it brings comes too late.
            one.gate.set()
            await until_async(lambda: not one.app._core.services.tasks.running)
            assert (await near.until(task))["status"] == "failed"

    asyncio.run(main())


def test_tasks_result_fails_when_the_server_of_the_task_dies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task_runner, "CHECK_INTERVAL_S", 0.02)

    async def main() -> None:
        one, two = pair()
        async with talking(one.app, CORE) as near, talking(two.app, CORE) as far:
            task = await near.begin("work")
            waiting = far.send("tasks/result", taskId=task["taskId"])
            await until_async(lambda: len(two.app._core.services.tasks.result_waiters) == 1)
            runner = one.app._core.services.tasks._runner
            for loop in runner._loops:
                loop.cancel()
            await one.app._core.services.store.delete(Key("", "task-runner", runner.name))
            error = (await far.wire.answer(waiting))["error"]
            assert error["message"] == GONE
            one.gate.set()

    asyncio.run(main())


def test_a_task_that_its_own_server_lost_has_failed() -> None:
    async def main() -> None:
        bench = Bench()
        async with talking(bench.app, PER_REQUEST) as talk:
            await talk.begin("work")  # so that there is a runner
            records = bench.app._core.services.tasks.records
            task = await talk.begin("work")
            record = await records.get("", task["taskId"])
            assert record is not None
            bench.gate.set()
            await talk.until(task)
            # As a restart of the process with the same store would leave it.
            left = replace(record, id="L" * 32, runner="somebody before us")
            await records.add(left, None)
            found = await talk.ask("tasks/get", taskId=left.id)
            assert (found["status"], found["error"]["message"]) == ("failed", GONE)

    asyncio.run(main())


def test_after_a_restart_with_the_memory_store_a_task_is_unknown() -> None:
    async def main() -> None:
        before, after = Bench(), Bench()
        async with talking(before.app, PER_REQUEST) as talk:
            task = await talk.begin("work")
            before.gate.set()
        async with talking(after.app, PER_REQUEST) as talk:
            assert await talk.refused("tasks/get", taskId=task["taskId"]) == NOT_FOUND

    asyncio.run(main())


# -- settings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"ttl": 0},
        {"ttl": -1.0},
        {"ttl": "long"},
        {"longest_ttl": float("nan")},
        {"poll_interval": None},
        {"poll_interval": True},
        {"running": 0},
        {"running_each": 1.5},
        {"open_inputs": None},
        {"waiting_results": -1},
        {"waiting_results_each": 0},
        {"kept_each": 0},
        {"kept_bytes_each": 1.0},
        {"quick": -1},
        {"quick": None},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TaskSettings(**wrong)
