"""CPU time in units of a loop of this machine, for tests of how work grows."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

__all__ = ["calibration_s", "cpu_s"]


def cpu_s(work: Callable[[], object]) -> float:
    """Return the CPU seconds that `work` takes."""
    start = process_time()
    work()
    return process_time() - start


def calibration_s() -> float:
    """Return the CPU seconds of a million turns of a loop, the slowest of three."""
    return max(cpu_s(_loop) for _ in range(3))


def _loop() -> None:
    for _ in range(1_000_000):
        pass
