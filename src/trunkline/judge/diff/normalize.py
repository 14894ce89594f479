"""JSON Schema to normal form.

References are resolved, `allOf` is merged, `anyOf` and `oneOf` become alternatives, so that two
schemas can be compared however they were written. A part that cannot be analysed is kept as an
opaque condition.

Schemas are untrusted: depth, the number of alternatives and the total work are bounded, and
everything beyond a bound becomes opaque.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from ...errors import NOTHING
from .keywords import listed_values, own_shape
from .normal_form import ANYTHING, TYPES, Budget, Case, CasesByType, Conjunction, Node, tighter
from .schema_document import MAX_HOPS, Opaque

__all__ = ["expand"]

# Alternatives of one type. A hostile schema would have us compute products of long lists.
_MAX_CASES: Final = 48
# Schemas that may apply to the members of one object, or to the items of one array.
_MAX_PARTS: Final = 32
# Values or names that are examined for one step of the budget.
_VALUES_PER_STEP: Final = 50

_Item = TypeVar("_Item")

# For these types, naming the type and listing all its values is the same.
_FEW: Final = {
    "null": Case(values={b"null": None}),
    "boolean": Case(values={b"false": False, b"true": True}),
}


def expand(sub: Conjunction, budget: Budget) -> CasesByType:
    """Return the cases of schemas that all have to hold."""
    shape: CasesByType = {name: (_FEW.get(name, ANYTHING),) for name in TYPES}
    for node in sub:
        shape = _both(shape, _shape(node, budget, MAX_HOPS), node, budget)
    return shape


def _shape(node: Node, budget: Budget, hops: int) -> CasesByType:
    # Cached, since many places may refer to a schema.
    known: dict[int, CasesByType] = node.document.shapes
    key = id(node.schema)
    if key not in known:
        # If a bound made it opaque, that is right for other places too.
        known[key] = _computed(node, budget, hops)
    return known[key]


def _computed(node: Node, budget: Budget, hops: int) -> CasesByType:
    schema, document = node
    if not document.draft:
        return _opaque_shape(node)
    if schema is True:
        return dict.fromkeys(TYPES, (ANYTHING,))
    if schema is False:
        return {}
    is_readable = isinstance(schema, dict) and not document.is_elsewhere(schema)
    if not is_readable or not budget.spend() or hops == 0:
        return _opaque_shape(node)
    if "$ref" in schema:
        target = document.target(schema["$ref"])
        if target is NOTHING:
            return _opaque_shape(node)
        referred = _shape(Node(target, document), budget, hops - 1)
        if document.ignores_siblings:
            return referred
        shape = _both(own_shape(schema, document), referred, node, budget)
    else:
        shape = own_shape(schema, document)
    for keyword in ("allOf", "anyOf", "oneOf"):
        if keyword in schema:
            shape = _both(shape, _combined(keyword, node, budget, hops - 1), node, budget)
    return shape


def _opaque_shape(node: Node) -> CasesByType:
    case = Case(opaque=frozenset((node.document.schema(node.schema),)))
    return dict.fromkeys(TYPES, (case,))


def _combined(keyword: str, node: Node, budget: Budget, hops: int) -> CasesByType:
    schema, document = node
    members = schema[keyword]
    if not isinstance(members, list) or not members or len(members) > _MAX_CASES:
        return _opaque_shape(node)
    shapes = [_shape(Node(member, document), budget, hops) for member in members]
    if keyword == "allOf":
        whole = shapes[0]
        for shape in shapes[1:]:
            whole = _both(whole, shape, node, budget)
        return whole
    either: CasesByType = {}
    for shape in shapes:
        for name, cases in shape.items():
            either[name] = either.get(name, ()) + cases
    either = {name: _each_once(cases) for name, cases in either.items()}
    if keyword == "oneOf" and not _are_apart(shapes, budget):
        # oneOf rejects a value that matches two members, which alternatives cannot express.
        either = _with_opaque(either, document.opaque("oneOf", members))
    if any(len(cases) > _MAX_CASES for cases in either.values()):
        return _opaque_shape(node)
    return either


def _with_opaque(shape: CasesByType, opaque: Opaque) -> CasesByType:
    return {name: _also(cases, opaque) for name, cases in shape.items()}


def _also(cases: Iterable[Case], opaque: Opaque) -> tuple[Case, ...]:
    return tuple(replace(case, opaque=case.opaque | {opaque}) for case in cases)


def _each_once(items: Iterable[_Item]) -> tuple[_Item, ...]:
    # By identity: a schema may be referred to often.
    return tuple({id(item): item for item in items}.values())


def _both(one: CasesByType, other: CasesByType, node: Node, budget: Budget) -> CasesByType:
    # The cases in which both hold; `other` comes from `node`.
    shape: CasesByType = {}
    for name in TYPES:
        left, right = one.get(name, ()), other.get(name, ())
        if left is right:
            cases: tuple[Case, ...] | None = left
        else:
            cases = _products(left, right, budget)
        if cases is None:
            # Too many: the node becomes opaque, and the first keeps its cases.
            cases = _also(left, node.document.schema(node.schema))
        if possible := tuple(case for case in cases if case.values is None or case.values):
            shape[name] = possible
    return shape


def _products(
    left: tuple[Case, ...], right: tuple[Case, ...], budget: Budget
) -> tuple[Case, ...] | None:
    # None if there are too many.
    if len(left) * len(right) > _MAX_CASES:
        return None
    found: dict[tuple[int, int], Case] = {}
    for a in left:
        for b in right:
            case = _merged(a, b, budget)
            if case is None:
                return None
            found[id(a), id(b)] = case
    return _each_once(found.values())


def _merged(one: Case, other: Case, budget: Budget) -> Case | None:
    # None if it would be too large.
    if one is ANYTHING or one is other:
        return other
    if other is ANYTHING:
        return one
    parts, rows = _each_once(one.parts + other.parts), _each_once(one.rows + other.rows)
    if len(parts) > _MAX_PARTS or len(rows) > _MAX_PARTS:
        return None
    if not budget.spend((_weight(one) + _weight(other)) // _VALUES_PER_STEP):
        return None
    return Case(
        _common(one.values, other.values),
        one.is_integer or other.is_integer,
        tighter(one.low, other.low, 1),
        tighter(one.high, other.high, -1),
        one.multiples | other.multiples,
        max(one.least, other.least),
        _smaller(one.most, other.most),
        one.patterns | other.patterns,
        one.formats | other.formats,
        one.is_unique or other.is_unique,
        one.required | other.required,
        parts,
        rows,
        one.opaque | other.opaque,
    )


def _weight(case: Case) -> int:
    sets = (case.multiples, case.patterns, case.formats, case.required, case.opaque)
    return len(case.values or ()) + sum(map(len, sets))


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


def _are_apart(shapes: list[CasesByType], budget: Budget) -> bool:
    # True only if it is certain that no value matches two of them.
    for place, shape in enumerate(shapes):
        for other in shapes[place + 1 :]:
            for name in shape.keys() & other.keys():
                if not all(_differ(a, b, budget) for a in shape[name] for b in other[name]):
                    return False
    return True


def _differ(one: Case, other: Case, budget: Budget) -> bool:
    if not budget.spend((_weight(one) + _weight(other)) // _VALUES_PER_STEP):
        return False
    if one.values is not None and other.values is not None:
        return one.values.keys().isdisjoint(other.values)
    # A discriminator: a member that both require, with different values.
    for name in one.required & other.required:
        ours, theirs = _tags(one, name), _tags(other, name)
        if not budget.spend(1 + (len(ours) + len(theirs)) // _VALUES_PER_STEP):
            return False
        if ours and theirs and ours.isdisjoint(theirs):
            return True
    return False


def _tags(case: Case, name: str) -> frozenset[bytes]:
    for node in case.member(name):
        if values := listed_values(node.schema, node.document):
            return values
    return frozenset()
