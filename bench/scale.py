"""Scale: what grows with the number of calls, tools, requests and sessions, and how fast.

    python -m bench.scale

* Calls in flight: a tool that does not return yet is called 10 000 times over stdio; what the
  server's resident memory grows by, per call. Then all are let go and every answer is checked.
* Tools: a call, by names over the whole set, among 100 tools and among 10 000; what it costs to
  register one, and to list them all.
* Requests: a call of a client that already waits for 0, 1000 or 100 000 answers. The other end
  answers with fixed bytes, so that this is the client's cost alone.
* Sessions: memory of sessions in one process, both ends and the server's alone, by tracemalloc.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any, Final

from bench import harness
from bench.harness import Bench, Case, Effort, check
from bench.section import Section
from bench.servers import mcpserver, ours
from bench.servers.deaf import Deaf
from bench.servers.driver import HANDSHAKE, NAMES, Driver, Server
from bench.session import Held, echo, texts
from trunkline import Client, memory_pair
from trunkline import Server as TrunklineServer

DISTRIBUTIONS: Final = ("trunkline", "msgspec", "mcp", "mcp-types", "pydantic", "anyio")

FULL: Final = Effort(40, 10_000_000, 30_000_000, fewest_singles=100, most_singles=1_000)
QUICK: Final = Effort(10, 4_000_000, 10_000_000, fewest_singles=10, most_singles=100)

TOOLS: Final = "a call among so many tools"
PENDING: Final = "a call beside so many that wait"
_ROW: Final = 16
_FEW_TOOLS, _MANY_TOOLS = 100, 10_000
# mcp takes 2 ms to register a tool; the cost of one does not depend on how many there are.
_REGISTERED: Final = 1000
_SESSIONS: Final = 200


# --- calls in flight


def held_bytes(server: Server, count: int) -> float:
    """Return what one call that does not return yet costs a server on stdio, in bytes."""
    driver = Driver(server, "echo", "hold", "release")
    try:
        driver.open()
        driver.call("echo", texts(100))
        before = driver.rss()
        wanted = driver.send("hold", texts(count))
        # Messages are taken in order, so when this is answered all others are under way.
        probe = driver.send("echo", ("are they?",))
        driver.receive(probe)
        grown = driver.rss() - before
        # The answers of those that wait may come before that of `release` itself.
        driver.receive(wanted | driver.send("release", ("go",)))
    finally:
        driver.close()
    return grown / count


def print_held(section: Section, count: int) -> None:
    """Print the memory of a call in flight."""
    print(f"\nmemory per call in flight, {count} calls (growth of the server's resident memory):")
    for server in ("ours", "mcpserver"):
        size = held_bytes(server, count) / 1000
        print(f"  {NAMES[server]:<34}{size:8.2f} KB")
        section.value("memory per call in flight", NAMES[server], size, "KB")


# --- tools


def _new_tool() -> Callable[[str], Awaitable[str]]:
    # A function of its own for every tool, as in a program.
    async def tool(text: str) -> str:
        """Return the text."""
        return text

    return tool


def with_tools(count: int) -> tuple[TrunklineServer, float]:
    """Return a server of ours with so many tools, and what one took to register, in us."""
    app = TrunklineServer("bench")
    began = time.process_time_ns()
    for number in range(count):
        app.add_tool(_new_tool(), f"tool_{number}")
    return app, (time.process_time_ns() - began) / count / 1000


def mcp_with_tools(count: int) -> tuple[Any, float]:
    """Return a server of mcp with so many tools, and what one took to register, in us."""
    app = mcpserver.make()
    began = time.process_time_ns()
    for number in range(count):
        app.add_tool(_new_tool(), name=f"tool_{number}", structured_output=False)
    return app, (time.process_time_ns() - began) / count / 1000


def register_tools(section: Section, bench: Bench, held: Held) -> None:
    """Add a call among few and among many tools, and print what registering and listing cost."""
    from mcp import Client as McpClient

    print(f"\n{'tools':<36}{'register':>12}{'list all, first':>18}{'again':>12}   per tool")
    for count in (_FEW_TOOLS, _MANY_TOOLS):
        app, registered = with_tools(count)
        client = held.enter(Client(app, revision=HANDSHAKE, cache=False))
        name = f"{NAMES['ours']}, {count} tools"
        _print_listing(section, held, name, count, registered, client.list_tools)
        _add_calls(bench, held, client, count)
    rival, registered = mcp_with_tools(_REGISTERED)
    session = held.enter(McpClient(rival, mode="legacy", cache=None))

    async def listed() -> list[Any]:
        return (await session.list_tools()).tools

    name = f"{NAMES['mcpserver']}, {_REGISTERED} tools"
    _print_listing(section, held, name, _REGISTERED, registered, listed)
    bench.control(TOOLS, f"{_FEW_TOOLS} tools")


def _print_listing(
    section: Section,
    held: Held,
    name: str,
    count: int,
    registered: float,
    listed: Callable[[], Any],
) -> None:
    spent = []
    for _ in range(3):
        began = time.process_time_ns()
        found = held.run(listed())
        spent.append((time.process_time_ns() - began) / count / 1000)
        check([tool.name for tool in found], [f"tool_{number}" for number in range(count)])
    first, *again = spent
    print(f"  {name:<34}{registered:>9.1f} us{first:>15.2f} us{min(again):>9.2f} us")
    section.value("registering a tool", name, registered, "us")
    section.value("listing all, per tool", name, min(again), "us")


def _add_calls(bench: Bench, held: Held, client: Any, count: int) -> None:
    # Names over the whole set: a call that always hits the same entry would find it cached.
    step = count // _ROW
    calls = [echo(client, f"tool_{number * step}") for number in range(_ROW)]
    given = texts(_ROW)

    async def row() -> None:
        for call, text in zip(calls, given, strict=True):
            await call(text)

    held.run(row())
    bench.add(Case(TOOLS, f"{count} tools", lambda _: held.run(row()), operations=_ROW))


# --- requests that wait


def register_pending(bench: Bench, held: Held, counts: tuple[int, ...]) -> None:
    """Add a call of clients that wait for more and more answers."""
    for count in counts:
        other = Deaf()
        held.run(other.connect())
        client = held.enter(Client(other.client_end, revision=HANDSHAKE, timeout=600))
        held.run(_wait_for(client, count))
        name = f"{count} that wait"
        bench.add(Case(PENDING, name, _caller(held, client), operations=_ROW))
    bench.control(PENDING, f"{counts[0]} that wait")


async def _wait_for(client: Any, count: int) -> None:
    for _ in range(count):
        client.submit_tool("hold", {})


def _caller(held: Held, client: Any) -> Callable[[Any], object]:
    async def row() -> None:
        for _ in range(_ROW):
            result = await client.call_tool("echo", {"text": "hi"})
            check(result.content[0].text, "hi")

    return lambda _: held.run(row())


# --- sessions


_HANDSHAKE: Final = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":'
    b'{"name":"echo","arguments":{"text":"hello"}}}',
)


async def _server_end(app: TrunklineServer) -> Any:
    """Return what keeps a session open of which only the server's end is ours."""
    near, far = memory_pair()
    serving = asyncio.ensure_future(app.serve(far))
    answers: list[Any] = []
    near.on_message = lambda frame, _route: answers.append(frame)
    await near.connect()
    for message in _HANDSHAKE:
        near.send(message)
    while len(answers) < 2:
        await asyncio.sleep(0)
    check(json.loads(answers[1])["result"]["content"][0]["text"], "hello")
    answers.clear()
    return near, serving


async def _both_ends(client: Any) -> Any:
    """Return a client that is open and has called once."""
    await client.__aenter__()
    await echo(client)("hello")
    return client


async def _grown(open_one: Callable[[], Awaitable[Any]], count: int) -> float:
    """Return the bytes that one of `count` open things holds."""
    kept = [await open_one() for _ in range(3)]
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(count):
        kept.append(await open_one())
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    _LEFT_OPEN.append(kept)
    tracemalloc.stop()
    return grown / count


def print_sessions(section: Section, count: int) -> None:
    """Print what open sessions hold."""
    from mcp import Client as McpClient

    # A server of its own for each: a server belongs to the event loop that it is served on.
    app, alone, rival = ours.make("echo"), ours.make("echo"), mcpserver.make("echo")
    kinds: dict[str, Callable[[], Awaitable[Any]]] = {
        f"{NAMES['ours']}, both ends": lambda: _both_ends(Client(app, revision=HANDSHAKE)),
        f"{NAMES['ours']}, the server's end": lambda: _server_end(alone),
        f"{NAMES['mcpserver']}, both ends": lambda: _both_ends(McpClient(rival, mode="legacy")),
    }
    print(f"\nmemory per 1000 sessions in one process ({count} were opened):")
    for name, open_one in kinds.items():
        # Left open, and with it a loop that is never run again: a rival's can be left only by
        # the task that entered them, in the opposite order.
        loop = asyncio.new_event_loop()
        held = loop.run_until_complete(_grown(open_one, count))
        _LEFT_OPEN.append(loop)
        print(f"  {name:<34}{held / 1000:8.2f} MB")
        section.value("1000 sessions in one process", name, held / 1000, "MB")


_LEFT_OPEN: Final[list[Any]] = []


# --- running


def main() -> int:
    """Run the benchmark; the exit code says whether it holds."""
    about = "What a call costs among many calls, tools, requests and sessions, and their memory."
    section = Section("scale", about, DISTRIBUTIONS)
    print_held(section, 2_000 if section.is_quick else 10_000)
    print_sessions(section, _SESSIONS)
    counts = (0, 1_000, 100_000)
    bench, held = section.bench(FULL, QUICK), Held()
    register_tools(section, bench, held)
    register_pending(bench, held, counts)
    bench.run(harness.show_progress)
    bench.compare(TOOLS, lambda _: [f"{_FEW_TOOLS} tools"])
    bench.compare(PENDING, lambda _: [f"{counts[0]} that wait"])
    for group in bench.groups():
        harness.print_group(bench, group)
    harness.print_overhead(bench)
    harness.print_controls(bench)
    held.close()
    return section.conclude()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Sessions were left open on purpose; ending them in order is not what is measured.
    os._exit(code)
