"""Changes a file so that nothing is lost: not to a crash, a full disk or another writer.

The rules that live here, and only here:

* The new text is written to a file beside the old one, flushed to the disk, and renamed over it.
  A crash leaves the old file or the new one, never a part.
* Permissions and owner stay. A symbolic link stays: the file that it names is replaced.
* A lock keeps out other processes of this library: `flock` on the folder, or where there is none
  (Windows) a file that only one process can create. Programs that do not know the lock are
  noticed: right before the rename the file is read again, and if it differs from what the edit
  was made of, the edit is made again of what is there.
* The old file is kept as `NAME.bak.N`; the newest five stay.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from .errors import HostConfigError
from .files import decode_text, read_file

try:
    import fcntl
except ImportError:  # Windows
    _HAS_FLOCK = False
else:
    _HAS_FLOCK = True

__all__ = ["MAX_BACKUPS", "change_file"]

MAX_BACKUPS: Final = 5
# Another writer that changes the file more often than this within moments is not an editor.
_MAX_ATTEMPTS: Final = 20
# Seconds to wait for another process of this library, which holds the lock for milliseconds.
_LOCK_TIMEOUT_S: Final = 10.0
_LOCK_INTERVAL_S: Final = 0.02
# Of a lock file: its process was killed. A change takes milliseconds.
_STALE_LOCK_S: Final = 60.0


def change_file(path: str, edit: Callable[[str], str], *, mode: int = 0o600) -> str | None:
    """Replace the text of a file by what `edit` makes of it; return the path of the backup.

    `edit` is called with the text that is there, "" for a missing file, and may be called again
    if the file changes meanwhile. A text that it returns unchanged is not written. What it raises
    passes through, with the file as it was. `mode` is that of a file that does not exist yet.

    Raises:
        HostConfigError: the file cannot be read, locked or written; it is as it was.
    """
    # The file that a link names, so that the link stays.
    real = os.path.realpath(path)
    folder, name = os.path.split(real)
    try:
        with _locked(folder, name):
            _remove_leftovers(folder, name)
            for _ in range(_MAX_ATTEMPTS):
                before = read_file(real)
                text = "" if before is None else decode_text(before, path)
                after = edit(text).encode()
                if after == (before or b""):
                    return None
                made, backup = _replace(folder, name, before, after, mode)
                if made:
                    return backup
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else folder
        raise HostConfigError(
            f"not changed: {where}: {error.strerror or error}", file=path
        ) from None
    raise HostConfigError("not changed: another program keeps writing it", file=path)


def _replace(
    folder: str, name: str, before: bytes | None, after: bytes, mode: int
) -> tuple[bool, str | None]:
    """Rename a new file over the old one; False if the old one is no longer `before`."""
    real = os.path.join(folder, name)
    new = os.path.join(folder, f".{name}.trunkline-{os.getpid()}.tmp")
    backup: str | None = None
    try:
        _write_new(new, after, real if before is not None else None, mode)
        if before is not None:
            backup = _back_up(folder, name, before)
        if read_file(real) != before:
            _unlink(backup)
            return False, None
        os.replace(new, real)
    except BaseException:  # Ctrl-C too: no backup of a file that was not replaced
        _unlink(backup)
        raise
    finally:
        _unlink(new)  # the rename has moved it away, if all went well
    _sync_folder(folder)
    if backup is not None:
        _remove_old_backups(folder, name)
    return True, backup


def _write_new(path: str, data: bytes, old: str | None, mode: int) -> None:
    """Write a file and flush it to the disk, with the permissions and the owner of another."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # Nobody else may read it before it has the permissions of the old file.
    file = os.open(path, flags, 0o600)
    try:
        with os.fdopen(file, "wb", closefd=False) as stream:
            stream.write(data)
        if old is None:
            _set_mode(file, mode)
        else:
            found = os.stat(old)
            _set_owner(file, found)
            _set_mode(file, stat.S_IMODE(found.st_mode))
        os.fsync(file)
    finally:
        os.close(file)


def _set_mode(file: int, mode: int) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(file, mode)


def _set_owner(file: int, found: os.stat_result) -> None:
    if not hasattr(os, "fchown"):
        return
    now = os.fstat(file)
    if (now.st_uid, now.st_gid) == (found.st_uid, found.st_gid):
        return
    try:
        os.fchown(file, found.st_uid, found.st_gid)
    except PermissionError:
        # A user may write a file of another user's group. What it would lose by the rename is
        # not ours to decide.
        if now.st_uid != found.st_uid:
            raise


def _back_up(folder: str, name: str, data: bytes) -> str:
    """Keep the present file under the next free number."""
    numbers = _backups(folder, name)
    number = max(numbers, default=0) + 1
    path = os.path.join(folder, f"{name}.bak.{number}")
    real = os.path.join(folder, name)
    try:
        # A second name of the same file: what a program still writes to it is not lost.
        os.link(real, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        _write_new(path, data, real, 0o600)
    return path


def _backups(folder: str, name: str) -> list[int]:
    pattern = re.compile(rf"{re.escape(name)}\.bak\.([1-9][0-9]{{0,8}})")
    found = (pattern.fullmatch(each) for each in os.listdir(folder))
    return sorted(int(each[1]) for each in found if each)


def _remove_old_backups(folder: str, name: str) -> None:
    for number in _backups(folder, name)[:-MAX_BACKUPS]:
        _unlink(os.path.join(folder, f"{name}.bak.{number}"))


def _remove_leftovers(folder: str, name: str) -> None:
    """Remove files of processes that were killed in the middle; the lock is held."""
    pattern = re.compile(rf"\.{re.escape(name)}\.trunkline-[0-9]+\.tmp")
    for each in os.listdir(folder):
        if pattern.fullmatch(each):
            _unlink(os.path.join(folder, each))


def _unlink(path: str | None) -> None:
    try:
        if path is not None:
            os.unlink(path)
    except OSError:
        pass  # it is gone already, or stays beside the file, which it does not harm


def _sync_folder(folder: str) -> None:
    if not _HAS_FLOCK:
        return  # Windows opens no folders
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError:
        pass  # some file systems cannot; the rename itself is done
    finally:
        os.close(file)


@contextmanager
def _locked(folder: str, name: str) -> Iterator[None]:
    """Hold the lock on the files of a folder."""
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    if not _HAS_FLOCK:
        path = os.path.join(folder, f".{name}.trunkline-lock")
        while not _create_lock(path):
            _wait(deadline, folder)
        try:
            yield
        finally:
            _unlink(path)
        return
    # The folder itself: a lock file would stay behind.
    file = os.open(folder, os.O_RDONLY)
    try:
        while not _lock(file):
            _wait(deadline, folder)
        yield
    finally:
        os.close(file)  # and the lock with it


def _wait(deadline: float, folder: str) -> None:
    if time.monotonic() > deadline:
        raise OSError(errno.EBUSY, "another process holds its lock", folder)
    time.sleep(_LOCK_INTERVAL_S)


def _lock(file: int) -> bool:
    """Lock an open folder; False if another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # Some network file systems have no locks. The comparison before the rename is left.
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL):
            raise
    return True


def _create_lock(path: str) -> bool:
    """Create a lock file; False if another process has it."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        try:
            if time.time() - os.stat(path).st_mtime > _STALE_LOCK_S:
                _unlink(path)
        except OSError:
            pass  # it is gone: try again
        return False
    except PermissionError:
        if not os.path.exists(path):
            raise
        return False  # Windows, while another process removes it
    return True
