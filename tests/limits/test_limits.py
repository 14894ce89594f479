"""The costs that are limited without a clock."""

from __future__ import annotations

import asyncio
import platform
from pathlib import Path
from typing import Any

import pytest

from bench.limits import Limit, calls, http_system_calls, limits, modules, ticks
from bench.servers import ours
from bench.servers.driver import Driver
from bench.servers.http_load import Connection, is_complete
from trunkline.transports.http.server.response_writer import ResponseWriter


@pytest.mark.parametrize("limit", limits(), ids=lambda limit: limit.name)
def test_a_cost_stays_within_its_limit(limit: Limit) -> None:
    assert limit.count() <= limit.most


@pytest.mark.parametrize("limit", limits(), ids=lambda limit: limit.name)
def test_a_limit_is_near_enough_to_be_felt(limit: Limit) -> None:
    # A limit of twice the cost would let the path double unnoticed.
    assert limit.count() * 2 >= limit.most


def test_the_meter_counts_calls() -> None:
    def twice() -> None:
        len("")
        len("")

    assert calls(twice) == 2


def test_the_meter_counts_modules() -> None:
    assert modules("-c", "import colorsys") == 1


def test_the_meter_counts_what_a_program_loads_for_its_input() -> None:
    program = "import sys\nif sys.stdin.read(): import colorsys"
    assert modules("-c", program) == 0
    assert modules("-c", program, given=b"go") == 1


def test_the_meter_counts_turns_of_the_loop() -> None:
    async def three_times() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async def count() -> int:
        return await ticks(three_times())

    assert asyncio.run(count()) == 3


def test_the_meter_counts_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ResponseWriter.respond

    def respond(self: ResponseWriter, status: int, body: bytes, headers: Any = ()) -> None:
        self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        whole(self, status, body, headers)

    monkeypatch.setattr(ResponseWriter, "respond", respond)
    monkeypatch.setattr(Connection, "ask", _ask_twice)
    assert http_system_calls(lambda counts: counts.sends, "2025-11-25") == 2


def _ask_twice(self: Connection, data: bytes) -> tuple[bytes, bytes]:
    """Read past the interim response."""
    self.socket.sendall(data)
    found = b""
    while not is_complete(found):
        found = (found + self.socket.recv(65536)).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    head, _, body = found.partition(b"\r\n\r\n")
    return head, body


def test_the_meter_counts_turns_of_the_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    async def echo(text: str) -> str:
        for _ in range(10):
            await asyncio.sleep(0)
        return text

    monkeypatch.setattr(ours, "echo", echo)
    assert http_system_calls(lambda counts: counts.selects, "2025-11-25") >= 11


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="how glibc keeps memory")
def test_a_large_message_uses_the_memory_of_the_one_before() -> None:
    server, text, rounds = Driver("ours", "echo"), "a line\n" * 150_000, 10
    try:
        server.open()
        # The first ones take memory from the system.
        server.call("echo", [text] * 5)
        before = _page_faults(server.pid)
        for _ in range(rounds):
            server.call("echo", [text])
        # Each copy of the text has 260 pages.
        assert (_page_faults(server.pid) - before) / rounds < 260
    finally:
        server.close()


def _page_faults(pid: int) -> int:
    """Return how many pages the system has given to a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[7])
