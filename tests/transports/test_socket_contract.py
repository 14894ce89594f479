"""Sockets of every kind under the contract that is published for everybody's transports."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.certificates import Authority
from trunkline.jsonrpc import Limits, Policy
from trunkline.testing.transport_contract import TransportContract
from trunkline.transports import Transport
from trunkline.transports.addresses import Tcp, Tls, Unix
from trunkline.transports.sockets.connection import AcceptedSocket, SocketTransport
from trunkline.transports.sockets.listener import Listener

POLICY = Policy()


def limited(limit: int) -> Policy:
    return POLICY.replace(limits=Limits(tcp=limit, unix=limit))


class AwaitedSocket(SocketTransport):
    """The server's end, which is there before anybody has dialled."""

    def __init__(self, policy: Policy, listener: Listener) -> None:
        super().__init__(policy, listener.address)
        self._listener = listener
        self._arrived: asyncio.Future[AcceptedSocket] = asyncio.get_running_loop().create_future()

    def arrived(self, transport: AcceptedSocket) -> None:
        self._listener.close()
        self._arrived.set_result(transport)

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        accepted = await self._arrived
        # As its own `connect` would, in our name.
        accepted._receive = self._receive  # type: ignore[method-assign]
        accepted._input_ended = self._input_ended  # type: ignore[method-assign]
        accepted._output_broke = self._output_broke  # type: ignore[method-assign]
        accepted._drained = self._drained  # type: ignore[method-assign]
        self._is_open = True
        await accepted._connect(loop)
        self._socket, self._reader, self._writer = (
            accepted._socket,
            accepted._reader,
            accepted._writer,
        )

    async def close(self) -> None:
        self._listener.close()
        if self._arrived.done() and not self._is_used:
            self._arrived.result().discard()
        await super().close()


async def joined(
    dialled: Tcp | Unix, policy: Policy, listened: Tcp | Unix | None = None
) -> tuple[Transport, Transport]:
    ends: list[AwaitedSocket] = []
    listener = Listener(listened or dialled, policy, lambda each: ends[0].arrived(each))
    await listener.open()
    ends.append(AwaitedSocket(policy, listener))
    where: Tcp | Unix = listener.address
    if isinstance(where, Tcp) and isinstance(dialled, Tcp):
        where = Tcp(where.host, where.port, tls=dialled.tls)
    return where.transport(policy), ends[0]


class TestTcp(TransportContract):
    policy = POLICY

    def address(self) -> Tcp | Unix:
        return Tcp("127.0.0.1", 0)

    async def make_pair(self) -> tuple[Transport, Transport]:
        return await joined(self.address(), self.policy)

    async def make_limited_pair(self, limit: int) -> tuple[Transport, Transport]:
        return await joined(self.address(), limited(limit).replace(framing=self.policy.framing))

    def make_lost(self) -> Transport:
        return Tcp("127.0.0.1", 1).transport(POLICY)


class TestTcpByName(TestTcp):
    def address(self) -> Tcp | Unix:
        return Tcp("localhost", 0)


class TestTcpWithLengths(TestTcp):
    policy = POLICY.replace(framing="length-prefix")


class TestTcpWithHeaders(TestTcp):
    policy = POLICY.replace(framing="content-length")


class TestUnix(TestTcp):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self._path = tmp_path / "s"

    def address(self) -> Tcp | Unix:
        return Unix(self._path)

    def make_lost(self) -> Transport:
        return Unix(self._path).transport(POLICY)


class TestTls(TransportContract):
    @pytest.fixture(autouse=True)
    def _certificates(self, tmp_path: Path) -> None:
        authority = Authority(tmp_path)
        cert, key = authority.certificate("server", "127.0.0.1")
        mine, my_key = authority.certificate("client")
        self._server = Tls(cert=cert, key=key, ca=authority.ca)
        self._client = Tls(ca=authority.ca, cert=mine, key=my_key)

    async def make_pair(self) -> tuple[Transport, Transport]:
        return await self._pair(POLICY)

    async def make_limited_pair(self, limit: int) -> tuple[Transport, Transport]:
        return await self._pair(limited(limit))

    # The two agree on who is who before anything is sent.
    connects_alone = False

    async def _pair(self, policy: Policy) -> tuple[Transport, Transport]:
        server, client = (
            Tcp("127.0.0.1", 0, tls=self._server),
            Tcp("127.0.0.1", 0, tls=self._client),
        )
        return await joined(client, policy, server)

    def make_lost(self) -> Transport:
        return Tcp("127.0.0.1", 1, tls=self._client).transport(POLICY)
