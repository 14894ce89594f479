"""What somebody may have meant, looked up only once a mistake is found.

A near name, or the revision that has what this one lacks. A peer chooses the names, so
their length and the number of lookups are bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from ...spec.revisions import REVISIONS
from ...spec.types import parse, type_

__all__ = ["constants_elsewhere", "elsewhere", "near", "other_revision"]

# No name of the specification is longer; comparing takes quadratic time.
_MAX_NAME_CHARS: Final = 64


def near(name: object, known: Iterable[str]) -> str:
    """Return `; did you mean …?`, or nothing where no known name is near."""
    if not isinstance(name, str) or len(name) > _MAX_NAME_CHARS:
        return ""
    return _near(name, tuple(known))


# Hostile messages repeat themselves; so do honest ones.
@lru_cache(maxsize=512)
def _near(name: str, known: tuple[str, ...]) -> str:
    # Imported here: an honest peer makes no mistakes to explain.
    from difflib import get_close_matches

    lowered = {other.lower(): other for other in known}
    found = get_close_matches(name.lower(), lowered, n=1, cutoff=0.7)
    return f"; did you mean {lowered[found[0]]!r}?" if found else ""


@lru_cache(maxsize=512)
def elsewhere(type_name: str, member: str, revision: str) -> tuple[str, str]:
    """Return the rule about a member that only other revisions have, and which those are."""
    having = [
        other
        for other in REVISIONS
        if (view := type_(type_name, other)) is not None and member in view.fields
    ]
    return other_revision(having, revision, "type")


def other_revision(having: Iterable[str], revision: str, of: str) -> tuple[str, str]:
    """Return the rule about something that only the revisions `having` it know, and a phrase."""
    before = [other for other in having if other < revision]
    if before:
        after = REVISIONS[REVISIONS.index(before[-1]) + 1]
        return f"mcp.{of}.no-longer", f"removed in {after}"
    after_this = [other for other in having if other > revision]
    return (f"mcp.{of}.not-yet", f"added in {after_this[0]}") if after_this else ("", "")


@lru_cache(maxsize=512)
def constants_elsewhere(expression: str, value: str, revision: str) -> str:
    """Return which other revision knows a value of an enum, as a phrase."""
    for other in REVISIONS:
        view = type_(expression, other)
        if other == revision or view is None:
            continue
        if any(member.value == value for member in (parse(text) for text in view.of)):
            return f"; {other} has {value!r}"
    return ""
