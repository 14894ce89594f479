"""Running handlers: the answer to one that is cut off, and what they hold."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import UNSET

from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import WAIT, connected
from trunkline import Context, RequestAborted, Server, ServerLimits
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
                while app._core.runtime.in_flight < in_flight:
                    await asyncio.sleep(0)
            app.stop()
            for id in (1, 2):
                assert (await wire.answer(id))["error"] == {
                    "code": -32010,
                    "message": "Service unavailable",
                    "data": {"retryAfterMs": 1000},
                }

    asyncio.run(main())


# What is held


def test_a_running_handler_holds_its_arguments_and_not_the_frame_they_came_in() -> None:
    app = Server("test")
    gate = asyncio.Event()

    @app.tool
    async def hold(text: str) -> int:
        await gate.wait()
        return len(text)

    @app.tool
    async def ask(text: str, context: Context) -> int:
        await gate.wait()
        return len(text)

    async def held(revision: str, tool: str, size: int = 1000) -> bool:
        """Call a tool; return True if the request still has its params while it runs."""
        gate.clear()
        async with connected(app, revision) as wire:
            params = {"name": tool, "arguments": {"text": "x" * size}}
            if revision == PER_REQUEST:
                params["_meta"] = META
            wire.ask(1, "tools/call", params)
            async with asyncio.timeout(WAIT):
                while not app.stats().in_flight:
                    await asyncio.sleep(0)
            (connection,) = app._core.runtime.connections
            (asked,) = connection.runner.at_work
            is_kept = asked.params is not UNSET
            assert (asked.envelope.params is not UNSET) == is_kept
            gate.set()
            assert (await wire.answer(1))["result"]["content"][0]["text"] == str(size)
        return is_kept

    for tool in ("hold", "ask"):
        assert not asyncio.run(held(REVISION, tool))
    assert not asyncio.run(held(PER_REQUEST, "hold"))
    # A question inside a result has a digest of the request.
    assert asyncio.run(held(PER_REQUEST, "ask"))
    # A small frame is not worth the effort.
    assert asyncio.run(held(REVISION, "hold", 100))


def test_the_reply_to_a_question_counts_as_held_until_its_handler_ends() -> None:
    app = Server("test", limits=ServerLimits(connection_bytes=4000))

    @app.tool
    async def ask(context: Context) -> str:
        first = await context.elicit("one?", str)
        try:
            await context.elicit("two?", str)
        except RequestAborted as error:
            return str(error)
        return str(first)

    @app.tool
    async def hold() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with connected(app, REVISION, {"elicitation": {}}) as wire:
            opened = app.stats().held_bytes
            wire.call("hold", "hold")
            wire.call(1, "ask")
            for size in (1000, 4000):
                await wire.until(1)
                before = app.stats().held_bytes
                question = wire.got.pop()
                content = {"value": "x" * size}
                wire.send(
                    {
                        "jsonrpc": "2.0",
                        "id": question["id"],
                        "result": {"action": "accept", "content": content},
                    }
                )
                if size == 1000:
                    await wire.until(1)
                    assert app.stats().held_bytes > before + 1000
            text = (await wire.answer(1))["result"]["content"][0]["text"]
            assert "no room for the reply" in text
            wire.tell("notifications/cancelled", {"requestId": "hold"})
            async with asyncio.timeout(WAIT):
                while app.stats().in_flight:
                    await asyncio.sleep(0)
            assert app.stats().held_bytes == opened

    asyncio.run(main())


def test_a_call_that_became_a_task_counts_as_held_until_the_task_ends() -> None:
    app = Server("test")
    gate = asyncio.Event()

    @app.tool(task="optional")
    async def work(text: str) -> int:
        await gate.wait()
        return len(text)

    async def main() -> None:
        async with connected(app, REVISION) as wire:
            opened = app.stats().held_bytes
            params = {"name": "work", "arguments": {"text": "x" * 10_000}, "task": {}}
            wire.ask(1, "tools/call", params)
            assert "task" in (await wire.answer(1))["result"]
            now = app.stats()
            assert now.in_flight == 0
            assert now.held_bytes > opened + 10_000
            gate.set()
            async with asyncio.timeout(WAIT):
                while app.stats().held_bytes > opened:
                    await asyncio.sleep(0.005)

    asyncio.run(main())
    assert app.stats().held_bytes == 0


@pytest.mark.parametrize("order", ["sequential", "parallel"])
def test_nothing_is_held_after_a_batch_whether_it_was_answered_or_cancelled(order: str) -> None:
    policy = Policy.mcp("2025-03-26").replace(batch_order=order)
    app = Server("test", policy=policy, revisions=["2025-03-26"], limits=ServerLimits(in_flight=2))
    gate = asyncio.Event()

    @app.tool
    async def hold(text: str) -> int:
        await gate.wait()
        return len(text)

    async def main() -> None:
        async with connected(app, "2025-03-26") as wire:
            opened = app.stats().held_bytes
            params = {"name": "hold", "arguments": {"text": "x" * 1000}}
            calls = [
                {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params}
                for n in range(6)
            ]
            wire.send(calls)
            assert app.stats().held_bytes > opened + 6000
            for id in (1, 4, 5):
                wire.tell("notifications/cancelled", {"requestId": id})
            gate.set()
            (answers,) = await wire.until(1)
            assert [each["id"] for each in answers] == [0, 2, 3]
            assert app.stats().held_bytes == opened

    asyncio.run(main())
    assert app.stats().held_bytes == 0


def test_the_handler_of_a_notification_is_cancelled_with_its_connection() -> None:
    app = Server("test", limits=ServerLimits(linger=0))
    ended: list[str] = []

    @app.notification("x/wait")
    async def wait(params: dict[str, Any]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def main() -> None:
        async with connected(app) as wire:
            wire.tell("x/wait", {"x": 1})
            await asyncio.sleep(0)
            assert app.stats().in_flight == 1
        assert ended == ["cancelled"]
        assert app.stats().in_flight == app.stats().held_bytes == 0

    asyncio.run(main())


@pytest.mark.parametrize("order", ["sequential", "parallel"])
def test_small_requests_of_batches_weigh_too(order: str) -> None:
    policy = Policy.mcp("2025-03-26").replace(batch_order=order)
    limits = ServerLimits(in_flight=2, connection_bytes=100_000)
    app = Server("test", policy=policy, revisions=["2025-03-26"], limits=limits)
    gate = asyncio.Event()

    @app.tool
    async def hold() -> str:
        await gate.wait()
        return "done"

    async def main() -> None:
        async with connected(app, "2025-03-26") as wire:
            for n in range(20):
                wire.send(
                    [
                        {
                            "jsonrpc": "2.0",
                            "id": f"{n}-{k}",
                            "method": "tools/call",
                            "params": {"name": "hold", "arguments": {}},
                        }
                        for k in range(10)
                    ]
                )
            now = app.stats()
            assert now.held_bytes <= 100_000
            assert now.refused["connection_bytes"] > 100
            gate.set()
            answers = [each for batch in await wire.until(20) for each in batch]
            assert len({each["id"] for each in answers}) == 200
            assert sum("error" in each for each in answers) == now.refused["connection_bytes"]

    asyncio.run(main())
    assert app.stats().held_bytes == 0
