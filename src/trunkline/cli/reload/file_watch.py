"""Detects changed files by polling their modification time, size and inode.

The rules that live here, and only here:

* Watched are the files that a server has loaded from its own folder, and the Python files in
  the folders of `--reload-dir`; not installed packages such as those in `.venv`.
* After a failed load, new files in the folder of the server count as changes too.
* A change during a load is not missed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

__all__ = ["FileWatch", "is_own"]

# Folders of other authors, besides those whose names begin with a dot.
_FOREIGN_FOLDERS: Final = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})
# In one folder of `--reload-dir`: polling more would take too long.
_MAX_FILES: Final = 5000


class _FileStamp(NamedTuple):
    mtime_ns: int
    size: int
    inode: int


def is_own(path: str, folder: str) -> bool:
    """Return True if a file is in a folder, but not in a sub-folder of other authors."""
    inside = os.path.relpath(path, folder).split(os.sep)
    return not any(part in _FOREIGN_FOLDERS or part.startswith(".") for part in inside)


class FileWatch:
    """The watched files, and their state at the last poll."""

    def __init__(self, folder: str, trees: Sequence[str] = ()) -> None:
        """Watch the files in `folder` that `expect` names, and all Python files in `trees`."""
        self._folder = folder
        self._trees = [os.path.abspath(each) for each in trees]
        self._files: set[str] = set()
        # True if new files in the folder count.
        self._watches_folder = False
        self._seen = self._poll()

    def expect(self, files: Iterable[str], since: int, *, is_complete: bool) -> None:
        """Watch these files, which were loaded after `since`, in nanoseconds.

        A file modified since then counts as changed at the next poll. If the list may be
        incomplete, the other files in the folder are watched too.
        """
        own = {path for path in map(os.path.abspath, files) if is_own(path, self._folder)}
        self._files = own if is_complete else self._files | own
        self._watches_folder = not is_complete
        now = self._poll()
        # Drop the state of files that are no longer watched.
        self._seen = {
            path: stamp
            for path, stamp in self._seen.items()
            if path in now or self._is_in_tree(path)
        }
        for path, stamp in now.items():
            if path not in self._seen and (stamp is None or stamp.mtime_ns <= since):
                self._seen[path] = stamp

    def changes(self) -> list[str]:
        """Return the files that have changed since the last poll."""
        before, now = self._seen, self._poll()
        # Only a file missing from a tree was deleted; others are no longer watched.
        gone = {path: None for path in before if path not in now and self._is_in_tree(path)}
        now |= gone
        self._seen = {**before, **now}
        return sorted(path for path in now if path not in before or before[path] != now[path])

    def _poll(self) -> dict[str, _FileStamp | None]:
        found = dict.fromkeys(self._files)
        for tree in self._trees:
            found.update(dict.fromkeys(_python_files(tree)))
        if self._watches_folder:
            found.update(dict.fromkeys(_python_files(self._folder, deep=False)))
        return {path: _stamp(path) for path in found}

    def _is_in_tree(self, path: str) -> bool:
        return any(path.startswith(tree + os.sep) for tree in self._trees)


def _stamp(path: str) -> _FileStamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None  # deleted, or being replaced
    return _FileStamp(found.st_mtime_ns, found.st_size, found.st_ino)


def _python_files(folder: str, *, deep: bool = True) -> Iterator[str]:
    count = 0
    for place, folders, files in os.walk(folder):
        folders[:] = [
            each for each in folders if deep and each[0] != "." and each not in _FOREIGN_FOLDERS
        ]
        for name in files:
            if name.endswith(".py") and not name.startswith("."):
                yield os.path.join(place, name)
                count += 1
                if count >= _MAX_FILES:
                    return
