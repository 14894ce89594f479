"""The flows of the described systems, under the policies that ask for them.

What is said here breaks official rules on purpose, so no judge listens.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conversation.rig import INFO, Rig
from tests.conversation.rules import CONNECTED, rule
from trunkline.jsonrpc import Policy
from trunkline.spec.revisions import V2025_06_18, V2025_11_25, V2026_07_28

OLD = V2026_07_28  # until then

EARLY = "Cannot execute operation before server initialization. Call initialize first."
TWICE = "Server already initialized. Initialize must be called only once."


# -- erlmcp ----------------------------------------------------------------------------------


@rule("E-98", "E-99", "K-19", until=OLD, fresh=True, over=CONNECTED)
async def test_erlmcp_refuses_what_is_early_with_its_code_and_text(rig: Rig) -> None:
    raw = await rig.line("erlmcp", opened=False, judged=False)
    for method in ("ping", "tools/list", "resources/list", "prompts/get", "no/such/method"):
        error = await raw.error(method, {})
        assert (error["code"], error["message"]) == (-32005, EARLY)
    assert (await raw.shake_hands())["protocolVersion"] == rig.revision


@rule("E-100", "K-19", until=OLD, fresh=True)
async def test_erlmcp_refuses_a_second_initialize_with_its_code_and_text(rig: Rig) -> None:
    raw = await rig.line("erlmcp", opened=False, judged=False)
    assert (await raw.shake_hands())["protocolVersion"] == rig.revision
    assert "result" in await raw.ask("tools/list", {})
    error = await raw.error("initialize", raw.introduction())
    assert (error["code"], error["message"]) == (-32005, TWICE)


@rule("E-102", "K-13", until=OLD, fresh=True)
async def test_erlmcp_rejects_another_version(rig: Rig) -> None:
    raw = await rig.line("erlmcp", opened=False, judged=False)
    error = await raw.error("initialize", raw.introduction("2023-01-01"))
    assert (error["code"], error["message"]) == (-32062, "Protocol version mismatch")
    assert error["data"] == {"clientVersion": "2023-01-01", "serverVersion": V2025_11_25}
    assert (await raw.shake_hands())["protocolVersion"] == rig.revision


@rule("E-96", "K-33", since=V2025_11_25, until=OLD, fresh=True)
async def test_erlmcp_is_opened_as_its_document_shows(rig: Rig) -> None:
    raw = await rig.line("erlmcp", opened=False, judged=False)
    shown = {
        "protocolVersion": "2025-11-25",
        "capabilities": {
            "roots": {"supported": True},
            "sampling": {
                "modelPreferences": {
                    "costPriority": "balanced",
                    "speedPriority": "balanced",
                    "intelligencePriority": "balanced",
                }
            },
            "experimental": {"features": ["task_management"]},
        },
        "clientInfo": {"name": "claude-client", "version": "1.0.0"},
    }
    reply = await raw.ask("initialize", shown)
    assert reply["result"]["protocolVersion"] == "2025-11-25"
    raw.notify("initialized", {})
    assert (await raw.text("who"))["client"] == "claude-client"


@rule("E-08", "E-110", "K-16", "K-17", "K-18", "K-21", until=OLD, fresh=True)
async def test_erlmcp_has_a_code_for_each_thing_that_is_missing(rig: Rig) -> None:
    raw = await rig.line("erlmcp", judged=False)
    tool = {"tool": "missing_tool", "details": "Unknown tool: missing_tool"}
    for method in ("tools/call", "tool/execute"):
        error = await raw.error(method, {"name": "missing_tool"})
        assert error == {"code": -32002, "message": "Tool not found", "data": tool}
    assert await raw.error("resources/read", {"uri": "note://nowhere"}) == {
        "code": -32001,
        "message": "Resource not found",
        "data": {"uri": "note://nowhere"},
    }
    assert await raw.error("prompts/get", {"name": "nobody"}) == {
        "code": -32003,
        "message": "Prompt not found",
        "data": {"prompt": "nobody"},
    }
    assert await raw.error("no/such/method") == {
        "code": -32601,
        "message": "Method not found",
        "data": {"method": "no/such/method"},
    }


@rule("K-69", until=OLD, fresh=True)
async def test_erlmcp_and_pierre_have_a_code_for_a_tool_that_failed(rig: Rig) -> None:
    raw = await rig.line("erlmcp", judged=False)
    error = await raw.error("tools/call", {"name": "fails"})
    assert (error["code"], error["message"]) == (-32031, "The well is dry.")
    raw = await rig.line("pierre", judged=False)
    assert (await raw.error("tools/call", {"name": "fails"}))["code"] == -32000


@rule("K-53", "K-54", "K-55", "K-21", until=OLD, fresh=True)
async def test_erlmcp_emits_and_understands_bare_names(rig: Rig) -> None:
    raw = await rig.line("erlmcp", opened=False, judged=False)
    assert "result" in await raw.ask("initialize", raw.introduction())
    raw.notify("initialized", {})
    params = {"name": "report", "arguments": {"values": [1]}}
    await raw.result("tools/call", params, progressToken="tok")
    assert raw.notifications("progress")[0]["progressToken"] == "tok"
    await raw.call("speak", levels=["info"])
    assert raw.notifications("message")[0]["level"] == "info"
    await raw.call("grow", kind="tool", names=["new"])
    await raw.wait_for_notifications("tools/list_changed")
    assert await raw.result("resources/subscribe", {"uri": "note://text"}) == {}
    await raw.call("touch", uris=["note://text"])
    assert (await raw.wait_for_notifications("resources/updated"))[0]["uri"] == "note://text"
    held = raw.start("tools/call", {"name": "hold", "arguments": {"key": "bare"}})
    assert await raw.text("noted", key="bare") == ["began"]
    raw.notify("cancelled", {"requestId": held})
    assert await raw.text("noted", key="bare", count=2) == ["began", "cancelled True"]
    assert not [each for each in raw.received if "notifications/" in str(each.get("method"))]


@rule("E-11", "K-21", until=OLD, fresh=True)
async def test_erlmcp_takes_a_batch_in_every_revision(rig: Rig) -> None:
    raw = await rig.line("erlmcp", judged=False)
    raw.send(
        [
            {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {}},
            {"jsonrpc": "2.0", "id": 2, "method": "invalid_method", "params": {}},
            {"jsonrpc": "2.0", "method": "initialized", "params": {}},
        ]
    )
    first, second = await raw.until(lambda each: isinstance(each, list))
    assert first["id"] == 1
    assert "resources" in first["result"]
    assert (second["id"], second["error"]["code"]) == (2, -32601)


# -- Pierre ----------------------------------------------------------------------------------


@rule("P-57", "P-56", "K-15", until=OLD, fresh=True)
@pytest.mark.parametrize(
    ("asked", "answer", "declared"),
    [
        ("1.0", "1.0", {"tools"}),
        ("1", "1.0", {"tools"}),
        ("3000-01-01", "2024-11-05", {"tools", "resources", "prompts", "logging"}),
    ],
)
async def test_pierre_falls_back_from_what_it_does_not_know_and_warns(
    rig: Rig, asked: str, answer: str, declared: set[str]
) -> None:
    if rig.transport != "memory" and asked != "3000-01-01":
        return
    is_legacy = asked != "3000-01-01"
    warning = "legacy MCP version" if is_legacy else "Unknown client version"
    raw = await rig.line("pierre", opened=False, judged=False)
    result = await raw.shake_hands(asked)
    assert (result["protocolVersion"], result["capabilities"].keys()) == (answer, declared)
    log = await raw.logged(warning)
    assert any(line.startswith("WARNING") and asked in line for line in log.splitlines())
    assert await raw.text("echo", text="basics") == "basics"


@rule("K-16", "K-17", until=OLD, fresh=True)
async def test_pierre_has_its_own_codes(rig: Rig) -> None:
    raw = await rig.line("pierre", judged=False)
    assert (await raw.error("tools/call", {"name": "missing_tool"}))["code"] == -32601
    assert (await raw.error("resources/read", {"uri": "note://nowhere"}))["code"] == -32601


@rule("K-56", until=OLD, fresh=True)
async def test_cancel_by_progress_token_works_under_the_pierre_policy(rig: Rig) -> None:
    raw = await rig.line("pierre", judged=False)
    hold = {"name": "hold", "arguments": {"key": "by-token"}}
    held = raw.start("tools/call", hold, progressToken="tok-1")
    assert await raw.text("noted", key="by-token") == ["began"]
    raw.notify("notifications/cancelled", {"progressToken": "tok-other"})
    await raw.settle()
    assert await raw.text("noted", key="by-token") == ["began"]
    raw.notify("notifications/cancelled", {"progressToken": "tok-1"})
    assert await raw.text("noted", key="by-token", count=2) == ["began", "cancelled True"]
    assert [each for each in await raw.settle() if each.get("id") == held] == []


@rule("K-56", until=OLD)
async def test_cancel_by_progress_token_is_ignored_under_other_policies(rig: Rig) -> None:
    raw, key = rig.raw, f"token-{rig.raw.new_id()}"
    hold = {"name": "hold", "arguments": {"key": key}}
    held = raw.start("tools/call", hold, progressToken=key)
    assert await raw.text("noted", key=key) == ["began"]
    raw.notify("notifications/cancelled", {"progressToken": key})
    await raw.settle()
    await raw.call("release", key=key)
    assert "result" in await raw.reply(held)


@rule("P-62", since=V2025_06_18, until=OLD, fresh=True)
async def test_headers_of_pierres_envelope_reach_the_handler_and_no_log(rig: Rig) -> None:
    raw = await rig.line("pierre", judged=False)
    message = {
        **raw.request("tools/call", {"name": "who"}),
        "auth": "Bearer eyJhbGciOi-secret-token-V6T6QMBv",
        "headers": {"x-tenant-id": "tenant-7", "authorization": "Bearer other-secret-token"},
        "metadata": {"trace": "t-1"},
    }
    raw.send(message)
    reply = await raw.reply(message["id"])
    seen = json.loads(reply["result"]["content"][0]["text"])
    assert seen["headers"]["x-tenant-id"] == "tenant-7"
    assert reply.keys() == {"jsonrpc", "id", "result"}
    await raw.ask("tools/call", {"name": "explodes"})
    await raw.settle()
    assert "secret-token" not in raw.wire.log()


@rule("K-19", "K-66", "K-18", "K-71", until=OLD, fresh=True)
@pytest.mark.parametrize("variant", ["erlmcp", "pierre", "mcpp"])
async def test_no_refusal_is_taken_for_a_fault_of_the_server(rig: Rig, variant: str) -> None:
    raw = await rig.line(variant, opened=False, judged=False)
    early = await raw.error("tools/list", {})
    await raw.shake_hands()
    completing = {"ref": {"type": "ref/prompt", "name": "nobody"}}
    refused = [
        early,
        await raw.error("initialize", raw.introduction()),
        await raw.error("tools/list", {"cursor": "nonsense"}),
        await raw.error("logging/setLevel", {"level": "loud"}),
        await raw.error("prompts/get", {"name": "nobody"}),
        await raw.error("prompts/get", {"name": "review"}),
        await raw.error("prompts/get", {"name": "counted", "arguments": {"times": "x"}}),
        await raw.error("resources/subscribe", {"uri": "note://nowhere"}),
        await raw.error(
            "completion/complete", {**completing, "argument": {"name": "a", "value": ""}}
        ),
        await raw.error("no/such/method"),
    ]
    assert -32603 not in [each["code"] for each in refused], refused


# -- mcpp, and leniency ----------------------------------------------------------------------


@rule("K-57", "K-64", until=OLD, fresh=True)
@pytest.mark.parametrize("variant", ["mcpp", "lenient"])
async def test_a_lenient_server_reads_snake_case_and_a_missing_version(
    rig: Rig, variant: str
) -> None:
    raw = await rig.line(variant, opened=False, judged=False)
    params = {"protocol_version": rig.revision, "capabilities": {}, "client_info": INFO}
    raw.send({"id": 0, "method": "initialize", "params": params})
    assert (await raw.reply(0))["result"]["protocolVersion"] == rig.revision
    raw.send({"method": "notifications/initialized"})
    raw.send({"id": 1, "method": "ping"})
    assert (await raw.reply(1))["result"] == {}


@rule("K-57", until=OLD, fresh=True)
async def test_snake_case_members_are_not_read_under_other_policies(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    params = {"protocol_version": rig.revision, "capabilities": {}, "clientInfo": INFO}
    assert (await raw.error("initialize", params))["code"] == -32602


@rule("C-01", "K-57", until=OLD, fresh=True)
async def test_a_client_of_mcpp_counts_from_nought(rig: Rig) -> None:
    client, record = await rig.connect_recorded("mcpp", policy=Policy.mcpp(), judged=False)
    assert (await client.call_tool("add", {"a": 1}, result_type=int)).value == 2
    sent = [json.loads(line) for who, line in record.lines if who == "client"]
    assert [each["id"] for each in sent if "id" in each] == [0, 1]
    assert all(each["jsonrpc"] == "2.0" for each in sent)


@rule("K-32", until=OLD, fresh=True)
async def test_a_token_beside_the_params_counts_only_when_lenient(rig: Rig) -> None:
    params = {"name": "report", "arguments": {"values": [1]}, "progressToken": "beside"}
    strict = await rig.line()
    await strict.ask("tools/call", params)
    assert strict.notifications("notifications/progress") == []
    lenient = await rig.line("lenient", judged=False)
    await lenient.result("tools/call", params)
    assert [each["progressToken"] for each in lenient.notifications("notifications/progress")] == [
        "beside"
    ]


# -- names -----------------------------------------------------------------------------------

OTHER_NAMES: list[tuple[str, dict[str, Any]]] = [
    ("tool/execute", {"name": "echo", "arguments": {"text": "x"}}),
    ("logging/set_level", {"level": "info"}),
]


@rule("K-21", "K-53", "K-54", "K-55", until=OLD, fresh=True)
async def test_other_names_are_understood_where_they_are_allowed(rig: Rig) -> None:
    raw = await rig.line("understanding", opened=False)
    assert "result" in await raw.ask("initialize", raw.introduction())
    raw.notify("initialized")
    for method, params in OTHER_NAMES:
        assert "result" in await raw.ask(method, params)
    # It speaks as everybody does.
    await raw.call("grow", kind="tool", names=["new"])
    await raw.wait_for_notifications("notifications/tools/list_changed")


@rule("K-21", "F-32", until=OLD)
async def test_method_aliases_are_unknown_under_other_policies(rig: Rig) -> None:
    for method, params in OTHER_NAMES:
        assert (await rig.raw.error(method, params))["code"] == -32601
    key = f"official-{rig.raw.new_id()}"
    held = rig.raw.start("tools/call", {"name": "hold", "arguments": {"key": key}})
    rig.raw.notify("cancelled", {"requestId": held})
    await rig.raw.settle()
    await rig.raw.call("release", key=key)
    assert "result" in await rig.raw.reply(held)
