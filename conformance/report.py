"""The summary of all parts of `make conformance`: one table, and one JSON file.

A part is a subject under test: our HTTP server, the same server as an ASGI application, our client,
and the authorization server for tests. Each writes `summary.json` into its folder of the results.
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, NamedTuple

from . import install

__all__ = [
    "PAGE",
    "PARTS",
    "Expected",
    "Row",
    "combined",
    "judged_line",
    "page_text",
    "rows_of",
    "table",
    "versions",
    "write_page",
]

PAGE: Final = install.ROOT / "docs" / "conformance.md"
BEGIN: Final = "<!-- written by `make conformance WRITE=1`, from here -->"
END: Final = "<!-- to here -->"
# The folder of each part under `.conformance/results`, and what it tests.
PARTS: Final = {
    "own": "HTTP server",
    "asgi": "ASGI, uvicorn",
    "client": "client",
    "authorization": "authorization server",
}


class Expected(NamedTuple):
    """A run that has to be there, and how many scenarios have to pass in it."""

    part: str
    run: str
    scenarios: int


class Row(NamedTuple):
    """One run of a suite."""

    part: str
    run: str
    suite: str
    revision: str
    expected: int
    passed: int
    failed: int
    skipped: int
    retried: int
    checks: int


TITLES: Final = (
    "tested", "run", "suite", "revision", "expected",
    "passed", "failed", "skipped", "retried", "checks",
)  # fmt: skip
# The columns of `TITLES` that are numbers.
FIRST_NUMBER: Final = 4


def rows_of(part: str, summary: Mapping[str, Any]) -> list[Row]:
    """Return the rows of the summary of a part."""
    return [_row(part, run) for run in summary["runs"]]


def _row(part: str, run: Mapping[str, Any]) -> Row:
    verdicts = [each["verdict"] for each in run["scenarios"]]
    passed, skipped = verdicts.count("pass"), verdicts.count("not run")
    return Row(
        part=part,
        run=run["name"],
        suite=run["version"],
        revision=run["revision"] or "of each scenario",
        expected=run["expected"],
        passed=passed,
        failed=len(verdicts) - passed - skipped,
        skipped=skipped,
        retried=len(run["retried"]),
        checks=sum(each["succeeded"] for each in run["scenarios"]),
    )


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the table of all runs."""
    cells = [TITLES, *(tuple(map(str, (PARTS[row.part], *row[1:]))) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(TITLES))]
    return [
        "  ".join(
            cell.rjust(width) if column >= FIRST_NUMBER else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]


def combined(
    parts: Mapping[str, Mapping[str, Any]], expected: Sequence[Expected]
) -> dict[str, Any]:
    """Return the summary of all parts as JSON.

    Its `problems` are not empty if a part failed, a run is missing or not expected, or another
    number of scenarios has passed.
    """
    rows = [row for part, summary in parts.items() for row in rows_of(part, summary)]
    found = {(row.part, row.run): row for row in rows}
    problems = [
        f"{PARTS[part]}: {summary['problem'] or 'failed, see above'}"
        for part, summary in parts.items()
        if not summary["passed"]
    ]
    for part, run, scenarios in expected:
        row = found.pop((part, run), None)
        if row is None:
            problems.append(f"{PARTS[part]}: {run} was not run")
        else:
            problems += (f"{PARTS[part]}: {run} {text}" for text in _miscounts(row, scenarios))
    problems += [f"{PARTS[part]}: {run} was not expected" for part, run in found]
    return {
        "passed": not problems,
        "problems": problems,
        "versions": versions(),
        "runs": [row._asdict() for row in rows],
        "judged": {
            part: summary["judged"] for part, summary in parts.items() if summary.get("judged")
        },
    }


def _miscounts(row: Row, scenarios: int) -> list[str]:
    if row.expected != scenarios:
        return [f"expected {row.expected} scenarios, not {scenarios}"]
    failed = f", {row.failed} failed" if row.failed else ""
    is_right = row.passed == scenarios and not failed
    return [] if is_right else [f"passed {row.passed} of {scenarios} scenarios{failed}"]


def versions() -> dict[str, str]:
    """Return the versions of what was run."""
    done = subprocess.run([install.node(), "--version"], capture_output=True, text=True, check=True)
    return {
        "trunkline": version("trunkline"),
        "stable": install.version("stable"),
        "alpha": install.version("alpha"),
        "python": platform.python_version(),
        "node": done.stdout.strip().removeprefix("v"),
        "uvicorn": version("uvicorn"),
    }


def judged_line(part: str, judged: Mapping[str, Any]) -> str:
    """Return the line about the recordings of a part."""
    recorded = f"{judged['messages']} messages in {judged['conversations']} conversations"
    ours = f"{judged['server']} findings and {judged['server_remarks']} explained remarks"
    suites = f"{judged['suite']} explained findings"
    if judged["suite_unexplained"]:
        suites += f", {judged['suite_unexplained']} without a row"
    return f"{PARTS[part]}, {recorded} judged: {ours} on our side, {suites} on that of the suites"


# -- the page of the docs --------------------------------------------------------------------


def page_text(summary: Mapping[str, Any]) -> str:
    """Return the tables of `docs/conformance.md`."""
    heads = ("Tested", "Run", "Suite", "Revision", "Scenarios", "Passed", "Checks passed")
    lines = [_line(*heads), _line(*(("---",) * 4 + ("---:",) * 3))]
    for each in summary["runs"]:
        row = Row(**each)
        texts = (PARTS[row.part], f"`{row.run}`", row.suite, row.revision)
        lines.append(_line(*texts, *map(str, (row.expected, row.passed, row.checks))))
    lines += ["", _line("Recorded", "Conversations", "Messages", "Findings on our side", "Rows")]
    lines.append(_line("---", *("---:",) * 4))
    for part, judged in summary["judged"].items():
        numbers = (judged[name] for name in ("conversations", "messages", "server", "rows"))
        lines.append(_line(PARTS[part], *map(str, numbers)))
    known = summary["versions"]
    lines += ["", f"Python {known['python']}, Node {known['node']}, uvicorn {known['uvicorn']}."]
    return "\n".join(lines)


def write_page(summary: Mapping[str, Any]) -> None:
    """Replace what is between the marks of the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    text = f"{before}{BEGIN}\n\n{page_text(summary)}\n\n{END}{after}"
    PAGE.write_text(text, encoding="utf-8")


def _line(*values: str) -> str:
    return f"| {' | '.join(values)} |"
