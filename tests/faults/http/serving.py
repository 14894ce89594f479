"""A server on a loopback port in this process, and a client that writes HTTP byte by byte.

The server has an event loop in a thread of its own, so that a test is a plain script of sends and
receives. No wait is without an end, and no test asks how long something took.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pytest

import trunkline.transports.http.server.http_server as http_server
from tests.certificates import Authority
from tests.rigs.http_requests import Headers, request_head
from tests.rigs.messages import META, PER_REQUEST, initialize_params
from trunkline import Context, HttpLimits, HttpSettings, Server
from trunkline.auth import AuthSettings
from trunkline.server.runtime.http_listener import HttpListener
from trunkline.transports.addresses import Http, Tls
from trunkline.transports.http.endpoint.endpoint import McpEndpoint
from trunkline.transports.http.request import HttpRequest

T = TypeVar("T")

# Seconds after which a receive fails; far beyond what any needs, on a busy machine too.
WAIT: Final = 30.0
# Seconds between two looks of the server at its timeouts, in place of one second.
TICK: Final = 0.02

SESSION: Final = "2025-11-25"


class Journal:
    """What handlers have done, and gates that they wait at; of the server's thread."""

    def __init__(self) -> None:
        # What began, what returned and what was cancelled, each by its key.
        self.begun: list[str] = []
        self.done: list[str] = []
        self.cancelled: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}

    def gate(self, key: str) -> asyncio.Event:
        return self._gates.setdefault(key, asyncio.Event())


def make_app(**settings: Any) -> tuple[Server, Journal]:
    """Return a server with a few tools, and the journal that they write."""
    app, journal = Server("served", **settings), Journal()

    @app.tool
    async def echo(text: str) -> str:
        """Return the text."""
        journal.begun.append(text)
        return text

    @app.tool
    async def held(ctx: Context, key: str, says: int = 0) -> str:
        """Report progress some times, then wait until the gate opens."""
        journal.begun.append(key)
        try:
            for n in range(says):
                await ctx.progress(n + 1, message=key)
            await journal.gate(key).wait()
        except asyncio.CancelledError:
            journal.cancelled.append(key)
            raise
        journal.done.append(key)
        return f"held {key}"

    @app.tool
    async def chatter(ctx: Context, count: int, size: int) -> str:
        """Report progress with long messages, and wait for none of them to be read."""
        for n in range(count):
            ctx.progress(n + 1, message="x" * size)
            if n % 16 == 0:
                await asyncio.sleep(0)
        journal.done.append("chatter")
        return "chattered"

    @app.tool
    async def big(size: int) -> str:
        """Return a long text."""
        return "x" * size

    @app.tool
    async def whoami(ctx: Context) -> str:
        """Return the principal."""
        return "None" if ctx.principal is None else ctx.principal.subject

    @app.resource("note://{name}")
    async def note(name: str) -> str:
        """Return a note."""
        return f"note {name}"

    return app, journal


class Response(NamedTuple):
    """A response as it came."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    head: bytes = b""

    def header(self, name: str) -> str | None:
        """Return a header that occurs at most once."""
        found = [value for each, value in self.headers if each == name]
        assert len(found) <= 1, f"{name} is there {len(found)} times"
        return found[0] if found else None

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def timeless(self) -> bytes:
        """Head and body without the date."""
        return b"\r\n".join(
            each for each in self.head.split(b"\r\n") if not each.startswith(b"date: ")
        ) + (self.body)


class Closed(Exception):
    """The server has closed the connection; the argument is what came before."""


class Wire:
    """One connection of a client."""

    def __init__(self, port: int, *, buffer: int | None = None, source: str = "127.0.0.1") -> None:
        self.port = port
        self.sock = socket.socket()
        if buffer is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.settimeout(WAIT)
        self.sock.bind((source, 0))
        self.sock.connect(("127.0.0.1", port))
        self.received = b""
        self._chunked = False
        # Of a body of known length that is read as a stream, the bytes that are left.
        self._left: int | None = None
        # Of an event stream, what was not returned yet.
        self._stream = b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def close(self) -> None:
        self.sock.close()

    def start_tls(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self.sock = context.wrap_socket(self.sock, server_hostname="127.0.0.1")

    # -- sending -----------------------------------------------------------------------------

    def send(self, data: bytes, *, at_a_time: int | None = None) -> None:
        """Send bytes; `at_a_time` gives each part a segment of its own."""
        if at_a_time is None:
            self.sock.sendall(data)
            return
        for start in range(0, len(data), at_a_time):
            self.sock.sendall(data[start : start + at_a_time])

    def try_send(self, data: bytes) -> bool:
        """Send bytes that the server may not take any more; return False if so."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def head(self, method: str, target: str, headers: Headers = (), version: str = "1.1") -> bytes:
        given = list(headers)
        if not any(name.lower() == "host" for name, _ in given):
            given.insert(0, ("Host", f"127.0.0.1:{self.port}"))
        return request_head(method, target, given, version)

    def post(self, message: Any, headers: Headers = (), target: str = "/mcp") -> bytes:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        given = [("Content-Type", "application/json"), *headers]
        names = {name.lower() for name, _ in given[1:]}
        if "content-type" in names:
            del given[0]
        if "accept" not in names:
            given.append(("Accept", "application/json, text/event-stream"))
        if not names & {"content-length", "transfer-encoding"}:
            given.append(("Content-Length", str(len(body))))
        return self.head("POST", target, given) + body

    def ask(self, data: bytes, *, is_head: bool = False) -> Response:
        """Send a request and return its response."""
        self.send(data)
        return self.response(is_head=is_head)

    # -- receiving ---------------------------------------------------------------------------

    def _more(self) -> None:
        try:
            data = self.sock.recv(262_144)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(self.received)
        self.received += data

    def until(self, mark: bytes) -> bytes:
        """Return what comes before a mark, which is dropped."""
        while mark not in self.received:
            self._more()
        found, _, self.received = self.received.partition(mark)
        return found

    def exactly(self, size: int) -> bytes:
        while len(self.received) < size:
            self._more()
        found, self.received = self.received[:size], self.received[size:]
        return found

    def start(self) -> Response:
        """Return status and headers of a response, without its body."""
        while True:
            head = self.until(b"\r\n\r\n")
            line, *lines = head.decode("latin-1").split("\r\n")
            version, status, _ = line.split(" ", 2)
            assert version == "HTTP/1.1", line
            if int(status) != 100:
                break
        headers = [(name.lower(), value) for name, _, value in (e.partition(": ") for e in lines)]
        response = Response(int(status), headers, b"", head)
        self._chunked = response.header("transfer-encoding") == "chunked"
        length = response.header("content-length")
        self._left = None if length is None else int(length)
        return response

    def response(self, *, is_head: bool = False) -> Response:
        """Return a whole response."""
        response = self.start()
        if self._chunked:
            body = b""
            while chunk := self._chunk():
                body += chunk
        elif is_head or response.status in (204, 304):
            body = b""
        elif (length := response.header("content-length")) is not None:
            body = self.exactly(int(length))
        else:
            body = self.rest()
        return response._replace(body=body)

    def _chunk(self) -> bytes:
        size = int(self.until(b"\r\n"), 16)
        data = self.exactly(size)
        assert self.exactly(2) == b"\r\n"
        return data

    def event(self) -> dict[str, str] | None:
        """Return the next event of a stream, comments aside; None at its end."""
        while True:
            while b"\n\n" not in self._stream:
                chunk = self._part()
                if not chunk:
                    assert not self._stream, self._stream
                    return None
                self._stream += chunk
            block, _, self._stream = self._stream.partition(b"\n\n")
            fields = [line.partition(":") for line in block.decode().split("\n")]
            found = {name: value.removeprefix(" ") for name, _, value in fields if name}
            if found:
                return found

    def _part(self) -> bytes:
        """Return a part of a stream; nothing at its end."""
        if self._chunked:
            return self._chunk()
        if self._left is None:
            return self.until(b"\n\n") + b"\n\n"
        size, self._left = self._left, 0
        return self.exactly(size)

    def message(self) -> Any:
        """Return the message in the next event that has one."""
        while (event := self.event()) is not None:
            if event.get("data"):
                return json.loads(event["data"])
        return None

    def everything(self) -> bytes:
        """Return what is left of an event stream, until its end."""
        found = self._stream
        while chunk := self._part():
            found += chunk
        return found

    def rest(self) -> bytes:
        """Return everything until the server closes the connection."""
        while True:
            try:
                self._more()
            except Closed:
                found, self.received = self.received, b""
                return found

    @property
    def is_closed(self) -> bool:
        """Wait until the server closes the connection; False if it sends something before."""
        return self.rest() == b""


class Session:
    """A client that has sent `initialize`; each request may be on a connection of its own."""

    def __init__(
        self, served: Served | Caller, headers: Headers = (), revision: str = SESSION, **params: Any
    ) -> None:
        self.served = served
        self.extra = list(headers)
        self.revision = revision
        params = initialize_params(revision) | params
        with served.connect() as wire:
            answer = wire.ask(wire.post(call("initialize", 0, **params), self.extra))
            assert answer.status == 200, answer
            id = answer.header("mcp-session-id")
            assert id is not None
            self.id = id
            assert answer.json["result"]["protocolVersion"] == revision
            told = wire.ask(wire.post(notification("notifications/initialized"), self.headers))
            assert (told.status, told.body) == (202, b""), told

    @property
    def headers(self) -> list[tuple[str, str]]:
        version = [] if self.revision < "2025-06-18" else [("MCP-Protocol-Version", self.revision)]
        return [*self.extra, ("Mcp-Session-Id", self.id), *version]

    def post(self, wire: Wire, message: Any, headers: Headers = ()) -> bytes:
        return wire.post(message, [*self.headers, *headers])

    def ask(self, message: Any, headers: Headers = ()) -> Response:
        with self.served.connect() as wire:
            return wire.ask(self.post(wire, message, headers))

    def call(self, name: str, id: Any = 1, **arguments: Any) -> Response:
        return self.ask(call("tools/call", id, name=name, arguments=arguments))

    def get(self, wire: Wire, headers: Headers = ()) -> bytes:
        given = [*self.headers, ("Accept", "text/event-stream"), *headers]
        return wire.head("GET", "/mcp", given)

    def resume(self, last: str, headers: Headers = ()) -> Wire:
        """Return a connection that resumes a stream; the response is not read."""
        wire = self.served.connect()
        wire.send(self.get(wire, [("Last-Event-ID", last), *headers]))
        return wire


class Caller:
    """A client of a server, told from others by its address, or by its principal."""

    def __init__(self, served: Served, source: str = "127.0.0.1", name: str | None = None) -> None:
        self.served = served
        self.source = source
        self.headers = [] if name is None else user(name)

    def connect(self, **options: Any) -> Wire:
        return self.served.connect(source=self.source, **options)

    def session(self, revision: str = SESSION) -> Session:
        return Session(self, self.headers, revision)

    def single(self, wire: Wire, tool: str, **arguments: Any) -> bytes:
        return single(wire, tool, headers=self.headers, **arguments)


class Served:
    """A running server."""

    def __init__(self, listener: HttpListener, loop: asyncio.AbstractEventLoop) -> None:
        self.listener = listener
        self.loop = loop
        self.port = listener.address.port
        self.stop = threading.Event()
        self.journal = Journal()

    @property
    def http(self) -> http_server.HttpServer:
        http = self.listener._http
        assert http is not None
        return http

    @property
    def endpoint(self) -> McpEndpoint:
        endpoint = self.listener._endpoint
        assert endpoint is not None
        return endpoint

    def connect(self, **options: Any) -> Wire:
        return Wire(self.port, **options)

    def ask(self, data: bytes) -> Response:
        with self.connect() as wire:
            return wire.ask(data)

    def on_loop(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function in the thread of the server."""

        async def called() -> T:
            return function(*args)

        return asyncio.run_coroutine_threadsafe(called(), self.loop).result(WAIT)

    def open_gate(self, key: str) -> None:
        self.on_loop(self.journal.gate(key).set)

    def until(self, is_so: Callable[[], object], otherwise: str = "it did not happen") -> None:
        """Wait until something is so in the thread of the server; fail if it does not happen."""
        pause, deadline = threading.Event(), self.loop.time() + WAIT
        while not self.on_loop(is_so):
            assert self.loop.time() < deadline, otherwise
            pause.wait(0.005)

    @property
    def is_healthy(self) -> bool:
        """Whether a new client is served."""
        with self.connect() as wire:
            return wire.ask(single(wire, "echo", text="healthy")).status == 200


@contextmanager
def serving(
    app: Server | None = None,
    journal: Journal | None = None,
    *,
    http: HttpSettings | None = None,
    limits: HttpLimits | None = None,
    auth: Any = None,
    path: str = "/mcp",
    tick: float = TICK,
    tls: bool | Tls = False,
) -> Iterator[Served]:
    """Serve on a free port until the block ends."""
    if app is None:
        app, journal = make_app()
    started: list[Served] = []
    is_up, failed = threading.Event(), []

    async def serve() -> None:
        address = Http("127.0.0.1", 0, path, tls=tls)
        async with app.listen(address, http=http, limits=limits, auth=auth) as listener:
            served = Served(listener, asyncio.get_running_loop())
            served.journal = journal or Journal()
            started.append(served)
            is_up.set()
            await listener.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001  # raised in the thread of the test
            failed.append(error)
        is_up.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_server, "_TICK_S", tick)
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        assert is_up.wait(WAIT)
        if failed:
            raise failed[0]
        served = started[0]
        try:
            yield served
        finally:
            if thread.is_alive():
                served.listener.stop(at_once=True)
            thread.join(WAIT)
            assert not thread.is_alive(), "the server does not end"
            if failed:
                raise failed[0]


def certified(folder: Path) -> tuple[Tls, ssl.SSLContext]:
    """Return the TLS of a server, and a context of clients that trust it."""
    authority = Authority(folder)
    cert, key = authority.certificate("server", "127.0.0.1")
    return Tls(cert=cert, key=key), ssl.create_default_context(cafile=authority.ca)


# -- messages --------------------------------------------------------------------------------


def call(method: str, id: Any = 1, /, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def notification(method: str, /, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def single_headers(method: str, name: str | None = None) -> list[tuple[str, str]]:
    found = [("MCP-Protocol-Version", PER_REQUEST), ("Mcp-Method", method)]
    return found if name is None else [*found, ("Mcp-Name", name)]


def single(
    wire: Wire, tool: str, id: Any = 1, headers: Headers = (), token: Any = None, **arguments: Any
) -> bytes:
    """Return a call that stands by itself."""
    meta = META if token is None else META | {"progressToken": token}
    message = call("tools/call", id, name=tool, arguments=arguments, _meta=meta)
    return wire.post(message, [*single_headers("tools/call", tool), *headers])


def by_header(request: HttpRequest) -> str | None:
    """Return the principal of a request: whatever its header says."""
    given = request.header(b"x-user")
    if given == b"nobody":
        raise PermissionError
    return None if given is None else given.decode("latin-1")


BY_HEADER = AuthSettings(verifiers=[by_header], required=False)


def user(name: str) -> list[tuple[str, str]]:
    return [("X-User", name)]


def text_of(answer: Any) -> str:
    """Return the text of the result of a tool."""
    found: str = answer["result"]["content"][0]["text"]
    return found
