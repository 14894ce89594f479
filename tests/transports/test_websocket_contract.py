"""WebSockets under the contract that is published for everybody's transports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from trunkline.accounts.account import Account, Accounts
from trunkline.accounts.client_key import client_key
from trunkline.errors import TransportError
from trunkline.jsonrpc import Policy
from trunkline.testing.transport_contract import TransportContract
from trunkline.transports import Tls, Transport, Ws
from trunkline.transports.addresses import Tcp
from trunkline.transports.http.endpoint.endpoint import McpEndpoint
from trunkline.transports.http.endpoint.routes import Routes
from trunkline.transports.http.gate.admission import Admission
from trunkline.transports.http.server.http_server import HttpServer
from trunkline.transports.http.settings import HttpLimits, HttpSettings
from trunkline.transports.sockets.listener import Listener
from trunkline.transports.websocket.server import AcceptedWebSocket, WebSocketRoute

POLICY = Policy()


class Ready:
    """As much of a service as a WebSocket needs."""

    handshake = per_request = frozenset[bytes]()
    is_ready = True

    def __init__(self) -> None:
        self.accounts = Accounts(1000, 1 << 30)

    def open_account(self, client: str, owner: Any) -> Account:
        return self.accounts.open(client_key(client))

    def event_log(self, session_id: str) -> Any:
        raise NotImplementedError


class AwaitedWebSocket:
    """The server's end, which exists before a client has dialled."""

    name = "websocket"

    def __init__(self, tls: bool | Tls, policy: Policy) -> None:
        self.on_message: Callable[[Any, Any], object] = lambda *_: None
        self.on_error: Callable[[Any], object] = lambda *_: None
        self.on_drained: Callable[[], object] = lambda: None
        self._tls = tls
        self._policy = policy
        self._is_used = False
        self._inner: AcceptedWebSocket | None = None
        self._http: HttpServer | None = None

    async def open(self) -> int:
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Future[AcceptedWebSocket] = self._loop.create_future()
        address = Tcp("127.0.0.1", 0, tls=self._tls)
        self._listener = Listener(address, self._policy, on_socket=self._take)
        await self._listener.open()
        where = self._listener.address
        assert isinstance(where, Tcp)
        settings, limits = HttpSettings(), HttpLimits()
        admission = Admission(settings, [("127.0.0.1", where.port)])
        routes = Routes(admission, settings, self._loop.time)
        endpoint = McpEndpoint(Ready(), routes, settings, limits, "/mcp")  # type: ignore[arg-type]
        self._http = HttpServer(routes, limits, None)
        limit = self._policy.limits.message_size("websocket")
        endpoint.route.upgrade = WebSocketRoute(
            endpoint, self._http, limit, memoryview(bytearray(65536)), self._accepted
        )
        return where.port

    def _take(self, sock: Any) -> None:
        assert self._http is not None
        self._accepting = self._loop.create_task(
            self._loop.connect_accepted_socket(
                self._http.protocol, sock, ssl=self._listener.context
            )
        )

    def _accepted(self, inner: AcceptedWebSocket) -> None:
        # At once: frames may follow the handshake.
        inner.on_message = lambda frame, route: self.on_message(frame, route)
        inner.on_error = lambda error: self.on_error(error)
        inner.on_drained = lambda: self.on_drained()
        self._inner = inner
        self._arrived.set_result(inner)

    @property
    def is_connected(self) -> bool:
        return self._inner is not None and self._is_used and self._inner.is_connected

    @property
    def backlog(self) -> int:
        return 0 if self._inner is None else self._inner.backlog

    @property
    def written(self) -> int:
        return 0 if self._inner is None else self._inner.written

    async def connect(self) -> None:
        if self._is_used:
            raise TransportError("a transport connects once")
        self._is_used = True
        await self._arrived

    def send(self, frame: bytes, route: Any = None) -> None:
        if self._inner is not None:
            self._inner.send(frame, route)

    async def close(self) -> None:
        self._listener.close()
        if self._inner is not None:
            await self._inner.close()
        if self._http is not None:
            await self._http.close(0)


async def joined(
    policy: Policy, server: bool | Tls = False, client: bool | Tls = False
) -> tuple[Transport, Transport]:
    far = AwaitedWebSocket(server, policy)
    port = await far.open()
    return Ws("127.0.0.1", port, tls=client).transport(policy), far


class TestWebSocket(TransportContract):
    # A handshake precedes the first message.
    connects_alone = False
    carries_any_bytes = False

    async def make_pair(self) -> tuple[Transport, Transport]:
        return await joined(POLICY)

    def make_lost(self) -> Transport:
        return Ws("127.0.0.1", 1).transport(POLICY)


class TestWebSocketServer(TestWebSocket):
    """The same with the two ends exchanged."""

    async def make_pair(self) -> tuple[Transport, Transport]:
        near, far = await joined(POLICY)
        return far, near


class TestSecureWebSocket(TestWebSocket):
    @pytest.fixture(autouse=True)
    def _certificates(self, tmp_path: Path) -> None:
        authority = Authority(tmp_path)
        cert, key = authority.certificate("server", "127.0.0.1")
        mine, my_key = authority.certificate("client")
        self._server = Tls(cert=cert, key=key, ca=authority.ca)
        self._client = Tls(ca=authority.ca, cert=mine, key=my_key)

    async def make_pair(self) -> tuple[Transport, Transport]:
        return await joined(POLICY, self._server, self._client)

    def make_lost(self) -> Transport:
        return Ws("127.0.0.1", 1, tls=self._client).transport(POLICY)
