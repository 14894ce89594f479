"""Values against simple JSON Schemas: yes, no, or not known."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.judge.rules.schema_check import fits

TYPES: dict[str, list[Any]] = {
    "string": ["", "a"],
    "boolean": [True, False],
    "null": [None],
    "array": [[], [1]],
    "object": [{}, {"a": 1}],
    "number": [0, 1.5],
}


@pytest.mark.parametrize("name", TYPES)
def test_a_value_has_one_type(name: str) -> None:
    for other, values in TYPES.items():
        for value in values:
            assert fits(value, {"type": name}) is (name == other), value


@pytest.mark.parametrize(
    ("value", "expected"), [(1, True), (1.0, True), (1.5, False), (True, False), ("1", False)]
)
def test_an_integer_may_be_written_with_a_point(value: object, expected: bool) -> None:
    assert fits(value, {"type": "integer"}) is expected


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (4, {"minimum": 4, "maximum": 4}, True),
        (3, {"minimum": 4}, False),
        (5, {"maximum": 4}, False),
        ("ab", {"minLength": 2, "maxLength": 2}, True),
        ("a", {"minLength": 2}, False),
        ("abc", {"maxLength": 2}, False),
        # Bounds of numbers are not asked of texts, nor those of texts of numbers.
        ("a", {"minimum": 4}, True),
        (1, {"minLength": 4}, True),
    ],
)
def test_bounds_are_part_of_what_is_allowed(value: object, schema: Any, expected: bool) -> None:
    assert fits(value, schema) is expected


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (1, {"enum": [0, 1]}, True),
        (2, {"enum": [0, 1]}, False),
        (1, {"enum": [True]}, False),
        (True, {"const": True}, True),
        (0, {"const": False}, False),
        ("a", {"const": "b"}, False),
    ],
)
def test_true_is_not_one(value: object, schema: Any, expected: bool) -> None:
    assert fits(value, schema) is expected


STRICT = {"properties": {"a": {"type": "string"}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ({"a": "x"}, STRICT, True),
        ({"a": 1}, STRICT, False),
        ({"b": "x"}, STRICT, False),
        ({"b": "x"}, {"properties": {}}, True),
        ({"b": 1}, {"additionalProperties": {"type": "string"}}, False),
        ({"a": 1}, {"required": ["a"]}, True),
        ({"a": 1}, {"required": ["a", "b"]}, False),
        ([], {"required": ["a"]}, True),
        ([1, "a"], {"items": {"type": "integer"}}, False),
        ([1, 2], {"items": {"type": "integer"}}, True),
        ({"a": [{"b": 1}]}, {"properties": {"a": {"items": {"required": ["c"]}}}}, False),
    ],
)
def test_members_and_items_are_looked_at(value: object, schema: Any, expected: bool) -> None:
    assert fits(value, schema) is expected


def test_annotations_are_ignored() -> None:
    said = {"title": "t", "description": "d", "default": 1, "$schema": "s", "x-mcp-header": "H"}
    assert fits("a", said) is True


@pytest.mark.parametrize("schema", [{"pattern": "a"}, {"anyOf": []}, {"$ref": "#"}, None, 1, []])
def test_unsupported_keyword_gives_none(schema: object) -> None:
    assert fits("a", schema) is None
    assert fits(["a"], {"items": schema}) is None


def test_one_clear_no_outweighs_what_is_not_understood() -> None:
    schema = {"properties": {"a": {"pattern": "a"}, "b": {"type": "string"}}}
    assert fits({"a": "a", "b": "b"}, schema) is None
    assert fits({"a": "a", "b": 1}, schema) is False


@pytest.mark.parametrize(("depth", "expected"), [(31, True), (32, None)])
def test_value_nested_too_deep_gives_none(depth: int, expected: bool | None) -> None:
    value: Any = 1
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        value, schema = [value], {"items": schema}
    assert fits(value, schema) is expected
