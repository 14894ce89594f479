"""One request to an ASGI application, by plain calls: no HTTP server, no sockets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.rigs.messages import HANDSHAKE, META, PER_REQUEST, frame, initialize_params

# Each wait ends after this many seconds, with a failure.
WAIT = 20


class AsgiCall:
    """A request: what the application receives, and what it sends."""

    def __init__(
        self,
        body: bytes = b"",
        *,
        method: str = "POST",
        path: str = "/mcp",
        headers: dict[str, str] | list[tuple[bytes, bytes]] | None = None,
        **scope: Any,
    ) -> None:
        given = {"host": "localhost", "content-type": "application/json", **_dict(headers)}
        listed = [(name.lower().encode(), value.encode()) for name, value in given.items()]
        path, _, query = path.partition("?")
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": listed if not isinstance(headers, list) else headers,
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 80),
            **scope,
        }
        self.sent: list[dict[str, Any]] = []
        # Received messages: those before the client waits.
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.incoming.put_nowait({"type": "http.request", "body": body, "more_body": False})
        # While it is clear, the client reads nothing.
        self.reads = asyncio.Event()
        self.reads.set()
        self.receives = 0
        self._changed = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        self.receives += 1
        return await self.incoming.get()

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        self.sent.append(message)
        self._changed.set()

    def parts(self, *bodies: bytes, ends: bool = True) -> AsgiCall:
        """Send the body in parts, perhaps not all of it."""
        self.incoming = asyncio.Queue()
        for number, each in enumerate(bodies, 1):
            more = not ends or number < len(bodies)
            self.incoming.put_nowait({"type": "http.request", "body": each, "more_body": more})
        return self

    def disconnect(self) -> None:
        self.incoming.put_nowait({"type": "http.disconnect"})

    async def run(self, app: Any) -> AsgiCall:
        async with asyncio.timeout(WAIT):
            await app(self.scope, self.receive, self.send)
        return self

    def begin(self, app: Any) -> asyncio.Task[AsgiCall]:
        return asyncio.get_running_loop().create_task(self.run(app))

    async def until(self, part: bytes) -> None:
        """Wait until a text was sent."""
        async with asyncio.timeout(WAIT):
            while part not in self.body:
                self._changed.clear()
                await self._changed.wait()

    @property
    def status(self) -> int:
        status: int = self.sent[0]["status"]
        return status

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(each["body"] for each in self.sent[1:])

    @property
    def is_complete(self) -> bool:
        return len(self.sent) > 1 and not self.sent[-1].get("more_body", False)

    @property
    def answer(self) -> Any:
        return json.loads(self.body)

    @property
    def messages(self) -> list[Any]:
        lines = self.body.split(b"\n")
        return [json.loads(each[6:]) for each in lines if each.startswith(b"data: {")]


def _dict(headers: Any) -> dict[str, str]:
    return headers if isinstance(headers, dict) else {}


def request(
    method: str, params: dict[str, Any] | None = None, id: int | None = 1, **options: Any
) -> AsgiCall:
    """A request of the revision without sessions."""
    body = frame(method, {**(params or {}), "_meta": {**META, "progressToken": 1}}, id)
    headers = {"mcp-protocol-version": PER_REQUEST, "mcp-method": method}
    if params and "name" in params:
        headers["mcp-name"] = params["name"]
    headers |= options.pop("headers", {})
    return AsgiCall(body, headers=headers, **options)


def tool(name: str, headers: dict[str, str] | None = None, **arguments: Any) -> AsgiCall:
    """A call of a tool, in that revision."""
    return request("tools/call", {"name": name, "arguments": arguments}, headers=headers or {})


def in_session(
    method: str,
    params: dict[str, Any] | None = None,
    id: int | None = 1,
    session: str | None = None,
    version: str = HANDSHAKE,
    **options: Any,
) -> AsgiCall:
    """A request of a session."""
    body = frame(method, params or {}, id)
    headers = {} if session is None else {"mcp-session-id": session}
    if method != "initialize":
        headers["mcp-protocol-version"] = version
    headers |= options.pop("headers", {})
    return AsgiCall(body, headers=headers, **options)


def initialize(version: str = HANDSHAKE, **options: Any) -> AsgiCall:
    """The request that opens a session."""
    return in_session("initialize", initialize_params(version), **options)
