"""What is printed for people: tables and emphasis, with colour on a terminal only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

__all__ = [
    "bold",
    "cells",
    "columns",
    "cut",
    "dim",
    "paint",
    "print_json",
    "table",
    "terminal_width",
    "wants_colour",
    "width",
]

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
    return max(_NARROWEST, min(_WIDEST, terminal_width()))


def terminal_width() -> int:
    """Return how wide the terminal is, or as the environment has it; 100 where neither says."""
    # As shutil.get_terminal_size does, which loads four ways to compress files.
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 100
    except (AttributeError, OSError, ValueError):
        return 100  # no terminal, or none that knows


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    # Imported here: most of what is shown is plain.
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text
    )


def cut(text: str, most: int) -> str:
    """Return so much of a text as fits `most` columns, and a mark where there was more."""
    if cells(text) <= most:
        return text
    kept = text[: max(0, most - 1)]
    while kept and cells(kept) > most - 1:
        kept = kept[:-1]
    return f"{kept}…"


def table(rows: Iterable[Sequence[str]], heading: Sequence[str] = ()) -> str:
    """Return rows in aligned columns; the last one is cut to fit a terminal, never a pipe."""
    body = [list(row) for row in rows]
    every = [list(heading), *body] if heading else body
    if not every:
        return ""
    widths = [max(cells(row[place]) for row in every) for place in range(len(every[0]))]
    lines = [_line(row, widths) for row in every]
    if heading:
        lines[0] = bold(lines[0])
    return "\n".join(lines)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (size - cells(cell)) for cell, size in zip(row, widths, strict=True))
    line = "  ".join(padded).rstrip()
    return cut(line, width()) if sys.stdout.isatty() else line


def columns(facts: Iterable[tuple[str, str]]) -> str:
    """Return facts as a list of name and value; empty values are left out."""
    return table([(f"{name}:", value) for name, value in facts if value])


def print_json(value: Any) -> None:
    """Print a value for programs: one JSON document and nothing else."""
    import json

    print(json.dumps(value, ensure_ascii=False, indent=2))
