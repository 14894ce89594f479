"""A server to talk to, and a way to run verbs without a process of their own."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.terminal.server import app
from trunkline.cli import command

_TERMINAL = Path(__file__).parents[2] / "terminal"


class Shown(NamedTuple):
    """How a verb ended, and what it wrote."""

    status: int
    out: str
    err: str


Run = Callable[..., Shown]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return what runs a verb, with the words that follow it."""
    monkeypatch.setenv("NO_COLOR", "1")

    def run(verb: str, *words: str) -> Shown:
        status = command.run(verb, words)
        shown = capsys.readouterr()
        return Shown(status, shown.out, shown.err)

    return run


@pytest.fixture(scope="module")
def socket_path() -> Iterator[str]:
    """Return the path of a Unix socket on which a server of this process listens."""
    ready, end = threading.Event(), threading.Event()

    async def listen(path: str) -> None:
        async with app.listen(f"unix:{path}"):
            ready.set()
            await asyncio.to_thread(end.wait)

    # Short: the system has no room for long ones.
    with tempfile.TemporaryDirectory(prefix="cli-") as folder:
        path = f"{folder}/socket"
        thread = threading.Thread(target=lambda: asyncio.run(listen(path)), name="listening")
        thread.start()
        assert ready.wait(60)
        yield path
        end.set()
        thread.join()


@pytest.fixture
def server(socket_path: str) -> list[str]:
    """Return the words that start a server, which is there already: its process passes on."""
    return ["--", sys.executable, "-I", "-S", str(_TERMINAL / "socket_server.py"), socket_path]


@pytest.fixture
def process() -> list[str]:
    """Return the words that start the same server as a process, with its environment and log."""
    return ["--", sys.executable, str(_TERMINAL / "server.py")]


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Return the words that start a server which falls silent at a method."""
    monkeypatch.setenv("PIDFILE", str(tmp_path / "pid"))
    return lambda method: ["--", sys.executable, str(_TERMINAL / "silent.py"), method]
