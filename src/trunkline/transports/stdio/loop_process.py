"""Child processes on the pipes of the event loop, for loops that cannot watch descriptors.

On Windows the loop of asyncio starts processes and reads and writes their pipes itself. A
`LoopChild` has the interface of `process.Child`, its reader and writer that of `io.fd`.

The rules that live here, and only here:

* No shell is involved. On Windows the command is looked up as the shell does, with the suffixes
  of PATHEXT: `npx` is a script, `npx.cmd`.
* On Windows a child is in a process group of its own, so that Ctrl-C does not reach it.
* Termination escalates: close stdin, then terminate, then kill, with a bounded wait after each.
  On Windows, terminate and kill are the same, and end the process alone: those that it started
  see the end of its pipes.                              [MCP 2026-07-28, basic/transports/stdio]
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final, cast

from ...errors import TransportError
from ..base import HIGH_WATER, LOW_WATER
from .process import start_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["LoopChild", "LoopReader", "LoopWriter"]

# The time the system is given to end a process that was killed, and the loop to close its pipes.
_KILL_TIMEOUT_S: Final = 1.0
# How often the backlog of a writer is looked at while it is to become empty.
_POLL_INTERVAL_S: Final = 0.01
# `finish` waits for a slow reader at most so many times its timeout.
_MAX_FINISH_WAITS: Final = 10


class LoopChild(asyncio.SubprocessProtocol):
    """A running child process whose pipes belong to the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # Done when the process has exited; the result is its exit status.
        self.exited: asyncio.Future[int] = loop.create_future()
        self._released: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None
        self._writer: LoopWriter | None = None
        self._readers: dict[int, LoopReader] = {}
        # Events of pipes without a reader or writer yet.
        self._early: list[Callable[[], object]] = []

    @classmethod
    async def start(
        cls,
        loop: asyncio.AbstractEventLoop,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None,
    ) -> LoopChild:
        """Start a process with three pipes.

        Raises:
            TransportError: it cannot be started; the text names the command and the reason,
                never the arguments or the environment.
        """
        program, options = command[0], dict[str, Any]()
        if os.name == "nt":
            program = shutil.which(program, path=env.get("PATH")) or program
            options["creationflags"] = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        try:
            transport, child = await loop.subprocess_exec(
                lambda: cls(loop),
                program,
                *command[1:],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=env,
                cwd=cwd,
                **options,
            )
        except NotImplementedError:
            raise TransportError(
                f"{type(loop).__name__} cannot start processes: use the default event loop"
            ) from None
        except (OSError, ValueError) as error:
            raise start_failure(command[0], cwd, error) from None
        child._transport = transport
        return child

    @property
    def pid(self) -> int:
        """The id of the process."""
        pid = self._subprocess.get_pid()
        assert pid is not None
        return pid

    def writer(
        self, on_drained: Callable[[], object], on_broken: Callable[[OSError], object]
    ) -> LoopWriter:
        """Return the writer of its stdin."""
        self._writer = LoopWriter(self._loop, self._pipe(0), on_drained, on_broken)
        return self._writer

    def reader(
        self,
        fd: int,
        on_bytes: Callable[[bytes], object],
        on_end: Callable[[OSError | None], object],
    ) -> LoopReader:
        """Return a reader of its stdout (1) or stderr (2). The last one starts the delivery."""
        self._readers[fd] = reader = LoopReader(self._pipe(fd), on_bytes, on_end)
        if len(self._readers) == 2:
            early, self._early = self._early, []
            for event in early:
                self._loop.call_soon(event)
        return reader

    def close_stdin(self) -> None:
        """End its input."""
        self._pipe(0).close()

    async def end(self, grace: float) -> None:
        """Wait `grace` seconds for the process to exit, then terminate it."""
        for seconds, escalate in (
            (grace, self._subprocess.terminate),
            (grace, self._subprocess.kill),
        ):
            await asyncio.wait((self.exited,), timeout=seconds)
            if self.exited.done():
                return
            try:
                escalate()
            except (ProcessLookupError, PermissionError):
                pass  # it has just exited, which Windows reports as a lack of rights
        await asyncio.wait((self.exited,), timeout=_KILL_TIMEOUT_S)

    async def released(self) -> None:
        """Wait until the loop has closed the pipes, which it does after `discard`."""
        await asyncio.wait((self._released,), timeout=_KILL_TIMEOUT_S)

    def discard(self) -> None:
        """Kill the process, and close its pipes."""
        self._subprocess.close()

    # Called by the loop

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Deliver what the process wrote."""
        self._dispatch(lambda: self._readers[fd].receive(data))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Report the end of a pipe."""
        error = exc if isinstance(exc, OSError) else None
        if fd == 0:
            self._dispatch(lambda: self._lose(error))
        else:
            self._dispatch(lambda: self._readers[fd].end(error))

    def _lose(self, error: OSError | None) -> None:
        if self._writer is not None:
            self._writer.lose(error)

    def process_exited(self) -> None:
        """Report the exit."""
        status = self._subprocess.get_returncode()
        if status is not None and not self.exited.done():
            self.exited.set_result(status)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport: the process may exit before `start` has returned."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the process has exited and the pipes are closed."""
        if not self._released.done():
            self._released.set_result(None)

    def resume_writing(self) -> None:
        """Report that the backlog has fallen below LOW_WATER."""
        if self._writer is not None:
            self._writer.drain()

    def _dispatch(self, event: Callable[[], object]) -> None:
        if len(self._readers) < 2 or self._early:
            self._early.append(event)
        else:
            event()

    @property
    def _subprocess(self) -> asyncio.SubprocessTransport:
        assert self._transport is not None
        return self._transport

    def _pipe(self, fd: int) -> Any:
        return self._subprocess.get_pipe_transport(fd)


class LoopReader:
    """Calls `on_bytes` with what arrives, then `on_end` once; see `fd.FdReader`."""

    def __init__(
        self,
        pipe: asyncio.ReadTransport,
        on_bytes: Callable[[bytes], object],
        on_end: Callable[[OSError | None], object],
    ) -> None:
        self._pipe = pipe
        self._on_bytes = on_bytes
        self._on_end = on_end
        self._is_open = True

    def pause(self) -> None:
        """Stop reading until `resume`."""
        if self._is_open and not self._pipe.is_closing():
            self._pipe.pause_reading()

    def resume(self) -> None:
        """Continue to read."""
        if self._is_open and not self._pipe.is_closing():
            self._pipe.resume_reading()

    def close(self) -> None:
        """Stop reading."""
        self._is_open = False

    def receive(self, data: bytes) -> None:
        """Deliver bytes of the pipe."""
        if self._is_open:
            self._on_bytes(data)

    def end(self, error: OSError | None) -> None:
        """Report the end of the pipe."""
        if self._is_open:
            self._is_open = False
            self._on_end(error)


class LoopWriter:
    """Writes bytes in order, as the pipe takes them; see `fd.FdWriter`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pipe: asyncio.WriteTransport,
        on_drained: Callable[[], object],
        on_broken: Callable[[OSError], object],
    ) -> None:
        pipe.set_write_buffer_limits(HIGH_WATER, LOW_WATER)
        self._loop = loop
        self._pipe = pipe
        self._on_drained = on_drained
        self._on_broken = on_broken
        self._accepted = 0  # bytes in total
        self._is_open = True

    @property
    def backlog(self) -> int:
        """The number of bytes still to be written."""
        return self._pipe.get_write_buffer_size() if self._is_open else 0

    @property
    def written(self) -> int:
        """The number of bytes that have left the backlog, in total."""
        return self._accepted - self.backlog

    def write(self, data: bytes) -> None:
        """Write `data` now, or when there is room."""
        if self._is_open and not self._pipe.is_closing():
            self._accepted += len(data)
            self._pipe.write(data)

    async def finish(self, timeout: float) -> None:
        """Wait until all is written, nothing was for `timeout` seconds, or ten times that."""
        for _ in range(_MAX_FINISH_WAITS):
            before, deadline = self.backlog, self._loop.time() + timeout
            while self.backlog and self._loop.time() < deadline:
                await asyncio.sleep(_POLL_INTERVAL_S)
            if not self.backlog or self.backlog == before:
                return

    def close(self) -> None:
        """Stop writing; what is left is dropped."""
        self._is_open = False

    def drain(self) -> None:
        """Report that there is room again."""
        if self._is_open:
            self._on_drained()

    def lose(self, error: OSError | None) -> None:
        """Report that the process reads no more."""
        if self._is_open:
            self._is_open = False
            self._on_broken(error or BrokenPipeError("the pipe was closed"))
