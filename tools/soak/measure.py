"""What a process holds: memory, descriptors, threads and timers."""

from __future__ import annotations

import asyncio
import ctypes
import os
from pathlib import Path
from typing import Any

__all__ = ["descriptors", "resident_kib", "timers", "trim"]


def resident_kib() -> int:
    """Return the resident memory of this process in KiB."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def trim() -> None:
    """Return freed memory to the system, where the C library can.

    What the allocator keeps for later is not what a program has leaked, and varies between runs.
    """
    release = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if release is not None:
        release(0)


def descriptors() -> list[str]:
    """Return what the open descriptors of this process are, without that of the listing itself."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            continue
    return found


def timers(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Return the names of what an event loop is still to call later."""
    scheduled: list[asyncio.TimerHandle] = getattr(loop, "_scheduled", [])
    return [_name(each) for each in scheduled if not each.cancelled()]


def _name(timer: Any) -> str:
    callback = timer._callback
    return getattr(callback, "__qualname__", repr(callback))
