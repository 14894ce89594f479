"""mcp-haystack: its `MCPToolset`, whose tools block."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from haystack_integrations.tools.mcp import (
    MCPToolset,
    StdioServerInfo,
    StreamableHttpServerInfo,
)

from .protocol import Lacks, Target, drive, parameters, result_of


class _Verbs:
    """What the matrix asks for, with the tools of a toolset."""

    def __init__(self, toolset: MCPToolset) -> None:
        self._tools = {each.name: each for each in toolset}

    def tools(self) -> dict[str, list[str]]:
        return {name: parameters(tool.parameters) for name, tool in self._tools.items()}

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name not in self._tools:
            raise Lacks("it calls listed tools only")
        return result_of(json.loads(self._tools[name].invoke(**arguments)))


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Connect, and make the tools."""
    command, *arguments = target.command or [""]
    server: Any = (
        StreamableHttpServerInfo(url=target.url)
        if target.url
        else StdioServerInfo(command=command, args=arguments)
    )
    toolset = await asyncio.to_thread(MCPToolset, server, eager_connect=True)
    yield _Verbs(toolset)
    await asyncio.to_thread(toolset.close)


if __name__ == "__main__":
    drive(opened)
