"""The Model Context Protocol: its values as Structs, and what each revision makes of them.

    from trunkline.mcp import CallToolResult, TextContent

Importing this package builds nothing. The Structs, every one of them in `types`, are made
when the first name is used; a decoder is made by whoever needs it.  [PEP 562]
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


# A type checker that saw this would take every misspelt name for one that exists.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # Tools look for names like `__wrapped__` in every module; that is no use of this one.
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
