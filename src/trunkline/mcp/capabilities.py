"""Declared capabilities: whether a Struct of capabilities contains one, by its wire path."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["declares"]


def declares(capabilities: Struct, path: str) -> bool:
    """Return True if a capability was declared, by its path such as `tools.listChanged`."""
    held: object = capabilities
    while path:
        # The rest of the path may be one name: ids of extensions contain dots.
        if isinstance(held, dict) and path in held:
            return held[path] is not False
        step, _, path = path.partition(".")
        held = held.get(step) if isinstance(held, dict) else _member(held, step)
        if held is None or held is False:
            return False
    return True


def _member(value: object, name: str) -> object:
    """Return a member of a Struct by its wire name."""
    if isinstance(value, Struct):
        names = dict(zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True))
        return getattr(value, names.get(name, ""), None)
    return None
