"""Servers that listen, as processes: signals, kills, crowds, and clients of every bad manner."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.piped_server import MIB, Piped, piped
from tests.rigs.conditions import WAIT_S, until, until_async
from tests.rigs.leaks import alive, grown, run
from tests.rigs.messages import META
from trunkline import Client, ConnectionLost, Server, SocketLimits, Tcp, TransportError, Unix
from trunkline.client.session.session import Session
from trunkline.server.dispatch.connection import Connection
from trunkline.server.runtime.keepalive import KeepAlive
from trunkline.transports.addresses import parse_address
from trunkline.transports.sockets.connection import AcceptedSocket, DialledSocket

SIGNALS = [signal.SIGTERM, signal.SIGINT]
RESET = struct.pack("ii", 1, 0)


@contextmanager
def listening(
    address: str, server_limits: dict[str, Any] | None = None, **limits: Any
) -> Iterator[tuple[Piped, Tcp | Unix]]:
    """Start a server that listens; yield it, and where."""
    given = (json.dumps(limits), json.dumps(server_limits or {}))
    with piped("socket_server.py", address, *given) as server:
        yield server, parse_address(server.line().decode())


class SocketClient:
    """A client on a plain socket."""

    def __init__(self, address: Tcp | Unix) -> None:
        if isinstance(address, Tcp):
            self.socket = socket.create_connection((address.host, address.port), timeout=WAIT_S)
        else:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(WAIT_S)
            try:
                self.socket.connect(str(address.path))
            except OSError:
                self.socket.close()
                raise
        self._rest = b""

    def __enter__(self) -> SocketClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def call(self, id: Any, tool: str, **arguments: Any) -> None:
        params = {"name": tool, "arguments": arguments, "_meta": META}
        message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def line(self) -> bytes:
        """Return the next line; b"" at the end, however that comes."""
        while b"\n" not in self._rest:
            try:
                part = self.socket.recv(MIB)
            except ConnectionError:
                part = b""
            if not part:
                return b""
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def read(self) -> Any:
        line = self.line()
        return json.loads(line) if line else None

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.socket.close()


def serves(address: Tcp | Unix) -> bool:
    with SocketClient(address) as raw:
        raw.call("still there?", "echo", text="yes")
        return bool(raw.read()["result"]["content"][0]["text"] == "yes")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s"


# Signals


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_a_signal_ends_a_server_with_idle_connections(path: Path, number: int, kind: str) -> None:
    text = f"unix:{path}" if kind == "unix" else "tcp://127.0.0.1:0"
    with listening(text) as (server, address):
        assert serves(address)
        with SocketClient(address) as one, SocketClient(address) as other:
            one.call(1, "echo", text="x")
            assert one.read()["id"] == 1
            os.kill(server.pid, number)
            assert server.wait() == 0
            assert one.line() == other.line() == b""
        assert server.rest() == []
        assert "lifespan left" in server.log()
        assert server.log().count("lifespan entered") == 1
        assert "Traceback" not in server.log()
        assert not path.exists()


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_ends_a_listening_server_without_connections(path: Path, number: int) -> None:
    with listening(f"unix:{path}") as (server, _):
        os.kill(server.pid, number)
        assert server.wait() == 0
        assert "lifespan left" in server.log()
        assert not path.exists()


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_finishes_running_calls_and_stops_accepting(
    path: Path, tmp_path: Path, number: int
) -> None:
    gate = tmp_path / "gate"
    with listening(f"unix:{path}") as (server, address), SocketClient(address) as raw:
        raw.call(1, "until_file", path=str(gate))
        until(Path(f"{gate}.begun").exists)
        os.kill(server.pid, number)
        until(lambda: not path.exists())
        with pytest.raises(FileNotFoundError):
            SocketClient(address)
        gate.touch()
        assert raw.read()["result"]["content"][0]["text"] == str(gate)
        assert raw.line() == b""
        assert server.wait() == 0
        assert "lifespan left" in server.log()


@pytest.mark.parametrize("second", SIGNALS)
def test_a_second_signal_ends_work_at_once(path: Path, tmp_path: Path, second: int) -> None:
    gate = tmp_path / "never"
    # Nothing but the second signal can end this in time.
    with listening(f"unix:{path}") as (server, address), SocketClient(address) as raw:
        raw.call(1, "until_file", path=str(gate))
        until(Path(f"{gate}.begun").exists)
        os.kill(server.pid, signal.SIGTERM)
        until(lambda: not path.exists())
        os.kill(server.pid, second)
        assert "error" in raw.read()
        assert server.wait() == 0
        assert "lifespan left" in server.log()
        assert "Traceback" not in server.log()


def test_a_large_answer_is_not_cut_by_a_signal(path: Path) -> None:
    size = 10_000_000
    with listening(f"unix:{path}") as (server, address), SocketClient(address) as raw:
        raw.call(1, "large", size=size)
        raw.socket.recv(1, socket.MSG_PEEK)
        os.kill(server.pid, signal.SIGTERM)
        until(lambda: not path.exists())
        assert len(raw.read()["result"]["content"][0]["text"]) == size
        assert server.wait() == 0


def test_an_address_that_cannot_be_listened_on_is_one_sentence(path: Path) -> None:
    path.write_text("precious")
    with piped("socket_server.py", f"unix:{path}") as server:
        assert server.rest() == []
        assert server.wait() == 1
        assert f"sockets: unix:{path} is a file that is not a socket" in server.log()
        assert "Traceback" not in server.log()
    assert path.read_text() == "precious"


def test_a_port_can_be_listened_on_again_at_once() -> None:
    with listening("tcp://127.0.0.1:0") as (server, address):
        with SocketClient(address) as raw:
            raw.call(1, "echo", text="x")
            assert raw.read()["id"] == 1
            os.kill(server.pid, signal.SIGTERM)
            assert server.wait() == 0
        with listening(str(address)) as (_, again):
            assert again == address
            assert serves(again)
            with piped("socket_server.py", str(address)) as third:
                assert third.wait() == 1
                assert "cannot be listened on: Address already in use" in third.log()


# Kills


def test_calls_fail_at_once_when_the_server_is_killed_and_go_on_with_the_next(
    path: Path, tmp_path: Path
) -> None:
    never = str(tmp_path / "never")
    with listening(f"unix:{path}") as (server, address):

        async def script() -> None:
            client = Client(address)
            await client.connect()
            calls = [
                asyncio.create_task(client.call_tool("until_file", {"path": never}))
                for _ in range(20)
            ]
            await client.call_tool("echo", {"text": "all have begun"})
            os.kill(server.pid, signal.SIGKILL)
            ended = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(each) for each in ended} == {ConnectionLost}
            await client.close()
            await until_async(lambda: server.process.poll() is not None)
            with pytest.raises(TransportError, match="Connection refused"):
                await client.connect()

        run(script)
    assert path.exists()
    with listening(f"unix:{path}") as (_, address):
        assert serves(address)


@pytest.mark.parametrize("how", ["reset", "close", "half"])
def test_clients_that_leave_in_the_middle_of_anything_leave_nothing(path: Path, how: str) -> None:
    with listening("tcp://127.0.0.1:0") as (server, address):
        assert serves(address)
        before = len(os.listdir(f"/proc/{server.pid}/fd"))
        for n in range(60):
            raw = SocketClient(address)
            if n % 3 == 0:
                raw.call(n, "large", size=3_000_000)
            elif n % 3 == 1:
                raw.socket.sendall(b'{"jsonrpc": "2.0", "id": 1, "meth')
            if how == "reset":
                raw.reset()
            elif how == "half":
                raw.socket.shutdown(socket.SHUT_WR)
                while raw.line():
                    pass
                raw.socket.close()
            else:
                raw.socket.close()
        assert serves(address)
        until(lambda: len(os.listdir(f"/proc/{server.pid}/fd")) <= before)
        assert "Traceback" not in server.log()


def test_a_client_that_has_ended_its_output_on_a_socket_still_gets_every_answer(
    path: Path, tmp_path: Path
) -> None:
    with listening(f"unix:{path}") as (_, address), SocketClient(address) as raw:
        raw.call(1, "until_file", path=str(tmp_path / "never"))
        raw.call(2, "echo", text="done")
        raw.socket.shutdown(socket.SHUT_WR)
        assert raw.read()["id"] == 2
        answer = raw.read()
        assert (answer["id"], answer["error"]["code"]) == (1, -32603)
        assert raw.line() == b""


# Bad manners


@pytest.mark.full
def test_one_that_sends_and_never_reads_is_cut_off_and_costs_little(path: Path) -> None:
    limits = {"connection_bytes": 16 * MIB, "unread_timeout": 1}
    with listening(f"unix:{path}", limits) as (server, address):
        assert serves(address)
        with SocketClient(address) as raw:
            # Each is answered with an error. More of them in a row would end the connection.
            row = (b"x" * 60 + b"\n") * 500 + b'{"jsonrpc":"2.0","method":"notifications/none"}\n'
            garbage = b"{}\n" + row * 20  # it begins as a client does
            # Until the server closes: it stops to read, and then the answers to be taken.
            with pytest.raises(OSError, match=r"pipe|reset"):
                while True:
                    raw.socket.sendall(garbage)
        server.has_logged("the client has not read any of")
        assert serves(address)
        assert server.resident("VmHWM") < 100 * MIB


def test_bytes_one_by_one_do_not_hold_up_others(path: Path) -> None:
    with listening(f"unix:{path}") as (_, address), SocketClient(address) as slow:
        params = {"name": "echo", "arguments": {"text": "slow"}, "_meta": META}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        for n, byte in enumerate(json.dumps(message).encode() + b"\n"):
            slow.socket.sendall(bytes([byte]))
            if n % 50 == 0:
                assert serves(address)
        assert slow.read()["id"] == 1


def test_a_page_in_a_browser_runs_nothing(tmp_path: Path) -> None:
    with listening("tcp://127.0.0.1:0") as (_, address):
        mark = tmp_path / "mark"
        params = {"name": "until_file", "arguments": {"path": str(mark)}, "_meta": META}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        body = json.dumps(message).encode() + b"\n"
        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        for parts in ([head + body], [head, body], [b"\r\n", head, body], [b"P", head[1:], body]):
            with SocketClient(address) as raw:
                raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    for part in parts:
                        raw.socket.sendall(part)
                except ConnectionError:
                    pass
                try:
                    while line := raw.line():
                        assert json.loads(line)["error"]["code"] == -32700
                except ConnectionError:
                    pass  # what it had not read yet was thrown away
        assert serves(address)
        assert not Path(f"{mark}.begun").exists()


# Crowds


def test_connection_over_the_limit_gets_an_error_and_is_closed(path: Path) -> None:
    with listening(f"unix:{path}", connections=3) as (_, address):
        crowd = [SocketClient(address) for _ in range(3)]
        for n, each in enumerate(crowd):
            each.call(n, "echo", text="x")
            assert each.read()["id"] == n
        for _ in range(5):
            with SocketClient(address) as raw:
                assert "No more than 3 connections" in raw.read()["error"]["message"]
                assert raw.line() == b""
        crowd.pop().socket.close()

        def is_served() -> bool:
            with SocketClient(address) as raw:
                raw.call(1, "echo", text="x")
                return "result" in raw.read()

        until(is_served)
        for each in crowd:
            each.socket.close()


def test_connections_that_send_nothing_keep_out_no_client(path: Path) -> None:
    with listening(f"unix:{path}", connections=20) as (server, address):
        silent = [SocketClient(address) for _ in range(100)]
        for _ in range(30):
            assert serves(address)
        assert server.log().count("gave way to a new connection") == 10
        for each in silent:
            each.socket.close()


def test_connections_that_send_nothing_do_not_use_up_the_descriptors(path: Path) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))

    with piped("socket_server.py", f"unix:{path}", preexec_fn=few) as server:
        address = parse_address(server.line().decode())
        silent = [SocketClient(address) for _ in range(100)]
        for _ in range(10):
            assert serves(address)
        assert "accepting paused" not in server.log()
        for each in silent:
            each.socket.close()


def test_clients_that_connect_again_and_again_do_not_fill_the_log(path: Path) -> None:
    with listening(f"unix:{path}") as (server, address):
        for n in range(300):
            with SocketClient(address) as raw:
                raw.socket.sendall(b'{"cut' if n % 2 else b"nonsense\n{}\n")
                raw.socket.shutdown(socket.SHUT_WR)
                while raw.line():
                    pass
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait() == 0
        log = server.log()
        # Ten of each kind, then how many more there were.
        assert log.count("invalid message from the client") == 10 + 1
        assert log.count("connection closed: ") == 10 + 1
        assert "140 more warnings suppressed: connection closed: %s" in log
        assert "290 more warnings suppressed: invalid message from the client: %s" in log


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    if wanted < 1500:
        pytest.skip("this system has too few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("census", "many_descriptors")
def test_five_hundred_clients_at_once_are_served_and_leave_nothing(path: Path) -> None:
    async def script() -> None:
        app = Server("crowd")

        @app.tool
        async def echo(text: str) -> str:
            return text

        async with app.listen(Unix(path)) as server:

            async def one(n: int) -> str:
                async with Client(Unix(path)) as client:
                    first = (await client.call_tool("echo", {"text": str(n)})).text
                    arrived.append(n)
                    await everybody.wait()
                    return first

            arrived: list[int] = []
            everybody = asyncio.Event()
            crowd = [asyncio.create_task(one(n)) for n in range(500)]
            await until_async(
                lambda: len(arrived) == 500 or any(each.done() for each in crowd),
                "they were not all served",
            )
            assert server.connections == 500
            everybody.set()
            assert await asyncio.gather(*crowd) == [str(n) for n in range(500)]
            await until_async(lambda: server.connections == 0)
            assert app._core.runtime.connections == set()

    run(script, timers_too=True)
    kinds = (Connection, Session, KeepAlive, AcceptedSocket, DialledSocket)
    until(lambda: not alive(*kinds), lambda: f"left behind: {alive(*kinds)[:3]}")


@pytest.mark.usefixtures("census")
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_connections_that_come_and_go_grow_nothing(path: Path, kind: str) -> None:
    async def script() -> int:
        app = Server("coming and going")

        @app.tool
        async def echo(text: str) -> str:
            return text

        text = f"unix:{path}" if kind == "unix" else "tcp://127.0.0.1:0"
        async with app.listen(text, limits=SocketLimits(connections=8)) as server:

            async def come_and_go(n: int) -> None:
                if n % 2:
                    async with Client(server.address) as client:
                        await client.call_tool("echo", {"text": "x"})
                else:
                    transport = server.address.transport(app._core.policy)
                    await transport.connect()
                    await transport.close()
                await until_async(lambda: server.connections == 0)

            return await grown(come_and_go, 100, first=60)

    blocks = run(script)
    gc.collect()
    assert blocks < 300
    kinds = (Connection, Session, KeepAlive, AcceptedSocket, DialledSocket)
    until(lambda: not alive(*kinds), lambda: f"left behind: {alive(*kinds)[:3]}")
