"""The OpenAI Agents SDK: its `MCPServerStdio` and `MCPServerStreamableHttp`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

from .protocol import Target, drive, member, parameters, result_of


class _Verbs:
    """What the matrix asks for, with a connected server."""

    def __init__(self, server: Any) -> None:
        self._server = server

    async def tools(self) -> dict[str, list[str]]:
        return {
            each.name: parameters(member(each, "input_schema", "inputSchema"))
            for each in await self._server.list_tools()
        }

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return result_of(await self._server.call_tool(name, arguments))

    async def _all(self, listed: str, *members: str) -> list[Any]:
        found: list[Any] = []
        cursor: str | None = None
        while True:
            page = await getattr(self._server, listed)(cursor)
            found += member(page, *members) or []
            cursor = member(page, "next_cursor", "nextCursor")
            if cursor is None:
                return found

    async def resources(self) -> list[str]:
        return [str(each.uri) for each in await self._all("list_resources", "resources")]

    async def templates(self) -> list[str]:
        members = ("resource_templates", "resourceTemplates")
        found = await self._all("list_resource_templates", *members)
        return [str(member(each, "uri_template", "uriTemplate")) for each in found]

    async def read(self, uri: str) -> dict[str, Any]:
        content = (await self._server.read_resource(uri)).contents[0]
        return {"text": member(content, "text"), "blob": member(content, "blob")}

    async def prompts(self) -> list[str]:
        return [each.name for each in (await self._server.list_prompts()).prompts]

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        found = await self._server.get_prompt(name, arguments)
        return [each.content.text for each in found.messages]


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Connect."""
    command, *arguments = target.command or [""]
    server: Any = (
        MCPServerStreamableHttp({"url": target.url}, client_session_timeout_seconds=20)
        if target.url
        else MCPServerStdio(
            {"command": command, "args": arguments}, client_session_timeout_seconds=20
        )
    )
    async with server:
        yield _Verbs(server)


if __name__ == "__main__":
    drive(opened)
