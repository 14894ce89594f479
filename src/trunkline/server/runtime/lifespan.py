"""Holding something open for as long as anybody uses it, whoever that is.

A server's lifespan is entered for the first connection, listener or task, and left after the
last. What it is made of is not known here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

__all__ = ["SharedLifespan"]


class SharedLifespan:
    """Something that begins with its first use and ends with its last, on one event loop."""

    def __init__(self, name: str, enter: Callable[[AsyncExitStack], Awaitable[None]]) -> None:
        """Have `enter` begin it: whatever it puts on the stack is undone at the end."""
        self._name = name
        self._enter = enter
        # Whether it was ever entered.
        self.was_entered = False
        self._uses = 0
        self._stack: AsyncExitStack | None = None
        self._opening: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @property
    def is_held(self) -> bool:
        """Whether somebody uses it."""
        return self._uses > 0

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Use it for a while.

        Raises:
            RuntimeError: it is used on another event loop.
        """
        lock = self._lock()
        async with lock:
            # Not by how many use it: the last may have gone a moment ago, and nobody ended it yet.
            if self._stack is None:
                async with AsyncExitStack() as stack:
                    await self._enter(stack)
                    self._stack = stack.pop_all()
                self.was_entered = True
            self._uses += 1
        try:
            yield
        finally:
            # Before anything is waited for: whoever is cancelled here has let go all the same. The
            # lock is held by somebody who enters, and ends it later, or who is ending it.
            self._uses -= 1
            if self._uses == 0:
                await self._leave(lock)

    async def _leave(self, lock: asyncio.Lock) -> None:
        """End it, unless somebody has come meanwhile."""
        async with lock:
            left = self._stack
            if self._uses == 0 and left is not None:
                self._stack = None
                await left.aclose()

    def _lock(self) -> asyncio.Lock:
        """Return what keeps two from entering at once; all are on one loop."""
        loop = asyncio.get_running_loop()
        if self._opening is None or self._opening[0] is not loop:
            if self.is_held or (self._opening is not None and self._opening[1].locked()):
                raise RuntimeError(f"{self._name} is being served on another event loop")
            self._opening = loop, asyncio.Lock()
        return self._opening[1]
