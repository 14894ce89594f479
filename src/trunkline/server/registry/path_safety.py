r"""Path traversal in the values of resource templates.

A handler of `file:///logs/{name}` often makes a path of `name`. A value that leads out of a
folder is refused before the handler runs, whether it is meant for the operating system or for a
second decoder behind the handler.

The rules that live here, and only here. A value is unsafe if, percent-decoded once, it

* has a segment made of dots alone, such as `..`; also with spaces or a `;parameter` behind them,
  which some systems strip, and in full-width characters, which Unicode normalisation replaces;
* is absolute: it begins with `/`, or with a letter and a colon, a drive of Windows;
* contains NUL or a backslash;
* came with an encoded separator, `%2F` or `%5C`: a `/` between segments is written as it is,
  where the operator of the template allows one;
* still has one of these percent-encoded, because it was encoded twice.

Invalid UTF-8, overlong forms among it, never matches a template. Names that one system alone
treats specially (`CON`, a final dot, `file:stream`) are left to the handler.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["is_safe_value"]

# A segment of dots, and of the spaces and the parameter that some systems strip. It cannot
# backtrack: a client chooses the text.
_DOT_SEGMENT: Final = re.compile(r"(?:^|[/\\])(?=[ \t]*\.)[. \t]*+(?:[;/\\]|\Z)")
_ENCODED_SEPARATOR: Final = re.compile(r"%(?:2[Ff]|5[Cc])")
# In a value that was decoded once: a dot, `/`, `\`, NUL or `%`, the first bytes of overlong
# forms of them, and the `%u002F` of some servers.
_ENCODED_TWICE: Final = re.compile(
    r"%(?:2[EeFf5]|5[Cc]|00|[Cc][01]|[Ee]0%[89]|[Ff]0%8|[Uu][0-9A-Fa-f]{4})"
)
_DRIVE: Final = re.compile(r"[A-Za-z]:")


def is_safe_value(encoded: str, value: str) -> bool:
    """Return False if a value may lead out of a folder; `encoded` is how it was in the URI."""
    if "\0" in value or "\\" in value or value.startswith("/") or _DRIVE.match(value):
        return False
    if "%" in encoded and (_ENCODED_SEPARATOR.search(encoded) or _ENCODED_TWICE.search(value)):
        return False
    if _DOT_SEGMENT.search(value):
        return False
    if value.isascii():
        return True
    # Imported here: most values are ASCII.
    from unicodedata import normalize

    return not _DOT_SEGMENT.search(normalize("NFKC", value))
