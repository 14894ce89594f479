"""Values narrowed to a revision: what is dropped, what stands in, and what is left alone."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw, Struct

from trunkline.mcp import types as wire
from trunkline.mcp.shaping import STAND_INS, narrow
from trunkline.mcp.tables import knows
from trunkline.mcp.types import (
    Annotations,
    AudioContent,
    CallToolResult,
    ClientCapabilities,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestParams,
    EmbeddedResource,
    Icon,
    ImageContent,
    InputRequiredResult,
    ListToolsResult,
    PromptMessage,
    ResourceLink,
    SamplingMessage,
    ServerCapabilities,
    TextContent,
    Tool,
    ToolAnnotations,
    ToolResultContent,
    ToolUseContent,
)
from trunkline.spec.revisions import (
    REVISIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
)
from trunkline.spec.types import UnknownRevision

OLDER = (V2024_11_05, V2025_03_26, V2025_06_18)

each_revision = pytest.mark.parametrize("revision", REVISIONS)


def shown(value: Struct, revision: str) -> Any:
    return msgspec.to_builtins(narrow(value, revision))


# What is dropped


def test_members_that_came_later_are_unset() -> None:
    tool = Tool({}, "add", title="Add", icons=[Icon("x")], annotations=ToolAnnotations(title="A"))
    assert narrow(tool, V2024_11_05) == Tool({}, "add")
    assert narrow(tool, V2025_03_26) == Tool({}, "add", annotations=ToolAnnotations(title="A"))
    assert narrow(tool, V2025_11_25) is tool


def test_members_that_have_gone_are_unset() -> None:
    found = narrow(ClientCapabilities(roots=wire.ClientCapabilitiesRoots(True)), V2026_07_28)
    assert found == ClientCapabilities(roots=wire.ClientCapabilitiesRoots())


def test_members_are_dropped_at_any_depth() -> None:
    block = TextContent("hi", meta={"a": 1}, annotations=Annotations(["user"], "2026", 1))
    found = shown(CallToolResult([block], meta={"b": 2}), V2024_11_05)
    text = {"type": "text", "text": "hi", "annotations": {"audience": ["user"], "priority": 1}}
    # A result had `_meta` from the first; a block had not.
    assert found == {"content": [text], "_meta": {"b": 2}}


def test_only_the_blocks_that_change_are_new() -> None:
    plain, rich = TextContent("a"), TextContent("b", meta={})
    found = narrow(CallToolResult([plain, rich]), V2024_11_05)
    assert isinstance(found, CallToolResult)
    assert found.content[0] is plain
    assert found.content[1] == TextContent("b")


def test_values_of_a_map_are_narrowed() -> None:
    asked = ElicitRequest(ElicitRequestParams("?", url="https://a", mode="url", elicitation_id="1"))
    found = narrow(InputRequiredResult(input_requests={"a": asked}), V2026_07_28)
    assert isinstance(found, InputRequiredResult)
    assert found.input_requests == {
        "a": ElicitRequest(ElicitRequestParams("?", url="https://a", mode="url"))
    }


def test_null_and_false_count_as_values_and_are_dropped() -> None:
    assert narrow(CallToolResult([], structured_content=None), V2025_03_26) == CallToolResult([])
    assert narrow(CallToolResult([], structured_content=False), V2025_03_26) == CallToolResult([])


def test_a_value_that_says_it_equals_everything_is_still_dropped() -> None:
    class Agreeable:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("a value was compared")

    found = narrow(CallToolResult([], structured_content=Agreeable()), V2024_11_05)
    assert isinstance(found, CallToolResult)
    assert found.structured_content is UNSET


def test_capabilities_are_narrowed() -> None:
    ours = ServerCapabilities(completions={}, extensions={"a/b": {}}, experimental={"x": {}})
    assert shown(ours, V2024_11_05) == {"experimental": {"x": {}}}
    assert shown(ours, V2025_11_25) == {"completions": {}, "experimental": {"x": {}}}


# What is not touched


@each_revision
def test_a_plain_result_is_returned_as_it_is(revision: str) -> None:
    value = CallToolResult([TextContent("hi")], is_error=False)
    assert narrow(value, revision) is value


@each_revision
def test_a_plain_result_costs_a_handful_of_calls(revision: str) -> None:
    value = CallToolResult([TextContent("hi")])
    narrow(value, revision)
    calls = 0

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        narrow(value, revision)
    finally:
        sys.setprofile(None)
    # `narrow`, the result, its list, the block; then the revision that knows everything.
    assert calls <= (1 if revision == V2026_07_28 else 4)


@each_revision
def test_open_places_are_left_alone(revision: str) -> None:
    value = Tool({"title": "kept", "icons": [1]}, "a", description="d")
    assert narrow(value, revision) is value


def test_types_that_are_not_the_protocols_are_left_alone() -> None:
    class Tool(Struct):
        title: str

    class Louder(TextContent, frozen=True, tag="text"):
        volume: int = 0

    ours = Tool("kept")
    assert narrow(ours, V2024_11_05) is ours
    block = Louder("hi", meta={})
    assert narrow(block, V2024_11_05) is block
    value = CallToolResult([block])
    assert narrow(value, V2024_11_05) is value


@each_revision
def test_raw_json_stands_where_a_list_does(revision: str) -> None:
    raw: Any = Raw(b"[]")
    for value in (ListToolsResult(raw), CreateMessageRequestParams(1, raw), CallToolResult(raw)):
        assert narrow(value, revision) is value


def test_a_tuple_is_as_good_as_a_list() -> None:
    blocks: Any = (TextContent("a"), TextContent("b", meta={}))
    found = narrow(CallToolResult(blocks), V2024_11_05)
    assert found == CallToolResult([TextContent("a"), TextContent("b")])


def test_a_type_that_a_revision_lacks_and_nothing_replaces_is_left_alone() -> None:
    value = wire.TaskMetadata(1)
    assert narrow(value, V2024_11_05) is value


@pytest.mark.parametrize("value", [TextContent("a"), msgspec.defstruct("Other", [])()])
def test_an_unknown_revision_is_refused(value: Struct) -> None:
    with pytest.raises(UnknownRevision, match="2024-11-05"):
        narrow(value, "2020-01-01")


# What stands in


def test_every_block_that_a_revision_lacks_has_a_stand_in() -> None:
    blocks = {*wire.ContentBlock.__args__, *wire.SamplingMessageContentBlock.__args__}
    lacking = {kind for kind in blocks if not all(knows(kind.__name__, v) for v in REVISIONS)}
    assert lacking == set(STAND_INS)


def test_sound_travels_in_a_resource_before_there_is_a_block_for_it() -> None:
    sound = AudioContent("AAAA", "audio/wav", annotations=Annotations(priority=1))
    assert shown(CallToolResult([sound]), V2024_11_05)["content"] == [
        {
            "type": "resource",
            "resource": {"uri": "urn:trunkline:audio", "blob": "AAAA", "mimeType": "audio/wav"},
            "annotations": {"priority": 1},
        }
    ]
    assert narrow(sound, V2025_03_26) is sound


def test_resource_link_becomes_text_before_2025_06_18() -> None:
    link = ResourceLink(
        "r.pdf", "file:///r.pdf", title="Report", mime_type="application/pdf", size=9,
        description="All of it.",
    )  # fmt: skip
    told = "Report (r.pdf, application/pdf, 9 bytes): file:///r.pdf\nAll of it."
    assert narrow(PromptMessage(link, "user"), V2025_03_26) == PromptMessage(
        TextContent(told), "user"
    )
    assert narrow(ResourceLink("r", "a:b"), V2024_11_05) == TextContent("r: a:b")
    assert narrow(ResourceLink("r", "a:b", icons=[Icon("x")]), V2025_06_18) == ResourceLink(
        "r", "a:b"
    )


def test_a_stand_in_is_narrowed_as_well() -> None:
    sound = AudioContent("AAAA", "audio/wav", meta={}, annotations=Annotations(last_modified="2"))
    found = narrow(sound, V2024_11_05)
    assert isinstance(found, EmbeddedResource)
    assert found.meta is None
    assert found.annotations == Annotations()


def test_a_sampled_message_gets_no_resource_for_its_sound() -> None:
    sound = AudioContent("AAAA", "audio/wav")
    found = narrow(SamplingMessage(sound, "user"), V2024_11_05)
    assert found == SamplingMessage(TextContent(msgspec.json.encode(sound).decode()), "user")


@pytest.mark.parametrize("revision", OLDER)
def test_tool_use_and_tool_result_become_text_before_2025_11_25(revision: str) -> None:
    use, got = ToolUseContent("1", {"x": 1}, "add"), ToolResultContent([TextContent("2")], "1")
    for block in (use, got):
        found = narrow(CreateMessageResult(block, "m", "assistant"), revision)
        assert isinstance(found, CreateMessageResult)
        assert isinstance(found.content, TextContent)
        assert msgspec.json.decode(found.content.text, type=type(block)) == block


@pytest.mark.parametrize("revision", OLDER)
def test_a_message_of_several_blocks_becomes_several_messages(revision: str) -> None:
    text, image = TextContent("see"), ImageContent("AAAA", "image/png")
    last = SamplingMessage(TextContent("so?"), "assistant")
    value = CreateMessageRequestParams(1, [SamplingMessage([text, image], "user"), last])
    found = narrow(value, revision)
    assert found == CreateMessageRequestParams(
        1, [SamplingMessage(text, "user"), SamplingMessage(image, "user"), last]
    )
    assert narrow(found, revision) is found
    assert narrow(value, V2025_11_25) is value


@pytest.mark.parametrize("revision", OLDER)
def test_an_answer_of_several_blocks_becomes_one(revision: str) -> None:
    def answered(*blocks: Any) -> Any:
        value = CreateMessageResult([*blocks], "m", "assistant")
        assert narrow(value, V2026_07_28) is value
        return shown(value, revision)["content"]

    image = ImageContent("AAAA", "image/png")
    assert answered(image) == {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    assert answered(TextContent("a"), TextContent("b")) == {"type": "text", "text": "a\nb"}
    assert answered() == {"type": "text", "text": ""}
    assert "AAAA" in answered(TextContent("a"), image)["text"]
