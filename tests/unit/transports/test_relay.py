from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from trunkline.errors import TransportError
from trunkline.jsonrpc import Limits, Policy
from trunkline.testing.transport_contract import Observed, leftovers
from trunkline.transports import Stdio, Transport, memory_pair, relay
from trunkline.transports.addresses import Unix
from trunkline.transports.base import HIGH_WATER
from trunkline.transports.io.fd import READ_BUFFER_BYTES
from trunkline.transports.relay import Relay, RelayEnd
from trunkline.transports.sockets import connection
from trunkline.transports.sockets.connection import AcceptedSocket

WAIT = 30
MIB = 1024 * 1024


def added_since(before: dict[str, set[Any]]) -> dict[str, set[Any]]:
    """Return what is left over now and was not before; threads of other tests may have ended."""
    now = leftovers()
    return {kind: more for kind, items in now.items() if (more := items - before[kind])}


class Far:
    """The side of a connection that is not ours, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def say(self, data: bytes) -> None:
        self.writer.write(data)

    async def line(self) -> bytes:
        return await self.reader.readline()

    async def rest(self) -> bytes:
        return await self.reader.read()

    def end(self) -> None:
        self.writer.write_eof()

    def leave(self) -> None:
        self.writer.close()


async def joint(policy: Policy) -> tuple[AcceptedSocket, Far]:
    """Return a transport, not yet connected, and the other side of it."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    transport = AcceptedSocket(ours, policy, Unix("joint"), peer="")
    return transport, Far(*await asyncio.open_connection(sock=theirs))


class RelayedEnds:
    """A client, a server, and what joins them."""

    def __init__(self, client: Far, server: Far, running: asyncio.Task[RelayEnd]) -> None:
        self.client, self.server, self.running = client, server, running


@asynccontextmanager
async def joined(
    *, source: Policy | None = None, target: Policy | None = None, **options: Any
) -> AsyncIterator[RelayedEnds]:
    before = leftovers()
    near, client = await joint(source or Policy())
    far, server = await joint(target or Policy())
    running = asyncio.create_task(Relay(near, far, **options).run())
    async with asyncio.timeout(WAIT):
        try:
            yield RelayedEnds(client, server, running)
            await running
        finally:
            running.cancel()
            await asyncio.wait((running,))
            for each in (client, server):
                each.leave()
                await asyncio.wait((asyncio.ensure_future(each.writer.wait_closed()),))
            del near, far, client, server, running
    assert added_since(before) == {}


def play(script: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(script(), WAIT))


def framed(framing: Any) -> Policy:
    return Policy(framing=framing)


def test_frames_pass_both_ways_as_they_are_and_in_order() -> None:
    async def script() -> None:
        odd = [b'{"a": 1 , "a":2}', b"\x00\xff\xfe no JSON", b"  [", b"\xed\xa0\x80", b"x" * MIB]
        async with joined() as scene:
            scene.client.say(b"".join(each + b"\n" for each in odd))
            assert [await _line(scene.server) for _ in odd] == odd
            scene.server.say(b"".join(each + b"\n" for each in reversed(odd)))
            assert [await _line(scene.client) for _ in odd] == odd[::-1]
            scene.client.end()
            assert await scene.server.rest() == b""
            scene.server.leave()
            assert await scene.running == RelayEnd("source")

    play(script)


async def _line(far: Far) -> bytes:
    """Return a line, which the reader alone would not take if it is long."""
    found = b""
    while not found.endswith(b"\n"):
        try:
            found += await far.reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            found += await far.reader.readexactly(error.consumed)
    return found[:-1]


def test_each_side_has_its_own_framing() -> None:
    async def script() -> None:
        async with joined(source=framed("newline"), target=framed("length-prefix")) as scene:
            scene.client.say(b"hello\n")
            assert await scene.server.reader.readexactly(9) == b"\0\0\0\x05hello"
            scene.server.say(b"\0\0\0\x02hi")
            assert await scene.client.line() == b"hi\n"
            scene.client.end()
            scene.server.leave()

    play(script)


def test_replies_are_forwarded_after_the_client_has_ended_its_output() -> None:
    async def script() -> None:
        async with joined() as scene:
            scene.client.say(b"one\n")
            scene.client.end()
            assert await scene.server.rest() == b"one\n"
            scene.server.say(b"1\n")
            assert await scene.client.line() == b"1\n"
            scene.server.say(b"2\n3")
            scene.server.leave()
            # A last line that lacks its end is a frame all the same.
            assert await scene.client.rest() == b"2\n3\n"
            assert await scene.running == RelayEnd("source")

    play(script)


def test_the_end_of_a_server_ends_it_all_after_what_it_said() -> None:
    async def script() -> None:
        async with joined() as scene:
            scene.server.say(b"bye\n")
            scene.server.end()
            assert await scene.client.rest() == b"bye\n"
            assert await scene.running == RelayEnd("target")

    play(script)


@pytest.mark.parametrize("seems_there", [False, True])
def test_target_gets_end_of_input_and_a_grace_period_after_the_client_is_gone(
    monkeypatch: pytest.MonkeyPatch, seems_there: bool
) -> None:
    monkeypatch.setattr(relay, "_SERVER_END_TIMEOUT_S", 0.2)
    monkeypatch.setattr(relay, "_POLL_INTERVAL_S", 0.05)

    async def script() -> None:
        async with joined() as scene:
            scene.client.say(b"long work\n")
            assert await scene.server.line() == b"long work\n"
            if seems_there:
                scene.client.end()
                assert await scene.server.rest() == b""
            scene.client.leave()
            assert await scene.server.rest() == b""
            # It never ends by itself, and says nothing that could not be written.
            assert await scene.running == RelayEnd("source")

    play(script)


def test_a_server_that_is_silent_after_the_end_of_its_input_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay, "_POLL_INTERVAL_S", 0.02)

    async def script() -> None:
        async with joined(linger=0.1) as scene:
            scene.client.end()
            assert await scene.server.rest() == b""
            assert await scene.client.rest() == b""
            assert await scene.running == RelayEnd("source")

    play(script)


SPOILT: list[tuple[str, Policy, bytes, str]] = [
    (
        "long",
        Policy(limits=Limits(unix=10)),
        b"12345678901\n",
        "a message, over the limit of 10 bytes",
    ),
    (
        "declared",
        Policy(framing="length-prefix", limits=Limits(unix=10)),
        b"\0\0\0\x0b12345678901",
        "a message of 11 bytes, over the limit of 10 bytes",
    ),
    ("headless", framed("content-length"), b"{}\n\n", "a header without a valid Content-Length"),
    (
        "two lines",
        framed("length-prefix"),
        b"\0\0\0\x03a\nb",
        "what the other framing cannot carry",
    ),
]


@pytest.mark.parametrize(("policy", "said", "why"), [row[1:] for row in SPOILT])
def test_bad_frame_ends_the_relay_with_the_reason(policy: Policy, said: bytes, why: str) -> None:
    async def script() -> None:
        async with joined(source=policy) as scene:
            scene.client.say(said)
            assert await scene.server.rest() == b""
            assert await scene.client.rest() == b""
            ending = await scene.running
            assert ending.by == "relay"
            assert str(ending.error).startswith("the client sent ")
            assert why in str(ending.error)

    play(script)


def test_a_frame_that_is_cut_short_is_not_passed_on() -> None:
    async def script() -> None:
        async with joined(target=framed("length-prefix")) as scene:
            scene.server.say(b"\0\0\0\x02hi\0\0\0\x09half")
            scene.server.end()
            assert await scene.client.rest() == b"hi\n"
            ending = await scene.running
            assert (ending.by, str(ending.error)) == (
                "relay",
                "the server sent a truncated message",
            )

    play(script)


def test_relay_reads_no_faster_than_the_other_side_accepts() -> None:
    total, size = 64 * MIB, 100_000

    async def script() -> None:
        near, client = await joint(Policy())
        far, server = await joint(Policy())
        peak = 0

        def hear(*_: object) -> None:
            nonlocal peak
            peak = max(peak, near.backlog)

        running = asyncio.create_task(Relay(near, far, hear=hear).run())
        frame = b"x" * (size - 1) + b"\n"

        async def send() -> None:
            for _ in range(total // size):
                server.say(frame)
                await server.writer.drain()

        sending = asyncio.create_task(send())
        # It takes nothing until all has stopped.
        last = -1
        while peak <= HIGH_WATER or near.backlog != last:
            last = near.backlog
            await asyncio.sleep(0.05)
        assert not sending.done()
        taken = 0
        while taken < total // size * size:
            taken += len(await client.reader.read(MIB))
        await sending
        assert HIGH_WATER < peak <= HIGH_WATER + size + READ_BUFFER_BYTES
        for each in (server, client):
            each.leave()
        await running

    play(script)


def test_listener_is_called_before_each_frame_and_its_exception_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Any] = []

    def hear(sender: str, frame: Any) -> None:
        heard.append((sender, frame))
        raise ValueError("deaf")

    async def script() -> None:
        async with joined(hear=hear) as scene:
            scene.client.say(b"one\n")
            assert await scene.server.line() == b"one\n"
            scene.server.say(b"two\n")
            assert await scene.client.line() == b"two\n"
            scene.client.end()
            scene.server.leave()
        assert heard == [("client", b"one"), ("server", b"two")]

    with caplog.at_level(logging.ERROR, "trunkline.transports"):
        play(script)
    assert caplog.text.count("hear raised") == 1


class Slow:
    """An address that is connected to when it is told so."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.may_connect = asyncio.Event()
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("on_"):
            setattr(self._inner, name, value)
        else:
            object.__setattr__(self, name, value)

    async def connect(self) -> None:
        await self.may_connect.wait()
        if self.fails:
            raise TransportError("nobody there")
        await self._inner.connect()


def test_frames_before_the_target_is_connected_wait_for_it() -> None:
    async def script() -> None:
        near, client = await joint(Policy())
        inner, server = await joint(Policy())
        far = Slow(inner)
        running = asyncio.create_task(Relay(near, far).run())
        client.say(b"one\ntwo\n")
        await asyncio.sleep(0.05)
        # No more is read than had arrived.
        client.say(b"three\n")
        client.end()
        await asyncio.sleep(0.05)
        assert near.received == len(b"one\ntwo\n")
        far.may_connect.set()
        assert await server.rest() == b"one\ntwo\nthree\n"
        server.leave()
        assert await running == RelayEnd("source")
        client.leave()

    play(script)


def test_a_server_that_is_not_there_leaves_nothing_open() -> None:
    async def script() -> None:
        near, client = await joint(Policy())
        inner, server = await joint(Policy())
        far = Slow(inner)
        far.fails = True
        far.may_connect.set()
        with pytest.raises(TransportError, match="nobody there"):
            await Relay(near, far).run()
        assert await client.rest() == b""
        inner.discard()
        for each in (client, server):
            each.leave()

    play(script)


def test_transports_that_have_no_more_than_they_must_are_joined_too() -> None:
    async def script() -> None:
        (near, client), (far, server) = memory_pair(), memory_pair()
        ours, theirs = Observed(client), Observed(server)
        before: list[int] = []  # how much had arrived when it was heard

        def hear(*_: object) -> None:
            before.append(len(ours.frames) + len(theirs.frames))

        running = asyncio.create_task(Relay(near, far, hear=hear).run())
        await client.connect()
        await server.connect()
        client.send(b"one")
        await theirs.received(1)
        server.send(b"two")
        await ours.received(1)
        await client.close()
        await theirs.ended()
        assert await running == RelayEnd("source")
        assert (ours.frames, theirs.frames) == ([b"two"], [b"one"])
        assert before == [0, 1]

    play(script)


def child(script: str) -> Transport:
    address = Stdio([sys.executable, "-S", "-E", "-u", "-c", script], grace=5.0)
    return address.transport(Policy())


def test_child_process_gets_end_of_input_and_exits_in_order() -> None:
    echo = "import sys\nfor line in sys.stdin: print(line.upper(), end='')\nprint('bye')"

    async def script() -> None:
        before = leftovers()
        near, client = await joint(Policy())
        running = asyncio.create_task(Relay(near, child(echo)).run())
        client.say(b"one\ntwo\n")
        client.end()
        assert await client.rest() == b"ONE\nTWO\nbye\n"
        assert await running == RelayEnd("source")
        client.leave()
        await client.writer.wait_closed()
        del client, near, running
        assert added_since(before) == {}

    play(script)


def test_killed_child_process_is_reported_with_its_status() -> None:
    doomed = "import os\ninput()\nprint('last words')\nos.kill(os.getpid(), 9)"

    async def script() -> None:
        near, client = await joint(Policy())
        running = asyncio.create_task(Relay(near, child(doomed)).run())
        client.say(b"go\n")
        assert await client.rest() == b"last words\n"
        ending = await running
        assert ending.by == "target"
        assert ending.error is not None
        assert ending.error.exit_status == -signal.SIGKILL
        client.leave()

    play(script)


def test_cancelled_it_lets_the_server_say_its_last_words() -> None:
    polite = "import sys\nprint('up')\nsys.stdin.read()\nprint('bye')"

    async def script() -> None:
        near, client = await joint(Policy())
        running = asyncio.create_task(Relay(near, child(polite)).run())
        assert await client.line() == b"up\n"
        running.cancel()
        assert await client.rest() == b"bye\n"
        with pytest.raises(asyncio.CancelledError):
            await running
        client.leave()

    play(script)


@pytest.mark.parametrize("size", [3 * MIB, 6 * MIB])
def test_nothing_of_a_process_is_lost_whose_client_reads_late(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    # Far longer than who closes waits for one that takes nothing.
    monkeypatch.setattr(connection, "_CLOSE_TIMEOUT_S", 0.1)
    # Less than makes a relay wait, and more than that and every pipe hold. The process is gone
    # long before it is read.
    flood = f"import os\nos.write(1, b'x' * ({size} - 1) + b'\\n' + b'end\\n')"

    async def script() -> None:
        near, client = await joint(Policy())
        far = child(flood)
        running = asyncio.create_task(Relay(near, far).run())
        while getattr(far, "exit_status", None) is None:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        data = await client.rest()
        assert len(data) == size + 4
        assert data.endswith(b"x\nend\n")
        await running
        client.leave()

    play(script)


def test_a_client_that_takes_nothing_at_the_end_is_not_waited_for_longer_than_linger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_CLOSE_TIMEOUT_S", 0.1)

    async def script() -> None:
        async with joined(linger=0.1) as scene:
            # Less than makes a relay wait, and more than the buffers between it and a client hold.
            scene.server.say(b"x" * (3 * MIB) + b"\n")
            scene.server.end()
            assert await scene.running == RelayEnd("target")

    play(script)
