"""A server that listens: who is let in, what they share, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from tests.rigs.conditions import WAIT_S, until_async
from tests.rigs.leaks import run
from tests.rigs.messages import META
from trunkline import (
    Client,
    PeerError,
    Server,
    ServerLimits,
    SocketLimits,
    TransportError,
    TrunklineError,
)
from trunkline.jsonrpc import Policy
from trunkline.server.runtime import listener
from trunkline.transports import addresses
from trunkline.transports.addresses import Http, Tcp, Tls, Unix
from trunkline.transports.sockets.connection import AcceptedSocket


class GatedServer:
    """A server, what its lifespan did, and what its handlers wait for."""

    def __init__(self, **options: Any) -> None:
        self.events: list[str] = []
        self.ran: list[str] = []
        self.gate = asyncio.Event()

        @asynccontextmanager
        async def lifespan(app: Server) -> AsyncIterator[str]:
            self.events.append("entered")
            yield "shared"
            self.events.append("left")

        self.app = Server("sockets", lifespan=lifespan, **options)

        @self.app.tool
        async def echo(text: str) -> str:
            self.ran.append(text)
            return text

        @self.app.tool
        async def wait() -> str:
            self.ran.append("wait")
            await self.gate.wait()
            self.ran.append("waited")
            return "done"


@asynccontextmanager
async def raw(address: Tcp | Unix) -> AsyncIterator[tuple[Any, Any]]:
    if isinstance(address, Tcp):
        reader, writer = await asyncio.open_connection(address.host, address.port)
    else:
        reader, writer = await asyncio.open_unix_connection(str(address.path))
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def call(id: Any, tool: str, **arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments, "_meta": META}
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    return json.dumps(message).encode() + b"\n"


async def rest(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(WAIT_S):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


# Beginning


@pytest.mark.parametrize("given", ["http://127.0.0.1:1", "", "127.0.0.1:0", "tcp://:1"])
def test_listen_and_run_refuse_a_text_that_is_not_an_address(given: str) -> None:
    scene = Server("x")
    with pytest.raises(ValueError):
        scene.listen(given)
    with pytest.raises(ValueError):
        scene.run(given)


@pytest.mark.parametrize("given", [5, None, b"unix:/a", object()])
def test_listen_refuses_a_value_that_is_not_an_address(given: Any) -> None:
    with pytest.raises(TypeError, match="a server listens on"):
        Server("x").listen(given)


def test_listener_can_be_entered_only_once(tmp_path: Path) -> None:
    async def script() -> None:
        scene = GatedServer()
        listening = scene.app.listen(Unix(tmp_path / "s"))
        assert "ServerListener on unix:" in repr(listening)
        await listening.close()  # before the beginning there is nothing to close
        listening.stop()
        async with listening:
            with pytest.raises(TrunklineError, match="entered once"):
                await listening.__aenter__()
        with pytest.raises(TrunklineError, match="entered once"):
            await listening.__aenter__()
        await listening.close()
        await listening.wait()
        assert scene.events == ["entered", "left"]

    run(script)


def test_an_address_that_is_taken_leaves_nothing_open(tmp_path: Path) -> None:
    async def script() -> None:
        scene, other = GatedServer(), GatedServer()
        address = Unix(tmp_path / "s")
        async with scene.app.listen(address):
            with pytest.raises(TransportError, match="in use"):
                await other.app.listen(address).__aenter__()
            assert other.events == ["entered", "left"]
            assert other.app._core.runtime.listeners == set()
            async with Client(address) as client:
                assert (await client.call_tool("echo", {"text": "on"})).text == "on"

    run(script)


def test_a_lifespan_that_fails_listens_on_nothing(tmp_path: Path) -> None:
    @asynccontextmanager
    async def lifespan(app: Server) -> AsyncIterator[None]:
        raise ZeroDivisionError
        yield

    async def script() -> None:
        app = Server("x", lifespan=lifespan)
        with pytest.raises(ZeroDivisionError):
            await app.listen(Unix(tmp_path / "s")).__aenter__()
        assert not (tmp_path / "s").exists()
        assert app._core.runtime.listeners == set()

    run(script)


def test_a_lifespan_that_fails_at_the_end_has_closed_everything_before(tmp_path: Path) -> None:
    @asynccontextmanager
    async def lifespan(app: Server) -> AsyncIterator[None]:
        yield
        assert not (tmp_path / "s").exists()
        raise ZeroDivisionError

    async def script() -> None:
        app = Server("x", lifespan=lifespan)
        with pytest.raises(ZeroDivisionError):
            async with app.listen(Unix(tmp_path / "s")), Client(Unix(tmp_path / "s")):
                pass
        assert app._core.runtime.listeners == set()

    run(script)


def test_the_lifespan_is_entered_once_for_all_connections(tmp_path: Path) -> None:
    async def script() -> None:
        scene = GatedServer()
        async with scene.app.listen(Unix(tmp_path / "s")) as listening:
            assert scene.events == ["entered"]
            for _ in range(3):
                async with Client(listening.address) as one, Client(listening.address) as other:
                    await one.call_tool("echo", {"text": "1"})
                    await other.call_tool("echo", {"text": "2"})
            await until_async(lambda: listening.connections == 0)
            assert scene.events == ["entered"]
        assert scene.events == ["entered", "left"]

    run(script, timers_too=True)


def test_one_server_may_listen_in_several_places(tmp_path: Path) -> None:
    async def script() -> None:
        scene = GatedServer()
        async with (
            scene.app.listen(Unix(tmp_path / "a")) as one,
            scene.app.listen("tcp://127.0.0.1:0") as other,
        ):
            for listening in (one, other):
                async with Client(listening.address) as client:
                    assert (await client.call_tool("echo", {"text": "x"})).text == "x"
            assert isinstance(other.address, Tcp)
            scene.app.stop()
            await asyncio.gather(one.wait(), other.wait())
        assert scene.events == ["entered", "left"]

    run(script)


# Too many


def test_connection_beyond_the_limit_gets_an_error_and_a_freed_one_is_reused(
    tmp_path: Path,
) -> None:
    async def script() -> None:
        scene = GatedServer()
        limits = SocketLimits(connections=2)
        async with (
            scene.app.listen(Unix(tmp_path / "s"), limits=limits) as listening,
            raw(listening.address) as one,
            raw(listening.address) as two,
        ):
            for reader, writer in (one, two):
                writer.write(call(0, "echo", text="first"))
                assert b"first" in await reader.readline()
            scene.ran.clear()
            async with raw(listening.address) as (reader, writer):
                writer.write(call(1, "echo", text="not run"))
                answer = json.loads(await rest(reader))
                assert answer["jsonrpc"] == "2.0"
                assert answer.get("id") is None
                assert answer["error"]["code"] == -32603
                assert "No more than 2 connections" in answer["error"]["message"]
            client = Client(listening.address)
            with pytest.raises((TransportError, PeerError)) as caught:
                await client.connect()
            assert "No more than 2 connections" in str(caught.value)
            await client.close()
            assert scene.ran == []
            one[1].close()
            await until_async(lambda: listening.connections == 1)
            async with Client(listening.address) as client:
                assert (await client.call_tool("echo", {"text": "in"})).text == "in"

    run(script, timers_too=True)


def test_number_of_refused_connections_kept_open_is_bounded(
    tmp_path: Path,
) -> None:
    async def script() -> None:
        scene = GatedServer()
        limits = SocketLimits(connections=1)
        async with (
            scene.app.listen(Unix(tmp_path / "s"), limits=limits) as listening,
            raw(listening.address) as (reader, writer),
        ):
            writer.write(call(0, "echo", text="first"))
            assert b"first" in await reader.readline()
            crowd = []
            most = 0
            for _ in range(300):
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                sock.connect(str(tmp_path / "s"))
                crowd.append(sock)
                await asyncio.sleep(0)
                most = max(most, len(listening._refusing))
            assert 0 < most <= listener._MAX_REFUSALS
            writer.write(call(1, "echo", text="still here"))
            assert b"still here" in await reader.readline()
            for sock in crowd:
                sock.close()
            await until_async(lambda: not listening._refusing)

    run(script, timers_too=True)


# The end


@pytest.mark.parametrize("how", ["listening", "app"])
def test_listener_can_be_stopped_from_any_thread(tmp_path: Path, how: str) -> None:
    async def script() -> None:
        scene = GatedServer()
        async with (
            scene.app.listen(Unix(tmp_path / "s")) as listening,
            raw(listening.address) as (reader, _),
        ):
            await until_async(lambda: listening.connections == 1)
            stop = listening.stop if how == "listening" else scene.app.stop
            thread = threading.Thread(target=stop)
            thread.start()
            await listening.wait()
            assert await rest(reader) == b""
            thread.join()
            assert not (tmp_path / "s").exists()
            stop()
            stop(at_once=True)
        listening.stop()

    run(script, timers_too=True)


def test_running_call_is_answered_within_the_grace_period_of_a_stop(tmp_path: Path) -> None:
    async def script() -> None:
        scene = GatedServer(limits=ServerLimits(grace=3600))
        async with (
            scene.app.listen(Unix(tmp_path / "s")) as listening,
            raw(listening.address) as (reader, writer),
        ):
            writer.write(call(1, "wait"))
            await until_async(lambda: scene.ran == ["wait"])
            listening.stop()
            await listening.wait()
            with pytest.raises(OSError):
                await asyncio.open_unix_connection(str(tmp_path / "s"))
            scene.gate.set()
            answer = json.loads(await rest(reader))
            assert answer["id"] == 1
            assert answer["result"]["content"][0]["text"] == "done"
        assert scene.events == ["entered", "left"]

    run(script, timers_too=True)


def test_running_call_is_cancelled_and_answered_after_the_grace_period(tmp_path: Path) -> None:
    async def script() -> None:
        scene = GatedServer(limits=ServerLimits(grace=0.05))
        async with (
            scene.app.listen(Unix(tmp_path / "s")) as listening,
            raw(listening.address) as (reader, writer),
        ):
            writer.write(call(1, "wait"))
            await until_async(lambda: scene.ran == ["wait"])
            listening.stop()
            assert "error" in json.loads(await rest(reader))
        assert scene.ran == ["wait"]

    run(script, timers_too=True)


def test_stop_at_once_cancels_running_calls(tmp_path: Path) -> None:
    async def script() -> None:
        scene = GatedServer(limits=ServerLimits(grace=3600))
        async with (
            scene.app.listen(Unix(tmp_path / "s")) as listening,
            raw(listening.address) as (reader, writer),
        ):
            writer.write(call(1, "wait"))
            await until_async(lambda: scene.ran == ["wait"])
            listening.stop()
            await asyncio.sleep(0.02)
            listening.stop(at_once=True)
            assert "error" in json.loads(await rest(reader))

    run(script, timers_too=True)


def test_connection_accepted_during_close_does_not_delay_it(tmp_path: Path) -> None:
    async def script() -> None:
        scene = GatedServer()
        listening = scene.app.listen(Unix(tmp_path / "s"))
        await listening.__aenter__()
        take = listening._take
        closing: list[asyncio.Task[None]] = []

        def take_and_close(transport: AcceptedSocket) -> None:
            # It ends after this one was let in, and before that came to anything.
            closing.append(asyncio.create_task(listening.close()))
            take(transport)

        listening._listener._on_connection = take_and_close
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as late:
            late.connect(str(tmp_path / "s"))
            await until_async(lambda: closing and closing[0].done())
            assert scene.events == ["entered", "left"]
            late.settimeout(WAIT_S)
            assert late.recv(1) == b""

    run(script, timers_too=True)


@pytest.mark.parametrize("room", [1, 100])
def test_unfinished_tls_handshake_does_not_delay_the_stop(
    tmp_path: Path, room: int, caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = Authority(tmp_path).certificate("server", "127.0.0.1")
    tls = Tls(cert=cert, key=key)

    async def script() -> None:
        scene = GatedServer()
        limits = SocketLimits(tls_handshake=3600, connections=room)
        async with scene.app.listen(Tcp("127.0.0.1", 0, tls=tls), limits=limits) as listening:
            assert isinstance(listening.address, Tcp)
            where = (listening.address.host, listening.address.port)
            silent = [socket.create_connection(where) for _ in range(5)]
            await until_async(lambda: len(listening._tasks) == 5)
            await asyncio.sleep(0.02)
            listening.stop()
        for each in silent:
            each.close()
        assert scene.events == ["entered", "left"]

    run(script, timers_too=True)
    assert caplog.records == []


def test_stalled_tls_handshakes_free_their_connections_after_the_timeout(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.certificate("server", "127.0.0.1")

    async def script() -> None:
        scene = GatedServer()
        limits = SocketLimits(tls_handshake=2.0, connections=20)
        address = Tcp("127.0.0.1", 0, tls=Tls(cert=cert, key=key))
        async with scene.app.listen(address, limits=limits) as listening:
            assert isinstance(listening.address, Tcp)
            where = (listening.address.host, listening.address.port)
            silent = [socket.create_connection(where) for _ in range(20)]
            await until_async(lambda: len(listening._handshaking) == 20)
            await until_async(lambda: not listening._tasks)
            async with Client(Tcp(*where, tls=Tls(ca=authority.ca))) as client:
                assert (await client.call_tool("echo", {"text": "in"})).text == "in"
            for each in silent:
                each.close()

    run(script, timers_too=True)


def failures(listening: Any) -> int:
    return listening._log_limit._counts.get("connection from %s failed: %s", 0)


def test_failed_tls_handshakes_are_logged_up_to_a_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = Authority(tmp_path).certificate("server", "127.0.0.1")

    async def script() -> None:
        scene = GatedServer()
        address = Tcp("127.0.0.1", 0, tls=Tls(cert=cert, key=key))
        async with scene.app.listen(address) as listening:
            assert isinstance(listening.address, Tcp)
            where = (listening.address.host, listening.address.port)
            for n in range(15):
                with socket.create_connection(where) as nonsense:
                    nonsense.sendall(b"nonsense\n" * 100)
                    await until_async(lambda n=n: failures(listening) == n + 1)

    run(script)
    warned = [each for each in caplog.records if "connection from 127.0.0.1:" in each.message]
    assert len(warned) == 10
    assert "TLS handshake failed" in warned[0].message
    assert "5 more warnings suppressed: connection from" in caplog.text


async def spoken(address: Tcp | Unix, stack: contextlib.AsyncExitStack) -> Any:
    """Return a connection that has sent a message."""
    reader, writer = await stack.enter_async_context(raw(address))
    writer.write(call(0, "echo", text="spoken"))
    assert b"spoken" in await reader.readline()
    return reader, writer


def test_the_oldest_connection_without_a_message_gives_way(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def script() -> None:
        scene = GatedServer()
        limits = SocketLimits(connections=4)
        async with (
            scene.app.listen(Unix(tmp_path / "s"), limits=limits) as listening,
            contextlib.AsyncExitStack() as stack,
        ):
            one = await spoken(listening.address, stack)
            silent = [await stack.enter_async_context(raw(listening.address)) for _ in range(10)]
            two = await spoken(listening.address, stack)
            # Half a message is none.
            silent[-1][1].write(b'{"jsonrpc": "2.0", "id": 1, "method"')
            three = await spoken(listening.address, stack)
            assert listening.connections == 4
            for reader, _ in silent[:9]:
                assert await rest(reader) == b""
            four = await spoken(listening.address, stack)
            assert await rest(silent[9][0]) == b""
            # All have sent a message, and the next is refused.
            reader, _ = await stack.enter_async_context(raw(listening.address))
            assert b"No more than 4 connections" in await rest(reader)
            for reader, writer in (one, two, three, four):
                writer.write(call(1, "echo", text="still here"))
                assert b"still here" in await reader.readline()
            stats = scene.app.stats()
            assert (stats.dropped_connections, stats.refused_connections) == (10, 1)

    run(script, timers_too=True)
    assert caplog.text.count("no message so far, gave way to a new connection") == 10


def test_a_message_that_was_not_read_yet_keeps_its_connection(tmp_path: Path) -> None:
    async def script() -> None:
        scene = GatedServer()
        limits = SocketLimits(connections=2)
        async with scene.app.listen(Unix(tmp_path / "s"), limits=limits):
            crowd = []
            # All of them are there before the server takes a look.
            for n in range(3):
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                sock.connect(str(tmp_path / "s"))
                sock.sendall(call(n, "echo", text=f"text {n}"))
                crowd.append(sock)
            streams = [await asyncio.open_unix_connection(sock=sock) for sock in crowd]
            for n, (reader, _) in enumerate(streams[:2]):
                assert f"text {n}".encode() in await reader.readline()
            assert b"No more than 2 connections" in await rest(streams[2][0])
            for _, writer in streams:
                writer.close()

    run(script, timers_too=True)


@pytest.mark.parametrize("count", [1, 30])
def test_handshakes_that_are_not_finished_keep_out_no_client_that_finishes_its_own(
    tmp_path: Path, count: int
) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.certificate("server", "127.0.0.1")

    async def script() -> None:
        scene = GatedServer()
        limits = SocketLimits(tls_handshake=3600, tls_handshakes=count, connections=1)
        address = Tcp("127.0.0.1", 0, tls=Tls(cert=cert, key=key))
        async with scene.app.listen(address, limits=limits) as listening:
            assert isinstance(listening.address, Tcp)
            where = (listening.address.host, listening.address.port)
            silent = [socket.create_connection(where) for _ in range(count + 50)]
            await until_async(lambda: len(listening._tasks) == count)
            assert listening.connections == 0
            async with Client(Tcp(*where, tls=Tls(ca=authority.ca))) as client:
                assert (await client.call_tool("echo", {"text": "in"})).text == "in"
                assert listening.connections == 1
                # One that finishes its handshake and finds no place is told so.
                another = Client(Tcp(*where, tls=Tls(ca=authority.ca)))
                with pytest.raises((TransportError, PeerError), match="No more than 1 conn"):
                    await another.connect()
            for each in silent:
                each.close()

    run(script, timers_too=True)


def test_handshakes_of_one_client_end_none_of_another(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.certificate("server", "127.0.0.1")

    async def script() -> None:
        scene = GatedServer()
        limits = SocketLimits(tls_handshake=3600, tls_handshakes=4)
        address = Tcp("127.0.0.1", 0, tls=Tls(cert=cert, key=key))
        async with scene.app.listen(address, limits=limits) as listening:
            assert isinstance(listening.address, Tcp)
            where = (listening.address.host, listening.address.port)
            quiet = socket.create_connection(where, source_address=("127.0.0.3", 0))
            await until_async(lambda: len(listening._handshaking) == 1)
            (first,) = listening._handshaking
            flood = [
                socket.create_connection(where, source_address=("127.0.0.2", 0)) for _ in range(20)
            ]
            dropped = scene.app._core.runtime.counters
            await until_async(lambda: dropped.dropped_connections == 17)
            assert first in listening._handshaking
            assert len(listening._handshaking) == 4
            for each in (quiet, *flood):
                each.close()

    run(script, timers_too=True)


def test_one_connection_that_fails_does_not_end_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def script() -> None:
        scene = GatedServer()
        converse = scene.app._core.runtime.serve
        failing = [True]

        async def fail_once(connection: Any) -> None:
            if failing.pop() if failing else False:
                raise ZeroDivisionError("secret=canary-1")
            await converse(connection)

        monkeypatch.setattr(scene.app._core.runtime, "serve", fail_once)
        async with scene.app.listen(Unix(tmp_path / "s")) as listening:
            async with raw(listening.address) as (reader, _):
                assert await rest(reader) == b""
            async with Client(listening.address) as client:
                assert (await client.call_tool("echo", {"text": "on"})).text == "on"

    run(script, timers_too=True)
    assert "connection failed" in caplog.text


def test_cancelled_close_can_be_finished_by_another_close(tmp_path: Path) -> None:
    async def script() -> None:
        scene = GatedServer(limits=ServerLimits(grace=3600))
        listening = scene.app.listen(Unix(tmp_path / "s"))
        await listening.__aenter__()
        async with raw(listening.address) as (_, writer):
            writer.write(call(1, "wait"))
            await until_async(lambda: scene.ran == ["wait"])
            closing = asyncio.create_task(listening.close())
            await asyncio.sleep(0.02)
            closing.cancel()
            await asyncio.wait((closing,))
            assert closing.cancelled()
            assert scene.events == ["entered"]
            scene.gate.set()
            await listening.close()
        assert scene.events == ["entered", "left"]

    run(script, timers_too=True)


def test_a_block_that_fails_ends_the_listening(tmp_path: Path) -> None:
    async def script() -> None:
        scene = GatedServer()
        with pytest.raises(ZeroDivisionError):
            async with scene.app.listen(Unix(tmp_path / "s")):
                raise ZeroDivisionError
        assert scene.events == ["entered", "left"]
        assert not (tmp_path / "s").exists()

    run(script)


# What passes, and what does not


def post(body: bytes) -> bytes:
    head = b"POST /a:b HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"
    return head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def hello(body: bytes) -> bytes:
    """Return how TLS begins, with a text in it that a page may have chosen."""
    return b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32) + b"\x20\n" + body


@pytest.mark.parametrize("framing", ["newline", "content-length", "length-prefix", "detect"])
@pytest.mark.parametrize(
    "shape",
    [
        post,
        lambda body: b"\r\n" + post(body),
        lambda body: b"\r\n" * 40 + post(body),
        lambda body: b"get / http/1.1\r\n\r\n" + body,
        lambda body: b"M-SEARCH * HTTP/1.1\r\n\r\n" + body,
        lambda body: b"SSH-2.0-x\r\n" + body,
        lambda body: b"hello\n" + body,
        lambda body: b'"a text"\n' + body,
        lambda body: b"1\n" + body,
        hello,
    ],
)
def test_connection_that_does_not_begin_with_json_rpc_runs_no_tool(
    framing: Any, shape: Any
) -> None:
    whole = shape(call(1, "echo", text="from a page"))

    async def script() -> None:
        scene = GatedServer(policy=Policy(framing=framing))
        async with scene.app.listen("tcp://127.0.0.1:0") as listening:

            async def begin(split: int) -> None:
                async with raw(listening.address) as (reader, writer):
                    with contextlib.suppress(ConnectionError):
                        for part in (whole[:split], whole[split:]):
                            writer.write(part)
                            await writer.drain()
                            await asyncio.sleep(0.01)
                        writer.write_eof()
                    assert b"from a page" not in await rest(reader)

            await asyncio.gather(*map(begin, (len(whole), 1, 4, 6, 17, 40)))
            await until_async(lambda: listening.connections == 0)
        assert scene.ran == []

    run(script, timers_too=True)


@pytest.mark.parametrize("nonsense", [b"GET / HTTP/1.1", b"hello", b"\x16\x03\x01", b"{nonsense"])
def test_invalid_json_is_answered_with_a_parse_error(nonsense: bytes) -> None:
    async def script() -> None:
        scene = GatedServer()
        async with scene.app.listen("tcp://127.0.0.1:0") as listening:
            async with raw(listening.address) as (reader, writer):
                writer.write(nonsense + b"\n")
                answer = json.loads(await reader.readline())
                assert answer["error"]["code"] == -32700
                if not nonsense.startswith(b"{"):
                    assert await reader.readline() == b""
            async with raw(listening.address) as (reader, writer):
                # Of a client that has begun as one, nonsense is no reason to end.
                for n in range(2):
                    writer.write(call(n, "echo", text="on"))
                    assert json.loads(await reader.readline())["id"] == n
                    writer.write(nonsense + b"\n")
                    assert json.loads(await reader.readline())["error"]["code"] == -32700

    run(script)


def test_client_that_ends_its_input_gets_all_replies(tmp_path: Path) -> None:
    async def script() -> None:
        scene = GatedServer()
        async with scene.app.listen(Unix(tmp_path / "s")) as listening:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                sock.connect(str(tmp_path / "s"))
                sock.sendall(b"".join(call(n, "echo", text=str(n)) for n in range(200)))
                sock.shutdown(socket.SHUT_WR)
                sock.setblocking(False)
                got = b""
                loop = asyncio.get_running_loop()
                async with asyncio.timeout(WAIT_S):
                    while part := await loop.sock_recv(sock, 65536):
                        got += part
                assert {json.loads(line)["id"] for line in got.splitlines()} == set(range(200))
            await until_async(lambda: listening.connections == 0)

    run(script)


# What is said of who can be reached


@pytest.mark.parametrize(
    ("address", "is_exposed"),
    [
        (Tcp("127.0.0.1", 1), False),
        (Tcp("127.8.8.8", 1), False),
        (Tcp("::1", 1), False),
        (Tcp("localhost", 1), False),
        (Unix("/a"), False),
        (Tcp("0.0.0.0", 1), True),
        (Tcp("::", 1), True),
        (Tcp("192.0.2.1", 1), True),
        (Tcp("host.example", 1), True),
        (Tcp("0.0.0.0", 1, tls=Tls(cert="c")), True),
        (Tcp("0.0.0.0", 1, tls=Tls(cert="c", ca="a")), False),
        (Http("127.0.0.1", 1), False),
        (Http(unix="/a"), False),
        (Http("0.0.0.0", 1), True),
        (Http("host.example", 1, tls=True), True),
        (Http("0.0.0.0", 1, tls=Tls(cert="c", ca="a")), False),
    ],
)
def test_exposed_addresses_are_those_beyond_loopback_without_client_tls(
    address: Tcp | Unix | Http, is_exposed: bool
) -> None:
    assert addresses.is_exposed(address) == is_exposed


def test_the_log_says_where_it_listens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def script() -> None:
        async with GatedServer().app.listen("tcp://127.0.0.1:0") as listening:
            assert f"listening on {listening.address}" in caplog.text
        assert not any(each.levelno >= logging.WARNING for each in caplog.records)

    run(script)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("connections", 0),
        ("connections", True),
        ("connections", None),
        ("backlog", 0),
        ("backlog", 1.5),
        ("idle", 0),
        ("idle", -1),
        ("idle", float("nan")),
        ("idle", "1"),
        ("keep_alive", 0),
        ("keep_alive", float("inf")),
        ("tls_handshake", None),
        ("tls_handshake", 0),
    ],
)
def test_invalid_socket_limits_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"SocketLimits.{name}"):
        SocketLimits(**{name: value})


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_socket_that_sends_1000_invalid_messages_in_a_row_is_closed(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def script() -> None:
        address = Tcp("127.0.0.1", 0) if kind == "tcp" else Unix(tmp_path / "s")
        async with Server("test").listen(address) as listening:
            where = listening.address
            if isinstance(where, Tcp):
                reader, writer = await asyncio.open_connection(where.host, where.port)
            else:
                reader, writer = await asyncio.open_unix_connection(str(where.path))
            valid = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
            writer.write(b"{}\n" * 999 + valid + b"{}\n" * 5000)
            async with asyncio.timeout(30):
                answers = await reader.read(-1)
            assert answers.count(b"\n") == 2000
            writer.close()

    run(script)
    assert "connection closed: 1000 invalid messages in a row" in caplog.text
