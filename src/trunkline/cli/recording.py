"""The file that `--trace` and `--record` write: a recording of messages as they pass.

The rules that live here, and only here:

* The one of `--trace` replaces another recording, and no other file. It is a new file each time:
  a process that still writes the one before does not write into it.
* The one of `proxy --record` continues another recording, and no other file: a host starts its
  server again and again, and several at a time. Each run after the first has connections of its
  own in it. Lines stay whole: each is appended while a lock is held, and one that could not be
  written whole is taken back.
* A device or a stream such as /dev/stderr is written to directly.
* Each entry is written unbuffered, so that a killed process leaves a readable recording.
* Only its owner may read it. `judge.trace.writer` removes secrets.
* A pipe or a socket of another user is not written to: its owner would read the traffic.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic, sleep, time_ns
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, TypeAlias

from .command import UsageError

try:
    import fcntl
except ImportError:  # Windows
    _HAS_FLOCK = False
else:
    _HAS_FLOCK = True

if TYPE_CHECKING:
    from ..judge.trace.reader import TraceEntry
    from ..transports.base import Frame

__all__ = [
    "FrameListener",
    "Recording",
    "check_continuable",
    "continued_recording",
    "recorded",
    "recording",
    "write_recording",
]

# Another process holds the lock for the time of one write. One that was stopped in it must not
# stop the traffic: without the lock a line is appended by one call all the same.
_LOCK_TIMEOUT_S: Final = 1.0
_LOCK_INTERVAL_S: Final = 0.002

FrameListener: TypeAlias = "Callable[[Literal['client', 'server'], Frame], object]"


class Recording:
    """Records the frames of one connection or of several.

    `run` names this run in a recording that another one has begun: it is in the ids of all
    connections.
    """

    def __init__(self, write: Callable[[bytes], object], *, run: str = "") -> None:
        if not run:
            # Imported here: most runs record nothing.
            from ..judge.trace.writer import TraceWriter

            TraceWriter(write)  # writes the header
        self._write = write
        self._run = run
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

        if self._run:
            from msgspec.structs import replace

            number = entry.connection
            entry = replace(
                entry, connection=self._run if number is None else f"{self._run}/{number}"
            )
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
def continued_recording(path: str) -> Iterator[Recording]:
    """Open a recording to be continued; a new one if there is none.

    Raises:
        UsageError: another file is in its place, or it cannot be written.
    """
    if not _is_appendable(path):
        with recording(path) as record:
            yield record
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(_AppendedFile(path))
            # The first one to hold the lock begins the file.
            with file.locked():
                run = _run_id() if file.has_recording() else ""
                record = Recording(file.append, run=run)
        except OSError as error:
            raise UsageError(f"{path!r} cannot be written: {error.strerror}") from None
        yield record


def check_continuable(path: str) -> None:
    """Raise if a path is that of a file which a recording does not continue.

    Raises:
        UsageError: it is, or the file cannot be read.
    """
    if not os.path.exists(path) or not _is_appendable(path):
        return
    try:
        with open(path, "rb") as file:
            _check_beginning(path, file.read(256), os.fstat(file.fileno()))
    except OSError as error:
        raise UsageError(f"{path!r} cannot be written: {error.strerror}") from None


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


def _is_appendable(path: str) -> bool:
    """Return True if a path is that of a regular file, or of none."""
    if _stream_at(path) is not None:
        return False
    if os.path.islink(path) and _is_foreign(os.lstat(path)):
        raise UsageError(f"{path!r} is a symbolic link of another user: it is not followed")
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True


def _run_id() -> str:
    """Return an id that no other run has: when this process began to record, and its number."""
    from datetime import UTC, datetime

    now = datetime.fromtimestamp(time_ns() / 1e9, UTC)
    return f"{now:%Y-%m-%dT%H:%M:%S.%f}Z-{os.getpid()}"


class _AppendedFile:
    """A file that several processes append lines to."""

    def __init__(self, path: str) -> None:
        self._path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        # A pipe that has taken the place of the file must not block.
        self._file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
        self._lock_timeout = _LOCK_TIMEOUT_S
        self._is_locked = False

    def __enter__(self) -> _AppendedFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        self._file = -1

    def has_recording(self) -> bool:
        """Return True if the file is a recording, False if it is blank.

        Raises:
            UsageError: it is another file.
        """
        found = os.fstat(self._file)
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"{self._path!r} is not a regular file any more")
        os.lseek(self._file, 0, os.SEEK_SET)
        has_recording = _check_beginning(self._path, os.read(self._file, 256), found)
        if stat.S_IMODE(found.st_mode) & 0o077 and hasattr(os, "fchmod"):
            os.fchmod(self._file, 0o600)
        return has_recording

    def append(self, data: bytes) -> None:
        """Write a line at the end of the file, whole or not at all."""
        if self._file < 0:
            raise ValueError("the file is closed")
        if self._is_locked:
            self._append(data)
            return
        with self.locked():
            self._append(data)

    def _append(self, data: bytes) -> None:
        end = os.lseek(self._file, 0, os.SEEK_END)
        if end:
            os.lseek(self._file, end - 1, os.SEEK_SET)
            if os.read(self._file, 1) != b"\n":
                data = b"\n" + data  # a process was killed in the middle of a line
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            if self._is_locked:
                os.ftruncate(self._file, end)
            raise

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock on the file, unless another process does not release it in time."""
        self._is_locked = self._lock()
        try:
            yield
        finally:
            if self._is_locked:
                self._is_locked = False
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _lock(self) -> bool:
        if not _HAS_FLOCK:
            return False
        deadline = monotonic() + self._lock_timeout
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if monotonic() >= deadline:
                    self._lock_timeout = 0.0
                    return False
                sleep(_LOCK_INTERVAL_S)
            except OSError:
                return False  # some network file systems have no locks
            else:
                self._lock_timeout = _LOCK_TIMEOUT_S
                return True


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
    _check_beginning(path, beginning, found, "replaced")
    return not os.path.islink(path)


def _check_beginning(
    path: str, beginning: bytes, found: os.stat_result, verb: str = "continued"
) -> bool:
    """Return True if a file is a recording, False if it is blank.

    Raises:
        UsageError: it is another file, or that of another user.
    """
    from ..judge.trace.reader import HEADER

    is_blank = not beginning.strip() and len(beginning) == found.st_size
    if not is_blank and not beginning.lstrip().startswith(b'{"%s"' % HEADER.encode()):
        raise UsageError(f"{path!r} exists and is not a recording: it is not {verb}")
    if _is_foreign(found):
        raise UsageError(f"{path!r} belongs to another user, who could read the recording")
    return not is_blank
