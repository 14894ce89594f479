"""`conformance/report.py` and `python -m conformance`: one table, one summary, one page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance import __main__ as everything
from conformance import install, report
from conformance.report import PAGE, PARTS, Expected, combined, judged_line, page_text, rows_of

from ...cases import for_each

VERSIONS = {"python": "3.11.7", "node": "22.1.0", "uvicorn": "0.1"}
JUDGED = {
    "messages": 5,
    "conversations": 2,
    "server": 0,
    "server_remarks": 1,
    "suite": 3,
    "suite_unexplained": 0,
    "rows": 4,
}


@pytest.fixture(autouse=True)
def without_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "versions", lambda: VERSIONS)


def run(name: str, *verdicts: str, expected: int = 2, **more: Any) -> dict[str, Any]:
    scenarios = [
        {"name": f"s{number}", "verdict": verdict, "succeeded": 3}
        for number, verdict in enumerate(verdicts)
    ]
    about = {"name": name, "version": "0.1.16", "revision": None, "expected": expected}
    return {**about, "retried": [], "scenarios": scenarios, **more}


def part(*runs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"passed": True, "problem": "", "runs": list(runs), **more}


GOOD = run("stable", "pass", "not run", "pass", retried=["s0"])
EXPECTED = [Expected("own", "stable", 2)]


def test_a_row_counts_what_became_of_the_scenarios_of_a_run() -> None:
    (row,) = rows_of("own", part(run("stable", "pass", "FAIL", "no evidence", "not run")))
    assert (row.expected, row.passed, row.failed, row.skipped) == (2, 1, 2, 1)
    (row,) = rows_of("own", part(GOOD))
    assert (row.retried, row.checks, row.revision) == (1, 9, "of each scenario")


def test_the_table_has_a_line_for_each_run() -> None:
    found = combined({"own": part(GOOD), "client": part(run("client stable", "pass"))}, [])
    lines = report.table([report.Row(**row) for row in found["runs"]])
    assert lines[0].split() == list(report.TITLES)
    assert lines[1].split()[-6:] == ["2", "2", "0", "1", "1", "9"]
    assert lines[2].startswith("client       client stable  0.1.16  of each scenario")
    assert len({len(line) for line in lines}) == 1


@for_each(
    ("summary", "problem"),
    [
        (part(GOOD), None),
        (part(run("stable", "pass")), "stable passed 1 of 2 scenarios"),
        (part(run("stable", "pass", "pass", "pass")), "stable passed 3 of 2 scenarios"),
        (part(run("stable", "pass", "pass", "FAIL")), "stable passed 2 of 2 scenarios, 1 failed"),
        (part(run("stable", "pass", "pass", expected=3)), "stable expected 3 scenarios, not 2"),
        (part(), "stable was not run"),
        (part(GOOD, run("more", "pass")), "more was not expected"),
        (part(GOOD) | {"passed": False}, "failed, see above"),
        (part(GOOD) | {"passed": False, "problem": "it ended"}, "it ended"),
    ],
)
def test_another_number_of_scenarios_fails(summary: dict[str, Any], problem: str | None) -> None:
    found = combined({"own": summary}, EXPECTED)
    expected = [] if problem is None else [f"HTTP server: {problem}"]
    assert (found["problems"], found["passed"]) == (expected, problem is None)


def test_a_summary_has_versions_and_what_was_judged() -> None:
    found = combined({"own": part(GOOD, judged=JUDGED), "client": part(judged=None)}, EXPECTED)
    assert found["versions"] == VERSIONS
    assert found["judged"] == {"own": JUDGED}
    line = judged_line("own", JUDGED)
    assert line == (
        "HTTP server, 5 messages in 2 conversations judged: 0 findings and 1 explained remarks "
        "on our side, 3 explained findings on that of the suites"
    )
    assert ", 7 without a row on" in judged_line("own", JUDGED | {"suite_unexplained": 7})


# -- all parts -------------------------------------------------------------------------------

WRITES = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1]) / sys.argv[2]
folder.mkdir(parents=True)
(folder / "summary.json").write_text(json.dumps(json.loads(sys.argv[3])))
print("ran", sys.argv[2])
"""


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the results, into which each part writes."""
    results = tmp_path / "results"
    monkeypatch.setattr(everything, "RESULTS", results)
    monkeypatch.setattr(everything, "SUMMARY", results / "summary.json")
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install, "node", lambda: "node")
    monkeypatch.setattr(install, "suite", lambda name: Path(name))
    stages = tuple(
        {
            name: (
                "-c",
                WRITES,
                str(results),
                name,
                json.dumps(part(run(name, "pass", expected=1))),
            )
            for name in stage
        }
        for stage in everything.STAGES
    )
    monkeypatch.setattr(everything, "STAGES", stages)
    monkeypatch.setattr(everything, "expected", lambda: [Expected(name, name, 1) for name in PARTS])
    return results


def test_all_parts_are_run_and_summed_up(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert everything.main([]) == 0
    found = json.loads((results / "summary.json").read_text())
    assert [row["part"] for row in found["runs"]] == list(PARTS)
    printed = capfd.readouterr().out
    assert [f"ran {name}" in printed for name in PARTS] == [True] * len(PARTS)
    assert printed.splitlines()[-1].startswith("conformance passed, ")


def test_a_part_that_writes_nothing_fails_and_the_table_is_printed(
    results: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(everything.STAGES[0], "asgi", ("-c", "import sys; sys.exit(2)"))
    # What an earlier run has written does not count.
    (results / "asgi").mkdir(parents=True)
    (results / "asgi" / "summary.json").write_text(json.dumps(part(run("asgi", "pass"))))
    before = PAGE.read_text(encoding="utf-8")
    assert everything.main(["--write"]) == 1
    printed = capfd.readouterr().out
    assert "FAIL ASGI, uvicorn: it has written no summary" in printed
    assert "FAIL ASGI, uvicorn: asgi was not run" in printed
    assert printed.count("of each scenario") == 3
    assert PAGE.read_text(encoding="utf-8") == before


def test_every_run_is_expected() -> None:
    found = everything.expected()
    assert len(found) == len(set(found)) == 21
    assert [(each.run, each.scenarios) for each in found if each.part == "own"] == [
        ("stable", 32),
        ("alpha", 64),
        ("alpha 2025-03-26", 1),
        ("alpha 2025-06-18", 27),
        ("alpha 2025-11-25", 33),
        ("alpha 2026-07-28", 40),
        ("alpha required 2025-11-25", 33),
        ("alpha required 2026-07-28", 49),
    ]
    own, asgi = ([each[1:] for each in found if each.part == name] for name in ("own", "asgi"))
    assert own == asgi
    assert {name for parts in everything.STAGES for name in parts} == set(PARTS)


# -- the page --------------------------------------------------------------------------------


def test_the_page_shows_every_expected_run_passed_in_full() -> None:
    text = PAGE.read_text(encoding="utf-8")
    written = text.partition(report.BEGIN)[2].partition(report.END)[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in written.splitlines()
        if line.startswith("|")
    ]
    parts = {title: name for name, title in PARTS.items()}
    runs = [row for row in cells if len(row) == 7 and row[0] in parts]
    shown = [(Expected(parts[row[0]], row[1].strip("`"), int(row[4])), int(row[5])) for row in runs]
    assert shown == [(each, each.scenarios) for each in everything.expected()]
    assert {row[2] for row in runs} == {install.version("stable"), install.version("alpha")}
    recorded = {parts[row[0]]: int(row[3]) for row in cells if len(row) == 5 and row[0] in parts}
    assert recorded == {"own": 0, "asgi": 0}


def test_the_page_is_written_between_its_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    monkeypatch.setattr(report, "PAGE", page)
    summary = combined({"own": part(GOOD, judged=JUDGED)}, EXPECTED)
    report.write_page(summary)
    written = page.read_text()
    assert written.startswith(f"before\n{report.BEGIN}\n\n| Tested |")
    assert written.endswith(f"uvicorn 0.1.\n\n{report.END}\nafter\n")
    assert "| HTTP server | `stable` | 0.1.16 | of each scenario | 2 | 2 | 9 |" in written
    assert "| HTTP server | 2 | 5 | 0 | 4 |" in page_text(summary)
