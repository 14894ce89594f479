"""Scenarios that are known to fail, with their reasons: `baseline.toml`.

A scenario that fails and is not listed fails the run, and so does one that is listed and passes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

from .evidence import Scenario

__all__ = ["Mark", "load", "mark"]

FILE: Final = Path(__file__).resolve().parent / "baseline.toml"

Mark = Literal["ok", "FAIL", "known", "STALE", "not run"]


def load(runs: Iterable[str], text: str | None = None) -> dict[str, dict[str, str]]:
    """Return scenario -> reason for each run; `text` in place of the file is for tests.

    Raises:
        ValueError: a section names no run, or an entry has no reason.
    """
    read = tomllib.loads(FILE.read_text() if text is None else text)
    known: dict[str, dict[str, str]] = {run: read.pop(run, {}) for run in runs}
    if read:
        raise ValueError(f"baseline.toml: no run is called {', '.join(map(repr, read))}")
    for run, rows in known.items():
        for scenario, reason in rows.items():
            if not isinstance(reason, str) or not reason.strip():
                raise ValueError(f"baseline.toml: {run}: {scenario} has no reason")
    return known


def mark(scenario: Scenario, known: Mapping[str, str]) -> Mark:
    """Return what a verdict means beside the list of known failures."""
    if scenario.verdict == "not run":
        return "not run"
    if scenario.verdict == "pass":
        return "STALE" if scenario.name in known else "ok"
    return "known" if scenario.name in known else "FAIL"
