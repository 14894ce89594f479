"""Trunkline: JSON-RPC 2.0, the Model Context Protocol and Agent2Agent, from one wire core.

Nothing is imported until a name is used; the version is a literal.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import jsonrpc, judge, mcp, spec
    from .errors import TrunklineError

__version__ = "0.1.0"

__all__ = ["TrunklineError", "__version__", "jsonrpc", "judge", "mcp", "spec"]

# Where each public name lives; it is loaded when first asked for.  [PEP 562]
_HOMES = {"TrunklineError": "errors", "judge": "", "jsonrpc": "", "mcp": "", "spec": ""}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = _HOMES[name]
    if not home:
        return import_module(f".{name}", __name__)
    return getattr(import_module(f".{home}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
