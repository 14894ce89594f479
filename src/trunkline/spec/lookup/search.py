"""A search over the rows of a revision, by words in their names and descriptions.

The rules that live here, and only here:

* A row is found if each word is in its name, or in its name and description together; case does not
  count. A plural finds the singular: "tools" is in "Tool", too.
* Rows whose name has the words come first, in the order of the specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..requirements import requirements
from ..types import types
from . import capabilities, errors, headers, http_statuses, meta_keys, methods, transports

__all__ = ["FoundRow", "search"]


class FoundRow(NamedTuple):
    """A row that a search found."""

    # The word of `trunkline spec` that lists such rows: methods, types, errors, and so on.
    kind: str
    name: str
    says: str


def search(words: Sequence[str], revision: str) -> tuple[FoundRow, ...]:
    """Return the rows of MCP in a revision that have each of some words, by kind."""
    wanted = [_stem(word.lower()) for word in words]
    in_name, in_text = [], []
    for row in _rows(revision):
        if all(word in row.name.lower() for word in wanted):
            in_name.append(row)
        elif all(word in f"{row.name} {row.says}".lower() for word in wanted):
            in_text.append(row)
    kinds = dict.fromkeys(row.kind for row in _rows(revision))
    return tuple(row for kind in kinds for row in (*in_name, *in_text) if row.kind == kind)


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _rows(revision: str) -> Iterator[FoundRow]:
    yield from _named("methods", ((row.name, row.doc) for row in methods(revision)))
    yield from _named("capabilities", ((row.name, row.doc) for row in capabilities(revision)))
    shown = (
        (view.name, view.doc or ", ".join(view.fields) or " | ".join(view.of))
        for view in types(revision).values()
    )
    yield from _named("types", shown)
    numbers = ((str(row.number), f"{row.symbol:s}: {row.message}") for row in errors(revision))
    yield from _named("errors", numbers)
    yield from _named("headers", ((row.name, row.doc) for row in headers(revision)))
    statuses = ((str(row.status), f"{row.condition}: {row.doc}") for row in http_statuses(revision))
    yield from _named("statuses", statuses)
    yield from _named("meta", ((row.key, row.doc) for row in meta_keys(revision)))
    yield from _named("transports", ((row.name, row.doc) for row in transports(revision)))
    yield from _named("requirements", ((row.id, row.says) for row in requirements(revision)))


def _named(kind: str, rows: Iterable[tuple[str, str]]) -> Iterator[FoundRow]:
    for name, says in rows:
        yield FoundRow(kind, name, says)
