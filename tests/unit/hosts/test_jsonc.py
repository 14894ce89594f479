"""JSON with comments: what is read, and what an edit leaves as it was."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.cases import for_each
from trunkline.hosts.jsonc import JsoncError, loads, parse, remove_member, set_member

ENTRY = {"command": "python", "args": ["-m", "x"]}


@for_each(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1,}', {"a": 1}),
        ("[1, 2,]", [1, 2]),
        ("// c\n{} // d", {}),
        ("/* c */ {/* d */}", {}),
        ('\ufeff{"a": "// no comment"}', {"a": "// no comment"}),
        ('{"a": "/* no */", "b": [true, false, null, -1.5e3]}', None),
        ('{"a": {"b": [1, {"c": "\\u00e4\\n"}]}}', {"a": {"b": [1, {"c": "ä\n"}]}}),
    ],
)
def test_comments_and_trailing_commas_are_read(text: str, value: object) -> None:
    if value is not None:
        assert loads(text) == value
    assert parse(text).value == loads(text)


@for_each(
    ("text", "problem"),
    [
        ("", "line 1, column 1: unexpected end of the text"),
        ("{", "line 1, column 2: expected a name in double quotes, or }"),
        ('{"a" 1}', "line 1, column 6: expected a colon"),
        ('{"a": 1 "b": 2}', "line 1, column 9: expected a comma, or }"),
        ('{\n  "a": 01\n}', "line 2, column 9: expected a comma, or }"),
        ('{"a": NaN}', "line 1, column 7: expected a value"),
        ('{"a": "b\n"}', "line 1, column 7: the string is not closed"),
        ("{} x", "line 1, column 4: unexpected text after the value"),
        ("{} /* x", "line 1, column 4: the comment is not closed"),
        ("{,}", "expected a name"),
        ("[1 2]", "expected a comma, or ]"),
        ("[" * 100_000, "nested too deep"),
        (f"[{'9' * 5000}]", "the number is too long"),
    ],
)
def test_a_text_that_is_not_json_is_an_error_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(JsoncError) as raised:
        loads(text)
    assert problem in str(raised.value)


@for_each(
    ("before", "after"),
    [
        ("{}", '{\n  "s": {\n    "new": 1\n  }\n}'),
        ("{\n}\n", '{\n  "s": {\n    "new": 1\n  }\n}\n'),
        ('{"s": {}}', '{"s": {\n  "new": 1\n}}'),
        ('{"s": {"a": 1}}', '{"s": {"a": 1, "new": 1}}'),
        ('{"s": {"a": 1,}}', '{"s": {"a": 1, "new": 1,}}'),
        ('{"s": {"a": 1 /* c */}}', '{"s": {"a": 1, "new": 1 /* c */}}'),
        (
            '{\n\t"s": {\n\t\t"a": 1 // c\n\t\t// d\n\t}\n}',
            '{\n\t"s": {\n\t\t"a": 1, // c\n\t\t"new": 1\n\t\t// d\n\t}\n}',
        ),
        (
            '{\r\n    "s": {\r\n        "a": 1,\r\n    },\r\n}\r\n',
            '{\r\n    "s": {\r\n        "a": 1,\r\n        "new": 1,\r\n    },\r\n}\r\n',
        ),
        ('{\n  "s": { // c\n  }\n}', '{\n  "s": { // c\n    "new": 1\n  }\n}'),
        ('{\n  "s": { /* c */ }\n}', '{\n  "s": { /* c */\n    "new": 1\n  }\n}'),
        ('\ufeff{"x": 1}', '\ufeff{"x": 1, "s": {"new": 1}}'),
    ],
)
def test_new_member_has_the_layout_of_its_neighbours(before: str, after: str) -> None:
    assert set_member(before, ("s",), "new", 1) == after
    assert loads(after)["s"]["new"] == 1


def test_a_value_is_replaced_in_place() -> None:
    text = '{\n  "s": {\n    "a": {"x": 1}, // c\n    "b": 2\n  }\n}\n'
    assert set_member(text, ("s",), "a", ENTRY) == (
        '{\n  "s": {\n    "a": {\n      "command": "python",\n      "args": ["-m", "x"]\n    },'
        ' // c\n    "b": 2\n  }\n}\n'
    )


def test_a_long_list_has_one_item_a_line() -> None:
    text = set_member("{}", (), "args", ["x" * 40, "y" * 40, "z" * 40])
    assert text.count("\n") == 6
    assert loads(text) == {"args": ["x" * 40, "y" * 40, "z" * 40]}


@for_each(
    ("before", "after"),
    [
        ('{"a": 1}', "{}"),
        ('{"a": 1, "b": 2}', '{"b": 2}'),
        ('{"b": 2, "a": 1}', '{"b": 2}'),
        ('{"b": 2, "a": 1,}', '{"b": 2,}'),
        ('{\n  "a": 1,\n  "b": 2\n}', '{\n  "b": 2\n}'),
        ('{\n  "b": 2,\n  "a": 1\n}', '{\n  "b": 2\n}'),
        ('{\r\n  "b": 2,\r\n  "a": 1\r\n}', '{\r\n  "b": 2\r\n}'),
        ('{\n  // of a\n  "a": 1, // c\n  "b": 2\n}', '{\n  // of a\n  // c\n  "b": 2\n}'),
        ('{\n  "b": 2, // of b\n  "a": 1 // c\n}', '{\n  "b": 2 // of b\n  // c\n}'),
        ('{"a": 1 /* c */ , "b": 2}', '{/* c */ "b": 2}'),
        ('{"a": 1, // c\n"b": 2}', '{// c\n"b": 2}'),
        ('{\n  "a": { // gone too\n  },\n}', "{\n}"),
        ('{"b": 1}', '{"b": 1}'),
    ],
)
def test_a_member_is_removed_with_its_comma(before: str, after: str) -> None:
    assert remove_member(before, (), "a") == after
    loads(after)


def test_member_added_and_removed_again_leaves_the_text_unchanged() -> None:
    for text in (
        '{\n  "s": {\n    "a": 1 // c\n    // d\n  }\n}\n',
        '{\n\t"s": {\n\t\t"a": 1,\n\t},\n}',
        '{"s": {"a": 1}}',
    ):
        assert remove_member(set_member(text, ("s",), "new", ENTRY), ("s",), "new") == text


@pytest.mark.parametrize("text", ['{"s": {"a": 1, "a": 2}}', '{"s": {}, "s": {"a": 1}}'])
def test_a_name_that_appears_twice_is_not_guessed_at(text: str) -> None:
    with pytest.raises(JsoncError, match="appears twice"):
        set_member(text, ("s",), "a", 1)
    with pytest.raises(JsoncError, match="appears twice"):
        remove_member(text, ("s",), "a")


@pytest.mark.parametrize("text", ['{"s": []}', '{"s": null}', "[]", "1"])
def test_a_place_that_is_not_an_object_is_not_edited(text: str) -> None:
    with pytest.raises(JsoncError, match="expected an object here"):
        set_member(text, ("s",), "a", 1)
    with pytest.raises(JsoncError, match="expected an object here"):
        remove_member(text, ("s",), "a")


@for_each("text", ['["{}"] // c', "[{}]", "/*{}*/[1,]"])
def test_long_strings_and_spaces_take_memory_for_their_text_alone(text: str) -> None:
    size = 200_000
    long = text.replace("{}", ("a" if '"' in text else " ") * size)
    tracemalloc.start()
    try:
        parse(long)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * size
