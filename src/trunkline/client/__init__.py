"""Clients of MCP servers: connect, ask, listen, and say what went wrong.

    async with Client(["python", "server.py"]) as client:
        result = await client.call_tool("forecast", {"city": "Oslo"})

Nothing is imported until a name is used.  [PEP 562]
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .client import Client
    from .extensions import ClientExtension
    from .requests.call import Call
    from .requests.tool_result import ToolResult
    from .subscriptions.dispatch import Change, ChangeFilter
    from .subscriptions.stream import ChangeStream
    from .sync.client import SyncClient
    from .sync.handles import SyncCall, SyncChangeStream, SyncTaskCall
    from .tasks.task_call import TaskCall

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
    "Call": "requests.call",
    "Change": "subscriptions.dispatch",
    "ChangeFilter": "subscriptions.dispatch",
    "ChangeStream": "subscriptions.stream",
    "Client": "client",
    "ClientExtension": "extensions",
    "SyncCall": "sync.handles",
    "SyncChangeStream": "sync.handles",
    "SyncClient": "sync.client",
    "SyncTaskCall": "sync.handles",
    "TaskCall": "tasks.task_call",
    "ToolResult": "requests.tool_result",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
