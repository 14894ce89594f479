"""Run the official conformance suites against `examples/everything_server.py`, or our client.

    python -m conformance.run [--asgi] [--run NAME] [--only SCENARIO] [--port PORT] [--url URL]
    python -m conformance.run --client [--run NAME] [--only SCENARIO]

Runs against the example server are recorded, and the recordings judged: see `trace_check.py`.
Exits with 0 if every scenario passes or fails as `baseline.toml` says and every finding of the
judge is explained, with 1 if not, and with 2 if the suites could not be run.
"""

from __future__ import annotations

import argparse
import json
import os
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
from .evidence import Mode, Scenario, judge, read, scenarios_of_log
from .recorder import ScenarioLog, recording
from .server import ServerFailed, commands, free_port, running
from .trace_check import Judged, Row, judge_recording, load, stale, totals

ROOT: Final = Path(__file__).resolve().parent.parent
# What one run of a suite may take, in seconds. It takes 10 s at most on two idle cores.
RUN_TIMEOUT_S: Final = 100.0
# What the suites give a client, in milliseconds. It ends by itself earlier: see `client.py`.
CLIENT_TIMEOUT_MS: Final = 60_000
# Client scenarios run all at once, and some measure times: one that fails has a second try alone.
# More failures than this are not a matter of time.
MAX_RETRIES: Final = 5


class Run(NamedTuple):
    """One run of a suite in one mode, with all its scenarios."""

    suite: str
    # The revision to speak; without it each scenario has its own.
    revision: str | None
    # Scenarios of the pinned version: a filter that selects none is a pass for the suite.
    scenarios: int
    # What is tested.
    mode: Mode = "server"
    # Scenarios that the suite lists and always skips.
    skipped: int = 0
    # The list of the suite with what the revision requires, in place of all of its scenarios.
    is_required: bool = False

    @property
    def name(self) -> str:
        """The name in tables and in `baseline.toml`."""
        client = "client" if self.mode == "client" else ""
        required = "required" if self.is_required else ""
        return " ".join(filter(None, (client, self.suite, required, self.revision)))


RUNS: Final = (
    Run("stable", None, 32),
    Run("alpha", None, 64, skipped=1),
    Run("alpha", "2025-03-26", 1),
    Run("alpha", "2025-06-18", 27),
    Run("alpha", "2025-11-25", 33),
    Run("alpha", "2026-07-28", 40),
    Run("alpha", "2025-11-25", 33, is_required=True),
    Run("alpha", "2026-07-28", 49, skipped=1, is_required=True),
    Run("stable", None, 26, "client"),
    Run("alpha", None, 48, "client"),
    Run("alpha", "2025-11-25", 25, "client", is_required=True),
    Run("alpha", "2026-07-28", 39, "client", is_required=True),
)


class Outcome(NamedTuple):
    """What became of one run."""

    run: Run
    scenarios: list[Scenario]
    marks: dict[str, Mark]
    seconds: float
    # Set if the run itself is not in order.
    problem: str = ""
    # Scenarios that failed beside the others, and what became of them alone.
    retried: tuple[str, ...] = ()
    # What the judge says of the recording, if there is one.
    judged: Judged | None = None

    @property
    def is_good(self) -> bool:
        """Whether every scenario did what was expected, and every finding is explained."""
        is_explained = self.judged is None or not self.judged.unexplained
        has_passed = not {"FAIL", "STALE"} & set(self.marks.values())
        return not self.problem and has_passed and is_explained


# -- one run ---------------------------------------------------------------------------------


def run_suite(run: Run, url: str, folder: Path, known: dict[str, str], only: str | None) -> Outcome:
    """Run a suite against a server or our client; its output stays in `folder`."""
    began = time.monotonic()
    checks = folder / "checks"
    log = folder / "suite.log"
    problem = _start(run, url, checks, log, only)
    found = read(checks, run.mode)
    names = list(found) if only else scenarios_of_log(log.read_text(errors="replace"))
    scenarios = judge(names, found)
    if not problem and only is None:
        problem = _miscount(run, scenarios, log)
    marks = {each.name: baseline.mark(each, known) for each in scenarios}
    retried: list[str] = []
    if run.mode == "client" and not problem and only is None:
        retried = [name for name, mark in marks.items() if mark == "FAIL"][:MAX_RETRIES]
    for number, name in enumerate(retried):
        again = folder / f"again-{number}"
        problem = problem or _start(run, url, again, folder / f"again-{number}.log", name)
        found[name] = read(again, run.mode).get(name, [])
    if retried:
        scenarios = judge(names, found)
        marks = {each.name: baseline.mark(each, known) for each in scenarios}
    if not problem and only is None and (absent := known.keys() - marks.keys()):
        problem = f"baseline.toml lists scenarios that were not run: {', '.join(sorted(absent))}"
    return Outcome(run, scenarios, marks, time.monotonic() - began, problem, tuple(retried))


def _miscount(run: Run, scenarios: Sequence[Scenario], log: Path) -> str:
    """Return what is wrong with the number of scenarios, or nothing."""
    skipped = sum(each.verdict == "not run" for each in scenarios)
    if (len(scenarios) - skipped, skipped) == (run.scenarios, run.skipped):
        return ""
    expected = f"expected {run.scenarios} and {run.skipped} skipped"
    counted = len(scenarios) - skipped
    return f"{counted} scenarios and {skipped} skipped, {expected}: see {log.relative_to(ROOT)}"


def run_recorded(
    run: Run,
    port: int,
    folder: Path,
    known: dict[str, str],
    only: str | None,
    rows: Sequence[Row],
) -> Outcome:
    """Run a suite against a server through a relay that records, and judge the recording."""
    path = folder / "trace.jsonl"
    scenario = ScenarioLog(folder / "suite.log", only)
    with recording(port, path, scenario) as url:
        outcome = run_suite(run, f"{url}/mcp", folder, known, only)
    with path.open("rb") as lines:
        judged = judge_recording(lines, rows)
    if not outcome.problem and not judged.messages:
        outcome = outcome._replace(problem="nothing was recorded")
    return outcome._replace(judged=judged)


def _start(run: Run, url: str, checks: Path, log: Path, only: str | None) -> str:
    """Run a suite, or one scenario of it; return what is wrong with the run, or nothing."""
    command = [install.node(), str(install.suite(run.suite)), run.mode]
    if run.mode == "client":
        command += ["--command", client_command(), "--timeout", str(CLIENT_TIMEOUT_MS)]
    else:
        command += ["--url", url]
    command += ["--output-dir", str(checks), *_selection(run, only)]
    with log.open("wb") as output:
        try:
            # Its status is not used: it does not count warnings, and takes no evidence for a pass.
            subprocess.run(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=RUN_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            return f"no end after {RUN_TIMEOUT_S:.0f} s"
    return ""


def _selection(run: Run, only: str | None) -> list[str]:
    """Return the options that choose scenarios and the revision."""
    if run.is_required and only is None and run.revision is not None:
        return ["--requirements", run.revision]
    chosen = ["--scenario", only] if only else ["--suite", "all"]
    return chosen if run.revision is None else [*chosen, "--spec-version", run.revision]


def client_command() -> str:
    """Return the command of the client, relative to the root of the repository.

    The suites split it at blanks, so a path with a blank would not do.
    """
    return f"{os.path.relpath(sys.executable, ROOT)} -m conformance.client"


# -- what is printed and written -------------------------------------------------------------


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the table of all scenarios: one row each, one column for each run."""
    names = list(dict.fromkeys(name for each in outcomes for name in each.marks))
    width = max(map(len, names), default=0)
    titles = [each.run.name for each in outcomes]
    lines = ["  ".join([" " * width, *titles])]
    for name in names:
        cells = (f"{each.marks.get(name, '-'):>{len(each.run.name)}}" for each in outcomes)
        lines.append("  ".join([f"{name:<{width}}", *cells]))
    return lines


def problems(outcome: Outcome, known: dict[str, str]) -> list[str]:
    """Return the lines that explain what did not pass in a run."""
    lines = [f"FAIL {outcome.run.name}: {outcome.problem}"] if outcome.problem else []
    for name in outcome.retried:
        lines.append(f"retried {outcome.run.name}: {name}, alone: {outcome.marks[name]}")
    for each in outcome.scenarios:
        mark = outcome.marks[each.name]
        if mark == "STALE":
            lines.append(f"STALE {outcome.run.name}: {each.name} passes: remove it from the list")
        elif mark == "FAIL":
            lines.append(f"FAIL {outcome.run.name}: {each.name}")
            lines += [f"     {text[:300]}" for text in each.problems or ("no check succeeded",)]
    if outcome.judged is not None:
        found = outcome.judged.lines()
        lines += [f"FAIL {outcome.run.name}: unexplained: {text[:400]}" for text in found]
    # Their checks are in the summary.
    listed = [name for name, mark in outcome.marks.items() if mark == "known"]
    for reason in dict.fromkeys(known[name] for name in listed):
        names = ", ".join(name for name in listed if known[name] == reason)
        lines.append(f"known {outcome.run.name}: {names}: {reason}")
    return lines


def score(outcome: Outcome) -> str:
    """Return the line that sums up a run."""
    counted = [each for each in outcome.scenarios if each.verdict != "not run"]
    passed = sum(each.verdict == "pass" for each in counted)
    checks = sum(each.succeeded for each in counted), sum(each.counted for each in counted)
    title = f"{outcome.run.name} ({install.version(outcome.run.suite)})"
    return (
        f"{title:<50} scenarios passed {passed}/{len(counted)}, "
        f"checks passed {checks[0]}/{checks[1]}, {outcome.seconds:.1f} s"
    )


def summary(outcomes: Sequence[Outcome], server: str, problem: str) -> dict[str, Any]:
    """Return the summary as JSON."""
    judged = [each.judged for each in outcomes if each.judged is not None]
    return {
        "server": server,
        "passed": not problem and all(each.is_good for each in outcomes),
        "problem": problem,
        "judged": totals(judged) if judged else None,
        "runs": [
            {
                "name": each.run.name,
                "version": install.version(each.run.suite),
                "revision": each.run.revision,
                "expected": each.run.scenarios,
                "seconds": round(each.seconds, 1),
                "problem": each.problem,
                "retried": each.retried,
                "scenarios": [
                    {**scenario._asdict(), "mark": each.marks[scenario.name]}
                    for scenario in each.scenarios
                ],
            }
            for each in outcomes
        ],
    }


# -- all runs --------------------------------------------------------------------------------


def unused_rows(rows: Sequence[Row], outcomes: Sequence[Outcome]) -> str:
    """Return what is wrong with rows that never apply in all runs, or nothing."""
    unused = stale(rows, [each.judged for each in outcomes if each.judged is not None])
    names = ", ".join(f"{row.rule} of {row.scenario}" for row in unused)
    return f"explained.toml has rows that explain nothing: {names}" if names else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites, and print what they found."""
    options = parse(arguments)
    mode: Mode = "client" if options.client else "server"
    chosen = [run for run in RUNS if run.mode == mode and options.run in (None, run.name)]
    server = "url" if options.url else "asgi" if options.asgi else "own"
    server = "client" if options.client else server
    folder = install.INSTALLED / "results" / server
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    outcomes: list[Outcome] = []
    problem = ""
    began = time.monotonic()
    try:
        known = baseline.load(run.name for run in RUNS)
        rows = load()
        install.node()
        for run in chosen:
            install.suite(run.suite)
        port = options.port or free_port()
        started = running(commands(port, asgi=options.asgi), port, folder / "server.log")
        is_given = options.client or options.url is not None
        with nullcontext(options.url or "") if is_given else started as url:
            for run in chosen:
                place = folder / run.name.replace(" ", "-")
                place.mkdir()
                if is_given:
                    outcome = run_suite(run, url, place, known[run.name], options.only)
                else:
                    outcome = run_recorded(run, port, place, known[run.name], options.only, rows)
                outcomes.append(outcome)
                print(score(outcome), flush=True)
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
    if not is_given and options.run is None and options.only is None:
        problem = problem or unused_rows(rows, outcomes)
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
    parser.add_argument("--client", action="store_true", help="test our client, not the server")
    parser.add_argument("--asgi", action="store_true", help="serve as an ASGI app under uvicorn")
    parser.add_argument("--run", choices=names, help="one run in place of all")
    parser.add_argument("--only", metavar="SCENARIO", help="one scenario in place of all")
    parser.add_argument("--port", type=int, help="port of the server; a free one by default")
    parser.add_argument("--url", help="a server that runs already, in place of the example")
    options = parser.parse_args(arguments)
    if options.client and (options.asgi or options.url or options.port):
        parser.error("--client has no server, so no --asgi, --url or --port")
    if options.run and options.client != options.run.startswith("client "):
        missing = "is not about the client" if options.client else "needs --client"
        parser.error(f"--run {options.run!r} {missing}")
    return options


if __name__ == "__main__":
    sys.exit(main())
