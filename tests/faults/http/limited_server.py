"""A server with few descriptors, as a process: `limited_server.py DESCRIPTORS`."""

from __future__ import annotations

import asyncio
import os
import resource
import sys

import trunkline.transports.http.server.http_server as http_server
from tests.faults.http.serving import make_app


async def main(descriptors: int) -> None:
    app, _ = make_app()
    http_server._SLOW_REQUEST_S = 0.2  # type: ignore[misc]  # in place of two seconds
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    async with app.listen("http://127.0.0.1:0/mcp") as listener:
        print(listener.address.port, os.getpid(), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
