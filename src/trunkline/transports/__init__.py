"""Transports: memory, stdio, TCP, TLS and Unix sockets.

`base` states the contract; `trunkline.testing.transport_contract` checks it for any transport.
Only this package does I/O, and it imports neither servers nor clients. A transport is imported
when its name is first used.  [PEP 562]
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "addresses": "Http Tcp Tls Unix Ws parse_address",
        "base": "Address Frame Transport",
        "http.request": "HttpRequest",
        "http.client.settings": "HttpOptions",
        "http.settings": "HttpLimits HttpSettings",
        "memory": "MemoryTransport memory_pair",
        "relay": "Relay",
        "stdio.client": "Stdio",
        "stdio.server": "StdioServer",
        "tap": "Tapped TappedTransport",
    },
)
