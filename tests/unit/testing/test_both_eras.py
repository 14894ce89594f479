"""Running a tool in both eras: what is the same passes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.unit.testing.scenes import Trip, differs
from trunkline import Context, Server
from trunkline.server import ServerLimits
from trunkline.testing import (
    run_in_both_eras,
    run_in_both_eras_sync,
)


def test_a_tool_that_asks_gives_the_same_in_both_eras() -> None:
    app = Server("tests")

    @app.tool
    async def plan(context: Context, by: str) -> str:
        trip = (await context.elicit("Where to?", Trip, key="trip")).content
        assert trip is not None
        sure = await context.elicit(f"{trip.days} days in {trip.city} by {by}?", bool)
        return f"{trip.city}: {sure.content}"

    both = run_in_both_eras_sync(
        app,
        "plan",
        {"by": "train"},
        {"trip": {"city": "Oslo"}, "3 days in Oslo by train?": True},
    )
    assert both.result.text == both.handshake.text == both.per_request.text == "Oslo: True"
    assert [(each.key, each.kind) for each in both.questions] == [
        ("trip", "elicitation"),
        ("elicitation-1", "elicitation"),
    ]
    assert both.rounds == 3
    assert [run.revision for run in both.runs] == ["2025-11-25", "2026-07-28"]
    assert [run.rounds for run in both.runs] == [1, 3]


def test_a_tool_that_asks_nothing_is_run_once_in_each() -> None:
    app = Server("tests")
    runs: list[int] = []

    @app.tool
    def add(one: int, other: int) -> int:
        runs.append(1)
        return one + other

    both = run_in_both_eras_sync(app, "add", {"one": 1, "other": 2})
    assert both.result.value == 3
    assert (both.rounds, both.questions, len(runs)) == (1, [], 2)


def test_a_tool_on_a_thread_is_run_as_well() -> None:
    app = Server("tests")
    made: list[str] = []

    @app.tool
    def blocking(context: Context) -> str:
        number = context.once("made", lambda: made.append("ticket") or 7).wait()
        return f"{number} {context.elicit('Sure?', bool).wait().content}"

    assert run_in_both_eras_sync(app, "blocking", None, [True]).result.text == "7 True"
    assert made == ["ticket"] * 2


def test_prompts_and_resources_are_run_too() -> None:
    app = Server("tests")

    @app.prompt
    async def shout(context: Context) -> str:
        return ((await context.elicit("What?", str)).content or "").upper()

    @app.resource("test://{name}")
    async def thing(name: str, context: Context) -> str:
        return f"{name} {(await context.elicit('Which?', str)).content}"

    shouted = run_in_both_eras_sync(app, "shout", None, ["aha"], what="prompt")
    assert shouted.result.messages[0].content.text == "AHA"
    read = run_in_both_eras_sync(app, "test://a", None, ["b"], what="resource")
    assert read.result.contents[0].text == "a b"


def test_call_finishes_with_a_new_server_for_each_round() -> None:
    made: list[Server] = []

    def make() -> Server:
        app = Server("tests")
        made.append(app)
        runs: list[int] = []

        @app.tool
        async def count(context: Context) -> str:
            number = await context.once("run", lambda: runs.append(1) or len(runs), type=int)
            await context.elicit(f"Run {number}?", bool)
            return f"run {number}"

        return app

    both = run_in_both_eras_sync(make, "count", None, [True])
    assert both.result.text == "run 1"
    # One to look at, one for the handshake, one for each round.
    assert len(made) == 4


def test_nothing_is_kept_with_a_connection_between_rounds() -> None:
    app = Server("tests")
    seen: list[int] = []

    @app.tool
    async def connect(context: Context) -> str:
        seen.append(id(context._request.connection))
        await context.elicit("Sure?", bool)
        return "done"

    run_in_both_eras_sync(app, "connect", None, [True], ignore=["seen"])
    assert len(seen) == 3
    assert seen[1] != seen[2]


def test_the_lifespan_lasts_from_round_to_round() -> None:
    entered: list[str] = []

    @asynccontextmanager
    async def lifespan(app: Server) -> Any:
        entered.append("in")
        yield "database"
        entered.append("out")

    app = Server("tests", lifespan=lifespan)

    @app.tool
    async def use(context: Context) -> str:
        await context.elicit("Sure?", bool)
        return str(context.state)

    assert run_in_both_eras_sync(app, "use", None, [True]).result.text == "database"
    assert entered == ["in", "out"] * 2


def test_state_can_be_put_back_before_each_era() -> None:
    app = Server("tests")
    tickets: list[str] = []

    @app.tool
    async def ticket(context: Context) -> str:
        number = await context.once("n", lambda: tickets.append("t") or len(tickets), type=int)
        answer = await context.elicit(f"Take ticket {number}?", bool)
        return f"{number} {answer.content}"

    assert (
        run_in_both_eras_sync(app, "ticket", None, [True], reset=tickets.clear).result.text
        == "1 True"
    )
    assert "The questions differ" in differs(app, "ticket", None, [True])


def test_more_rounds_than_a_server_allows_are_a_difference() -> None:
    app = Server("tests", limits=ServerLimits(rounds=2))

    @app.tool
    async def curious(context: Context) -> str:
        for number in range(3):
            await context.elicit(f"{number}?", bool)
        return "done"

    assert "needs more than 2 round trips" in differs(app, "curious", None, lambda _: True)


def test_hanging_tool_is_reported_as_a_difference() -> None:
    app = Server("tests")

    @app.tool
    async def hang() -> str:
        await asyncio.Event().wait()
        return ""

    assert "did not finish within 0.05 s in 2025-11-25" in differs(app, "hang", timeout=0.05)


async def _nothing() -> str:
    return ""


def test_server_of_one_era_and_task_only_tool_are_refused() -> None:
    app = Server("tests", revisions=["2026-07-28"])
    app.add_tool(lambda: "", "nothing")
    with pytest.raises(ValueError, match="only one era: 2026-07-28"):
        run_in_both_eras_sync(app, "nothing")
    long = Server("tests")
    long.add_tool(_nothing, "work", task="required")
    with pytest.raises(ValueError, match="only as a task"):
        run_in_both_eras_sync(long, "work")
    with pytest.raises(ValueError, match="no tool 'something'"):
        run_in_both_eras_sync(Server("tests"), "something")


def test_the_middleware_of_a_server_is_as_it_was() -> None:
    app = Server("tests")
    seen: list[str] = []

    @app.middleware
    async def note(context: Context, proceed: Any) -> Any:
        if context.method == "tools/call":
            seen.append(context.name)
        return await proceed()

    @app.tool
    async def ask(context: Context) -> str:
        return (await context.elicit("Sure?", bool)).action

    before = app._core.middleware
    run_in_both_eras_sync(app, "ask", None, [True])
    assert app._core.middleware == before
    assert seen == ["ask"] * 3


def test_run_in_both_eras_is_awaited_in_a_running_loop() -> None:
    app = Server("tests")
    app.add_tool(lambda: "", "nothing")

    async def main() -> None:
        assert (await run_in_both_eras(app, "nothing")).result.text == ""
        with pytest.raises(RuntimeError, match="await run_in_both_eras"):
            run_in_both_eras_sync(app, "nothing")

    asyncio.run(main())


def test_a_lifespan_that_fails_is_what_is_raised() -> None:
    @asynccontextmanager
    async def broken(app: Server) -> Any:
        raise OSError("no database")
        yield

    app = Server("tests", lifespan=broken)
    app.add_tool(lambda: "", "nothing")
    with pytest.raises(OSError, match="no database"):
        run_in_both_eras_sync(app, "nothing", timeout=5)
