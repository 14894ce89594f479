"""A server as a process that listens on a port, started and ended by the exchange."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from ..checks import PATIENCE, Unexpected

__all__ = ["ROOT", "ended", "free_port", "served"]

ROOT: Final = Path(__file__).resolve().parent.parent.parent
HOST: Final = "127.0.0.1"
# Seconds: some servers import half a thousand modules, on a machine that is busy.
START: Final = 30.0


def free_port() -> int:
    """Return a port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def served(
    command: list[str], port: int, log: Path, environment: dict[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a server for the length of the block; what it prints goes to `log`.

    Raises:
        Unexpected: it does not listen in time.
    """
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=ROOT,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        await _until_open(process, port, log)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _until_open(process: asyncio.subprocess.Process, port: int, log: Path) -> None:
    try:
        async with asyncio.timeout(START):
            while True:
                if process.returncode is not None:
                    raise Unexpected(f"the server did not start: {_tail(log)}")
                try:
                    _, writer = await asyncio.open_connection(HOST, port)
                except OSError:
                    await asyncio.sleep(0.05)
                else:
                    writer.close()
                    return
    except TimeoutError:
        raise Unexpected(f"no server on port {port} within {START:g} s: {_tail(log)}") from None


async def ended(process: asyncio.subprocess.Process, log: Path, *, is_quiet: bool) -> None:
    """Ask a server to end, and see that it does, in order; one that `is_quiet` logs no traceback.

    Raises:
        Unexpected: it had ended before, does not end, or has printed a traceback.
    """
    if process.returncode is not None:
        raise Unexpected(f"the server ended by itself, with {process.returncode}: {_tail(log)}")
    os.kill(process.pid, signal.SIGTERM)
    try:
        async with asyncio.timeout(PATIENCE):
            status = await process.wait()
    except TimeoutError:
        raise Unexpected(f"the server runs {PATIENCE:g} s after SIGTERM") from None
    # uvicorn and Node end by the signal itself, once they have shut down.
    if status not in (0, -signal.SIGTERM):
        raise Unexpected(f"the server ended with {status}: {_tail(log)}")
    if is_quiet and "Traceback" in log.read_text(errors="replace"):
        raise Unexpected(f"the server printed a traceback: {_tail(log)}")


def _tail(log: Path) -> str:
    return " | ".join(log.read_text(errors="replace").splitlines()[-3:])
