"""Heartbeat and wake-up channel of a server that runs tasks on a shared store.

A task runs on the server that created it. Another server that changes its record for a client
publishes the task id on the wake-up channel of that server; `lifecycle.py` acts on it.

The rules that live here, and only here:

* The heartbeat is in the store before the first task of a server, and while the server is open. A
  server that finds a task whose runner has no heartbeat may mark the task as failed.
* Wake-up messages are delivered at most once. Every waiting task is therefore also checked
  periodically, and all of them after the subscription was lost.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

from ...exception_text import as_redacted
from ...store.base import ChannelSubscription, Store
from ...store.errors import StoreClosed, StoreError
from ...store.values import Key

__all__ = ["TaskRunner"]

_log: Final = logging.getLogger("trunkline.server")

# Interval of heartbeats and checks. A client whose wake-up message was lost waits this much longer.
CHECK_INTERVAL_S: Final = 2.0
# Lifetime of a heartbeat: a blocked event loop or a short outage of the store must not fail tasks.
HEARTBEAT_TTL_S: Final = 30.0
# Before subscribing again after the store was lost.
RESUBSCRIBE_DELAY_S: Final = 1.0


class TaskRunner:
    """This server's identity, heartbeat and wake-up subscription."""

    def __init__(
        self,
        store: Store,
        check: Callable[[], Awaitable[None]],
        on_wake: Callable[[str], Awaitable[None]],
    ) -> None:
        self._store = store
        # Called every `CHECK_INTERVAL_S`, and with the id of a changed task.
        self._check = check
        self._on_wake = on_wake
        self.name = ""
        self._opening = asyncio.Lock()
        self._subscription: ChannelSubscription | None = None
        self._loops: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Start the heartbeat and the subscription, unless they have started.

        Raises:
            StoreError: the store is not available; nothing was started.
        """
        async with self._opening:
            if self._loops:
                return
            # New each time: after a fork the process is another server.
            self.name = secrets.token_hex(16)
            self._subscription = await self._store.subscribe(_channel(self.name))
            try:
                await self._store.put(_heartbeat(self.name), b"", ttl=HEARTBEAT_TTL_S)
            except BaseException:  # a cancellation too: the subscription would leak
                await self._subscription.close()
                raise
            self._loops = [asyncio.create_task(self._beat()), asyncio.create_task(self._listen())]

    async def close(self) -> None:
        """Remove the heartbeat and end the subscription."""
        async with self._opening:
            loops, self._loops = self._loops, []
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            if loops:
                await self._leave()
        # A lock belongs to the event loop on which it was first contended.
        self._opening = asyncio.Lock()

    async def _leave(self) -> None:
        try:
            if self._subscription is not None:
                await self._subscription.close()
            await self._store.delete(_heartbeat(self.name))
        except StoreError as error:
            _log.warning("heartbeat not removed, it expires in %g s: %s", HEARTBEAT_TTL_S, error)
        self._subscription = None

    async def is_alive(self, name: str) -> bool:
        """Return True if the server of that name has a heartbeat."""
        return await self._store.get(_heartbeat(name)) is not None

    async def wake(self, name: str, id: str) -> None:
        """Send the id of a changed task to the server that runs it."""
        await self._store.publish(_channel(name), id.encode())

    # -- while the server is open ------------------------------------------------------------

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            try:
                # A store that was restarted has lost the heartbeat.
                if not await self._store.touch(_heartbeat(self.name), ttl=HEARTBEAT_TTL_S):
                    await self._store.put(_heartbeat(self.name), b"", ttl=HEARTBEAT_TTL_S)
                await self._check()
            except StoreClosed:
                return
            except StoreError as error:
                _log.warning("periodic check of tasks skipped, store error: %s", error)
            except Exception as error:  # noqa: BLE001  # ours; the heartbeat must go on
                _log.error("periodic check of tasks failed\n%s", as_redacted(error))

    async def _listen(self) -> None:
        while self._subscription is not None:
            try:
                async for message in self._subscription:
                    await self._receive(message.data.decode(errors="replace"))
                return
            except StoreClosed:
                return
            except StoreError as error:
                _log_lost(error)
            await asyncio.sleep(RESUBSCRIBE_DELAY_S)
            try:
                await self._subscription.close()
                self._subscription = await self._store.subscribe(_channel(self.name))
                await self._check()
            except StoreClosed:
                return
            except StoreError as error:
                _log_lost(error)

    async def _receive(self, id: str) -> None:
        try:
            await self._on_wake(id)
        except Exception as error:  # noqa: BLE001  # the next message may be about another task
            _log.warning("task wake-up failed, left to the next check: %s", as_redacted(error))


def _log_lost(error: StoreError) -> None:
    _log.warning("task wake-up subscription lost, retrying in %g s: %s", RESUBSCRIBE_DELAY_S, error)


def _heartbeat(name: str) -> Key:
    return Key("", "task-runner", name)


def _channel(name: str) -> Key:
    return Key("", "task-wake", name)
