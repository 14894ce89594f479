"""What is shared between requests, and between processes: one interface, and its drivers.

`base` states what every operation promises; `trunkline.testing.store_contract` checks it for any
driver. Names are imported when they are first used.  [PEP 562]
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .base import ChannelSubscription, Store
    from .errors import (
        EndReason,
        InvalidKey,
        StoreClosed,
        StoreError,
        StoreFull,
        StoreUnavailable,
        SubscriptionEnded,
    )
    from .memory import MemoryStore
    from .values import (
        Cursor,
        Key,
        Lease,
        LogEntry,
        LogPage,
        Message,
        RecordPage,
        Retention,
        Stored,
        StoreLimits,
    )

__all__ = [
    "ChannelSubscription",
    "Cursor",
    "EndReason",
    "InvalidKey",
    "Key",
    "Lease",
    "LogEntry",
    "LogPage",
    "MemoryStore",
    "Message",
    "RecordPage",
    "Retention",
    "Store",
    "StoreClosed",
    "StoreError",
    "StoreFull",
    "StoreLimits",
    "StoreUnavailable",
    "Stored",
    "SubscriptionEnded",
]

_HOMES = {
    "Cursor": "values",
    "EndReason": "errors",
    "InvalidKey": "errors",
    "Key": "values",
    "Lease": "values",
    "LogEntry": "values",
    "LogPage": "values",
    "MemoryStore": "memory",
    "Message": "values",
    "RecordPage": "values",
    "Retention": "values",
    "Store": "base",
    "StoreClosed": "errors",
    "StoreError": "errors",
    "StoreFull": "errors",
    "StoreLimits": "values",
    "StoreUnavailable": "errors",
    "Stored": "values",
    "ChannelSubscription": "base",
    "SubscriptionEnded": "errors",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
