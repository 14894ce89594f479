"""The `format` keyword of JSON Schema, as tests of a text.

Linear time: a text may be 10 MB of Base64. Every pattern is possessive, so that none reads a
character twice.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from collections.abc import Callable
from typing import Final

__all__ = ["FORMATS", "is_base64", "is_traceparent"]

# A scheme, then characters of a URI, `%` only before two hex digits.          [RFC 3986]
_URI: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*+:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*+\Z"
)
# Literals and expressions in braces.                                          [RFC 6570]
_VARIABLE: Final = r"(?:[A-Za-z0-9_.]|%[0-9A-Fa-f]{2})++(?:\*|:[1-9][0-9]{0,3})?"
_URI_TEMPLATE: Final = re.compile(
    r"(?:[^\x00-\x20\"<>\\^`{|}%\x7f]|%[0-9A-Fa-f]{2}"
    rf"|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*+\}})*+\Z"
)
_DATE: Final = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TIME: Final = r"(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d++)?"
_ZONE: Final = r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
_DATE_TIME: Final = re.compile(rf"{_DATE}[Tt ]{_TIME}{_ZONE}\Z", re.ASCII)
_PLAIN_DATE: Final = re.compile(rf"{_DATE}\Z", re.ASCII)
_EMAIL: Final = re.compile(r"[^\s@]++@[^\s@]++\Z")
# Version, trace id, parent id, flags; no id is all zeros.             [W3C Trace Context]
_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}\Z"
)


def is_base64(text: str) -> bool:
    """Return True if a text is strict Base64, padding included."""
    try:
        a2b_base64(text, strict_mode=True)
    except (Error, ValueError):
        return False
    return True


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    match = pattern.match
    return lambda text: match(text) is not None


# The name of a format: what a finding calls it, and the test.
FORMATS: Final[dict[str, tuple[str, Callable[[str], bool]]]] = {
    "uri": ("a URI", _matches(_URI)),
    "uri-template": ("a URI template", _matches(_URI_TEMPLATE)),
    "byte": ("Base64", is_base64),
    "date-time": ("a date and time with a time zone", _matches(_DATE_TIME)),
    "date": ("a date", _matches(_PLAIN_DATE)),
    "email": ("an e-mail address", _matches(_EMAIL)),
}

is_traceparent: Final = _matches(_TRACEPARENT)
