"""Task admission: every tool, in every revision; and how a call becomes a task, once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from tests.rigs.messages import PER_REQUEST
from tests.unit.server.task_talk import CORE, Talk, accept, talking
from trunkline import Context, Server, ServerLimits, TaskSettings
from trunkline.engine.tasks import runner
from trunkline.store import Key, MemoryStore, StoreUnavailable

TASK = "task"
PLAIN = "plain"
NOT_FOUND = -32601
UNDECLARED = -32021


def outcome(reply: Any) -> Any:
    """What a call came to: a task, a plain result, or the number of an error."""
    if "error" in reply:
        return reply["error"]["code"]
    result = reply["result"]
    return TASK if "task" in result or result.get("resultType") == "task" else PLAIN


# By option of the tool: without a wish in 2025-11-25, with one; undeclared in 2026-07-28,
# declared, and the same where a call has no moment in which to be done.
EXPECTED = {
    "never": (PLAIN, NOT_FOUND, PLAIN, PLAIN, PLAIN),
    "optional": (PLAIN, TASK, PLAIN, PLAIN, TASK),
    "required": (NOT_FOUND, TASK, UNDECLARED, TASK, TASK),
}


@pytest.mark.parametrize("task", list(EXPECTED))
@pytest.mark.parametrize("wish", [{}, {"ttl": 1000}])
def test_a_call_is_a_task_where_both_sides_can_have_one(task: Any, wish: Any) -> None:
    found = asyncio.run(outcomes(task, wish, 60))
    assert (*found, asyncio.run(outcomes(task, wish, 0))[-1]) == EXPECTED[task]


async def outcomes(task: Any, wish: Any, quick: float) -> tuple[Any, ...]:
    """What calls of a tool come to, that is done at once."""
    app = Server("test", tasks=TaskSettings(quick=quick))

    @app.tool(task="optional")
    async def other() -> None:
        """See to it that the server has tasks."""

    @app.tool(task=task)
    async def work() -> str:
        return "done"

    found = []
    async with talking(app, CORE) as talk:
        found += [outcome(await talk.reply("tools/call", name="work"))]
        found += [outcome(await talk.reply("tools/call", name="work", task=wish))]
    for declares in (False, True):
        async with talking(app, PER_REQUEST, declares=declares) as talk:
            # A stray wish makes no difference here.
            stray = outcome(await talk.reply("tools/call", name="work", task=wish))
            assert outcome(await talk.reply("tools/call", name="work")) == stray
            found += [stray]
    async with talking(app, "2025-06-18") as talk:
        for extra in ({}, {"task": wish}):
            assert outcome(await talk.reply("tools/call", name="work", **extra)) == PLAIN
    return tuple(found)


# -- how a call becomes one ------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _never_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found only by looking every few seconds is not found."""
    monkeypatch.setattr(runner, "CHECK_INTERVAL_S", 3600.0)


class Watched(MemoryStore):
    """A store that counts what is kept, and may be away or slow."""

    is_away = False
    pause = 0.0
    made = 0

    async def compare_and_set(self, key: Key, value: bytes, **options: Any) -> int | None:
        if self.is_away:
            raise StoreUnavailable("away")
        self.made += key.kind == "task"
        await asyncio.sleep(self.pause)
        return await super().compare_and_set(key, value, **options)

    async def tasks(self) -> int:
        return len((await self.scan(Key("", "task", ""))).keys)


def text(result: Any) -> Any:
    return result["content"][0]["text"]


async def retry(talk: Talk, tool: str, result: Any, **answers: Any) -> Any:
    """Bring back what a call asked for, and return what it is answered then."""
    given = {key: accept(value) for key, value in answers.items()}
    state = result["requestState"]
    return await talk.ask("tools/call", name=tool, inputResponses=given, requestState=state)


# -- after a moment --------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"inline": True}])
def test_a_quick_call_of_an_optional_tool_is_answered_as_any_other(options: Any) -> None:
    async def main() -> None:
        store = Watched()
        app = Server("test", store=store, tasks=TaskSettings(quick=60))

        @app.tool(task="optional")
        async def quick() -> str:
            return "done"

        @app.tool(task="optional", **options)
        def plain() -> str:
            return "done"

        async with talking(app, PER_REQUEST) as talk:
            for tool in ("quick", "plain"):
                result = await talk.ask("tools/call", name=tool)
                assert (result["resultType"], text(result)) == ("complete", "done")
        assert store.made == 0

    asyncio.run(main())


def test_a_call_that_takes_longer_becomes_a_task() -> None:
    async def main() -> None:
        app = Server("test", tasks=TaskSettings(quick=0.01))
        gate = asyncio.Event()

        @app.tool(task="optional")
        async def slow(context: Context) -> str:
            await gate.wait()
            return str(await context.become_task())

        async with talking(app, PER_REQUEST) as talk:
            task = await talk.ask("tools/call", name="slow")
            assert task["resultType"] == "task"
            assert app._core.runtime.in_flight == 0
            gate.set()
            assert text((await talk.until(task))["result"]) == "True"

    asyncio.run(main())


def test_a_call_that_ends_while_it_becomes_a_task_is_answered_and_leaves_none() -> None:
    async def main() -> None:
        store = Watched()
        store.pause = 0.05
        app = Server("test", store=store, tasks=TaskSettings(quick=0.001))

        @app.tool(task="optional")
        async def work() -> str:
            await until_async(lambda: store.made == 1)
            return "done"

        async with talking(app, PER_REQUEST) as talk:
            assert text(await talk.ask("tools/call", name="work")) == "done"
            await until_async(lambda: not app._core.services.tasks.running)
            await until_async(lambda: not app._core.services.tasks._spawned)
        assert await store.tasks() == 0

    asyncio.run(main())


def test_a_call_that_was_cancelled_in_its_first_moment_becomes_no_task() -> None:
    async def main() -> None:
        store = Watched()
        app = Server("test", store=store, tasks=TaskSettings(quick=0.02))
        seen: list[str] = []

        @app.tool(task="optional")
        async def work() -> None:
            seen.append("begun")
            await asyncio.sleep(60)

        async with talking(app, PER_REQUEST) as talk:
            id = talk.send("tools/call", name="work")
            await until_async(lambda: seen == ["begun"])
            talk.wire.tell("notifications/cancelled", {"requestId": id})
            await asyncio.sleep(0.05)
            assert talk.wire.got == []
        assert store.made == 0

    asyncio.run(main())


def test_a_client_that_says_nothing_more_gets_a_result_and_no_task() -> None:
    async def main() -> None:
        app = Server("test", tasks=TaskSettings(quick=0.2), limits=ServerLimits(linger=30))
        gate = asyncio.Event()

        @app.tool(task="optional")
        async def work() -> str:
            await gate.wait()
            return "done"

        async with talking(app, PER_REQUEST) as talk:
            id = talk.send("tools/call", name="work")
            await until_async(lambda: app._core.runtime.in_flight == 1)
            next(iter(app._core.runtime.connections))._input_ended(None)
            await asyncio.sleep(0.3)
            gate.set()
            assert text((await talk.wire.answer(id))["result"]) == "done"

    asyncio.run(main())


def test_the_first_question_makes_a_task_however_quick_it_is_put() -> None:
    async def main() -> None:
        app = Server("test", tasks=TaskSettings(quick=60))
        runs: list[str] = []

        @app.tool(task="optional")
        async def ask(context: Context) -> str:
            runs.append(await context.once("ticket", lambda: "made"))
            one, two = await asyncio.gather(
                context.elicit("One?", str, key="one"), context.elicit("Two?", str, key="two")
            )
            return f"{one.content} {two.content}"

        async with talking(app, PER_REQUEST) as talk:
            task = await talk.ask("tools/call", name="ask")
            assert task["resultType"] == "task"
            await until_async(
                lambda: len(app._core.services.tasks.running[task["taskId"]].input_futures) == 2
            )
            answers = {"one": accept("A"), "two": accept("B")}
            await talk.until(task, "input_required")
            await talk.ask("tasks/update", taskId=task["taskId"], inputResponses=answers)
            assert text((await talk.until(task))["result"]) == "A B"
        assert runs == ["made"]

    asyncio.run(main())


# -- where it cannot be ----------------------------------------------------------------------


def no_room(store: Watched, app: Server) -> None:
    app._core.services.tasks.settings = TaskSettings(
        running=1, running_each=1, quick=app._core.services.tasks.settings.quick
    )


def no_store(store: Watched, app: Server) -> None:
    store.is_away = True


@pytest.mark.parametrize("why", [no_room, no_store])
@pytest.mark.parametrize("quick", [0, 0.01])
def test_an_optional_tool_that_cannot_be_a_task_runs_as_any_other(why: Any, quick: float) -> None:
    async def main() -> None:
        store = Watched()
        app = Server("test", store=store, tasks=TaskSettings(quick=quick))
        gate = asyncio.Event()

        @app.tool(task="required")
        async def hold() -> None:
            await gate.wait()

        @app.tool(task="optional")
        async def work() -> str:
            await asyncio.sleep(3 * quick)
            return "done"

        @app.tool(task="optional")
        async def ask(context: Context) -> str:
            return str((await context.elicit("Sure?", bool, key="sure")).content)

        @app.tool(task="optional", task_start="handler")
        async def decides(context: Context) -> str:
            return str(await context.become_task())

        async with talking(app, PER_REQUEST) as talk:
            await talk.begin("hold")
            why(store, app)
            assert text(await talk.ask("tools/call", name="work")) == "done"
            assert text(await talk.ask("tools/call", name="decides")) == "False"
            # Its questions are those of any call.
            result = await talk.ask("tools/call", name="ask")
            assert result["resultType"] == "input_required"
            assert text(await retry(talk, "ask", result, sure=True)) == "True"
            error = await talk.refused("tools/call", name="hold")
            assert error["data"]["retryAfterMs"] > 0
            store.is_away = False
            gate.set()
        async with talking(app, CORE) as talk:
            gate.clear()
            store.is_away = why is no_store
            if why is no_room:
                await talk.begin("hold")
            # Who asked for a task is not given something else.
            error = await talk.refused("tools/call", name="work", task={})
            assert error["data"]["retryAfterMs"] > 0
            assert text(await talk.ask("tools/call", name="work")) == "done"
            store.is_away = False
            gate.set()

    asyncio.run(main())


def test_answers_of_earlier_round_trips_are_used_by_the_task() -> None:
    async def main() -> None:
        store = Watched()
        app = Server("test", store=store)
        made: list[str] = []

        @app.tool(task="optional", task_start="handler")
        async def ask(context: Context) -> str:
            is_task = await context.become_task()
            await context.once("ticket", lambda: made.append("made"))
            answer = await context.elicit("Sure?", bool, key="sure")
            return f"{answer.content} {is_task}"

        async with talking(app, PER_REQUEST) as talk:
            store.is_away = True
            result = await talk.ask("tools/call", name="ask")
            store.is_away = False
            task = await retry(talk, "ask", result, sure=True)
            assert task["resultType"] == "task"
            assert text((await talk.until(task))["result"]) == "True True"
        assert made == ["made"]

    asyncio.run(main())


# -- when the handler says so ----------------------------------------------------------------


@pytest.mark.parametrize("pause", [0.0, 0.01])
@pytest.mark.parametrize("order", ["question first", "task first", "question meanwhile"])
def test_a_question_beside_it_goes_out_first(order: str, pause: float) -> None:
    async def main() -> None:
        store = Watched()
        store.pause = pause
        app = Server("test", store=store)

        @app.tool(task="optional", task_start="handler")
        async def both(context: Context) -> str:
            async def ask() -> Any:
                await asyncio.sleep(pause / 2 if order == "question meanwhile" else 0)
                return (await context.elicit("Sure?", bool, key="sure")).content

            wants = [ask(), context.become_task()]
            found = await asyncio.gather(*(wants if order != "task first" else wants[::-1]))
            return " ".join(map(str, found))

        async with talking(app, PER_REQUEST) as talk:
            result = await talk.ask("tools/call", name="both")
            if result["resultType"] == "task":
                # It was one before anything was asked.
                assert order != "question first" or not pause
                await talk.until(result, "input_required")
                answers = {"sure": accept(True)}
                await talk.ask("tasks/update", taskId=result["taskId"], inputResponses=answers)
                task = result
            else:
                task = await retry(talk, "both", result, sure=True)
                assert task["resultType"] == "task"
            assert text((await talk.until(task))["result"]) == "True True"
            await until_async(lambda: not app._core.services.tasks.running)
            await until_async(lambda: not app._core.services.tasks._spawned)
        assert await store.tasks() == 1

    asyncio.run(main())


def test_a_tool_on_a_thread_may_become_a_task() -> None:
    async def main() -> None:
        app = Server("test")

        @app.tool(task="optional", task_start="handler")
        def work(context: Context) -> str:
            return f"{context.become_task().wait()} {context.become_task().wait()}"

        async with talking(app, PER_REQUEST) as talk:
            task = await talk.ask("tools/call", name="work")
            assert task["resultType"] == "task"
            assert text((await talk.until(task))["result"]) == "True True"
        async with talking(app, "2025-06-18") as talk:
            assert text(await talk.ask("tools/call", name="work")) == "False False"

    asyncio.run(main())


def test_a_tool_that_was_removed_meanwhile_may_still_become_a_task() -> None:
    async def main() -> None:
        app = Server("test")

        @app.tool(task="optional", task_start="handler")
        async def work(context: Context) -> str:
            app.remove_tool("work")
            return str(await context.become_task())

        async with talking(app, PER_REQUEST) as talk:
            task = await talk.ask("tools/call", name="work")
            assert text((await talk.until(task))["result"]) == "True"

    asyncio.run(main())
