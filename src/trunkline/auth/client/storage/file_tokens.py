"""Tokens in files of one folder, shared by the processes of a user.

The rules that live here, and only here:

* The folder has mode 0700 and its files 0600. A folder or a file that others can reach, that
  belongs to another user, or a file that is a symbolic link is refused, not repaired: what is in
  it may be known, or planted.                                              [SEC-23]
* A file is replaced as a whole: written beside it, flushed to the disk, renamed. What a process
  left beside it when it was killed has tokens too: the next one that replaces or deletes the file
  removes it.
* Without a home there is no folder: a path that depends on the current one is not used.
* Names of files are digests: they tell neither servers nor users.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Final

from ....errors import AuthorizationFailed
from ....private_file import UnsafeFile, open_own
from ....redaction import show
from .file_lock import file_lock

__all__ = ["FileTokens", "default_folder"]

# Of one file: tokens, a registration and a key.
MAX_FILE_BYTES: Final = 1024 * 1024
# Files that are listed.
MAX_FILES: Final = 10_000
_ENDING: Final = ".json"
_BESIDE: Final = ".new"
_is_posix: Final = hasattr(os, "geteuid")


def default_folder() -> str:
    """Return where the command keeps tokens.                    [XDG Base Directory 0.8]"""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # a relative path is invalid, and ignored
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "trunkline", "tokens")


class FileTokens:
    """Tokens in files that only their owner can read.

        Client(URL, auth=OAuth(storage=FileTokens()))

    The default folder is that of the command: `~/.local/state/trunkline/tokens`, or below
    XDG_STATE_HOME. Processes that share a folder refresh a token once between them.
    """

    __slots__ = ("path",)

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Take a folder in place of the default one; it is made when it is needed."""
        self.path = default_folder() if path is None else os.path.abspath(os.fspath(path))

    def __repr__(self) -> str:
        return f"FileTokens({show(self.path)})"

    def load(self, key: str) -> bytes | None:
        """Return what is stored for a key, or None.

        Raises:
            AuthorizationFailed: the file cannot be trusted or read.
        """
        return self._read(self._file(key)) if self._check_folder() else None

    def store(self, key: str, data: bytes) -> None:
        """Replace what is stored for a key.

        Raises:
            AuthorizationFailed: the folder cannot be trusted or written; nothing is changed.
        """
        self._make_folder()
        path = self._file(key)
        beside = f"{path}.{secrets.token_hex(8)}{_BESIDE}"
        try:
            fd = open_own(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                with open(fd, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(fd)
                os.replace(beside, path)
            except BaseException:  # an interrupt too: no token may stay in the file beside
                _unlink(beside)
                raise
            self._remove_beside(path)
            self._sync_folder()
        except OSError as error:
            raise _failure(f"{show(path)} cannot be written: {error.strerror}") from None

    def delete(self, key: str) -> None:
        """Remove what is stored for a key, if anything is.

        Raises:
            AuthorizationFailed: the folder cannot be trusted or written.
        """
        if not self._check_folder():
            return
        path = self._file(key)
        try:
            self._remove_beside(path)
            os.unlink(path)
            self._sync_folder()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _failure(f"{show(path)} cannot be deleted: {error.strerror}") from None

    def lock(self, key: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock of a key between all processes that share the folder."""
        self._make_folder()
        return file_lock(f"{self._file(key)[: -len(_ENDING)]}.lock")

    def records(self) -> Iterator[bytes | AuthorizationFailed]:
        """Yield all that is stored, and an error in place of a file that cannot be trusted.

        Raises:
            AuthorizationFailed: the folder cannot be trusted.
        """
        if not self._check_folder():
            return
        try:
            names = sorted(name for name in os.listdir(self.path) if name.endswith(_ENDING))
        except OSError as error:
            raise _failure(f"{show(self.path)} cannot be read: {error.strerror}") from None
        for name in names[:MAX_FILES]:
            try:
                found = self._read(os.path.join(self.path, name))
            except AuthorizationFailed as error:
                yield error
            else:
                if found is not None:
                    yield found

    def _file(self, key: str) -> str:
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return os.path.join(self.path, f"{digest}{_ENDING}")

    def _remove_beside(self, path: str) -> None:
        """Remove what killed processes have left beside a file, whose lock the caller holds."""
        name = os.path.basename(path)
        for each in os.listdir(self.path):
            if each.startswith(f"{name}.") and each.endswith(_BESIDE):
                _unlink(os.path.join(self.path, each))

    def _make_folder(self) -> None:
        if not os.path.isabs(self.path):
            raise _failure("there is no home for tokens: set XDG_STATE_HOME to a folder")
        try:
            # Parents get the mode of the process; the folder itself is made private at once.
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise _failure(f"{show(self.path)} cannot be made: {error.strerror}") from None
        self._check_folder()

    def _check_folder(self) -> bool:
        """Return False if there is no folder yet."""
        if not os.path.isabs(self.path):
            return False
        try:
            found = os.lstat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise _failure(f"{show(self.path)} cannot be read: {error.strerror}") from None
        if not stat.S_ISDIR(found.st_mode):
            raise _failure(f"{show(self.path)} is not a folder")
        _check_owner(found, self.path, "700")
        return True

    def _read(self, path: str) -> bytes | None:
        try:
            fd = open_own(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except UnsafeFile as error:
            raise _failure(str(error)) from None
        except OSError as error:
            raise _failure(f"{show(path)} cannot be read: {error.strerror}") from None
        try:
            _check_owner(os.fstat(fd), path, "600")
            with open(fd, "rb", closefd=False) as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise _failure(f"{show(path)} cannot be read: {error.strerror}") from None
        finally:
            os.close(fd)
        if len(data) > MAX_FILE_BYTES:
            raise _failure(f"{show(path)} has more than {MAX_FILE_BYTES} bytes")
        return data

    def _sync_folder(self) -> None:
        """Flush the new name to the disk, where a folder can be opened."""
        if _is_posix:
            fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _check_owner(found: os.stat_result, path: str, mode: str) -> None:
    # Windows has access lists in place of modes: a folder below the home is private there.
    if not _is_posix:
        return
    if found.st_uid != os.geteuid():
        raise _failure(f"{show(path)} belongs to another user")
    if found.st_mode & 0o077:
        raise _failure(
            f"{show(path)} can be reached by other users: its tokens may be known; "
            f"log in again after deleting it, or chmod {mode} it"
        )


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # it is gone already


def _failure(reason: str) -> AuthorizationFailed:
    return AuthorizationFailed(reason, step="storage")
