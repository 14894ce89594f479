"""`.ci/run`: the stages, the table of their times, and the status."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / ".ci" / "run"
# Stands in for make: prints its arguments, and fails for one target.
MAKE = '#!/bin/sh\necho "made $*"\n[ "$1" != "$FAILS" ]\n'
STAGES = ["set-up", "tests", "conformance", "interop", "fuzz and soak", "the rest"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in ((".ci/run", SCRIPT.read_text()), ("bin/make", MAKE)):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(text)
        path.chmod(0o755)
    return tmp_path


def run(folder: Path, fails: str = "") -> tuple[int, list[str], list[str]]:
    """Return the status, what was made, and the table."""
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, str(folder / ".ci" / "run")],
        env={**os.environ, "PATH": path, "FAILS": fails},
        capture_output=True,
        text=True,
        timeout=60,
    )
    made, _, table = done.stdout.partition("\n\n")
    targets = [line.removeprefix("made ") for line in made.splitlines()]
    return done.returncode, targets, table.splitlines()


def test_every_stage_is_made_and_shown_with_its_time(folder: Path) -> None:
    status, targets, table = run(folder)
    assert status == 0
    assert targets[:4] == ["-j2 setup", "test-all", "conformance", "interop"]
    assert {"fuzz FUZZ_SECONDS=20", "soak SOAK_SECONDS=60", "limits"} <= set(targets)
    assert [line[:16].rstrip() for line in table] == [*STAGES, "all"]
    budgets = [int(line.partition(" s of ")[2].split()[0].rstrip(",")) for line in table]
    assert sum(budgets[:-1]) < budgets[-1] == 25 * 60


def test_a_stage_that_fails_is_the_last_and_is_shown(folder: Path) -> None:
    status, targets, table = run(folder, fails="conformance")
    assert status == 1
    assert targets[-1] == "conformance"
    assert [line[:16].rstrip() for line in table] == [*STAGES[:3], "all"]
    assert [line.endswith("failed") for line in table] == [False, False, True, False]


def test_every_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    with_stages = [line for line in SCRIPT.read_text().splitlines() if line.startswith("stage ")]
    assert len(with_stages) == len(STAGES)
    names = " ".join(with_stages).replace('"', " ").split()
    known = {line.partition(":")[0] for line in makefile.splitlines() if ": " in line}
    for target in ("setup", "test-all", "conformance", "interop", "fuzz", "soak", "limits"):
        assert target in names
        assert target in known
