"""`conformance/evidence.py`: which scenarios count as passed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conformance.client import DONE
from conformance.evidence import Verdict, judge, read, scenarios_of_log

from ...cases import for_each


def check(status: str, id: str = "own") -> dict[str, Any]:
    return {"id": id, "status": status, "errorMessage": f"{status} of {id}\nin detail"}


CLIENT = {"initialize", "auth/dpop", "sse-retry", "tools_call"}
COMMON = check("SUCCESS", "wire-schema-valid")


@for_each(
    ("name", "checks", "verdict"),
    [
        ("ping", [check("SUCCESS")], "pass"),
        ("ping", [check("SUCCESS"), check("INFO"), check("SKIPPED"), COMMON], "pass"),
        ("ping", [check("SUCCESS"), check("FAILURE")], "FAIL"),
        ("ping", [check("SUCCESS"), check("WARNING")], "FAIL"),
        ("ping", [check("SUCCESS"), check("FAILURE", "wire-schema-valid")], "FAIL"),
        ("ping", [], "no evidence"),
        ("ping", [check("SKIPPED"), check("INFO"), COMMON], "no evidence"),
        ("ping", None, "FAIL"),
        ("tasks-status-notifications", [check("SKIPPED")], "not run"),
        ("tasks-status-notifications", [check("SUCCESS")], "pass"),
        ("tasks-status-notifications", [check("FAILURE")], "FAIL"),
    ],
)
def test_a_scenario_passes_only_with_evidence_and_without_a_warning(
    name: str, checks: list[dict[str, Any]] | None, verdict: Verdict
) -> None:
    (found,) = judge([name], {} if checks is None else {name: checks})
    assert (found.name, found.verdict) == (name, verdict)


def test_problems_are_one_line_each_and_checks_are_counted() -> None:
    checks = [check("SUCCESS"), check("FAILURE", "a"), check("WARNING", "b"), check("INFO", "c")]
    (found,) = judge(["ping"], {"ping": checks})
    assert found.problems == ("FAILURE a: FAILURE of a", "WARNING b: WARNING of b")
    assert (found.succeeded, found.counted) == (1, 3)


def test_the_scenarios_of_a_log_are_those_of_its_last_summary() -> None:
    log = (
        "✓ early: 1 passed, 0 failed\n=== SUMMARY ===\n"
        "\x1b[32m✓ ping: 2 passed, 0 failed\x1b[0m\n✗ tools-list: 1 passed, 1 failed\n\nTotal: 3\n"
    )
    assert scenarios_of_log(log) == ["ping", "tools-list"]
    assert scenarios_of_log("Error: unknown suite\n") == []


def test_the_newest_checks_of_a_scenario_are_read(tmp_path: Path) -> None:
    for folder, id in (
        ("server-ping-2026-01-02T10-00-00-000Z", "new"),
        ("server-ping-2026-01-01T10-00-00-000Z", "old"),
        ("server-tools-list-2026-01-01T10-00-00-000Z", "other"),
        ("client-ping-2026-01-03T10-00-00-000Z", "of a client"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "checks.json").write_text(json.dumps([check("SUCCESS", id)]))
    found = read(tmp_path)
    assert {name: checks[0]["id"] for name, checks in found.items()} == {
        "ping": "new",
        "tools-list": "other",
    }
    assert read(tmp_path / "absent") == {}


def test_a_client_must_come_to_the_end_of_its_conversation(tmp_path: Path) -> None:
    for name, printed, error in (
        ("initialize", f"retry: once\n{DONE}\n", "a warning\n"),
        ("auth/dpop", "", "first\nRemoteProtocolError: 401\n"),
        ("sse-retry", f"{DONE}\nTraceback\n", ""),
        ("tools_call", None, None),
    ):
        folder = tmp_path / f"{name}-2026-01-01T10-00-00-000Z"
        folder.mkdir(parents=True)
        (folder / "checks.json").write_text(json.dumps([check("SUCCESS")]))
        if printed is not None and error is not None:
            (folder / "stdout.txt").write_text(printed)
            (folder / "stderr.txt").write_text(error)
    found = {each.name: each for each in judge(sorted(CLIENT), read(tmp_path, "client"))}
    assert {name for name, each in found.items() if each.verdict == "pass"} == {"initialize"}
    assert found["auth/dpop"].problems == ("FAILURE client-complete: RemoteProtocolError: 401",)
    silent = ("FAILURE client-complete: the client printed nothing",)
    assert found["sse-retry"].problems == found["tools_call"].problems == silent
    assert read(tmp_path, "server") == {}


def test_the_checks_of_an_authorization_server_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "authorization-server-metadata-2026-01-01T10-00-00-000Z"
    folder.mkdir()
    (folder / "checks.json").write_text(json.dumps([check("SUCCESS")]))
    assert list(read(tmp_path, "authorization")) == ["metadata"]
