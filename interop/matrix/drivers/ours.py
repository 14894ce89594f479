"""Trunkline's client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from trunkline import Client, Stdio
from trunkline.spec.revisions import V2025_11_25, V2026_07_28

from .protocol import Target, drive, parameters, result_of
from .session import settled


class _Verbs:
    """What the matrix asks for, with a `Client`."""

    def __init__(self, client: Client, logs: list[Any]) -> None:
        self._client = client
        self._logs = logs

    async def tools(self) -> dict[str, list[str]]:
        found = await self._client.list_tools()
        return {each.name: parameters(each.input_schema) for each in found}

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return result_of(await self._client.call_tool(name, arguments))

    async def resources(self) -> list[str]:
        return [each.uri for each in await self._client.list_resources()]

    async def templates(self) -> list[str]:
        return [each.uri_template for each in await self._client.list_resource_templates()]

    async def read(self, uri: str) -> dict[str, Any]:
        content = (await self._client.read_resource(uri)).contents[0]
        return {"text": content.text, "blob": content.blob}

    async def prompts(self) -> list[str]:
        return [each.name for each in await self._client.list_prompts()]

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        found: Any = await self._client.get_prompt(name, arguments)
        return [each.content.text for each in found.messages]

    async def complete(self, prompt: str, argument: str, value: str) -> list[str]:
        found = await self._client.complete(prompt=prompt, argument=argument, value=value)
        return list(found.values)

    async def ping(self) -> None:
        await self._client.ping()

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[list[float | None]]:
        heard: list[list[float | None]] = []
        await self._client.call_tool(
            name, arguments, on_progress=lambda step, total, _: heard.append([step, total])
        )
        await settled(heard, 3)
        return heard

    async def log(self, level: Any, name: str, lines: int) -> list[str]:
        await self._client.set_logging_level(level)
        await self._client.call_tool(name)
        await settled(self._logs, lines)
        return [each.level for each in self._logs]

    async def ask(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self.call(name, arguments)


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Open a connection in the newest revision of the era."""
    logs: list[Any] = []
    client = Client(
        target.url or Stdio(target.command),
        revision=V2026_07_28 if target.is_modern else V2025_11_25,
        on_log=logs.append,
        on_elicit=lambda params: {"city": "Oslo"},
    )
    async with client:
        yield _Verbs(client, logs)


if __name__ == "__main__":
    drive(opened)
