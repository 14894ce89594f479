"""A lock between processes, held on a file beside the one it protects.

The rules that live here, and only here:

* The lock is `flock` where the system has it: it ends with the process that holds it. Elsewhere
  it is a file that must not exist, and one that is older than any use of it is removed.
* Waiting does not block the event loop, and is bounded.
* The file is not followed if it is a symbolic link, and stays when the lock is released: a
  process that waits for it would otherwise hold a lock on a file that is gone.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ....concurrency.backoff import backoff
from ....errors import AuthorizationFailed

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # checked before each use

__all__ = ["file_lock"]

# The longest use of a lock: a login that waits for its user holds none, and each of the few
# requests of a refresh has 15 s.
MAX_HELD_S: Final = 120.0
_FIRST_WAIT_S: Final = 0.01
_LONGEST_WAIT_S: Final = 0.25


@asynccontextmanager
async def file_lock(path: str, *, timeout: float = MAX_HELD_S) -> AsyncIterator[None]:
    """Hold a lock while the block runs.

    Raises:
        AuthorizationFailed: another process holds it for longer than `timeout` seconds, or the
            file cannot be opened.
    """
    deadline = time.monotonic() + timeout
    lock = _FlockFile(path) if fcntl is not None else _ExclusiveFile(path)
    for wait in backoff(_FIRST_WAIT_S, _LONGEST_WAIT_S):
        try:
            if lock.acquire():
                break
        except OSError as error:
            raise AuthorizationFailed(
                f"the lock of the tokens cannot be opened: {error.strerror}", step="storage"
            ) from None
        if time.monotonic() >= deadline:
            raise AuthorizationFailed(
                f"another process has held the lock of the tokens for {timeout:g} s",
                step="storage",
            )
        await asyncio.sleep(wait)
    try:
        yield
    finally:
        lock.release()


class _FlockFile:
    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1

    def acquire(self) -> bool:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self._path, flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        except BaseException:  # an interrupt too: the descriptor may not stay open
            os.close(fd)
            raise
        self._fd = fd
        return True

    def release(self) -> None:
        os.close(self._fd)


class _ExclusiveFile:
    """For systems without flock: the process that creates the file holds the lock."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}ed"

    def acquire(self) -> bool:
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            return True
        except FileExistsError:
            self._remove_stale()
            return False

    def _remove_stale(self) -> None:
        # The process that held it has ended without releasing it. Renamed first: of several
        # that find it stale, one succeeds.
        try:
            if time.time() - os.stat(self._path).st_mtime > MAX_HELD_S:
                stale = f"{self._path}.{secrets.token_hex(8)}"
                os.rename(self._path, stale)
                os.unlink(stale)
        except OSError:
            pass  # released, or removed by another process

    def release(self) -> None:
        try:
            os.unlink(self._path)
        except OSError:
            pass  # removed as stale
