"""Ending one direction: nothing more is sent, and what comes is still read."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from trunkline.errors import TransportError
from trunkline.jsonrpc import Policy
from trunkline.testing.transport_contract import Observed, leftovers
from trunkline.transports import Stdio, StdioServer, Tcp, Tls, Unix
from trunkline.transports.framed import FramedTransport
from trunkline.transports.sockets.connection import AcceptedSocket
from trunkline.transports.sockets.listener import Listener

WAIT = 30
MIB = 1024 * 1024
WAYS = ("tcp", "unix", "tls")


def play(script: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        before = leftovers()
        await script()
        assert leftovers() == before

    asyncio.run(asyncio.wait_for(run(), WAIT))


def addresses(way: str, folder: Path) -> tuple[Tcp | Unix, Tls | None]:
    """Return where to listen, and how a client trusts it."""
    if way == "unix":
        return Unix(folder / "s"), None
    if way == "tcp":
        return Tcp("127.0.0.1", 0), None
    authority = Authority(folder)
    cert, key = authority.certificate("localhost", "127.0.0.1")
    return Tcp("127.0.0.1", 0, tls=Tls(cert=cert, key=key)), Tls(ca=authority.ca)


async def connected(way: str, folder: Path) -> tuple[Observed, Observed]:
    """Return the two ends of one connection over a socket."""
    arrived: asyncio.Future[AcceptedSocket] = asyncio.get_running_loop().create_future()
    address, trust = addresses(way, folder)
    listener = Listener(address, Policy(), arrived.set_result)
    await listener.open()
    where = listener.address
    if isinstance(where, Tcp):
        where = Tcp(where.host, where.port, tls=trust or False)
    client = Observed(where.transport(Policy()))
    dialling = asyncio.create_task(client.transport.connect())
    server = Observed(await arrived)
    await server.transport.connect()
    await dialling
    listener.close()
    return client, server


def framed(end: Observed) -> FramedTransport:
    assert isinstance(end.transport, FramedTransport)
    return end.transport


@pytest.mark.parametrize("way", WAYS)
def test_over_a_socket_answers_come_after_the_end_of_what_was_asked(
    way: str, tmp_path: Path
) -> None:
    async def script() -> None:
        client, server = await connected(way, tmp_path)
        client.transport.send(b"q" * MIB)
        client.transport.send(b"last")
        await framed(client).finish()
        assert not client.transport.is_connected
        client.transport.send(b"dropped")
        assert await server.ended() is None
        assert server.frames == [b"q" * MIB, b"last"]
        assert server.transport.is_connected
        server.transport.send(b"a" * MIB)
        server.transport.send(b"the answer")
        assert await client.received(2) == [b"a" * MIB, b"the answer"]
        assert client.ends == []
        await server.transport.close()
        assert await client.ended() is None
        await client.transport.close()

    play(script)


@pytest.mark.parametrize("way", WAYS)
def test_over_a_socket_it_can_be_closed_while_it_finishes(way: str, tmp_path: Path) -> None:
    async def script() -> None:
        client, server = await connected(way, tmp_path)
        framed(server).pause()
        for _ in range(16):
            client.transport.send(b"q" * MIB)
        finishing = asyncio.create_task(framed(client).finish())
        await asyncio.sleep(0.05)
        assert not finishing.done()
        closing = asyncio.create_task(client.transport.close())
        await asyncio.sleep(0.05)
        framed(server).resume()
        await closing
        await finishing
        assert await server.ended() is None
        assert len(server.frames) == 16
        await server.transport.close()

    play(script)


def test_is_abandoned_is_true_only_after_the_peer_has_closed(tmp_path: Path) -> None:
    async def script() -> None:
        client, server = await connected("unix", tmp_path)
        assert not framed(server).is_abandoned()
        await framed(client).finish()
        await server.ended()
        assert not framed(server).is_abandoned()
        closing = asyncio.create_task(client.transport.close())
        while not framed(server).is_abandoned():
            await asyncio.sleep(0.01)
        await server.transport.close()
        await closing
        assert not framed(server).is_abandoned()  # there is nothing left to ask about

    play(script)


def child(script: str, **options: Any) -> Observed:
    words = [sys.executable, "-S", "-E", "-u", "-c", script]
    return Observed(Stdio(words, **options).transport(Policy()))


def test_a_child_answers_after_the_end_of_its_input_and_its_exit_is_in_order() -> None:
    async def script() -> None:
        end = child("import sys\nprint(len(sys.stdin.read()))")
        await end.transport.connect()
        end.transport.send(b"x" * (3 * MIB))
        await framed(end).finish()
        assert await end.ended() is None
        assert end.frames == [str(3 * MIB + 1).encode()]
        assert end.transport.exit_status == 0  # type: ignore[attr-defined]
        await end.transport.close()

    play(script)


def test_child_failure_after_end_of_input_ends_the_transport_with_its_status() -> None:
    async def script() -> None:
        end = child("import sys\nsys.stdin.read()\nsys.exit(3)")
        await end.transport.connect()
        await framed(end).finish()
        error = await end.ended()
        assert isinstance(error, TransportError)
        assert error.exit_status == 3
        await end.transport.close()

    play(script)


def test_a_child_that_does_not_end_after_its_input_has_is_not_hurried() -> None:
    async def script() -> None:
        end = child("import sys, time\nsys.stdin.read()\nprint('on')\ntime.sleep(60)", grace=0.2)
        await end.transport.connect()
        await framed(end).finish()
        assert await end.received(1) == [b"on"]
        await asyncio.sleep(1.0)
        assert end.ends == []
        assert end.transport.exit_status is None  # type: ignore[attr-defined]
        await end.transport.close()
        assert end.transport.exit_status == -15  # type: ignore[attr-defined]

    play(script)


def test_output_of_an_exited_child_is_kept_while_reading_is_paused() -> None:
    async def script() -> None:
        end = child("import os\ninput()\nos.write(1, b'x\\n' * 10_000)")
        await end.transport.connect()
        transport = framed(end)
        transport.pause()
        end.transport.send(b"go")
        while end.transport.exit_status is None:  # type: ignore[attr-defined]
            await asyncio.sleep(0.02)
        # Longer than is waited for the rest of a child that says nothing.
        await asyncio.sleep(2.5)
        assert (end.frames, end.ends) == ([], [])
        transport.resume()
        await end.ended()
        assert end.frames == [b"x"] * 10_000
        await end.transport.close()

    play(script)


def test_close_of_a_paused_child_does_not_wait() -> None:
    async def script() -> None:
        end = child("import os\nos.write(1, b'x\\n' * 1000)")
        await end.transport.connect()
        framed(end).pause()
        while end.transport.exit_status is None:  # type: ignore[attr-defined]
            await asyncio.sleep(0.02)
        await end.transport.close()
        assert len(end.ends) == 1

    play(script)


def test_the_log_of_a_child_comes_as_it_is() -> None:
    written = b"\n a line\n\n\r\x1b[1mbold\xff\nno end"

    async def script() -> None:
        heard: list[bytes] = []
        end = child(f"import os\nos.write(2, {written!r})")
        end.transport.on_stderr = heard.append  # type: ignore[attr-defined]
        await end.transport.connect()
        await end.ended()
        assert b"".join(heard) == written
        await end.transport.close()

    play(script)


def test_standard_streams_are_written_out_however_late_they_are_read() -> None:
    async def script() -> None:
        (stdin, far_in), (far_out, stdout) = os.pipe(), os.pipe()
        end = Observed(StdioServer(Policy(), stdin=stdin, stdout=stdout))
        await end.transport.connect()
        end.transport.send(b"x" * (4 * MIB))
        finishing = asyncio.create_task(framed(end).finish())
        await asyncio.sleep(1.5)
        assert not finishing.done()
        left = 4 * MIB + 1
        while left:
            left -= len(await asyncio.to_thread(os.read, far_out, MIB))
        await finishing
        os.write(far_in, b"still read\n")
        assert await end.received(1) == [b"still read"]
        await end.transport.close()
        os.close(far_in)
        os.close(far_out)
        await asyncio.get_running_loop().shutdown_default_executor()

    play(script)
