"""MCP servers: what an author registers, served to any client in any revision.

    from trunkline import Server, Context

Nothing is imported until a name is used.  [PEP 562]
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .app import Server
    from .client_requests.client_request import (
        AcceptedElicitation,
        ClientRequest,
        DeclinedElicitation,
        ElicitationResult,
        InvalidClientResponse,
        MissingCapability,
    )
    from .client_requests.form import ChoiceTitles
    from .client_requests.multi_round_trip import (
        InvalidRequestState,
        ReplayMismatch,
        RequestStateTooLarge,
        RoundTripLimitExceeded,
    )
    from .context import Context
    from .extensions import Extension
    from .handlers.arguments import ParamHeader
    from .handlers.output import ToolOutput
    from .runtime.listener import ServerListener
    from .settings import CacheHint, ServerLimits, SocketLimits, TaskSettings

__all__ = [
    "AcceptedElicitation",
    "CacheHint",
    "ChoiceTitles",
    "ClientRequest",
    "Context",
    "DeclinedElicitation",
    "ElicitationResult",
    "Extension",
    "InvalidClientResponse",
    "InvalidRequestState",
    "MissingCapability",
    "ParamHeader",
    "ReplayMismatch",
    "RequestStateTooLarge",
    "RoundTripLimitExceeded",
    "Server",
    "ServerLimits",
    "ServerListener",
    "SocketLimits",
    "TaskSettings",
    "ToolOutput",
]

_HOMES = {
    "AcceptedElicitation": "client_requests.client_request",
    "ElicitationResult": "client_requests.client_request",
    "ClientRequest": "client_requests.client_request",
    "InvalidClientResponse": "client_requests.client_request",
    "CacheHint": "settings",
    "ReplayMismatch": "client_requests.multi_round_trip",
    "Context": "context",
    "DeclinedElicitation": "client_requests.client_request",
    "Extension": "extensions",
    "ParamHeader": "handlers.arguments",
    "InvalidRequestState": "client_requests.multi_round_trip",
    "ServerListener": "runtime.listener",
    "MissingCapability": "client_requests.client_request",
    "ToolOutput": "handlers.output",
    "RoundTripLimitExceeded": "client_requests.multi_round_trip",
    "Server": "app",
    "ServerLimits": "settings",
    "SocketLimits": "settings",
    "RequestStateTooLarge": "client_requests.multi_round_trip",
    "TaskSettings": "settings",
    "ChoiceTitles": "client_requests.form",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
