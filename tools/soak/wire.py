"""A raw connection to the server, byte by byte, and a ledger of what is answered on it."""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import ssl
import struct
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from trunkline.spec.revisions import LATEST
from trunkline.transports.addresses import Http, Tcp, Unix

__all__ = ["Ledger", "Tally", "Target", "Wire", "dial", "nonsense"]

# Far beyond what a busy machine needs: an answer that takes longer does not come.
ANSWER_TIMEOUT_S: Final = 240.0
_LINE_BYTES: Final = 64 * 1024 * 1024
_RESET: Final = struct.pack("ii", 1, 0)
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": LATEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
}
MAX_FAILURES: Final = 20


@dataclass
class Tally:
    """The totals of one run."""

    sessions: dict[str, int] = field(default_factory=dict)
    accepted: int = 0
    answered: int = 0
    cancelled: int = 0
    abandoned: int = 0
    unanswered: int = 0
    twice: int = 0
    # Over HTTP: requests whose tool ran twice, and answers of tools that did not run.
    ran_too_often: int = 0
    did_not_run: int = 0
    calls: int = 0
    # What the flood was refused, by what it tried to take; each is more than 0 at the end.
    refused: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def begin(self, session: str) -> None:
        """Count a session."""
        self.sessions[session] = self.sessions.get(session, 0) + 1

    def fail(self, text: str) -> None:
        """Note that something was not as it should be."""
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(text[:500])


class Ledger:
    """The requests of one connection: each is to be answered once."""

    def __init__(self) -> None:
        self._known: set[Any] = set()
        self._open: set[Any] = set()
        self._answers: Counter[Any] = Counter()
        self._cancelled: set[Any] = set()

    @property
    def is_settled(self) -> bool:
        """Whether all requests that were not cancelled have been answered."""
        return self._open <= self._cancelled

    def send(self, id: Any) -> None:
        """Record a request."""
        self._known.add(id)
        self._open.add(id)

    def cancel(self, id: Any) -> None:
        """Record that a request was cancelled: it may be answered, or not."""
        self._cancelled.add(id)

    def take(self, message: Any) -> None:
        """Record what came in."""
        for each in message if isinstance(message, list) else [message]:
            id = each.get("id")
            # Errors without an id are answers to nonsense.
            if "method" not in each and id in self._known:
                self._answers[id] += 1
                self._open.discard(id)

    def close(self, tally: Tally, *, abandons: bool = False) -> None:
        """Add the outcome to the totals; `abandons` counts open requests apart."""
        open_now = self._open - self._cancelled
        tally.accepted += len(self._known)
        tally.answered += sum(min(count, 1) for count in self._answers.values())
        tally.cancelled += len(self._open & self._cancelled)
        tally.twice += sum(count - 1 for count in self._answers.values())
        if abandons:
            tally.abandoned += len(open_now)
        else:
            tally.unanswered += len(open_now)


@dataclass
class Target:
    """Where the server is: an address, or a command for standard streams."""

    kind: str
    address: Http | Tcp | Unix | None = None
    ca: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    _context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return what TLS needs; one for all connections, since OpenSSL is slow to make it."""
        if self._context is None:
            self._context = ssl.create_default_context(cafile=self.ca)
        return self._context

    def command(self, *args: str) -> list[str]:
        """Return the command of a server process."""
        return [sys.executable, "-m", "tools.soak.server", *args]


class Wire:
    """One connection; `open` makes it."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        process: asyncio.subprocess.Process | None = None,
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.process = process
        self.ledger = Ledger()
        self._next = 0
        self._is_handshake = False

    @classmethod
    async def open(cls, target: Target) -> Wire:
        """Connect, or start a process."""
        address = target.address
        if address is None:
            process = await asyncio.create_subprocess_exec(
                *target.command(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=_LINE_BYTES,
                env={**os.environ, **target.environment},
            )
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("the process has no pipes")
            return cls(process.stdout, process.stdin, process)
        if isinstance(address, Unix):
            sock = await dial(address)
            streams = await asyncio.open_unix_connection(sock=sock, limit=_LINE_BYTES)
        else:
            context = target.context() if target.ca else None
            streams = await asyncio.open_connection(
                address.host, address.port, limit=_LINE_BYTES, ssl=context
            )
        return cls(*streams)

    # -- sending

    def write(self, data: bytes) -> None:
        """Write bytes."""
        self.writer.write(data)

    def request(self, method: str, **params: Any) -> Any:
        """Send a request; return its id."""
        self._next += 1
        id: Any = self._next if self._next % 2 else f"s-{self._next}"
        self.ledger.send(id)
        self.write(self.frame(id, method, params))
        return id

    def frame(self, id: Any, method: str, params: dict[str, Any]) -> bytes:
        """Return the line of a request."""
        if not self._is_handshake:
            params = {**params, "_meta": _META}
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        return json.dumps(message).encode() + b"\n"

    def call(self, tool: str, **arguments: Any) -> Any:
        """Send a call of a tool; return its id."""
        return self.request("tools/call", name=tool, arguments=arguments)

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.write(json.dumps(message).encode() + b"\n")

    def cancel(self, id: Any) -> None:
        """Cancel a request."""
        self.ledger.cancel(id)
        self.notify("notifications/cancelled", requestId=id)

    async def handshake(self, revision: str) -> None:
        """Open a session of the handshake era."""
        self._is_handshake = True
        info = {"name": "soak", "version": "1"}
        self.request("initialize", protocolVersion=revision, capabilities={}, clientInfo=info)
        await self.settle()
        self.notify("notifications/initialized")

    # -- receiving

    async def read(self) -> Any:
        """Return the next message, or None at the end."""
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            try:
                line = await self.reader.readline()
            except ConnectionError:
                return None
        if not line:
            return None
        message = json.loads(line)
        self.ledger.take(message)
        return message

    async def settle(self, pause: float = 0.0) -> None:
        """Read until every request has been answered, or the connection ends."""
        while not self.ledger.is_settled and await self.read() is not None:
            if pause:
                await asyncio.sleep(pause)

    async def rest(self) -> None:
        """Read until the connection ends."""
        while await self.read() is not None:
            pass

    # -- ending

    async def end_input(self) -> None:
        """End the output of this side."""
        await self.drain()
        try:
            if self.process is not None:
                self.writer.close()
            else:
                self.writer.write_eof()
        except OSError:
            pass

    async def drain(self) -> None:
        """Wait until the other side has taken what was written."""
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await self.writer.drain()
        except ConnectionError:
            pass

    def reset(self) -> None:
        """End without a goodbye."""
        sock = self.writer.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.writer.transport.abort()

    async def close(self) -> int | None:
        """Close; return the exit status of a process."""
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            pass
        if self.process is None:
            return None
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                # What it still writes is read, or it would wait for us.
                while await self.reader.read(1 << 20):
                    pass
                return await self.process.wait()
        except BaseException:  # a cancellation too: the process would stay
            self.process.kill()
            await self.process.wait()
            raise


async def dial(address: Unix) -> socket.socket:
    """Return a connected socket; while the queue of the server is full, try again.

    The event loop would take a full queue for a connection.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            while True:
                try:
                    sock.connect(str(address.path))
                except BlockingIOError:
                    await asyncio.sleep(0.005)
                else:
                    return sock
    except BaseException:  # a cancellation too: the descriptor would leak
        sock.close()
        raise


def nonsense(rng: random.Random) -> bytes:
    """Return a line that is not a message."""
    kinds = (
        rng.randbytes(rng.randint(1, 200)).replace(b"\n", b" "),
        b'{"jsonrpc": "2.0", "id": ' + b"[" * rng.randint(1, 2000),
        b'{"jsonrpc": "2.0", "method": 7}',
        b"[]",
        b"[1, 2, {}]",
        b"\xff\xfe" + b"x" * rng.randint(1, 3000),
        b'{"jsonrpc": "1.0", "result": NaN}',
    )
    return rng.choice(kinds) + b"\n"
