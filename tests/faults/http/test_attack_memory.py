"""The memory of a server is bounded while a thousand connections send what they never finish."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.faults.http.serving import Closed, Wire, single

ROOT: Final = Path(__file__).resolve().parents[3]
CONNECTIONS: Final = 1000
# Addresses that they come from: one has an eighth of the bytes at most.
SOURCES: Final = 25
SERVER_BYTES: Final = 64 << 20
# What an attack may take: the bytes of the server, a tenth more, and 32 KiB for each connection.
MOST: Final = SERVER_BYTES * 11 // 10 + CONNECTIONS * (32 << 10)


class Attacked:
    """The server, and what its system says of its memory."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self._pid = pid
        self._before = self._resident()

    def _resident(self) -> int:
        status = Path(f"/proc/{self._pid}/status").read_text()
        (line,) = (each for each in status.splitlines() if each.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024

    @property
    def grown(self) -> int:
        """The most that it has taken since, in bytes."""
        return self._resident() - self._before

    def connect(self, number: int) -> Wire:
        return Wire(self.port, source=f"127.0.1.{1 + number % SOURCES}")

    def check(self) -> None:
        """A client that asks is served."""
        with Wire(self.port) as wire:
            answer = wire.ask(single(wire, "echo", text="quiet"))
            assert answer.status == 200, answer


@contextmanager
def attacked() -> Iterator[Attacked]:
    command = [sys.executable, "-m", "tests.faults.http.attacked_server"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        port, pid = map(int, process.stdout.readline().split())
        served = Attacked(port, pid)
        served.check()
        try:
            yield served
        finally:
            process.kill()


def unfinished_bodies(served: Attacked, stack: ExitStack) -> None:
    for number in range(CONNECTIONS):
        wire = stack.enter_context(served.connect(number))
        headers = [("Content-Type", "application/json"), ("Content-Length", "15000000")]
        wire.try_send(wire.head("POST", "/mcp", headers) + b"[" * 300_000)


def slow_websockets(served: Attacked, stack: ExitStack) -> None:
    for number in range(CONNECTIONS):
        wire = stack.enter_context(served.connect(number))
        asked = [
            *(("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")),
            ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
        ]
        wire.send(wire.head("GET", "/mcp", asked))
        try:
            assert wire.start().status == 101
        except Closed:
            continue
        wire.try_send(b"\x81\xff" + (15_000_000).to_bytes(8, "big") + bytes(4) + b"[" * 300_000)


def small_chunks(served: Attacked, stack: ExitStack) -> None:
    for number in range(12):
        wire = stack.enter_context(served.connect(number))
        headers = [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")]
        wire.try_send(wire.head("POST", "/mcp", headers) + b"2\r\n[[\r\n" * 400_000)


@pytest.mark.parametrize(
    "attack",
    [unfinished_bodies, slow_websockets, small_chunks],
    ids=lambda each: each.__name__,
)
def test_memory_is_bounded_while_a_server_is_attacked(
    attack: Callable[[Attacked, ExitStack], None],
) -> None:
    with attacked() as served, ExitStack() as stack:
        attack(served, stack)
        served.check()
        assert served.grown <= MOST, f"{served.grown >> 20} MiB"
        print(f"{attack.__name__}: {served.grown >> 20} MiB")
