"""MCP servers: what an author registers, served to any client in any revision.

    from trunkline import Server, Context

Nothing is imported until a name is used.  [PEP 562]
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .app import Server
    from .arguments import Header
    from .context import Context
    from .extensions import Extension
    from .forms import Titles
    from .questions import Accepted, Answer, Ask, BadAnswer, Declined, MissingCapability
    from .results import Result
    from .rounds import ChangedQuestion, InvalidState, RoundLimit, StateTooLarge
    from .settings import Cache, ServerLimits, SocketLimits, TaskSettings
    from .sockets import Listening

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
    "Accepted": "questions",
    "Answer": "questions",
    "Ask": "questions",
    "BadAnswer": "questions",
    "Cache": "settings",
    "ChangedQuestion": "rounds",
    "Context": "context",
    "Declined": "questions",
    "Extension": "extensions",
    "Header": "arguments",
    "InvalidState": "rounds",
    "Listening": "sockets",
    "MissingCapability": "questions",
    "Result": "results",
    "RoundLimit": "rounds",
    "Server": "app",
    "ServerLimits": "settings",
    "SocketLimits": "settings",
    "StateTooLarge": "rounds",
    "TaskSettings": "settings",
    "Titles": "forms",
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
