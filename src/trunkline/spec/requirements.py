"""The requirements of the MCP specification, and the means by which a breach can be shown.

    requirement("mcp.progress.grows").says
    requirements(revision="2025-06-18", actor="server", judge="trace")

A requirement whose breach nothing here can show says so and why (`judge` is "unit" or "none").
A report may leave it out or call it untested, but must not call it passed.

The rows are in `mcp/requirements.py`; they are loaded on the first lookup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from .revisions import REVISIONS, V2026_07_28, Window, must_be_released

__all__ = [
    "ACTORS",
    "JUDGES",
    "LEVELS",
    "Actor",
    "Judge",
    "Level",
    "Requirement",
    "UnknownRequirement",
    "requirement",
    "requirements",
]

# The keywords of BCP 14.
Level: TypeAlias = Literal["must", "must-not", "should", "should-not", "may"]

# The party it binds. "host" is the application around a client: what a person sees and decides.
Actor: TypeAlias = Literal["client", "server", "both", "host", "authorization-server"]

# The simplest means that shows a breach from outside:
#   trace          a recording of ordinary traffic: frames in order and, over HTTP, methods,
#                  addresses, headers, statuses and the stream of each event
#   probe-server   a test client: it needs an occasion that ordinary traffic does not offer, or
#                  knowledge that is in no recording (that a token had expired)
#   probe-client   the same, as a test server or authorization server
#   unit           nothing outside: only the implementation's own tests
#   none           no program: a permission, a question of meaning, or what a person sees
Judge: TypeAlias = Literal["trace", "probe-server", "probe-client", "unit", "none"]

LEVELS: Final[tuple[Level, ...]] = get_args(Level)
ACTORS: Final[tuple[Actor, ...]] = get_args(Actor)
JUDGES: Final[tuple[Judge, ...]] = get_args(Judge)

# Longer names are not compared with the known ones: the cost grows with the length.
_MAX_NAME_CHARS: Final = 100


# Pages that 2026-07-28 has renamed or divided: the beginning of the name, and the name before.
_EARLIER_PAGES: Final = (
    ("basic/authorization/", "basic/authorization"),
    ("basic/patterns/cancellation", "basic/utilities/cancellation"),
    ("basic/patterns/progress", "basic/utilities/progress"),
    ("basic/transports/", "basic/transports"),
    ("basic/versioning", "basic/lifecycle"),
)


class UnknownRequirement(LookupError):
    """No one requirement has this id or ref."""


class Requirement(NamedTuple):
    """One requirement of a specification. One that changes has a row for each form."""

    id: str
    # The numbered statement it belongs to. A statement with several requirements has several rows.
    ref: str
    level: Level
    actor: Actor
    when: Window
    # What holds if the requirement is kept, whether its level is a must or a must-not.
    says: str
    # The newest revision that has it, and the page.
    anchor: str
    judge: Judge
    # Why no breach can be shown from outside; otherwise, what limits the verdict.
    why: str = ""
    # Of a probe: a recording that happens to hold the occasion shows the breach too.
    also_trace: bool = False
    # The extension it belongs to; empty for the core.
    extension: str = ""
    # The rule about single messages that states the same.
    same_as: str = ""

    def source(self, revision: str) -> str:
        """Return the page of `revision` that has it, in the form of `anchor`."""
        newest, separator, page = self.anchor.partition(" · ")
        if newest not in REVISIONS or newest == revision:
            return self.anchor
        for start, earlier in _EARLIER_PAGES:
            if newest == V2026_07_28 and page.startswith(start):
                page = earlier
        return f"{revision}{separator}{page}"


def requirements(
    revision: str | None = None,
    actor: Actor | None = None,
    judge: Judge | None = None,
    level: Level | None = None,
    ref: str | None = None,
) -> tuple[Requirement, ...]:
    """Return the requirements that match all filters, in the order of the rows.

    A requirement on both parties matches the actors "client" and "server" too.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
        LookupError: this actor, judge, level or ref does not exist.
    """
    if revision is not None:
        must_be_released(revision)
    # A misspelt filter would match nothing, which reads like "nothing is required".
    _known("actor", actor, ACTORS)
    _known("judge", judge, JUDGES)
    _known("level", level, LEVELS)
    if ref is not None and ref not in _by_ref():
        raise UnknownRequirement(f"no requirement has the ref {ref!r}{_near(ref, _by_ref())}")
    return tuple(
        row
        for row in (_rows() if ref is None else _by_ref()[ref])
        if (revision is None or row.when.holds(revision))
        and (actor is None or _binds(row, actor))
        and judge in (None, row.judge)
        and level in (None, row.level)
    )


def requirement(id_or_ref: str) -> Requirement:
    """Return the requirement with this id, or the only one with this ref.

    Raises:
        UnknownRequirement: there is none, and the text suggests a similar one;
            or the ref has several, and the text lists them.
    """
    row = _by_id().get(id_or_ref)
    if row is not None:
        return row
    sharing = _by_ref().get(id_or_ref)
    if sharing is None:
        near = _near(id_or_ref, (*_by_id(), *_by_ref()))
        raise UnknownRequirement(f"no requirement {id_or_ref!r}{near}")
    if len(sharing) > 1:
        ids = ", ".join(row.id for row in sharing)
        raise UnknownRequirement(f"{id_or_ref} has {len(sharing)} requirements: {ids}")
    return sharing[0]


def _rows() -> tuple[Requirement, ...]:
    # Imported here: most programs never need the rows.
    from .mcp.requirements import REQUIREMENTS

    return REQUIREMENTS


@cache
def _by_id() -> Mapping[str, Requirement]:
    return {row.id: row for row in _rows()}


@cache
def _by_ref() -> Mapping[str, tuple[Requirement, ...]]:
    table: dict[str, tuple[Requirement, ...]] = {}
    for row in _rows():
        table[row.ref] = (*table.get(row.ref, ()), row)
    return table


def _binds(row: Requirement, actor: Actor) -> bool:
    return row.actor == actor or (row.actor == "both" and actor in ("client", "server"))


def _known(column: str, value: str | None, values: Iterable[str]) -> None:
    if value is not None and value not in values:
        raise LookupError(f"unknown {column} {value!r}; expected one of {', '.join(values)}")


def _near(name: str, names: Iterable[str]) -> str:
    # Imported here: only a mistake needs it.
    from difflib import get_close_matches

    near = get_close_matches(name, names, n=1) if len(name) <= _MAX_NAME_CHARS else []
    return f"; did you mean {near[0]!r}?" if near else ""
