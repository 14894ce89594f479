"""The file that `--trace` and `--record` write: a recording of messages as they pass.

The rules that live here, and only here:

* A recording replaces another recording, and no other file.
* It is a new file each time: a process that still writes the one before does not write into it.
  A device or a stream such as /dev/stderr is written to directly.
* Each entry is written unbuffered, so that a killed process leaves a readable recording.
* Only its owner may read it. `judge.trace.writer` removes secrets.
* A pipe or a socket of another user is not written to: its owner would read the traffic.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias

from .command import UsageError

if TYPE_CHECKING:
    from ..judge.trace.reader import TraceEntry
    from ..transports.base import Frame

__all__ = ["FrameListener", "Recording", "recorded", "recording", "write_recording"]

FrameListener: TypeAlias = "Callable[[Literal['client', 'server'], Frame], object]"


class Recording:
    """Records the frames of one connection or of several."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        # Imported here: most runs record nothing.
        from ..judge.trace.writer import TraceWriter

        TraceWriter(write)  # writes the header
        self._write = write
        self._begin = monotonic()

    def add(
        self,
        sender: Literal["client", "server"],
        frame: Frame,
        transport: str,
        connection: int | None = None,
    ) -> None:
        """Write a frame as one entry."""
        from ..judge.trace.reader import TraceEntry
        from ..judge.trace.writer import frame_entry

        at = round(monotonic() - self._begin, 6)
        entry = TraceEntry(at=at, sender=sender, transport=transport, connection=connection)
        self.write(frame_entry(frame, entry))

    def write(self, entry: TraceEntry) -> None:
        """Write an entry of `capture` or `frame_entry`, whose secrets are hidden."""
        from ..judge.trace.writer import encode_entry

        self._write(encode_entry(entry))


@contextmanager
def recording(path: str) -> Iterator[Recording]:
    """Open a recording.

    Raises:
        UsageError: another file is in its place, or it cannot be written.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(_opened(path))
            record = Recording(lambda data: _write(file, data))
        except OSError as error:
            raise UsageError(f"{path!r} cannot be written: {error.strerror}") from None
        yield record


@contextmanager
def recorded(path: str, transport: str, say: Callable[[str], object]) -> Iterator[FrameListener]:
    """Open a recording of one connection; yield the function that records a frame.

    After a write error `say` is called with a sentence, once, and the recording stops.

    Raises:
        UsageError: another file is in its place, or it cannot be written.
    """
    with recording(path) as opened:
        record: Recording | None = opened

        def record_frame(sender: Literal["client", "server"], frame: Frame) -> None:
            nonlocal record
            if record is not None:
                try:
                    record.add(sender, frame, transport)
                except OSError as error:
                    record = None
                    say(f"recording stopped: {error.strerror}")

        yield record_frame


def write_recording(path: str, lines: Iterable[bytes]) -> None:
    """Write the lines of a recording, its header among them.

    Raises:
        UsageError: another file is in its place, or it cannot be written.
    """
    try:
        with _opened(path) as file:
            for line in lines:
                _write(file, line)
    except OSError as error:
        raise UsageError(f"{path!r} cannot be written: {error.strerror}") from None


def _opened(path: str) -> BinaryIO:
    stream = _stream_at(path)
    if stream is not None:
        # Its own descriptor: a new one would start at offset 0 and overwrite.
        return open(os.dup(stream), "wb", buffering=0)
    is_link = os.path.islink(path)
    if is_link and _is_foreign(os.lstat(path)):
        raise UsageError(f"{path!r} is a symbolic link of another user: it is not followed")
    if _is_replaceable(path):
        os.unlink(path)
    elif os.path.exists(path) or is_link:
        return open(path, "wb", buffering=0, opener=_private_opener)
    # "x": a file that appeared since the check is not ours.
    return open(path, "xb", buffering=0, opener=_private_opener)


def _private_opener(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, 0o600)
    try:
        # Checked again: another file may have taken its place.
        _check_owner(path, os.fstat(descriptor))
    except UsageError:
        os.close(descriptor)
        raise
    return descriptor


def _stream_at(path: str) -> int | None:
    """Return the descriptor of the standard stream that is open on a path, or None."""
    try:
        there = os.stat(path)
    except OSError:
        return None
    for number in (1, 2):
        try:
            if os.path.samestat(there, os.fstat(number)):
                return number
        except OSError:
            pass  # it was closed
    return None


def _write(file: BinaryIO, data: bytes) -> None:
    # A disk that fills up takes a part of the data before it raises.
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _is_foreign(found: os.stat_result) -> bool:
    """Return True if a file belongs to another user, where files belong to users by number."""
    return hasattr(os, "geteuid") and found.st_uid != os.geteuid()


def _check_owner(path: str, found: os.stat_result) -> None:
    is_read_by_owner = stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode)
    if is_read_by_owner and _is_foreign(found):
        raise UsageError(f"{path!r} belongs to another user, who could read the recording")


def _is_replaceable(path: str) -> bool:
    """Return True if a recording is to be unlinked first; reject any other file.

    The target of a link is overwritten in place.
    """
    from ..judge.trace.reader import HEADER

    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            # A pipe or a terminal. Before it is opened: to open a pipe waits for its reader.
            _check_owner(path, found)
            return False
        with open(path, "rb") as file:
            beginning = file.read(256)
    except FileNotFoundError:
        return False
    is_blank = not beginning.strip() and len(beginning) == found.st_size
    if not is_blank and not beginning.lstrip().startswith(b'{"%s"' % HEADER.encode()):
        raise UsageError(f"{path!r} exists and is not a recording: it is not replaced")
    if _is_foreign(found):
        raise UsageError(f"{path!r} belongs to another user, who could read the recording")
    return not os.path.islink(path)
