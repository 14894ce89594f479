"""How long a user at a terminal waits for `trunkline call`.

    python -m bench.command
    python -m bench.command --against PATH

From the moment the command is started to its first line of output, and to its end: with a server
that is there, on a Unix socket, and with one that the command starts. Wall time, since that is
what is waited for; so it says something on a quiet machine only. Every answer is checked, and
modules are compiled before the first round. With `--against` the command of this checkout is
compared with that of another one; see `checkouts`.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from bench.checkouts import compare
from bench.section import Section
from bench.servers import driver

DISTRIBUTIONS: Final = ("trunkline", "msgspec")
_ROUNDS: Final = 25
_ROUNDS_QUICK: Final = 8


class Waited(NamedTuple):
    """How long each round took, in milliseconds."""

    first: list[float]
    whole: list[float]


def waited(command: list[str], rounds: int, wanted: str) -> Waited:
    """Return how long a command takes to say something, and to end."""
    found = Waited([], [])
    for number in range(rounds + 2):
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            first = time.perf_counter() - began
            process.wait(60)
        whole = time.perf_counter() - began
        assert line.strip() == wanted, line
        if number >= 2:  # the first ones compile
            found.first.append(first * 1000)
            found.whole.append(whole * 1000)
    return found


def _against() -> tuple[Path | None, int]:
    """Return the checkout in `--against`, and the number of rounds."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    options, _ = parser.parse_known_args()
    return options.against, options.rounds


def main() -> int:
    """Run it; the exit code says whether the targets hold."""
    base, against_rounds = _against()
    if base is not None:
        return compare(base.resolve(), against_rounds)
    # Imported here: it needs the libraries that the other sections compare with.
    from bench.sockets import Listening

    about = "The command line: wall time of `trunkline call`, from its start to its output."
    section = Section("command", about, DISTRIBUTIONS)
    rounds = _ROUNDS_QUICK if section.is_quick else _ROUNDS
    command = str(Path(sys.executable).with_name("trunkline"))
    with tempfile.TemporaryDirectory() as folder:
        server = Listening(f"unix:{folder}/s")
        try:
            there = waited([command, "call", server.address, "echo", "text=hi"], rounds, "hi")
        finally:
            server.close()
    words = [command, "call", "echo", "text=hi", "--", *driver.command("ours", "echo")]
    cases = {
        "python -c 'print(1)'": waited([sys.executable, "-c", "print(1)"], rounds, "1"),
        "call, a server on a Unix socket": there,
        "call, a server that is started for it": waited(words, rounds, "hi"),
    }
    print(f"\n{'':<42}{'first line':>20}{'whole':>20}   best and median of {rounds}, in ms")
    for name, each in cases.items():
        shown = [f"{min(times):.0f} / {statistics.median(times):.0f}" for times in each]
        print(f"  {name:<40}{shown[0]:>20}{shown[1]:>20}")
        section.value("first line, median wall time", name, statistics.median(each.first), "ms")
        section.value("whole, median wall time", name, statistics.median(each.whole), "ms")
    return section.conclude()


if __name__ == "__main__":
    sys.exit(main())
