"""Microsoft Agent Framework: its MCP tools, and the functions that it makes of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agent_framework import MCPStdioTool, MCPStreamableHTTPTool

from .protocol import Target, drive, parameters


class _Verbs:
    """What the matrix asks for, with a tool that stands for a server."""

    def __init__(self, tool: Any) -> None:
        self._tool = tool

    async def tools(self) -> dict[str, list[str]]:
        return {each.name: parameters(each.parameters()) for each in self._tool.functions}

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        found = await self._tool.call_tool(name, **arguments)
        if isinstance(found, str):
            return {**_text(found), "kinds": ["text"], "is_error": False}
        kinds = [str(each.media_type or "text").partition("/")[0] for each in found]
        text = "".join(each.text or "" for each in found)
        return {**_text(text), "kinds": kinds, "is_error": False}

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        return [await self._tool.get_prompt(name, **arguments)]


def _text(text: str) -> dict[str, Any]:
    """Return a text, and structured content, which the framework gives as JSON in its place."""
    found = json.loads(text) if text.startswith("{") else None
    # Servers wrap what is not an object, because structured content was an object once.
    is_wrapped = found is not None and list(found) == ["result"]
    return {"text": str(found["result"]) if is_wrapped else text, "structured": found}


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Connect."""
    command, *arguments = target.command or [""]
    tool: Any = (
        MCPStreamableHTTPTool("server", target.url)
        if target.url
        else MCPStdioTool("server", command, args=arguments)
    )
    async with tool:
        yield _Verbs(tool)


if __name__ == "__main__":
    drive(opened)
