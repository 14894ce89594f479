"""More connections than a process has descriptors: the server goes on, and lets new clients in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.http.serving import Closed, Wire, single, text_of

ROOT = Path(__file__).parents[3]
DESCRIPTORS, CONNECTIONS = 64, 150


@contextmanager
def process(module: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", f"tests.faults.http.{module}", *args]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as found:
        try:
            yield found
        finally:
            if found.poll() is None:
                found.kill()


def line(of: subprocess.Popen[str]) -> list[int]:
    assert of.stdout is not None
    return [int(each) for each in of.stdout.readline().split()]


def end_input(of: subprocess.Popen[str]) -> None:
    assert of.stdin is not None
    of.stdin.close()


@pytest.mark.parametrize(
    "start",
    [b"", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"],
    ids=["silent", "half a head"],
)
def test_idle_connections_beyond_the_descriptors_do_not_keep_others_out(
    start: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with process("limited_server", str(DESCRIPTORS)) as server:
        port, pid = line(server)
        with process("idle_client", str(port), str(CONNECTIONS), start.hex()) as client:
            assert line(client) == [CONNECTIONS]
            # A client that comes after all of them is served, while they are there.
            for attempt in range(200):
                try:
                    with Wire(port) as wire:
                        assert wire.ask(wire.head("GET", "/healthz")).status == 200
                        answer = wire.ask(single(wire, "echo", text="let in"))
                        assert text_of(answer.json) == "let in"
                    break
                except (Closed, ConnectionResetError):
                    # It was the longest idle one when another came.
                    assert attempt < 199
            held = len(os.listdir(f"/proc/{pid}/fd"))
            assert held <= DESCRIPTORS
            end_input(client)
            (left,) = line(client)
        with capsys.disabled():
            print(
                f"\n{CONNECTIONS} connections, {DESCRIPTORS} descriptors: {left} left open", end=""
            )
        assert left < DESCRIPTORS
        end_input(server)
        assert server.wait(60) == 0
