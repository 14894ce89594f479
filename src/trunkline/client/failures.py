"""Other people's code: what it raised goes to the log, and what will not end is left behind."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Iterable
from typing import Any, Final

from ..redaction import conceal

__all__ = ["log", "outlast", "report"]

log: Final = logging.getLogger("trunkline.client")

# How long closing waits for callbacks that were cancelled, in seconds.
GRACE: Final = 2.0


def report(error: BaseException, what: str) -> None:
    """Log that `what` raised, and where."""
    # Written out here, because a logger given the exception would print its text as it is.
    trace = conceal("".join(traceback.format_exception(error)))
    log.error("%s raised an exception\n%s", what, trace)


async def outlast(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Wait for tasks that were cancelled, and say so if they will not end."""
    others = [task for task in tasks if task is not asyncio.current_task()]
    if others:
        _, left = await asyncio.wait(others, timeout=GRACE)
        if left:
            log.warning("%d callbacks go on although they were cancelled", len(left))
