"""What a store says when it does not do what it was asked.

StoreError                      a TrunklineError
  InvalidKey                    a text that can be no part of a key
  StoreFull                     no room, and nothing has changed
  StoreUnavailable              the engine does not answer: it may have happened, or not
  StoreClosed                   by `close`: nothing happened
  SubscriptionEnded             no more messages will come, for a reason
"""

from __future__ import annotations

from enum import Enum

from ..errors import TrunklineError
from ..redaction import redact

__all__ = [
    "EndReason",
    "InvalidKey",
    "StoreClosed",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "SubscriptionEnded",
]


class StoreError(TrunklineError):
    """A store could not do what it was asked."""


class InvalidKey(StoreError, ValueError):
    """A text that can be no part of a key; it is not repeated, for it may be a secret."""


class StoreFull(StoreError):
    """There is no room, and nothing has changed; `bound` is the field of `StoreLimits`."""

    def __init__(self, bound: str, limit: int) -> None:
        super().__init__(bound, limit)
        self.bound = bound
        self.limit = limit

    def __str__(self) -> str:
        return f"the store is full: {self.bound} is limited to {self.limit}"


class StoreUnavailable(StoreError):
    """The engine does not answer; whether the operation happened is not known.

    Its text is a driver's, and may name the address of the engine: no password is shown of it.
    """

    def __str__(self) -> str:
        return str(redact(super().__str__()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class StoreClosed(StoreError):
    """The store was closed by `close`; nothing happened."""

    def __str__(self) -> str:
        return "the store was closed"


class EndReason(Enum):
    """Why a subscription ended without being closed by its owner."""

    SLOW = "the subscriber fell behind"
    LOST = "the engine was lost for a while, and messages may have been"
    STORE_CLOSED = "the store was closed"


class SubscriptionEnded(StoreError):
    """No more messages will come, and some may be missing; subscribe again, then look anew."""

    def __init__(self, reason: EndReason) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the subscription ended: {self.reason.value}"
