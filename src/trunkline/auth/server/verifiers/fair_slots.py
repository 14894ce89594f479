"""A semaphore that clients share: each has its share of the slots, and waits in turn beyond it.

    slots = FairSlots(64, max_waiting=512)
    await slots.acquire("192.0.2.1", timeout=5)
    try:
        ...
    finally:
        slots.release("192.0.2.1")

The rules that live here, and only here:

* A client has its share of the slots, and of the queue, as `accounts.shares` says: half while there
  are other clients, 7/8 alone. A client is there while it has a slot or waits for one.
* Beyond its share, or without a free slot, a caller waits, if the queue has room for its client.
* Clients take turns at a slot that becomes free; callers of one client are served in order.
* A caller that is cancelled, or has waited too long, leaves nothing; a slot that it was given at
  that moment goes to the next one.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ....accounts.shares import ClientShares, SharedLimit

__all__ = ["FairSlots", "QueueFull"]


class QueueFull(Exception):
    """There is no room to wait."""


class _Client:
    """The slots of one client, and its callers that wait, in order."""

    __slots__ = ("held", "waiting")

    def __init__(self) -> None:
        self.held = 0
        self.waiting: dict[asyncio.Future[None], None] = {}


class FairSlots:
    """A number of slots, and a bounded queue of callers that wait for one; of one event loop."""

    def __init__(self, slots: int, *, max_waiting: int) -> None:
        # Those that have a slot or wait; and of these those that wait, the next to be served first.
        self._clients: Final[dict[str, _Client]] = {}
        self._turns: Final[dict[str, _Client]] = {}
        shares = ClientShares()
        self._slots: Final = SharedLimit(slots, shares, self._clients)
        self._queue: Final = SharedLimit(max_waiting, shares, self._clients)

    def __len__(self) -> int:
        """The number of clients that have a slot, or wait for one."""
        return len(self._clients)

    async def acquire(self, name: str, *, timeout: float) -> None:
        """Take a slot for a client, or wait for one.

        Raises:
            QueueFull: there is no room to wait.
            TimeoutError: no slot became free in time.
        """
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = _Client()
        if not client.waiting and self._slots.admits(client.held):
            self._take(client)
            return
        if not self._queue.admits(len(client.waiting)):
            self._forget(name, client)
            raise QueueFull
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        client.waiting[waiter] = None
        self._turns[name] = client
        self._queue.charge(1)
        try:
            async with asyncio.timeout(timeout):
                await waiter
        except BaseException:  # cancelled or too late, whatever it is raised as
            if waiter in client.waiting:
                self._leave_queue(name, client, waiter)
                self._forget(name, client)
                self._serve_next()
            elif not waiter.cancelled():
                self.release(name)
            raise

    def release(self, name: str) -> None:
        """Return a slot of a client."""
        client = self._clients[name]
        client.held -= 1
        self._slots.release(1)
        self._forget(name, client)
        self._serve_next()

    def _take(self, client: _Client) -> None:
        client.held += 1
        self._slots.charge(1)

    def _leave_queue(self, name: str, client: _Client, waiter: asyncio.Future[None]) -> None:
        del client.waiting[waiter]
        self._queue.release(1)
        if not client.waiting:
            del self._turns[name]

    def _forget(self, name: str, client: _Client) -> None:
        if not client.held and not client.waiting:
            del self._clients[name]

    def _serve_next(self) -> None:
        """Give free slots to those that wait, and may have them."""
        while (name := self._next_turn()) is not None:
            client = self._turns[name]
            waiter = next(iter(client.waiting))
            self._leave_queue(name, client, waiter)
            if waiter.cancelled():  # its caller has not run since
                self._forget(name, client)
                continue
            self._take(client)
            if client.waiting:  # behind the others
                del self._turns[name]
                self._turns[name] = client
            waiter.set_result(None)

    def _next_turn(self) -> str | None:
        """Return the first client that waits and may have a slot, if one is free."""
        slots = self._slots
        if slots.used >= slots.limit:
            return None
        return next((name for name, each in self._turns.items() if slots.admits(each.held)), None)
