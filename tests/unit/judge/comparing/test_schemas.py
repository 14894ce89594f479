"""Schemas that would have a comparison hang, grow or fall over; the rest is in the vectors."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.judge.comparing import Comparison, compare

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


def test_what_nests_as_deep_as_people_do_is_decided() -> None:
    found = compared(deep(20, INTEGER), deep(20, STRING))
    assert {change.rule for change in found.changes} == {
        "listing.input.type-narrowed",
        "listing.output.type-widened",
    }


@pytest.mark.parametrize("levels", [100, 400, 3000])
def test_what_nests_deeper_is_not_decided_and_breaks(levels: int) -> None:
    found = compared(deep(levels, INTEGER), deep(levels, STRING))
    assert {change.rule for change in found.changes} == {
        "listing.input.undecided",
        "listing.output.undecided",
    }
    assert {change.detail for change in found.changes} == {"nested too deep"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (wide(5, 5, INTEGER), wide(5, 5, STRING)),
        (doubling("allOf", INTEGER), doubling("allOf", STRING)),
        (doubling("anyOf", INTEGER), doubling("anyOf", STRING)),
        (doubling("oneOf", INTEGER), doubling("oneOf", STRING)),
        ({"enum": list(range(20_000))}, {"enum": list(range(1, 20_000))}),
    ],
    ids=["unions", "allOf", "anyOf", "oneOf", "enum"],
)
def test_what_would_take_for_ever_ends_and_breaks(old: Any, new: Any) -> None:
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
