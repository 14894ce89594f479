"""How frames travel: one module per way, and the rules that all of them keep.

`base` states the rules; `trunkline.testing.transport_contract` checks them for any transport. Only
this package touches the outside world, and it knows neither servers nor clients. A transport
is imported when its name is first used.  [PEP 562]
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .addresses import Tcp, Tls, Unix, parse_address
    from .base import Address, Frame, Transport
    from .memory import MemoryTransport, memory_pair
    from .relay import Relay
    from .stdio.client import Stdio
    from .stdio.server import StdioServer
    from .tap import Tapped, TappedTransport

__all__ = [
    "Address",
    "Frame",
    "MemoryTransport",
    "Relay",
    "Stdio",
    "StdioServer",
    "Tapped",
    "TappedTransport",
    "Tcp",
    "Tls",
    "Transport",
    "Unix",
    "memory_pair",
    "parse_address",
]

_HOMES = {
    "Address": "base",
    "Frame": "base",
    "MemoryTransport": "memory",
    "Relay": "relay",
    "Stdio": "stdio.client",
    "StdioServer": "stdio.server",
    "Tapped": "tap",
    "TappedTransport": "tap",
    "Tcp": "addresses",
    "Tls": "addresses",
    "Transport": "base",
    "Unix": "addresses",
    "memory_pair": "memory",
    "parse_address": "addresses",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
