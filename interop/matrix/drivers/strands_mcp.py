"""Strands Agents: its `MCPClient`, which blocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from strands.tools.mcp import MCPClient

from .protocol import Target, drive, member, parameters


class _Verbs:
    """What the matrix asks for, with a client."""

    def __init__(self, client: Any, heard: list[Any]) -> None:
        self._client = client
        self._heard = heard

    def _all(self, listed: str, *members: str) -> list[Any]:
        found: list[Any] = []
        cursor: str | None = None
        while True:
            page = getattr(self._client, listed)(cursor)
            found += page if isinstance(page, list) else member(page, *members) or []
            cursor = member(page, "pagination_token", "next_cursor", "nextCursor")
            if cursor is None:
                return found

    def tools(self) -> dict[str, list[str]]:
        return {
            each.tool_name: parameters(each.tool_spec["inputSchema"]["json"])
            for each in self._all("list_tools_sync")
        }

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        found = await self._client.call_tool_async("1", name, arguments)
        return {
            "text": "".join(each.get("text", "") for each in found["content"]),
            "kinds": [kind for each in found["content"] for kind in each],
            "structured": found.get("structuredContent"),
            "is_error": found["status"] == "error",
        }

    def resources(self) -> list[str]:
        return [str(each.uri) for each in self._all("list_resources_sync", "resources")]

    def templates(self) -> list[str]:
        members = ("resource_templates", "resourceTemplates")
        found = self._all("list_resource_templates_sync", *members)
        return [str(member(each, "uri_template", "uriTemplate")) for each in found]

    def read(self, uri: str) -> dict[str, Any]:
        content = self._client.read_resource_sync(uri).contents[0]
        return {"text": member(content, "text"), "blob": member(content, "blob")}

    def prompts(self) -> list[str]:
        return [each.name for each in self._all("list_prompts_sync", "prompts")]

    def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        found = self._client.get_prompt_sync(name, arguments)
        return [each.content.text for each in found.messages]

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[Any]:
        await self.call(name, arguments)
        return self._heard

    async def ask(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self.call(name, arguments)


async def _elicit(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"city": "Oslo"})


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Start a client, in its own thread."""
    heard: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append([progress, total])

    command, *arguments = target.command or [""]
    options: dict[str, Any] = (
        {"url": target.url}
        if target.url
        else {
            "transport_callable": lambda: stdio_client(
                StdioServerParameters(command=command, args=arguments)
            )
        }
    )
    client = MCPClient(**options, elicitation_callback=_elicit, progress_callback=on_progress)
    await asyncio.to_thread(client.start)
    yield _Verbs(client, heard)
    await asyncio.to_thread(client.stop, None, None, None)


if __name__ == "__main__":
    drive(opened)
