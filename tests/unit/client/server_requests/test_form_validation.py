"""Answers held against forms: every kind of field, taken and refused."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.client.server_requests.form_validation import FormMismatch, defaults, fit

TITLED = [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]


def form(*required: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required)}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"type": "string"}, ""),
        ({"type": "string", "minLength": 2, "maxLength": 3}, "éà"),
        ({"type": "string", "format": "email"}, "ada@example.com"),
        ({"type": "string", "format": "uri"}, "https://example.com/a?b#c"),
        ({"type": "string", "format": "date"}, "2026-02-28"),
        ({"type": "string", "format": "date-time"}, "2026-02-28T12:00:00Z"),
        ({"type": "string", "format": "of-tomorrow"}, "anything"),
        ({"type": "string", "pattern": "^(a+)+$"}, "a" * 40 + "b"),
        ({"type": "number"}, 1.5),
        ({"type": "number"}, 3),
        ({"type": "number", "minimum": 1, "maximum": 2.5}, 2.5),
        ({"type": "integer", "minimum": -1, "maximum": 1}, -1),
        ({"type": "boolean"}, False),
        ({"type": "string", "enum": ["a", "b"]}, "b"),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}, "b"),
        ({"type": "string", "oneOf": TITLED}, "b"),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, ["b", "a"]),
        ({"type": "array", "items": {"anyOf": TITLED}, "minItems": 1, "maxItems": 2}, ["b"]),
        ({"type": "array", "items": {"enum": ["a"]}}, []),
        # What makes no sense asks for nothing.
        ({"type": "string", "minLength": "two", "enum": "ab"}, "x"),
        ({"type": "number", "minimum": "one", "maximum": True}, 7),
        ({"type": "array", "items": 5, "minItems": None}, ["x"]),
        ({"type": ["string"]}, "x"),
        ({}, 5),
    ],
)
def test_a_value_that_fits_is_sent(field: dict[str, Any], value: Any) -> None:
    assert fit(form("x", x=field), {"x": value}) == {"x": value}


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ({"type": "string"}, 5, "a text, not 5"),
        ({"type": "string"}, ["a"], "a text"),
        ({"type": "string", "minLength": 2}, "é", "at least 2 characters"),
        ({"type": "string", "maxLength": 2}, "abc", "at most 2 characters"),
        ({"type": "string", "format": "email"}, "ada", "an e-mail address"),
        ({"type": "string", "format": "uri"}, "example", "a URI"),
        ({"type": "string", "format": "date"}, "28.2.2026", "a date"),
        ({"type": "string", "format": "date-time"}, "2026-02-28", "a date and time"),
        ({"type": "number"}, "1", 'a number, not "1"'),
        ({"type": "number"}, True, "a number, not true"),
        ({"type": "number"}, float("nan"), "a number"),
        ({"type": "number"}, float("inf"), "a number"),
        ({"type": "number", "minimum": 1.5}, 1, "at least 1.5"),
        ({"type": "number", "maximum": 1.5}, 2, "at most 1.5"),
        ({"type": "integer"}, 1.5, "an integer"),
        ({"type": "integer"}, True, "an integer"),
        ({"type": "integer"}, float("inf"), "an integer"),
        ({"type": "integer", "minimum": 1}, 0, "at least 1"),
        ({"type": "boolean"}, "yes", 'true or false, not "yes"'),
        ({"type": "boolean"}, 1, "true or false"),
        ({"type": "string", "enum": ["a", "b"]}, "c", 'one of "a", "b", not "c"'),
        ({"type": "string", "enum": ["1"]}, 1, 'one of "1"'),
        ({"type": "string", "enum": ["a"], "enumNames": ["A"]}, "A", 'one of "a"'),
        ({"type": "string", "oneOf": TITLED}, "A", 'one of "a", "b"'),
        ({"enum": [str(each) for each in range(21)]}, "x", 'one of its choices, not "x"'),
        ({"type": "array", "items": {"enum": ["a"]}}, "a", "a list of texts"),
        ({"type": "array", "items": {"enum": ["a"]}}, [1], "a list of texts"),
        ({"type": "array", "items": {"enum": ["a"]}}, ["b"], 'a list, each one of "a"'),
        ({"type": "array", "items": {"anyOf": TITLED}}, ["A"], 'a list, each one of "a", "b"'),
        ({"type": "array", "items": {"enum": ["a"]}, "minItems": 1}, [], "at least 1 of"),
        ({"type": "array", "items": {"enum": ["a"]}, "maxItems": 1}, ["a", "a"], "at most 1 of"),
        ({}, {"a": 1}, "a single value"),
    ],
)
def test_a_value_that_does_not_fit_is_named(
    field: dict[str, Any], value: Any, expected: str
) -> None:
    with pytest.raises(FormMismatch) as caught:
        fit(form(x=field), {"x": value})
    assert str(caught.value).startswith("the field 'x' takes ")
    assert expected in str(caught.value)


def test_a_required_field_has_to_be_filled_in() -> None:
    schema = form("x", x={"type": "string"}, y={"type": "string"})
    with pytest.raises(FormMismatch, match="the field 'x' is required"):
        fit(schema, {"y": "there"})
    with pytest.raises(FormMismatch, match="the field 'x' is required"):
        fit(schema, {"x": None})
    assert fit(schema, {"x": "", "y": None}) == {"x": ""}


def test_a_field_that_the_form_lacks_is_a_mistake() -> None:
    with pytest.raises(FormMismatch, match="the form has no field 'z', but 'x', 'y'"):
        fit(form(x={"type": "string"}, y={"type": "string"}), {"z": 1})
    with pytest.raises(FormMismatch, match="the form has no field 'z', but none at all"):
        fit({}, {"z": 1})


def test_omitted_fields_get_their_defaults_and_given_ones_keep_their_values() -> None:
    schema = form(
        "name",
        name={"type": "string", "default": "Ada"},
        age={"type": "integer", "default": 36.0},
        score={"type": "number", "default": 95.0},
        verified={"type": "boolean", "default": False},
        status={"type": "string", "enum": ["on", "off"], "default": "on"},
        several={"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b"]},
        free={"type": "string"},
    )
    filled = {
        "name": "Ada",
        "age": 36,
        "score": 95.0,
        "verified": False,
        "status": "on",
        "several": ["b"],
    }
    assert defaults(schema) == filled
    assert fit(schema, {}) == filled
    assert type(fit(schema, {})["age"]) is int
    assert fit(schema, {"status": "off", "free": "x"}) == {**filled, "status": "off", "free": "x"}
    # As the form has them, for whoever reads it.
    assert list(fit(schema, {"free": "x", "age": 1})) == list(schema["properties"])


def test_a_default_that_its_own_field_refuses_is_none() -> None:
    schema = form(
        "x", x={"type": "integer", "default": "many"}, y={"type": "string", "default": None}
    )
    assert defaults(schema) == {}
    with pytest.raises(FormMismatch, match="'x' is required"):
        fit(schema, {})


def test_an_integer_is_sent_as_one() -> None:
    found = fit(form(x={"type": "integer"}), {"x": 3.0})
    assert type(found["x"]) is int


@pytest.mark.parametrize(
    "schema", [{}, {"properties": []}, {"properties": {"x": 5}, "required": 7}]
)
def test_schema_that_is_not_a_form_has_no_fields(schema: dict[str, Any]) -> None:
    assert fit(schema, {}) == {}
    assert defaults(schema) == {}


def test_required_field_missing_from_the_properties_is_ignored() -> None:
    assert fit(form("ghost", x={"type": "string"}), {"x": "y"}) == {"x": "y"}


def test_form_mismatch_does_not_repeat_a_secret_value() -> None:
    with pytest.raises(FormMismatch) as caught:
        fit(form(password={"type": "string", "minLength": 20}), {"password": "hunter2"})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(FormMismatch) as caught:
        fit(form(x={"type": "integer"}), {"x": "api_key=sk-canary0123456789abcdef"})
    assert "canary" not in str(caught.value)
