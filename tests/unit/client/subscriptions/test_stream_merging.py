"""Changes and tasks between a client and a real server, in both eras."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.client.scripted import NEWEST_HANDSHAKE, run
from trunkline import Client, Context, Server
from trunkline.client import ServerChange
from trunkline.errors import Cancelled, LocalProtocolError
from trunkline.spec.revisions import LATEST

BOTH = [LATEST, NEWEST_HANDSHAKE]


def server() -> Server:
    app = Server("together", version="1")

    @app.resource("x:a")
    async def a() -> str:
        return "a"

    @app.resource("x:b")
    async def b() -> str:
        return "b"

    @app.tool(task="optional")
    async def slow(context: Context, n: int) -> str:
        for step in range(3):
            await context.progress(step, 3)
            await asyncio.sleep(0.03)  # longer than what is answered without a task
        return f"done {n}"

    @app.tool(task="required")
    async def greet(context: Context) -> str:
        answer = await context.elicit("Name?", str, key="name")
        return f"hello {answer.content}"

    @app.tool(task="required")
    async def forever() -> str:
        await asyncio.Event().wait()
        return ""

    return app


@pytest.mark.parametrize("revision", BOTH)
def test_streams_bring_the_changes_of_a_real_server(revision: str) -> None:
    app = server()

    async def main() -> None:
        async with Client(app, revision=revision, validate="raise") as client:
            async with (
                client.listen(tools=True, uris=["x:a"]) as one,
                client.listen(uris=["x:b"]) as two,
            ):
                app.notify_resource_updated("x:a")
                app.notify_resource_updated("x:b")
                assert await anext(one) == ServerChange("resource", uri="x:a")
                assert await anext(two) == ServerChange("resource", uri="x:b")

                @app.tool
                async def another() -> str:
                    return ""

                assert await anext(one) == ServerChange("tools")
            assert {each.name for each in await client.list_tools()} >= {"another", "slow"}

    run(main())


@pytest.mark.parametrize("revision", BOTH)
def test_callbacks_are_called_for_changes_of_a_real_server(revision: str) -> None:
    app = server()

    async def main() -> None:
        told: asyncio.Queue[str] = asyncio.Queue()
        options: dict[str, Any] = {"on_resource_updated": told.put_nowait, "revision": revision}
        async with Client(app, on_list_changed=told.put_nowait, **options) as client:
            await client.subscribe("x:a")
            await client.subscribe("x:b")
            await client.unsubscribe("x:a")
            app.notify_resource_updated("x:a")
            app.notify_resource_updated("x:b")
            assert await told.get() == "x:b"

            @app.tool
            async def another() -> str:
                return ""

            assert await told.get() == "tools"

    run(main())


@pytest.mark.parametrize("revision", BOTH)
def test_resource_callback_is_called_for_subscribed_uris_only(
    revision: str,
) -> None:
    app, told = server(), list[str]()

    async def main() -> None:
        async with (
            Client(app, revision=revision, on_resource_updated=told.append) as client,
            client.listen(uris=["x:a", "x:b"]) as changes,
        ):
            await client.subscribe("x:b")
            for uri in ("x:a", "x:b"):
                app.notify_resource_updated(uri)
                assert await anext(changes) == ServerChange("resource", uri=uri)
            await asyncio.sleep(0.01)
            assert told == ["x:b"]
            await client.unsubscribe("x:b")
            app.notify_resource_updated("x:b")
            assert await anext(changes) == ServerChange("resource", uri="x:b")
            await asyncio.sleep(0.01)
            assert told == ["x:b"]

    run(main())


def test_a_resource_that_a_real_server_has_not_is_refused() -> None:
    async def main() -> None:
        async with Client(server()) as client:
            with pytest.raises(LocalProtocolError, match="in the acknowledgement"):
                await client.subscribe("x:nothing")

    run(main())


@pytest.mark.parametrize("revision", BOTH)
def test_tasks_of_a_real_server_are_calls(revision: str) -> None:
    async def main() -> None:
        options: dict[str, Any] = {"revision": revision, "validate": "raise"}
        async with Client(server(), on_elicit=lambda params: {"value": "Ada"}, **options) as client:
            assert (await client.call_tool("slow", {"n": 1})).value == "done 1"
            assert (await client.call_tool("greet")).value == "hello Ada"

    run(main())


@pytest.mark.parametrize("revision", BOTH)
def test_a_task_of_a_real_server_can_be_held(revision: str) -> None:
    app = server()

    async def main() -> None:
        async with Client(app, revision=revision) as client:
            held = await client.call_tool_as_task("slow", {"n": 2}, result_type=str)
            # In 2026-07-28 each new message, which shows its progress, is a change too.
            *before, last = [each async for each in held]
            assert (set(before), last) == ({"working"}, "completed")
            assert (await held.result()).value == "done 2"

            held = await client.call_tool_as_task("forever")
            again = client.task(str(held.id))
            assert await again.refresh() == "working"
            waiting = asyncio.ensure_future(again.result())
            await asyncio.sleep(0.01)
            await held.cancel()
            with pytest.raises(Cancelled):
                await waiting
            await held.cancel()
            if revision == NEWEST_HANDSHAKE:
                assert [each.status for each in await client.list_tasks()].count("cancelled") == 1

    run(main())


@pytest.mark.parametrize("revision", BOTH)
def test_cancelled_caller_cancels_the_task_of_a_real_server(revision: str) -> None:
    app, ended = Server("together"), asyncio.Event()

    @app.tool(task="required")
    async def forever() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    async def main() -> None:
        async with Client(app, revision=revision) as client:
            waiting = asyncio.ensure_future(client.call_tool("forever"))
            await asyncio.sleep(0.05)
            waiting.cancel()
            await asyncio.wait_for(ended.wait(), 5)

    run(main())


def test_progress_of_a_task_of_a_real_server_is_reported() -> None:
    seen: list[float] = []

    async def main() -> None:
        async with Client(server(), revision=NEWEST_HANDSHAKE) as client:
            task = await client.call_tool_as_task(
                "slow", {"n": 1}, on_progress=lambda progress, total, message: seen.append(progress)
            )
            await task.result()

    run(main())
    assert seen == [0, 1, 2]
