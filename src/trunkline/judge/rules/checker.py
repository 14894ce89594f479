"""What was observed and what was broken, requirement by requirement."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any, Final

from ...errors import NOTHING
from ...spec.requirements import Requirement, requirements
from ..finding import Finding, Level, as_shown

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
    """Return the requirements whose breach a recording can show, of one revision or of all."""
    return {row.id: row for row in requirements(revision) if row.judge == "trace" or row.also_trace}


class Checker:
    """Counts occasions and breaches; keeps the findings of the message that is being judged.

    A rule need not know which revisions it is for: what the one at hand does not ask is
    passed over here.
    """

    __slots__ = ("_requirements", "base", "breaches", "found", "index", "occasions", "revision")

    def __init__(self) -> None:
        self.occasions: Counter[str] = Counter()
        self.breaches: Counter[str] = Counter()
        self.found: list[Finding] = []
        self.index = -1
        # The place of the message in its batch, as the start of a pointer.
        self.base = ""
        self.revision = ""
        self._requirements: dict[str, Requirement] = {}

    def begin_entry(self, index: int) -> None:
        """Turn to the next entry."""
        self.index = index
        self.base = ""
        self.found = []

    def use_revision(self, revision: str) -> None:
        """Judge what follows by `revision`."""
        if revision != self.revision:
            self.revision = revision
            self._requirements = traceable(revision)

    def check(
        self, id: str, kept: object, where: str = "", got: Any = NOTHING, expected: str = ""
    ) -> None:
        """Take note of an occasion on which a requirement was kept, or was not."""
        row = self._requirements.get(id)
        if row is None:
            return
        self.occasions[id] += 1
        if not kept:
            self._breach(row, self.base + where, got, expected)

    def requires(self, id: str) -> bool:
        """Say whether the revision at hand has this requirement."""
        return id in self._requirements

    def add_finding(self, finding: Finding, id: str) -> None:
        """Count what the judge of single messages found as a breach of a requirement."""
        row = self._requirements[id]
        self.occasions[id] += 1
        self.breaches[id] += 1
        got, expected = finding.got, finding.expected
        self._keep(row, finding.where, got, expected, finding.source)

    def _breach(self, row: Requirement, where: str, got: Any, expected: str) -> None:
        self.breaches[row.id] += 1
        shown = as_shown(got, where)
        self._keep(row, where, shown, expected or row.says, row.anchor)

    def _keep(self, row: Requirement, where: str, got: str, expected: str, source: str) -> None:
        level = _LEVELS[row.level]
        self.found.append(Finding(row.id, level, where, got, expected, source, self.index))
