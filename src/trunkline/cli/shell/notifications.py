"""What a server reports while a shell is open: log messages, changes, a lost connection.

A line that arrives while the user types is printed above the prompt. The rules that live here,
and only here:

* While a question, an editor or a program has the terminal, lines wait; at most 1,000 are kept.
* At most 20 lines are printed at once, five times a second. What is more is counted, and the
  count printed: a server that sends a thousand a second leaves a prompt that can be used.
* `watch off` hides what arrives while the user types, except a lost connection.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ...errors import visible
from ...redaction import conceal
from ...spec.mcp.meta import LOG_LEVELS
from ..output.progress import Console
from ..output.terminal import wants_colour

if TYPE_CHECKING:
    from ...mcp.types import LoggingMessageNotificationParams

__all__ = ["ShellConsole"]

MAX_WAITING: Final = 1000
MAX_LINES_AT_ONCE: Final = 20
_PRINT_INTERVAL_S: Final = 0.2
_MAX_LINE_LENGTH: Final = 2000


class ShellConsole(Console):
    """Standard error of a shell: direct while a command runs, above the prompt otherwise."""

    def __init__(self, *, level: str = "warning", is_verbose: bool = False) -> None:
        super().__init__(level=level, is_verbose=is_verbose)
        self.is_watching = True
        # Called with the kind of a list that has changed, before it is shown.
        self.on_list_changed: Callable[[str], object] = lambda kind: None
        # Returns what a task is called; its id is not shown.
        self.task_name: Callable[[str], str] = lambda id: "a task"
        # Prints a text above the prompt; None while no prompt is shown.
        self._above: Callable[[str], Awaitable[None]] | None = None
        self._waiting: deque[str] = deque()
        self._dropped = 0
        self._holds = 0
        self._printing: asyncio.Task[None] | None = None

    @property
    def level(self) -> str:
        """The lowest level of log messages that are shown."""
        return LOG_LEVELS[self._least]

    def set_level(self, level: str) -> None:
        """Show log messages from a level on."""
        self._least = LOG_LEVELS.index(level)

    @property
    def is_prompting(self) -> bool:
        """Whether a prompt is shown, and no command runs."""
        return self._above is not None

    # -- what has the terminal -----------------------------------------------------------------

    @contextmanager
    def prompting(self, above: Callable[[str], Awaitable[None]]) -> Iterator[None]:
        """Print lines by `above` in this block, in which the user types."""
        self._above = above
        if self._waiting:
            self._print_soon()
        try:
            yield
        finally:
            self._above = None
            self._flush()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Print nothing in this block: a question or another program has the terminal."""
        self._holds += 1
        self.pause()
        try:
            yield
        finally:
            self._holds -= 1
            if not self._holds:
                self.pause(False)
                if self._above is None:
                    self._flush()
                else:
                    self._print_soon()

    # -- lines ---------------------------------------------------------------------------------

    def note(self, text: str, *, is_dim: bool = False) -> None:
        """Print a text on lines of its own; later, if something else has the terminal."""
        if self._above is None and not self._holds:
            super().note(text, is_dim=is_dim)
            return
        if len(self._waiting) >= MAX_WAITING:
            self._dropped += 1
            return
        shown = text if len(text) <= _MAX_LINE_LENGTH else f"{text[:_MAX_LINE_LENGTH]}…"
        self._waiting.append(_dimmed(shown) if is_dim else shown)
        self._print_soon()

    def _print_soon(self) -> None:
        if self._above is not None and not self._holds and self._printing is None:
            self._printing = asyncio.get_running_loop().create_task(self._print_above())

    async def _print_above(self) -> None:
        try:
            while self._waiting and self._above is not None and not self._holds:
                await self._above(self._take())
                await asyncio.sleep(_PRINT_INTERVAL_S)
        finally:
            self._printing = None

    def _flush(self) -> None:
        """Print what waits, now that no prompt is in the way."""
        while self._waiting and not self._holds:
            self._write(self._take())

    def _take(self) -> str:
        """Return the next lines, each with its line break."""
        count = min(MAX_LINES_AT_ONCE, len(self._waiting))
        lines = [self._waiting.popleft() for _ in range(count)]
        if self._dropped and not self._waiting:
            lines.append(_dimmed(f"({self._dropped} more lines were not shown)"))
            self._dropped = 0
        return "".join(f"{line}\n" for line in lines)

    # -- callbacks of a client -----------------------------------------------------------------

    def log(self, message: LoggingMessageNotificationParams) -> None:
        """Print a log message of the server from the chosen level on, as one line."""
        if self._is_shown():
            super().log(message)

    def list_changed(self, kind: str) -> None:
        """Print that a list has changed: tools, resources or prompts."""
        self.on_list_changed(kind)
        self._report(f"the {kind} of the server have changed")

    def resource_updated(self, uri: str) -> None:
        """Print that a resource has changed."""
        self._report(f"changed: {visible(uri, kept='')}")

    def notification(self, method: str, params: dict[str, Any]) -> None:
        """Print any other notification."""
        id = params.get("taskId")
        if isinstance(id, str):
            status, message = params.get("status"), params.get("statusMessage")
            told = f": {message}" if isinstance(message, str) else ""
            self._report(visible(f"{self.task_name(id)} is {status}{told}", kept=""))
            return
        shown = f" {conceal(params)}" if params else ""
        self._report(visible(f"{method}{shown}", kept=""))

    def _report(self, text: str) -> None:
        if self._is_shown():
            self.note(text, is_dim=True)

    def _is_shown(self) -> bool:
        return self.is_watching or self._above is None


def _dimmed(text: str) -> str:
    import sys

    return f"\033[2m{text}\033[0m" if wants_colour(sys.stderr) else text
