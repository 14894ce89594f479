"""Run the official conformance suites against `examples/everything_server.py`, or our client.

    python -m conformance.run [--asgi] [--run NAME] [--only SCENARIO] [--port PORT] [--url URL]
    python -m conformance.run --client [--run NAME] [--only SCENARIO]

Exits with 0 if every scenario passes or fails as `baseline.toml` says, with 1 if not, and with 2
if the suites could not be run.
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
from .server import ServerFailed, commands, free_port, running

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

    @property
    def name(self) -> str:
        """The name in tables and in `baseline.toml`."""
        parts = ("client" if self.mode == "client" else "", self.suite, self.revision)
        return " ".join(filter(None, parts))


RUNS: Final = (
    Run("stable", None, 32),
    Run("alpha", None, 65),
    Run("alpha", "2025-03-26", 1),
    Run("alpha", "2025-06-18", 27),
    Run("alpha", "2025-11-25", 33),
    Run("alpha", "2026-07-28", 40),
    Run("stable", None, 26, "client"),
    Run("alpha", None, 48, "client"),
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

    @property
    def is_good(self) -> bool:
        """Whether every scenario did what was expected of it."""
        return not self.problem and not {"FAIL", "STALE"} & set(self.marks.values())


# -- one run ---------------------------------------------------------------------------------


def run_suite(run: Run, url: str, folder: Path, known: dict[str, str], only: str | None) -> Outcome:
    """Run a suite against a server or our client; its output stays in `folder`."""
    began = time.monotonic()
    checks = folder / "checks"
    log = folder / "suite.log"
    problem = _start(run, url, checks, log, only)
    found = read(checks, run.mode)
    names = list(found) if only else scenarios_of_log(log.read_text(errors="replace"))
    if not problem and only is None and len(names) != run.scenarios:
        problem = f"{len(names)} scenarios, expected {run.scenarios}: see {log.relative_to(ROOT)}"
    scenarios = judge(names, found)
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


def _start(run: Run, url: str, checks: Path, log: Path, only: str | None) -> str:
    """Run a suite, or one scenario of it; return what is wrong with the run, or nothing."""
    command = [install.node(), str(install.suite(run.suite)), run.mode]
    if run.mode == "client":
        command += ["--command", client_command(), "--timeout", str(CLIENT_TIMEOUT_MS)]
    else:
        command += ["--url", url]
    command += ["--scenario", only] if only else ["--suite", "all"]
    command += ["--output-dir", str(checks)]
    if run.revision is not None:
        command += ["--spec-version", run.revision]
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
    lines = [" ".join([" " * width, *(f"{title:>16}" for title in titles)])]
    for name in names:
        cells = (f"{each.marks.get(name, '-'):>16}" for each in outcomes)
        lines.append(" ".join([f"{name:<{width}}", *cells]))
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
