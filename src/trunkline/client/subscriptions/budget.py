"""Byte budget of one client for notifications that wait for the user's code.

A server decides how many notifications it sends, and how large they are. Those that wait for a
callback or in the buffer of a subscription are held in memory, so they are weighed.

The rules that live here, and only here:

* The queues of a client share one bound: 16 MiB, plus the largest message that its policy permits.
* A notification for an empty queue is always admitted: each queue can hold one message of any size.
* The weight of a notification is the size of its params, plus an estimate of what its JSON values
  take once they are decoded: `[[],[],…]` takes some 25 times its size.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any, Final

from msgspec import UNSET

from ...jsonrpc.limits import Limits

__all__ = ["NotificationBudget", "WeighedCallback", "weigh"]

# Beside the largest message: enough for thousands of notifications of the usual size.
SHARED_BYTES: Final = 16 * 1024 * 1024
# A Python container with its slot in another; the separators of a text are counted in C.
_CONTAINER_BYTES: Final = 64
_SEPARATORS: Final = (b",", b"[", b"{")


class NotificationBudget:
    """The bytes that notifications of one client hold, and how many were dropped."""

    __slots__ = ("_dropped", "_held", "_lock", "max_bytes")

    def __init__(self, limits: Limits) -> None:
        self.max_bytes = SHARED_BYTES + limits.largest_message
        # The thread of synchronous callbacks releases what the event loop took.
        self._lock = threading.Lock()
        self._held = 0
        self._dropped = 0

    @property
    def held(self) -> int:
        """The weight of all notifications that wait."""
        return self._held

    @property
    def dropped(self) -> int:
        """The number of notifications that were dropped."""
        return self._dropped

    def take(self, weight: int, *, is_empty: bool) -> bool:
        """Admit a notification to a queue; return False, and count it, if it is to be dropped."""
        with self._lock:
            if not is_empty and self._held + weight > self.max_bytes:
                self._dropped += 1
                return False
            self._held += weight
            return True

    def release(self, weight: int) -> None:
        """Release a notification that was taken."""
        with self._lock:
            self._held -= weight

    def drop(self) -> None:
        """Count a notification that is dropped for another reason, such as its number."""
        with self._lock:
            self._dropped += 1


class WeighedCallback(ABC):
    """A callback with a queue of its own, which is called with the weight of a notification."""

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> object:
        """Queue a call that is not about a notification."""

    @abstractmethod
    def call_weighed(self, weight: int, *args: Any) -> None:
        """Queue a call, or drop it if the budget is used up."""


def weigh(params: Any) -> int:
    """Return the bytes that the raw params of a notification take, before or after decoding."""
    if params is UNSET:
        return 0
    text = bytes(params)
    return len(text) + _CONTAINER_BYTES * sum(map(text.count, _SEPARATORS))
