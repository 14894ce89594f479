"""What a client listens to for its callbacks, where a server has to be asked to tell."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.unit.client.scripted import SILENT, Refused, discovery, run
from tests.unit.client.subscriptions.test_stream import ALL, ID, Hub, settle
from trunkline.client import Client
from trunkline.client.subscriptions import callback_stream
from trunkline.errors import LocalProtocolError, PeerError, RequestTimeout
from trunkline.jsonrpc import Policy

LISTS = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


def filters(hub: Hub) -> list[Any]:
    return [each["params"]["notifications"] for each in hub.listens()]


def ids(hub: Hub) -> list[Any]:
    return [each["id"] for each in hub.listens()]


def test_list_callbacks_are_called_from_the_clients_own_stream() -> None:
    hub, seen = Hub(), list[str]()

    async def main() -> None:
        async with Client(hub, on_list_changed=seen.append):
            assert filters(hub) == [LISTS]
            for what in ("tools", "prompts", "resources"):
                hub.notify(f"{what}/list_changed", ids(hub)[0])
            await settle()

    run(main())
    assert seen == ["tools", "prompts", "resources"]


def test_only_what_the_server_declared_is_listened_to() -> None:
    hub = Hub()
    hub.answers["server/discover"] = discovery(capabilities={"tools": {"listChanged": True}})

    async def main() -> None:
        async with Client(hub, on_list_changed=print):
            assert filters(hub) == [{"toolsListChanged": True}]
        hub.answers["server/discover"] = discovery(capabilities={"tools": {}})
        async with Client(hub, on_list_changed=print):
            assert filters(hub) == []

    run(main())


def test_without_callbacks_no_listen_request_is_sent() -> None:
    hub = Hub()

    async def main() -> None:
        async with Client(hub):
            assert filters(hub) == []

    run(main())


def test_resources_are_added_and_taken_away_and_nothing_is_missed_meanwhile() -> None:
    hub, seen = Hub(), list[str]()

    async def main() -> None:
        options: dict[str, Any] = {"on_list_changed": seen.append}
        async with Client(hub, on_resource_updated=seen.append, **options) as client:
            await client.subscribe("x:a")
            assert filters(hub) == [LISTS, LISTS | {"resourceSubscriptions": ["x:a"]}]
            first, second = ids(hub)
            # The old one is left once the new one is acknowledged, and not before.
            order = [each["method"] for each in hub.line.sent if "method" in each]
            assert order[-2:] == ["subscriptions/listen", "notifications/cancelled"]
            assert hub.cancelled() == [first]
            hub.notify("resources/updated", second, uri="x:a")
            await settle()
            assert seen == ["x:a"]
            await client.subscribe("x:a")
            assert len(ids(hub)) == 2
            await client.subscribe("x:b")
            await client.unsubscribe("x:a")
            assert filters(hub)[-1] == LISTS | {"resourceSubscriptions": ["x:b"]}
            await client.unsubscribe("x:a")
            assert len(ids(hub)) == 4
            assert hub.cancelled() == ids(hub)[:3]

    run(main())


def test_old_stream_is_used_until_the_new_one_is_acknowledged() -> None:
    hub, seen = Hub(), list[str]()

    async def main() -> None:
        async with Client(hub, on_list_changed=seen.append) as client:
            hub.answers["subscriptions/listen"] = SILENT
            with pytest.raises(RequestTimeout):
                await client.subscribe("x:a", timeout=0.01)
            hub.notify("tools/list_changed", ids(hub)[0])
            await settle()
            assert seen == ["tools"]
            assert hub.cancelled() == ids(hub)[1:]

    run(main())


def test_stream_without_topics_is_cancelled() -> None:
    hub = Hub()

    async def main() -> None:
        async with Client(hub, on_resource_updated=print) as client:
            await client.unsubscribe("x:never")
            assert ids(hub) == []
            await client.subscribe("x:a")
            await client.unsubscribe("x:a")
            assert hub.cancelled() == ids(hub)
            assert len(ids(hub)) == 1

    run(main())


def test_unacknowledged_resource_is_refused_and_leaves_the_stream_unchanged() -> None:
    hub = Hub("x:no")

    async def main() -> None:
        async with Client(hub) as client:
            await client.subscribe("x:a")
            with pytest.raises(LocalProtocolError, match="in the acknowledgement") as caught:
                await client.subscribe("x:no")
            assert caught.value.got == "x:no"
            assert hub.cancelled() == ids(hub)[1:]
            await client.subscribe("x:b")
            assert filters(hub)[-1] == {"resourceSubscriptions": ["x:a", "x:b"]}
            hub.answers["subscriptions/listen"] = Refused(-32603)
            with pytest.raises(PeerError):
                await client.subscribe("x:c")

    run(main())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callback_stream, "FIRST_DELAY_S", 0.001)
    monkeypatch.setattr(callback_stream, "MAX_DELAY_S", 0.002)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("way", ["result", "cancel"])
def test_a_stream_that_the_server_ends_is_opened_again(way: str) -> None:
    hub, seen = Hub(), list[str]()

    async def main() -> None:
        async with Client(hub, on_list_changed=seen.append) as client:
            await client.subscribe("x:a")
            if way == "result":
                hub.finish(ids(hub)[-1])
            else:
                hub.notify("cancelled", None, requestId=ids(hub)[-1])
            await hub.line.until("subscriptions/listen", 3)
            assert filters(hub)[-1] == LISTS | {"resourceSubscriptions": ["x:a"]}
            await settle()
            # Each list may have changed while no stream was open.
            assert sorted(seen) == ["prompts", "resources", "tools"]
            seen.clear()
            hub.notify("tools/list_changed", ids(hub)[-1])
            await settle()
            assert seen == ["tools"]

    run(main())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("way", ["result", "cancel"])
@pytest.mark.parametrize("begins", ["connecting", "subscribing"])
def test_a_stream_that_ends_with_its_acknowledgement_is_opened_again(
    way: str, begins: str, caplog: pytest.LogCaptureFixture
) -> None:
    hub, seen, ended = Hub(), list[str](), list[Any]()

    def listen(message: dict[str, Any]) -> Any:
        id, asked = message["id"], message["params"]["notifications"]
        if len(ended) == 2:  # not the first, nor the first that was opened again
            return hub._ack(message)
        ended.append(id)
        meta = {ID: id}
        params: dict[str, Any] = {"notifications": asked, "_meta": meta}
        method = "notifications/subscriptions/acknowledged"
        said: list[dict[str, Any]] = [{"method": method, "params": params}]
        if way == "result":
            said.append({"id": id, "result": {"resultType": "complete", "_meta": meta}})
        else:
            said.append({"method": "notifications/cancelled", "params": {"requestId": id}})

        def deliver() -> None:  # in one piece, as it were
            for each in said:
                hub.line._deliver(json.dumps({"jsonrpc": "2.0"} | each).encode())

        asyncio.get_running_loop().call_soon(deliver)
        return SILENT

    hub.answers["subscriptions/listen"] = listen

    async def main() -> None:
        lists = seen.append if begins == "connecting" else None
        options: dict[str, Any] = {"on_list_changed": lists, "on_resource_updated": seen.append}
        async with Client(hub, **options) as client:
            if begins == "subscribing":
                await client.subscribe("x:a")
            await hub.line.until("subscriptions/listen", 3)
            await settle()
            seen.clear()  # of what may have changed while no stream was open
            if begins == "connecting":
                hub.notify("tools/list_changed", ids(hub)[-1])
            else:
                hub.notify("resources/updated", ids(hub)[-1], uri="x:a")
            await settle()
            assert seen == ["tools" if begins == "connecting" else "x:a"]

    run(main())
    assert "giving up" not in caplog.text


@pytest.mark.usefixtures("quick")
def test_client_gives_up_after_the_maximum_of_attempts(caplog: pytest.LogCaptureFixture) -> None:
    def end(message: dict[str, Any]) -> Any:
        hub.notify("subscriptions/acknowledged", message["id"], notifications=LISTS)
        return {"resultType": "complete", "_meta": {}}

    hub = Hub(**{"subscriptions/listen": end})

    async def main() -> None:
        async with Client(hub, on_list_changed=print):
            await hub.line.until("subscriptions/listen", 1 + callback_stream.MAX_ATTEMPTS)
            while "giving up" not in caplog.text:
                await asyncio.sleep(0.001)
            assert len(ids(hub)) == 1 + callback_stream.MAX_ATTEMPTS

    run(main())


@pytest.mark.usefixtures("quick")
def test_stable_stream_resets_the_number_of_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callback_stream, "STABLE_AFTER_S", 0.0)
    monkeypatch.setattr(callback_stream, "MAX_ATTEMPTS", 2)
    hub = Hub()

    async def main() -> None:
        async with Client(hub, on_list_changed=print):
            for count in range(1, 6):
                await hub.line.until("subscriptions/listen", count)
                await settle()
                hub.finish(ids(hub)[-1])

    run(main())


@pytest.mark.usefixtures("quick")
def test_refused_listen_request_leaves_the_client_connected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hub = Hub(**{"subscriptions/listen": Refused(-32601)})

    async def main() -> None:
        async with Client(hub, on_list_changed=print) as client:
            assert client.is_connected
            hub.answers["subscriptions/listen"] = hub._ack
            await client.subscribe("x:a")
            hub.answers["subscriptions/listen"] = Refused(-32603)
            hub.finish(ids(hub)[-1])
            await hub.line.until("subscriptions/listen", 3)
            await asyncio.sleep(0.01)
            assert len(ids(hub)) == 3

    run(main())
    assert "no notifications of changes" in caplog.text
    assert "subscription to changes rejected" in caplog.text


@pytest.mark.usefixtures("quick")
def test_a_server_that_is_slow_to_acknowledge_is_asked_again_and_does_not_hold_up_connecting() -> (
    None
):
    hub, seen = Hub(**{"subscriptions/listen": SILENT}), list[str]()

    async def main() -> None:
        options: dict[str, Any] = {"probe_timeout": 0.01, "on_list_changed": seen.append}
        async with Client(hub, **options) as client:
            assert client.is_connected
            hub.answers["subscriptions/listen"] = hub._ack
            await hub.line.until("subscriptions/listen", 2)
            await settle()
            hub.notify("tools/list_changed", ids(hub)[-1])
            await settle()
            assert seen == ["tools"]

    run(main())


def test_a_client_that_connects_again_listens_again(caplog: pytest.LogCaptureFixture) -> None:
    hub, seen = Hub(), list[str]()

    async def main() -> None:
        async with Client(hub, on_list_changed=seen.append) as client:
            await client.subscribe("x:a")
            await client.subscribe("x:gone")
            hub.line.end()
            hub.refused = ("x:gone",)
            await client.connect()
            assert len(hub.lines) == 2
            assert filters(hub) == [LISTS | {"resourceSubscriptions": ["x:a", "x:gone"]}]
            await client.subscribe("x:b")
            assert filters(hub)[-1] == LISTS | {"resourceSubscriptions": ["x:a", "x:b"]}
            await client.close()
            # Whoever closes begins again; the callbacks are the client's all the same.
            await client.connect()
            assert filters(hub) == [LISTS]

    run(main())
    assert "x:gone" in caplog.text


def test_a_new_connection_listens_before_the_old_one_stops() -> None:
    hub, seen = Hub(**{"tools/list": {"resultType": "complete", "tools": []}}), list[str]()

    async def main() -> None:
        async with Client(hub, policy=Policy(max_id=4), on_list_changed=seen.append) as client:
            await client.subscribe("x:a")
            await client.list_tools()
            await client.subscribe("x:b")
            assert len(hub.lines) == 2
            assert filters(hub)[0] == LISTS | {"resourceSubscriptions": ["x:a"]}
            assert filters(hub)[-1] == LISTS | {"resourceSubscriptions": ["x:a", "x:b"]}
            await settle()
            assert hub.lines[0].closed == 1
            hub.notify("tools/list_changed", ids(hub)[-1])
            await settle()
            assert seen == ["tools"]

    run(main())


def test_the_server_of_these_tests_declares_everything() -> None:
    assert set(ALL) == {"tools", "prompts", "resources"}


@pytest.mark.usefixtures("quick")
def test_listen_request_that_times_out_again_is_retried() -> None:
    hub = Hub()

    async def main() -> None:
        async with Client(hub, timeout=0.01, on_list_changed=print):
            hub.answers["subscriptions/listen"] = SILENT
            hub.finish(ids(hub)[0])
            await hub.line.until("subscriptions/listen", 3)
            assert hub.cancelled()[0] == ids(hub)[1]
            hub.answers["subscriptions/listen"] = hub._ack
            await hub.line.until("subscriptions/listen", 4)

    run(main())


def test_no_retry_after_the_connection_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callback_stream, "FIRST_DELAY_S", 0.02)
    hub = Hub()

    async def main() -> None:
        async with Client(hub, on_list_changed=print) as client:
            hub.finish(ids(hub)[0])
            await settle()
            before = asyncio.all_tasks()
            hub.line.end()
            await settle()
            # What waited to try again is no more.
            assert len(asyncio.all_tasks()) < len(before)
            assert len(ids(hub)) == 1
            assert not client.is_connected

    run(main())


@pytest.mark.usefixtures("quick")
def test_subscribe_during_the_retry_delay_opens_the_stream_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Longer than a busy machine takes for the rest.
    monkeypatch.setattr(callback_stream, "FIRST_DELAY_S", 60.0)
    monkeypatch.setattr(callback_stream, "MAX_DELAY_S", 60.0)
    hub = Hub()

    async def main() -> None:
        async with Client(hub, on_list_changed=print) as client:
            hub.finish(ids(hub)[0])
            await settle()
            await client.subscribe("x:a")
            await asyncio.sleep(0.01)
            assert filters(hub) == [LISTS, LISTS | {"resourceSubscriptions": ["x:a"]}]

    run(main())
