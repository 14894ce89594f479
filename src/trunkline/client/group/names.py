"""Names of tools and prompts of several servers: `SERVER_TOOL`, and the way back.

The rules that live here, and only here:

* The name of a tool is the name of its server, an underscore and its own name. A character of the
  server's name that the name of a tool may not have becomes an underscore.
* Two servers whose names become the same are rejected.
* A name has at most 128 characters. A longer one is cut, and ends with an underscore and eight
  digits of its SHA-256.                              [MCP 2025-11-25, server/tools]
* Names are not parsed where that is ambiguous: of servers `a` and `a_b`, the name `a_b_c` may be
  `b_c` of one or `c` of the other, and what they list decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ...redaction import show

__all__ = ["MAX_NAME_LENGTH", "SEPARATOR", "joined", "owners", "prefixes"]

SEPARATOR: Final = "_"
MAX_NAME_LENGTH: Final = 128
# Leaves as much again for the name of a tool.
_MAX_SERVER_LENGTH: Final = 63
_DIGITS: Final = 8
_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]")


def prefixes(servers: Iterable[str]) -> dict[str, str]:
    """Return what the names of each server's tools begin with, by server.

    Raises:
        ValueError: a name is empty or too long, or two names become the same.
    """
    found: dict[str, str] = {}
    for name in servers:
        if not 0 < len(name) <= _MAX_SERVER_LENGTH:
            raise ValueError(
                f"the name of a server has 1 to {_MAX_SERVER_LENGTH} characters, not {show(name)}"
            )
        prefix = _NOT_IN_NAME.sub(SEPARATOR, name) + SEPARATOR
        for other, taken in found.items():
            if taken == prefix:
                raise ValueError(
                    f"the tools of {show(other)} and {show(name)} would have the same names, "
                    f"{prefix}…: rename one of the servers"
                )
        found[name] = prefix
    return found


def joined(prefix: str, name: str) -> str:
    """Return the name that a tool of one server has in the group."""
    whole = prefix + name
    if len(whole) <= MAX_NAME_LENGTH:
        return whole
    # Imported here: it is rare.
    from hashlib import sha256

    digits = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{whole[: MAX_NAME_LENGTH - _DIGITS - 1]}{SEPARATOR}{digits}"


def owners(known: Mapping[str, str], name: str) -> list[tuple[str, str]]:
    """Return the servers that a name may belong to, each with its own name for it."""
    return [
        (server, name[len(prefix) :])
        for server, prefix in known.items()
        if name.startswith(prefix) and len(name) > len(prefix)
    ]
