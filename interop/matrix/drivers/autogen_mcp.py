"""AutoGen: the `McpWorkbench` of autogen-ext."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams, StreamableHttpServerParams

from .protocol import Target, drive, member, parameters


class _Verbs:
    """What the matrix asks for, with a workbench."""

    def __init__(self, workbench: McpWorkbench) -> None:
        self._workbench = workbench

    async def tools(self) -> dict[str, list[str]]:
        found = await self._workbench.list_tools()
        return {each["name"]: parameters(each.get("parameters")) for each in found}

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        found = await self._workbench.call_tool(name, arguments)
        kinds = ["image" if each.type.startswith("Image") else "text" for each in found.result]
        text = "".join(str(each.content) for each in found.result if each.type.startswith("Text"))
        return {"text": text, "kinds": kinds, "is_error": found.is_error}

    async def resources(self) -> list[str]:
        return [str(each.uri) for each in (await self._workbench.list_resources()).resources]

    async def templates(self) -> list[str]:
        found = await self._workbench.list_resource_templates()
        return [each.uriTemplate for each in found.resourceTemplates]

    async def read(self, uri: str) -> dict[str, Any]:
        content = (await self._workbench.read_resource(uri)).contents[0]
        return {"text": member(content, "text"), "blob": member(content, "blob")}

    async def prompts(self) -> list[str]:
        return [each.name for each in (await self._workbench.list_prompts()).prompts]

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        found = await self._workbench.get_prompt(name, arguments)
        return [str(member(each.content, "text")) for each in found.messages]


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Start a workbench."""
    command, *arguments = target.command or [""]
    server: Any = (
        StreamableHttpServerParams(url=target.url)
        if target.url
        else StdioServerParams(command=command, args=arguments)
    )
    async with McpWorkbench(server) as workbench:
        # The workbench connects with its first request.
        await workbench.list_tools()
        yield _Verbs(workbench)


if __name__ == "__main__":
    drive(opened)
