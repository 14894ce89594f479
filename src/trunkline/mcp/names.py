"""What methods are called on this connection.

The official names are those of the rows. A policy may take others as well, and may drop
`notifications/` from those it sends; the rest of the library knows official names only, so
a name is translated where a message comes in and where one goes out.

An alias stands for a method that the spoken revision has, and never hides one of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..jsonrpc.policy import Policy
from ..spec.lookup import methods
from ..spec.mcp.aliases import ALIASES, NOTIFICATION
from ..spec.mcp.methods import METHODS

__all__ = ["official", "spoken"]


def official(name: str, policy: Policy, revision: str) -> str:
    """Return the official name of the method that a peer calls `name`.

    A name that is no alias is returned as it is, be it official or unheard of.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    if policy.method_names == "prefixed":
        return name
    return _officials(revision).get(name, name)


def spoken(name: str, policy: Policy) -> str:
    """Return what a method is called in a message that we send."""
    if policy.method_names != "emit-bare":
        return name
    return _bare().get(name, name)


@cache  # one entry per released revision: another raises, and nothing is kept
def _officials(revision: str) -> Mapping[str, str]:
    """Return the official names in `revision` by all others."""
    names = {row.name for row in methods(revision)}
    bare = {name.removeprefix(NOTIFICATION): name for name in names}
    listed = {row.spelling: row.official for row in ALIASES if row.official in names}
    return {alias: name for alias, name in (bare | listed).items() if alias not in names}


@cache
def _bare() -> Mapping[str, str]:
    """Return the notifications of all revisions without what they begin with."""
    rows = [row for row in METHODS if row.kind == "notification"]
    return {row.name: row.name.removeprefix(NOTIFICATION) for row in rows}
