"""Calls of a tool in one process, client and server together, against mcp.

    python -m bench.session

Every library connects its own client to its own server in memory and calls the same tools. Ours
turns every message into bytes and back. So does mcp's `legacy` session with objects in place
of bytes; its `auto` mode calls the server directly, without messages.

A call is what a user writes: `await client.call_tool(name, arguments)`, and a look at the
answer, which is compared with what was sent. Sequential calls are timed 16 at a time, because
entering and leaving the event loop costs as much as a call of ours. Of 64 at once, each caller
makes 4 calls one after another.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar

from bench import harness
from bench.harness import Bench, Case, Effort, check
from bench.section import Section
from bench.servers import lowlevel, mcpserver, ours
from bench.servers.driver import HANDSHAKE, PER_REQUEST
from trunkline import Client

DISTRIBUTIONS: Final = ("trunkline", "msgspec", "mcp", "mcp-types", "pydantic", "anyio")

# A rival's call takes up to a millisecond, so a round holds few of them and there are many rounds.
FULL: Final = Effort(30, 10_000_000, 60_000_000, fewest_singles=20, most_singles=500)
QUICK: Final = Effort(10, 4_000_000, 10_000_000, fewest_singles=10, most_singles=100)

OURS: Final = f"trunkline {HANDSHAKE}"
OURS_PER_REQUEST: Final = f"trunkline {PER_REQUEST}"
MCP: Final = "mcp legacy"
MCP_AUTO: Final = "mcp auto"

SEQUENTIAL: Final = "echo, one after another"
AT_ONCE: Final = "echo, 64 at once"
_ROW: Final = 16
_CROWD: Final = 64
_EACH: Final = 4
_STEPS: Final = 3

T = TypeVar("T")
Call = Callable[[str], Awaitable[None]]
"""Calls a tool with a text and checks the answer."""


class Held:
    """Clients that stay open between rounds, all on one event loop.

    Each lives in a task of its own, since mcp's must be left by the task that entered them.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        """Open a client and keep it open."""
        opened: asyncio.Future[T] = self._loop.create_future()

        async def live() -> None:
            async with context as client:
                opened.set_result(client)
                await self._stop.wait()

        task = self._loop.create_task(live())
        self._tasks.append(task)
        self._loop.run_until_complete(
            asyncio.wait({opened, task}, return_when=asyncio.FIRST_COMPLETED)
        )
        if not opened.done():
            task.result()
        return opened.result()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the loop of the clients."""
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        """Close all clients."""
        self._stop.set()
        for task in self._tasks:
            self._loop.run_until_complete(task)
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def texts(count: int) -> list[str]:
    """Return texts of a usual length, no two alike."""
    return [f"the quick brown fox, for the {number}th time" for number in range(count)]


# --- what is called, and how its answer is looked at


def echo(client: Any, tool: str = "echo") -> Call:
    """Text in, text out."""

    async def call(text: str) -> None:
        result = await client.call_tool(tool, {"text": text})
        check(result.content[0].text, text)

    return call


def structured(client: Any) -> Call:
    """Text in, a typed object out, read as a dict."""

    async def call(text: str) -> None:
        result = await client.call_tool("structured", {"text": text})
        check(result.structured_content, {"text": text, "length": len(text)})

    return call


def progress_of_ours(client: Any) -> Call:
    """Text in, three reports and the text out."""

    async def call(text: str) -> None:
        seen: list[float] = []
        result = await client.call_tool(
            "progress", {"text": text}, on_progress=lambda done, _total, _text: seen.append(done)
        )
        check((result.content[0].text, len(seen)), (text, _STEPS))

    return call


def progress_of_mcp(client: Any) -> Call:
    """The same, with the coroutine that mcp wants."""

    async def call(text: str) -> None:
        seen: list[float] = []

        async def note(done: float, _total: float | None, _text: str | None) -> None:
            seen.append(done)

        result = await client.call_tool("progress", {"text": text}, progress_callback=note)
        # A session of mcp hands each report to a task; the result may overtake the last ones.
        for _ in range(100):
            if len(seen) == _STEPS:
                break
            await asyncio.sleep(0)
        check((result.content[0].text, len(seen)), (text, _STEPS))

    return call


# --- cases


def sequential(held: Held, call: Call) -> tuple[Callable[[Any], object], int]:
    """Return what makes calls one after another, and how many."""
    given = texts(_ROW)

    async def row() -> None:
        for text in given:
            await call(text)

    return lambda _: held.run(row()), _ROW


def at_once(held: Held, call: Call) -> tuple[Callable[[Any], object], int]:
    """Return what makes calls from many callers at once, and how many."""
    given = texts(_EACH)

    async def caller() -> None:
        for text in given:
            await call(text)

    async def crowd() -> None:
        await asyncio.gather(*[caller() for _ in range(_CROWD)])

    return lambda _: held.run(crowd()), _CROWD * _EACH


def register(bench: Bench, held: Held) -> None:
    """Open every client and add every case."""
    from mcp import Client as McpClient

    tools = ("echo", "plain", "structured", "progress")
    app, rival, low = ours.make(*tools), mcpserver.make(*tools, "default"), lowlevel.make("echo")
    sides: dict[str, Any] = {
        OURS: Client(app, revision=HANDSHAKE),
        OURS_PER_REQUEST: Client(app, revision=PER_REQUEST),
        MCP: McpClient(rival, mode="legacy"),
        MCP_AUTO: McpClient(rival, mode="auto"),
        "mcp low-level legacy": McpClient(low, mode="legacy"),
        "mcp low-level auto": McpClient(low, mode="auto"),
    }
    clients = {name: held.enter(client) for name, client in sides.items()}
    for group, arrange in ((SEQUENTIAL, sequential), (AT_ONCE, at_once)):
        for name, client in clients.items():
            _add(bench, group, name, arrange(held, echo(client)))
        twice = echo(clients[MCP], "default")
        _add(bench, group, f"{MCP}, text twice", arrange(held, twice))
        bench.control(group, OURS)
        bench.control(group, MCP)
    four = {name: clients[name] for name in (OURS, OURS_PER_REQUEST, MCP, MCP_AUTO)}
    for name, client in four.items():
        report = progress_of_mcp if name.startswith("mcp") else progress_of_ours
        _add(bench, "three progress reports and a text", name, sequential(held, report(client)))
    for name, client in four.items():
        _add(bench, "structured output", name, sequential(held, structured(client)))
    for name, client in four.items():
        _add(bench, "a function on a thread", name, sequential(held, echo(client, "plain")))


def _add(bench: Bench, group: str, name: str, made: tuple[Callable[[Any], object], int]) -> None:
    run, operations = made
    run(None)
    bench.add(Case(group, name, run, operations=operations))


def rivals_of(name: str) -> list[str]:
    """Return what a case is compared with: mcp in the same era."""
    is_auto = PER_REQUEST in name or "auto" in name
    if name.startswith("mcp"):
        return [MCP_AUTO if is_auto else MCP]
    if is_auto:
        return [MCP_AUTO, "mcp low-level auto"]
    return [MCP, "mcp low-level legacy", f"{MCP}, text twice"]


def main() -> int:
    """Run the benchmark; the exit code says whether it holds."""
    about = "A tool called by a client in the process of the server, against mcp."
    section = Section("session", about, DISTRIBUTIONS)
    bench = section.bench(FULL, QUICK)
    held = Held()
    register(bench, held)
    bench.run(harness.show_progress)
    for group in bench.groups():
        bench.compare(group, rivals_of)
        harness.print_group(bench, group)
    harness.print_overhead(bench)
    harness.print_controls(bench)
    held.close()
    return section.conclude()


if __name__ == "__main__":
    sys.exit(main())
