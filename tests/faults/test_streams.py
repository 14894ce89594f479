"""Streams of changes that go wrong: who does not read, floods, leaves, or ends them as it likes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.faults.piped_server import MIB, Piped, address, piped
from tests.rigs.conditions import until, until_async
from tests.rigs.leaks import alive, children, grown, run
from tests.rigs.messages import HANDSHAKE, META, PER_REQUEST
from tests.rigs.server_connection import ServerConnection, connected
from tests.unit.client.scripted import SILENT, Line, Place, discovery, text
from trunkline import (
    Cancelled,
    Client,
    ConnectionLost,
    PeerError,
    RemoteProtocolError,
    RequestTimeout,
    Server,
    ServerLimits,
    TrunklineError,
)
from trunkline.server.dispatch.connection import Connection
from trunkline.server.subscriptions.fanout import FanoutListener

ID = "io.modelcontextprotocol/subscriptionId"
NOTE: dict[str, Any] = {"resourceSubscriptions": ["note://1"]}
LISTS: dict[str, Any] = {"toolsListChanged": True}


def make(**limits: Any) -> Server:
    app = Server("streams", limits=ServerLimits(**{"grace": 0.05, **limits}))
    app.add_tool(lambda: 1, "first")
    app.add_resource(lambda n: n, "note://{n}")
    return app


def listen(
    wire: ServerConnection, id: Any, meta: dict[str, Any] | None = None, **wanted: Any
) -> None:
    params = {"notifications": wanted, "_meta": {**META, **(meta or {})}}
    wire.ask(id, "subscriptions/listen", params)


def cancel(wire: ServerConnection, id: Any) -> None:
    wire.tell("notifications/cancelled", {"requestId": id})


def updates(wire: ServerConnection) -> list[Any]:
    return [
        each["params"]["_meta"][ID] if "_meta" in each["params"] else None
        for each in wire.got
        if each.get("method") == "notifications/resources/updated"
    ]


def is_forgotten(app: Server) -> bool:
    return not app._core.services.streams._listeners and not app._core.services.streams.connections


# Clients that do not read


def listened(server: Piped, id: Any, uris: list[str]) -> None:
    """Listen in a process, with the acknowledgement read."""
    wanted = {"resourceSubscriptions": uris}
    server.send(server.request("subscriptions/listen", id, notifications=wanted))
    assert server.read()["method"] == "notifications/subscriptions/acknowledged"


def test_a_stream_that_is_not_read_is_dropped_with_a_reason_and_its_connection_goes_on() -> None:
    uris = [f"raises://{'x' * 4000}{n:04}" for n in range(200)]
    with piped("server.py", "{}", str(4 * MIB)) as server:
        listened(server, "slow", uris)
        before = server.resident()
        # Far more than is held for who does not read.
        changes = server.call("changes", uri=uris[0][:-4], times=200, size=4, rounds=60)
        server.has_logged("stream 'slow' dropped")
        assert server.resident() - before < 80 * MIB
        ended: dict[str, Any] = {}
        is_answered = False
        while not (ended and is_answered):
            message = server.read()
            if message.get("method") == "notifications/cancelled":
                ended = message["params"]
            is_answered = is_answered or message.get("id") == changes
        assert ended["requestId"] == "slow"
        assert "too slowly" in ended["reason"]
        assert server.serves()
        # It may come back under the same id.
        listened(server, "slow", uris[:1])
        server.call("changes", uri=uris[0])
        assert server.read()["params"]["uri"] == uris[0]


def test_server_with_an_unread_listen_stream_ends_at_sigterm() -> None:
    uris = [f"raises://{'x' * 4000}{n:04}" for n in range(200)]
    with piped("server.py", '{"grace": 0.1}') as server:
        listened(server, "slow", uris)
        server.call("changes", uri=uris[0][:-4], times=200, size=4, rounds=5)
        until(server.speaks)
        os.kill(server.pid, signal.SIGTERM)
        # Nobody reads what it owes.
        assert server.wait() == 0


def subscribed(server: Piped, uris: list[str]) -> None:
    """Open a session that is subscribed to these."""
    server.handshake()
    for n, uri in enumerate(uris):
        params = {"uri": uri}
        message = {"jsonrpc": "2.0", "id": n, "method": "resources/subscribe", "params": params}
        server.send(message)
        assert "result" in server.answer(n)


def test_session_that_reads_no_updates_loses_its_connection() -> None:
    uris = [f"raises://{'x' * 4000}{n:04}" for n in range(200)]
    with piped(
        "server.py", '{"grace": 0.1, "connection_bytes": 16000000, "unread_timeout": 0.5}'
    ) as server:
        subscribed(server, uris)
        server.call("changes", uri=uris[0][:-4], times=200, size=4, rounds=60)
        server.has_logged("the client has not read any of")
        server.rest()
        assert server.wait() == 0


def test_session_that_reads_late_gets_each_changed_resource_once(
    tmp_path: Path,
) -> None:
    uris = [f"raises://{'x' * 4000}{n:04}" for n in range(200)]
    with piped("server.py", '{"unread_timeout": 1000}') as server:
        subscribed(server, uris)
        before = server.resident()
        # 48 MB of notifications, of which about 16 MiB are held.
        done = tmp_path / "done"
        server.call("changes", uri=uris[0][:-4], times=200, size=4, rounds=60, done=str(done))
        until(done.exists)
        assert server.resident() - before < 80 * MIB
        server.call("echo", id="last", text="done")
        got: list[str] = []
        while (message := server.read()).get("id") != "last":
            if message.get("method") == "notifications/resources/updated":
                got.append(message["params"]["uri"])
        # Those of the time when it did not read come after the rest, once each.
        missed = got[-200:]
        assert len(set(missed)) == len(uris)
        assert 200 < len(got) < 10_000
        assert server.serves()


def test_meta_of_an_open_listen_request_is_not_kept() -> None:
    async def script() -> None:
        app = make()
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, "warm", **NOTE)
            tracemalloc.start()
            try:
                for n in range(20):
                    listen(wire, n, {"org.example/junk": "x" * MIB}, **NOTE)
                assert not [each for each in wire.got if "error" in each]
                wire.got.clear()
                assert tracemalloc.get_traced_memory()[0] < 10 * MIB
            finally:
                tracemalloc.stop()

    run(script, timers_too=True)


# Very many


@pytest.mark.usefixtures("census")
def test_a_thousand_streams_whose_connections_are_gone_at_once_leave_nothing() -> None:
    async def script() -> None:
        app = make()

        async def crowd() -> None:
            async with AsyncExitStack() as stack:
                crowd = [
                    await stack.enter_async_context(connected(app, PER_REQUEST)) for _ in range(20)
                ]
                for wire in crowd:
                    for n in range(50):
                        listen(wire, n, **NOTE, **LISTS)
                assert len(alive(FanoutListener)) == 1000
                # They leave while they are being told.
                app.notify_resource_updated("note://1")
                app.add_tool(lambda: 1, "more")
                await asyncio.sleep(0)
            app.remove_tool("more")

        for _ in range(2):
            await crowd()
            assert is_forgotten(app)
            await until_async(lambda: not app._core.services.streams._fanout._is_busy)  # type: ignore[union-attr]  # made by the first
            assert alive(FanoutListener, Connection) == []
        # Nobody is told, and that is no fault.
        app.notify_resource_updated("note://1")

    run(script, timers_too=True)


def test_streams_beyond_the_limit_are_refused_and_take_nothing() -> None:
    async def script() -> None:
        app = make(streams=100, subscriptions=1000)
        async with connected(app, PER_REQUEST) as wire:
            for n in range(100):
                listen(wire, n, **NOTE)
            wire.got.clear()

            async def one_too_many(n: int) -> None:
                listen(wire, 1000 + n, **NOTE)
                assert "error" in wire.got.pop()

            assert await grown(one_too_many, 1000) < 500
            # Whoever leaves makes room for another.
            cancel(wire, 0)
            listen(wire, "next", **NOTE)
            assert "error" not in wire.got.pop()
            # Too many names in one request are refused before any is looked at.
            listen(wire, "many", resourceSubscriptions=[f"note://{n}" for n in range(5000)])
            assert "error" in wire.got.pop()

    run(script, timers_too=True)


def test_a_flood_of_streams_does_not_grow_a_process() -> None:
    with piped("server.py", '{"streams": 50}') as server:
        assert server.serves()
        wanted = {"resourceSubscriptions": ["raises://x"]}
        for n in range(50):
            server.send(server.request("subscriptions/listen", n, notifications=wanted))
            assert "method" in server.read()
        before = server.resident()
        for n in range(0, 10_000, 500):
            lines = (
                json.dumps(server.request("subscriptions/listen", f"f{k}", notifications=wanted))
                for k in range(n, n + 500)
            )
            server.write("".join(line + "\n" for line in lines).encode())
            for _ in range(500):
                assert "error" in server.read()
        assert server.serves()
        assert server.resident() - before < 16 * MIB
        server.end_input()
        rest = server.rest()
        # Those that were let in are answered, each once.
        assert sorted(each["id"] for each in rest) == list(range(50))
        assert server.wait() == 0


# Coming and going


def test_stream_cancelled_twice_or_with_another_id_type_ends_once() -> None:
    async def script() -> None:
        app = make()
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, 7, **NOTE)
            listen(wire, "7", **NOTE)
            for other in ("", "8", 8, 7.5, None, [7], {"id": 7}, True, "x" * 100_000):
                cancel(wire, other)
            cancel(wire, 7)
            cancel(wire, 7)
            wire.got.clear()
            app.notify_resource_updated("note://1")
            await until_async(lambda: updates(wire))
            assert updates(wire) == ["7"]
            # Its id is free, and the new stream is not the old one's.
            listen(wire, 7, **NOTE)
            cancel(wire, "7")
            wire.got.clear()
            app.notify_resource_updated("note://1")
            await until_async(lambda: updates(wire))
            assert updates(wire) == [7]
            cancel(wire, 7)
            assert not app._core.services.streams._listeners

    run(script, timers_too=True)


@pytest.mark.usefixtures("census")
def test_an_id_that_is_open_already_opens_no_second_stream() -> None:
    async def script() -> None:
        app = make()
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, 1, **NOTE)
            listen(wire, 1, **NOTE)
            wire.got.clear()
            app.notify_resource_updated("note://1")
            await until_async(lambda: updates(wire))
            assert updates(wire) == [1]
            assert len(alive(FanoutListener)) == 1

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_subscribing_and_leaving_many_times_keeps_nothing(revision: str) -> None:
    async def script() -> None:
        app = make()
        async with connected(app, revision) as wire:

            async def come_and_go(n: int) -> None:
                uri = f"note://{n}"
                if revision == HANDSHAKE:
                    wire.ask(1, "resources/subscribe", {"uri": uri})
                    wire.ask(2, "resources/subscribe", {"uri": uri})
                    app.notify_resource_updated(uri)
                    wire.ask(3, "resources/unsubscribe", {"uri": uri})
                    wire.ask(4, "resources/unsubscribe", {"uri": uri})
                else:
                    listen(wire, n, resourceSubscriptions=[uri], **LISTS)
                    app.notify_resource_updated(uri)
                    app._core.notify_list_changed("tools")
                    cancel(wire, n)
                if n % 50 == 0:
                    await asyncio.sleep(0)
                wire.got.clear()

            assert await grown(come_and_go, 2000, first=1000) < 500
            for _ in range(5):
                await asyncio.sleep(0.01)
            fanout = app._core.services.streams._fanout
            assert fanout is not None
            assert not fanout._waiting
            assert not fanout._coalescing
        assert is_forgotten(app)

    run(script, timers_too=True)


def test_threads_can_notify_changes_while_listeners_come_and_go(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stop = threading.Event()
    raised: list[BaseException] = []

    async def script() -> None:
        app = make()

        def tells(number: int) -> None:
            try:
                while not stop.is_set():
                    app.notify_resource_updated(f"note://{number % 3}")
                    app._core.notify_list_changed("tools")
                    stop.wait(0.0005)
            except BaseException as error:
                raised.append(error)
                raise

        threads = [threading.Thread(target=tells, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        try:
            for turn in range(30):
                revision = (PER_REQUEST, HANDSHAKE)[turn % 2]
                async with AsyncExitStack() as stack:
                    crowd = [
                        await stack.enter_async_context(connected(app, revision)) for _ in range(5)
                    ]
                    for n, wire in enumerate(crowd):
                        uri = f"note://{n % 3}"
                        if revision == HANDSHAKE:
                            wire.ask("s", "resources/subscribe", {"uri": uri})
                        else:
                            listen(wire, n, resourceSubscriptions=[uri])
                    # Each of them hears, however many come and go.
                    for wire in crowd:
                        await until_async(lambda wire=wire: updates(wire))  # type: ignore[misc]  # bound to this one
        finally:
            stop.set()
            for thread in threads:
                await asyncio.to_thread(thread.join)
        assert is_forgotten(app)
        await asyncio.get_running_loop().shutdown_default_executor()
        app.notify_resource_updated("note://1")

    run(script, timers_too=True)
    assert raised == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_thread_can_notify_changes_after_the_loop_has_ended() -> None:
    app = make()

    async def script() -> None:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, 1, **NOTE)

    for _ in range(2):
        run(script)
        app.notify_resource_updated("note://1")
        app._core.notify_list_changed("tools")
        thread = threading.Thread(target=app.notify_resource_updated, args=("note://1",))
        thread.start()
        thread.join()


# Servers that end


def test_killed_server_ends_every_client_stream_with_connection_lost() -> None:
    async def script() -> None:
        before = children()
        changed: list[str] = []
        client = Client(address("server.py"), on_list_changed=changed.append)
        await client.connect()
        (pid,) = children() - before
        await client.subscribe("raises://callback")
        async with AsyncExitStack() as stack:
            streams = [
                await stack.enter_async_context(client.listen(uris=[f"raises://{n}"]))
                for n in range(50)
            ]
            readers = [asyncio.create_task(anext(each)) for each in streams]
            await client.call_tool("changes", {"uri": "raises://0"})
            os.kill(pid, signal.SIGKILL)
            ended = await asyncio.gather(*readers, return_exceptions=True)
            assert {type(each).__name__ for each in ended[1:]} == {"ConnectionLost"}
            assert getattr(ended[0], "uri", None) == "raises://0"
        await client.close()

    run(script, timers_too=True)


@pytest.mark.parametrize("how", ["SIGTERM", "end of input"])
def test_stopping_server_answers_its_listen_streams(how: str) -> None:
    with piped("server.py", '{"grace": 0.2}') as server:
        for n in range(20):
            listened(server, n, ["raises://x"])
        if how == "SIGTERM":
            os.kill(server.pid, signal.SIGTERM)
        else:
            server.end_input()
        rest = server.rest()
        assert sorted(each["id"] for each in rest) == list(range(20))
        assert {each["result"]["_meta"][ID] for each in rest} == set(range(20))
        assert server.wait() == 0


def test_client_stream_ends_when_the_server_stops_in_order() -> None:
    async def script() -> None:
        app = make()
        async with Client(app) as client, client.listen(uris=["note://1"]) as changes:
            app.notify_resource_updated("note://1")
            app.stop()
            assert [each.uri async for each in changes] == ["note://1"]

    run(script, timers_too=True)


def test_client_gets_peer_error_for_streams_or_uris_over_the_limit() -> None:
    async def script() -> None:
        app = make(streams=2, subscriptions=10)
        async with Client(app) as client, AsyncExitStack() as stack:
            many = [f"note://{n}" for n in range(11)]
            with pytest.raises(PeerError):
                await stack.enter_async_context(client.listen(uris=many))
            for n in range(2):
                await stack.enter_async_context(client.listen(uris=[f"note://{n}"]))
            with pytest.raises(PeerError):
                await stack.enter_async_context(client.listen(uris=["note://x"]))
            assert client.is_connected

    run(script, timers_too=True)


# Our client, and servers with ideas of their own


class Hub(Place):
    """A server that acknowledges each stream, and then does what a test tells it."""

    def __init__(self) -> None:
        capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
        super().__init__(
            {
                "server/discover": discovery(capabilities=capabilities),
                "subscriptions/listen": self.acknowledge,
                "tools/call": text("on", resultType="complete"),
            }
        )
        self.ids: list[Any] = []

    def acknowledge(self, message: dict[str, Any]) -> Any:
        self.ids.append(message["id"])
        asked = message["params"]["notifications"]
        self.tell("subscriptions/acknowledged", message["id"], notifications=asked)
        return SILENT

    def tell(self, what: str, id: Any, **params: Any) -> None:
        method, meta = f"notifications/{what}", {"_meta": {ID: id}}
        self.line.say({"jsonrpc": "2.0", "method": method, "params": {**params, **meta}})

    def cancelled(self, id: Any) -> None:
        self.line.say(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": id, "reason": "enough"},
            }
        )

    def finish(self, id: Any, **members: Any) -> None:
        members = members or {"result": {"resultType": "complete", "_meta": {ID: id}}}
        self.line.say({"jsonrpc": "2.0", "id": id, **members})


def end_with_both(hub: Hub, id: Any) -> None:
    hub.finish(id)
    hub.cancelled(id)


def end_with_both_the_other_way(hub: Hub, id: Any) -> None:
    hub.cancelled(id)
    hub.finish(id)


def end_many_times(hub: Hub, id: Any) -> None:
    for _ in range(50):
        hub.cancelled(id)
        hub.finish(id)
        hub.finish(id, error={"code": -32603, "message": "again"})


def end_and_go_on(hub: Hub, id: Any) -> None:
    hub.cancelled(id)
    hub.tell("subscriptions/acknowledged", id, notifications={})
    for _ in range(50):
        hub.tell("resources/updated", id, uri="note://late")


ENDINGS: dict[str, Callable[[Hub, Any], None]] = {
    "both": end_with_both,
    "both, the other way": end_with_both_the_other_way,
    "many times": end_many_times,
    "and goes on": end_and_go_on,
}


@pytest.mark.parametrize("how", ENDINGS)
def test_a_stream_ends_once_however_often_a_server_ends_it(how: str) -> None:
    async def script() -> None:
        hub = Hub()
        async with Client(hub) as client:
            async with (
                client.listen(uris=["note://1"]) as ended,
                client.listen(uris=["note://1"]) as other,
            ):
                first, second = hub.ids
                hub.tell("resources/updated", first, uri="note://1")
                ENDINGS[how](hub, first)
                assert [each.uri async for each in ended] == ["note://1"]
                # The other one is still open.
                hub.tell("resources/updated", second, uri="note://2")
                assert (await anext(other)).uri == "note://2"
            assert (await client.call_tool("t")).text == "on"

    run(script, timers_too=True)


FAULTY: dict[str, dict[str, Any]] = {
    "both": {"result": {}, "error": {"code": 1, "message": "both"}},
    "a number": {"result": 7},
    "an error": {"error": {"code": -32603, "message": "broken"}},
    "no error": {"error": "broken"},
}


@pytest.mark.parametrize("what", FAULTY)
def test_malformed_end_of_a_stream_ends_it(what: str) -> None:
    async def script() -> None:
        hub = Hub()
        async with Client(hub) as client:
            async with client.listen(uris=["note://1"]) as changes:
                hub.finish(hub.ids[0], **FAULTY[what])
                ended: list[Any] = []
                try:
                    ended = [each async for each in changes]
                except TrunklineError as error:
                    ended = [error]
                assert len(ended) == (0 if what == "a number" else 1)
            assert (await client.call_tool("t")).text == "on"

    run(script, timers_too=True)


def test_client_cancels_each_listen_stream_it_leaves() -> None:
    async def script() -> None:
        hub = Hub()
        async with Client(hub) as client:
            for _ in range(20):
                async with client.listen(uris=["note://1"]):
                    pass
            told = [
                each["params"]["requestId"]
                for each in hub.line.sent
                if each.get("method") == "notifications/cancelled"
            ]
            assert told == hub.ids

    run(script, timers_too=True)


BEGINNINGS: dict[str, tuple[Callable[[Hub, Any], None], type[Exception]]] = {
    "nothing": (lambda hub, id: None, RequestTimeout),
    "a result": (lambda hub, id: hub.finish(id), RemoteProtocolError),
    "a cancel": (lambda hub, id: hub.cancelled(id), Cancelled),
    "an error": (lambda hub, id: hub.finish(id, **FAULTY["an error"]), PeerError),
    "an acknowledgement of another": (
        lambda hub, id: hub.tell("subscriptions/acknowledged", f"{id}", notifications={}),
        RequestTimeout,
    ),
    "an acknowledgement of nothing": (
        lambda hub, id: hub.tell("subscriptions/acknowledged", id),
        RequestTimeout,
    ),
    "an acknowledgement of no kind": (
        lambda hub, id: hub.tell("subscriptions/acknowledged", id, notifications=[1]),
        RequestTimeout,
    ),
    "changes first": (lambda hub, id: hub.tell("resources/updated", id, uri="n:1"), RequestTimeout),
    "the end of the line": (lambda hub, id: hub.line.end(), ConnectionLost),
}


@pytest.mark.parametrize("what", BEGINNINGS)
def test_malformed_acknowledgement_fails_listen_and_leaves_nothing(what: str) -> None:
    begin, expected = BEGINNINGS[what]

    async def script() -> None:
        hub = Hub()

        def serve(message: dict[str, Any]) -> Any:
            loop = asyncio.get_running_loop()
            loop.call_soon(begin, hub, message["id"])
            return SILENT

        hub.answers["subscriptions/listen"] = serve
        async with Client(hub) as client:
            with pytest.raises(expected):
                async with client.listen(uris=["note://1"], timeout=0.05):
                    raise AssertionError("it was entered")

    run(script, timers_too=True)


def test_cancelling_listen_during_opening_cancels_it_on_the_server() -> None:
    async def script() -> None:
        hub = Hub()
        hub.answers["subscriptions/listen"] = SILENT
        async with Client(hub) as client:
            entering = asyncio.create_task(client.listen(uris=["note://1"]).__aenter__())
            id = (await hub.line.until("subscriptions/listen"))["id"]
            entering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await entering
            assert hub.line.last("notifications/cancelled")["params"]["requestId"] == id
            # Its acknowledgement comes too late for anybody.
            hub.tell("subscriptions/acknowledged", id, notifications=NOTE)
            hub.tell("resources/updated", id, uri="note://1")
            assert (await client.call_tool("t")).text == "on"

    run(script, timers_too=True)


def test_changes_for_unknown_streams_are_dropped_without_filling_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    heard: list[Any] = []

    async def script() -> None:
        hub = Hub()
        client = Client(hub, on_notification=lambda *args: heard.append(args))
        async with client, client.listen(uris=["note://1"]) as changes:
            mine = hub.ids[0]
            others = (str(mine), f" {mine}", mine + 1, -1, "", "x" * 10_000, 10**15)
            for n in range(3000):
                hub.tell("resources/updated", others[n % 7], uri="note://theirs")
                hub.tell("tools/list_changed", others[n % 7])
                hub.cancelled(others[n % 7])
            hub.tell("resources/updated", mine, uri="note://mine")
            assert (await anext(changes)).uri == "note://mine"

    run(script, timers_too=True)
    assert [each for each in heard if each[0] != "notifications/cancelled"] == []
    assert len(caplog.text) < 20_000


def test_a_buffer_that_is_full_before_the_subscription_is_entered_ends_it_on_the_server() -> None:
    class Flood(Hub):
        def acknowledge(self, message: dict[str, Any]) -> Any:
            super().acknowledge(message)
            # In one read with the acknowledgement, before the client has resumed.
            for n in range(1001):
                self.tell("resources/updated", message["id"], uri=f"note://{n}")
            return SILENT

    async def script() -> None:
        hub = Flood()
        async with Client(hub) as client, client.listen(uris=["note://1"]) as changes:
            assert len([await anext(changes) for _ in range(1000)]) == 1000
            with pytest.raises(Cancelled, match="changes were not read"):
                await anext(changes)
            assert hub.line.methods().count("notifications/cancelled") == 1
            assert hub.line.last("notifications/cancelled")["params"]["requestId"] == hub.ids[0]

    run(script, timers_too=True)


@pytest.mark.parametrize("whose", ["ours", "nobody's"])
def test_hundred_thousand_unread_changes_do_not_grow_the_client(whose: str) -> None:
    async def script() -> None:
        noted: list[str] = []
        peer = address("stream_peer.py", "floods", "100000", whose, on_stderr=noted.append)
        async with Client(peer) as client, client.listen(uris=["x:0"]) as changes:
            before = sys.getallocatedblocks()
            # Nobody reads; others are served meanwhile.
            await until_async(lambda: "flooded" in noted)
            assert (await client.call_tool("t")).text == "on"
            assert sys.getallocatedblocks() - before < 20_000
            if whose == "ours":
                assert [(await anext(changes)).uri for _ in range(1000)] == [
                    f"x:{n}" for n in range(1000)
                ]
                with pytest.raises(Cancelled, match="changes were not read"):
                    await anext(changes)
                await until_async(lambda: "cancelled" in noted)

    run(script, timers_too=True)


def test_hanging_update_callback_is_called_once_and_logged_as_too_slow(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.client.session.diagnostics.CANCEL_TIMEOUT_S", 0.1)
    called: list[str] = []

    async def script() -> None:
        hub = Hub()

        async def on_resource_updated(uri: str) -> None:
            called.append(uri)
            await asyncio.Event().wait()

        async with Client(hub, on_resource_updated=on_resource_updated) as client:
            await client.subscribe("note://1")
            for n in range(5000):
                hub.tell("resources/updated", hub.ids[-1], uri=f"note://{n}")
            assert (await client.call_tool("t")).text == "on"
            assert called == ["note://0"]

    run(script, timers_too=True)
    assert "is too slow for" in caplog.text
    assert len(caplog.records) < 50


@pytest.mark.parametrize("delay", [0.0, 0.002])
def test_stream_of_the_callbacks_is_reopened_a_bounded_number_of_times(
    delay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.client.subscriptions.callback_stream.FIRST_DELAY_S", 0.001)
    monkeypatch.setattr("trunkline.client.subscriptions.callback_stream.MAX_DELAY_S", 0.01)
    monkeypatch.setattr("tests.rigs.conditions.WAIT_S", 1.0)

    async def script() -> None:
        hub = Hub()

        def end(message: dict[str, Any]) -> Any:
            hub.acknowledge(message)
            if delay:
                asyncio.get_running_loop().call_later(delay, hub.cancelled, message["id"])
            else:
                hub.cancelled(message["id"])
            return SILENT

        async with Client(hub, on_list_changed=lambda _: None) as client:
            hub.answers["subscriptions/listen"] = end
            hub.cancelled(hub.ids[-1])
            await until_async(lambda: len(hub.ids) >= 9)
            await asyncio.sleep(0.1)
            # Eight times, and then no more.
            assert len(hub.ids) == 9
            assert client.is_connected

    run(script, timers_too=True)


def test_flood_of_unread_updates_ends_the_listener_and_not_the_session() -> None:
    async def script() -> None:
        capabilities = {"resources": {"subscribe": True}, "tools": {}}
        hello = {
            "protocolVersion": HANDSHAKE,
            "capabilities": capabilities,
            "serverInfo": {"name": "scripted", "version": "1"},
        }
        answers = {
            "initialize": hello,
            "resources/subscribe": {},
            "resources/unsubscribe": {},
            "tools/call": text("on"),
        }
        place = Place(answers, revision=HANDSHAKE)
        async with Client(place, revision=HANDSHAKE) as client:
            async with client.listen(uris=["x:1"]) as changes:
                line: Line = place.line
                method = "notifications/resources/updated"
                update = {"jsonrpc": "2.0", "method": method, "params": {"uri": "x:1"}}
                frame = json.dumps(update).encode()
                for _ in range(10_000):
                    line.say(frame)
                assert (await client.call_tool("t")).text == "on"
                assert len([await anext(changes) for _ in range(1000)]) == 1000
                with pytest.raises(Cancelled):
                    await anext(changes)
            await line.until("resources/unsubscribe")
            assert line.methods().count("resources/unsubscribe") == 1

    run(script, timers_too=True)
