"""Streams of changes, in both eras, against servers that do as they are told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.client.scripted import (
    NEWEST_HANDSHAKE,
    SILENT,
    Line,
    Place,
    Refused,
    discovery,
    initialized,
    run,
)
from trunkline.client import Client
from trunkline.client.subscriptions import stream as changes
from trunkline.client.subscriptions.dispatch import ServerChange, SubscriptionTopics
from trunkline.errors import (
    Cancelled,
    ConnectionLost,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    RequestTimeout,
    TrunklineError,
)
from trunkline.jsonrpc import Policy
from trunkline.spec.revisions import LATEST

ID = "io.modelcontextprotocol/subscriptionId"
ALL = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
TASK = {
    "taskId": "t1",
    "status": "working",
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z",
    "ttlMs": None,
}


class Hub(Place):
    """A server of 2026-07-28 that acknowledges what it is asked for, but for `refused`."""

    def __init__(self, *refused: str, at_once: bool = False, **answers: Any) -> None:
        given = {"server/discover": discovery(capabilities=ALL), "subscriptions/listen": self._ack}
        super().__init__(given | {name: answers[name] for name in answers}, at_once=at_once)
        self.refused = refused

    def _ack(self, message: dict[str, Any]) -> Any:
        asked = message["params"]["notifications"]
        honoured = {
            name: [each for each in wanted if each not in self.refused]
            if isinstance(wanted, list)
            else wanted
            for name, wanted in asked.items()
            if name not in self.refused
        }
        self.notify("subscriptions/acknowledged", message["id"], notifications=honoured)
        return SILENT

    def notify(self, what: str, id: Any, line: Line | None = None, **params: Any) -> None:
        meta = {} if id is None else {"_meta": {ID: id}}
        method = f"notifications/{what}"
        (line or self.line).say({"jsonrpc": "2.0", "method": method, "params": params | meta})

    def finish(self, id: Any) -> None:
        result = {"resultType": "complete", "_meta": {ID: id}}
        self.line.say({"jsonrpc": "2.0", "id": id, "result": result})

    def listens(self) -> list[dict[str, Any]]:
        return [each for each in self.line.sent if each.get("method") == "subscriptions/listen"]

    def cancelled(self) -> list[Any]:
        return [
            each["params"]["requestId"]
            for each in self.line.sent
            if each.get("method") == "notifications/cancelled"
        ]


async def take(changes: Any, count: int) -> list[ServerChange]:
    return [await anext(changes) for _ in range(count)]


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


# -- since 2026-07-28 ------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [False, True])
def test_a_stream_brings_what_was_asked_for(at_once: bool) -> None:
    hub = Hub(at_once=at_once)

    async def main() -> None:
        async with Client(hub) as client:
            wanted = {"tools": True, "prompts": True, "resources": True, "uris": ["x:a", "x:a"]}
            async with client.listen(**wanted, task_ids=["t1"]) as changes:
                sent = hub.listens()[0]
                assert sent["params"]["notifications"] == {
                    "toolsListChanged": True,
                    "promptsListChanged": True,
                    "resourcesListChanged": True,
                    "resourceSubscriptions": ["x:a"],
                    "taskIds": ["t1"],
                }
                assert "io.modelcontextprotocol/protocolVersion" in sent["params"]["_meta"]
                assert changes.honoured == SubscriptionTopics(True, True, True, ("x:a",), ("t1",))
                for what in ("tools", "prompts", "resources"):
                    hub.notify(f"{what}/list_changed", sent["id"])
                hub.notify("resources/updated", sent["id"], uri="x:a")
                hub.notify("tasks", sent["id"], **TASK)
                found = await take(changes, 5)
                assert [each.kind for each in found[:3]] == ["tools", "prompts", "resources"]
                assert found[3] == ServerChange("resource", uri="x:a")
                assert found[4].task is not None
                assert (found[4].task.task_id, found[4].task.status) == ("t1", "working")
                assert hub.cancelled() == []
            assert hub.cancelled() == [sent["id"]]

    run(main())


def test_only_what_is_wanted_is_sent_and_only_what_is_acknowledged_is_honoured() -> None:
    hub = Hub("toolsListChanged", "x:b")

    async def main() -> None:
        async with (
            Client(hub) as client,
            client.listen(tools=True, uris=["x:a", "x:b"]) as changes,
        ):
            asked = {"toolsListChanged": True, "resourceSubscriptions": ["x:a", "x:b"]}
            assert hub.listens()[0]["params"]["notifications"] == asked
            assert changes.honoured == SubscriptionTopics(uris=("x:a",))

    run(main())


def test_topics_added_by_the_acknowledgement_are_ignored() -> None:
    wanted = SubscriptionTopics(tools=True, uris=("x:a",))
    said = SubscriptionTopics(True, True, True, ("x:z", "x:a"), ("t",)).on_the_wire()
    assert wanted.honoured_by(said) == wanted


def test_notifications_are_matched_to_streams_by_id_and_id_type(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hub = Hub()

    async def main() -> None:
        async with (
            Client(hub) as client,
            client.listen(tools=True, uris=["x:a"]) as one,
            client.listen(uris=["x:b"]) as two,
        ):
            first, second = (each["id"] for each in hub.listens())
            hub.notify("resources/updated", second, uri="x:b/part")
            hub.notify("resources/updated", str(first), uri="x:no")
            hub.notify("resources/updated", first, uri="x:a")
            assert await take(one, 1) == [ServerChange("resource", uri="x:a")]
            assert await take(two, 1) == [ServerChange("resource", uri="x:b/part")]
            # It was not asked for there.
            hub.notify("tools/list_changed", second)
            hub.finish(second)
            assert [each async for each in two] == []

    run(main())
    assert "unknown subscription" in caplog.text
    assert "was not requested" in caplog.text


def test_notification_of_an_unknown_stream_is_dropped_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hub, seen = Hub(), list[Any]()

    async def main() -> None:
        options: dict[str, Any] = {"on_list_changed": seen.append, "on_notification": seen.append}
        async with Client(hub, **options) as client:
            own = hub.listens()[0]["id"]
            for _ in range(30):
                hub.notify("tools/list_changed", 12345)
            hub.notify("prompts/list_changed", str(own))
            hub.notify("resources/list_changed", own)
            await settle()
            assert client.is_connected

    run(main())
    assert seen == ["resources"]
    told = [each for each in caplog.records if "unknown subscription" in each.message]
    assert len([each for each in told if each.levelname == "WARNING"]) == 10


def test_late_notifications_of_a_closed_stream_are_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hub = Hub()

    async def main() -> None:
        async with Client(hub) as client:
            async with client.listen(tools=True):
                id = hub.listens()[0]["id"]
            hub.notify("tools/list_changed", id)
            hub.notify("cancelled", None, requestId=id)
            hub.finish(id)
            await settle()

    run(main())
    assert caplog.text == ""


@pytest.mark.parametrize("order", [("result",), ("cancel",), ("result", "cancel")])
@pytest.mark.parametrize("turn", [1, -1])
def test_a_server_ends_a_stream_in_either_way_or_both(
    order: tuple[str, ...], turn: int, caplog: pytest.LogCaptureFixture
) -> None:
    hub = Hub()

    async def main() -> str | None:
        async with Client(hub) as client:
            async with client.listen(tools=True) as changes:
                id = hub.listens()[0]["id"]
                hub.notify("tools/list_changed", id)
                for way in order[::turn]:
                    if way == "result":
                        hub.finish(id)
                    else:
                        hub.notify("cancelled", None, requestId=id, reason="going home")
                found = [each async for each in changes]
                assert found == [ServerChange("tools")]
                await settle()
                assert [each async for each in changes] == []
            assert hub.cancelled() == []
            return changes.reason

    # Of two words that come together the one with a reason counts.
    assert run(main()) == ("going home" if "cancel" in order else None)
    assert caplog.text == ""


def test_a_lost_connection_is_raised_by_the_iteration_after_what_came() -> None:
    hub = Hub()

    async def main() -> None:
        async with (
            Client(hub) as client,
            client.listen(tools=True) as changes,
        ):
            hub.notify("tools/list_changed", hub.listens()[0]["id"])
            await settle()
            hub.line.end()
            assert await anext(changes) == ServerChange("tools")
            with pytest.raises(ConnectionLost):
                await anext(changes)
            with pytest.raises(ConnectionLost):
                await anext(changes)

    run(main())


def test_closing_the_client_ends_its_streams() -> None:
    async def main(revision: str) -> None:
        place = Hub() if revision == LATEST else handshake()
        client = Client(place, revision=revision)
        await client.connect()
        with pytest.raises(ConnectionLost, match="the client was closed"):
            async with client.listen(tools=True) as changes:
                waiting = asyncio.ensure_future(anext(changes))
                await settle()
                await client.close()
                await waiting

    for revision in (LATEST, NEWEST_HANDSHAKE):
        run(main(revision))


def test_a_server_that_does_not_acknowledge_is_left_in_time() -> None:
    hub = Hub(**{"subscriptions/listen": SILENT})

    async def main() -> None:
        async with Client(hub) as client:
            with pytest.raises(RequestTimeout, match=r"no acknowledgement within 0\.01 s"):
                async with client.listen(tools=True, timeout=0.01):
                    pass
            assert hub.cancelled() == [hub.listens()[0]["id"]]
            waiting = asyncio.ensure_future(client.listen(tools=True).__aenter__())
            await hub.line.until("subscriptions/listen", 2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert hub.cancelled() == [each["id"] for each in hub.listens()]

    run(main())


def test_no_deadline_applies_to_a_stream_that_is_open() -> None:
    hub = Hub()

    async def main() -> None:
        async with (
            Client(hub, timeout=0.02, max_timeout=0.02) as client,
            client.listen(tools=True) as changes,
        ):
            # Another request runs out of time meanwhile.
            hub.answers["tools/list"] = SILENT
            with pytest.raises(RequestTimeout):
                await client.list_tools()
            hub.notify("tools/list_changed", hub.listens()[0]["id"])
            assert await anext(changes) == ServerChange("tools")

    run(main())


def test_failure_before_the_acknowledgement_is_raised_on_entering() -> None:
    hub = Hub()

    async def enter(client: Client) -> None:
        async with client.listen(tools=True):
            raise AssertionError("it was entered")

    async def main() -> None:
        async with Client(hub) as client:
            hub.answers["subscriptions/listen"] = Refused(-32601)
            with pytest.raises(PeerError):
                await enter(client)
            hub.answers["subscriptions/listen"] = {"resultType": "complete", "_meta": {ID: 1}}
            with pytest.raises(RemoteProtocolError, match="acknowledged-first"):
                await enter(client)

            def cancel(message: dict[str, Any]) -> Any:
                hub.notify("cancelled", None, requestId=message["id"], reason="too many")
                return SILENT

            hub.answers["subscriptions/listen"] = cancel
            with pytest.raises(Cancelled, match="too many"):
                await enter(client)

    run(main())


def test_stream_that_is_not_read_is_cancelled_after_its_buffered_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "MAX_BUFFERED_CHANGES", 3)
    hub = Hub()

    async def main() -> None:
        async with Client(hub) as client:
            async with client.listen(uris=["x:a"]) as stream:
                id = hub.listens()[0]["id"]
                for number in range(5):
                    hub.notify("resources/updated", id, uri=f"x:{number}")
                await settle()
                assert hub.cancelled() == [id]
                assert [each.uri for each in await take(stream, 3)] == ["x:0", "x:1", "x:2"]
                with pytest.raises(Cancelled, match="3 changes were not read"):
                    await anext(stream)
            assert hub.cancelled() == [id]

    run(main())


def test_buffered_changes_are_bounded_in_bytes() -> None:
    hub = Hub()

    async def main() -> None:
        async with (
            Client(hub) as client,
            client.listen(uris=["x:a"]) as stream,
        ):
            client._connection.budget.max_bytes = 500
            id = hub.listens()[0]["id"]
            # One by itself may be as long as any message.
            for letter in "abc":
                hub.notify("resources/updated", id, uri=f"x:{letter * 1000}")
                await settle()
                if letter == "a":
                    await anext(stream)
            assert (await anext(stream)).uri == "x:" + "b" * 1000
            with pytest.raises(Cancelled, match="1 changes were not read"):
                await anext(stream)

    run(main())


def test_a_stream_is_entered_first_and_once() -> None:
    hub = Hub()

    async def main() -> None:
        async with Client(hub) as client:
            stream = client.listen(tools=True)
            assert repr(stream) == "<Subscription, not entered, 0 buffered>"
            with pytest.raises(TrunklineError, match="enter the subscription first"):
                await anext(stream)
            with pytest.raises(TrunklineError, match="enter the subscription first"):
                _ = stream.honoured
            async with stream:
                assert "open" in repr(stream)
                with pytest.raises(TrunklineError, match="entered once"):
                    await stream.__aenter__()
            assert "ended" in repr(stream)
            assert [each async for each in stream] == []

    run(main())


def test_listening_for_nothing_is_refused() -> None:
    client = Client(Hub())
    with pytest.raises(ValueError, match="name what to listen for"):
        client.listen()
    with pytest.raises(ValueError, match="not one string"):
        client.listen(uris="x:a")
    with pytest.raises(ValueError, match="timeout"):
        client.listen(tools=True, timeout=0)

    async def main() -> None:
        with pytest.raises(TrunklineError, match="not connected"):
            async with client.listen(tools=True):
                pass

    run(main())


def test_explicit_stream_invalidates_the_cache_and_calls_no_callback() -> None:
    page = {"resultType": "complete", "tools": [], "ttlMs": 60000, "cacheScope": "public"}
    hub, seen = Hub(**{"tools/list": page}), list[str]()

    async def main() -> None:
        async with (
            Client(hub, on_list_changed=seen.append) as client,
            client.listen(tools=True) as changes,
        ):
            own, theirs = (each["id"] for each in hub.listens())
            await client.list_tools()
            hub.notify("tools/list_changed", theirs)
            await anext(changes)
            assert seen == []
            await client.list_tools()
            assert hub.line.methods().count("tools/list") == 2
            hub.notify("tools/list_changed", own)
            await settle()
            assert seen == ["tools"]

    run(main())


def test_a_stream_moves_on_when_ids_are_used_up() -> None:
    hub = Hub(**{"tools/list": {"resultType": "complete", "tools": []}})

    async def main() -> None:
        async with Client(hub, policy=Policy(max_id=3)) as client:
            async with client.listen(tools=True) as changes:
                first = hub.line
                id = hub.listens()[0]["id"]
                await client.list_tools()
                await client.list_tools()
                async with client.listen(prompts=True):
                    assert len(hub.lines) == 2
                    # The old connection is kept as long as somebody listens to it.
                    hub.notify("tools/list_changed", id, first)
                    assert await anext(changes) == ServerChange("tools")
                    assert first.closed == 0
            await settle()
            assert first.closed == 1

    run(main())


# -- the handshake ---------------------------------------------------------------------------


def handshake(capabilities: dict[str, Any] = ALL, **answers: Any) -> Place:
    opening = initialized(NEWEST_HANDSHAKE, capabilities=capabilities)
    given = {"initialize": opening, "resources/subscribe": {}, "resources/unsubscribe": {}}
    return Place(given | answers, revision=NEWEST_HANDSHAKE)


def say(place: Place, what: str, **params: Any) -> None:
    place.line.say({"jsonrpc": "2.0", "method": f"notifications/{what}", "params": params})


def test_in_the_handshake_a_stream_is_made_of_subscriptions_and_notifications() -> None:
    place, seen = handshake(ALL | {"tasks": {}}), list[Any]()
    task = {key: TASK[key] for key in TASK if key != "ttlMs"} | {"ttl": None}

    async def main() -> None:
        options: dict[str, Any] = {"revision": NEWEST_HANDSHAKE, "on_list_changed": seen.append}
        async with Client(place, **options) as client:
            wanted: dict[str, Any] = {"tools": True, "uris": ["x:a"], "task_ids": ["t1"]}
            async with client.listen(**wanted) as changes:
                assert place.line.last("resources/subscribe")["params"] == {"uri": "x:a"}
                assert changes.honoured == SubscriptionTopics(True, uris=("x:a",), task_ids=("t1",))
                say(place, "tools/list_changed")
                say(place, "prompts/list_changed")
                say(place, "resources/updated", uri="x:b")
                say(place, "resources/updated", uri="x:ab")
                say(place, "resources/updated", uri="x:a/part")
                say(place, "tasks/status", **task | {"taskId": "other"})
                say(place, "tasks/status", **task)
                found = await take(changes, 3)
                assert found[:2] == [
                    ServerChange("tools"),
                    ServerChange("resource", uri="x:a/part"),
                ]
                assert found[2].task is not None
                assert found[2].task.task_id == "t1"
                assert seen == ["tools", "prompts"]
            await place.line.until("resources/unsubscribe")
            say(place, "tools/list_changed")
            await settle()
            assert [each async for each in changes] == []

    run(main())


def test_in_the_handshake_what_the_server_did_not_declare_is_not_honoured() -> None:
    place = handshake({"tools": {}, "resources": {}})

    async def main() -> None:
        async with (
            Client(place, revision=NEWEST_HANDSHAKE) as client,
            client.listen(tools=True, uris=["x:a"], task_ids=["t"]) as changes,
        ):
            assert changes.honoured == SubscriptionTopics()
            assert "resources/subscribe" not in place.line.methods()

    run(main())


def test_in_the_handshake_a_resource_that_is_refused_is_not_honoured() -> None:
    def subscribe(message: dict[str, Any]) -> Any:
        return Refused(-32002) if message["params"]["uri"] == "x:no" else {}

    place = handshake(**{"resources/subscribe": subscribe})

    async def main() -> None:
        async with Client(place, revision=NEWEST_HANDSHAKE) as client:
            async with client.listen(uris=["x:no", "x:a"]) as changes:
                assert changes.honoured.uris == ("x:a",)
            left = await place.line.until("resources/unsubscribe")
            assert left["params"] == {"uri": "x:a"}
            assert place.line.methods().count("resources/unsubscribe") == 1

    run(main())


def test_in_the_handshake_the_last_user_of_a_resource_unsubscribes() -> None:
    place = handshake()

    async def main() -> None:
        async with Client(place, revision=NEWEST_HANDSHAKE) as client:
            line = place.line
            async with client.listen(uris=["x:a"]):
                async with client.listen(uris=["x:a", "x:b"]):
                    assert line.methods().count("resources/subscribe") == 2
                assert line.last("resources/unsubscribe")["params"] == {"uri": "x:b"}
                await client.subscribe("x:a")
            assert line.methods().count("resources/unsubscribe") == 1
            async with client.listen(uris=["x:a"]):
                # The stream still wants it.
                await client.unsubscribe("x:a")
                assert line.methods().count("resources/unsubscribe") == 1
            assert line.last("resources/unsubscribe")["params"] == {"uri": "x:a"}

    run(main())


def test_in_the_handshake_unsubscribe_waits_for_pending_subscribes() -> None:
    place, waiting = handshake(), list[dict[str, Any]]()

    def later(message: dict[str, Any]) -> Any:
        waiting.append(message)
        return SILENT

    def answer(**member: Any) -> None:
        place.line.say({"jsonrpc": "2.0", "id": waiting.pop(0)["id"], **member})

    refused = {"error": {"code": -32002, "message": "no"}}

    async def main() -> None:
        async with Client(place, revision=NEWEST_HANDSHAKE) as client:
            line = place.line
            async with client.listen(uris=["x:a"]):
                place.answers["resources/subscribe"] = later
                subscribing = asyncio.ensure_future(client.subscribe("x:a"))
                await line.until("resources/subscribe", 2)
            answer(result={})
            await subscribing
            assert "resources/unsubscribe" not in line.methods()
            await client.unsubscribe("x:a")
            assert line.methods().count("resources/unsubscribe") == 1

            # Where the other does not get it, it is left after all.
            place.answers["resources/subscribe"] = {}
            async with client.listen(uris=["x:a"]):
                place.answers["resources/subscribe"] = later
                subscribing = asyncio.ensure_future(client.subscribe("x:a"))
                await line.until("resources/subscribe", 4)
            assert line.methods().count("resources/unsubscribe") == 1
            answer(**refused)
            with pytest.raises(PeerError):
                await subscribing
            assert line.methods().count("resources/unsubscribe") == 2

            # And nobody unsubscribes while a stream is about to want it.
            entering = asyncio.ensure_future(client.listen(uris=["x:a"]).__aenter__())
            await line.until("resources/subscribe", 5)
            leaving = asyncio.ensure_future(client.unsubscribe("x:a"))
            await settle()
            assert line.methods().count("resources/unsubscribe") == 2
            answer(result={})
            assert (await entering).honoured.uris == ("x:a",)
            await leaving
            assert line.methods().count("resources/unsubscribe") == 2
            assert client._connection.session is not None
            assert client._connection.session.streams.turns == {}

    run(main())


def test_in_the_handshake_a_refused_subscribe_is_retried_by_the_next_stream() -> None:
    place, tries = handshake(), list[int]()

    def subscribe(message: dict[str, Any]) -> Any:
        tries.append(1)
        return Refused(-32002) if len(tries) == 1 else {}

    place.answers["resources/subscribe"] = subscribe

    async def main() -> None:
        async with Client(place, revision=NEWEST_HANDSHAKE) as client:
            both = [client.listen(uris=["x:a"]) for _ in range(2)]
            first, second = await asyncio.gather(*(each.__aenter__() for each in both))
            assert first.honoured.uris == ()
            assert second.honoured.uris == ("x:a",)

    run(main())


def test_in_the_handshake_updates_outside_any_stream_go_to_the_callback() -> None:
    place, told = handshake(), list[str]()

    async def main() -> None:
        options: dict[str, Any] = {"on_resource_updated": told.append}
        async with (
            Client(place, revision=NEWEST_HANDSHAKE, **options) as client,
            client.listen(uris=["x:a"]),
        ):
            for uri in ("x:a", "x:b"):
                say(place, "resources/updated", uri=uri)
            await settle()
            assert told == ["x:b"]

    run(main())


def test_in_the_handshake_a_server_that_is_silent_is_left_in_time() -> None:
    def subscribe(message: dict[str, Any]) -> Any:
        return SILENT if message["params"]["uri"] == "x:b" else {}

    place = handshake(**{"resources/subscribe": subscribe})

    async def main() -> None:
        async with Client(place, revision=NEWEST_HANDSHAKE) as client:
            with pytest.raises(RequestTimeout):
                async with client.listen(uris=["x:a", "x:b"], timeout=0.01):
                    pass
            assert place.line.last("resources/unsubscribe")["params"] == {"uri": "x:a"}

    run(main())


def test_in_the_handshake_a_listener_that_does_not_read_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "MAX_BUFFERED_CHANGES", 2)
    place = handshake()

    async def main() -> None:
        async with (
            Client(place, revision=NEWEST_HANDSHAKE) as client,
            client.listen(uris=["x:a"]) as stream,
        ):
            for _ in range(3):
                say(place, "resources/updated", uri="x:a")
            await settle()
            assert "resources/unsubscribe" in place.line.methods()
            assert len(await take(stream, 2)) == 2
            with pytest.raises(Cancelled):
                await anext(stream)

    run(main())


def test_in_the_handshake_streams_go_over_to_a_new_connection() -> None:
    place = handshake(**{"tools/list": {"tools": []}})

    async def main() -> None:
        options: dict[str, Any] = {"revision": NEWEST_HANDSHAKE, "policy": Policy(max_id=3)}
        async with (
            Client(place, **options) as client,
            client.listen(tools=True, uris=["x:a"]) as changes,
        ):
            await client.list_tools()
            await client.list_tools()
            assert len(place.lines) == 2
            assert place.line.last("resources/subscribe")["params"] == {"uri": "x:a"}
            await settle()
            say(place, "tools/list_changed")
            assert await anext(changes) == ServerChange("tools")

    run(main())


def test_a_change_shows_nothing_that_a_terminal_acts_on() -> None:
    assert (
        repr(ServerChange("resource", uri="x:\x1b[1m")) == "<ServerChange of resource 'x:\\x1b[1m'>"
    )
    assert repr(ServerChange("tools")) == "<ServerChange of tools>"


def test_repr_of_subscription_topics_hides_task_ids() -> None:
    wanted = SubscriptionTopics(True, uris=("x:\x1b[1m",), task_ids=("secret-id", "other"))
    assert repr(wanted) == "<SubscriptionTopics, tools, 'x:\\x1b[1m', 2 tasks>"
    assert "secret-id" not in repr(wanted.__rich_repr__())
    assert repr(SubscriptionTopics()) == "<SubscriptionTopics, nothing>"


@pytest.mark.parametrize("revision", [LATEST, NEWEST_HANDSHAKE])
def test_a_strict_client_listens_only_for_what_was_declared(revision: str) -> None:
    declared: dict[str, Any] = {"tools": {"listChanged": True}, "resources": {}}
    place = Hub() if revision == LATEST else handshake(declared)
    if revision == LATEST:
        place.answers["server/discover"] = discovery(capabilities=declared)

    async def main() -> None:
        async with Client(place, revision=revision, strict=True) as client:
            async with client.listen(tools=True) as changes:
                assert changes.honoured.tools
            before = len(place.line.sent)
            with pytest.raises(LocalProtocolError, match="prompts"):
                async with client.listen(tools=True, prompts=True):
                    pass
            with pytest.raises(LocalProtocolError):
                await client.subscribe("x:a")
            assert len(place.line.sent) == before

    run(main())


@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_a_stream_that_is_ended_while_its_request_is_being_sent_has_ended(
    is_acknowledged: bool,
) -> None:
    def end(message: dict[str, Any]) -> Any:
        if is_acknowledged:
            hub._ack(message)
            hub.notify("tools/list_changed", message["id"])
        hub.notify("cancelled", None, requestId=message["id"], reason="no")
        return SILENT

    hub = Hub(at_once=True, **{"subscriptions/listen": end})

    async def main() -> None:
        async with Client(hub) as client:
            stream = client.listen(tools=True)
            if not is_acknowledged:
                with pytest.raises(Cancelled, match="no"):
                    await stream.__aenter__()
                return
            async with stream as changes:
                assert [each async for each in changes] == [ServerChange("tools")]
                assert changes.reason == "no"

    run(main())


def test_an_error_that_ends_a_stream_is_raised_by_the_iteration() -> None:
    hub = Hub()

    async def main() -> None:
        async with Client(hub) as client, client.listen(tools=True) as changes:
            error = {"code": -32603, "message": "broken"}
            hub.line.say({"jsonrpc": "2.0", "id": hub.listens()[0]["id"], "error": error})
            with pytest.raises(PeerError, match="broken"):
                await anext(changes)

    run(main())


def test_in_the_handshake_a_lost_stream_does_not_unsubscribe_on_a_new_connection() -> None:
    place = handshake()

    async def main() -> None:
        async with Client(place, revision=NEWEST_HANDSHAKE) as client:
            async with client.listen(uris=["x:a"]) as lost:
                place.line.end()
                with pytest.raises(ConnectionLost):
                    await anext(lost)
                await client.connect()
                new = client.listen(uris=["x:a"])
                await new.__aenter__()
            assert "resources/unsubscribe" not in place.line.methods()
            say(place, "resources/updated", uri="x:a")
            assert await anext(new) == ServerChange("resource", uri="x:a")
            await new.__aexit__(None, None, None)
            assert place.line.methods().count("resources/unsubscribe") == 1

    run(main())


def test_in_the_handshake_a_subscription_refused_on_reconnect_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def subscribe(message: dict[str, Any]) -> Any:
        return {} if len(place.lines) == 1 else Refused(-32002)

    place = handshake(**{"tools/list": {"tools": []}, "resources/subscribe": subscribe})

    async def main() -> None:
        options: dict[str, Any] = {"revision": NEWEST_HANDSHAKE, "policy": Policy(max_id=3)}
        async with Client(place, **options) as client, client.listen(uris=["x:a"]):
            await client.list_tools()
            await client.list_tools()
            await settle()
            assert place.lines[0].closed == 1

    run(main())
    assert "not subscribed to 'x:a'" in caplog.text


def test_malformed_change_notifications_are_logged_and_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hub = Hub()

    async def main() -> None:
        async with (
            Client(hub) as client,
            client.listen(tools=True, uris=["x:a"], task_ids=["t1"]) as changes,
        ):
            id = hub.listens()[0]["id"]
            hub.notify("resources/updated", id, uri=7)
            hub.notify("tasks", id, taskId="t1")
            hub.notify("tasks", id, **TASK | {"taskId": "other"})
            hub.notify("subscriptions/acknowledged", None, notifications={})
            hub.notify("subscriptions/acknowledged", id, notifications={})
            hub.notify("tools/list_changed", id)
            assert await anext(changes) == ServerChange("tools")
            assert changes.honoured.tools

    run(main())
    assert "notifications/resources/updated" in caplog.text
    assert "without a subscription id" in caplog.text


@pytest.mark.parametrize("revision", [LATEST, NEWEST_HANDSHAKE])
def test_a_stream_is_opened_by_a_new_connection_where_ids_are_used_up(revision: str) -> None:
    place = Hub() if revision == LATEST else handshake()

    async def main() -> None:
        # Two are enough to open a connection and listen; a handshake takes one more to go over.
        most = 2 if revision == LATEST else 3
        options: dict[str, Any] = {"revision": revision, "policy": Policy(max_id=most)}
        async with Client(place, **options) as client:
            for _ in range(3):
                async with client.listen(tools=True, uris=["x:a"]) as changes:
                    assert changes.honoured.uris == ("x:a",)
            await client.subscribe("x:a")
            await client.unsubscribe("x:a")
            assert len(place.lines) > 2

    run(main())


def test_a_notification_whose_meta_cannot_be_read_is_for_the_callbacks() -> None:
    hub, seen = Hub(), list[str]()

    async def main() -> None:
        async with Client(hub, on_list_changed=seen.append):
            for id in (True, 7.0, None, {}):
                hub.notify("tools/list_changed", id)
            method = "notifications/tools/list_changed"
            hub.line.say({"jsonrpc": "2.0", "method": method, "params": {"_meta": 7}})
            hub.line.say({"jsonrpc": "2.0", "method": method})
            await settle()

    run(main())
    assert seen == ["tools"] * 6
