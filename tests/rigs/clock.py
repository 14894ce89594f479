"""Clocks that stand still until a test moves them."""

from __future__ import annotations

from collections.abc import Callable


class Clock:
    """A clock to be called for the time; a test sets `now`."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Timer:
    """What `TimerLoop` calls once, unless it is cancelled before."""

    def __init__(self, timers: list[Timer], when: float, then: Callable[[], object]) -> None:
        self.when = when
        self.then = then
        self._timers = timers
        timers.append(self)

    def cancel(self) -> None:
        if self in self._timers:
            self._timers.remove(self)


class TimerLoop:
    """The time and the timers of an event loop; `move` calls what falls due, in its order."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, then: Callable[[], object]) -> Timer:
        return Timer(self.timers, when, then)

    def call_later(self, delay: float, then: Callable[[], object]) -> Timer:
        return self.call_at(self.now + delay, then)

    def move(self, seconds: float) -> None:
        until = self.now + seconds
        while due := [each for each in self.timers if each.when <= until]:
            timer = min(due, key=lambda each: each.when)
            timer.cancel()
            self.now = max(self.now, timer.when)
            timer.then()
        self.now = until
