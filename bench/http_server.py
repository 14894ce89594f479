"""Calls of a tool over HTTP, to a server in a process of its own, against mcp and TypeScript.

    python -m bench.http_server

One load generator for all servers (`bench.servers.http_load`), in a process of its own, keeps
connections alive, each with a session of its own where the revision has them, and one request in
flight on each. CPU time is the server process's alone, all its threads together, up to the time
when it is idle again: some servers have work to do after a response. Requests per second, p50 and
p99 are what the load generator saw.

What is compared:

* Answers as JSON and as event streams, over 1, 64 and 256 connections. Headers are the same
  in each request of a connection but for Content-Length; with `traceparent varies` each has a new
  one, and with `a nonce in each` a header that no server knows.
* Our HTTP server, our ASGI application under uvicorn, the application of mcp under uvicorn, the
  TypeScript SDK on `node:http`; each in both eras.
* Resident memory at the start and after the run, and for idle sessions.

Every answer is checked. Servers stay up between rounds; each case has the clock of its server.
Without Node the rows of TypeScript are left out, and the run says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench import harness
from bench.harness import Bench, Case, Effort
from bench.section import Section
from bench.servers import driver
from bench.servers.driver import HANDSHAKE, NAMES, PER_REQUEST, clock_of
from trunkline import Server

DISTRIBUTIONS: Final = (
    *("trunkline", "msgspec", "httptools", "mcp", "mcp-types", "pydantic", "uvicorn", "starlette"),
)

# A round is one run of the load generator for each case; `round_ns` is how long it is to last.
FULL: Final = Effort(10, 80_000_000, 0, fewest_singles=0, most_singles=0)
QUICK: Final = Effort(5, 40_000_000, 0, fewest_singles=0, most_singles=0)

CONNECTIONS: Final = (1, 64, 256)
FEW: Final = (1, 64)
JSON: Final = "JSON"
VARYING: Final = "JSON, traceparent varies"
NONCE: Final = "JSON, a nonce in each"
STREAM: Final = "event stream"

OWN: Final = "trunkline"
ASGI: Final = "trunkline, ASGI"
MCP: Final = "mcp"
TYPESCRIPT: Final = "TypeScript"
# In environments of their own, by the server in `bench.servers`.
APART: Final[dict[str, driver.Server]] = {NAMES["mcp1"]: "mcp1", NAMES["fastmcp4"]: "fastmcp4"}

_ROOT: Final = Path(__file__).parent.parent
_TYPESCRIPT: Final = Path(__file__).parent / "servers" / "typescript"
# `http_client` calls both.
_TOOLS: Final = ("echo", "progress")
# The header that varies, by kind of group.
_VARYING: Final = {VARYING: "traceparent", NONCE: "x-nonce"}
_LIKE_MCP: Final = (MCP, NAMES["fastmcp4"])
_BOTH: Final = "application/json, text/event-stream"
_SESSIONS: Final = 1000
_WARM_SESSIONS: Final = 50
# A server is idle when it uses less than this in 3 ms; and how long that is waited for.
_IDLE_NS: Final = 100_000
_SETTLED_S: Final = 0.5


class Row(NamedTuple):
    """A server in one revision, and the form of its answers."""

    server: str
    revision: str
    form: str
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What it is called in print."""
        return f"{self.server} {self.revision}"

    @property
    def accept(self) -> str:
        """The Accept header; ours streams a single answer to clients that accept nothing else."""
        is_ours = self.server in (OWN, ASGI)
        return "text/event-stream" if is_ours and self.form == "sse" else _BOTH

    def command(self) -> list[str]:
        """Return what starts the server."""
        if self.server == TYPESCRIPT:
            return ["node", str(_TYPESCRIPT / "server.mjs"), self.revision, self.form]
        if self.server in APART:
            return driver.command(APART[self.server], "--http", self.form, *_TOOLS)
        kind = {OWN: "own", ASGI: "asgi", MCP: "mcp"}[self.server]
        program = [sys.executable, "-m", "bench.servers.over_http", kind, self.form]
        return [*program, *self.options, *_TOOLS]


class Process:
    """A server in a process of its own."""

    def __init__(self, row: Row, cores: set[int]) -> None:
        self.row = row
        self._process = subprocess.Popen(
            row.command(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
        )
        os.sched_setaffinity(self._process.pid, cores)
        assert self._process.stdout is not None
        address = self._process.stdout.readline().strip()
        if not address:
            raise SystemExit(f"{row.name} did not start: {' '.join(row.command())}")
        self.port = int(address.rsplit(":", 1)[1].partition("/")[0])
        self.clock = clock_of(self._process.pid)
        self.rss_at_start = self.rss()
        self._wall_ns = 0

    def cpu_ns(self) -> int:
        """Return the CPU time that the server has used."""
        return time.clock_gettime_ns(self.clock)

    def wall_ns(self) -> int:
        """Return how long requests to this server have taken, as the load generator saw it."""
        return self._wall_ns

    def add(self, bench: Bench, load: Load, group: str, name: str, run: dict[str, Any]) -> None:
        """Add a case: runs of the load generator, of as many requests as fill a round."""
        least = max(50, 4 * run["connections"])
        # Once to warm up, once to learn how many requests fill a round.
        load.ask("run", requests=least, **run)
        spent = load.ask("run", requests=least, **run) / least
        requests = max(least, int(bench.effort.round_ns / spent))

        def case(_: Any) -> None:
            self._wall_ns += load.ask("run", requests=requests, **run)
            self.settle()

        bench.add(
            Case(
                group,
                name,
                # A round is one run: the calibration of the bench finds that enough.
                case,
                operations=requests,
                cpu_clock=self.cpu_ns,
                wall_clock=self.wall_ns,
            )
        )

    def settle(self) -> None:
        """Wait until the server is idle: some have work to do after a response."""
        before, deadline = self.cpu_ns(), time.monotonic() + _SETTLED_S
        while time.monotonic() < deadline:
            time.sleep(0.003)
            now = self.cpu_ns()
            if now - before < _IDLE_NS:
                return
            before = now

    def rss(self) -> int:
        """Return its resident memory, in bytes."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Load:
    """The load generator, in a process of its own."""

    def __init__(self, cores: set[int]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "servers" / "http_load.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ask("pin", cores=sorted(cores))

    def ask(self, command: str, **arguments: Any) -> Any:
        """Return the answer to a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the load generator ended; its last words are above")
        return json.loads(line)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


# --- what is measured


def rows(servers: list[str]) -> list[Row]:
    """Return every server to start."""
    return [
        Row(server, revision, form)
        for server in servers
        for revision in (HANDSHAKE, PER_REQUEST)
        for form in ("json", "sse")
        # mcp answers single requests by their Accept header, in the same way in both modes.
        if not (server in _LIKE_MCP and revision == PER_REQUEST and form == "sse")
        and not (APART.get(server) in driver.HANDSHAKE_ONLY and revision == PER_REQUEST)
    ]


def available() -> list[str]:
    """Return the servers that can be measured here; print why others cannot."""
    found = [OWN]
    if hasattr(Server, "asgi"):
        found.append(ASGI)
    found.append(MCP)
    found += [name for name, server in APART.items() if driver.is_available(server)]
    missing = typescript_problem()
    if missing is None:
        found.append(TYPESCRIPT)
    else:
        print(f"{TYPESCRIPT}: left out, {missing}")
    return found


def typescript_problem() -> str | None:
    """Return why the TypeScript SDK cannot be measured; install it once if that is possible."""
    if shutil.which("node") is None:
        return "node is not installed"
    if (_TYPESCRIPT / "node_modules").exists():
        return None
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed, which would install the SDK"
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock")
    installed = subprocess.run(
        [npm, "install", *options, "--loglevel=error"],
        cwd=_TYPESCRIPT,
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        shutil.rmtree(_TYPESCRIPT / "node_modules", ignore_errors=True)
        return f"npm cannot install the SDK: {installed.stderr.strip()[-300:]}"
    return None


def group_name(kind: str, connections: int) -> str:
    """Return the name of a group of cases."""
    plural = "s" if connections > 1 else ""
    return f"{kind}, {connections} connection{plural}"


def register(bench: Bench, load: Load, processes: list[Process], counts: tuple[int, ...]) -> None:
    """Add every case, for each number of connections."""
    for process in processes:
        row = process.row
        for kind, varies in _kinds(row):
            # Headers make the same difference for any number of connections. Connections of
            # their own, because a server may remember what was sent on one.
            used = FEW if varies or row.server in APART else counts
            pool = f"{row.name} {kind}"
            load.ask(
                "open",
                pool=pool,
                port=process.port,
                revision=row.revision,
                accept=row.accept,
                tool="echo",
                connections=max(used),
            )
            for connections in used:
                run = {"pool": pool, "connections": connections, "varies": varies}
                process.add(bench, load, group_name(kind, connections), row.name, run)
    for connections in counts:
        for kind in (JSON, STREAM):
            bench.control(group_name(kind, connections), f"{OWN} {HANDSHAKE}")
    bench.control(group_name(JSON, 64), f"{MCP} {HANDSHAKE}")


def _kinds(row: Row) -> list[tuple[str, str]]:
    """Return the kinds of groups that a row is in, each with the header that varies."""
    if row.form == "sse":
        return [(STREAM, "")]
    found = [(JSON, "")]
    if row.server in (OWN, MCP):
        found += _VARYING.items()
    return found


def per_session(load: Load, row: Row, cores: set[int]) -> tuple[float, float]:
    """Return bytes of resident memory per idle session, and the CPU time of opening one, in ns."""
    process = Process(row, cores)
    try:
        load.ask("sessions", port=process.port, accept=row.accept, count=_WARM_SESSIONS)
        before, cpu = process.rss(), process.cpu_ns()
        load.ask("sessions", port=process.port, accept=row.accept, count=_SESSIONS)
        spent = process.cpu_ns() - cpu
        return (process.rss() - before) / _SESSIONS, spent / _SESSIONS
    finally:
        process.close()


# --- running


def rivals_of(name: str) -> list[str]:
    """Return what a case is compared with: mcp, then others, in the same revision."""
    revision = name.rpartition(" ")[2]
    return [f"{each} {revision}" for each in (MCP, *APART, TYPESCRIPT)]


def note_latencies(bench: Bench, load: Load) -> None:
    """Set p50 and p99 of each case, as the load generator saw them."""
    for group, cases in bench.groups().items():
        kind, _, last = group.rpartition(", ")
        for case in cases:
            p50, p99 = load.ask(
                "latencies",
                pool=f"{case.name.removesuffix(harness.AGAIN)} {kind}",
                connections=int(last.split()[0]),
                varies=_VARYING.get(kind, ""),
            )
            case.latencies = {50: p50, 99: p99}


def print_memory(section: Section, load: Load, processes: list[Process]) -> None:
    """Print resident memory of every server, and that of idle sessions."""
    title = f"resident memory, and {_SESSIONS} idle sessions"
    print(f"\n{title:<38}{'start':>10}{'after':>10}{'sessions':>10}{'opening one':>13}")
    server_cores, _ = cores()
    for process in processes:
        row, after = process.row, process.rss() / 1e6
        name = f"{row.name}, {row.form}"
        line = f"  {name:<36}{process.rss_at_start / 1e6:7.1f} MB{after:7.1f} MB"
        section.value("resident memory after the run", name, after, "MB")
        if row.revision == HANDSHAKE:
            size, spent = per_session(load, row, server_cores)
            line += f"{size * 1000 / 1e6:7.2f} MB{harness.duration(spent):>13}"
            section.value(f"{_SESSIONS} idle sessions", name, size * 1000 / 1e6, "MB")
        print(line)


def cores() -> tuple[set[int], set[int]]:
    """Return the cores for servers and those for the load generator."""
    usable = os.sched_getaffinity(0)
    return (usable - {max(usable)}, {max(usable)}) if len(usable) > 1 else (usable, usable)


def main() -> int:
    """Run it; the exit code says whether the targets hold."""
    about = "An HTTP server under load, against mcp under uvicorn and the TypeScript SDK."
    section = Section("http_server", about, DISTRIBUTIONS)
    section.facts |= driver.versions()
    servers = available()
    if TYPESCRIPT in servers:
        section.facts["typescript sdk"] = typescript_version()
        print(f"typescript sdk: {section.facts['typescript sdk']}")
    server_cores, load_cores = cores()
    load = Load(load_cores)
    processes: list[Process] = []
    try:
        for row in rows(servers):
            processes.append(Process(row, server_cores))
        _run(section, load, processes)
    finally:
        for process in processes:
            process.close()
        load.close()
    return section.conclude()


def typescript_version() -> str:
    """Return the versions of the TypeScript SDK and of Node."""
    pins = json.loads((_TYPESCRIPT / "package.json").read_text(encoding="utf-8"))
    version = pins["dependencies"]["@modelcontextprotocol/server"]
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    return f"{version}, Node {node.stdout.strip()}"


def _run(section: Section, load: Load, processes: list[Process]) -> None:
    bench = section.bench(FULL, QUICK)
    register(bench, load, processes, FEW if section.is_quick else CONNECTIONS)
    bench.run(harness.show_progress)
    note_latencies(bench, load)
    print("\nCPU time of the server process; p50 and p99 as clients see them")
    for group in bench.groups():
        bench.compare(group, rivals_of)
        harness.print_group(bench, group)
    harness.print_controls(bench)
    print_memory(section, load, processes)


if __name__ == "__main__":
    sys.exit(main())
