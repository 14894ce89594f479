"""The screens of `trunkline shell`, at every width, with and without colour."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Terminal

    Start = Callable[..., Terminal]


@pytest.fixture
def shell(on_screen: Start, address: str, tmp_path: Path) -> Terminal:
    """Return a shell with an empty history, at its prompt."""
    run = on_screen("shell", address, XDG_STATE_HOME=str(tmp_path / "state"))
    until_prompt(run)
    return run


def until_prompt(run: Terminal) -> None:
    """Wait for an empty prompt."""
    run.read_until(lambda: run.text.rpartition("\n")[2].endswith(">"))


def enter(run: Terminal, line: str) -> None:
    """Type a line, and wait for the next prompt."""
    prompts = run.text.count("\ndemo>")
    run.type(f"{line}\r")
    run.read_until(lambda: run.text.count("\ndemo>") > prompts)
    until_prompt(run)


def test_the_help_of_the_shell(shell: Terminal) -> None:
    enter(shell, "help")
    enter(shell, "help call")
    shell.assert_screen("shell-help", is_live=True)


def test_commands_of_the_shell_and_their_errors(shell: Terminal) -> None:
    enter(shell, "add a=1 b=2")
    enter(shell, "ad a=1")
    enter(shell, "add a=x b=2")
    enter(shell, "fail")
    enter(shell, "list tools forecast")
    enter(shell, "status")
    shell.assert_screen(
        "shell-commands", {r"unix:\S+": "unix:PATH", r"\d+ bytes": "N bytes"}, is_live=True
    )


def test_the_menu_of_completions(shell: Terminal) -> None:
    shell.type("forecast \t")
    shell.until("place.lon=")
    shell.type("\t")
    shell.until("forecast city=")
    shell.assert_screen("shell-completion", is_live=True)


def test_notifications_above_the_line(on_screen: Start, tmp_path: Path) -> None:
    folder = tmp_path / "scripted"
    folder.mkdir()
    script = str(Path(__file__).with_name("scripted.py"))
    words = ["shell", "--", sys.executable, script, str(folder)]
    run = on_screen(*words, XDG_STATE_HOME=str(tmp_path / "state"))
    until_prompt(run)
    run.type("echo text=ha")
    run.until("text=ha")
    told = {
        "message": {"level": "error", "logger": "fire", "data": "on \x1b[31mfire\n" + "x" * 150},
        "tools/list_changed": {},
    }
    lines = [
        json.dumps({"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params})
        for method, params in told.items()
    ]
    (folder / "new").write_text("\n".join(lines))
    (folder / "new").rename(folder / "1.send")
    run.until("have changed")
    run.read_until(lambda: run.text.endswith("echo text=ha"))
    run.type("lf\r")
    run.until("said half")
    until_prompt(run)
    (folder / "new").write_text("exit")
    (folder / "new").rename(folder / "2.send")
    run.until("(not connected)>")
    run.assert_screen("shell-notifications", is_live=True)
