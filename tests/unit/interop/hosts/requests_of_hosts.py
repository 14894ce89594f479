"""A host in each dialect: how it offers tools, and how it hands back a call and its result."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
PROMPT = "Use the tools."


def anthropic(tools: list[str], turns: list[tuple[Json, str]]) -> Json:
    messages: list[Json] = [{"role": "user", "content": PROMPT}]
    for reply, result in turns:
        (block,) = reply["content"]
        handed = {"type": "tool_result", "tool_use_id": block["id"]}
        handed["content"] = [{"type": "text", "text": result}]
        messages += [
            {"role": "assistant", "content": [block]},
            {"role": "user", "content": [handed]},
        ]
    return {"model": "m", "tools": [{"name": name} for name in tools], "messages": messages}


def chat(tools: list[str], turns: list[tuple[Json, str]]) -> Json:
    messages: list[Json] = [{"role": "user", "content": PROMPT}]
    for reply, result in turns:
        message = reply["choices"][0]["message"]
        called = message["tool_calls"][0]["id"]
        messages += [message, {"role": "tool", "tool_call_id": called, "content": result}]
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    return {"model": "m", "tools": offered, "messages": messages}


def responses(tools: list[str], turns: list[tuple[Json, str]]) -> Json:
    items: list[Json] = [{"type": "message", "role": "user", "content": PROMPT}]
    for reply, result in turns:
        (item,) = reply["output"]
        output = {"type": "function_call_output", "call_id": item["call_id"], "output": result}
        items += [item, output]
    offered = [{"type": "function", "name": name} for name in tools]
    return {"model": "m", "tools": offered, "input": items}


def gemini(tools: list[str], turns: list[tuple[Json, str]]) -> Json:
    contents: list[Json] = [{"role": "user", "parts": [{"text": PROMPT}]}]
    for reply, result in turns:
        content = reply["candidates"][0]["content"]
        name = content["parts"][0]["functionCall"]["name"]
        response = {"name": name, "response": {"output": result}}
        contents += [content, {"role": "user", "parts": [{"functionResponse": response}]}]
    declared = [{"name": name} for name in tools]
    return {"tools": [{"functionDeclarations": declared}], "contents": contents}


REQUESTS = {
    "/v1/messages": anthropic,
    "/v1/chat/completions": chat,
    "/v1/responses": responses,
    "/v1beta/models/m:generateContent": gemini,
}


def call_of(path: str, reply: Json) -> tuple[str, Json] | None:
    """Return the name and the arguments of the tool that a reply calls."""
    if path == "/v1/messages":
        (block,) = reply["content"]
        return (block["name"], block["input"]) if block["type"] == "tool_use" else None
    if path == "/v1/chat/completions":
        calls = reply["choices"][0]["message"].get("tool_calls")
        return (
            (calls[0]["function"]["name"], json.loads(calls[0]["function"]["arguments"]))
            if calls
            else None
        )
    if path == "/v1/responses":
        (item,) = reply["output"]
        return (
            (item["name"], json.loads(item["arguments"]))
            if item["type"] == "function_call"
            else None
        )
    (part,) = reply["candidates"][0]["content"]["parts"]
    call = part.get("functionCall")
    return (call["name"], call["args"]) if call else None
