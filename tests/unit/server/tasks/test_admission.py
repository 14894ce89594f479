"""Which calls are tasks: every tool, in every revision, with and without a wish."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.server.task_talk import CORE, talking
from tests.unit.server.wire import PER_REQUEST
from trunkline import Server, TaskSettings

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
