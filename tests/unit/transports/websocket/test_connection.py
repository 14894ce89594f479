"""`WebSocketTransport` by plain calls: no socket, and a clock that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from websockets.frames import CloseCode, Opcode
from websockets.frames import Frame as WireFrame
from websockets.protocol import SERVER

from trunkline.transports.websocket.connection import WebSocketFrames, WebSocketTransport

TIMEOUT = 30.0


class Wire:
    """The asyncio transport of a connection: what is written, and whether it is read."""

    def __init__(self) -> None:
        self.written = b""
        self.is_reading = True
        self.is_aborted = False

    def set_write_buffer_limits(self, **_: Any) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        self.written += data

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self.is_aborted = True

    abort = close

    def pause_reading(self) -> None:
        assert self.is_reading
        self.is_reading = False

    def resume_reading(self) -> None:
        assert not self.is_reading
        self.is_reading = True


class Stage:
    """A connection of a server, and what it delivers."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.connection = WebSocketTransport(None)
        self.got: list[Any] = []
        self.ends: list[Any] = []
        self.connection.on_message = lambda frame, route: self.got.append(frame)
        self.connection.on_error = self.ends.append
        self.connection.connection_made(self.wire)
        self.connection._begin(WebSocketFrames(SERVER, max_size=None))

    def read(self, data: bytes) -> None:
        assert self.wire.is_reading
        self.connection.get_buffer(0)[: len(data)] = data
        self.connection.buffer_updated(len(data))

    def check(self, seconds: float) -> None:
        """Look at the rate so long after the unfinished message began, or now."""
        began = self.connection._began or asyncio.get_running_loop().time()
        self.connection.check_rate(began + seconds, TIMEOUT)


def frame(data: bytes, opcode: Opcode = Opcode.TEXT, *, fin: bool = True) -> bytes:
    return WireFrame(opcode, data, fin).serialize(mask=True)


def run(work: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await work(Stage())

    asyncio.run(main())


def closes(stage: Stage) -> int:
    """Return the code of the Close frame that was written, or 0."""
    written = stage.wire.written
    return int.from_bytes(written[2:4], "big") if written[:1] == b"\x88" else 0


def test_message_that_drips_is_ended_after_its_timeout() -> None:
    async def work(stage: Stage) -> None:
        data = frame(b"{" * 1000)
        for at in range(100):
            stage.read(data[at : at + 1])
        stage.check(TIMEOUT - 1)
        assert closes(stage) == 0
        stage.check(TIMEOUT + 1)
        assert closes(stage) == CloseCode.POLICY_VIOLATION
        assert "a message took too long" in str(stage.ends[0])

    run(work)


def test_message_has_a_second_more_for_each_16_kib_that_came() -> None:
    async def work(stage: Stage) -> None:
        data = frame(b"{" * 200_000)
        stage.read(data[: 3 * 16 * 1024])
        stage.read(data[3 * 16 * 1024 : 4 * 16 * 1024 + 100])
        stage.check(TIMEOUT + 3.9)
        assert closes(stage) == 0
        stage.check(TIMEOUT + 4)
        assert closes(stage) == CloseCode.POLICY_VIOLATION

    run(work)


def test_each_message_has_its_own_timeout() -> None:
    async def work(stage: Stage) -> None:
        data = frame(b"{}")
        stage.read(data[:4])
        first = stage.connection._began
        # The end of one message and the beginning of the next, in each read.
        for _ in range(3):
            await asyncio.sleep(0.001)
            stage.read(data[4:] + data[:4])
            assert stage.connection._began > first
        stage.read(data[4:])
        assert stage.connection._began == 0
        stage.check(TIMEOUT * 10)
        assert (closes(stage), len(stage.got)) == (0, 4)

    run(work)


def test_message_whose_first_fragment_is_empty_has_begun() -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(b"", fin=False))
        stage.check(TIMEOUT)
        assert closes(stage) == CloseCode.POLICY_VIOLATION

    run(work)


def test_time_in_which_nothing_is_read_does_not_count() -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(b"{}")[:4])
        began = stage.connection._began
        stage.connection.pause()
        stage.check(TIMEOUT)
        assert closes(stage) == 0
        await asyncio.sleep(0.001)
        stage.connection.resume()
        assert stage.connection._began > began
        stage.check(TIMEOUT)
        assert closes(stage) == CloseCode.POLICY_VIOLATION

    run(work)
