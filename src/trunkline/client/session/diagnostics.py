"""Logging of misbehaving servers and failing callbacks, limited in rate.

Each kind of message is logged as a warning or error 10 times per session, then at debug level.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final

__all__ = ["RateLimitedLog", "current_task", "log", "report", "wait_cancelled"]

log: Final = logging.getLogger("trunkline.client")

# Seconds that closing waits for cancelled callbacks.
CANCEL_TIMEOUT_S: Final = 2.0

# How many messages of each kind are logged in full: a server that floods its output would
# otherwise fill the disk through this log.
MAX_LOGGED: Final = 10


class RateLimitedLog:
    """The log of one session: each kind of message at first, then only their number."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        # By kind; created with the first message.
        self._counts: dict[str, int] | None = None

    def warning(self, text: str, *args: object, kind: str = "") -> None:
        """Log a warning; its kind is the text, unless one is given."""
        log.log(self._level(kind or text, logging.WARNING), text, *args)

    def exception(self, error: BaseException, what: str) -> None:
        """Log that `what` raised, and where."""
        level = self._level(what, logging.ERROR)
        if log.isEnabledFor(level):
            report(error, what, level)

    def end(self) -> None:
        """Log how many messages were suppressed."""
        counts, self._counts = self._counts, None
        more = sum(max(0, count - MAX_LOGGED) for count in (counts or {}).values())
        if more:
            log.warning("%d more warnings of these kinds were logged at debug level", more)

    def _level(self, kind: str, level: int) -> int:
        if self._counts is None:
            self._counts = {}
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        return level if count <= MAX_LOGGED else logging.DEBUG


def report(error: BaseException, what: str, level: int = logging.ERROR) -> None:
    """Log that `what` raised, and where."""
    # Imported here: most callbacks never raise.
    from ...exception_text import as_redacted

    # Formatted here, so that secrets in the text are concealed and its length is bounded.
    log.log(level, "%s raised an exception\n%s", what, as_redacted(error))


async def wait_cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Wait for cancelled tasks, and log if some do not end."""
    others = [task for task in tasks if task is not asyncio.current_task()]
    if others:
        _, left = await asyncio.wait(others, timeout=CANCEL_TIMEOUT_S)
        if left:
            log.warning("%d callbacks were cancelled and still run", len(left))


def current_task() -> asyncio.Task[Any] | None:
    """Return the current task, or None outside an event loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
