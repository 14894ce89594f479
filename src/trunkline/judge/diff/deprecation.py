"""How a listing says that something will be gone.

The protocol has no member for it. What the wire shows is a description that begins with the
word, as a server of this library writes it, or `"deprecated": true`, as JSON Schema has it.
"""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["is_deprecated"]

# Not "Deprecated packages, as a list" or "Deprecated-API scanner", tools like any other: a hyphen
# is a dash only with a blank beside it.
_WORD: Final = re.compile(
    r"\W{0,4}deprecated\b(?!-\w)\W{0,4}?"
    r"(?:[:.,;!)\]*\u2013\u2014-]|\Z|since\b|use\b|in favou?r\b)",
    re.IGNORECASE,
)


def is_deprecated(entry: Any) -> bool:
    """Say whether an entry of a listing, or a schema, is marked as deprecated."""
    if not isinstance(entry, dict):
        return False
    if entry.get("deprecated") is True:
        return True
    description = entry.get("description")
    return isinstance(description, str) and _WORD.match(description) is not None
