"""The handshake: `initialize`, messages before it, and the declared capabilities."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conversation.app import INSTRUCTIONS
from tests.conversation.rig import INFO, PREFIX, Raw, Rig
from tests.conversation.rules import CONNECTED, STREAMABLE, rule
from trunkline.spec.revisions import (
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
)


def expected_info(rig: Rig) -> dict[str, str]:
    info = {"name": "example", "version": "1.2.3"}
    return info | {"title": "An example"} if rig.since(V2025_06_18) else info


@rule("BP-030", "E-95", "F-22", "C-10", "P-48", fresh=True)
async def test_initialize_result_has_version_capabilities_server_info_and_instructions(
    rig: Rig,
) -> None:
    raw = await rig.line(opened=False)
    result = await raw.shake_hands()
    assert result.keys() == {"protocolVersion", "capabilities", "serverInfo", "instructions"}
    assert result["protocolVersion"] == rig.revision
    assert result["serverInfo"] == expected_info(rig)
    assert result["instructions"] == INSTRUCTIONS


@rule("BP-030", "C-09", "E-95", fresh=True)
async def test_our_client_opens_with_its_version_capabilities_and_name(rig: Rig) -> None:
    client, record = await rig.connect_recorded()
    lines = [line for sender, line in record.lines if sender == "client"]
    assert b'"method":"initialize"' in lines[0]
    for part in (b'"protocolVersion":"%s"' % rig.revision.encode(), b'"capabilities":{}'):
        assert part in lines[0]
    assert b'"clientInfo":{"name":"script"' in lines[0]
    assert b"notifications/initialized" in lines[1]
    assert client.server_info is not None
    assert (client.server_info.name, client.instructions) == ("example", INSTRUCTIONS)
    assert client.initialize_result is not None
    assert client.initialize_result.protocol_version == rig.revision


@rule("BP-033", "K-20", fresh=True)
async def test_the_client_says_that_it_is_initialized_and_the_server_never_does(rig: Rig) -> None:
    client, record = await rig.connect_recorded()
    await client.ping()
    senders = [sender for sender, line in record.lines if b"notifications/initialized" in line]
    assert senders == ["client"]


@rule("E-107", "F-37", "C-01", fresh=True)
async def test_a_session_is_opened_and_tools_are_listed_in_two_exchanges(rig: Rig) -> None:
    client, record = await rig.connect_recorded("only-tools")
    assert [tool.name for tool in await client.list_tools()] == ["one"]
    answers = [line for sender, line in record.lines if sender == "server"]
    assert len(answers) == 2


@rule("E-98", "E-99", "K-19", "E-129", "BP-034", until=V2026_07_28, fresh=True)
async def test_requests_before_initialize_are_refused(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    for method, params in [
        ("tools/list", None),
        ("tools/call", {"name": "echo", "arguments": {"text": "early"}}),
        ("resources/read", {"uri": "note://text"}),
        ("logging/setLevel", {"level": "info"}),
    ]:
        error = await raw.error(method, params)
        assert error["code"] == -32600
        assert "initialize" in error["message"]
    await raw.shake_hands()
    assert await raw.text("echo", text="in time") == "in time"


@rule("BP-038", "BP-034", until=V2026_07_28, fresh=True, over=CONNECTED)
async def test_ping_is_answered_before_initialize(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    assert await raw.result("ping") == {}
    await raw.shake_hands()
    assert await raw.result("ping") == {}


@rule("BP-041", fresh=True)
@pytest.mark.parametrize("key", ["clientCapabilities", "clientInfo", "logLevel"])
@pytest.mark.parametrize("method", ["ping", "tools/list", "example/double"])
async def test_before_a_handshake_keys_of_single_requests_need_a_version(
    rig: Rig, method: str, key: str
) -> None:
    raw = await rig.line(opened=False)
    value = {"clientCapabilities": {}, "clientInfo": INFO, "logLevel": "info"}[key]
    params = {"value": 1, "_meta": {f"{PREFIX}{key}": value}}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    raw.send(message)
    error = (await raw.reply(1))["error"]
    assert error["code"] == -32602
    assert "protocol version" in error["message"]


@rule("BP-030", until=V2026_07_28, fresh=True)
async def test_initialize_opens_a_session_whatever_keys_its_meta_has(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    meta = {f"{PREFIX}clientInfo": INFO}
    result = await raw.result("initialize", raw.introduction(), **meta)
    assert result["protocolVersion"] == rig.revision


@rule("K-61", until=V2026_07_28)
@pytest.mark.parametrize(
    "meta",
    [
        {"clientCapabilities": {"sampling": {}}, "clientInfo": {"name": "x", "version": "1"}},
        {"logLevel": "debug"},
        {"clientCapabilities": 1},
        {"clientInfo": "x", "logLevel": "loud"},
    ],
)
async def test_in_a_session_keys_of_single_requests_change_nothing(
    rig: Rig, meta: dict[str, Any]
) -> None:
    keys = {f"{PREFIX}{key}": value for key, value in meta.items()}
    result = await rig.raw.result("tools/call", {"name": "who"}, **keys)
    who = json.loads(result["content"][0]["text"])
    assert (who["revision"], who["client"], who["declared"]) == (rig.revision, "script", [])
    rig.raw.received.clear()
    speak = {"name": "speak", "arguments": {"levels": ["debug", "info"]}}
    await rig.raw.result("tools/call", speak, **keys, progressToken="t")
    levels = [
        each["params"]["level"]
        for each in rig.raw.received
        if each.get("method") == "notifications/message"
    ]
    assert levels == ["info"]


@rule(
    *("BP-034", "BP-009"),
    until=V2026_07_28,
    fresh=True,
    over=STREAMABLE,
    # An HTTP error may have a body with an error without an id.
    may_provoke=("mcp.jsonrpc.notification-unanswered",),
)
async def test_a_notification_before_initialize_belongs_to_no_session(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    raw.notify("notifications/initialized")
    error = (await raw.answer_without_id())["error"]
    assert error["code"] == -32600
    assert "initialize" in error["message"]
    await raw.shake_hands()
    assert await raw.result("ping") == {}


@rule("S-42", "E-100", "K-19", until=V2026_07_28, fresh=True)
async def test_a_second_initialize_is_refused_and_the_session_goes_on(rig: Rig) -> None:
    raw = await rig.line()
    error = await raw.error("initialize", raw.introduction())
    assert error["code"] == -32600
    assert "already initialized" in error["message"]
    assert (await raw.text("who"))["revision"] == rig.revision


@rule("BP-012", fresh=True)
async def test_initialize_is_refused_inside_a_batch(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    ping, opening = raw.request("ping"), raw.request("initialize", raw.introduction())
    raw.send([ping, opening])
    # No revision is agreed on, so nothing says that a batch may be sent at all.
    answer = await raw.answer_without_id()
    assert answer["error"]["code"] == -32600
    assert (await raw.shake_hands())["protocolVersion"] == rig.revision
    again = raw.request("initialize", raw.introduction())
    raw.send([again])
    (reply,) = await raw.until(lambda each: isinstance(each, list))
    assert (reply["id"], reply["error"]["code"]) == (again["id"], -32600)


@rule("P-44", "BP-030", until=V2026_07_28, fresh=True)
async def test_initialize_with_params_that_do_not_fit_says_which_member_is_wrong(
    rig: Rig,
) -> None:
    raw = await rig.line(opened=False)
    good = raw.introduction()
    cases: list[tuple[Any, str]] = [
        (None, "missing required fields `protocolVersion`, `capabilities`, `clientInfo`"),
        ({}, "missing required fields `protocolVersion`, `capabilities`, `clientInfo`"),
        ({"x": 1}, "missing required fields `protocolVersion`, `capabilities`, `clientInfo`"),
        ({"capabilities": {}}, "missing required fields `protocolVersion`, `clientInfo`"),
        (
            {key: good[key] for key in ("capabilities", "clientInfo")},
            "missing required field `protocolVersion`",
        ),
        ({**good, "protocolVersion": 5}, "protocolVersion"),
        ({**good, "capabilities": None}, "got `null` - at `$.capabilities`"),
        ({key: good[key] for key in ("protocolVersion", "clientInfo")}, "field `capabilities`"),
        ({**good, "capabilities": []}, "capabilities"),
        ({**good, "clientInfo": {"name": "x"}}, "version"),
    ]
    for params, member in cases:
        error = await raw.error("initialize", params)
        assert error["code"] == -32602
        assert member in error["message"]
    assert (await raw.shake_hands())["protocolVersion"] == rig.revision


@rule("BP-039", "E-97", "P-58", "C-34", "C-35", "C-36", fresh=True)
async def test_capabilities_are_what_was_registered_and_what_the_revision_knows(
    rig: Rig,
) -> None:
    raw = await rig.line(opened=False)
    result = await raw.shake_hands()
    expected: dict[str, Any] = {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "logging": {},
        "experimental": {"example/feature": {"on": True}},
    }
    if rig.since(V2025_03_26):
        expected["completions"] = {}
    assert result["capabilities"] == expected
    client = rig.client
    assert client.server_capabilities.tools.list_changed is True
    assert client.server_capabilities.resources.subscribe is True


@rule("BP-039", "BP-021", "C-34", fresh=True)
async def test_a_server_declares_and_serves_only_what_it_has(rig: Rig) -> None:
    raw = await rig.line("only-tools", opened=False)
    declared = (await raw.shake_hands())["capabilities"]
    assert declared == {"tools": {"listChanged": True}}
    for method, params in [
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "note://text"}),
        ("resources/subscribe", {"uri": "note://text"}),
        ("resources/unsubscribe", {"uri": "note://text"}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "review"}),
        ("completion/complete", completing("review")),
        ("logging/setLevel", {"level": "debug"}),
    ]:
        error = await raw.error(method, params)
        assert error["code"] == -32601
        assert method in error["message"]
    await raw.result("tools/call", {"name": "one"}, **{f"{PREFIX}logLevel": "debug"})
    assert not [each for each in raw.received if each.get("method") == "notifications/message"]


@rule("BP-021", "BP-039", "C-34", "C-36", fresh=True)
async def test_a_server_with_nothing_declares_what_may_be_added_and_lists_nothing(
    rig: Rig,
) -> None:
    raw = await rig.line("empty", opened=False)
    assert (await raw.shake_hands())["capabilities"] == {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "logging": {},
    }
    for method, member in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ]:
        assert (await raw.result(method, {}))[member] == []
    unknown = await raw.error("tools/call", {"name": "echo"})
    assert (unknown["code"], unknown["message"]) == (-32602, "Unknown tool: echo")
    assert (await raw.error("completion/complete", completing("review")))["code"] == -32601
    assert await raw.settle()


@rule("C-35", "C-36", fresh=True)
async def test_a_server_declares_no_changes_and_subscriptions_that_it_does_not_have(
    rig: Rig,
) -> None:
    raw = await rig.line("unsubscribable", opened=False)
    declared = (await raw.shake_hands())["capabilities"]
    assert [declared[kind] for kind in ("tools", "prompts", "resources")] == [{}, {}, {}]
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert (await raw.error(method, {"uri": "note://text"}))["code"] == -32601


def completing(prompt: str) -> dict[str, Any]:
    return {
        "ref": {"type": "ref/prompt", "name": prompt},
        "argument": {"name": "style", "value": ""},
    }


@rule("K-33", "E-96", until=V2026_07_28, fresh=True)
async def test_unknown_members_of_capabilities_are_ignored(rig: Rig) -> None:
    strange = {
        "roots": {"supported": True},
        "sampling": {"modelPreferences": {"costPriority": "balanced"}},
        "experimental": {"features": {"names": ["task_management"]}},
        "unheard-of": {"at": "all"},
    }
    raw = await rig.line(capabilities=strange)
    assert set((await raw.text("who"))["declared"]) >= {"roots", "sampling"}


@rule("P-47", "P-62", until=V2026_07_28, fresh=True)
async def test_versions_and_the_client_are_logged_once_per_session(rig: Rig) -> None:
    raw = await rig.line()
    log = await raw.logged("negotiated")
    (line,) = [line for line in log.splitlines() if "negotiated" in line]
    for part in (
        INFO["name"],
        INFO["version"],
        f"requested revision '{rig.revision}'",
        "2024-11-05",
    ):
        assert part in line or part.strip("'") in line
    assert line.endswith(f"negotiated {rig.revision}")
    await raw.ask("tools/list")
    assert raw.wire.log().count("negotiated") == 1


@rule("P-62", "C-09")
async def test_handler_context_has_client_name_revision_method_and_state(rig: Rig) -> None:
    seen = await rig.raw.text("who")
    assert seen["client"] == "script"
    assert seen["revision"] == rig.revision
    assert (seen["what"], seen["method"]) == ("who", "tools/call")
    assert isinstance(seen["id"], int)
    assert seen["state"] == {"database": "connected"}
    ours = (await rig.client.call_tool("who", result_type=dict)).value
    assert ours["client"] == "script"


@rule("BP-035", fresh=True)
async def test_server_sends_no_requests_or_notifications_before_initialized(
    rig: Rig,
) -> None:
    raw = await rig.line(opened=False)
    opening = raw.introduction(capabilities={"roots": {}})
    raw.received.clear()
    assert "result" in await raw.ask("initialize", opening)
    asking = raw.start("tools/call", {"name": "ask", "arguments": {"method": "roots/list"}})
    await raw.call("grow", kind="tool", names=["early"])
    await raw.call("step", key="wait", name="x")
    await raw.call("step", key="wait", name="y")
    await raw.call("step", key="wait", name="z")
    sent = [each["method"] for each in await raw.settle() if "method" in each]
    assert sent == []
    raw.notify("notifications/initialized")
    await finish_asking(raw, asking)


async def finish_asking(raw: Raw, asking: Any) -> None:
    """Answer what the server asks now, if it waited to ask; else it has refused already."""
    done = await raw.until(
        lambda each: each.get("id") == asking or each.get("method") == "roots/list"
    )
    if "method" in done:
        raw.send({"jsonrpc": "2.0", "id": done["id"], "result": {"roots": []}})
        await raw.reply(asking)


@rule("E-129", "BP-009", until=V2026_07_28, fresh=True, over=CONNECTED)
async def test_notifications_before_and_after_the_opening_are_harmless(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    raw.notify("notifications/initialized")
    raw.notify("notifications/cancelled", {"requestId": 1})
    await raw.shake_hands()
    raw.notify("notifications/initialized")
    raw.notify("notifications/roots/list_changed")
    assert [each for each in await raw.settle() if "error" in each] == []


@rule("C-14", "BP-030", fresh=True)
async def test_a_client_closes_and_connects_again(rig: Rig) -> None:
    client = await rig.connect()
    await client.close()
    await client.close()
    assert not client.is_connected
    await client.connect()
    assert (await client.call_tool("echo", {"text": "again"})).text == "again"


@rule("E-95", since=V2025_11_25, until=V2026_07_28, fresh=True)
async def test_unknown_members_of_client_info_are_ignored(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    params = raw.introduction()
    params["clientInfo"] = {**INFO, "title": "A script", "mood": "good"}
    params["_meta"] = {"example.org/trace": "t-1"}
    assert "result" in await raw.ask("initialize", params)
