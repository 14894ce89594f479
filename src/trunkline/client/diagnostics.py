"""Other people's code and other people's servers: what goes to the log, and how often.

What a callback raised, and what a server does wrong, is logged; a callback that will not end is
left behind. A server decides how often it is wrong, so only the first of a kind are warnings.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Iterable
from typing import Any, Final

from ..redaction import conceal

__all__ = ["RateLimitedLog", "current_task", "log", "report", "wait_cancelled"]

log: Final = logging.getLogger("trunkline.client")

# How long closing waits for callbacks that were cancelled, in seconds.
GRACE: Final = 2.0

# Of each kind so many are told in full. Enough to see what is wrong, and whether it goes on; a
# server that floods its output would otherwise fill a disk through our log.
TOLD: Final = 10


class RateLimitedLog:
    """What is wrong with one connection, in the log: at first each time, then in sum."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        # By kind; made by the first complaint, because most connections give no cause.
        self._counts: dict[str, int] | None = None

    def warning(self, text: str, *args: object, kind: str = "") -> None:
        """Log a complaint; its kind is the text, unless one is named."""
        log.log(self._level(kind or text, logging.WARNING), text, *args)

    def exception(self, error: BaseException, what: str) -> None:
        """Log that `what` raised, and where."""
        level = self._level(what, logging.ERROR)
        if log.isEnabledFor(level):
            report(error, what, level)

    def end(self) -> None:
        """Say how much was not told in full."""
        counts, self._counts = self._counts, None
        more = sum(max(0, count - TOLD) for count in (counts or {}).values())
        if more:
            log.warning("%d more complaints like these are at the level of debugging", more)

    def _level(self, kind: str, level: int) -> int:
        if self._counts is None:
            self._counts = {}
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        return level if count <= TOLD else logging.DEBUG


def report(error: BaseException, what: str, level: int = logging.ERROR) -> None:
    """Log that `what` raised, and where."""
    # Written out here, because a logger given the exception would print its text as it is.
    trace = conceal("".join(traceback.format_exception(error)))
    log.log(level, "%s raised an exception\n%s", what, trace)


async def wait_cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Wait for tasks that were cancelled, and say so if they will not end."""
    others = [task for task in tasks if task is not asyncio.current_task()]
    if others:
        _, left = await asyncio.wait(others, timeout=GRACE)
        if left:
            log.warning("%d callbacks go on although they were cancelled", len(left))


def current_task() -> asyncio.Task[Any] | None:
    """Return the task that runs this, if one does."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None  # outside of a loop nothing of ours is running
