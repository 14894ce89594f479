"""What it takes to start a server on stdio: time to the first answers, imports and memory.

    python -m bench.start

A start is a fresh process with one tool, from the moment it is spawned to the answer in the
hands of a driver that is the same for all. CPU time is that of the server process, as the
kernel counts it when the process has ended. Modules are compiled before the first round.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from bench import harness
from bench.harness import Bench, Case, Effort
from bench.section import Section
from bench.servers.driver import (
    HANDSHAKE,
    NAMES,
    PER_REQUEST,
    Driver,
    Server,
    is_available,
    versions,
)
from bench.session import texts

DISTRIBUTIONS: Final = ("trunkline", "msgspec", "mcp", "mcp-types", "pydantic", "anyio")

FULL: Final = Effort(8, 1, 1, fewest_singles=1, most_singles=1)
QUICK: Final = Effort(3, 1, 1, fewest_singles=1, most_singles=1)

OPENED: Final = "start to the answer of initialize"
CALLED: Final = "start to the answer of a tool"
OURS, MCP = NAMES["ours"], NAMES["mcpserver"]
_CALLS: Final = 1000
_MIB: Final = 1024 * 1024


def children_ns() -> int:
    """Return the CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * 1e9)


def start(server: Server, revision: str, *, calls: bool) -> Callable[[Any], None]:
    """Return what starts a server, asks it something, and ends it."""

    def run(_: Any) -> None:
        driver = Driver(server, "echo", revision=revision)
        try:
            driver.open()
            if calls:
                driver.call("echo", ("hello",))
        finally:
            driver.close()

    return run


def available() -> dict[Server, str]:
    """Return the servers that can be started here, with their names."""
    return {server: name for server, name in NAMES.items() if is_available(server)}


def register(bench: Bench) -> None:
    """Add every case."""
    for server, name in available().items():
        bench.add(Case(OPENED, name, start(server, HANDSHAKE, calls=False)))
        bench.add(Case(CALLED, name, start(server, HANDSHAKE, calls=True)))
    for server in ("ours", "mcpserver"):
        name = f"{NAMES[server]} {PER_REQUEST}"
        bench.add(Case(CALLED, name, start(server, PER_REQUEST, calls=True)))
    for group in (OPENED, CALLED):
        bench.control(group, OURS)


class Imported(NamedTuple):
    """What a program costs that makes an empty server, and no more."""

    cpu_ms: float
    wall_ms: float
    rss: float


_PROGRAM: Final = """
import time
cpu, wall = time.process_time_ns(), time.perf_counter_ns()
{}
print(time.process_time_ns() - cpu, time.perf_counter_ns() - wall)
import os
print(int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
"""
_STATEMENTS: Final = {
    "a bare interpreter": "pass",
    "asyncio and msgspec alone": "import asyncio, msgspec",
    OURS: "from trunkline import Server; Server('x')",
    MCP: "from mcp.server.mcpserver import MCPServer; MCPServer('x')",
    NAMES["lowlevel"]: "from mcp.server.lowlevel import Server; Server('x')",
}


def imported(statement: str, rounds: int) -> list[Imported]:
    """Return what a statement costs in fresh interpreters."""
    found = []
    for _ in range(rounds + 1):
        command = [sys.executable, "-c", _PROGRAM.format(statement)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        cpu, wall, rss = map(int, run.stdout.split())
        found.append(Imported(cpu / 1e6, wall / 1e6, rss / _MIB))
    # The first may have compiled modules.
    return found[1:]


def print_imports(section: Section, rounds: int) -> None:
    """Print what each import costs."""
    print(
        f"\n{'import and make a server':<36}{'cpu best':>10}{'median':>10}{'wall':>10}{'MiB':>10}"
    )
    for name, statement in _STATEMENTS.items():
        runs = imported(statement, rounds)
        cpu = [run.cpu_ms for run in runs]
        wall = min(run.wall_ms for run in runs)
        rss = statistics.median(run.rss for run in runs)
        section.value("import and make a server, CPU", name, min(cpu), "ms")
        section.value("import and make a server, wall", name, wall, "ms")
        section.value("import and make a server, memory", name, rss, "MiB")
        print(
            f"  {name:<34}{min(cpu):>7.1f} ms{statistics.median(cpu):>7.1f} ms"
            f"{wall:>7.1f} ms{rss:>10.1f}"
        )


def print_memory(section: Section) -> None:
    """Print what each server holds after some calls."""
    print(f"\nresident memory of a server after {_CALLS} calls:")
    for server, name in available().items():
        driver = Driver(server, "echo")
        try:
            driver.open()
            for text in texts(_CALLS):
                driver.call("echo", (text,))
            size = driver.rss() / 1e6
        finally:
            driver.close()
        print(f"  {name:<34}{size:8.1f} MB")
        section.value(f"resident memory after {_CALLS} calls", name, size, "MB")


def rivals_of(name: str) -> list[str]:
    """Return what a case is compared with: mcp in the same revision."""
    era = f" {PER_REQUEST}" if PER_REQUEST in name else ""
    return [f"{NAMES[each]}{era}" for each in NAMES if each != "ours"]


def main() -> int:
    """Run the benchmark; the exit code says whether it holds."""
    about = "A server on stdio from its start to an answer, against mcp."
    section = Section("start", about, DISTRIBUTIONS)
    section.facts |= versions()
    bench = section.bench(FULL, QUICK, cpu_clock=children_ns)
    register(bench)
    bench.run(harness.show_progress)
    for group in bench.groups():
        bench.compare(group, rivals_of)
        harness.print_group(bench, group)
    print_imports(section, bench.effort.rounds)
    print_memory(section)
    print()
    harness.print_controls(bench)
    return section.conclude()


if __name__ == "__main__":
    sys.exit(main())
