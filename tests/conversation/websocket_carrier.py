"""WebSocket as a carrier of scripts: our own listener, beside HTTP.

A client of ours connects as its users have it. A script that writes its own messages uses the
client of the `websockets` library, which is not the part of it that our transport is made of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.conversation.http_carriers import HostedClient, HostedWire, OverHttp
from trunkline import HttpSettings, Server
from trunkline.errors import TransportError
from trunkline.spec.revisions import Window


class WebSocketHost:
    """Our own listener, on a port that the system chooses."""

    def __init__(self, app: Server) -> None:
        http = HttpSettings(websocket=True)
        self._listening = app.listen("http://127.0.0.1:0/mcp", http=http)

    async def open(self) -> str:
        await self._listening.__aenter__()
        return str(self._listening.address).replace("http://", "ws://")

    async def close(self) -> None:
        await self._listening.close()


class PlainWebSocket:
    """A connection of the library's own client."""

    backlog = written = 0

    def __init__(self, url: str) -> None:
        self.on_message: Callable[[bytes, Any], object] = lambda *_: None
        self.on_error: Callable[[TransportError | None], object] = lambda _: None
        self.is_connected = False
        self._url = url
        self._unsent: asyncio.Queue[bytes] = asyncio.Queue()
        self._connection: ClientConnection | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def connect(self) -> None:
        made = await connect(self._url, subprotocols=["mcp"], compression=None, proxy=None)  # type: ignore[list-item]
        assert made.subprotocol == "mcp"
        self._connection, self.is_connected = made, True
        self._tasks = [asyncio.create_task(work) for work in (self._read(made), self._write(made))]

    async def _read(self, connection: ClientConnection) -> None:
        try:
            async for message in connection:
                assert isinstance(message, str)
                self.on_message(message.encode(), None)
        except ConnectionClosed:
            pass  # with a code that reports an error
        self.is_connected = False
        self.on_error(None)

    async def _write(self, connection: ClientConnection) -> None:
        try:
            while True:
                await connection.send(await self._unsent.get(), text=True)
        except ConnectionClosed:
            pass

    def send(self, frame: bytes, route: Any = None) -> None:
        self._unsent.put_nowait(frame)

    async def close(self) -> None:
        assert self._connection is not None
        await self._connection.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)


class WebSocketClient(HostedClient):
    """A connection of our client, over a WebSocket."""

    place = "ws://127.0.0.1:0/mcp"


class WebSocketWire(HostedWire):
    """A connection of the library's own client, for a script."""

    def _dial(self, url: str) -> PlainWebSocket:
        return PlainWebSocket(url)


OVER_WEBSOCKET: Final = OverHttp(
    "websocket", Window(), WebSocketHost, WebSocketClient, WebSocketWire
)
