"""`WebSocketTransport` by plain calls: no socket, and a clock that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from websockets.frames import CloseCode, Opcode
from websockets.frames import Frame as WireFrame
from websockets.protocol import CLIENT, SERVER, Side

from trunkline.transports.base import HIGH_WATER, LOW_WATER
from trunkline.transports.receive_limits import MAX_MESSAGES_PER_TURN
from trunkline.transports.websocket import connection as module
from trunkline.transports.websocket.connection import (
    PONG_TIMEOUT_S,
    WebSocketFrames,
    WebSocketTransport,
)

TIMEOUT = 30.0


class Wire:
    """The asyncio transport of a connection: what is written, and whether it is read."""

    def __init__(self) -> None:
        self.written = b""
        self.is_reading = True
        self.is_aborted = False
        self.backlog = 0
        # Whether one direction can be ended, and whether the other side has reset the connection.
        self.has_eof = self.eof_fails = False
        self.limits: dict[str, Any] = {}

    def set_write_buffer_limits(self, **limits: Any) -> None:
        self.limits = limits

    def get_extra_info(self, name: str) -> Any:
        return None

    def get_write_buffer_size(self) -> int:
        return self.backlog

    def write(self, data: bytes) -> None:
        self.written += data

    def can_write_eof(self) -> bool:
        return self.has_eof

    def write_eof(self) -> None:
        if self.eof_fails:
            raise OSError("Transport endpoint is not connected")

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
    """A connection, and what it delivers."""

    def __init__(self, side: Side = SERVER) -> None:
        self.wire = Wire()
        self.connection = WebSocketTransport(None)
        self.got: list[Any] = []
        self.ends: list[Any] = []
        self.connection.on_message = lambda frame, route: self.got.append(frame)
        self.connection.on_error = self.ends.append
        self.connection.connection_made(self.wire)
        self.connection._begin(WebSocketFrames(side, max_size=None))

    def read(self, data: bytes) -> None:
        assert self.wire.is_reading
        self.connection.get_buffer(0)[: len(data)] = data
        self.connection.buffer_updated(len(data))

    def check(self, seconds: float) -> None:
        """Look at the rate so long after the unfinished message began, or now."""
        began = self.connection._began or asyncio.get_running_loop().time()
        self.connection.check_rate(began + seconds, TIMEOUT)


def frame(
    data: bytes, opcode: Opcode = Opcode.TEXT, *, fin: bool = True, mask: bool = True
) -> bytes:
    return WireFrame(opcode, data, fin).serialize(mask=mask)


def run(work: Callable[[Stage], Awaitable[None]], side: Side = SERVER) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await work(Stage(side))

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


async def caught_up(stage: Stage) -> list[int]:
    """Return how many messages came in each further turn."""
    turns = []
    while stage.connection._is_behind:
        before = len(stage.got)
        await asyncio.sleep(0)
        turns.append(len(stage.got) - before)
    return turns


def test_one_turn_delivers_a_bounded_number_of_messages() -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(b"{}") * 8000)
        assert len(stage.got) == MAX_MESSAGES_PER_TURN
        assert not stage.wire.is_reading
        assert max(await caught_up(stage)) == MAX_MESSAGES_PER_TURN
        assert stage.got == [b"{}"] * 8000
        assert stage.wire.is_reading
        stage.read(frame(b"{}"))
        assert len(stage.got) == 8001

    run(work)


def test_one_turn_parses_a_bounded_number_of_fragments() -> None:
    async def work(stage: Stage) -> None:
        part = frame(b"1", Opcode.CONT, fin=False)
        stage.read(frame(b"1", fin=False) + part * 5000 + frame(b"", Opcode.CONT))
        assert stage.connection._fragments == MAX_MESSAGES_PER_TURN
        while stage.connection._is_behind:
            before = stage.connection._fragments
            await asyncio.sleep(0)
            assert stage.connection._fragments <= before + MAX_MESSAGES_PER_TURN
        assert stage.got == [b"1" * 5001]

    run(work)


def test_frames_of_one_turn_do_not_wait() -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(b"{}") * MAX_MESSAGES_PER_TURN)
        assert len(stage.got) == MAX_MESSAGES_PER_TURN
        assert stage.wire.is_reading
        stage.read(frame(b"{}"))
        assert len(stage.got) == MAX_MESSAGES_PER_TURN + 1

    run(work)


def test_close_frame_is_processed_after_the_messages_before_it() -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(b"{}") * 1000 + frame(b"\x03\xe8", Opcode.CLOSE))
        assert stage.ends == []
        await caught_up(stage)
        assert len(stage.got) == 1000
        assert stage.ends == [None]

    run(work)


def test_failure_ends_the_connection_after_the_messages_before_it() -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(b"{}") * 1000 + frame(b"", Opcode.BINARY) + frame(b"{}") * 1000)
        await caught_up(stage)
        assert len(stage.got) == 1000
        assert closes(stage) == CloseCode.UNSUPPORTED_DATA
        assert stage.wire.is_reading

    run(work)


def test_pause_stops_the_messages_that_wait() -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(b"{}") * 1000)
        stage.connection.pause()
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(stage.got) == MAX_MESSAGES_PER_TURN
        stage.connection.resume()
        stage.connection.pause()
        stage.connection.resume()
        assert not stage.wire.is_reading
        assert max(await caught_up(stage)) == MAX_MESSAGES_PER_TURN
        assert len(stage.got) == 1000
        assert stage.wire.is_reading

    run(work)


def test_client_gets_all_that_arrived_before_its_connection_was_lost() -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(b"{}", mask=False) * 1000)
        stage.connection.eof_received()
        stage.connection.connection_lost(None)
        assert stage.ends == []
        await caught_up(stage)
        assert len(stage.got) == 1000
        assert "without a Close frame" in str(stage.ends[0])

    run(work, CLIENT)


def test_server_drops_what_waits_of_a_client_that_is_gone() -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(b"{}") * 1000)
        stage.connection.eof_received()
        stage.connection.connection_lost(None)
        assert "without a Close frame" in str(stage.ends[0])
        await caught_up(stage)
        assert len(stage.got) == MAX_MESSAGES_PER_TURN

    run(work)


def test_time_in_which_messages_wait_does_not_count_for_a_slow_one() -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(b"{}") * 1000 + frame(b"{}")[:4])
        stage.check(10 * TIMEOUT)
        assert closes(stage) == 0
        await caught_up(stage)
        stage.check(TIMEOUT)
        assert closes(stage) == CloseCode.POLICY_VIOLATION

    run(work)


@pytest.mark.parametrize("is_cut", [False, True])
def test_elements_of_batches_count_as_messages(is_cut: bool) -> None:
    async def work(stage: Stage) -> None:
        batch = b"[" + b",".join([b"{}"] * 100) + b"]"
        one = frame(batch)
        if is_cut:
            one = frame(b"[", fin=False) + frame(batch[1:], Opcode.CONT)
        stage.read(one * 20)
        # The last one of a turn is weighed when it is parsed.
        assert len(stage.got) <= 3
        assert max(await caught_up(stage)) <= 3
        assert stage.got == [batch] * 20

    run(work)


def test_commas_in_an_object_are_not_elements_of_a_batch() -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(b'{"a":[1,2,3,4,5,6]}') * 200)
        assert len(stage.got) == 200

    run(work)


# -- the other side ----------------------------------------------------------------------------


def test_backlog_is_bounded_and_its_end_reported() -> None:
    async def work(stage: Stage) -> None:
        assert stage.wire.limits == {"high": HIGH_WATER, "low": LOW_WATER}
        drained: list[bool] = []
        stage.connection.on_drained = lambda: drained.append(True)
        stage.connection.pause_writing()
        assert drained == []
        stage.connection.resume_writing()
        assert drained == [True]

    run(work)


def test_silent_connection_is_pinged_once_and_lost_without_an_answer() -> None:
    async def work(stage: Stage) -> None:
        now = asyncio.get_running_loop().time()
        stage.connection.check(now + 5, 10.0)
        assert stage.wire.written == b""
        for later in (11, 12):
            stage.connection.check(now + later, 10.0)
            assert stage.wire.written == b"\x89\x00"  # an empty ping
        stage.connection.check(now + 11 + PONG_TIMEOUT_S, 10.0)
        assert "has not answered a ping" in str(stage.ends[0])
        assert stage.wire.is_aborted

    run(work)


def test_connection_that_was_reset_is_closed_at_once() -> None:
    async def work(stage: Stage) -> None:
        stage.wire.has_eof = stage.wire.eof_fails = True
        stage.read(frame(b"\x03\xe8", Opcode.CLOSE))
        assert stage.wire.is_aborted
        assert stage.connection._ending is None

    run(work)


@pytest.mark.parametrize("callback", ["on_error", "on_message"])
def test_callback_that_raises_is_logged_and_the_connection_goes_on(
    callback: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    async def work(stage: Stage) -> None:
        setattr(stage.connection, callback, fail)
        stage.read(frame(b"{}"))
        stage.connection.lose("a test ends it")
        assert stage.wire.is_aborted

    run(work)
    (record,) = caplog.records
    assert record.name == "trunkline.transports"
    assert f"websocket transport: {callback} raised" in record.getMessage()


def test_defect_is_logged_and_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(stage: Stage) -> None:
        def fail() -> None:
            monkeypatch.undo()
            raise ZeroDivisionError

        monkeypatch.setattr(stage.connection, "_process_events", fail)
        stage.read(frame(b"{}"))
        assert stage.ends

    run(work)
    assert [each.name for each in caplog.records] == ["trunkline.transports"]


def test_close_waits_until_the_connection_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ANSWER_TIMEOUT_S", 0.0)  # for the Close frame of the client

    async def work(stage: Stage) -> None:
        closing = asyncio.create_task(stage.connection.close())
        while not stage.wire.is_aborted:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not closing.done()
        stage.connection.connection_lost(None)
        await closing

    run(work)


@pytest.mark.parametrize("code", [1000, 1001])
def test_normal_close_of_the_other_side_is_not_an_error(code: int) -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(code.to_bytes(2, "big"), Opcode.CLOSE))
        assert closes(stage) == code
        assert stage.ends == [None]

    run(work)


def test_binary_message_ends_the_connection_and_one_after_the_end_does_nothing() -> None:
    async def work(stage: Stage) -> None:
        stage.read(frame(b"\x00", Opcode.BINARY) * 2)
        assert closes(stage) == CloseCode.UNSUPPORTED_DATA
        assert ["messages are text" in str(each) for each in stage.ends] == [True]

    run(work)


def test_connection_that_the_other_side_has_closed_is_ended_by_this_one() -> None:
    async def work(stage: Stage) -> None:
        stage.wire.has_eof = True
        stage.read(frame(b"\x03\xe8", Opcode.CLOSE))
        assert not stage.wire.is_aborted
        assert stage.connection._ending is not None
        stage.connection.connection_lost(None)
        await stage.connection._ending

    run(work)
