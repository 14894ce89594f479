"""The APIs of models that hosts speak: how a request is read, and a reply written.

A request has the tools that a host offers, and the results of those that were called. A reply is a
call of a tool, or a text: one JSON document, or the events of a stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple, Protocol

__all__ = ["DIALECTS", "Asked", "Call", "Dialect", "Reply"]

Json = dict[str, Any]
# What every reply has cost.
TOKENS: Final = 1


class Call(NamedTuple):
    """A tool that the model calls. Some hosts put the tools of a server into a namespace."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    namespace: str = ""


class Reply(NamedTuple):
    """What the model says: a text, or a call."""

    text: str = ""
    call: Call | None = None


class Asked(NamedTuple):
    """What a host has sent."""

    # Names of the tools it offers, and the namespace of each.
    tools: dict[str, str]
    # What the tools that were called have returned, in order.
    results: list[str]
    is_streamed: bool


class Dialect(Protocol):
    """One API."""

    # A part of the path of its requests.
    path: ClassVar[str]

    def read(self, path: str, body: Json) -> Asked:
        """Read a request."""

    def document(self, body: Json, reply: Reply) -> Json:
        """Return the reply in one piece."""

    def events(self, body: Json, reply: Reply) -> Iterator[str]:
        """Yield the reply as server-sent events."""


class AnthropicMessages:
    """`POST /v1/messages` of Anthropic."""

    path: ClassVar = "/messages"

    def read(self, path: str, body: Json) -> Asked:
        """Read a request."""
        blocks = [
            block
            for message in body.get("messages", ())
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        results = [
            _text_of(block.get("content")) for block in blocks if block["type"] == "tool_result"
        ]
        tools = {tool["name"]: "" for tool in body.get("tools", ()) if "name" in tool}
        return Asked(tools, results, bool(body.get("stream")))

    def document(self, body: Json, reply: Reply) -> Json:
        """Return the reply in one piece."""
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", ""),
            "content": [self._block(reply)],
            "stop_reason": "tool_use" if reply.call else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": TOKENS, "output_tokens": TOKENS},
        }

    def events(self, body: Json, reply: Reply) -> Iterator[str]:
        """Yield the reply as server-sent events."""
        whole = self.document(body, reply)
        block = self._block(reply)
        if reply.call:
            begun = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            begun = {**block, "text": ""}
            delta = {"type": "text_delta", "text": reply.text}
        end = {key: whole.pop(key) for key in ("stop_reason", "stop_sequence")}
        start = {**whole, **dict.fromkeys(end), "content": []}
        parts: list[tuple[str, Json]] = [
            ("message_start", {"message": start}),
            ("content_block_start", {"index": 0, "content_block": begun}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": end, "usage": {"output_tokens": TOKENS}}),
            ("message_stop", {}),
        ]
        return (_event({"type": name, **members}, name) for name, members in parts)

    def _block(self, reply: Reply) -> Json:
        if reply.call is None:
            return {"type": "text", "text": reply.text}
        call = reply.call
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


class OpenAiChat:
    """`POST /v1/chat/completions` of OpenAI and of those who copy it."""

    path: ClassVar = "/chat/completions"

    def read(self, path: str, body: Json) -> Asked:
        """Read a request."""
        messages = body.get("messages", ())
        results = [_text_of(each.get("content")) for each in messages if each["role"] == "tool"]
        tools = {
            tool["function"]["name"]: "" for tool in body.get("tools") or () if "function" in tool
        }
        return Asked(tools, results, bool(body.get("stream")))

    def document(self, body: Json, reply: Reply) -> Json:
        """Return the reply in one piece."""
        choice = {"index": 0, "message": self._message(reply), "finish_reason": self._end(reply)}
        return {**self._head(body), "object": "chat.completion", "choices": [choice]}

    def events(self, body: Json, reply: Reply) -> Iterator[str]:
        """Yield the reply as server-sent events."""
        head = {**self._head(body), "object": "chat.completion.chunk"}
        usage = head.pop("usage")
        for delta, end in ((self._message(reply), None), ({}, self._end(reply))):
            yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})
        yield _event({**head, "choices": [], "usage": usage})
        yield "data: [DONE]\n\n"

    def _head(self, body: Json) -> Json:
        usage = {"prompt_tokens": TOKENS, "completion_tokens": TOKENS, "total_tokens": 2 * TOKENS}
        return {"id": "chat_1", "created": 1, "model": body.get("model", ""), "usage": usage}

    def _end(self, reply: Reply) -> str:
        return "tool_calls" if reply.call else "stop"

    def _message(self, reply: Reply) -> Json:
        if reply.call is None:
            return {"role": "assistant", "content": reply.text}
        call = reply.call
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        called = {"index": 0, "id": call.id, "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [called]}


class OpenAiResponses:
    """`POST /v1/responses` of OpenAI."""

    path: ClassVar = "/responses"

    def read(self, path: str, body: Json) -> Asked:
        """Read a request."""
        items = body.get("input")
        results = [
            _text_of(item.get("output"))
            for item in (items if isinstance(items, list) else ())
            if item.get("type") == "function_call_output"
        ]
        tools: dict[str, str] = {}
        for tool in body.get("tools") or ():
            if tool["type"] == "function":
                tools[tool["name"]] = ""
            elif tool["type"] == "namespace":
                tools.update({inner["name"]: tool["name"] for inner in tool["tools"]})
        return Asked(tools, results, bool(body.get("stream")))

    def document(self, body: Json, reply: Reply) -> Json:
        """Return the reply in one piece."""
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": body.get("model", ""),
            "output": [self._item(reply)],
            "usage": {
                "input_tokens": TOKENS,
                "output_tokens": TOKENS,
                "total_tokens": 2 * TOKENS,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }

    def events(self, body: Json, reply: Reply) -> Iterator[str]:
        """Yield the reply as server-sent events."""
        whole = self.document(body, reply)
        item = self._item(reply)
        begun = {**whole, "status": "in_progress", "output": []}
        parts: list[tuple[str, Json]] = [
            ("response.created", {"response": begun}),
            ("response.output_item.added", {"output_index": 0, "item": item}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": whole}),
        ]
        return (
            _event({"type": name, "sequence_number": number, **members}, name)
            for number, (name, members) in enumerate(parts)
        )

    def _item(self, reply: Reply) -> Json:
        call = reply.call
        if call is None:
            content = {"type": "output_text", "text": reply.text, "annotations": []}
            head = {"type": "message", "id": "message_1", "role": "assistant"}
            return {**head, "status": "completed", "content": [content]}
        item = {
            "type": "function_call",
            "id": f"item_{call.id}",
            "call_id": call.id,
            "name": call.name,
            "arguments": json.dumps(call.arguments),
            "status": "completed",
        }
        return {**item, "namespace": call.namespace} if call.namespace else item


class Gemini:
    """`POST /v1beta/models/NAME:generateContent` of Google."""

    path: ClassVar = "enerateContent"

    def read(self, path: str, body: Json) -> Asked:
        """Read a request."""
        results = [
            json.dumps(part["functionResponse"].get("response"))
            for content in body.get("contents", ())
            for part in content.get("parts", ())
            if "functionResponse" in part
        ]
        tools = {
            function["name"]: ""
            for tool in body.get("tools") or ()
            for function in tool.get("functionDeclarations") or ()
        }
        return Asked(tools, results, "streamGenerateContent" in path)

    def document(self, body: Json, reply: Reply) -> Json:
        """Return the reply in one piece."""
        call = reply.call
        part: Json = {"text": reply.text}
        if call is not None:
            part = {"functionCall": {"name": call.name, "args": call.arguments}}
        content = {"role": "model", "parts": [part]}
        return {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {
                "promptTokenCount": TOKENS,
                "candidatesTokenCount": TOKENS,
                "totalTokenCount": 2 * TOKENS,
            },
        }

    def events(self, body: Json, reply: Reply) -> Iterator[str]:
        """Yield the reply as server-sent events."""
        yield _event(self.document(body, reply))


DIALECTS: Final[tuple[Dialect, ...]] = (
    AnthropicMessages(),
    OpenAiChat(),
    OpenAiResponses(),
    Gemini(),
)


def _text_of(content: Any) -> str:
    """Return the text of a result: a string, or blocks of which some have a text."""
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content or ())


def _event(data: Json, name: str = "") -> str:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n"
