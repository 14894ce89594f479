"""Subschema check: does the right schema accept every value that the left one accepts?

The answer is a list of obstacles. An empty list is a proof, with two conventions:

* In an open object with named members, other members have no meaning, so naming one of them
  later takes nothing away. Otherwise no optional argument could ever be added. An object
  without named members gives all of them a meaning, except for the arguments of a tool as a
  whole.
* `names` is the side on which a member that only this side names is an obstacle by itself, even
  if the other side accepts it unnamed: a client that passes an argument expects it to be read.

The check is sound, not complete: whatever cannot be proven is an obstacle.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ...errors import NOTHING
from ...jsonrpc.messages import shown_tuple
from .normal_form import (
    CONDITIONS,
    Budget,
    Case,
    CasesByType,
    Conjunction,
    is_open,
    whole_high,
    whole_low,
)
from .normalize import expand

__all__ = ["Kind", "Obstacle", "Side", "SubschemaCheck"]

Kind: TypeAlias = Literal[
    "type",
    "value",
    "limit",
    "condition",
    "required",
    "only-left",
    "only-right",
    "closed",
    "alternative",
    "undecided",
]
Side: TypeAlias = Literal["left", "right"]

# Deeper than real arguments nest, and far below the recursion limit of Python.
_MAX_DEPTH: Final = 32
# Per pair of schemas; bounds the memory that a hostile schema can use.
_MAX_OBSTACLES: Final = 100
# Values of an enum that an obstacle shows.
_MAX_SHOWN_VALUES: Final = 50
# Values or names that are examined for one step of the budget.
_VALUES_PER_STEP: Final = 50


class Obstacle(NamedTuple):
    """Something that the left schema accepts and the right one does not, or may not."""

    kind: Kind
    path: tuple[str, ...]
    left: Any = NOTHING
    right: Any = NOTHING
    why: str = ""

    def __repr__(self) -> str:
        return shown_tuple(self)

    def under(self, *steps: str) -> Obstacle:
        """Return the obstacle with a longer path."""
        return self._replace(path=(*steps, *self.path))


_TOO_LARGE: Final = Obstacle("undecided", (), why="too large")

_Key: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


class SubschemaCheck:
    """Compares schemas in one direction, within one budget."""

    def __init__(self, budget: Budget, names: Side) -> None:
        self._budget = budget
        self._names = names
        # Pairs in progress: a recursive schema has no obstacle if the rest has none.
        self._open: set[_Key] = set()
        self._known: dict[_Key, list[Obstacle]] = {}
        # Pairs without obstacles, in order: those that rest on a pair in progress are dropped
        # if that pair turns out to have obstacles.
        self._fine: list[_Key] = []

    def obstacles(self, left: Conjunction, right: Conjunction) -> list[Obstacle]:
        """Return the reasons why `right` does not accept all that `left` accepts."""
        if is_open(right):
            return []
        key = (_ids(left), _ids(right))
        if key in self._open:
            return []
        if key in self._known:
            return self._known[key]
        if len(self._open) >= _MAX_DEPTH:
            return [Obstacle("undecided", (), why="nested too deep")]
        if not self._budget.spend(max(1, len(left), len(right))):
            return [_TOO_LARGE]
        before = len(self._fine)
        self._open.add(key)
        found = self._compare(expand(left, self._budget), expand(right, self._budget))
        self._open.remove(key)
        if found:
            for each in self._fine[before:]:
                self._known.pop(each, None)
            del self._fine[before:]
        else:
            self._fine.append(key)
        self._known[key] = found = found[:_MAX_OBSTACLES]
        return found

    def _compare(self, left: CasesByType, right: CasesByType) -> list[Obstacle]:
        found = _lost_types(left, right)
        has_type = bool(found)
        for name, cases in left.items():
            if name in right:
                found += self._alternatives(name, cases, right[name], _type_names(right))
        return list(_once(found, has_type))

    def _alternatives(
        self, name: str, left: tuple[Case, ...], right: tuple[Case, ...], types: list[str]
    ) -> list[Obstacle]:
        found: list[Obstacle] = []
        for place, case in enumerate(left):
            if case.values is not None:
                found += self._values(case, right)
                continue
            # The alternative at the same position first: the likely one, and the one to report.
            order = sorted(range(len(right)), key=lambda at: at != place)
            told = list(islice(self._within(name, case, right[order[0]]), _MAX_OBSTACLES))
            if not told or any(self._fits(name, case, right[at]) for at in order[1:]):
                continue
            if len(right) == 1 or len(left) == len(right):
                found += told
            else:
                found.append(Obstacle("alternative", (), name, types))
        return found

    def _values(self, left: Case, right: tuple[Case, ...]) -> Iterator[Obstacle]:
        if self._budget.spend(len(left.values or ()) * len(right) // _VALUES_PER_STEP):
            yield from _lost_values(left, right)
        else:
            yield _TOO_LARGE

    def _fits(self, name: str, left: Case, right: Case) -> bool:
        # Each pair of alternatives costs a step, or quadratic work would be free.
        return self._budget.spend() and next(self._within(name, left, right), None) is None

    def _within(self, name: str, left: Case, right: Case) -> Iterator[Obstacle]:
        # Why one case is not within another of the same type.
        yield from _plain_obstacles(name, left, right)
        if any(keyword == "schema" for keyword, _ in right.opaque - left.opaque):
            return  # the content is opaque, and that was reported
        if name == "object":
            yield from self._members(left, right)
        elif name == "array":
            yield from self._items(left, right)

    def _members(self, left: Case, right: Case) -> Iterator[Obstacle]:
        ours, theirs = left.declared(), right.declared()
        names = len(ours) + len(theirs) + len(left.required) + len(right.required)
        if not self._budget.spend(names // _VALUES_PER_STEP):
            yield _TOO_LARGE
            return
        for name in sorted(ours | theirs):
            if not self._budget.spend():
                yield _TOO_LARGE
                return
            if name in ours and name in theirs:
                for each in self.obstacles(left.member(name), right.member(name)):
                    yield each.under("properties", name)
            elif name in ours:
                yield from self._only_left(name, left, right)
            else:
                yield from self._only_right(name, left, right)
        for name in sorted(right.required - left.required):
            if name in ours or self._names == "left" or name not in theirs:
                yield Obstacle("required", ("properties", name))
        if is_open(left.additional()):
            if not is_open(right.additional()):
                yield Obstacle("closed", ("additionalProperties",))
        elif not any(node.schema is False for node in left.additional()):
            for each in self.obstacles(left.additional(), right.additional()):
                yield each.under("additionalProperties")

    def _only_left(self, name: str, left: Case, right: Case) -> Iterator[Obstacle]:
        inner = self.obstacles(left.member(name), right.additional())
        if inner or self._names == "left":
            why = "now refused" if inner else "now ignored"
            yield Obstacle("only-left", ("properties", name), left=left.member(name), why=why)

    def _only_right(self, name: str, left: Case, right: Case) -> Iterator[Obstacle]:
        additional = left.additional()
        if self._names == "right":
            yield Obstacle("only-right", ("properties", name), right=right.member(name))
        elif any(node.schema is False for node in additional):
            return
        elif not is_open(additional) or not (left.names_members() or self._is_root()):
            for each in self.obstacles(additional, right.member(name)):
                yield each.under("properties", name)

    def _is_root(self) -> bool:
        # A tool without arguments names no members, and may get its first one.
        return len(self._open) == 1

    def _items(self, left: Case, right: Case) -> Iterator[Obstacle]:
        named = max(left.named_items(), right.named_items())
        for place in range(named):
            if not self._budget.spend():
                yield _TOO_LARGE
                return
            if left.most is None or place < left.most:
                for each in self.obstacles(left.item(place), right.item(place)):
                    yield each.under("prefixItems", str(place))
        if left.most is None or left.most > named:
            for each in self.obstacles(left.item(named), right.item(named)):
                yield each.under("items")


def _once(found: list[Obstacle], has_type: bool) -> Iterator[Obstacle]:
    # Without those that were reported for another JSON type already.
    seen: set[tuple[str, tuple[str, ...], str]] = set()
    for place, each in enumerate(found):
        if each.kind == "type" and not each.path and has_type and place:
            continue
        key = (each.kind, each.path, each.why)
        if each.kind == "undecided" and key in seen:
            continue
        seen.add(key)
        yield each


def _lost_types(left: CasesByType, right: CasesByType) -> list[Obstacle]:
    lost = [name for name in left if name not in right]
    if not lost:
        return []
    if all(case.is_unknown() for name in lost for case in left[name]):
        return [Obstacle("undecided", ())]
    return [Obstacle("type", (), _type_names(left), _type_names(right))]


def _ids(sub: Conjunction) -> tuple[int, ...]:
    # Documents outlive the comparison, and so do the schemas inside them.
    return tuple(
        each
        for node in sub
        for each in (id(node.document.followed(node.schema, CONDITIONS)), id(node.document))
    )


def _type_names(shape: CasesByType) -> list[str]:
    return [
        "integer" if name == "number" and all(case.is_integer for case in cases) else name
        for name, cases in shape.items()
    ]


def _lost_values(left: Case, right: tuple[Case, ...]) -> Iterator[Obstacle]:
    # The listed values that the right side does not accept.
    values = left.values or {}
    lost, open_questions = [], set()
    for key, value in values.items():
        fitting = [case for case in right if _allows(case, key, value, left)]
        if not fitting:
            lost.append(value)
        elif not any(case.opaque <= left.opaque for case in fitting):
            open_questions |= {word for case in fitting for word, _ in case.opaque - left.opaque}
    if lost:
        allowed = (value for case in right for value in (case.values or {}).values())
        told = list(islice(allowed, _MAX_SHOWN_VALUES))
        yield Obstacle("value", (), lost[:_MAX_SHOWN_VALUES], told or NOTHING)
    for keyword in sorted(open_questions):
        yield _undecided(keyword)


def _undecided(keyword: str) -> Obstacle:
    return Obstacle("undecided", (), why="" if keyword == "schema" else keyword)


def _allows(case: Case, key: bytes, value: Any, holder: Case) -> bool:
    # True if a case certainly accepts a value, its opaque conditions aside.
    if case.values is not None and key not in case.values:
        return False
    if not (case.patterns <= holder.patterns and case.formats <= holder.formats):
        return False
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, int | float):
        return _number_fits(case, value, holder)
    fits = case.least <= len(value) and (case.most is None or len(value) <= case.most)
    if isinstance(value, str) or not fits:
        return fits
    # Listed objects and arrays are rare: their content is not examined.
    is_plain = not case.parts and not case.rows and case.is_unique <= holder.is_unique
    return is_plain and (not isinstance(value, dict) or case.required <= value.keys())


def _number_fits(case: Case, value: float, holder: Case) -> bool:
    if case.is_integer and value != value // 1:
        return False
    if case.low and (value < case.low.value or (case.low.is_exclusive and value == case.low.value)):
        return False
    high = case.high
    if high and (value > high.value or (high.is_exclusive and value == high.value)):
        return False
    return all(_is_multiple(value, each) or each in holder.multiples for each in case.multiples)


def _is_multiple(value: float, of: float) -> bool:
    # Integers only: validators differ about the division of fractions.
    whole = isinstance(value, int) and isinstance(of, int)
    return whole and of > 0 and value % of == 0


def _plain_obstacles(name: str, left: Case, right: Case) -> Iterator[Obstacle]:
    # Obstacles about a value as a whole.
    if right.values is not None:
        yield Obstacle("value", (), right=list(islice(right.values.values(), _MAX_SHOWN_VALUES)))
    if right.is_integer and not left.is_integer and not any(_whole(m) for m in left.multiples):
        yield Obstacle("type", (), ["number"], ["integer"])
    yield from _number_limits(left, right)
    yield from _sizes(name, left, right)
    for multiple in sorted(right.multiples):
        if multiple not in left.multiples and not any(
            _is_multiple(each, multiple) for each in (*left.multiples, *_one_if(left.is_integer))
        ):
            yield Obstacle("condition", (), sorted(left.multiples), multiple, "multipleOf")
    for keyword, ours, theirs in (
        ("pattern", left.patterns, right.patterns),
        ("format", left.formats, right.formats),
    ):
        if theirs - ours:
            given = sorted(ours) if ours else NOTHING
            yield Obstacle("condition", (), given, sorted(theirs - ours), keyword)
    if right.is_unique and not left.is_unique:
        yield Obstacle("condition", (), NOTHING, True, "uniqueItems")
    for keyword in sorted({keyword for keyword, _ in right.opaque - left.opaque}):
        yield _undecided(keyword)


def _one_if(is_integer: bool) -> tuple[int, ...]:
    return (1,) if is_integer else ()


def _whole(value: float) -> bool:
    return value == value // 1


def _number_limits(left: Case, right: Case) -> Iterator[Obstacle]:
    ours, theirs = left.low, right.low
    if left.is_integer:
        ours, theirs = ours and whole_low(ours), theirs and whole_low(theirs)
    if theirs and (ours is None or (ours.value, ours.is_exclusive) < theirs):
        yield Obstacle("limit", (), _shown(left.low), _shown(right.low), "minimum")
    ours, theirs = left.high, right.high
    if left.is_integer:
        ours, theirs = ours and whole_high(ours), theirs and whole_high(theirs)
    if theirs and (ours is None or (-ours.value, ours.is_exclusive) < (-theirs.value, theirs[1])):
        yield Obstacle("limit", (), _shown(left.high), _shown(right.high), "maximum")


def _shown(bound: Any) -> Any:
    return NOTHING if bound is None else bound.value


_SIZED: Final = {"string": "Length", "array": "Items", "object": "Properties"}


def _sizes(name: str, left: Case, right: Case) -> Iterator[Obstacle]:
    if right.least > left.least:
        yield Obstacle("limit", (), left.least, right.least, f"min{_SIZED[name]}")
    if right.most is not None and (left.most is None or left.most > right.most):
        most = NOTHING if left.most is None else left.most
        yield Obstacle("limit", (), most, right.most, f"max{_SIZED[name]}")
