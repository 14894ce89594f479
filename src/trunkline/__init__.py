"""Trunkline: JSON-RPC 2.0, the Model Context Protocol and Agent2Agent, from one wire core.

Nothing is imported until a name is used; the version is a literal.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import jsonrpc, judge, mcp, spec
    from .client import (
        Call,
        Change,
        ChangeStream,
        Client,
        ClientExtension,
        SyncClient,
        TaskCall,
        ToolResult,
    )
    from .errors import (
        Cancelled,
        ConnectionLost,
        InputFailed,
        LocalProtocolError,
        PeerError,
        ProtocolError,
        Refusal,
        RemoteProtocolError,
        RequestEnded,
        TimedOut,
        ToolError,
        ToolFailed,
        TooManyRounds,
        TransportError,
        TrunklineError,
    )
    from .server import (
        Answer,
        Cache,
        Context,
        Extension,
        Header,
        MissingCapability,
        Result,
        Server,
        ServerLimits,
        SocketLimits,
        TaskSettings,
        Titles,
    )
    from .spec.error_kinds import ErrorKind
    from .transports import Stdio, Tcp, Tls, Transport, Unix, memory_pair

__version__ = "0.1.0"

# Where each public name lives; it is loaded when first asked for.  [PEP 562]
_HOMES = {
    "Answer": "server",
    "Cache": "server",
    "Call": "client",
    "Cancelled": "errors",
    "Change": "client",
    "ChangeStream": "client",
    "Client": "client",
    "ClientExtension": "client",
    "ConnectionLost": "errors",
    "Context": "server",
    "ErrorKind": "spec.error_kinds",
    "Extension": "server",
    "Header": "server",
    "InputFailed": "errors",
    "LocalProtocolError": "errors",
    "MissingCapability": "server",
    "PeerError": "errors",
    "ProtocolError": "errors",
    "Refusal": "errors",
    "RemoteProtocolError": "errors",
    "RequestEnded": "errors",
    "Result": "server",
    "Server": "server",
    "ServerLimits": "server",
    "SocketLimits": "server",
    "Stdio": "transports",
    "SyncClient": "client",
    "TaskCall": "client",
    "TaskSettings": "server",
    "Tcp": "transports",
    "TimedOut": "errors",
    "Titles": "server",
    "Tls": "transports",
    "TooManyRounds": "errors",
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
    "Answer",
    "Cache",
    "Call",
    "Cancelled",
    "Change",
    "ChangeStream",
    "Client",
    "ClientExtension",
    "ConnectionLost",
    "Context",
    "ErrorKind",
    "Extension",
    "Header",
    "InputFailed",
    "LocalProtocolError",
    "MissingCapability",
    "PeerError",
    "ProtocolError",
    "Refusal",
    "RemoteProtocolError",
    "RequestEnded",
    "Result",
    "Server",
    "ServerLimits",
    "SocketLimits",
    "Stdio",
    "SyncClient",
    "TaskCall",
    "TaskSettings",
    "Tcp",
    "TimedOut",
    "Titles",
    "Tls",
    "TooManyRounds",
    "ToolError",
    "ToolFailed",
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
