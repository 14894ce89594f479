# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from .client import Client as Client
from .connect.extensions import ClientExtension as ClientExtension
from .requests.call import PendingCall as PendingCall
from .requests.tool_result import ToolResult as ToolResult
from .subscriptions.dispatch import ServerChange as ServerChange
from .subscriptions.dispatch import SubscriptionTopics as SubscriptionTopics
from .subscriptions.stream import Subscription as Subscription
from .sync.client import SyncClient as SyncClient
from .sync.handles import SyncPendingCall as SyncPendingCall
from .sync.handles import SyncSubscription as SyncSubscription
from .sync.handles import SyncTaskHandle as SyncTaskHandle
from .tasks.task_call import TaskHandle as TaskHandle


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
