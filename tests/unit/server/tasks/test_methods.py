"""`tasks/*` on the wire: whose task it is, what is answered, and what each revision has."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from msgspec import Meta, to_builtins
from msgspec.structs import replace

from tests.rigs.conditions import until_async
from tests.rigs.messages import PER_REQUEST
from tests.unit.server.task_talk import CORE, EXTENSION, RELATED, Talk, accept, talking
from trunkline import Context, ErrorKind, RequestError, Server, TaskSettings, ToolError
from trunkline.auth import Fixed, Principal
from trunkline.engine.tasks import runner
from trunkline.server.tasks.methods import tasks_extension
from trunkline.store import MemoryStore

NOWHERE = "A" * 32


@pytest.fixture(autouse=True)
def _never_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found only by looking every few seconds is not found; some tests look often."""
    monkeypatch.setattr(runner, "CHECK_INTERVAL_S", 3600.0)


class Gated(Server):
    """A server with a tool that waits until a test opens its gate."""

    gate: asyncio.Event


def make(**options: Any) -> Gated:
    """A server with the tools of the official suite, and a gate that tests open."""
    # A quick call is a task as well.
    app = Gated("test", version="1", **{"tasks": TaskSettings(quick=0), **options})
    app.gate = asyncio.Event()

    @app.tool
    async def greet(name: str) -> str:
        return f"Hello, {name}!"

    @app.tool(task="optional")
    async def compute(label: str) -> str:
        await app.gate.wait()
        return label

    @app.tool(task="required")
    async def failing_job() -> str:
        raise ToolError("it broke")

    @app.tool(task="required")
    async def protocol_error_job() -> str:
        raise RequestError(ErrorKind.INTERNAL_ERROR, "no way")

    @app.tool(task="required")
    async def multi_input(context: Context) -> str:
        one, two = await asyncio.gather(
            context.elicit("First?", str, key="one"), context.elicit("Second?", str)
        )
        return f"{one.content} and {two.content}"

    @app.tool(task="required", task_start="handler")
    async def with_task(context: Context) -> str:
        name = await context.elicit("Who?", str, key="user_name")
        assert await context.become_task()
        assert await context.become_task()
        return f"done for {name.content}"

    return app


# -- what is offered -------------------------------------------------------------------------


def test_a_server_with_a_tool_that_may_be_a_task_says_so_in_the_form_of_the_revision() -> None:
    async def main() -> None:
        app = make()
        async with talking(app, PER_REQUEST) as talk:
            found = (await talk.ask("server/discover"))["capabilities"]
            assert found["extensions"] == {EXTENSION: {}}
            assert "tasks" not in found
            tools = (await talk.ask("tools/list"))["tools"]
            assert all("execution" not in each for each in tools)
        session = app._core.revision(CORE).initialized().capabilities
        async with talking(app, CORE) as talk:
            tools = {each["name"]: each for each in (await talk.ask("tools/list"))["tools"]}
            assert tools["compute"]["execution"] == {"taskSupport": "optional"}
            assert tools["failing_job"]["execution"] == {"taskSupport": "required"}
            assert "execution" not in tools["greet"]
        told = to_builtins(session)
        assert told["tasks"] == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        assert "extensions" not in told
        before = to_builtins(app._core.revision("2025-06-18").initialized().capabilities)
        assert "tasks" not in before
        assert "extensions" not in before

    asyncio.run(main())


def test_a_server_without_such_a_tool_has_no_tasks() -> None:
    async def main() -> None:
        app = Server("plain")

        @app.tool
        async def greet(name: str) -> str:
            return f"Hello, {name}!"

        async with talking(app, CORE) as talk:
            for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/list"):
                assert (await talk.refused(method, taskId=NOWHERE))["code"] == -32601
            # A receiver without the capability takes no notice of a wish for a task.
            result = await talk.ask("tools/call", name="greet", arguments={"name": "A"}, task={})
            assert result["content"][0]["text"] == "Hello, A!"
        async with talking(app, PER_REQUEST) as talk:
            assert (await talk.refused("tasks/get", taskId=NOWHERE))["code"] == -32601
            assert "extensions" not in (await talk.ask("server/discover"))["capabilities"]

    asyncio.run(main())


def test_a_server_offers_tasks_that_one_it_mounts_has() -> None:
    async def main() -> None:
        inner, outer = make(), Server("outer", tasks=TaskSettings(quick=0))
        outer.mount(inner, prefix="in")
        inner.gate.set()
        for revision in (PER_REQUEST, CORE):
            async with talking(outer, revision) as talk:
                task = await talk.begin("in_compute", label="x")
                assert (await talk.until(task))["status"] == "completed"

    asyncio.run(main())


@pytest.mark.parametrize("options", [{"task": "maybe"}, {"task": None}, {"task_start": "never"}])
def test_options_of_tasks_that_there_are_not_are_refused(options: Any) -> None:
    app = Server("test")
    with pytest.raises(ValueError, match="is one of"):
        app.tool("t", **options)(lambda: None)
    assert EXTENSION not in app._core.extensions


def test_a_handler_cannot_make_a_task_of_a_tool_that_is_never_one() -> None:
    app = Server("test")
    with pytest.raises(ValueError, match="may be a task"):
        app.tool("t", task_start="handler")(lambda: None)
    assert "t" not in app._core.catalog.tools


# -- which calls become tasks ----------------------------------------------------------------


def test_a_call_that_becomes_a_task_is_answered_flat_in_the_extensions_form() -> None:
    async def main() -> None:
        app = make()
        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("compute", label="x")
            assert task["resultType"] == "task"
            assert task["status"] == "working"
            assert (task["ttlMs"], task["pollIntervalMs"]) == (3_600_000, 1000)
            allowed = {"resultType", "taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"}
            assert set(task) == allowed | {"pollIntervalMs", "_meta"}
            found = await talk.ask("tasks/get", taskId=task["taskId"])
            assert found["resultType"] == "complete"
            assert {"result", "error", "inputRequests", "requestState"}.isdisjoint(found)
            app.gate.set()
            over = await talk.until(task)
            assert over["status"] == "completed"
            assert over["result"]["content"] == [{"type": "text", "text": "x"}]
            assert RELATED not in over["result"]["_meta"]
            assert "error" not in over

    asyncio.run(main())


def test_a_call_that_becomes_a_task_is_answered_with_the_task_in_the_cores_form() -> None:
    async def main() -> None:
        app = make()
        async with talking(app, CORE) as talk:
            result = await talk.ask(
                "tools/call", name="compute", arguments={"label": "x"}, task={"ttl": 5000}
            )
            assert set(result) == {"task"}
            task = result["task"]
            assert (task["status"], task["ttl"], task["pollInterval"]) == ("working", 5000, 1000)
            app.gate.set()
            over = await talk.until(task)
            assert "result" not in over
            assert over["status"] == "completed"

    asyncio.run(main())


def test_a_tool_that_is_never_a_task_takes_no_notice_of_a_stray_wish_in_the_extensions_form() -> (
    None
):
    async def main() -> None:
        async with talking(make(), PER_REQUEST) as talk:
            for wish in ({"ttl": 5}, "nonsense", None):
                result = await talk.ask(
                    "tools/call", name="greet", arguments={"name": "A"}, task=wish
                )
                assert result["resultType"] == "complete"
                assert result["content"][0]["text"] == "Hello, A!"
                assert "taskId" not in result

    asyncio.run(main())


def test_a_wish_for_a_task_is_refused_by_a_tool_that_never_is_one_in_the_cores_form() -> None:
    async def main() -> None:
        async with talking(make(), CORE) as talk:
            error = await talk.refused("tools/call", name="greet", arguments={"name": "A"}, task={})
            assert error["code"] == -32601
            error = await talk.refused("tools/call", name="failing_job")
            assert error["code"] == -32601
            for wish in ("x", {"ttl": "long"}, {"ttl": -1}, {"ttl": 0}, None):
                error = await talk.refused(
                    "tools/call", name="compute", arguments={"label": "x"}, task=wish
                )
                assert error["code"] == -32602

    asyncio.run(main())


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_revisions_before_tasks_run_a_tool_as_usual_whatever_task_says(revision: str) -> None:
    async def main() -> None:
        app = make()
        app.gate.set()
        async with talking(app, revision) as talk:
            extras: list[dict[str, Any]] = [{}, {"task": {}}, {"task": "nonsense"}]
            for extra in extras:
                result = await talk.ask(
                    "tools/call", name="compute", arguments={"label": "x"}, **extra
                )
                assert result["content"][0]["text"] == "x"
            result = await talk.ask("tools/call", name="failing_job")
            assert result["isError"] is True
            assert (await talk.refused("tasks/get", taskId=NOWHERE))["code"] == -32601

    asyncio.run(main())


def test_without_the_extension_a_call_runs_or_is_refused_with_what_is_missing() -> None:
    async def main() -> None:
        app = make()
        app.gate.set()
        missing: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        async with talking(app, PER_REQUEST, declares=False) as talk:
            result = await talk.ask("tools/call", name="compute", arguments={"label": "x"})
            assert (result["resultType"], result["content"][0]["text"]) == ("complete", "x")
            for name in ("failing_job", "with_task"):
                error = await talk.refused("tools/call", name=name)
                assert (error["code"], error["data"]) == (-32021, missing)
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                error = await talk.refused(method, taskId=NOWHERE, inputResponses={})
                assert (error["code"], error["data"]) == (-32021, missing)

    asyncio.run(main())


def test_invalid_arguments_of_a_task_request_are_answered_with_an_error() -> None:
    async def main() -> None:
        app = make()
        async with talking(app, CORE) as talk:
            error = await talk.refused("tools/call", name="compute", arguments={}, task={})
            assert error["code"] == -32602
            result = await talk.ask("tools/call", name="compute", arguments={})
            assert result["isError"] is True
        async with talking(app, PER_REQUEST) as talk:
            result = await talk.ask("tools/call", name="compute", arguments={})
            assert (result["resultType"], result["isError"]) == ("complete", True)
        assert not app._core.services.tasks.running

    asyncio.run(main())


def test_a_handler_may_ask_in_rounds_before_it_becomes_a_task() -> None:
    async def main() -> None:
        async with talking(make(), PER_REQUEST) as talk:
            first = await talk.ask("tools/call", name="with_task")
            assert first["resultType"] == "input_required"
            assert "taskId" not in first
            task = await talk.ask(
                "tools/call",
                name="with_task",
                inputResponses={"user_name": accept("Ada")},
                requestState=first["requestState"],
            )
            assert task["resultType"] == "task"
            assert {"requestState", "inputRequests"}.isdisjoint(task)
            over = await talk.until(task)
            assert over["result"]["content"][0]["text"] == "done for Ada"

    asyncio.run(main())


def test_in_the_cores_form_such_a_call_is_a_task_from_its_start() -> None:
    async def main() -> None:
        async with talking(make(), CORE) as talk:
            task = await talk.begin("with_task")
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            question = (await talk.heard("elicitation/create"))[0]
            talk.wire.send({"jsonrpc": "2.0", "id": question["id"], "result": accept("Ada")})
            result = (await talk.wire.answer(waiting))["result"]
            assert result["content"][0]["text"] == "done for Ada"

    asyncio.run(main())


def test_become_task_says_no_where_there_can_be_none() -> None:
    async def main() -> None:
        app = Server("test")
        said: dict[str, bool] = {}

        @app.tool
        async def never(context: Context) -> str:
            said["never"] = await context.become_task()
            return "done"

        @app.tool(task="optional", task_start="handler")
        async def able(context: Context) -> str:
            said["able"] = await context.become_task()
            return "done"

        @app.prompt("able")
        async def prompt(context: Context) -> str:
            said["prompt"] = await context.become_task()
            return "done"

        async with talking(app, PER_REQUEST, declares=False) as talk:
            assert (await talk.ask("tools/call", name="able"))["resultType"] == "complete"
        assert said == {"able": False}
        async with talking(app, CORE) as talk:
            await talk.ask("tools/call", name="able")
        assert said == {"able": False}
        async with talking(app, PER_REQUEST) as talk:
            assert (await talk.ask("tools/call", name="never"))["resultType"] == "complete"
            assert (await talk.ask("prompts/get", name="able"))["resultType"] == "complete"
            assert (await talk.ask("tools/call", name="able"))["resultType"] == "task"
        assert said == {"able": True, "never": False, "prompt": False}

    asyncio.run(main())


# -- how a task ends -------------------------------------------------------------------------


def test_a_tool_that_fails_has_completed_in_the_extensions_form() -> None:
    async def main() -> None:
        async with talking(make(), PER_REQUEST) as talk:
            over = await talk.until(await talk.begin("failing_job"))
            assert (over["status"], over["result"]["isError"]) == ("completed", True)
            assert "error" not in over
            over = await talk.until(await talk.begin("protocol_error_job"))
            assert over["status"] == "failed"
            assert "result" not in over
            assert over["error"] == {"code": -32603, "message": "no way"}

    asyncio.run(main())


def test_a_tool_that_fails_has_failed_in_the_cores_form() -> None:
    async def main() -> None:
        async with talking(make(), CORE) as talk:
            task = await talk.begin("failing_job")
            assert (await talk.until(task))["status"] == "failed"
            result = await talk.ask("tasks/result", taskId=task["taskId"])
            assert result["isError"] is True
            assert result["content"][0]["text"] == "it broke"
            assert result["_meta"] == {RELATED: {"taskId": task["taskId"]}}
            task = await talk.begin("protocol_error_job")
            assert (await talk.until(task))["status"] == "failed"
            error = await talk.refused("tasks/result", taskId=task["taskId"])
            assert error == {"code": -32603, "message": "no way"}

    asyncio.run(main())


def test_a_cancel_ends_a_task_at_once_and_what_its_handler_brings_is_dropped() -> None:
    async def main() -> None:
        app = make()
        seen: list[str] = []

        @app.tool(task="optional")
        async def stubborn() -> str:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                seen.append("cancelled")
            return "all the same"

        for revision in (PER_REQUEST, CORE):
            async with talking(app, revision) as talk:
                task = await talk.begin("stubborn")
                result = await talk.ask("tasks/cancel", taskId=task["taskId"])
                if revision == CORE:
                    assert (result["status"], result["taskId"]) == ("cancelled", task["taskId"])
                else:
                    assert set(result) == {"resultType", "_meta"}
                await until_async(lambda: not app._core.services.tasks.running)
                found = await talk.ask("tasks/get", taskId=task["taskId"])
                assert found["status"] == "cancelled"
                assert "result" not in found
        assert seen == ["cancelled", "cancelled"]

    asyncio.run(main())


def test_to_cancel_what_has_ended_is_an_error_in_one_form_and_nothing_in_the_other() -> None:
    async def main() -> None:
        app = make()
        async with talking(app, CORE) as talk:
            task = await talk.begin("failing_job")
            await talk.until(task)
            error = await talk.refused("tasks/cancel", taskId=task["taskId"])
            assert error["code"] == -32602
        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("failing_job")
            await talk.until(task)
            result = await talk.ask("tasks/cancel", taskId=task["taskId"])
            assert set(result) == {"resultType", "_meta"}
            assert (await talk.until(task))["status"] == "completed"
            result = await talk.ask("tasks/update", taskId=task["taskId"], inputResponses={"a": 1})
            assert set(result) == {"resultType", "_meta"}

    asyncio.run(main())


def test_methods_of_one_form_do_not_exist_in_the_other() -> None:
    async def main() -> None:
        app = make()
        async with talking(app, PER_REQUEST) as talk:
            for method in ("tasks/result", "tasks/list"):
                assert (await talk.refused(method, taskId=NOWHERE))["code"] == -32601
        async with talking(app, CORE) as talk:
            error = await talk.refused("tasks/update", taskId=NOWHERE, inputResponses={})
            assert error["code"] == -32601

    asyncio.run(main())


# -- inputs ----------------------------------------------------------------------------------


def test_inputs_are_shown_until_all_are_answered() -> None:
    async def main() -> None:
        async with talking(make(), PER_REQUEST) as talk:
            task = await talk.begin("multi_input")
            id = task["taskId"]
            await until_questions(talk, id, 2)
            found = await talk.ask("tasks/get", taskId=id)
            asked = found["inputRequests"]
            assert found["status"] == "input_required"
            assert {each["method"] for each in asked.values()} == {"elicitation/create"}
            one, other = "one", next(key for key in asked if key != "one")
            ack = await talk.ask(
                "tasks/update", taskId=id, inputResponses={one: accept("A"), "unknown": [1]}
            )
            assert set(ack) == {"resultType", "_meta"}
            assert ack["resultType"] == "complete"
            found = await talk.ask("tasks/get", taskId=id)
            assert (found["status"], set(found["inputRequests"])) == ("input_required", {other})
            # An answer that was given stays as it was given.
            await talk.ask("tasks/update", taskId=id, inputResponses={one: accept("Z")})
            await talk.ask("tasks/update", taskId=id, inputResponses={other: accept("B")})
            over = await talk.until(task)
            assert over["result"]["content"][0]["text"] == "A and B"
            assert "inputRequests" not in over

    asyncio.run(main())


async def until_questions(talk: Talk, id: str, count: int) -> dict[str, Any]:
    async with asyncio.timeout(10):
        while True:
            found = await talk.ask("tasks/get", taskId=id)
            if len(found.get("inputRequests", {})) == count:
                return dict(found["inputRequests"])
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    "answer", ["yes", 7, {}, {"action": "maybe"}, {"action": "accept", "content": [1]}]
)
def test_an_answer_that_is_none_is_refused_and_changes_nothing(answer: Any) -> None:
    async def main() -> None:
        async with talking(make(), PER_REQUEST) as talk:
            task = await talk.begin("multi_input")
            id = task["taskId"]
            before = await until_questions(talk, id, 2)
            error = await talk.refused(
                "tasks/update",
                taskId=id,
                inputResponses={key: accept("fine") for key in before} | {"one": answer},
            )
            assert error["code"] == -32602
            assert await until_questions(talk, id, 2) == before

    asyncio.run(main())


def sizing(**options: Any) -> Server:
    app = Server("sizing", tasks=TaskSettings(quick=0), **options)

    @app.tool(task="required")
    async def deploy(context: Context) -> str:
        answer = await context.elicit("How many?", Annotated[int, Meta(multiple_of=2)], key="n")
        return f"deployed {answer.content if answer.action == 'accept' else 'nothing'}"

    return app


@pytest.mark.parametrize(
    ("value", "why"),
    [("three", "expected an integer, got a string"), (3, "that's a multiple of 2")],
)
def test_an_answer_that_does_not_fit_the_form_is_refused_and_the_question_stays_open(
    value: Any, why: str
) -> None:
    async def main() -> None:
        async with talking(sizing(), PER_REQUEST) as talk:
            id = (await talk.begin("deploy"))["taskId"]
            before = await until_questions(talk, id, 1)
            error = await talk.refused(
                "tasks/update", taskId=id, inputResponses={"n": accept(value)}
            )
            assert error["code"] == -32602
            assert "the answer to n does not fit the form" in error["message"]
            assert why in error["message"]
            assert await until_questions(talk, id, 1) == before
            await talk.ask("tasks/update", taskId=id, inputResponses={"n": accept(4)})
            over = await talk.until({"taskId": id})
            assert over["result"]["content"][0]["text"] == "deployed 4"

    asyncio.run(main())


def test_a_declined_form_needs_no_content() -> None:
    async def main() -> None:
        async with talking(sizing(), PER_REQUEST) as talk:
            id = (await talk.begin("deploy"))["taskId"]
            await until_questions(talk, id, 1)
            await talk.ask("tasks/update", taskId=id, inputResponses={"n": {"action": "decline"}})
            over = await talk.until({"taskId": id})
            assert over["result"]["content"][0]["text"] == "deployed nothing"

    asyncio.run(main())


def test_a_server_that_does_not_run_the_task_checks_the_answer_by_the_schema(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "CHECK_INTERVAL_S", 0.02)

    async def main() -> None:
        store = MemoryStore()
        async with (
            talking(sizing(store=store), PER_REQUEST) as here,
            talking(sizing(store=store), PER_REQUEST) as there,
        ):
            id = (await here.begin("deploy"))["taskId"]
            before = await until_questions(here, id, 1)
            answer = {"n": accept("three")}
            error = await there.refused("tasks/update", taskId=id, inputResponses=answer)
            assert error["code"] == -32602
            assert "expected an integer" in error["message"]
            assert await until_questions(there, id, 1) == before
            await there.ask("tasks/update", taskId=id, inputResponses={"n": accept(4)})
            over = await here.until({"taskId": id})
            assert over["result"]["content"][0]["text"] == "deployed 4"

    asyncio.run(main())


def test_two_updates_at_once_are_both_taken() -> None:
    async def main() -> None:
        async with talking(make(), PER_REQUEST) as talk:
            task = await talk.begin("multi_input")
            id = task["taskId"]
            keys = list(await until_questions(talk, id, 2))
            for key in keys:
                talk.send("tasks/update", taskId=id, inputResponses={key: accept(key)})
            over = await talk.until(task)
            assert over["result"]["content"][0]["text"] == " and ".join(sorted(keys, reverse=True))

    asyncio.run(main())


# -- whose task it is ------------------------------------------------------------------------


ADA = Principal(subject="ada", tenant="acme")
OTHERS = [
    *(replace(ADA, **{name: "x"}) for name in ("issuer", "subject", "client_id", "tenant")),
    ADA.with_tenant(None),
    None,
]


def talking_as(app: Server, revision: str, principal: Principal | None) -> Any:
    return talking(app, revision, auth=None if principal is None else Fixed(principal))


@pytest.mark.parametrize("other", OTHERS)
def test_a_task_exists_for_its_owner_alone(other: Principal | None) -> None:
    async def main() -> None:
        app = make()
        async with (
            talking_as(app, PER_REQUEST, ADA) as ada,
            talking_as(app, PER_REQUEST, other) as thief,
        ):
            id = (await ada.begin("compute", label="x"))["taskId"]
            unknown = await thief.refused("tasks/get", taskId=NOWHERE)
            assert unknown == {"code": -32602, "message": "Task not found"}
            for method in ("tasks/get", "tasks/cancel", "tasks/update"):
                error = await thief.refused(method, taskId=id, inputResponses={})
                assert error == unknown
            assert (await ada.ask("tasks/get", taskId=id))["status"] == "working"
            app.gate.set()

    asyncio.run(main())


def test_a_list_has_what_is_the_requestors_own() -> None:
    async def main() -> None:
        app = make()
        app.gate.set()
        bob = Principal(subject="bob")
        call = {"name": "compute", "arguments": {"label": "x"}, "task": {}}
        made: dict[Principal | None, list[str]] = {ADA: [], bob: [], None: []}
        for principal in (ADA, bob, None, ADA):
            async with talking_as(app, CORE, principal) as talk:
                result = await talk.ask("tools/call", **call)
                made[principal].append(result["task"]["taskId"])
                if principal is None:
                    tasks = (await talk.ask("tasks/list"))["tasks"]
                    assert [each["taskId"] for each in tasks] == made[None]
        # A principal is the same on another connection; a client without one is not.
        for principal in (ADA, bob):
            async with talking_as(app, CORE, principal) as talk:
                tasks = (await talk.ask("tasks/list"))["tasks"]
                assert sorted(each["taskId"] for each in tasks) == sorted(made[principal])
        async with talking(app, CORE) as talk:
            assert (await talk.ask("tasks/list"))["tasks"] == []
            # Yet a task without an owner may be looked at by its id.
            found = await talk.ask("tasks/get", taskId=made[None][0])
            assert found["taskId"] == made[None][0]

    asyncio.run(main())


def test_a_task_exists_in_the_form_that_made_it_alone() -> None:
    async def main() -> None:
        app = make()
        async with talking(app, CORE) as core, talking(app, PER_REQUEST) as extension:
            one, two = (
                await core.begin("compute", label="x"),
                await extension.begin("compute", label="x"),
            )
            for talk, task in ((core, two), (extension, one)):
                error = await talk.refused("tasks/get", taskId=task["taskId"])
                assert error == {"code": -32602, "message": "Task not found"}
                error = await talk.refused("tasks/cancel", taskId=task["taskId"])
                assert error["code"] == -32602
            assert len((await core.ask("tasks/list"))["tasks"]) == 1
            app.gate.set()

    asyncio.run(main())


@pytest.mark.parametrize("id", ["", "x", "\0" * 32, "A" * 32, "B" * 100_000])
def test_an_unknown_id_is_answered_alike_by_every_method(id: str) -> None:
    async def main() -> None:
        app = make()
        expected = {"code": -32602, "message": "Task not found"}
        async with talking(app, PER_REQUEST) as talk:
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                assert await talk.refused(method, taskId=id, inputResponses={}) == expected
        async with talking(app, CORE) as talk:
            for method in ("tasks/get", "tasks/result", "tasks/cancel"):
                assert await talk.refused(method, taskId=id) == expected

    asyncio.run(main())


@pytest.mark.parametrize("params", [{}, {"taskId": 7}, {"taskId": None}])
def test_params_without_a_task_are_invalid(params: dict[str, Any]) -> None:
    async def main() -> None:
        app = make()
        for revision in (PER_REQUEST, CORE):
            async with talking(app, revision) as talk:
                assert (await talk.refused("tasks/get", **params))["code"] == -32602

    asyncio.run(main())


# -- lists -----------------------------------------------------------------------------------


def test_a_long_list_comes_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.server.tasks.methods._PAGE_TASKS", 4)

    async def main() -> None:
        app = make()
        app.gate.set()
        async with talking(app, CORE) as talk:
            made = [(await talk.begin("compute", label="x"))["taskId"] for _ in range(10)]
            found: list[str] = []
            cursor: dict[str, Any] = {}
            for _ in range(3):
                page = await talk.ask("tasks/list", **cursor)
                found += [each["taskId"] for each in page["tasks"]]
                cursor = {"cursor": page.get("nextCursor")}
            assert sorted(found) == sorted(made)
            assert cursor == {"cursor": None}

    asyncio.run(main())


def test_cursor_of_tasks_list_is_valid_only_for_its_requestor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trunkline.server.tasks.methods._PAGE_TASKS", 1)

    async def main() -> None:
        app = make()
        app.gate.set()
        async with talking(app, CORE) as talk, talking(app, CORE) as other:
            for _ in range(3):
                await talk.begin("compute", label="x")
            cursor = (await talk.ask("tasks/list"))["nextCursor"]
            assert (await other.refused("tasks/list", cursor=cursor))["code"] == -32602
            for wrong in ("", "x", "é", cursor[:-4] + "AAAA", "A" * 100_000, cursor + "="):
                assert (await talk.refused("tasks/list", cursor=wrong))["code"] == -32602
            assert len((await talk.ask("tasks/list", cursor=cursor))["tasks"]) == 1

    asyncio.run(main())


# -- who may be told -------------------------------------------------------------------------


def test_listen_stream_sends_only_the_tasks_of_its_requestor() -> None:
    async def main() -> None:
        app = make()
        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("compute", label="x")
            wanted = {"taskIds": [task["taskId"], NOWHERE]}
            talk.send("subscriptions/listen", notifications=wanted)
            told = (await talk.heard("notifications/subscriptions/acknowledged"))[0]["params"]
            assert told["notifications"] == {"taskIds": [task["taskId"]]}
            app.gate.set()
            heard = (await talk.heard("notifications/tasks"))[0]["params"]
            assert (heard["taskId"], heard["status"]) == (task["taskId"], "completed")
            assert heard["result"]["content"][0]["text"] == "x"

    asyncio.run(main())


def test_a_stream_of_tasks_needs_the_extension() -> None:
    async def main() -> None:
        async with talking(make(), PER_REQUEST, declares=False) as talk:
            wanted = {"taskIds": [NOWHERE]}
            error = await talk.refused("subscriptions/listen", notifications=wanted)
            assert error["code"] == -32021
            assert EXTENSION in error["data"]["requiredCapabilities"]["extensions"]

    asyncio.run(main())


@pytest.mark.parametrize("other", OTHERS)
def test_a_client_does_not_listen_to_the_task_of_another(other: Principal | None) -> None:
    async def main() -> None:
        app = make()
        async with (
            talking_as(app, PER_REQUEST, ADA) as ada,
            talking_as(app, PER_REQUEST, other) as thief,
        ):
            wanted = {"taskIds": [(await ada.begin("compute", label="x"))["taskId"]]}
            for talk, heard in ((thief, {}), (ada, wanted)):
                talk.send("subscriptions/listen", notifications=wanted)
                told = (await talk.heard("notifications/subscriptions/acknowledged"))[0]["params"]
                assert told["notifications"] == heard
            app.gate.set()

    asyncio.run(main())


# -- around it -------------------------------------------------------------------------------


def test_middleware_sees_requests_about_tasks() -> None:
    async def main() -> None:
        app = make()
        seen: list[str] = []

        @app.middleware
        async def note(context: Context, proceed: Any) -> Any:
            seen.append(context.method)
            return await proceed()

        app.gate.set()
        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("compute", label="x")
            await talk.until(task)
        assert {"tools/call", "tasks/get"} <= set(seen)

    asyncio.run(main())


def test_two_extensions_of_tasks_are_the_same_to_a_server() -> None:
    assert tasks_extension().is_same(tasks_extension())
    assert set(tasks_extension().methods) == {"tasks/get", "tasks/update", "tasks/cancel"}


def test_task_settings_are_sent_as_ttl_and_poll_interval() -> None:
    async def main() -> None:
        settings = TaskSettings(ttl=None, longest_ttl=None, poll_interval=0.25, quick=0)
        app = make(tasks=settings)
        app.gate.set()
        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("compute", label="x")
            assert (task["ttlMs"], task["pollIntervalMs"]) == (None, 250)
        async with talking(app, CORE) as talk:
            task = await talk.begin("compute", label="x")
            assert (task["ttl"], task["pollInterval"]) == (None, 250)
        bounded = make(tasks=TaskSettings(ttl=10, longest_ttl=60))
        bounded.gate.set()
        async with talking(bounded, CORE) as talk:
            call = {"name": "compute", "arguments": {"label": "x"}}
            for wish, ttl in (({}, 10_000), ({"ttl": 30_000}, 30_000), ({"ttl": 10**12}, 60_000)):
                result = await talk.ask("tools/call", **call, task=wish)
                assert result["task"]["ttl"] == ttl

    asyncio.run(main())


def test_a_client_that_says_what_it_can_per_request_is_believed_per_request() -> None:
    async def main() -> None:
        app = make()
        app.gate.set()
        async with talking(app, PER_REQUEST) as talk:
            task = await talk.begin("compute", label="x")
            bare: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {}}
            error = await talk.refused("tasks/get", taskId=task["taskId"], meta=bare)
            assert error["code"] == -32021
            assert (await talk.until(task))["status"] == "completed"

    asyncio.run(main())
