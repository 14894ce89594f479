"""What a type checker knows of the lifespan's value: read by it, and never run."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, assert_type

from msgspec import Struct

from trunkline import Context, Server
from trunkline.server import AcceptedElicitation


class Database(Struct):
    """What the lifespan yields."""

    name: str


@asynccontextmanager
async def lifespan(app: Server) -> AsyncGenerator[Database]:
    """Open the database."""
    yield Database("main")


app = Server("typed", lifespan=lifespan)


@app.tool
async def exact(ctx: Context[Database], city: str) -> str:
    """Use the state as what it is."""
    assert_type(ctx.state, Database)
    assert_type(ctx.state.name, str)
    return ctx.state.name + city


@app.tool
def plain(ctx: Context) -> str:
    """Use the state as anything."""
    assert_type(ctx.state, Any)
    assert_type(ctx, Context[Any])
    return helper(ctx)


@app.resource("data://all")
def resource(ctx: Context[Database]) -> str:
    """A resource has it too."""
    return helper(ctx)


@app.prompt
def prompt(ctx: Context[Database] | None = None) -> str:
    """So does a prompt."""
    return "" if ctx is None else helper(ctx)


def helper(ctx: Context[Database]) -> str:
    """Take what a handler has."""
    return ctx.state.name


def wrong(ctx: Context[int]) -> str:
    """Pass another state on."""
    return helper(ctx)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # this is what the file is for


async def narrowed(ctx: Context[Database]) -> int:
    """Narrow an answer by its truth."""
    answer = await ctx.elicit("How many?", int)
    if not answer:
        assert_type(answer.content, None)
        return 0
    assert_type(answer, AcceptedElicitation[int])
    return answer.content
