"""Schemas taken apart: what a case holds, and what becomes opaque."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.errors import NOTHING
from trunkline.judge.comparing.shapes import (
    Bound,
    Budget,
    Document,
    Node,
    Shape,
    expand,
    key_of,
    whole_high,
    whole_low,
)


def shape_of(schema: Any, steps: int = 1000) -> Shape:
    return expand((Node(schema, Document(schema)),), Budget(steps))


def test_a_schema_has_cases_of_the_types_it_allows() -> None:
    assert list(shape_of({"type": ["string", "null"]})) == ["null", "string"]
    assert list(shape_of({"enum": [1, "a", None]})) == ["null", "number", "string"]
    assert shape_of(False) == {}
    assert len(shape_of(True)) == len(shape_of({})) == 6


def test_conditions_in_several_places_are_merged() -> None:
    schema = {"type": "integer", "minimum": 1, "allOf": [{"minimum": 3}, {"exclusiveMinimum": 2}]}
    (case,) = shape_of(schema)["number"]
    assert (case.is_integer, case.low) == (True, Bound(3, False))


def test_values_that_cannot_be_together_leave_no_case() -> None:
    assert shape_of({"enum": ["a", "b"], "const": "c"}) == {}
    assert shape_of({"allOf": [{"const": 1}, {"const": True}]}) == {}


def test_alternatives_are_cases_of_their_own() -> None:
    shape = shape_of({"anyOf": [{"maximum": 1}, {"minimum": 5}, {"type": "null"}]})
    assert len(shape["number"]) == 2
    # Limits of numbers say nothing of texts: the first two allow any.
    assert len(shape["string"]) == 2


def test_alternatives_that_may_both_hold_are_opaque_in_one_of() -> None:
    apart = shape_of({"oneOf": [{"type": "string"}, {"type": "null"}]})
    assert not any(case.opaque for cases in apart.values() for case in cases)
    overlapping = shape_of({"oneOf": [{"maximum": 1}, {"minimum": 0}]})
    assert all(case.opaque for cases in overlapping.values() for case in cases)


def test_what_is_beyond_the_budget_is_opaque() -> None:
    schema = {"allOf": [{"type": "string"}] * 10}
    assert list(shape_of(schema)) == ["string"]
    (case,) = shape_of(schema, steps=0)["number"]
    assert case.is_unknown()


def test_a_schema_with_an_address_of_its_own_is_opaque() -> None:
    schema = {"allOf": [{"$id": "https://example.com/other", "$ref": "#/$defs/a"}]}
    (case,) = shape_of(schema)["string"]
    assert case.is_unknown()


def test_values_are_equal_as_json_has_it() -> None:
    assert key_of(1) == key_of(1.0) == key_of(1)
    assert key_of([1.0, {"b": 1, "a": 2}]) == key_of([1, {"a": 2, "b": 1}])
    assert len({key_of(each) for each in (1, True, "1", None, "null", [1], 1.5)}) == 7


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#", "root"),
        ("#/$defs/a", "a"),
        ("#/$defs/x~1y", "slash"),
        ("#/$defs/list/1", "second"),
        ("#/$defs/missing", NOTHING),
        ("#/$defs/list/9", NOTHING),
        ("#a", NOTHING),
        ("other.json", NOTHING),
        (5, NOTHING),
    ],
)
def test_a_reference_leads_into_its_own_document(reference: Any, target: Any) -> None:
    root = {"title": "root", "$defs": {"a": "a", "x/y": "slash", "list": ["first", "second"]}}
    found = Document(root).target(reference)
    assert (found["title"] if found is root else found) == target


def test_nothing_but_a_reference_is_what_it_leads_to() -> None:
    root: Any = {"$defs": {"a": {"$ref": "#/$defs/b", "title": "A"}, "b": {"type": "null"}}}
    document = Document(root)
    assert document.followed({"$ref": "#/$defs/a"}) is root["$defs"]["b"]
    beside = {"$ref": "#/$defs/a", "type": "null"}
    assert document.followed(beside) is beside


def test_limits_of_whole_numbers() -> None:
    assert whole_low(Bound(0, True)) == whole_low(Bound(0.5, False)) == Bound(1, False)
    assert whole_low(Bound(0.5, True)) == whole_low(Bound(1, False)) == Bound(1, False)
    assert whole_high(Bound(3, True)) == whole_high(Bound(2.5, False)) == Bound(2, False)
    assert whole_high(Bound(2.5, True)) == whole_high(Bound(2, False)) == Bound(2, False)
