"""The normal form of a JSON Schema: a list of cases for each JSON type.

A case is a conjunction: bounds, values, members, items, and opaque conditions, which are not
analysed. A value is accepted if the opaque conditions hold as well. Ignoring them gives a
superset of the accepted values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, floor
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from ...jsonrpc.messages import Shown, shown_tuple
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

# The keywords that constrain a value. All others are annotations, or unknown and ignored.
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
    """The work that is left, in steps; beyond it schemas become opaque conditions."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> bool:
        """Spend steps; return False if there were not enough left."""
        self.left -= steps
        return self.left >= 0


class Node(NamedTuple):
    """A schema and the document it is part of."""

    schema: Any
    document: SchemaDocument

    def __repr__(self) -> str:
        return shown_tuple(self)


# Schemas that all have to hold; an empty tuple accepts everything.
Conjunction: TypeAlias = tuple[Node, ...]


class Bound(NamedTuple):
    """A minimum or maximum of a number."""

    value: float
    is_exclusive: bool

    def __repr__(self) -> str:
        return shown_tuple(self)


class ObjectMembers(NamedTuple):
    """The schemas of the members of an object."""

    # None if no member is named: then any name has a meaning.
    properties: Mapping[str, Any] | None
    additional: Any
    # With patternProperties, `additional` is true and the condition is opaque.
    has_patterns: bool
    document: SchemaDocument

    def __repr__(self) -> str:
        return shown_tuple(self)

    def member(self, name: str) -> Any:
        """Return the schema of a member."""
        return (self.properties or {}).get(name, self.additional)


class ArrayItems(NamedTuple):
    """The schemas of the items of an array."""

    first: tuple[Any, ...]
    rest: Any
    document: SchemaDocument

    def __repr__(self) -> str:
        return shown_tuple(self)

    def item(self, place: int) -> Any:
        """Return the schema of an item."""
        return self.first[place] if place < len(self.first) else self.rest


class Case(Shown, Struct, frozen=True):
    """Conditions on values of one JSON type, all of which have to hold."""

    # By their canonical text; None allows any value.
    values: Mapping[bytes, Any] | None = None
    is_integer: bool = False
    low: Bound | None = None
    high: Bound | None = None
    multiples: frozenset[float] = frozenset()
    # The length of a string, an array or an object.
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
        """Return the names of the members that have a schema."""
        return frozenset().union(*(part.properties or () for part in self.parts))

    def member(self, name: str) -> Conjunction:
        """Return the schemas of a member."""
        return _sub((part.member(name), part.document) for part in self.parts)

    def additional(self) -> Conjunction:
        """Return the schemas of members that are not named."""
        return _sub((part.additional, part.document) for part in self.parts)

    def is_unknown(self) -> bool:
        """Return True if even the type of the value is opaque."""
        return any(keyword in ("schema", "type") for keyword, _ in self.opaque)

    def names_members(self) -> bool:
        """Return True if only the named members have a meaning."""
        has_names = any(part.properties is not None for part in self.parts)
        return has_names and not any(part.has_patterns for part in self.parts)

    def named_items(self) -> int:
        """Return how many positions of an array have a schema of their own."""
        return max((len(row.first) for row in self.rows), default=0)

    def item(self, place: int) -> Conjunction:
        """Return the schemas of an item."""
        return _sub((row.item(place), row.document) for row in self.rows)


# The alternatives of each type; a type without an entry is not allowed.
CasesByType: TypeAlias = dict[str, tuple[Case, ...]]

ANYTHING: Final = Case()


def _sub(pairs: Iterator[tuple[Any, SchemaDocument]]) -> Conjunction:
    return tuple(Node(schema, document) for schema, document in pairs if not says_nothing(schema))


def is_open(sub: Conjunction) -> bool:
    """Return True if the schemas accept everything, without resolving references."""
    # In an unknown draft any keyword may be a condition.
    return all(says_nothing(node.schema) and node.document.draft for node in sub)


def says_nothing(schema: Any) -> bool:
    """Return True if a schema has no condition."""
    return schema is True or (isinstance(schema, dict) and CONDITIONS.isdisjoint(schema))


def tighter(one: Bound | None, other: Bound | None, sign: int) -> Bound | None:
    """Return the stricter bound; `sign` is 1 for lower bounds and -1 for upper ones."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other, key=lambda bound: (sign * bound.value, bound.is_exclusive))


def whole_low(bound: Bound) -> Bound:
    """Return a lower bound as it applies to integers."""
    value = floor(bound.value) + 1 if bound.is_exclusive else ceil(bound.value)
    return Bound(value, False)


def whole_high(bound: Bound) -> Bound:
    """Return an upper bound as it applies to integers."""
    value = ceil(bound.value) - 1 if bound.is_exclusive else floor(bound.value)
    return Bound(value, False)
