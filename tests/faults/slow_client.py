"""A client with a slow `on_log`; prints its growth in MiB, and how many notifications it dropped.

`slow_client.py async|sync MESSAGES MIB` calls a tool that sends so many log messages of that size.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

from trunkline import Client, Stdio, SyncClient

PEER = [sys.executable, "-u", str(Path(__file__).with_name("peer.py")), "logs"]


def peak() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if "VmHWM" in line)


async def with_client(arguments: dict[str, int]) -> None:
    async def slow(message: Any) -> None:
        await asyncio.Event().wait()

    async with Client(Stdio(PEER), on_log=slow, revision="2025-11-25") as client:
        before = peak()
        result = await client.call_tool("logs", arguments)
        print(result.text, peak() - before, client.dropped_notifications)


def with_sync_client(arguments: dict[str, int]) -> None:
    go = threading.Event()
    with SyncClient(Stdio(PEER), on_log=lambda _: go.wait(), revision="2025-11-25") as client:
        before = peak()
        call = client.submit_tool("logs", arguments)
        # The outcome of a call waits for the callbacks before it: this is the call itself.
        while not call.done():
            threading.Event().wait(0.01)
        grown, dropped = peak() - before, client.dropped_notifications
        go.set()
        print(call.result().text, grown, dropped)


kind, messages, size = sys.argv[1:]
given = {"messages": int(messages), "size": int(size) << 20}
if kind == "sync":
    with_sync_client(given)
else:
    asyncio.run(with_client(given))
