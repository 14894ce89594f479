"""Compare a result with the targets, and exit with status 1 if one is missed.

    python -m bench.gate                     # bench/results/latest.json
    python -m bench.gate bench/reference.json

A target of a section that is void or was not run is missed: its value means nothing. Results of
`--quick` are judged too, and named as such.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from bench import targets
from bench.run import LATEST
from bench.section import EXIT_MISSED, EXIT_OK
from bench.targets import Verdict


def judge(result: dict[str, Any]) -> list[Verdict]:
    """Return the verdict on every target, in the order of `targets.json`."""
    sections = {record["section"]: record for record in result["sections"]}
    found = []
    for target in targets.load():
        record = sections.get(target.section)
        if record is None:
            found.append(Verdict(target, None))
        elif record["void"]:
            found.append(Verdict(target, None, "void"))
        else:
            found.append(Verdict(target, targets.measured(record, target)))
    return found


def main() -> int:
    """Print PASS or MISS for each target."""
    parser = argparse.ArgumentParser(description="Compare a result with bench/targets.json.")
    parser.add_argument("result", nargs="?", type=Path, default=LATEST, metavar="RESULT")
    options = parser.parse_args()
    if not options.result.exists():
        sys.exit(f"there is no {options.result}: run `make bench` first, or name a result")
    result = json.loads(options.result.read_text(encoding="utf-8"))
    print(f"{options.result.name}, measured {result['measured']}")
    for record in result["sections"]:
        if record["void"]:
            print(f"void: {record['section']}")
    quick = [record["section"] for record in result["sections"] if record["quick"]]
    if quick:
        print(f"of short rounds: {', '.join(quick)}")
    verdicts = judge(result)
    for verdict in verdicts:
        print(f"  {verdict}")
    missed = sum(not verdict.met for verdict in verdicts)
    print(f"{len(verdicts) - missed} of {len(verdicts)} targets met")
    return EXIT_MISSED if missed else EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
