"""Any bytes to an HTTP connection: only well-formed responses, one per request, nothing is left.

A run is one connection to a real HTTP server, without a socket. The first bytes of the input select
how the bytes are cut and how the connection ends. Then there are bytes that are sent as they are,
or choices of a grammar of requests in both eras, some of them damaged on the way. A reader of HTTP
that shares no code with the server decides what the responses are.

* Each response belongs to one request, in order, and has no text of another one.
* Requests that are as they should be are answered as they should be.
* A response that says `connection: close` is the last, and the connection ends.
* What a connection keeps is bounded, whatever is sent.
* Nothing is raised into the event loop, logged as an error or left running.

Run `python -m tests.fuzz.fuzz_http -max_total_time=20 tests/fuzz/corpus/http`; it needs atheris.
Without it, `check` can be called on any input.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from tests.fuzz.engine import fuzz
from tests.fuzz.script import Choices, logged
from tests.rigs.http_responses import Response, read_responses
from tests.rigs.messages import META, initialize_params
from trunkline import Context, HttpLimits, HttpSettings, Server, ServerLimits, ToolError
from trunkline.engine.log_limit import LogLimit
from trunkline.jsonrpc import Limits, Policy
from trunkline.server.runtime.http_service import HttpService
from trunkline.spec.revisions import LATEST
from trunkline.transports.http.endpoint.routes import Routes
from trunkline.transports.http.gate.admission import Admission
from trunkline.transports.http.request import HttpRequest
from trunkline.transports.http.server.connection import HttpServerConnection
from trunkline.transports.http.server.http_server import HttpServer
from trunkline.transports.http.server.request_reader import RequestReader
from trunkline.transports.http.server.response_writer import ResponseWriter

MESSAGE_BYTES: Final = 4096
LIMITS: Final = HttpLimits(
    header_count=20, header_bytes=3000, header_line_bytes=600, replay_events=20, sessions=50
)
# Requests that a connection keeps while another is served, before it stops reading.
PIPELINED: Final = 16
PATIENCE: Final = 10.0
SESSION: Final = b"@SESSION@"
REVISION: Final = "2025-11-25"
# In every text of a request; the letter is for body, header and query.
CANARY: Final = re.compile(rb"([bhq])([0-9]+)-7f3a")


# -- the server ------------------------------------------------------------------------------


class FuzzedHttpServer:
    """A server and its event loop. All runs share one: it takes longer to make than a run."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        atexit.register(self.runner.close)
        self.faults: list[dict[str, Any]] = []
        self.runner.get_loop().set_exception_handler(lambda _, each: self.faults.append(each))
        self.released = asyncio.Event()
        policy = Policy().replace(limits=Limits(http=MESSAGE_BYTES))
        # Handlers of a session that has ended are not waited for.
        limits = ServerLimits(linger=0.001)
        self.app = app = Server("fuzz", policy=policy, limits=limits)

        @app.tool
        async def echo(text: str) -> str:
            return text

        @app.tool(inline=True)
        def inline(text: str) -> str:
            return text

        @app.tool
        async def hold(text: str) -> str:
            await self.released.wait()
            return text

        @app.tool
        async def fails(text: str) -> str:
            raise ToolError(text)

        @app.tool
        async def asks(ctx: Context, text: str) -> str:
            answer = await ctx.elicit("name?", str, key="name")
            return f"{answer} {text}"

        @app.tool
        async def reports(ctx: Context, text: str) -> str:
            await ctx.progress(1, 2, "half")
            await self.released.wait()
            await ctx.log("info", "half")
            return text

        @app.tool
        async def polls(ctx: Context, text: str) -> str:
            ctx.close_stream()
            await self.released.wait()
            return text

        self.runner.run(self._open())

    async def _open(self) -> None:
        core, loop = self.app._core, asyncio.get_running_loop()
        self._lifespan = core.runtime.opened()
        await self._lifespan.__aenter__()
        settings = HttpSettings()
        admission = Admission(settings, [("127.0.0.1", 8000)])
        self.service = HttpService(core, LIMITS, LogLimit(loop, is_shared=True))
        routes = Routes(admission, settings, loop.time)
        routes.add_probes()
        self.endpoint = self.service.add_routes(routes, settings, "/mcp")
        self.http = HttpServer(routes, LIMITS, MESSAGE_BYTES)
        # What a run shows does not depend on how busy the machine is.
        assert self.http._timer is not None
        self.http._timer.cancel()


@cache
def scene() -> FuzzedHttpServer:
    """The one that all runs share."""
    return FuzzedHttpServer()


class Reader(RequestReader):
    """Notes the methods of the requests, as the parser sees them."""

    def __init__(self, server: HttpServer, protocol: Protocol) -> None:
        super().__init__(server, protocol)
        self.methods = protocol.methods

    def on_message_begin(self) -> None:
        self.methods.append("")
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.methods[-1] = self._parser.get_method().decode()
        super().on_headers_complete()


class Writer(ResponseWriter):
    """Notes the methods of requests that the parser has not seen."""

    def __init__(self, server: HttpServer, protocol: Protocol) -> None:
        super().__init__(server, protocol)
        self.protocol = protocol
        self.begun = 0

    def begin(self, request: HttpRequest, keeps_alive: bool) -> None:
        self.begun += 1
        if self.begun > len(self.protocol.methods):
            self.protocol.methods.append(request.method)
            self.protocol.known += request.method == "POST"
        super().begin(request, keeps_alive)


class Protocol(HttpServerConnection):
    """Has the methods of the requests on it."""

    def __init__(self, server: HttpServer) -> None:
        super().__init__(server)
        self.methods: list[str] = []
        # Requests whose head was not parsed again.
        self.known = 0
        self.reader = Reader(server, self)
        self.writer = Writer(server, self)


class Transport:
    """What asyncio would give to the protocol; keeps what is written."""

    def __init__(self, protocol: Protocol, loop: asyncio.AbstractEventLoop) -> None:
        self.written: list[bytes] = []
        self.is_reading = True
        self.has_ended = False
        self.is_closed = False
        self.unread = 0
        # The client has reset the connection, which the server does not know yet.
        self.is_reset = False
        self._protocol = protocol
        self._loop = loop

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 40000) if name == "peername" else None

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.unread

    def write(self, data: bytes) -> None:
        assert data, "an empty write"
        assert not self.has_ended, f"written after the end: {data!r}"
        if not self.is_closed:
            self.written.append(bytes(data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if self.is_reset:
            raise OSError("Transport endpoint is not connected")
        self.has_ended = True

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close


class FuzzedConnection:
    """One connection."""

    def __init__(self, http: HttpServer) -> None:
        self.protocol = Protocol(http)
        self.transport = Transport(self.protocol, http.loop)
        self.fed = b""
        self.protocol.connection_made(self.transport)

    async def feed(self, data: bytes, turns: int = 0) -> bool:
        """Deliver bytes as reads into the server's buffer; return False if it does not take all."""
        while data:
            for _ in range(20):
                if self.transport.is_reading:
                    break
                await asyncio.sleep(0)
            if self.transport.is_closed or not self.transport.is_reading:
                return False
            buffer = self.protocol.get_buffer(-1)
            read, data = data[: len(buffer)], data[len(buffer) :]
            self.fed += read
            buffer[: len(read)] = read
            self.protocol.buffer_updated(len(read))
            self._check_memory(len(read))
            for _ in range(turns):
                await asyncio.sleep(0)
        return True

    def _check_memory(self, size: int) -> None:
        one = LIMITS.header_bytes + MESSAGE_BYTES
        protocol, reader = self.protocol, self.protocol.reader
        kept = len(reader._target) + sum(len(a) + len(b) for a, b in reader._headers)
        kept += len(reader._body or b"") if reader._pieces is None else reader._pieces.size
        assert kept <= one + size, f"{kept} bytes of one request are kept"
        waiting = 0
        for request, payload, _ in protocol._queue:
            waiting += sum(len(a) + len(b) for a, b in request.headers)
            waiting += len(payload) if type(payload) is bytes else 0
        assert waiting <= PIPELINED * one + size, f"{waiting} bytes wait"

    def responses(self) -> list[Response]:
        is_over = self.transport.is_closed or self.transport.has_ended
        stream = b"".join(self.transport.written)
        return read_responses(stream, self.protocol.methods, is_over)

    async def lose(self) -> None:
        """End the connection from the client's side."""
        if not self.transport.is_closed:
            self.transport.close()
        await asyncio.sleep(0)


# -- the requests ----------------------------------------------------------------------------


class Sent(NamedTuple):
    """A request, and what comes of it: the status, and whether its canary is in the response."""

    data: bytes
    is_intact: bool = True
    method: str = "POST"
    status: int = 200
    echoes: bool = False
    closes: bool = False
    # It may be answered later, or not at all, and what follows it waits.
    is_stream: bool = False


TOOLS: Final = ("echo", "inline", "hold", "fails", "reports", "polls", "asks", "missing")
# What damages a request; none has a canary.
FRAGMENTS: Final = (
    b"",
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b":",
    b"\0",
    b"\xff",
    b"\r\n\r\n",
    b"0\r\n\r\n",
    b"5\r\nhello\r\n",
    b"5;a=b\r\nhello\r\n",
    b"ffffffffffffffff1\r\n",
    b"\r\n folded",
    b"\r\nX-A: b",
    b"\r\nContent-Length: 5",
    b"\r\nContent-Length: 0",
    b"\r\nContent-Length: +5",
    b"\r\nContent-Length: 5, 5",
    b"\r\nContent-Length: 99999",
    b"\r\nContent-Length: 99999999999999999999",
    b"\r\nTransfer-Encoding: chunked",
    b"\r\nTransfer-Encoding: gzip, chunked",
    b"\r\nTransfer-Encoding : chunked",
    b"\r\nTransfer-Encoding: xchunked",
    b"\r\nConnection: close",
    b"\r\nConnection: upgrade\r\nUpgrade: websocket",
    b"\r\nExpect: 100-continue",
    b"\r\nExpect: magic",
    b"\r\nHost: evil.example",
    b"\r\nOrigin: http://evil.example",
    b"\r\nAccept: text/html",
    b"\r\nContent-Type: text/plain",
    b"\r\nMcp-Session-Id: x",
    b"\r\nMCP-Protocol-Version: 1999-01-01",
    b"\r\nLast-Event-ID: 1-0",
    b"HEAD /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n\r\n",
    b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"HTTP/1.0",
    b"HTTP/0.9",
    b"HTTP/2.0",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"\r\nX-Long: " + b"x" * 700,
    b"\r\nX-A: b" * 25,
    b"x" * 5000,
)


def body_of(method: str, params: dict[str, Any], id: Any = None) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    message |= {} if id is None else {"id": id}
    return json.dumps(message).encode()


def posted(choices: Choices, number: int) -> tuple[dict[str, str], bytes, Sent]:
    """A message in one of the eras: its headers, its body, and what comes of it."""
    is_session = choices.number(2) == 0
    kind = choices.number(12)
    text = f"b{number}-7f3a"
    headers = {"Content-Type": "application/json"}
    accept = choices.of((None, "application/json, text/event-stream", "text/event-stream", "*/*"))
    if accept is not None:
        headers["Accept"] = accept
    method, params, sent = "tools/list", dict[str, Any](), Sent(b"")
    if kind < 8:
        tool = TOOLS[kind]
        method, params = "tools/call", {"name": tool, "arguments": {"text": text}}
        is_lost = is_session and tool == "polls"  # the answer is for a GET
        is_stream = tool == "asks"
        sent = Sent(
            b"", echoes=not is_lost and tool not in ("asks", "missing"), is_stream=is_stream
        )
        headers["Mcp-Name"] = tool
    elif kind == 8:
        method = "notifications/initialized"
        sent = Sent(b"", status=202)
    elif kind == 9:
        method, sent = "no/such", Sent(b"", status=200 if is_session else 404)
    elif kind == 10 and is_session:
        method = "initialize"
        params = initialize_params(REVISION)
    elif kind == 11:
        params = {"cursor": "x" * MESSAGE_BYTES}
        sent = Sent(b"", status=413, closes=True)
    if is_session:
        headers["MCP-Protocol-Version"] = REVISION
        if method != "initialize":
            headers["Mcp-Session-Id"] = SESSION.decode()
    else:
        headers |= {"MCP-Protocol-Version": LATEST, "Mcp-Method": method}
        params["_meta"] = META
    id = None if kind == 8 else choices.of((number, f"id-{number}"))
    return headers, body_of(method, params, id), sent


PLAIN: Final = (
    ("GET", "/healthz", 200),
    ("HEAD", "/healthz", 200),
    ("GET", "/readyz", 200),
    ("POST", "/healthz", 405),
    ("GET", "/nowhere", 404),
    ("HEAD", "/nowhere", 404),
    ("OPTIONS", "/mcp", 405),
    ("HEAD", "/mcp", 405),
    ("PUT", "/mcp", 405),
    ("GET", "/mcp", 400),
    ("DELETE", "/mcp", 400),
)


def request(choices: Choices, number: int) -> Sent:
    """A request that is as it should be."""
    kind = choices.number(8)
    if kind < 5:
        headers, body, sent = posted(choices, number)
        return written("POST", "/mcp", headers, body, sent, choices, number)
    if kind < 7:
        method, path, status = choices.of(PLAIN)
        sent = Sent(b"", method=method, status=status)
        return written(method, path, {}, None, sent, choices, number)
    headers = {"Mcp-Session-Id": SESSION.decode(), "Accept": "text/event-stream"}
    if choices.number(2):
        headers["Last-Event-ID"] = choices.of(("1-0", "1-1", "2-0", "9-9", "x"))
        sent = Sent(b"", method="GET", is_stream=True)
    else:
        sent = Sent(b"", method="GET", is_stream=True)
    return written("GET", "/mcp", headers, None, sent, choices, number)


def written(
    method: str,
    path: str,
    headers: dict[str, str],
    body: bytes | None,
    sent: Sent,
    choices: Choices,
    number: int,
) -> Sent:
    """A request in bytes: by length or in chunks, of HTTP/1.1 or 1.0, to be closed or not."""
    form = choices.number(8)
    version = "1.0" if form == 7 else "1.1"
    closes = form == 7 or form == 6
    if choices.number(2):  # a head that may be repeated
        lines = [f"{method} {path} HTTP/{version}", "Host: localhost"]
    else:
        lines = [f"{method} {path}?q{number}-7f3a HTTP/{version}", "Host: localhost"]
        lines.append(f"X-Canary: h{number}-7f3a")
    lines += [f"{a}: {b}" for a, b in headers.items()]
    if form == 6:
        lines.append("Connection: close")
    if body is not None and form in (3, 4, 5):
        lines.append("Transfer-Encoding: chunked")
        body = chunked(body, (1000, 7, 3000)[form - 3], has_trailer=form == 4)
    elif body is not None:
        lines.append(f"Content-Length: {len(body)}")
    if form == 2:
        lines.append("Expect: 100-continue")
    data = "\r\n".join((*lines, "", "")).encode() + (body or b"")
    return sent._replace(data=data, closes=sent.closes or closes)


def chunked(body: bytes, size: int, *, has_trailer: bool) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    trailer = b"X-Trailer: h0-7f3a\r\nHost: evil.example\r\n" if has_trailer else b""
    return b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in parts) + (
        b"0\r\n%b\r\n" % trailer
    )


def damaged(choices: Choices, number: int) -> Sent:
    data = request(choices, number).data
    for _ in range(1 + choices.number(3)):
        at = (choices.number(256) * 256 + choices.number(256)) % (len(data) + 1)
        if choices.number(2):  # at a line, where more happens
            at = data.rfind(b"\r\n", 0, at + 1) if b"\r\n" in data[: at + 1] else at
        put = choices.of(FRAGMENTS)
        end = at + choices.number(9) if choices.number(4) == 3 else at
        data = data[:at] + put if choices.number(16) == 15 else data[:at] + put + data[end:]
    return Sent(data, is_intact=False)


def raw(choices: Choices, _number: int) -> Sent:
    return Sent(choices.take(choices.number(256)), is_intact=False)


def requests_of(choices: Choices) -> Iterator[Sent]:
    """Yield the requests of a script."""
    makers: tuple[Callable[[Choices, int], Sent], ...] = (request, request, damaged, damaged, raw)
    number = 0
    while choices.is_left and number < 40:
        number += 1
        yield choices.of(makers)(choices, number)


def pieces_of(sent: list[Sent], how: int) -> Iterator[bytes]:
    """Cut bytes into reads, or have one read for each request."""
    data = b"".join(each.data for each in sent)
    if how % 8 == 7:
        yield from (each.data for each in sent if each.data)
        return
    step = (len(data), 1, 2, 7, 61, 500, 3000)[how % 8] or 1
    if len(data) > 2000:
        step = max(step, len(data) // 500)
    for at in range(0, len(data), step):
        yield data[at : at + step]


# -- a run -----------------------------------------------------------------------------------


def check(data: bytes) -> None:
    """Hold the invariant for one script."""
    choices = Choices(data)
    cut, turns, ending = choices.number(256), choices.number(4), choices.number(256)
    is_raw = bool(ending & 128)
    sent = [Sent(choices.rest(), False)] if is_raw else list(requests_of(choices))
    stage = scene()
    with logged("trunkline", "trunkline.http", "trunkline.server", "asyncio") as lines:
        stage.runner.run(converse(stage, sent, cut, turns, ending))
    assert stage.faults == [], stage.faults
    assert [line for line in lines if " ERROR " in line or " CRITICAL " in line] == []


async def converse(
    stage: FuzzedHttpServer, sent: list[Sent], cut: int, turns: int, ending: int
) -> None:
    alone = asyncio.all_tasks()
    stage.released = asyncio.Event()
    try:
        session = await opened(stage) if any(SESSION in each.data for each in sent) else b""
        sent = [each._replace(data=each.data.replace(SESSION, session)) for each in sent]
        wire = await exchange(stage, sent, cut, turns, ending)
        check_responses(wire, sent)
    finally:
        # The next run has the same server.
        await ended(stage, alone)


async def opened(stage: FuzzedHttpServer) -> bytes:
    """Open a session; return its id."""
    wire = FuzzedConnection(stage.http)
    params = initialize_params(REVISION, {"elicitation": {}})
    await wire.feed(plain(body_of("initialize", params, 0)))
    (response,) = await received(wire, 1)
    id = response.headers[b"mcp-session-id"]
    await wire.feed(plain(body_of("notifications/initialized", {}), b"Mcp-Session-Id: %b\r\n" % id))
    await received(wire, 2)
    await wire.lose()
    return id


def plain(body: bytes, headers: bytes = b"") -> bytes:
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def received(wire: FuzzedConnection, count: int) -> list[Response]:
    async with asyncio.timeout(PATIENCE):
        while len(found := wire.responses()) < count:
            await asyncio.sleep(0)
    return found


async def exchange(
    stage: FuzzedHttpServer, sent: list[Sent], cut: int, turns: int, ending: int = 0
) -> FuzzedConnection:
    """Send requests over one connection, and wait for the responses."""
    wire = FuzzedConnection(stage.http)
    wire.transport.is_reset = bool(cut & 128)
    for count, piece in enumerate(pieces_of(sent, cut)):
        if ending & 64 and count == ending % 64:
            stage.released.set()
        if not await wire.feed(piece, turns):
            break
    stage.released.set()
    await settled(stage, wire, sent)
    act_at_the_end(stage, wire, ending)
    await settled(stage, wire, sent)
    return wire


async def settled(stage: FuzzedHttpServer, wire: FuzzedConnection, sent: list[Sent]) -> None:
    """Wait until what is owed was sent, and whatever else would be."""
    owed = len(owed_of(sent))
    async with asyncio.timeout(PATIENCE):
        while owed and not wire.transport.is_closed and wire.fed:
            whole = [each for each in wire.responses() if each.is_whole]
            if len(whole) >= owed or len(wire.fed) < sum(len(each.data) for each in sent):
                break
            await asyncio.sleep(0)
    for _ in range(12):
        await asyncio.sleep(0)


def act_at_the_end(stage: FuzzedHttpServer, wire: FuzzedConnection, ending: int) -> None:
    """Let time pass, or end the input, as the script chooses."""
    seconds = (0, 1, 11, 16, 31, 61, 76, 0)[ending % 8]
    if not wire.transport.is_closed:
        if ending & 32:
            wire.transport.unread = 100_000
            wire.protocol.pause_writing()
        if seconds:
            wire.protocol.tick(stage.http.loop.time() + seconds)
            wire.protocol.tick(stage.http.loop.time() + 2 * seconds)
        if ending & 16 and not wire.transport.is_closed:
            wire.protocol.resume_writing()
        if ending & 8 and not wire.transport.is_closed and not wire.protocol.eof_received():
            wire.transport.close()


async def ended(stage: FuzzedHttpServer, alone: set[asyncio.Task[Any]]) -> None:
    """End all connections and sessions, and hold that nothing is left."""
    stage.released.set()
    for protocol in list(stage.http.connections):
        protocol.abort()
    for session in stage.endpoint.sessions:
        stage.endpoint.sessions.discard(session)
        session.on_end()
    core = stage.app._core
    async with asyncio.timeout(PATIENCE):
        while not asyncio.all_tasks() <= alone or core.runtime.in_flight or stage.service._ending:
            await asyncio.sleep(0)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not stage.http.connections
    assert not stage.http.idle
    assert not core.runtime.connections, core.runtime.connections
    assert not core.runtime.budget.used, core.runtime.budget.used
    assert not len(core.runtime.accounts), list(core.runtime.accounts)


def owed_of(sent: list[Sent]) -> list[Sent]:
    """The requests that are certainly answered: none before them is anything else."""
    owed: list[Sent] = []
    for each in sent:
        if not each.is_intact or each.is_stream:
            break
        owed.append(each)
        if each.closes:
            break
    return owed


def check_responses(wire: FuzzedConnection, sent: list[Sent]) -> None:
    """Hold what is said of responses."""
    transport, protocol = wire.transport, wire.protocol
    responses = wire.responses()
    # One that is not even the start of a request is answered too.
    assert len(responses) <= max(1, len(protocol.methods)), responses
    seen = -1
    for method, response in zip((*protocol.methods, ""), responses, strict=False):
        if response.closes and response.is_whole:
            assert transport.is_closed or transport.has_ended, "the connection is open"
        head = b"".join(b"%b: %b\n" % each for each in response.headers.items())
        found = CANARY.findall(head + response.body)
        assert {kind for kind, _ in found} <= {b"b"}, found
        numbers = {int(number) for _, number in found}
        if method != "GET":  # which may resume the stream of another request
            assert len(numbers) <= 1, found
            assert all(number > seen for number in numbers), found
        seen = max(numbers, default=seen)
        check_body(response)
    if len(wire.fed) == sum(len(each.data) for each in sent):
        check_owed(responses, owed_of(sent))


def check_owed(responses: list[Response], owed: list[Sent]) -> None:
    """Hold that what is as it should be is answered so."""
    for number, each in enumerate(owed):
        assert number < len(responses), f"not answered: {each.data!r}"
        response = responses[number]
        assert response.status == each.status, (each.data, response)
        assert response.is_whole, response
        if each.echoes:
            assert b"b%d-7f3a" % (number + 1) in response.body, (each.data, response)
        assert response.closes or not each.closes, (each.data, response)


def check_body(response: Response) -> None:
    """Hold that a body is of the type that its header says."""
    kind = response.headers.get(b"content-type")
    if kind is None:
        assert not response.body, response
    elif kind == b"application/json" and response.body:
        assert json.loads(response.body)["jsonrpc"] == "2.0"
    elif kind == b"text/event-stream":
        assert not response.is_whole or not response.body or response.body.endswith(b"\n\n")
    else:
        assert kind in (b"text/plain", b"application/json"), kind


if __name__ == "__main__":
    fuzz(check)
