"""The picture of the terminal in the README and on the site: made of what the command prints.

`make screens` writes it again; read the difference before committing.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from tools.terminal_picture import terminal_picture

if TYPE_CHECKING:
    from .conftest import Terminal

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "terminal.svg"
TITLE = "A session at the terminal: list a server, call a tool that asks, check a recording"
COLUMNS = 84

# What is typed at the prompt, what the command waits for, the answer, and the exit status.
COMMANDS = (
    ("trunkline list trips.py", "", "", 0),
    ("trunkline call trips.py book city=Oslo", "answer:", "3\n", 0),
    ("trunkline validate talk.jsonl", "", "", 1),
)


def session(terminal: Callable[..., Terminal], folder: Path) -> list[str]:
    """Run the commands, and return the lines of the terminal with their styles."""
    lines: list[str] = []
    for command, question, answer, status in COMMANDS:
        run = terminal(*command.split()[1:], columns=COLUMNS, rows=60, cwd=folder)
        if question:
            run.until(question)
            run.type(answer)
        assert run.wait() == status, run.text
        lines += [f"⟨dim⟩$⟨/⟩ ⟨bold⟩{command}⟨/⟩", *run.styled.split("\n"), ""]
    return lines[:-1]


def test_colour_the_picture_shows_what_the_command_prints(
    terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    shutil.copy(ROOT / "examples" / "trips.py", tmp_path)
    shutil.copy(ROOT / "examples" / "foreign.jsonl", tmp_path / "talk.jsonl")
    lines = session(terminal, tmp_path)
    drawn = terminal_picture(TITLE, lines, COLUMNS)
    if os.environ.get("UPDATE_SCREENS"):
        PICTURE.write_text(drawn, encoding="utf-8")
    assert PICTURE.read_text(encoding="utf-8") == drawn, "run `make screens`"
    # The picture has every line that is not blank.
    space = "{http://www.w3.org/2000/svg}text"
    shown = "".join(each.text or "" for each in ElementTree.fromstring(drawn).iter(space))
    for line in lines:
        for part in re.sub(r"⟨[^⟩]*⟩", "\n", line).split("\n"):
            assert part.strip() in shown
    assert any("Oslo, 3 days" in line for line in lines)
