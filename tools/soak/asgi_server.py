"""The server of the soak test as an ASGI application, in uvicorn on a free port."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable

import uvicorn

from trunkline import HttpLimits, HttpSettings, Server

__all__ = ["run_asgi"]

_PATH = "/mcp"


def run_asgi(
    app: Server, limits: HttpLimits, http: HttpSettings, on_ready: Callable[[str], object]
) -> None:
    """Serve until a signal; `on_ready` is called with the URL when the server listens."""
    # uvicorn shuts down on a signal, then raises it again for the handler that was there before.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    # An event loop of asyncio, because the census looks into it.
    asyncio.run(_serve(app, limits, http, on_ready))


async def _serve(
    app: Server, limits: HttpLimits, http: HttpSettings, on_ready: Callable[[str], object]
) -> None:
    sock = socket.create_server(("127.0.0.1", 0), backlog=limits.backlog)
    config = uvicorn.Config(
        app.asgi(_PATH, http=http, limits=limits),
        log_config=None,
        access_log=False,
        # The clients of a busy machine take their time between two requests.
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    on_ready(f"http://127.0.0.1:{sock.getsockname()[1]}{_PATH}")
    await serving
