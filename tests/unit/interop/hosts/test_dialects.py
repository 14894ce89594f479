"""`interop/hosts/dialects.py`: each API as its hosts read it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interop.hosts.dialects import (
    DIALECTS,
    AnthropicMessages,
    Call,
    Dialect,
    Gemini,
    OpenAiChat,
    OpenAiResponses,
    Reply,
)

CALL = Reply(call=Call("call_1", "shop__order", {"item": "lamps"}))
TEXT = Reply("All done.")


def events(dialect: Dialect, reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    """Return the names and the data of the events of a reply."""
    found = []
    for event in dialect.events({"model": "m"}, reply):
        assert event.endswith("\n\n")
        fields = dict(line.split(": ", 1) for line in event.strip().split("\n"))
        if fields["data"] != "[DONE]":
            found.append((fields.get("event", ""), json.loads(fields["data"])))
    return found


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("content", ["text", [{"type": "text", "text": "text"}], None])
def test_the_content_of_a_result_is_a_text_or_blocks_or_nothing(
    dialect: Dialect, content: Any
) -> None:
    requests = {
        AnthropicMessages: {
            "messages": [{"role": "user", "content": [{"type": "tool_result", "content": content}]}]
        },
        OpenAiChat: {"messages": [{"role": "tool", "content": content}]},
        OpenAiResponses: {"input": [{"type": "function_call_output", "output": content}]},
        Gemini: {"contents": [{"parts": [{"functionResponse": {"response": content}}]}]},
    }
    (result,) = dialect.read(dialect.path, requests[type(dialect)]).results
    assert ("text" in result) == bool(content)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: type(each).__name__)
def test_a_request_without_tools_or_messages_is_read(dialect: Dialect) -> None:
    assert dialect.read(dialect.path, {}) == ({}, [], False)


def test_tools_of_a_namespace_are_called_in_it() -> None:
    dialect = OpenAiResponses()
    inner = {"type": "function", "name": "order"}
    body = {
        "tools": [{"type": "namespace", "name": "mcp__shop", "tools": [inner]}, {"type": "web"}]
    }
    assert dialect.read("", body).tools == {"order": "mcp__shop"}
    reply = Reply(call=Call("call_1", "order", {}, "mcp__shop"))
    assert dialect.document({}, reply)["output"][0]["namespace"] == "mcp__shop"
    assert "namespace" not in dialect.document({}, CALL)["output"][0]


def test_a_stream_of_anthropic_has_every_event_in_order_and_the_call_in_its_delta() -> None:
    found = events(AnthropicMessages(), CALL)
    assert [name for name, _ in found] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert all(data["type"] == name for name, data in found)
    start, block, delta, _, end, _ = (data for _, data in found)
    assert (start["message"]["content"], start["message"]["stop_reason"]) == ([], None)
    assert (block["content_block"]["name"], block["content_block"]["input"]) == ("shop__order", {})
    assert json.loads(delta["delta"]["partial_json"]) == {"item": "lamps"}
    assert end["delta"]["stop_reason"] == "tool_use"
    said = [data for _, data in events(AnthropicMessages(), TEXT)]
    assert said[2]["delta"]["text"] == "All done."
    assert said[4]["delta"]["stop_reason"] == "end_turn"


def test_a_stream_of_chat_completions_ends_with_usage_and_done() -> None:
    whole = list(OpenAiChat().events({}, CALL))
    assert whole[-1] == "data: [DONE]\n\n"
    first, second, usage = (data for _, data in events(OpenAiChat(), CALL))
    (called,) = first["choices"][0]["delta"]["tool_calls"]
    assert json.loads(called["function"]["arguments"]) == {"item": "lamps"}
    assert (first["choices"][0]["finish_reason"], usage["choices"]) == (None, [])
    assert second["choices"][0]["finish_reason"] == "tool_calls"
    assert usage["usage"]["total_tokens"] == 2


def test_a_stream_of_responses_completes_with_the_item_it_added() -> None:
    found = events(OpenAiResponses(), CALL)
    assert [data["sequence_number"] for _, data in found] == [0, 1, 2, 3]
    names = [name.removeprefix("response.") for name, _ in found]
    assert names == ["created", "output_item.added", "output_item.done", "completed"]
    assert found[0][1]["response"]["output"] == []
    assert found[3][1]["response"]["output"] == [found[2][1]["item"]]


def test_the_path_says_if_gemini_streams() -> None:
    dialect = Gemini()
    assert dialect.read("/v1beta/models/m:streamGenerateContent?alt=sse", {}).is_streamed
    assert not dialect.read("/v1beta/models/m:generateContent", {}).is_streamed
    assert [data for _, data in events(dialect, CALL)] == [dialect.document({}, CALL)]
