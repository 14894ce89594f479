"""What a suite has written about each scenario, and the verdict on it.

The suites call a scenario passed unless a check failed, also if no check was made. The rules here
are stricter: a scenario passes if no check failed, none has a warning, and at least one check of
its own succeeded. `wire-schema-valid`, which the newer suite adds to every scenario, is not one.
A client must have come to the end of its conversation, which the suites do not ask.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from .client import DONE

__all__ = ["NEVER_RUN", "Mode", "Scenario", "Verdict", "judge", "read", "scenarios_of_log"]

Mode = Literal["server", "client", "authorization"]
Verdict = Literal["pass", "FAIL", "no evidence", "not run"]

# Skipped by the suite whatever a server does: not counted.
NEVER_RUN: Final = frozenset(["tasks-status-notifications"])
# Of every message of a scenario, not of what the scenario is about.
COMMON_CHECK: Final = "wire-schema-valid"

_COLOURS: Final = re.compile("\x1b" + r"\[[0-9;]*m")
_SUMMARY_LINE: Final = re.compile(r"^[✓✗] (\S+): \d+ passed", re.MULTILINE)
# The folder of a scenario. The name of one has a slash: auth/dpop.
_FOLDERS: Final[dict[Mode, re.Pattern[str]]] = {
    "server": re.compile(r"^server-(.*)-(\d{4}-\d\d-\d\dT[\d-]+Z)$"),
    "client": re.compile(r"^(.*)-(\d{4}-\d\d-\d\dT[\d-]+Z)$"),
    "authorization": re.compile(r"^authorization-server-(.*)-(\d{4}-\d\d-\d\dT[\d-]+Z)$"),
}
_FAILED: Final = ("FAILURE", "WARNING")


class Scenario(NamedTuple):
    """The verdict on one scenario."""

    name: str
    verdict: Verdict
    # Checks that succeeded, and all that count: succeeded, failed, or with a warning.
    succeeded: int
    counted: int
    # One line for each check that failed or has a warning.
    problems: tuple[str, ...]


def scenarios_of_log(log: str) -> list[str]:
    """Return the scenarios that a suite lists in its summary; none without a summary."""
    summary = _COLOURS.sub("", log).rpartition("SUMMARY ===")[2]
    return _SUMMARY_LINE.findall(summary)


def read(folder: Path, mode: Mode = "server") -> dict[str, list[dict[str, Any]]]:
    """Return the checks of each scenario in an output folder, the newest of each."""
    found: dict[str, tuple[str, Path]] = {}
    for path in folder.rglob("checks.json"):
        if match := _FOLDERS[mode].match(path.parent.relative_to(folder).as_posix()):
            name, stamp = match.groups()
            found[name] = max(found.get(name, ("", path)), (stamp, path))
    checks = {name: json.loads(path.read_bytes()) for name, (_, path) in found.items()}
    if mode == "client":
        for name, (_, path) in found.items():
            checks[name] += _completion(path.parent)
    return checks


def _completion(folder: Path) -> list[dict[str, Any]]:
    """Return a failed check if the client did not come to the end of its conversation."""
    printed = [_lines(folder / f"{name}.txt") for name in ("stdout", "stderr")]
    if printed[0][-1:] == [DONE]:
        return []
    last = (printed[1] or ["the client printed nothing"])[-1]
    return [{"id": "client-complete", "status": "FAILURE", "errorMessage": last}]


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.exists() else []


def judge(names: Iterable[str], checks: dict[str, list[dict[str, Any]]]) -> list[Scenario]:
    """Return the verdict on each of the scenarios."""
    return [_judged(name, checks.get(name)) for name in names]


def _judged(name: str, checks: Sequence[dict[str, Any]] | None) -> Scenario:
    if checks is None:
        return Scenario(name, "FAIL", 0, 0, ("the suite wrote no checks",))
    succeeded = [check for check in checks if check["status"] == "SUCCESS"]
    failed = [check for check in checks if check["status"] in _FAILED]
    has_evidence = any(check["id"] != COMMON_CHECK for check in succeeded)
    verdict: Verdict = "pass"
    if failed:
        verdict = "FAIL"
    elif not has_evidence:
        verdict = "not run" if name in NEVER_RUN else "no evidence"
    problems = tuple(map(_problem, failed))
    return Scenario(name, verdict, len(succeeded), len(succeeded) + len(failed), problems)


def _problem(check: dict[str, Any]) -> str:
    text = str(check.get("errorMessage") or check.get("description") or "").strip()
    return f"{check['status']} {check['id']}: {text.partition(chr(10))[0]}"
