"""What a schema says, taken apart into cases, each about values of one JSON type.

A case is a conjunction: bounds, values, members, items, and opaque conditions, which nobody
takes apart. It allows what it says where its opaque conditions hold too; so whoever ignores
them sees too much, and whoever demands them sees too little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, floor
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from .schema_document import Opaque, SchemaDocument

__all__ = [
    "ANYTHING",
    "CONDITIONS",
    "TYPES",
    "ArrayItems",
    "Bound",
    "Budget",
    "Case",
    "CasesByType",
    "Conjunction",
    "Node",
    "ObjectMembers",
    "is_open",
    "says_nothing",
    "tighter",
    "whole_high",
    "whole_low",
]

TYPES: Final = ("null", "boolean", "number", "string", "array", "object")

# What says something about a value. All else is for people, or unknown and means nothing.
CONDITIONS: Final = frozenset(
    (
        *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if"),
        *("then", "else", "minContains", "maxContains"),
        *("type", "nullable", "enum", "const", "format", "pattern", "minLength", "maxLength"),
        *("contentEncoding", "contentMediaType", "minimum", "maximum", "exclusiveMinimum"),
        *("exclusiveMaximum", "multipleOf", "items", "prefixItems", "additionalItems"),
        *("contains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems", "properties"),
        *("patternProperties", "additionalProperties", "propertyNames", "required"),
        *("dependentRequired", "dependentSchemas", "dependencies", "minProperties"),
        *("maxProperties", "unevaluatedProperties"),
    )
)


class Budget:
    """How much work is left; whoever asks for more than there is gets opaque answers."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> bool:
        """Take a step, or several; say whether there were as many left."""
        self.left -= steps
        return self.left >= 0


class Node(NamedTuple):
    """A schema, and the document it is part of."""

    schema: Any
    document: SchemaDocument


# Schemas that all hold; none at all holds for everything.
Conjunction: TypeAlias = tuple[Node, ...]


class Bound(NamedTuple):
    """A limit of numbers."""

    value: float
    is_exclusive: bool


class ObjectMembers(NamedTuple):
    """What one schema says of the members of an object."""

    # None where members have no names at all: then any name has a meaning.
    properties: Mapping[str, Any] | None
    additional: Any
    # Whether names are also told by pattern; then `additional` is true, and the rest opaque.
    has_patterns: bool
    document: SchemaDocument

    def member(self, name: str) -> Any:
        """Return the schema for a member."""
        return (self.properties or {}).get(name, self.additional)


class ArrayItems(NamedTuple):
    """What one schema says of the items of an array."""

    first: tuple[Any, ...]
    rest: Any
    document: SchemaDocument

    def item(self, place: int) -> Any:
        """Return the schema for an item."""
        return self.first[place] if place < len(self.first) else self.rest


class Case(Struct, frozen=True):
    """Conditions on values of one type; all of them hold."""

    # By their canonical text. None where any value will do.
    values: Mapping[bytes, Any] | None = None
    is_integer: bool = False
    low: Bound | None = None
    high: Bound | None = None
    multiples: frozenset[float] = frozenset()
    # Of a text, an array or an object.
    least: int = 0
    most: int | None = None
    patterns: frozenset[str] = frozenset()
    formats: frozenset[str] = frozenset()
    is_unique: bool = False
    required: frozenset[str] = frozenset()
    parts: tuple[ObjectMembers, ...] = ()
    rows: tuple[ArrayItems, ...] = ()
    opaque: frozenset[Opaque] = frozenset()

    def declared(self) -> frozenset[str]:
        """Return the members that have a name here."""
        return frozenset().union(*(part.properties or () for part in self.parts))

    def member(self, name: str) -> Conjunction:
        """Return what holds for a member."""
        return _sub((part.member(name), part.document) for part in self.parts)

    def additional(self) -> Conjunction:
        """Return what holds for members that have no name here."""
        return _sub((part.additional, part.document) for part in self.parts)

    def is_unknown(self) -> bool:
        """Say whether even the type of the value is not known."""
        return any(keyword in ("schema", "type") for keyword, _ in self.opaque)

    def names_members(self) -> bool:
        """Say whether the members that have a meaning are those that have a name here."""
        is_told = any(part.properties is not None for part in self.parts)
        return is_told and not any(part.has_patterns for part in self.parts)

    def named_items(self) -> int:
        """Return how many places of an array have a schema of their own."""
        return max((len(row.first) for row in self.rows), default=0)

    def item(self, place: int) -> Conjunction:
        """Return what holds for an item."""
        return _sub((row.item(place), row.document) for row in self.rows)


# For each type the alternatives; a type that is not there is not allowed.
CasesByType: TypeAlias = dict[str, tuple[Case, ...]]

ANYTHING: Final = Case()


def _sub(pairs: Iterator[tuple[Any, SchemaDocument]]) -> Conjunction:
    return tuple(Node(schema, document) for schema, document in pairs if not says_nothing(schema))


def is_open(sub: Conjunction) -> bool:
    """Say whether everything is allowed, by the look of it."""
    # Of a draft that nobody here knows, any keyword may be a condition.
    return all(says_nothing(node.schema) and node.document.draft for node in sub)


def says_nothing(schema: Any) -> bool:
    """Say whether a schema has no condition in it."""
    return schema is True or (isinstance(schema, dict) and CONDITIONS.isdisjoint(schema))


def tighter(one: Bound | None, other: Bound | None, sign: int) -> Bound | None:
    """Return the limit that leaves less; `sign` is 1 for lower limits and -1 for upper ones."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other, key=lambda bound: (sign * bound.value, bound.is_exclusive))


def whole_low(bound: Bound) -> Bound:
    """Return a lower limit as it holds for whole numbers."""
    value = floor(bound.value) + 1 if bound.is_exclusive else ceil(bound.value)
    return Bound(value, False)


def whole_high(bound: Bound) -> Bound:
    """Return an upper limit as it holds for whole numbers."""
    value = ceil(bound.value) - 1 if bound.is_exclusive else floor(bound.value)
    return Bound(value, False)
