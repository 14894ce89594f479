"""HTTP as a carrier of scripts: our own listener, our ASGI application under uvicorn, old SSE.

A client connects with the HTTP client of the library. A script that writes its own messages does
so with the plain one of `tests.http_client`, which shares nothing with the library. Each connection
has a server of its own, in this process, which ends with it. One uvicorn serves the applications
of all connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

import uvicorn

from tests.conversation import servers
from tests.conversation.journal import HANGS
from tests.conversation.server_log import ServerLog
from tests.http_client.old_sse import OldSseTransport
from tests.http_client.streamable import StreamableHttpTransport
from tests.rigs.conditions import until_async
from trunkline import HttpSettings, Server
from trunkline.jsonrpc import Policy
from trunkline.jsonrpc.framing.sse import Event
from trunkline.judge import TraceEntry
from trunkline.judge.trace.reader import TraceHttp
from trunkline.spec.revisions import V2026_07_28, Window
from trunkline.transports import Address, TappedTransport, parse_address

_ANY_PORT: Final = "http://127.0.0.1:0/mcp"
# What a client sets on a transport of HTTP before it connects.
_HOOKS: Final = ("is_idempotent", "is_waiting", "on_event", "on_request_lost", "param_headers")


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
        await until_async(lambda: self._server.started)
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


# -- connections -----------------------------------------------------------------------------


class Witness:
    """Tells a judge of each request, response and event of the HTTP client."""

    def __init__(self, on_entry: Callable[[TraceEntry], object]) -> None:
        self._on_entry = on_entry
        # By request: its number, and the head of its response.
        self._streams: dict[object, tuple[int, TraceHttp | None]] = {}
        self._count = 0

    def on_request(self, origin: object, request: bytes) -> None:
        if origin in self._streams:
            return  # it is sent again
        self._count += 1
        self._streams[origin] = self._count, None
        head, _, body = request.partition(b"\r\n\r\n")
        first, *lines = head.decode("ascii").split("\r\n")
        method, path, _ = first.split(" ")
        headers = dict(line.split(": ", 1) for line in lines)
        self._tell("client", self._count, body or None, TraceHttp(method, path, None, headers))

    def on_response(self, origin: object, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        number, _ = self._streams[origin]
        texts = {name.decode("ascii"): value.decode("latin-1") for name, value in headers}
        self._streams[origin] = number, TraceHttp("", "", status, texts)

    def on_frame(self, origin: object, frame: Any, event: Event | None) -> None:
        number, head = self._streams[origin]
        about = None
        if event is not None:
            fields = {"id": event.id, "retry": event.retry, "event": event.event}
            about = {name: value for name, value in fields.items() if value is not None}
        if isinstance(frame, bytes):
            self._tell("server", number, frame, head, event=about)

    def on_end(self, origin: object) -> None:
        # The message of a response that is not a stream is delivered after its end.
        asyncio.get_running_loop().call_soon(self._end, origin)

    def _end(self, origin: object) -> None:
        number, head = self._streams.pop(origin, (0, None))
        if head is not None:
            self._tell("server", number, None, head, ends=True)

    def _tell(
        self, sender: Any, number: int, raw: bytes | None, facts: TraceHttp | None, **more: Any
    ) -> None:
        self._on_entry(
            TraceEntry(
                sender=sender,
                transport="streamable-http",
                raw=raw,
                http=facts,
                stream=number,
                **more,
            )
        )


class HostedClient(TappedTransport):
    """A connection of the HTTP client to a server that is hosted for it alone."""

    # What a transport is made from until the server has a port.
    place = _ANY_PORT

    def __init__(self, host: Host, policy: Policy) -> None:
        self._host = host
        self._dialled_policy = policy
        # Replaced by `connect`, when the port is known.
        super().__init__(parse_address(self.place).transport(policy), lambda *_: None)

    async def connect(self) -> None:
        hooks = {name: getattr(self._inner, name) for name in _HOOKS if hasattr(self._inner, name)}
        try:
            self._inner = parse_address(await self._host.open()).transport(self._dialled_policy)
            for name, hook in hooks.items():
                setattr(self._inner, name, hook)
            self._observe(self._inner)
            await super().connect()
        except BaseException:
            await self._host.close()
            raise

    def _observe(self, inner: Any) -> None:
        """Follow what passes, beside the messages."""

    async def close(self) -> None:
        try:
            await super().close()
        finally:
            await self._host.close()


class StreamableClient(HostedClient):
    """Over Streamable HTTP; a judge is told of each request, response and event."""

    def __init__(self, host: Host, policy: Policy) -> None:
        super().__init__(host, policy)
        self.on_entry: Callable[[TraceEntry], object] = lambda entry: None

    def _observe(self, inner: Any) -> None:
        inner.observer = Witness(lambda entry: self.on_entry(entry))


class HostedWire:
    """A connection of the test client to a server that is hosted for it alone.

    It is a wire for a script that writes its own messages: each line is a POST.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._inner: Any = None
        self._log = ServerLog()
        self.on_line: Callable[[bytes], object] = lambda line: None

    async def open(self) -> None:
        try:
            self._inner = self._dial(await self._host.open())
            self._inner.on_message = lambda frame, _: self.on_line(frame)
            await self._inner.connect()
        except BaseException:  # a cancellation too: the listener would stay
            await self._host.close()
            raise

    def _dial(self, url: str) -> Any:
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        return self._inner is not None and self._inner.is_connected

    def log(self) -> str:
        return self._log.text()

    def write(self, line: bytes) -> None:
        self._inner.send(line)

    async def end_server(self) -> None:
        """End the server while the client is still there."""
        await self._host.close()

    async def close(self) -> None:
        try:
            if self._inner is not None:
                await self._inner.close()
        finally:
            await self._host.close()
            self._log.close()


class StreamableWire(HostedWire):
    """Over Streamable HTTP; a judge is told of each request, response and event."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.on_entry: Callable[[TraceEntry], object] = lambda entry: None
        # The revision of a script, for messages that do not tell.
        self.speaks: Callable[[], str | None] = lambda: None

    def drop_streams(self) -> None:
        """Lose the connections of all streams, as a network does."""
        self._inner.drop_streams()

    def _dial(self, url: str) -> StreamableHttpTransport:
        inner = StreamableHttpTransport(url, Policy())
        inner.on_entry = lambda entry: self.on_entry(entry)
        inner.speaks = lambda: self.speaks()
        return inner


class OldSseWire(HostedWire):
    """Over the HTTP+SSE of 2024-11-05."""

    def _dial(self, url: str) -> OldSseTransport:
        return OldSseTransport(url, Policy())


class HttpAddress:
    """Where a client connects to; `host` gives the server of each connection."""

    def __init__(
        self, host: Callable[[], Host], client: Callable[[Host, Policy], HostedClient]
    ) -> None:
        self._host = host
        self._client = client

    def transport(self, policy: Policy) -> HostedClient:
        return self._client(self._host(), policy)


class OverHttp:
    """HTTP, by what hosts the server and how a script writes to it."""

    is_cheap = True

    def __init__(
        self,
        name: str,
        when: Window,
        host: Callable[[Server], Host],
        client: Callable[[Host, Policy], HostedClient],
        wire: Callable[[Host], HostedWire],
    ) -> None:
        self.name = name
        self.when = when
        self._host = host
        self._client = client
        self._wire = wire

    def address(self, variant: str) -> HttpAddress:
        return HttpAddress(lambda: self._host(servers.server(variant)), self._client)

    async def shared_address(self, variant: str) -> tuple[Address, Callable[[], Any]]:
        host = self._host(servers.server(variant))
        url = await host.open()
        return parse_address(url), host.close

    async def wire(self, variant: str) -> HostedWire:
        wire = self._wire(self._host(servers.server(variant)))
        await wire.open()
        return wire


OVER_HTTP: Final = OverHttp(
    "streamable-http", Window(), ListenerHost, StreamableClient, StreamableWire
)
OVER_ASGI: Final = OverHttp(
    "streamable-http", Window(), UvicornHost, StreamableClient, StreamableWire
)
OVER_OLD_SSE: Final = OverHttp(
    "http+sse", Window(until=V2026_07_28), OldSseHost, HostedClient, OldSseWire
)
