"""Values of the HTTP headers that repeat parts of a message: Base64 sentinel and comparison.

    encode_header_value("Hello, 世界")                       "=?base64?SGVsbG8sIOS4lueVjA==?="
    decode_header_value(b"=?base64?SGVsbG8sIOS4lueVjA==?=")  "Hello, 世界"

The rules that live here, and only here:

* A text with anything but visible ASCII and inner spaces is sent in Base64, between markers; so
  is a text that looks like that form.         [MCP 2026-07-28, basic/transports/streamable-http]
* The markers are case-sensitive. Without both of them a value is literal.
* Base64 is read strictly: alphabet, padding and unused bits. Two spellings of one value would
  be two values to a proxy that compares bytes.
* An integer is written in decimal and compared by value: 42.0 is 42. Beyond ±(2^53 - 1) it has
  no header form, because a double cannot hold it.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from typing import Any, Final

__all__ = [
    "ENCODED",
    "HEADER_TYPES",
    "MAX_HEADER_INTEGER",
    "decode_header_text",
    "decode_header_value",
    "encode_header_value",
    "header_text",
    "is_encoded",
    "is_token",
    "is_unsafe",
    "literal_value",
    "same_value",
]

# What a value in Base64 begins with.
ENCODED: Final = "=?base64?"
_END: Final = "?="

# The JSON Schema types of arguments that a header can repeat.
HEADER_TYPES: Final = ("string", "integer", "boolean")
MAX_HEADER_INTEGER: Final = 2**53 - 1

# At most 16 digits: more are beyond the limit, and converting them costs quadratic time.
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.0+)?", re.ASCII)
# A token of HTTP.                                                   [RFC 9110, section 5.6.2]
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def is_token(name: str) -> bool:
    """Return True if `name` can be part of the name of a header."""
    return _TOKEN.fullmatch(name) is not None


def is_unsafe(value: str) -> bool:
    """Return True if a header can carry a text only in Base64."""
    plain = value.isascii() and all(" " <= each <= "~" for each in value)
    looks = value.startswith(ENCODED) and value.endswith(_END)
    return not plain or value != value.strip(" ") or looks


def is_encoded(value: str) -> bool:
    """Return True if the value of a header has both markers of the Base64 form."""
    # The markers share a question mark in `=?base64?=`, which has nothing between them.
    return (
        len(value) >= len(ENCODED) + len(_END)
        and value.startswith(ENCODED)
        and value.endswith(_END)
    )


def encode_header_value(text: str) -> str:
    """Return a text as the value of a header: in Base64 only if it has to be.

    Raises:
        UnicodeEncodeError: the text contains a lone surrogate.
    """
    if not is_unsafe(text):
        return text
    return f"{ENCODED}{b2a_base64(text.encode(), newline=False).decode()}{_END}"


def decode_header_text(value: str) -> str | None:
    """Return the text in the value of a header, or None if its Base64 is invalid.

    A literal value is returned as it is.
    """
    if not is_encoded(value):
        return value
    inner = value[len(ENCODED) : -len(_END)]
    try:
        found = a2b_base64(inner)
        # The reader skips what is not Base64 and ignores unused bits; the writer does neither.
        return found.decode() if b2a_base64(found, newline=False) == inner.encode() else None
    except ValueError:  # bad padding, characters beyond ASCII, or bytes that are not UTF-8
        return None


def literal_value(raw: bytes) -> str | None:
    """Return the value of a header as text, or None if it has bytes other than 0x20 to 0x7E."""
    if not raw.isascii():
        return None
    text = raw.decode("ascii")
    return text if text.isprintable() else None


def decode_header_value(raw: bytes) -> str | None:
    """Return the text in a header as it was received, or None if the value is invalid.

    Invalid are bytes other than 0x20 to 0x7E, and Base64 that is not the one spelling of a text
    in UTF-8.
    """
    value = literal_value(raw)
    return None if value is None else decode_header_text(value)


def header_text(value: Any) -> str | None:
    """Return the text that a header repeats of an argument, or None if it has no header form.

    Texts, booleans and integers within ±(2^53 - 1) have one. A client passes the text through
    `encode_header_value`.
    """
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float and value.is_integer():
        value = int(value)  # `42.0` in JSON is an integer too
    if type(value) is int and abs(value) <= MAX_HEADER_INTEGER:
        return str(value)
    return None


def same_value(text: str, value: Any) -> bool:
    """Return True if a decoded header repeats an argument; integers are compared by value."""
    expected = header_text(value)
    if expected is None or text == expected:
        return expected is not None
    if type(value) is str or type(value) is bool or _INTEGER.fullmatch(text) is None:
        return False
    return int(text.partition(".")[0]) == int(expected)
