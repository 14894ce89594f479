"""Our own transports under the contract that is published for everybody's."""

from __future__ import annotations

import array
import asyncio
import os
import select
import socket
import sys
import uuid
from collections.abc import Iterator

import pytest

from tests.without_posix import children_without_threads
from trunkline.jsonrpc import Limits, Policy
from trunkline.testing import transport_contract
from trunkline.testing.transport_contract import TransportContract
from trunkline.transports import Stdio, StdioServer, TappedTransport, Transport, memory_pair
from trunkline.transports.stdio import client, server

POLICY = Policy()


def limited(limit: int) -> Policy:
    return POLICY.replace(limits=Limits(stdio=limit))


def piped(policy: Policy) -> tuple[Transport, Transport]:
    near_in, far_out = os.pipe()
    far_in, near_out = os.pipe()
    return (
        StdioServer(policy, stdin=near_in, stdout=near_out),
        StdioServer(policy, stdin=far_in, stdout=far_out),
    )


class TestMemory(TransportContract):
    async def make_pair(self) -> tuple[Transport, Transport]:
        return memory_pair()


class TestPipes(TransportContract):
    async def make_pair(self) -> tuple[Transport, Transport]:
        return piped(POLICY)

    async def make_limited_pair(self, limit: int) -> tuple[Transport, Transport]:
        return piped(limited(limit))

    def make_lost(self) -> Transport:
        read, write = os.pipe()
        os.close(read)
        return StdioServer(POLICY, stdin=987_654, stdout=write)


class TestPipesByThreads(TestPipes):
    """As with terminals and files, over descriptors that have another side."""

    @pytest.fixture(autouse=True)
    def _unwatchable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(server, "is_watchable", lambda fd: not os.fstat(fd))


class TestOneSocket(TransportContract):
    """Input and output are one descriptor, as a server has it that inetd started."""

    async def make_pair(self) -> tuple[Transport, Transport]:
        return self._pair(POLICY)

    async def make_limited_pair(self, limit: int) -> tuple[Transport, Transport]:
        return self._pair(limited(limit))

    def _pair(self, policy: Policy) -> tuple[Transport, Transport]:
        near, far = (end.detach() for end in socket.socketpair())
        return (
            StdioServer(policy, stdin=near, stdout=near),
            StdioServer(policy, stdin=far, stdout=far),
        )


class TestLengthPrefix(TestPipes):
    async def make_pair(self) -> tuple[Transport, Transport]:
        return piped(POLICY.replace(framing="length-prefix"))

    async def make_limited_pair(self, limit: int) -> tuple[Transport, Transport]:
        return piped(limited(limit).replace(framing="length-prefix"))


class TestTapped(TestPipes):
    """Listened to by one who raises."""

    async def make_pair(self) -> tuple[Transport, Transport]:
        near, far = piped(POLICY)
        return TappedTransport(near, self._raise), TappedTransport(far, self._raise)

    async def make_limited_pair(self, limit: int) -> tuple[Transport, Transport]:
        near, far = piped(limited(limit))
        return TappedTransport(near, self._raise), TappedTransport(far, self._raise)

    def _raise(self, *_: object) -> None:
        raise ValueError("deaf")


# A child that hands its standard streams to us, so that both sides of a real process can be
# driven from here, and that lives until we let it go.
LENDER = """
import array, os, socket, sys
control = socket.socket(socket.AF_UNIX)
control.connect(chr(0) + sys.argv[1])
control.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1]))])
os.close(0)
os.close(1)
control.recv(1)
"""


class Borrowed(StdioServer):
    """A server on the standard streams that a child has lent us; it leaves when its input ends."""

    def __init__(self, listener: socket.socket, policy: Policy) -> None:
        super().__init__(policy)
        self._listener = listener
        self._control: socket.socket | None = None

    async def connect(self) -> None:
        if self._control is not None:
            return await super().connect()
        loop = asyncio.get_running_loop()
        self._control, _ = await loop.sock_accept(self._listener)
        self._control.setblocking(True)
        _, extra, _, _ = self._control.recvmsg(1, socket.CMSG_SPACE(8))
        stdin, stdout = array.array("i", extra[0][2])
        self._given = (stdin, stdout)
        await super().connect()

    def _input_ended(self, error: OSError | None) -> None:
        super()._input_ended(error)
        self._begin_to_end(self._end())

    def _clear_away(self) -> None:
        super()._clear_away()
        self._listener.close()
        if self._control is not None:
            self._control.close()


class TestChild(TransportContract):
    end_by_the_other_side_is_an_error = True

    async def make_pair(self) -> tuple[Transport, Transport]:
        return self._pair(POLICY)

    async def make_limited_pair(self, limit: int) -> tuple[Transport, Transport]:
        return self._pair(limited(limit))

    def _pair(self, policy: Policy) -> tuple[Transport, Transport]:
        name = f"trunkline-{uuid.uuid4().hex}"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"\0{name}")
        listener.listen()
        listener.setblocking(False)
        near = Stdio(sys.executable, ["-S", "-E", "-c", LENDER, name]).transport(policy)
        return near, Borrowed(listener, policy)

    def make_lost(self) -> Transport:
        return Stdio("no-such-command-anywhere").transport(POLICY)


class TestChildWatchedByAThread(TestChild):
    @pytest.fixture(autouse=True)
    def _no_pidfd(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(pid: int, flags: int = 0) -> int:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "pidfd_open", refuse)


class TestPipesWithoutPoll(TestPipes):
    """As on Windows: threads that block in the calls themselves."""

    @pytest.fixture(autouse=True)
    def _unwatchable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(server, "can_watch", lambda loop: False)
        monkeypatch.delattr(select, "poll")
        # A reader that is closed before its input ends leaves its thread and descriptor behind.
        found = transport_contract.leftovers
        kinds = ("tasks", "timers", "children")
        monkeypatch.setattr(
            transport_contract, "leftovers", lambda: {kind: found()[kind] for kind in kinds}
        )


class TestChildOfTheLoop(TestChild):
    """As on Windows: the loop starts the process, and has its pipes."""

    @pytest.fixture(autouse=True)
    def _unwatchable(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setattr(client._StdioTransport, "_can_watch", lambda self, loop: False)
        with children_without_threads():
            yield
