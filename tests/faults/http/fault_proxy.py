"""A TCP proxy that damages one connection at one byte, for tests of HTTP clients.

A `FaultProxy` forwards bytes between a client and a server. One `Fault` is applied to the first
connections it is meant for; later connections pass unharmed, as after a network that recovers.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["reset", "close", "half-close", "stall", "delay", "truncate", "duplicate"]
# Faults after which the connection goes on.
_PASSING: Final = ("delay", "truncate", "duplicate")
Direction: TypeAlias = Literal["request", "response"]


_DELAY_S: Final = 0.02


@dataclass
class Fault:
    """What happens to a connection when so many bytes have passed in one direction from now on."""

    kind: Kind
    direction: Direction
    at: int
    # Connections that are still to be damaged; each fault happens once by default.
    left: int = 1
    passed: int = 0
    has_happened: bool = False


class _Link:
    """One connection through the proxy."""

    def __init__(
        self, proxy: FaultProxy, client: asyncio.StreamWriter, server: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server

    async def pump(self, reader: asyncio.StreamReader, to: Direction) -> None:
        writer = self._server if to == "request" else self._client
        is_damaged = False
        try:
            while data := await reader.read(65536):
                fault = self._proxy.fault
                if fault is not None and fault.left and fault.direction == to:
                    room = fault.at - fault.passed
                    if room <= len(data):
                        await self._damage(fault, data, room, writer)
                        if fault.kind not in _PASSING:
                            is_damaged = True
                            return
                        continue
                    fault.passed += len(data)
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        except (OSError, RuntimeError):
            pass  # the other side has gone
        finally:
            if not is_damaged:
                writer.close()

    async def _damage(
        self, fault: Fault, data: bytes, room: int, writer: asyncio.StreamWriter
    ) -> None:
        fault.left -= 1
        fault.has_happened = True
        writer.write(data[:room])
        await writer.drain()
        if fault.kind == "duplicate":
            writer.write(data[room:] + data)
            return
        if fault.kind == "truncate":
            return  # the rest of what was read is lost
        if fault.kind == "delay":
            await asyncio.sleep(_DELAY_S)
            writer.write(data[room:])
            return
        if fault.kind == "half-close":
            writer.write_eof()
        elif fault.kind == "stall":
            self._proxy.stalled.append(self)
        else:
            for each in (self._client, self._server):
                if fault.kind == "reset":
                    _reset(each)
                each.close()

    def close(self) -> None:
        for each in (self._client, self._server):
            each.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Make the close of a connection a reset."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class FaultProxy:
    """Forwards connections to a port of this machine."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.fault: Fault | None = None
        self.connections = 0
        self.stalled: list[_Link] = []
        self._links: list[_Link] = []
        self.port = 0

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            far, server = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        link = _Link(self, writer, server)
        self._links.append(link)
        await asyncio.gather(link.pump(reader, "request"), link.pump(far, "response"))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FaultProxy]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for each in self._links:
                each.close()
            await asyncio.sleep(0)
