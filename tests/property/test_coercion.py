"""Coercion of arguments, for any arguments and any schema of ours."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunkline.mcp.coercion import coerced

TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["5", "-1.5", "1e400", "true", "null", "[1]", '{"a": "1"}', '["[1]"]', "nan"]),
    st.integers().map(str),
    st.floats().map(str),
)
VALUES = st.recursive(
    TEXTS | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries({"type": TYPES | st.lists(TYPES, max_size=3)}) | st.just({}),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
    ),
    max_leaves=4,
)


def changes(before: Any, after: Any) -> list[tuple[Any, Any]]:
    """Return the parts of a value that have changed."""
    if type(before) is type(after) is dict and before.keys() == after.keys():
        return [pair for name in before for pair in changes(before[name], after[name])]
    if type(before) is type(after) is list and len(before) == len(after):
        return [found for pair in zip(before, after, strict=True) for found in changes(*pair)]
    return [] if before == after and type(before) is type(after) else [(before, after)]


@given(arguments=st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), inner=SCHEMAS)
def test_only_texts_change_and_never_into_texts(arguments: dict[str, Any], inner: Any) -> None:
    schema = {"type": "object", "additionalProperties": inner}
    found = coerced(json.dumps(arguments).encode(), schema)
    if found is None:
        return
    for old, new in changes(arguments, json.loads(found)):
        assert isinstance(old, str)
        assert not isinstance(new, str)


@given(text=st.text(max_size=30))
def test_number_of_a_text_has_the_digits_of_the_text(text: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number"}}}
    found = coerced(json.dumps({"a": text}).encode(), schema)
    assert found in (None, b'{"a":%b}' % text.encode("utf-8", "surrogatepass"))
