"""The spellings of other systems over the same core.

`erlmcp`, `pierre` and `mcpp` give the users of those systems the names they know.
A front holds names, constants and shapes; every rule of a message stays in
`trunkline.jsonrpc`, under the policy that bears the system's name.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import erlmcp, mcpp, pierre

__all__ = ["erlmcp", "mcpp", "pierre"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted(__all__)
