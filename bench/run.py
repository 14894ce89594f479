"""Run the benchmarks one after another and join their samples into one result.

    python -m bench.run                      # all sections, to bench/results/latest.json
    python -m bench.run --quick              # shorter rounds, for a first look
    python -m bench.run codec stdio          # these sections, beside what the result has of others

Each section is a process of its own, which measures while no other does. Two timings of the same
work that differ by more than 15 % void a section: it is repeated once, and marked void in the
result if that run is void too. Samples of a discarded run stay in a file of their own.

Exit status: 1 if a section failed, 3 if one is void. `bench.gate` judges missed targets.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench import targets
from bench.section import EXIT_OK, EXIT_VOID, RESULTS

LATEST: Final = RESULTS / "latest.json"
SECTIONS: Final = (
    *("codec", "judge", "session", "stdio", "sockets", "websocket", "http_server", "http_client"),
    *("features", "auth", "start", "command", "scale", "fanout", "hostile"),
)
_ROOT: Final = Path(__file__).parent.parent
_ATTEMPTS: Final = 2
# Several times what the longest section takes: a server that does not answer ends the run.
_TIMEOUT_S: Final = 1200


class SectionFailed(Exception):
    """A section ended without a result."""


def run_section(name: str, *, quick: bool) -> dict[str, Any]:
    """Run a section, a second time if its first run is void; return its record."""
    for attempt in range(1, _ATTEMPTS + 1):
        raw = RESULTS / f"{name}.json"
        raw.unlink(missing_ok=True)
        command = [sys.executable, "-m", f"bench.{name}", "--raw", raw.name]
        try:
            ended = subprocess.run(
                [*command, *(["--quick"] if quick else [])],
                cwd=_ROOT,
                check=False,
                timeout=_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            raise SectionFailed(f"it took longer than {_TIMEOUT_S} s") from None
        if ended.returncode not in (EXIT_OK, EXIT_VOID) or not raw.exists():
            raise SectionFailed(f"exit status {ended.returncode}")
        record: dict[str, Any] = json.loads(raw.read_text(encoding="utf-8"))
        record["attempts"] = attempt
        if not record["void"] or attempt == _ATTEMPTS:
            break
        raw.rename(RESULTS / f"{name}-void.json")
        print(f"\n{name}: void, and run once more", flush=True)
    return record


def earlier(path: Path) -> dict[str, dict[str, Any]]:
    """Return the sections that a result has, by name."""
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))["sections"]
    return {record["section"]: record for record in found}


def write(path: Path, sections: dict[str, dict[str, Any]]) -> None:
    """Write a result, with its sections in the usual order."""
    result = {
        "measured": datetime.now(UTC).date().isoformat(),
        "sections": [sections[name] for name in SECTIONS if name in sections],
    }
    path.write_text(json.dumps(result), encoding="utf-8")


def summary(record: dict[str, Any]) -> str:
    """Return one line about a section."""
    verdicts = targets.judge(record)
    met = sum(verdict.met for verdict in verdicts)
    state = "VOID" if record["void"] else f"run {record['attempts']}"
    rows = len(record["cases"]) + len(record["values"])
    name, seconds = record["section"], record["seconds"]
    return (
        f"  {name:<14}{seconds:7.0f} s {state:>7}{rows:>6} rows   {met} of {len(verdicts)} targets"
    )


def main() -> int:
    """Run the sections, write the result and print what each took."""
    parser = argparse.ArgumentParser(description="Run the benchmarks and join their samples.")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"unknown sections: {', '.join(sorted(unknown))}")
    RESULTS.mkdir(exist_ok=True)
    chosen = [name for name in SECTIONS if name in options.sections or not options.sections]
    sections = earlier(LATEST) if options.sections else {}
    failed: dict[str, str] = {}
    began = time.monotonic()
    for name in chosen:
        print(f"\n=== {name}", flush=True)
        sections.pop(name, None)
        try:
            sections[name] = run_section(name, quick=options.quick)
        except SectionFailed as error:
            failed[name] = str(error)
        write(LATEST, sections)
    print(f"\n{time.monotonic() - began:.0f} s in all, samples in {LATEST.relative_to(_ROOT)}")
    for name in chosen:
        print(
            summary(sections[name]) if name in sections else f"  {name:<14}FAILED: {failed[name]}"
        )
    is_void = any(record["void"] for record in sections.values())
    return 1 if failed else EXIT_VOID if is_void else 0


if __name__ == "__main__":
    sys.exit(main())
