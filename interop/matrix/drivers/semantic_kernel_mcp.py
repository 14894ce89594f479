"""Semantic Kernel: its MCP plugins, and the functions that a kernel makes of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from semantic_kernel import Kernel
from semantic_kernel.connectors.mcp import MCPStdioPlugin, MCPStreamableHttpPlugin

from .protocol import Target, drive


class _Verbs:
    """What the matrix asks for, with a plugin in a kernel."""

    def __init__(self, plugin: Any, functions: dict[str, Any]) -> None:
        self._plugin = plugin
        self._functions = functions

    async def tools(self) -> dict[str, list[str]]:
        return {
            name: sorted(each.name for each in function.parameters)
            for name, function in self._functions.items()
        }

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        found = await self._plugin.call_tool(name, **arguments)
        kinds = [each.content_type for each in found]
        return {
            "text": "".join(each.text for each in found if hasattr(each, "text")),
            "kinds": kinds,
        }

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        return [each.content for each in await self._plugin.get_prompt(name, **arguments)]


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Connect, and add the plugin to a kernel."""
    command, *arguments = target.command or [""]
    plugin: Any = (
        MCPStreamableHttpPlugin("server", target.url)
        if target.url
        else MCPStdioPlugin("server", command, args=arguments)
    )
    async with plugin:
        yield _Verbs(plugin, Kernel().add_plugin(plugin).functions)


if __name__ == "__main__":
    drive(opened)
