from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import socket
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from trunkline.transports.base import HIGH_WATER, LOW_WATER
from trunkline.transports.io import fd as pipes
from trunkline.transports.io.fd import FdReader, FdWriter, is_watchable


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for fd in (read, write):
        try:
            os.close(fd)
        except OSError:
            pass


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list of what each write of the module was given."""
    found: list[bytes] = []
    write_really = os.write

    def write(fd: int, data: bytes | memoryview) -> int:
        found.append(bytes(data))
        return write_really(fd, data)

    monkeypatch.setattr(pipes.os, "write", write)
    return found


def run(script: Callable[[asyncio.AbstractEventLoop], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await script(asyncio.get_running_loop())

    asyncio.run(asyncio.wait_for(main(), 20))


def ignore(*_: object) -> None:
    pass


def unexpected(*_: object) -> None:
    raise AssertionError("not to be called")


def test_the_writes_of_one_tick_are_one_system_call(
    pipe: tuple[int, int], written: list[bytes]
) -> None:
    async def script(loop: asyncio.AbstractEventLoop) -> None:
        writer = FdWriter(loop, pipe[1], ignore, unexpected)
        for n in range(64):
            writer.write(b"%d\n" % n)
        writer.write(b"")
        assert writer.backlog == sum(len(b"%d\n" % n) for n in range(64))
        assert written == []
        await asyncio.sleep(0)
        assert written == [b"".join(b"%d\n" % n for n in range(64))]
        assert writer.backlog == 0
        writer.write(b"next tick")
        await asyncio.sleep(0)
        assert written[1:] == [b"next tick"]
        writer.close()

    run(script)


def test_a_full_pipe_takes_the_rest_when_there_is_room_and_no_byte_twice(
    pipe: tuple[int, int], written: list[bytes]
) -> None:
    read, write = pipe
    parts = [b"%d" % (n % 10) * 30_000 for n in range(300)]

    async def script(loop: asyncio.AbstractEventLoop) -> None:
        drained: list[int] = []
        writer = FdWriter(loop, write, lambda: drained.append(writer.backlog), unexpected)
        for part in parts:
            writer.write(part)
        total = writer.backlog
        assert total > HIGH_WATER
        await asyncio.sleep(0.02)
        assert 0 < writer.backlog < total
        received = bytearray()
        reader = FdReader(loop, read, received.extend, ignore)
        await writer.finish(10)
        assert writer.backlog == 0
        assert len(drained) == 1
        assert drained[0] < LOW_WATER
        while len(received) < total:
            await asyncio.sleep(0.001)
        same = bytes(received) == b"".join(parts)
        assert same
        reader.close()
        writer.close()

    run(script)


def test_waiting_for_a_reader_that_takes_nothing_has_an_end(pipe: tuple[int, int]) -> None:
    async def script(loop: asyncio.AbstractEventLoop) -> None:
        writer = FdWriter(loop, pipe[1], ignore, unexpected)
        writer.write(bytes(5_000_000))
        await asyncio.sleep(0)
        await writer.finish(0.01)
        assert writer.backlog > 0
        writer.close()
        assert writer.backlog == 0
        writer.write(b"dropped")
        assert writer.backlog == 0

    run(script)


def test_a_reader_that_is_gone_breaks_the_writer_once(pipe: tuple[int, int]) -> None:
    async def script(loop: asyncio.AbstractEventLoop) -> None:
        broken: list[OSError] = []
        writer = FdWriter(loop, pipe[1], ignore, broken.append)
        writer.write(bytes(3_000_000))
        await asyncio.sleep(0)
        assert not broken
        os.close(pipe[0])
        await writer.finish(10)
        writer.write(b"dropped")
        await asyncio.sleep(0)
        assert [error.errno for error in broken] == [errno.EPIPE]
        assert writer.backlog == 0
        writer.close()

    run(script)


def test_raising_drain_callback_goes_to_the_loop_exception_handler(pipe: tuple[int, int]) -> None:
    async def script(loop: asyncio.AbstractEventLoop) -> None:
        faults: list[Any] = []
        loop.set_exception_handler(lambda loop, context: faults.append(context["exception"]))
        writer = FdWriter(loop, pipe[1], unexpected, unexpected)
        writer.write(bytes(HIGH_WATER + 1))
        reader = FdReader(loop, pipe[0], ignore, unexpected)
        await writer.finish(10)
        await asyncio.sleep(0)
        assert writer.backlog == 0
        assert len(faults) == 1
        reader.close()
        writer.close()

    run(script)


def test_the_readers_of_a_loop_share_a_buffer_and_keep_their_bytes_apart() -> None:
    async def script(loop: asyncio.AbstractEventLoop) -> None:
        both = [os.pipe(), os.pipe()]
        got: list[list[bytes]] = [[], []]
        readers = [
            FdReader(loop, read, into.append, unexpected)
            for (read, _), into in zip(both, got, strict=True)
        ]
        os.write(both[0][1], b"first" * 10)
        os.write(both[1][1], b"second")
        while not all(got):
            await asyncio.sleep(0)
        assert got == [[b"first" * 10], [b"second"]]
        assert readers[0]._buffer.obj is readers[1]._buffer.obj
        for reader in readers:
            reader.close()
        for fd in (*both[0], *both[1]):
            os.close(fd)

    run(script)


def test_end_of_file_is_reported_once(pipe: tuple[int, int]) -> None:
    async def script(loop: asyncio.AbstractEventLoop) -> None:
        ends: list[OSError | None] = []
        reader = FdReader(loop, pipe[0], unexpected, ends.append)
        os.close(pipe[1])
        while not ends:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        reader.close()
        reader.close()
        assert ends == [None]

    run(script)


def test_connection_reset_is_reported_as_connection_reset_error() -> None:
    async def script(loop: asyncio.AbstractEventLoop) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(listener.getsockname())
        served, _ = listener.accept()
        ends: list[OSError | None] = []
        reader = FdReader(loop, served.fileno(), unexpected, ends.append)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        while not ends:
            await asyncio.sleep(0.001)
        assert isinstance(ends[0], ConnectionResetError)
        reader.close()
        served.close()
        listener.close()

    run(script)


def test_flags_are_put_back_and_pipes_grow(pipe: tuple[int, int]) -> None:
    async def script(loop: asyncio.AbstractEventLoop) -> None:
        reader = FdReader(loop, pipe[0], ignore, ignore)
        writer = FdWriter(loop, pipe[1], ignore, ignore)
        assert [os.get_blocking(fd) for fd in pipe] == [False, False]
        writer.close()
        reader.close()
        assert [os.get_blocking(fd) for fd in pipe] == [True, True]

    size = fcntl.fcntl(pipe[0], fcntl.F_GETPIPE_SZ)
    run(script)
    assert fcntl.fcntl(pipe[0], fcntl.F_GETPIPE_SZ) >= size


def test_only_pipes_and_sockets_that_are_not_stderr_are_watched(
    pipe: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = socket.socketpair()
    with one, other, (tmp_path / "file").open("w") as file, open(os.devnull) as nothing:
        ours, theirs = os.openpty()
        kinds = [*pipe, one.fileno(), file.fileno(), nothing.fileno(), ours, theirs]
        assert [is_watchable(fd) for fd in kinds] == [True] * 3 + [False] * 4
        os.close(ours)
        os.close(theirs)
    fstat = os.fstat
    monkeypatch.setattr(os, "fstat", lambda fd: fstat(pipe[1] if fd == 2 else fd))
    assert not is_watchable(pipe[1])


def test_without_a_stderr_nothing_is_shared_with_it(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fstat = os.fstat
    monkeypatch.setattr(os, "fstat", lambda fd: fstat(-1 if fd == 2 else fd))
    assert is_watchable(pipe[1])


def test_a_reader_that_pauses_leaves_what_arrives_where_it_is(pipe: tuple[int, int]) -> None:
    async def script(loop: asyncio.AbstractEventLoop) -> None:
        got: list[bytes] = []
        ends: list[OSError | None] = []
        reader = FdReader(loop, pipe[0], got.append, ends.append)
        reader.pause()
        reader.pause()
        os.write(pipe[1], b"first")
        await asyncio.sleep(0.01)
        assert got == []
        reader.resume()
        reader.resume()
        while not got:
            await asyncio.sleep(0)
        # Who is called may pause, and then nothing more comes.
        reader._on_bytes = lambda data: (got.append(data), reader.pause())
        os.write(pipe[1], b"second")
        while len(got) < 2:
            await asyncio.sleep(0)
        os.write(pipe[1], b"third")
        os.close(pipe[1])
        await asyncio.sleep(0.01)
        assert (got, ends) == ([b"first", b"second"], [])
        reader._on_bytes = got.append
        reader.resume()
        while not ends:
            await asyncio.sleep(0)
        assert (got, ends) == ([b"first", b"second", b"third"], [None])
        # After the end neither does anything.
        reader.pause()
        reader.resume()
        await asyncio.sleep(0.01)
        assert ends == [None]
        reader.close()

    run(script)


def test_a_reader_that_was_closed_while_it_paused_stays_closed(pipe: tuple[int, int]) -> None:
    async def script(loop: asyncio.AbstractEventLoop) -> None:
        reader = FdReader(loop, pipe[0], unexpected, unexpected)
        reader.pause()
        os.write(pipe[1], b"unread")
        reader.close()
        reader.resume()
        reader.pause()
        reader.resume()
        await asyncio.sleep(0.01)
        assert os.get_blocking(pipe[0])

    run(script)
