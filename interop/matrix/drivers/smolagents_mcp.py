"""smolagents, with mcpadapt: its `MCPClient`, whose tools block."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import StdioServerParameters
from smolagents import MCPClient

from .protocol import Lacks, Target, drive


class _Verbs:
    """What the matrix asks for, with the tools that the client makes."""

    def __init__(self, client: MCPClient) -> None:
        self._client = client
        self._tools = {each.name: each for each in client.get_tools()}

    def tools(self) -> dict[str, list[str]]:
        # A dash of a name becomes an underscore: both are shown.
        found = {name: sorted(tool.inputs) for name, tool in self._tools.items()}
        return {**found, **{name.replace("_", "-"): given for name, given in found.items()}}

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        tool = self._tools.get(name.replace("-", "_"))
        if tool is None:
            raise Lacks("it calls listed tools only")
        found = tool(**arguments)
        if hasattr(found, "size"):
            return {"text": "", "kinds": ["image"]}
        if isinstance(found, dict):
            # What servers wrap, because structured content was an object once.
            text = str(found["result"]) if list(found) == ["result"] else json.dumps(found)
            return {"text": text, "kinds": ["text"], "structured": found}
        return {"text": str(found), "kinds": ["text"]}


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Connect, with structured output."""
    command, *arguments = target.command or [""]
    server: Any = (
        {"url": target.url, "transport": "streamable-http"}
        if target.url
        else StdioServerParameters(command=command, args=arguments)
    )
    client = await asyncio.to_thread(MCPClient, server, structured_output=True)
    yield _Verbs(client)
    await asyncio.to_thread(client.disconnect)


if __name__ == "__main__":
    drive(opened)
