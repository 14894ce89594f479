"""langchain-mcp-adapters: the tools, resources and prompts that it makes for LangChain."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.prompts import load_mcp_prompt
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp.types import ElicitResult

from .protocol import Lacks, Target, drive, parameters
from .session import settled


class _Verbs:
    """What the matrix asks for, with what the adapters make."""

    def __init__(self, session: Any, callbacks: Callbacks, heard: list[Any]) -> None:
        self._session = session
        self._callbacks = callbacks
        self._heard = heard
        self._tools: dict[str, Any] = {}

    async def tools(self) -> dict[str, list[str]]:
        found = await load_mcp_tools(self._session, callbacks=self._callbacks, server_name="server")
        self._tools = {each.name: each for each in found}
        return {each.name: parameters(each.args_schema) for each in found}

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name not in self._tools:
            raise Lacks("it calls listed tools only")
        asked = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
        message = await self._tools[name].ainvoke(asked)
        blocks = message.content if isinstance(message.content, list) else []
        text = "".join(each.get("text", "") for each in blocks) if blocks else message.content
        return {
            "text": text,
            "kinds": [each["type"] for each in blocks],
            "structured": (message.artifact or {}).get("structured_content"),
            "is_error": message.status == "error",
        }

    async def resources(self) -> list[str]:
        return [str(each.metadata["uri"]) for each in await load_mcp_resources(self._session)]

    async def read(self, uri: str) -> dict[str, Any]:
        (blob,) = await load_mcp_resources(self._session, uris=uri)
        return {"text": blob.as_string(), "blob": None}

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        found = await load_mcp_prompt(self._session, name, arguments=arguments)
        return [str(each.content) for each in found]

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[Any]:
        await self.call(name, arguments)
        await settled(self._heard, 3)
        return self._heard

    async def ask(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self.call(name, arguments)


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Open a session that lasts for the conversation."""
    heard: list[Any] = []

    async def on_progress(
        progress: float, total: float | None, message: str | None, context: Any
    ) -> None:
        heard.append([progress, total])

    async def on_elicitation(mcp_context: Any, params: Any, context: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"city": "Oslo"})

    callbacks = Callbacks(on_progress=on_progress, on_elicitation=on_elicitation)
    command, *arguments = target.command or [""]
    connection: Any = (
        {"transport": "streamable_http", "url": target.url}
        if target.url
        else {"transport": "stdio", "command": command, "args": arguments}
    )
    client = MultiServerMCPClient({"server": connection}, callbacks=callbacks)
    async with client.session("server") as session:
        verbs = _Verbs(session, callbacks, heard)
        await verbs.tools()
        yield verbs


if __name__ == "__main__":
    drive(opened)
