"""Batches: taken where a revision has them, refused where it has none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conversation.rig import Raw, Rig
from tests.conversation.rules import rule
from trunkline.errors import LocalProtocolError, PeerError
from trunkline.spec.revisions import V2025_03_26, V2025_06_18, V2026_07_28

WITH = V2025_06_18  # until then


async def batch(raw: Raw, *messages: Any) -> Any:
    """Send a batch; return the array that answers it."""
    raw.send(list(messages))
    return await raw.until(lambda each: isinstance(each, list))


def call(raw: Raw, tool: str, **arguments: Any) -> dict[str, Any]:
    return raw.request("tools/call", {"name": tool, "arguments": arguments})


@rule("E-11", "BP-011", until=WITH)
async def test_a_batch_is_answered_as_one_in_order_with_nothing_for_notifications(
    rig: Rig,
) -> None:
    raw = rig.raw
    sent = [
        call(raw, "names", count=1),
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        raw.request("tools/list"),
        call(raw, "echo", text="last"),
    ]
    replies = await batch(raw, *sent)
    assert [each["id"] for each in replies] == [each["id"] for each in sent if "id" in each]
    assert all("result" in each for each in replies)


@rule("E-11", "jsonrpc.batch.empty", until=WITH)
async def test_each_part_of_a_batch_has_its_own_outcome(rig: Rig) -> None:
    raw = rig.raw
    good, unknown = call(raw, "echo", text="x"), raw.request("no/such/method")
    missing = call(raw, "missing_tool")
    replies = await batch(raw, good, unknown, {"jsonrpc": "2.0"}, 5, missing)
    assert replies[0]["result"]["content"][0]["text"] == "x"
    assert (replies[1]["id"], replies[1]["error"]["code"]) == (unknown["id"], -32601)
    assert [each["error"]["code"] for each in replies[2:4]] == [-32600, -32600]
    assert (replies[4]["id"], replies[4]["error"]["code"]) == (missing["id"], -32602)


@rule("E-11", until=WITH)
async def test_the_parts_of_a_batch_run_side_by_side(rig: Rig) -> None:
    raw, key = rig.raw, f"batch-{rig.raw.new_id()}"
    # The first ends only because the second runs meanwhile.
    replies = await batch(raw, call(raw, "hold", key=key), call(raw, "release", key=key))
    assert [each["result"]["content"][0]["text"] for each in replies] == [key, key]


@rule("E-11", "K-12", until=WITH, fresh=True)
async def test_the_parts_of_a_batch_run_one_by_one_where_that_is_asked_for(rig: Rig) -> None:
    raw = await rig.line("in-order")
    parts = [call(raw, "step", key="order", name=name) for name in "abc"]
    replies = await batch(raw, *parts)
    assert [each["result"]["content"][0]["text"] for each in replies] == ["a", "b", "c"]
    notes = await raw.text("noted", key="order", count=6)
    assert notes == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]


@rule("E-11", "BP-009", until=WITH)
async def test_a_batch_of_notifications_is_not_answered(rig: Rig) -> None:
    raw = rig.raw
    note = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    raw.send([note, note])
    assert await raw.settle() == []


@rule("E-11", "BP-152", until=WITH)
async def test_a_cancelled_part_of_a_batch_has_no_answer(rig: Rig) -> None:
    raw, key = rig.raw, f"part-{rig.raw.new_id()}"
    held, other = call(raw, "hold", key=key), call(raw, "echo", text="x")
    raw.send([held, other])
    assert await raw.text("noted", key=key) == ["began"]
    raw.notify("notifications/cancelled", {"requestId": held["id"]})
    replies = await raw.until(lambda each: isinstance(each, list))
    assert [each["id"] for each in replies] == [other["id"]]


@rule("jsonrpc.batch.empty", may_provoke=("mcp.jsonrpc.notification-unanswered",))
async def test_an_empty_batch_is_invalid_everywhere(rig: Rig) -> None:
    rig.raw.send("[]")
    answer = await rig.raw.answer_without_id()
    assert answer["error"]["code"] == -32600


@rule("BP-013", "jsonrpc.batch.not-allowed")
async def test_a_batch_is_refused_as_one_where_there_are_none(rig: Rig) -> None:
    raw = rig.raw
    raw.send([call(raw, "echo", text="x"), call(raw, "echo", text="y")])
    answer = await raw.answer_without_id()
    assert answer["error"]["code"] == -32600
    assert await raw.settle() == [answer]


@rule("BP-011", "E-11", since=V2025_03_26, until=WITH)
async def test_our_client_sends_a_batch_and_each_call_has_its_outcome(rig: Rig) -> None:
    async with rig.client.batch() as several:
        good = several.submit_tool("add", {"a": 1}, result_type=int)
        bad = several.submit_tool("missing_tool")
        listed = several.submit("tools/list")
        several.notify("notifications/roots/list_changed")
    assert (await good).value == 2
    with pytest.raises(PeerError):
        await bad
    assert (await listed)["tools"]


@rule("BP-013", "E-11", "BP-011")
async def test_our_client_sends_no_batch_where_there_are_none(rig: Rig) -> None:
    if V2025_03_26 <= rig.revision < V2025_06_18:
        async with rig.client.batch():
            pass
        return
    with pytest.raises(LocalProtocolError):
        async with rig.client.batch():
            pass


@rule("BP-013", since=V2026_07_28, fresh=True)
async def test_before_anything_is_agreed_on_a_batch_is_refused(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    raw.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    assert (await raw.answer_without_id())["error"]["code"] == -32600
