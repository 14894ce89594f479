"""Trunkline: JSON-RPC 2.0, the Model Context Protocol and Agent2Agent, from one wire core.

Nothing is imported until a name is used; the version is a literal.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import jsonrpc, judge, mcp, spec
    from .client import (
        Client,
        ClientExtension,
        PendingCall,
        ServerChange,
        Subscription,
        SyncClient,
        TaskHandle,
        ToolResult,
    )
    from .errors import (
        Cancelled,
        ConnectionLost,
        InputRequestFailed,
        LocalProtocolError,
        PeerError,
        ProtocolError,
        RemoteProtocolError,
        RequestAborted,
        RequestError,
        RequestTimeout,
        ToolError,
        ToolFailed,
        TooManyRoundTrips,
        TransportError,
        TrunklineError,
    )
    from .server import (
        CacheHint,
        ChoiceTitles,
        Context,
        ElicitationResult,
        Extension,
        MissingCapability,
        ParamHeader,
        Server,
        ServerLimits,
        SocketLimits,
        TaskSettings,
        ToolOutput,
    )
    from .spec.error_kinds import ErrorKind
    from .transports import Stdio, Tcp, Tls, Transport, Unix, memory_pair

__version__ = "0.1.0"

# Where each public name lives; it is loaded when first asked for.  [PEP 562]
_HOMES = {
    "ElicitationResult": "server",
    "CacheHint": "server",
    "PendingCall": "client",
    "Cancelled": "errors",
    "ServerChange": "client",
    "Subscription": "client",
    "Client": "client",
    "ClientExtension": "client",
    "ConnectionLost": "errors",
    "Context": "server",
    "ErrorKind": "spec.error_kinds",
    "Extension": "server",
    "ParamHeader": "server",
    "InputRequestFailed": "errors",
    "LocalProtocolError": "errors",
    "MissingCapability": "server",
    "PeerError": "errors",
    "ProtocolError": "errors",
    "RequestError": "errors",
    "RemoteProtocolError": "errors",
    "RequestAborted": "errors",
    "ToolOutput": "server",
    "Server": "server",
    "ServerLimits": "server",
    "SocketLimits": "server",
    "Stdio": "transports",
    "SyncClient": "client",
    "TaskHandle": "client",
    "TaskSettings": "server",
    "Tcp": "transports",
    "RequestTimeout": "errors",
    "ChoiceTitles": "server",
    "Tls": "transports",
    "TooManyRoundTrips": "errors",
    "ToolError": "errors",
    "ToolFailed": "errors",
    "ToolResult": "client",
    "Transport": "transports",
    "TransportError": "errors",
    "TrunklineError": "errors",
    "Unix": "transports",
    "jsonrpc": "",
    "judge": "",
    "mcp": "",
    "memory_pair": "transports",
    "spec": "",
}

__all__ = [
    "CacheHint",
    "Cancelled",
    "ChoiceTitles",
    "Client",
    "ClientExtension",
    "ConnectionLost",
    "Context",
    "ElicitationResult",
    "ErrorKind",
    "Extension",
    "InputRequestFailed",
    "LocalProtocolError",
    "MissingCapability",
    "ParamHeader",
    "PeerError",
    "PendingCall",
    "ProtocolError",
    "RemoteProtocolError",
    "RequestAborted",
    "RequestError",
    "RequestTimeout",
    "Server",
    "ServerChange",
    "ServerLimits",
    "SocketLimits",
    "Stdio",
    "Subscription",
    "SyncClient",
    "TaskHandle",
    "TaskSettings",
    "Tcp",
    "Tls",
    "TooManyRoundTrips",
    "ToolError",
    "ToolFailed",
    "ToolOutput",
    "ToolResult",
    "Transport",
    "TransportError",
    "TrunklineError",
    "Unix",
    "__version__",
    "jsonrpc",
    "judge",
    "mcp",
    "memory_pair",
    "spec",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = _HOMES[name]
    if not home:
        return import_module(f".{name}", __name__)
    found = getattr(import_module(f".{home}", __name__), name)
    # Kept, so that the next use is a plain lookup.
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
