"""A connection to a server in memory: the client sends and receives raw JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.rigs.conditions import until_async
from tests.rigs.messages import HANDSHAKE, PER_REQUEST, initialize_params, message
from trunkline import Server, memory_pair

# Ends a test that hangs, after so many seconds.
WAIT = 60.0


class ServerConnection:
    """One connection: what was received, and how to send."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.ended = False
        self.near, self.far = memory_pair()
        self.near.on_message = lambda frame, _: self.got.append(json.loads(frame))  # type: ignore[arg-type]  # no faults in memory
        self.near.on_error = lambda _: setattr(self, "ended", True)

    def send(self, value: Any) -> None:
        self.near.send(json.dumps(value).encode())

    def ask(self, id: Any, method: str, params: dict[str, Any] | None = None) -> None:
        self.send(message(method, params, id))

    def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.send(message(method, params or None, id=None))

    def call(self, id: Any, tool: str, **arguments: Any) -> None:
        self.ask(id, "tools/call", {"name": tool, "arguments": arguments})

    async def open(self, revision: str, capabilities: dict[str, Any] | None = None) -> None:
        """Make a handshake, unless the revision has none."""
        if revision != PER_REQUEST:
            self.ask("open", "initialize", initialize_params(revision, capabilities))
            await self.answer("open")
            self.tell("notifications/initialized")
            self.got.clear()

    async def until(self, count: int) -> list[Any]:
        """Return what was received, once there is so much of it."""
        await until_async(lambda: len(self.got) >= count)
        return self.got

    async def answer(self, id: Any) -> Any:
        """Return the reply to a request."""
        async with asyncio.timeout(WAIT):
            while True:
                for each in self.got:
                    if isinstance(each, dict) and each.get("id") == id and "method" not in each:
                        return each
                await asyncio.sleep(0.005)


@asynccontextmanager
async def connected(
    app: Server,
    revision: str = HANDSHAKE,
    capabilities: dict[str, Any] | None = None,
    auth: Any = None,
) -> AsyncIterator[ServerConnection]:
    """A connection; with a handshake unless the revision has none.

    What is sent is served before `send` returns: the server's end is connected.
    """
    wire = ServerConnection()
    serving = asyncio.create_task(app.serve(wire.far, auth=auth))
    await wire.near.connect()
    while not (wire.far.is_connected or serving.done()):
        await asyncio.sleep(0)
    try:
        await wire.open(revision, capabilities)
        yield wire
    finally:
        await wire.near.close()
        await asyncio.wait_for(serving, WAIT)
    assert app._core.runtime.in_flight == 0
