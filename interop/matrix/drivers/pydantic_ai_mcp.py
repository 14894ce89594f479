"""Pydantic AI: its `MCPToolset`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import BinaryContent

from .protocol import Target, drive, member, parameters
from .session import settled


class _Verbs:
    """What the matrix asks for, with a toolset."""

    def __init__(self, toolset: Any, heard: list[Any]) -> None:
        self._toolset = toolset
        self._heard = heard

    async def tools(self) -> dict[str, list[str]]:
        return {
            each.name: parameters(member(each, "input_schema", "inputSchema"))
            for each in await self._toolset.list_tools()
        }

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        found = await self._toolset.direct_call_tool(name, arguments)
        parts = found if isinstance(found, list) else [found]
        kinds = ["image" if isinstance(each, BinaryContent) else "text" for each in parts]
        text = "".join(str(each) for each in parts if not isinstance(each, BinaryContent))
        return {"text": text, "kinds": kinds, "structured": _structured(found), "is_error": False}

    async def resources(self) -> list[str]:
        return [str(each.uri) for each in await self._toolset.list_resources()]

    async def templates(self) -> list[str]:
        return [each.uri_template for each in await self._toolset.list_resource_templates()]

    async def read(self, uri: str) -> dict[str, Any]:
        return {"text": await self._toolset.read_resource(uri), "blob": None}

    async def prompts(self) -> list[str]:
        return [each.name for each in await self._toolset.list_prompts()]

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        found = await self._toolset.get_prompt(name, arguments)
        return [str(member(each.content, "content")) for each in found.messages]

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[Any]:
        await self.call(name, arguments)
        await settled(self._heard, 3)
        return self._heard

    async def ask(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self.call(name, arguments)


def _structured(found: Any) -> Any:
    return found if isinstance(found, dict) else None


async def _elicit(message: str, kind: Any, params: Any, context: Any) -> dict[str, str]:
    return {"city": "Oslo"}


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Enter a toolset."""
    heard: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append([progress, total])

    command, *arguments = target.command or [""]
    toolset: Any = MCPToolset(
        target.url or StdioTransport(command, arguments, keep_alive=False),
        elicitation_handler=_elicit,
        progress_handler=on_progress,
    )
    async with toolset:
        yield _Verbs(toolset, heard)


if __name__ == "__main__":
    drive(opened)
