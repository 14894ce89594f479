"""The file of a Unix socket: made so that only its owner can connect, and taken away again.

The rules that live here, and only here:

* The file never has wider permissions than asked for, not even for a moment.
* Only a socket that nobody listens on is removed to make room. A file that is no socket stays,
  whatever its name, and so does the socket of a server that is alive.
* Two servers that start at once do not remove each other's file: looking, removing, binding and
  listening is one step for all who do it here. A file that is bound and not yet listened on
  looks like one that was left behind.
* The end removes the file that the beginning made, and not one that took its place. It does so
  while the socket is open: until then no other file can have the same number.
* Who keeps the folder locked, which anybody may, is waited for only so long.
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

# How long others who start or end in the same folder are waited for, in seconds. Each of them
# takes well under a millisecond.
_LOCK_WAIT: Final = 2.0
_LOCK_STEP: Final = 0.002


class SocketFile:
    """A socket that listens at a path, and the file that is there."""

    def __init__(self, address: Unix, *, backlog: int) -> None:
        """Listen, after removing a file that was left behind.

        Raises:
            TransportError: somebody listens there, it is no socket, or it may not be made.
        """
        # Absolute, so that whoever changes the directory later still finds it. The socket has the
        # path as it was given: it has little room for one.
        self._path = os.path.abspath(address.path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _alone(os.path.dirname(self._path)):
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

        Nobody is waited for: while the socket is open no other file has its number, and who takes
        it for one that was left behind finds that somebody listens.
        """
        try:
            if self._made is not None and _identity(self._path) == self._made:
                os.unlink(self._path)
        except OSError:
            pass  # the directory is gone, or closed to us: there is nothing to be done


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Keep others who do this in the same folder waiting; no file is made for it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    deadline = time.monotonic() + _LOCK_WAIT
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(errno.EWOULDBLOCK, "the folder is kept locked") from None
            time.sleep(_LOCK_STEP)
        else:
            return


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _make_room(path: str) -> None:
    """Remove a socket that was left behind by a server that is gone."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise TransportError(f"unix:{path} is a file that is no socket: it is left alone")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # A server whose queue is full is alive too, and says so without being waited for.
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
    """Bind a socket to a new file of these permissions."""
    try:
        # Linux makes the file with the permissions that the socket has by then.
        os.fchmod(sock.fileno(), mode)
    except OSError:
        # Elsewhere the mask of the process says it, for all its threads and for a moment.
        mask = os.umask(0o777 & ~mode)
        try:
            sock.bind(path)
        finally:
            os.umask(mask)
    else:
        sock.bind(path)
    if stat.S_IMODE(os.lstat(path).st_mode) != mode:
        # The mask of the process has taken away what was asked for.
        _widen(path, mode)


def _widen(path: str, mode: int) -> None:
    """Give the file its permissions, and no other that somebody put in its place."""
    if not hasattr(os, "O_PATH"):
        return  # it stays closer than asked for
    handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if stat.S_ISSOCK(os.fstat(handle).st_mode):
            os.chmod(f"/proc/self/fd/{handle}", mode)
    finally:
        os.close(handle)
