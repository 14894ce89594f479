"""Edits of TOML text: what changes, and what stays as it was."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from tests.cases import for_each
from trunkline.hosts.toml_text import TomlEditError, remove_table, render, scan, set_values

TEXT = '''\
# top
model = "o3" # the model
text = """
[mcp_servers.fake]
""" # end
list = [
  "a", # one
  # ]
  "b]",
]

[mcp_servers.a] # first
command = "x" # of a
args = ["1"]
# inside a

[mcp_servers.a.env]
K = "v" # of K

# of b
[mcp_servers."b.c"]
url = 'https://a'
'''


def test_statements_are_found_around_strings_arrays_and_comments() -> None:
    found = [(each.path, each.is_header) for each in scan(TEXT)]
    assert found == [
        (("model",), False),
        (("text",), False),
        (("list",), False),
        (("mcp_servers", "a"), True),
        (("mcp_servers", "a", "command"), False),
        (("mcp_servers", "a", "args"), False),
        (("mcp_servers", "a", "env"), True),
        (("mcp_servers", "a", "env", "K"), False),
        (("mcp_servers", "b.c"), True),
        (("mcp_servers", "b.c", "url"), False),
    ]
    values = [TEXT[each.value : each.end] for each in scan(TEXT) if not each.is_header]
    assert values[0] == '"o3"'
    assert values[3] == '"x"'
    assert values[-1] == "'https://a'"


@for_each(
    "text",
    [
        'a.\'b\'."c\\"=" = 1',
        "a = '''x''''' # three, and two of them text",
        'a = """x\\""""',
        "[[a.b]]\nc = {d = [1, {e = 2}]}",
        "a = 1979-05-27T07:32:00Z\nb = inf\n",
        "\ufeffa = 1",
        "",
        "\r\n[a]\r\nb = 1\r\n",
    ],
)
def test_the_scanner_agrees_with_tomllib(text: str) -> None:
    document = tomllib.loads(text.removeprefix("\ufeff"))
    for each in scan(text):
        if each.is_header:
            continue
        here: Any = document
        for name in each.path:
            here = here[0] if isinstance(here, list) else here
            here = here[name]
        assert tomllib.loads(f"x = {text[each.value : each.end]}")["x"] == here


def test_a_new_table_goes_to_the_end() -> None:
    new = set_values(TEXT, ("mcp_servers", "n e w"), {"command": "c", "env": {"A": "1"}})
    assert new == TEXT + (
        '\n[mcp_servers."n e w"]\ncommand = "c"\n\n[mcp_servers."n e w".env]\nA = "1"\n'
    )
    assert set_values("", ("s", "a"), {"b": True}) == "[s.a]\nb = true\n"
    assert set_values("x = 1", ("s", "a"), {}) == "x = 1\n\n[s.a]\n"
    assert set_values("x = 1\r\n", ("s", "a"), {"b": 1}) == "x = 1\r\n\r\n[s.a]\r\nb = 1\r\n"


def test_values_are_replaced_in_place() -> None:
    new = set_values(
        TEXT,
        ("mcp_servers", "a"),
        {"command": "y", "args": ["2", "3"], "cwd": "/d", "env": {"K": "w", "L": "z"}},
    )
    assert new == TEXT.replace('"x"', '"y"').replace('["1"]', '["2", "3"]\ncwd = "/d"').replace(
        'K = "v" # of K\n', 'K = "w" # of K\nL = "z"\n'
    )


def test_an_inline_table_is_merged() -> None:
    text = '[s.a]\nenv = { A = "1" } # c\n'
    new = set_values(text, ("s", "a"), {"env": {"A": "2", "B": "3"}})
    assert new == '[s.a]\nenv = { A = "2", B = "3" } # c\n'
    assert set_values("[s.a]\n", ("s", "a"), {"env": {"A": "1"}}) == '[s.a]\nenv = { A = "1" }\n'


def test_values_are_dropped() -> None:
    new = set_values(TEXT, ("mcp_servers", "a"), {"url": "https://b"}, ["command", "args", "env"])
    assert tomllib.loads(new)["mcp_servers"]["a"] == {"url": "https://b"}
    assert "# inside a" in new
    assert "# of b" in new


def test_a_table_is_removed_with_the_tables_below_it() -> None:
    new = remove_table(TEXT, ("mcp_servers", "a"))
    expected = tomllib.loads(TEXT)
    del expected["mcp_servers"]["a"]
    assert tomllib.loads(new) == expected
    assert "# inside a" in new
    assert "# of b" in new
    assert remove_table(TEXT, ("mcp_servers", "none")) == TEXT


def test_table_added_and_removed_again_leaves_the_text_unchanged() -> None:
    for text in (TEXT, "", "a = 1\n", "a = 1\r\n", "\ufeffa = 1\n"):
        values = {"command": "c", "env": {"A": "1"}}
        new = set_values(text, ("mcp_servers", "new"), values)
        assert remove_table(new, ("mcp_servers", "new")) == text


@for_each(
    "text",
    ['s = { a = { b = "1" } }', 's.a.b = "1"', '[s]\na = { b = "1" }', '[s]\na.b = "1"'],
)
def test_an_entry_without_a_header_is_not_edited(text: str) -> None:
    with pytest.raises(TomlEditError, match="edit the file by hand"):
        set_values(text, ("s", "a"), {"b": "2"})
    with pytest.raises(TomlEditError, match="edit the file by hand"):
        remove_table(text, ("s", "a"))


def test_a_table_is_not_added_to_an_inline_table() -> None:
    with pytest.raises(TomlEditError, match="edit the file by hand"):
        set_values("s = {}", ("s", "a"), {"b": "2"})


@for_each(
    "value",
    ["", 'quote " and \\', "ä\n\t\x00\x7f\u2028", True, 7, 1.5, ["a", 1], {"a b": {"c": []}}, {}],
)
def test_a_value_is_read_back_as_it_was(value: Any) -> None:
    assert tomllib.loads(f"x = {render(value)}")["x"] == value
