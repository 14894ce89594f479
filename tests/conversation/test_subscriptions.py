"""Streams of changes: what is acknowledged, what comes on them, and how they end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conversation.rig import PREFIX, Raw, Rig
from tests.conversation.rules import STREAMABLE, rule
from trunkline.spec.revisions import V2025_11_25, V2026_07_28

NEW = V2026_07_28
KEY = f"{PREFIX}subscriptionId"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def of_stream(raw: Raw, id: Any) -> list[Any]:
    """Return what has come on one stream."""
    return [
        each
        for each in raw.received
        if "method" in each and each["params"].get("_meta", {}).get(KEY) == id
    ]


async def listen(raw: Raw, id: Any = None, **notifications: Any) -> tuple[Any, Any]:
    """Open a stream; return its id, and what of the filter is honoured."""
    id = raw.start("subscriptions/listen", {"notifications": notifications}, id=id)
    await raw.until(lambda _: bool(of_stream(raw, id)))
    first = of_stream(raw, id)[0]
    assert first["method"] == ACKNOWLEDGED
    return id, first["params"]["notifications"]


@rule("BP-140", since=NEW, fresh=True)
async def test_listen_acknowledgement_has_the_honoured_part_of_its_filter(rig: Rig) -> None:
    raw = await rig.line()
    wanted: dict[str, Any] = {"toolsListChanged": True, "resourceSubscriptions": ["note://text"]}
    assert (await listen(raw, **wanted))[1] == wanted
    unknown = {"resourceSubscriptions": ["note://nowhere"], "promptsListChanged": False}
    assert (await listen(raw, **unknown))[1] == {}
    raw = await rig.line("only-tools")
    everything = {**wanted, "promptsListChanged": True, "resourcesListChanged": True}
    assert (await listen(raw, **everything))[1] == {"toolsListChanged": True}


@rule("BP-142", "BP-141", "BP-144", since=NEW, fresh=True)
async def test_each_stream_brings_what_it_asked_for_under_its_own_id(rig: Rig) -> None:
    raw = await rig.line()
    number, _ = await listen(raw, 7, toolsListChanged=True)
    text, _ = await listen(raw, "7", resourceSubscriptions=["note://text"])
    await raw.call("grow", kind="prompt", names=["new"])
    await raw.call("grow", kind="tool", names=[f"new-{n}" for n in range(20)])
    await raw.call("touch", uris=["note://text", "note://blob"])
    await raw.call("speak", levels=["emergency"])
    await raw.wait_for_notifications("notifications/tools/list_changed")
    await raw.wait_for_notifications("notifications/resources/updated")
    await raw.settle()
    assert [each["method"] for each in of_stream(raw, number)] == [
        ACKNOWLEDGED,
        "notifications/tools/list_changed",
    ]
    updated = of_stream(raw, text)[1]
    assert updated["params"] == {"uri": "note://text", "_meta": {KEY: "7"}}
    assert len([each for each in raw.received if "method" in each]) == 4


@rule("BP-154", "BP-153", since=NEW, fresh=True)
async def test_cancelled_listen_stream_sends_nothing_more_and_is_not_answered(
    rig: Rig,
) -> None:
    raw = await rig.line()
    id, _ = await listen(raw, resourceSubscriptions=["note://text"])
    other, _ = await listen(raw, resourceSubscriptions=["note://text"])
    raw.notify("notifications/cancelled", {"requestId": id})
    await raw.call("touch", uris=["note://text"])
    await raw.wait_for_notifications("notifications/resources/updated")
    await raw.settle()
    assert len(of_stream(raw, id)) == 1
    assert len(of_stream(raw, other)) == 2
    assert not [each for each in raw.received if each.get("id") in (id, other)]


@rule("BP-143", since=NEW, fresh=True)
async def test_closing_server_answers_its_listen_streams(rig: Rig) -> None:
    raw = await rig.line()
    id, _ = await listen(raw, toolsListChanged=True)
    await raw.call("grow", kind="tool", names=["last"])
    if rig.transport in STREAMABLE:
        await raw.wire.end_server()
    else:
        await raw.wire.close()
    if rig.transport in ("stdio", *STREAMABLE):  # else no client is left that could be answered
        result = (await raw.reply(id))["result"]
        assert result["_meta"][KEY] == id
        assert result["resultType"] == "complete"
        assert raw.received[-1]["id"] == id
        assert len(of_stream(raw, id)) == 2


@rule("BP-067", "BP-142", since=NEW, fresh=True)
async def test_subscribed_session_and_listen_stream_on_one_connection_both_get_updates(
    rig: Rig,
) -> None:
    raw = await rig.line(opened=False)
    raw.revision = V2025_11_25
    await raw.shake_hands()
    await raw.result("resources/subscribe", {"uri": "note://text"})
    raw.revision = NEW
    id, _ = await listen(raw, resourceSubscriptions=["note://text"])
    await raw.call("touch", uris=["note://text"])
    notified = await raw.wait_for_notifications("notifications/resources/updated", 2)
    await raw.settle()
    plain = {"uri": "note://text"}
    assert [each for each in notified if "_meta" not in each] == [plain]
    assert [each for each in notified if "_meta" in each] == [{**plain, "_meta": {KEY: id}}]


@rule("BP-141", "BP-005", since=NEW, fresh=True)
async def test_streams_with_the_same_filter_both_get_changes_and_an_id_can_be_reused(
    rig: Rig,
) -> None:
    raw = await rig.line()
    one, _ = await listen(raw, "one", promptsListChanged=True)
    two, _ = await listen(raw, "two", promptsListChanged=True, toolsListChanged=False)
    await raw.call("grow", kind="tool", names=["new"])
    await raw.call("grow", kind="prompt", names=["new"])
    await raw.wait_for_notifications("notifications/prompts/list_changed", 2)
    await raw.settle()
    assert len(of_stream(raw, one)) == len(of_stream(raw, two)) == 2
    raw.notify("notifications/cancelled", {"requestId": "one"})
    await raw.settle()
    raw.received.clear()
    again, honoured = await listen(raw, "one", toolsListChanged=True)
    assert honoured == {"toolsListChanged": True}
    await raw.call("shrink", kind="tool", names=["new"])
    await raw.wait_for_notifications("notifications/tools/list_changed")
    await raw.settle()
    assert [each["method"] for each in of_stream(raw, again)][1:] == [
        "notifications/tools/list_changed"
    ]
    assert of_stream(raw, two) == []


@rule("BP-140", since=NEW)
@pytest.mark.parametrize(
    "params",
    [{}, {"notifications": []}, {"notifications": {"resourceSubscriptions": "note://text"}}],
)
async def test_a_malformed_filter_is_refused(rig: Rig, params: dict[str, Any]) -> None:
    assert (await rig.raw.error("subscriptions/listen", params))["code"] == -32602
