"""What a task asks: it waits for the answer, whoever brings it, and for nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from tests.rigs.messages import PER_REQUEST
from tests.rigs.server_connection import WAIT, connected
from tests.unit.server.task_talk import CORE, RELATED, Talk, accept, talking
from trunkline import (
    Context,
    PeerError,
    RequestAborted,
    RequestTimeout,
    Server,
    ServerLimits,
    TaskSettings,
)
from trunkline.engine.tasks import input_requests, runner
from trunkline.store import Key, MemoryStore, StoreUnavailable


@pytest.fixture(autouse=True)
def _never_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found only by looking every few seconds is not found; some tests look often."""
    monkeypatch.setattr(runner, "CHECK_INTERVAL_S", 3600.0)


def asker(**options: Any) -> Server:
    """A server with a tool that asks what its arguments say."""
    app = Server("test", **options)

    @app.tool(task="required")
    async def ask(context: Context, kind: str = "elicit", count: int = 1) -> str:
        if kind == "sample":
            found = await context.sample("Say hi", max_tokens=5)
            return found.model
        if kind == "roots":
            return ", ".join(each.uri for each in await context.roots())
        answers = [(await context.elicit(f"Number {at}?", str)).content for at in range(count)]
        return " ".join(map(str, answers))

    return app


def reply(talk: Talk, question: Any, **answer: Any) -> None:
    talk.wire.send({"jsonrpc": "2.0", "id": question["id"], **answer})


async def text_of(talk: Talk, id: int) -> Any:
    return (await talk.wire.answer(id))["result"]["content"][0]["text"]


# -- in the core's form ----------------------------------------------------------------------


def test_a_question_waits_for_a_call_of_tasks_result_and_names_its_task() -> None:
    async def main() -> None:
        async with talking(asker(), CORE) as talk:
            task = await talk.begin("ask")
            assert (await talk.until(task, "input_required"))["status"] == "input_required"
            assert not [
                each for each in talk.wire.got if each.get("method") == "elicitation/create"
            ]
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            question = (await talk.heard("elicitation/create"))[0]
            assert question["params"]["_meta"] == {RELATED: {"taskId": task["taskId"]}}
            reply(talk, question, result=accept("yes"))
            assert await text_of(talk, waiting) == "yes"
            told = [
                each["params"]["status"] for each in await talk.heard("notifications/tasks/status")
            ]
            assert told == ["input_required", "working", "completed"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("kind", "method", "result", "text"),
    [
        (
            "sample",
            "sampling/createMessage",
            {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}},
            "m",
        ),
        ("roots", "roots/list", {"roots": [{"uri": "file:///a"}]}, "file:///a"),
    ],
)
def test_every_kind_of_question_is_carried(kind: str, method: str, result: Any, text: str) -> None:
    async def main() -> None:
        app = asker()
        async with talking(app, CORE) as talk:
            task = await talk.begin("ask", kind=kind)
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            question = (await talk.heard(method))[0]
            assert question["params"]["_meta"] == {RELATED: {"taskId": task["taskId"]}}
            reply(talk, question, result=result)
            assert await text_of(talk, waiting) == text
        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("ask", kind=kind)
            found = await talk.until(task, "input_required")
            key, asked = next(iter(found["inputRequests"].items()))
            assert asked["method"] == method
            assert "_meta" not in asked.get("params", {})
            await talk.ask("tasks/update", taskId=task["taskId"], inputResponses={key: result})
            over = await talk.until(task)
            assert over["result"]["content"][0]["text"] == text

    asyncio.run(main())


def test_several_questions_go_out_on_one_call() -> None:
    async def main() -> None:
        async with talking(asker(), CORE) as talk:
            task = await talk.begin("ask", count=3)
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            for at in range(3):
                question = (await talk.heard("elicitation/create", at + 1))[at]
                assert question["params"]["message"] == f"Number {at}?"
                reply(talk, question, result=accept(str(at)))
            assert await text_of(talk, waiting) == "0 1 2"

    asyncio.run(main())


def test_questions_put_together_change_the_status_once() -> None:
    async def main() -> None:
        app = Server("test")

        @app.tool(task="required")
        async def ask(context: Context) -> str:
            found = await asyncio.gather(*(context.elicit("Who?", str) for _ in range(3)))
            return " ".join(str(each.content) for each in found)

        async with talking(app, CORE) as talk:
            task = await talk.begin("ask")
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            for question in await talk.heard("elicitation/create", 3):
                reply(talk, question, result=accept("A"))
            assert await text_of(talk, waiting) == "A A A"
            told = await talk.heard("notifications/tasks/status", 3)
            statuses = [each["params"]["status"] for each in told]
            assert statuses == ["input_required", "working", "completed"]

    asyncio.run(main())


def test_a_question_goes_out_once_however_many_wait() -> None:
    async def main() -> None:
        app = asker()
        async with talking(app, CORE) as one, talking(app, CORE) as two:
            task = await one.begin("ask")
            calls = [
                (talk, talk.send("tasks/result", taskId=task["taskId"])) for talk in (one, two)
            ]
            await until_async(lambda: len(app._core.services.tasks.result_waiters) == 2)
            await asyncio.sleep(0.02)
            asked = [
                (talk, each)
                for talk in (one, two)
                for each in talk.wire.got
                if each.get("method") == "elicitation/create"
            ]
            assert len(asked) == 1
            reply(*asked[0], result=accept("yes"))
            for talk, id in calls:
                assert await text_of(talk, id) == "yes"

    asyncio.run(main())


def test_a_question_whose_call_was_lost_is_carried_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "CHECK_INTERVAL_S", 0.02)

    async def main() -> None:
        app = asker()
        async with talking(app, CORE) as talk:
            task = await talk.begin("ask")
            talk.send("tasks/result", taskId=task["taskId"])
            await talk.heard("elicitation/create")
        async with talking(app, CORE) as talk:
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            question = (await talk.heard("elicitation/create"))[0]
            reply(talk, question, result=accept("yes"))
            assert await text_of(talk, waiting) == "yes"

    asyncio.run(main())


def test_a_question_whose_call_was_cancelled_is_taken_back_and_carried_by_the_next() -> None:
    async def main() -> None:
        app = asker()
        async with talking(app, CORE) as talk:
            task = await talk.begin("ask")
            first = talk.send("tasks/result", taskId=task["taskId"])
            question = (await talk.heard("elicitation/create"))[0]
            talk.wire.tell("notifications/cancelled", {"requestId": first})
            second = talk.send("tasks/result", taskId=task["taskId"])
            again = (await talk.heard("elicitation/create", 2))[1]
            told = (await talk.heard("notifications/cancelled"))[0]
            assert told["params"]["requestId"] == question["id"]
            reply(talk, question, result=accept("too late"))
            reply(talk, again, result=accept("yes"))
            assert await text_of(talk, second) == "yes"
            assert [each for each in talk.wire.got if each.get("id") == first] == []

    asyncio.run(main())


def test_a_question_whose_client_has_left_is_carried_by_another_that_waits() -> None:
    async def main() -> None:
        app = asker()
        async with talking(app, CORE) as other:
            async with talking(app, CORE) as talk:
                task = await talk.begin("ask")
                talk.send("tasks/result", taskId=task["taskId"])
                await talk.heard("elicitation/create")
                waiting = other.send("tasks/result", taskId=task["taskId"])
                await until_async(lambda: len(app._core.services.tasks.result_waiters) == 2)
            question = (await other.heard("elicitation/create"))[0]
            reply(other, question, result=accept("yes"))
            assert await text_of(other, waiting) == "yes"

    asyncio.run(main())


def test_the_right_to_carry_a_question_is_short_and_renewed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "CHECK_INTERVAL_S", 0.01)
    monkeypatch.setattr(input_requests, "_LEASE_TTL_S", 0.15)

    async def main() -> None:
        store = MemoryStore()
        app, far = asker(store=store), asker(store=store)
        async with talking(app, CORE) as one, talking(far, CORE) as two:
            task = await one.begin("ask")
            waiting = one.send("tasks/result", taskId=task["taskId"])
            question = (await one.heard("elicitation/create"))[0]
            two.send("tasks/result", taskId=task["taskId"])
            await asyncio.sleep(0.4)
            # Nobody else has asked, though the right would have passed by now.
            assert two.wire.got == []
            # As if the first server had died: the other may ask soon.
            carried = next(iter(app._core.services.tasks.carriers._in_flight.values()))
            record = carried.record
            assert await app._core.services.tasks.records.claim(record, carried.key, 1) is None
            reply(one, question, result=accept("yes"))
            assert await text_of(one, waiting) == "yes"

    asyncio.run(main())


def test_a_client_is_not_asked_what_it_did_not_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "CHECK_INTERVAL_S", 0.02)

    async def main() -> None:
        app = asker()
        async with talking(app, CORE) as able, connected(app, CORE, {}) as wire:
            unable = Talk(wire, CORE)
            task = await able.begin("ask")
            there = unable.send("tasks/result", taskId=task["taskId"])
            await until_async(lambda: len(app._core.services.tasks.result_waiters) == 1)
            await asyncio.sleep(0.05)
            assert unable.wire.got == []
            here = able.send("tasks/result", taskId=task["taskId"])
            question = (await able.heard("elicitation/create"))[0]
            reply(able, question, result=accept("yes"))
            assert await text_of(able, here) == await text_of(unable, there) == "yes"
            # And a task that asks such a client by itself fails.
            task = await unable.begin("ask")
            assert (await unable.until(task))["status"] == "failed"

    asyncio.run(main())


def test_an_error_of_the_client_is_raised_in_the_handler() -> None:
    async def main() -> None:
        app = Server("test")
        seen: list[tuple[int, str, Any]] = []

        @app.tool(task="required")
        async def ask(context: Context) -> str:
            try:
                await context.elicit("Who?", str)
            except PeerError as error:
                seen.append((error.code, error.message, error.data))
            return "done"

        async with talking(app, CORE) as talk:
            task = await talk.begin("ask")
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            question = (await talk.heard("elicitation/create"))[0]
            reply(talk, question, error={"code": -1, "message": "no", "data": {"a": 1}})
            assert await text_of(talk, waiting) == "done"
        assert seen == [(-1, "no", {"a": 1})]

    asyncio.run(main())


def test_malformed_input_response_fails_with_a_message_that_names_it() -> None:
    async def main() -> None:
        async with talking(asker(), CORE) as talk:
            task = await talk.begin("ask")
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            question = (await talk.heard("elicitation/create"))[0]
            reply(talk, question, result={"action": 7})
            message = (await talk.wire.answer(waiting))["error"]["message"]
            assert message.startswith("the response to 'elicitation-1' is not a result of ")

    asyncio.run(main())


def test_an_answer_that_takes_too_long_is_not_waited_for() -> None:
    async def main() -> None:
        app = Server("test", limits=ServerLimits(ask_timeout=0.05))
        seen: list[str] = []

        @app.tool(task="required")
        async def ask(context: Context) -> str:
            for timeout in (None, 0.05):
                try:
                    await context.elicit("Who?", str, timeout=timeout)
                except RequestTimeout:
                    seen.append("late")
            return "done"

        async with talking(app, CORE) as talk:
            task = await talk.begin("ask")
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            await talk.heard("elicitation/create", 2)
            assert await text_of(talk, waiting) == "done"
            assert len(await talk.heard("notifications/cancelled", 2)) == 2
        assert seen == ["late", "late"]

    asyncio.run(main())


def test_a_task_that_ends_takes_its_question_back() -> None:
    async def main() -> None:
        app = asker()
        async with talking(app, CORE) as talk:
            task = await talk.begin("ask")
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            question = (await talk.heard("elicitation/create"))[0]
            await talk.ask("tasks/cancel", taskId=task["taskId"])
            told = (await talk.heard("notifications/cancelled"))[0]
            assert told["params"]["requestId"] == question["id"]
            assert (await talk.wire.answer(waiting))["error"]["code"] == -32603
            reply(talk, question, result=accept("too late"))
            assert (await talk.until(task))["status"] == "cancelled"

    asyncio.run(main())


class Away(MemoryStore):
    """A store that does not answer a write when it is told so, before or after it was made."""

    def __init__(self, where: bytes, times: int, *, happens: bool) -> None:
        super().__init__()
        self.where = where
        self.times = times
        self.happens = happens

    async def compare_and_set(self, key: Key, value: bytes, **options: Any) -> int | None:
        fails = self.times > 0 and self.where in value
        self.times -= fails
        if fails and not self.happens:
            raise StoreUnavailable("away")
        made = await super().compare_and_set(key, value, **options)
        if fails:
            raise StoreUnavailable("it happened, but nobody says so")
        return made


@pytest.mark.parametrize("happens", [True, False])
@pytest.mark.parametrize("where", [b'"questions"', b'"responses"'])
def test_a_store_that_is_away_for_a_moment_costs_no_question_and_no_answer(
    where: bytes, happens: bool
) -> None:
    async def main() -> None:
        store = Away(where, 2, happens=happens)
        async with talking(asker(store=store), CORE) as talk:
            task = await talk.begin("ask")
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            question = (await talk.heard("elicitation/create"))[0]
            reply(talk, question, result=accept("yes"))
            assert await text_of(talk, waiting) == "yes"
            # The user was asked once.
            assert len(await talk.heard("elicitation/create")) == 1
        assert store.times <= 1

    asyncio.run(main())


def test_a_question_that_cannot_be_kept_is_an_error_of_the_tool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(input_requests, "_STORE_TIMEOUT_S", 0.0)

    async def main() -> None:
        store = Away(b'"questions"', 1, happens=False)
        async with talking(asker(store=store), PER_REQUEST) as talk:
            over = await talk.until(await talk.begin("ask"))
            assert over["result"]["isError"] is True
            assert over["result"]["content"][0]["text"] == "The question cannot be stored."

    asyncio.run(main())


# -- in both ---------------------------------------------------------------------------------


def test_cancelled_elicitation_is_removed_from_the_input_requests() -> None:
    async def main() -> None:
        app = Server("test")
        give_up, gate = asyncio.Event(), asyncio.Event()

        @app.tool(task="required")
        async def ask(context: Context) -> str:
            asked = asyncio.ensure_future(context.elicit("Who?", str, key="who"))
            await give_up.wait()
            asked.cancel()
            await gate.wait()
            answer = await context.elicit("Who else?", str, timeout=60)
            return f"{answer.content}"

        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("ask")
            await talk.until(task, "input_required")
            give_up.set()
            assert "inputRequests" not in await talk.until(task, "working")
            gate.set()
            found = await talk.until(task, "input_required")
            assert list(found["inputRequests"]) == ["elicitation-1"]
            answers = {"elicitation-1": accept("B"), "who": accept("A")}
            await talk.ask("tasks/update", taskId=task["taskId"], inputResponses=answers)
            over = await talk.until(task)
            assert over["result"]["content"][0]["text"] == "B"

    asyncio.run(main())


def test_wait_for_input_does_not_count_toward_the_handler_timeout() -> None:
    async def main() -> None:
        app = Server("test")

        @app.tool(task="required", timeout=0.1)
        async def ask(context: Context) -> str:
            answer = await context.elicit("Who?", str, key="who")
            return f"{answer.content} {context.deadline is not None}"

        async with talking(app, CORE) as talk:
            task = await talk.begin("ask")
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            question = (await talk.heard("elicitation/create"))[0]
            await asyncio.sleep(0.3)
            reply(talk, question, result=accept("A"))
            assert await text_of(talk, waiting) == "A True"
        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("ask")
            await talk.until(task, "input_required")
            await asyncio.sleep(0.3)
            answers = {"who": accept("A")}
            await talk.ask("tasks/update", taskId=task["taskId"], inputResponses=answers)
            assert (await talk.until(task))["result"]["content"][0]["text"] == "A True"

    asyncio.run(main())


def test_a_question_that_the_handler_left_behind_ends_with_the_task() -> None:
    async def main() -> None:
        app = Server("test")
        left: list[asyncio.Future[Any]] = []

        @app.tool(task="required")
        async def ask(context: Context) -> str:
            left.append(asyncio.ensure_future(context.elicit("Who?", str, key="who")))
            await asyncio.sleep(0.02)
            return "done"

        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("ask")
            assert (await talk.until(task))["status"] == "completed"
            async with asyncio.timeout(WAIT):
                found = await asyncio.gather(*left, return_exceptions=True)
            assert isinstance(found[0], RequestAborted)

    asyncio.run(main())


def test_a_key_names_one_question_of_a_task() -> None:
    async def main() -> None:
        app = Server("test")

        @app.tool(task="required")
        async def ask(context: Context) -> str:
            await context.elicit("Who?", str, key="who")
            try:
                await context.elicit("Who again?", str, key="who")
            except ValueError:
                return "refused"
            return "asked"

        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("ask")
            await talk.until(task, "input_required")
            answers = {"who": accept("A")}
            await talk.ask("tasks/update", taskId=task["taskId"], inputResponses=answers)
            over = await talk.until(task)
            assert over["result"]["content"][0]["text"] == "refused"

    asyncio.run(main())


def test_questions_that_are_open_at_once_are_bounded() -> None:
    async def main() -> None:
        app = Server("test", tasks=TaskSettings(open_inputs=2))

        @app.tool(task="required")
        async def ask(context: Context) -> str:
            await asyncio.gather(*(context.elicit("Who?", str) for _ in range(3)))
            return "done"

        async with talking(app, PER_REQUEST) as talk:
            over = await talk.until(await talk.begin("ask"))
            assert over["result"]["isError"] is True
            assert "No more than 2 questions" in over["result"]["content"][0]["text"]

    asyncio.run(main())


def test_once_does_its_work_once() -> None:
    async def main() -> None:
        app = Server("test")
        done: list[int] = []

        def count() -> int:
            done.append(1)
            return len(done)

        @app.tool(task="required")
        async def ask(context: Context) -> str:
            number = await context.once("number", count, type=int)
            await context.elicit("Go on?", str, key="go")
            return f"{number}"

        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("ask")
            await talk.until(task, "input_required")
            answers = {"go": accept("yes")}
            await talk.ask("tasks/update", taskId=task["taskId"], inputResponses=answers)
            over = await talk.until(task)
            assert over["result"]["content"][0]["text"] == "1"
        assert done == [1]

    asyncio.run(main())


def test_a_client_that_cannot_be_asked_lets_the_task_fail() -> None:
    async def main() -> None:
        async with talking(asker(), PER_REQUEST) as talk:
            bare: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
            meta = {"io.modelcontextprotocol/clientCapabilities": bare}
            task = await talk.ask("tools/call", name="ask", meta=meta)
            assert task["resultType"] == "task"
            over = await talk.until(task)
            assert (over["status"], over["error"]["code"]) == ("failed", -32021)
            assert "elicitation" in over["error"]["data"]["requiredCapabilities"]

    asyncio.run(main())


def test_a_handler_that_waits_for_an_answer_is_stopped_by_a_cancel() -> None:
    async def main() -> None:
        app = Server("test")
        seen: list[str] = []

        @app.tool(task="required")
        async def ask(context: Context) -> str:
            try:
                await context.elicit("Who?", str)
            except asyncio.CancelledError:
                seen.append("stopped")
                raise
            return "done"

        @app.tool(task="required")
        def on_thread(context: Context) -> str:
            try:
                context.elicit("Who?", str).wait()
            except BaseException as error:  # whatever stops a thread
                seen.append(type(error).__name__)
                raise
            return "done"

        async with talking(app, PER_REQUEST) as talk:
            for tool in ("ask", "on_thread"):
                task = await talk.begin(tool)
                await talk.until(task, "input_required")
                await talk.ask("tasks/cancel", taskId=task["taskId"])
                assert (await talk.until(task))["status"] == "cancelled"
            await until_async(lambda: len(seen) >= 2)
        assert seen == ["stopped", "CancelledError"]

    asyncio.run(main())
