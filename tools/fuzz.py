"""Run every fuzz target for a bounded time, from its saved corpus, one on each core.

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
from concurrent.futures import ThreadPoolExecutor
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
    names = options.names or list(targets)
    passed = 0
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        runs = pool.map(lambda name: run(name, targets[name], options.seconds), names)
        for name, (found_nothing, lines) in zip(names, runs, strict=True):
            passed += found_nothing
            print(f"{name}: {'nothing found' if found_nothing else 'FAILED'}")
            print(*(f"  {line}" for line in lines), sep="\n", flush=True)
    print(f"{passed} passed, {len(names) - passed} failed")
    return int(passed < len(names))


def run(name: str, target: Path, seconds: int) -> tuple[bool, list[str]]:
    """Run one target; return whether it found nothing, and its last lines."""
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
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=paths)
    lines = done.stderr.splitlines()
    # What a target raised is on the output, the name of the kept input on the other.
    summary = [line for line in lines if line.startswith("Done ")] or (
        done.stdout.splitlines()[-40:] + lines[-4:]
    )
    return done.returncode == 0, summary


if __name__ == "__main__":
    sys.exit(main())
