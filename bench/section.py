"""One section of the benchmarks: its options, its rows, its verdicts and its file of samples.

Every script of this folder that measures is a section, which runs alone (`python -m bench.stdio`)
or as a part of `python -m bench.run`. A section has rows of two kinds: cases, which were timed in
rounds by a `Bench`, and values, which are single numbers such as bytes of memory. A row is named by
section, group and name; `targets.json` refers to rows by that name.

`--raw FILE` writes the section as JSON: every sample of every case, controls, values and the
machine. `bench.run` joins these files, and `bench.report` writes the documentation from them.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from bench import harness, targets
from bench.harness import Bench, Case, Clock, Effort

RESULTS: Final = Path(__file__).parent / "results"

EXIT_OK: Final = 0
EXIT_MISSED: Final = 1
EXIT_VOID: Final = 3


class Section:
    """What one script measures."""

    def __init__(
        self, name: str, about: str, distributions: Iterable[str], *, has_only: bool = False
    ) -> None:
        """Read the command line and print the heading.

        Args:
            name: the module, and the first part of the names of its rows.
            about: what is measured against what, in a sentence; documentation shows it.
            distributions: packages whose versions are recorded.
            has_only: `--only TEXT` selects a part of the section.
        """
        self.name = name
        self.about = about
        self.options = _parse_arguments(about, has_only=has_only)
        self.facts = harness.machine(distributions)
        self._began = time.monotonic()
        self._benches: list[Bench] = []
        self._values: list[dict[str, Any]] = []
        harness.print_heading(self.facts)
        # Log lines that are not read would be a cost of the clients in this process.
        logging.disable(logging.WARNING)

    @property
    def is_quick(self) -> bool:
        """Whether the run is a short one."""
        return bool(self.options.quick)

    def bench(self, full: Effort, quick: Effort, *, cpu_clock: Clock | None = None) -> Bench:
        """Return a bench whose cases are rows of this section."""
        effort = quick if self.is_quick else full
        bench = Bench(effort, cpu_clock=cpu_clock or time.process_time_ns)
        self._benches.append(bench)
        return bench

    def value(self, group: str, name: str, value: float, unit: str) -> None:
        """Record a single number as a row."""
        self._values.append({"group": group, "name": name, "value": value, "unit": unit})

    def conclude(self) -> int:
        """Print the verdicts, write the samples if asked, and return the exit code."""
        record = self.record()
        if self.options.raw:
            RESULTS.mkdir(exist_ok=True)
            path = RESULTS / self.options.raw
            path.write_text(json.dumps(record), encoding="utf-8")
            print(f"\nsamples written to {path.name}")
        verdicts = targets.judge(record)
        if verdicts:
            print("\ntargets (ratios are paired medians of CPU time, times are best of rounds):")
        for verdict in verdicts:
            if verdict.value is not None or not self.options.only:
                print(f"  {verdict}")
        if record["void"]:
            print(
                f"VOID: the same callable timed twice came out more than "
                f"{harness.CONTROL_LIMIT:.0%} apart; repeat the run on a machine with less load."
            )
            return EXIT_VOID
        missed = not all(verdict.met for verdict in verdicts)
        return EXIT_MISSED if self.options.check and missed else EXIT_OK

    def record(self) -> dict[str, Any]:
        """Return the section as JSON values."""
        controls = [pair for bench in self._benches for pair in bench.controls()]
        cases = [
            case
            for bench in self._benches
            for group in bench.groups().values()
            for case in group
            # `--only` and missing programs leave cases without samples.
            if case.cpu
        ]
        return {
            "section": self.name,
            "about": self.about,
            "command": harness.command(),
            "quick": self.is_quick,
            "seconds": round(time.monotonic() - self._began, 1),
            "machine": self.facts,
            "void": any(bench.is_void() for bench in self._benches),
            "controls": [
                {"group": case.group, "name": case.name, "ratio": round(ratio.median, 3)}
                for case, ratio in controls
            ],
            "cases": [_case(case) for case in cases],
            "values": self._values,
        }


def _case(case: Case) -> dict[str, Any]:
    return {
        "group": case.group,
        "name": case.name,
        "baseline": case.baseline,
        "rivals": list(case.rivals),
        "operations_per_round": len(case.sequence) * case.operations,
        "cpu_ns": [_rounded(value) for value in case.cpu],
        "wall_ns": [_rounded(value) for value in case.wall],
        "p50_ns": case.percentile(50),
        "p99_ns": case.percentile(99),
        "single_wall_ns": case.single,
    }


def _rounded(nanoseconds: float) -> float:
    return round(nanoseconds, 1) if nanoseconds < 1000 else round(nanoseconds)


def _parse_arguments(about: str, *, has_only: bool) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--raw", metavar="FILE", help="write all samples to bench/results/FILE")
    parser.set_defaults(only="")
    if has_only:
        parser.add_argument("--only", metavar="TEXT", help="rows with TEXT in their name")
    options = parser.parse_args()
    if options.check and options.only:
        parser.error("--check judges every target, so it cannot be combined with --only")
    return options
