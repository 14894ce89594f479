"""Who listens to what in one process, and what waits for each of them.

A publisher never waits. A subscriber that lets too much wait is ended with a reason, and its
messages are let go at once: memory is for those who keep up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Self

from .errors import EndReason, StoreFull, SubscriptionEnded
from .expiring_records import ENTRY_COST
from .values import Key, Message, StoreLimits

__all__ = ["Channels"]


class Channels:
    """The subscriptions of one store."""

    def __init__(self, limits: StoreLimits) -> None:
        self._limits = limits
        # The inner dict is a set in order: who came first hears first.
        self._listeners: dict[Key, dict[_Listener, None]] = {}
        self._count = 0

    def listen(self, keys: Iterable[Key]) -> _Listener:
        """Return a new subscription to these channels.

        Raises:
            StoreFull: there is none.
        """
        listener = _Listener(self, self._limits, tuple(dict.fromkeys(keys)))
        if self._count + len(listener.keys) > self._limits.subscriptions:
            raise StoreFull("subscriptions", self._limits.subscriptions)
        self._count += len(listener.keys)
        for key in listener.keys:
            self._listeners.setdefault(key, {})[listener] = None
        return listener

    def publish(self, key: Key, data: bytes) -> None:
        """Hand a message to everyone who listens; those who fall behind are ended."""
        message = Message(key, data)
        for listener in tuple(self._listeners.get(key, ())):
            listener.hand(message)

    def leave(self, listener: _Listener) -> None:
        """Forget a subscription."""
        for key in listener.keys:
            others = self._listeners[key]
            del others[listener]
            if not others:
                del self._listeners[key]
        self._count -= len(listener.keys)

    def end(self, reason: EndReason) -> None:
        """End every subscription."""
        for listener in {one: None for group in self._listeners.values() for one in group}:
            listener.end(reason)


class _Listener:
    """A subscription in the process where the messages are published."""

    def __init__(self, channels: Channels, limits: StoreLimits, keys: tuple[Key, ...]) -> None:
        self.keys = keys
        self._channels = channels
        self._limits = limits
        self._waiting: deque[Message] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        # Whether it has ended, and why; None is by its owner.
        self._is_over = False
        self._reason: EndReason | None = None

    def hand(self, message: Message) -> None:
        """Let a message wait for the subscriber."""
        self._waiting.append(message)
        self._bytes += len(message.data) + ENTRY_COST
        limits = self._limits
        if len(self._waiting) > limits.backlog or self._bytes > limits.backlog_bytes:
            self.end(EndReason.SLOW)
        self._news.set()

    def end(self, reason: EndReason | None) -> None:
        """Let no more messages come, and let go of those that wait."""
        if self._is_over:
            return
        self._is_over = True
        self._reason = reason
        self._waiting.clear()
        self._channels.leave(self)
        self._news.set()

    async def close(self) -> None:
        """End the subscription."""
        self.end(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        # A message is taken out without another wait, so who is cancelled has taken none.
        while not self._waiting:
            if self._is_over:
                if self._reason is None:
                    raise StopAsyncIteration
                raise SubscriptionEnded(self._reason)
            self._news.clear()
            await self._news.wait()
        message = self._waiting.popleft()
        self._bytes -= len(message.data) + ENTRY_COST
        return message
