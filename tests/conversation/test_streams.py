"""What only Streamable HTTP has: statuses, headers, and streams that are lost and resumed.

A judge sees every request, response and event of the scripts in this folder that are played over
HTTP. Here it is asked whether it has seen what its rules are about.
"""

from __future__ import annotations

from tests.conversation.rig import Raw, Rig
from tests.conversation.rules import STREAMABLE, rule
from trunkline.spec.requirements import requirement
from trunkline.spec.revisions import V2025_03_26, V2025_11_25, V2026_07_28

CHANGED = "notifications/tools/list_changed"
PROGRESS = "notifications/progress"
NEW = V2026_07_28


async def two_steps(raw: Raw, key: str, *, closes: bool) -> int:
    """Begin a call that has reported its first step."""
    params = {"name": "two_steps", "arguments": {"key": key, "closes": closes}}
    id: int = raw.start("tools/call", params, progressToken=key)
    await raw.wait_for_notifications(PROGRESS)
    return id


async def was_answered_once(raw: Raw, id: int) -> bool:
    """Whether a call of two steps brought each of them, and its answer, once."""
    assert "result" in await raw.reply(id)
    await raw.settle()
    assert [each["progress"] for each in raw.notifications(PROGRESS)] == [1, 2]
    return sum(each.get("id") == id for each in raw.received) == 1


@rule("BP-096", "BP-084", until=NEW, over=STREAMABLE)
async def test_client_polls_for_the_reply_after_its_stream_was_closed(rig: Rig) -> None:
    raw, key = rig.raw, f"early-{rig.raw.new_id()}"
    id = await two_steps(raw, key, closes=True)
    # Only a stream that began with an id and a retry delay can be closed early.
    assert await raw.text("noted", key=key) == [f"closed {rig.since(V2025_11_25)}"]
    await raw.call("release", key=key)
    assert await was_answered_once(raw, id)


@rule("BP-085", "BP-089", "BP-090", since=V2025_03_26, until=NEW, over=STREAMABLE)
async def test_call_survives_a_lost_stream_and_is_answered_on_another(rig: Rig) -> None:
    raw, key = rig.raw, f"lost-{rig.raw.new_id()}"
    id = await two_steps(raw, key, closes=False)
    raw.wire.drop_streams()
    await raw.call("release", key=key)
    assert await was_answered_once(raw, id)


@rule("BP-089", "BP-090", since=V2025_03_26, until=NEW, over=STREAMABLE, fresh=True)
async def test_list_change_during_a_lost_stream_is_delivered_once_after_reconnect(
    rig: Rig,
) -> None:
    raw = await rig.line()
    await raw.call("grow", kind="tool", names=["one"])
    await raw.wait_for_notifications(CHANGED)
    raw.wire.drop_streams()
    await raw.call("grow", kind="tool", names=["two"])
    await raw.wait_for_notifications(CHANGED, 2)
    await raw.call("shrink", kind="tool", names=["one", "two"])
    await raw.wait_for_notifications(CHANGED, 3)
    await raw.settle()
    assert len(raw.notifications(CHANGED)) == 3


def was_judged(raw: Raw, *ids: str) -> None:
    """Fail unless each rule that the revision has was kept, and had an occasion."""
    here = [id for id in ids if requirement(id).when.holds(raw.revision)]
    assert {id: raw.record.verdict(id) for id in here} == dict.fromkeys(here, "pass")


@rule(
    *("BP-081", "BP-082", "BP-083", "BP-084", "BP-086", "BP-087", "BP-088", "BP-089", "BP-091"),
    *("BP-095", "BP-096"),
    since=V2025_03_26,
    until=NEW,
    over=STREAMABLE,
    fresh=True,
)
async def test_session_responses_have_the_expected_statuses_headers_and_events(rig: Rig) -> None:
    raw = await rig.line(capabilities={"roots": {}})
    id = await two_steps(raw, "judged", closes=rig.since(V2025_11_25))
    await raw.call("release", key="judged")
    assert await was_answered_once(raw, id)
    asking = raw.start("tools/call", {"name": "ask", "arguments": {"method": "roots/list"}})
    question = await raw.server_request("roots/list")
    raw.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
    await raw.reply(asking)
    await raw.call("grow", kind="tool", names=["one"])
    await raw.wait_for_notifications(CHANGED)
    was_judged(
        raw,
        "mcp.http.accept-both",
        "mcp.http.accepted-202",
        "mcp.http.json-or-stream",
        "mcp.http.get-stream-or-405",
        "mcp.session.id-sent",
        "mcp.headers.version-sent",
        "mcp.headers.version-negotiated",
        "mcp.sse.reply-included",
        "mcp.sse.not-closed-early",
        "mcp.sse.get-no-replies",
        "mcp.sse.one-stream",
        "mcp.sse.event-ids-unique",
        "mcp.sse.priming-event",
        "mcp.sse.retry-before-close",
    )


@rule(
    *("BP-110", "BP-111", "BP-112", "BP-113", "BP-115", "BP-116", "BP-120", "BP-121", "BP-122"),
    "BP-124",
    since=NEW,
    over=STREAMABLE,
    fresh=True,
)
async def test_per_request_responses_have_the_expected_statuses_and_headers(rig: Rig) -> None:
    raw = await rig.line()
    await raw.result("tools/list")
    params = {"name": "report", "arguments": {"values": [1]}}
    await raw.result("tools/call", params, progressToken="judged")
    assert len(raw.notifications(PROGRESS)) == 1
    for region in ({"region": "søuth"}, {"region": None}, {}):
        arguments = {"city": "Oslo", "days": 1, **region}
        await raw.ask("tools/call", {"name": "forecast", "arguments": arguments})
    assert (await raw.error("resources/read", {"uri": "note://nöwhere"}))["code"] == -32602
    assert (await raw.error("no/such/method"))["code"] == -32601
    raw.notify("example/noted", {"key": "judged"})
    assert await raw.text("noted", key="judged") == ["heard"]
    was_judged(
        raw,
        "mcp.http.single-message",
        "mcp.http.no-replies-posted",
        "mcp.http.accept-both-types",
        "mcp.http.unknown-method-404",
        "mcp.http.notification-202",
        "mcp.headers.version-on-post",
        "mcp.headers.version-as-body",
        "mcp.headers.method",
        "mcp.headers.name",
        "mcp.headers.encoded",
        "mcp.headers.params-mirrored",
        "mcp.headers.params-omitted",
        "mcp.sse.notifications-related",
        "mcp.sse.reply-last",
        "mcp.sse.unbuffered",
    )


@rule("BP-123", since=NEW, over=STREAMABLE)
async def test_closing_the_response_stream_cancels_the_call(rig: Rig) -> None:
    raw, key = rig.raw, f"left-{rig.raw.new_id()}"
    params = {"name": "hold", "arguments": {"key": key}}
    id = raw.start("tools/call", params, progressToken=key)
    assert await raw.text("noted", key=key) == ["began"]
    # The client of these scripts closes the connection for that, and sends nothing.
    raw.notify("notifications/cancelled", {"requestId": id})
    assert await raw.text("noted", key=key, count=2) == ["began", "cancelled True"]
    assert [each for each in await raw.settle() if each.get("id") == id] == []


@rule("BP-116", "BP-119", since=NEW, over=STREAMABLE, fresh=True)
async def test_an_argument_needs_its_header_which_the_list_of_tools_names(rig: Rig) -> None:
    raw = await rig.line()
    arguments = {"city": "Oslo", "days": 1, "region": "søuth"}
    call = {"name": "forecast", "arguments": arguments}
    assert (await raw.error("tools/call", call))["code"] == -32020
    # Without a value there is nothing to repeat.
    assert "result" in await raw.ask("tools/call", {**call, "arguments": {"city": "Oslo"}})
    cursor: dict[str, str] = {}
    while True:
        page = await raw.result("tools/list", cursor)
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert "result" in await raw.ask("tools/call", call)
