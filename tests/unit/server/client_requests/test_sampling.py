"""Sampling: what an author gives, as params that each revision has."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import to_builtins

from trunkline.errors import LocalProtocolError
from trunkline.judge import judge_type
from trunkline.mcp.shaping import narrow
from trunkline.mcp.types import (
    CreateMessageResult,
    EmbeddedResource,
    ImageContent,
    ModelHint,
    ModelPreferences,
    ResourceContents,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)
from trunkline.server.client_requests.sampling import sampling_params
from trunkline.spec.revisions import REVISIONS

IMAGE = ImageContent("aGk=", "image/png")
USE = ToolUseContent("1", {"city": "Rome"}, "weather")
OTHER = ToolUseContent("2", {}, "time")
RESULT = ToolResultContent([TextContent("sunny")], "1")
OTHER_RESULT = ToolResultContent([TextContent("noon")], "2")
HI = TextContent("hi")


def weather(city: str, days: int = 1) -> str:
    """Tell the weather.

    Args:
        city: Where.
    """
    return city * days


def messages(given: Any) -> list[SamplingMessage]:
    return sampling_params(given, max_tokens=9).messages


def user(*blocks: Any) -> SamplingMessage:
    return SamplingMessage(blocks[0] if len(blocks) == 1 else list(blocks), "user")


def assistant(*blocks: Any) -> SamplingMessage:
    return SamplingMessage(blocks[0] if len(blocks) == 1 else list(blocks), "assistant")


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("hi", [user(HI)]),
        (IMAGE, [user(IMAGE)]),
        (user(HI), [user(HI)]),
        ({"role": "assistant", "content": {"type": "text", "text": "hi"}}, [assistant(HI)]),
        (CreateMessageResult(HI, "some model", "assistant"), [assistant(HI)]),
        (("assistant", "hi"), [assistant(HI)]),
        (("user", ["hi", IMAGE]), [user(HI, IMAGE)]),
        (["hi", IMAGE], [user(HI, IMAGE)]),
        ((each for each in ("hi",)), [user(HI)]),
        (["hi", ("assistant", "hi"), "hi"], [user(HI), assistant(HI), user(HI)]),
        ([user(HI), "hi"], [user(HI), user(HI)]),
        ([user([HI])], [user(HI)]),
        (
            ["hi", USE, OTHER, RESULT, OTHER_RESULT, "hi"],
            [user(HI), assistant(USE, OTHER), user(RESULT, OTHER_RESULT), user(HI)],
        ),
        (
            ["hi", CreateMessageResult([HI, USE], "some model", "assistant"), RESULT],
            [user(HI), assistant(HI, USE), user(RESULT)],
        ),
    ],
)
def test_sampling_messages_are_built_from_texts_blocks_and_pairs(
    given: Any, made: list[SamplingMessage]
) -> None:
    assert messages(given) == made


def test_sampling_message_keeps_its_meta() -> None:
    (message,) = messages(SamplingMessage(HI, "user", meta={"a": 1}))
    assert message.meta == {"a": 1}


def test_sampling_options_are_sent_under_their_wire_names() -> None:
    params = sampling_params(
        "hi",
        max_tokens=100,
        system="Be brief.",
        model_preferences="claude",
        temperature=0.5,
        stop_sequences="END",
        include_context="none",
        metadata={"trace": [1]},
        tools=[weather],
        tool_choice="required",
    )
    assert to_builtins(params) == {
        "maxTokens": 100,
        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
        "systemPrompt": "Be brief.",
        "modelPreferences": {"hints": [{"name": "claude"}]},
        "temperature": 0.5,
        "stopSequences": ["END"],
        "includeContext": "none",
        "metadata": {"trace": [1]},
        "tools": [
            {
                "name": "weather",
                "description": "Tell the weather.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string", "description": "Where."},
                        "days": {"type": "integer", "default": 1},
                    },
                    "required": ["city"],
                    "additionalProperties": False,
                },
            }
        ],
        "toolChoice": {"mode": "required"},
    }


def test_omitted_sampling_params_are_not_sent() -> None:
    assert to_builtins(sampling_params("hi", max_tokens=1)).keys() == {"maxTokens", "messages"}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("a", ModelPreferences(hints=[ModelHint("a")])),
        (["a", ModelHint("b")], ModelPreferences(hints=[ModelHint("a"), ModelHint("b")])),
        (ModelPreferences(cost_priority=0.5), ModelPreferences(cost_priority=0.5)),
        ({"speedPriority": 1}, ModelPreferences(speed_priority=1)),
    ],
)
def test_models_are_preferred_by_name_or_in_full(given: Any, made: ModelPreferences) -> None:
    params = sampling_params("hi", max_tokens=1, model_preferences=given)
    assert params.model_preferences == made


def test_tools_may_be_values_dicts_or_functions() -> None:
    schema = {"type": "object"}
    params = sampling_params(
        "hi",
        max_tokens=1,
        tools=[Tool(schema, "a"), {"name": "b", "inputSchema": schema}, lambda: None],
        tool_choice=ToolChoice("auto"),
        stop_sequences=("x", "y"),
    )
    assert params.tools is not None
    assert [each.name for each in params.tools] == ["a", "b", "<lambda>"]
    assert params.tool_choice == ToolChoice("auto")
    assert params.stop_sequences == ["x", "y"]


RESOURCE = EmbeddedResource(ResourceContents("a:b", text="x"))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([], "at least one message"),
        (5, "a message is a str, a block or a pair"),
        ([5], "a message is a str, a block or a pair"),
        ([("system", "hi")], "a message is a str, a block or a pair"),
        (("user", []), "a message needs at least one content block"),
        (("user", 5), "a content block is text, image, audio"),
        (RESOURCE, "a message is a str, a block or a pair"),
        (("user", RESOURCE), "a content block is text, image, audio"),
        ({"role": "user"}, 'a message: "content": it is required'),
        ({"role": "system", "content": {"type": "text", "text": ""}}, 'a message: "role"'),
        (SamplingMessage(HI, "system"), "invalid sampling params"),
        (TextContent(5), "invalid sampling params"),
        ("\ud800", "lone surrogate"),
    ],
)
def test_invalid_sampling_messages_are_refused(given: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        messages(given)


@pytest.mark.parametrize(
    "given",
    [
        {"max_tokens": 0},
        {"max_tokens": True},
        {"max_tokens": "many"},
        {"temperature": "hot"},
        {"temperature": float("nan")},
        {"include_context": "everything"},
        {"tool_choice": "perhaps"},
        {"tools": ["weather"]},
        {"tools": [{"name": "a"}]},
        {"model_preferences": {"costPriority": 2}},
        {"model_preferences": ModelPreferences(cost_priority=2)},
        {"model_preferences": [5]},
        {"metadata": {"a": object()}},
        {"system": 5},
    ],
)
def test_invalid_sampling_options_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        sampling_params("hi", **{"max_tokens": 1, **given})


@pytest.mark.parametrize(
    ("given", "rule", "where"),
    [
        ([USE, user(RESULT, HI)], "results-alone", "/messages/1/content"),
        ([USE, ("user", [RESULT, USE])], "results-alone", "/messages/1/content"),
        ([USE, "hi"], "results-match", "/messages/1/content"),
        ([USE, OTHER, RESULT], "results-match", "/messages/1/content"),
        ([USE, RESULT, OTHER_RESULT], "results-match", "/messages/1/content"),
        ([USE, RESULT, RESULT], "results-match", "/messages/1/content"),
        ([USE, "hi", RESULT], "results-match", "/messages/1/content"),
        ([USE, ("assistant", RESULT)], "results-match", "/messages/1/content"),
        (["hi", RESULT], "results-match", "/messages/1/content"),
        (["hi", USE], "results-match", "/messages"),
    ],
)
def test_uses_of_tools_and_their_results_go_together(given: Any, rule: str, where: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        messages(given)
    assert caught.value.rule == f"mcp.sampling.{rule}"
    assert caught.value.where == where
    assert caught.value.expected


@pytest.mark.parametrize("revision", REVISIONS)
def test_sampling_params_are_narrowed_to_the_revision(revision: str) -> None:
    params = sampling_params(
        ["hi", IMAGE, CreateMessageResult([HI, USE], "m", "assistant"), RESULT, ("user", "hi")],
        max_tokens=10,
        model_preferences=["a", "b"],
        tools=[weather],
        tool_choice="auto",
        include_context="thisServer",
        metadata={"a": 1},
    )
    shaped = to_builtins(narrow(params, revision))
    assert judge_type({"method": METHOD, "params": shaped}, "CreateMessageRequest", revision) == []
    # Before 2025-11-25 a message holds one block, so several blocks are several messages.
    blocks = [each["content"] for each in shaped["messages"]]
    several = revision in ("2025-11-25", "2026-07-28")
    assert len(blocks) == (4 if several else 6)
    assert any(isinstance(each, list) for each in blocks) is several
    assert ("tools" in shaped) is several


METHOD = "sampling/createMessage"
