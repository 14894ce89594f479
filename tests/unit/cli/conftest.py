"""A server to talk to, and a way to run verbs without a process of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

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


@pytest.fixture
def server() -> list[str]:
    """Return the words that start a server."""
    return ["--", sys.executable, str(_TERMINAL / "server.py")]


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Return the words that start a server which falls silent at a method."""
    monkeypatch.setenv("PIDFILE", str(tmp_path / "pid"))
    return lambda method: ["--", sys.executable, str(_TERMINAL / "silent.py"), method]
