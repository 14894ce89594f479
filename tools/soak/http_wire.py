"""A raw HTTP connection to the server, and a register of every request that is sent on any.

The rules that live here, and only here:

* Each request has a number that no other has, which is its id. A tool that is called with it counts
  how often it ran.
* A request that was answered ran once. One that was abandoned ran once at most. None is answered
  twice, on whatever stream.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NamedTuple

from tools.soak.wire import ANSWER_TIMEOUT_S, Tally
from trunkline.jsonrpc.framing.framing import Oversize
from trunkline.jsonrpc.framing.sse import Event, EventReader
from trunkline.transports.addresses import Http

__all__ = ["HttpWire", "Register", "Response", "message_of"]

_LINE_BYTES: Final = 1 << 20
_RESET: Final = struct.pack("ii", 1, 0)

# What came of a request, one byte for each.
_SENT: Final = 1
_ANSWERED: Final = 2
_TWICE: Final = 3
# Added for a request that runs no tool, and for one whose answer the client does not wait for.
_IS_PLAIN: Final = 16
_IS_ABANDONED: Final = 32


class Register:
    """All requests of a run, by number."""

    def __init__(self) -> None:
        self._states = bytearray()

    def __len__(self) -> int:
        return len(self._states)

    def new(self, *, runs: bool = True) -> int:
        """Return the number of another request; `runs` if it calls a tool that counts."""
        self._states.append(_SENT if runs else _SENT | _IS_PLAIN)
        return len(self._states) - 1

    def answer(self, number: Any) -> bool:
        """Record an answer; return False if there is no such request."""
        if type(number) is not int or not 0 <= number < len(self._states):
            return False
        state = self._states[number]
        if state & 15 < _TWICE:
            self._states[number] = state + 1
        return True

    def abandon(self, number: int) -> None:
        """Record that the client does not wait for an answer, which may come or not."""
        self._states[number] |= _IS_ABANDONED

    def is_answered(self, number: int) -> bool:
        """Return True if an answer was recorded."""
        return self._states[number] & 15 >= _ANSWERED

    def close(self, tally: Tally, ran: bytes) -> None:
        """Add the outcome to the totals; `ran` has how often each tool ran, one byte for each."""
        tally.accepted += len(self._states)
        for number, state in enumerate(self._states):
            times = ran[number] if number < len(ran) else 0
            outcome, is_plain = state & 15, state & _IS_PLAIN
            tally.answered += outcome >= _ANSWERED
            tally.twice += outcome == _TWICE
            if outcome == _SENT and state & _IS_ABANDONED:
                tally.abandoned += 1
            elif outcome == _SENT:
                tally.unanswered += 1
            most = 0 if is_plain else 1
            least = most if outcome >= _ANSWERED else 0
            tally.ran_too_often += times > most
            tally.did_not_run += times < least


class Response(NamedTuple):
    """The head of a response."""

    status: int
    headers: Mapping[str, str]

    @property
    def is_stream(self) -> bool:
        """Whether events follow."""
        return self.headers.get("content-type") == "text/event-stream"

    @property
    def is_chunked(self) -> bool:
        """Whether the length is not known."""
        return "transfer-encoding" in self.headers


class HttpWire:
    """One connection; `open` makes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(
        cls,
        address: Http,
        context: ssl.SSLContext | None = None,
        source: str | None = None,
        receive_buffer: int | None = None,
    ) -> HttpWire:
        """Connect, with a context over TLS, from an address of this machine.

        receive_buffer: about how many bytes are received before they are read.
        """
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            if receive_buffer is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            if source is not None:
                sock.bind((source, 0))
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await asyncio.get_running_loop().sock_connect(sock, (address.host, address.port))
                streams = await asyncio.open_connection(
                    sock=sock,
                    limit=receive_buffer or _LINE_BYTES,
                    ssl=context,
                    server_hostname=None if context is None else address.host,
                )
        except BaseException:  # a cancellation too: the descriptor would leak
            sock.close()
            raise
        return cls(*streams)

    def send(self, data: bytes) -> None:
        """Write bytes."""
        self.writer.write(data)

    async def response(self) -> Response:
        """Read the head of a response."""
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head[:-4].split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        return Response(int(first.split(" ")[1]), headers)

    async def body(self, response: Response) -> bytes:
        """Read the rest of a response that is not a stream."""
        length = int(response.headers.get("content-length", "0"))
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            return await self.reader.readexactly(length)

    async def events(self, response: Response) -> AsyncIterator[tuple[str | None, Any]]:
        """Read the messages of a stream, with their event ids; None is an event without one."""
        async for event in self.stream(response):
            yield event.id, message_of(event)

    async def stream(self, response: Response) -> AsyncIterator[Event]:
        """Read the events of a stream."""
        reader = EventReader(_LINE_BYTES, empty=True)
        while True:
            data = await self._chunk() if response.is_chunked else await self.body(response)
            for event in reader.feed(data):
                if isinstance(event, Oversize):
                    raise ValueError("an event is too large")
                yield event
            if not data or not response.is_chunked:
                return

    async def _chunk(self) -> bytes:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    def reset(self) -> None:
        """End without a goodbye."""
        sock = self.writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.writer.transport.abort()

    async def close(self) -> None:
        """Close."""
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            pass


def message_of(event: Event) -> Any:
    """Return the message of an event, or None."""
    return json.loads(event.data) if event.data else None
