"""Calls of a tool by HTTP clients, to the same server in a process of its own, against mcp.

    python -m bench.http_client

The client of Trunkline and that of mcp call one server of Trunkline, so that the difference is
that of the clients. CPU time is that of the client process alone, all its threads together.

What is compared:

* One call after another, and 64 at once; answers as JSON and as event streams; both eras.
* Event streams that carry three progress reports before the answer.
* 100 clients in one process, all of them with calls in flight.
* Both ends: each client with the server of its library, CPU time of both processes.
* Resident memory of a process with one client and with 100 (`bench.servers.http_clients`).

Every answer is checked. Clients stay connected between rounds, the clients of each library on an
event loop of its own, so that work left after an answer counts for the library that left it.
Clients close idle connections; before each measurement the same calls are made once without
being counted, so that no round pays for opening them again.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from bench import harness
from bench.harness import Bench, Case, Clock, Effort
from bench.http_server import MCP, OWN, Process, Row
from bench.section import Section
from bench.servers.driver import HANDSHAKE, PER_REQUEST
from bench.session import Held, echo, progress_of_mcp, progress_of_ours, sequential, texts
from trunkline import Client

DISTRIBUTIONS: Final = (
    *("trunkline", "msgspec", "httptools", "mcp", "mcp-types", "pydantic", "anyio", "httpx2"),
)

# 64 callers of mcp take a quarter of a second, whatever `round_ns` says.
FULL: Final = Effort(12, 30_000_000, 0, fewest_singles=0, most_singles=0)
QUICK: Final = Effort(4, 10_000_000, 0, fewest_singles=0, most_singles=0)

FORMS: Final = {"json": "JSON", "sse": "event stream"}
ONE: Final = "one after another"
CROWD: Final = "64 at once"
ORDERS: Final = (ONE, CROWD)
REPORTS: Final = f"three reports and a text, {ONE}"
MANY: Final = "100 clients, all at once"
ENDS: Final = "both ends"

_CROWD: Final = 64
_CLIENTS: Final = 100
_EACH: Final = 2
# Connections that were idle for longer may have been closed; mcp closes its own after 5 s.
_STALE_S: Final = 1.0


Run = Callable[[Any], object]


class Arranged(NamedTuple):
    """Calls to make, a few of them for a warm-up, and how many they are."""

    run: Run
    warm_up: Run
    operations: int


class Side:
    """The clients of one library, on an event loop of their own, and their CPU time."""

    def __init__(self, library: str) -> None:
        self.library = library
        self.held = Held()
        self._left_out = 0

    def open(self, url: str, revision: str) -> Any:
        """Return a client that is connected."""
        return self.held.enter(client_of(self.library, url, revision))

    def clock(self, server: Process | None) -> Clock:
        """Return a clock of this process, and of a server, without what was left out."""
        own = time.process_time_ns
        if server is None:
            return lambda: own() - self._left_out
        other = server.cpu_ns
        return lambda: own() + other() - self._left_out

    def warmed(self, run: Run, warm_up: Run, clock: Clock) -> Run:
        """Return `run`, after a `warm_up` that does not count if the last run was long ago."""
        last = 0.0

        def measured(given: Any) -> None:
            nonlocal last
            if time.monotonic() - last > _STALE_S:
                start = clock()
                warm_up(given)
                self._left_out += clock() - start
            run(given)
            last = time.monotonic()

        return measured


def client_of(library: str, url: str, revision: str) -> Any:
    """Return a client of a library that is not connected yet, with default settings."""
    if library == OWN:
        return Client(url, revision=revision)
    from mcp import Client as McpClient

    return McpClient(url, mode="legacy" if revision == HANDSHAKE else revision)


def url_of(server: Process) -> str:
    """Return the address of a server."""
    return f"http://127.0.0.1:{server.port}/mcp"


# --- what is measured


def register(bench: Bench, sides: list[Side], servers: dict[tuple[str, str], Process]) -> None:
    """Open every client and add every case."""
    for form, kind in FORMS.items():
        url = url_of(servers[OWN, form])
        opened = [
            (side, revision, side.open(url, revision))
            for side in sides
            for revision in (HANDSHAKE, PER_REQUEST)
        ]
        for order in ORDERS:
            for side, revision, client in opened:
                made = _arranged(side.held, client, order)
                _add(bench, f"{kind}, {order}", f"{side.library} {revision}", side, made)
            for side in sides:
                bench.control(f"{kind}, {order}", f"{side.library} {HANDSHAKE}")
        if form == "json":
            _register_reports(bench, opened)
    _register_many(bench, sides, servers[OWN, "json"])
    _register_ends(bench, sides, servers)


def _register_reports(bench: Bench, opened: list[tuple[Side, str, Any]]) -> None:
    for side, revision, client in opened:
        report = progress_of_ours if side.library == OWN else progress_of_mcp
        run, operations = sequential(side.held, report(client))
        made = Arranged(run, run, operations)
        _add(bench, REPORTS, f"{side.library} {revision}", side, made)


def _register_many(bench: Bench, sides: list[Side], server: Process) -> None:
    for side in sides:
        clients = [side.open(url_of(server), HANDSHAKE) for _ in range(_CLIENTS)]
        _add(bench, MANY, f"{side.library} {HANDSHAKE}", side, _spread(side.held, clients))


def _arranged(held: Held, client: Any, order: str) -> Arranged:
    """Return what makes calls of one client."""
    if order == CROWD:
        return _spread(held, [client] * _CROWD)
    run, operations = sequential(held, echo(client))
    return Arranged(run, run, operations)


def _spread(held: Held, clients: list[Any]) -> Arranged:
    """Return what makes calls of many clients at once."""

    async def caller(client: Any, given: list[str]) -> None:
        call = echo(client)
        for text in given:
            await call(text)

    async def crowd(given: list[str]) -> None:
        await asyncio.gather(*[caller(client, given) for client in clients])

    return Arranged(
        lambda _: held.run(crowd(texts(_EACH))),
        lambda _: held.run(crowd(texts(1))),
        len(clients) * _EACH,
    )


def _register_ends(
    bench: Bench, sides: list[Side], servers: dict[tuple[str, str], Process]
) -> None:
    for side in sides:
        server = servers[side.library, "json"]
        for revision in (HANDSHAKE, PER_REQUEST):
            client = side.open(url_of(server), revision)
            for order in ORDERS:
                name = f"{side.library} {revision}"
                made = _arranged(side.held, client, order)
                _add(bench, f"{ENDS}, {order}", name, side, made, server)


def _add(
    bench: Bench,
    group: str,
    name: str,
    side: Side,
    made: Arranged,
    server: Process | None = None,
) -> None:
    made.run(None)
    clock = side.clock(server)
    run = side.warmed(made.run, made.warm_up, clock)
    bench.add(Case(group, name, run, operations=made.operations, cpu_clock=clock))


# --- memory


def memory(library: str, server: Process) -> dict[str, float]:
    """Return resident memory of a process of clients, in bytes, and the CPU time of opening one."""
    command = [sys.executable, "-m", "bench.servers.http_clients", library, url_of(server)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"the clients of {library} failed: {ended.stderr.strip()[-500:]}")
    names = ("imported", "one", "many", "opening")
    return dict(zip(names, map(float, ended.stdout.split()), strict=True))


# --- running


def print_memory(section: Section, server: Process) -> None:
    """Print resident memory of the clients of each library."""
    title = f"resident memory, 1 and {_CLIENTS} clients"
    columns = ("imported", "one", f"{_CLIENTS}", "opening one")
    print(f"\n{title:<36}{''.join(f'{each:>12}' for each in columns)}")
    for library in (OWN, MCP):
        found = memory(library, server)
        sizes = "".join(f"{found[each] / 1e6:9.1f} MB" for each in ("imported", "one", "many"))
        print(f"  {library:<34}{sizes}{harness.duration(found['opening']):>12}")
        section.value("resident memory of a process, 1 client", library, found["one"] / 1e6, "MB")
        name = f"resident memory of a process, {_CLIENTS} clients"
        section.value(name, library, found["many"] / 1e6, "MB")


def main() -> int:
    """Run it; the exit code says whether the targets hold."""
    about = "An HTTP client calling a server of Trunkline, against the client of mcp."
    section = Section("http_client", about, DISTRIBUTIONS)
    usable = os.sched_getaffinity(0)
    cores = usable - {max(usable)} if len(usable) > 1 else usable
    # Of ours alone, one that answers in events whatever a client accepts.
    rows = [Row(OWN, HANDSHAKE, "json"), Row(OWN, HANDSHAKE, "sse"), Row(MCP, HANDSHAKE, "json")]
    servers: dict[tuple[str, str], Process] = {}
    try:
        for row in rows:
            servers[row.server, row.form] = Process(row, cores)
        if cores != usable:
            os.sched_setaffinity(0, usable - cores)
        _run(section, servers)
    finally:
        for server in servers.values():
            server.close()
    return section.conclude()


def _run(section: Section, servers: dict[tuple[str, str], Process]) -> None:
    bench = section.bench(FULL, QUICK)
    sides = [Side(OWN), Side(MCP)]
    register(bench, sides, servers)
    bench.run(harness.show_progress)
    print("\nCPU time of the client process, for both ends of both processes")
    for group in bench.groups():
        bench.compare(group, lambda name: [f"{MCP} {name.rpartition(' ')[2]}"])
        harness.print_group(bench, group)
    harness.print_controls(bench)
    print_memory(section, servers[OWN, "json"])
    for side in sides:
        side.held.close()


if __name__ == "__main__":
    sys.exit(main())
