"""The command line of two checkouts side by side, in interleaved rounds.

    python -m bench.command --against PATH

PATH is another checkout of this repository, such as a worktree of the commit before a change.
Every round runs each command three times, in an order that rotates: with the library of PATH,
with that of PATH again, and with the library of this checkout. The first two are the control: how
far their ratio is from 1 is what the machine adds by itself. A ratio is the median of the ratios
of all rounds, so that a slow minute affects both sides alike.

Both sides run on this interpreter and its packages, and modules are compiled before the first
round. Each output is checked.
"""

from __future__ import annotations

import compileall
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import harness
from bench.servers import driver

_OWN: Final = Path(__file__).parents[1]
_SIDES: Final = ("base", "control", "this")
# Rounds that are not counted: the first reads files from the disk.
_WARM_UP_ROUNDS: Final = 2
_TIMEOUT_S: Final = 60


class Measured(NamedTuple):
    """One run of a command, in milliseconds."""

    wall: float
    # Of the command and of the children that it waited for.
    cpu: float


class Rounds(NamedTuple):
    """The runs of one command: for each side those of every round."""

    runs: Mapping[str, list[Measured]]

    def median(self, side: str, clock: str) -> float:
        """Return the median time of a side, in milliseconds."""
        return statistics.median(getattr(each, clock) for each in self.runs[side])

    def ratio(self, side: str, clock: str) -> float:
        """Return the median of the ratios of a side to the base, round by round."""
        pairs = zip(self.runs[side], self.runs["base"], strict=True)
        return statistics.median(getattr(a, clock) / getattr(b, clock) for a, b in pairs)


def run_once(command: Sequence[str], source: Path, wanted: str) -> Measured:
    """Run a command with the library in `source`; `wanted` is in its output."""
    environment = {**os.environ, "PYTHONPATH": str(source), "NO_COLOR": "1", "COLUMNS": "80"}
    before, began = _children_cpu_s(), time.perf_counter()
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    wall, used = time.perf_counter() - began, _children_cpu_s() - before
    if wanted not in done.stdout:
        raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return Measured(wall * 1000, used * 1000)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def interleaved(command: Sequence[str], base: Path, rounds: int, wanted: str) -> Rounds:
    """Run a command with both libraries, in turns."""
    sources = {"base": base / "src", "control": base / "src", "this": _OWN / "src"}
    runs: dict[str, list[Measured]] = {side: [] for side in _SIDES}
    for number in range(rounds + _WARM_UP_ROUNDS):
        harness.show_progress(f"round {number + 1} of {rounds + _WARM_UP_ROUNDS}")
        first = number % len(_SIDES)
        for side in (*_SIDES[first:], *_SIDES[:first]):
            measured = run_once(command, sources[side], wanted)
            if number >= _WARM_UP_ROUNDS:
                runs[side].append(measured)
    return Rounds(runs)


def compare(base: Path, rounds: int) -> int:
    """Print how long each command takes in both checkouts; return the exit code."""
    if not (base / "src" / "trunkline").is_dir():
        print(f"{base} is not a checkout: it has no src/trunkline", file=sys.stderr)
        return 2
    harness.print_heading(harness.machine(("msgspec",)))
    for checkout in (base, _OWN):
        # Whatever PYTHONDONTWRITEBYTECODE says: a side that compiles in each round is slow.
        compileall.compile_dir(checkout / "src", quiet=1, workers=1)
    command = [sys.executable, "-m", "trunkline"]
    started = ["call", "echo", "text=hi", "--", *driver.command("ours", "echo")]
    with tempfile.TemporaryDirectory() as folder:
        listening = [*driver.command("ours", "echo"), "--listen", f"unix:{folder}/s"]
        # Not `bench.sockets.Listening`: here no other library is needed.
        server = subprocess.Popen(listening, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            cases = {
                "--version": (["--version"], "trunkline "),
                "--help": (["--help"], "usage: trunkline"),
                "call --help": (["call", "--help"], "usage: trunkline call"),
                "call, a server on a Unix socket": (
                    ["call", address, "echo", "text=hi"],
                    "hi",
                ),
                "call, a server that is started for it": (started, "hi"),
            }
            found = {
                name: interleaved([*command, *words], base, rounds, wanted)
                for name, (words, wanted) in cases.items()
            }
        finally:
            server.terminate()
            server.communicate(timeout=_TIMEOUT_S)
    _print(found, rounds)
    return 0


def _print(found: Mapping[str, Rounds], rounds: int) -> None:
    for clock in ("wall", "cpu"):
        print(f"\n{f'{clock} time, medians of {rounds} in ms':<42}{'base':>8}{'this':>8}", end="")
        print(f"{'this/base':>12}{'control':>10}")
        for name, each in found.items():
            base, this = each.median("base", clock), each.median("this", clock)
            ratios = f"{each.ratio('this', clock):>12.3f}{each.ratio('control', clock):>10.3f}"
            print(f"  {name:<40}{base:>8.1f}{this:>8.1f}{ratios}")
