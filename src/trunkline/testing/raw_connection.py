"""A raw connection to an in-process server: sends and receives single messages.

A `Client` merges the round trips of a call and hides the keys of input requests; tests of these
use this connection instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec.json import decode, encode

from ..mcp.meta import PROGRESS_TOKEN, request_meta
from ..mcp.shaping import narrow
from ..mcp.types import ClientCapabilities, Implementation
from ..spec.lookup import method
from ..transports.memory import memory_pair

if TYPE_CHECKING:
    from ..server import Server

__all__ = ["RawConnection", "open_connection"]


class RawConnection:
    """One in-memory connection to a server."""

    def __init__(self, revision: str, capabilities: ClientCapabilities) -> None:
        self.revision = revision
        self.near, self.far = memory_pair()
        self.near.on_message = self._on_message
        self.near.on_error = self._on_end
        # Callbacks for requests and notifications of the server.
        self.on_request: Callable[[dict[str, Any]], object] = self._refuse
        self.on_notification: Callable[[dict[str, Any]], object] = lambda _: None
        self._info = Implementation("trunkline.testing", "1")
        self._capabilities = capabilities
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ids = 0

    async def begin(self) -> None:
        """Initialize as the revision does, with the log level debug."""
        if method("initialize", self.revision) is None:
            await self.call("server/discover", {})
            return
        params = {
            "protocolVersion": self.revision,
            "capabilities": narrow(self._capabilities, self.revision),
            "clientInfo": narrow(self._info, self.revision),
        }
        await self.request("initialize", params)
        self.send({"method": "notifications/initialized"})
        await self.request("logging/setLevel", {"level": "debug"})

    def call(self, name: str, params: dict[str, Any]) -> asyncio.Future[dict[str, Any]]:
        """Send a request with the `_meta` members of its revision."""
        meta = request_meta(self.revision, self._info, self._capabilities, "debug")
        meta[PROGRESS_TOKEN] = "progress"
        return self.request(name, {**params, "_meta": meta})

    def request(self, name: str, params: dict[str, Any]) -> asyncio.Future[dict[str, Any]]:
        """Send a request; the future returns the whole response."""
        self._ids += 1
        future = asyncio.get_running_loop().create_future()
        self._waiting[self._ids] = future
        self.send({"id": self._ids, "method": name, "params": params})
        return future

    def send(self, message: dict[str, Any]) -> None:
        """Send any message."""
        self.near.send(encode({"jsonrpc": "2.0", **message}))

    def _on_message(self, frame: Any, _: Any) -> None:
        message = decode(frame)
        if "method" not in message:
            waiting = self._waiting.pop(message.get("id"), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif "id" in message:
            self.on_request(message)
        else:
            self.on_notification(message)

    def _on_end(self, _: Any = None) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError("the server has closed the connection"))
                waiting.exception()  # marks it as retrieved: it may not be awaited any more

    def _refuse(self, message: dict[str, Any]) -> None:
        error = {"code": -32601, "message": "Method not found"}
        self.send({"id": message["id"], "error": error})


@asynccontextmanager
async def open_connection(
    app: Server, revision: str, capabilities: ClientCapabilities
) -> AsyncIterator[RawConnection]:
    """An initialized connection to `app`, served until the block is left."""
    connection = RawConnection(revision, capabilities)
    serving = asyncio.create_task(app.serve(connection.far))
    # A lifespan that fails does not close the connection.
    serving.add_done_callback(connection._on_end)
    try:
        await connection.near.connect()
        await connection.begin()
        yield connection
    finally:
        await connection.near.close()
        await serving
