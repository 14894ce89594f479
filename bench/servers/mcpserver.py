"""The decorator server of mcp, with the tools that the benchmarks call.

A text that a tool returns is sent as text alone, as ours is; `default` is the same echo as mcp
sends it when it is not told otherwise, a second time as structured content.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel


class Measured(BaseModel):
    """A text and its length."""

    text: str
    length: int


async def echo(text: str) -> str:
    """Return the text."""
    return text


async def default(text: str) -> str:
    """Return the text."""
    return text


def plain(text: str) -> str:
    """Return the text, from a thread."""
    return text


async def structured(text: str) -> Measured:
    """Return the text and its length."""
    return Measured(text=text, length=len(text))


async def progress(ctx: Context, text: str) -> str:
    """Return the text after three reports."""
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3)
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


_STRUCTURED = ("structured", "default")


def make(*tools: str, **options: Any) -> MCPServer:
    """Return a server with these tools; `--tracing` among them enables that."""
    app = MCPServer("bench", version="1.0.0", **options)
    known = (echo, default, plain, structured, progress, *_gated())
    functions: dict[str, Any] = {each.__name__: each for each in known}
    if "--tracing" in tools:
        from opentelemetry.trace import set_tracer_provider

        from bench.servers.tracing import provider

        set_tracer_provider(provider())
    for name in tools:
        if name == "--tracing":
            continue
        # None leaves it to mcp, which then sends what it can in both forms.
        app.add_tool(functions[name], structured_output=None if name in _STRUCTURED else False)
    return app


if __name__ == "__main__":
    make(*sys.argv[1:]).run()
