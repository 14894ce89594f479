"""Reads and writes of a descriptor that the event loop cannot watch, on a thread of its own.

For terminals, files, `/dev/null`, and a pipe that is also stderr: `fd.is_watchable` decides. On
Windows, where no loop watches descriptors, for all standard streams: `fd.can_watch`. The readers
and writers have the interface of those in `fd`. They are slower by a thread switch, and elsewhere
meant for a person at a keyboard or a file of requests, not for load.

The rules that live here, and only here:

* O_NONBLOCK is never set: it would affect every process that shares the open file.
* A thread waits in `poll`, for the descriptor or for a pipe that stops it, and not in `read` or
  `write`. One that blocks all the same, say in a write to a terminal that was stopped with
  Ctrl-S, is abandoned after `_JOIN_TIMEOUT_S`; it is a daemon.
* Without `poll`, as on Windows, a thread waits in `read` or `write`, and `close` abandons it
  there. `is_stuck` is then true, and the descriptor must not be closed: on Windows that would
  wait for the thread.
* The reader is at most MAX_CHUNKS_AHEAD chunks ahead of the loop.
* EIO from a terminal means that its other side is gone, and is reported as the end.

A file could be read without a thread. It has one to keep a single rule, and because it may be
on a network.
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

READ_CHUNK_BYTES: Final = 64 * 1024
# 2 MiB in all. The other side may be a file of any size.
MAX_CHUNKS_AHEAD: Final = 32
# A descriptor that `poll` reports as writable takes PIPE_BUF bytes without blocking.
_WRITE_CHUNK_BYTES: Final[int] = getattr(select, "PIPE_BUF", 512)
# Without `poll` a write blocks whatever its size is, and larger ones are fewer.
_BLOCKING_WRITE_BYTES: Final = 64 * 1024
# How long `close` waits for a thread; one that can stop does so in microseconds.
_JOIN_TIMEOUT_S: Final = 0.5
# For one that waits in `read` or `write`, and most likely stays there.
_BLOCKED_JOIN_TIMEOUT_S: Final = 0.05


class _FdThread:
    """A thread that waits for one descriptor, and can be stopped."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, event: str) -> None:
        self._loop = loop
        self._fd = fd
        self._is_open = True
        self._stop: _StoppablePoll | None = None
        if hasattr(select, "poll"):
            self._stop = _StoppablePoll(fd, getattr(select, event))
        self._is_blocked = False  # in a call that cannot be stopped
        self._thread = threading.Thread(
            target=self._run, name=f"trunkline descriptor {fd}", daemon=True
        )

    def close(self) -> None:
        """Stop the thread, and wait for its end for a bounded time."""
        if not self._is_open:
            return
        self._is_open = False
        if self._stop is not None:
            self._stop.set()
        self._wake()
        self._thread.join(_BLOCKED_JOIN_TIMEOUT_S if self._is_blocked else _JOIN_TIMEOUT_S)
        # A thread that still runs is blocked on the descriptor itself, and checks `_is_open`
        # before its next call; it does not use the poll again.
        if self._stop is not None:
            self._stop.close()

    @property
    def is_stuck(self) -> bool:
        """Whether the thread was abandoned in a call that blocks, and holds the descriptor."""
        return self._is_blocked and not self._is_open

    def _run(self) -> None:
        raise NotImplementedError

    def _wake(self) -> None:
        """Release the semaphore that the thread may wait for."""
        raise NotImplementedError

    def _is_ready(self) -> bool:
        """Wait for the descriptor; return False if the thread has to stop."""
        if self._stop is None:
            # Set first: `close` uses the two in the opposite order.
            self._is_blocked = True
            if self._is_open:
                return True
            self._is_blocked = False
        elif self._is_open:
            self._stop.wait()
        return self._is_open

    def _post(self, callback: Callable[..., object], *args: object) -> None:
        """Call back on the loop, unless closed by then."""
        try:
            self._loop.call_soon_threadsafe(self._call, callback, args)
        except RuntimeError:
            self._is_open = False  # the loop was closed before this reader or writer

    def _call(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        if self._is_open:
            callback(*args)


class _StoppablePoll:
    """Waits for an event of a descriptor, or until another thread ends the wait."""

    def __init__(self, fd: int, event: int) -> None:
        self._read, self._write = os.pipe()
        self._poll = select.poll()
        self._poll.register(fd, event)
        self._poll.register(self._read, select.POLLIN)

    def wait(self) -> None:
        self._poll.poll()

    def set(self) -> None:
        os.write(self._write, b"x")

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


class ThreadReader(_FdThread):
    """Calls `on_bytes` with what arrives, then `on_end`; see `fd.FdReader`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_bytes: Callable[[bytes], object],
        on_end: Callable[[OSError | None], object],
    ) -> None:
        super().__init__(loop, fd, "POLLIN")
        self._on_bytes = on_bytes
        self._on_end = on_end
        self._ahead = threading.Semaphore(MAX_CHUNKS_AHEAD)
        self._is_paused = False
        self._held: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._thread.start()

    def pause(self) -> None:
        """Deliver nothing until `resume`; the thread stops MAX_CHUNKS_AHEAD chunks ahead."""
        self._is_paused = True

    def resume(self) -> None:
        """Deliver what was read meanwhile, and continue to read."""
        self._is_paused = False
        self._loop.call_soon(self._deliver_held)

    def _deliver_held(self) -> None:
        # One per turn of the loop: `resume` may be called from a callback, and a callback that
        # raises must not delay the others.
        if self._held and not self._is_paused and self._is_open:
            callback, args = self._held.popleft()
            if self._held:
                self._loop.call_soon(self._deliver_held)
            callback(*args)

    def _call(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        if self._is_paused or self._held:
            self._held.append((callback, args))
        else:
            super()._call(callback, args)

    def _run(self) -> None:
        failure: OSError | None = None
        try:
            while True:
                self._ahead.acquire()
                if not self._is_ready():
                    return
                chunk = os.read(self._fd, READ_CHUNK_BYTES)
                self._is_blocked = False
                if not chunk:
                    break
                self._post(self._arrived, chunk)
        except OSError as error:
            self._is_blocked = False
            failure = None if error.errno == errno.EIO else error
        self._post(self._on_end, failure)

    def _wake(self) -> None:
        self._ahead.release()

    def _arrived(self, chunk: bytes) -> None:
        try:
            self._on_bytes(chunk)
        finally:
            self._ahead.release()


class ThreadWriter(Backlog, _FdThread):
    """Writes bytes in order, as the descriptor takes them; see `fd.FdWriter`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_drained: Callable[[], object],
        on_broken: Callable[[OSError], object],
    ) -> None:
        Backlog.__init__(self, loop, on_drained)
        _FdThread.__init__(self, loop, fd, "POLLOUT")
        self._chunk = _WRITE_CHUNK_BYTES if self._stop else _BLOCKING_WRITE_BYTES
        self._on_broken = on_broken
        self._parts: deque[bytes] = deque()
        self._is_broken = False
        self._filled = threading.Semaphore(0)  # counts the items of `_parts`
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Have the thread write `data`."""
        if self._is_open and not self._is_broken and data:
            self._count_up(len(data))
            self._parts.append(data)
            self._filled.release()

    def close(self) -> None:
        """Stop writing."""
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
            self._is_blocked = False
            self._post(self._broke, error)

    def _write_out(self, data: memoryview) -> None:
        while data and self._is_ready():
            size = os.write(self._fd, data[: self._chunk])
            self._is_blocked = False
            data = data[size:]
            self._post(self._count_down, size)

    def _wake(self) -> None:
        self._filled.release()

    def _broke(self, error: OSError) -> None:
        self._is_broken = True
        self._parts.clear()
        self._drop()
        self._on_broken(error)
