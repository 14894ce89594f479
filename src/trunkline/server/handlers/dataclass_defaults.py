"""Defaults of dataclasses that were decoded from JSON.

The decoder leaves a field that was not sent to the default on the class; the encoder looks at
the instance alone, and would leave the field out. So decoded dataclasses get all their fields,
where a type can hold a dataclass at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, get_args, get_type_hints

from msgspec import Struct

__all__ = ["filled", "filler"]

# Marks a dataclass; importing `dataclasses` would slow down the start.
_FIELDS: Final = "__dataclass_fields__"


def filler(kind: Any) -> Callable[[Any], Any] | None:
    """Return `filled` if a type can hold a dataclass, else None."""
    return filled if _may_hold_dataclass(kind, set()) else None


def _may_hold_dataclass(kind: Any, seen: set[int]) -> bool:
    if hasattr(kind, _FIELDS):
        return True
    if id(kind) in seen:
        return False  # a type may contain itself
    seen.add(id(kind))
    inner = list(get_args(kind))
    if isinstance(kind, type) and hasattr(kind, "__annotations__"):
        try:
            inner += get_type_hints(kind).values()
        except (NameError, TypeError, AttributeError):
            return True  # names that cannot be resolved here: look at each value
    return any(_may_hold_dataclass(each, seen) for each in inner)


def filled(value: Any) -> Any:
    """Return the value, in which every dataclass instance has all its fields."""
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            filled(item)
    elif isinstance(value, dict):
        for item in value.values():
            filled(item)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            filled(getattr(value, name))
    elif hasattr(value, _FIELDS) and not isinstance(value, type):
        # With slots every field is set.
        own = getattr(value, "__dict__", None)
        for name in getattr(value, _FIELDS):
            member = getattr(value, name, None)
            if own is not None and name not in own and hasattr(value, name):
                object.__setattr__(value, name, member)  # also where it is frozen
            filled(member)
    return value
