"""Counts the occasions and breaches of each requirement, and collects the findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from ...errors import NOTHING
from ...spec.requirements import Requirement, requirements
from ..finding import Finding, Level, as_shown
from ..unknown import NOTHING_HIDDEN, HiddenPlaces

__all__ = ["Checker", "traceable"]

_LEVELS: Final[dict[str, Level]] = {
    "must": "error",
    "must-not": "error",
    "should": "warn",
    "should-not": "warn",
    "may": "info",
}


@cache
def traceable(revision: str | None = None) -> dict[str, Requirement]:
    """Return the requirements, of one revision or of all, whose breach a recording can show."""
    return {row.id: row for row in requirements(revision) if row.judge == "trace" or row.also_trace}


class Checker:
    """Counts occasions and breaches; collects the findings about the current entry.

    A rule need not know which revisions it is for: requirements that the current revision
    does not have are ignored.
    """

    __slots__ = (
        "_requirements",
        "base",
        "breaches",
        "covered",
        "found",
        "hidden",
        "index",
        "occasions",
        "revision",
    )

    def __init__(self) -> None:
        self.occasions: Counter[str] = Counter()
        self.breaches: Counter[str] = Counter()
        self.found: list[Finding] = []
        self.covered: set[str] = set()
        self.index = -1
        # The position of the message in its batch, as the start of a JSON pointer.
        self.base = ""
        # The places of the entry whose values are unknown.
        self.hidden = NOTHING_HIDDEN
        self.revision = ""
        self._requirements: dict[str, Requirement] = {}

    def begin_entry(self, index: int, hidden: HiddenPlaces = NOTHING_HIDDEN) -> None:
        """Start a new entry without findings; the counts stay."""
        self.index = index
        self.hidden = hidden
        self.base = ""
        self.found = []
        self.covered = set()

    def use_revision(self, revision: str) -> None:
        """Check everything that follows against `revision`."""
        if revision != self.revision:
            self.revision = revision
            self._requirements = traceable(revision)

    def check(
        self,
        id: str,
        kept: object,
        where: str = "",
        got: Any = NOTHING,
        expected: str = "",
        also: Iterable[str] = (),
    ) -> None:
        """Count an occasion for the requirement `id`; a breach if it was not `kept`.

        `also` are further places that the breach is about: nothing else is reported there.
        """
        row = self._requirements.get(id)
        if row is None:
            return
        if not kept:
            place = self.base + where
            if self.hidden and place in self.hidden:
                return  # an unknown value breaks nothing
        self.occasions[id] += 1
        if not kept:
            self.covered.update(self.base + each for each in also)
            shown, source = as_shown(got, place), row.source(self.revision)
            self._breach(row, place, shown, expected or row.says, source)

    def requires(self, id: str) -> bool:
        """Return True if the current revision has this requirement."""
        return id in self._requirements

    def add_finding(self, finding: Finding, id: str) -> None:
        """Count a finding about a single message as a breach of a requirement."""
        self.occasions[id] += 1
        self._breach(
            self._requirements[id], finding.where, finding.got, finding.expected, finding.source
        )

    def _breach(self, row: Requirement, where: str, got: str, expected: str, source: str) -> None:
        self.breaches[row.id] += 1
        level = _LEVELS[row.level]
        self.found.append(Finding(row.id, level, where, got, expected, source, self.index))
