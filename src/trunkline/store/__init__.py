"""Stores: shared state of requests and processes, with one interface and several drivers.

`base` states the contract of every operation; `trunkline.testing.store_contract` tests it for any
driver. Names are imported on first use.  [PEP 562]
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "base": "ChannelSubscription Store",
        "errors": (
            "EndReason InvalidStoreKey StoreClosed StoreError StoreFull StoreUnavailable "
            "SubscriptionEnded"
        ),
        "memory": "MemoryStore",
        "values": (
            "Cursor Key Lease LogEntry LogPage Message RecordPage Retention StoreLimits Stored"
        ),
    },
)
