"""LlamaIndex: its `BasicMCPClient`, which connects for each request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from llama_index.tools.mcp import BasicMCPClient

from .protocol import Target, drive, member, parameters, result_of
from .session import settled


class _Verbs:
    """What the matrix asks for, with a client."""

    def __init__(self, client: BasicMCPClient) -> None:
        self._client = client

    async def tools(self) -> dict[str, list[str]]:
        found = (await self._client.list_tools()).tools
        return {
            each.name: parameters(member(each, "input_schema", "inputSchema")) for each in found
        }

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return result_of(await self._client.call_tool(name, arguments))

    async def resources(self) -> list[str]:
        found = member(await self._client.list_resources(), "resources")
        return [str(each.uri) for each in found]

    async def templates(self) -> list[str]:
        listed = await self._client.list_resource_templates()
        found = member(listed, "resource_templates", "resourceTemplates")
        return [str(member(each, "uri_template", "uriTemplate")) for each in found]

    async def read(self, uri: str) -> dict[str, Any]:
        found: Any = await self._client.read_resource(uri)
        content = found.contents[0]
        return {"text": member(content, "text"), "blob": member(content, "blob")}

    async def prompts(self) -> list[str]:
        found: Any = await self._client.list_prompts()
        return [each.name for each in member(found, "prompts")]

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        return [str(each.content) for each in await self._client.get_prompt(name, arguments)]

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[Any]:
        heard: list[Any] = []

        async def step(progress: float, total: float | None, message: str | None) -> None:
            heard.append([progress, total])

        await self._client.call_tool(name, arguments, progress_callback=step)
        await settled(heard, 3)
        return heard


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Have a client."""
    command, *arguments = target.command or [""]
    client = BasicMCPClient(target.url) if target.url else BasicMCPClient(command, args=arguments)
    yield _Verbs(client)


if __name__ == "__main__":
    drive(opened)
