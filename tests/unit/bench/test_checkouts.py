"""The comparison of two checkouts: ratios by round, and what it refuses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.checkouts import Measured, Rounds, compare, interleaved, run_once

OWN = Path(__file__).parents[3]


def rounds(**times: list[float]) -> Rounds:
    """Return rounds with these wall times, and twice the CPU time."""
    return Rounds({side: [Measured(each, 2 * each) for each in of] for side, of in times.items()})


def test_a_ratio_is_the_median_of_the_ratios_of_all_rounds() -> None:
    # The third round was slow on both sides.
    found = rounds(base=[10, 10, 100], this=[12, 11, 120], control=[10, 10, 100])
    assert found.ratio("this", "wall") == pytest.approx(1.2)
    assert found.ratio("this", "cpu") == pytest.approx(1.2)
    assert found.ratio("control", "wall") == 1.0
    assert (found.median("base", "wall"), found.median("this", "cpu")) == (10, 24)


def test_every_side_runs_in_every_round() -> None:
    found = interleaved([sys.executable, "-m", "trunkline", "--version"], OWN, 2, "trunkline ")
    assert {side: len(runs) for side, runs in found.runs.items()} == {
        "base": 2,
        "control": 2,
        "this": 2,
    }
    assert all(each.cpu > 0 for runs in found.runs.values() for each in runs)


def test_a_command_that_says_something_else_ends_the_run() -> None:
    with pytest.raises(SystemExit, match="did you mean"):
        run_once([sys.executable, "-m", "trunkline", "lst"], OWN / "src", "usage")


def test_a_folder_that_is_not_a_checkout_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(tmp_path, 1) == 2
    assert "it has no src/trunkline" in capsys.readouterr().err
