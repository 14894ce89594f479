"""Logging, progress, cancellation, and requests of the server during a call."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.conversation.rig import PREFIX, Raw, Rig
from tests.conversation.rules import rule
from trunkline.errors import RequestTimeout
from trunkline.spec.mcp.meta import LOG_LEVELS
from trunkline.spec.revisions import V2025_03_26, V2026_07_28

LEVEL = f"{PREFIX}logLevel"
LOG = "notifications/message"
PROGRESS = "notifications/progress"
CANCELLED = "notifications/cancelled"
NEW = V2026_07_28


def logged_levels(raw: Raw) -> list[str]:
    return [each["level"] for each in raw.notifications(LOG)]


# -- the log ---------------------------------------------------------------------------------


@rule("E-48", "K-53", "F-30", until=NEW, fresh=True)
async def test_default_log_level_is_info(rig: Rig) -> None:
    raw = await rig.line()
    await raw.call("speak", levels=list(LOG_LEVELS))
    assert logged_levels(raw) == list(LOG_LEVELS[1:])
    first = raw.notifications(LOG)[0]
    assert first == {"level": "info", "data": {"said": "info"}, "logger": "example"}


@rule("E-48", "F-30", "BP-156", until=NEW, fresh=True)
async def test_set_level_limits_log_notifications_to_that_level_and_above(rig: Rig) -> None:
    raw = await rig.line()
    for level in ("debug", "error", "emergency"):
        raw.received.clear()
        assert await raw.result("logging/setLevel", {"level": level}) == {}
        await raw.call("speak", levels=list(LOG_LEVELS), logger="own")
        assert logged_levels(raw) == list(LOG_LEVELS[LOG_LEVELS.index(level) :])
        assert {each["logger"] for each in raw.notifications(LOG)} == {"own"}


@rule("BP-156", "F-30", until=NEW)
@pytest.mark.parametrize("level", ["loud", "", "INFO", 3, None])
async def test_unknown_log_level_is_invalid_params(rig: Rig, level: Any) -> None:
    error = await rig.raw.error("logging/setLevel", {"level": level})
    assert error["code"] == -32602


@rule("BP-156", since=NEW)
@pytest.mark.parametrize("level", ["loud", "", "INFO", 3, None])
async def test_unknown_log_level_in_request_meta_is_invalid_params(rig: Rig, level: Any) -> None:
    error = await rig.raw.error("tools/list", **{LEVEL: level})
    assert error["code"] == -32602


@rule("BP-155", "F-30", "E-48")
async def test_log_messages_follow_the_level_of_each_request(rig: Rig) -> None:
    raw = rig.raw
    params = {"name": "speak", "arguments": {"levels": list(LOG_LEVELS)}}
    await raw.result("tools/call", params)
    assert logged_levels(raw) == []
    await raw.result("tools/call", params, **{LEVEL: "error"})
    assert logged_levels(raw) == ["error", "critical", "alert", "emergency"]
    raw.received.clear()
    await raw.result("tools/call", params)
    assert logged_levels(raw) == []


@rule("E-48", "F-30", fresh=True)
async def test_client_receives_log_messages_from_the_level_it_set(rig: Rig) -> None:
    logged: list[Any] = []
    client = await rig.connect(on_log=logged.append)
    await client.set_logging_level("critical")
    await client.call_tool("speak", {"levels": list(LOG_LEVELS)})
    await client.call_tool("echo", {"text": "x"})
    assert [each.level for each in logged] == ["critical", "alert", "emergency"]
    assert logged[0].data == {"said": "critical"}


# -- progress --------------------------------------------------------------------------------


@rule("E-49", "F-40", "BP-150", "BP-151", "K-54", "K-32")
@pytest.mark.parametrize("token", ["tok-123", 7, "", 0])
async def test_progress_comes_with_the_token_and_before_the_answer(rig: Rig, token: Any) -> None:
    raw = rig.raw
    params = {"name": "report", "arguments": {"values": [1, 2.5, 3], "total": 3}}
    id = raw.start("tools/call", params, progressToken=token)
    await raw.reply(id)
    notified = raw.notifications(PROGRESS)
    assert [each["progress"] for each in notified] == [1, 2.5, 3]
    assert {each["total"] for each in notified} == {3}
    assert [each["progressToken"] for each in notified] == [token] * 3
    assert {type(each["progressToken"]) for each in notified} == {type(token)}
    assert ("message" in notified[0]) == rig.since(V2025_03_26)
    assert [each.get("id") for each in raw.received].index(id) == 3


@rule("E-49", "BP-150")
async def test_no_progress_is_sent_without_a_progress_token(rig: Rig) -> None:
    await rig.raw.call("report", values=[1, 2, 3])
    assert await rig.raw.settle() == rig.raw.received[:1]


@rule("BP-150")
async def test_progress_only_grows(rig: Rig) -> None:
    params = {"name": "report", "arguments": {"values": [2, 1, 2, 3, 3, 2.5, 4]}}
    await rig.raw.result("tools/call", params, progressToken="grows")
    notified = rig.raw.notifications(PROGRESS)
    assert [each["progress"] for each in notified] == [2, 3, 4]
    assert "total" not in notified[0]


@rule("BP-150", "F-40")
async def test_no_progress_is_sent_after_the_reply(rig: Rig) -> None:
    raw, key = rig.raw, f"late-{rig.raw.new_id()}"
    params = {"name": "report_late", "arguments": {"key": key}}
    await raw.result(
        "tools/call", params, progressToken=key, **({LEVEL: "debug"} if rig.is_new else {})
    )
    assert len(raw.notifications(PROGRESS)) == 1
    await raw.call("release", key=key)
    assert await raw.text("noted", key=key) == ["reported"]
    await raw.settle()
    assert len(raw.notifications(PROGRESS)) == 1
    assert raw.notifications(LOG) == []


@rule("F-40", "E-49")
async def test_progress_may_come_from_a_thread(rig: Rig) -> None:
    params = {"name": "report_from_a_thread", "arguments": {"steps": 5}}
    await rig.raw.result("tools/call", params, progressToken="thread")
    assert [each["progress"] for each in rig.raw.notifications(PROGRESS)] == [1, 2, 3, 4, 5]


@rule("F-40", "K-47")
async def test_client_progress_callback_runs_before_the_result(rig: Rig) -> None:
    seen: list[Any] = []
    result = await rig.client.call_tool(
        "report", {"values": [1, 2], "total": 2}, on_progress=lambda *facts: seen.append(facts)
    )
    assert result.text == "reported"
    message = ("at 1", "at 2") if rig.since(V2025_03_26) else (None, None)
    assert seen == [(1, 2, message[0]), (2, 2, message[1])]


# -- giving up -------------------------------------------------------------------------------


@rule("F-38", "BP-075", "BP-152", "BP-153")
async def test_a_cancelled_request_is_stopped_and_never_answered(rig: Rig) -> None:
    raw, key = rig.raw, f"cancel-{rig.raw.new_id()}"
    id = raw.start("tools/call", {"name": "hold", "arguments": {"key": key}}, progressToken=key)
    assert await raw.text("noted", key=key) == ["began"]
    raw.notify(CANCELLED, {"requestId": id, "reason": "changed my mind"})
    assert await raw.text("noted", key=key, count=2) == ["began", "cancelled True"]
    answered = [each for each in await raw.settle() if each.get("id") == id]
    assert answered == []


@rule("BP-152", "BP-075", "BP-009")
async def test_cancel_of_an_unknown_or_finished_request_is_ignored(rig: Rig) -> None:
    raw = rig.raw
    id = raw.start("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    await raw.reply(id)
    for params in [
        {"requestId": id},
        {"requestId": "nobody"},
        {"requestId": 10**9},
        {"requestId": None},
        {"requestId": {"id": id}},
        {"requestId": 1.5},
        {},
    ]:
        raw.notify(CANCELLED, params)
    raw.notify(CANCELLED)
    assert len(await raw.settle()) == 1


@rule("BP-153", "BP-075")
async def test_a_late_result_of_a_thread_is_dropped(rig: Rig) -> None:
    raw, key = rig.raw, f"thread-{rig.raw.new_id()}"
    id = raw.start("tools/call", {"name": "hold_a_thread", "arguments": {"key": key}})
    assert await raw.text("noted", key=key) == ["began"]
    raw.notify(CANCELLED, {"requestId": id})
    assert await raw.text("noted", key=key, count=2) == ["began", "cancelled"]
    await raw.call("release", key=key)
    notes = await raw.text("noted", key=key, count=3)
    assert notes == ["began", "cancelled", "returned True"]
    assert [each for each in await raw.settle() if each.get("id") == id] == []


@rule("BP-152", "BP-006")
async def test_an_id_is_cancelled_by_value_and_type(rig: Rig) -> None:
    raw = rig.raw
    key = f"typed-{raw.new_id()}"
    number = raw.start("tools/call", {"name": "hold", "arguments": {"key": key}})
    assert await raw.text("noted", key=key) == ["began"]
    raw.notify(CANCELLED, {"requestId": str(number)})
    await raw.settle()
    await raw.call("release", key=key)
    assert "result" in await raw.reply(number)


@rule("BP-037", until=NEW, fresh=True)
async def test_initialize_cannot_be_cancelled(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    id = raw.start("initialize", raw.introduction())
    raw.notify(CANCELLED, {"requestId": id})
    assert "result" in await raw.reply(id)


@rule("F-38", "C-39", "BP-075", "BP-152")
async def test_client_cancel_sends_cancelled_and_stops_the_handler(rig: Rig) -> None:
    client, key = rig.client, f"ours-{rig.raw.new_id()}"
    call = client.submit_tool("hold", {"key": key})
    notes = await client.call_tool("noted", {"key": key}, result_type=list[str])
    assert notes.value == ["began"]
    assert call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    notes = await client.call_tool("noted", {"key": key, "count": 2}, result_type=list[str])
    assert notes.value == ["began", "cancelled True"]


@rule("F-38", "C-39", "BP-153")
async def test_a_cancelled_task_of_ours_cancels_its_call(rig: Rig) -> None:
    client, key = rig.client, f"task-{rig.raw.new_id()}"
    task = asyncio.create_task(client.call_tool("hold_a_thread", {"key": key}))
    await client.call_tool("noted", {"key": key})
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await client.call_tool("noted", {"key": key, "count": 2})
    await client.call_tool("release", {"key": key})
    notes = await client.call_tool("noted", {"key": key, "count": 3}, result_type=list[str])
    assert notes.value == ["began", "cancelled", "returned True"]
    assert client.is_connected


@rule("C-39", "C-40", "BP-169", "K-63")
async def test_timed_out_call_is_cancelled(rig: Rig) -> None:
    client, key = rig.client, f"slow-{rig.raw.new_id()}"
    with pytest.raises(RequestTimeout):
        # Long enough for a server beside busy cores to begin the call.
        await client.call_tool("hold", {"key": key}, timeout=0.3)
    notes = await client.call_tool("noted", {"key": key, "count": 2}, result_type=list[str])
    assert notes.value == ["began", "cancelled True"]


# -- asking the client -----------------------------------------------------------------------

SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say something."}}],
    "maxTokens": 10,
}
FORM = {
    "message": "Are you sure?",
    "requestedSchema": {"type": "object", "properties": {"answer": {"type": "string"}}},
}


async def asks(rig: Rig, method: str, params: Any = None) -> Any:
    """Have the server ask our client something; return what it was told."""
    arguments = {"method": method} if params is None else {"method": method, "params": params}
    return (await rig.client.call_tool("ask", arguments, result_type=dict)).value


@rule("F-23", "K-70", "P-50", "BP-038")
async def test_ping_is_answered_by_either_side(rig: Rig) -> None:
    assert await rig.raw.result("ping") == {}
    assert await rig.raw.result("ping", {"_meta": {"org.example/x": 1}}) == {}
    assert await rig.client.ping() >= 0
    assert await asks(rig, "ping") == {"answer": {}}


@rule("BP-039", until=NEW)
async def test_server_requests_roots_and_sampling(rig: Rig) -> None:
    roots = await asks(rig, "roots/list")
    assert roots == {"answer": {"roots": [{"uri": "file:///home/script"}]}}
    sample = (await asks(rig, "sampling/createMessage", SAMPLE))["answer"]
    assert sample["content"] == {"type": "text", "text": "a sample"}
    assert (sample["model"], sample["role"]) == ("model-1", "assistant")


@rule("BP-164", "mcp.capability.client-declares", since="2025-06-18", until=NEW)
async def test_server_requests_elicitation(rig: Rig) -> None:
    answer = await asks(rig, "elicitation/create", FORM)
    assert answer == {"answer": {"action": "accept", "content": {"answer": "yes"}}}
    declined = await asks(rig, "elicitation/create", {**FORM, "message": "Your secret?"})
    assert declined == {"answer": {"action": "decline"}}
    assert len(rig.callbacks.questions) == 2


@rule("BP-036", until=NEW, fresh=True)
async def test_a_server_asks_only_what_the_client_declared_and_the_revision_has(
    rig: Rig,
) -> None:
    raw = await rig.line()
    for method in ("roots/list", "sampling/createMessage", "elicitation/create"):
        assert "unsent" in await raw.text("ask", method=method)
    assert "unsent" in await raw.text("ask", method="tools/list")
    assert "unsent" in await raw.text("ask", method="nobody/knows")
    assert [each for each in await raw.settle() if "method" in each] == []


@rule("BP-036", until="2025-06-18", fresh=True)
async def test_server_does_not_send_a_request_that_the_revision_lacks(rig: Rig) -> None:
    raw = await rig.line(capabilities={"elicitation": {}})
    assert "unsent" in await raw.text("ask", method="elicitation/create", params=FORM)


@rule("BP-021", until=NEW, fresh=True)
async def test_an_error_of_the_client_reaches_the_handler(rig: Rig) -> None:
    raw = await rig.line(capabilities={"roots": {}, "sampling": {}})
    asking = raw.start(
        "tools/call",
        {"name": "ask", "arguments": {"method": "sampling/createMessage", "params": SAMPLE}},
    )
    question = await raw.server_request("sampling/createMessage")
    assert question["params"] == SAMPLE
    error = {"code": -1, "message": "User rejected sampling request", "data": {"by": "user"}}
    raw.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
    result = (await raw.reply(asking))["result"]
    expected = {"error": -1, "message": error["message"], "data": {"by": "user"}}
    assert json.loads(result["content"][0]["text"]) == expected


@rule("BP-021", until=NEW, fresh=True)
async def test_our_client_refuses_what_it_has_no_handler_for(rig: Rig) -> None:
    client, record = await rig.connect_recorded(roots=["file:///a"])
    assert (
        await client.call_tool("ask", {"method": "sampling/createMessage"}, result_type=dict)
    ).value == {"unsent": "mcp.capability.not-declared"}
    assert not any(
        b"sampling/createMessage" in line for who, line in record.lines if who == "server"
    )


@rule("F-38", "BP-152", until=NEW, fresh=True)
async def test_server_request_timeout_sends_cancelled_and_ignores_the_late_reply(
    rig: Rig,
) -> None:
    raw = await rig.line(capabilities={"roots": {}})
    asking = raw.start(
        "tools/call", {"name": "ask", "arguments": {"method": "roots/list", "timeout": 0.05}}
    )
    question = await raw.server_request("roots/list")
    (notified,) = await raw.wait_for_notifications(CANCELLED)
    assert notified["requestId"] == question["id"]
    raw.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
    result = (await raw.reply(asking))["result"]
    assert "RequestTimeout" in result["content"][0]["text"]
    assert await raw.text("echo", text="on") == "on"


@rule("F-38", until=NEW, fresh=True)
async def test_cancelled_handler_cancels_its_open_requests(rig: Rig) -> None:
    raw = await rig.line(capabilities={"roots": {}})
    asking = raw.start("tools/call", {"name": "ask", "arguments": {"method": "roots/list"}})
    question = await raw.server_request("roots/list")
    raw.notify(CANCELLED, {"requestId": asking})
    (notified,) = await raw.wait_for_notifications(CANCELLED)
    assert notified["requestId"] == question["id"]
    assert [each for each in await raw.settle() if each.get("id") == asking] == []


@rule("BP-004", until=NEW, fresh=True)
async def test_the_ids_of_a_server_are_its_own_and_each_is_used_once(rig: Rig) -> None:
    raw = await rig.line()
    ids = []
    for number in range(3):
        asking = raw.start(
            "tools/call", {"name": "ask", "arguments": {"method": "ping"}}, id=number
        )
        question = await raw.server_request("ping")
        ids.append(question["id"])
        raw.received.remove(question)
        raw.send({"jsonrpc": "2.0", "id": question["id"], "result": {}})
        await raw.reply(asking)
    assert len(set(ids)) == 3
