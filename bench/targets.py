"""The targets of `targets.json`: bounds on rows of a result, and the verdict on each.

A target names its row as `section | group | name` and says what of it is bounded:

| measure | is |
|---|---|
| `speedup` | CPU time of the baseline of the row divided by its own: median of paired rounds |
| `speedup, wall` | the same of wall times |
| `slowdown` | CPU time of the row divided by that of its baseline: median of paired rounds |
| `time` | the best CPU time of the rounds |
| `median time` | the median CPU time of the rounds |
| `value` | the number itself, of a row that is one |

`at least` or `at most` is the bound, in `unit`. `about` says in words what is bounded, and `note`
why a target is missed; documentation prints it as long as it is.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from bench.harness import paired

TARGETS: Final = Path(__file__).parent / "targets.json"
SEPARATOR: Final = " | "
_PER_UNIT: Final = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}

Measure = Literal["speedup", "speedup, wall", "slowdown", "time", "median time", "value"]
Record = Mapping[str, Any]
"""A section as JSON values."""


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on a row."""

    row: str
    about: str
    measure: Measure
    sense: Literal["at least", "at most"]
    bound: float
    unit: str
    note: str = ""

    @property
    def section(self) -> str:
        """The section of the row."""
        return self.row.split(SEPARATOR)[0]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and what was measured; a value of None was not measured and counts as missed."""

    target: Target
    value: float | None
    problem: str = "not measured"
    """Why there is no value."""

    @property
    def met(self) -> bool:
        """Whether the measured value keeps the bound."""
        if self.value is None:
            return False
        target = self.target
        if target.sense == "at least":
            return self.value >= target.bound
        return self.value <= target.bound

    def __str__(self) -> str:
        """One line: verdict, name, value and bound."""
        target = self.target
        value = self.problem if self.value is None else f"{self.value:.2f} {target.unit}"
        verdict = "PASS" if self.met else "MISS"
        bound = f"{target.sense} {target.bound:g} {target.unit}"
        return f"{verdict}  {target.about:<58} {value:>16}   {bound}"


def load(path: Path = TARGETS) -> list[Target]:
    """Return all targets, in the order of the file."""
    found = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        sense: Literal["at least", "at most"] = "at least" if "at least" in row else "at most"
        bound = row.pop(sense)
        found.append(Target(**row, sense=sense, bound=bound))
    return found


def judge(record: Record) -> list[Verdict]:
    """Return the verdict on each target of a section."""
    wanted = [target for target in load() if target.section == record["section"]]
    return [Verdict(target, measured(record, target)) for target in wanted]


def rows(record: Record) -> dict[str, Mapping[str, Any]]:
    """Return the rows of a section by name."""
    return {
        SEPARATOR.join((record["section"], row["group"], row["name"])): row
        for row in (*record["cases"], *record["values"])
    }


def measured(record: Record, target: Target) -> float | None:
    """Return what a target bounds, or None where its row was not measured."""
    found = rows(record)
    row = found.get(target.row)
    if row is None or ("value" in row) != (target.measure == "value"):
        return None
    if target.measure == "value":
        return float(row["value"])
    if target.measure in ("time", "median time"):
        reduce = min if target.measure == "time" else statistics.median
        return float(reduce(row["cpu_ns"])) / _PER_UNIT[target.unit]
    baseline = found.get(SEPARATOR.join((record["section"], row["group"], row["baseline"])))
    if baseline is None:
        return None
    samples = "wall_ns" if target.measure == "speedup, wall" else "cpu_ns"
    slower, faster = (row, baseline) if target.measure == "slowdown" else (baseline, row)
    return paired(slower[samples], faster[samples]).median
