"""FastMCP's client: version 3, of `mcp` 1, and version 4, of `mcp` 2."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from .protocol import Target, drive, member, parameters, result_of
from .session import settled


class _Verbs:
    """What the matrix asks for, with a `Client`."""

    def __init__(self, client: Any, logs: list[str]) -> None:
        self._client = client
        self._logs = logs

    async def tools(self) -> dict[str, list[str]]:
        return {
            each.name: parameters(member(each, "input_schema", "inputSchema"))
            for each in await self._client.list_tools()
        }

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return result_of(await self._client.call_tool(name, arguments, raise_on_error=False))

    async def resources(self) -> list[str]:
        return [str(each.uri) for each in await self._client.list_resources()]

    async def templates(self) -> list[str]:
        found = await self._client.list_resource_templates()
        return [str(member(each, "uri_template", "uriTemplate")) for each in found]

    async def read(self, uri: str) -> dict[str, Any]:
        content = (await self._client.read_resource(uri))[0]
        return {"text": member(content, "text"), "blob": member(content, "blob")}

    async def prompts(self) -> list[str]:
        return [each.name for each in await self._client.list_prompts()]

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        found = await self._client.get_prompt(name, arguments)
        return [each.content.text for each in found.messages]

    async def complete(self, prompt: str, argument: str, value: str) -> list[str]:
        reference = _types().PromptReference(type="ref/prompt", name=prompt)
        found = await self._client.complete(reference, {"name": argument, "value": value})
        return list(found.values)

    async def ping(self) -> None:
        await self._client.ping()

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[list[float | None]]:
        heard: list[list[float | None]] = []

        async def step(progress: float, total: float | None, message: str | None) -> None:
            heard.append([progress, total])

        await self._client.call_tool(name, arguments, progress_handler=step)
        await settled(heard, 3)
        return heard

    async def log(self, level: str, name: str, lines: int) -> list[str]:
        await self._client.set_logging_level(level)
        await self._client.call_tool(name)
        await settled(self._logs, lines)
        return self._logs

    async def ask(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self.call(name, arguments)


def _types() -> Any:
    try:
        import mcp_types as types
    except ImportError:
        from mcp import types
    return types


async def _elicit(message: str, kind: Any, params: Any, context: Any) -> dict[str, str]:
    return {"city": "Oslo"}


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Open a connection, in the era if the version has both."""
    logs: list[str] = []

    async def on_log(message: Any) -> None:
        logs.append(message.level)

    command, *arguments = target.command or [""]
    server: Any = target.url or StdioTransport(command, arguments, keep_alive=False)
    options: dict[str, Any] = {"log_handler": on_log, "elicitation_handler": _elicit}
    if "mode" in inspect.signature(Client.__init__).parameters:
        options["mode"] = "auto" if target.is_modern else "legacy"
    async with Client(server, **options) as client:
        yield _Verbs(client, logs)


if __name__ == "__main__":
    drive(opened)
