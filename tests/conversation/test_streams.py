"""What only Streamable HTTP has: streams that are lost and resumed, and headers of arguments."""

from __future__ import annotations

from tests.conversation.rules import STREAMABLE, rule
from tests.conversation.talking import Raw, Talk
from trunkline.spec.revisions import V2025_03_26, V2025_11_25, V2026_07_28

CHANGED = "notifications/tools/list_changed"
PROGRESS = "notifications/progress"
NEW = V2026_07_28


async def two_steps(raw: Raw, key: str, *, closes: bool) -> int:
    """Begin a call that has reported its first step."""
    params = {"name": "two_steps", "arguments": {"key": key, "closes": closes}}
    id: int = raw.start("tools/call", params, progressToken=key)
    await raw.told(PROGRESS)
    return id


async def was_answered_once(raw: Raw, id: int) -> bool:
    """Whether a call of two steps brought each of them, and its answer, once."""
    assert "result" in await raw.reply(id)
    await raw.settle()
    assert [each["progress"] for each in raw.heard(PROGRESS)] == [1, 2]
    return sum(each.get("id") == id for each in raw.received) == 1


@rule("BP-096", "BP-084", until=NEW, over=STREAMABLE)
async def test_a_client_that_is_sent_away_comes_back_for_the_answer(talk: Talk) -> None:
    raw, key = talk.raw, f"away-{talk.raw.new_id()}"
    id = await two_steps(raw, key, closes=True)
    # Only a client that was told how to come back can be sent away.
    assert await raw.text("noted", key=key) == [f"closed {talk.since(V2025_11_25)}"]
    await raw.call("release", key=key)
    assert await was_answered_once(raw, id)


@rule("BP-085", "BP-089", "BP-090", since=V2025_03_26, until=NEW, over=STREAMABLE)
async def test_a_call_whose_stream_is_lost_goes_on_and_is_answered_on_another(talk: Talk) -> None:
    raw, key = talk.raw, f"lost-{talk.raw.new_id()}"
    id = await two_steps(raw, key, closes=False)
    raw.wire.drop_streams()
    await raw.call("release", key=key)
    assert await was_answered_once(raw, id)


@rule("BP-089", "BP-090", since=V2025_03_26, until=NEW, over=STREAMABLE, fresh=True)
async def test_a_change_while_the_stream_was_lost_is_told_once_it_is_back(talk: Talk) -> None:
    raw = await talk.line()
    await raw.call("grow", kind="tool", names=["one"])
    await raw.told(CHANGED)
    raw.wire.drop_streams()
    await raw.call("grow", kind="tool", names=["two"])
    await raw.told(CHANGED, 2)
    await raw.call("shrink", kind="tool", names=["one", "two"])
    await raw.told(CHANGED, 3)
    await raw.settle()
    assert len(raw.heard(CHANGED)) == 3


@rule("BP-116", "BP-119", since=NEW, over=STREAMABLE, fresh=True)
async def test_an_argument_needs_its_header_which_the_list_of_tools_names(talk: Talk) -> None:
    raw = await talk.line()
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
