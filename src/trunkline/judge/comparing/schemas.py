"""What has changed between two schemas of a tool, and for whom.

Each pair is compared both ways. What the one has to include and does not is breaking; what it
includes beyond that is safe, and told. Which way is which is the only thing that differs
between arguments and results, and it is written down here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from ...errors import NOTHING
from .change import Changes
from .deprecation import is_deprecated
from .inclusion import Inclusion, Obstacle
from .shapes import Budget, Document, Node, Sub, text_of

__all__ = ["compare_schemas"]

Direction: TypeAlias = Literal["input", "output"]

# The rule for each obstacle, by the direction and by whether it breaks: the same obstacle to
# "the new one includes the old one" and to "the old one includes the new one".
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

# What stands for the whole of a place: nothing else is told of it, or of what is below.
_WHOLE: Final = frozenset(("type", "only-left", "only-right"))
_DEEPEST: Final = 32


def compare_schemas(
    old: Any, new: Any, direction: Direction, what: str, changes: Changes, budget: Budget
) -> None:
    """Report what has changed between two schemas."""
    try:
        if text_of(old) == text_of(new):
            return
        _Pair(old, new, direction, what, changes, budget).report()
    except RecursionError:
        # It nests deeper than Python can follow; ours are bounded, the texts of it are not.
        where = f"/{direction}Schema"
        changes.add(f"listing.{direction}.undecided", what, where, detail="nested too deep")


class _Pair:
    """Two schemas of one tool."""

    def __init__(
        self,
        old: Any,
        new: Any,
        direction: Direction,
        what: str,
        changes: Changes,
        budget: Budget,
    ) -> None:
        self._old = Node(old, Document(old))
        self._new = Node(new, Document(new))
        self._direction: Direction = direction
        self._what = what
        self._changes = changes
        self._budget = budget
        self._reported = 0

    def report(self) -> None:
        """Report what breaks, then what does not, then what is said beside the conditions."""
        is_input = self._direction == "input"
        names: Literal["left", "right"] = "left" if is_input else "right"
        ours, theirs = ((self._old,), (self._new,)) if is_input else ((self._new,), (self._old,))
        breaking = Inclusion(self._budget, names).obstacles(ours, theirs)
        harmless = Inclusion(self._budget, names).obstacles(theirs, ours)
        for obstacle in breaking:
            self._add(obstacle, is_breaking=True)
        for obstacle in _untold(harmless, breaking):
            self._add(obstacle, is_breaking=False)
        self._beside()
        if not self._reported:
            self._tell("rewritten", ())

    def _tell(
        self,
        rule: str,
        path: tuple[str, ...],
        old: Any = NOTHING,
        new: Any = NOTHING,
        detail: str = "",
    ) -> None:
        self._reported += 1
        steps = (step.replace("~", "~0").replace("/", "~1") for step in path)
        where = "/".join(("", f"{self._direction}Schema", *steps))
        name = f"listing.{self._direction}.{rule}"
        self._changes.add(name, self._what, where, old, new, detail)

    def _add(self, obstacle: Obstacle, *, is_breaking: bool) -> None:
        rule = _RULES[self._direction, is_breaking][obstacle.kind]
        detail = obstacle.why
        if rule == "property-removed":
            gone = obstacle.left if self._direction == "input" else obstacle.right
            rule += "-as-announced" if _sub_is_deprecated(gone) else ""
        if obstacle.kind in ("only-left", "only-right"):
            # That a new argument was refused before is nothing to know about it.
            detail = detail if rule.startswith("property-removed") else ""
            self._tell(rule, obstacle.path, detail=detail)
            return
        # For arguments the left of what breaks is the old one; for results it is the new one.
        is_straight = is_breaking == (self._direction == "input")
        left, right = _for_people(obstacle.left), _for_people(obstacle.right)
        old, new = (left, right) if is_straight else (right, left)
        self._tell(rule, obstacle.path, old, new, detail)

    def _beside(self) -> None:
        """Report defaults, deprecations and headers, member by member."""
        seen: set[tuple[int, int]] = set()
        waiting: list[tuple[Any, Any, tuple[str, ...]]] = [(self._old.schema, self._new.schema, ())]
        while waiting and self._budget.spend():
            old, new, path = waiting.pop()
            old, new = _followed(old, self._old.document), _followed(new, self._new.document)
            if not isinstance(old, dict) or not isinstance(new, dict):
                continue
            if (id(old), id(new)) in seen or len(path) > _DEEPEST:
                continue
            seen.add((id(old), id(new)))
            self._notes(old, new, path)
            waiting.extend(_children(old, new, path))

    def _notes(self, old: dict[str, Any], new: dict[str, Any], path: tuple[str, ...]) -> None:
        if path and is_deprecated(new) and not is_deprecated(old):
            self._tell("property-deprecated", path)
        if self._direction == "output":
            return
        before, after = old.get("default", NOTHING), new.get("default", NOTHING)
        if (before is NOTHING) != (after is NOTHING) or text_of(
            None if before is NOTHING else before
        ) != text_of(None if after is NOTHING else after):
            self._tell("default-changed", (*path, "default"), before, after)
        before, after = old.get("x-mcp-header", NOTHING), new.get("x-mcp-header", NOTHING)
        if after is not NOTHING and before != after:
            self._tell("header-changed", (*path, "x-mcp-header"), before, after)


def _untold(harmless: list[Obstacle], breaking: list[Obstacle]) -> Iterator[Obstacle]:
    """Yield what is not another view of what breaks: a new type instead of an old one, say."""
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
    """Return what is shown: the one thing instead of a list of it, types as JSON names them."""
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return value


def _sub_is_deprecated(sub: Sub) -> bool:
    return any(
        is_deprecated(node.schema) or is_deprecated(_followed(node.schema, node.document))
        for node in sub
    )


def _followed(schema: Any, document: Document) -> Any:
    """Return what a reference leads to, where there is one; no further than a few steps."""
    for _ in range(8):
        if not isinstance(schema, dict) or "$ref" not in schema or "default" in schema:
            return schema
        target = document.target(schema["$ref"])
        if target is NOTHING:
            return schema
        schema = target
    return schema


def _children(
    old: dict[str, Any], new: dict[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[Any, Any, tuple[str, ...]]]:
    """Yield the schemas that both have in the same place."""
    before, after = old.get("properties"), new.get("properties")
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() & after.keys(), reverse=True):
            yield before[name], after[name], (*path, "properties", name)
    for keyword in ("items", "additionalProperties"):
        if isinstance(old.get(keyword), dict) and isinstance(new.get(keyword), dict):
            yield old[keyword], new[keyword], (*path, keyword)
