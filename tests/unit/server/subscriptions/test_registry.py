"""Who is told of what, in both eras, and how a stream of changes ends."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import WAIT, ServerConnection, connected
from trunkline import Context, Server, ServerLimits
from trunkline.jsonrpc import Policy
from trunkline.mcp.types import TaskStatusNotificationParams
from trunkline.server.dispatch.connection import MAX_BACKLOG_BYTES

KEY = "io.modelcontextprotocol/subscriptionId"
ALL = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
NOTES = {"resourceSubscriptions": ["note://1"]}


def make(**options: Any) -> Server:
    app = Server("test", **options)
    app.add_tool(lambda: 1, "first")
    app.add_prompt(lambda: "?", "ask")
    app.add_resource(lambda n: n, "note://{n}")
    return app


def listen(wire: ServerConnection, id: Any, **notifications: Any) -> None:
    wire.ask(id, "subscriptions/listen", {"notifications": notifications, "_meta": META})


def of_stream(wire: ServerConnection, id: Any) -> list[Any]:
    """Return the notifications of one stream, without its acknowledgement."""
    return [
        each
        for each in wire.got
        if each.get("params", {}).get("_meta", {}).get(KEY) == id
        and type(each["params"]["_meta"][KEY]) is type(id)
        and not each["method"].endswith("acknowledged")
    ]


async def settled(app: Server) -> None:
    """Wait until all that was told has been sent."""
    fanout = app._core.services.streams._fanout
    await until_async(lambda: not (fanout is not None and (fanout._is_busy or fanout._coalescing)))


def is_forgotten(app: Server) -> bool:
    return not app._core.services.streams._listeners and not app._core.services.streams.connections


# -- being told ------------------------------------------------------------------------------


def test_every_notification_of_a_stream_has_the_id_of_its_request_as_it_was_typed() -> None:
    app = make()

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, 7, toolsListChanged=True)
            listen(wire, "7", promptsListChanged=True, **NOTES)
            app.add_tool(lambda: 1, "more")
            app.add_prompt(lambda: "", "more")
            app.notify_resource_updated("note://1")
            await settled(app)
            number, text = of_stream(wire, 7), of_stream(wire, "7")
            assert [each["method"] for each in number] == ["notifications/tools/list_changed"]
            assert [each["method"] for each in text] == [
                "notifications/resources/updated",
                "notifications/prompts/list_changed",
            ]
            assert text[0]["params"] == {"uri": "note://1", "_meta": {KEY: "7"}}
            assert number[0]["params"] == {"_meta": {KEY: 7}}

    asyncio.run(main())
    assert is_forgotten(app)


def test_a_stream_brings_nothing_that_it_did_not_ask_for() -> None:
    app = make()

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, 1, promptsListChanged=True, toolsListChanged=False, **NOTES)
            app.add_tool(lambda: 1, "more")
            app.add_resource(lambda: 1, "other://x")
            app.notify_resource_updated("note://2")
            app.notify_resource_updated("note://1")
            await settled(app)
            assert [each["params"].get("uri") for each in of_stream(wire, 1)] == ["note://1"]

    asyncio.run(main())


def test_subscription_and_listen_stream_on_one_connection_are_both_notified() -> None:
    app = make()

    async def main() -> None:
        async with connected(app) as wire:
            wire.ask(1, "resources/subscribe", {"uri": "note://1"})
            await wire.answer(1)
            listen(wire, 2, **NOTES)
            wire.got.clear()
            app.notify_resource_updated("note://1")
            await settled(app)
            plain, own = wire.got
            assert plain["params"] == {"uri": "note://1"}
            assert own["params"] == {"uri": "note://1", "_meta": {KEY: 2}}

    asyncio.run(main())


def test_each_listen_stream_of_a_connection_is_notified() -> None:
    app = make()

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            for id in range(5):
                listen(wire, id, toolsListChanged=True)
            wire.got.clear()
            app.add_tool(lambda: 1, "more")
            await settled(app)
            assert [each["params"]["_meta"][KEY] for each in wire.got] == [0, 1, 2, 3, 4]

    asyncio.run(main())


def test_unsubscribed_session_gets_no_updates_until_it_subscribes_again() -> None:
    app = make()

    async def main() -> None:
        async with connected(app) as wire:
            for id, method in enumerate(["subscribe", "subscribe", "unsubscribe", "unsubscribe"]):
                wire.ask(id, f"resources/{method}", {"uri": "note://1"})
                assert (await wire.answer(id))["result"] == {}
            wire.got.clear()
            app.notify_resource_updated("note://1")
            await settled(app)
            assert wire.got == []
            wire.ask("again", "resources/subscribe", {"uri": "note://1"})
            await wire.answer("again")
            app.notify_resource_updated("note://1")
            await settled(app)
            assert wire.got[-1]["params"] == {"uri": "note://1"}

    asyncio.run(main())


def test_list_changed_is_sent_only_after_initialized() -> None:
    app = make()

    async def main() -> None:
        wire = ServerConnection()
        serving = asyncio.create_task(app.serve(wire.far))
        await wire.near.connect()
        info = {"name": "t", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        wire.ask(0, "initialize", params)
        await wire.answer(0)
        app.add_tool(lambda: 1, "early")
        await settled(app)
        assert len(wire.got) == 1
        wire.tell("notifications/initialized")
        wire.tell("notifications/initialized")
        app.add_tool(lambda: 1, "late")
        await settled(app)
        assert [each.get("method") for each in wire.got[1:]] == ["notifications/tools/list_changed"]
        await wire.near.close()
        await asyncio.wait_for(serving, WAIT)

    asyncio.run(main())


def test_notify_works_from_any_thread_and_without_connections() -> None:
    app = make()
    app.notify_resource_updated("note://1")

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, 1, **NOTES, **ALL)

            def work() -> None:
                app.notify_resource_updated("note://1")
                app.add_tool(lambda: 1, "threaded")

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            await asyncio.sleep(0)
            await settled(app)
            assert [each["method"] for each in of_stream(wire, 1)] == [
                "notifications/resources/updated",
                "notifications/tools/list_changed",
            ]
        app.notify_resource_updated("note://1")

    asyncio.run(main())
    app.notify_resource_updated("note://1")
    app.remove_tool("threaded")


def test_a_server_may_be_served_again_on_another_loop() -> None:
    app = make()

    async def abandon() -> None:
        # Its loop ends while there is still something to tell.
        wire = ServerConnection()
        serving = asyncio.ensure_future(app.serve(wire.far))
        await wire.near.connect()
        listen(wire, 1, toolsListChanged=True, **NOTES)
        await wire.until(1)
        app.notify_resource_updated("note://1")
        app.add_tool(lambda: 1, "abandoned")
        serving.cancel()
        await asyncio.wait([serving])

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, 1, toolsListChanged=True, **NOTES)
            app.notify_resource_updated("note://1")
            app.add_tool(lambda: 1, f"tool_{len(app._core.catalog.tools)}")
            await settled(app)
            assert len(of_stream(wire, 1)) == 2

    for script in (abandon, main, main):
        asyncio.run(script())
    assert is_forgotten(app)


def test_resource_notifications_of_a_mounted_server_reach_clients() -> None:
    app, inner = make(), Server("inner")
    inner.add_resource(lambda: 1, "inner://x")
    app.mount(inner)

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, 1, resourceSubscriptions=["inner://x"], resourcesListChanged=True)
            inner.notify_resource_updated("inner://x")
            inner.add_resource(lambda: 1, "inner://y")
            await settled(app)
            assert [each["method"] for each in of_stream(wire, 1)] == [
                "notifications/resources/updated",
                "notifications/resources/list_changed",
            ]

    asyncio.run(main())


def test_notification_method_names_follow_the_policy() -> None:
    app = make(policy=Policy.mcp().replace(method_names="emit-bare"))

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire, connected(app) as old:
            listen(wire, 1, toolsListChanged=True)
            app.add_tool(lambda: 1, "more")
            await settled(app)
            names = [each["method"] for each in wire.got + old.got]
            bare = "tools/list_changed"
            assert names == ["subscriptions/acknowledged", bare, bare]

    asyncio.run(main())


def test_task_notifications_are_sent_on_streams_that_name_the_task() -> None:
    app = make()
    app._core.services.streams.honoured_task_ids = lambda _request, ids: ids
    params = TaskStatusNotificationParams("then", "now", "working", "t1", ttl_ms=None)

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, 1, taskIds=["t1"])
            listen(wire, 2, taskIds=["t2"])
            app._core.services.streams.task_changed("t1", params)
            await settled(app)
            (told,) = of_stream(wire, 1)
            assert told["method"] == "notifications/tasks"
            assert told["params"]["taskId"] == "t1"
            assert told["params"]["ttlMs"] is None
            assert of_stream(wire, 2) == []

    asyncio.run(main())


# -- ending ----------------------------------------------------------------------------------


def test_a_cancelled_stream_gets_nothing_more_and_no_answer() -> None:
    app = make()

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, 1, **NOTES)
            listen(wire, 2, **NOTES)
            app.notify_resource_updated("note://1")
            wire.tell("notifications/cancelled", {"requestId": 1, "_meta": META})
            await settled(app)
            assert of_stream(wire, 1) == []
            assert len(of_stream(wire, 2)) == 1
            # Its id is free again, and so is its place.
            listen(wire, 1, **NOTES)
            app.notify_resource_updated("note://1")
            await settled(app)
            assert len(of_stream(wire, 1)) == 1
            assert not [each for each in wire.got if "result" in each or "error" in each]

    asyncio.run(main())


def test_a_cancel_that_names_no_stream_changes_none() -> None:
    app = make()

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, 1, **NOTES)
            for id in ("1", 99):
                wire.tell("notifications/cancelled", {"requestId": id, "_meta": META})
            app.notify_resource_updated("note://1")
            await settled(app)
            assert len(of_stream(wire, 1)) == 1

    asyncio.run(main())


def test_a_connection_that_ends_takes_its_streams_along() -> None:
    app = make()

    async def main() -> None:
        async with connected(app, PER_REQUEST) as other:
            listen(other, 1, **NOTES)
            async with connected(app) as wire:
                wire.ask(1, "resources/subscribe", {"uri": "note://1"})
                await wire.answer(1)
                listen(wire, 2, **ALL, **NOTES)
                app.notify_resource_updated("note://1")
            assert len(app._core.services.streams.connections) == 1
            await settled(app)
            assert len(of_stream(other, 1)) == 1

    asyncio.run(main())
    assert is_forgotten(app)


def test_a_server_that_stops_answers_its_streams_at_once() -> None:
    app = make()
    began, go_on = asyncio.Event(), asyncio.Event()

    @app.tool
    async def hold() -> str:
        began.set()
        await go_on.wait()
        return "held"

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, "s", **ALL)
            wire.ask(1, "tools/call", {"name": "hold", "_meta": META})
            await began.wait()
            app.stop()
            answer = await wire.answer("s")
            assert answer["result"]["resultType"] == "complete"
            assert answer["result"].keys() == {"resultType", "_meta"}
            assert answer["result"]["_meta"][KEY] == "s"
            listen(wire, "late", **ALL)
            assert "retryAfterMs" in (await wire.answer("late"))["error"]["data"]
            # The handler is still at work, and is answered for after the stream.
            go_on.set()
            assert "result" in await wire.answer(1)
            assert len([each for each in wire.got if each.get("id") == "s"]) == 1

    asyncio.run(main())
    assert is_forgotten(app)


def test_streams_get_changes_by_running_handlers_after_the_input_ends() -> None:
    app = make()

    @app.tool
    async def touch(ctx: Context) -> str:
        await asyncio.sleep(0.01)
        ctx.app.add_tool(lambda: 1, "touched")
        ctx.app.notify_resource_updated("note://1")
        return "done"

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, "s", toolsListChanged=True, **NOTES)
            wire.ask(1, "tools/call", {"name": "touch", "_meta": META})
            wire.far.on_error(None)  # nothing more comes; it still reads
            answer = await wire.answer("s")
            assert answer["result"]["_meta"][KEY] == "s"
            assert {each["method"] for each in of_stream(wire, "s")} == {
                "notifications/resources/updated",
                "notifications/tools/list_changed",
            }
            assert wire.got[-1] is answer
            assert "result" in await wire.answer(1)

    asyncio.run(main())
    assert is_forgotten(app)


def test_last_list_change_is_sent_when_the_input_ends() -> None:
    app = make()

    async def main() -> None:
        async with connected(app) as wire:
            app.add_tool(lambda: 1, "last")
            wire.far.on_error(None)
            (told,) = await wire.until(1)
            assert told["method"] == "notifications/tools/list_changed"

    asyncio.run(main())


def test_a_stream_whose_client_reads_too_slowly_is_dropped_with_a_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = make()

    async def main() -> None:
        async with connected(app, PER_REQUEST) as slow, connected(app, PER_REQUEST) as quick:
            listen(slow, 5, **NOTES)
            listen(quick, 5, **NOTES)
            slow.far.backlog = MAX_BACKLOG_BYTES + 1
            app.notify_resource_updated("note://1")
            await settled(app)
            slow.far.backlog = 0
            (ended,) = of_stream(slow, 5)
            assert ended["method"] == "notifications/cancelled"
            assert ended["params"]["requestId"] == 5
            assert "too slowly" in ended["params"]["reason"]
            app.notify_resource_updated("note://1")
            await settled(app)
            assert len(of_stream(slow, 5)) == 1
            assert len(of_stream(quick, 5)) == 2
            # It may come back, under the same id: the old request is not open any more.
            listen(slow, 5, **NOTES)
            app.notify_resource_updated("note://1")
            await settled(app)
            assert len(of_stream(slow, 5)) == 2
            assert not [each for each in slow.got if "error" in each]

    asyncio.run(main())
    assert "stream 5 dropped" in caplog.text


def test_a_session_that_reads_too_slowly_gets_each_change_once_when_it_has_read() -> None:
    app = make()

    async def main() -> None:
        async with connected(app) as wire:
            wire.ask(1, "resources/subscribe", {"uri": "note://1"})
            await wire.answer(1)
            wire.got.clear()
            wire.far.backlog = MAX_BACKLOG_BYTES + 1
            for number in range(3):
                app.add_tool(lambda: 1, f"tool{number}")
                app.notify_resource_updated("note://1")
                await settled(app)
            assert wire.got == []
            assert app.stats().deferred_changes > 0
            wire.far.backlog = 0
            wire.far.on_drained()
            assert sorted(each["method"] for each in wire.got) == [
                "notifications/resources/updated",
                "notifications/tools/list_changed",
            ]
            wire.far.on_drained()
            assert len(wire.got) == 2

    asyncio.run(main())
    assert is_forgotten(app)


# -- bounds ----------------------------------------------------------------------------------


def test_streams_take_no_place_among_handlers() -> None:
    app = make(limits=ServerLimits(in_flight=1, in_flight_overall=1))

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            for id in range(5):
                listen(wire, id, **ALL)
            assert app._core.runtime.in_flight == 0
            assert len(asyncio.all_tasks()) == 2  # this one, and the one that serves
            wire.ask("call", "tools/call", {"name": "first", "_meta": META})
            assert "result" in await wire.answer("call")

    asyncio.run(main())


def test_a_connection_has_so_many_streams_and_no_more() -> None:
    app = make(limits=ServerLimits(streams=2))

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire, connected(app, PER_REQUEST) as other:
            for id in range(3):
                listen(wire, id, **NOTES)
            error = (await wire.answer(2))["error"]
            assert "2 streams" in error["message"]
            listen(other, 0, **NOTES)
            assert other.got[0]["method"] == "notifications/subscriptions/acknowledged"
            wire.tell("notifications/cancelled", {"requestId": 0, "_meta": META})
            listen(wire, 3, **NOTES)
            assert wire.got[-1]["params"]["_meta"] == {KEY: 3}

    asyncio.run(main())


def test_a_connection_names_so_many_things_and_no_more() -> None:
    app = make(limits=ServerLimits(subscriptions=3))

    async def main() -> None:
        async with connected(app) as wire:
            for id in range(2):
                wire.ask(id, "resources/subscribe", {"uri": f"note://{id}"})
                assert (await wire.answer(id))["result"] == {}
            listen(wire, "two", resourceSubscriptions=["note://1", "note://2"], **ALL)
            assert "3 subscriptions" in (await wire.answer("two"))["error"]["message"]
            listen(wire, "one", resourceSubscriptions=["note://1", "note://1"], **ALL)
            assert wire.got[-1]["params"]["_meta"] == {KEY: "one"}
            wire.ask("more", "resources/subscribe", {"uri": "note://9"})
            assert "3 subscriptions" in (await wire.answer("more"))["error"]["message"]
            wire.ask("same", "resources/subscribe", {"uri": "note://1"})
            assert (await wire.answer("same"))["result"] == {}
            wire.ask("less", "resources/unsubscribe", {"uri": "note://1"})
            wire.ask("again", "resources/subscribe", {"uri": "note://9"})
            assert (await wire.answer("again"))["result"] == {}

    asyncio.run(main())
