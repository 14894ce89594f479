"""Connections over sockets, with somebody at the other end who keeps to no rule of ours."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from tests.rigs.leaks import run
from tests.rigs.socket_listener import accepting
from trunkline import TransportError
from trunkline.jsonrpc import Limits, Policy
from trunkline.transports.addresses import Tcp, Unix
from trunkline.transports.base import HIGH_WATER
from trunkline.transports.sockets import connection
from trunkline.transports.sockets.connection import DialledSocket, resolve

POLICY = Policy()
ANY_PORT = Tcp("127.0.0.1", 0)
MIB = 1024 * 1024
# Closes with a reset in place of an orderly end.
RESET = struct.pack("ii", 1, 0)
Given = Tcp | Unix


class Recorder:
    """Record the frames and the ends that a transport reports."""

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.frames: list[Any] = []
        self.ends: list[TransportError | None] = []
        transport.on_message = lambda frame, _: self.frames.append(frame)
        transport.on_error = self.ends.append

    async def until(self, count: int) -> list[Any]:
        await until_async(lambda: len(self.frames) >= count, f"only {len(self.frames)} came")
        return self.frames

    async def ended(self) -> TransportError | None:
        await until_async(lambda: self.ends, "no end was reported")
        (end,) = self.ends
        return end


class PlainSocket:
    """A socket of no library's."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.socket = sock
        self._loop = asyncio.get_running_loop()

    async def write(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.socket, data)

    async def read(self) -> bytes:
        """Return all up to the end; a reset is an end too."""
        parts = []
        with contextlib.suppress(ConnectionError):
            while part := await self._loop.sock_recv(self.socket, MIB):
                parts.append(part)
        return b"".join(parts)

    async def line(self) -> bytes:
        parts = b""
        while not parts.endswith(b"\n"):
            part = await self._loop.sock_recv(self.socket, 1)
            if not part:
                break
            parts += part
        return parts

    def end(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.socket.close()

    def close(self) -> None:
        self.socket.close()


@asynccontextmanager
async def dialled(address: Given) -> AsyncIterator[PlainSocket]:
    """Connect with a plain socket."""
    if isinstance(address, Tcp):
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        raw = PlainSocket(socket.socket(family, socket.SOCK_STREAM))
        where: Any = (address.host, address.port)
    else:
        raw, where = PlainSocket(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)), address.path
    try:
        await asyncio.get_running_loop().sock_connect(raw.socket, where)
        yield raw
    finally:
        raw.close()


@asynccontextmanager
async def served(
    address: Given = ANY_PORT, policy: Policy = POLICY
) -> AsyncIterator[tuple[PlainSocket, Recorder]]:
    """Yield a plain client, and our server's end."""
    async with accepting(address, policy) as (where, arrived), dialled(where) as raw:
        recorder = Recorder(await arrived())
        await recorder.transport.connect()
        yield raw, recorder


@asynccontextmanager
async def plain_server() -> AsyncIterator[tuple[Tcp, socket.socket]]:
    """Listen with a plain socket."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    try:
        yield Tcp("127.0.0.1", listening.getsockname()[1]), listening
    finally:
        listening.close()


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Recorder, PlainSocket]]:
    """Yield our client's end, and a plain server."""
    async with plain_server() as (address, listening):
        recorder = Recorder(address.transport(POLICY))
        await recorder.transport.connect()
        sock, _ = await asyncio.get_running_loop().sock_accept(listening)
        raw = PlainSocket(sock)
        try:
            yield recorder, raw
        finally:
            raw.close()
            await recorder.transport.close()


# The two directions, and how they end


def test_frames_can_be_sent_after_the_peer_has_ended_its_output() -> None:
    async def script() -> None:
        async with served() as (raw, recorder):
            await raw.write(b"1\n2\n")
            raw.end()
            assert await recorder.ended() is None
            assert recorder.frames == [b"1", b"2"]
            assert recorder.transport.is_connected
            for n in range(3):
                recorder.transport.send(b"answer %d" % n)
            await recorder.transport.close()
            assert await raw.read() == b"answer 0\nanswer 1\nanswer 2\n"

    run(script)


def test_the_last_answer_is_not_lost_when_something_unread_is_there() -> None:
    """To close a socket with something unread in it throws away what was not read over there."""

    async def script() -> None:
        async with accepting() as (where, arrived):
            assert isinstance(where, Tcp)
            with socket.socket() as sock:
                # So that most of the answer stays on our side, until it is read.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sock.connect((where.host, where.port))
                raw = PlainSocket(sock)
                recorder = Recorder(await arrived())
                await recorder.transport.connect()
                recorder.transport.pause()  # as for who does not get round to reading
                await raw.write(b"more\n" * 1000)
                answer = b"x" * 300_000
                recorder.transport.send(answer)
                await until_async(lambda: recorder.transport.backlog == 0)
                await recorder.transport.close()
                assert await raw.read() == answer + b"\n"

    run(script)


def test_close_ends_a_connection_whose_peer_stays_open() -> None:
    async def script() -> None:
        async with served() as (raw, recorder):
            recorder.transport.send(b"bye")
            await recorder.transport.close()
            assert recorder.ends == [None]
            assert await raw.line() == b"bye\n"
            assert await raw.read() == b""

    run(script, timers_too=True)


def test_close_ends_a_connection_whose_peer_keeps_sending() -> None:
    async def script() -> None:
        async with served() as (raw, recorder):

            async def flood() -> None:
                with contextlib.suppress(ConnectionError):
                    while True:
                        await raw.write(b"x" * 1000 + b"\n")

            flooding = asyncio.create_task(flood())
            await recorder.until(10)
            await recorder.transport.close()
            count = len(recorder.frames)
            await flooding
            assert len(recorder.frames) == count
            assert recorder.ends == [None]

    run(script)


def test_reset_in_the_middle_of_a_frame_is_reported_as_a_loss() -> None:
    async def script() -> None:
        async with served() as (raw, recorder):
            await raw.write(b"whole\nhal")
            await recorder.until(1)
            raw.reset()
            end = await recorder.ended()
            assert isinstance(end, TransportError)
            assert "the connection was lost: Connection reset by peer" in str(end)
            assert recorder.frames[0] == b"whole"
            assert not recorder.transport.is_connected
            recorder.transport.send(b"dropped")
            assert recorder.transport.backlog == 0

    run(script, timers_too=True)


def test_frames_received_before_a_loss_are_delivered_before_it() -> None:
    async def script() -> None:
        async with connected() as (recorder, raw):
            recorder.transport.pause()  # writing fails before anything is read
            await raw.write(b"no room for you\n")
            raw.close()
            for _ in range(3):
                recorder.transport.send(b"x")
                await asyncio.sleep(0.01)
            assert not recorder.transport.is_connected
            assert recorder.ends == []
            recorder.transport.resume()
            await recorder.ended()
            assert recorder.frames == [b"no room for you"]

    run(script, timers_too=True)


def test_loss_is_reported_while_reading_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_REST_TIMEOUT_S", 0.05)

    async def script() -> None:
        async with connected() as (recorder, raw):
            recorder.transport.pause()
            raw.reset()
            recorder.transport.send(b"x")
            assert "the connection was lost: " in str(await recorder.ended())

    run(script, timers_too=True)


def test_a_frame_that_comes_byte_by_byte_is_whole() -> None:
    async def script() -> None:
        async with served() as (raw, recorder):
            for byte in b'{"slow": true}\n{"second": 1}\n':
                await raw.write(bytes([byte]))
                await asyncio.sleep(0)
            assert await recorder.until(2) == [b'{"slow": true}', b'{"second": 1}']
            assert recorder.transport.received == 29

    run(script)


def test_close_times_out_on_a_peer_that_never_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_CLOSE_TIMEOUT_S", 0.05)

    async def script() -> None:
        async with served() as (_raw, recorder):
            while recorder.transport.backlog <= HIGH_WATER:
                recorder.transport.send(b"x" * MIB)
                await asyncio.sleep(0)
            await recorder.transport.close()
            assert recorder.transport.backlog == 0
            assert recorder.ends == [None]
            assert not recorder.transport.is_connected

    run(script, timers_too=True)


def test_pausing_keeps_the_other_side_waiting_and_loses_nothing() -> None:
    async def script() -> None:
        async with served() as (raw, recorder):
            recorder.transport.pause()
            count = 40_000
            writing = asyncio.create_task(raw.write(b"x" * 999 + b"\n" + b"y" * 999 + b"\n"))
            await writing
            writing = asyncio.create_task(raw.write((b"z" * 999 + b"\n") * count))
            await asyncio.sleep(0.1)
            assert recorder.frames == []
            assert not writing.done()
            recorder.transport.resume()
            await recorder.until(count + 2)
            await writing
            assert [len(frame) for frame in recorder.frames] == [999] * (count + 2)
            recorder.transport.pause()
            recorder.transport.pause()
            recorder.transport.resume()
            recorder.transport.resume()
            await raw.write(b"last\n")
            await recorder.until(count + 3)

    run(script)


def test_closing_while_paused_has_an_end() -> None:
    async def script() -> None:
        async with served() as (raw, recorder):
            recorder.transport.pause()
            await raw.write(b"unread\n")
            raw.end()
            await recorder.transport.close()
            assert recorder.ends == [None]
            recorder.transport.resume()
            recorder.transport.pause()

    run(script)


# Connecting


def test_frame_received_before_connect_can_be_answered_from_the_callback() -> None:
    async def script() -> None:
        for _ in range(20):
            async with accepting() as (where, arrived), dialled(where) as raw:
                await raw.write(b"question\n")
                transport = await arrived()
                await asyncio.sleep(0.005)  # it is there
                transport.on_message = lambda frame, _, to=transport: to.send(b"answer")
                await transport.connect()
                assert await raw.line() == b"answer\n"

    run(script)


def test_connection_refused_names_the_address() -> None:
    async def script() -> None:
        async with plain_server() as (address, _):
            pass
        with pytest.raises(TransportError, match=rf"{address}: Connection refused"):
            await address.transport(POLICY).connect()

    run(script)


def test_a_name_with_several_addresses_is_refused_in_one_sentence() -> None:
    async def script() -> None:
        async with plain_server() as (address, _):
            pass
        with pytest.raises(TransportError) as caught:
            await Tcp("localhost", address.port).transport(POLICY).connect()
        assert str(caught.value).count("Connection refused") == 1
        assert f"tcp://localhost:{address.port}" in str(caught.value)

    run(script)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".invalid"])
def test_unknown_host_raises_transport_error(host: str) -> None:
    async def script() -> None:
        with pytest.raises(TransportError, match="invalid"):
            await Tcp(host, 1).transport(POLICY).connect()

    run(script)


def test_unused_unix_path_raises_transport_error(tmp_path: Path) -> None:
    async def script() -> None:
        with pytest.raises(TransportError, match=r"unix:.*/s: No such file"):
            await Unix(tmp_path / "s").transport(POLICY).connect()
        (tmp_path / "s").touch()
        with pytest.raises(TransportError, match=r"unix:.*/s: Connection refused"):
            await Unix(tmp_path / "s").transport(POLICY).connect()

    run(script)


def test_port_0_is_for_listening() -> None:
    async def script() -> None:
        with pytest.raises(TransportError, match="but not dial"):
            await Tcp("127.0.0.1", 0).transport(POLICY).connect()

    run(script)


async def fill(address: Unix, held: list[socket.socket]) -> None:
    """Connect until there is no more room in the queue."""
    with contextlib.suppress(BlockingIOError):
        while True:
            held.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            held[-1].setblocking(False)
            held[-1].connect(str(address.path))


@asynccontextmanager
async def crowded(tmp_path: Path) -> AsyncIterator[tuple[Unix, socket.socket]]:
    """Listen at a path whose queue is full, so that connecting has to wait."""
    address = Unix(tmp_path / "crowded")
    held: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(address.path))
        listening.listen(0)
        try:
            await fill(address, held)
            yield address, listening
        finally:
            for each in held:
                each.close()


@asynccontextmanager
async def crowded_tcp() -> AsyncIterator[Tcp]:
    """The same of a port."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening:
        where = listening.getsockname()
        try:
            for _ in range(8):
                held.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
                held[-1].setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    held[-1].connect(where)
            yield Tcp(*where)
        finally:
            for each in held:
                each.close()


def test_a_path_whose_queue_is_full_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the loop would take a socket for connected that is not."""

    async def script() -> None:
        async with crowded(tmp_path) as (address, listening):
            transport = address.transport(POLICY)
            connecting = asyncio.create_task(transport.connect())
            await asyncio.sleep(0.05)
            assert not connecting.done()
            assert not transport.is_connected
            accepted = []
            listening.setblocking(False)
            while not connecting.done():
                with contextlib.suppress(BlockingIOError):
                    accepted.append(listening.accept()[0])
                await asyncio.sleep(0.005)
            await connecting
            assert transport.is_connected
            for each in accepted:
                each.close()
            await transport.close()

            monkeypatch.setattr(connection, "_CONNECT_TIMEOUT_S", 0.02)
            await fill(address, held)
            with pytest.raises(TransportError, match=r"unix:.*: Resource temporarily unavailable"):
                await address.transport(POLICY).connect()
            for each in held:
                each.close()

    held: list[socket.socket] = []
    run(script)


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_waiting_for_a_path_can_be_given_up(tmp_path: Path, how: str) -> None:
    async def script() -> None:
        async with crowded(tmp_path) as (address, _):
            transport = address.transport(POLICY)
            connecting = asyncio.create_task(transport.connect())
            await asyncio.sleep(0.02)
            if how == "cancel":
                connecting.cancel()
            else:
                await transport.close()
            await asyncio.wait((connecting,))
            assert connecting.cancelled() == (how == "cancel")
            if how == "close":
                assert "closed while connecting" in str(connecting.exception())
            await transport.close()

    run(script)


def test_closing_ends_a_connecting_that_takes_its_time() -> None:
    async def script() -> None:
        async with crowded_tcp() as address:
            transport = address.transport(POLICY)
            recorder = Recorder(transport)
            connecting = asyncio.create_task(transport.connect())
            await asyncio.sleep(0.05)
            assert not connecting.done()
            await transport.close()
            with pytest.raises(TransportError, match="closed while connecting"):
                await connecting
            assert recorder.ends == []
            assert not transport.is_connected

    run(script)


def test_connect_can_be_cancelled() -> None:
    async def script() -> None:
        async with crowded_tcp() as address:
            transport = address.transport(POLICY)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await transport.connect()
            assert not transport.is_connected
            with pytest.raises(TransportError, match="connects once"):
                await transport.connect()
            await transport.close()

    run(script)


def test_unresponsive_address_is_given_up_after_the_connect_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_CONNECT_TIMEOUT_S", 0.05)

    async def script() -> None:
        async with crowded_tcp() as address:
            with pytest.raises(TransportError, match=r"no answer within 0\.05 s"):
                await address.transport(POLICY).connect()

    run(script)


def test_a_transport_connects_once() -> None:
    async def script() -> None:
        async with connected() as (recorder, _):
            with pytest.raises(TransportError, match="connects once"):
                await recorder.transport.connect()
            assert recorder.transport.is_connected

        closed = Tcp("127.0.0.1", 1).transport(POLICY)
        await closed.close()
        with pytest.raises(TransportError, match="connects once"):
            await closed.connect()

    run(script)


@pytest.mark.parametrize("how", ["close", "discard", "connect then close", "close at once"])
def test_unused_accepted_connection_leaves_no_descriptor(how: str) -> None:
    async def script() -> None:
        async with accepting() as (where, arrived), dialled(where) as raw:
            transport = await arrived()
            if how == "discard":
                transport.discard()
            elif how == "close":
                await transport.close()
            elif how == "connect then close":
                await transport.connect()
                await transport.close()
            else:
                connecting = asyncio.create_task(transport.connect())
                await asyncio.sleep(0)  # the task has begun, and what it began has not
                closing = asyncio.create_task(transport.close())
                await asyncio.wait((connecting, closing))
                connecting.exception()
            assert await raw.read() == b""
            assert transport._accepted.fileno() == -1
            with pytest.raises(TransportError, match="connects once"):
                await transport.connect()

    run(script)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_localhost_connects_to_a_listener_on_one_of_its_addresses(host: str) -> None:
    async def script() -> None:
        try:
            listening = accepting(Tcp(host, 0))
            where, arrived = await listening.__aenter__()
        except TransportError:
            pytest.skip(f"there is no {host} here")
        assert isinstance(where, Tcp)
        found = await resolve(asyncio.get_running_loop(), "localhost", 1)
        if not any(each[1][0] == host for each in found):
            await listening.__aexit__(None, None, None)
            pytest.skip(f"localhost is not {host} here")
        transport = Tcp("localhost", where.port).transport(POLICY)
        await transport.connect()
        server = Recorder(await arrived())
        await server.transport.connect()
        transport.send(b"hello")
        assert await server.until(1) == [b"hello"]
        assert (host in server.transport.peer) == (host in server.transport.peer.strip("[]"))
        await transport.close()
        await listening.__aexit__(None, None, None)

    run(script)


def test_listener_on_localhost_is_reached_at_all_its_addresses() -> None:
    async def script() -> None:
        async with accepting(Tcp("localhost", 0)) as (where, arrived):
            assert isinstance(where, Tcp)
            found = await resolve(asyncio.get_running_loop(), "localhost", where.port)
            reached = 0
            for _, (host, *_rest) in found:
                try:
                    async with dialled(Tcp(host, where.port)) as raw:
                        transport = await arrived()
                        await transport.connect()
                        transport.send(b"hello")
                        assert await raw.line() == b"hello\n"
                        reached += 1
                        await transport.close()
                except OSError:
                    continue  # a family that this machine does not have
            assert reached

    run(script)


def test_a_lookup_leaves_no_thread() -> None:
    async def script() -> None:
        before = threading.active_count()
        await resolve(asyncio.get_running_loop(), "localhost", 1)
        assert threading.active_count() == before

    run(script)


def test_sockets_have_nodelay_and_keepalive_and_are_not_inheritable() -> None:
    async def script() -> None:
        async with accepting() as (where, arrived):
            client = DialledSocket(where, POLICY)
            await client.connect()
            server = await arrived()
            await server.connect()
            for each in (client._socket, server._socket):
                assert each is not None
                assert each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                assert each.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                assert not each.get_inheritable()
            await client.close()

    run(script)


# Sizes


@pytest.mark.parametrize("framing", ["newline", "content-length", "length-prefix"])
def test_the_largest_frame_comes_through_and_one_larger_does_not(framing: Any) -> None:
    policy = POLICY.replace(framing=framing, limits=Limits(tcp=16 * MIB))

    async def script() -> None:
        async with accepting(policy=policy) as (where, arrived):
            client = where.transport(policy)
            await client.connect()
            server = Recorder(await arrived())
            await server.transport.connect()
            client.send(b"x" * (16 * MIB))
            client.send(b"y" * (16 * MIB + 1))
            client.send(b"z")
            frames = await server.until(3)
            assert frames[0] == b"x" * (16 * MIB)
            assert not isinstance(frames[1], bytes)
            assert frames[2] == b"z"
            await client.close()

    run(script)
