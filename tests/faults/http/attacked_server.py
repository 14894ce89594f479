"""A server of 64 MiB, as a process: prints its port and its process, and ends with its input."""

from __future__ import annotations

import asyncio
import os
import sys

from tests.faults.http.serving import make_app
from trunkline import HttpLimits, HttpSettings, ServerLimits


async def main() -> None:
    app, _ = make_app(limits=ServerLimits(server_bytes=64 << 20))
    limits = HttpLimits(connections=2000)
    http = HttpSettings(websocket=True, old_sse=True)
    async with app.listen("http://127.0.0.1:0/mcp", http=http, limits=limits) as listener:
        print(listener.address.port, os.getpid(), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
