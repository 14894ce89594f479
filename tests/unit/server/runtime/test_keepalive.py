"""Clients that say nothing: who is asked, who is let be, and who is closed."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from tests.certificates import Authority
from tests.rigs.clock import TimerLoop
from tests.rigs.conditions import WAIT_S, until_async
from tests.rigs.leaks import run
from tests.rigs.messages import HANDSHAKE, META, initialize_params
from trunkline import Server, SocketLimits
from trunkline.server.runtime import keepalive
from trunkline.server.runtime.keepalive import KeepAlive
from trunkline.transports.addresses import Tcp, Tls, Unix


class LineClient:
    """A client that says only what it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, **message: Any) -> None:
        self.writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, id: Any, method: str, **params: Any) -> None:
        self.send(id=id, method=method, params={**params, "_meta": META})

    async def read(self) -> Any:
        """Return the next message, or None at the end."""
        async with asyncio.timeout(WAIT_S):
            line = await self.reader.readline()
        return json.loads(line) if line else None

    async def open_session(self) -> None:
        """Shake hands."""
        params = initialize_params()
        self.send(id="hello", method="initialize", params=params)
        assert (await self.read())["id"] == "hello"
        self.send(method="notifications/initialized")


class UnixServer:
    """A server at a path, and what its handlers wait for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.gate = asyncio.Event()
        self.app = Server("keeping")
        self.listening: Any = None

        @self.app.tool
        async def wait() -> str:
            await self.gate.wait()
            return "done"

        @self.app.tool
        async def large(size: int) -> str:
            return "x" * size

    @asynccontextmanager
    async def client(self) -> AsyncIterator[LineClient]:
        raw = LineClient(*await asyncio.open_unix_connection(str(self.path)))
        try:
            yield raw
        finally:
            raw.writer.close()


@asynccontextmanager
async def serving(tmp_path: Path, **limits: Any) -> AsyncIterator[UnixServer]:
    scene = UnixServer(tmp_path / "s")
    async with scene.app.listen(Unix(scene.path), limits=SocketLimits(**limits)) as listening:
        scene.listening = listening
        yield scene


SHORT = 0.1


def test_client_that_never_sends_anything_is_closed(tmp_path: Path) -> None:
    async def script() -> None:
        async with serving(tmp_path, idle=SHORT) as scene, scene.client() as raw:
            assert await raw.read() is None
            await until_async(lambda: scene.listening.connections == 0)

    run(script, timers_too=True)


def test_a_client_that_fell_silent_is_closed_in_order(tmp_path: Path) -> None:
    async def script() -> None:
        async with serving(tmp_path, idle=SHORT) as scene, scene.client() as raw:
            raw.ask(1, "tools/list")
            assert "result" in await raw.read()
            assert await raw.read() is None

    run(script, timers_too=True)


def test_client_that_sends_within_the_idle_timeout_is_kept(tmp_path: Path) -> None:
    async def script() -> None:
        async with serving(tmp_path, idle=0.4) as scene, scene.client() as raw:
            for n in range(12):
                raw.ask(n, "tools/list")
                assert (await raw.read())["id"] == n
                await asyncio.sleep(0.05)
            assert await raw.read() is None

    run(script)


def test_incomplete_message_resets_the_idle_timeout(tmp_path: Path) -> None:
    async def script() -> None:
        async with serving(tmp_path, idle=0.4) as scene, scene.client() as raw:
            for _ in range(12):
                raw.writer.write(b" ")
                await asyncio.sleep(0.05)
            raw.ask(1, "tools/list")
            assert (await raw.read())["id"] == 1

    run(script)


def test_a_call_or_a_stream_that_is_open_keeps_a_silent_client(tmp_path: Path) -> None:
    async def script() -> None:
        async with (
            serving(tmp_path, idle=SHORT) as scene,
            scene.client() as calling,
            scene.client() as listening,
        ):
            calling.ask("c", "tools/call", name="wait", arguments={})
            wanted = {"toolsListChanged": True}
            listening.ask("s", "subscriptions/listen", notifications=wanted)
            told = await listening.read()
            assert told["method"] == "notifications/subscriptions/acknowledged"
            await asyncio.sleep(8 * SHORT)
            assert scene.listening.connections == 2
            # 2026-07-28 has no ping, and nobody is sent one.
            scene.gate.set()
            assert (await calling.read())["id"] == "c"
            assert await calling.read() is None
            listening.send(method="notifications/cancelled", params={"requestId": "s"})
            while (message := await listening.read()) is not None:
                assert message.get("method") != "ping"

    run(script, timers_too=True)


def test_handshake_client_is_pinged_and_kept_while_it_replies(tmp_path: Path) -> None:
    async def script() -> None:
        # A client that can be asked is never idle: it need not be guessed at.
        async with serving(tmp_path, idle=SHORT, keep_alive=2 * SHORT) as scene:
            async with scene.client() as raw:
                await raw.open_session()
                ids = []
                for n in range(4):
                    ping = await raw.read()
                    assert ping["method"] == "ping"
                    ids.append(ping["id"])
                    if n % 2:
                        raw.send(id=ping["id"], result={})
                    else:  # any answer will do
                        raw.send(id=ping["id"], error={"code": -32601, "message": "no"})
                assert len(set(ids)) == 4
                assert scene.listening.connections == 1
                # Then it does not answer.
                assert (await raw.read())["method"] == "ping"
                assert await raw.read() is None
            await until_async(lambda: scene.listening.connections == 0)

    run(script, timers_too=True)


def test_unanswered_ping_closes_the_connection_despite_an_open_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def script() -> None:
        async with serving(tmp_path, idle=None, keep_alive=SHORT) as scene, scene.client() as raw:
            await raw.open_session()
            raw.send(id=1, method="tools/call", params={"name": "wait", "arguments": {}})
            assert (await raw.read())["method"] == "ping"
            message = await raw.read()
            while message is not None:  # perhaps what became of the call
                assert message.get("method") != "ping"
                message = await raw.read()

    run(script, timers_too=True)
    assert "the client has not answered for" in caplog.text


def test_active_client_is_not_pinged(tmp_path: Path) -> None:
    async def script() -> None:
        async with serving(tmp_path, idle=None, keep_alive=0.5) as scene, scene.client() as raw:
            await raw.open_session()
            for n in range(15):
                raw.send(id=n, method="tools/list")
                assert (await raw.read())["id"] == n
                await asyncio.sleep(0.05)

    run(script)


def test_without_limits_no_client_is_pinged_or_closed(tmp_path: Path) -> None:
    async def script() -> None:
        async with (
            serving(tmp_path, idle=None, keep_alive=None, message_timeout=None) as scene,
            scene.client() as raw,
            scene.client() as silent,
        ):
            await raw.open_session()
            await asyncio.sleep(0.3)
            assert scene.listening.connections == 2
            raw.send(id=1, method="ping")
            assert (await raw.read())["id"] == 1
            assert silent.reader._buffer == b""  # type: ignore[attr-defined]
            loop = asyncio.get_running_loop()
            looking = [each for each in loop._scheduled if "KeepAlive" in repr(each)]  # type: ignore[attr-defined]
            assert looking == []

    run(script, timers_too=True)


def test_without_pings_a_client_of_the_handshake_may_be_idle_too(tmp_path: Path) -> None:
    async def script() -> None:
        async with serving(tmp_path, idle=SHORT, keep_alive=None) as scene, scene.client() as raw:
            await raw.open_session()
            assert await raw.read() is None

    run(script)


def test_a_client_that_reads_nothing_is_lost_whatever_it_has_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.transports.sockets.connection._CLOSE_TIMEOUT_S", 0.05)

    async def script() -> None:
        async with serving(tmp_path, idle=SHORT) as scene:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stuck:
                stuck.connect(str(scene.path))
                call = {"name": "large", "arguments": {"size": 5_000_000}, "_meta": META}
                wait = {"name": "wait", "arguments": {}, "_meta": META}
                for id, params in ((1, call), (2, wait)):
                    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call"}
                    stuck.sendall(json.dumps({**message, "params": params}).encode() + b"\n")
                await until_async(lambda: scene.listening.connections == 1)
                await until_async(lambda: scene.listening.connections == 0)

    run(script, timers_too=True)
    assert "the client has read nothing for" in caplog.text


@pytest.mark.parametrize("revision", ["2026-07-28", HANDSHAKE])
def test_a_client_that_reads_slowly_gets_all_of_it(
    tmp_path: Path, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says nothing and has nothing open, and comes to no question before it has read all."""
    monkeypatch.setattr("trunkline.transports.sockets.connection._CLOSE_TIMEOUT_S", 0.02)

    async def script() -> None:
        async with serving(tmp_path, idle=0.2, keep_alive=0.2) as scene, scene.client() as raw:
            params: dict[str, Any] = {"name": "large", "arguments": {"size": 8_000_000}}
            if revision == HANDSHAKE:
                await raw.open_session()
            else:
                params["_meta"] = META
            raw.send(id=1, method="tools/call", params=params)
            got = 0
            while got < 8_000_000:
                got += len(part := await raw.reader.read(200_000))
                assert part, f"it was closed after {got} bytes"
                await asyncio.sleep(0.02)

    run(script)


# By itself


class Stub:
    """What a keeper looks at."""

    def __init__(self) -> None:
        self.loop: Any = asyncio.get_running_loop()
        self.session = None
        self.is_busy = False
        self.received = self.backlog = self.written = self.completed = 0
        self.is_receiving = False
        self.peer = ""
        self.ends: list[Any] = []

    def end(self, why: Any = None) -> None:
        self.ends.append(why)


def test_stopped_keepalive_reports_no_timeout() -> None:
    async def script() -> None:
        stub: Any = Stub()
        keeper = KeepAlive(stub, stub, SocketLimits(idle=0.02))
        keeper.stop()
        keeper.start()
        keeper.stop()
        keeper.stop()
        await asyncio.sleep(0.1)
        assert stub.ends == []

    run(script, timers_too=True)


def test_idle_timeout_is_reported_once_and_the_timer_stops() -> None:
    async def script() -> None:
        stub: Any = Stub()
        keeper = KeepAlive(stub, stub, SocketLimits(idle=0.02))
        keeper.start()
        await until_async(lambda: stub.ends)
        await asyncio.sleep(0.1)
        assert stub.ends == [None]

    run(script, timers_too=True)


def test_check_interval_is_a_fraction_of_the_shorter_timeout() -> None:
    async def script() -> None:
        stub: Any = Stub()
        for limits, step in (
            (SocketLimits(idle=8, keep_alive=4), 4 / keepalive._CHECKS_PER_TIMEOUT),
            (SocketLimits(idle=None, keep_alive=4), 4 / keepalive._CHECKS_PER_TIMEOUT),
            (SocketLimits(idle=2, keep_alive=None), 2 / keepalive._CHECKS_PER_TIMEOUT),
            (SocketLimits(message_timeout=2), 2 / keepalive._CHECKS_PER_TIMEOUT),
            (SocketLimits(idle=None, keep_alive=None, message_timeout=None), None),
        ):
            assert KeepAlive(stub, stub, limits)._interval == step

    run(script)


def clocked(**limits: Any) -> Any:
    """Return a stub whose timers a test moves, and which a keeper looks at."""
    stub = Stub()
    stub.loop = TimerLoop()
    KeepAlive(cast(Any, stub), cast(Any, stub), SocketLimits(**limits)).start()
    return stub


def test_message_that_drips_ends_the_connection_after_message_timeout() -> None:
    async def script() -> None:
        stub = clocked(message_timeout=30.0)
        stub.is_receiving = True
        for _ in range(37):
            stub.loop.move(1.0)
            stub.received += 1
        assert stub.ends == []
        stub.loop.move(1.0)
        (error,) = stub.ends
        assert str(error) == "a message was not complete in 30 s"
        assert stub.loop.timers == []

    run(script)


def test_message_has_a_second_more_for_each_16_kib_that_came() -> None:
    async def script() -> None:
        stub = clocked(message_timeout=4.0)
        stub.is_receiving = True
        stub.loop.move(1.0)  # the first check, which finds the message
        for _ in range(60):
            stub.received += 16 * 1024
            stub.loop.move(1.0)
        assert stub.ends == []
        stub.loop.move(3.9)
        assert stub.ends == []
        stub.loop.move(1.0)
        assert len(stub.ends) == 1

    run(script)


def test_each_message_has_a_message_timeout_of_its_own() -> None:
    async def script() -> None:
        stub = clocked(message_timeout=4.0)
        stub.is_receiving = True
        for _ in range(60):
            stub.received += 10
            stub.completed += 10  # and another one has begun
            stub.loop.move(1.0)
        stub.is_receiving = False
        stub.loop.move(1.0)
        stub.is_receiving = True
        stub.loop.move(4.0)
        assert stub.ends == []

    run(script)


def test_slow_message_is_not_ended_without_message_timeout() -> None:
    async def script() -> None:
        stub = clocked(message_timeout=None)
        stub.is_receiving = True
        for _ in range(100):
            stub.received += 1
            stub.loop.move(10.0)
        assert stub.ends == []

    run(script)


@pytest.mark.parametrize("kind", ["tcp", "tls", "unix"])
def test_socket_whose_message_drips_is_closed(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    context = None
    address: Tcp | Unix = Unix(tmp_path / "s")
    if kind != "unix":
        authority = Authority(tmp_path)
        cert, key = authority.certificate("localhost", "localhost", "127.0.0.1")
        tls = Tls(cert=cert, key=key) if kind == "tls" else False
        context = ssl.create_default_context(cafile=authority.ca) if tls else None
        address = Tcp("127.0.0.1", 0, tls=tls)

    async def script() -> None:
        limits = SocketLimits(message_timeout=0.2)
        async with Server("slow").listen(address, limits=limits) as listening:
            where = listening.address
            if isinstance(where, Tcp):
                opened = asyncio.open_connection(where.host, where.port, ssl=context)
            else:
                opened = asyncio.open_unix_connection(str(where.path))
            raw = LineClient(*await opened)
            ended = asyncio.ensure_future(raw.read())
            while not ended.done():
                raw.writer.write(b" ")
                await asyncio.sleep(0.01)
            assert await ended is None
            raw.writer.close()

    run(script)
    assert "connection closed: a message was not complete in 0.2 s" in caplog.text
