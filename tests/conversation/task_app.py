"""A server whose tools go on as tasks, in both forms that tasks have had."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from tests.conversation.journal import Journal, add_waiting_tools
from trunkline import Context, RequestError, Server, TaskSettings, ToolError

# How long a client is to wait before it looks again, in seconds: scripts are in a hurry.
POLL: Final = 0.02


def tasks(**settings: Any) -> Server:
    """Return a server with tools of every kind of task support."""
    # Also a call that is quick is a task: that is what scripts look at.
    app = Server("tasks", tasks=TaskSettings(poll_interval=POLL, quick=0), **settings)
    journal = Journal()
    add_waiting_tools(app, journal)
    add_jobs(app, journal)
    add_asking_jobs(app)
    return app


def add_jobs(app: Server, journal: Journal) -> None:
    @app.tool
    async def greet(name: str) -> str:
        """Never a task."""
        return f"Hello, {name}!"

    @app.tool(task="optional")
    async def slow_compute(seconds: float, label: str = "") -> str:
        """Take a while."""
        await asyncio.sleep(seconds)
        return f"computed {label}"

    @app.tool(task="optional")
    async def held(ctx: Context, key: str) -> str:
        """Go on until let go."""
        await ctx.progress(1, 2, "begun")
        await journal.wait(key, ctx)
        await ctx.progress(2, 2, "done")
        return f"held {key}"

    @app.tool(task="required")
    async def failing_job() -> str:
        """Run, and fail."""
        raise ToolError("The job is lost.")

    @app.tool(task="required")
    async def protocol_error_job() -> str:
        """Fail as a request does."""
        raise RequestError("INTERNAL_ERROR", "The job cannot be done")


def add_asking_jobs(app: Server) -> None:
    @app.tool(task="required")
    async def confirm_delete(ctx: Context, filename: str) -> str:
        """Ask before it is done."""
        answer = await ctx.elicit(f"Delete {filename}?", bool, key="confirm")
        return f"{filename} {'deleted' if answer.content else 'kept'}"

    @app.tool(task="required")
    async def multi_input(ctx: Context) -> str:
        """Ask two things at once."""
        first, second = await asyncio.gather(
            ctx.elicit("First?", str, key="first"), ctx.elicit("Second?", str, key="second")
        )
        return f"{first.content} and {second.content}"

    @app.tool(task="required", task_start="handler")
    async def greet_later(ctx: Context) -> str:
        """Ask before it is a task, and again when it is one."""
        name = await ctx.elicit("What is your name?", str, key="user_name")
        await ctx.become_task()
        mood = await ctx.elicit("How are you?", str, key="mood")
        return f"Hello, {name.content}, you are {mood.content}"

    @app.tool(task="optional")
    async def consult(ctx: Context) -> list[str]:
        """Ask the model and for the folders."""
        reply = await ctx.sample("Say something.", max_tokens=5)
        return [reply.model, *(root.uri for root in await ctx.roots())]
