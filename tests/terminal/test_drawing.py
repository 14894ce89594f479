"""What is drawn on a terminal and what is not in a pipe: width, colour, progress."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., Any]


def piped(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command without a terminal."""
    dropped = ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
    plain = {name: value for name, value in os.environ.items() if name not in dropped}
    return subprocess.run(
        [sys.executable, "-m", "trunkline", *words],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
        env={**plain, **environment},
    )


# Width


def lines_of(run: Any) -> list[str]:
    """Return what was written, line by line: a line that is too long is one here."""
    import re

    text: str = re.sub(rb"\x1b\[[0-9;]*m", b"", run.raw).decode()
    return text.replace("\r", "").split("\n")


@pytest.mark.parametrize("columns", [60, 200])
def test_no_line_of_a_list_is_wider_than_the_terminal(
    terminal: Start, server: list[str], columns: int
) -> None:
    run = terminal("list", *server, columns=columns)
    assert run.wait() == 0
    lines = lines_of(run)
    assert max(map(len, lines)) <= columns
    assert any(line.startswith("  forecast") for line in lines)
    # In the narrow one the long description is wrapped, not cut.
    assert ("    a rather long description." in lines) == (columns == 60)
    assert "…" not in "".join(lines)


def test_a_pipe_gets_every_line_in_full(server: list[str]) -> None:
    shown = piped("list", *server).stdout.decode()
    assert "in a city of which this is a rather long description.\n" in shown
    assert "…" not in shown


# Colour


def test_a_terminal_gets_colour(terminal: Start, server: list[str]) -> None:
    run = terminal("list", *server)
    assert run.wait() == 0
    assert b"\x1b[1m" in run.raw
    assert b"\x1b[33m" in run.raw  # what is deprecated


@pytest.mark.parametrize(
    "words", [["list"], ["call", "count", "steps=2"], ["call", "warn", "--log", "warning"]]
)
def test_no_color_output_has_no_escape_sequences(
    terminal: Start, server: list[str], words: list[str]
) -> None:
    run = terminal(*words, *server, NO_COLOR="1")
    assert run.wait() == 0
    assert b"\x1b" not in run.raw


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "tools", "--long"],
        ["call", "shout"],
        ["call", "warn", "--log", "warning"],
    ],
)
def test_piped_output_has_no_escape_sequences(server: list[str], words: list[str]) -> None:
    run = piped(*words, *server)
    assert run.returncode == 0
    assert b"\x1b" not in run.stdout + run.stderr


def test_control_characters_in_tool_output_are_escaped(terminal: Start, server: list[str]) -> None:
    run = terminal("call", "shout", *server)
    assert run.wait() == 0
    assert b"\x1b[31m" not in run.raw
    assert "\\x1b[31mred\\x07\nnext" in run.text


# Progress


def test_progress_is_a_bar_that_is_gone_in_the_end(terminal: Start, server: list[str]) -> None:
    run = terminal("call", "count", "steps=4", "wait=0.3", *server)
    run.until("50% step 2")
    assert run.text.startswith("████████████░░░░░░░░░░░░")
    assert run.wait() == 0
    assert run.text == "counted"


def test_progress_without_a_total_is_a_count(terminal: Start, server: list[str]) -> None:
    run = terminal("call", "count", "steps=3", "wait=0.3", "has_total=no", *server)
    run.until(" 2 step 2")
    assert "%" not in run.text
    assert run.wait() == 0
    assert run.text == "counted"


TASK_SERVER = """
import asyncio, pathlib
from trunkline import Context, Server

app = Server("demo")

@app.tool(task="required")
async def work(ctx: Context, gate: str) -> str:
    await ctx.progress(3, 5, "step 3")
    while not pathlib.Path(gate).exists():
        await asyncio.sleep(0.02)
    return "worked"

app.run()
"""


def test_progress_of_a_task_is_drawn_as_its_status_message(terminal: Start, tmp_path: Path) -> None:
    script, gate = tmp_path / "server.py", tmp_path / "gate"
    script.write_text(TASK_SERVER)
    run = terminal("call", "work", f"gate={gate}", "--", sys.executable, str(script))
    run.until("step 3 (3 of 5)")
    gate.touch()
    assert run.wait() == 0
    assert run.text == "worked"


def test_progress_bar_fits_the_terminal_width(terminal: Start, server: list[str]) -> None:
    run = terminal("call", "count", "steps=2", "wait=0.3", *server, columns=20)
    run.until("█")
    assert len(run.text.split("\n")) == 1
    assert run.wait() == 0
    assert run.text == "counted"


def test_wide_characters_are_erased_completely(terminal: Start, server: list[str]) -> None:
    run = terminal("call", "count", "steps=2", "wait=0.3", "word=漢字漢字漢字", *server)
    run.until("漢字漢字漢字 1")
    assert run.wait() == 0
    assert run.text == "counted"


def test_progress_is_not_drawn_in_a_pipe(server: list[str]) -> None:
    run = piped("call", "count", "steps=3", *server)
    assert (run.stdout, run.stderr) == (b"counted\n", b"")


def test_a_warning_of_the_server_is_shown_and_less_is_not(
    terminal: Start, server: list[str]
) -> None:
    run = terminal("call", "warn", "--log", "warning", *server)
    assert run.wait() == 0
    assert "warning demo: rain is coming" in run.text
    assert "all is well" not in run.text
