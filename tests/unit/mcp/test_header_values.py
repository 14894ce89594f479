"""Values of headers that repeat parts of a message."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.mcp.header_values import (
    MAX_HEADER_INTEGER,
    decode_header_text,
    decode_header_value,
    encode_header_value,
    header_text,
    is_encoded,
    is_token,
    is_unsafe,
    literal_value,
    same_value,
)


def base64(raw: bytes) -> bytes:
    return b"=?base64?" + b64encode(raw) + b"?="


# -- encoding --------------------------------------------------------------------------------

VECTORS = [
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ("日本語", "=?base64?5pel5pys6Kqe?="),
    ("a\tb", "=?base64?YQli?="),
    ("\x7f", "=?base64?fw==?="),
]


@pytest.mark.parametrize(("text", "value"), VECTORS)
def test_a_text_that_a_header_cannot_carry_is_encoded(text: str, value: str) -> None:
    assert is_unsafe(text)
    assert encode_header_value(text) == value
    assert decode_header_value(value.encode()) == text


@pytest.mark.parametrize("text", ["", "a", "a b", "~", "=?base64?", "?=", "=?BASE64?eA==?="])
def test_a_text_that_a_header_can_carry_is_literal(text: str) -> None:
    assert not is_unsafe(text)
    assert encode_header_value(text) == text
    assert decode_header_value(text.encode()) == text


def test_markers_that_overlap_are_encoded_and_read_as_a_literal() -> None:
    # A reader may take `=?base64?=` for either; nothing is doubtful about its encoded form.
    assert not is_encoded("=?base64?=")
    assert decode_header_value(b"=?base64?=") == "=?base64?="
    assert decode_header_value(encode_header_value("=?base64?=").encode()) == "=?base64?="
    assert encode_header_value("=?base64?=") != "=?base64?="


def test_a_lone_surrogate_has_no_encoded_form() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode_header_value("\ud800")


@given(st.text())
def test_decoding_what_was_encoded_gives_the_text_back(text: str) -> None:
    value = encode_header_value(text)
    assert decode_header_value(value.encode("ascii")) == text
    assert decode_header_text(value) == text


@given(st.one_of(st.text(), st.text(alphabet="=?base64 \t\r\n\x00"), st.from_regex(r"=\?base64.*")))
def test_an_encoded_text_is_always_a_legal_header_value(text: str) -> None:
    value = encode_header_value(text)
    assert all(" " <= each <= "~" for each in value)
    assert value == value.strip()


@given(st.binary())
def test_decoding_any_bytes_gives_a_text_or_none_and_has_one_spelling(raw: bytes) -> None:
    text = decode_header_value(base64(raw))
    try:
        expected = raw.decode()
    except UnicodeDecodeError:
        expected = None
    assert text == expected
    found = decode_header_value(raw)
    assert found is None or found.encode() == raw or is_encoded(raw.decode())


# -- decoding --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        b"=?base64?SGVsbG8?=",  # no padding
        b"=?base64?SGVsbG8===?=",
        b"=?base64?SGVsbG8=x?=",
        b"=?base64?SGVs bG8=?=",
        b"=?base64?SGVs!G8=?=",
        b"=?base64?_-8=?=",  # the alphabet for URLs
        b"=?base64?*?=",
        b"=?base64?=?=",
        b"=?base64?eB==?=",  # the unused bits of `eA==` are set
        b"=?base64?/w==?=",  # not UTF-8
        b"=?base64?7aCA?=",  # a surrogate
        b"=?base64?wIA=?=",  # an overlong form
    ],
)
def test_invalid_base64_is_not_a_value(value: bytes) -> None:
    assert decode_header_value(value) is None


@pytest.mark.parametrize("value", [b"a\tb", b"a\nb", b"\x00", b"\x7f", "ä".encode(), b"\xe4"])
def test_a_literal_with_other_bytes_than_visible_ascii_is_not_a_value(value: bytes) -> None:
    assert decode_header_value(value) is None
    assert literal_value(value) is None


@pytest.mark.parametrize(
    "value", ["=?base64?eA==", "eA==?=", "=?Base64?eA==?=", "x=?base64?eA==?=", "=?base64?eA==?=x"]
)
def test_a_value_without_both_markers_is_literal(value: str) -> None:
    assert decode_header_value(value.encode()) == value
    assert decode_header_text(value) == value


def test_nothing_between_the_markers_is_the_empty_text() -> None:
    assert decode_header_value(b"=?base64??=") == ""
    assert decode_header_value(b"") == ""


# -- arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        ("", ""),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-7, "-7"),
        (42.0, "42"),
        (MAX_HEADER_INTEGER, "9007199254740991"),
        (-MAX_HEADER_INTEGER, "-9007199254740991"),
    ],
)
def test_a_text_an_integer_and_a_boolean_have_a_header_form(value: object, text: str) -> None:
    assert header_text(value) == text
    assert same_value(text, value)
    assert not same_value(text + "1", value)


@pytest.mark.parametrize(
    "value",
    [None, 1.5, float("nan"), float("inf"), 1e300, 2**53, -(2**53), 10**5000, [], {}, b"x"],
    ids=lambda value: str(type(value)),
)
def test_anything_else_has_none(value: object) -> None:
    assert header_text(value) is None
    assert not same_value("x", value)
    assert not same_value("", value)


@pytest.mark.parametrize(
    ("text", "value"), [("42.0", 42), ("42.000", 42), ("42", 42.0), ("-0", 0), ("-7.0", -7)]
)
def test_integers_are_compared_by_value(text: str, value: object) -> None:
    assert same_value(text, value)


@pytest.mark.parametrize(
    "text",
    ["42.1", "42.", "042", "+42", "4.2e1", "٤٢", "", "42 ", "0x2a", "4_2", "-42", "1" * 5000],
)
def test_other_spellings_of_an_integer_differ(text: str) -> None:
    assert not same_value(text, 42)


@pytest.mark.parametrize(
    ("text", "value"), [("42.0", "42"), ("True", True), ("1", True), ("1.0", True), ("X", "x")]
)
def test_texts_and_booleans_are_compared_as_they_are(text: str, value: object) -> None:
    assert not same_value(text, value)


def test_the_name_of_a_header_is_a_token() -> None:
    assert is_token("Dry-Run")
    assert is_token("!#$%&'*+.^_`|~09AZaz-")
    for name in ("", "a b", "a:b", "ä", "a\n", "a/b", "(a)"):
        assert not is_token(name)
