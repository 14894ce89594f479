"""Agno: its `MCPTools`, and the functions that it makes of tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agno.tools.mcp import MCPTools
from mcp import StdioServerParameters

from .protocol import Lacks, Target, drive, parameters


class _Verbs:
    """What the matrix asks for, with functions."""

    def __init__(self, tools: MCPTools) -> None:
        self._functions: dict[str, Any] = dict(tools.functions)

    async def tools(self) -> dict[str, list[str]]:
        return {name: parameters(each.parameters) for name, each in self._functions.items()}

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name not in self._functions:
            raise Lacks("it calls listed tools only")
        found = await self._functions[name].entrypoint(**arguments)
        kinds = ["image"] if found.images else ["text"]
        # An error is a text that begins so.
        is_error = found.content.startswith("Error")
        text = found.content.removesuffix("\n")
        shown: dict[str, Any] = {"text": text, "kinds": kinds, "is_error": is_error}
        structured = (found.metadata or {}).get("structured_content")
        return shown if structured is None else {**shown, "structured": structured}


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Connect, and make the functions."""
    command, *arguments = target.command or [""]
    options: dict[str, Any] = (
        {"url": target.url, "transport": "streamable-http"}
        if target.url
        else {"server_params": StdioServerParameters(command=command, args=arguments)}
    )
    tools = MCPTools(**options, protocol_mode="auto" if target.is_modern else "legacy")
    await tools.connect()
    yield _Verbs(tools)
    await tools.close()


if __name__ == "__main__":
    drive(opened)
