"""Calls of a tool over WebSocket, client and server in two processes, against mcp 1.30.

    python -m bench.websocket

MCP does not define WebSocket, and mcp 2 does not have it; mcp 1.30 does, and runs in an environment
of its own. What is compared, for calls one after another and for 64 at once:

* The server: both are called by the client of Trunkline. CPU time of the server process.
* The client: both call the server of Trunkline. CPU time of the client process.
* Both ends of each library. CPU time of both processes, and wall time.

Every answer is checked (`bench.servers.ws_client`). A client gets one command for many calls.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench import harness
from bench.harness import Bench, Case, Effort
from bench.section import Section
from bench.servers import driver, ws_client
from bench.servers.driver import HANDSHAKE, clock_of

DISTRIBUTIONS: Final = ("trunkline", "msgspec", "httptools", "websockets")

FULL: Final = Effort(30, 20_000_000, 0, fewest_singles=0, most_singles=0)
QUICK: Final = Effort(8, 10_000_000, 0, fewest_singles=0, most_singles=0)

OWN: Final = driver.NAMES["ours"]
RIVAL: Final = driver.NAMES["mcp1"]
SERVER, CLIENT, ENDS = "server", "client", "both ends"
ORDERS: Final = {
    "one": ("one call after another", ws_client.ROW),
    "crowd": (f"{ws_client.CROWD} calls in flight", ws_client.CROWD * ws_client.EACH),
}
_ROOT: Final = Path(__file__).parent.parent


class Program:
    """A server or a client in a process of its own."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
        )
        self._command = " ".join(command)
        self._clock = clock_of(self._process.pid)

    def line(self) -> str:
        """Return the next line of its output."""
        assert self._process.stdout is not None
        found = self._process.stdout.readline().strip()
        if not found:
            raise SystemExit(f"it ended: {self._command}")
        return found

    def tell(self, command: str) -> None:
        """Give a client a command, and wait until it is done."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        self.line()

    def cpu_ns(self) -> int:
        """Return the CPU time that it has used."""
        return time.clock_gettime_ns(self._clock)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def server_command(library: str) -> list[str]:
    """Return what starts a server."""
    if library == OWN:
        return [sys.executable, "-m", "bench.servers.over_http", "own", "ws", "echo"]
    return driver.command("mcp1", "--ws", "echo")


def client_command(library: str, address: str) -> list[str]:
    """Return what starts a client of the server at an address."""
    python = sys.executable if library == OWN else driver.command("mcp1")[0]
    kind = "trunkline" if library == OWN else "mcp1"
    url = address.replace("http://", "ws://")
    return [python, str(driver.SERVERS / "ws_client.py"), kind, url]


class Pairs:
    """Servers of both libraries, and a client for each pair that is measured."""

    def __init__(self, libraries: list[str], open_ones: ExitStack) -> None:
        def start(command: list[str]) -> Program:
            program = Program(command)
            open_ones.callback(program.close)
            return program

        self.servers = {library: start(server_command(library)) for library in libraries}
        addresses = {library: server.line() for library, server in self.servers.items()}
        self.clients = {
            (kind, library): start(client_command(*_ends(kind, library, addresses)))
            for kind in (SERVER, CLIENT, ENDS)
            for library in libraries
        }

    def register(self, bench: Bench) -> None:
        """Add every case."""
        for (kind, library), client in self.clients.items():
            server = self.servers[OWN if kind == CLIENT else library]
            measured = {SERVER: [server], CLIENT: [client], ENDS: [server, client]}[kind]
            for command, (order, calls) in ORDERS.items():

                def run(_: object, client: Program = client, command: str = command) -> None:
                    client.tell(command)

                def clock(measured: list[Program] = measured) -> int:
                    return sum(each.cpu_ns() for each in measured)

                for _ in range(3):
                    run(None)
                name = f"{library} {HANDSHAKE}"
                bench.add(Case(f"{kind}, {order}", name, run, operations=calls, cpu_clock=clock))
        for group in bench.groups():
            bench.control(group, f"{OWN} {HANDSHAKE}")


def _ends(kind: str, library: str, addresses: dict[str, str]) -> tuple[str, str]:
    """Return the library of the client, and the address of the server."""
    client = OWN if kind == SERVER else library
    return client, addresses[OWN if kind == CLIENT else library]


def main() -> int:
    """Run it; the exit code says whether the targets hold."""
    about = "Client and server over WebSocket, against mcp 1.30, which has that transport."
    section = Section("websocket", about, DISTRIBUTIONS)
    libraries = [OWN]
    if driver.is_available("mcp1"):
        libraries.append(RIVAL)
        section.facts |= driver.versions()
    bench = section.bench(FULL, QUICK)
    with ExitStack() as open_ones:
        Pairs(libraries, open_ones).register(bench)
        bench.run(harness.show_progress)
    print("\nCPU time of the process that a group is about; wall times are those of both")
    for group in bench.groups():
        bench.compare(group, lambda _: [f"{RIVAL} {HANDSHAKE}"])
        harness.print_group(bench, group)
    harness.print_controls(bench)
    return section.conclude()


if __name__ == "__main__":
    sys.exit(main())
