"""What a test leaves behind: descriptors, processes, threads, tasks, timers, objects and memory.

`run` plays a script on an event loop of its own, and fails if any of it is left when it is done.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tests.rigs.conditions import WAIT_S, until, until_async

T = TypeVar("T")


def descriptors() -> dict[str, str]:
    """Return the open descriptors of this process, and what each is."""
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue  # that of the listing itself
    return found


def children(pid: int | str = "self") -> set[int]:
    """Return the child processes of a process, whichever thread has started them."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found.update(map(int, (task / "children").read_text().split()))
        except OSError:
            continue  # a thread that has just ended
    return found


def _held() -> set[tuple[str, object]]:
    threads = {("thread", thread.name) for thread in threading.enumerate()}
    processes = {("child", pid) for pid in children()}
    return threads | processes | {("descriptor", each) for each in descriptors().items()}


@contextmanager
def nothing_left() -> Iterator[None]:
    """Fail if a descriptor, child process or thread is left that was not there before."""
    before = _held()
    yield
    until(lambda: not _new(before), lambda: f"left behind: {_new(before)}")


def _new(before: set[tuple[str, object]]) -> set[tuple[str, object]]:
    return _held() - before


def timers() -> list[asyncio.TimerHandle]:
    """Return what the running loop is still to call later."""
    scheduled: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]  # there is no other way to see them
    return [each for each in scheduled if not each.cancelled()]


# What other tests of this process still hold, by identity; see `census`.
_others: dict[int, object] = {}


@contextmanager
def census() -> Iterator[None]:
    """Have `alive` leave out objects that other tests have made before."""
    gc.collect()
    found = (
        each for each in gc.get_objects() if str(type(each).__module__).startswith("trunkline.")
    )
    _others.update((id(each), each) for each in found)
    try:
        yield
    finally:
        _others.clear()


def alive(*kinds: type) -> list[object]:
    """Return the objects of some classes that anybody still holds."""
    gc.collect()
    return [each for each in gc.get_objects() if type(each) in kinds and id(each) not in _others]


async def grown(work: Callable[[int], Awaitable[object]], times: int, first: int = 100) -> int:
    """Do something again and again; return by how many blocks of memory that has grown.

    The first times do not count: whatever is kept for good is kept by then.
    """
    for n in range(first):
        await work(n)
    before = _blocks()
    for n in range(first, first + times):
        await work(n)
    return _blocks() - before


def _blocks() -> int:
    """Return how many blocks of memory are in use, without timers that were cancelled.

    The loop keeps a varying number of those, up to half of all.
    """
    asyncio.get_running_loop()._scheduled[:] = sorted(timers())  # type: ignore[attr-defined]  # there is no other way to drop them
    gc.collect()
    return sys.getallocatedblocks()


def run(script: Callable[[], Awaitable[T]], *, timers_too: bool = False) -> T:
    """Run a script on a loop of its own; when it is done, nothing may be left of it."""

    async def bounded() -> T:
        here = asyncio.current_task()
        async with asyncio.timeout(WAIT_S):
            value = await script()
        await until_async(
            lambda: asyncio.all_tasks() == {here}, f"tasks are left: {asyncio.all_tasks()}"
        )
        if timers_too:
            await until_async(lambda: not timers(), f"timers are left: {timers()}")
        return value

    with nothing_left():
        return asyncio.run(bounded())
