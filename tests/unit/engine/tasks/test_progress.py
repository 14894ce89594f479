"""Progress of tasks: status messages in the store, coalesced, and the last of them not lost."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from tests.rigs.messages import PER_REQUEST
from tests.unit.server.task_talk import Talk, accept, talking
from trunkline import Context, Server, TaskSettings, ToolError
from trunkline.engine.tasks import progress as task_progress
from trunkline.store import Key, MemoryStore, StoreUnavailable


class CountingStore(MemoryStore):
    """Counts what is written about tasks, and can be lost for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        self.is_lost = False

    async def compare_and_set(self, key: Key, value: bytes, **options: Any) -> int | None:
        if key.kind == "task":
            if self.is_lost:
                raise StoreUnavailable("lost")
            self.writes += 1
        return await super().compare_and_set(key, value, **options)


class Bench:
    """A server whose tool reports what a test says, and returns when it is told to."""

    def __init__(self, **options: Any) -> None:
        self.store = CountingStore()
        self.app = app = Server("bench", store=self.store, **options)
        self.gate = asyncio.Event()
        self.contexts: list[Context] = []

        @app.tool(task="required")
        async def work(context: Context) -> str:
            self.contexts.append(context)
            await self.gate.wait()
            return "done"

    async def begin(self, talk: Talk) -> tuple[Any, Context]:
        """Call the tool; return its task, and the context of its handler."""
        task = await talk.begin("work")
        await until_async(lambda: bool(self.contexts))
        return task, self.contexts[-1]


async def shows(talk: Talk, task: Any, message: str) -> None:
    """Wait until the state of a task has a message."""
    async with asyncio.timeout(60):
        while (await talk.ask("tasks/get", taskId=task["taskId"])).get("statusMessage") != message:
            await asyncio.sleep(0.005)


def test_progress_is_the_status_message_of_a_task_without_a_progress_token() -> None:
    async def main() -> None:
        bench = Bench()
        async with talking(bench.app, PER_REQUEST) as talk:
            task, context = await bench.begin(talk)
            assert "statusMessage" not in task
            await context.progress(3, 5, "step 3")
            await shows(talk, task, "step 3 (3 of 5)")
            await context.progress(2, 5, "back")  # did not grow
            context.report_progress(4.0)
            await shows(talk, task, "4")
            bench.gate.set()
            done = await talk.until(task)
            assert (done["status"], done["statusMessage"]) == ("completed", "4")

    asyncio.run(main())


@pytest.mark.parametrize("where", ["coroutine", "thread"])
def test_many_reports_are_few_writes_and_the_last_is_not_lost(where: str) -> None:
    count = 100_000

    async def main() -> None:
        store = CountingStore()
        app = Server("test", store=store)

        @app.tool(task="required")
        async def loop(context: Context) -> str:
            for step in range(count):
                await context.progress(step + 1, count)
                if not step % 1000:
                    await asyncio.sleep(0)
            return "done"

        @app.tool(task="required")
        def loop_on_thread(context: Context) -> str:
            for step in range(count):
                context.progress(step + 1, count)
            return "done"

        async with talking(app, PER_REQUEST) as talk:
            began = asyncio.get_running_loop().time()
            task = await talk.begin("loop" if where == "coroutine" else "loop_on_thread")
            done = await talk.until(task)
            seconds = asyncio.get_running_loop().time() - began
            assert done["statusMessage"] == f"{count} of {count}"
            # The new record, one at once, one in each interval, the end, and conflicts.
            assert store.writes <= 5 + seconds / task_progress.MIN_WRITE_INTERVAL_S

    asyncio.run(main())


def test_several_threads_may_report_at_once() -> None:
    async def main() -> None:
        bench = Bench()
        async with talking(bench.app, PER_REQUEST) as talk:
            task, context = await bench.begin(talk)

            def report(first: int) -> None:
                for step in range(first, 2000, 4):
                    context.progress(step)

            threads = [threading.Thread(target=report, args=(each,)) for each in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                await asyncio.to_thread(thread.join)
            await shows(talk, task, "1999")
            bench.gate.set()
            await talk.until(task)

    asyncio.run(main())


def test_what_was_reported_before_a_call_is_a_task_is_its_first_message() -> None:
    async def main() -> None:
        app = Server("test", tasks=TaskSettings(quick=0.01))
        gate = asyncio.Event()

        @app.tool(task="optional")
        async def work(context: Context) -> str:
            await context.progress(1, 2, "begun")
            await gate.wait()
            return "done"

        async with talking(app, PER_REQUEST) as talk:
            told = {"progressToken": "token"}
            task = await talk.ask("tools/call", name="work", meta=told)
            assert (task["status"], task["statusMessage"]) == ("working", "begun (1 of 2)")
            # The call was open then, and its client has a token.
            (notified,) = await talk.heard("notifications/progress")
            assert notified["params"]["progress"] == 1
            gate.set()
            await talk.until(task)

    asyncio.run(main())


def test_a_failure_and_a_cancellation_have_their_own_message() -> None:
    async def main() -> None:
        bench = Bench()

        @bench.app.tool(task="required")
        async def fail(context: Context) -> str:
            await context.progress(1, 2)
            raise ToolError("no luck")

        async with talking(bench.app, PER_REQUEST) as talk:
            task, context = await bench.begin(talk)
            await context.progress(1, 2)
            await talk.ask("tasks/cancel", taskId=task["taskId"])
            await shows(talk, task, "The task was cancelled.")
            # A tool that failed has completed in this form.
            failed = await talk.until(await talk.begin("fail"))
            assert (failed["status"], failed["statusMessage"]) == ("completed", "1 of 2")

    asyncio.run(main())


def test_message_stays_while_a_task_asks() -> None:
    async def main() -> None:
        app = Server("test")

        @app.tool(task="required")
        async def ask(context: Context) -> str:
            await context.progress(1, 2, "asking")
            return (await context.elicit("Who?", str, key="who")).action

        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("ask")
            await talk.until(task, "input_required")
            await shows(talk, task, "asking (1 of 2)")
            responses = {"who": accept("Ada")}
            await talk.ask("tasks/update", taskId=task["taskId"], inputResponses=responses)
            assert (await talk.until(task))["statusMessage"] == "asking (1 of 2)"

    asyncio.run(main())


def test_subscribers_are_notified_of_each_message_that_is_stored() -> None:
    async def main() -> None:
        bench = Bench()
        async with talking(bench.app, PER_REQUEST) as talk:
            task, context = await bench.begin(talk)
            talk.send("subscriptions/listen", notifications={"taskIds": [task["taskId"]]})
            await talk.heard("notifications/subscriptions/acknowledged")
            await context.progress(1, 2, "half")
            (first,) = await talk.heard("notifications/tasks")
            assert first["params"]["statusMessage"] == "half (1 of 2)"
            bench.gate.set()
            *_, last = await talk.heard("notifications/tasks", 2)
            assert (last["params"]["status"], last["params"]["statusMessage"]) == (
                "completed",
                "half (1 of 2)",
            )

    asyncio.run(main())


def test_message_is_stored_once_the_store_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(task_progress, "MIN_WRITE_INTERVAL_S", 0.01)
    monkeypatch.setattr(task_progress, "RETRY_DELAY_S", 0.01)

    async def main() -> None:
        bench = Bench()
        async with talking(bench.app, PER_REQUEST) as talk:
            task, context = await bench.begin(talk)
            bench.store.is_lost = True
            await context.progress(1, 2)
            await until_async(lambda: "not stored" in caplog.text)
            await asyncio.sleep(0.1)
            bench.store.is_lost = False
            await shows(talk, task, "1 of 2")
            bench.gate.set()
            await talk.until(task)
        assert caplog.text.count("progress of a task not stored") == 1

    asyncio.run(main())


def test_report_after_the_end_of_a_task_is_dropped() -> None:
    async def main() -> None:
        bench = Bench()
        async with talking(bench.app, PER_REQUEST) as talk:
            task, context = await bench.begin(talk)
            await context.progress(1, 2)
            bench.gate.set()
            await talk.until(task)
            await until_async(lambda: not bench.app._core.services.tasks.running)
            writes = bench.store.writes
            await context.progress(2, 2)
            await asyncio.sleep(0.02)
            assert bench.store.writes == writes
            assert (await talk.until(task))["statusMessage"] == "1 of 2"

    asyncio.run(main())
