"""Waiting for a condition: polled until it holds, and bounded, so that a busy machine passes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

# Seconds that a condition may take to hold; far beyond what any needs, on a busy machine too.
WAIT_S = 120.0
POLL_INTERVAL_S = 0.005


def until(
    is_so: Callable[[], object], otherwise: str | Callable[[], str] = "it did not happen"
) -> None:
    """Block until a condition holds; fail with `otherwise` if it does not."""
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(otherwise if isinstance(otherwise, str) else otherwise())
        time.sleep(POLL_INTERVAL_S)


async def until_async(is_so: Callable[[], object], otherwise: str = "it did not happen") -> None:
    """Wait, while the event loop runs, until a condition holds; fail if it does not."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WAIT_S
    while not is_so():
        assert loop.time() < deadline, otherwise
        await asyncio.sleep(POLL_INTERVAL_S)
