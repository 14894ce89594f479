"""Dataclasses that were read from JSON, with the defaults of what was left out in them.

The reader leaves a member that was not sent to the class, which has its default; the writer
looks at the object alone, and would leave it out. So what was read is filled in, where its
type can hold a dataclass at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, get_args, get_type_hints

from msgspec import Struct

__all__ = ["filled", "filler"]

# What tells a dataclass; the module itself takes its time to load.
_FIELDS: Final = "__dataclass_fields__"


def filler(kind: Any) -> Callable[[Any], Any] | None:
    """Return what fills in values of a type, or None where nothing is ever left out."""
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
            return True  # names that cannot be found here: looked for in each value
    return any(_may_hold_dataclass(each, seen) for each in inner)


def filled(value: Any) -> Any:
    """Return a value, in which every dataclass has all its members itself."""
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
        # One with slots has no place that could be empty.
        own = getattr(value, "__dict__", None)
        for name in getattr(value, _FIELDS):
            member = getattr(value, name, None)
            if own is not None and name not in own and hasattr(value, name):
                object.__setattr__(value, name, member)  # also where it is frozen
            filled(member)
    return value
