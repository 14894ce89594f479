"""What is shared between requests, and between processes: one interface, and its drivers.

`base` states what every operation promises; `trunkline.testing.store_contract` checks it for any
driver. Names are imported when they are first used.  [PEP 562]
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "base": "ChannelSubscription Store",
        "errors": (
            "EndReason InvalidKey StoreClosed StoreError StoreFull StoreUnavailable "
            "SubscriptionEnded"
        ),
        "memory": "MemoryStore",
        "values": (
            "Cursor Key Lease LogEntry LogPage Message RecordPage Retention StoreLimits Stored"
        ),
    },
)
