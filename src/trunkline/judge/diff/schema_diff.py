"""Compares the old and the new schema of a tool, for arguments or for results.

The rules that live here, and only here:

* New arguments have to accept all that the old ones did; old results all that the new ones do.
* An obstacle in that direction is breaking; an obstacle in the other one is a safe change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ...errors import NOTHING
from ...jsonrpc.codec.tokenizer import pointer
from ...jsonrpc.messages import shown_tuple
from .change import Changes
from .normal_form import Budget, Conjunction, Node
from .rules import is_deprecated
from .schema_document import SchemaDocument, key_of, text_of
from .subschema import Obstacle, SubschemaCheck

__all__ = ["compare_schemas"]

Direction: TypeAlias = Literal["input", "output"]

# The rule for each obstacle, by the direction and by whether it breaks clients.
_RULES: Final[dict[tuple[Direction, bool], dict[str, str]]] = {
    ("input", True): {
        "type": "type-narrowed",
        "value": "value-removed",
        "limit": "limit-tightened",
        "condition": "constraint-added",
        "required": "property-required",
        "only-left": "property-removed",
        "closed": "closed",
        "alternative": "alternative-removed",
        "undecided": "undecided",
    },
    ("input", False): {
        "type": "type-widened",
        "value": "value-added",
        "limit": "limit-loosened",
        "condition": "constraint-removed",
        "required": "property-optional",
        "only-left": "property-added",
        "closed": "opened",
        "alternative": "alternative-added",
        "undecided": "constraint-removed",
    },
    ("output", True): {
        "type": "type-widened",
        "value": "value-added",
        "limit": "limit-loosened",
        "condition": "constraint-removed",
        "required": "property-optional",
        "only-left": "property-in-closed",
        "only-right": "property-removed",
        "closed": "opened",
        "alternative": "alternative-added",
        "undecided": "undecided",
    },
    ("output", False): {
        "type": "type-narrowed",
        "value": "value-removed",
        "limit": "limit-tightened",
        "condition": "constraint-added",
        "required": "property-required",
        "only-left": "closed",
        "only-right": "property-added",
        "closed": "closed",
        "alternative": "alternative-removed",
        "undecided": "constraint-added",
    },
}

# Obstacles about a place as a whole: nothing else is reported there or below.
_WHOLE: Final = frozenset(("type", "only-left", "only-right"))
_MAX_DEPTH: Final = 32
# Schemas that may apply to one place.
_MAX_SCHEMAS: Final = 64
# Schemas, and names, that are examined for one step of the budget.
_SCHEMAS_PER_STEP: Final = 4
_NAMES_PER_STEP: Final = 50


def compare_schemas(
    old: Any, new: Any, direction: Direction, what: str, changes: Changes, budget: Budget
) -> None:
    """Report the changes between two schemas."""
    try:
        if text_of(old) == text_of(new):
            return
        _SchemaComparison(old, new, direction, what, changes, budget).report()
    except RecursionError:
        # Our own recursion is bounded; encoding a schema that nests deeper is not.
        where = f"/{direction}Schema"
        changes.add(f"listing.{direction}.undecided", what, where, detail="nested too deep")


class _SchemaComparison:
    def __init__(
        self,
        old: Any,
        new: Any,
        direction: Direction,
        what: str,
        changes: Changes,
        budget: Budget,
    ) -> None:
        self._old = Node(old, SchemaDocument(old))
        self._new = Node(new, SchemaDocument(new))
        self._direction: Direction = direction
        self._what = what
        self._changes = changes
        self._budget = budget
        self._reported = 0

    def report(self) -> None:
        # Breaking changes, then safe ones, then annotations.
        is_input = self._direction == "input"
        names: Literal["left", "right"] = "left" if is_input else "right"
        ours, theirs = ((self._old,), (self._new,)) if is_input else ((self._new,), (self._old,))
        breaking = SubschemaCheck(self._budget, names).obstacles(ours, theirs)
        harmless = SubschemaCheck(self._budget, names).obstacles(theirs, ours)
        for obstacle in breaking:
            self._add(obstacle, is_breaking=True)
        for obstacle in _unreported(harmless, breaking):
            self._add(obstacle, is_breaking=False)
        self._compare_annotations()
        if not self._reported:
            self._report("rewritten", ())

    def _report(
        self,
        rule: str,
        path: tuple[str, ...],
        old: Any = NOTHING,
        new: Any = NOTHING,
        detail: str = "",
    ) -> None:
        self._reported += 1
        where = pointer((f"{self._direction}Schema", *path))
        name = f"listing.{self._direction}.{rule}"
        self._changes.add(name, self._what, where, old, new, detail)

    def _add(self, obstacle: Obstacle, *, is_breaking: bool) -> None:
        rule = _RULES[self._direction, is_breaking][obstacle.kind]
        detail = obstacle.why
        if rule == "property-removed":
            gone = obstacle.left if self._direction == "input" else obstacle.right
            rule += "-as-announced" if _sub_is_deprecated(gone) else ""
        if obstacle.kind in ("only-left", "only-right"):
            # Whether a new argument was refused or ignored before does not matter.
            detail = detail if rule.startswith("property-removed") else ""
            self._report(rule, obstacle.path, detail=detail)
            return
        # The left side of a breaking obstacle is the old schema for arguments, the new for results.
        is_straight = is_breaking == (self._direction == "input")
        left, right = _for_people(obstacle.left), _for_people(obstacle.right)
        old, new = (left, right) if is_straight else (right, left)
        self._report(rule, obstacle.path, old, new, detail)

    def _compare_annotations(self) -> None:
        # Defaults, deprecations and headers, member by member.
        seen: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
        waiting: list[_SchemaPlace] = [_SchemaPlace((self._old.schema,), (self._new.schema,), ())]
        is_complete = True
        while waiting and self._budget.left >= 0:
            old, new, path = waiting.pop()
            before, after = (
                _Annotations(old, self._old.document),
                _Annotations(new, self._new.document),
            )
            key = (before.key(), after.key())
            is_fine = before.is_complete and after.is_complete and len(path) <= _MAX_DEPTH
            is_complete = is_complete and is_fine
            if not self._budget.spend(before.cost() + after.cost()) or key in seen or not is_fine:
                continue
            seen.add(key)
            self._notes(before, after, path)
            children = list(_children(before, after, path))
            # Charged before they are queued, or their number would be free.
            self._budget.spend(len(children))
            waiting += children
        is_cut = self._budget.left < 0 or not is_complete
        # A part that was not examined may hold a header.
        if (
            is_cut
            and self._direction == "input"
            and b'"x-mcp-header":' in text_of(self._new.schema)
        ):
            self._report("undecided", (), detail="x-mcp-header: too large")

    def _notes(self, old: _Annotations, new: _Annotations, path: tuple[str, ...]) -> None:
        if path and new.is_deprecated() and not old.is_deprecated():
            self._report("property-deprecated", path)
        if self._direction == "output":
            return
        before, after = old.default(), new.default()
        if not _is_same(before, after):
            self._report("default-changed", (*path, "default"), before, after)
        headers, now = old.headers(), new.headers()
        if now and headers.keys() != now.keys():
            shown = (_for_people(list(each.values())) or NOTHING for each in (headers, now))
            self._report("header-changed", (*path, "x-mcp-header"), *shown)


class _SchemaPlace(NamedTuple):
    # The schemas that apply to one place.
    old: tuple[Any, ...]
    new: tuple[Any, ...]
    path: tuple[str, ...]

    def __repr__(self) -> str:
        return shown_tuple(self)


class _Annotations:
    """The annotations of one place: default, deprecation, header.

    `certain` are the schemas that all apply: those given, their references and members of
    `allOf`. `every` includes alternatives: a header may be in one of them.
    """

    def __init__(self, given: tuple[Any, ...], document: SchemaDocument) -> None:
        self.is_complete = True
        self.certain: list[dict[str, Any]] = []
        self.every: list[dict[str, Any]] = []
        seen: set[int] = set()
        waiting = [(schema, True) for schema in reversed(given)]
        while waiting:
            schema, is_certain = waiting.pop()
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            if len(seen) == _MAX_SCHEMAS:
                self.is_complete = False
                return
            seen.add(id(schema))
            self.every.append(schema)
            if is_certain:
                self.certain.append(schema)
            waiting.extend(_joined(schema, document, is_certain))

    def key(self) -> tuple[int, ...]:
        return tuple(map(id, self.every))

    def cost(self) -> int:
        # In steps of the budget.
        said = (each.get("properties") for each in self.every)
        names = sum(len(each) for each in said if isinstance(each, dict))
        return len(self.every) // _SCHEMAS_PER_STEP + names // _NAMES_PER_STEP

    def default(self) -> Any:
        # The nearest one, if there are several.
        return next((each["default"] for each in self.certain if "default" in each), NOTHING)

    def is_deprecated(self) -> bool:
        return any(map(is_deprecated, self.certain))

    def headers(self) -> dict[bytes, Any]:
        found = [each["x-mcp-header"] for each in self.every if "x-mcp-header" in each]
        return {key_of(each): each for each in found}

    def members(self, keyword: str) -> dict[str, tuple[Any, ...]]:
        # By name, the members of a keyword in all schemas.
        found: dict[str, tuple[Any, ...]] = {}
        for schema in self.every:
            said = schema.get(keyword)
            for name, member in said.items() if isinstance(said, dict) else ():
                found[name] = (*found.get(name, ()), member)
        return found

    def inner(self, keyword: str) -> tuple[Any, ...]:
        return tuple(each[keyword] for each in self.every if isinstance(each.get(keyword), dict))


def _joined(
    schema: dict[str, Any], document: SchemaDocument, is_certain: bool
) -> Iterator[tuple[Any, bool]]:
    # Further schemas that apply to the same place, the nearest last.
    for keyword in ("oneOf", "anyOf", "allOf"):
        members = schema.get(keyword)
        for member in reversed(members if isinstance(members, list) else []):
            yield member, is_certain and keyword == "allOf"
    if "$ref" in schema:
        yield document.target(schema["$ref"]), is_certain


def _is_same(old: Any, new: Any) -> bool:
    if old is NOTHING or new is NOTHING:
        return old is new
    return text_of(old) == text_of(new)


def _unreported(harmless: list[Obstacle], breaking: list[Obstacle]) -> Iterator[Obstacle]:
    # Without those that a breaking change implies: a new type in place of an old one.
    whole = {each.path for each in breaking if each.kind in _WHOLE}
    same = {(each.path, each.kind) for each in breaking}
    unknown = {each.path for each in breaking if each.kind == "undecided"}
    required = {each.path for each in breaking if each.kind == "required"}
    for each in harmless:
        if any(each.path[:length] in whole for length in range(len(each.path) + 1)):
            continue
        if (each.path, each.kind) in same or each.path in unknown:
            continue
        if each.kind in ("only-left", "only-right") and each.path in required:
            continue
        yield each


def _for_people(value: Any) -> Any:
    # A list of one value is shown as the value.
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return value


def _sub_is_deprecated(sub: Conjunction) -> bool:
    return any(_Annotations((node.schema,), node.document).is_deprecated() for node in sub)


def _children(
    old: _Annotations, new: _Annotations, path: tuple[str, ...]
) -> Iterator[_SchemaPlace]:
    # The places that both have.
    before, after = old.members("properties"), new.members("properties")
    for name in sorted(before.keys() & after.keys(), reverse=True):
        yield _SchemaPlace(before[name], after[name], (*path, "properties", name))
    for keyword in ("items", "additionalProperties"):
        ours, theirs = old.inner(keyword), new.inner(keyword)
        if ours and theirs:
            yield _SchemaPlace(ours, theirs, (*path, keyword))
