"""Memory that a call leaves allocated, in bytes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

__all__ = ["held_by"]


def held_by(work: Callable[[], object]) -> int:
    """Return the bytes that Python has allocated in `work` and not released at its end."""
    gc.collect()
    tracemalloc.start(1)
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
