"""The types of one revision of MCP, and a parser of type expressions.

    type_("Tool", "2025-06-18").fields["title"].required
    parse("list<ContentBlock | string>")

The rows are in `mcp/types.py`, and for the tasks extension in `mcp/tasks_extension.py`; they
are loaded on the first lookup. A type is resolved once per revision, on first use, and is
immutable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from .revisions import LATEST, REVISIONS, UnknownRevision, Window, must_be_released
from .rows import Field, Limits, Type, TypeKind

__all__ = [
    "Expr",
    "ExprKind",
    "FieldView",
    "TypeView",
    "UnknownRevision",
    "UnknownType",
    "need",
    "parse",
    "type_",
    "types",
]

ExprKind: TypeAlias = Literal["primitive", "name", "list", "map", "constant", "union"]

PRIMITIVES: Final = frozenset(("string", "integer", "number", "boolean", "null", "any"))


class UnknownType(LookupError):
    """A revision has no type of this name."""


class Expr(NamedTuple):
    """A parsed type expression."""

    kind: ExprKind
    # Of a primitive or a type.
    name: str = ""
    # Of a constant.
    value: str | int | None = None
    # The members of a union; the element type of a list or a map.
    of: tuple[Expr, ...] = ()


class FieldView(NamedTuple):
    """A field as it is in one revision."""

    name: str
    type: str
    required: bool = False
    limits: Limits = ()
    departs: str = ""
    # The extension that adds it to a type of the core.
    extension: str = ""

    @property
    def expr(self) -> Expr:
        """The parsed type of the field."""
        return parse(self.type)


class TypeView(NamedTuple):
    """A type as it is in one revision."""

    name: str
    kind: TypeKind
    # Of an object, by name and in the order of the rows.
    fields: Mapping[str, FieldView]
    # Of a union, an enum (constants) or an alias (one type).
    of: tuple[str, ...] = ()
    open: bool | None = None
    limits: Limits = ()
    doc: str = ""
    departs: str = ""
    # The extension it belongs to; the core has no name.
    extension: str = ""

    @property
    def expr(self) -> Expr:
        """The parsed expression of a union, an enum or an alias; an object is its own name."""
        return parse(" | ".join(self.of) or self.name)


def type_(name: str, revision: str = LATEST) -> TypeView | None:
    """Return the type called `name`, or None if `revision` has none.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    table = _tables.get(revision)
    return (_resolve(revision) if table is None else table).find(name)


def need(name: str, revision: str = LATEST) -> TypeView:
    """Return the type called `name`.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
        UnknownType: `revision` has no such type; the text says which revisions do.
    """
    found = type_(name, revision)
    if found is None:
        others = ", ".join(other for other in REVISIONS if type_(name, other) is not None)
        where = f"it is in {others}" if others else "no revision has it"
        raise UnknownType(f"{revision} has no type {name!r}; {where}")
    return found


def types(revision: str = LATEST) -> Mapping[str, TypeView]:
    """Return every type of `revision` by name, those of known extensions included.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    table = _tables.get(revision)
    return _resolve(revision) if table is None else table


class _TypeTable(Mapping[str, TypeView]):
    """The types of one revision by name, each resolved on first use: most are never needed."""

    __slots__ = ("_made", "_revision", "_rows")

    def __init__(self, revision: str, rows: Mapping[str, tuple[Type, str]]) -> None:
        self._revision = revision
        # With the extension that brings it, or "".
        self._rows = rows
        self._made: dict[str, TypeView] = {}

    def __getitem__(self, name: str) -> TypeView:
        found = self._made.get(name)
        if found is None:
            row, extension = self._rows[name]
            # Two threads may both get here; both get the view that was stored first.
            found = self._made.setdefault(name, _type_view(row, self._revision, extension))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, name: str) -> TypeView | None:
        """Return the type called `name`, or None."""
        return self[name] if name in self._rows else None


# Only released revisions become keys, so invented names cannot grow this.
_tables: dict[str, _TypeTable] = {}


def _resolve(revision: str) -> _TypeTable:
    must_be_released(revision)
    # Imported here: most programs use the generated structs and look up no type.
    from .mcp import tasks_extension as tasks
    from .mcp import types as core

    rows = {row.name: (row, "") for row in core.TYPES if row.when.holds(revision)}
    rows |= {row.name: (row, tasks.EXTENSION) for row in tasks.TYPES if row.when.holds(revision)}
    # As in `_TypeTable.__getitem__`.
    return _tables.setdefault(revision, _TypeTable(revision, rows))


def _type_view(row: Type, revision: str, extension: str) -> TypeView:
    from .mcp import tasks_extension as tasks

    fields = [_field_view(field, revision) for field in row.fields if field.when.holds(revision)]
    fields += [
        _field_view(field, revision, tasks.EXTENSION)
        for name, field in tasks.ADDED_FIELDS
        if name == row.name and field.when.holds(revision)
    ]
    return TypeView(
        row.name,
        row.kind,
        MappingProxyType({field.name: field for field in fields}),
        tuple(member.type for member in row.of if member.when.holds(revision)),
        _open_in(row.open, revision),
        row.limits,
        row.doc,
        row.departs,
        extension,
    )


def _field_view(row: Field, revision: str, extension: str = "") -> FieldView:
    required = row.required
    holds = required.holds(revision) if isinstance(required, Window) else required
    return FieldView(row.name, row.type, holds, row.limits, row.departs, extension)


def _open_in(column: bool | Window | None, revision: str) -> bool | None:
    if isinstance(column, Window):
        return True if column.holds(revision) else None
    return column


# The tokens of an expression. A name may be a path: `Parent.field[]{}`.
_TOKEN: Final = (
    r"\s*(?:(?P<open>list<|map<)|(?P<text>'[^']*')|(?P<number>-?\d+)"
    r"|(?P<name>[A-Za-z_$][\w.$/\[\]{}-]*)|(?P<mark>[|>]))"
)


@cache
def _pattern() -> re.Pattern[str]:
    # On first use: most programs never parse an expression.
    return re.compile(_TOKEN)


def _token(text: str, at: int) -> re.Match[str] | None:
    return _pattern().match(text, at)


# More than the rows have, so that none of theirs is evicted; bounded, since callers may invent
# expressions.
@lru_cache(maxsize=2048)
def parse(expression: str) -> Expr:
    """Parse a type expression.

    Raises:
        ValueError: it is malformed; the text says where.
    """
    found, end = _union(expression, 0)
    if expression[end:].strip():
        raise ValueError(f"{expression!r} is malformed at {expression[end:]!r}")
    return found


def _union(text: str, at: int) -> tuple[Expr, int]:
    # Returns the expression and where it ends.
    first, at = _single(text, at)
    members = [first]
    while (token := _token(text, at)) and token["mark"] == "|":
        member, at = _single(text, token.end())
        members.append(member)
    return (first if len(members) == 1 else Expr("union", of=tuple(members))), at


def _single(text: str, at: int) -> tuple[Expr, int]:
    token = _token(text, at)
    if token is None or token["mark"]:
        raise ValueError(f"{text!r} has no type at {text[at:]!r}")
    if token["open"]:
        return _container(text, token["open"], token.end())
    if token["name"]:
        kind: ExprKind = "primitive" if token["name"] in PRIMITIVES else "name"
        return Expr(kind, token["name"]), token.end()
    value = token["text"][1:-1] if token["text"] else int(token["number"])
    return Expr("constant", value=value), token.end()


def _container(text: str, opening: str, at: int) -> tuple[Expr, int]:
    inner, at = _union(text, at)
    token = _token(text, at)
    if token is None or token["mark"] != ">":
        raise ValueError(f"{text!r} has no '>' at {text[at:]!r}")
    return Expr("list" if opening == "list<" else "map", of=(inner,)), token.end()
