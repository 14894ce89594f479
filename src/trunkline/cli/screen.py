"""What is printed for people: tables and emphasis, with colour on a terminal only."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

__all__ = ["bold", "columns", "dim", "paint", "print_json", "table", "wants_colour", "width"]

_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "cyan": "36"}
# Wider lines are hard to read, whatever the terminal offers.
_WIDEST: Final = 120
_NARROWEST: Final = 40


def wants_colour(stream: TextIO | None = None) -> bool:
    """Say whether to colour: on a terminal, unless NO_COLOR is set; always with FORCE_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str) -> str:
    """Return `text` in a style: bold, dim, red, yellow or cyan."""
    return f"\033[{_CODES[style]}m{text}\033[0m" if wants_colour() else text


def bold(text: str) -> str:
    """Return `text` emphasised."""
    return paint(text, "bold")


def dim(text: str) -> str:
    """Return `text` in the background."""
    return paint(text, "dim")


def width() -> int:
    """Return how wide a line may be."""
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((100, 24)).columns))


def table(rows: Iterable[Sequence[str]], heading: Sequence[str] = ()) -> str:
    """Return rows in aligned columns; the last one is cut to fit a terminal, never a pipe."""
    body = [list(row) for row in rows]
    every = [list(heading), *body] if heading else body
    if not every:
        return ""
    widths = [max(len(row[place]) for row in every) for place in range(len(every[0]))]
    lines = [_line(row, widths) for row in every]
    if heading:
        lines[0] = bold(lines[0])
    return "\n".join(lines)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    line = "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
    most = width()
    return f"{line[: most - 1]}…" if sys.stdout.isatty() and len(line) > most else line


def columns(facts: Iterable[tuple[str, str]]) -> str:
    """Return facts as a list of name and value; empty values are left out."""
    return table([(f"{name}:", value) for name, value in facts if value])


def print_json(value: Any) -> None:
    """Print a value for programs: one JSON document and nothing else."""
    import json

    print(json.dumps(value, ensure_ascii=False, indent=2))
