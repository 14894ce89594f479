"""What a test client reads in the messages that it sends: ids, and what headers repeat."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

# By tool: where an argument is that a header repeats, and the name of the header.
ToolHeaders: TypeAlias = dict[str, list[tuple[tuple[str, ...], str]]]

# Which member of `params` a request is named by.
_NAME_MEMBERS: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


def parse(frame: bytes) -> Any:
    """Return the value of a frame, or None if it is not JSON."""
    try:
        return json.loads(frame)
    except (ValueError, RecursionError):
        return None


def messages_of(value: Any) -> list[dict[str, Any]]:
    """Return the messages of a frame: one, or those of a batch."""
    items = value if isinstance(value, list) else [value]
    return [each for each in items if isinstance(each, dict)]


def key_of(id: Any) -> tuple[str, str]:
    """Return an id as a key: 7, "7" and 7.0 differ."""
    return type(id).__name__, str(id)


def is_request(message: dict[str, Any]) -> bool:
    return "method" in message and "id" in message


def member(holder: Any, *names: str) -> Any:
    """Return a member of a member, or None."""
    for name in names:
        if not isinstance(holder, dict):
            return None
        holder = holder.get(name)
    return holder


def header_text(value: Any) -> str | None:
    """Return a value as the text of a header, or None if it has none.

    [MCP 2026-07-28, basic/transports/streamable-http]
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        return None
    is_plain = value.isascii() and all(" " <= each <= "~" for each in value)
    looks_encoded = value.startswith("=?base64?") and value.endswith("?=")
    if is_plain and value == value.strip() and not looks_encoded:
        return value
    try:
        return f"=?base64?{b64encode(value.encode()).decode()}?="
    except UnicodeEncodeError:
        return None


def header_paths(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield where an argument is that a header repeats, and the name of the header."""
    properties = member(schema, "properties")
    for name, each in (properties if isinstance(properties, dict) else {}).items():
        header = member(each, "x-mcp-header")
        if isinstance(header, str):
            yield (*path, name), f"Mcp-Param-{header}"
        yield from header_paths(each, (*path, name))


def per_request_headers(message: Any, version: str, tools: ToolHeaders) -> dict[str, str]:
    """Return the headers that repeat parts of a message."""
    headers = {"MCP-Protocol-Version": version}
    method = member(message, "method")
    if not isinstance(method, str):
        return headers
    if header_text(method) == method:
        headers["Mcp-Method"] = method
    name = member(message, "params", _NAME_MEMBERS.get(method, ""))
    text = header_text(name) if isinstance(name, str) else None
    if text is not None:
        headers["Mcp-Name"] = text
    if method == "tools/call" and isinstance(name, str):
        for path, header in tools.get(name, ()):
            text = header_text(member(message, "params", "arguments", *path))
            if text is not None:
                headers[header] = text
    return headers
