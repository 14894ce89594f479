"""Shared lifespan: entered for the first user, exited after the last.

The users of a server's lifespan are its connections, listeners and running tasks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

__all__ = ["SharedLifespan"]


class SharedLifespan:
    """A reference-counted async context manager on one event loop."""

    def __init__(self, name: str, enter: Callable[[AsyncExitStack], Awaitable[None]]) -> None:
        """Enter with `enter`; what it pushes on the stack is closed after the last use."""
        self._name = name
        self._enter = enter
        self.was_entered = False
        self._uses = 0
        self._stack: AsyncExitStack | None = None
        self._opening: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @property
    def is_held(self) -> bool:
        """Whether it is in use."""
        return self._uses > 0

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Keep it entered inside `async with`.

        Raises:
            RuntimeError: it is in use on another event loop.
        """
        lock = self._lock()
        async with lock:
            # Not `_uses`: the last user may have left without having closed the stack yet.
            if self._stack is None:
                async with AsyncExitStack() as stack:
                    await self._enter(stack)
                    self._stack = stack.pop_all()
                self.was_entered = True
            self._uses += 1
        try:
            yield
        finally:
            # Before any await: a user cancelled here has left all the same. The lock is then held
            # by one that enters, and closes later, or by one that is closing.
            self._uses -= 1
            if self._uses == 0:
                async with lock:
                    left = self._stack
                    if self._uses == 0 and left is not None:
                        self._stack = None
                        await left.aclose()

    def _lock(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if self._opening is None or self._opening[0] is not loop:
            if self.is_held or (self._opening is not None and self._opening[1].locked()):
                raise RuntimeError(f"{self._name} is being served on another event loop")
            self._opening = loop, asyncio.Lock()
        return self._opening[1]
