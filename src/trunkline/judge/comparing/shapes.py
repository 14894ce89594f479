"""JSON Schemas taken apart into cases, each about values of one JSON type.

A case is a conjunction: bounds, values, members, items. A schema is, for each type, a list of
alternatives; references are followed, `allOf` is merged, `anyOf` and `oneOf` become
alternatives. Two schemas in this form can be compared, however they were written.

What cannot be taken apart (`not`, `if`, patterns of names, and whatever is malformed) is kept
as an opaque condition: its text. A case then allows at most what it says, never more than the
schema and its opaque conditions together; so whoever ignores the opaque ones sees too much,
and whoever demands them sees too little.

A schema is a stranger's: depth, the number of alternatives and the work as a whole are
bounded, and what is beyond a bound becomes opaque.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import ceil, floor, isfinite
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from ...errors import NOTHING

__all__ = [
    "TYPES",
    "Bound",
    "Budget",
    "Case",
    "Document",
    "Node",
    "Opaque",
    "Part",
    "Row",
    "Shape",
    "Sub",
    "expand",
    "is_open",
    "key_of",
    "text_of",
    "type_of",
    "whole_high",
    "whole_low",
]

TYPES: Final = ("null", "boolean", "number", "string", "array", "object")
# A union of more alternatives than this is read by nobody, and its product with another is
# what a hostile schema would have us work out.
_MOST_CASES: Final = 48
# How many references and combinations may stand in one place, one inside the other.
_MOST_HOPS: Final = 24

# A list of values that is longer is data, and compared as a whole.
_MOST_VALUES: Final = 10_000

# What leads into the root of a document by another way depends on all of it.
_REFERENCE: Final = re.compile(rb'"\$(?:ref|dynamicRef|recursiveRef)":"([^"]*)"')
_DEFINITIONS: Final = (b"#/$defs/", b"#/definitions/", b"http://", b"https://", b"urn:")

# A keyword, and the text of what it says.
Opaque: TypeAlias = tuple[str, bytes]


class Budget:
    """How much work is left; whoever asks for more than there is gets opaque answers."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self) -> bool:
        """Take one step; say whether there was one left."""
        self.left -= 1
        return self.left >= 0


class Document:
    """One schema as it was listed: what its references lead to, and what they depend on."""

    def __init__(self, root: Any) -> None:
        self.root = root
        named = root.get("$schema") if isinstance(root, dict) else None
        # Up to draft 7, what stands beside a reference means nothing.
        self.ignores_siblings = isinstance(named, str) and "json-schema.org/draft-0" in named
        self._definitions = b""
        # By the identity of a schema, which this document keeps alive.
        self.shapes: dict[int, Shape] = {}

    def target(self, reference: Any) -> Any:
        """Return what a reference leads to, or `NOTHING`: other documents are not fetched."""
        if reference == "#":
            return self.root
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return NOTHING
        value = self.root
        for step in unquote(reference[2:]).split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdecimal() and int(name[:9]) < len(value):
                value = value[int(name[:9])]
            else:
                return NOTHING
        return value

    def followed(self, schema: Any) -> Any:
        """Return what a schema that is nothing but a reference leads to, or itself."""
        for _ in range(_MOST_HOPS):
            if not isinstance(schema, dict) or schema.keys() & _CONDITIONS != {"$ref"}:
                break
            target = self.target(schema["$ref"])
            if target is NOTHING:
                break
            schema = target
        return schema

    def opaque(self, keyword: str, said: Any) -> Opaque:
        """Return a condition as text; where it refers to others, they are part of it."""
        text = text_of(said)
        targets = _REFERENCE.findall(text)
        if targets:
            text += self._behind(all(target.startswith(_DEFINITIONS) for target in targets))
        return (keyword, text)

    def _behind(self, only_definitions: bool) -> bytes:
        """Return the text of what references lead to, and of what they start from."""
        if not only_definitions or not isinstance(self.root, dict):
            return text_of(self.root)
        if not self._definitions:
            named = [self.root.get(name) for name in ("$id", "$defs", "definitions")]
            self._definitions = text_of(named)
        return self._definitions


class Node(NamedTuple):
    """A schema, and the document it is part of."""

    schema: Any
    document: Document


# Schemas that all hold; none at all holds for everything.
Sub: TypeAlias = tuple[Node, ...]


class Bound(NamedTuple):
    """A limit of numbers."""

    value: float
    is_exclusive: bool


class Part(NamedTuple):
    """What one schema says of the members of an object."""

    # None where members have no names at all: then any name has a meaning.
    properties: Mapping[str, Any] | None
    additional: Any
    # Whether names are also told by pattern; then `additional` is true, and the rest opaque.
    has_patterns: bool
    document: Document

    def member(self, name: str) -> Any:
        """Return the schema for a member."""
        return (self.properties or {}).get(name, self.additional)


class Row(NamedTuple):
    """What one schema says of the items of an array."""

    first: tuple[Any, ...]
    rest: Any
    document: Document

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
    parts: tuple[Part, ...] = ()
    rows: tuple[Row, ...] = ()
    opaque: frozenset[Opaque] = frozenset()

    def declared(self) -> frozenset[str]:
        """Return the members that have a name here."""
        return frozenset(name for part in self.parts for name in part.properties or ())

    def member(self, name: str) -> Sub:
        """Return what holds for a member."""
        return _sub((part.member(name), part.document) for part in self.parts)

    def additional(self) -> Sub:
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

    def item(self, place: int) -> Sub:
        """Return what holds for an item."""
        return _sub((row.item(place), row.document) for row in self.rows)


# For each type the alternatives; a type that is not there is not allowed.
Shape: TypeAlias = dict[str, tuple[Case, ...]]

_ANYTHING: Final = Case()
# Sets of two and of one: whoever lists them says the same as whoever names the type.
_FEW: Final = {
    "null": Case(values={b"null": None}),
    "boolean": Case(values={b"false": False, b"true": True}),
}


def _sub(pairs: Iterator[tuple[Any, Document]]) -> Sub:
    return tuple(Node(schema, document) for schema, document in pairs if not _says_nothing(schema))


def is_open(sub: Sub) -> bool:
    """Say whether everything is allowed, by the look of it."""
    return all(_says_nothing(node.schema) for node in sub)


def _says_nothing(schema: Any) -> bool:
    return schema is True or (isinstance(schema, dict) and _CONDITIONS.isdisjoint(schema))


# Values


def type_of(value: Any) -> str:
    """Return the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def key_of(value: Any) -> bytes:
    """Return a text that two values share if they are equal as JSON: 1 and 1.0, not 1 and true."""
    return text_of(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def text_of(value: Any) -> bytes:
    """Return the text of a JSON value, the same for any order of its members."""
    return encode(value, order="sorted")


# Taking apart


def expand(sub: Sub, budget: Budget) -> Shape:
    """Return the cases of schemas that all hold."""
    shape: Shape = {name: (_FEW.get(name, _ANYTHING),) for name in TYPES}
    for node in sub:
        shape = _both(shape, _shape(node, budget, _MOST_HOPS), node)
    return shape


def _shape(node: Node, budget: Budget, hops: int) -> Shape:
    """Return the cases of one schema, worked out once: many places may refer to it."""
    known = node.document.shapes
    key = id(node.schema)
    if key not in known:
        # A bound that cut this one short has made it opaque, which is right for others too.
        known[key] = _worked_out(node, budget, hops)
    return known[key]


def _worked_out(node: Node, budget: Budget, hops: int) -> Shape:
    """Return the cases of one schema, with all that stands in the same place."""
    schema, document = node
    if schema is True:
        return dict.fromkeys(TYPES, (_ANYTHING,))
    if schema is False:
        return {}
    is_elsewhere = isinstance(schema, dict) and "$id" in schema and schema is not document.root
    # A schema with an address of its own has references that lead from there.
    if not isinstance(schema, dict) or is_elsewhere or not budget.spend() or hops == 0:
        return _opaque_shape(node)
    if "$ref" in schema:
        target = document.target(schema["$ref"])
        if target is NOTHING:
            return _opaque_shape(node)
        referred = _shape(Node(target, document), budget, hops - 1)
        if document.ignores_siblings:
            return referred
        shape = _both(_own(schema, document), referred, node)
    else:
        shape = _own(schema, document)
    for keyword in ("allOf", "anyOf", "oneOf"):
        if keyword in schema:
            shape = _both(shape, _combined(keyword, node, budget, hops - 1), node)
    return shape


def _opaque_shape(node: Node) -> Shape:
    case = Case(opaque=frozenset((node.document.opaque("schema", node.schema),)))
    return dict.fromkeys(TYPES, (case,))


def _combined(keyword: str, node: Node, budget: Budget, hops: int) -> Shape:
    schema, document = node
    members = schema[keyword]
    if not isinstance(members, list) or not members or len(members) > _MOST_CASES:
        return _opaque_shape(node)
    shapes = [_shape(Node(member, document), budget, hops) for member in members]
    if keyword == "allOf":
        whole = shapes[0]
        for shape in shapes[1:]:
            whole = _both(whole, shape, node)
        return whole
    either: Shape = {}
    for shape in shapes:
        for name, cases in shape.items():
            either[name] = either.get(name, ()) + cases
    if keyword == "oneOf" and not _are_apart(shapes):
        # Where two of them hold the whole does not, and that is no alternative.
        either = _with_opaque(either, document.opaque("oneOf", members))
    if any(len(cases) > _MOST_CASES for cases in either.values()):
        return _opaque_shape(node)
    return either


def _with_opaque(shape: Shape, opaque: Opaque) -> Shape:
    return {
        name: tuple(replace(case, opaque=case.opaque | {opaque}) for case in cases)
        for name, cases in shape.items()
    }


def _both(one: Shape, other: Shape, node: Node) -> Shape:
    """Return the cases in which both hold."""
    shape: Shape = {}
    for name in TYPES:
        left, right = one.get(name, ()), other.get(name, ())
        if len(left) * len(right) > _MOST_CASES:
            opaque = node.document.opaque("schema", node.schema)
            # Of the first, which may be more than this node says, nothing is lost.
            shape[name] = tuple(replace(case, opaque=case.opaque | {opaque}) for case in left)
            continue
        cases = tuple(_merged(a, b) for a in left for b in right)
        if possible := tuple(case for case in cases if case.values is None or case.values):
            shape[name] = possible
    return shape


def _merged(one: Case, other: Case) -> Case:
    if one is _ANYTHING:
        return other
    if other is _ANYTHING:
        return one
    return Case(
        _common(one.values, other.values),
        one.is_integer or other.is_integer,
        _tighter(one.low, other.low, 1),
        _tighter(one.high, other.high, -1),
        one.multiples | other.multiples,
        max(one.least, other.least),
        one.most
        if other.most is None
        else min(other.most, one.most or other.most)
        if one.most != 0
        else 0,
        one.patterns | other.patterns,
        one.formats | other.formats,
        one.is_unique or other.is_unique,
        one.required | other.required,
        one.parts + other.parts,
        one.rows + other.rows,
        one.opaque | other.opaque,
    )


def _common(
    one: Mapping[bytes, Any] | None, other: Mapping[bytes, Any] | None
) -> Mapping[bytes, Any] | None:
    if one is None or other is None:
        return other if one is None else one
    return {key: value for key, value in one.items() if key in other}


def _smaller(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _tighter(one: Bound | None, other: Bound | None, sign: int) -> Bound | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other, key=lambda bound: (sign * bound.value, bound.is_exclusive))


def _are_apart(shapes: list[Shape]) -> bool:
    """Say whether no value can be in two of these, as far as a short look shows."""
    for place, shape in enumerate(shapes):
        for other in shapes[place + 1 :]:
            for name in shape.keys() & other.keys():
                if not all(_differ(a, b) for a in shape[name] for b in other[name]):
                    return False
    return True


def _differ(one: Case, other: Case) -> bool:
    if one.values is not None and other.values is not None:
        return one.values.keys().isdisjoint(other.values)
    # A tag: a member that both need, with different values.
    return any(
        _tags(one, name).isdisjoint(_tags(other, name))
        for name in one.required & other.required & one.declared() & other.declared()
        if _tags(one, name) and _tags(other, name)
    )


def _tags(case: Case, name: str) -> frozenset[bytes]:
    for node in case.member(name):
        schema = node.schema
        if isinstance(schema, dict) and "const" in schema:
            return frozenset((key_of(schema["const"]),))
        if isinstance(schema, dict) and isinstance(schema.get("enum"), list):
            return frozenset(map(key_of, schema["enum"]))
    return frozenset()


# The keywords of one schema


class _Own:
    """Reads the keywords of a schema; those it cannot read become opaque."""

    def __init__(self, schema: dict[str, Any], document: Document) -> None:
        self._schema = schema
        self._document = document
        self._odd: list[Opaque] = []

    def shape(self) -> Shape:
        """Return the cases."""
        names, is_integer = self._types()
        makers = {
            "null": self._scalar,
            "boolean": self._scalar,
            "number": lambda: self._number(is_integer),
            "string": self._string,
            "array": self._array,
            "object": self._object,
        }
        listed = self._values()
        shape: Shape = {}
        for name in names:
            case = makers[name]()
            if listed is not None:
                values = {key: each for key, each in listed.items() if type_of(each) == name}
                case = replace(case, values=values)
            shape[name] = (case,)
        odd = frozenset(self._odd) | self._everywhere()
        if not odd:
            return shape
        return {
            name: tuple(replace(case, opaque=case.opaque | odd) for case in cases)
            for name, cases in shape.items()
        }

    def _cannot_read(self, keyword: str) -> None:
        self._odd.append(self._document.opaque(keyword, self._schema[keyword]))

    def _group(self, *keywords: str) -> frozenset[Opaque]:
        """Return keywords that only mean something together as one condition."""
        if keywords[0] not in self._schema:
            return frozenset()
        said = {name: self._schema[name] for name in keywords if name in self._schema}
        return frozenset((self._document.opaque(keywords[0], said),))

    def _everywhere(self) -> frozenset[Opaque]:
        found = self._group("not") | self._group("if", "then", "else")
        return found | self._group("$dynamicRef") | self._group("$recursiveRef")

    def _whole(self, keyword: str) -> frozenset[Opaque]:
        """Return a condition that depends on all that stands beside it."""
        if keyword not in self._schema or self._schema[keyword] in (True, {}):
            return frozenset()
        return frozenset((self._document.opaque(keyword, self._schema),))

    def _types(self) -> tuple[tuple[str, ...], bool]:
        given = self._schema.get("type", NOTHING)
        if given is NOTHING:
            return TYPES, False
        names = {given} if isinstance(given, str) else set()
        if isinstance(given, list) and all(isinstance(each, str) for each in given):
            names = set(given)
        if not names or not names <= {*TYPES, "integer"}:
            self._cannot_read("type")
            return TYPES, False
        if self._schema.get("nullable") is True:  # of OpenAPI; who writes it means it
            names.add("null")
        is_integer = "integer" in names and "number" not in names
        wide = {"number" if name == "integer" else name for name in names}
        return tuple(name for name in TYPES if name in wide), is_integer

    def _values(self) -> dict[bytes, Any] | None:
        values: dict[bytes, Any] | None = None
        if "enum" in self._schema:
            listed = self._schema["enum"]
            if isinstance(listed, list) and len(listed) <= _MOST_VALUES:
                values = {key_of(each): each for each in listed}
            else:
                self._cannot_read("enum")
        if "const" in self._schema:
            key = key_of(self._schema["const"])
            if values is None or key in values:
                return {key: self._schema["const"]}
            return {}
        return values

    def _scalar(self) -> Case:
        return _ANYTHING

    def _count(self, keyword: str) -> int | None:
        value = self._schema.get(keyword)
        if value is None and keyword not in self._schema:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1:
            return int(value)
        self._cannot_read(keyword)
        return None

    def _sizes(self, kind: str) -> dict[str, Any]:
        return {"least": self._count(f"min{kind}") or 0, "most": self._count(f"max{kind}")}

    def _number_of(self, keyword: str) -> float | None:
        value = self._schema.get(keyword, NOTHING)
        if value is NOTHING:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            return value
        self._cannot_read(keyword)
        return None

    def _bound(self, plain: str, exclusive: str, sign: int) -> Bound | None:
        value = self._number_of(plain)
        if isinstance(self._schema.get(exclusive), bool):  # the form of draft 4
            return None if value is None else Bound(value, self._schema[exclusive])
        inner = None if value is None else Bound(value, False)
        value = self._number_of(exclusive)
        outer = None if value is None else Bound(value, True)
        return _tighter(inner, outer, sign)

    def _number(self, is_integer: bool) -> Case:
        multiple = self._number_of("multipleOf")
        return Case(
            is_integer=is_integer,
            low=self._bound("minimum", "exclusiveMinimum", 1),
            high=self._bound("maximum", "exclusiveMaximum", -1),
            multiples=frozenset() if multiple is None else frozenset((multiple,)),
            formats=self._texts("format"),
        )

    def _texts(self, *keywords: str) -> frozenset[str]:
        found = set()
        for keyword in keywords:
            value = self._schema.get(keyword)
            if isinstance(value, str):
                found.add(value if keyword in ("format", "pattern") else f"{keyword} {value}")
            elif keyword in self._schema:
                self._cannot_read(keyword)
        return frozenset(found)

    def _string(self) -> Case:
        return Case(
            patterns=self._texts("pattern"),
            formats=self._texts("format", "contentEncoding", "contentMediaType"),
            **self._sizes("Length"),
        )

    def _array(self) -> Case:
        first, rest = self._schema.get("prefixItems", []), self._schema.get("items", True)
        if isinstance(rest, list):  # up to draft 2019-09
            first, rest = rest, self._schema.get("additionalItems", True)
        opaque = self._group("contains", "minContains", "maxContains")
        opaque |= self._whole("unevaluatedItems")
        if not isinstance(first, list):
            self._cannot_read("prefixItems")
            first, rest = [], True
        row = Row(tuple(first), rest, self._document)
        says_nothing = not first and _says_nothing(rest)
        return Case(
            is_unique=self._schema.get("uniqueItems") is True,
            rows=() if says_nothing else (row,),
            opaque=opaque,
            **self._sizes("Items"),
        )

    def _object(self) -> Case:
        opaque = self._whole("unevaluatedProperties")
        for keyword in ("propertyNames", "dependentRequired", "dependentSchemas", "dependencies"):
            opaque |= self._group(keyword)
        properties = self._schema.get("properties")
        additional = self._schema.get("additionalProperties", True)
        if not isinstance(properties, dict) and "properties" in self._schema:
            self._cannot_read("properties")
            properties = None
        has_patterns = bool(self._schema.get("patternProperties"))
        if has_patterns:
            told: list[Any] = [self._schema["patternProperties"]]
            # Which members are additional depends on the names of the others.
            told += [] if _says_nothing(additional) else [additional, sorted(properties or ())]
            opaque |= {self._document.opaque("patternProperties", told)}
            additional = True
        part = Part(properties, additional, has_patterns, self._document)
        says_nothing = properties is None and not has_patterns and _says_nothing(additional)
        return Case(
            required=self._required(),
            parts=() if says_nothing else (part,),
            opaque=opaque,
            **self._sizes("Properties"),
        )

    def _required(self) -> frozenset[str]:
        names = self._schema.get("required", [])
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return frozenset(names)
        if not isinstance(names, bool):  # draft 3 said it of a member, and still many do
            self._cannot_read("required")
        return frozenset()


def _own(schema: dict[str, Any], document: Document) -> Shape:
    return _Own(schema, document).shape()


def whole_low(bound: Bound) -> Bound:
    """Return a lower limit as it holds for whole numbers."""
    value = floor(bound.value) + 1 if bound.is_exclusive else ceil(bound.value)
    return Bound(value, False)


def whole_high(bound: Bound) -> Bound:
    """Return an upper limit as it holds for whole numbers."""
    value = ceil(bound.value) - 1 if bound.is_exclusive else floor(bound.value)
    return Bound(value, False)


# What says something about a value. All else is for people, or unknown and means nothing.
_CONDITIONS: Final = frozenset(
    (
        *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if"),
        *("type", "nullable", "enum", "const", "format", "pattern", "minLength", "maxLength"),
        *("contentEncoding", "contentMediaType", "minimum", "maximum", "exclusiveMinimum"),
        *("exclusiveMaximum", "multipleOf", "items", "prefixItems", "additionalItems"),
        *("contains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems", "properties"),
        *("patternProperties", "additionalProperties", "propertyNames", "required"),
        *("dependentRequired", "dependentSchemas", "dependencies", "minProperties"),
        *("maxProperties", "unevaluatedProperties"),
    )
)
