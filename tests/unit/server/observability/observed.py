"""A server with one of everything, and requests about each, for tests of what is observed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import ServerConnection
from trunkline import Context, RequestError, Server, ToolError

__all__ = ["REVISIONS", "ask", "make_app", "requests_about_everything"]

REVISIONS = ("2025-11-25", PER_REQUEST)


def make_app(**options: Any) -> Server:
    app = Server("observed", **options)

    @app.tool
    async def echo(text: str = "") -> str:
        return text

    @app.tool
    async def fail(text: str = "") -> str:
        raise ToolError(f"failed: {text}")

    @app.tool
    async def refuse(kind: int | str) -> str:
        raise RequestError(kind, "refused")

    @app.tool
    async def forever() -> str:
        await asyncio.Event().wait()
        return ""

    @app.tool
    async def asks(ctx: Context) -> str:
        answer = await ctx.elicit("How many?", int)
        return str(answer.content)

    @app.resource("note://plain")
    async def plain() -> str:
        return "text"

    @app.resource("note://{name}/text")
    async def note(name: str) -> str:
        return name

    @app.prompt
    async def greet(name: str = "") -> str:
        return name

    @app.completion(prompt="greet", argument="name")
    async def names(typed: str) -> list[str]:
        return [typed]

    @app.method("stars/list")
    async def stars() -> dict[str, int]:
        return {"count": 1}

    return app


def requests_about_everything(revision: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "tools/call", {"name": "echo", "arguments": {"text": "hi"}}
    yield "resources/read", {"uri": "note://plain"}
    yield "prompts/get", {"name": "greet", "arguments": {"name": "you"}}
    yield (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}},
    )
    for what in ("tools", "resources", "prompts", "resources/templates"):
        yield f"{what}/list", {}
    yield "stars/list", {}
    if revision == PER_REQUEST:
        yield "server/discover", {}
    else:
        yield "ping", {}
        yield "logging/setLevel", {"level": "error"}


async def ask(
    wire: ServerConnection, revision: str, id: Any, method: str, params: dict[str, Any], **meta: Any
) -> Any:
    """Send a request of a revision, and return its answer."""
    own = {**META, **meta} if revision == PER_REQUEST else meta
    wire.ask(id, method, {**params, **({"_meta": own} if own else {})})
    return await wire.answer(id)
