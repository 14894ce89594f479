"""The keywords of one schema: what is read, and what is not taken for absent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import for_each
from trunkline.judge.diff.keywords import listed_values, own_shape
from trunkline.judge.diff.normal_form import CONDITIONS, Bound, Case, CasesByType
from trunkline.judge.diff.schema_document import SchemaDocument

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"

# A value that no draft allows, for every keyword that is read or kept as a whole.
MALFORMED: dict[str, tuple[Any, ...]] = {
    "type": ("text", 5, [], ["string", 5], None, {}),
    "enum": ("x", None, {}, 5),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), ("1", None, True, float("inf"))),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), ("1", None, True, float("nan"))),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        ("1", None, True, -1, 1.5, float("inf")),
    ),
    **dict.fromkeys(("pattern", "format", "contentEncoding", "contentMediaType"), (5, None, True)),
    "items": (5, None, "x", []),
    "prefixItems": (5, None, {}),
    "additionalItems": (5, None, {}),
    "uniqueItems": ("true", 1, None, 0),
    "properties": ([], None, 5, True),
    "patternProperties": ([], None, 5, False),
    "additionalProperties": ([], None, 5, "false"),
    "required": (True, False, "a", None, [5], {}),
    "unevaluatedProperties": (1, None, "x", False),
    "unevaluatedItems": (1, None, "x", False),
    **dict.fromkeys(
        (
            *("not", "if", "contains", "propertyNames", "dependentRequired"),
            *("dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef"),
        ),
        (None, 5, True),
    ),
}
# Those that others read, and those that mean nothing by themselves.
ELSEWHERE = {"$ref", "allOf", "anyOf", "oneOf", "then", "else", "minContains", "maxContains"}
# What is no keyword of JSON Schema, or has no wrong value.
APART = {"nullable", "const"}


def shape_of(schema: dict[str, Any], draft: str | None = None) -> CasesByType:
    return own_shape(schema, SchemaDocument({} if draft is None else {"$schema": draft}))


def case_of(schema: dict[str, Any], name: str, draft: str | None = None) -> Case:
    (case,) = shape_of(schema, draft)[name]
    return case


def test_every_keyword_has_a_malformed_value() -> None:
    assert MALFORMED.keys() | ELSEWHERE | APART == CONDITIONS


@for_each(
    ("keyword", "said"),
    [(keyword, each) for keyword, values in MALFORMED.items() for each in values],
)
def test_a_malformed_keyword_is_not_taken_for_absent(keyword: str, said: Any) -> None:
    shape = shape_of({keyword: said})
    assert len(shape) == 6
    kept = {each for cases in shape.values() for case in cases for each, _ in case.opaque}
    assert kept == {keyword}


@pytest.mark.parametrize("keyword", ["minimum", "required", "uniqueItems"])
def test_a_malformed_keyword_counts_beside_any_type(keyword: str) -> None:
    assert case_of({"type": "string", keyword: "x"}, "string").opaque


@for_each(
    ("draft", "schema"),
    [
        (DRAFT_4, {"const": 1}),
        (DRAFT_4, {"exclusiveMinimum": 1}),
        (DRAFT_4, {"contentEncoding": "base64"}),
        (DRAFT_7, {"prefixItems": [True]}),
        (DRAFT_7, {"minimum": 1, "exclusiveMinimum": True}),
        (None, {"items": [True]}),
        (None, {"additionalItems": False}),
    ],
)
def test_keyword_of_another_draft_is_opaque(draft: str | None, schema: dict[str, Any]) -> None:
    for cases in shape_of(schema, draft).values():
        assert all(case.opaque for case in cases)
        assert all(case.values is None and not case.rows for case in cases)


def test_a_draft_reads_its_own() -> None:
    number = case_of({"minimum": 1, "exclusiveMinimum": True}, "number", DRAFT_4)
    assert (number.low, number.opaque) == (Bound(1, True), frozenset())
    row = case_of({"items": [True], "additionalItems": False}, "array", DRAFT_7)
    assert (row.rows[0].first, row.rows[0].rest, row.opaque) == ((True,), False, frozenset())
    row = case_of({"prefixItems": [True], "items": False}, "array")
    assert (row.rows[0].first, row.rows[0].rest, row.opaque) == ((True,), False, frozenset())


def test_keywords_beside_a_malformed_one_are_opaque() -> None:
    case = case_of({"properties": 5, "additionalProperties": False}, "object")
    assert case.additional() == ()
    other = case_of({"properties": 5, "additionalProperties": True}, "object")
    assert case.opaque != other.opaque
    row = case_of({"prefixItems": 5, "items": False}, "array")
    assert row.rows == ()
    assert row.opaque != case_of({"prefixItems": 5, "items": True}, "array").opaque


@pytest.mark.parametrize("said", [True, "true", 1, None])
def test_openapi_nullable_makes_null_opaque(said: Any) -> None:
    schema = {"type": "string", "enum": ["a"], "nullable": said}
    case = case_of(schema, "null")
    assert {keyword for keyword, _ in case.opaque} == {"nullable"}
    assert not case_of(schema, "string").opaque
    assert "null" not in shape_of({"type": "string", "nullable": False})
    # Without a type null is allowed anyway.
    assert not case_of({"nullable": True}, "null").opaque


def test_boolean_required_of_a_member_is_opaque() -> None:
    case = case_of({"properties": {"a": {"required": True}, "b": {"required": False}}}, "object")
    assert {keyword for keyword, _ in case.opaque} == {"required"}
    assert not case_of({"properties": {"b": {"required": ["c"]}}}, "object").opaque


def test_a_limit_may_be_larger_than_any_float() -> None:
    case = case_of({"minimum": -(10**400), "exclusiveMaximum": 10**400}, "number")
    assert (case.low, case.high) == (Bound(-(10**400), False), Bound(10**400, True))


def test_a_whole_number_of_draft_4_is_another() -> None:
    assert case_of({"type": "integer"}, "number", DRAFT_4).opaque
    assert not case_of({"type": "integer"}, "number", DRAFT_7).opaque


@for_each(
    ("draft", "schema", "count"),
    [
        (None, {"enum": [1, "a"]}, 2),
        (None, {"const": 1, "$ref": "#"}, 1),
        (DRAFT_7, {"const": 1, "$ref": "#"}, 0),
        (DRAFT_4, {"const": 1}, 0),
        (None, {"type": "string", "enum": ["a"], "nullable": True}, 0),
        (None, {"enum": 5}, 0),
        (None, True, 0),
    ],
)
def test_listed_values_are_those_that_count(draft: str | None, schema: Any, count: int) -> None:
    document = SchemaDocument({} if draft is None else {"$schema": draft})
    assert len(listed_values(schema, document)) == count
