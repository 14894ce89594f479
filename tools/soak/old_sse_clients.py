"""The conversations of the soak test over HTTP+SSE of 2024-11-05: one stream, and POSTs beside it.

They are functions of a `HttpScene`, as those of `http_clients`. A session ends with its stream.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final

from tools.soak.http_clients import (
    HANDSHAKE,
    WITH_ELICITATION,
    Conversation,
    HttpClient,
    HttpScene,
)
from tools.soak.http_wire import HttpWire, message_of
from trunkline.jsonrpc.framing.sse import Event

__all__ = ["OLD_SSE_CONVERSATIONS"]

_STREAM_PATH: Final = "/sse"
_TOOLS: Final[tuple[str, ...]] = (
    "count",
    "count",
    "count_inline",
    "count_threaded",
    "count_slowly",
)


class OldSseClient(HttpClient):
    """A client with a stream; its requests are sent on another connection."""

    def __init__(self, scene: HttpScene, revision: str) -> None:
        super().__init__(scene, revision)
        self._stream: HttpWire | None = None
        self._events: AsyncIterator[Event] | None = None

    async def open(self) -> None:
        """Open the stream, and a session."""
        self.path = _STREAM_PATH
        self._stream = await self.scene.connect()
        self._stream.send(self.head("GET", {"Accept": "text/event-stream"}))
        response = await self._stream.response()
        self.scene.check(response.is_stream, f"{response.status} for {self.path}")
        self._events = self._stream.stream(response)
        first = await anext(self._events)
        self.scene.check(first.event == "endpoint", f"a stream begins with {first.event}")
        self.path = first.data
        number = self.new(runs=False)
        await self.notify(self.message(number, "initialize", self.initialize_params()))
        found = (await self.answers([number]))[number].get("result", {}).get("protocolVersion")
        self.scene.check(found == self.revision, f"not initialized: {found}")
        await self.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def notify(self, message: dict[str, Any]) -> None:
        """Send any message.

        Raises:
            ValueError: it was refused; an answer would not come.
        """
        wire, response = await self.send(self.encoded(message))
        body = await wire.body(response)
        if response.status != 202:
            raise ValueError(f"{response.status} for {message}: {body!r}")

    async def receive(self) -> dict[str, Any]:
        """Return the next message of the stream; answers are registered.

        Raises:
            EOFError: the stream has ended.
        """
        if self._events is not None:
            async for event in self._events:
                if (message := message_of(event)) is not None:
                    found: dict[str, Any] = self.taken(message)
                    return found
        raise EOFError("the stream has ended")

    async def answers(self, numbers: Collection[int]) -> dict[int, Any]:
        """Read until some requests are answered; answer questions, and check progress."""
        found: dict[int, Any] = {}
        progress: dict[int, float] = {}
        while len(found) < len(numbers):
            message = await self.receive()
            method, params = message.get("method"), message.get("params", {})
            if method == "elicitation/create":
                answer = {"action": "accept", "content": {"value": "word"}}
                await self.notify({"jsonrpc": "2.0", "id": message["id"], "result": answer})
            elif method == "notifications/progress":
                token = params["progressToken"]
                progress[token] = progress.get(token, 0) + 1
                self.scene.check(params["progress"] == progress[token], f"progress: {params}")
            elif method is None:
                found[message["id"]] = message
        return found

    async def leave(self) -> None:
        """Close both connections; the session ends."""
        stream, self._stream = self._stream, None
        if stream is not None:
            if self.scene.rng.random() < 0.5:
                stream.reset()
            await stream.close()
        await self.disconnect(resets=self.scene.rng.random() < 0.3)


@asynccontextmanager
async def old_sse_client(scene: HttpScene) -> AsyncIterator[OldSseClient]:
    """Provide a client that is connected."""
    client = OldSseClient(scene, scene.rng.choice(HANDSHAKE))
    try:
        await client.open()
        yield client
    finally:
        await client.leave()


async def old_sse(scene: HttpScene) -> None:
    """Calls, some of them at the same time; the connection of the POSTs breaks now and then."""
    async with old_sse_client(scene) as client:
        tools = _TOOLS
        if client.revision in WITH_ELICITATION:
            tools += ("count_asked",)
        for _ in range(scene.rng.randint(1, 6)):
            numbers = [client.new() for _ in range(scene.rng.randint(1, 4))]
            for number in numbers:
                tool = scene.rng.choice(tools)
                more = {"times": 3, "seconds": 0.01} if tool == "count_slowly" else {}
                await client.notify(client.called(number, tool, **more))
            for number, answer in (await client.answers(numbers)).items():
                client.checked(number, answer.get("result"))
            if scene.rng.random() < 0.1:
                await client.disconnect(resets=scene.rng.random() < 0.5)


async def old_sse_dropped(scene: HttpScene) -> None:
    """The client leaves in the middle of the stream, and comes back for a new one."""
    async with old_sse_client(scene) as client:
        await client.notify(client.called(client.new(), "count_slowly", times=50, seconds=0.02))
        for _ in range(scene.rng.randint(0, 4)):
            await client.receive()
        await client.leave()
        # The server may not have seen the end of the stream. The answer is lost either way.
        late = client.called(client.new(), "count")
        wire, response = await client.send(client.encoded(late))
        await wire.body(response)
        scene.check(response.status in (202, 404), f"{response.status} for a stream that has ended")
        client.abandon()
        await client.disconnect()
        await client.open()
        number = client.new()
        await client.notify(client.called(number, "count"))
        client.checked(number, (await client.answers([number]))[number].get("result"))


# By name, and how many run at once, as those of `http_clients`.
OLD_SSE_CONVERSATIONS: Final[dict[str, tuple[Conversation, int]]] = {
    "old SSE": (old_sse, 8),
    "old SSE, dropped": (old_sse_dropped, 4),
}
