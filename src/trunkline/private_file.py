"""Opens files that belong to the user of this process, and to no other.

The rules that live here, and only here:

* A symbolic link is not followed: its author would choose what is read or written.
* Only a regular file is opened. A FIFO is refused without waiting for its other end.
* A file of another user is refused, where files belong to users by number.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from .redaction import show

__all__ = ["UnsafeFile", "open_own", "open_private"]

# Windows has neither.
_NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final[int] = getattr(os, "O_NONBLOCK", 0)


class UnsafeFile(OSError):
    """A file that is not opened: `filename` is its path, and `strerror` what it is."""

    def __str__(self) -> str:
        return f"{show(str(self.filename))} {self.strerror}"


def open_own(path: str | os.PathLike[str], flags: int) -> int:
    """Return a descriptor of a file of this user; a new file is for its owner alone.

    Raises:
        UnsafeFile: the path is a link, not a regular file, or a file of another user.
        OSError: the file cannot be opened.
    """
    try:
        descriptor = os.open(path, flags | _NO_FOLLOW | _NO_WAIT, 0o600)
    except OSError as error:
        if os.path.islink(path):
            reason = "is a symbolic link, and is not followed"
            raise UnsafeFile(errno.ELOOP, reason, os.fspath(path)) from None
        if error.errno == errno.ENXIO:  # a FIFO that nothing reads, or a socket
            raise _not_a_file(path) from None
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _not_a_file(path)
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            raise UnsafeFile(errno.EPERM, "belongs to another user", os.fspath(path))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Return a descriptor as `open_own` does, and withdraw the permissions of other users.

    Raises:
        UnsafeFile: the path is a link, not a regular file, or a file of another user.
        OSError: the file cannot be opened, or its permissions cannot be changed.
    """
    descriptor = open_own(path, flags)
    try:
        # Windows has access lists in place of modes.
        if hasattr(os, "fchmod") and stat.S_IMODE(os.fstat(descriptor).st_mode) != 0o600:
            os.fchmod(descriptor, 0o600)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _not_a_file(path: str | os.PathLike[str]) -> UnsafeFile:
    return UnsafeFile(errno.EINVAL, "is not a file", os.fspath(path))
