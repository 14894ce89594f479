"""How frames travel: one module per way, and the rules that all of them keep.

`base` states the rules; `trunkline.testing.transport_contract` checks them for any transport. Only
this package touches the outside world, and it knows neither servers nor clients. A transport
is imported when its name is first used.  [PEP 562]
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "addresses": "Tcp Tls Unix parse_address",
        "base": "Address Frame Transport",
        "memory": "MemoryTransport memory_pair",
        "relay": "Relay",
        "stdio.client": "Stdio",
        "stdio.server": "StdioServer",
        "tap": "Tapped TappedTransport",
    },
)
