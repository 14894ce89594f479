"""A client that calls a tool which never returns, and waits to be killed."""

from __future__ import annotations

import asyncio
import sys

from trunkline import Client, Stdio

# Tells how the server has exited after the client is gone, and there is nobody to wait for it.
REPORT = 'status=$1; shift; "$@"; echo $? > "$status"'


async def main(marker: str, status: str) -> None:
    server = [sys.executable, __file__.replace("doomed_client", "server"), '{"grace": 0.2}']
    client = Client(Stdio(["/bin/sh", "-c", REPORT, "sh", status, *server]))
    await client.connect()
    await client.call_tool("announce", {"path": marker})


asyncio.run(main(*sys.argv[1:]))
