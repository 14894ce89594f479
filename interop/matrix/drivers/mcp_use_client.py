"""mcp-use: its `MCPClient` and a session of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.types import ElicitResult
from mcp_use import MCPClient

from .protocol import Target, drive, member, parameters, result_of


class _Verbs:
    """What the matrix asks for, with a session."""

    def __init__(self, session: Any) -> None:
        self._session = session

    async def tools(self) -> dict[str, list[str]]:
        return {
            each.name: parameters(each.inputSchema) for each in await self._session.list_tools()
        }

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return result_of(await self._session.call_tool(name, arguments))

    async def resources(self) -> list[str]:
        return [str(each.uri) for each in await self._session.list_resources()]

    async def read(self, uri: str) -> dict[str, Any]:
        content = (await self._session.read_resource(uri)).contents[0]
        return {"text": member(content, "text"), "blob": member(content, "blob")}

    async def prompts(self) -> list[str]:
        return [each.name for each in await self._session.list_prompts()]

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        found = await self._session.get_prompt(name, arguments)
        return [each.content.text for each in found.messages]

    async def ask(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self.call(name, arguments)


async def _elicit(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"city": "Oslo"})


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Open a session."""
    command, *arguments = target.command or [""]
    server = {"url": target.url} if target.url else {"command": command, "args": arguments}
    client = MCPClient({"mcpServers": {"server": server}}, elicitation_callback=_elicit)
    session = await client.create_session("server")
    yield _Verbs(session)
    await client.close_all_sessions()


if __name__ == "__main__":
    drive(opened)
