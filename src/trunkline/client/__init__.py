"""Clients of MCP servers: connect, ask, listen, and say what went wrong.

    async with Client(["python", "server.py"]) as client:
        result = await client.call_tool("forecast", {"city": "Oslo"})

Nothing is imported until a name is used.  [PEP 562]
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "client": "Client",
        "connect.extensions": "ClientExtension",
        "requests.call": "PendingCall",
        "requests.tool_result": "ToolResult",
        "subscriptions.dispatch": "ServerChange SubscriptionTopics",
        "subscriptions.stream": "Subscription",
        "sync.client": "SyncClient",
        "sync.handles": "SyncPendingCall SyncSubscription SyncTaskHandle",
        "tasks.task_call": "TaskHandle",
    },
)
