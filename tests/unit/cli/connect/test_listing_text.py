"""How a listing is shown: signatures, arguments line by line, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.cli.connect import listing_text
from trunkline.cli.connect.listing_text import argument_table, listing_lines, tool_signature
from trunkline.cli.output import terminal


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def tool(properties: dict[str, Any], result: Any = None, **schema: Any) -> dict[str, Any]:
    made = {"name": "t", "inputSchema": {"type": "object", "properties": properties, **schema}}
    return made if result is None else {**made, "outputSchema": result}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (tool({}), "t()"),
        (
            tool({"city": {"type": "string"}, "days": {"default": 3}}, required=["city"]),
            "t(city: string, days: any = 3)",
        ),
        (tool({"a": {"type": "string"}}), "t(a?: string)"),
        (tool({"a": {"type": ["string", "null"], "default": None}}), "t(a?: string | null)"),
        (tool({"a": {"default": "x y"}}), 't(a: any = "x y")'),
        (tool({"a": {"default": ["x" * 99]}}), f't(a: any = ["{"x" * 37}…)'),
        (tool({"a": {"deprecated": True}}), "t(a?: any (deprecated))"),
        (tool({}, {"type": "object", "title": "Forecast"}), "t() -> Forecast"),
        (tool({}, {"type": "object", "title": "a sentence"}), "t() -> object"),
        (tool({}, {"properties": {"result": {"type": "integer"}}}), "t() -> integer"),
        (
            tool(
                {},
                {
                    "properties": {"result": {"items": {"$ref": "#/$defs/P"}, "type": "array"}},
                    "$defs": {"P": {"type": "object", "title": "P"}},
                },
            ),
            "t() -> object[]",
        ),
        ({"name": "a\nb"}, "a\\nb()"),
        ({"name": 7, "inputSchema": [], "outputSchema": 1}, "()"),
    ],
)
def test_a_tool_is_a_function(given: dict[str, Any], shown: str) -> None:
    assert tool_signature(given) == shown


def test_each_argument_has_a_row() -> None:
    schema = {
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many."},
            "s": {"type": "string", "minLength": 2, "pattern": "^a", "format": "date"},
            "many": {"type": "array", "items": {"enum": list("abcdefgh")}, "maxItems": 3},
            "old": {"deprecated": True, "exclusiveMinimum": 0},
            "at": {"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}], "description": "Where."},
            "list": {"type": "array", "items": {"$ref": "#/$defs/P"}},
        },
        "required": ["n"],
        "$defs": {"P": {"type": "object", "properties": {"x": {"default": 0.5}}}},
    }
    assert argument_table(schema) == [
        ("n", "integer", "required", "How many. 1 to 9."),
        ("s", "string", "optional", "At least 2 characters. Format date. Pattern ^a."),
        ("many", "any[]", "optional", "One of a, b, c, d, e, f, g, h. At most 3 items."),
        ("old", "any", "optional", "Deprecated. Above 0."),
        ("at", "object | null", "optional", "Where."),
        ("at.x", "any", "= 0.5", ""),
        ("list", "object[]", "optional", ""),
        ("list[].x", "any", "= 0.5", ""),
    ]


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"properties": {"a": {"$ref": "#"}, "b": {"items": {"$ref": "#"}}}}
    rows = argument_table(schema)
    assert ("a.a.a", "object", "optional", "") in [(row[0], "object", *row[2:]) for row in rows]
    assert len(rows) < 100


def test_an_enormous_schema_is_cut_with_a_count() -> None:
    names = {f"n{number}": {} for number in range(1000)}
    rows = argument_table({"properties": names})
    assert len(rows) == 201
    assert rows[-1][0] == "… 800 more"


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have output go to a terminal of 60 columns."""
    for module in (terminal, listing_text):
        monkeypatch.setattr(module, "row_width", lambda: 60)
        monkeypatch.setattr(module, "width", lambda: 60)


def listing(**lists: Any) -> dict[str, Any]:
    return {"server": {"name": "s", "version": "1"}, "revision": "2025-11-25", **lists}


def test_on_a_terminal_much_is_shortened_in_a_list(columns: None) -> None:
    many = tool({f"argument_{number}": {} for number in range(30)})
    many["description"] = "word " * 1000
    lines = list(listing_lines(listing(tools=[many]), "tools"))
    assert max(map(len, lines)) <= 60
    assert lines[-4].endswith("… 18 more)")
    assert lines[-1].endswith(" …")
    assert len(lines) < 15


def test_in_a_pipe_nothing_is_shortened() -> None:
    many = tool({f"argument_{number}": {} for number in range(30)})
    many["description"] = "word " * 1000
    _, signature, about = listing_lines(listing(tools=[many]), "tools")
    assert "argument_29?: any)" in signature
    assert about.strip() == ("word " * 1000).strip()


def test_tool_annotations_are_shown_as_claims_of_the_server() -> None:
    hints = {"readOnlyHint": True, "openWorldHint": False, "title": "x"}
    lines = list(
        listing_lines(listing(tools=[{**tool({}), "annotations": hints}]), "tools", in_detail=True)
    )
    assert lines == [
        "t",
        "  no arguments",
        "  The server says: read-only, reaches no other systems.",
    ]
