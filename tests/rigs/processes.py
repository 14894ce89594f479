"""Whether a process, started here or by what was started here, still runs."""

from __future__ import annotations

import os
from pathlib import Path

from tests.rigs.conditions import until


def is_there(pid: int) -> bool:
    """Return True if there is such a process, or its zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def assert_gone(pid: int) -> None:
    """Wait until there is no such process, or only its zombie, which another process reaps."""
    until(lambda: _has_ended(pid), f"process {pid} is still there")


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] == "Z"
    except OSError:
        return True
