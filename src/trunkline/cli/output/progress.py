"""Standard error while a verb runs: progress, a spinner, the server's log, and notes.

Progress is one line, redrawn and then erased, and only on a terminal. It uses blanks and carriage
returns instead of escape sequences: a killed process leaves no terminal state to restore.
A wait without progress shows a spinner with its seconds on that line, after the first second.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

from ...errors import visible
from ...redaction import conceal
from ...spec.mcp.meta import LOG_LEVELS
from .terminal import cells, cut, error_text, is_terminal, wants_colour

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from ...mcp.types import LoggingMessageNotificationParams

__all__ = ["Console", "is_interactive"]

# A server may report progress at any rate.
_REDRAW_INTERVAL_S: Final = 0.05
_BAR_COLUMNS: Final = 24
_SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_SPINNER: Final = "|/-\\"
# Characters of a log message or of a line on stderr that are printed; more would hide the result.
_MAX_PRINTED_LENGTH: Final = 4000
# Seconds before a spinner appears: most answers come sooner.
_SPINNER_DELAY_S: Final = 1.0
_SPINNER_INTERVAL_S: Final = 0.125
# What a terminal shows for Ctrl-C, at the end of the line that is drawn.
_ECHO_COLUMNS: Final = len("^C")
# The end of a server's standard error that is kept for a failure: lines, and characters of each.
_MAX_SERVER_LINES: Final = 200
_MAX_LINE_LENGTH: Final = 2000


def is_interactive() -> bool:
    """Return True if standard input and standard error are a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def _bounded(line: str) -> str:
    """Return a line of the server, escaped, without its middle if it is very long."""
    shown = visible(line)
    if len(shown) <= _MAX_PRINTED_LENGTH:
        return shown
    half = _MAX_PRINTED_LENGTH // 2
    return f"{shown[:half]} … {len(shown) - 2 * half} characters … {shown[-half:]}"


class Console:
    """Writes notes, log lines and progress to standard error."""

    def __init__(self, *, level: str = "warning", is_verbose: bool = False) -> None:
        self.is_verbose = is_verbose
        self.is_terminal = is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"
        self._least = LOG_LEVELS.index(level)
        # The columns of the progress line on the screen.
        self._drawn = 0
        self._next_draw = 0.0
        self._turns = 0
        self._is_paused = False
        # What a server wrote that was started: to standard error, and to standard output without
        # being a message. And the text of the tool result if it reports a failure.
        self.server_lines: deque[str] = deque(maxlen=_MAX_SERVER_LINES)
        self.printed: list[bytes] = []
        self.failure: str | None = None
        # What is waited for, and since when; "" if nothing is.
        self._awaited = ""
        self._began = 0.0
        self._has_progress = False

    def note(self, text: str, *, is_dim: bool = False) -> None:
        """Print a text on lines of its own."""
        self.clear()
        shown = f"\033[2m{text}\033[0m" if is_dim and wants_colour(sys.stderr) else text
        self._write(f"{shown}\n")

    def error(self, prog: str, text: str) -> None:
        """Print an error after the name of the command, which is in red."""
        self.note(error_text(prog, text))

    def ask(self, text: str) -> None:
        """Print a prompt without a line break."""
        self.clear()
        self._write(text)

    def pause(self, is_paused: bool = True) -> None:
        """Stop drawing progress, while the user types; or start again."""
        self.clear()
        self._is_paused = is_paused
        self._began = monotonic()

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show `what` and the seconds that the block takes, after the first; erase it at the end.

        The event loop draws; reports of progress replace the spinner.
        """
        if not self.is_terminal:
            yield
            return
        # Imported here: help and lookups load no event loop.
        from asyncio import get_running_loop

        loop = get_running_loop()
        timer: TimerHandle
        before = self._awaited
        self._awaited, self._has_progress = visible(what, kept=""), False
        self._began = monotonic()

        def tick() -> None:
            nonlocal timer
            self._spin()
            timer = loop.call_later(_SPINNER_INTERVAL_S, tick)

        timer = loop.call_later(_SPINNER_DELAY_S, tick)
        try:
            yield
        finally:
            timer.cancel()
            self._awaited = before
            self.clear()

    # -- callbacks of a client -----------------------------------------------------------------

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Draw the progress of a call."""
        now = monotonic()
        if not self.is_terminal or self._is_paused or now < self._next_draw:
            return
        self._next_draw = now + _REDRAW_INTERVAL_S
        self._has_progress = True
        self._draw(self._line(done, total, message))

    def log(self, message: LoggingMessageNotificationParams) -> None:
        """Print a log message of the server from the chosen level on, as one line."""
        if LOG_LEVELS.index(message.level) < self._least:
            return
        data = conceal(message.data)
        text = data if isinstance(data, str) else str(data)
        logger = f" {message.logger}" if isinstance(message.logger, str) else ""
        # Newlines too: otherwise a server could print lines that look like ours.
        self.note(_bounded(f"{message.level}{logger}: {text}"), is_dim=True)

    def server_line(self, line: str) -> None:
        """Keep a line of the server's standard error, and print it with `--verbose`."""
        self.server_lines.append(line[:_MAX_LINE_LENGTH])
        if self.is_verbose:
            self.note(_bounded(line), is_dim=True)

    # -- drawing -------------------------------------------------------------------------------

    def clear(self) -> None:
        """Erase the progress line."""
        if self._drawn:
            drawn = min(self._drawn + _ECHO_COLUMNS, self._width() - 1)
            self._write(f"\r{' ' * drawn}\r")
            self._drawn = 0
            self._next_draw = 0.0

    def _spin(self) -> None:
        seconds = int(monotonic() - self._began)
        if seconds and not self._has_progress and not self._is_paused:
            room = self._width() - 1 - len(f"|  {seconds} s")
            self._draw(f"{self._frame()} {cut(self._awaited, room)} {seconds} s")

    def _draw(self, line: str) -> None:
        self._turns += 1
        shown = cut(line, self._width() - 1)
        self._write(f"\r{shown}{' ' * (self._drawn - cells(shown))}")
        self._drawn = cells(shown)

    def _line(self, done: float, total: float | None, message: str | None) -> str:
        said = "" if message is None else f" {visible(message, kept='')}"
        if not total or not total > 0:
            # Imported here, where a client is connected; the number of such a task counts messages.
            from ...client.tasks.status_progress import StatusCount

            shown = "" if said and isinstance(done, StatusCount) else f" {done:g}"
            return f"{self._frame()}{shown}{said}"
        part = min(1.0, max(0.0, done / total))
        full, empty = "█░" if self._is_utf_8() else "#."
        filled = round(part * _BAR_COLUMNS)
        return f"{full * filled}{empty * (_BAR_COLUMNS - filled)} {part:4.0%}{said}"

    def _frame(self) -> str:
        frames = _SPINNER if self._is_utf_8() else _ASCII_SPINNER
        return frames[self._turns % len(frames)]

    def _is_utf_8(self) -> bool:
        return (sys.stderr.encoding or "").lower().replace("-", "") == "utf8"

    def _width(self) -> int:
        try:
            return os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def _write(self, text: str) -> None:
        if sys.stderr is None:
            return
        encoding = sys.stderr.encoding or "utf-8"
        try:
            sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
            sys.stderr.flush()
        except OSError:
            pass  # a stderr that is not read must not stop the verb
