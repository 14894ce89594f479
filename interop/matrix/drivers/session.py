"""The verbs of a client session, as `mcp` 1 and 2 have them, and what is built on them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .protocol import member, parameters, result_of

__all__ = ["SessionVerbs"]

# Log lines and progress arrive on their own, before or shortly after the result.
SETTLE_S = 5.0


class SessionVerbs:
    """A `ClientSession` of `mcp` 1, or a `Client` of `mcp` 2.

    `reference` makes the reference to a prompt that a completion is about.
    """

    def __init__(self, session: Any, reference: Callable[[str], Any], logs: list[str]) -> None:
        self._session = session
        self._reference = reference
        self._logs = logs

    async def _all(self, listed: str, *members: str) -> list[Any]:
        found: list[Any] = []
        cursor: str | None = None
        while True:
            page = await self._page(listed, cursor)
            found += member(page, *members) or []
            cursor = member(page, "next_cursor", "nextCursor")
            if cursor is None:
                return found

    async def _page(self, listed: str, cursor: str | None) -> Any:
        return await getattr(self._session, listed)(cursor=cursor)

    async def tools(self) -> dict[str, list[str]]:
        """List all pages."""
        found = await self._all("list_tools", "tools")
        return {
            each.name: parameters(member(each, "input_schema", "inputSchema")) for each in found
        }

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool."""
        return result_of(await self._session.call_tool(name, arguments))

    async def resources(self) -> list[str]:
        """List the addresses of all pages."""
        return [str(each.uri) for each in await self._all("list_resources", "resources")]

    async def templates(self) -> list[str]:
        """List the templates of all pages."""
        found = await self._all(
            "list_resource_templates", "resource_templates", "resourceTemplates"
        )
        return [str(member(each, "uri_template", "uriTemplate")) for each in found]

    async def read(self, uri: str) -> dict[str, Any]:
        """Read the first content of a resource."""
        content = (await self._session.read_resource(uri)).contents[0]
        return {"text": member(content, "text"), "blob": member(content, "blob")}

    async def prompts(self) -> list[str]:
        """List the names of all pages."""
        return [each.name for each in await self._all("list_prompts", "prompts")]

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        """Get the texts of a prompt."""
        found = await self._session.get_prompt(name, arguments)
        return [each.content.text for each in found.messages]

    async def complete(self, prompt: str, argument: str, value: str) -> list[str]:
        """Complete an argument of a prompt."""
        given = {"name": argument, "value": value}
        found = await self._session.complete(self._reference(prompt), given)
        return list(found.completion.values)

    async def ping(self) -> None:
        """Send a ping."""
        await self._session.send_ping()

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[list[float | None]]:
        """Call a tool, and return what it reports."""
        heard: list[list[float | None]] = []

        async def step(progress: float, total: float | None, message: str | None) -> None:
            heard.append([progress, total])

        await self._session.call_tool(name, arguments, progress_callback=step)
        await settled(heard, 3)
        return heard

    async def log(self, level: str, name: str, lines: int) -> list[str]:
        """Set the level, call a tool that logs, and return the levels of its lines."""
        await self._session.set_logging_level(level)
        await self._session.call_tool(name, {})
        await settled(self._logs, lines)
        return self._logs

    async def ask(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool that asks the user, who names a city."""
        return await self.call(name, arguments)


async def settled(heard: list[Any], count: int) -> None:
    """Wait until as many notifications have arrived as are expected, or for 5 s."""
    for _ in range(int(SETTLE_S / 0.01)):
        if len(heard) >= count:
            return
        await asyncio.sleep(0.01)
