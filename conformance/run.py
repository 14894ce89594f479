"""Run the official conformance suites against `examples/everything_server.py`.

    python -m conformance.run [--asgi] [--run NAME] [--only SCENARIO] [--port PORT] [--url URL]

Exits with 0 if every scenario passes or fails as `baseline.toml` says, with 1 if not, and with 2
if the suites could not be run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple

from . import baseline, install
from .baseline import Mark
from .evidence import Scenario, judge, read, scenarios_of_log
from .server import ServerFailed, commands, free_port, running

ROOT: Final = Path(__file__).resolve().parent.parent
# What one run of a suite may take, in seconds. It takes 10 s at most on two idle cores.
RUN_TIMEOUT_S: Final = 100.0


class Run(NamedTuple):
    """One run of a suite in server mode, with all its scenarios."""

    suite: str
    # The revision to speak; without it each scenario has its own.
    revision: str | None
    # Scenarios of the pinned version: a filter that selects none is a pass for the suite.
    scenarios: int

    @property
    def name(self) -> str:
        """The name in tables and in `baseline.toml`."""
        return self.suite if self.revision is None else f"{self.suite} {self.revision}"


RUNS: Final = (
    Run("stable", None, 32),
    Run("alpha", None, 65),
    Run("alpha", "2025-03-26", 1),
    Run("alpha", "2025-06-18", 27),
    Run("alpha", "2025-11-25", 33),
    Run("alpha", "2026-07-28", 40),
)


class Outcome(NamedTuple):
    """What became of one run."""

    run: Run
    scenarios: list[Scenario]
    marks: dict[str, Mark]
    seconds: float
    # Set if the run itself is not in order.
    problem: str = ""

    @property
    def is_good(self) -> bool:
        """Whether every scenario did what was expected of it."""
        return not self.problem and not {"FAIL", "STALE"} & set(self.marks.values())


# -- one run ---------------------------------------------------------------------------------


def run_suite(run: Run, url: str, folder: Path, known: dict[str, str], only: str | None) -> Outcome:
    """Run a suite against a server; its output stays in `folder`."""
    began = time.monotonic()
    checks = folder / "checks"
    command = [install.node(), str(install.suite(run.suite)), "server", "--url", url]
    command += ["--scenario", only] if only else ["--suite", "all"]
    command += ["--output-dir", str(checks)]
    if run.revision is not None:
        command += ["--spec-version", run.revision]
    log = folder / "suite.log"
    problem = ""
    with log.open("wb") as output:
        try:
            # Its status is not used: it does not count warnings, and takes no evidence for a pass.
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=RUN_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            problem = f"no end after {RUN_TIMEOUT_S:.0f} s"
    found = read(checks)
    names = list(found) if only else scenarios_of_log(log.read_text(errors="replace"))
    if not problem and only is None and len(names) != run.scenarios:
        problem = f"{len(names)} scenarios, expected {run.scenarios}: see {log.relative_to(ROOT)}"
    scenarios = judge(names, found)
    marks = {each.name: baseline.mark(each, known) for each in scenarios}
    if not problem and only is None and (absent := known.keys() - marks.keys()):
        problem = f"baseline.toml lists scenarios that were not run: {', '.join(sorted(absent))}"
    return Outcome(run, scenarios, marks, time.monotonic() - began, problem)


# -- what is printed and written -------------------------------------------------------------


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the table of all scenarios: one row each, one column for each run."""
    names = list(dict.fromkeys(name for each in outcomes for name in each.marks))
    width = max(map(len, names), default=0)
    titles = [each.run.name for each in outcomes]
    lines = [" ".join([" " * width, *(f"{title:>16}" for title in titles)])]
    for name in names:
        cells = (f"{each.marks.get(name, '-'):>16}" for each in outcomes)
        lines.append(" ".join([f"{name:<{width}}", *cells]))
    return lines


def problems(outcome: Outcome, known: dict[str, str]) -> list[str]:
    """Return the lines that explain what did not pass in a run."""
    lines = [f"FAIL {outcome.run.name}: {outcome.problem}"] if outcome.problem else []
    for each in outcome.scenarios:
        mark = outcome.marks[each.name]
        if mark == "STALE":
            lines.append(f"STALE {outcome.run.name}: {each.name} passes: remove it from the list")
        elif mark == "known":
            lines.append(f"known {outcome.run.name}: {each.name}: {known[each.name]}")
        elif mark == "FAIL":
            lines.append(f"FAIL {outcome.run.name}: {each.name}")
        if mark in ("FAIL", "known"):
            lines += [f"     {text[:300]}" for text in each.problems or ("no check succeeded",)]
    return lines


def score(outcome: Outcome) -> str:
    """Return the line that sums up a run."""
    counted = [each for each in outcome.scenarios if each.verdict != "not run"]
    passed = sum(each.verdict == "pass" for each in counted)
    checks = sum(each.succeeded for each in counted), sum(each.counted for each in counted)
    title = f"{outcome.run.name} ({install.version(outcome.run.suite)})"
    return (
        f"{title:<34} scenarios passed {passed}/{len(counted)}, "
        f"checks passed {checks[0]}/{checks[1]}, {outcome.seconds:.1f} s"
    )


def summary(outcomes: Sequence[Outcome], server: str, problem: str) -> dict[str, Any]:
    """Return the summary as JSON."""
    return {
        "server": server,
        "passed": not problem and all(each.is_good for each in outcomes),
        "problem": problem,
        "runs": [
            {
                "name": each.run.name,
                "version": install.version(each.run.suite),
                "revision": each.run.revision,
                "seconds": round(each.seconds, 1),
                "problem": each.problem,
                "scenarios": [
                    {**scenario._asdict(), "mark": each.marks[scenario.name]}
                    for scenario in each.scenarios
                ],
            }
            for each in outcomes
        ],
    }


# -- all runs --------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites, and print what they found."""
    options = parse(arguments)
    chosen = [run for run in RUNS if options.run in (None, run.name)]
    server = "url" if options.url else "asgi" if options.asgi else "own"
    folder = install.INSTALLED / "results" / server
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    outcomes: list[Outcome] = []
    problem = ""
    began = time.monotonic()
    try:
        known = baseline.load(run.name for run in RUNS)
        install.node()
        for run in chosen:
            install.suite(run.suite)
        port = options.port or free_port()
        started = running(commands(port, asgi=options.asgi), port, folder / "server.log")
        with nullcontext(options.url) if options.url else started as url:
            for run in chosen:
                place = folder / run.name.replace(" ", "-")
                place.mkdir()
                outcomes.append(run_suite(run, url, place, known[run.name], options.only))
                print(score(outcomes[-1]), flush=True)
    except (install.NotInstalled, ValueError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    except ServerFailed as error:
        problem = str(error)
    if outcomes:
        print("", *table(outcomes), "", sep="\n")
    for each in outcomes:
        for line in problems(each, known[each.run.name]):
            print(line)
    if problem:
        print(f"FAIL {problem}")
    report = summary(outcomes, server, problem)
    path = folder / "summary.json"
    path.write_text(json.dumps(report, indent=2) + "\n")
    is_good = bool(report["passed"]) and bool(outcomes)
    verdict = "passed" if is_good else "failed"
    print(f"conformance {verdict}, {time.monotonic() - began:.0f} s; {path.relative_to(ROOT)}")
    return 0 if is_good else 1 if outcomes else 2


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="conformance.run", description=__doc__.partition("\n")[0])
    names = [run.name for run in RUNS]
    parser.add_argument("--asgi", action="store_true", help="serve as an ASGI app under uvicorn")
    parser.add_argument("--run", choices=names, help="one run in place of all")
    parser.add_argument("--only", metavar="SCENARIO", help="one scenario in place of all")
    parser.add_argument("--port", type=int, help="port of the server; a free one by default")
    parser.add_argument("--url", help="a server that runs already, in place of the example")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
