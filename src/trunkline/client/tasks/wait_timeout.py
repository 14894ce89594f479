"""How long a caller waits for a call that has become a task.

A call that is a task has the `timeout` that its caller gave it, from when it became one and again
from each sign that something goes on, up to the longest there is; one without a time of its own
has the longest, because long work is what tasks are for. Where a caller holds the task himself
nothing of this applies.

The rules that live here, and only here:

* A change of the status of a task, or of its message, is such a sign, and so is progress. That
  the server still answers is none: a task that hangs would be waited for as long as one that works.
* While a question of the task waits for a user the clock stands still; in all for as long as the
  longest call may take, however often the task asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from ...errors import RequestTimeout

__all__ = ["TaskWaitTimeout"]

# The clock of a connection may stand without a word to us: a deadline that is near is looked at
# again so many seconds later, and not at once for good.
_SOONEST: Final = 0.05
# A timer may go off a moment early.
_NEARLY: Final = 0.001


class TaskWaitTimeout:
    """The time of one wait: enter it around that, and it ends with `RequestTimeout`.

    `clock` is the time that calls are measured by.
    """

    __slots__ = (
        "_begun",
        "_clock",
        "_holds",
        "_limit",
        "_loop",
        "_lost",
        "_most",
        "_seconds",
        "_seen",
        "_since",
        "_timer",
    )

    def __init__(self, seconds: float, most: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._limit = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        # How many questions wait for somebody, since when, and how long others have.
        self._holds = 0
        self._since = 0.0
        self._lost = 0.0
        self._begun = self._seen = clock()

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        self._look(0.0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        late = self._reason()
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError:
            raise RequestTimeout(late, method="tools/call") from None

    def renew(self) -> None:
        """Give the wait its time again: something goes on."""
        self._seen = self._now()

    def hold(self) -> None:
        """Stop the clock: somebody thinks."""
        if not self._holds:
            self._since = self._clock()
        self._holds += 1

    def go_on(self) -> None:
        """Let the clock go on, once nobody thinks any more."""
        if self._holds == 1:
            self._lost += self._stood()
        self._holds -= 1

    def _stood(self) -> float:
        """Return for how long the clock has stood since it last went."""
        return min(self._clock() - self._since, self._most - self._lost) if self._holds else 0.0

    def _now(self) -> float:
        return self._clock() - self._lost - self._stood()

    def _look(self, soonest: float = _SOONEST) -> None:
        """See whether time has run out, and when to see again."""
        left = min(self._seen + self._seconds, self._begun + self._most) - self._now()
        if left <= _NEARLY:
            self._limit.reschedule(self._loop.time())
            return
        self._timer = self._loop.call_later(max(left, soonest), self._look)

    def _reason(self) -> str:
        if self._begun + self._most <= self._now():
            return f"no result within {self._most:g} s, which is the most there is"
        return f"no result within {self._seconds:g} s"
