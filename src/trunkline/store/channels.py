"""Publish/subscribe channels within one process.

A publisher never waits. A subscription whose queue exceeds its limit ends as SLOW, and its queue is
dropped at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Self

from .errors import EndReason, StoreFull, SubscriptionEnded
from .expiring_records import ENTRY_COST_BYTES
from .values import Key, Message, StoreLimits

__all__ = ["Channels"]


class Channels:
    """The subscriptions of one store."""

    def __init__(self, limits: StoreLimits) -> None:
        self._limits = limits
        # The inner dict is an ordered set: messages are delivered in order of subscription.
        self._subscriptions: dict[Key, dict[_MemorySubscription, None]] = {}
        self._count = 0

    def subscribe(self, keys: Iterable[Key]) -> _MemorySubscription:
        """Return a new subscription to these channels.

        Raises:
            StoreFull: the limit of subscriptions is reached.
        """
        subscription = _MemorySubscription(self, self._limits, tuple(dict.fromkeys(keys)))
        if self._count + len(subscription.keys) > self._limits.subscriptions:
            raise StoreFull("subscriptions", self._limits.subscriptions)
        self._count += len(subscription.keys)
        for key in subscription.keys:
            self._subscriptions.setdefault(key, {})[subscription] = None
        return subscription

    def publish(self, key: Key, data: bytes) -> None:
        """Deliver a message to the subscribers of a channel; end those that are too slow."""
        message = Message(key, data)
        for subscription in tuple(self._subscriptions.get(key, ())):
            subscription.deliver(message)

    def leave(self, subscription: _MemorySubscription) -> None:
        """Remove a subscription."""
        for key in subscription.keys:
            others = self._subscriptions[key]
            del others[subscription]
            if not others:
                del self._subscriptions[key]
        self._count -= len(subscription.keys)

    def end(self, reason: EndReason) -> None:
        """End every subscription."""
        for subscription in {one: None for group in self._subscriptions.values() for one in group}:
            subscription.end(reason)


class _MemorySubscription:
    """A `ChannelSubscription` in the process of its publishers."""

    def __init__(self, channels: Channels, limits: StoreLimits, keys: tuple[Key, ...]) -> None:
        self.keys = keys
        self._channels = channels
        self._limits = limits
        self._waiting: deque[Message] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        # None as the reason: closed by its owner.
        self._is_over = False
        self._reason: EndReason | None = None

    def deliver(self, message: Message) -> None:
        """Queue a message for the subscriber."""
        self._waiting.append(message)
        self._bytes += len(message.data) + ENTRY_COST_BYTES
        limits = self._limits
        if len(self._waiting) > limits.backlog or self._bytes > limits.backlog_bytes:
            self.end(EndReason.SLOW)
        self._changed.set()

    def end(self, reason: EndReason | None) -> None:
        """End the subscription and drop its queue."""
        if self._is_over:
            return
        self._is_over = True
        self._reason = reason
        self._waiting.clear()
        self._channels.leave(self)
        self._changed.set()

    async def close(self) -> None:
        """End the subscription."""
        self.end(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        # No await after a message is dequeued, so that a cancellation loses none.
        while not self._waiting:
            if self._is_over:
                if self._reason is None:
                    raise StopAsyncIteration
                raise SubscriptionEnded(self._reason)
            self._changed.clear()
            await self._changed.wait()
        message = self._waiting.popleft()
        self._bytes -= len(message.data) + ENTRY_COST_BYTES
        return message
