"""The rows of identifiers name every place that the types of some revision have, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from trunkline.spec.mcp.methods import IDENTIFIERS, METHODS
from trunkline.spec.revisions import REVISIONS
from trunkline.spec.types import Expr, FieldView, parse, type_

ALWAYS = {"cursor", "nextCursor", "requestState", "taskId", "requestId", "progressToken"}
ALWAYS |= {"elicitationId", "resourceSubscriptions"}
# The types whose `name` selects something.
NAMED = {"Tool", "Prompt", "PromptArgument", "PromptReference", "CompleteRequestParams.argument"}
NAMED |= {"CallToolRequestParams", "GetPromptRequestParams"}
# Addresses that are displayed, or fetched for display.
DISPLAYED = {"Icon", "Implementation"}


def is_identifier(owner: str, field: FieldView) -> bool:
    if field.name in ALWAYS or (field.name == "name" and owner in NAMED):
        return True
    return dict(field.limits).get("format") in ("uri", "uri-template") and owner not in DISPLAYED


def places(expr: Expr, revision: str, at: str, inside: frozenset[str]) -> Iterator[str]:
    """Yield the place of each identifier in a type, down to types inside themselves."""
    if expr.kind in ("list", "map"):
        for each in expr.of:
            yield from places(each, revision, f"{at}/*", inside)
    elif expr.kind == "union":
        for each in expr.of:
            yield from places(each, revision, at, inside)
    elif expr.kind == "name" and expr.name not in inside:
        found = type_(expr.name, revision)
        inside |= {expr.name}
        if found is None:
            return
        if found.kind != "object":
            yield from places(found.expr, revision, at, inside)
        for field in found.fields.values():
            below = f"{at}/{field.name}"
            if is_identifier(found.name, field):
                yield below + "/*" * (field.expr.kind == "list")
            elif field.expr.kind != "constant":
                yield from places(field.expr, revision, below, inside)


def in_types() -> set[str]:
    found = {"id", "method"}
    for revision in REVISIONS:
        for row in METHODS:
            if row.when.holds(revision):
                for at, text in (("params", row.params), ("result", row.result)):
                    if text:
                        found |= set(places(parse(text), revision, at, frozenset()))
    return found


def expanded() -> list[str]:
    return [
        "/".join(steps)
        for place in IDENTIFIERS
        for steps in product(*(step.split("|") for step in place.split("/")))
    ]


def test_the_rows_are_the_places_that_the_types_have() -> None:
    rows = expanded()
    assert len(set(rows)) == len(rows)
    found = in_types()
    assert len(found) > 40
    assert found - set(rows) == set()
    assert set(rows) - found == set()
