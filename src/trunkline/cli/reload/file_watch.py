"""Whether files have changed, by looking at them now and then.

The rules that live here, and only here:

* What is watched is what a server has loaded from its own folder, and the folders that somebody
  named. What others have written, such as an environment in `.venv`, is not.
* A server that did not load may lack a file, so then a new one in its folder is a change too.
* A change that came while a server was being loaded is not missed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

__all__ = ["FileWatch", "is_own"]

# Folders that are not somebody's own work, besides those whose names begin with a dot.
_FOREIGN_FOLDERS: Final = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})
# Files in the folders that were named; more of them would take too long to look at.
_MAX_FILES: Final = 5000


class _FileStamp(NamedTuple):
    """What tells one state of a file from the next."""

    time: int
    size: int
    # A file that was put in the place of another has another.
    number: int


def is_own(path: str, folder: str) -> bool:
    """Say whether a file lies in a folder, and in none of those in it that are others' work."""
    inside = os.path.relpath(path, folder).split(os.sep)
    return not any(part in _FOREIGN_FOLDERS or part.startswith(".") for part in inside)


class FileWatch:
    """The files that are watched, and how they were when they were last looked at."""

    def __init__(self, folder: str, trees: Sequence[str] = ()) -> None:
        """Watch what `expect` will name in `folder`, and all Python files in the `trees`."""
        self._folder = folder
        self._trees = [os.path.abspath(each) for each in trees]
        self._files: set[str] = set()
        # Whether new files in the folder count.
        self._watches_folder = False
        self._seen = self._look()

    def expect(self, files: Iterable[str], since: int, *, is_complete: bool) -> None:
        """Watch these files from here on, which were read after `since`, in nanoseconds.

        One that has changed since then is found to have changed at the next look. If the list
        may be short of some, the other files in the folder are watched too.
        """
        own = {path for path in map(os.path.abspath, files) if is_own(path, self._folder)}
        self._files = own if is_complete else self._files | own
        self._watches_folder = not is_complete
        now = self._look()
        # How a file was that nobody has looked at since says nothing.
        self._seen = {
            path: stamp
            for path, stamp in self._seen.items()
            if path in now or self._is_in_tree(path)
        }
        for path, stamp in now.items():
            if path not in self._seen and (stamp is None or stamp.time <= since):
                self._seen[path] = stamp

    def changes(self) -> list[str]:
        """Return the files that are not as they were at the last look."""
        before, now = self._seen, self._look()
        # What was there and is not looked at any more is nobody's concern.
        gone = {path: None for path in before if path not in now and self._is_in_tree(path)}
        now |= gone
        self._seen = {**before, **now}
        return sorted(path for path in now if path not in before or before[path] != now[path])

    def _look(self) -> dict[str, _FileStamp | None]:
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
        return None  # it is gone, or about to be put there anew
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
