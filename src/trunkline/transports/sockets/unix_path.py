"""The file of a Unix socket: created with the permissions asked for, and removed on close.

The rules that live here, and only here:

* The file never has wider permissions than asked for, not even for a moment.
* Only a stale socket is removed: one that no process listens on. A file that is not a socket
  stays, and so does the socket of a running server.
* Two servers that start at once do not remove each other's file: check, unlink, bind and listen
  run under a lock of the folder. A socket that is bound and does not listen yet looks stale.
* `remove` removes the file that was created, and not one that replaced it. It runs while the
  socket is open: until then no other file can have the same inode number.
* The wait for the lock is bounded, because every user may lock the folder.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ...errors import TransportError
from ..addresses import Unix

__all__ = ["SocketFile"]

# The wait for other servers that start in the same folder. Each of them holds the lock for well
# under a millisecond.
_LOCK_TIMEOUT_S: Final = 2.0
_LOCK_INTERVAL_S: Final = 0.002


class SocketFile:
    """A socket that listens at a path, and its file."""

    def __init__(self, address: Unix, *, backlog: int) -> None:
        """Listen, after removing a stale socket.

        Raises:
            TransportError: a server listens there, the file is not a socket, or it cannot be made.
        """
        # Absolute, because the process may change its directory. The socket gets the path as it
        # was given, because the system limits its length.
        self._path = os.path.abspath(address.path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _locked(os.path.dirname(self._path)):
                _make_room(str(address.path))
                _bind(self.socket, str(address.path), address.mode)
                self._made = _identity(self._path)
                self.socket.listen(backlog)
        except OSError as error:
            self.socket.close()
            reason = error.strerror or str(error)
            raise TransportError(f"{address} cannot be listened on: {reason}") from None
        except BaseException:  # a cancelled task too: nothing may be left open
            self.socket.close()
            raise

    def remove(self) -> None:
        """Remove the file, if it is still the one that was made; the socket is still open.

        This takes no lock: another server that checks the file finds a socket that listens.
        """
        try:
            if self._made is not None and _identity(self._path) == self._made:
                os.unlink(self._path)
        except OSError:
            pass  # the directory is gone, or cannot be written to


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Lock the folder itself; no lock file is made."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                why = f"the folder was locked for {_LOCK_TIMEOUT_S:g} s"
                raise OSError(errno.EWOULDBLOCK, why) from None
            time.sleep(_LOCK_INTERVAL_S)
        else:
            return


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _make_room(path: str) -> None:
    """Remove a stale socket."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise TransportError(f"unix:{path} is a file that is not a socket, and is not replaced")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # EAGAIN is a running server whose queue is full.
        probe.setblocking(False)
        try:
            probe.connect(path)
        except OSError as error:
            if error.errno not in (errno.ECONNREFUSED, errno.EAGAIN):
                reason = error.strerror or str(error)
                raise TransportError(f"unix:{path} cannot be used: {reason}") from None
            is_alive = error.errno == errno.EAGAIN
        else:
            is_alive = True
    if is_alive:
        raise TransportError(f"unix:{path} is in use: a server listens there")
    os.unlink(path)


def _bind(sock: socket.socket, path: str, mode: int) -> None:
    try:
        # Linux creates the file with the permissions of the socket.
        os.fchmod(sock.fileno(), mode)
    except OSError:
        # Other systems apply the umask, which is set for a moment, for all threads.
        mask = os.umask(0o777 & ~mode)
        try:
            sock.bind(path)
        finally:
            os.umask(mask)
    else:
        sock.bind(path)
    if stat.S_IMODE(os.lstat(path).st_mode) != mode:
        _widen(path, mode)  # the umask has removed bits that were asked for


def _widen(path: str, mode: int) -> None:
    """Set the permissions of the file, and not of one that replaced it."""
    if not hasattr(os, "O_PATH"):
        return  # the permissions stay narrower than asked for
    handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if stat.S_ISSOCK(os.fstat(handle).st_mode):
            os.chmod(f"/proc/self/fd/{handle}", mode)
    finally:
        os.close(handle)
