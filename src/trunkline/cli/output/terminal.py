"""What is printed for people: tables and emphasis, with colour on a terminal only.

A standard stream that was closed when Python started is None: what is written there is meant for
nobody, and no verb fails for it. One that cannot be written is named in the error.
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

_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "cyan": "36"}
# Wider lines are hard to read, whatever the terminal offers.
_WIDEST: Final = 120
_NARROWEST: Final = 40


def is_terminal(stream: TextIO | None) -> bool:
    """Say whether a standard stream is a terminal; it is None where it was closed."""
    return stream is not None and stream.isatty()


def wants_colour(stream: TextIO | None = None) -> bool:
    """Say whether to colour: on a terminal, unless NO_COLOR is set; always with FORCE_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream or sys.stdout) and os.environ.get("TERM") != "dumb"


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
    return cut(line, width()) if is_terminal(sys.stdout) else line


def columns(facts: Iterable[tuple[str, str]]) -> str:
    """Return facts as a list of name and value; empty values are left out."""
    return table([(f"{name}:", value) for name, value in facts if value])


def print_json(value: Any) -> None:
    """Print a value for programs: one JSON document and nothing else."""
    import json

    with writing():
        print(json.dumps(value, ensure_ascii=False, indent=2))


@contextmanager
def writing() -> Iterator[None]:
    """Write to standard output, and have it written at the end.

    Nobody is told of a reader that leaves early.

    Raises:
        OSError: it cannot be written; its `filename` says so.
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
    # What is left in the buffer must go somewhere, or the interpreter complains when it ends.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def tell(text: str) -> None:
    """Say something on standard error."""
    # Without this test a closed stream would have it printed on the other one.
    if sys.stderr is not None:
        print(text, file=sys.stderr)
