"""Tasks that have ended and are still kept: how many, and how much, for one requestor.

A task outlives its call, so a client that calls quickly could fill the store that all share.
What is known here is known of tasks that this server has worked at, and is lost with it; the
store's own bounds hold for everybody.

The rules that live here, and only here:

* The oldest tasks of a requestor that have ended make room for its next. A task at work never
  does: those are bounded when they begin.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from .records import TaskRecord

__all__ = ["RetainedTask", "TaskRetention"]


class RetainedTask(NamedTuple):
    """A task that has ended."""

    # As it began; what it brought is in the store.
    record: TaskRecord
    # In bytes, of what it brought.
    size: int


class TaskRetention:
    """What is kept for whom, the oldest first."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._tasks: dict[str, deque[RetainedTask]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._tasks.values()))

    def add(self, circle: str, task: RetainedTask, now: float) -> list[TaskRecord]:
        """Take note of one more task of a requestor; return those that have to go for it."""
        kept = self._tasks.setdefault(circle, deque())
        kept.append(task)
        if not self._is_too_much(kept):
            return []
        kept = self._tasks[circle] = _left(kept, now)
        gone = []
        # The newest stays: the store itself has found room for it.
        while len(kept) > 1 and self._is_too_much(kept):
            gone.append(kept.popleft().record)
        return gone

    def tidy(self, now: float) -> None:
        """Forget tasks whose time has passed."""
        for circle, kept in list(self._tasks.items()):
            self._tasks[circle] = left = _left(kept, now)
            if not left:
                del self._tasks[circle]

    def _is_too_much(self, kept: deque[RetainedTask]) -> bool:
        return len(kept) > self._most or sum(each.size for each in kept) > self._most_bytes


def _left(kept: deque[RetainedTask], now: float) -> deque[RetainedTask]:
    """Return those of some tasks that are not gone by themselves."""
    times = ((each, each.record.left(now)) for each in kept)
    return deque(each for each, left in times if left is None or left > 0)
