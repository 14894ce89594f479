from __future__ import annotations

import asyncio
import errno
import os
import select
import threading

import pytest

from trunkline.transports.io import thread
from trunkline.transports.io.thread import ThreadReader, ThreadWriter


def ignore(*_: object) -> None:
    pass


def unexpected(*_: object) -> None:
    raise AssertionError("not to be called")


def test_a_reader_stays_only_so_far_ahead_of_the_loop(tmp_path) -> None:
    path = tmp_path / "large"
    most = thread.READ_CHUNK_BYTES * thread.MAX_CHUNKS_AHEAD
    path.write_bytes(bytes(most * 3))

    async def script() -> None:
        ended = asyncio.Event()
        received = 0

        def count(data: bytes) -> None:
            nonlocal received
            received += len(data)

        with path.open("rb") as file:
            reader = ThreadReader(
                asyncio.get_running_loop(), file.fileno(), count, lambda error: ended.set()
            )
            # The loop does not turn here, so what the thread has read is all it may read.
            position = -1
            while position != (position := os.lseek(file.fileno(), 0, os.SEEK_CUR)):
                threading.Event().wait(0.05)
            assert position == most
            await asyncio.wait_for(ended.wait(), 20)
            assert received == most * 3
            reader.close()

    asyncio.run(script())


async def end_of(fd: int) -> OSError | None:
    """Return how a reader of this descriptor ends."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[OSError | None] = loop.create_future()
    reader = ThreadReader(loop, fd, unexpected, ended.set_result)
    try:
        return await asyncio.wait_for(ended, 20)
    finally:
        reader.close()


def test_a_read_that_fails_is_reported_as_an_error(tmp_path) -> None:
    # A directory is always ready, and cannot be read.
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        error = asyncio.run(end_of(fd))
    finally:
        os.close(fd)
    assert error is not None
    assert error.errno == errno.EISDIR


def test_the_end_of_a_terminal_is_not_an_error() -> None:
    ours, theirs = os.openpty()
    os.close(theirs)
    try:
        assert asyncio.run(end_of(ours)) is None
    finally:
        os.close(ours)


def test_a_thread_that_waits_is_stopped_by_closing() -> None:
    async def script() -> None:
        read, write = os.pipe()
        before = threading.active_count()
        loop = asyncio.get_running_loop()
        reader = ThreadReader(loop, read, unexpected, unexpected)
        writer = ThreadWriter(loop, write, ignore, unexpected)
        assert threading.active_count() == before + 2
        writer.close()
        reader.close()
        reader.close()
        assert threading.active_count() == before
        writer.write(b"dropped")
        assert writer.backlog == 0
        os.close(read)
        os.close(write)

    asyncio.run(script())


def test_a_thread_whose_loop_is_closed_ends_by_itself() -> None:
    read, write = os.pipe()

    async def script() -> ThreadReader:
        return ThreadReader(asyncio.get_running_loop(), read, unexpected, unexpected)

    reader = asyncio.run(script())
    os.write(write, b"too late")
    os.close(write)
    reader._thread.join(20)
    assert not reader._thread.is_alive()
    os.close(read)
    assert reader._stop is not None
    reader._stop.close()


def test_a_reader_that_is_gone_breaks_the_writer_once() -> None:
    async def script() -> None:
        read, write = os.pipe()
        broken: list[OSError] = []
        writer = ThreadWriter(asyncio.get_running_loop(), write, ignore, broken.append)
        os.close(read)
        writer.write(b"nobody")
        writer.write(b"nobody")
        await writer.finish(20)
        assert [type(error) for error in broken] == [BrokenPipeError]
        writer.write(b"dropped")
        assert writer.backlog == 0
        writer.close()
        os.close(write)

    asyncio.run(script())


def test_no_descriptor_is_made_non_blocking() -> None:
    async def script() -> None:
        read, write = os.pipe()
        loop = asyncio.get_running_loop()
        got: list[bytes] = []
        reader = ThreadReader(loop, read, got.append, unexpected)
        writer = ThreadWriter(loop, write, ignore, unexpected)
        writer.write(b"x" * 10_000)
        assert os.get_blocking(read)
        assert os.get_blocking(write)
        while sum(map(len, got)) < 10_000:
            await asyncio.sleep(0.001)
        writer.close()
        reader.close()
        os.close(read)
        os.close(write)

    asyncio.run(asyncio.wait_for(script(), 20))


def test_a_reader_that_pauses_holds_back_what_comes_in_order_and_the_end_too(tmp_path) -> None:
    path = tmp_path / "large"
    most = thread.READ_CHUNK_BYTES * thread.MAX_CHUNKS_AHEAD
    path.write_bytes(os.urandom(most * 2 + 17))

    async def script() -> None:
        ended = asyncio.Event()
        got: list[bytes] = []
        with path.open("rb") as file:
            reader = ThreadReader(
                asyncio.get_running_loop(), file.fileno(), got.append, lambda error: ended.set()
            )
            reader.pause()
            position = -1
            while position != (position := os.lseek(file.fileno(), 0, os.SEEK_CUR)):
                await asyncio.sleep(0.05)
            # It has read ahead as far as it may, and waits.
            assert position == most
            assert got == []
            assert not ended.is_set()
            reader.resume()
            while not got:
                await asyncio.sleep(0)
            reader.pause()
            count = len(got)
            await asyncio.sleep(0.05)
            assert len(got) <= count + 1
            assert not ended.is_set()
            reader.resume()
            await asyncio.wait_for(ended.wait(), 20)
            assert b"".join(got) == path.read_bytes()
            reader.close()

    asyncio.run(asyncio.wait_for(script(), 20))


def test_reader_callback_can_pause_and_resume_and_chunks_stay_in_order() -> None:
    """One chunk is handed on after the other, not one inside the other."""

    async def script() -> None:
        read, write = os.pipe()
        begun: list[bytes] = []
        done: list[bytes] = []

        def take(data: bytes) -> None:
            begun.append(data)
            reader.pause()
            reader.resume()
            done.append(data)

        reader = ThreadReader(asyncio.get_running_loop(), read, take, unexpected)
        reader.pause()
        for n in range(5):
            os.write(write, b"%d" % n)
            while len(reader._held) <= n:
                await asyncio.sleep(0.001)
        reader.resume()
        while len(done) < 5:
            await asyncio.sleep(0.001)
        assert begun == done == [b"0", b"1", b"2", b"3", b"4"]
        reader.close()
        os.close(read)
        os.close(write)

    asyncio.run(asyncio.wait_for(script(), 20))


def test_one_that_fails_does_not_hold_up_what_was_held_back_behind_it() -> None:
    async def script() -> None:
        loop = asyncio.get_running_loop()
        faults: list[object] = []
        loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))
        read, write = os.pipe()
        got: list[bytes] = []

        def take(data: bytes) -> None:
            got.append(data)
            if data == b"0":
                raise ZeroDivisionError

        reader = ThreadReader(loop, read, take, unexpected)
        reader.pause()
        for n in range(3):
            os.write(write, b"%d" % n)
            while len(reader._held) <= n:
                await asyncio.sleep(0.001)
        reader.resume()
        os.write(write, b"3")
        while len(got) < 4:
            await asyncio.sleep(0.001)
        assert got == [b"0", b"1", b"2", b"3"]
        assert [type(fault) for fault in faults] == [ZeroDivisionError]
        reader.close()
        os.close(read)
        os.close(write)

    asyncio.run(asyncio.wait_for(script(), 20))


def test_close_drops_held_back_chunks() -> None:
    async def script() -> None:
        read, write = os.pipe()
        reader = ThreadReader(asyncio.get_running_loop(), read, unexpected, unexpected)
        reader.pause()
        os.write(write, b"unread")
        while not reader._held:
            await asyncio.sleep(0.001)
        reader.close()
        reader.resume()
        await asyncio.sleep(0.01)
        os.close(read)
        os.close(write)

    asyncio.run(asyncio.wait_for(script(), 20))


# Without poll, as on Windows


@pytest.fixture
def no_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "poll")


@pytest.mark.usefixtures("no_poll")
def test_without_poll_a_reader_that_is_closed_while_it_waits_is_left_there() -> None:
    async def script() -> None:
        read, write = os.pipe()
        arrived: list[bytes] = []
        reader = ThreadReader(asyncio.get_running_loop(), read, arrived.append, unexpected)
        while not reader._is_blocked:
            await asyncio.sleep(0.001)
        assert not reader.is_stuck
        reader.close()
        assert reader.is_stuck
        os.write(write, b"late")
        reader._thread.join(20)
        assert not reader._thread.is_alive()
        assert not reader.is_stuck
        await asyncio.sleep(0)
        assert arrived == []
        os.close(read)
        os.close(write)

    asyncio.run(script())


@pytest.mark.usefixtures("no_poll")
def test_without_poll_a_reader_at_the_end_of_its_input_is_not_left_behind() -> None:
    async def script() -> None:
        read, write = os.pipe()
        arrived: list[bytes] = []
        ended = asyncio.Event()
        reader = ThreadReader(
            asyncio.get_running_loop(), read, arrived.append, lambda error: ended.set()
        )
        os.write(write, b"all")
        os.close(write)
        await asyncio.wait_for(ended.wait(), 20)
        reader.close()
        assert not reader._thread.is_alive()
        assert not reader.is_stuck
        assert arrived == [b"all"]
        os.close(read)

    asyncio.run(script())


@pytest.mark.usefixtures("no_poll")
def test_without_poll_a_writer_writes_all_or_is_left_in_its_write() -> None:
    async def script() -> None:
        read, write = os.pipe()
        data = bytes(range(256)) * 4096  # far more than a pipe holds
        writer = ThreadWriter(asyncio.get_running_loop(), write, ignore, unexpected)
        writer.write(data)
        while not writer._is_blocked:
            await asyncio.sleep(0.001)
        taken = await asyncio.to_thread(_read_exactly, read, len(data))
        assert taken == data
        await writer.finish(20)
        writer.write(data)
        while not (writer._is_blocked and writer.backlog < len(data)):
            await asyncio.sleep(0.001)
        writer.close()
        assert writer.is_stuck
        os.close(read)
        writer._thread.join(20)
        assert not writer._thread.is_alive()
        os.close(write)

    asyncio.run(script())


def _read_exactly(fd: int, size: int) -> bytes:
    parts = []
    while size:
        parts.append(os.read(fd, size))
        size -= len(parts[-1])
    return b"".join(parts)
