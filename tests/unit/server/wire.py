"""A client that speaks raw JSON to a server in memory, for tests of what goes over the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from trunkline import Server, memory_pair

PER_REQUEST = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
}
# Ends a test that hangs.
WAIT = 60.0


class Wire:
    """One connection: what was received, and how to send."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.ended = False
        self.near, self.far = memory_pair()
        self.near.on_message = lambda frame, _: self.got.append(json.loads(frame))  # type: ignore[arg-type]  # no faults in memory
        self.near.on_error = lambda _: setattr(self, "ended", True)

    def send(self, message: Any) -> None:
        self.near.send(json.dumps(message).encode())

    def ask(self, id: Any, method: str, params: dict[str, Any] | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)

    def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    def call(self, id: Any, tool: str, **arguments: Any) -> None:
        self.ask(id, "tools/call", {"name": tool, "arguments": arguments})

    async def until(self, count: int) -> list[Any]:
        """Return what was received, once there is so much of it."""
        async with asyncio.timeout(WAIT):
            while len(self.got) < count:
                await asyncio.sleep(0.005)
        return self.got

    async def answer(self, id: Any) -> Any:
        """Return the reply to a request."""
        async with asyncio.timeout(WAIT):
            while True:
                for message in self.got:
                    if (
                        isinstance(message, dict)
                        and message.get("id") == id
                        and "method" not in message
                    ):
                        return message
                await asyncio.sleep(0.005)


@asynccontextmanager
async def connected(
    app: Server,
    revision: str = "2025-11-25",
    capabilities: dict[str, Any] | None = None,
    auth: Any = None,
) -> AsyncIterator[Wire]:
    """A connection; with a handshake unless the revision has none."""
    wire = Wire()
    serving = asyncio.create_task(app.serve(wire.far, auth=auth))
    await wire.near.connect()
    try:
        if revision != PER_REQUEST:
            params = {
                "protocolVersion": revision,
                "capabilities": capabilities or {},
                "clientInfo": {"name": "tests", "version": "1"},
            }
            wire.ask("open", "initialize", params)
            await wire.answer("open")
            wire.tell("notifications/initialized")
            wire.got.clear()
        yield wire
    finally:
        await wire.near.close()
        await asyncio.wait_for(serving, WAIT)
    assert app._core.runtime.in_flight == 0
