"""Calls of a tool over pipes, to a server in a process of its own, against mcp.

    python -m bench.stdio

Two measurements, each with targets of its own:

* What the server costs. One driver for all, in blocking reads and writes of bytes
  (`bench.servers.driver`), calls a tool that returns its text. CPU time is the server
  process's alone, all its threads together; the wall times include the driver.
* What a user waits. Our client with our server, mcp's client with mcp's. CPU time is that of
  both processes, but the targets are on wall time.

Every answer is checked. Servers stay up between rounds; an idle one costs nothing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, get_args

from bench import harness
from bench.harness import Bench, Case, Effort
from bench.section import Section
from bench.servers import driver
from bench.servers.driver import HANDSHAKE, NAMES, PER_REQUEST, Driver, Server
from bench.session import Held, at_once, echo, sequential, texts
from trunkline import Client, Stdio

DISTRIBUTIONS: Final = ("trunkline", "msgspec", "mcp", "mcp-types", "pydantic", "anyio")

FULL: Final = Effort(30, 20_000_000, 100_000_000, fewest_singles=20, most_singles=1_000)
QUICK: Final = Effort(10, 10_000_000, 20_000_000, fewest_singles=10, most_singles=200)

_IN_FLIGHT: Final = 64
_ROW: Final = 16
_LARGE: Final = "All work and no play makes Jack a dull boy.\n" * 23_832  # 1 MiB

# The same size in UTF-8, with a letter in ten outside ASCII.
_ACCENTED: Final = "Où l'été naît, la forêt dorée rêve à l'île.\n" * 20_000
# The text of a JSON document: quotes, which are escaped on the way, and brackets.
_OBJECTS: Final = json.dumps([{"id": 1, "name": "Ada", "tags": ["a"]} for _ in range(19_800)])

SEQUENTIAL: Final = "server, one call after another"
CROWD: Final = f"server, {_IN_FLIGHT} calls in flight"
LARGE: Final = "server, 1 MB echo"
LARGE_ACCENTED: Final = "server, 1 MB echo, accented"
LARGE_OBJECTS: Final = "server, 1 MB echo, JSON as text"
_LARGE_TEXTS: Final = {LARGE: _LARGE, LARGE_ACCENTED: _ACCENTED, LARGE_OBJECTS: _OBJECTS}
ENDS: Final = "both ends, one call after another"
ENDS_CROWD: Final = f"both ends, {_IN_FLIGHT} calls in flight"


# --- what the server costs


class Drivers:
    """One server process for each library and revision."""

    def __init__(self) -> None:
        self.all: dict[tuple[Server, str], Driver] = {}
        available = [server for server in get_args(Server) if driver.is_available(server)]
        for revision in (HANDSHAKE, PER_REQUEST):
            for server in available:
                if revision == HANDSHAKE or server not in driver.HANDSHAKE_ONLY:
                    self.all[server, revision] = Driver(server, "echo", revision=revision)
        for each in self.all.values():
            each.open()

    def cpu_ns(self) -> int:
        """Return what all servers have used; between two readings only one is at work."""
        return sum(each.cpu_ns() for each in self.all.values())

    def close(self) -> None:
        """End all servers."""
        for each in self.all.values():
            each.close()


def register_servers(bench: Bench, drivers: Drivers) -> None:
    """Add every case of what the server costs."""
    row, crowd = texts(_ROW), texts(_IN_FLIGHT)
    for (server, revision), each in drivers.all.items():
        name = f"{NAMES[server]} {revision}"

        def one_by_one(_: Any, each: Driver = each) -> None:
            for text in row:
                each.call("echo", (text,))

        def in_flight(_: Any, each: Driver = each) -> None:
            each.call("echo", crowd)

        def large(text: str, each: Driver = each) -> Callable[[Any], None]:
            return lambda _: each.call("echo", (text,))

        _add(bench, SEQUENTIAL, name, one_by_one, len(row))
        _add(bench, CROWD, name, in_flight, len(crowd))
        for group, text in _LARGE_TEXTS.items():
            _add(bench, group, name, large(text), 1)
    for group in (SEQUENTIAL, CROWD, *_LARGE_TEXTS):
        bench.control(group, f"{NAMES['ours']} {HANDSHAKE}")
    bench.control(SEQUENTIAL, f"{NAMES['mcpserver']} {HANDSHAKE}")


def _add(
    bench: Bench, group: str, name: str, run: Callable[[Any], object], operations: int
) -> None:
    # A few times first: a server makes its decoders, and its threads, when they are needed.
    for _ in range(3):
        run(None)
    bench.add(Case(group, name, run, operations=operations))


# --- what a user waits


def register_ends(bench: Bench, held: Held) -> None:
    """Add every case with both ends of one library."""
    from mcp import Client as McpClient
    from mcp import StdioServerParameters

    program, *ours = driver.command("ours", "echo")
    _, *rival = driver.command("mcpserver", "echo")
    quiet = lambda _line: None  # noqa: E731  # what a server writes to stderr
    sides: dict[str, Any] = {}
    for revision in (HANDSHAKE, PER_REQUEST):
        address = Stdio(program, ours, on_stderr=quiet)
        sides[f"{NAMES['ours']} {revision}"] = Client(address, revision=revision)
    for revision, mode in ((HANDSHAKE, "legacy"), (PER_REQUEST, "auto")):
        address = StdioServerParameters(command=program, args=rival)
        sides[f"{NAMES['mcpserver']} {revision}"] = McpClient(address, mode=mode)
    clients = {name: held.enter(client) for name, client in sides.items()}
    for group, arrange in ((ENDS, sequential), (ENDS_CROWD, at_once)):
        for name, client in clients.items():
            _add(bench, group, name, *arrange(held, echo(client)))
        bench.control(group, f"{NAMES['ours']} {HANDSHAKE}")


def children_and_own() -> Callable[[], int]:
    """Return a clock of this process and all its children that are alive now."""
    me = Path("/proc/self/task")
    pids = [
        int(pid)
        for task in me.iterdir()
        for pid in (task / "children").read_text(encoding="ascii").split()
    ]
    clocks = [driver.clock_of(pid) for pid in pids]
    read, own = time.clock_gettime_ns, time.process_time_ns
    return lambda: own() + sum(read(clock) for clock in clocks)


def rivals_of(name: str) -> list[str]:
    """Return what a case is compared with: mcp in the same revision."""
    revision = PER_REQUEST if PER_REQUEST in name else HANDSHAKE
    return [f"{NAMES[each]} {revision}" for each in NAMES if each != "ours"]


# --- running


def main() -> int:
    """Run both measurements; the exit code says whether they hold."""
    about = "A server on stdio, and client and server together, against mcp."
    section = Section("stdio", about, DISTRIBUTIONS)
    section.facts |= driver.versions()
    _run_servers(section)
    _run_ends(section)
    return section.conclude()


def _run_servers(section: Section) -> None:
    drivers = Drivers()
    bench = section.bench(FULL, QUICK, cpu_clock=drivers.cpu_ns)
    register_servers(bench, drivers)
    bench.run(harness.show_progress)
    print("\nCPU time of the server process alone; wall times include the driver")
    _print(bench)
    print("\nresident memory of each server after the run:")
    for (server, revision), each in drivers.all.items():
        name, size = f"{NAMES[server]} {revision}", each.rss() / 1e6
        print(f"  {name:<34}{size:8.1f} MB")
        section.value("resident memory after the run", name, size, "MB")
    drivers.close()


def _run_ends(section: Section) -> None:
    held = Held()
    clock: list[Callable[[], int]] = [time.process_time_ns]
    bench = section.bench(FULL, QUICK, cpu_clock=lambda: clock[0]())
    register_ends(bench, held)
    clock[0] = children_and_own()
    bench.run(harness.show_progress)
    print("\n\nCPU time of client and server process together")
    _print(bench)
    clock[0] = time.process_time_ns
    held.close()


def _print(bench: Bench) -> None:
    for group in bench.groups():
        bench.compare(group, rivals_of)
        harness.print_group(bench, group)
    harness.print_controls(bench)


if __name__ == "__main__":
    sys.exit(main())
