"""HTTP as a carrier of scripts: our own listener, our ASGI application under uvicorn, old SSE.

The client is the plain one of `tests.http_client`. Each connection has a server of its own, in
this process, which ends with it. One uvicorn serves the applications of all connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

import uvicorn

from tests.conversation.app import VARIANTS
from tests.conversation.journal import HANGS
from tests.conversation.server_log import ServerLog
from tests.http_client.old_sse import OldSseTransport
from tests.http_client.streamable import StreamableHttpTransport
from trunkline import HttpSettings, Server
from trunkline.errors import TransportError
from trunkline.jsonrpc import Policy
from trunkline.judge import TraceEntry
from trunkline.spec.revisions import V2026_07_28, Window

_ANY_PORT: Final = "http://127.0.0.1:0/mcp"


# -- hosts -----------------------------------------------------------------------------------


class Host(Protocol):
    """What runs a server for one connection."""

    async def open(self) -> str: ...

    async def close(self) -> None: ...


class ListenerHost:
    """Our own listener, on a port that the system chooses."""

    def __init__(self, app: Server) -> None:
        self._listening = app.listen(_ANY_PORT)

    async def open(self) -> str:
        await self._listening.__aenter__()
        return str(self._listening.address)

    async def close(self) -> None:
        await self._listening.close()


class OldSseHost:
    """Our own listener with the paths of the older transport."""

    def __init__(self, app: Server) -> None:
        self._listening = app.listen(_ANY_PORT, http=HttpSettings(old_sse=True))

    async def open(self) -> str:
        await self._listening.__aenter__()
        return str(self._listening.address).removesuffix("/mcp") + "/sse"

    async def close(self) -> None:
        await self._listening.close()


class Uvicorn:
    """One uvicorn on a loopback port, which runs while it has an application."""

    def __init__(self) -> None:
        self._apps: dict[str, Any] = {}
        self._count = 0
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None

    async def add(self, app: Server) -> str:
        """Serve an application at a path of its own; return its URL."""
        self._count += 1
        path = f"/{self._count}/mcp"
        self._apps[path] = app.asgi(path=path, hosts=["127.0.0.1"])
        if self._server is None:
            config = uvicorn.Config(
                self._dispatch,
                interface="asgi3",
                port=0,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
            )
            self._server = uvicorn.Server(config)
            self._serving = asyncio.create_task(self._server.serve())
        async with asyncio.timeout(HANGS):
            while not self._server.started:
                await asyncio.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}{path}"

    async def remove(self, path: str) -> None:
        """Serve an application no longer; the last one ends uvicorn."""
        await self._apps.pop(path).close()
        if self._apps or self._server is None or self._serving is None:
            return
        server, self._server = self._server, None
        server.should_exit = True
        await asyncio.wait_for(self._serving, HANGS)

    async def _dispatch(self, scope: Any, receive: Any, send: Any) -> None:
        app = self._apps.get(scope["path"])
        if app is not None:
            await app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})


_UVICORN: Final = Uvicorn()


class UvicornHost:
    """Our ASGI application, under uvicorn."""

    def __init__(self, app: Server) -> None:
        self._app = app
        self._path = ""

    async def open(self) -> str:
        url = await _UVICORN.add(self._app)
        self._path = url[url.index("/", len("http://")) :]
        return url

    async def close(self) -> None:
        if self._path:
            path, self._path = self._path, ""
            await _UVICORN.remove(path)


class RunningHost:
    """A server that others use as well, and that outlives each connection."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def open(self) -> str:
        return self._url

    async def close(self) -> None: ...


# -- connections -----------------------------------------------------------------------------


class HostedHttp:
    """A connection of the test client to a server that is hosted for it alone.

    It is a transport for a client, and a wire for a script that writes its own messages: each
    line is a POST.
    """

    def __init__(self, host: Host, policy: Policy) -> None:
        self._host = host
        self._policy = policy
        self._inner: Any = None
        self._log: ServerLog | None = None
        self.on_message: Callable[[Any, Any], object] = lambda frame, _: self.on_line(frame)
        self.on_error: Callable[[TransportError | None], object] = lambda error: None
        self.on_drained: Callable[[], object] = lambda: None
        self.on_line: Callable[[bytes], object] = lambda line: None

    @property
    def is_connected(self) -> bool:
        return self._inner is not None and self._inner.is_connected

    @property
    def backlog(self) -> int:
        return 0 if self._inner is None else self._inner.backlog

    @property
    def written(self) -> int:
        return 0 if self._inner is None else self._inner.written

    async def connect(self) -> None:
        try:
            self._inner = self._dial(await self._host.open())
            self._inner.on_message = lambda frame, route: self.on_message(frame, route)
            self._inner.on_error = lambda error: self.on_error(error)
            await self._inner.connect()
        except BaseException:  # a cancellation too: the listener would stay
            await self._host.close()
            raise

    def _dial(self, url: str) -> Any:
        raise NotImplementedError

    def send(self, frame: bytes, route: Any = None) -> None:
        self._inner.send(frame, route)

    async def close(self) -> None:
        try:
            if self._inner is not None:
                await self._inner.close()
        finally:
            await self._host.close()
            if self._log is not None:
                self._log.close()

    # As a wire

    async def open_wire(self) -> None:
        self._log = ServerLog()
        await self.connect()

    def log(self) -> str:
        assert self._log is not None
        return self._log.text()

    def write(self, line: bytes) -> None:
        self.send(line)

    async def end_server(self) -> None:
        """End the server while the client is still there."""
        await self._host.close()

    @property
    def is_open(self) -> bool:
        return self.is_connected


class HostedStreamable(HostedHttp):
    """Over Streamable HTTP; a judge is told of each request, response and event."""

    name = "http"

    def __init__(self, host: Host, policy: Policy) -> None:
        super().__init__(host, policy)
        self.on_entry: Callable[[TraceEntry], object] = lambda entry: None
        # The revision of a script, for messages that do not tell.
        self.speaks: Callable[[], str | None] = lambda: None

    def drop_streams(self) -> None:
        """Lose the connections of all streams, as a network does."""
        self._inner.drop_streams()

    def _dial(self, url: str) -> StreamableHttpTransport:
        inner = StreamableHttpTransport(url, self._policy)
        inner.on_entry = lambda entry: self.on_entry(entry)
        inner.speaks = lambda: self.speaks()
        return inner


class HostedOldSse(HostedHttp):
    """Over the HTTP+SSE of 2024-11-05."""

    name = "sse"

    def _dial(self, url: str) -> OldSseTransport:
        return OldSseTransport(url, self._policy)


class HttpAddress:
    """Where a client connects to; `host` gives the server of each connection."""

    def __init__(
        self, host: Callable[[], Host], connection: Callable[[Host, Policy], HostedHttp]
    ) -> None:
        self._host = host
        self._connection = connection

    def transport(self, policy: Policy) -> HostedHttp:
        return self._connection(self._host(), policy)


class OverHttp:
    """HTTP, by what hosts the server and how the client speaks."""

    is_cheap = True

    def __init__(
        self,
        name: str,
        when: Window,
        host: Callable[[Server], Host],
        connection: Callable[[Host, Policy], HostedHttp],
    ) -> None:
        self.name = name
        self.when = when
        self._host = host
        self._connection = connection

    def address(self, variant: str) -> HttpAddress:
        return HttpAddress(lambda: self._host(VARIANTS[variant]()), self._connection)

    async def shared_address(self, variant: str) -> tuple[HttpAddress, Callable[[], Any]]:
        host = self._host(VARIANTS[variant]())
        url = await host.open()
        return HttpAddress(lambda: RunningHost(url), self._connection), host.close

    async def wire(self, variant: str) -> HostedHttp:
        wire = self._connection(self._host(VARIANTS[variant]()), Policy())
        await wire.open_wire()
        return wire


OVER_HTTP: Final = OverHttp("streamable-http", Window(), ListenerHost, HostedStreamable)
OVER_ASGI: Final = OverHttp("streamable-http", Window(), UvicornHost, HostedStreamable)
OVER_OLD_SSE: Final = OverHttp("http+sse", Window(until=V2026_07_28), OldSseHost, HostedOldSse)
