"""Read and write a descriptor that the event loop can watch: a pipe or a socket.

Bytes only: where a frame begins is the business of who is called with them. The loop never
waits for a descriptor, and nothing here opens or closes one.

The rules that live here, and only here:

* Bytes are read into one buffer per loop, and what arrived is copied out. A fresh buffer for
  every read costs several times as much as the read itself.
* What is written in one tick of the loop goes out in one system call, or in few where it is
  much. A byte is copied at most once on its way, however large the message and however little
  the pipe takes at a time.
* O_NONBLOCK belongs to the open file, which other processes may share: it is put back by
  `close`. Close in the opposite order of opening: two descriptors may be one open file.
* Terminals, files, and whatever is also our stderr are not for this module: see `blocking`.
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

__all__ = ["Backlog", "FdReader", "FdWriter", "check_platform", "is_abandoned", "is_watchable"]

# A pipe holds 64 KiB unless asked for more, which makes 16 wake-ups of both sides for 1 MiB.
# 1 MiB is what Linux grants everybody.
PIPE_SIZE: Final = 1024 * 1024
READ_BUFFER: Final = 256 * 1024
# Small parts are gathered into writes of about this size; larger ones are written as they are.
_GATHERED: Final = 64 * 1024
# How much one turn of the loop writes: a reader as fast as we are must not keep it busy.
_TURN: Final = 1024 * 1024
# Waiting for a slow reader ends after so many times the patience with one that takes nothing.
_SPELLS: Final = 10

# What only POSIX has.
_NEEDED: Final = ((os, "readv"), (os, "set_blocking"), (os, "killpg"), (select, "poll"))

_buffers: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, bytearray]] = WeakKeyDictionary()


def check_platform() -> None:
    """Refuse a platform without the calls that standard streams are used by.

    Before anything is opened or started: on Windows the modules load, and nothing else works.

    Raises:
        TransportError: the text names what is missing.
    """
    for module, name in _NEEDED:
        if not hasattr(module, name):
            raise TransportError(f"not on this platform: stdio needs {module.__name__}.{name}")


def is_watchable(fd: int) -> bool:
    """Say whether the loop can watch `fd`, and O_NONBLOCK on it would trouble nobody.

    Not a file, which epoll refuses. Not a terminal: its open file is that of the shell and of
    everybody else on it. And not what is our stderr too, as after `2>&1`: whoever logs does
    not expect to be told to try again later.
    """
    found = os.fstat(fd)
    if not (stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode)):
        return False
    try:
        stderr = os.fstat(2)
    except OSError:
        return True  # there is none
    return (found.st_dev, found.st_ino) != (stderr.st_dev, stderr.st_ino)


def is_abandoned(fd: int) -> bool:
    """Say whether nobody can read any more what is written to `fd`."""
    watch = select.poll()
    watch.register(fd, 0)
    return any(found & (select.POLLERR | select.POLLHUP) for _, found in watch.poll(0))


class FdReader:
    """Calls `on_bytes` with what arrives, and at last `on_end`, once: with what failed, or None.

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
        """Leave what arrives where it is, until `resume`: whoever sends has to wait."""
        if self._is_open and not self._is_over:
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Read on."""
        if self._is_open and not self._is_over:
            self._loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        """Read no more."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._fd)
            os.set_blocking(self._fd, self._was_blocking)

    def _read(self) -> None:
        try:
            size = os.readv(self._fd, (self._buffer,))
        except BlockingIOError:
            return  # somebody else who reads here was faster
        except OSError as error:
            self._stop(error)
            return
        if size:
            self._on_bytes(bytes(self._buffer[:size]))
        else:
            self._stop(None)

    def _stop(self, error: OSError | None) -> None:
        # The rest is left to `close`: the flag may be that of a descriptor still written to.
        self._is_over = True
        self._loop.remove_reader(self._fd)
        self._on_end(error)


class Backlog:
    """Counts what is still to be written, for writers of any kind."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_drained: Callable[[], object]) -> None:
        self.backlog = 0
        self.written = 0  # bytes, in all
        self._loop = loop
        self._on_drained = on_drained
        self._is_high = False  # on_drained is owed
        self._finishing: asyncio.Future[None] | None = None

    async def finish(self, patience: float) -> None:
        """Wait until all is written, or nothing was for `patience` seconds, or ten times that."""
        for _ in range(_SPELLS):
            before = self.backlog
            if not before:
                return
            self._finishing = self._loop.create_future()
            await asyncio.wait((self._finishing,), timeout=patience)
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
            # By the loop, so that whatever it does or raises does not stop the writing.
            self._loop.call_soon(self._on_drained)
        if not self.backlog:
            self._finish()

    def _drop(self) -> None:
        """Count nothing any more: what is left will not be written."""
        self.backlog = 0
        self._finish()

    def _finish(self) -> None:
        if self._finishing is not None and not self._finishing.done():
            self._finishing.set_result(None)


class FdWriter(Backlog):
    """Writes what it is given, in order, as the descriptor takes it.

    `on_broken` is called once if that fails, and what is left and what comes later is dropped.
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
        self._rest: bytes | memoryview = b""  # of what was begun to be written
        self._is_due = False  # a flush is on its way
        self._is_watched = False  # the descriptor was full: it comes when there is room
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
        """Write no more."""
        if self._is_open:
            self._stop()
        if self._was_blocking:
            self._was_blocking = False
            os.set_blocking(self._fd, True)

    def _flush(self) -> None:
        """Write what there is, up to what is taken and what one turn may cost."""
        left = _TURN
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
        """Return what is to be written next: one large part, or small ones in one piece."""
        parts = self._parts
        if len(parts) <= 1 or len(parts[0]) >= _GATHERED:
            return parts.popleft() if parts else b""
        gathered: list[bytes] = []
        size = 0
        while parts and size < _GATHERED:
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
    """Return the one buffer of a loop, which is filled and emptied in one step.

    Not one per process: two loops in two threads may read at the same moment.
    """
    buffer = _buffers.get(loop)
    if buffer is None:
        buffer = _buffers[loop] = bytearray(READ_BUFFER)
    return buffer


def _grow(fd: int) -> None:
    """Let a pipe hold more, where the system does that."""
    if sys.platform == "linux":
        from fcntl import F_GETPIPE_SZ, F_SETPIPE_SZ, fcntl

        try:
            if fcntl(fd, F_GETPIPE_SZ) < PIPE_SIZE:
                fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE)
        except OSError:
            pass  # no pipe, or the user's share of pipe memory is used up
