"""The file that `--trace` and `--record` write: a recording of conversations, as they happen.

A recording takes the place of another, and of nothing else: a file that is no recording was
put in the command by mistake. It is a new file each time, so that a program which still writes
the one before does not write into this one. Each entry is with the system before the next
begins: who is killed leaves a recording that can be read. Secrets are hidden by the writer of
entries, before they get here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Literal, TypeAlias

from .verbs import Misuse

if TYPE_CHECKING:
    from ..judge.trace import TraceEntry
    from ..transports.base import Frame

__all__ = ["Hear", "Recording", "recorded", "recording"]

Hear: TypeAlias = "Callable[[Literal['client', 'server'], Frame], object]"


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
        Misuse: there is something else in its place.
    """
    if _is_replaceable(path):
        try:
            os.unlink(os.path.realpath(path))
        except OSError:
            pass  # the folder is not ours to change: it is written over
    with open(path, "wb", buffering=0) as file:
        yield Recording(file.write)


@contextmanager
def recorded(path: str, transport: str) -> Iterator[Hear]:
    """Open a recording of one connection; yield what takes down each frame.

    Raises:
        Misuse: there is something else in its place.
    """
    with recording(path) as record:
        yield lambda sender, frame: record.add(sender, frame, transport)


def _entry(entry: TraceEntry) -> TraceEntry:
    """Return an entry with its message read, so that secrets are found by their names."""
    from msgspec.json import decode
    from msgspec.structs import replace

    from ..jsonrpc.faults import UNREADABLE

    try:
        return replace(entry, message=decode(entry.raw or b""), raw=None)
    except UNREADABLE:
        return entry


def _head(fault: object) -> bytes:
    """Return what is known of a frame that could not be read."""
    head = getattr(fault, "head", b"")
    return head if isinstance(head, bytes) else b""


def _is_replaceable(path: str) -> bool:
    """Say whether there is a file to be replaced; refuse one that is no recording."""
    from ..judge.trace import HEADER

    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False  # a pipe, or a terminal: nothing is lost
        with open(path, "rb") as file:
            beginning = file.read(256)
    except FileNotFoundError:
        return False
    if beginning.strip() and not beginning.lstrip().startswith(b'{"%s"' % HEADER.encode()):
        raise Misuse(f"{path!r} is there and no recording: it is not replaced")
    return True
