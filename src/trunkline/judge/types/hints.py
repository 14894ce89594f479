"""Hints for findings: a similar name, or another revision that has the name.

They are looked up only after a mistake was found. The peer chooses the names, so their length
and the number of cached lookups are bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from ...spec.revisions import REVISIONS
from ...spec.types import parse, type_

__all__ = ["constants_elsewhere", "elsewhere", "near", "other_revision"]

# No name of the specification is longer; the comparison takes quadratic time.
_MAX_NAME_CHARS: Final = 64


def near(name: object, known: Iterable[str], *, cutoff: float = 0.7) -> str:
    """Return `; did you mean …?`, or an empty string if no known name is similar.

    `cutoff` is how similar it has to be: 1.0 is the same name.
    """
    if not isinstance(name, str) or len(name) > _MAX_NAME_CHARS:
        return ""
    return _near(name, tuple(known), cutoff)


@lru_cache(maxsize=512)
def _near(name: str, known: tuple[str, ...], cutoff: float) -> str:
    # Imported here: a conforming peer never needs it.
    from difflib import get_close_matches

    lowered = {other.lower(): other for other in known}
    found = get_close_matches(name.lower(), lowered, n=1, cutoff=cutoff)
    return f"; did you mean {lowered[found[0]]!r}?" if found else ""


@lru_cache(maxsize=512)
def elsewhere(type_name: str, member: str, revision: str) -> tuple[str, str]:
    """Return the rule about a member that only other revisions have, and a phrase; or blanks."""
    having = [
        other
        for other in REVISIONS
        if (view := type_(type_name, other)) is not None and member in view.fields
    ]
    return other_revision(having, revision, "type")


def other_revision(having: Iterable[str], revision: str, of: str) -> tuple[str, str]:
    """Return the rule about something that only the revisions `having` have, and a phrase."""
    before = [other for other in having if other < revision]
    if before:
        after = REVISIONS[REVISIONS.index(before[-1]) + 1]
        return f"mcp.{of}.no-longer", f"removed in {after}"
    after_this = [other for other in having if other > revision]
    return (f"mcp.{of}.not-yet", f"added in {after_this[0]}") if after_this else ("", "")


@lru_cache(maxsize=512)
def constants_elsewhere(expression: str, value: str, revision: str) -> str:
    """Return a phrase about another revision whose enum has the value."""
    for other in REVISIONS:
        view = type_(expression, other)
        if other == revision or view is None:
            continue
        if any(member.value == value for member in (parse(text) for text in view.of)):
            return f"; {other} has {value!r}"
    return ""
