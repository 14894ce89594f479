"""How long a caller waits for the result of a call that became a task.

The timeout of the call begins when the task is created and restarts with each sign of activity,
up to `max_timeout`. A call without a timeout of its own has `max_timeout`, since tasks are for
long work. None of this applies to a caller that holds a `TaskHandle`.

The rules that live here, and only here:

* A change of the task's status or status message, and progress, are signs of activity. A reply to
  a poll is not: a task that hangs would be awaited as long as one that works.
* The timeout is paused while a user answers an input request of the task, for at most
  `max_timeout` in total.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from ...errors import RequestTimeout
from ..session.timeouts import PausableClock

__all__ = ["TaskWaitTimeout"]

# The session clock may be paused without notice, so a deadline that is near is checked again
# after this long, and not in a busy loop.
_MIN_CHECK_INTERVAL_S: Final = 0.05
# A timer may expire slightly early.
_TIMER_TOLERANCE_S: Final = 0.001


class TaskWaitTimeout:
    """The timeout of one wait: enter it around the wait, and it raises `RequestTimeout`.

    `clock` is the clock by which the session measures its requests.
    """

    __slots__ = (
        "_active_at",
        "_begun",
        "_clock",
        "_limit",
        "_most",
        "_pauses",
        "_seconds",
        "_timer",
    )

    def __init__(self, seconds: float, most: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._most = most
        self._clock = PausableClock(clock, most)
        self._limit = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        # How many groups of input requests wait for a user.
        self._pauses = 0
        self._begun = self._active_at = self._clock.now()

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        self._check(0.0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        reason = self._reason()
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError:
            raise RequestTimeout(reason, method="tools/call") from None

    def renew(self) -> None:
        """Restart the timeout."""
        self._active_at = self._clock.now()

    def pause(self) -> None:
        """Pause the timeout; calls nest."""
        self._clock.pause()
        self._pauses += 1

    def resume(self) -> None:
        """Continue the timeout, with the last of the calls that paused it."""
        self._pauses -= 1
        if not self._pauses:
            self._clock.resume()

    def _check(self, soonest: float = _MIN_CHECK_INTERVAL_S) -> None:
        loop = asyncio.get_running_loop()
        deadline = min(self._active_at + self._seconds, self._begun + self._most)
        left = deadline - self._clock.now()
        if left <= _TIMER_TOLERANCE_S:
            self._limit.reschedule(loop.time())
            return
        self._timer = loop.call_later(max(left, soonest), self._check)

    def _reason(self) -> str:
        if self._begun + self._most <= self._clock.now():
            return f"no result within {self._most:g} s, the maximum"
        return f"no result within {self._seconds:g} s"
