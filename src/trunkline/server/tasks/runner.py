"""A server as the others know it that share its store: a name, a sign of life, and an ear.

A task is worked at by the server that made it. Another one that changes its record, because a
client happened to ask there, calls this one by name; what is done about it is for `tasks.py`.

The rules that live here, and only here:

* The sign of life is there before the first task of a runner is, and for as long as the server
  is open. Whoever finds a task whose runner gives none may say that it has failed.
* A call is a message, and comes at most once. So everything that waits is also looked at every
  few seconds, and all of it after the ear was deaf for a while.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

from ...store.base import ChannelSubscription, Store
from ...store.errors import StoreClosed, StoreError
from ...store.values import Key
from ..errors import as_redacted

__all__ = ["TaskRunner"]

_log: Final = logging.getLogger("trunkline.server")

# How often what waits is looked at, in seconds. A client that is missed waits so much longer.
CHECK_INTERVAL_S: Final = 2.0
# How long a runner that gives no sign of life is taken to be alive: a loop that is held up, or an
# engine that is away for a moment, is not to cost a client its task.
HEARTBEAT_TTL_S: Final = 30.0
# Before the ear of a runner is put to a lost store again.
RESUBSCRIBE_DELAY_S: Final = 1.0


class TaskRunner:
    """What makes this server one that works at tasks."""

    def __init__(
        self,
        store: Store,
        look: Callable[[], Awaitable[None]],
        wake: Callable[[str], Awaitable[None]],
    ) -> None:
        self._store = store
        # What is called every few seconds, and what with the id of a task that was changed.
        self._look = look
        self._wake = wake
        self.name = ""
        self._opening = asyncio.Lock()
        self._subscription: ChannelSubscription | None = None
        self._loops: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Give a sign of life and listen, from now on; to begin twice is to begin once.

        Raises:
            StoreError: there is no store to be known in; nothing has begun.
        """
        async with self._opening:
            if self._loops:
                return
            # Another one each time: a process that was forked is not the one before.
            self.name = secrets.token_hex(16)
            self._subscription = await self._store.subscribe(_ear(self.name))
            try:
                await self._store.put(_sign(self.name), b"", ttl=HEARTBEAT_TTL_S)
            except BaseException:  # a cancelled task too: nobody would close it
                await self._subscription.close()
                raise
            self._loops = [asyncio.create_task(self._beat()), asyncio.create_task(self._listen())]

    async def close(self) -> None:
        """Take the sign of life away, and leave nothing behind."""
        async with self._opening:
            loops, self._loops = self._loops, []
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            if loops:
                await self._leave()
        # A lock belongs to the loop on which somebody waited for it.
        self._opening = asyncio.Lock()

    async def _leave(self) -> None:
        try:
            if self._subscription is not None:
                await self._subscription.close()
            await self._store.delete(_sign(self.name))
        except StoreError as error:
            _log.warning("the store was not told that this server has ended: %s", error)
        self._subscription = None

    async def is_alive(self, name: str) -> bool:
        """Say whether a runner still works at its tasks."""
        return await self._store.get(_sign(name)) is not None

    async def call(self, name: str, id: str) -> None:
        """Tell another runner that a task of its was changed."""
        await self._store.publish(_ear(name), id.encode())

    # -- as long as the server is open -------------------------------------------------------

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            try:
                # A store that was lost has forgotten it.
                if not await self._store.touch(_sign(self.name), ttl=HEARTBEAT_TTL_S):
                    await self._store.put(_sign(self.name), b"", ttl=HEARTBEAT_TTL_S)
                await self._look()
            except StoreClosed:
                return
            except StoreError as error:
                _log.warning("tasks were not looked at: %s", error)
            except Exception as error:  # noqa: BLE001  # ours; the sign of life is worth more
                _log.error("tasks could not be looked at\n%s", as_redacted(error))

    async def _listen(self) -> None:
        while self._subscription is not None:
            try:
                async for message in self._subscription:
                    await self._hear(message.data.decode(errors="replace"))
                return
            except StoreClosed:
                return
            except StoreError as error:
                _log.warning("calls for tasks are not heard for a while: %s", error)
            await asyncio.sleep(RESUBSCRIBE_DELAY_S)
            try:
                await self._subscription.close()
                self._subscription = await self._store.subscribe(_ear(self.name))
                await self._look()
            except StoreClosed:
                return
            except StoreError as error:
                _log.warning("calls for tasks are still not heard: %s", error)

    async def _hear(self, id: str) -> None:
        try:
            await self._wake(id)
        except Exception as error:  # noqa: BLE001  # the next call may be about another task
            _log.warning("a call for a task came to nothing: %s", as_redacted(error))


def _sign(name: str) -> Key:
    return Key("", "task-runner", name)


def _ear(name: str) -> Key:
    return Key("", "task-wake", name)
