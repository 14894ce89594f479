"""Clients of MCP servers: connect, ask, listen, and say what went wrong.

    async with Client(["python", "server.py"]) as client:
        result = await client.call_tool("forecast", {"city": "Oslo"})

Nothing is imported until a name is used.  [PEP 562]
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .calls import Call
    from .changes import ChangeStream
    from .client import Client
    from .extensions import ClientExtension
    from .listening import Change, ChangeFilter
    from .results import ToolResult
    from .sync import SyncClient
    from .sync_calls import SyncCall, SyncChangeStream, SyncTaskCall
    from .task_calls import TaskCall

__all__ = [
    "Call",
    "Change",
    "ChangeFilter",
    "ChangeStream",
    "Client",
    "ClientExtension",
    "SyncCall",
    "SyncChangeStream",
    "SyncClient",
    "SyncTaskCall",
    "TaskCall",
    "ToolResult",
]

_HOMES = {
    "Call": "calls",
    "Change": "listening",
    "ChangeFilter": "listening",
    "ChangeStream": "changes",
    "Client": "client",
    "ClientExtension": "extensions",
    "SyncCall": "sync_calls",
    "SyncChangeStream": "sync_calls",
    "SyncClient": "sync",
    "SyncTaskCall": "sync_calls",
    "TaskCall": "task_calls",
    "ToolResult": "results",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
