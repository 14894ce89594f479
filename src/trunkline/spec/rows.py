"""The shapes of the rows that specifications are written down in.

Rows are plain named tuples: immutable, cheap to make, loaded only by the
lookups that need them. They state facts and call nothing.
"""

# No `from __future__ import annotations`: a named tuple would compile each of them as a text.
from typing import Literal, NamedTuple, TypeAlias

from .revisions import Window

__all__ = ["ErrorCode", "Field", "Limits", "Member", "Retry", "Severity", "Type", "TypeKind"]

# One vocabulary for the three that the described systems use.
Severity: TypeAlias = Literal["critical", "error", "warning", "info"]
Retry: TypeAlias = Literal["retry", "abort", "fallback"]

ALWAYS = Window()


class ErrorCode(NamedTuple):
    """One error number of one profile: what it is called and what it means."""

    number: int
    symbol: str
    message: str
    category: str
    severity: Severity = "error"
    retry: Retry = "abort"
    # The HTTP status a server answers with, where the profile knows one.
    http: int | None = None
    # The members of `data` that a named constructor fills, in order.
    data: tuple[str, ...] = ()
    when: Window = ALWAYS
    # False for a number that is understood when read but may not be sent.
    sent: bool = True
    # The row of the list this was taken from, where it has a name of its own.
    ref: str = ""


# A type is written as a short text: `string`, `integer`, `number`, `boolean`, `null`, `any`,
# the name of a type, `list<X>`, `map<X>`, a constant (`'text'`, `-32602`), or `A | B`.
# `trunkline.spec.types.parse` reads it.
TypeKind: TypeAlias = Literal["object", "union", "enum", "alias"]

# What else a value must be: keywords of JSON Schema and their values.
Limits: TypeAlias = tuple[tuple[str, object], ...]


class Field(NamedTuple):
    """One member of an object type. One whose type changes has a row for each type."""

    name: str
    type: str
    # A window where the field is required in some of the revisions that have it.
    required: bool | Window = False
    # Within the window of its type: the default is "as long as the type".
    when: Window = ALWAYS
    limits: Limits = ()
    # Why this differs from the official schema file, in every revision of its window.
    departs: str = ""


class Member(NamedTuple):
    """One thing that a union, an enum or an alias may be."""

    type: str
    when: Window = ALWAYS


class Type(NamedTuple):
    """One type of a specification. One whose kind changes has a row for each kind."""

    name: str
    kind: TypeKind
    # The members of an object.
    fields: tuple[Field, ...] = ()
    # The types of a union, the constants of an enum, the one type of an alias.
    of: tuple[Member, ...] = ()
    when: Window = ALWAYS
    # Whether it invites members that it does not list (True), or forbids them (False).
    # None is the usual case: they are neither expected nor wrong.
    open: bool | Window | None = None
    limits: Limits = ()
    doc: str = ""
    # Why this differs from the official schema file, in some revision, apart from its fields.
    departs: str = ""
