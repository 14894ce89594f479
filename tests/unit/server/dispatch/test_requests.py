"""Requests at shutdown: the answer to one whose handler is cut off."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.server.wire import WAIT, connected
from trunkline import Server, ServerLimits
from trunkline.jsonrpc import Policy

REVISION = "2025-11-25"


@pytest.mark.parametrize("in_flight", [2, 1], ids=["both at work", "one waiting"])
def test_requests_cut_off_at_shutdown_get_the_error_number_of_the_policy(in_flight: int) -> None:
    # MCP has no number of its own for this error; this profile has one.
    policy = Policy.mcp(REVISION).replace(codes="pierre-a2a")
    limits = ServerLimits(grace=0.02, in_flight=in_flight)
    app = Server("test", policy=policy, revisions=[REVISION], limits=limits)

    @app.tool
    async def hold() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with connected(app, REVISION) as wire:
            wire.call(1, "hold")
            wire.call(2, "hold")
            async with asyncio.timeout(WAIT):
                while app._core.in_flight < in_flight:
                    await asyncio.sleep(0)
            app.stop()
            for id in (1, 2):
                assert (await wire.answer(id))["error"] == {
                    "code": -32010,
                    "message": "Service unavailable",
                    "data": {"retryAfterMs": 1000},
                }

    asyncio.run(main())
