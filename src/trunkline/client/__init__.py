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
    from .requests.call import PendingCall
    from .requests.tool_result import ToolResult
    from .subscriptions.dispatch import ServerChange, SubscriptionTopics
    from .subscriptions.stream import Subscription
    from .sync.client import SyncClient
    from .sync.handles import SyncPendingCall, SyncSubscription, SyncTaskHandle
    from .tasks.task_call import TaskHandle

__all__ = [
    "Client",
    "ClientExtension",
    "PendingCall",
    "ServerChange",
    "Subscription",
    "SubscriptionTopics",
    "SyncClient",
    "SyncPendingCall",
    "SyncSubscription",
    "SyncTaskHandle",
    "TaskHandle",
    "ToolResult",
]

_HOMES = {
    "PendingCall": "requests.call",
    "ServerChange": "subscriptions.dispatch",
    "SubscriptionTopics": "subscriptions.dispatch",
    "Subscription": "subscriptions.stream",
    "Client": "client",
    "ClientExtension": "extensions",
    "SyncPendingCall": "sync.handles",
    "SyncSubscription": "sync.handles",
    "SyncClient": "sync.client",
    "SyncTaskHandle": "sync.handles",
    "TaskHandle": "tasks.task_call",
    "ToolResult": "requests.tool_result",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
