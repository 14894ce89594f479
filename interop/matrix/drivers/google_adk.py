"""Google's Agent Development Kit: its `McpToolset`."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from google.adk.tools.mcp_tool.mcp_session_manager import (
    StdioConnectionParams,
    StreamableHTTPConnectionParams,
)
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from mcp import StdioServerParameters

from .protocol import Lacks, Target, drive, member, parameters, result_of
from .session import settled

logging.disable(logging.WARNING)


class _Context:
    """What a tool reads of the context of an agent's run."""

    actions = None
    _invocation_context = None


class _Verbs:
    """What the matrix asks for, with a toolset and its tools."""

    def __init__(self, toolset: McpToolset, heard: list[Any]) -> None:
        self._toolset = toolset
        self._heard = heard
        self._tools: dict[str, Any] = {}

    async def tools(self) -> dict[str, list[str]]:
        self._tools = {each.name: each for each in await self._toolset.get_tools()}
        return {
            name: parameters(tool.raw_mcp_tool.inputSchema) for name, tool in self._tools.items()
        }

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name not in self._tools:
            raise Lacks("it calls listed tools only")
        found = await self._tools[name].run_async(args=arguments, tool_context=_Context())
        if "error" in found:
            return {"text": str(found["error"]), "is_error": True}
        return result_of(found)

    async def resources(self) -> list[str]:
        infos = [
            await self._toolset.get_resource_info(name)
            for name in await self._toolset.list_resources()
        ]
        return [str(each["uri"]) for each in infos]

    async def read(self, uri: str) -> dict[str, Any]:
        for name in await self._toolset.list_resources():
            if str((await self._toolset.get_resource_info(name))["uri"]) == uri:
                (content, *_) = await self._toolset.read_resource(name)
                return {"text": member(content, "text"), "blob": member(content, "blob")}
        raise Lacks("it reads listed resources only")

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[Any]:
        await self.call(name, arguments)
        await settled(self._heard, 3)
        return self._heard


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Have a toolset, connected."""
    heard: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append([progress, total])

    command, *arguments = target.command or [""]
    connection = (
        StreamableHTTPConnectionParams(url=target.url)
        if target.url
        else StdioConnectionParams(
            server_params=StdioServerParameters(command=command, args=arguments), timeout=30
        )
    )
    toolset = McpToolset(connection_params=connection, progress_callback=on_progress)
    verbs = _Verbs(toolset, heard)
    await verbs.tools()
    yield verbs
    await toolset.close()


if __name__ == "__main__":
    drive(opened)
