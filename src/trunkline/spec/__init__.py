"""The specifications as rows: consulted by the whole library, calling none of it.

    from trunkline import spec

    spec.method("tools/call", "2025-06-18").result
    spec.explain_method("ping")
    spec.error(-32602)
    spec.diff("2025-11-25", "2026-07-28")

Rows are loaded when something asks for them. `all_types` is the function that
`trunkline.spec.types` calls `types`: here that name is the module.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .lookup import (
        Specification,
        capabilities,
        capability,
        error,
        errors,
        explain_method,
        header,
        headers,
        meta_key,
        meta_keys,
        method,
        method_status,
        methods,
        specification,
        transport,
        transports,
    )
    from .meta_key_check import MetaProblem, check_meta_key
    from .revision_diff import Detail, Diff, SpecChange, diff
    from .schemas import json_schema
    from .types import type_ as type
    from .types import types as all_types

__all__ = [
    "Detail",
    "Diff",
    "MetaProblem",
    "SpecChange",
    "Specification",
    "all_types",
    "capabilities",
    "capability",
    "check_meta_key",
    "diff",
    "error",
    "errors",
    "explain_method",
    "header",
    "headers",
    "json_schema",
    "meta_key",
    "meta_keys",
    "method",
    "method_status",
    "methods",
    "specification",
    "transport",
    "transports",
    "type",
]

# Where each public name lives, and as what; it is loaded when first asked for.  [PEP 562]
_HOMES = {name: ("lookup", name) for name in __all__} | {
    "SpecChange": ("revision_diff", "SpecChange"),
    "Detail": ("revision_diff", "Detail"),
    "Diff": ("revision_diff", "Diff"),
    "diff": ("revision_diff", "diff"),
    "MetaProblem": ("meta_key_check", "MetaProblem"),
    "check_meta_key": ("meta_key_check", "check_meta_key"),
    "json_schema": ("schemas", "json_schema"),
    "type": ("types", "type_"),
    "all_types": ("types", "types"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home, there = _HOMES[name]
    found: object = getattr(import_module(f".{home}", __name__), there)
    # Kept, so that the next use costs what any name of a module does.
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
