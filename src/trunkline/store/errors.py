"""Errors of stores.

StoreError                      a TrunklineError
  InvalidStoreKey               a part of a key is too long or not encodable
  StoreFull                     a limit is reached; nothing has changed
  StoreUnavailable              no response from the engine: the operation may have happened
  StoreClosed                   after `close`; nothing happened
  SubscriptionEnded             no more messages, with a reason
"""

from __future__ import annotations

from enum import Enum

from ..errors import TrunklineError
from ..redaction import redact

__all__ = [
    "EndReason",
    "InvalidStoreKey",
    "StoreClosed",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "SubscriptionEnded",
]


class StoreError(TrunklineError):
    """A store operation failed."""


class InvalidStoreKey(StoreError, ValueError):
    """A part of a key is invalid; the text does not repeat it, since it may be a secret."""


class StoreFull(StoreError):
    """A limit is reached and nothing has changed; `bound` is the field of `StoreLimits`."""

    def __init__(self, bound: str, limit: int) -> None:
        super().__init__(bound, limit)
        self.bound = bound
        self.limit = limit

    def __str__(self) -> str:
        return f"the store is full: {self.bound} is limited to {self.limit}"


class StoreUnavailable(StoreError):
    """The engine does not respond; whether the operation happened is unknown.

    The text comes from the driver and may contain the engine's URL; passwords are redacted.
    """

    def __str__(self) -> str:
        return str(redact(super().__str__()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class StoreClosed(StoreError):
    """The store is closed; nothing happened."""

    def __str__(self) -> str:
        return "the store was closed"


class EndReason(Enum):
    """Why a subscription ended without being closed by its owner."""

    SLOW = "the subscriber fell behind"
    LOST = "the connection to the engine was lost, and messages may be missing"
    STORE_CLOSED = "the store was closed"


class SubscriptionEnded(StoreError):
    """No more messages arrive, and some may be missing; subscribe again, then read the data."""

    def __init__(self, reason: EndReason) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the subscription ended: {self.reason.value}"
