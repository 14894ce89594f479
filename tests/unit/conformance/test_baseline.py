"""`conformance/baseline.py`: known failures, and entries that are out of date."""

from __future__ import annotations

import pytest

from conformance.baseline import Mark, load, mark
from conformance.evidence import Scenario, Verdict
from conformance.run import RUNS

from ...cases import for_each

KNOWN = {"listed": "a reason"}


@for_each(
    ("name", "verdict", "expected"),
    [
        ("other", "pass", "ok"),
        ("other", "FAIL", "FAIL"),
        ("other", "no evidence", "FAIL"),
        ("other", "not run", "not run"),
        ("listed", "pass", "STALE"),
        ("listed", "FAIL", "known"),
        ("listed", "no evidence", "known"),
    ],
)
def test_a_listed_scenario_must_fail_and_any_other_must_pass(
    name: str, verdict: Verdict, expected: Mark
) -> None:
    assert mark(Scenario(name, verdict, 0, 0, ()), KNOWN) == expected


def test_the_file_names_runs_and_reasons() -> None:
    names = [run.name for run in RUNS]
    assert load(names).keys() == set(names)
    assert load(["a", "b c"], '["b c"]\nping = "why"\n') == {"a": {}, "b c": {"ping": "why"}}


@for_each(
    ("text", "message"),
    [
        ('[c]\nping = "why"\n', "no run is called 'c'"),
        ('[a]\nping = " "\n', "a: ping has no reason"),
        ("[a]\nping = true\n", "a: ping has no reason"),
    ],
)
def test_a_wrong_section_or_a_missing_reason_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(["a", "b"], text)
