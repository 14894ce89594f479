"""`conformance/server.py`: a server that does not start, ends early, or fails is reported."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from conformance.server import ServerFailed, free_port, running

LISTEN = """
import os, signal, socket, sys
# Not an exception, which is lost if the handler runs inside a finalizer.
signal.signal(signal.SIGTERM, lambda *_: os._exit(int(sys.argv[3])))
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print(sys.argv[2], flush=True)
listener.settimeout(0.2)  # a signal just before the wait does not interrupt it
while True:
    try:
        accepted = listener.accept()[0]
    except TimeoutError:
        continue
    if accepted.recv(1) == b"x":
        os._exit(7)
"""


def command(port: int, text: str = "", status: int = 0) -> list[str]:
    return [sys.executable, "-c", LISTEN, str(port), text, str(status)]


def test_a_server_runs_for_the_length_of_the_block(tmp_path: Path) -> None:
    port = free_port()
    with running(command(port, "ready"), port, tmp_path / "log") as url:
        assert url == f"http://127.0.0.1:{port}/mcp"
        socket.create_connection(("127.0.0.1", port)).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    assert (tmp_path / "log").read_text() == "ready\n"


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with (
            pytest.raises(ServerFailed, match="is taken"),
            running(command(port), port, tmp_path / "log"),
        ):
            pass
    assert not (tmp_path / "log").exists()


def test_a_server_that_does_not_start_is_reported_with_its_log(tmp_path: Path) -> None:
    failing = [sys.executable, "-c", "import sys; sys.exit('no such option')"]
    with (
        pytest.raises(ServerFailed, match="did not start\nno such option"),
        running(failing, free_port(), tmp_path / "log"),
    ):
        pass


def test_a_server_that_ends_early_is_reported(tmp_path: Path) -> None:
    port = free_port()
    with (
        pytest.raises(ServerFailed, match="status 7"),
        running(command(port), port, tmp_path / "log"),
        socket.create_connection(("127.0.0.1", port)) as connection,
    ):
        connection.sendall(b"x")
        assert connection.recv(1) == b""


def test_a_status_other_than_zero_and_a_traceback_are_reported(tmp_path: Path) -> None:
    port = free_port()
    with (
        pytest.raises(ServerFailed, match="status 3"),
        running(command(port, status=3), port, tmp_path / "log"),
    ):
        pass
    port = free_port()
    with (
        pytest.raises(ServerFailed, match="traceback"),
        running(command(port, "Traceback (most recent call last):"), port, tmp_path / "log"),
    ):
        pass
