"""Method names on the wire and their official form.

The official names are those of the rows. A policy may accept aliases, and may send names
without `notifications/`; the rest of the library uses official names only, so names are
translated when a message is received or sent.

An alias maps to a method of the negotiated revision, and never hides one of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..jsonrpc.policy import Policy
from ..spec.lookup import methods
from ..spec.mcp.methods import ALIASES, METHODS, NOTIFICATION

__all__ = ["official", "spoken"]


def official(name: str, policy: Policy, revision: str) -> str:
    """Return the official name of a method; a name that is not an alias is returned unchanged.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
    """
    if policy.method_names == "prefixed":
        return name
    return _officials(revision).get(name, name)


def spoken(name: str, policy: Policy) -> str:
    """Return the name of a method in a message that we send."""
    if policy.method_names != "emit-bare":
        return name
    return _bare().get(name, name)


@cache  # one entry per released revision: another raises, and nothing is kept
def _officials(revision: str) -> Mapping[str, str]:
    names = {row.name for row in methods(revision)}
    bare = {name.removeprefix(NOTIFICATION): name for name in names}
    listed = {row.spelling: row.official for row in ALIASES if row.official in names}
    return {alias: name for alias, name in (bare | listed).items() if alias not in names}


@cache
def _bare() -> Mapping[str, str]:
    rows = [row for row in METHODS if row.kind == "notification"]
    return {row.name: row.name.removeprefix(NOTIFICATION) for row in rows}
