"""Read and write a descriptor that the event loop cannot watch, from a thread of its own.

A terminal, a file, `/dev/null`, a pipe that is our stderr too: `pipes.is_watchable` says which.
The readers and writers have the members of those in `pipes`. They are slower by a thread hop
and made for a person at a keyboard or a file of requests, not for load.

The rules that live here, and only here:

* O_NONBLOCK is never set: it would reach everybody who shares the open file.
* So that a thread can be stopped it does not wait in `read` or `write`, but in `poll`, for the
  descriptor or for a pipe of its own. One that hangs all the same, say in a write to a
  terminal that was stopped with Ctrl-S, is left behind after a moment; it is a daemon.
* The reader is at most READ_AHEAD chunks ahead of the loop.
* A terminal whose other side is gone says EIO, which is its way to say that nothing will come.

A file takes and gives its bytes at once, and could do without a thread. It has one for the
sake of a single rule, and because a file may lie on a network.
"""

from __future__ import annotations

import errno
import os
import select
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from .fd import Backlog

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["ThreadReader", "ThreadWriter"]

READ_CHUNK: Final = 64 * 1024
# In chunks: 2 MiB. The other side may be a file of any size.
READ_AHEAD: Final = 32
# What `poll` calls writable has room for so much (PIPE_BUF), so that a write of it returns.
# Where there is no such constant nothing is written, but this module is loaded.
_WRITE_CHUNK: Final[int] = getattr(select, "PIPE_BUF", 512)
# How long a closing loop waits for a thread; those that can stop do so in microseconds.
_JOIN_WAIT: Final = 0.5


class _Worker:
    """A thread that waits for one descriptor, and can be told to stop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, event: int) -> None:
        self._loop = loop
        self._fd = fd
        self._is_open = True
        self._stop_read, self._stop_write = os.pipe()
        self._poll = select.poll()
        self._poll.register(fd, event)
        self._poll.register(self._stop_read, select.POLLIN)
        self._thread = threading.Thread(
            target=self._run, name=f"trunkline descriptor {fd}", daemon=True
        )

    def close(self) -> None:
        """Stop, and wait a moment for the thread to be gone."""
        if not self._is_open:
            return
        self._is_open = False
        os.write(self._stop_write, b"x")
        self._wake()
        self._thread.join(_JOIN_WAIT)
        # A thread that hangs is inside a call for the descriptor itself, and looks at
        # `_is_open` before it makes another; these it does not touch again.
        os.close(self._stop_read)
        os.close(self._stop_write)

    def _run(self) -> None:
        raise NotImplementedError

    def _wake(self) -> None:
        """End any wait of the thread that is not for a descriptor."""
        raise NotImplementedError

    def _is_ready(self) -> bool:
        """Wait for the descriptor; say whether to go on."""
        if self._is_open:
            self._poll.poll()
        return self._is_open

    def _tell(self, callback: Callable[..., object], *args: object) -> None:
        """Have the loop call back, unless we are closed by then."""
        try:
            self._loop.call_soon_threadsafe(self._told, callback, args)
        except RuntimeError:
            self._is_open = False  # the loop is closed, and nobody closed us

    def _told(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        if self._is_open:
            callback(*args)


class ThreadReader(_Worker):
    """Calls `on_bytes` with what arrives, and at last `on_end`; see `pipes.FdReader`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_bytes: Callable[[bytes], object],
        on_end: Callable[[OSError | None], object],
    ) -> None:
        super().__init__(loop, fd, select.POLLIN)
        self._on_bytes = on_bytes
        self._on_end = on_end
        self._ahead = threading.Semaphore(READ_AHEAD)
        self._is_paused = False
        self._held: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._thread.start()

    def pause(self) -> None:
        """Hand on nothing more until `resume`; the thread is soon as far ahead as it may be."""
        self._is_paused = True

    def resume(self) -> None:
        """Hand on what has come meanwhile, and go on."""
        self._is_paused = False
        self._loop.call_soon(self._hand_on)

    def _hand_on(self) -> None:
        """Hand on the first of what was held, and the rest in turns of its own.

        Not one within the other, whoever resumes, and none is held up by one that fails.
        """
        if self._held and not self._is_paused and self._is_open:
            callback, args = self._held.popleft()
            if self._held:
                self._loop.call_soon(self._hand_on)
            callback(*args)

    def _told(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        if self._is_paused or self._held:
            self._held.append((callback, args))
        else:
            super()._told(callback, args)

    def _run(self) -> None:
        failure: OSError | None = None
        try:
            while True:
                self._ahead.acquire()
                if not self._is_ready():
                    return
                chunk = os.read(self._fd, READ_CHUNK)
                if not chunk:
                    break
                self._tell(self._arrived, chunk)
        except OSError as error:
            failure = None if error.errno == errno.EIO else error
        self._tell(self._on_end, failure)

    def _wake(self) -> None:
        self._ahead.release()

    def _arrived(self, chunk: bytes) -> None:
        try:
            self._on_bytes(chunk)
        finally:
            self._ahead.release()


class ThreadWriter(Backlog, _Worker):
    """Writes what it is given, in order, as the descriptor takes it; see `pipes.FdWriter`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_drained: Callable[[], object],
        on_broken: Callable[[OSError], object],
    ) -> None:
        Backlog.__init__(self, loop, on_drained)
        _Worker.__init__(self, loop, fd, select.POLLOUT)
        self._on_broken = on_broken
        self._parts: deque[bytes] = deque()
        self._is_broken = False
        self._filled = threading.Semaphore(0)  # counts what is in `_parts`
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Have the thread write `data`."""
        if self._is_open and not self._is_broken and data:
            self._count_up(len(data))
            self._parts.append(data)
            self._filled.release()

    def close(self) -> None:
        """Write no more."""
        super().close()
        self._drop()

    def _run(self) -> None:
        try:
            while True:
                self._filled.acquire()
                if not self._is_open:
                    return
                self._write_out(memoryview(self._parts.popleft()))
        except OSError as error:
            self._tell(self._broke, error)

    def _write_out(self, data: memoryview) -> None:
        while data and self._is_ready():
            size = os.write(self._fd, data[:_WRITE_CHUNK])
            data = data[size:]
            self._tell(self._count_down, size)

    def _wake(self) -> None:
        self._filled.release()

    def _broke(self, error: OSError) -> None:
        self._is_broken = True
        self._parts.clear()
        self._drop()
        self._on_broken(error)
