"""MCP servers: what an author registers, served to any client in any revision.

    from trunkline import Server, Context

Nothing is imported until a name is used.  [PEP 562]
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .app import Server
    from .client_requests.client_request import (
        Accepted,
        Answer,
        Ask,
        BadAnswer,
        Declined,
        MissingCapability,
    )
    from .client_requests.form import Titles
    from .client_requests.multi_round_trip import (
        ChangedQuestion,
        InvalidState,
        RoundLimit,
        StateTooLarge,
    )
    from .context import Context
    from .extensions import Extension
    from .handlers.arguments import Header
    from .handlers.output import Result
    from .runtime.listener import Listening
    from .settings import Cache, ServerLimits, SocketLimits, TaskSettings

__all__ = [
    "Accepted",
    "Answer",
    "Ask",
    "BadAnswer",
    "Cache",
    "ChangedQuestion",
    "Context",
    "Declined",
    "Extension",
    "Header",
    "InvalidState",
    "Listening",
    "MissingCapability",
    "Result",
    "RoundLimit",
    "Server",
    "ServerLimits",
    "SocketLimits",
    "StateTooLarge",
    "TaskSettings",
    "Titles",
]

_HOMES = {
    "Accepted": "client_requests.client_request",
    "Answer": "client_requests.client_request",
    "Ask": "client_requests.client_request",
    "BadAnswer": "client_requests.client_request",
    "Cache": "settings",
    "ChangedQuestion": "client_requests.multi_round_trip",
    "Context": "context",
    "Declined": "client_requests.client_request",
    "Extension": "extensions",
    "Header": "handlers.arguments",
    "InvalidState": "client_requests.multi_round_trip",
    "Listening": "runtime.listener",
    "MissingCapability": "client_requests.client_request",
    "Result": "handlers.output",
    "RoundLimit": "client_requests.multi_round_trip",
    "Server": "app",
    "ServerLimits": "settings",
    "SocketLimits": "settings",
    "StateTooLarge": "client_requests.multi_round_trip",
    "TaskSettings": "settings",
    "Titles": "client_requests.form",
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
