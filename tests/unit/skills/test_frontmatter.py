"""Frontmatter: what is read of YAML, what is refused, and where it says the fault is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.effort import examples
from trunkline.skills.frontmatter import FrontmatterError, read


def of(yaml: str) -> dict[str, Any]:
    return read(f"---\n{yaml}\n---\n# body\n")


READ: list[tuple[str, Any]] = [
    ("a: b", {"a": "b"}),
    ("name: pdf\ndescription: Reads PDFs.", {"name": "pdf", "description": "Reads PDFs."}),
    # Plain words.
    ("a:\nb: ~\nc: null", {"a": None, "b": None, "c": None}),
    ("a: true\nb: False\nc: yes\nd: on", {"a": True, "b": False, "c": "yes", "d": "on"}),
    ("a: 7\nb: -3\nc: +4\nd: 007", {"a": 7, "b": -3, "c": 4, "d": 7}),
    ("a: 1.5\nb: .5\nc: 1e3\nd: 1.", {"a": 1.5, "b": 0.5, "c": 1000, "d": 1}),
    ("a: -2.5E-1", {"a": -0.25}),
    ("a: 0x1F\nb: 0o17", {"a": 31, "b": 15}),
    ("a: 2024-01-01\nb: 12:30\nc: 1.2.3", {"a": "2024-01-01", "b": "12:30", "c": "1.2.3"}),
    ("a: http://x.y/z#part\nb: c#", {"a": "http://x.y/z#part", "b": "c#"}),
    ("allowed-tools: Bash(git:*) Read", {"allowed-tools": "Bash(git:*) Read"}),
    ("a: -1 left\nb: ?x\nc: :y", {"a": "-1 left", "b": "?x", "c": ":y"}),
    # Over several lines.
    ("a: one\n  two\n  three\nb: 1", {"a": "one two three", "b": 1}),
    ("a: one\n\n  two\n\n\n  three", {"a": "one\ntwo\n\nthree"}),
    ("a: 1\n  2", {"a": "1 2"}),
    ("a:\n  one\n  two", {"a": "one two"}),
    # Quoted.
    ("a: 'it''s'\nb: ''\nc: 'x: y # z'", {"a": "it's", "b": "", "c": "x: y # z"}),
    (r'a: "tab\there"' + "\n" + r'b: "\u00e9\x41\\\"\/"', {"a": "tab\there", "b": 'éA\\"/'}),
    (r'a: "\ud83d\ude00 \U0001F600"', {"a": "😀 😀"}),
    ('"a b": 1\n\'c: d\': 2', {"a b": 1, "c: d": 2}),
    ('a: "7"', {"a": "7"}),
    ("'true': 1\n\"1\": 2", {"true": 1, "1": 2}),
    ("yes: 1\n2024-01-01: 2\n1.2.3: 3", {"yes": 1, "2024-01-01": 2, "1.2.3": 3}),
    # Blocks.
    ("a: |\n  one\n   two\n\n  three\nb: 1", {"a": "one\n two\n\nthree\n", "b": 1}),
    ("a: |-\n  one\n  two\n\n\nb: 1", {"a": "one\ntwo", "b": 1}),
    ("a: |+\n  one\n\nb: 1", {"a": "one\n\n", "b": 1}),
    ("a: >\n  one\n  two\n\n  three\n", {"a": "one two\nthree\n"}),
    ("a: >-\n  one\n    more\n  two", {"a": "one\n  more\ntwo"}),
    ("a: >\n\n  one", {"a": "\none\n"}),
    ("a: |2\n   x\n  y\nb: 1", {"a": " x\ny\n", "b": 1}),
    ("a: |  # why\n  # no comment", {"a": "# no comment\n"}),
    ("a: |\nb: 1", {"a": "", "b": 1}),
    ("a: |\n  x\n    \n  y", {"a": "x\n  \ny\n"}),
    ("a: |\n  \n  x", {"a": "\nx\n"}),
    ("a:\n    |\n  x", {"a": "x\n"}),
    ("a: \u00a0b\u2028", {"a": "\u00a0b\u2028"}),
    # Nested.
    ("a:\n  b:\n    c: 1\n  d: 2\ne: 3", {"a": {"b": {"c": 1}, "d": 2}, "e": 3}),
    ("a:\n  - x\n  - 2\nb:\n- y", {"a": ["x", 2], "b": ["y"]}),
    ("a:\n- b: 1\n  c: 2\n- d: 3", {"a": [{"b": 1, "c": 2}, {"d": 3}]}),
    ("a:\n- - x\n  - y\n-\n  - z\n-", {"a": [["x", "y"], ["z"], None]}),
    ("a:\n- |\n  text\n- 'q'", {"a": ["text\n", "q"]}),
    # In brackets.
    ("a: [x, 'y, z', 3, [true]]\nb: []", {"a": ["x", "y, z", 3, [True]], "b": []}),
    ('a: {b: 1, "c d": [2]}\ni: {}', {"a": {"b": 1, "c d": [2]}, "i": {}}),
    ("a: {e: , f g: h}", {"a": {"e": None, "f g": "h"}}),
    ("a: [x, ]", {"a": ["x"]}),
    # Comments and blank lines.
    ("# first\na: b # why\n\n  # indented\nc: 1", {"a": "b", "c": 1}),
    ("a: # nothing yet\n  b: 1", {"a": {"b": 1}}),
    ("a: [x] # why\nb: 'y' # why", {"a": ["x"], "b": "y"}),
]  # fmt: skip


@for_each(("yaml", "value"), READ, ids=range(len(READ)))
def test_common_yaml_is_read(yaml: str, value: Any) -> None:
    # As JSON, because true is 1 to Python.
    numbers = {"parse_int": float}
    assert json.loads(json.dumps(of(yaml)), **numbers) == json.loads(json.dumps(value), **numbers)
    assert list(of(yaml)) == list(value)


def test_true_is_distinct_from_1() -> None:
    assert of("a: true")["a"] is True
    assert of("a: 1")["a"] is not True


REFUSED: list[tuple[str, int, str]] = [
    ("", 3, "empty"),
    ("# only a comment", 3, "empty"),
    ("- a", 2, "must be a mapping"),
    ("just a text", 2, "must be a mapping"),
    ("a: b: c", 2, "contains a colon"),
    ("a: b:", 2, "contains a colon"),
    ("x: 1\na: one\n  two: three", 4, "contains a colon"),
    ("a: &x y", 2, "an anchor"),
    ("a: *x", 2, "an alias"),
    ("a: !!str y", 2, "a tag"),
    ("a: @x", 2, "a reserved mark"),
    ("a: %x", 2, "a directive"),
    ("&x a: b", 2, "cannot begin with '&'"),
    ("? a\n: b", 2, "a string cannot begin with"),
    ("a: 1\na: 2", 3, "duplicate key 'a'"),
    ("a: {b: 1, b: 2}", 2, "duplicate key 'b'"),
    ("\ta: b", 2, "not tabs"),
    ("a:\n\tb: 1", 3, "not tabs"),
    ("a:\n  b: 1\n c: 2", 4, "indented further"),
    ("a: 1\nb", 3, "a key with a colon"),
    ("a: 1\n- b", 3, "a key with a colon"),
    ('a: "x\n  y"', 2, "must end on the same line"),
    ("a: 'x", 2, "must end on the same line"),
    ("a: 'x' y", 2, "unexpected text after"),
    ("a: [x] y", 2, "unexpected text after"),
    ("a: [x,\n  y]", 2, "must close on the same line"),
    ("a: {b: 1", 2, "must close on the same line"),
    ("a: ['x' y]", 2, "a comma between"),
    ("a: {b}", 2, "a key with a colon"),
    ("a: {- b: c}", 2, "cannot begin with '-'"),
    ("a: [,]", 2, "missing between"),
    (r'a: "\q"', 2, "is not an escape"),
    (r'a: "\ud83d"', 2, "a lone surrogate"),
    (r'a: "\UFFFFFFFF"', 2, "is not a character"),
    ("a: .inf", 2, "JSON has no such number"),
    ("a: .nan", 2, "JSON has no such number"),
    ("a: 1e999", 2, "too large"),
    ("a: " + "9" * 30, 2, "too long"),
    ("a: 0x" + "f" * 30, 2, "too long"),
    ("a: |x\n  y", 2, "only a digit"),
    ("a: |\n    \n  x", 4, "a leading blank line"),
    ("a: [x #]", 2, "must close on the same line"),
    (": x", 2, "a string cannot begin with"),
    ("a: b\nc: \x07", 3, "control character"),
    ("a: one # why\n  two", 3, "cannot continue after a comment"),
    ("true: x", 2, "key 'true' is not a string"),
    ("a: 1\n1: x", 3, "key '1' is not a string"),
    ("null: x", 2, "key 'null' is not a string"),
    ("~: x", 2, "key '~' is not a string"),
    ("1.5: x", 2, "key '1.5' is not a string"),
    ("0x1F: x", 2, "key '0x1F' is not a string"),
    ("-.inf: x", 2, "quote it"),
    ("a:\n  False: x", 3, "key 'False' is not a string"),
    ("a:\n- 7: x", 3, "key '7' is not a string"),
    ("a: {TRUE: x}", 2, "key 'TRUE' is not a string"),
    ("a: {b: {2: x}}", 2, "key '2' is not a string"),
]


@for_each(("yaml", "line", "why"), REFUSED, ids=range(len(REFUSED)))
def test_anything_else_is_refused_by_file_and_line(yaml: str, line: int, why: str) -> None:
    with pytest.raises(FrontmatterError, match=why) as caught:
        read(f"---\n{yaml}\n---\n", "skills/pdf/SKILL.md")
    assert caught.value.line == line
    assert str(caught.value).startswith(f"skills/pdf/SKILL.md, line {line}: ")


@pytest.mark.parametrize("text", ["# no frontmatter", "", "\n---\na: b\n---\n", "----\na: b\n---"])
def test_file_without_frontmatter_is_refused(text: str) -> None:
    with pytest.raises(FrontmatterError, match="must begin with frontmatter"):
        read(text)


def test_missing_closing_marker_is_refused() -> None:
    with pytest.raises(FrontmatterError, match="no closing ---"):
        read("---\na: b\n# body\n")


def test_lines_may_end_as_they_do_elsewhere() -> None:
    assert read("---\r\na: |\r\n  b\r\n  c\r\n---\r\nbody") == {"a": "b\nc\n"}
    assert read("--- \na: b\n---\t\n") == {"a": "b"}


@pytest.mark.parametrize(
    "yaml",
    [
        "a: " + "[" * 60_000,
        "a: " + "{a: " * 15_000,
        "- " * 30_000,
        "\n".join(" " * depth + "a:" for depth in range(200)),
    ],
    ids=["lists", "mappings", "dashes", "lines"],
)
def test_frontmatter_nested_too_deep_is_refused(yaml: str) -> None:
    with pytest.raises(FrontmatterError, match="deep"):
        of(yaml)


PIECES = """a|b: |- |  |: |'x'|"y"|'|"|[|]|{|}|, | #|#|1|true|?|&|\\|\\u12|é"""


@settings(max_examples=examples(500), deadline=None)
@given(
    st.lists(st.sampled_from([*PIECES.split("|"), "|", ">", "\n", "\n  ", "\n- ", "\t", "\x85"]))
)
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    try:
        found = of("".join(pieces))
    except FrontmatterError:
        return
    json.dumps(found, allow_nan=False).encode()


def test_frontmatter_that_is_too_long_is_refused() -> None:
    with pytest.raises(FrontmatterError, match="no closing --- within 65536 characters"):
        of("a: " + "x" * 70_000)
