"""Run every fuzz target for a bounded time, from its saved corpus.

    python tools/fuzz.py --seconds 60 [NAME ...]

A target is a file `tests/fuzz/fuzz_NAME.py`. What it finds is written beside
this run, not into the saved corpus; an input that breaks the invariant is kept
as `crash-*` in the working folder and named in the output.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "tests" / "fuzz"
# A single input that takes longer than this is a finding too.
SLOWEST_SECONDS = 10


def main() -> int:
    """Run the targets; return 1 if one of them found something."""
    parser = argparse.ArgumentParser(description="run the fuzz targets for a bounded time")
    parser.add_argument("--seconds", type=int, default=60, help="per target (default: 60)")
    parser.add_argument("names", nargs="*", help="targets to run (default: all)")
    options = parser.parse_args()
    targets = {path.stem.removeprefix("fuzz_"): path for path in sorted(FUZZ.glob("fuzz_*.py"))}
    if unknown := set(options.names) - set(targets):
        parser.error(
            f"no target named {', '.join(sorted(unknown))}; there are {', '.join(targets)}"
        )
    failed = [
        name
        for name in options.names or targets
        if not survives(name, targets[name], options.seconds)
    ]
    print(f"{len(options.names or targets) - len(failed)} passed, {len(failed)} failed")
    return int(bool(failed))


def survives(name: str, target: Path, seconds: int) -> bool:
    """Run one target; print its last lines; say whether it found nothing."""
    saved = FUZZ / "corpus" / name
    with tempfile.TemporaryDirectory() as found:
        command = [sys.executable, str(target), found]
        command += [str(saved)] if saved.is_dir() else []
        command += [
            f"-max_total_time={seconds}",
            f"-timeout={SLOWEST_SECONDS}",
            "-rss_limit_mb=2048",
        ]
        # Targets import their oracles from beside them.
        paths = {**os.environ, "PYTHONPATH": str(ROOT)}
        run = subprocess.run(command, capture_output=True, text=True, check=False, env=paths)
    lines = (run.stdout + run.stderr).splitlines()
    summary = [line for line in lines if line.startswith("Done ")] or lines[-25:]
    print(f"{name}: {'nothing found' if run.returncode == 0 else 'FAILED'}")
    for line in summary:
        print(f"  {line}")
    return run.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
