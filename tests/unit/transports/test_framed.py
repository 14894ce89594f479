"""`FramedTransport`: what one turn of the event loop delivers of what was read."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.certificates import Authority
from tests.rigs.socket_listener import accepting
from tests.rigs.turns import Turns
from trunkline.errors import TransportError
from trunkline.jsonrpc import Policy
from trunkline.jsonrpc.framing.framing import FramingName, framing_named
from trunkline.transports import framed
from trunkline.transports.addresses import Tcp, Tls, Unix
from trunkline.transports.framed import FramedTransport
from trunkline.transports.receive_limits import MAX_BYTES_PER_TURN, MAX_MESSAGES_PER_TURN
from trunkline.transports.stdio.server import StdioServer

READ_BYTES = 256 * 1024


class Reader:
    """What a transport pauses and resumes."""

    def __init__(self) -> None:
        self.is_reading = True

    def pause(self) -> None:
        self.is_reading = False

    def resume(self) -> None:
        self.is_reading = True


class Stage(FramedTransport):
    """A transport that a test feeds."""

    def __init__(self, framing: FramingName = "newline") -> None:
        super().__init__(Policy().replace(framing=framing), "tcp")
        self.got: list[Any] = []
        self.ends: list[TransportError | None] = []
        self.reader = Reader()
        self._reader = self.reader  # type: ignore[assignment]  # a stub
        self.on_message = lambda frame, route: self.got.append(frame)
        self.on_error = self.ends.append

    def read(self, data: bytes) -> None:
        assert self.reader.is_reading
        self._receive(data)

    def end(self) -> None:
        """End the input, as a TLS channel does in the turn of the last bytes."""
        if not self._ends_later(self.end):
            self._receive_end()
            self._report(None)

    async def _end(self) -> None:
        self._report(None)


def run(work: Callable[[Stage], Awaitable[None]], framing: FramingName = "newline") -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await work(Stage(framing))

    asyncio.run(main())


async def caught_up(stage: Stage) -> list[int]:
    """Return how many frames came in each further turn."""
    turns = []
    while stage._is_behind:
        before = len(stage.got)
        await asyncio.sleep(0)
        turns.append(len(stage.got) - before)
    return turns


@pytest.mark.parametrize(
    ("framing", "one"),
    [("newline", b"{}\n"), ("detect", b"{}\n"), ("length-prefix", b"\0\0\0\2{}")],
)
def test_one_turn_delivers_a_bounded_number_of_messages(framing: FramingName, one: bytes) -> None:
    async def work(stage: Stage) -> None:
        stage.read(one * 5000)
        assert len(stage.got) == MAX_MESSAGES_PER_TURN
        assert not stage.reader.is_reading
        turns = await caught_up(stage)
        assert max(turns) == MAX_MESSAGES_PER_TURN
        assert stage.got == [b"{}"] * 5000
        assert stage.reader.is_reading

    run(work, framing)


def test_one_turn_delivers_a_bounded_number_of_bytes() -> None:
    async def work(stage: Stage) -> None:
        frames = [b"%d" % n * 20_000 for n in range(10)]
        stage.read(b"".join(each + b"\n" for each in frames))
        assert len(stage.got) == 3
        assert sum(map(len, stage.got)) <= MAX_BYTES_PER_TURN
        assert max(await caught_up(stage)) == 3
        assert stage.got == frames

    run(work)


def test_message_larger_than_a_turn_has_one_of_its_own() -> None:
    async def work(stage: Stage) -> None:
        large = b"x" * 150_000
        stage.read(b"a\n" + large + b"\nb\n")
        assert stage.got == [b"a"]
        await asyncio.sleep(0)
        assert stage.got == [b"a", large]
        await asyncio.sleep(0)
        assert stage.got == [b"a", large, b"b"]

    run(work)


@pytest.mark.parametrize("blank", [b"", b"  "])
def test_elements_of_batches_count_as_messages(blank: bytes) -> None:
    async def work(stage: Stage) -> None:
        batch = blank + b"[" + b",".join([b"1"] * 100) + b"]"
        long = blank + b"[" + b",".join([b"1"] * 1000) + b"]"
        stage.read((batch + b"\n") * 20 + (long + b"\n") * 3)
        assert stage.got == [batch] * 2
        turns = await caught_up(stage)
        assert turns == [2] * 9 + [1] * 3
        assert stage.got == [batch] * 20 + [long] * 3

    run(work)


def test_commas_in_an_object_are_not_elements_of_a_batch() -> None:
    async def work(stage: Stage) -> None:
        stage.read(b'{"a":[1,2,3,4,5,6]}\n' * 200)
        assert len(stage.got) == 200

    run(work)


def test_large_message_in_several_reads_does_not_fall_behind() -> None:
    async def work(stage: Stage) -> None:
        for _ in range(8):
            stage.read(b"x" * READ_BYTES)
            assert stage.reader.is_reading
        stage.read(b"\n")
        assert [len(each) for each in stage.got] == [8 * READ_BYTES]

    run(work)


def test_small_messages_wait_as_bytes() -> None:
    async def work(stage: Stage) -> None:
        stage.read(b"{" + b"x" * READ_BYTES + b"\n{}\n")  # so that steps are long
        await caught_up(stage)
        stage.read(b"1\n" * (READ_BYTES // 2))
        most = 0
        while stage._is_behind:
            most = max(most, len(stage._waiting))
            await asyncio.sleep(0)
        assert len(stage.got) == 2 + READ_BYTES // 2
        assert most <= MAX_BYTES_PER_TURN // 2
        assert stage._step == framed._LEAST_STEP_BYTES
        stage.got.clear()
        stage.read(b"1\n" * (READ_BYTES // 2))
        assert len(stage._waiting) <= 2 * MAX_MESSAGES_PER_TURN
        await caught_up(stage)
        assert len(stage.got) == READ_BYTES // 2

    run(work)


def test_end_of_the_input_follows_the_messages_before_it() -> None:
    async def work(stage: Stage) -> None:
        stage.read(b"{}\n" * 1000 + b"last")
        stage.end()
        assert stage.ends == []
        await caught_up(stage)
        assert stage.got == [b"{}"] * 1000 + [b"last"]
        assert stage.ends == [None]

    run(work)


def test_nothing_is_delivered_after_the_end_was_reported() -> None:
    async def work(stage: Stage) -> None:
        stage.read(b"{}\n" * 10_000)
        await stage.close()
        await caught_up(stage)
        assert len(stage.got) <= 2 * MAX_MESSAGES_PER_TURN
        assert not stage._waiting
        assert not stage._rest

    run(work)


def test_pause_outlasts_the_messages_that_wait() -> None:
    async def work(stage: Stage) -> None:
        stage.read(b"{}\n" * 1000)
        stage.pause()
        await caught_up(stage)
        assert not stage.reader.is_reading
        stage.resume()
        assert stage.reader.is_reading
        stage.read(b"{}\n" * 1000)
        stage.pause()
        stage.resume()
        assert not stage.reader.is_reading
        await caught_up(stage)
        assert stage.reader.is_reading

    run(work)


def test_callback_that_raises_stops_no_later_message(caplog: pytest.LogCaptureFixture) -> None:
    async def work(stage: Stage) -> None:
        def fail(frame: Any, route: Any) -> None:
            stage.got.append(frame)
            raise ValueError

        stage.on_message = fail
        stage.read(b"{}\n" * 600)
        await caught_up(stage)
        assert len(stage.got) == 600

    run(work)
    assert "tcp transport: on_message raised, frame dropped" in caplog.text


LINES = st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"x") + b"\n"))


@given(
    lines=st.lists(LINES, max_size=5).map(lambda parts: [b"".join(each) * 60 for each in parts]),
    large=st.integers(0, 300_000),
    name=st.sampled_from(["newline", "detect"]),
)
def test_frames_are_the_same_however_many_turns_they_take(
    lines: list[bytes], large: int, name: FramingName
) -> None:
    reads = [*lines, b"y" * large + b"\n", *lines, b"rest"]

    async def work(stage: Stage) -> None:
        for each in reads:
            if each:
                stage.read(each)
            await caught_up(stage)
        stage.end()
        whole = framing_named(name, None)
        assert stage.got == whole.feed(b"".join(reads)) + whole.end()

    run(work, name)


# -- on real sockets and pipes ---------------------------------------------------------------

FLOOD = b"{}\n" * 50_000 + (b"x" * 30_000 + b"\n") * 20


@pytest.mark.parametrize("kind", ["tcp", "tls", "unix"])
def test_turn_of_a_socket_is_bounded(tmp_path: Path, kind: str) -> None:
    context = None
    address: Tcp | Unix = Unix(tmp_path / "s")
    if kind != "unix":
        authority = Authority(tmp_path)
        cert, key = authority.certificate("localhost", "localhost", "127.0.0.1")
        tls = Tls(cert=cert, key=key) if kind == "tls" else False
        context = ssl.create_default_context(cafile=authority.ca) if tls else None
        address = Tcp("127.0.0.1", 0, tls=tls)

    async def main() -> None:
        turns, ended = Turns(), asyncio.Event()
        async with asyncio.timeout(60), accepting(address) as (where, arrived):
            if isinstance(where, Tcp):
                opening = asyncio.open_connection(where.host, where.port, ssl=context)
            else:
                opening = asyncio.open_unix_connection(str(where.path))
            opened = asyncio.ensure_future(opening)
            transport = await arrived()
            transport.on_message = lambda frame, route: turns.add(frame)  # type: ignore[arg-type]
            transport.on_error = lambda error: ended.set()
            await transport.connect()
            _, writer = await opened
            turns.start()
            writer.write(FLOOD)
            await writer.drain()
            writer.close()
            await ended.wait()
            turns.stop()
        assert sum(turns.messages) == 50_020
        turns.check(kind)

    asyncio.run(main())


def test_turn_of_standard_input_is_bounded() -> None:
    async def main() -> None:
        turns, ended = Turns(), asyncio.Event()
        stdin, feeding = os.pipe()
        reading, stdout = os.pipe()
        transport = StdioServer(Policy(), stdin=stdin, stdout=stdout)
        transport.on_message = lambda frame, route: turns.add(frame)  # type: ignore[arg-type]
        transport.on_error = lambda error: ended.set()
        async with asyncio.timeout(60):
            await transport.connect()
            turns.start()
            writing = asyncio.get_running_loop().run_in_executor(None, write_all, feeding)
            await ended.wait()
            await writing
            turns.stop()
            await transport.close()
        os.close(reading)
        assert sum(turns.messages) == 50_020
        turns.check("stdio")

    def write_all(fd: int) -> None:
        with open(fd, "wb") as file:
            file.write(FLOOD)

    asyncio.run(main())
