"""What is filled in is read back, and no text is anything but a match or none."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trunkline.server.registry.uri_template import UriTemplate

quickly = settings(max_examples=examples(300), deadline=None)

# A value can be read back where what follows it cannot begin inside of it. So literals, names
# and values have letters of their own; what an operator encodes may be in any value.
LITERALS = ["a", "/b", "cab", "?a", "%41b", "ü"]
ENCODED = st.text("xyz0 é日/?#&=,:;%+", min_size=1, max_size=6)
AS_IT_IS = st.text("xyz0 é日!", min_size=1, max_size=6)
NAMED = (";", "?", "&")
RESERVED = ("+", "#")


@st.composite
def filled_in(draw: st.DrawFn) -> tuple[str, dict[str, str]]:
    """Return a template and values that it can carry."""
    text, values = "x:", {}
    is_apart = True
    for number in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            text += draw(st.sampled_from(LITERALS))
            is_apart = True
        # Behind another expression only one with a mark of its own can be told apart; and of two
        # with one mark, that may both be missing, the first that is there is the first.
        named = [mark for mark in NAMED if f"{{{mark}" not in text]
        marks = ["#", ".", "/", *named]
        operator = draw(st.sampled_from([*marks, "", "+"] if is_apart else marks))
        names = [f"v{number}{count}" for count in range(draw(st.integers(1, 3)))]
        for name in names:
            if operator not in NAMED or draw(st.booleans()):
                values[name] = draw(AS_IT_IS if operator in RESERVED else ENCODED)
        is_apart = False
        text += f"{{{operator}{','.join(names)}}}"
    return text + draw(st.sampled_from(["", *LITERALS])), values


@quickly
@given(filled_in())
def test_expanded_template_matches_with_the_same_values(case: tuple[str, dict[str, str]]) -> None:
    text, values = case
    made = UriTemplate(text)
    assert made.match(made.expand(values)) == values


pieces = st.sampled_from(
    ["{", "}", "{a}", "{?b,c}", "{/d}", "{+e}", "a", "/", "?", "#", ".", "%2F", "%", "*", "ü", " "]
)
texts = st.lists(pieces, max_size=12).map("".join)


@quickly
@given(texts | st.text(max_size=20), texts | st.text(max_size=40))
def test_any_text_is_a_template_or_refused_and_any_uri_fits_or_not(text: str, uri: str) -> None:
    try:
        made = UriTemplate(f"x:{text}")
    except ValueError:
        return
    found: Any = made.match(f"x:{uri}")
    assert found is None or set(found) <= set(made.variables)
    assert found is None or all(type(value) is str for value in found.values())


@quickly
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_every_text_can_be_carried_by_one_variable(value: str) -> None:
    for text in ("x:{a}", "x:{a}/b", "x:{/a}", "x:{?a}", "x:{;a}", "x:{.a}", "x:y{?b,a}{#c}"):
        made = UriTemplate(text)
        uri = made.expand({"a": value})
        # Nine bytes for a character at most, so a long value is too long a URI.
        assert made.match(uri) == {"a": value} or len(uri) > 8192
