"""The transcripts in docs/shell.md are what a terminal shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "shell.md").read_text(encoding="utf-8")
PROMPT = "weather> "


def block(language: str) -> str:
    """Return the only block of a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def counted(lines: list[str]) -> list[str]:
    """Return lines without the number of messages, which depends on the order of some."""
    return [re.sub(r"saved \d+ messages", "saved N messages", line) for line in lines]


def test_the_session_of_the_page_can_be_typed(terminal: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    first, *lines = block("text").splitlines()
    words = first.removeprefix("$ trunkline ").split()
    environment = {"NO_COLOR": "1", "XDG_STATE_HOME": str(tmp_path / "state")}
    run = terminal(*words, cwd=tmp_path, **environment)
    for line in lines:
        if line.startswith(PROMPT):
            run.read_until(lambda: run.text.rpartition("\n")[2] == PROMPT.rstrip())
            run.type(line.removeprefix(PROMPT) + "\r")
            # Else the prompt that is waited for next could be this one.
            run.read_until(lambda typed=line: typed in run.text)
    assert run.wait() == 0
    assert counted(run.text.splitlines()) == counted(lines)
    run.assert_usable()


def test_the_script_of_the_page_prints_what_it_shows() -> None:
    command, _, shown = block("console").partition("\n")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    run = subprocess.run(
        ["bash", "-c", command.removeprefix("$ ")],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, shown, "")
