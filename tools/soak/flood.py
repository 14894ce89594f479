"""A client of the soak test that takes all it can get of a server, from an address of its own.

Visits take threads, running calls, streams, sessions and connections, and in turn with these bytes.
Each holds what it has for a while, and leaves without a goodbye on most connections. The server
refuses what is beyond the share of a client. These refusals are counted, because a flood without
them has shown nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, Final

from tools.soak.http_clients import Gone, HttpClient, HttpScene
from tools.soak.http_wire import HttpWire, Register, Response
from tools.soak.limits import Capacity
from tools.soak.wire import Tally
from trunkline.spec.revisions import LATEST, V2025_03_26

__all__ = ["Flood", "refusals"]

# The other clients are 127.0.0.1.
_SOURCE: Final = "127.0.0.2"
# Of each visit, once everything is taken.
_HOLD_S: Final = 2.0
# For answers that come when what is held ends.
_LAST_ANSWERS_S: Final = 30.0
# The only revision with batches.
_WITH_BATCHES: Final = V2025_03_26
_BATCH: Final = 50
# More than the system takes of an answer that is not read: about 4 MB.
_ANSWER_BYTES: Final = 12_000_000
# What the system may receive of an answer that is not read.
_RECEIVE_BUFFER_BYTES: Final = 4096
_BODY_BYTES: Final = 800_000
_TINY_CHUNKS: Final = b"1\r\n[\r\n" * 300
_POSTED: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
# What one client may be sending, of all bytes of the server.
_RECEIVING_SHARE: Final = 8
# For a refusal to arrive before the next try.
_BETWEEN_S: Final = 0.002
# Tries beyond a limit.
_BEYOND: Final = 5


def refusals(kind: str) -> dict[str, int]:
    """Return what a flood is refused at a target, none of it yet."""
    # The connections of an ASGI application are those of another server.
    last = "requests" if kind == "asgi" else "connections"
    return dict.fromkeys(("threads", "answers", "bodies", "calls", last), 0)


class Flood:
    """The client; `visit` is a conversation."""

    def __init__(self, capacity: Capacity, refused: dict[str, int]) -> None:
        self._capacity = capacity
        self._refused = refused
        self._visits = 0

    async def visit(self, scene: HttpScene) -> None:
        """Take all there is, hold it, and leave."""
        # What is answered to it, or not, does not count.
        own = replace(scene, source=_SOURCE, tally=Tally(), register=Register())
        visit = _Visit(own, self._capacity, self._refused)
        last = visit.requests if "requests" in self._refused else visit.connections
        # A client that has its share of bytes is refused calls for that.
        parts = (
            (visit.answers, visit.bodies)
            if self._visits % 2
            else (visit.threads, visit.streams, visit.sessions, visit.calls, last)
        )
        self._visits += 1
        try:
            for part in parts:
                try:
                    await part()
                except (OSError, EOFError, ValueError, Gone):
                    continue  # it was refused a connection, or its session has ended for another
            await visit.hold()
        finally:
            await visit.leave()


class _Visit:
    """What the client has taken."""

    def __init__(self, scene: HttpScene, capacity: Capacity, refused: dict[str, int]) -> None:
        self._scene = scene
        self._capacity = capacity
        self._refused = refused
        self._wires: list[HttpWire] = []
        self._unread: set[HttpWire] = set()
        # Those that read answers; of these, the ones that end by themselves.
        self._readers: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()

    # -- what it takes

    async def threads(self) -> None:
        """Take threads, and the places of calls that wait for one."""
        capacity = self._capacity
        count = capacity.threads + capacity.waiting_for_thread
        await self._call_in_batches("hold_thread", count, "threads")

    async def answers(self) -> None:
        """Take bytes: large answers are not read."""

        async def take() -> None:
            wire = await self._connect(_RECEIVE_BUFFER_BYTES)
            self._unread.add(wire)
            wire.send(self._single("large", size=_ANSWER_BYTES))
            self._read(self._watch(wire, "answers"))

        await self._until_refused("answers", self._capacity.server_bytes // _ANSWER_BYTES, take)

    async def bodies(self) -> None:
        """Take bytes: requests do not end, and begin with tiny chunks."""
        rest = b"%x\r\n%b\r\n" % (_BODY_BYTES, b"[" * _BODY_BYTES)

        async def take() -> None:
            await self._begin_body(_TINY_CHUNKS + rest, "bodies")

        most = self._capacity.server_bytes // _RECEIVING_SHARE // _BODY_BYTES
        await self._until_refused("bodies", most, take)

    async def streams(self) -> None:
        """Take streams, of sessions and of HTTP+SSE."""
        for _ in range(self._capacity.connections // 20):
            client = await self._session()
            (await client.wire()).send(client.get())
            old = HttpClient(self._scene, _WITH_BATCHES)
            old.path = "/sse"
            wire = await self._connect()
            wire.send(old.head("GET", {"Accept": "text/event-stream"}))

    async def sessions(self) -> None:
        """Take sessions, in the background, because each needs an answer."""
        share = self._capacity.sessions // 2
        for _ in range(2):
            self._read(self._open_sessions(share // 2 + _BEYOND))

    async def calls(self) -> None:
        """Take running calls, in batches and by single requests."""
        half = self._capacity.calls // 2
        await self._call_in_batches("hold", half, "calls")

        async def take() -> None:
            wire = await self._connect()
            wire.send(self._single("hold", until=time.time() + _HOLD_S))
            self._read(self._watch(wire, "calls"))

        await self._until_refused("calls", half, take)

    async def connections(self) -> None:
        """Take connections, and send nothing: for each that is refused an earlier one is closed."""

        async def take() -> None:
            self._read(self._watch(await self._connect(), "connections"))

        await self._until_refused("connections", self._capacity.connections, take)

    async def requests(self) -> None:
        """Take HTTP requests that do not end."""

        async def take() -> None:
            await self._begin_body(_TINY_CHUNKS[:6], "requests")

        await self._until_refused("requests", self._capacity.connections, take)

    # -- the end

    async def hold(self) -> None:
        """Keep everything until what was called has ended."""
        await asyncio.sleep(_HOLD_S)
        if self._ending:
            await asyncio.wait(self._ending, timeout=_LAST_ANSWERS_S)

    async def leave(self) -> None:
        """Close all connections, most of them without a goodbye."""
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        for wire in self._wires:
            # With an answer that is not read, TLS would wait for its end.
            if wire in self._unread or self._scene.rng.random() < 0.7:
                wire.reset()
        await asyncio.gather(*(wire.close() for wire in self._wires), return_exceptions=True)

    # -- requests and their answers

    async def _connect(self, receive_buffer: int | None = None) -> HttpWire:
        wire = await self._scene.connect(receive_buffer)
        self._wires.append(wire)
        return wire

    async def _session(self) -> HttpClient:
        client = HttpClient(self._scene, _WITH_BATCHES)
        try:
            await client.open()
        finally:
            if client.is_connected:
                self._wires.append(await client.wire())
        return client

    def _single(self, tool: str, **arguments: Any) -> bytes:
        client = HttpClient(self._scene, LATEST)
        params = {"name": tool, "arguments": arguments}
        return client.encoded(client.message(1, "tools/call", params))

    async def _begin_body(self, chunks: bytes, part: str) -> None:
        wire = await self._connect()
        given = {**_POSTED, "Transfer-Encoding": "chunked"}
        wire.send(HttpClient(self._scene, LATEST).head("POST", given) + chunks)
        self._read(self._watch(wire, part))

    async def _call_in_batches(self, tool: str, count: int, part: str) -> None:
        for start in range(0, count, _BATCH):
            client = await self._session()
            params = {"name": tool, "arguments": {"until": time.time() + _HOLD_S}}
            numbers = range(start, min(start + _BATCH, count))
            batch = [client.message(number, "tools/call", params) for number in numbers]
            wire = await client.wire()
            body = json.dumps(batch).encode()
            given = {**_POSTED, **client.session_headers(), "Content-Length": str(len(body))}
            wire.send(client.head("POST", given) + body)
            self._ending.add(self._read(self._read_batch(wire, part)))

    async def _until_refused(
        self, part: str, most: int, take: Callable[[], Awaitable[None]]
    ) -> None:
        """Take one after the other until one is refused."""
        before = self._refused[part]
        for _ in range(most + _BEYOND):
            await take()
            await asyncio.sleep(_BETWEEN_S)
            if self._refused[part] > before:
                return

    def _read(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        reader = asyncio.create_task(self._reading(work))
        self._readers.add(reader)
        return reader

    async def _reading(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (OSError, EOFError, ValueError):
            # The server has closed a connection.
            if "connections" in self._refused:
                self._refused["connections"] += 1

    async def _watch(self, wire: HttpWire, part: str) -> None:
        response = await wire.response()
        length = int(response.headers.get("content-length", _ANSWER_BYTES))
        if response.status >= 400 or (part == "answers" and length < _ANSWER_BYTES):
            self._refused[part] += 1

    async def _read_batch(self, wire: HttpWire, part: str) -> None:
        response = await wire.response()
        for answer in await _answers(wire, response):
            self._refused[part] += "retryAfterMs" in answer.get("error", {}).get("data", {})

    async def _open_sessions(self, count: int) -> None:
        wire = await self._connect()
        for _ in range(count):
            client = HttpClient(self._scene, _WITH_BATCHES)
            wire.send(client.encoded(client.message(1, "initialize", client.initialize_params())))
            await wire.body(await wire.response())


async def _answers(wire: HttpWire, response: Response) -> list[Any]:
    """Return all answers to a batch."""
    if response.is_stream:
        messages = [message async for _, message in wire.events(response)]
    else:
        messages = [json.loads(await wire.body(response) or b"null")]
    found = []
    for each in messages:
        found += each if isinstance(each, list) else [] if each is None else [each]
    return found
