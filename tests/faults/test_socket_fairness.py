"""One client of a socket that takes all it can get leaves every other client served."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.certificates import Authority
from tests.rigs.conditions import until_async
from tests.rigs.messages import META
from trunkline import Server, ServerLimits, SocketLimits
from trunkline.auth import AuthSettings, PeerCertificate, Tenants
from trunkline.transports import Tls
from trunkline.transports.addresses import Tcp

WAIT: Final = 30.0
# Turns of the event loop until a quiet client has its answer, at most; it runs on the same loop.
TURNS: Final = 50
SERVER: Final = ServerLimits(
    in_flight_overall=64, threads=8, connection_bytes=4 << 20, server_bytes=8 << 20
)
SOCKETS: Final = SocketLimits(connections=40)


class Names:
    """Certificates: of the server, and of clients by their names."""

    def __init__(self, folder: Path) -> None:
        self._authority = Authority(folder)
        cert, key = self._authority.certificate("localhost", "127.0.0.1")
        self.server = Tls(ca=self._authority.ca, cert=cert, key=key)
        self._contexts: dict[str, ssl.SSLContext] = {}

    def context(self, name: str) -> ssl.SSLContext:
        found = self._contexts.get(name)
        if found is None:
            found = ssl.create_default_context(cafile=self._authority.ca)
            found.load_cert_chain(*self._authority.certificate(name, "client.example.org"))
            self._contexts[name] = found
        return found


class Crowd:
    """A server on TCP, and its clients: by their addresses, or the names in their certificates."""

    def __init__(self, port: int, stack: AsyncExitStack, names: Names | None) -> None:
        self.port = port
        self._stack = stack
        self._names = names

    async def connect(self, source: str) -> Conversation:
        options: dict[str, Any] = {"local_addr": (source, 0)}
        if self._names is not None:
            options = {"ssl": self._names.context(source)}
        streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20, **options)
        found = Conversation(*streams)
        self._stack.callback(found.close)
        return found

    async def check(self, turns: Callable[[], int]) -> None:
        """Have four quiet clients call a tool, on new connections."""
        for n in range(4, 8):
            client = await self.connect(f"127.0.0.{n}")
            before = turns()
            client.call("echo", text=f"quiet {n}")
            answer = await client.answer()
            assert answer["result"]["content"][0]["text"] == f"quiet {n}", answer
            assert turns() - before <= TURNS
            client.close()


class Conversation:
    """One connection of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._id = 0

    def call(self, tool: str, **arguments: Any) -> None:
        self._id += 1
        params = {"name": tool, "arguments": arguments, "_meta": META}
        message = {"jsonrpc": "2.0", "id": self._id, "method": "tools/call", "params": params}
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    async def answer(self) -> Any:
        return json.loads(await asyncio.wait_for(self._reader.readline(), WAIT))

    def close(self) -> None:
        self._writer.close()


Flood = Callable[[Crowd, str], Awaitable[None]]


async def calls(crowd: Crowd, source: str) -> None:
    for _ in range(4):
        client = await crowd.connect(source)
        for _ in range(40):
            client.call("hold")


async def connections(crowd: Crowd, source: str) -> None:
    for _ in range(SOCKETS.connections + 5):
        client = await crowd.connect(source)
        client.call("echo", text="I am not silent")
        await client.answer()


async def silent_connections(crowd: Crowd, source: str) -> None:
    for _ in range(SOCKETS.connections + 5):
        await crowd.connect(source)


async def unfinished_messages(crowd: Crowd, source: str) -> None:
    for _ in range(20):
        client = await crowd.connect(source)
        client.write(b'{"x":"' + b"y" * 500_000)


async def held_bytes(crowd: Crowd, source: str) -> None:
    for _ in range(4):
        client = await crowd.connect(source)
        for _ in range(4):
            client.call("hold", text="x" * 500_000)


@pytest.mark.parametrize(
    "flood",
    [calls, connections, silent_connections, unfinished_messages, held_bytes],
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize("sources", [["127.0.0.2"], ["127.0.0.2", "127.0.0.3"]], ids=["one", "two"])
@pytest.mark.parametrize("apart", ["addresses", "principals", "tenants"])
def test_flood_of_a_socket_refuses_no_other_client(
    flood: Flood, sources: list[str], apart: str, tmp_path: Path
) -> None:
    app = Server("served", limits=SERVER)
    names = None if apart == "addresses" else Names(tmp_path)
    auth = None if names is None else AuthSettings(verifiers=[PeerCertificate()])
    if apart == "tenants":
        tenants = Tenants(certificate="commonName")
        auth = AuthSettings(verifiers=[PeerCertificate()], tenants=tenants)
    gate = asyncio.Event()

    @app.tool
    async def echo(text: str) -> str:
        return text

    @app.tool
    async def hold(text: str = "") -> str:
        await gate.wait()
        return "held"

    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        counted, run_once = [0], loop._run_once

        def count() -> None:
            counted[0] += 1
            run_once()

        loop._run_once = count
        address = Tcp("127.0.0.1", 0, tls=False if names is None else names.server)
        async with app.listen(address, limits=SOCKETS, auth=auth) as listening:
            assert isinstance(listening.address, Tcp)
            async with AsyncExitStack() as stack:
                crowd = Crowd(listening.address.port, stack, names)
                for source in sources:
                    await flood(crowd, source)
                    for _ in range(100):
                        await asyncio.sleep(0)  # what was sent is there
                await crowd.check(lambda: counted[0])
            gate.set()
            await until_async(lambda: len(app._core.runtime.accounts) == 0)
            assert app._core.runtime.budget.used == 0

    asyncio.run(main())
