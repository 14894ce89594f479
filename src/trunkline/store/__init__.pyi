# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from .base import ChannelSubscription as ChannelSubscription
from .base import Store as Store
from .errors import EndReason as EndReason
from .errors import InvalidStoreKey as InvalidStoreKey
from .errors import StoreClosed as StoreClosed
from .errors import StoreError as StoreError
from .errors import StoreFull as StoreFull
from .errors import StoreUnavailable as StoreUnavailable
from .errors import SubscriptionEnded as SubscriptionEnded
from .memory import MemoryStore as MemoryStore
from .values import Cursor as Cursor
from .values import Key as Key
from .values import Lease as Lease
from .values import LogEntry as LogEntry
from .values import LogPage as LogPage
from .values import Message as Message
from .values import RecordPage as RecordPage
from .values import Retention as Retention
from .values import StoreLimits as StoreLimits
from .values import Stored as Stored


__all__ = [
    "ChannelSubscription",
    "Cursor",
    "EndReason",
    "InvalidStoreKey",
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
