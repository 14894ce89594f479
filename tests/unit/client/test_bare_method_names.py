"""Bare notification names are understood, and sent, where the policy says so."""

from __future__ import annotations

import asyncio

from trunkline import Client, Context, Server
from trunkline.jsonrpc import Policy
from trunkline.transports import Frame, Tapped


def test_erlmcp_policy_sends_progress_and_cancelled_without_a_prefix() -> None:
    policy = Policy.erlmcp()
    app = Server("bare", policy=policy, revisions=["2025-11-25"])
    frames: list[bytes] = []
    reported: list[float] = []

    @app.tool
    async def step(ctx: Context) -> str:
        await ctx.progress(1)
        return "done"

    @app.tool
    async def wait() -> str:
        await asyncio.sleep(60)
        return "late"

    def record_frame(_: str, frame: Frame) -> None:
        if isinstance(frame, bytes):
            frames.append(frame)

    async def main() -> None:
        address = Tapped(app, record_frame)
        async with Client(address, revision="2025-11-25", policy=policy) as client:
            await client.call_tool("step", on_progress=lambda done, *_: reported.append(done))
            waiting = asyncio.ensure_future(client.call_tool("wait"))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting], timeout=5)

    asyncio.run(main())
    assert reported == [1]
    sent = b"".join(frames)
    assert b"notifications/" not in sent
    for name in (b'"initialized"', b'"progress"', b'"cancelled"'):
        assert b'"method":' + name in sent
