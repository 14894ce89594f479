"""`conformance/run.py`: what is counted, and what fails a run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance import baseline, install, run
from conformance.baseline import mark
from conformance.client import CONVERSATIONS, DONE
from conformance.evidence import Mode, Scenario
from conformance.run import (
    RUNS,
    Outcome,
    Run,
    client_command,
    parse,
    problems,
    run_suite,
    score,
    summary,
    table,
    unused_rows,
)
from conformance.server import free_port
from conformance.trace_check import Judged, Observed, Row
from trunkline.judge import Finding

from ...cases import for_each

# Stands in for Node and a suite: writes what a suite writes. A status in parentheses is that of a
# scenario beside others, and a success alone.
SUITE = f"""
import json, pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--output-dir") + 1])
prefix = "server-" if "server" in sys.argv else ""
for name, status in json.loads(pathlib.Path(sys.argv[1]).read_text()).items():
    if "--scenario" in sys.argv and name not in sys.argv:
        continue
    if status[0] == "(":
        status = "SUCCESS" if "--scenario" in sys.argv else status.strip("()")
    folder = out / f"{{prefix}}{{name}}-2026-01-01T00-00-00-000Z"
    folder.mkdir(parents=True)
    (folder / "checks.json").write_text(json.dumps([{{"id": "own", "status": status}}]))
    (folder / "stdout.txt").write_text("{DONE}\\n")
print("=== SUMMARY ===")
for name in json.loads(pathlib.Path(sys.argv[1]).read_text()):
    print(f"✓ {{name}}: 1 passed, 0 failed")
print(" ".join(sys.argv[2:]), file=sys.stderr)
"""


@pytest.fixture
def outcome_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the outcome of a run whose suite finds the given statuses."""
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(install, "node", lambda: sys.executable)
    script = tmp_path / "suite.py"
    script.write_text(SUITE)
    real = subprocess.run

    def start(command: list[str], **options: Any) -> Any:
        return real([command[0], str(script), *command[1:]], **options)

    monkeypatch.setattr(subprocess, "run", start)

    def outcome(
        statuses: dict[str, str],
        known: dict[str, str],
        expected: int,
        only: str | None = None,
        mode: Mode = "server",
        **more: Any,
    ) -> Outcome:
        found = tmp_path / "found.json"
        found.write_text(json.dumps(statuses))
        monkeypatch.setattr(install, "suite", lambda name: found)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        chosen = Run("alpha", "2026-07-28", expected, mode, **more)
        return run_suite(chosen, "http://127.0.0.1:1/mcp", folder, known, only)

    return outcome


def test_runs_have_names_of_their_own_and_cover_both_suites() -> None:
    names = [each.name for each in RUNS]
    assert len(set(names)) == len(names)
    assert names[:2] == ["stable", "alpha"]
    assert [(each.scenarios, each.skipped) for each in RUNS[:2]] == [(32, 0), (64, 1)]
    of_client = {each.name: each.scenarios for each in RUNS if each.mode == "client"}
    assert of_client == {
        "client stable": 26,
        "client alpha": 48,
        "client alpha required 2025-11-25": 25,
        "client alpha required 2026-07-28": 39,
    }


def test_the_client_passes_everything() -> None:
    known = baseline.load(each.name for each in RUNS)
    assert known["client stable"] == known["client alpha"] == {}
    others = [name for name in CONVERSATIONS if not name.startswith("auth/")]
    assert len(others) == 15


def test_a_client_scenario_that_fails_beside_others_has_one_more_try(outcome_of: Any) -> None:
    found = outcome_of(
        {"sse-retry": "(FAILURE)", "tools_call": "FAILURE", "initialize": "SUCCESS"},
        {},
        3,
        mode="client",
    )
    assert found.marks == {"sse-retry": "ok", "tools_call": "FAIL", "initialize": "ok"}
    assert found.retried == ("sse-retry", "tools_call")
    assert not found.is_good
    assert problems(found, {})[:2] == [
        "retried client alpha 2026-07-28: sse-retry, alone: ok",
        "retried client alpha 2026-07-28: tools_call, alone: FAIL",
    ]
    many = outcome_of(dict.fromkeys("abcdefgh", "(FAILURE)"), {}, 8, mode="client")
    assert len(many.retried) == 5
    assert not many.is_good
    listed = outcome_of({"auth/dpop": "FAILURE"}, {"auth/dpop": "later"}, 1, mode="client")
    assert (listed.retried, listed.is_good) == ((), True)


def test_a_server_scenario_has_one_try(outcome_of: Any) -> None:
    found = outcome_of({"ping": "(FAILURE)"}, {}, 1)
    assert (found.retried, found.marks) == ((), {"ping": "FAIL"})


def test_the_command_of_the_client_has_no_blank_within_a_word() -> None:
    """The suites split it at blanks, without a shell's quotes."""
    assert client_command().split(" ")[1:] == ["-m", "conformance.client"]


@for_each(
    ("arguments", "message"),
    [
        (["--client", "--asgi"], "no --asgi"),
        (["--client", "--url", "http://h/"], "no --asgi"),
        (["--run", "client alpha"], "needs --client"),
        (["--client", "--run", "alpha"], "not about the client"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(arguments)
    assert message in capsys.readouterr().err


def test_a_run_is_good_if_every_scenario_does_what_is_expected(outcome_of: Any) -> None:
    good = outcome_of({"ping": "SUCCESS", "caching": "FAILURE"}, {"caching": "later"}, 2)
    assert good.is_good
    assert good.marks == {"ping": "ok", "caching": "known"}
    assert problems(good, {"caching": "later"})[0] == "known alpha 2026-07-28: caching: later"


def test_a_failure_a_stale_entry_and_a_wrong_count_fail_a_run(outcome_of: Any) -> None:
    failed = outcome_of({"ping": "WARNING"}, {}, 1)
    assert not failed.is_good
    assert problems(failed, {})[0] == "FAIL alpha 2026-07-28: ping"
    stale = outcome_of({"ping": "SUCCESS"}, {"ping": "later"}, 1)
    assert not stale.is_good
    assert "ping passes" in problems(stale, {"ping": "later"})[0]
    few = outcome_of({"ping": "SUCCESS"}, {}, 2)
    assert not few.is_good
    assert "1 scenarios and 0 skipped, expected 2 and 0 skipped" in few.problem
    none = outcome_of({}, {}, 1)
    assert not none.is_good
    absent = outcome_of({"ping": "SUCCESS"}, {"gone": "later"}, 1)
    assert not absent.is_good
    assert "not run: gone" in absent.problem


def test_a_scenario_that_is_skipped_has_to_be_an_expected_one(outcome_of: Any) -> None:
    statuses = {"ping": "SUCCESS", "tasks-status-notifications": "SKIPPED"}
    surprising = outcome_of(statuses, {}, 1)
    assert "1 scenarios and 1 skipped, expected 1 and 0 skipped" in surprising.problem
    assert outcome_of(statuses, {}, 1, skipped=1).is_good
    assert not outcome_of({"ping": "SUCCESS"}, {}, 1, skipped=1).is_good


def test_required_run_passes_requirements_option_to_the_suite(
    outcome_of: Any, tmp_path: Path
) -> None:
    assert outcome_of({"ping": "SUCCESS"}, {}, 1, is_required=True).is_good
    (log,) = tmp_path.glob("*/suite.log")
    assert "--requirements 2026-07-28" in log.read_text()
    assert "--suite" not in log.read_text()
    assert "--spec-version" not in log.read_text()


def test_one_scenario_of_what_a_revision_requires_is_run_in_that_revision(
    outcome_of: Any, tmp_path: Path
) -> None:
    assert outcome_of({"ping": "SUCCESS"}, {}, 9, only="ping", is_required=True).is_good
    (log,) = tmp_path.glob("*/suite.log")
    assert "--scenario ping --spec-version 2026-07-28" in log.read_text()
    assert "--requirements" not in log.read_text()


def test_an_unexplained_finding_fails_a_run(outcome_of: Any) -> None:
    good = outcome_of({"ping": "SUCCESS"}, {}, 1)
    finding = Finding("mcp.id.echoed", "error", "/id", "1", "2", "2025-11-25", 0)
    observed = Observed("suite", "ping", finding)
    judged = Judged(2, 1, [], [observed, observed])
    bad = good._replace(judged=judged)
    assert not bad.is_good
    (line,) = problems(bad, {})
    assert line.startswith("FAIL alpha 2026-07-28: unexplained: 2x suite in ping: error mcp.id.ech")
    assert good._replace(judged=Judged(2, 1, [], [])).is_good
    report = summary([bad], "own", "")
    assert (report["passed"], report["judged"]["suite_unexplained"]) == (False, 2)


def test_a_row_that_explains_nothing_in_all_runs_is_a_problem(outcome_of: Any) -> None:
    row = Row("suite", "mcp.id.echoed", "/id", "ping", "because")
    finding = Finding("mcp.id.echoed", "error", "/id", "1", "2", "2025-11-25", 0)
    observed = Observed("suite", "ping", finding)
    silent = outcome_of({"ping": "SUCCESS"}, {}, 1)._replace(judged=Judged(1, 1, [], []))
    telling = silent._replace(judged=Judged(1, 1, [(observed, row)], []))
    assert unused_rows([row], [silent, telling]) == ""
    assert unused_rows([row], [silent]) == (
        "explained.toml has rows that explain nothing: mcp.id.echoed of ping"
    )


def test_a_run_without_a_recording_fails(
    outcome_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = outcome_of({"ping": "SUCCESS"}, {}, 1)
    monkeypatch.setattr(run, "run_suite", lambda *_: outcome)
    port = free_port()
    found = run.run_recorded(outcome.run, port, tmp_path, {}, None, [])
    assert (found.problem, found.is_good) == ("nothing was recorded", False)


def test_one_scenario_is_run_without_counting_the_others(outcome_of: Any, tmp_path: Path) -> None:
    one = outcome_of({"ping": "SUCCESS"}, {"caching": "later"}, 40, only="ping")
    assert one.is_good
    (log,) = tmp_path.glob("*/suite.log")
    assert "--scenario ping" in log.read_text()
    assert "--spec-version 2026-07-28" in log.read_text()


def test_tables_and_summaries_show_every_scenario_once() -> None:
    first = Scenario("ping", "pass", 2, 2, ())
    second = Scenario("caching", "FAIL", 1, 2, ("FAILURE a: b",))
    never = Scenario("tasks-status-notifications", "not run", 0, 0, ())
    outcomes = [
        Outcome(each, found, {one.name: mark(one, {}) for one in found}, 1.25)
        for each, found in ((RUNS[0], [first]), (RUNS[1], [first, second, never]))
    ]
    rows = [line.split() for line in table(outcomes)]
    assert rows == [
        ["stable", "alpha"],
        ["ping", "ok", "ok"],
        ["caching", "-", "FAIL"],
        ["tasks-status-notifications", "-", "not", "run"],
    ]
    assert "scenarios passed 1/2, checks passed 3/4" in score(outcomes[1])
    report = summary(outcomes, "own", "")
    assert report["passed"] is False
    assert report["runs"][1]["scenarios"][1]["problems"] == ("FAILURE a: b",)
    assert report["judged"] is None
    assert summary(outcomes[:1], "own", "")["passed"] is True
    assert summary(outcomes[:1], "own", "the server ended")["passed"] is False
