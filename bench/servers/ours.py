"""Our server, with the tools that the benchmarks call."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from trunkline import Context, Server, ServerLimits, SocketLimits


class Measured(Struct):
    """A text and its length."""

    text: str
    length: int


async def echo(text: str) -> str:
    """Return the text."""
    return text


def plain(text: str) -> str:
    """Return the text, from a thread."""
    return text


async def structured(text: str) -> Measured:
    """Return the text and its length."""
    return Measured(text, len(text))


async def progress(ctx: Context, text: str) -> str:
    """Return the text after three reports."""
    for step in (1, 2, 3):
        await ctx.progress(step, 3)
    return text


def _gated() -> list[Callable[[str], Awaitable[str]]]:
    # For each server anew: an event belongs to the loop that first waits for it.
    gate = asyncio.Event()

    async def hold(text: str) -> str:
        """Return the text once it may."""
        await gate.wait()
        return text

    async def release(text: str) -> str:
        """Let every `hold` go."""
        gate.set()
        return text

    return [hold, release]


# By default 1000 handlers of one client work at once and further calls wait, which costs less.
_MANY = 1_000_000


def make(*tools: str) -> Server:
    """Return a server with these tools; `--tracing` among them enables that."""
    limits = ServerLimits()
    if "hold" in tools:
        limits = ServerLimits(in_flight=_MANY, in_flight_overall=_MANY)
    app = Server("bench", version="1.0.0", limits=limits)
    known = (echo, plain, structured, progress, *_gated())
    functions: dict[str, Any] = {each.__name__: each for each in known}
    for name in tools:
        if name != "--tracing":
            app.tool(functions[name])
    if "--tracing" in tools:
        from bench.servers.tracing import provider

        app.enable_tracing(tracer_provider=provider())
    return app


async def listen(app: Server, address: str) -> None:
    """Listen, and print where, until the process is ended."""
    async with app.listen(address, limits=SocketLimits(connections=10_000)) as listening:
        print(listening.address, flush=True)
        await listening.wait()


if __name__ == "__main__":
    tools = sys.argv[1:]
    if "--listen" in tools:
        at = tools.index("--listen")
        asyncio.run(listen(make(*tools[:at]), tools[at + 1]))
    else:
        make(*tools).run()
