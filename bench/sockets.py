"""Calls over sockets, client and server in two processes, against stdio: ours and mcp's.

    python -m bench.sockets

No rival has such a transport, so what is compared is what a user would do in its place: start
the same server on pipes. CPU time is that of both processes. Then so many connections are
opened to one server, and what its resident memory grows by is told per connection.

Every answer is checked.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bench import harness
from bench.harness import Bench, Case, Effort
from bench.section import Section
from bench.servers import driver
from bench.servers.driver import HANDSHAKE, NAMES
from bench.session import Held, at_once, echo, sequential
from bench.stdio import children_and_own
from trunkline import Client, Stdio

DISTRIBUTIONS: Final = ("trunkline", "msgspec", "mcp", "mcp-types", "pydantic", "anyio")

FULL: Final = Effort(30, 20_000_000, 100_000_000, fewest_singles=20, most_singles=1_000)
QUICK: Final = Effort(10, 10_000_000, 20_000_000, fewest_singles=10, most_singles=200)

ONE: Final = "one call after another"
CROWD: Final = "64 calls in flight"
PIPES: Final = "trunkline, stdio"
UNIX: Final = "trunkline, unix"
TCP: Final = "trunkline, tcp"
RIVAL: Final = f"{NAMES['mcpserver']}, stdio"
_CONNECTIONS: Final = 500


class Listening:
    """A server of ours in a process of its own, at an address."""

    def __init__(self, address: str) -> None:
        command = [*driver.command("ours", "echo"), "--listen", address]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        # It says where, once it listens.
        self.address = self._process.stdout.readline().strip()

    def rss(self) -> int:
        """Return its resident memory, in bytes."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * 4096

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()


def register(bench: Bench, held: Held, servers: dict[str, Listening]) -> None:
    """Add every case."""
    from mcp import Client as McpClient
    from mcp import StdioServerParameters

    program, *ours = driver.command("ours", "echo")
    _, *rival = driver.command("mcpserver", "echo")
    quiet = lambda _line: None  # noqa: E731  # what a server writes to stderr
    sides: dict[str, Any] = {
        PIPES: Client(Stdio(program, ours, on_stderr=quiet), revision=HANDSHAKE),
        RIVAL: McpClient(StdioServerParameters(command=program, args=rival), mode="legacy"),
    }
    for name, server in servers.items():
        sides[name] = Client(server.address, revision=HANDSHAKE)
    clients = {name: held.enter(client) for name, client in sides.items()}
    for group, arrange in ((ONE, sequential), (CROWD, at_once)):
        for name, client in clients.items():
            run, operations = arrange(held, echo(client))
            for _ in range(3):
                run(None)
            bench.add(Case(group, name, run, operations=operations))
        bench.control(group, UNIX)


async def per_connection(server: Listening) -> float:
    """Return what one connection costs a server, in bytes of resident memory."""
    clients = [Client(server.address, revision=HANDSHAKE) for _ in range(_CONNECTIONS + 20)]
    try:
        for number, client in enumerate(clients):
            if number == 20:
                before = server.rss()
            await client.connect()
            await client.call_tool("echo", {"text": "hi"})
        return (server.rss() - before) / _CONNECTIONS
    finally:
        await asyncio.gather(*(client.close() for client in clients))


def main() -> int:
    """Run it; the exit code says whether the targets hold."""
    about = "Client and server over TCP and Unix sockets, against mcp on stdio."
    section = Section("sockets", about, DISTRIBUTIONS)
    with tempfile.TemporaryDirectory() as folder:
        _run(section, folder)
    return section.conclude()


def _run(section: Section, folder: str) -> None:
    servers = {UNIX: Listening(f"unix:{folder}/s"), TCP: Listening("tcp://127.0.0.1:0")}
    held = Held()
    clock: list[Callable[[], int]] = [time.process_time_ns]
    bench = section.bench(FULL, QUICK, cpu_clock=lambda: clock[0]())
    register(bench, held, servers)
    clock[0] = children_and_own()
    bench.run(harness.show_progress)
    print("\n\nCPU time of client and server process together")
    for group in bench.groups():
        bench.compare(group, lambda _: [RIVAL])
        harness.print_group(bench, group)
    harness.print_controls(bench)
    clock[0] = time.process_time_ns
    held.close()
    connection = asyncio.run(per_connection(servers[UNIX])) / 1000
    print(f"\nmemory per connection, {_CONNECTIONS} of them: {connection:.2f} KB")
    section.value("memory per connection", UNIX, connection, "KB")
    for server in servers.values():
        server.close()


if __name__ == "__main__":
    sys.exit(main())
