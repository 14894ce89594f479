"""What both sides of an extension have: an id, settings, and result types of its own.

A server advertises extensions, a client declares them, both as `{id: settings}` among their
capabilities.                            [MCP 2026-07-28, basic/versioning#extension-negotiation]

The rules that live here, and only here:

* An id is a key as `_meta` has them, and its prefix is mandatory. Prefixes that are kept for
  the specification are in order: its extensions have them, and anybody may support those.
* Settings are a JSON object; an empty one is support without settings.
* An extension may name result types, but none that MCP itself has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Final

from msgspec.json import encode

from ..spec.lookup import capability
from ..spec.meta_key_check import KEY_SYNTAX, check_meta_key

__all__ = ["check_id", "has_extensions", "result_types_of", "settings_of"]

# What the core calls its own results.          [MCP 2026-07-28, basic#resulttype]
_OF_THE_CORE: Final = frozenset(("complete", "input_required"))


@cache  # one entry per released revision: another raises, and nothing is kept
def has_extensions(revision: str) -> bool:
    """Say whether a revision has extensions.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    return capability("extensions", revision, "server") is not None


def check_id(id: Any) -> None:
    """Refuse what cannot be the id of an extension.

    Raises:
        ValueError: it cannot; the text says why.
    """
    if not isinstance(id, str):
        raise ValueError(f"the id of an extension is a text, not {type(id).__name__}")
    prefix, _, name = id.partition("/")
    if not prefix or not name:
        raise ValueError(f"{id!r} is no id of an extension: those are like com.example/stars")
    problem = check_meta_key(id)
    if problem is not None and problem.rule == KEY_SYNTAX:
        raise ValueError(f"{id!r} is no id of an extension: {problem.says}")


def settings_of(id: str, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return settings as they are sent, in a copy that nobody else changes.

    Raises:
        TypeError: they are no JSON object.
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
        ValueError: one is no text, or MCP has it.
        TypeError: there is one text in the place of several.
    """
    if isinstance(names, str):
        raise TypeError(f"the result types of {id} are several: write ({names!r},)")
    found = tuple(names)
    for name in found:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a result type of {id} is a text, not {name!r}")
        if name in _OF_THE_CORE:
            raise ValueError(f"{name!r} is a result type of MCP itself, not of {id}")
    return found
