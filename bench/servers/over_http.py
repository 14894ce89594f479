"""The servers of Python libraries over HTTP, one in each process, at a free port that is printed.

    python -m bench.servers.over_http own|asgi|mcp json|sse TOOL...

`own` is the HTTP server of Trunkline, `asgi` its ASGI application under uvicorn, `mcp` the
application of mcp under uvicorn. uvicorn finds httptools and uses it; the event loop is that of
asyncio for all. The form decides what mcp and `own` answer with; `asgi` decides by the Accept
header.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

PATH: Final = "/mcp"
# Connections are idle while other servers are measured.
_IDLE_S: Final = 600
# Two benchmarks have hundreds of clients; by default 1024 connections are open at most.
_CONNECTIONS: Final = 10_000


async def _own(tools: list[str], form: str) -> None:
    from bench.servers import ours
    from trunkline import HttpLimits
    from trunkline.transports.http import exchange

    if form == "sse":
        # Clients accept both forms, and a single answer would be JSON.
        exchange._accepted = lambda _accept: (False, True)
    limits = HttpLimits(idle_timeout=_IDLE_S, connections=_CONNECTIONS)
    async with ours.make(*tools).listen(f"http://127.0.0.1:0{PATH}", limits=limits) as listening:
        print(listening.address, flush=True)
        await listening.wait()


def _asgi(tools: list[str]) -> Any:
    from bench.servers import ours

    return ours.make(*tools).asgi(path=PATH)


def _mcp(tools: list[str], form: str) -> Any:
    from bench.servers import mcpserver

    return mcpserver.make(*tools).streamable_http_app(json_response=form == "json")


async def _under_uvicorn(application: Any) -> None:
    import uvicorn

    config = uvicorn.Config(
        application,
        host="127.0.0.1",
        port=0,
        loop="asyncio",
        log_level="warning",
        timeout_keep_alive=_IDLE_S,
    )
    # Not on a socket made here: uvicorn would leave Nagle's algorithm on.
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}{PATH}", flush=True)
    await serving


def main() -> None:
    """Serve until the process is ended."""
    server, form, *tools = sys.argv[1:]
    if server == "own":
        asyncio.run(_own(tools, form))
    else:
        asyncio.run(_under_uvicorn(_asgi(tools) if server == "asgi" else _mcp(tools, form)))


if __name__ == "__main__":
    main()
