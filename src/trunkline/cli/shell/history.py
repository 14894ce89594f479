"""The history of lines, in a file that only its owner can read.

The rules that live here, and only here:

* A line with an argument that has the name of a secret, or with a text that looks like a
  credential, is not written to the file. It can be recalled until the session ends.
* The file keeps the last 1,000 lines. Sessions at the same time append to it.
* A file that `private_file` refuses (a link, a FIFO, a file of another user) is not used.
"""

from __future__ import annotations

import os
from typing import Final

from ...private_file import open_private
from ...redaction import conceal, is_secret_name
from .words import partial_line

__all__ = ["HistoryFile", "default_path", "is_private"]

MAX_LINES: Final = 1000
# A longer line is not worth recalling in another session.
MAX_LINE_LENGTH: Final = 4096
# The file is cut to MAX_LINES once it is larger than this, or has twice as many lines.
MAX_FILE_BYTES: Final = 1024 * 1024


def default_path() -> str:
    """Return the path of the file, below XDG_STATE_HOME."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "trunkline", "shell-history")


def is_private(line: str) -> bool:
    """Return True if a line may hold a secret."""
    parts = partial_line(line)
    for word in (*parts.words, parts.word):
        key, sign, _ = word.partition("=")
        key = key.removesuffix(":")
        if sign and any(map(is_secret_name, (key, *key.split(".")))):
            return True
    return conceal(line) != line


class HistoryFile:
    """The lines of earlier sessions, and of this one."""

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self) -> list[str]:
        """Return the last lines, oldest first; none if the file cannot be used."""
        try:
            descriptor = open_private(self._path, os.O_RDONLY)
        except OSError:
            return []
        with open(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            file.seek(max(0, size - MAX_FILE_BYTES))
            lines = file.read(MAX_FILE_BYTES).decode("utf-8", "replace").split("\n")[:-1]
        if size > MAX_FILE_BYTES:
            lines = lines[1:]  # its beginning was not read
        kept = [line for line in lines if line.isprintable()][-MAX_LINES:]
        if size > MAX_FILE_BYTES or len(lines) > 2 * MAX_LINES:
            self._replace(kept)
        return kept

    def append(self, line: str) -> None:
        """Add a line, unless it may hold a secret.

        Raises:
            OSError: the file cannot be written.
        """
        if len(line) > MAX_LINE_LENGTH or not line.isprintable() or is_private(line):
            return
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        descriptor = open_private(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, f"{line}\n".encode("utf-8", "replace"))
        finally:
            os.close(descriptor)

    def _replace(self, lines: list[str]) -> None:
        from tempfile import mkstemp

        try:
            descriptor, path = mkstemp(dir=os.path.dirname(self._path))  # of mode 0600
        except OSError:
            return  # too long, and still of use
        try:
            with open(descriptor, "wb") as file:
                file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
            os.replace(path, self._path)
        except OSError:
            os.unlink(path)
