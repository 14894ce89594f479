"""Whether one schema is inside another: the obstacles, and what rests on what."""

from __future__ import annotations

from typing import Any

from trunkline.judge.diff.normal_form import Budget, Node
from trunkline.judge.diff.schema_document import SchemaDocument
from trunkline.judge.diff.subschema import Obstacle, Side, SubschemaCheck


def obstacles(left: Any, right: Any, names: Side = "left", steps: int = 1000) -> list[Obstacle]:
    subs = [(Node(each, SchemaDocument(each)),) for each in (left, right)]
    return SubschemaCheck(Budget(steps), names).obstacles(*subs)


def kinds(left: Any, right: Any, names: Side = "left") -> list[tuple[str, str]]:
    return [(each.kind, "/".join(each.path)) for each in obstacles(left, right, names)]


def listed(value: Any) -> Any:
    """A list of values, as a schema that contains itself."""
    item = {"type": "object", "properties": {"value": value, "next": {"$ref": "#/$defs/item"}}}
    return {"$ref": "#/$defs/item", "$defs": {"item": item}}


def test_a_schema_that_contains_itself_is_inside_one_that_does() -> None:
    assert kinds(listed({"const": 1}), listed({"type": "integer"})) == []
    assert kinds(listed({"type": "integer"}), listed({"const": 1})) == [
        ("value", "properties/value")
    ]


def test_assumption_that_rests_on_a_failed_pair_is_dropped() -> None:
    # `inner` is fine as long as `outer` is. That it is not shows after both were looked at, in
    # the first alternative; the second asks for `inner` alone.
    def given(end: Any, *alternatives: Any) -> Any:
        outer = {"type": "object", "properties": {"a": {"$ref": "#/$defs/inner"}, "z": end}}
        inner = {"type": "object", "properties": {"b": {"$ref": "#/$defs/outer"}}}
        branches = [{"type": "object", "properties": each} for each in alternatives]
        return {"anyOf": branches, "$defs": {"outer": outer, "inner": inner}}

    outer, inner = {"$ref": "#/$defs/outer"}, {"$ref": "#/$defs/inner"}
    left = given({"type": "string"}, {"x": outer, "y": inner})
    right = given({"const": 1}, {"x": outer, "y": {}}, {"x": {}, "y": inner})
    assert kinds(left, right) == [("alternative", "")]
    fine = given({}, {"x": outer, "y": {}}, {"x": {}, "y": inner})
    assert kinds(left, fine) == []


def test_a_name_of_one_side_only_counts_as_it_is_asked() -> None:
    one = {"type": "object", "properties": {"a": {}}}
    two = {"type": "object", "properties": {"a": {}, "b": {"type": "null"}}}
    assert kinds(two, one, "left") == [("only-left", "properties/b")]
    assert kinds(two, one, "right") == []
    assert kinds(one, two, "left") == []
    assert kinds(one, two, "right") == [("only-right", "properties/b")]


def test_a_name_that_is_refused_counts_in_any_case() -> None:
    two = {"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False}
    one = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
    (found,) = obstacles(two, one, "right")
    assert (found.kind, found.why) == ("only-left", "now refused")


def test_without_a_budget_nothing_is_shown() -> None:
    (found,) = obstacles({"type": "string"}, {"type": ["string", "null"]}, steps=0)
    assert (found.kind, found.why) == ("undecided", "too large")
    assert obstacles({"type": "string"}, {}, steps=0) == []


def test_lost_type_is_reported_once() -> None:
    (found,) = obstacles({}, {"type": "integer"})
    assert found.kind == "type"
    assert found.right == ["integer"]


def test_undecided_schema_is_reported_once_per_pointer() -> None:
    unread = {"not": {"const": 1}}
    assert kinds({}, unread) == [("undecided", "")]
    left = {"type": "object", "properties": {"a": {}, "b": {}}}
    right = {"type": "object", "properties": {"a": unread, "b": unread}}
    assert kinds(left, right) == [("undecided", "properties/a"), ("undecided", "properties/b")]


def test_enum_values_are_checked_at_their_own_type() -> None:
    listed = {"enum": [[{"a": 1}], {"a": []}]}
    assert kinds(listed, {"type": ["array", "object"]}) == []
    # What is needed of an object is not asked of an array.
    assert kinds(listed, {"type": ["array", "object"], "required": ["a"]}) == []
    assert kinds(listed, {"type": ["array", "object"], "required": ["b"]}) == [("value", "")]


def test_of_many_values_a_few_are_kept() -> None:
    (found,) = obstacles({"type": "integer"}, {"enum": list(range(5000))})
    assert found.right == list(range(50))
    (found,) = obstacles({"enum": list(range(5000))}, {"const": "x"})
    assert len(found.left) <= 50


def test_values_names_and_places_are_paid_for() -> None:
    many = {"enum": list(range(9000))}
    assert obstacles(many, {"type": "integer"}, steps=1000) == []
    (found,) = obstacles(many, {"type": "integer"}, steps=100)
    assert found.why == "too large"
    # Members and items that anything will do for are not asked about one by one.
    named = {"type": "object", "properties": {str(n): {} for n in range(300)}}
    assert obstacles(named, named, steps=1000) == []
    assert [each.why for each in obstacles(named, named, steps=100)] == ["too large"]
    row = {"type": "array", "prefixItems": [{}] * 300}
    assert obstacles(row, row, steps=1000) == []
    assert [each.why for each in obstacles(row, row, steps=100)] == ["too large"]


def test_an_address_beside_a_reference_keeps_two_schemas_apart() -> None:
    elsewhere = {"$ref": "#/$defs/a", "$id": "https://example.com/x"}
    left = {"properties": {"a": {"$ref": "#/$defs/a"}, "b": elsewhere}, "$defs": {"a": True}}
    right = {
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "$defs": {"a": {"type": "integer"}},
    }
    typed = {**left, "$defs": {"a": {"type": "integer"}}}
    assert [place for _, place in kinds(typed, right)] == ["properties/b"]
