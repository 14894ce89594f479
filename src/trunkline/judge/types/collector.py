"""Collects what the checks of a message report, at a bounded cost.

A check reports facts: a rule, a path, the value found. They become findings with text at the
end, and only those that are kept. Each level has its own bound, so that a flood of remarks
cannot displace an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from ...errors import NOTHING
from ...jsonrpc.codec.tokenizer import pointer
from ...spec.mcp.rules import RULES
from ..finding import MAX_FINDINGS, Finding, as_shown, ordered

__all__ = ["Path", "Sink"]

# The path to a value, innermost step first; None is the top. A step down costs one pair, and
# only reported paths become JSON pointers.
Path: TypeAlias = "tuple[Path, str | int] | None"
Fact: TypeAlias = tuple[str, Path, Any, str, str]

# Past this many a check may stop: a list of a million wrong elements is one mistake.
_MAX_REPORTS: Final = 10 * MAX_FINDINGS


class Sink:
    """Collects what the checks of one message report.

    With `by_file`, a value that the official schema file accepts and our narrower rows do not
    is a warning instead of an error.
    """

    __slots__ = ("_kept", "_most", "by_file", "counts", "ready", "revision", "stopped")

    def __init__(self, revision: str, *, by_file: bool = False, most: int = MAX_FINDINGS) -> None:
        self.revision = revision
        self.by_file = by_file
        self.counts = {"error": 0, "warn": 0, "info": 0}
        self.stopped = False
        # Findings of the codec, complete already.
        self.ready: list[Finding] = []
        self._kept: list[Fact] = []
        self._most = most

    def report(
        self, rule: str, path: Path, got: Any = NOTHING, expected: str = "", source: str = ""
    ) -> None:
        """Record a broken rule."""
        level = RULES[rule].level
        seen = self.counts[level]
        self.counts[level] = seen + 1
        if seen < self._most:
            self._kept.append((rule, path, got, expected, source))

    def is_full(self) -> bool:
        """Return True if a check may stop, since enough was reported."""
        if sum(self.counts.values()) < _MAX_REPORTS:
            return False
        self.stopped = True
        return True

    def trial(self) -> Sink:
        """Return an empty sink for one guess at the intended type of a value."""
        return Sink(self.revision, by_file=self.by_file)

    def absorb(self, other: Sink) -> None:
        """Take over the reports of a trial, kept or only counted."""
        for fact in other._kept:
            self.report(*fact)
        self.counts["info"] += sum(other.counts.values()) - len(other._kept)
        self.stopped = self.stopped or other.stopped

    def rules(self) -> Iterator[str]:
        """Yield the rules that were broken."""
        return (fact[0] for fact in self._kept)

    def facts(self) -> list[Fact]:
        """Return the reports that were kept."""
        return self._kept

    def weight(self) -> tuple[int, int, int]:
        """Return the number of errors, warnings and remarks."""
        return (self.counts["error"], self.counts["warn"], self.counts["info"])

    def findings(self, message_index: int | None = None) -> list[Finding]:
        """Return the findings in order."""
        if not self._kept and not self.ready:
            return []
        made = [self._finding(*fact, message_index) for fact in self._kept]
        unseen = sum(self.counts.values()) - len(made)
        return ordered([*self.ready, *made], unseen, more=self.stopped)

    def _finding(
        self, rule: str, path: Path, got: Any, expected: str, source: str, index: int | None
    ) -> Finding:
        steps: list[str | int] = []
        while path is not None:
            path, step = path
            steps.append(step)
        row, where = RULES[rule], pointer(reversed(steps))
        return Finding(
            rule,
            row.level,
            where,
            as_shown(got, where),
            expected or row.expected,
            f"{self.revision} · {source or row.anchor}",
            index,
        )
