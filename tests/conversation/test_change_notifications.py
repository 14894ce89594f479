"""Change notifications in both eras: updates, list changes, and what a client caches.

What only a stream of 2026-07-28 has is in `test_subscriptions.py`.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.conversation.journal import HANGS
from tests.conversation.rig import PREFIX, ClientCallbacks, Raw, Rig
from tests.conversation.rules import SHARED, STREAMABLE, rule
from trunkline.errors import ConnectionLost
from trunkline.spec.revisions import V2026_07_28

NEW = V2026_07_28
UPDATED = "notifications/resources/updated"
KINDS = ["tool", "prompt", "resource"]


async def watch(raw: Raw, uris: list[str]) -> None:
    """Ask to be told of resources and of every list, as the revision has it."""
    if raw.is_new:
        wanted: dict[str, Any] = {f"{kind}sListChanged": True for kind in KINDS}
        raw.start(
            "subscriptions/listen", {"notifications": {**wanted, "resourceSubscriptions": uris}}
        )
        await raw.wait_for_notifications("notifications/subscriptions/acknowledged")
        return
    for uri in uris:
        await raw.result("resources/subscribe", {"uri": uri})


async def changes(stream: Any, count: int) -> list[Any]:
    """Return so many changes of a client's stream."""
    found = []
    async with asyncio.timeout(HANGS):
        async for change in stream:
            found.append(change)
            if len(found) == count:
                break
    return found


@rule("E-44", fresh=True)
async def test_subscribers_receive_updates_of_their_resources_only(rig: Rig) -> None:
    raw = await rig.line()
    await watch(raw, ["note://text", "city://no/Oslo"])
    await raw.call("touch", uris=["note://text", "note://blob", "city://no/Oslo", "city://no/Bo"])
    notified = await raw.wait_for_notifications(UPDATED, 2)
    await raw.settle()
    assert [each["uri"] for each in raw.notifications(UPDATED)] == ["note://text", "city://no/Oslo"]
    assert all(bool(each.get("_meta")) is rig.is_new for each in notified)


@rule("E-45", "E-46", "E-47", fresh=True)
@pytest.mark.parametrize("kind", KINDS)
async def test_each_changed_list_has_its_own_notification(rig: Rig, kind: str) -> None:
    raw = await rig.line()
    await watch(raw, ["note://text"])
    for verb in ("grow", "shrink"):
        raw.received.clear()
        await raw.call(verb, kind=kind, names=["new"])
        await raw.wait_for_notifications(f"notifications/{kind}s/list_changed")
        await raw.settle()
        methods = {each["method"] for each in raw.received if "method" in each}
        assert methods == {f"notifications/{kind}s/list_changed"}


@rule("E-44", "E-45", "E-46", "E-47", fresh=True)
async def test_client_callbacks_receive_updates_and_list_changes_in_both_eras(rig: Rig) -> None:
    callbacks = ClientCallbacks()
    client = await rig.connect(**callbacks.options())
    await client.subscribe("note://text")
    await client.call_tool("touch", {"uris": ["note://blob", "note://text"]})
    await callbacks.until(lambda: bool(callbacks.updates))
    for kind in KINDS:
        await client.call_tool("grow", {"kind": kind, "names": ["new"]})
        await callbacks.until(lambda kind=kind: f"{kind}s" in callbacks.changes)
    await client.unsubscribe("note://text")
    await client.call_tool("touch", {"uris": ["note://text"]})
    await client.call_tool("step", {"key": "after", "name": "x"})
    assert callbacks.updates == ["note://text"]
    assert callbacks.changes == ["tools", "prompts", "resources"]


@rule("E-108", fresh=True)
async def test_client_fetches_a_list_again_after_list_changed(rig: Rig) -> None:
    callbacks = ClientCallbacks()
    client, record = await rig.connect_recorded(**callbacks.options())
    before = {tool.name for tool in await client.list_tools()}
    asked = _lists(record.lines)
    # What may be kept is kept, where a server says that it may be.
    assert {tool.name for tool in await client.list_tools()} == before
    assert (_lists(record.lines) == asked) is rig.is_new
    await client.call_tool("grow", {"kind": "tool", "names": ["new"]})
    await callbacks.until(lambda: "tools" in callbacks.changes)
    asked = _lists(record.lines)
    assert {tool.name for tool in await client.list_tools()} == before | {"new"}
    assert _lists(record.lines) > asked


@rule("E-108", fresh=True)
async def test_client_passes_the_new_list_to_its_callback_after_list_changed(rig: Rig) -> None:
    refreshed: asyncio.Queue[tuple[str, list[str]]] = asyncio.Queue()

    async def take(kind: str, entries: list[Any]) -> None:
        await refreshed.put((kind, [each.name for each in entries]))

    client, _ = await rig.connect_recorded(on_list_refreshed=take)
    before = [tool.name for tool in await client.list_tools()]
    await client.call_tool("grow", {"kind": "tool", "names": ["new"]})
    kind, names = await asyncio.wait_for(refreshed.get(), 30)
    assert (kind, set(names)) == ("tools", {*before, "new"})
    await client.call_tool("grow", {"kind": "resource", "names": ["new"]})
    kinds = {(await asyncio.wait_for(refreshed.get(), 30))[0] for _ in range(2)}
    assert kinds == {"resources", "resource_templates"}


def _lists(lines: list[tuple[str, bytes]]) -> int:
    return sum(b'"tools/list"' in line for who, line in lines if who == "client")


@rule("BP-149", since=NEW, fresh=True)
async def test_a_resource_that_has_changed_is_read_again(rig: Rig) -> None:
    callbacks = ClientCallbacks()
    client, record = await rig.connect_recorded(**callbacks.options())

    def reads() -> int:
        return sum(b'"resources/read"' in line for who, line in record.lines if who == "client")

    await client.subscribe("config://app")
    for _ in range(3):
        await client.read_resource("config://app")
    assert reads() == 1
    await client.call_tool("touch", {"uris": ["config://app"]})
    await callbacks.until(lambda: bool(callbacks.updates))
    await client.read_resource("config://app")
    assert reads() == 2


@rule("E-109", fresh=True)
async def test_every_listen_stream_of_a_client_receives_each_update(rig: Rig) -> None:
    client = await rig.connect()
    async with (
        client.listen(uris=["note://text"]) as one,
        client.listen(uris=["note://text", "note://blob"]) as two,
        client.listen(tools=True) as three,
    ):
        assert one.honoured.uris == ("note://text",)
        await client.call_tool("touch", {"uris": ["note://text", "note://blob"]})
        await client.call_tool("touch", {"uris": ["note://text"]})
        await client.call_tool("grow", {"kind": "tool", "names": ["new"]})
        assert [each.uri for each in await changes(one, 2)] == ["note://text"] * 2
        notified = [each.uri for each in await changes(two, 3)]
        assert notified == ["note://text", "note://blob", "note://text"]
        assert [each.kind for each in await changes(three, 1)] == ["tools"]


@rule("E-109", "E-44", over=SHARED)
async def test_every_subscribed_client_receives_each_update(rig: Rig) -> None:
    clients = await rig.neighbours("example", [rig.revision] * 4)
    streams = []
    for client in clients[:3]:
        streams.append(await client.listen(uris=["note://text"]).__aenter__())
    for _ in range(3):
        await clients[3].call_tool("touch", {"uris": ["note://text", "note://blob"]})
    for stream in streams:
        assert [each.uri for each in await changes(stream, 3)] == ["note://text"] * 3
        await stream.__aexit__(None, None, None)


@rule("E-46", over=("memory", *STREAMABLE), until=NEW)
async def test_a_change_reaches_clients_of_both_eras_at_once(rig: Rig) -> None:
    old, new, other = await rig.neighbours("example", [rig.revision, NEW, NEW])
    async with old.listen(tools=True) as here, new.listen(tools=True) as there:
        await other.call_tool("grow", {"kind": "tool", "names": ["new"]})
        assert [each.kind for each in await changes(here, 1)] == ["tools"]
        assert [each.kind for each in await changes(there, 1)] == ["tools"]


@rule("BP-077", "BP-142", since=NEW, fresh=True)
async def test_client_routes_updates_by_subscription_and_cancels_a_closed_stream(
    rig: Rig,
) -> None:
    client, record = await rig.connect_recorded()
    async with client.listen(prompts=True) as other:
        async with client.listen(tools=True, uris=["note://nowhere"]) as stream:
            assert stream.honoured.uris == ()
            await client.call_tool("grow", {"kind": "prompt", "names": ["one"]})
            await client.call_tool("grow", {"kind": "tool", "names": ["one"]})
            assert [each.kind for each in await changes(stream, 1)] == ["tools"]
            assert [each.kind for each in await changes(other, 1)] == ["prompts"]
        sent = [json.loads(line) for who, line in record.lines if who == "client"]
        listens = [each["id"] for each in sent if each["method"] == "subscriptions/listen"]
        assert sent[-1]["method"] == "notifications/cancelled"
        assert sent[-1]["params"]["requestId"] == listens[1]
        # The other goes on.
        await client.call_tool("grow", {"kind": "prompt", "names": ["two"]})
        assert [each.kind for each in await changes(other, 1)] == ["prompts"]


@rule("BP-143", since=NEW, over=SHARED)
async def test_a_stream_of_our_client_ends_with_the_connection(rig: Rig) -> None:
    client = await rig.connect()
    async with client.listen(tools=True) as stream:
        await client.close()
        with pytest.raises(ConnectionLost):
            await changes(stream, 1)


async def survive_a_crash(rig: Rig) -> list[bytes]:
    """Return what a subscribed client sends after a crash of its server and a new start."""
    callbacks = ClientCallbacks()
    client, record = await rig.connect_recorded("crashing", **callbacks.options())
    await client.subscribe("note://text")
    with pytest.raises(ConnectionLost):
        await client.call_tool("crash")
    count = len(record.lines)
    await client.connect()
    await client.call_tool("touch", {"uris": ["note://text"]})
    await callbacks.until(lambda: bool(callbacks.updates))
    assert callbacks.updates == ["note://text"]
    return [line for who, line in record.lines[count:] if who == "client"]


@rule("E-109", over=("stdio",), until=NEW)
async def test_a_client_whose_server_crashed_subscribes_again(rig: Rig) -> None:
    assert any(b"resources/subscribe" in line for line in await survive_a_crash(rig))


@rule("BP-076", over=("stdio",), since=NEW)
async def test_a_client_whose_server_crashed_listens_again(rig: Rig) -> None:
    assert any(b"subscriptions/listen" in line for line in await survive_a_crash(rig))


@rule("BP-021", until=NEW)
async def test_subscriptions_listen_is_method_not_found_before_2026_07_28(rig: Rig) -> None:
    params = {"notifications": {"toolsListChanged": True}}
    assert (await rig.raw.error("subscriptions/listen", params))["code"] == -32601
    assert f"{PREFIX}subscriptionId" not in json.dumps(rig.raw.received)
