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
    from .results import Result
    from .settings import Cache, ServerLimits

__all__ = ["Cache", "Context", "Header", "Result", "Server", "ServerLimits"]

_HOMES = {
    "Cache": "settings",
    "Context": "context",
    "Header": "arguments",
    "Result": "results",
    "Server": "app",
    "ServerLimits": "settings",
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
