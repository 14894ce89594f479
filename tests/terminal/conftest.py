"""A terminal for the command line to run in: a real one, drawn by an emulator."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyte
import pytest

WAIT = 30
# Makes the terminal that it was given the one whose Ctrl-C it hears, then becomes the command.
_LAUNCH = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """One run of the command in a terminal of its own."""

    def __init__(self, words: list[str], columns: int = 80, **environment: str) -> None:
        self._ours, self._theirs = pty.openpty()
        size = struct.pack("HHHH", 50, columns, 0, 0)
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, size)
        self._modes = termios.tcgetattr(self._theirs)
        self.screen = pyte.Screen(columns, 50)
        self._stream = pyte.ByteStream(self.screen)
        # Everything that was written, with all that was painted over.
        self.raw = b""
        dropped = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")
        plain = {name: value for name, value in os.environ.items() if name not in dropped}
        command = [sys.executable, "-m", "trunkline", *words]
        self._run = subprocess.Popen(
            [sys.executable, "-S", "-c", _LAUNCH, *command],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            env={**plain, "TERM": "xterm-256color", **environment},
        )

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._ours, text.encode())

    def send(self, number: int) -> None:
        """Send a signal to the command alone."""
        self._run.send_signal(number)

    def until(self, text: str) -> None:
        """Read what is drawn until it has `text`."""
        self._read(lambda: text in self.text)

    def until_there(self, path: Path) -> None:
        """Read what is drawn until there is a file."""
        self._read(path.exists)

    def wait(self) -> int:
        """Read to the end; return the exit status."""
        self._read(lambda: self._run.poll() is not None)
        while self._take(0.1):
            pass
        assert self._run.returncode is not None
        return self._run.returncode

    @property
    def text(self) -> str:
        """What is to be seen now."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def assert_usable(self) -> None:
        """See that whoever types next sees it, and a cursor."""
        assert termios.tcgetattr(self._theirs) == self._modes
        assert not self.screen.cursor.hidden

    def close(self) -> None:
        if self._run.poll() is None:
            self._run.kill()
            self._run.wait(WAIT)
        os.close(self._ours)
        os.close(self._theirs)

    def _read(self, is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT
        while not is_done():
            assert time.monotonic() < deadline, f"not within {WAIT} s:\n{self.text}"
            self._take(0.05)

    def _take(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        found = os.read(self._ours, 65536)
        self.raw += found
        self._stream.feed(found)
        return True


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Return what starts the command in a terminal; all are closed in the end."""
    opened: list[Terminal] = []

    def start(*words: str, columns: int = 80, **environment: str) -> Terminal:
        opened.append(Terminal(list(words), columns, **environment))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


@pytest.fixture
def server() -> list[str]:
    """Return the words that start the server."""
    return ["--", sys.executable, str(Path(__file__).with_name("server.py"))]


@pytest.fixture
def silent() -> Callable[[str], list[str]]:
    """Return the words that start a server which falls silent at a method."""
    script = str(Path(__file__).with_name("silent.py"))
    return lambda method: ["--", sys.executable, script, method]
