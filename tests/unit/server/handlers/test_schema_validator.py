"""Schemas written by hand: what is refused, what is found wrong, and what is never done."""

from __future__ import annotations

import builtins
import copy
import socket
import sys
from typing import Any

import pytest

from trunkline.server.handlers import schema_validator
from trunkline.server.handlers.schema_validator import BadSchema, SchemaCheck

CANARY = "canary-7f3a"

FORECAST: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "maxLength": 20, "pattern": "^[A-Z]"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14, "multipleOf": 1},
        "units": {"type": "array", "items": {"enum": ["c", "f"]}, "maxItems": 2},
        "mode": {"const": "fast"},
        "near": {"$ref": "#/$defs/place"},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"place": {"type": "object", "required": ["lat"]}},
}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"city": "Rome", "days": 3, "units": ["c"], "near": {"lat": 1}}, None),
        ({}, 'the value breaks "required": "city" is missing'),
        ([], 'the value breaks "type": expected object'),
        ({"city": 7}, '"city" breaks "type": expected string'),
        ({"city": CANARY}, '"city" breaks "pattern": it does not match the pattern'),
        ({"city": "R"}, '"city" breaks "minLength": expected at least 2 characters'),
        ({"city": "R" * 21}, '"city" breaks "maxLength": expected at most 20 characters'),
        ({"city": "Rome", "days": 99}, '"days" breaks "maximum": expected at most 14'),
        ({"city": "Rome", "days": 0}, '"days" breaks "minimum": expected at least 1'),
        (
            {"city": "Rome", "units": [CANARY]},
            '"units[0]" breaks "enum": not one of the allowed values',
        ),
        ({"city": "Rome", "mode": CANARY}, '"mode" breaks "const": not the one allowed value'),
        ({"city": "Rome", "near": {}}, '"near" breaks "required": "lat" is missing'),
        ({"city": "Rome", "cty": 1}, 'the value breaks "additionalProperties": unexpected "cty"'),
    ],
)
def test_a_problem_names_the_place_and_the_keyword_and_not_the_value(
    value: Any, problem: str | None
) -> None:
    found = SchemaCheck(FORECAST).problem(value)
    assert found == problem
    assert CANARY not in str(found)


def test_the_schema_of_the_author_is_left_as_it_is() -> None:
    before = copy.deepcopy(FORECAST)
    check = SchemaCheck(FORECAST)
    check.problem({})
    assert before == FORECAST
    assert repr(check) == "<SchemaCheck>"


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def doubling(steps: int) -> dict[str, Any]:
    """References to references: two to the power of `steps` in all."""
    defs: dict[str, Any] = {
        f"d{step}": {"allOf": [{"$ref": f"#/$defs/d{step + 1}"}, {"$ref": f"#/$defs/d{step + 1}"}]}
        for step in range(steps)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{steps}": {"type": "string"}}}


def hidden(steps: int) -> dict[str, Any]:
    schema = doubling(steps)
    moved = schema.pop("$defs")
    text = {name: {"allOf": [{"$ref": f"#/x-mine/d{int(name[1:]) + 1}"}] * 2} for name in moved}
    text[f"d{steps}"] = {"allOf": []}
    return {"$ref": "#/x-mine/d0", "x-mine": text}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ([], "a JSON Schema is an object"),
        ("string", "a JSON Schema is an object"),
        ({"const": 1j}, "not JSON"),
        ({"type": "strin"}, "not a valid JSON Schema"),
        ({"minLength": "3"}, "not a valid JSON Schema"),
        ({"$ref": "https://example.com/schema"}, "nothing is fetched"),
        ({"$ref": "file:///etc/passwd"}, "nothing is fetched"),
        ({"$ref": "neighbour.json"}, "nothing is fetched"),
        ({"items": {"anyOf": [{"$ref": "//example.com/x"}]}}, "nothing is fetched"),
        ({"$dynamicRef": "https://example.com/schema#x"}, "nothing is fetched"),
        ({"$id": "https://example.com/root", "$ref": "leaf"}, "nothing is fetched"),
        ({"$ref": "#/x-mine", "x-mine": {"$ref": "https://example.com/x"}}, "nothing is fetched"),
        ({"$ref": "#/$defs/none"}, "not a valid JSON Schema"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "the dialect"),
        ({"$schema": "https://example.com/mine"}, "the dialect"),
        ({"pattern": "(?=a"}, "not a valid JSON Schema"),
        ({"pattern": "(?=a)", "type": 7}, "not a valid JSON Schema"),
        ({"description": "x" * 300_000}, "the limit is 262144"),
        ({"anyOf": [{}] * 10_001}, "more than 10000 subschemas"),
        (nested(70), "nested more than 64 deep"),
        (doubling(40), "more than 100000 subschemas with"),
        (hidden(40), "more than 100000 subschemas with"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_a_schema_that_is_not_safe_to_use_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(BadSchema, match=reason):
        SchemaCheck(schema)


def test_a_schema_that_contains_itself_as_an_object_is_refused() -> None:
    schema: dict[str, Any] = {}
    schema["items"] = schema
    with pytest.raises(BadSchema, match="contains itself"):
        SchemaCheck(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/text", "$defs": {"text": {"type": "string"}}},
        {"$ref": "#text", "$defs": {"text": {"$anchor": "text", "type": "string"}}},
        {
            "$ref": "text",
            "$id": "https://example.com/root",
            "$defs": {"t": {"$id": "text", "type": "string"}},
        },
        {"$id": "urn:example:root", "$ref": "#/$defs/text", "$defs": {"text": {"type": "string"}}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/t",
            "definitions": {"t": {"type": "string"}},
        },
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "type": "string"},
        {"$ref": "#/x-mine/text", "x-mine": {"text": {"type": "string"}}},
    ],
    ids=lambda each: str(each)[:40],
)
def test_references_inside_a_schema_are_followed(schema: dict[str, Any]) -> None:
    check = SchemaCheck(schema)
    assert check.problem("x") is None
    assert check.problem(7) == 'the value breaks "type": expected string'


def test_ref_inside_const_or_properties_is_not_a_reference() -> None:
    assert (
        SchemaCheck({"const": {"$ref": "https://example.com"}}).problem(
            {"$ref": "https://example.com"}
        )
        is None
    )
    assert SchemaCheck({"properties": {"$ref": {"type": "string"}}}).problem({"$ref": "x"}) is None


def test_a_schema_that_refers_to_itself_ends() -> None:
    tree = SchemaCheck({"type": "object", "properties": {"kids": {"items": {"$ref": "#"}}}})
    assert tree.problem({"kids": [{"kids": []}]}) is None
    assert tree.problem({"kids": [{"kids": [3]}]}) == (
        '"kids[0].kids[0]" breaks "type": expected object'
    )


def test_a_pattern_with_nested_repeats_takes_linear_time() -> None:
    check = SchemaCheck({"pattern": "^(a+)+$"})
    # A back-tracking engine would not come back from this one.
    assert check.problem("a" * 50_000 + "!") == (
        'the value breaks "pattern": it does not match the pattern'
    )


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^(?!\s*$).+", "tea", "   "),
        (r"^(?=.*\d)(?=.*[A-Z]).{4,}$", "Tea12", "tea12"),
        (r"(?<!un)safe", "safe", "unsafe"),
        (r"^(a+)\1$", "aaaa", "aaa"),
    ],
)
def test_look_around_and_back_references_are_matched(pattern: str, good: str, bad: str) -> None:
    check = SchemaCheck({"properties": {"a": {"type": "string", "pattern": pattern}}})
    assert check.problem({"a": good}) is None
    assert check.problem({"a": bad}) == '"a" breaks "pattern": it does not match the pattern'
    names = SchemaCheck({"patternProperties": {pattern: False}})
    assert names.problem({bad: 1}) is None
    assert names.problem({good: 1}) is not None


TOO_MANY = "takes too many steps to match with its pattern: use a shorter text"


@pytest.mark.parametrize(
    "pattern",
    # Quadratic in the length of the text, and exponential.
    [r"(?=(a+)+$)b", r"^(a|aa)+(?!x)\1!$"],
)
@pytest.mark.parametrize("size", [20_000, 1_000_000])
def test_pattern_with_too_many_steps_is_a_refusal(pattern: str, size: int) -> None:
    assert SchemaCheck({"pattern": pattern}).problem("a" * size) == f"the value {TOO_MANY}"
    members = SchemaCheck({"properties": {"a": {"pattern": pattern}}})
    assert members.problem({"a": "a" * size}) == f'"a" {TOO_MANY}'


@pytest.mark.parametrize("keyword", ["pattern", "not", "if", "oneOf", "patternProperties"])
def test_too_many_steps_are_never_taken_for_a_mismatch(keyword: str) -> None:
    pattern, text = "^(?:a|ab)*?(?=c)c$", "a" * 100_000 + "c"  # it matches, after 100 000 steps
    schema, value = {
        "pattern": ({"pattern": pattern}, text),
        "not": ({"not": {"pattern": pattern}}, text),
        "if": ({"if": {"pattern": pattern}, "then": False}, text),
        "oneOf": ({"oneOf": [{"pattern": pattern}, {"type": "string"}]}, text),
        "patternProperties": ({"patternProperties": {pattern: False}}, {text: 1}),
    }[keyword]
    assert SchemaCheck(schema).problem(value) == f"the value {TOO_MANY}"


def test_steps_of_a_pattern_fall_with_the_size_of_the_value_and_with_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[int] = []
    made = schema_validator._backtracking
    monkeypatch.setattr(
        schema_validator, "_backtracking", lambda each: steps.append(each) or made(each)
    )
    schema_validator._refuses_beyond_steps()  # kept for the next schema
    steps.clear()
    one = SchemaCheck({"pattern": "^(?!x)"})
    for size in (1, 20_000, 20_001, 10_000_000, 2):
        assert one.problem("a" * size) is None
    assert one.problem({"a" * 10_000: ["a" * 10_000]}) is None  # names count too
    assert steps == [1 << 14, 1 << 6, 1 << 4]
    steps.clear()
    SchemaCheck({"allOf": [{"pattern": "^(?!x)"}, {"pattern": "^(?!y)"}, {"pattern": "^a"}]})
    assert steps == [1 << 13]


def test_schema_without_look_around_never_backtracks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(schema_validator, "_backtracking")
    check = SchemaCheck({"pattern": "^(a+)+$"})
    assert check.problem("a" * 1000) is None
    assert check.problem("a" * 1000 + "b") is not None


def test_validator_that_accepts_beyond_its_steps_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schema_validator, "_refuses_beyond_steps", lambda: False)
    with pytest.raises(BadSchema, match=r"look-around, which this version of jsonschema-rs"):
        SchemaCheck({"pattern": "^(?!x)"})


def test_change_of_the_schema_by_its_author_has_no_effect() -> None:
    schema = {"pattern": "^(?!x)"}
    check = SchemaCheck(schema)
    schema["pattern"] = "^(?!a)"
    assert check.problem("a" * 20_000) is None


def test_nothing_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> Any:
        raise AssertionError("somebody opened something")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(BadSchema):
        SchemaCheck({"$ref": "http://127.0.0.1:9/schema"})
    SchemaCheck(FORECAST)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(ImportError, match=r'pip install "trunkline\[schema\]"'):
        SchemaCheck({"type": "object"})


def test_a_secret_in_a_name_is_not_shown() -> None:
    name = "sk-live-" + "a" * 30
    found = SchemaCheck({"additionalProperties": False}).problem({name: 1})
    assert found is not None
    assert name not in found


# The value decides how many errors there are


def test_five_unexpected_names_are_shown() -> None:
    check = SchemaCheck({"properties": {"a": {}}, "unevaluatedProperties": False})
    found = check.problem({f"k{n}": n for n in range(10)})
    names = ", ".join(f'"k{n}"' for n in range(5))
    assert found == f'the value breaks "unevaluatedProperties": unexpected {names}'


def test_a_large_value_that_fits_no_alternative_is_rejected_without_its_place() -> None:
    check = SchemaCheck({"anyOf": [{"items": {"type": "integer"}}, {"type": "object"}]})
    assert check.problem(["x"] * 2000) == 'the value breaks "anyOf"'
    assert check.problem(["x"] * 2001) == "the value does not fit; it is too large to say where"
    assert check.problem([1] * 2001) is None


@pytest.mark.parametrize(
    "alternative",
    [
        {"$ref": "#/$defs/a"},
        {"additionalProperties": {"type": "integer"}},
        {"patternProperties": {"^k": {"type": "integer"}}},
        {"propertyNames": {"maxLength": 1}},
        {"properties": {"k1": {"items": {"type": "integer"}}}, "required": ["zz"]},
        {"allOf": [{"unevaluatedProperties": {"type": "integer"}}]},
    ],
)
def test_alternatives_whose_errors_grow_with_the_value_are_known(
    alternative: dict[str, Any],
) -> None:
    schema = {"oneOf": [alternative, False], "$defs": {"a": {"type": "integer"}}}
    found = SchemaCheck(schema).problem({f"k{n}": "x" for n in range(3000)})
    assert found == "the value does not fit; it is too large to say where"


def test_alternatives_that_look_at_one_value_name_the_place_in_a_large_one() -> None:
    choice = {"anyOf": [{"type": "integer"}, {"required": ["b"], "additionalProperties": False}]}
    found = SchemaCheck({"items": choice}).problem([1] * 3000 + ["x", {"c": 1}])
    assert found == '"[3001]" breaks "anyOf"'


def test_a_fault_at_the_beginning_of_a_large_value_is_named_by_its_place() -> None:
    alternatives = {"anyOf": [{"items": {"type": "integer"}}, {"type": "object"}]}
    check = SchemaCheck({"properties": {"a": {"type": "string"}, "b": alternatives}})
    assert check.problem({"a": [[]] * 5000, "b": []}) == '"a" breaks "type": expected string'
    assert check.problem({"b": [1] * 5000, "a": 7}) == '"a" breaks "type": expected string'


def test_size_keywords_are_checked_on_the_whole_of_a_large_value() -> None:
    schema = {"type": "object", "required": ["z"], "minProperties": 3000, "maxProperties": 3001}
    names: dict[str, Any] = {f"k{n}": n for n in range(3000)}
    check = SchemaCheck({**schema, "properties": {"z": {"type": "string"}}})
    assert check.problem({**names, "z": "x"}) is None
    assert check.problem({**names, "z": 1}) == '"z" breaks "type": expected string'
    assert check.problem(names) == 'the value breaks "required": "z" is missing'
    items = SchemaCheck({"minItems": 3001})
    assert items.problem([0] * 3000) == 'the value breaks "minItems": expected at least 3001 items'


def test_a_deep_value_is_cut_as_a_wide_one_is() -> None:
    value: Any = 1
    for _ in range(200):
        value = [value] * 3
    check = SchemaCheck({"type": "string"})
    assert check.problem([value, [0] * 3000]) == 'the value breaks "type": expected string'
