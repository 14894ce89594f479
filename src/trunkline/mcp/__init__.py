"""The types of the Model Context Protocol as Structs, and their form in each revision.

    from trunkline.mcp import CallToolResult, TextContent

The Structs, all of them in `types`, are built when the first name is used.  [PEP 562]
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import tables as tables
    from . import types as types
    from .types import *  # noqa: F403  # the names are those of a generated file

_MODULES = ("tables", "types")


def __dir__() -> list[str]:
    from . import types

    return sorted([*types.__all__, *_MODULES])


# With this function a type checker would accept every misspelt name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # Tools look up names like `__wrapped__` in every module, which should build nothing.
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "__all__":
            return __dir__()
        from importlib import import_module

        if name in _MODULES:
            return import_module(f".{name}", __name__)
        found = getattr(import_module(".types", __name__), name, None)
        if found is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # Kept, so that the next use is a plain lookup.
        globals()[name] = found
        return found
