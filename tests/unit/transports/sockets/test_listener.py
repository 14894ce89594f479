"""Listening: ports that are free again, ports that are not, and a system that has no room."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from tests.rigs.leaks import run
from trunkline import TransportError
from trunkline.jsonrpc import Policy
from trunkline.transports.addresses import Tcp, Unix
from trunkline.transports.sockets import listener as listening_module
from trunkline.transports.sockets.connection import AcceptedSocket
from trunkline.transports.sockets.listener import Listener

POLICY = Policy()


def drop(transport: AcceptedSocket) -> None:
    transport.discard()


async def opened(address: Tcp | Unix, on_connection: Any = drop, **options: Any) -> Listener:
    listener = Listener(address, POLICY, on_connection, **options)
    await listener.open()
    return listener


def test_port_0_is_replaced_by_the_chosen_port() -> None:
    async def script() -> None:
        listener = await opened(Tcp("127.0.0.1", 0))
        assert isinstance(listener.address, Tcp)
        assert listener.address.port > 0
        listener.close()
        listener.close()

    run(script)


def test_port_in_use_raises_and_leaves_no_socket() -> None:
    async def script() -> None:
        first = await opened(Tcp("127.0.0.1", 0))
        address = first.address
        with pytest.raises(TransportError, match=f"{address} cannot be listened on: Address alr"):
            await opened(address)
        socket.create_connection(("127.0.0.1", address.port)).close()  # type: ignore[union-attr]
        first.close()
        second = await opened(address)
        assert second.address == address
        second.close()

    run(script)


def test_a_port_whose_connections_have_just_ended_can_be_listened_on_again() -> None:
    async def script() -> None:
        arrived: asyncio.Queue[AcceptedSocket] = asyncio.Queue()
        first = await opened(Tcp("127.0.0.1", 0), arrived.put_nowait)
        address = first.address
        assert isinstance(address, Tcp)
        client = socket.create_connection((address.host, address.port))
        server = await arrived.get()
        await server.connect()
        first.close()
        # The side that ends first is the one that the system keeps waiting.
        closing = asyncio.create_task(server.close())
        await asyncio.sleep(0.02)
        client.close()
        await closing
        again = await opened(address)
        # And with a connection that is still open.
        client = socket.create_connection((address.host, address.port))
        await asyncio.sleep(0.02)
        again.close()
        third = await opened(address)
        third.close()
        client.close()

    run(script)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        (Tcp("192.0.2.1", 0), "cannot be listened on: Cannot assign requested address"),
        (Tcp("no-such-host.invalid", 0), "no-such-host.invalid"),
        (Unix("/no/such/folder/s"), "cannot be listened on: No such file"),
    ],
)
def test_unavailable_address_raises_transport_error(address: Tcp | Unix, says: str) -> None:
    async def script() -> None:
        with pytest.raises(TransportError, match=says):
            await opened(address)

    run(script)


def test_a_host_with_several_addresses_has_one_port_on_all_of_them() -> None:
    async def script() -> None:
        listener = await opened(Tcp("localhost", 0))
        assert isinstance(listener.address, Tcp)
        ports = {each.getsockname()[1] for each in listener._sockets}
        assert ports == {listener.address.port}
        listener.close()

    run(script)


def test_port_0_is_retried_if_the_port_is_taken_at_another_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[int] = []
    really = listening_module.bind_all

    def unlucky(rows: Any, port: int) -> list[socket.socket]:
        tries.append(port)
        if len(tries) < 3:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        return really(rows, port)

    monkeypatch.setattr(listening_module, "bind_all", unlucky)

    async def script() -> None:
        listener = await opened(Tcp("localhost", 0))
        listener.close()
        assert len(tries) == 3

    run(script)


def test_a_given_socket_is_listened_on_and_closed_at_the_end() -> None:
    async def script() -> None:
        given = socket.socket()
        given.bind(("127.0.0.1", 0))
        port = given.getsockname()[1]
        arrived: list[AcceptedSocket] = []
        listener = await opened(Tcp("127.0.0.1", 0), arrived.append, sock=given)
        assert listener.address == Tcp("127.0.0.1", port)
        client = socket.create_connection(("127.0.0.1", port))
        await until_async(lambda: arrived)
        arrived[0].discard()
        client.close()
        listener.close()
        assert given.fileno() == -1

    run(script)


def test_several_sockets_of_the_callers_are_listened_on() -> None:
    async def script() -> None:
        first = socket.create_server(("127.0.0.1", 0))
        port = first.getsockname()[1]
        second = socket.create_server(("127.0.0.2", port))
        arrived: list[AcceptedSocket] = []
        listener = await opened(Tcp("localhost", 0), arrived.append, sock=(first, second))
        assert listener.address == Tcp("localhost", port)
        for host in ("127.0.0.1", "127.0.0.2"):
            client = socket.create_connection((host, port))
            await until_async(lambda: arrived)
            arrived.pop().discard()
            client.close()
        listener.close()
        assert (first.fileno(), second.fileno()) == (-1, -1)

    run(script)


def test_none_of_several_sockets_is_refused() -> None:
    with pytest.raises(ValueError, match="sock is empty"):
        Listener(Tcp("127.0.0.1", 0), Policy(), print, sock=[])


def test_raising_accept_callback_closes_the_socket_and_accepting_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def script() -> None:
        seen: list[AcceptedSocket] = []

        def fail(transport: AcceptedSocket) -> None:
            seen.append(transport)
            raise ZeroDivisionError

        listener = await opened(Tcp("127.0.0.1", 0), fail)
        assert isinstance(listener.address, Tcp)
        for n in range(3):
            client = socket.create_connection((listener.address.host, listener.address.port))
            await until_async(lambda n=n: len(seen) == n + 1)
            client.settimeout(10)
            assert await asyncio.to_thread(client.recv, 1) == b""
            client.close()
        listener.close()
        # The thread that read is the loop's, not ours.
        await asyncio.get_running_loop().shutdown_default_executor()

    run(script)
    said = [each.message.splitlines() for each in caplog.records]
    assert [lines[0].partition(": ")[2] for lines in said] == [
        "on_connection raised, connection closed"
    ] * 3
    assert {lines[-1] for lines in said} == {"ZeroDivisionError"}


def test_accept_callback_can_close_the_listener() -> None:
    async def script() -> None:
        seen: list[AcceptedSocket] = []

        def close(transport: AcceptedSocket) -> None:
            seen.append(transport)
            transport.discard()
            listener.close()

        listener = await opened(Tcp("127.0.0.1", 0), close)
        assert isinstance(listener.address, Tcp)
        where = (listener.address.host, listener.address.port)
        clients = [socket.create_connection(where) for _ in range(3)]
        await until_async(lambda: seen)
        await asyncio.sleep(0.02)
        assert len(seen) == 1
        for client in clients:
            client.close()

    run(script)


def test_peers_have_names_where_the_system_gives_them(tmp_path: Path) -> None:
    async def script() -> None:
        for address in (Tcp("127.0.0.1", 0), Tcp("::1", 0), Unix(tmp_path / "s")):
            seen: list[AcceptedSocket] = []
            try:
                listener = await opened(address, seen.append)
            except TransportError:
                continue  # there is no IPv6 here
            transport = listener.address.transport(POLICY)
            await transport.connect()
            await until_async(lambda seen=seen: seen)
            peer = seen[0].peer
            if isinstance(address, Unix):
                assert peer == ""
            else:
                host = f"[{address.host}]" if ":" in address.host else address.host
                assert peer.rpartition(":")[0] == host
                assert peer.rpartition(":")[2].isdecimal()
            seen[0].discard()
            await transport.close()
            listener.close()

    run(script)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_accepting_pauses_when_descriptors_run_out(
    number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening_module, "_ACCEPT_PAUSE_S", 0.05)

    class Full:
        """A listening socket of a system that has no room, for a while."""

        def __init__(self, sock: socket.socket) -> None:
            self._socket = sock
            self.tries = 0

        def accept(self) -> Any:
            self.tries += 1
            if self.tries < 3:
                raise OSError(number, "no room")
            return self._socket.accept()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._socket, name)

    async def script() -> None:
        seen: list[AcceptedSocket] = []
        given = Full(socket.create_server(("127.0.0.1", 0)))
        listener = await opened(Tcp("127.0.0.1", 0), seen.append, sock=given)
        client = socket.create_connection(given.getsockname())
        await until_async(lambda: seen)
        # Twice in vain, then once, and once more to see that there are no others.
        assert given.tries == 4
        seen[0].discard()
        client.close()
        listener.close()

    caplog.set_level(logging.WARNING)
    run(script, timers_too=True)
    assert len([each for each in caplog.records if "accepting paused" in each.message]) == 2


def test_closing_while_nothing_is_accepted_leaves_no_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script() -> None:
        listener = await opened(Tcp("127.0.0.1", 0))
        listener._pause(listener._sockets[0], OSError(errno.EMFILE, "no room"))
        listener.close()

    run(script, timers_too=True)


STARVED = """
import asyncio, resource, socket, os, logging
from trunkline.jsonrpc import Policy
from trunkline.transports.sockets import listener as module
from trunkline.transports.addresses import Tcp
from trunkline.transports.sockets.listener import Listener

logging.basicConfig(format="%(message)s")
module._ACCEPT_PAUSE_S = 0.05

async def main():
    seen = []
    listener = Listener(Tcp("127.0.0.1", 0), Policy(), seen.append)
    await listener.open()
    where = listener.address.host, listener.address.port
    clients = [socket.socket() for _ in range(6)]
    for client in clients:
        client.connect(where)
    # Room for two more.
    highest = max(map(int, os.listdir("/proc/self/fd")))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 2, hard))
    for _ in range(40):
        await asyncio.sleep(0.005)
    assert 0 < len(seen) < 6, len(seen)
    while len(seen) < 6:
        for each in seen:
            each.discard()
        await asyncio.sleep(0.01)
    for each in seen:
        each.discard()
    for client in clients:
        client.close()
    listener.close()
    print("recovered")

asyncio.run(asyncio.wait_for(main(), 20))
"""


def test_a_process_that_runs_out_of_descriptors_recovers() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARVED], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "recovered\n", done.stderr
    assert "accepting paused for 0.05 s: Too many open files" in done.stderr
    # It waits in between; one that spins says so thousands of times.
    assert done.stderr.count("accepting paused") < 100
    assert "Traceback" not in done.stderr
