"""A client over WebSocket in a process of its own, which makes calls when it is told to.

    python bench/servers/ws_client.py trunkline|mcp1 URL

`mcp1` is the client of mcp before 2.0, whose environment has no Trunkline. Commands come on stdin,
one in each line: `one`, for calls one after another, or `crowd`, for callers at once; each is
answered with one line when all answers have come. Every answer is checked.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

ROW: Final = 64
CROWD: Final = 64
EACH: Final = 4

Call = Callable[[str], Awaitable[Any]]


@asynccontextmanager
async def connected(library: str, url: str) -> AsyncIterator[Call]:
    """Connect a client; what it gives calls `echo` and returns the result."""
    if library == "trunkline":
        from trunkline import Client

        async with Client(url, revision="2025-11-25") as client:
            yield lambda text: client.call_tool("echo", {"text": text})
    else:
        from mcp import ClientSession
        from mcp.client.websocket import websocket_client

        async with websocket_client(url) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield lambda text: session.call_tool("echo", {"text": text})


async def checked(call: Call, count: int) -> None:
    """Make calls one after another, each with a text of its own."""
    for number in range(count):
        text = f"the quick brown fox, for the {number}th time"
        result = await call(text)
        if result.content[0].text != text:
            sys.exit(f"{result!r:.300} instead of {text!r}")


async def main(library: str, url: str) -> None:
    """Carry out commands until stdin ends."""
    loop = asyncio.get_running_loop()
    async with connected(library, url) as call:
        while True:
            command = (await loop.run_in_executor(None, sys.stdin.readline)).strip()
            if not command:
                return
            if command == "one":
                await checked(call, ROW)
            else:
                await asyncio.gather(*[checked(call, EACH) for _ in range(CROWD)])
            print("done", flush=True)


if __name__ == "__main__":
    # WebSocket of mcp is deprecated; the warning is not of interest here.
    warnings.simplefilter("ignore")
    asyncio.run(main(*sys.argv[1:]))
