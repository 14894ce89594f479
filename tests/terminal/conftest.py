"""A terminal for the command line to run in: a real one, drawn by an emulator."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.terminal.emulator import SCREEN_ROWS, WAIT_S, WIDTHS, Terminal

__all__ = ["Terminal"]


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Return what starts the command in a terminal; all are closed in the end."""
    opened: list[Terminal] = []

    def start(*words: str, columns: int = 80, **options: Any) -> Terminal:
        opened.append(Terminal(list(words), columns, **options))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


# The width of most terminals by default, and the others in a full run.
@pytest.fixture(
    params=[pytest.param(each, marks=() if each == 80 else pytest.mark.full) for each in WIDTHS]
)
def columns(request: pytest.FixtureRequest) -> int:
    """Return each width at which screens are compared."""
    return int(request.param)


# Without colour the text is the same; that it is, a full run shows.
@pytest.fixture(params=[pytest.param("plain", marks=pytest.mark.full), "colour"])
def has_colour(request: pytest.FixtureRequest) -> bool:
    """Return each setting of colour."""
    return bool(request.param == "colour")


@pytest.fixture
def on_screen(
    terminal: Callable[..., Terminal], columns: int, has_colour: bool
) -> Callable[..., Terminal]:
    """Return what starts the command at every width, with and without colour.

    A test with this fixture runs six times; `run.assert_screen(name)` compares.
    """
    fixed: dict[str, Any] = {"columns": columns, "rows": SCREEN_ROWS}
    if not has_colour:
        fixed["NO_COLOR"] = "1"
    return lambda *words, **options: terminal(*words, **{**fixed, **options})


@pytest.fixture
def server(address: str) -> list[str]:
    """Return the words that start a server, which is there already: its process passes on."""
    script = str(Path(__file__).with_name("socket_server.py"))
    return ["--", sys.executable, "-I", "-S", script, address.removeprefix("unix:")]


@pytest.fixture
def process() -> list[str]:
    """Return the words that start the same server as a process, with its environment and log."""
    return ["--", sys.executable, str(Path(__file__).with_name("server.py"))]


@pytest.fixture
def silent() -> Callable[[str], list[str]]:
    """Return the words that start a server which falls silent at a method."""
    script = str(Path(__file__).with_name("silent.py"))
    return lambda method: ["--", sys.executable, script, method]


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Return the address of a running server, the same as that of `server`."""
    # Not below tmp_path: the path of a socket is at most some 100 bytes.
    folder = tempfile.mkdtemp(prefix="tl-")
    path = Path(folder, "demo.sock")
    script = str(Path(__file__).with_name("server.py"))
    with subprocess.Popen([sys.executable, script, f"unix:{path}"]) as process:
        try:
            _wait_for(path.exists)
            yield f"unix:{path}"
        finally:
            process.terminate()
    shutil.rmtree(folder)


def _wait_for(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.01)
