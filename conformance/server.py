"""The server under test: a process on a free port of the loopback interface."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["ServerFailed", "commands", "free_port", "running"]

ROOT: Final = Path(__file__).resolve().parent.parent
HOST: Final = "127.0.0.1"
START_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 15.0
LOG_LINES: Final = 20


class ServerFailed(Exception):
    """The server did not start, ended early, or reported an error; the text has its log."""


def commands(port: int, *, asgi: bool) -> list[str]:
    """Return the command of the example server, by itself or under uvicorn."""
    if not asgi:
        return [sys.executable, str(ROOT / "examples" / "everything_server.py"), str(port)]
    options = ["--host", HOST, "--port", str(port), "--log-level", "warning"]
    return [sys.executable, "-m", "uvicorn", "conformance.asgi_server:asgi", *options]


def free_port() -> int:
    """Return a port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(command: list[str], port: int, log: Path) -> Iterator[str]:
    """Run the server for the length of the block; yield its URL.

    Raises:
        ServerFailed: the port is taken, the server does not listen within 30 s, ends by itself,
            does not stop on SIGTERM, or has logged a traceback.
    """
    if _is_open(port):
        raise ServerFailed(f"port {port} is taken by another process")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        _wait_until_open(process, port, log)
        yield f"http://{HOST}:{port}/mcp"
        if process.poll() is not None:
            raise ServerFailed(f"the server ended, status {process.returncode}\n{_tail(log)}")
        _stop(process, log)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if b"Traceback" in log.read_bytes():
        raise ServerFailed(f"the server has logged a traceback: {os.path.relpath(log, ROOT)}")


def _is_open(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _wait_until_open(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not _is_open(port):
        if process.poll() is not None:
            raise ServerFailed(f"the server did not start\n{_tail(log)}")
        if time.monotonic() > deadline:
            raise ServerFailed(f"no server on port {port} after {START_TIMEOUT_S:.0f} s")
        time.sleep(0.05)


def _stop(process: subprocess.Popen[bytes], log: Path) -> None:
    process.terminate()
    try:
        status = process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise ServerFailed(f"the server runs {STOP_TIMEOUT_S:.0f} s after SIGTERM") from None
    # uvicorn ends by the signal itself, once it has shut down.
    if status not in (0, -signal.SIGTERM):
        raise ServerFailed(f"the server stopped with status {status}\n{_tail(log)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
