"""Run the soak test: `python -m tools.soak --seconds 60`; `make soak` does.

Each target (pipes, Unix sockets, TCP, TLS, HTTP, HTTPS, ASGI) has processes of its own, and all run
at once. It prints one table, and what was not as it must be; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from msgspec.json import decode

from tools.soak.load import KINDS, SETTLE_S
from tools.soak.verdict import Report, misses, table

# The load before the measured run: at least 6 s, at most 60 s.
_WARM_UP_SHARE = 0.25
# One arena for all threads: with one for each, what a thread leaves in its own hides what leaks.
_ALLOCATOR = {"MALLOC_ARENA_MAX": "1"}


def main() -> int:
    """Run the targets; return 1 if one of them missed something."""
    parser = argparse.ArgumentParser(description="run mixed clients against real servers")
    parser.add_argument("--seconds", type=float, default=60.0, help="default: 60")
    parser.add_argument("--warm-up", type=float, default=None, help="default: a quarter, 6 to 60 s")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument(
        "--settle", type=float, default=SETTLE_S, help="for what is ending to be gone; default: 60"
    )
    parser.add_argument("kinds", nargs="*", help=f"targets: {', '.join(KINDS)}; default: all")
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"no target named {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    warm_up = options.warm_up
    if warm_up is None:
        warm_up = min(60.0, max(6.0, options.seconds * _WARM_UP_SHARE))
    runs = {
        kind: subprocess.Popen(
            [
                *(sys.executable, "-m", "tools.soak.load", kind),
                *("--seconds", str(options.seconds)),
                *("--warm-up", str(warm_up)),
                *("--seed", str(options.seed)),
                *("--settle", str(options.settle)),
            ],
            stdout=subprocess.PIPE,
            env={**os.environ, **_ALLOCATOR},
        )
        for kind in options.kinds or KINDS
    }
    reports, broken = [], []
    for kind, run in runs.items():
        output, _ = run.communicate()
        if run.returncode:
            broken.append(kind)
        else:
            reports.append(decode(output, type=Report))
    print(table(reports))
    for report in reports:
        for miss in misses(report):
            print(f"{report.kind}: {miss}")
    for kind in broken:
        print(f"{kind}: the run itself has failed")
    return int(bool(broken) or any(map(misses, reports)))


if __name__ == "__main__":
    sys.exit(main())
