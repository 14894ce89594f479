"""Scopes: what they look like, and hierarchies in which one scope implies others.

The rules that live here, and only here:

* A scope is printable ASCII without space, quote and backslash.         [RFC 6749, section 3.3]
* A scope that implies others grants them too, and what those imply. Scopes that imply each other
  are the same scope under two names.
* Names are compared as they are written: scopes have no case folding.   [RFC 6749, section 3.3]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ..redaction import show

__all__ = ["ImpliedScopes", "check_scopes"]

# Of one operation, and of all hierarchies of a server: each is named in a header, and the closure
# of a hierarchy grows with the square of its scopes.
MAX_SCOPES: Final = 64
MAX_IMPLIED: Final = 512
_MAX_SCOPE_CHARS: Final = 256

_is_scope: Final = re.compile(r"[!#-\[\]-~]+").fullmatch


def check_scopes(scopes: object, option: str = "scopes") -> frozenset[str]:
    """Return scopes as a set.

    Raises:
        TypeError: they are not a list of texts.
        ValueError: one of them cannot be a scope, or there are more than 64.
    """
    if isinstance(scopes, str):
        raise TypeError(f"{option} is a list of scopes: write {option}=[{show(scopes)}]")
    if isinstance(scopes, bytes | Mapping) or not isinstance(scopes, Iterable):
        raise TypeError(f"{option} is a list of scopes, not {show(scopes)}")
    found = list(scopes)
    for each in found:
        if not isinstance(each, str):
            raise TypeError(f"{option} has texts, not {show(each)}")
        if len(each) > _MAX_SCOPE_CHARS or _is_scope(each) is None:
            raise ValueError(
                f"{show(each)} is not a scope: a scope has up to {_MAX_SCOPE_CHARS} characters of "
                "ASCII and no space, quote or backslash"
            )
    if len(found) > MAX_SCOPES:
        raise ValueError(f"{option} has at most {MAX_SCOPES} scopes, not {len(found)}")
    return frozenset(found)


class ImpliedScopes:
    """Which scopes grant a scope; computed once, when it is made.

    ImpliedScopes({"files:admin": ["files:read", "files:write"]})
    """

    __slots__ = ("_grants",)

    def __init__(self, implies: Mapping[str, Iterable[str]] | None = None) -> None:
        """Take scopes with those that each implies.

        Raises:
            TypeError: it is not a dict of lists of texts.
            ValueError: a name cannot be a scope, or there are more than 512 names.
        """
        if implies is not None and not isinstance(implies, Mapping):
            raise TypeError(f"implies is a dict of lists of scopes, not {show(implies)}")
        given = {
            scope: check_scopes(others, f"implies[{show(scope)}]")
            for scope, others in (implies or {}).items()
        }
        names = frozenset(given).union(*given.values())
        for name in names:
            check_scopes([name], "implies")
        if len(names) > MAX_IMPLIED:
            raise ValueError(f"implies has at most {MAX_IMPLIED} scopes, not {len(names)}")
        # By scope, the others that grant it.
        self._grants: dict[str, frozenset[str]] = {}
        found: dict[str, set[str]] = {}
        for scope in given:
            for implied in _closure(scope, given):
                found.setdefault(implied, set()).add(scope)
        self._grants = {scope: frozenset(others) for scope, others in found.items()}

    def __repr__(self) -> str:
        return f"<ImpliedScopes: {len(self._grants)} scopes are implied by others>"

    def missing(self, needed: frozenset[str], held: frozenset[str]) -> frozenset[str]:
        """Return the needed scopes that the held ones neither are nor imply."""
        if needed <= held:
            return frozenset()
        if not self._grants:
            return needed - held
        return frozenset(
            scope for scope in needed - held if self._grants.get(scope, _NONE).isdisjoint(held)
        )


_NONE: Final[frozenset[str]] = frozenset()


def _closure(scope: str, given: Mapping[str, frozenset[str]]) -> set[str]:
    """Return all scopes that a scope implies, through others too."""
    found: set[str] = set()
    rest = [scope]
    while rest:
        for each in given.get(rest.pop(), _NONE):
            if each not in found:
                found.add(each)
                rest.append(each)
    return found
