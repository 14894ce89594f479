"""HTTP clients of one library in a process of their own, for their memory.

    python -m bench.servers.http_clients trunkline|mcp URL

Prints four numbers: resident memory in bytes after the imports, with one client that has made
some calls, and with 100 of them; and the CPU time of opening a client, in ns.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

_CLIENTS: Final = 100
_CALLS: Final = 100


def _rss() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _client(library: str, url: str) -> Any:
    if library == "trunkline":
        from trunkline import Client

        return Client(url, revision="2025-11-25")
    from mcp import Client as McpClient

    return McpClient(url, mode="legacy")


async def _call(client: Any, times: int) -> None:
    for number in range(times):
        text = f"call {number}"
        result = await client.call_tool("echo", {"text": text})
        if result.content[0].text != text:
            raise SystemExit(f"{result!r:.300} instead of {text!r}")


async def main(library: str, url: str) -> None:
    """Measure, and print."""
    _client(library, url)  # the imports
    sizes = [_rss()]
    async with AsyncExitStack() as stack:
        await _call(await stack.enter_async_context(_client(library, url)), _CALLS)
        sizes.append(_rss())
        spent = 0
        for _ in range(_CLIENTS - 1):
            client = _client(library, url)
            start = time.process_time_ns()
            await stack.enter_async_context(client)
            spent += time.process_time_ns() - start
            await _call(client, 1)
        sizes.append(_rss())
    print(*sizes, spent // (_CLIENTS - 1))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    asyncio.run(main(*sys.argv[1:]))
