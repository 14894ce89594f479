"""Edits of JSON with comments: any document, any layout, any change."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunkline.hosts.jsonc import loads, parse, remove_member, set_member

NAMES = st.sampled_from(["a", "b", "c", "mcpServers", "x y", "ä", 'q"', "//", "/*"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8).filter(lambda text: text.isprintable()),
    st.sampled_from(["// no", "/* no */", '"', "\\", "{", "}", ","]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=5)
COMMENT = re.compile(r"//c[0-9]+|/\*c[0-9]+\n?\*/")


class Layout:
    """Writes a value as text with blanks, line breaks, comments and trailing commas anywhere."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self._count = 0

    def gap(self) -> str:
        kind = self._draw(st.integers(0, 9))
        self._count += 1
        return {
            5: " ",
            6: "\n",
            7: f" //c{self._count}\n\t",
            8: f"/*c{self._count}*/",
            9: f"\r\n  /*c{self._count}\n*/ ",
        }.get(kind, "")

    def write(self, value: Any) -> str:
        if isinstance(value, dict):
            items = [
                f"{json.dumps(name)}{self.gap()}:{self.gap()}{self.write(item)}"
                for name, item in value.items()
            ]
            return self._joined("{", items, "}")
        if isinstance(value, list):
            return self._joined("[", [self.write(item) for item in value], "]")
        return json.dumps(value)

    def _joined(self, start: str, items: list[str], end: str) -> str:
        parts = [start, self.gap()]
        for place, item in enumerate(items):
            is_last = place == len(items) - 1
            parts += [item, self.gap()]
            if not is_last or self._draw(st.booleans()):
                parts += [",", self.gap()]
        return "".join([*parts, end])


@st.composite
def texts(draw: Any) -> tuple[str, dict[str, Any]]:
    value = draw(OBJECTS)
    layout = Layout(draw)
    text = layout.gap() + layout.write(value) + layout.gap()
    return ("\ufeff" if draw(st.booleans()) else "") + text, value


def comments(text: str) -> list[str]:
    """Return the comments that a layout has put in."""
    return sorted(COMMENT.findall(text))


@given(texts())
def test_a_text_is_read_as_the_value_that_was_written(case: tuple[str, dict[str, Any]]) -> None:
    text, value = case
    assert loads(text) == parse(text).value == value


@given(texts(), st.lists(NAMES, max_size=2), NAMES, VALUES)
def test_a_member_is_set_and_nothing_else_changes(
    case: tuple[str, dict[str, Any]], path: list[str], name: str, new: Any
) -> None:
    text, value = case
    expected = deepcopy(value)
    here: Any = expected
    for step in path:
        here = here.setdefault(step, {})
        if not isinstance(here, dict):
            return
    inside = ""
    if name in here:
        node = parse(text)
        for step in path:
            node = next(each.node for each in node.members or () if each.name == step)
        old = node.member(name)
        assert old is not None
        inside = text[old.node.start : old.node.end]
    here[name] = new
    after = set_member(text, path, name, new)
    assert loads(after) == expected
    assert json.dumps(loads(after)) == json.dumps(expected)  # the order too
    # All comments stay, but those inside a value that was replaced.
    assert sorted([*comments(after), *comments(inside)]) == comments(text)
    assert after.startswith("\ufeff") == text.startswith("\ufeff")


@given(texts(), st.lists(NAMES, max_size=1), NAMES)
def test_a_member_is_removed_and_nothing_else_changes(
    case: tuple[str, dict[str, Any]], path: list[str], name: str
) -> None:
    text, value = case
    expected = deepcopy(value)
    here: Any = expected
    node = parse(text)
    for step in path:
        here = here.get(step)
        if not isinstance(here, dict):
            return
        node = next(each.node for each in node.members or () if each.name == step)
    gone = node.member(name)
    inside = "" if gone is None else text[gone.start : gone.node.end]
    here.pop(name, None)
    after = remove_member(text, path, name)
    assert json.dumps(loads(after)) == json.dumps(expected)
    assert sorted([*comments(after), *comments(inside)]) == comments(text)


@given(texts(), NAMES, VALUES)
def test_member_added_and_removed_again_leaves_the_same_document(
    case: tuple[str, dict[str, Any]], name: str, new: Any
) -> None:
    text, value = case
    if name in value:
        return
    after = remove_member(set_member(text, (), name, new), (), name)
    assert json.dumps(loads(after)) == json.dumps(value)
    assert comments(after) == comments(text)
