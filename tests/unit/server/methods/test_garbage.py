"""A request leaves no cycle behind: its objects are freed without a garbage collection."""

from __future__ import annotations

import asyncio
import gc

import pytest

from tests.unit.server.access.callers import PER_REQUEST, caller, connected_as
from trunkline import Context, Server
from trunkline.server.dispatch.request import ServerRequest

KINDS = (Context, ServerRequest)


def app() -> Server:
    app = Server("a")

    @app.tool
    async def greet(ctx: Context) -> str:
        return ctx.name

    @app.tool(visible=lambda ctx: ctx.principal is None, scopes=["a"])
    async def hidden() -> str:
        return ""

    @app.tool(scopes=["a"], allow=lambda ctx: True)
    async def guarded() -> str:
        return ""

    return app


async def left_after_requests(method: str) -> int:
    async with connected_as(app(), caller("ann"), PER_REQUEST) as wire:
        gc.collect()
        gc.disable()
        try:
            before = sum(isinstance(each, KINDS) for each in gc.get_objects())
            for _ in range(3):
                if method == "tools/list":
                    await wire.request(method)
                else:
                    await wire.tool(method)
            after = sum(isinstance(each, KINDS) for each in gc.get_objects())
        finally:
            gc.enable()
    return after - before


@pytest.mark.parametrize("method", ["greet", "hidden", "guarded", "tools/list"])
def test_request_with_a_context_is_freed_without_a_garbage_collection(method: str) -> None:
    assert asyncio.run(left_after_requests(method)) == 0
