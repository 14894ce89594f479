"""Clients of MCP servers: connect, ask, listen, and say what went wrong.

    async with Client(["python", "server.py"]) as client:
        result = await client.call_tool("forecast", {"city": "Oslo"})

Nothing is imported until a name is used.  [PEP 562]
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .calls import Call
    from .client import Client
    from .results import ToolResult

__all__ = ["Call", "Client", "ToolResult"]

_HOMES = {"Call": "calls", "Client": "client", "ToolResult": "results"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
