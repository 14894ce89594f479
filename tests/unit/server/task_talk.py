"""A client of tasks in either form, in raw JSON, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import WAIT, ServerConnection, connected
from trunkline import Server

CORE = "2025-11-25"
EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
CAPABILITIES: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
OVER = ("completed", "failed", "cancelled")


class Talk:
    """One client: its requests are numbered, and what it declares is said with each."""

    def __init__(self, wire: ServerConnection, revision: str, *, declares: bool = True) -> None:
        self.wire = wire
        self.revision = revision
        self._ids = count(100)
        extensions: dict[str, Any] = {"extensions": {EXTENSION: {}}} if declares else {}
        self.meta: dict[str, Any] = (
            {**META, "io.modelcontextprotocol/clientCapabilities": {**CAPABILITIES, **extensions}}
            if revision == PER_REQUEST
            else {}
        )

    def send(self, method: str, **params: Any) -> int:
        """Send a request, and return its id."""
        id = next(self._ids)
        own = params.pop("meta", {})
        meta = {"_meta": {**self.meta, **own}} if self.meta or own else {}
        self.wire.ask(id, method, {**params, **meta})
        return id

    async def reply(self, method: str, **params: Any) -> Any:
        """Send a request, and return the whole reply."""
        return await self.wire.answer(self.send(method, **params))

    async def ask(self, method: str, **params: Any) -> Any:
        """Send a request, and return its result."""
        reply = await self.reply(method, **params)
        assert "result" in reply, reply
        return reply["result"]

    async def refused(self, method: str, **params: Any) -> Any:
        """Send a request, and return its error."""
        reply = await self.reply(method, **params)
        assert "error" in reply, reply
        return reply["error"]

    async def begin(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool as a task; return what the call was answered about it."""
        extra: dict[str, Any] = {"task": {}} if self.revision == CORE else {}
        result = await self.ask("tools/call", name=tool, arguments=arguments, **extra)
        return result["task"] if self.revision == CORE else result

    async def until(self, task: Any, *statuses: str) -> Any:
        """Poll a task until it is in one of these states; return it."""
        async with asyncio.timeout(WAIT):
            while True:
                found = await self.ask("tasks/get", taskId=task["taskId"])
                if found["status"] in (statuses or OVER):
                    return found
                await asyncio.sleep(0.005)

    async def heard(self, method: str, count: int = 1) -> list[Any]:
        """Return messages of a method that came from the server, once there are so many."""
        async with asyncio.timeout(WAIT):
            while True:
                found = [each for each in self.wire.got if each.get("method") == method]
                if len(found) >= count:
                    return found
                await asyncio.sleep(0.005)


@asynccontextmanager
async def talking(
    app: Server, revision: str, *, declares: bool = True, auth: Any = None
) -> AsyncIterator[Talk]:
    """A client of a server; with `auth` it has a principal."""
    async with connected(app, revision, CAPABILITIES, auth) as wire:
        yield Talk(wire, revision, declares=declares)


def accept(value: Any) -> dict[str, Any]:
    """An answer to a question for one value."""
    return {"action": "accept", "content": {"value": value}}
