"""An ASGI application in uvicorn, on a loopback port in this process; see `serving`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from tests.faults.http.serving import WAIT, Journal, Served
from trunkline import HttpLimits, HttpSettings, Server
from trunkline.server.runtime.asgi import AsgiApp
from trunkline.transports.http.endpoint.endpoint import McpEndpoint


class AsgiServed(Served):
    """A running application."""

    def __init__(self, app: Server, asgi: AsgiApp, journal: Journal) -> None:
        self.app = app
        self.journal = journal
        self.loop = asyncio.get_running_loop()
        self._asgi = asgi

    @property
    def endpoint(self) -> McpEndpoint:
        run = self._asgi._run
        assert run is not None
        assert run.endpoint is not None
        return run.endpoint


@contextmanager
def asgi_serving(
    app: Server,
    journal: Journal,
    *,
    http: HttpSettings | None = None,
    limits: HttpLimits | None = None,
    auth: Any = None,
) -> Iterator[AsgiServed]:
    """Serve on a free port until the block ends."""
    asgi = app.asgi("/mcp", http=http, limits=limits, auth=auth)
    config = uvicorn.Config(asgi, port=0, log_config=None, timeout_graceful_shutdown=1)
    server, started, is_up = uvicorn.Server(config), [], threading.Event()
    failed: list[BaseException] = []

    async def serve() -> None:
        served = AsgiServed(app, asgi, journal)
        serving = asyncio.create_task(server.serve())
        while not server.started and not serving.done():
            await asyncio.sleep(0.001)
        served.port = server.servers[0].sockets[0].getsockname()[1]
        started.append(served)
        is_up.set()
        await serving

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001  # raised in the thread of the test
            failed.append(error)
        is_up.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert is_up.wait(WAIT)
    if failed:
        raise failed[0]
    try:
        yield started[0]
    finally:
        server.should_exit = True
        thread.join(WAIT)
        assert not thread.is_alive(), "the server does not end"
        if failed:
            raise failed[0]
