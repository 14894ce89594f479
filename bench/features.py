"""What a call costs with tracing, progress or authorization on, against mcp with the same on.

    python -m bench.features

The main rows of `bench.stdio` and `bench.http_server` again, with one feature each:

* Tracing: OpenTelemetry with its SDK. Every span is recorded, finished and dropped.
* Progress: the call asks for it, and the tool reports three times; over HTTP, in an event stream.
* Authorization, over HTTP: each request has the same JWT of Ed25519, whose key is at hand. mcp
  checks its signature each time; Trunkline, with the same library, once.

CPU time is that of the server process. The price of a feature is the best CPU time with it, without
that of a plain call. Every answer is checked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

from bench import harness
from bench.harness import Bench, Case, Effort
from bench.http_server import Load, Process, Row, cores, group_name
from bench.section import Section
from bench.servers.driver import HANDSHAKE, NAMES, Driver, Server
from bench.servers.tokens import ALGORITHM, claims
from bench.session import texts
from trunkline.auth import SigningKey

DISTRIBUTIONS: Final = (
    *("trunkline", "msgspec", "httptools", "mcp", "pydantic", "uvicorn", "starlette"),
    *("opentelemetry-sdk", "joserfc", "cryptography"),
)

FULL: Final = Effort(20, 30_000_000, 0, fewest_singles=0, most_singles=0)
QUICK: Final = Effort(5, 15_000_000, 0, fewest_singles=0, most_singles=0)

LIBRARIES: Final[dict[Server, str]] = {"ours": NAMES["ours"], "mcpserver": NAMES["mcpserver"]}
SEQUENTIAL: Final = "stdio, one call after another"
CROWD: Final = "stdio, 64 calls in flight"
HTTP: Final = group_name("HTTP", 64)
PLAIN, TRACING, PROGRESS, AUTH = "plain", "tracing", "three progress reports", "authorization"
_CONNECTIONS: Final = 64
_ROW: Final = 16


class Http(NamedTuple):
    """A feature over HTTP: options of the server, and what the load generator sends."""

    feature: str
    options: tuple[str, ...] = ()
    form: str = "json"
    tool: str = "echo"
    headers: dict[str, str] | None = None


def features_of_http() -> list[Http]:
    """Return every feature, with a key and a token of this run."""
    signer = SigningKey.generate(ALGORITHM, key_id="2026-01")
    key = json.dumps(signer.public_jwk)
    token = signer.sign(claims(), {"typ": "at+jwt"})
    return [
        Http(PLAIN),
        Http(TRACING, ("--tracing",)),
        Http(PROGRESS, form="sse", tool="progress"),
        Http(AUTH, ("--auth", key), headers={"Authorization": f"Bearer {token}"}),
    ]


# --- stdio


class Drivers:
    """A server on stdio for each library and feature."""

    def __init__(self, open_ones: ExitStack) -> None:
        self.all: dict[str, tuple[Driver, str]] = {}
        for server, library in LIBRARIES.items():
            for feature, tools, reports in (
                (PLAIN, ("echo",), False),
                (TRACING, ("--tracing", "echo"), False),
                (PROGRESS, ("progress",), True),
            ):
                driver = Driver(server, *tools, reports=reports)
                open_ones.callback(driver.close)
                self.all[f"{library}, {feature}"] = driver, tools[-1]
        for driver, _ in self.all.values():
            driver.open()

    def register(self, bench: Bench) -> None:
        """Add every case."""
        row, crowd = texts(_ROW), texts(_CONNECTIONS)
        for name, (driver, tool) in self.all.items():

            def one_by_one(_: Any, driver: Driver = driver, tool: str = tool) -> None:
                for text in row:
                    driver.call(tool, (text,))

            def in_flight(_: Any, driver: Driver = driver, tool: str = tool) -> None:
                driver.call(tool, crowd)

            _add(bench, SEQUENTIAL, name, one_by_one, len(row), driver.cpu_ns)
            _add(bench, CROWD, name, in_flight, len(crowd), driver.cpu_ns)


def _add(
    bench: Bench,
    group: str,
    name: str,
    run: Callable[[Any], object],
    operations: int,
    clock: harness.Clock,
) -> None:
    for _ in range(3):
        run(None)
    bench.add(Case(group, name, run, operations=operations, cpu_clock=clock))


# --- HTTP


class Servers:
    """A server over HTTP for each library and feature, and the load generator."""

    def __init__(self, open_ones: ExitStack) -> None:
        server_cores, load_cores = cores()
        self._load = Load(load_cores)
        open_ones.callback(self._load.close)
        self._all: list[tuple[str, Http, Process]] = []
        for library in LIBRARIES.values():
            for feature in features_of_http():
                row = Row(library, HANDSHAKE, feature.form, feature.options)
                process = Process(row, server_cores)
                open_ones.callback(process.close)
                self._all.append((library, feature, process))

    def register(self, bench: Bench) -> None:
        """Add every case."""
        for library, feature, process in self._all:
            name = f"{library}, {feature.feature}"
            self._load.ask(
                "open",
                pool=name,
                port=process.port,
                revision=HANDSHAKE,
                accept="application/json, text/event-stream",
                tool=feature.tool,
                connections=_CONNECTIONS,
                headers=feature.headers,
            )
            run = {"pool": name, "connections": _CONNECTIONS, "varies": ""}
            process.add(bench, self._load, HTTP, name, run)


# --- running


def rivals_of(name: str) -> list[str]:
    """Return what a case is compared with: mcp with the same feature."""
    return [f"{NAMES['mcpserver']}, {name.partition(', ')[2]}"]


def print_prices(section: Section, bench: Bench) -> None:
    """Print what each feature costs beside a plain call."""
    print(f"\n{'beside a plain call':<46}{'trunkline':>12}{'mcp':>12}")
    for group in bench.groups():
        for feature in (TRACING, PROGRESS, AUTH):
            prices = []
            for library in LIBRARIES.values():
                plain = bench.best(group, f"{library}, {PLAIN}")
                whole = bench.best(group, f"{library}, {feature}")
                if plain is not None and whole is not None:
                    prices.append((whole - plain) / 1000)
                    name = f"price of {feature}, {group}"
                    section.value(name, library, prices[-1], "us")
            if prices:
                numbers = "".join(f"{each:9.1f} us" for each in prices)
                print(f"  {f'{group}, {feature}':<44}{numbers}")


def main() -> int:
    """Run it; the exit code says whether the targets hold."""
    about = "Tracing, progress and authorization switched on, against mcp with the same on."
    section = Section("features", about, DISTRIBUTIONS)
    bench = section.bench(FULL, QUICK)
    with ExitStack() as open_ones:
        Drivers(open_ones).register(bench)
        Servers(open_ones).register(bench)
        for group in bench.groups():
            bench.control(group, f"{NAMES['ours']}, {PLAIN}")
        bench.run(harness.show_progress)
    print("\nCPU time of the server process")
    for group in bench.groups():
        bench.compare(group, rivals_of)
        harness.print_group(bench, group)
    print_prices(section, bench)
    harness.print_controls(bench)
    return section.conclude()


if __name__ == "__main__":
    sys.exit(main())
