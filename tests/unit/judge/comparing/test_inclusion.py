"""Whether one schema is inside another: the obstacles, and what rests on what."""

from __future__ import annotations

from typing import Any

from trunkline.judge.comparing.inclusion import Inclusion, Obstacle, Side
from trunkline.judge.comparing.shapes import Budget, Document, Node


def obstacles(left: Any, right: Any, names: Side = "left", steps: int = 1000) -> list[Obstacle]:
    subs = [(Node(each, Document(each)),) for each in (left, right)]
    return Inclusion(Budget(steps), names).obstacles(*subs)


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


def test_what_rests_on_a_pair_that_fails_is_forgotten() -> None:
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


def test_a_lost_type_is_told_once() -> None:
    (found,) = obstacles({}, {"type": "integer"})
    assert found.kind == "type"
    assert found.right == ["integer"]
