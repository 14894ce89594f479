"""Runs the coroutine of a verb, and ends its event loop also after a second Ctrl-C.

The first Ctrl-C cancels the coroutine. The second one raises KeyboardInterrupt wherever the event
loop is, perhaps in the middle of a callback: what waits for the rest of that callback would wait
for ever. So the tasks that are left have a moment to clean up, and are then abandoned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, Final, TypeVar

__all__ = ["run_interruptible"]

T = TypeVar("T")

# Seconds for what is left after a second Ctrl-C: more than ending a process takes.
_LAST_STEPS_S: Final = 2.0


def run_interruptible(coroutine: Coroutine[Any, Any, T], runner: asyncio.Runner | None = None) -> T:
    """Run a coroutine on an event loop of its own; return its result.

    Raises:
        KeyboardInterrupt: Ctrl-C; all tasks have ended, or are abandoned.
    """
    runner = runner or asyncio.Runner()
    try:
        return runner.run(coroutine)
    except KeyboardInterrupt:
        _close_soon(runner)
        raise
    finally:
        if getcoroutinestate(coroutine) == CORO_CREATED:
            coroutine.close()  # a signal came before it began
        runner.close()


def _close_soon(runner: asyncio.Runner) -> None:
    loop = runner.get_loop()
    # Of tasks that are abandoned: the user has not asked for them.
    loop.set_exception_handler(lambda *_: None)
    loop.call_later(_LAST_STEPS_S, loop.stop)
    try:
        runner.close()
    except RuntimeError:  # it was stopped before the last task has ended
        pass
