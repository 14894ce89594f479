"""Schemas taken apart: what a case holds, and what becomes opaque."""

from __future__ import annotations

from typing import Any

from trunkline.judge.diff.normal_form import Bound, Budget, CasesByType, Node
from trunkline.judge.diff.normalize import expand
from trunkline.judge.diff.schema_document import SchemaDocument


def shape_of(schema: Any, steps: int = 1000) -> CasesByType:
    return expand((Node(schema, SchemaDocument(schema)),), Budget(steps))


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


def test_schema_over_the_budget_is_opaque() -> None:
    schema = {"allOf": [{"type": "string"}] * 10}
    assert list(shape_of(schema)) == ["string"]
    (case,) = shape_of(schema, steps=0)["number"]
    assert case.is_unknown()


def test_a_schema_with_an_address_of_its_own_is_opaque() -> None:
    schema = {"allOf": [{"$id": "https://example.com/other", "$ref": "#/$defs/a"}]}
    (case,) = shape_of(schema)["string"]
    assert case.is_unknown()


def chain(levels: int, times: int, members: int = 0) -> Any:
    """Definitions, each of which refers to the next one several times."""
    steps = {
        f"d{n}": {
            "allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * times,
            "properties": {f"p{n}x{each}": {"type": "string"} for each in range(members)},
        }
        for n in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**steps, f"d{levels}": {"properties": {"a": {}}}}}


def test_schema_referenced_many_times_is_merged_once() -> None:
    (case,) = shape_of(chain(10, 8))["object"]
    assert len(case.parts) == 11
    assert not case.opaque
    schema = {"allOf": [{"$ref": "#/$defs/a"}] * 8, "$defs": {"a": {"items": {"type": "null"}}}}
    (row,) = shape_of(schema)["array"]
    assert len(row.rows) == 1
    either = {"anyOf": [{"$ref": "#/$defs/a"}] * 8, "$defs": {"a": {"minimum": 1}}}
    assert len(shape_of(either)["number"]) == 1


def test_parts_of_too_many_schemas_are_opaque() -> None:
    few = [{"properties": {f"p{n}": {}}, "items": {"minimum": n}} for n in range(20)]
    (case,) = shape_of({"allOf": few})["object"]
    assert (len(case.parts), bool(case.opaque)) == (20, False)
    many = [{"properties": {f"p{n}": {}}, "items": {"minimum": n}} for n in range(40)]
    for name in ("object", "array"):
        (case,) = shape_of({"allOf": many})[name]
        assert len(case.parts) + len(case.rows) <= 32
        assert case.is_unknown()


def test_merging_long_lists_uses_the_budget() -> None:
    both = {"allOf": [{"enum": list(range(5000))}, {"enum": list(range(1, 5000))}]}
    (case,) = shape_of(both)["number"]
    assert not case.opaque
    assert all(case.opaque for case in shape_of(both, steps=50)["number"])


def test_tags_beside_a_reference_count_as_the_draft_has_it() -> None:
    def given(draft: str) -> Any:
        tagged = [
            {
                "type": "object",
                "required": ["k"],
                "properties": {"k": {"$ref": "#/definitions/s", "const": tag}},
            }
            for tag in ("x", "y")
        ]
        return {"$schema": draft, "oneOf": tagged, "definitions": {"s": {"type": "string"}}}

    for case in shape_of(given("http://json-schema.org/draft-07/schema#"))["object"]:
        assert case.opaque
    for case in shape_of(given("https://json-schema.org/draft/2019-09/schema"))["object"]:
        assert not case.opaque


def test_schema_of_an_unknown_draft_is_opaque() -> None:
    for named in ("http://json-schema.org/draft-03/schema#", "https://example.com/mine", None):
        (case,) = shape_of({"$schema": named, "type": "string"})["number"]
        assert case.is_unknown()
