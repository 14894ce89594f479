"""The pytest plugin of the runs: which tests to run, which ran, and what each one executed.

It is copied into the interpreter of a slot under the name `mutants_probe` and is steered by
environment variables, which name files:

* `MUTANTS_SELECT`: the ids of the tests to run, as a JSON list; the others are deselected.
* `MUTANTS_RAN`: the id of each test is added to this file when the test begins.
* `MUTANTS_RECORD`: seconds, outcomes and lines of all tests are written here at the end.
* `MUTANTS_SETTINGS`: settings of coverage; without them, lines are not measured.

Each test is a context of its own, named by its number. The number is handed on to child processes
in `MUTANTS_TEST`, so that the lines they write down count for the test as well. The data of this
process stays in memory: tests may fork, and a child that shares a database file breaks it.
"""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

try:
    import resource
except ImportError:  # not on Windows
    MEMORY_LIMIT: int | None = None
else:
    MEMORY_LIMIT = resource.RLIMIT_AS

# A mutant may fill the memory in a loop: it fails here, and the machine lives on.
MAX_MEMORY_BYTES = 6 * 2**30


class Record:
    """What is known of the tests that began, in their order."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self.outcomes: dict[str, set[str]] = {}
        self.measuring: Any = None


RECORD = Record()


def pytest_configure() -> None:
    """Limit the memory of this process and its children, and begin to measure."""
    settings = os.environ.get("MUTANTS_SETTINGS")
    if settings is not None:
        coverage: Any = importlib.import_module("coverage")
        RECORD.measuring = coverage.Coverage(data_file=None, config_file=settings)
        RECORD.measuring.start()
        os.environ["COVERAGE_PROCESS_START"] = settings
    if MEMORY_LIMIT is not None:
        _, hard = resource.getrlimit(MEMORY_LIMIT)
        if hard == resource.RLIM_INFINITY or hard > MAX_MEMORY_BYTES:
            resource.setrlimit(MEMORY_LIMIT, (MAX_MEMORY_BYTES, hard))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that are not chosen."""
    if "MUTANTS_SELECT" in os.environ:
        chosen = set(json.loads(Path(os.environ["MUTANTS_SELECT"]).read_text(encoding="utf-8")))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
        items[:] = [item for item in items if item.nodeid in chosen]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid: str) -> None:
    """Write down that a test begins, and give it its context."""
    number = str(RECORD.numbers.setdefault(nodeid, len(RECORD.numbers)))
    os.environ["MUTANTS_TEST"] = number
    if "MUTANTS_RAN" in os.environ:
        with open(os.environ["MUTANTS_RAN"], "a", encoding="utf-8") as file:
            file.write(json.dumps(nodeid) + "\n")
    if RECORD.measuring is not None:
        RECORD.measuring.switch_context(number)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the seconds and outcomes of the phases of a test."""
    RECORD.seconds[report.nodeid] = RECORD.seconds.get(report.nodeid, 0.0) + report.duration
    RECORD.outcomes.setdefault(report.nodeid, set()).add(report.outcome)


def pytest_sessionfinish() -> None:
    """Write the record."""
    if "MUTANTS_RECORD" in os.environ:
        tests = [
            {
                "id": nodeid,
                "seconds": RECORD.seconds.get(nodeid, 0.0),
                "outcome": outcome_of(RECORD.outcomes.get(nodeid, set())),
            }
            for nodeid in RECORD.numbers
        ]
        document: dict[str, Any] = {"tests": tests, "lines": None}
        if RECORD.measuring is not None:
            RECORD.measuring.stop()
            document["lines"] = hits_of(RECORD.measuring.get_data())
        Path(os.environ["MUTANTS_RECORD"]).write_text(json.dumps(document), encoding="utf-8")


def outcome_of(phases: set[str]) -> str:
    """Return the outcome of a test: a phase that failed or was skipped decides."""
    rest = phases - {"passed"}
    return "failed" if "failed" in rest or not phases else rest.pop() if rest else "passed"


def hits_of(data: Any) -> dict[str, dict[str, str]]:
    """Return, for each file and line, the numbers of the tests as bits, in hexadecimal."""
    return {
        path: {
            str(line): f"{sum(1 << int(context) for context in contexts if context):x}"
            for line, contexts in data.contexts_by_lineno(path).items()
        }
        for path in data.measured_files()
    }
