"""A monotonic clock that can be paused, for a bounded total time."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["PausableClock"]


class PausableClock:
    """`clock` without the time it was paused, of which at most `max_pause_s` count in total."""

    __slots__ = ("_clock", "_max_pause_s", "_paused_at", "paused_s", "remaining_pause_s")

    def __init__(self, clock: Callable[[], float], max_pause_s: float) -> None:
        self._clock = clock
        self._max_pause_s = max_pause_s
        self._paused_at: float | None = None
        # The total of all pauses that have ended, and how much more may be paused.
        self.paused_s = 0.0
        self.remaining_pause_s = max_pause_s

    @property
    def is_paused(self) -> bool:
        """Whether `pause` was called, and `resume` was not."""
        return self._paused_at is not None

    def now(self) -> float:
        """Return the time in seconds; it does not change while the clock is paused."""
        return self._clock() - self.paused_s - self._current_pause()

    def pause(self) -> None:
        """Stop the clock, unless it is stopped."""
        if self._paused_at is None:
            self._paused_at = self._clock()

    def resume(self) -> None:
        """Start the clock again, unless it runs."""
        pause = self._current_pause()
        self.paused_s += pause
        self.remaining_pause_s -= pause
        self._paused_at = None

    def reset_limit(self) -> None:
        """Allow the whole `max_pause_s` again, counted from now."""
        if self._paused_at is not None:
            self.resume()
            self.pause()
        self.remaining_pause_s = self._max_pause_s

    def _current_pause(self) -> float:
        if self._paused_at is None:
            return 0.0
        return min(self._clock() - self._paused_at, self.remaining_pause_s)
