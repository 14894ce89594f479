"""Matching of a URI against a template of a server, to find the server that has a resource.

The rules that live here, and only here:

* `{name}` matches one or more characters other than a slash; an expression with an operator
  (`{+path}`, `{/path}`, `{?query}`), or of several variables, matches any text.
                                                                        [RFC 6570, section 3.2]
* The time is bounded by the product of the expressions and the length of the URI, whatever a
  server lists: a template with more than 32 expressions matches nothing.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["matches"]

_MAX_EXPRESSIONS: Final = 32
_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_PLAIN: Final = re.compile(r"\w[\w.%]*")


def matches(template: str, uri: str) -> bool:
    """Return True if a URI may have been expanded from a template."""
    # Literals and expressions in turn.
    parts = _EXPRESSION.split(template)
    if len(parts) > 2 * _MAX_EXPRESSIONS + 1:
        return False
    places = {len(parts[0])} if uri.startswith(parts[0]) else set()
    for expression, literal in zip(parts[1::2], parts[2::2], strict=True):
        places = _after(uri, places, is_plain=_PLAIN.fullmatch(expression) is not None)
        places = {at + len(literal) for at in places if uri.startswith(literal, at)}
        if not places:
            return False
    return len(uri) in places


def _after(uri: str, places: set[int], *, is_plain: bool) -> set[int]:
    """Return where an expression may end that begins at one of some places."""
    if not places:
        return places
    if not is_plain:
        return set(range(min(places), len(uri) + 1))
    found: set[int] = set()
    is_inside = False
    for at, character in enumerate(uri):
        is_inside = (is_inside or at in places) and character != "/"
        if is_inside:
            found.add(at + 1)
    return found
