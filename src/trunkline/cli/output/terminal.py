"""Output for people: tables, emphasis, and colour on a terminal only.

A standard stream that was closed when Python started is None; output to it is dropped. An
`OSError` on output names the stream.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TextIO

__all__ = [
    "bold",
    "cells",
    "columns",
    "cut",
    "dim",
    "is_terminal",
    "paint",
    "print_json",
    "table",
    "tell",
    "terminal_width",
    "wants_colour",
    "width",
    "writing",
]

_STYLE_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "cyan": "36"}
# Columns; longer lines are hard to read.
_MAX_WIDTH: Final = 120
_MIN_WIDTH: Final = 40


def is_terminal(stream: TextIO | None) -> bool:
    """Return True if a standard stream is a terminal; None is a closed stream."""
    return stream is not None and stream.isatty()


def wants_colour(stream: TextIO | None = None) -> bool:
    """Return True on a terminal, unless NO_COLOR is set; always with FORCE_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream or sys.stdout) and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str) -> str:
    """Return `text` in a style: bold, dim, red, yellow or cyan."""
    return f"\033[{_STYLE_CODES[style]}m{text}\033[0m" if wants_colour() else text


def bold(text: str) -> str:
    """Return `text` in bold."""
    return paint(text, "bold")


def dim(text: str) -> str:
    """Return `text` dimmed."""
    return paint(text, "dim")


def width() -> int:
    """Return the columns of a line of text, 40 to 120."""
    return max(_MIN_WIDTH, min(_MAX_WIDTH, terminal_width()))


def terminal_width() -> int:
    """Return the columns in $COLUMNS or of the terminal; 100 if neither is known."""
    # As shutil.get_terminal_size, which loads four compression modules.
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 100
    except (AttributeError, OSError, ValueError):
        return 100  # not a terminal


def cells(text: str) -> int:
    """Return the columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    # Imported here: most texts are ASCII.
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text
    )


def cut(text: str, most: int) -> str:
    """Return a text cut to `most` columns, with an ellipsis if it was longer."""
    if cells(text) <= most:
        return text
    kept = text[: max(0, most - 1)]
    while kept and cells(kept) > most - 1:
        kept = kept[:-1]
    return f"{kept}…"


def table(rows: Iterable[Sequence[str]], heading: Sequence[str] = ()) -> str:
    """Return rows in aligned columns, cut to the width of a terminal but not in a pipe."""
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
    return cut(line, width()) if is_terminal(sys.stdout) else line


def columns(facts: Iterable[tuple[str, str]]) -> str:
    """Return a two-column table of names and values; empty values are left out."""
    return table([(f"{name}:", value) for name, value in facts if value])


def print_json(value: Any) -> None:
    """Print one JSON document."""
    import json

    with writing():
        print(json.dumps(value, ensure_ascii=False, indent=2))


@contextmanager
def writing() -> Iterator[None]:
    """Flush standard output at the end of the block; ignore a closed pipe.

    Raises:
        OSError: it cannot be written; its `filename` is "standard output".
    """
    try:
        yield
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
    except OSError as error:
        _drop_output()
        raise OSError(error.errno, error.strerror, "standard output") from None


def _drop_output() -> None:
    # The interpreter flushes the rest of the buffer at exit, and must not fail.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def tell(text: str) -> None:
    """Print a line on standard error."""
    # With a closed standard error, `print` would write to standard output instead.
    if sys.stderr is not None:
        print(text, file=sys.stderr)
