"""Schemas that would have a comparison hang, grow or fall over; the rest is in the vectors."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from trunkline.judge.diff import Comparison, compare

INTEGER, STRING = {"type": "integer"}, {"type": "string"}


def compared(old: Any, new: Any) -> Comparison:
    before, after = (
        {"name": "t", "inputSchema": each, "outputSchema": each} for each in (old, new)
    )
    return compare([before], [after])


def deep(levels: int, leaf: Any) -> Any:
    for _ in range(levels):
        leaf = {"type": "object", "properties": {"a": leaf}}
    return leaf


def wide(branches: int, levels: int, leaf: Any) -> Any:
    if levels == 0:
        return leaf
    return {
        "anyOf": [
            {"type": "object", "properties": {f"p{n}": wide(branches, levels - 1, leaf)}}
            for n in range(branches)
        ]
    }


def doubling(keyword: str, leaf: Any) -> Any:
    """A chain of definitions, each of which refers to the next one twice."""
    steps = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(60)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**steps, "d60": leaf}}


def test_schema_with_20_levels_is_compared() -> None:
    found = compared(deep(20, INTEGER), deep(20, STRING))
    assert {change.rule for change in found.changes} == {
        "listing.input.type-narrowed",
        "listing.output.type-widened",
    }


@pytest.mark.parametrize("levels", [100, 400, 3000])
def test_schema_nested_too_deep_is_undecided_and_breaks(levels: int) -> None:
    found = compared(deep(levels, INTEGER), deep(levels, STRING))
    assert {change.rule for change in found.changes} == {
        "listing.input.undecided",
        "listing.output.undecided",
    }
    assert {change.detail for change in found.changes} == {"nested too deep"}


def repeating(leaf: Any, times: int, members: int = 0) -> Any:
    """A chain of definitions, each of which refers to the next one several times."""
    steps = {
        f"d{n}": {
            "allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * times,
            "properties": {f"p{n}x{each}": leaf for each in range(members)},
        }
        for n in range(10)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**steps, "d10": {"properties": {"a": leaf}}}}


def listing_much(leaf: Any) -> Any:
    """Many places with two long lists each, that many merge and compare."""
    lists = {name: {"enum": [leaf, *range(9000)]} for name in ("x", "y")}
    both = {"allOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/y"}]}
    return {
        "type": "object",
        "properties": {f"p{n}": dict(both) for n in range(5000)},
        "$defs": lists,
    }


def joined(leaf: Any) -> Any:
    """Alternatives of which each is joined from many schemas with many names."""
    parts = {
        f"d{n}": {"properties": {f"p{n}x{each}": leaf for each in range(40)}} for n in range(30)
    }
    every = {"allOf": [{"$ref": f"#/$defs/{name}"} for name in parts]}
    return {"anyOf": [{**every, "minProperties": n} for n in range(40)], "$defs": parts}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (repeating(INTEGER, 8), repeating(STRING, 8)),
        (repeating(INTEGER, 3, 20), repeating(STRING, 3, 20)),
        (listing_much("a"), listing_much("b")),
        (joined(INTEGER), joined(STRING)),
        (wide(5, 5, INTEGER), wide(5, 5, STRING)),
        (doubling("allOf", INTEGER), doubling("allOf", STRING)),
        (doubling("anyOf", INTEGER), doubling("anyOf", STRING)),
        (doubling("oneOf", INTEGER), doubling("oneOf", STRING)),
        ({"enum": list(range(20_000))}, {"enum": list(range(1, 20_000))}),
    ],
    ids=[
        "repeated",
        "repeated-members",
        "lists",
        "joined",
        "unions",
        "allOf",
        "anyOf",
        "oneOf",
        "enum",
    ],
)
def test_schema_comparison_over_the_budget_ends_and_breaks(old: Any, new: Any) -> None:
    assert compared(old, new).breaks()


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    ],
)
def test_a_schema_that_is_nothing_but_itself_is_never_said_to_be_safe(schema: Any) -> None:
    assert (
        compared(schema, {"type": "object"}).breaks()
        or compared({"type": "object"}, schema).breaks()
    )


@pytest.mark.parametrize(
    "malformed",
    [
        *(5, None, "x", [], {"type": {}}, {"type": ["text"]}, {"enum": 1}, {"required": 5}),
        *({"properties": []}, {"anyOf": {}}, {"allOf": []}, {"$ref": 5}, {"minimum": "a"}),
        *({"pattern": 5}, {"maxLength": 1.5}, {"prefixItems": 5}, {"minimum": True}),
    ],
)
def test_a_malformed_schema_is_compared_as_far_as_it_goes(malformed: Any) -> None:
    # Nothing is known of what it accepts, so that nothing is promised.
    assert compared({"type": "object", "properties": {"a": malformed}}, True) is not None
    narrower = compared(True, malformed)
    assert narrower.breaks()
    assert compared(malformed, malformed).changes == ()


def test_a_reference_into_a_pointer_with_escapes_is_followed() -> None:
    def given(leaf: Any) -> Any:
        return {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/x~1y%20z"}},
            "$defs": {"x/y z": leaf},
        }

    (first, _) = compared(given(INTEGER), given(STRING)).changes
    assert (first.rule, first.where) == (
        "listing.input.type-narrowed",
        "/inputSchema/properties/a",
    )


def test_beside_a_reference_of_draft_7_nothing_counts() -> None:
    def given(**beside: Any) -> Any:
        return {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"a": {"$ref": "#/definitions/a", **beside}},
            "definitions": {"a": INTEGER},
        }

    assert not compared(given(), given(minimum=1)).breaks()
    assert not compared(given(minimum=1), given()).breaks()


def test_conditions_that_refer_to_much_are_not_kept_with_it() -> None:
    def given(leaf: str) -> Any:
        return {
            "type": "object",
            "properties": {f"p{n}": {"not": {"$ref": "#/$defs/d"}} for n in range(300)},
            "$defs": {"d": {"enum": ["x" * 1000 + str(n) for n in range(300)]}, "e": {"not": leaf}},
        }

    tracemalloc.start()
    try:
        found = compared(given("x"), given("y"))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not found.breaks()
    # A copy for each would be two hundred times as much.
    assert most < 20_000_000


@pytest.mark.parametrize(
    "odd",
    ["\ud800", 10**400, -(10**5000), {"\udfff": "\ud800"}, [[{}]]],
    ids=["surrogate", "large", "huge", "names", "nested"],
)
def test_surrogates_and_huge_numbers_in_schemas_are_compared(odd: Any) -> None:
    keywords = ("const", "default", "maximum", "multipleOf", "pattern", "$ref", "not", "enum")
    for keyword in (*keywords, "required", "x-mcp-header", "description", "title"):
        given = {"type": "object", "properties": {"a": {keyword: odd}, "\ud800": {"enum": [odd]}}}
        for schema in (given, {**given, "required": ["\ud800"]}):
            compared(schema, {"type": "object"})
            compared({"type": "object"}, schema)
            assert compared(schema, schema).changes == ()
    assert compare([{"name": odd, "title": odd}], [{"name": odd, "title": "x"}]) is not None


def test_a_header_that_was_not_looked_for_is_not_decided() -> None:
    def given(name: str, members: int) -> Any:
        inner = {f"m{n}": {"type": "string"} for n in range(members)}
        inner["z"] = {"type": "string", "x-mcp-header": name}
        many = {f"p{n}": {"type": "object", "properties": dict(inner)} for n in range(members)}
        return {"type": "object", "properties": many}

    small = compare(
        [{"name": "t", "inputSchema": given("A", 3)}], [{"name": "t", "inputSchema": given("B", 3)}]
    )
    assert {change.rule for change in small.changes} == {"listing.input.header-changed"}
    large = compare(
        [{"name": "t", "inputSchema": given("A", 300)}],
        [{"name": "t", "inputSchema": given("B", 300)}],
    )
    assert "x-mcp-header: too large" in {change.detail for change in large.changes}
    assert large.breaks()


def test_a_header_deeper_than_anybody_looks_is_not_decided() -> None:
    found = compared(deep(20, STRING), deep(20, {**STRING, "x-mcp-header": "A"}))
    assert found.breaks()


def test_changed_header_is_reported_with_its_pointer() -> None:
    def given(name: str) -> Any:
        member = {"allOf": [{"$ref": "#/$defs/s"}], "x-mcp-header": name}
        return {"type": "object", "properties": {"a": member}, "$defs": {"s": STRING}}

    (found, _) = compared(given("A"), given("B")).changes
    assert (found.rule, found.where, found.old, found.new) == (
        "listing.input.header-changed",
        "/inputSchema/properties/a/x-mcp-header",
        '"A"',
        '"B"',
    )


def test_the_nearest_default_counts() -> None:
    def given(near: Any, far: Any) -> Any:
        member = {"$ref": "#/$defs/s", **near}
        return {"type": "object", "properties": {"a": member}, "$defs": {"s": {**STRING, **far}}}

    def rules(old: Any, new: Any) -> set[str]:
        return {change.rule for change in compared(old, new).changes}

    changed = "listing.input.default-changed"
    assert changed in rules(given({}, {"default": "x"}), given({}, {"default": "y"}))
    assert changed in rules(given({}, {"default": "x"}), given({"default": "y"}, {"default": "x"}))
    same = given({"default": "x"}, {"default": "z"})
    assert changed not in rules(given({"default": "x"}, {"default": "y"}), same)
