"""The server's stdio transport: standard input and output of this process.

Works on pipes, sockets, terminals and files. Where the event loop cannot watch descriptors, as on
Windows, threads read and write all of them.

The rules that live here, and only here:

* Only frames are written to the wire.                   [MCP 2026-07-28, basic/transports/stdio]
  While connected, the wire is duplicated to private descriptors: `print`, writes to descriptor 1
  and child processes write to stderr instead, and stdin reads as empty. Closing `sys.stdout`,
  or descriptor 1, closes neither the wire nor stderr. `close` restores everything.
* The end of the input is reported as the end, and answers are still written until `close`.
* Descriptors that are passed in are owned by the transport: `close` closes them.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from typing import TYPE_CHECKING, Final

from ...errors import TransportError
from ...jsonrpc.policy import Policy
from ..framed import FramedTransport
from ..io.fd import NO_WRITER, FdReader, FdWriter, can_watch, is_abandoned, is_watchable
from ..io.thread import ThreadReader, ThreadWriter

if TYPE_CHECKING:
    from collections.abc import Set
    from typing import TextIO

__all__ = ["StdioServer"]

# The client has closed its end, as it may. Windows reports that as EINVAL, too.
_READER_GONE: Final = (errno.EPIPE, errno.ECONNRESET) + ((errno.EINVAL,) if os.name == "nt" else ())
# Above the numbers of the standard streams.
_FIRST_PRIVATE: Final = 3
# How long `close` waits for a client that is connected and reads nothing.
_CLOSE_TIMEOUT_S: Final = 5.0


class StdioServer(FramedTransport):
    """A transport on standard input and output, or on the descriptors given in their place.

    Framing and limits are those of `policy`, by default those of MCP.
    """

    def __init__(
        self, policy: Policy | None = None, *, stdin: int | None = None, stdout: int | None = None
    ) -> None:
        super().__init__(policy or Policy(), "stdio")
        self._given = (stdin, stdout)
        # The error of an output that cannot be written; None if its reader is gone.
        self.write_error: TransportError | None = None
        self._stdin = -1  # the descriptors for input and output
        self._stdout = -1
        self._standard = _StandardStreams()
        self._is_used = False

    async def connect(self) -> None:
        """Take over the descriptors, and start to read.

        Raises:
            TransportError: one of them is not open; descriptors are restored, or closed if they
                were passed in.
        """
        if self._is_used:
            raise TransportError("a transport connects once")
        self._is_used = True
        try:
            self._open(asyncio.get_running_loop())
        except OSError as error:
            self._clear_away()
            reason = f"standard input or output cannot be used: {error.strerror}"
            raise TransportError(reason) from None
        self._is_open = True

    def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        stdin, stdout = self._given
        if stdin is None:
            stdin = self._standard.take_input()
        if stdout is None:
            stdout = self._standard.take_output()
        self._stdin = stdin
        self._stdout = stdout
        # Both are inspected before either is changed.
        has_watch = can_watch(loop)
        write = FdWriter if has_watch and is_watchable(stdout) else ThreadWriter
        read = FdReader if has_watch and is_watchable(stdin) else ThreadReader
        if not has_watch:
            for fd in (stdin, stdout):
                os.fstat(fd)  # one that is not open is reported here, and not by a thread
                _set_binary(fd)
        self._reader = read(loop, stdin, self._receive, self._input_ended)
        self._writer = write(loop, stdout, self._drained, self._output_broke)

    def _output(self) -> int:
        return self._stdout if self._is_open else -1

    async def _end(self) -> None:
        was_connected = self._writer is not NO_WRITER
        try:
            await self._writer.finish(_CLOSE_TIMEOUT_S)
        finally:
            self._is_used = True
            self._clear_away()
            if was_connected:
                self._report(None)

    def _input_ended(self, error: OSError | None) -> None:
        self._receive_end()
        if error is None:
            # A client that is gone has closed both pipes; one that waits for answers keeps this.
            self._is_open = self._is_open and not is_abandoned(self._stdout)
            self._report(None)
        else:
            self._is_open = False
            self._report(TransportError(f"reading failed: {error.strerror}"))

    def _output_broke(self, error: OSError) -> None:
        self._is_open = False
        if error.errno in _READER_GONE:
            self._report(TransportError(f"the client stopped reading: {error.strerror}"))
        else:
            self.write_error = TransportError(f"writing failed: {error.strerror}")
            self._report(self.write_error)

    def _clear_away(self) -> None:
        # In this order: input and output may be one socket, whose flags the reader saved first.
        held: set[int] = set()  # by threads that were abandoned
        for stream, fd in ((self._writer, self._stdout), (self._reader, self._stdin)):
            if stream is not None:
                stream.close()
                if isinstance(stream, ThreadReader | ThreadWriter) and stream.is_stuck:
                    held.add(fd)
        self._standard.restore(held)
        for fd in {fd for fd in self._given if fd is not None} - held:
            try:
                os.close(fd)
            except OSError:
                pass  # was not open, which is why `connect` failed
        self._given = (None, None)


class _StandardStreams:
    """The standard streams of this process, and their replacements."""

    def __init__(self) -> None:
        self._input: int | None = None  # the wire, under descriptors that children do not inherit
        self._output: int | None = None
        self._stdout: TextIO | None = None  # the original `sys.stdout`
        self._replacement: TextIO | None = None

    def take_input(self) -> int:
        """Return a private descriptor for stdin, and leave an empty file in its place."""
        _check_was_open(sys.__stdin__)
        self._input = _private_copy(0)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        return self._input

    def take_output(self) -> int:
        """Return a private descriptor for stdout, and leave stderr in its place."""
        _check_was_open(sys.__stdout__)
        self._output = _private_copy(1)
        _lead_output_to_stderr()
        # Not `sys.stderr` itself: a handler that closes its stdout must not close our log.
        self._replacement = open(  # noqa: SIM115  # it stays open while connected
            1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
        )
        self._stdout, sys.stdout = sys.stdout, self._replacement
        # Text printed before must not reach the wire either.
        _flush(self._stdout)
        return self._output

    def restore(self, held: Set[int]) -> None:
        """Restore the streams, except those that other code has replaced since.

        Descriptors that a thread holds are left alone.
        """
        if self._output is not None:
            # Text printed meanwhile is flushed to stderr before descriptor 1 is the wire again,
            # even if other code has closed the descriptor.
            _lead_output_to_stderr()
            _flush(self._stdout)
            _flush(self._replacement)
            if sys.stdout is self._replacement and self._stdout is not None:
                sys.stdout = self._stdout
            _put_back(self._output, 1, held)
            self._output = None
        if self._input is not None:
            _put_back(self._input, 0, held)
            self._input = None


def _check_was_open(stream: TextIO | None) -> None:
    """Reject a standard stream that was closed when Python started.

    Its descriptor number was reused by the first file opened since, likely the event loop's.
    """
    if stream is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def _private_copy(fd: int) -> int:
    """Duplicate a descriptor, above those of the standard streams: one of them may be closed."""
    low: list[int] = []
    try:
        while (copy := os.dup(fd)) < _FIRST_PRIVATE:
            low.append(copy)
    finally:
        for each in low:
            os.close(each)
    return copy


def _put_back(private: int, fd: int, held: Set[int]) -> None:
    if private not in held:
        os.dup2(private, fd)
        os.close(private)


def _set_binary(fd: int) -> None:
    """Have Windows leave the ends of lines as they are; other systems always do."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(fd, os.O_BINARY)


def _lead_output_to_stderr() -> None:
    """Lead descriptor 1 to stderr, or nowhere if stderr is closed."""
    try:
        # Closed when Python started: its number is that of the first file opened since.
        if sys.__stderr__ is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        os.dup2(2, 1)
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        if null != 1:
            os.dup2(null, 1)
            os.close(null)


def _flush(stream: TextIO | None) -> None:
    try:
        if stream is not None:
            stream.flush()
    except (OSError, ValueError):
        pass  # a closed stream, or one whose reader is gone
