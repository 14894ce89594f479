"""Non-blocking reads and writes of a descriptor that the event loop can watch: a pipe or a socket.

Nothing here opens or closes a descriptor, or knows of frames.

The rules that live here, and only here:

* Bytes are read into one buffer per loop, and what arrived is copied out. A new buffer for
  every read costs several times as much as the read itself.
* What is written in one tick of the loop goes out in one system call, or few for large data. A
  byte is copied at most once, however large the message and however little the pipe takes.
* O_NONBLOCK belongs to the open file, which other processes may share: `close` restores it.
  Close in the opposite order of opening: two descriptors may be one open file.
* Terminals, files, and a descriptor that is also stderr are handled by `thread`.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
from collections import deque
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from ...errors import TransportError
from ..base import HIGH_WATER, LOW_WATER

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Backlog",
    "FdReader",
    "FdWriter",
    "can_watch",
    "check_platform",
    "is_abandoned",
    "is_watchable",
]

# A pipe holds 64 KiB by default: 16 wake-ups of both sides for 1 MiB. 1 MiB is the most that
# Linux grants an unprivileged process.
PIPE_BYTES: Final = 1024 * 1024
READ_BUFFER_BYTES: Final = 256 * 1024
# Small parts are gathered into writes of about this size; larger ones are written as they are.
_GATHER_BYTES: Final = 64 * 1024
# The bound of one turn of the loop: a fast reader must not keep it busy.
_MAX_BYTES_PER_TURN: Final = 1024 * 1024
# `finish` waits for a slow reader at most so many times its timeout.
_MAX_FINISH_WAITS: Final = 10

_POSIX_CALLS: Final = ((os, "readv"), (os, "set_blocking"), (os, "killpg"), (select, "poll"))

_buffers: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, bytearray]] = WeakKeyDictionary()


def can_watch(loop: asyncio.AbstractEventLoop) -> bool:
    """Return True if `loop` can watch descriptors. On Windows no loop can."""
    return not _missing() and type(loop).add_reader is not asyncio.AbstractEventLoop.add_reader


def check_platform(what: str) -> None:
    """Reject what only works where descriptors can be watched, before anything is opened.

    Raises:
        TransportError: the text names the missing call.
    """
    missing = _missing()
    if missing:
        raise TransportError(f"{what} needs {missing}, which this system does not have")


def _missing() -> str:
    for module, name in _POSIX_CALLS:
        if not hasattr(module, name):
            return f"{module.__name__}.{name}"
    return ""


def is_watchable(fd: int) -> bool:
    """Return True if the loop can watch `fd` and O_NONBLOCK on it has no side effects.

    Not a file: epoll rejects it. Not a terminal: the shell shares its open file. And not a
    descriptor that is also stderr, as after `2>&1`: logging does not handle EAGAIN.
    """
    found = os.fstat(fd)
    if not (stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode)):
        return False
    try:
        stderr = os.fstat(2)
    except OSError:
        return True  # stderr is closed
    return (found.st_dev, found.st_ino) != (stderr.st_dev, stderr.st_ino)


def is_abandoned(fd: int) -> bool:
    """Return True if the reader of `fd` is gone; without `poll` only a write finds out."""
    if not hasattr(select, "poll"):
        return False
    watch = select.poll()
    watch.register(fd, 0)
    return any(found & (select.POLLERR | select.POLLHUP) for _, found in watch.poll(0))


class FdReader:
    """Calls `on_bytes` with what arrives, then `on_end` once: with the error, or None.

    After `close` neither is called.
    """

    __slots__ = (
        "_buffer",
        "_fd",
        "_is_open",
        "_is_over",
        "_loop",
        "_on_bytes",
        "_on_end",
        "_was_blocking",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_bytes: Callable[[bytes], object],
        on_end: Callable[[OSError | None], object],
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._on_bytes = on_bytes
        self._on_end = on_end
        self._buffer = memoryview(_buffer_of(loop))
        _grow(fd)
        self._was_blocking = os.get_blocking(fd)
        os.set_blocking(fd, False)
        self._is_open = True
        self._is_over = False  # `on_end` was called
        loop.add_reader(fd, self._read)

    def pause(self) -> None:
        """Stop reading until `resume`."""
        if self._is_open and not self._is_over:
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Continue to read."""
        if self._is_open and not self._is_over:
            self._loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        """Stop reading."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._fd)
            os.set_blocking(self._fd, self._was_blocking)

    def _read(self) -> None:
        try:
            size = os.readv(self._fd, (self._buffer,))
        except BlockingIOError:
            return  # another process that reads here was faster
        except OSError as error:
            self._stop(error)
            return
        if size:
            self._on_bytes(bytes(self._buffer[:size]))
        else:
            self._stop(None)

    def _stop(self, error: OSError | None) -> None:
        # `close` restores the flag: the output may share it, and may still be in use.
        self._is_over = True
        self._loop.remove_reader(self._fd)
        self._on_end(error)


class Backlog:
    """Counts the bytes still to be written, for any writer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_drained: Callable[[], object]) -> None:
        self.backlog = 0
        self.written = 0  # bytes in total
        self._loop = loop
        self._on_drained = on_drained
        self._is_high = False  # on_drained is owed
        self._finishing: asyncio.Future[None] | None = None

    async def finish(self, timeout: float) -> None:
        """Wait until all is written, nothing was for `timeout` seconds, or ten times that."""
        for _ in range(_MAX_FINISH_WAITS):
            before = self.backlog
            if not before:
                return
            self._finishing = self._loop.create_future()
            await asyncio.wait((self._finishing,), timeout=timeout)
            if self.backlog == before:
                return

    def _count_up(self, size: int) -> None:
        self.backlog += size
        if self.backlog > HIGH_WATER:
            self._is_high = True

    def _count_down(self, size: int) -> None:
        self.backlog -= size
        self.written += size
        if self._is_high and self.backlog < LOW_WATER:
            self._is_high = False
            # Called by the loop, so that an exception does not stop the writing.
            self._loop.call_soon(self._on_drained)
        if not self.backlog:
            self._finish()

    def _drop(self) -> None:
        self.backlog = 0  # what is left will not be written
        self._finish()

    def _finish(self) -> None:
        if self._finishing is not None and not self._finishing.done():
            self._finishing.set_result(None)


class NoWriter:
    """The writer of a stream that is not open yet: it writes nothing."""

    backlog = 0
    written = 0

    def write(self, data: bytes) -> None:
        """Drop `data`."""

    async def finish(self, timeout: float) -> None:
        """Return at once."""

    def close(self) -> None:
        """Release nothing."""


NO_WRITER: Final = NoWriter()


class FdWriter(Backlog):
    """Writes bytes in order, as the descriptor takes them.

    `on_broken` is called once if that fails; what is left and what is written later is dropped.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_drained: Callable[[], object],
        on_broken: Callable[[OSError], object],
    ) -> None:
        super().__init__(loop, on_drained)
        self._fd = fd
        self._on_broken = on_broken
        self._parts: deque[bytes] = deque()
        self._rest: bytes | memoryview = b""  # of a part that was written in part
        self._is_due = False  # a flush is scheduled
        self._is_watched = False  # the descriptor was full: the loop flushes when it is writable
        _grow(fd)
        self._was_blocking = os.get_blocking(fd)
        os.set_blocking(fd, False)
        self._is_open = True

    def write(self, data: bytes) -> None:
        """Write `data` at the end of this tick, or when there is room."""
        if not self._is_open or not data:
            return
        self._parts.append(data)
        self.backlog += len(data)  # as `_count_up` does, without the call
        if self.backlog > HIGH_WATER:
            self._is_high = True
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        """Stop writing."""
        if self._is_open:
            self._stop()
        if self._was_blocking:
            self._was_blocking = False
            os.set_blocking(self._fd, True)

    def _flush(self) -> None:
        left = _MAX_BYTES_PER_TURN
        while left > 0 and self._is_open:
            data = self._rest or self._next()
            if not data:
                self._unwatch()
                self._is_due = False
                return
            try:
                size = os.write(self._fd, data)
            except BlockingIOError:
                size = 0
            except OSError as error:
                self._stop()
                self._on_broken(error)
                return
            left -= size
            whole = size == len(data)
            self._rest = b"" if whole else memoryview(data)[size:]
            self._count_down(size)
            if not whole:
                break
        if self._is_open and not self._is_watched:
            self._is_watched = True
            self._loop.add_writer(self._fd, self._flush)

    def _next(self) -> bytes:
        """Return the next bytes to write: one large part, or several small ones joined."""
        parts = self._parts
        if len(parts) <= 1 or len(parts[0]) >= _GATHER_BYTES:
            return parts.popleft() if parts else b""
        gathered: list[bytes] = []
        size = 0
        while parts and size < _GATHER_BYTES:
            size += len(parts[0])
            gathered.append(parts.popleft())
        return b"".join(gathered)

    def _stop(self) -> None:
        self._is_open = False
        self._unwatch()
        self._parts.clear()
        self._rest = b""
        self._drop()

    def _unwatch(self) -> None:
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_writer(self._fd)


def _buffer_of(loop: asyncio.AbstractEventLoop) -> bytearray:
    # Not one buffer per process: two loops in two threads may read at the same moment.
    buffer = _buffers.get(loop)
    if buffer is None:
        buffer = _buffers[loop] = bytearray(READ_BUFFER_BYTES)
    return buffer


def _grow(fd: int) -> None:
    if sys.platform == "linux":
        from fcntl import F_GETPIPE_SZ, F_SETPIPE_SZ, fcntl

        try:
            if fcntl(fd, F_GETPIPE_SZ) < PIPE_BYTES:
                fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # not a pipe, or the user's share of pipe memory is used up
