"""Ids, settings and result types of extensions, for servers and clients.

A server advertises extensions, a client declares them, both as `{id: settings}` among their
capabilities.                            [MCP 2026-07-28, basic/versioning#extension-negotiation]
Up to 2025-11-25 that member is not part of the specification, and is declared in `initialize` all
the same, as other implementations do: capabilities are an open set.

The rules that live here, and only here:

* An id has the syntax of a `_meta` key, with a mandatory prefix. Reserved prefixes are allowed:
  official extensions have them.
* Settings are a JSON object; an empty one means support without settings.
* An extension may define result types, except those of MCP itself. Only revisions that have
  extensions have result types.
* The tasks extension belongs to revisions that have extensions; 2025-11-25 has tasks of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Final

from msgspec.json import encode

from ..spec.lookup import capability
from ..spec.lookup.meta_key_check import KEY_SYNTAX, check_meta_key
from ..spec.mcp.tasks_extension import EXTENSION as TASKS

__all__ = ["check_id", "declared_in", "has_extensions", "result_types_of", "settings_of"]

# The result types of the core.                 [MCP 2026-07-28, basic#resulttype]
_OF_THE_CORE: Final = frozenset(("complete", "input_required"))


@cache  # one entry per released revision: another raises, and nothing is kept
def has_extensions(revision: str) -> bool:
    """Return True if a revision has extensions, and results of their own types.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
    """
    return capability("extensions", revision, "server") is not None


def declared_in(revision: str, settings: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the extensions of `settings` that are declared in a revision.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
    """
    if has_extensions(revision):
        return settings
    return {id: value for id, value in settings.items() if id != TASKS}


def check_id(id: Any) -> None:
    """Check the id of an extension.

    Raises:
        ValueError: it is invalid; the text has the reason.
    """
    if not isinstance(id, str):
        raise ValueError(f"the id of an extension is a string, not {type(id).__name__}")
    prefix, _, name = id.partition("/")
    if not prefix or not name:
        raise ValueError(f"{id!r} is not an extension id: write one like com.example/stars")
    problem = check_meta_key(id)
    if problem is not None and problem.rule == KEY_SYNTAX:
        raise ValueError(f"{id!r} is not an extension id: {problem.says}")


def settings_of(id: str, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of the settings of an extension.

    Raises:
        TypeError: they are not a JSON object.
    """
    given = {} if settings is None else settings
    if not isinstance(given, Mapping):
        raise TypeError(f"the settings of {id} are a dict, not {type(given).__name__}")
    try:
        encode(given)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"the settings of {id} cannot be sent: {error}") from None
    return deepcopy(dict(given))


def result_types_of(id: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the result types of an extension.

    Raises:
        ValueError: one is not a string, or is a result type of MCP.
        TypeError: the argument is one string instead of several.
    """
    if isinstance(names, str):
        raise TypeError(f"the result types of {id} are a sequence: write ({names!r},)")
    found = tuple(names)
    for name in found:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a result type of {id} is a string, not {name!r}")
        if name in _OF_THE_CORE:
            raise ValueError(f"{name!r} is a result type of MCP itself, not of {id}")
    return found
