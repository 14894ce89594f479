"""Run all parts of `make conformance`, and print one table at the end.

    python -m conformance [--write]

The servers are tested side by side, then the client, whose scenarios measure times. Exits with 0 if
every part passed, with every scenario that is expected.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import IO, Any, Final

from . import authorization_server, install, report, run
from .report import Expected

RESULTS: Final = install.INSTALLED / "results"
SUMMARY: Final = RESULTS / "summary.json"
# The parts that run at the same time, each with the arguments of Python.
STAGES: Final[tuple[dict[str, tuple[str, ...]], ...]] = (
    {"own": ("-m", "conformance.run"), "asgi": ("-m", "conformance.run", "--asgi")},
    {"client": ("-m", "conformance.run", "--client")},
    {"authorization": ("-m", "conformance.authorization_server")},
)


def expected() -> list[Expected]:
    """Return every run that has to be in the summary."""
    servers = [
        Expected(part, each.name, each.scenarios)
        for part in ("own", "asgi")
        for each in run.RUNS
        if each.mode == "server"
    ]
    clients = [
        Expected("client", each.name, each.scenarios) for each in run.RUNS if each.mode == "client"
    ]
    scenarios = authorization_server.SCENARIOS
    name = authorization_server.NAME
    return [*servers, *clients, Expected("authorization", name, scenarios)]


def run_stage(parts: dict[str, tuple[str, ...]]) -> None:
    """Run parts side by side; the output of each is printed in one piece, in their order."""
    with ExitStack() as stack:
        began: list[tuple[subprocess.Popen[bytes], IO[bytes] | None]] = []
        for number, options in enumerate(parts.values()):
            # The first writes to the terminal as it runs.
            output = stack.enter_context(tempfile.TemporaryFile()) if number else None
            process = subprocess.Popen(
                [sys.executable, *options],
                cwd=install.ROOT,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
            )
            stack.callback(_end, process)
            began.append((process, output))
        for ended, written in began:
            ended.wait()
            if written is not None:
                written.seek(0)
                print(written.read().decode("utf-8", "replace"), end="", flush=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a part that still runs, as Ctrl-C does, so that it stops its server."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait()


def summary_of(part: str) -> dict[str, Any]:
    """Return the summary that a part has written, or one of a part that has not."""
    path = RESULTS / part / "summary.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found
    return {"passed": False, "problem": "it has written no summary", "runs": []}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts, and print what became of them."""
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the table of the docs, too")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    shutil.rmtree(RESULTS, ignore_errors=True)
    try:
        # Before the parts: two that install at the same time would be in each other's way.
        install.node()
        for name in ("stable", "alpha"):
            install.suite(name)
    except install.NotInstalled as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    for parts in STAGES:
        run_stage(parts)
    summary = report.combined({part: summary_of(part) for part in report.PARTS}, expected())
    RESULTS.mkdir(parents=True, exist_ok=True)
    SUMMARY.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    print("", *report.table([report.Row(**row) for row in summary["runs"]]), "", sep="\n")
    for part, judged in summary["judged"].items():
        print(report.judged_line(part, judged))
    for problem in summary["problems"]:
        print(f"FAIL {problem}")
    if options.write and summary["passed"]:
        report.write_page(summary)
    verdict = "passed" if summary["passed"] else "failed"
    place = SUMMARY.relative_to(install.ROOT)
    print(f"conformance {verdict}, {time.monotonic() - began:.0f} s; {place}")
    return 0 if summary["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
