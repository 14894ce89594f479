"""The life cycle of a listener: entered once, stopped from any thread, closed in order.

A `ListenerLifecycle` is the base of what listens. A subclass opens what it needs on the stack that
it is given, and says how serving stops and when it has ended.

The rules that live here, and only here:

* A listener is entered once. What fails while it is opened leaves nothing open.
* `stop` may be called from any thread and again; the work is done on the event loop.
* Shutdown is ordered: stop accepting, finish what is served, then close what was opened, the last
  first. A `close` that is cancelled leaves the rest open: what is served may still need it.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Final, Self

from ..errors import TrunklineError

__all__ = ["MADE_ROOM", "ListenerLifecycle"]

# Connections of no use so far that are closed at once when descriptors run out: handlers need some
# too.
MADE_ROOM: Final = 8


class ListenerLifecycle:
    """What listens for one `async with`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._opened = AsyncExitStack()

    # -- what a subclass does ----------------------------------------------------------------

    async def _open(self, opening: AsyncExitStack) -> None:
        """Start to listen; what has to be closed at the end is put on the stack."""
        raise NotImplementedError

    def _stop_serving(self, at_once: bool) -> None:
        """Let what is served finish; with `at_once`, cancel it."""

    async def _finish_serving(self) -> None:
        """Return when nothing is served any more."""

    # -- what callers do ---------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Start to listen.

        Raises:
            TransportError: the address cannot be used; the text says why.
        """
        if self._loop is not None:
            raise TrunklineError(f"{type(self).__name__} is entered once: call listen() again")
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as opening:
            await self._open(opening)
            self._opened = opening.pop_all()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def wait(self) -> None:
        """Wait until `stop` or `close` is called, or the server is stopped."""
        if self._loop is not None:
            await self._stopping.wait()

    def stop(self, *, at_once: bool = False) -> None:
        """Start shutdown: stop accepting, and let what is served finish.

        May be called from any thread, and again: `at_once` cancels running handlers.
        """
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop, at_once)

    def stop_accepting(self) -> None:
        """Stop accepting; open connections continue until `stop` or `close`.

        Used when another process has taken over the same sockets.
        """

    async def close(self) -> None:
        """Shut down; return when every connection is closed, and the lifespan has ended."""
        if self._loop is None:
            return
        self._stop(at_once=False)
        await self._finish_serving()
        opened, self._opened = self._opened, AsyncExitStack()
        await opened.aclose()

    def _stop(self, at_once: bool) -> None:
        self.stop_accepting()
        self._stop_serving(at_once)
        self._stopping.set()
