"""Tools: how they are listed and called, and what becomes of what they return."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64decode, b64encode
from typing import Any

import pytest

from tests.conversation.app import CANARY, ODD, PNG, VERBATIM, WAV, Forecast
from tests.conversation.rig import Raw, Rig
from tests.conversation.rules import rule
from trunkline.errors import PeerError, ToolFailed
from trunkline.mcp import ImageContent
from trunkline.spec.revisions import V2025_03_26, V2025_06_18, V2025_11_25


async def rows(raw: Raw, method: str = "tools/list", member: str = "tools") -> dict[str, Any]:
    """Return a whole list, by name."""
    found, cursor = {}, None
    while True:
        page = await raw.result(method, {} if cursor is None else {"cursor": cursor})
        found |= {row["name"]: row for row in page[member]}
        if (cursor := page.get("nextCursor")) is None:
            return found


# -- listing ---------------------------------------------------------------------------------


@rule("P-51", "F-24", "F-37")
async def test_a_tool_is_listed_with_what_the_revision_knows_of_it(rig: Rig) -> None:
    listed = await rows(rig.raw)
    expected: dict[str, Any] = {
        "name": "echo",
        "description": "Say it again.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
    }
    if rig.since(V2025_03_26):
        expected["annotations"] = {"readOnlyHint": True}
    if rig.since(V2025_06_18):
        expected["title"] = "Echo"
    if rig.since(V2025_11_25):
        expected["icons"] = [{"src": "https://x.test/i.png"}]
    assert listed["echo"] == expected
    assert ("_meta" in listed["forecast"]) == rig.since(V2025_06_18)
    region = listed["forecast"]["inputSchema"]["properties"]["region"]
    assert (region["type"], region["x-mcp-header"]) == ("string", "Region")


@rule("F-24", "C-01")
async def test_our_client_lists_all_tools_and_calls_one(rig: Rig) -> None:
    tools = {tool.name: tool for tool in await rig.client.list_tools()}
    assert tools.keys() == (await rows(rig.raw)).keys()
    assert tools["add"].description == "Add two numbers."
    result = await rig.client.call_tool("add", {"a": 4, "b": 5}, result_type=int)
    assert result.value == 9


@rule("P-51", "mcp.tools.dialect-default", since="2024-11-05")
async def test_custom_input_schema_is_listed_unchanged(rig: Rig) -> None:
    raw = rig.raw
    assert (await rows(raw))["verbatim"]["inputSchema"] == VERBATIM
    # Byte for byte, too: the order of the members is the author's.
    text = json.dumps(VERBATIM, separators=(",", ":")).encode()
    assert any(text in line for sender, line in raw.record.lines if sender == "server")


@rule("BP-161", "E-08")
async def test_an_output_schema_has_the_root_that_the_revision_wants(rig: Rig) -> None:
    listed = await rows(rig.raw)
    number: dict[str, Any] = {"type": "integer"}
    wrapped = {"type": "object", "properties": {"result": number}, "required": ["result"]}
    schema = listed["add"]["outputSchema"]
    assert schema == (number if rig.is_new else wrapped)
    assert listed["forecast"]["outputSchema"]["type"] == "object"
    assert "outputSchema" not in listed["echo"]


@rule("F-24", until=V2025_06_18)
async def test_output_schema_is_not_listed_before_2025_06_18(rig: Rig) -> None:
    for row in (await rows(rig.raw)).values():
        assert row.keys() <= {"name", "description", "inputSchema", "annotations"}


@rule("F-24", fresh=True)
async def test_a_deprecated_tool_says_so_and_still_works(rig: Rig) -> None:
    raw = await rig.line("new")  # it says so once
    assert (await rows(raw))["parrot"]["description"].startswith("Deprecated: use echo.")
    assert await raw.text("parrot", text="hi") == "hi"
    assert await raw.text("parrot", text="hi") == "hi"
    log = await raw.logged("deprecated tool 'parrot'")
    assert log.count("deprecated tool 'parrot'") == 1


# -- results ---------------------------------------------------------------------------------


@rule("BP-161", "E-08")
@pytest.mark.parametrize(
    ("tool", "arguments", "value"),
    [
        ("add", {"a": 1, "b": 2}, 3),
        ("names", {"count": 3}, ["name-0", "name-1", "name-2"]),
        ("forecast", {"city": "Oslo", "days": 2}, {"city": "Oslo", "days": ["sun", "rain"]}),
        ("move", {"by": {"x": 1, "y": 2}}, {"x": 2, "y": 3}),
    ],
)
async def test_a_value_is_structured_as_the_revision_wants_it(
    rig: Rig, tool: str, arguments: dict[str, Any], value: Any
) -> None:
    result = await rig.raw.call(tool, **arguments)
    wraps = not rig.is_new and not isinstance(value, dict)
    assert result["structuredContent"] == ({"result": value} if wraps else value)
    assert json.loads(result["content"][0]["text"]) == value
    assert "isError" not in result or result["isError"] is False


@rule("F-24", until=V2025_06_18)
async def test_structured_value_is_sent_as_text_before_2025_06_18(rig: Rig) -> None:
    result = await rig.raw.call("forecast", city="Oslo", days=1)
    assert result.keys() <= {"content", "isError"}
    assert json.loads(result["content"][0]["text"]) == {"city": "Oslo", "days": ["sun"]}


@rule("C-01", "E-08")
async def test_our_client_reads_the_same_value_in_every_revision(rig: Rig) -> None:
    call = rig.client.call_tool
    arguments = {"city": "Oslo", "days": 2}
    assert (await call("forecast", arguments, result_type=Forecast)).value == Forecast(
        "Oslo", ["sun", "rain"]
    )
    assert (await call("names", {"count": 1}, result_type=list[str])).value == ["name-0"]
    assert (await call("echo", {"text": "héllo"})).value == "héllo"


@rule("E-105")
async def test_a_text_is_one_block_and_is_not_sent_twice(rig: Rig) -> None:
    text = 'héllo\n"world" \u2028 \U0001f600'
    result = await rig.raw.call("echo", text=text)
    assert result["content"] == [{"type": "text", "text": text}]
    assert "structuredContent" not in result


@rule("F-24")
async def test_tool_that_returns_none_has_empty_content(rig: Rig) -> None:
    assert (await rig.raw.call("nothing"))["content"] == []


@rule("F-24")
async def test_a_value_may_come_with_a_text_of_its_own(rig: Rig) -> None:
    result = await rig.raw.call("in_short")
    assert result["content"] == [{"type": "text", "text": "Sun in Oslo"}]
    assert result["_meta"]["example/a"] == 1
    if rig.since(V2025_06_18):
        assert result["structuredContent"] == {"city": "Oslo", "days": ["sun"]}


@rule("E-104", "E-106")
async def test_an_image_goes_in_as_bytes_and_comes_out_as_bytes(rig: Rig) -> None:
    (block,) = (await rig.raw.call("picture"))["content"]
    assert block == {"type": "image", "data": b64encode(PNG).decode(), "mimeType": "image/png"}
    (ours,) = (await rig.client.call_tool("picture")).content
    assert isinstance(ours, ImageContent)
    assert ours.to_bytes() == PNG


@rule("E-104", "E-106")
async def test_audio_is_a_block_where_there_is_one_and_a_blob_before(rig: Rig) -> None:
    (block,) = (await rig.raw.call("sound"))["content"]
    data = b64encode(WAV).decode()
    if rig.since(V2025_03_26):
        assert (block["type"], block["data"]) == ("audio", data)
        assert block["mimeType"].startswith("audio/")
    else:
        assert block["type"] == "resource"
        assert block["resource"]["blob"] == data
        assert block["resource"]["mimeType"].startswith("audio/")


@rule("E-104", "E-106", "K-34")
async def test_bytes_of_no_known_kind_are_an_embedded_blob(rig: Rig) -> None:
    (block,) = (await rig.raw.call("blob"))["content"]
    assert block["type"] == "resource"
    assert b64decode(block["resource"]["blob"]) == ODD
    assert block["resource"]["mimeType"] == "application/octet-stream"
    assert "text" not in block["resource"]


@rule("F-25")
async def test_a_link_is_a_block_where_there_is_one_and_a_text_before(rig: Rig) -> None:
    (block,) = (await rig.raw.call("link"))["content"]
    if rig.since(V2025_06_18):
        assert (block["type"], block["uri"]) == ("resource_link", "config://app")
        assert (block["name"], block["title"]) == ("config", "The settings")
    else:
        assert block["type"] == "text"
        assert "config://app" in block["text"]
        assert "The settings" in block["text"]


@rule("E-106", "F-24")
async def test_blocks_keep_their_order_whatever_the_revision_makes_of_them(rig: Rig) -> None:
    result = await rig.raw.call("blocks")
    kinds = [block["type"] for block in result["content"]]
    audio = "audio" if rig.since(V2025_03_26) else "resource"
    link = "resource_link" if rig.since(V2025_06_18) else "text"
    assert kinds == ["text", "image", audio, link, "resource"]
    assert result["content"][1]["mimeType"] == "image/x-own"
    assert result["content"][4]["resource"] == {"uri": "note://inside", "text": "inside"}


# -- what does not fit -----------------------------------------------------------------------

BAD_ARGUMENTS = [
    ("forecast", {"city": 5}, "city"),
    ("forecast", {}, "city"),
    ("forecast", {"city": "Oslo", "days": "many"}, "days"),
    ("forecast", {"city": "Oslo", "days": 99}, "days"),
    ("forecast", {"city": "Oslo", "weeks": 1}, "weeks"),
    ("move", {"by": {"x": 1}}, "y"),
    ("verbatim", {"size": 0}, "size"),
    ("verbatim", {"name": "x"}, "size"),
]


@rule("K-68", "BP-162", "mcp.tools.inputs-validated")
@pytest.mark.parametrize(("tool", "arguments", "named"), BAD_ARGUMENTS)
async def test_invalid_arguments_are_reported_in_the_way_of_the_revision(
    rig: Rig, tool: str, arguments: dict[str, Any], named: str
) -> None:
    reply = await rig.raw.ask("tools/call", {"name": tool, "arguments": arguments})
    if rig.since(V2025_11_25):
        assert reply["result"]["isError"] is True
        text = reply["result"]["content"][0]["text"]
    else:
        assert reply["error"]["code"] == -32602
        text = reply["error"]["message"]
    assert tool in text
    assert named in text


@rule("BP-008", "K-46")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"arguments": {}},
        {"name": 5},
        {"name": "echo", "arguments": []},
        {"name": "echo", "arguments": "text"},
        {"name": "echo", "arguments": None},
        {"name": None, "arguments": {}},
    ],
)
async def test_malformed_call_params_are_invalid(rig: Rig, params: dict[str, Any]) -> None:
    assert (await rig.raw.error("tools/call", params))["code"] == -32602


@rule("K-46", "F-24")
async def test_arguments_may_be_left_out(rig: Rig) -> None:
    assert "result" in await rig.raw.ask("tools/call", {"name": "nothing"})


@rule("K-17", "E-08", "E-110")
async def test_unknown_tool_is_invalid_params_and_named(rig: Rig) -> None:
    error = await rig.raw.error("tools/call", {"name": "missing_tool", "arguments": {}})
    assert error["code"] == -32602
    assert "missing_tool" in error["message"]
    with pytest.raises(PeerError) as caught:
        await rig.client.call_tool("missing_tool")
    assert caught.value.code == -32602


# -- what fails ------------------------------------------------------------------------------


@rule("C-33", "K-69")
async def test_tool_error_is_a_result_with_is_error(rig: Rig) -> None:
    result = await rig.raw.call("fails")
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "The well is dry."}]
    ours = await rig.client.call_tool("fails")
    assert ours.is_error
    with pytest.raises(ToolFailed, match=r"The well is dry\."):
        _ = ours.value


@rule("K-16", "K-69")
async def test_a_handler_refuses_by_symbol_and_the_revision_has_the_number(rig: Rig) -> None:
    params = {"name": "refuses", "arguments": {"kind": "RESOURCE_NOT_FOUND", "message": "gone"}}
    error = await rig.raw.error("tools/call", params)
    assert error["code"] == (-32602 if rig.is_new else -32002)
    assert (error["message"], error["data"]) == ("gone", {"why": "asked to"})


@rule("K-69")
async def test_a_refusal_without_a_meaning_is_an_internal_error(rig: Rig) -> None:
    params = {"name": "refuses", "arguments": {"kind": "NO_SUCH_SYMBOL"}}
    assert (await rig.raw.error("tools/call", params))["code"] == -32603


@rule("C-33", "K-69")
@pytest.mark.parametrize("tool", ["explodes", "explodes_on_a_thread", "lies", "unwritable"])
async def test_unexpected_exception_is_not_shown_to_the_client(rig: Rig, tool: str) -> None:
    reply = await rig.raw.ask("tools/call", {"name": tool})
    assert reply["result"]["isError"] is True
    assert tool in reply["result"]["content"][0]["text"]
    assert CANARY not in json.dumps(reply)
    assert await rig.raw.text("echo", text="still here") == "still here"


@rule("C-33")
async def test_the_log_has_the_traceback_under_the_reference_that_the_client_got(
    rig: Rig,
) -> None:
    (block,) = (await rig.raw.call("explodes"))["content"]
    reference = block["text"].rpartition("reference ")[2].rstrip(").")
    log = await rig.raw.logged(reference)
    assert "RuntimeError" in log


@rule("C-39", "mcp.tools.call-timeout")
async def test_a_tool_that_takes_too_long_is_stopped(rig: Rig) -> None:
    result = await rig.raw.call("overruns")
    assert result["isError"] is True
    assert "overruns" in result["content"][0]["text"]


# -- side by side ----------------------------------------------------------------------------


@rule("C-20")
async def test_blocking_tool_does_not_delay_other_calls(rig: Rig) -> None:
    raw, key = rig.raw, f"blocked-{rig.raw.new_id()}"
    blocked = raw.start("tools/call", {"name": "hold_a_thread", "arguments": {"key": key}})
    assert await raw.text("noted", key=key) == ["began"]
    assert await raw.text("echo", text="meanwhile") == "meanwhile"
    await raw.call("release", key=key)
    assert (await raw.reply(blocked))["result"]["content"][0]["text"] == f"late {key}"


@rule("C-20", "BP-006")
async def test_calls_are_answered_as_they_end_and_each_under_its_own_id(rig: Rig) -> None:
    raw = rig.raw
    keys = [f"{name}-{raw.new_id()}" for name in "abc"]
    ids = [
        raw.start("tools/call", {"name": "hold", "arguments": {"key": key}}, id=f"id-{key}")
        for key in keys
    ]
    for key in reversed(keys):
        await raw.call("release", key=key)
    replies = [await raw.reply(id) for id in ids]
    assert [each["result"]["content"][0]["text"] for each in replies] == keys
    order = [each["id"] for each in raw.received if each.get("id") in ids]
    assert order == ids[::-1]


@rule("BP-006", "BP-002", fresh=True)
async def test_reply_id_has_the_value_and_type_of_the_request_id(rig: Rig) -> None:
    raw = await rig.line()
    for id in ("text-id", "", "7", 7, 0, -3, 2**53 + 1):
        reply = await raw.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}}, id=id)
        assert reply["id"] == id
        assert type(reply["id"]) is type(id)


@rule("C-37", "C-38")
async def test_a_tool_can_be_called_with_callbacks(rig: Rig) -> None:
    ended: list[Any] = []
    done = asyncio.Event()

    def end(outcome: Any) -> None:
        ended.append(outcome)
        if len(ended) == 2:
            done.set()

    good = rig.client.submit_tool("add", {"a": 1}, result_type=int, on_success=end, on_error=end)
    bad = rig.client.submit_tool("missing", on_success=end, on_error=end)
    async with asyncio.timeout(10):
        await done.wait()
    assert {type(each) for each in ended} == {type(good.result()), PeerError}
    assert good.result().value == 2
    assert bad.exception() is not None


@rule("BP-170")
async def test_the_names_of_tools_are_in_the_allowed_characters_and_listed_once(
    rig: Rig,
) -> None:
    names = [tool.name for tool in await rig.client.list_tools()]
    assert names
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[A-Za-z0-9_.-]{1,128}", name) for name in names)
