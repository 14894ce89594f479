"""Costs that can be limited without a clock: calls, system calls, modules, bytes and others.

    python -m bench.limits

Times differ from machine to machine; these do not. `tests/limits` holds each to
the limit given here, so a change that makes the hot path longer is noticed.
"""

from __future__ import annotations

import asyncio
import selectors
import subprocess
import sys
import tracemalloc
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, NamedTuple

from bench.call_path import over_http
from bench.fanout import Crowd
from bench.servers import http_load, ours
from bench.servers.deaf import Deaf
from trunkline import Client, memory_pair
from trunkline.jsonrpc import (
    Batch,
    Codec,
    IncomingRequest,
    OutgoingRequests,
    Peer,
    Pending,
    Request,
    Success,
)

REQUEST: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}'
NOTICE: Final = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}'
RESULT: Final = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
BATCH: Final = b"[" + b",".join([REQUEST] * 10) + b"]"
OPENING: Final = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"limits","version":"1"}}}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
)
HOLD: Final = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call",'
    b'"params":{"name":"hold","arguments":{"text":"hi"}}}'
)


# A server with one tool, and a client that opens, calls it once and leaves.
_PROGRAM: Final = """
from trunkline import Server
app = Server("limits")
@app.tool
async def hold(text: str) -> str:
    return text
app.run()
"""
# The same server over HTTP, with a client that sends one request.
_HTTP_PROGRAM: Final = """
import asyncio
from trunkline import Server
app = Server("limits")
@app.tool
async def hold(text: str) -> str:
    return text
async def main():
    async with app.listen("http://127.0.0.1:0/mcp") as listening:
        port = listening.address.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        assert b" 200 " in await reader.readuntil()
        writer.close()
asyncio.run(main())
"""
# The same server, called from a terminal.
_CALL: Final = (
    *("-m", "trunkline", "call", "hold", "text=hi", "--"),
    *(sys.executable, "-S", "-c", _PROGRAM),
)
_ACCEPT: Final = "application/json, text/event-stream"
_CONVERSATION: Final = b"\n".join((*OPENING, HOLD % 1, b""))


class Limit(NamedTuple):
    """One cost: what it is, how it is counted, and the most it may be."""

    name: str
    count: Callable[[], int]
    most: int
    unit: str


def calls(run: Callable[[], object]) -> int:
    """Return how many Python and C calls one run makes, after a first run that warms up."""
    run()
    counted = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    # `run` itself, and the call that ends the counting.
    return counted - 2


def calls_between(revision: str, tool: str = "echo") -> int:
    """Return how many Python and C calls one call of a tool makes, client and server together.

    The loop's own are among them. Counted alike, a `legacy` session of mcp 2.3.0 makes 1303, and
    1218 where it sends the text once.
    """

    async def count() -> int:
        app = ours.make(tool)
        async with Client(app, revision=revision) as client:
            await client.call_tool(tool, {"text": "hi"})
            counted = 0

            def note(_frame: object, event: str, _argument: object) -> None:
                nonlocal counted
                counted += event in ("call", "c_call")

            sys.setprofile(note)
            try:
                await client.call_tool(tool, {"text": "hi"})
            finally:
                sys.setprofile(None)
        # The call that ends the counting, and the resuming of this coroutine.
        return counted - 2

    return asyncio.run(count())


def ticks_between(revision: str) -> int:
    """Return how many turns of the event loop one call of a tool takes. In mcp 2.3.0 it is 8."""

    async def count() -> int:
        async with Client(ours.make("echo"), revision=revision) as client:
            await client.call_tool("echo", {"text": "hi"})
            return await ticks(client.call_tool("echo", {"text": "hi"}))

    return asyncio.run(count())


def calls_to_tell(revision: str, count: int = 1000) -> int:
    """Return how many Python and C calls it takes to tell 100 of many subscribers of a change.

    What the transport in memory and the client's end do is among them. The change is written
    once, and the loop has a turn now and then: more would show as a call for each.
    """

    async def run() -> int:
        crowd = Crowd(revision, count)
        await crowd.gather()
        await crowd.tell()
        counted = 0

        def note(_frame: object, event: str, _argument: object) -> None:
            nonlocal counted
            counted += event in ("call", "c_call")

        sys.setprofile(note)
        try:
            await crowd.tell()
        finally:
            sys.setprofile(None)
        await crowd.leave()
        return counted

    return asyncio.run(run()) * 100 // count


def ticks_to_tell(count: int = 1000) -> int:
    """Return how many turns of the event loop it takes to tell many subscribers of a change."""

    async def run() -> int:
        crowd = Crowd("2026-07-28", count)
        await crowd.gather()
        counted = await ticks(crowd.tell())
        await crowd.leave()
        return counted

    return asyncio.run(run())


# --- HTTP


class _Counts:
    """What a server asks of the system: receives, sends, and what its selector does."""

    def __init__(self) -> None:
        self.receives = self.sends = self.selects = 0

    def total(self) -> int:
        """Return all of them."""
        return self.receives + self.sends + self.selects


class _Selector(selectors.DefaultSelector):
    """Counts each call that is one of the system."""

    def __init__(self, counts: _Counts) -> None:
        super().__init__()
        self._counts = counts

    def select(self, timeout: float | None = None) -> Any:
        self._counts.selects += 1
        return super().select(timeout)

    def register(self, *given: Any) -> Any:
        self._counts.selects += 1
        return super().register(*given)

    def unregister(self, *given: Any) -> Any:
        self._counts.selects += 1
        return super().unregister(*given)

    def modify(self, *given: Any) -> Any:
        self._counts.selects += 1
        return super().modify(*given)


class _Socket:
    """The socket of an accepted connection, with what it receives and sends counted."""

    def __init__(self, sock: Any, counts: _Counts) -> None:
        self._sock = sock
        self._counts = counts

    def recv_into(self, *given: Any) -> int:
        self._counts.receives += 1
        return int(self._sock.recv_into(*given))

    def send(self, *given: Any) -> int:
        self._counts.sends += 1
        return int(self._sock.send(*given))

    def __getattr__(self, name: str) -> Any:
        # Any other way to receive or send would not be counted.
        if name.startswith(("recv", "send")):
            raise AttributeError(name)
        return getattr(self._sock, name)


def http_system_calls(of: Callable[[_Counts], int], revision: str, requests: int = 50) -> int:
    """Return how many system calls a server makes for each request on one connection.

    The client is in a thread and sends a request when the answer before was read. Once a second
    a timer of the server ends a `select`, which the division drops.
    """
    counts = _Counts()
    loop = asyncio.SelectorEventLoop(_Selector(counts))

    async def run() -> int:
        async with ours.make("echo").listen("http://127.0.0.1:0/mcp") as listening:
            pool = http_load.Pool(listening.address.port, revision, _ACCEPT, "echo")
            await loop.run_in_executor(None, pool.open, 1)
            (served,) = listening._http.connections
            transport = served._transport
            transport._sock = _Socket(transport._sock, counts)
            pool.connections[0].socket.setblocking(True)
            spent: list[int] = []
            done = asyncio.Event()

            def call() -> None:
                connection = pool.connections[0]
                for number in range(requests + 2):
                    connection.ask(connection.requests[number % 8].whole)
                    # The server has begun to wait again by the time of the next answer.
                    spent.append(of(counts))
                loop.call_soon_threadsafe(done.set)

            calling = loop.run_in_executor(None, call)
            await done.wait()
            await calling
            pool.connections[0].socket.close()
            return (spent[-1] - spent[1]) // requests

    try:
        return loop.run_until_complete(run())
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


class _Wire:
    """A connection of an HTTP server without a socket."""

    def __init__(self, http: Any) -> None:
        self._protocol = http.protocol()
        self._written: list[bytes] = []
        self._protocol.connection_made(self)

    def get_extra_info(self, _name: str) -> tuple[str, int]:
        return "127.0.0.1", 40_000

    def set_write_buffer_limits(self, **_limits: int) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        self._written.append(data)

    def close(self) -> None:
        self._protocol.connection_lost(None)

    async def ask(self, data: bytes) -> tuple[bytes, bytes]:
        """Have a request served; return head and body of its answer."""
        self._protocol.get_buffer(-1)[: len(data)] = data
        self._protocol.buffer_updated(len(data))
        while not self._written:
            await asyncio.sleep(0)
        head, _, body = self._written.pop().partition(b"\r\n\r\n")
        return head, body


def http_calls(revision: str, *, is_known: bool = True) -> int:
    """Return how many Python and C calls a server makes for one call of a tool over HTTP.

    Those of the event loop are among them, those of sockets are not. Without `is_known` the
    head of the request differs from those before it.
    """

    async def run() -> int:
        async with ours.make("echo").listen("http://127.0.0.1:0/mcp") as listening:
            pool = http_load.Pool(listening.address.port, revision, _ACCEPT, "echo")
            wire = _Wire(listening._http)
            session = None
            if revision == http_load.HANDSHAKE:
                head, _ = await wire.ask(http_load.post(pool.fixed, OPENING[0]))
                line = next(each for each in head.split(b"\r\n") if each.startswith(b"mcp-sess"))
                session = line.partition(b": ")[2].decode()
                headers = [*pool.fixed, *pool.state(session)]
                await wire.ask(http_load.post(headers, OPENING[1]))
            for number in range(4):
                await wire.ask(pool.request(number + 1, number, session).whole)
            last = pool.request(9, 5, session)
            if not is_known:
                last = last._replace(whole=last.whole.replace(b"\r\n", b"\r\nX-New: 1\r\n", 1))
            counted = 0

            def note(_frame: object, event: str, _argument: object) -> None:
                nonlocal counted
                counted += event in ("call", "c_call")

            sys.setprofile(note)
            try:
                head, body = await wire.ask(last.whole)
            finally:
                sys.setprofile(None)
            wire.close()
            if last.text not in body:
                raise RuntimeError(f"a server answered {head + body!r}")
            return counted - 2

    return asyncio.run(run())


async def ticks(work: Awaitable[object]) -> int:
    """Return how many turns of the event loop pass while `work` is awaited."""
    loop: Any = asyncio.get_running_loop()
    turn, counted = loop._run_once, 0

    def counting() -> None:
        nonlocal counted
        counted += 1
        turn()

    loop._run_once = counting
    # The turn that is under way is not counted, the next one is.
    await asyncio.sleep(0)
    counted = 0
    try:
        await work
    finally:
        del loop._run_once
    return counted


def modules(*arguments: str, given: bytes = b"") -> int:
    """Return how many modules a fresh interpreter loads for `arguments` beyond its own."""
    return len(_loaded(*arguments, given=given) - _loaded("-c", "pass"))


def _loaded(*arguments: str, given: bytes = b"") -> set[str]:
    # -S: what site-packages hook into every start is not ours.
    command = [sys.executable, "-S", "-X", "importtime", *arguments]
    paths = [path for path in sys.path if path]
    run = subprocess.run(
        command,
        input=given,
        capture_output=True,
        check=True,
        env={"PYTHONPATH": ":".join(paths)},
    )
    written = run.stderr.decode().splitlines()
    lines = [line for line in written if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip() for line in lines[1:]}


def bytes_per_pending(count: int = 10_000) -> int:
    """Return what one outgoing request that awaits its reply costs."""
    outgoing = OutgoingRequests()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for id in range(1_000_000, 1_000_000 + count):
        outgoing.open(Pending(id, "tools/call"))
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return used // count


def bytes_per_call_of_a_client(count: int = 1000) -> int:
    """Return what a call costs a client while it waits for the answer."""

    async def run() -> int:
        other = Deaf()
        await other.connect()
        async with Client(other.client_end, revision="2025-11-25") as client:
            waiting = [client.submit_tool("hold", {"text": "hi"})]
            before = _traced()
            for _ in range(count):
                waiting.append(client.submit_tool("hold", {"text": "hi"}))
            return _traced() - before

    return _while_tracing(run()) // count


def bytes_per_call_of_a_server(count: int = 1000) -> int:
    """Return what a call costs a server while its handler is at work."""

    async def run() -> int:
        near, far = memory_pair()
        app = ours.make("hold")
        serving = asyncio.create_task(app.serve(far))
        await near.connect()
        for message in (*OPENING, HOLD % 1):
            near.send(message)
        await asyncio.sleep(0.01)  # the handler has begun, and all that is made once is made
        before = _traced()
        for id in range(1_000, 1_000 + count):
            near.send(HOLD % id)
        await asyncio.sleep(0.01)
        used = _traced() - before
        at_work = app._core.runtime.in_flight
        if at_work != count + 1:
            raise RuntimeError(f"{at_work} handlers are at work, not {count + 1}")
        await near.close()
        await serving
        return used

    return _while_tracing(run()) // count


def calls_to_verify() -> int:
    """Return how many Python and C calls verifying a JWT takes beside the check of its signature.

    Its key is at hand. A token that comes again takes fewer, because its signature is not checked.
    """
    from trunkline.auth import Credential, JwtBearer, SigningKey
    from trunkline.auth.jose import PublicKey, parse_token

    signer = SigningKey.generate(key_id="one")
    name, server = "https://login.example.org", "https://mcp.example.org/mcp"
    claims: dict[str, Any] = {"iss": name, "aud": server, "client_id": "c", "scope": "a b"}
    claims |= {"iat": 1, "exp": 250_000_000_000}
    # A token for each of the two runs of `calls`.
    texts = [signer.sign({**claims, "sub": each}, {"typ": "at+jwt"}) for each in ("ann", "bob")]
    verifier = JwtBearer(issuer=name, audience=server, keys={"keys": [signer.public_jwk]})
    credentials = iter([Credential("bearer", text) for text in texts])
    key, token = PublicKey(signer.public_jwk), parse_token(texts[0])
    whole = calls(lambda: verifier.verify(next(credentials)))
    return whole - calls(lambda: token.is_signed_by(key))


def calls_to_verify_again() -> int:
    """Return how many Python and C calls it takes to accept a JWT that was verified before."""
    from trunkline.auth import Credential, JwtBearer, SigningKey

    signer = SigningKey.generate(key_id="one")
    name, server = "https://login.example.org", "https://mcp.example.org/mcp"
    claims = {"iss": name, "aud": server, "sub": "ann", "iat": 1, "exp": 250_000_000_000}
    credential = Credential("bearer", signer.sign(claims, {"typ": "at+jwt"}))
    verifier = JwtBearer(issuer=name, audience=server, keys={"keys": [signer.public_jwk]})
    return calls(lambda: verifier.verify(credential))


def _traced() -> int:
    return tracemalloc.get_traced_memory()[0]


def _while_tracing(work: Coroutine[Any, Any, int]) -> int:
    tracemalloc.start()
    try:
        return asyncio.run(work)
    finally:
        tracemalloc.stop()


def _round_trip() -> Callable[[], object]:
    """Return a request from one peer to another and its answer back."""
    client_codec, server_codec = Codec(expect="replies"), Codec(expect="calls")

    def answer(asked: IncomingRequest) -> None:
        server.answer(asked, {"content": []})

    client = Peer(
        client_codec, write=lambda data, _route: server.feed(data), on_request=lambda _asked: None
    )
    server = Peer(server_codec, write=lambda data, _route: client.feed(data), on_request=answer)
    return lambda: client.send_request("tools/call", {"name": "echo"})


def limits() -> list[Limit]:
    """Return every limited cost."""
    calling, replying, either = Codec(expect="calls"), Codec(expect="replies"), Codec()
    request = Request("tools/call", {"name": "echo"}, id=1)
    batch = Batch([request] * 10)
    round_trip = _round_trip()
    return [
        _calls("encode a request", lambda: either.encode(request), 4),
        _calls("encode a result", lambda: either.encode(Success(1, {"content": []})), 4),
        _calls("encode a batch of 10", lambda: either.encode(batch), 9),
        _calls("envelope of a request", lambda: calling.envelope(REQUEST), 4),
        _calls("envelope of a result", lambda: replying.envelope(RESULT), 4),
        _calls("envelope of a batch of 10", lambda: calling.envelope(BATCH), 8),
        _calls("decode a request", lambda: calling.decode(REQUEST), 6),
        _calls("decode anything", lambda: either.decode(NOTICE), 10),
        _calls("request and answer between two peers", round_trip, 60),
        _between("call a tool, 2025-11-25", "2025-11-25", 200),
        _between("call a tool, 2026-07-28", "2026-07-28", 200),
        _between("call a tool with structured output", "2025-11-25", 220, "structured"),
        _ticks("turns of the loop for it, 2025-11-25", "2025-11-25", 3),
        _ticks("turns of the loop for it, 2026-07-28", "2026-07-28", 3),
        _http_calls("call a tool over HTTP, 2025-11-25", "2025-11-25", 150),
        _http_calls("call a tool over HTTP, 2026-07-28", "2026-07-28", 210),
        _http_calls("the same with another head", "2025-11-25", 300, is_known=False),
        Limit("verify a JWT, beside its signature", calls_to_verify, 120, "calls"),
        Limit("accept a JWT that was verified before", calls_to_verify_again, 30, "calls"),
        _system_calls("receives for a request over HTTP", lambda counts: counts.receives, 1),
        _system_calls("sends for a request over HTTP", lambda counts: counts.sends, 1),
        _system_calls("system calls for a request over HTTP", _Counts.total, 5),
        _to_tell("tell 100 of a change, 2025-11-25", "2025-11-25", 270),
        _to_tell("tell 100 of a change, 2026-07-28", "2026-07-28", 270),
        Limit("turns of the loop to tell 1000", ticks_to_tell, 12, "turns"),
        _client_calls("call by a client over HTTP, 2025-11-25", "2025-11-25", 86),
        _client_calls("call by a client over HTTP, 2026-07-28", "2026-07-28", 86),
        _modules("import trunkline", ("-c", "import trunkline"), 2),
        _modules("import Server", ("-c", "from trunkline import Server"), 240),
        _modules("import Client", ("-c", "from trunkline import Client"), 210),
        _modules("serve a client on stdio", ("-c", _PROGRAM), 260, _CONVERSATION),
        _modules("serve a client over HTTP", ("-c", _http_program()), 308),
        _modules("trunkline --version", ("-m", "trunkline", "--version"), 32),
        _modules("trunkline call", _CALL, 246),
        Limit("an outgoing request that awaits its reply", bytes_per_pending, 200, "bytes"),
        Limit("a call that a client waits for", bytes_per_call_of_a_client, 1400, "bytes"),
        Limit("a call that a server works at", bytes_per_call_of_a_server, 3000, "bytes"),
    ]


def _calls(name: str, run: Callable[[], object], most: int) -> Limit:
    return Limit(name, lambda: calls(run), most, "calls")


def _between(name: str, revision: str, most: int, tool: str = "echo") -> Limit:
    return Limit(name, lambda: calls_between(revision, tool), most, "calls")


def _to_tell(name: str, revision: str, most: int) -> Limit:
    return Limit(name, lambda: calls_to_tell(revision), most, "calls")


def _http_calls(name: str, revision: str, most: int, *, is_known: bool = True) -> Limit:
    return Limit(name, lambda: http_calls(revision, is_known=is_known), most, "calls")


def _system_calls(name: str, of: Callable[[_Counts], int], most: int) -> Limit:
    # Both eras, and the worse of them.
    revisions = (http_load.HANDSHAKE, http_load.PER_REQUEST)
    return Limit(name, lambda: max(http_system_calls(of, each) for each in revisions), most, "")


def _http_program() -> str:
    """Return a program that serves one request over HTTP."""
    pool = http_load.Pool(0, http_load.PER_REQUEST, _ACCEPT, "hold")
    request = pool.request(1, 0, None).whole.replace(b"127.0.0.1:0", b"localhost")
    return _HTTP_PROGRAM.replace("REQUEST", repr(request))


def _ticks(name: str, revision: str, most: int) -> Limit:
    return Limit(name, lambda: ticks_between(revision), most, "turns")


def _client_calls(name: str, revision: str, most: int) -> Limit:
    return Limit(name, lambda: asyncio.run(over_http(revision))[1].calls, most, "calls")


def _modules(name: str, arguments: tuple[str, ...], most: int, given: bytes = b"") -> Limit:
    return Limit(name, lambda: modules(*arguments, given=given), most, "modules")


def main() -> int:
    """Print each cost beside its limit; return 1 if one is passed."""
    worst = 0
    for limit in limits():
        counted = limit.count()
        verdict = "ok" if counted <= limit.most else "TOO MUCH"
        worst |= counted > limit.most
        print(f"  {limit.name:40} {counted:6} {limit.unit:8} at most {limit.most:4}  {verdict}")
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
