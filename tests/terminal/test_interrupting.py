"""Ctrl-C, pressed in a terminal at every stage: nothing is left, and the terminal can be used."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., Any]


@pytest.fixture
def pid_file(tmp_path: Path) -> Path:
    return tmp_path / "pid"


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def assert_ended(run: Any, pid_file: Path) -> None:
    """See that a run was interrupted, and left neither a child nor words."""
    assert run.wait() == 130
    assert not is_there(int(pid_file.read_text()))
    assert "Traceback" not in run.text
    assert "trunkline" not in run.text
    run.assert_usable()


@pytest.mark.parametrize(
    ("stage", "method"),
    [
        ("connecting", "initialize"),
        ("connecting", "server/discover"),
        ("listing", "tools/list"),
        ("calling", "tools/call"),
        ("closing", "close"),
    ],
)
def test_ctrl_c_ends_a_call_at_every_stage(
    terminal: Start, silent: Any, pid_file: Path, stage: str, method: str
) -> None:
    run = terminal("call", "wait", *silent(method), PIDFILE=str(pid_file))
    run.until_there(pid_file.with_name("pid.silent"))
    run.type("\x03")
    assert_ended(run, pid_file)
    assert (b"waited" in run.raw) == (stage == "closing")


def test_ctrl_c_takes_the_bar_of_progress_away(
    terminal: Start, silent: Any, pid_file: Path
) -> None:
    run = terminal("call", "wait", *silent("tools/call"), PIDFILE=str(pid_file))
    run.until("25% begun")
    run.type("\x03")
    assert_ended(run, pid_file)
    assert "25%" not in run.text


def test_ctrl_c_ends_a_question(terminal: Start, server: list[str], pid_file: Path) -> None:
    run = terminal("call", "order", *server, PIDFILE=str(pid_file))
    run.until("Your name:")
    run.type("\x03")
    assert_ended(run, pid_file)


def test_ctrl_c_at_a_secret_has_the_terminal_show_what_is_typed_again(
    terminal: Start, server: list[str], pid_file: Path
) -> None:
    run = terminal("call", "unlock", *server, PIDFILE=str(pid_file))
    run.until("password:")
    run.type("canary")
    run.type("\x03")
    assert_ended(run, pid_file)
    assert b"canary" not in run.raw


@pytest.mark.parametrize("verb", [["list"], ["read", "x:y"], ["prompt", "x"], ["ping"]])
def test_ctrl_c_ends_the_other_verbs(
    terminal: Start, silent: Any, pid_file: Path, verb: list[str]
) -> None:
    run = terminal(*verb, *silent("initialize"), PIDFILE=str(pid_file))
    run.until_there(pid_file.with_name("pid.silent"))
    run.type("\x03")
    assert_ended(run, pid_file)


def test_ctrl_c_between_pings(terminal: Start, server: list[str], pid_file: Path) -> None:
    run = terminal("ping", "-c", "3", "--interval", "60", *server, PIDFILE=str(pid_file))
    run.until("answer 1")
    run.type("\x03")
    assert_ended(run, pid_file)


def test_a_second_ctrl_c_does_not_wait_for_a_server_that_will_not_leave(
    terminal: Start, silent: Any, pid_file: Path
) -> None:
    run = terminal("call", "wait", *silent("close"), PIDFILE=str(pid_file))
    run.until_there(pid_file.with_name("pid.silent"))
    run.type("\x03")
    run.type("\x03")
    assert_ended(run, pid_file)
