"""The file that `--trace` and `--record` write: a recording of conversations, as they happen.

A recording takes the place of another, and of nothing else: a file that is no recording was
put in the command by mistake. It is a new file each time, so that a program which still writes
the one before does not write into this one; what is no file itself, such as /dev/stderr, is
written to where it leads. Each entry is with the system before the next begins: who is killed
leaves a recording that can be read. Nobody else may read it. Secrets are hidden by the writer of
entries, before they get here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias

from .command import UsageError

if TYPE_CHECKING:
    from ..judge.trace import TraceEntry
    from ..transports.base import Frame

__all__ = ["FrameListener", "Recording", "recorded", "recording"]

FrameListener: TypeAlias = "Callable[[Literal['client', 'server'], Frame], object]"


class Recording:
    """Takes down frames, of one connection or of several."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        # Imported here: few conversations are recorded.
        from ..judge.trace import TraceWriter

        self._writer = TraceWriter(write)
        self._begin = monotonic()

    def add(
        self,
        sender: Literal["client", "server"],
        frame: Frame,
        transport: str,
        connection: int | None = None,
    ) -> None:
        """Take down a frame, and how it was sent."""
        from ..judge.trace import TraceEntry

        at = round(monotonic() - self._begin, 6)
        raw = frame if isinstance(frame, bytes) else _head(frame)
        entry = TraceEntry(
            at=at, sender=sender, transport=transport, raw=raw, connection=connection
        )
        self._writer.write(_entry(entry))


@contextmanager
def recording(path: str) -> Iterator[Recording]:
    """Open a recording.

    Raises:
        Misuse: there is something else in its place, or it cannot be written.
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
    """Open a recording of one connection; yield what takes down each frame.

    If it cannot be written any more, `say` is called with a sentence, once, and nothing is taken
    down from there on: the conversation goes on.

    Raises:
        Misuse: there is something else in its place, or it cannot be written.
    """
    with recording(path) as opened:
        record: Recording | None = opened

        def hear(sender: Literal["client", "server"], frame: Frame) -> None:
            nonlocal record
            if record is not None:
                try:
                    record.add(sender, frame, transport)
                except OSError as error:
                    record = None
                    say(f"nothing is recorded from here on: {error.strerror}")

        yield hear


def _opened(path: str) -> BinaryIO:
    stream = _stream_at(path)
    if stream is not None:
        # Its own descriptor: another would write from the beginning, over what it has written.
        return open(os.dup(stream), "wb", buffering=0)
    is_link = os.path.islink(path)
    if is_link and os.lstat(path).st_uid != os.geteuid():
        raise UsageError(f"{path!r} is a link of somebody else's: it is not followed")
    if _is_replaceable(path):
        os.unlink(path)
    elif os.path.exists(path) or is_link:
        return open(path, "wb", buffering=0, opener=_for_us_alone)
    # What came to be there since we looked is not ours.
    return open(path, "xb", buffering=0, opener=_for_us_alone)


def _for_us_alone(path: str, flags: int) -> int:
    """Open a file that, if it is made, nobody else may read: conversations are private."""
    return os.open(path, flags, 0o600)


def _stream_at(path: str) -> int | None:
    """Return the number of the standard stream that goes to a path already, if one does."""
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
    """Write all of it, or raise: a disk that fills up takes a part first."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _entry(entry: TraceEntry) -> TraceEntry:
    """Return an entry with its message read, so that secrets are found by their names."""
    from msgspec.json import decode
    from msgspec.structs import replace

    from ..jsonrpc.decode_errors import UNREADABLE

    try:
        return replace(entry, message=decode(entry.raw or b""), raw=None)
    except UNREADABLE:
        return entry


def _head(fault: object) -> bytes:
    """Return what is known of a frame that could not be read."""
    head = getattr(fault, "head", b"")
    return head if isinstance(head, bytes) else b""


def _is_replaceable(path: str) -> bool:
    """Say whether there is a file to be replaced; refuse one that is no recording.

    What is behind a link is written over, and stays: the link may be to a stream of somebody's.
    """
    from ..judge.trace import HEADER

    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            return False  # a pipe, or a terminal: nothing is lost
        with open(path, "rb") as file:
            beginning = file.read(256)
    except FileNotFoundError:
        return False
    is_blank = not beginning.strip() and len(beginning) == found.st_size
    if not is_blank and not beginning.lstrip().startswith(b'{"%s"' % HEADER.encode()):
        raise UsageError(f"{path!r} is there and no recording: it is not replaced")
    if found.st_uid != os.geteuid():
        raise UsageError(f"{path!r} belongs to somebody else, who could read what is recorded")
    return not os.path.islink(path)
