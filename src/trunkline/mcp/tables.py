"""The members of a Struct in one revision, and the Structs of a method.

`types.py` has one Struct per type for all revisions. These tables list the members in one of
them, by their names on the wire:

    drops("Tool", "2024-11-05")      members that the revision does not have
    requires("Tool", "2024-11-05")   members that must be present
    knows("AudioContent", "2024-11-05")   False: the revision does not have the type

A type is named by its Struct or by its row, so `type(value).__name__` works. Tables are built on
first use, and cached.

The tables are about presence alone. A member whose type changed (`elicitation` was any
object before its members were listed) stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ..spec.lookup import method as _method
from ..spec.revisions import REVISIONS
from ..spec.types import FieldView, UnknownType, parse, type_, types

__all__ = [
    "FORMERLY",
    "MERGED",
    "class_name",
    "drops",
    "knows",
    "members",
    "params_type",
    "requires",
    "result_type",
    "result_types",
]

# Structs that represent several types, with the members of all: msgspec tells types apart by a
# constant member only, and these have none.
MERGED: Final[Mapping[str, tuple[str, ...]]] = {
    "ResourceContents": ("TextResourceContents", "BlobResourceContents"),
}

# The earlier names of types; the members are the same.
FORMERLY: Final[Mapping[str, str]] = {
    "ListRootsRequestParams": "RequestParams",
    "ResourceTemplateReference": "ResourceReference",
}

# Results that may be returned in place of the usual one.
_INSTEAD: Final = frozenset(("CreateTaskResult", "InputRequiredResult"))


class _Presence(NamedTuple):
    drops: frozenset[str]
    requires: frozenset[str]


def drops(type_name: str, revision: str) -> frozenset[str]:
    """Return the members of a Struct that `revision` does not know.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
        UnknownType: `revision` does not have the type, or it has no Struct.
    """
    return _presence(type_name, revision).drops


def requires(type_name: str, revision: str) -> frozenset[str]:
    """Return the members that a value must have in `revision`.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
        UnknownType: `revision` does not have the type, or it has no Struct.
    """
    return _presence(type_name, revision).requires


def knows(type_name: str, revision: str) -> bool:
    """Return True if `revision` has a type.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
    """
    return members(type_name, revision) is not None


def params_type(method: str, revision: str) -> Any:
    """Return the Struct of the params of a method or notification, or None.

    None is a method that `revision` does not have.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
    """
    row = _method(method, revision)
    return None if row is None or row.params is None else _wire_type(row.params)


def result_type(method: str, revision: str) -> Any:
    """Return the type of the usual result of a method, or None.

    It is a Struct; only the result of a task of 2025-11-25, which may be any, is a dict.
    None is a notification, or a method that `revision` does not have.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
    """
    return next(iter(result_types(method, revision)), None)


def result_types(method: str, revision: str) -> tuple[Any, ...]:
    """Return the types that a result may have: the usual one, then the others.

    A client tries them in turn. Most results are of the first, and are decoded in one pass.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
    """
    row = _method(method, revision)
    if row is None or row.result is None:
        return ()
    expr = parse(row.result)
    names = [member.name for member in expr.of or (expr,)]
    return tuple(_wire_type(name) for name in sorted(names, key=_INSTEAD.__contains__))


def class_name(type_name: str) -> str:
    """Return the name of the Struct of a type: `CompleteResultCompletion`, without dots."""
    # A name that ends in Error has the word once: `XError.error.data` is `XErrorData`.
    first, *places = type_name.replace("Error.error.", "Error.").split(".")
    return first + "".join(place[:1].upper() + place[1:] for place in places)


def members(type_name: str, revision: str) -> Mapping[str, FieldView] | None:
    """Return the members of a Struct in `revision`, or None where that lacks the type.

    A union has the members of all its types; those that each type requires are required.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
    """
    if type_name in MERGED:
        return _merged(MERGED[type_name], revision)
    name = _row_names(revision).get(class_name(type_name), "")
    view = type_(name, revision) or type_(FORMERLY.get(type_name, ""), revision)
    if view is None:
        return None
    return view.fields if view.kind == "object" else _merged(view.of, revision)


# One key per Struct and released revision: unknown names are not cached.
_found: dict[tuple[str, str], _Presence] = {}


def _presence(type_name: str, revision: str) -> _Presence:
    key = type_name, revision
    found = _found.get(key)
    return _found.setdefault(key, _resolve(type_name, revision)) if found is None else found


def _resolve(type_name: str, revision: str) -> _Presence:
    struct = _wire_type(class_name(type_name))
    if not hasattr(struct, "__struct_encode_fields__"):
        raise UnknownType(f"there is no Struct of {type_name!r}")
    known = members(type_name, revision)
    if known is None:
        others = ", ".join(other for other in REVISIONS if knows(type_name, other))
        where = f"it is in {others}" if others else "no revision has it"
        raise UnknownType(f"{revision} has no type {type_name!r}; {where}")
    required = (name for name, field in known.items() if field.required)
    return _Presence(frozenset(struct.__struct_encode_fields__) - set(known), frozenset(required))


def _wire_type(type_name: str) -> Any:
    # Imported here: building all Structs takes time.
    from . import types as wire

    return getattr(wire, type_name, None)


@lru_cache(maxsize=len(REVISIONS))
def _row_names(revision: str) -> Mapping[str, str]:
    return {class_name(name): name for name in types(revision)}


def _merged(type_names: Iterable[str], revision: str) -> Mapping[str, FieldView]:
    """Return the members of several types as those of one."""
    parts = [view.fields for name in type_names if (view := type_(name, revision))]
    names = {name: None for part in parts for name in part}
    return {
        name: _joined([part[name] for part in parts if name in part], len(parts)) for name in names
    }


def _joined(fields: list[FieldView], parts: int) -> FieldView:
    """Return one member of `parts` types, of which some have it."""
    kinds = " | ".join(dict.fromkeys(field.type for field in fields))
    required = len(fields) == parts and all(field.required for field in fields)
    limits = fields[0].limits if len({field.limits for field in fields}) == 1 else ()
    return fields[0]._replace(type=kinds, required=required, limits=limits)
