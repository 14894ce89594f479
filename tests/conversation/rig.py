"""Test rig: connects a script to the server of `app.py`, by our client and line by line.

`TRANSPORTS` says what carries the messages; a further one is one more entry. Each kind gives
an address for a client, and a `Wire` for a script that writes its own bytes and reads what
comes back: that one is made with nothing of ours but, in memory, the pair itself.

Whatever goes over a connection is fed to a judge as it passes. When a script ends, nothing
may be held against the server, nor against our client; see `Rig.judge`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, Protocol

from tests.conversation import servers
from tests.conversation.http_carriers import OVER_ASGI, OVER_HTTP, OVER_OLD_SSE, OverHttp
from tests.conversation.journal import HANGS
from tests.conversation.rules import ROOT, Ruled
from tests.conversation.server_log import ServerLog
from tests.conversation.websocket_carrier import OVER_WEBSOCKET
from trunkline import Client, Server, Stdio, Transport, Unix
from trunkline.jsonrpc import Policy
from trunkline.judge import Conversation, Finding, TraceEntry
from trunkline.mcp import CreateMessageResult, TextContent
from trunkline.spec.revisions import V2025_06_18, V2025_11_25, V2026_07_28, Window
from trunkline.transports import TappedTransport
from trunkline.transports.stdio.client import _StdioTransport

# How a variant of the server is run as a process.
COMMAND: Final = [sys.executable, "-m", "tests.conversation.app"]
# The same, with all hidden from the library that Windows does not have.
WITHOUT_POSIX: Final = [sys.executable, "-m", "tests.without_posix"]
UNWATCHED: Final = "unwatched-stdio"
ALWAYS: Final = Window()
HANDSHAKE: Final = Window(until=V2026_07_28)
PREFIX: Final = "io.modelcontextprotocol/"
TASKS: Final = f"{PREFIX}tasks"
INFO: Final = {"name": "script", "version": "0.1"}

# The longest line that a script reads; a server has no reason to write a longer one here.
_LONGEST_LINE: Final = 4 * 1024 * 1024


def everything(revision: str) -> dict[str, Any]:
    """Return what a client declares that can be asked all that a revision has."""
    found: dict[str, Any] = {"roots": {}, "sampling": {}}
    if Window(V2025_06_18).holds(revision):
        found["elicitation"] = {}
    if Window(V2025_11_25).holds(revision):
        found.update(sampling={"tools": {}}, elicitation={"form": {}, "url": {}})
    if Window(V2026_07_28).holds(revision):
        found["extensions"] = {TASKS: {}}
    return found


# -- what is said, and what a judge says of it -----------------------------------------------


class Record:
    """What went over one connection, and what is to be said against it."""

    def __init__(self, transport: str) -> None:
        self.lines: list[tuple[str, bytes]] = []
        self.findings: list[tuple[str, Finding]] = []
        # What the judge itself failed with, if it did.
        self.failure: Exception | None = None
        self._transport = transport
        self._has_entries = False
        self.renew()

    def renew(self) -> None:
        """Begin anew, for another connection."""
        self._judge = Conversation()

    def follow(self, connection: Any) -> None:
        """Take what is judged from a connection that knows more than the messages, if it does."""
        if hasattr(connection, "on_entry"):
            connection.on_entry = self._feed
            self._has_entries = True

    def add(self, sender: Any, line: bytes) -> None:
        self.lines.append((sender, line))
        if not self._has_entries:
            self._feed(TraceEntry(sender=sender, transport=self._transport, raw=line))

    def _feed(self, entry: TraceEntry) -> None:
        try:
            found = self._judge.feed(entry)
        except Exception as error:  # noqa: BLE001  # told at the end, or a script would wait for it
            self.failure = self.failure or error
            return
        self.findings += [(str(entry.sender), each) for each in found]

    def since(self, count: int) -> list[tuple[str, Finding]]:
        return self.findings[count:]

    def verdict(self, id: str) -> str:
        """Return what the judge says of a requirement, after all that was said so far."""
        return self._judge.outcomes()[id].verdict


# -- carriers --------------------------------------------------------------------------------


class Wire(Protocol):
    """A connection as bytes: one line is one message."""

    on_line: Callable[[bytes], object]
    log: Callable[[], str]

    def write(self, line: bytes) -> None: ...

    async def close(self) -> None: ...

    @property
    def is_open(self) -> bool: ...


class Kind(Protocol):
    """One way to carry messages to a variant of the server."""

    # What a judge calls it.
    name: str
    # Whether a connection of its own costs a script next to nothing.
    is_cheap: bool
    # The revisions that it carries.
    when: Window

    def address(self, variant: str) -> Any: ...

    async def wire(self, variant: str) -> Wire: ...


class MemoryWire:
    """A connection to a server in this process."""

    def __init__(self, app: Server) -> None:
        self.on_line: Callable[[bytes], object] = lambda line: None
        self._log = ServerLog()
        self._near: Transport = app.transport(Policy())
        self._near.on_message = lambda frame, _: self.on_line(frame)  # type: ignore[arg-type]
        self._near.on_error = lambda _: None

    async def open(self) -> None:
        await self._near.connect()

    def log(self) -> str:
        return self._log.text()

    def write(self, line: bytes) -> None:
        self._near.send(line)

    @property
    def is_open(self) -> bool:
        return self._near.is_connected

    async def close(self) -> None:
        await self._near.close()
        self._log.close()


class InMemory:
    name = ""
    is_cheap = True
    when = ALWAYS

    def address(self, variant: str) -> Server:
        return servers.server(variant)

    async def shared_address(self, variant: str) -> tuple[Server, Callable[[], Awaitable[None]]]:
        async def close() -> None: ...

        return servers.server(variant), close

    async def wire(self, variant: str) -> MemoryWire:
        wire = MemoryWire(servers.server(variant))
        await wire.open()
        return wire


class ProcessWire:
    """A connection to a server that is a process, by its pipes and nothing else."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.on_line: Callable[[bytes], object] = lambda line: None
        self.process = process
        self._stderr: list[str] = []
        self._tasks = [
            asyncio.create_task(self._read_lines()),
            asyncio.create_task(self._read_log()),
        ]

    async def _read_lines(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.on_line(line.removesuffix(b"\n"))

    async def _read_log(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self._stderr.append(line.decode().removesuffix("\n"))

    def log(self) -> str:
        return "\n".join(self._stderr)

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")

    @property
    def is_open(self) -> bool:
        return self.process.returncode is None

    async def close(self) -> None:
        """End as a host does: close the input, and wait. A process that stays is a failure."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            status = await asyncio.wait_for(self.process.wait(), HANGS)
        except TimeoutError:
            self.process.kill()
            raise
        finally:
            await asyncio.wait(self._tasks, timeout=HANGS)
        assert status == 0, f"the server ended with {status}\n{self.log()}"


class OverStdio:
    name = "stdio"
    is_cheap = False
    when = ALWAYS

    def address(self, variant: str) -> Stdio:
        return Stdio([*COMMAND, variant], cwd=ROOT)

    async def wire(self, variant: str) -> ProcessWire:
        return await _process_wire([*COMMAND, variant])


async def _process_wire(command: list[str]) -> ProcessWire:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, limit=_LONGEST_LINE
    )
    return ProcessWire(process)


class _UnwatchedStdio(_StdioTransport):
    """A connection to a process by the pipes of the event loop, as on Windows."""

    @staticmethod
    def _can_watch(loop: asyncio.AbstractEventLoop) -> bool:
        return False


class _UnwatchedAddress:
    def __init__(self, address: Stdio) -> None:
        self._address = address

    def transport(self, policy: Policy) -> _UnwatchedStdio:
        return _UnwatchedStdio(self._address, policy)


class OverUnwatchedStdio:
    """Standard streams where the event loop cannot watch descriptors, as on Windows."""

    name = "stdio"
    is_cheap = False
    when = ALWAYS

    def address(self, variant: str) -> _UnwatchedAddress:
        return _UnwatchedAddress(Stdio([*WITHOUT_POSIX, *COMMAND[2:], variant], cwd=ROOT))

    async def wire(self, variant: str) -> ProcessWire:
        return await _process_wire([*WITHOUT_POSIX, *COMMAND[2:], variant])


class OwnServer(TappedTransport):
    """A connection over a socket to a server that listens for it alone, and ends with it."""

    def __init__(self, address: str, variant: str, policy: Policy) -> None:
        self._listening = servers.server(variant).listen(address)
        self._dialled_policy = policy
        super().__init__(self._listening.address.transport(policy), lambda *_: None)

    async def connect(self) -> None:
        await self._listening.__aenter__()
        # The port is known by now.
        self._inner = self._listening.address.transport(self._dialled_policy)
        try:
            await super().connect()
        except BaseException:
            await self._listening.close()
            raise

    async def close(self) -> None:
        await super().close()
        await self._listening.close()


class SocketAddress:
    """Where a server listens, for each connection anew."""

    def __init__(self, kind: OverSocket, variant: str) -> None:
        self._kind = kind
        self._variant = variant

    def transport(self, policy: Policy) -> OwnServer:
        return OwnServer(self._kind.place(), self._variant, policy)


class SocketWire:
    """A connection to a server in this process, by its socket and nothing else."""

    def __init__(self, app: Server, address: str) -> None:
        self.on_line: Callable[[bytes], object] = lambda line: None
        self._listening = app.listen(address)
        self._log = ServerLog()
        self._is_open = False

    async def open(self) -> None:
        await self._listening.__aenter__()
        address = self._listening.address
        if isinstance(address, Unix):
            streams = asyncio.open_unix_connection(str(address.path), limit=_LONGEST_LINE)
        else:
            streams = asyncio.open_connection(address.host, address.port, limit=_LONGEST_LINE)
        self._reader, self._writer = await streams
        self._is_open = True
        self._reading = asyncio.create_task(self._read_lines())

    async def _read_lines(self) -> None:
        async for line in self._reader:
            self.on_line(line.removesuffix(b"\n"))
        self._is_open = False

    def log(self) -> str:
        return self._log.text()

    def write(self, line: bytes) -> None:
        self._writer.write(line + b"\n")

    @property
    def is_open(self) -> bool:
        return self._is_open

    async def close(self) -> None:
        """End as a host does: say that nothing more comes, and wait for the other side's end."""
        if self._writer.can_write_eof() and self._is_open:
            self._writer.write_eof()
        try:
            await asyncio.wait_for(self._reading, HANGS)
        finally:
            self._writer.close()
            await self._listening.close()
            self._log.close()


class OverSocket:
    is_cheap = True
    when = ALWAYS

    def __init__(self, name: str) -> None:
        self.name = name
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def place(self) -> str:
        """Return an address that nobody has been given before."""
        if self.name == "tcp":
            return "tcp://127.0.0.1:0"
        if self._folder is None:
            # Short: the system has no room for long ones.
            self._folder = tempfile.TemporaryDirectory(prefix="rig-")
        self._count += 1
        return f"unix:{self._folder.name}/{self._count}"

    def address(self, variant: str) -> SocketAddress:
        return SocketAddress(self, variant)

    async def wire(self, variant: str) -> SocketWire:
        wire = SocketWire(servers.server(variant), self.place())
        await wire.open()
        return wire


TRANSPORTS: Final[dict[str, Kind]] = {
    "memory": InMemory(),
    "stdio": OverStdio(),
    UNWATCHED: OverUnwatchedStdio(),
    "tcp": OverSocket("tcp"),
    "unix": OverSocket("unix"),
    "http": OVER_HTTP,
    "asgi": OVER_ASGI,
    "old-sse": OVER_OLD_SSE,
    "websocket": OVER_WEBSOCKET,
}


# -- line by line ----------------------------------------------------------------------------


class Raw:
    """A connection on which a script writes what it likes, and waits for what comes."""

    def __init__(self, wire: Wire, record: Record, revision: str) -> None:
        self.wire = wire
        self.record = record
        self.revision = revision
        # What it declares: with every request, where each stands for itself.
        self.capabilities: dict[str, Any] = {}
        # What the server has sent and no script has begun after: replies, requests, all of it.
        self.received: list[Any] = []
        self._ids = 1000
        self._arrived = asyncio.Event()
        wire.on_line = self._on_line
        record.follow(wire)
        if hasattr(wire, "speaks"):
            wire.speaks = lambda: self.revision

    @property
    def is_new(self) -> bool:
        """Whether each request stands for itself."""
        return not HANDSHAKE.holds(self.revision)

    def _on_line(self, line: bytes) -> None:
        self.record.add("server", line)
        self.received.append(json.loads(line))
        self._arrived.set()

    def send(self, message: Any) -> None:
        """Send a message, or bytes or a text as they are."""
        if isinstance(message, str):
            message = message.encode()
        if not isinstance(message, bytes):
            message = json.dumps(message, ensure_ascii=False).encode()
        self.record.add("client", message)
        self.wire.write(message)

    # Requests

    def new_id(self) -> int:
        self._ids += 1
        return self._ids

    def meta(self, **more: Any) -> dict[str, Any]:
        """Return what `_meta` holds in this revision, with more of one's own."""
        if not self.is_new:
            return more
        return {
            f"{PREFIX}protocolVersion": self.revision,
            f"{PREFIX}clientCapabilities": self.capabilities,
            f"{PREFIX}clientInfo": INFO,
            **more,
        }

    def request(
        self, method: str, params: dict[str, Any] | None = None, *, id: Any = None, **meta: Any
    ) -> dict[str, Any]:
        """Return a request as this revision has it, without sending it."""
        keys = self.meta(**meta)
        params = {**(params or {}), "_meta": keys} if keys else params
        message = {"jsonrpc": "2.0", "id": self.new_id() if id is None else id, "method": method}
        return message if params is None else {**message, "params": params}

    def start(
        self, method: str, params: dict[str, Any] | None = None, *, id: Any = None, **meta: Any
    ) -> Any:
        """Send a request; return its id."""
        message = self.request(method, params, id=id, **meta)
        self.send(message)
        return message["id"]

    async def ask(
        self, method: str, params: dict[str, Any] | None = None, *, id: Any = None, **meta: Any
    ) -> dict[str, Any]:
        """Send a request; return the whole reply."""
        return await self.reply(self.start(method, params, id=id, **meta))

    async def result(
        self, method: str, params: dict[str, Any] | None = None, **meta: Any
    ) -> dict[str, Any]:
        """Send a request; return the result, and fail on an error."""
        reply = await self.ask(method, params, **meta)
        assert "result" in reply, reply
        found: dict[str, Any] = reply["result"]
        return found

    async def error(
        self, method: str, params: dict[str, Any] | None = None, **meta: Any
    ) -> dict[str, Any]:
        """Send a request; return the error, and fail on a result."""
        reply = await self.ask(method, params, **meta)
        assert "error" in reply, reply
        found: dict[str, Any] = reply["error"]
        return found

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return the result."""
        return await self.result("tools/call", {"name": tool, "arguments": arguments})

    async def text(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; return the JSON value, or the text, that is its first block."""
        result = await self.call(tool, **arguments)
        text = result["content"][0]["text"]
        try:
            return json.loads(text)
        except ValueError:
            return text

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        self.send(message if params is None else {**message, "params": params})

    # Waiting

    async def until(self, wanted: Callable[[Any], bool]) -> Any:
        """Return the first message that is wanted; fail when none comes."""
        try:
            async with asyncio.timeout(HANGS):
                while True:
                    for each in self.received:
                        if wanted(each):
                            return each
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            raise AssertionError(f"nothing of the kind among {self.received}") from None

    async def reply(self, id: Any) -> dict[str, Any]:
        """Return the reply to a request."""
        found: dict[str, Any] = await self.until(lambda each: is_reply(each, id))
        return found

    async def answer_without_id(self) -> dict[str, Any]:
        """Return an error that answers what had no readable id."""
        found: dict[str, Any] = await self.until(
            lambda each: isinstance(each, dict) and "error" in each and each.get("id") is None
        )
        return found

    async def server_request(self, method: str) -> dict[str, Any]:
        """Wait for a request of the server, and return it."""
        found: dict[str, Any] = await self.until(
            lambda each: isinstance(each, dict) and each.get("method") == method and "id" in each
        )
        return found

    async def wait_for_notifications(self, method: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait for `count` notifications of a method, and return their params in order."""
        await self.until(lambda _: len(self.notifications(method)) >= count)
        return self.notifications(method)

    def notifications(self, method: str) -> list[dict[str, Any]]:
        """Return the params of the notifications of a method received so far."""
        return [each.get("params", {}) for each in self.received if is_notice(each, method)]

    async def settle(self) -> list[Any]:
        """Return all that has come by the time that a further question is answered.

        What is answered at all is answered in order of arrival unless a handler takes its
        time, so what is not there now does not come.
        """
        ended = self.start("server/discover" if self.is_new else "ping")
        await self.reply(ended)
        return [each for each in self.received if not is_reply(each, ended)]

    async def logged(self, text: str) -> str:
        """Return the server's log once it has a text in it."""
        async with asyncio.timeout(HANGS):
            while text not in (log := self.wire.log()):
                await asyncio.sleep(0.01)
        return log

    # Opening

    def introduction(
        self, version: Any = None, capabilities: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        return {
            "protocolVersion": self.revision if version is None else version,
            "capabilities": self.capabilities if capabilities is None else capabilities,
            "clientInfo": INFO,
        }

    async def shake_hands(
        self, version: Any = None, capabilities: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Open a session; return the result of `initialize`."""
        message = {
            "jsonrpc": "2.0",
            "id": self.new_id(),
            "method": "initialize",
            "params": self.introduction(version, capabilities),
        }
        self.send(message)
        reply = await self.reply(message["id"])
        assert "result" in reply, reply
        self.notify("notifications/initialized")
        found: dict[str, Any] = reply["result"]
        return found


def is_reply(message: Any, id: Any) -> bool:
    return (
        isinstance(message, dict)
        and "method" not in message
        and type(message.get("id")) is type(id)
        and message.get("id") == id
    )


def is_notice(message: Any, method: str) -> bool:
    return isinstance(message, dict) and message.get("method") == method and "id" not in message


# -- as a client -----------------------------------------------------------------------------


class Tap:
    """An address whose connections are recorded."""

    def __init__(self, address: Any, record: Record) -> None:
        self._address = address
        self._record = record

    def transport(self, policy: Policy) -> TappedTransport:
        self._record.renew()
        inner = self._address.transport(policy)
        self._record.follow(inner)
        return TappedTransport(inner, self._hear)

    def _hear(self, sender: str, frame: Any) -> None:
        if isinstance(frame, bytes):
            self._record.add(sender, frame)


class ClientCallbacks:
    """Callbacks of a client: record what it receives, and answer requests of the server."""

    def __init__(self) -> None:
        self.logs: list[Any] = []
        self.changes: list[Any] = []
        self.updates: list[Any] = []
        self.others: list[Any] = []
        self.questions: list[Any] = []
        # What a form is filled in with.
        self.content: dict[str, Any] = {"answer": "yes"}
        self._arrived = asyncio.Event()

    def options(self) -> dict[str, Any]:
        """Return client options that register every callback."""
        return {
            "roots": lambda: ["file:///home/script"],
            "on_sample": self._sample,
            "on_elicit": self._elicit,
            "on_log": lambda *facts: self._add(self.logs, facts),
            "on_list_changed": lambda *facts: self._add(self.changes, facts),
            "on_resource_updated": lambda *facts: self._add(self.updates, facts),
            "on_notification": lambda *facts: self._add(self.others, facts),
        }

    def further_options(self, revision: str) -> dict[str, Any]:
        """Return client options for URL elicitation and sampling with tools."""
        if not Window(V2025_11_25).holds(revision):
            return {}
        return {"on_elicit_url": self._visit, "sampling_tools": True}

    def forget(self) -> None:
        """Clear the records, for another script."""
        for each in (self.logs, self.changes, self.updates, self.others, self.questions):
            each.clear()
        self.content = {"answer": "yes"}

    def _add(self, where: list[Any], facts: tuple[Any, ...]) -> None:
        where.append(facts[0] if len(facts) == 1 else facts)
        self._arrived.set()

    async def _sample(self, params: Any) -> CreateMessageResult:
        self._add(self.questions, (params,))
        return CreateMessageResult(TextContent("a sample"), "model-1", "assistant")

    async def _elicit(self, params: Any) -> dict[str, Any] | None:
        self._add(self.questions, (params,))
        return None if "secret" in params.message else self.content

    async def _visit(self, params: Any) -> bool:
        self._add(self.questions, (params,))
        return True

    async def until(self, so: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANGS):
            while not so():
                self._arrived.clear()
                await self._arrived.wait()


# -- what a script gets ----------------------------------------------------------------------


class Shared:
    """The connections that all scripts of one transport and revision share."""

    def __init__(self, transport: str, revision: str) -> None:
        self.kind = TRANSPORTS[transport]
        self.revision = revision
        self.raw: Raw | None = None
        self.client: Client | None = None
        self.callbacks = ClientCallbacks()
        # To other variants than the example, by name: connections that declare everything.
        self._lines: dict[str, Raw] = {}
        self._clients: dict[str, Standing] = {}

    async def open(self) -> None:
        """Open what is not open, or not open any more."""
        with servers.for_all_scripts():
            await asyncio.gather(self._open_raw(), self._open_client())

    async def _open_raw(self) -> None:
        if self.raw is None or not self.raw.wire.is_open:
            await _close(self.raw)
            self.raw = await open_raw(self.kind, self.revision)

    async def _open_client(self) -> None:
        if self.client is None or not self.client.is_connected:
            if self.client is not None:
                await self.client.close()
            self.client_record = Record(self.kind.name)
            address = Tap(self.kind.address("example"), self.client_record)
            self.client = Client(
                address, revision=self.revision, name="script", **self.callbacks.options()
            )
            await self.client.connect()

    async def line(self, variant: str) -> Raw:
        """Return the connection to a variant, which declares everything."""
        raw = self._lines.get(variant)
        if raw is None or not raw.wire.is_open:
            await _close(raw)
            options = {"capabilities": everything(self.revision)}
            with servers.for_all_scripts():
                raw = await open_raw(self.kind, self.revision, variant, **options)
            self._lines[variant] = raw
        raw.received.clear()
        return raw

    async def able_client(self, variant: str) -> Standing:
        """Return the client of a variant, which answers everything."""
        standing = self._clients.get(variant)
        if standing is None or not standing.client.is_connected:
            if standing is not None:
                await standing.client.close()
            callbacks, record = ClientCallbacks(), Record(self.kind.name)
            options = {**callbacks.options(), **callbacks.further_options(self.revision)}
            with servers.for_all_scripts():
                address = Tap(self.kind.address(variant), record)
                client = Client(address, revision=self.revision, name="script", **options)
                await client.connect()
            standing = self._clients[variant] = Standing(client, callbacks, record)
        standing.callbacks.forget()
        return standing

    async def close(self) -> None:
        for standing in self._clients.values():
            await standing.client.close()
        for raw in self._lines.values():
            await raw.wire.close()
        if self.client is not None:
            await self.client.close()
        if self.raw is not None:
            await self.raw.wire.close()


async def _close(raw: Raw | None) -> None:
    """Release what is left of a connection that the server has ended."""
    if raw is not None:
        await raw.wire.close()


class Standing(NamedTuple):
    """A client shared by scripts, its callbacks, and the record of its connection."""

    client: Client
    callbacks: ClientCallbacks
    record: Record


async def open_raw(
    kind: Kind, revision: str, variant: str = "example", *, opened: bool = True, **options: Any
) -> Raw:
    """Return a new connection, on which a session is open where the revision has sessions."""
    raw = Raw(await kind.wire(variant), Record(kind.name), revision)
    raw.capabilities = options.get("capabilities", {})
    if opened and not raw.is_new:
        await raw.shake_hands(**options)
        await raw.settle()
        raw.received.clear()
    return raw


class Rig:
    """What one script talks by."""

    def __init__(self, transport: str, shared: Shared, ruled: Ruled) -> None:
        assert shared.raw is not None
        assert shared.client is not None
        self.transport = transport
        self.revision = shared.revision
        self.raw = shared.raw
        self.client = shared.client
        self.callbacks = shared.callbacks
        self._kind = shared.kind
        self._ruled = ruled
        self._closers: list[Callable[[], Awaitable[None]]] = []
        servers.forget()
        # What is judged at the end: a record, from where on, and whose messages count.
        self._judged = [
            (self.raw.record, len(self.raw.record.findings), ("server",)),
            (shared.client_record, len(shared.client_record.findings), ("server", "client")),
        ]
        self.raw.received.clear()
        self.callbacks.forget()
        self._shared = shared

    @property
    def is_new(self) -> bool:
        """Whether each request stands for itself."""
        return not HANDSHAKE.holds(self.revision)

    def since(self, revision: str) -> bool:
        """Whether the spoken revision is this one, or a later one."""
        return Window(revision).holds(self.revision)

    async def line(
        self, variant: str = "example", *, opened: bool = True, judged: bool = True, **options: Any
    ) -> Raw:
        """Return a connection of one's own to a variant of the server."""
        raw = await open_raw(self._kind, self.revision, variant, opened=opened, **options)
        self._closers.append(raw.wire.close)
        if judged:
            self._judged.append((raw.record, 0, ("server",)))
        return raw

    async def able_line(self, variant: str) -> Raw:
        """Return a connection to a variant that declares everything, and outlives the script."""
        raw = await self._shared.line(variant)
        self._judged.append((raw.record, len(raw.record.findings), ("server",)))
        return raw

    async def able_client(self, variant: str) -> Standing:
        """Return a client of a variant that answers everything, and outlives the script."""
        standing = await self._shared.able_client(variant)
        record = standing.record
        self._judged.append((record, len(record.findings), ("server", "client")))
        return standing

    def record(self) -> Record:
        """Return a record of nothing yet."""
        return Record(self._kind.name)

    def address(self, variant: str, record: Record) -> Tap:
        """Return where a client connects to a variant of the server, on record."""
        return Tap(self._kind.address(variant), record)

    async def connect(
        self, variant: str = "example", *, judged: bool = True, **options: Any
    ) -> Client:
        """Return a client of one's own, connected to a variant of the server."""
        client, _ = await self.connect_recorded(variant, judged=judged, **options)
        return client

    async def connect_recorded(
        self, variant: str = "example", *, judged: bool = True, **options: Any
    ) -> tuple[Client, Record]:
        record = self.record()
        if judged:
            self._judged.append((record, 0, ("server", "client")))
        chosen = {"revision": self.revision, "name": "script", **options}
        client = Client(self.address(variant, record), **chosen)
        self._closers.append(client.close)
        await client.connect()
        return client, record

    async def neighbours(self, variant: str, revisions: list[str]) -> list[Client]:
        """Return clients of one and the same server, over a transport that can share one."""
        assert isinstance(self._kind, InMemory | OverHttp)
        address, close = await self._kind.shared_address(variant)
        self._closers.append(close)
        clients = [Client(Tap(address, self._judged_record()), revision=each) for each in revisions]
        for client in clients:
            self._closers.append(client.close)
            await client.connect()
        return clients

    def _judged_record(self) -> Record:
        record = self.record()
        self._judged.append((record, 0, ("server", "client")))
        return record

    async def finish(self) -> None:
        """Close what the script opened."""
        for close in reversed(self._closers):
            await close()
        servers.give_back()

    def judge(self) -> None:
        """Fail if anything can be held against a side, other than what was provoked."""
        for record, _, _ in self._judged:
            if record.failure is not None:
                raise record.failure
        found = [
            (sender, finding)
            for record, count, senders in self._judged
            for sender, finding in record.since(count)
            if sender in senders and finding.level == "error"
        ]
        allowed = self._ruled.provokes | self._ruled.may_provoke
        odd = [f"{who}: {each}" for who, each in found if each.rule not in allowed]
        assert not odd, "\n".join(odd)
        missing = self._ruled.provokes - {each.rule for _, each in found}
        assert not missing, f"the script says it provokes {missing}, and does not"


@asynccontextmanager
async def bounded(seconds: float = 2 * HANGS) -> AsyncIterator[None]:
    """Bound a script: whatever hangs, ends."""
    async with asyncio.timeout(seconds):
        yield
