"""The annotation `x-mcp-header` in the schema of a tool."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.mcp.param_headers import InvalidParamHeader, param_headers, param_path

TEXT = {"type": "string", "x-mcp-header": "Region"}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


# -- what is found ---------------------------------------------------------------------------


def test_an_annotated_property_gives_its_header_and_its_path() -> None:
    (row,) = param_headers(schema(region=TEXT, other={"type": "string"}))
    assert row == ("Mcp-Param-Region", b"mcp-param-region", ("region",))
    assert row == param_path("Region", ("region",))


@pytest.mark.parametrize("type_", ["string", "integer", "boolean"])
def test_three_types_can_be_annotated(type_: str) -> None:
    assert param_headers(schema(a={"type": type_, "x-mcp-header": "A"})) == (
        param_path("A", ("a",)),
    )


def test_a_property_of_an_object_is_found_by_its_path() -> None:
    inner = schema(b=schema(c=TEXT), d={"type": "boolean", "x-mcp-header": "D"})
    found = param_headers(schema(a=inner, e={"type": "integer", "x-mcp-header": "E"}))
    # Outer ones first.
    assert [(row.header, row.path) for row in found] == [
        ("Mcp-Param-E", ("e",)),
        ("Mcp-Param-D", ("a", "d")),
        ("Mcp-Param-Region", ("a", "b", "c")),
    ]


def test_the_name_of_a_standard_header_is_free() -> None:
    (row,) = param_headers(schema(a={"type": "string", "x-mcp-header": "Method"}))
    assert row.key == b"mcp-param-method"


@pytest.mark.parametrize(
    "unmarked",
    [
        {},
        {"type": "object"},
        {"properties": True},
        schema(a=True),
        # A property may be called like the keyword.
        schema(**{"x-mcp-header": {"type": "number"}}),
        # Data is not a schema.
        schema(a={"const": TEXT, "enum": [TEXT], "default": TEXT, "examples": [TEXT]}),
    ],
)
def test_a_schema_without_annotations_has_no_headers(unmarked: dict[str, Any]) -> None:
    assert param_headers(unmarked) == ()


# -- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "a b", "a:b", "ä", "a\r\nb", "\x00", 1, None, True, [], {"a": 1}]
)
def test_a_name_that_is_not_a_token_is_refused(name: object) -> None:
    with pytest.raises(InvalidParamHeader, match=r"x-mcp-header of 'a' is not a name"):
        param_headers(schema(a={"type": "string", "x-mcp-header": name}))


@pytest.mark.parametrize(
    "type_", ["number", "array", "object", "null", "text", None, ["string"], ["string", "null"], 1]
)
def test_another_type_is_refused(type_: object) -> None:
    with pytest.raises(InvalidParamHeader, match="x-mcp-header of 'a' needs one type of string"):
        param_headers(schema(a={"type": type_, "x-mcp-header": "A"}))


def test_a_type_behind_a_reference_is_refused() -> None:
    with pytest.raises(InvalidParamHeader, match="needs one type"):
        param_headers(schema(a={"$ref": "#/$defs/a", "x-mcp-header": "A"}))


def test_names_that_differ_in_case_alone_are_refused() -> None:
    twice = schema(a=TEXT, b=schema(c={"type": "integer", "x-mcp-header": "REGION"}))
    with pytest.raises(InvalidParamHeader, match=r"x-mcp-header of 'b\.c': another property"):
        param_headers(twice)


@pytest.mark.parametrize(
    "hidden",
    [
        TEXT,  # the root
        {"items": TEXT},
        {"prefixItems": [TEXT]},
        {"oneOf": [schema(a=TEXT)]},
        {"anyOf": [schema(a=TEXT)]},
        {"allOf": [schema(a=TEXT)]},
        {"not": schema(a=TEXT)},
        {"if": schema(a=TEXT)},
        {"then": schema(a=TEXT)},
        {"else": schema(a=TEXT)},
        {"$defs": {"a": TEXT}},
        {"definitions": {"a": schema(b=TEXT)}},
        {"patternProperties": {"a": TEXT}},
        {"additionalProperties": TEXT},
        {"dependentSchemas": {"a": schema(b=TEXT)}},
        schema(a={"type": "array", "items": TEXT}),
        schema(a={"anyOf": [TEXT, {"type": "null"}]}),
        schema(a={"items": schema(b=TEXT)}),
    ],
)
def test_a_place_not_reached_through_properties_is_refused(hidden: dict[str, Any]) -> None:
    with pytest.raises(InvalidParamHeader, match="not a property"):
        param_headers(hidden)


def test_the_text_of_a_fault_shows_the_beginning_of_a_long_name() -> None:
    with pytest.raises(InvalidParamHeader) as raised:
        param_headers(schema(**{"a" * 10_000: {"x-mcp-header": "A"}}))
    assert len(str(raised.value)) < 200


def test_deep_schemas_are_read_without_recursion() -> None:
    deep: dict[str, Any] = {**TEXT}
    for _ in range(5000):
        deep = schema(a=deep)
    (row,) = param_headers(deep)
    assert len(row.path) == 5000


# -- values ----------------------------------------------------------------------------------


def test_a_value_is_found_by_its_path() -> None:
    row = param_path("A", ("a", "b"))
    assert row.value({"a": {"b": 1}}) == 1
    assert row.value({"a": {"b": False}}) is False


@pytest.mark.parametrize(
    "arguments", [None, {}, [], "a", {"a": None}, {"a": 1}, {"a": {}}, {"a": {"b": None}}]
)
def test_a_value_that_is_null_or_absent_is_none(arguments: object) -> None:
    assert param_path("A", ("a", "b")).value(arguments) is None
