"""Where checks put what they find, at a bounded cost.

A check reports facts: a rule, a path, what was there. Text is made of them at the end, for
those that are kept. Each level has a bound of its own, so that a flood of remarks cannot
push an error out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from ...errors import NOTHING
from ...jsonrpc.tokenizer import pointer
from ...spec.mcp.rules import RULES
from ..finding import MAX_FINDINGS, Finding, as_shown, ordered

__all__ = ["Path", "Sink", "steps_of"]

# The way to a place, innermost step first: None is the top. Made on the way down at the cost
# of a pair, and turned into a pointer only for what is found.
Path: TypeAlias = "tuple[Path, str | int] | None"
Fact: TypeAlias = tuple[str, Path, Any, str, str]

# Past this many, a check may stop looking: a list of a million wrong elements is one mistake.
_MAX_REPORTS: Final = 10 * MAX_FINDINGS


class Sink:
    """Collects what the checks of one message report.

    `by_file` says that where our rows are narrower than the official schema file, and the
    file lets a value pass, that is a warning and no error.
    """

    __slots__ = ("_kept", "_most", "by_file", "counts", "ready", "revision", "stopped")

    def __init__(self, revision: str, *, by_file: bool = False, most: int = MAX_FINDINGS) -> None:
        self.revision = revision
        self.by_file = by_file
        self.counts = {"error": 0, "warn": 0, "info": 0}
        self.stopped = False
        # Findings that were made elsewhere: those of the codec.
        self.ready: list[Finding] = []
        self._kept: list[Fact] = []
        self._most = most

    def report(
        self, rule: str, path: Path, got: Any = NOTHING, expected: str = "", source: str = ""
    ) -> None:
        """Take note of a broken rule."""
        level = RULES[rule].level
        seen = self.counts[level]
        self.counts[level] = seen + 1
        if seen < self._most:
            self._kept.append((rule, path, got, expected, source))

    def is_full(self) -> bool:
        """Say whether so much was found that looking on tells nobody anything."""
        if sum(self.counts.values()) < _MAX_REPORTS:
            return False
        self.stopped = True
        return True

    def trial(self) -> Sink:
        """Return a sink for one guess at what a value was meant to be."""
        return Sink(self.revision, by_file=self.by_file)

    def absorb(self, other: Sink) -> None:
        """Take over what a trial found."""
        for fact in other._kept:
            self.report(*fact)
        kept = len(other._kept)
        # What the trial counted and did not keep is counted here too.
        self.counts["info"] += sum(other.counts.values()) - kept
        self.stopped = self.stopped or other.stopped

    def rules(self) -> Iterator[str]:
        """Yield the rules that were broken."""
        return (fact[0] for fact in self._kept)

    def facts(self) -> list[Fact]:
        """Return what was kept."""
        return self._kept

    def weight(self) -> tuple[int, int, int]:
        """Return how much was found, the worst first."""
        return (self.counts["error"], self.counts["warn"], self.counts["info"])

    def findings(self, message_index: int | None = None) -> list[Finding]:
        """Return all that was found, in order."""
        if not self._kept and not self.ready:
            return []
        made = [self._finding(*fact, message_index) for fact in self._kept]
        unseen = sum(self.counts.values()) - len(made)
        return ordered([*self.ready, *made], unseen, more=self.stopped)

    def _finding(
        self, rule: str, path: Path, got: Any, expected: str, source: str, index: int | None
    ) -> Finding:
        row, where = RULES[rule], pointer(steps_of(path))
        return Finding(
            rule,
            row.level,
            where,
            as_shown(got, where),
            expected or row.expected,
            f"{self.revision} · {source or row.anchor}",
            index,
        )


def steps_of(path: Path) -> list[str | int]:
    """Return the steps of a path, outermost first."""
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    steps.reverse()
    return steps
