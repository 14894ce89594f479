"""Runs the command in a real terminal (a pty), drawn by an emulator, and compares the screen.

A stored screen is `tests/terminal/screens/NAME/COLUMNS.txt`: the lines of the screen, with styles
as `⟨bold cyan⟩text⟨/⟩`. A run with colour must match the file, one without colour the file
without its styles. `make screens` writes the files again; read the difference before committing.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unicodedata import combining

import pyte
from wcwidth import wcwidth

from tests.forked_python import in_terminal

WAIT_S = 30
SCREENS = Path(__file__).with_name("screens")
# The sizes at which every screen is compared.
WIDTHS = (60, 80, 120)
# Enough for all of a screen, so that nothing is scrolled away.
SCREEN_ROWS = 200
# Set by `make screens`.
_IS_UPDATE = bool(os.environ.get("UPDATE_SCREENS"))
_STYLES = re.compile(r"⟨[^⟩]*⟩")
# Environment variables that change what is drawn.
_DROPPED = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "EDITOR", "VISUAL", "PAGER")


class Terminal:
    """One run of the command in a terminal of its own; `program` replaces `python -m trunkline`."""

    def __init__(
        self,
        words: list[str],
        columns: int = 80,
        rows: int = 50,
        *,
        program: list[str] | None = None,
        cwd: Path | None = None,
        is_drawn: bool = True,
        **environment: str,
    ) -> None:
        # The emulator takes a second for a megabyte; False keeps `raw` alone.
        self._is_drawn = is_drawn
        self._ours, self._theirs = pty.openpty()
        self.columns = columns
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, size)
        self._modes = termios.tcgetattr(self._theirs)
        self.screen = _Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._emulator_modes = set(self.screen.mode)
        # Everything that was written, with all that was painted over.
        self.raw = b""
        plain = {name: value for name, value in os.environ.items() if name not in _DROPPED}
        env = {**plain, "TERM": "xterm-256color", **environment}
        self.has_colour = not env.get("NO_COLOR")
        command = [*(program or [sys.executable, "-m", "trunkline"]), *words]
        self._run = subprocess.Popen(
            in_terminal(command),
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            cwd=cwd,
            env=env,
        )

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._ours, text.encode())

    def send(self, number: int) -> None:
        """Send a signal to the command alone."""
        self._run.send_signal(number)

    def until(self, text: str) -> None:
        """Read what is drawn until it has `text`."""
        self.read_until(lambda: text in self.text)

    def until_there(self, path: Path) -> None:
        """Read what is drawn until there is a file."""
        self.read_until(path.exists)

    def wait(self) -> int:
        """Read to the end; return the exit status."""
        self.read_until(lambda: self._run.poll() is not None)
        while self._take(0.1):
            pass
        assert self._run.returncode is not None
        return self._run.returncode

    @property
    def is_read(self) -> bool:
        """Whether the command has begun to read the terminal, for which it has a thread."""
        return len(os.listdir(f"/proc/{self._run.pid}/task")) > 1

    @property
    def text(self) -> str:
        """The lines of the screen now."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def styled(self) -> str:
        """The lines of the screen now, with styles as in the stored files."""
        cells = self.screen.buffer
        lines = (_styled_line(cells[y], self.columns) for y in range(self.screen.lines))
        return "\n".join(lines).rstrip()

    def assert_usable(self) -> None:
        """Check that the terminal is as it was: modes, echo, cursor, colours, title, buffer."""
        assert termios.tcgetattr(self._theirs) == self._modes
        assert not self.screen.cursor.hidden
        assert self.screen.cursor.attrs == self.screen.default_char
        assert self.screen.mode == self._emulator_modes  # no other buffer, no mouse, no paste mode
        assert (self.screen.title, self.screen.icon_name) == ("", "")
        assert (self.screen.charset, self.screen.margins) == (0, None)
        # The emulator knows one screen only; the other one would be switched to by these.
        assert b"\x1b[?1049h" not in self.raw.rpartition(b"\x1b[?1049l")[2]
        assert b"\x1b[?47h" not in self.raw.rpartition(b"\x1b[?47l")[2]

    def assert_screen(
        self, name: str, replaced: Mapping[str, str] | None = None, *, is_live: bool = False
    ) -> None:
        """Compare the screen with the stored one of its width.

        `replaced` maps regular expressions to texts, for times and paths. `is_live` is for a line
        editor, which writes escape sequences also without colour.
        """
        shown = self.styled if self.has_colour else self.text
        for pattern, text in (replaced or {}).items():
            shown = re.sub(pattern, text, shown)
        shown = "\n".join(line.rstrip() for line in shown.split("\n"))
        path = SCREENS / name / f"{self.columns}.txt"
        if _IS_UPDATE and self.has_colour:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{shown}\n", encoding="utf-8")
        assert path.exists(), f"no stored screen {name!r} at {self.columns}; `make screens` adds it"
        stored = path.read_text(encoding="utf-8").removesuffix("\n")
        if not self.has_colour:
            assert is_live or b"\x1b" not in self.raw, "an escape sequence without colour"
            if _IS_UPDATE:
                return  # the run with colour writes, and may come later
            plain = (line.rstrip() for line in _STYLES.sub("", stored).split("\n"))
            stored = "\n".join(plain)
        assert shown == stored

    def close(self) -> None:
        """End the run."""
        if self._run.poll() is None:
            self._run.kill()
            self._run.wait(WAIT_S)
        os.close(self._ours)
        os.close(self._theirs)

    def read_until(self, is_done: Callable[[], bool]) -> None:
        """Read what is drawn until a condition holds."""
        deadline = time.monotonic() + WAIT_S
        while not is_done():
            assert time.monotonic() < deadline, f"not within {WAIT_S} s:\n{self.text}"
            self._take(0.05)

    def _take(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        found = os.read(self._ours, 65536)
        self.raw += found
        if self._is_drawn:
            self._stream.feed(found)
        return True


class _Screen(pyte.Screen):
    """An emulated screen that knows dim text, which takes the place of blinking text."""

    def draw(self, data: str) -> None:
        # The emulator drops the rest of a text after a mark such as U+FE0F.
        super().draw("".join(each for each in data if wcwidth(each) != 0 or combining(each)))

    def select_graphic_rendition(self, *codes: int, **options: Any) -> None:
        shown = [5 if code == 2 else code for code in codes]
        if 22 in codes:  # neither bold nor dim
            shown.append(25)
        super().select_graphic_rendition(*shown, **options)


def _styled_line(cells: Any, columns: int) -> str:
    parts: list[str] = []
    style = blanks = ""
    for x in range(columns):
        cell = cells[x]
        is_marked = cell.reverse or cell.underscore or cell.bg != "default"
        if cell.data.isspace() and not is_marked:
            blanks += cell.data  # the style of a blank is not seen
            continue
        if not cell.data:  # the second half of a wide letter
            continue
        now = _style(cell)
        if now != style:
            parts.append(f"{'⟨/⟩' if style else ''}{blanks}{f'⟨{now}⟩' if now else ''}")
        else:
            parts.append(blanks)
        style, blanks = now, ""
        parts.append(cell.data)
    return f"{''.join(parts)}{'⟨/⟩' if style else ''}"


def _style(cell: Any) -> str:
    flags = {"bold": cell.bold, "dim": cell.blink, "italic": cell.italics}
    flags |= {"underline": cell.underscore, "strike": cell.strikethrough, "reverse": cell.reverse}
    named = [name for name, is_set in flags.items() if is_set]
    colour = {"brown": "yellow"}.get(cell.fg, cell.fg)
    named += [colour] if colour != "default" else []
    named += [f"on {cell.bg}"] if cell.bg != "default" else []
    return " ".join(named)
