from __future__ import annotations

import asyncio
import os
import threading

from trunkline.transports import blocking
from trunkline.transports.blocking import ThreadReader, ThreadWriter


def ignore(*_: object) -> None:
    pass


def unexpected(*_: object) -> None:
    raise AssertionError("not to be called")


def test_a_reader_stays_only_so_far_ahead_of_the_loop(tmp_path) -> None:
    path = tmp_path / "large"
    most = blocking.READ_CHUNK * blocking.READ_AHEAD
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
    for fd in (reader._stop_read, reader._stop_write):
        os.close(fd)


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
