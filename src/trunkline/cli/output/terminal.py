"""Output for people: width, wrapping, tables, and colour on a terminal only.

A standard stream that was closed when Python started is None; output to it is dropped. An
`OSError` on output names the stream.

The rules that live here, and only here:

* The width is $COLUMNS, else that of the terminal of stdout, stderr or stdin, else 80: in
  `trunkline ... | less` one of the latter two is still the user's terminal.
* On a terminal nothing is cut: cells of a table are wrapped, and what does not fit beside the
  others is put below. A name or URL is never broken. In a pipe a row is one line, for grep.
* A letter takes 0, 1 or 2 columns: combining marks none, East Asian wide letters and emoji two.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import inf
from typing import Any, Final, TextIO

__all__ = [
    "STYLE_CODES",
    "bold",
    "cells",
    "columns",
    "cut",
    "dim",
    "error_text",
    "fitted",
    "highlighted",
    "highlighted_document",
    "is_terminal",
    "paint",
    "print_json",
    "row_width",
    "table",
    "tell",
    "tell_error",
    "terminal_width",
    "wants_colour",
    "width",
    "wrap",
    "writing",
]

STYLE_CODES: Final = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "bold red": "1;31",
}
# Our own styles: those of a server are escaped before.
_STYLE: Final = re.compile("\033\\[[0-9;]*m")
_RESET: Final = "\033[0m"
_WORD: Final = re.compile("( *)([^ ]+)")
# Columns; longer lines are hard to read.
_MAX_WIDTH: Final = 120
_MIN_WIDTH: Final = 40
# Columns if no standard stream is a terminal.
_DEFAULT_WIDTH: Final = 80
# Columns; a narrower column of sentences is hard to read.
_MIN_PROSE_COLUMNS: Final = 30
_GAP: Final = 2
_MIN_COLUMN: Final = 6


def is_terminal(stream: TextIO | None) -> bool:
    """Return True if a standard stream is a terminal; None is a closed stream."""
    return stream is not None and stream.isatty()


def wants_colour(stream: TextIO | None = None) -> bool:
    """Return True on a terminal, unless NO_COLOR is set; always with FORCE_COLOR.

    FORCE_COLOR=0 and FORCE_COLOR=false turn colour off.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced.lower() not in ("0", "false")
    return is_terminal(stream or sys.stdout) and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return `text` in a style, such as bold or red, if `stream` (default: stdout) takes colour."""
    return f"\033[{STYLE_CODES[style]}m{text}{_RESET}" if text and wants_colour(stream) else text


def bold(text: str) -> str:
    """Return `text` in bold."""
    return paint(text, "bold")


def dim(text: str) -> str:
    """Return `text` dimmed."""
    return paint(text, "dim")


# Width


def width() -> int:
    """Return the columns of a line of text, 40 to 120."""
    return max(_MIN_WIDTH, min(_MAX_WIDTH, terminal_width()))


def terminal_width() -> int:
    """Return the columns in $COLUMNS or of the first standard stream that is a terminal, or 80."""
    # As shutil.get_terminal_size, which loads four compression modules.
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        try:
            found = os.get_terminal_size(stream.fileno()).columns
        except (AttributeError, OSError, ValueError):
            continue  # closed, or not a terminal
        if found:
            return found
    return _DEFAULT_WIDTH


def row_width() -> int | None:
    """Return the columns of a row of a table or list; None, for no limit, in a pipe."""
    return max(_MIN_WIDTH, terminal_width()) if is_terminal(sys.stdout) else None


def cells(text: str) -> int:
    """Return the columns that a text takes on a terminal."""
    if "\033" in text:
        text = _STYLE.sub("", text)
    if text.isascii():
        return len(text)
    sizes = {each: _cells_of(each) for each in set(text)}
    total = sum(map(sizes.__getitem__, text))
    if "\ufe0f" in text:
        # It has the letter before it drawn as an emoji, which is wide.
        total += sum(
            after == "\ufe0f" and sizes[before] == 1 and not before.isascii()
            for before, after in pairwise(text)
        )
    return total


def _cells_of(letter: str) -> int:
    # Imported here: most texts are ASCII.
    from unicodedata import category, east_asian_width

    # The second range is vowels and final consonants of Korean, drawn into the letter before.
    if category(letter) in ("Mn", "Me", "Cf") or "\u1160" <= letter <= "\u11ff":
        return 0
    return 2 if east_asian_width(letter) in "WF" else 1


def cut(text: str, most: int) -> str:
    """Return a text cut to `most` columns, with an ellipsis if it was longer."""
    if cells(text) <= most:
        return text
    kept = text[: max(0, most - 1)]
    while kept and cells(kept) > most - 1:
        kept = kept[:-1]
    return f"{kept}…"


# Wrapping


def wrap(text: str, room: int | None, *, indent: str = "", hanging: str | None = None) -> list[str]:
    """Return the lines of a text, broken at spaces, with at most `room` columns; None: no limit.

    The first line begins with `indent`, the others with `hanging`, which is the same by default.
    A longer word keeps a line of its own, unbroken, unless its letters are wide: those scripts
    have no spaces. A no-break space is shown as a space, and broken at only if it must be.
    """
    if room is None:
        return [f"{indent}{text}".replace("\xa0", " ").rstrip()]
    margin = indent if hanging is None else hanging
    lines: list[str] = []
    line, size = indent, cells(indent)
    is_empty = True
    for gap, word in _words(text, max(1, room - cells(margin))):
        long = cells(word)
        if not is_empty and size + len(gap) + long > room:
            lines.append(line)
            line, size, is_empty = margin, cells(margin), True
        line += word if is_empty else f"{gap}{word}"
        size += long if is_empty else len(gap) + long
        is_empty = False
    lines.append(line.rstrip())
    return _restyled(each.replace("\xa0", " ") for each in lines)


def _words(text: str, room: int) -> Iterator[tuple[str, str]]:
    """Yield each word with the spaces before it."""
    for found in _WORD.finditer(text):
        gap, word = found.groups()
        if word.isascii() or cells(word) <= room:
            yield gap, word
            continue
        if "\xa0" in word:
            yield from _words(f"{gap}{word}".replace("\xa0", " "), room)
            continue
        sizes = {each: _cells_of(each) for each in set(word)}
        if 2 not in sizes.values():
            yield gap, word
            continue
        start = size = 0
        for at, letter in enumerate(word):
            long = sizes[letter]
            if size + long > room:
                yield gap, word[start:at]
                gap, start, size = "", at, 0
            size += long
        yield gap, word[start:]


def _restyled(lines: Iterable[str]) -> list[str]:
    """End an open style with each line and begin it again in the next, as `less -R` needs it."""
    made = []
    style = ""
    for line in lines:
        shown = f"{style}{line}"
        for found in _STYLE.findall(line):
            style = "" if found == _RESET else found
        made.append(f"{shown}{_RESET}" if style else shown)
    return made


# Tables


def table(rows: Iterable[Sequence[str]], heading: Sequence[str] = (), *, indent: int = 0) -> str:
    """Return rows in aligned columns; on a terminal, cells are wrapped to its width."""
    body = [list(row) for row in rows]
    every = [list(heading), *body] if heading else body
    if not every:
        return ""
    room = row_width()
    least = [max(map(cells, each.split(" "))) for each in heading] or [0] * len(every[0])
    blocks = _laid_out(every, None if room is None else room - indent, least)
    if heading:
        blocks[0] = [bold(line) for line in blocks[0]]
    return "\n".join(f"{' ' * indent}{line}" for block in blocks for line in block)


def _laid_out(rows: list[list[str]], room: int | None, least: list[int]) -> list[list[str]]:
    """Return the lines of each row; `least` is the smallest size of each column."""
    natural = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    others = sum(natural[:-1]) + _GAP * (len(natural) - 1)
    if room is None or others + natural[-1] <= room:
        return [[_joined(row, natural)] for row in rows]
    if len(natural) == 1:
        return [wrap(row[0], room) for row in rows]
    if room - others < _MIN_PROSE_COLUMNS and _is_prose(row[-1] for row in rows):
        # Sentences go below the rest of the row.
        above = _laid_out([row[:-1] for row in rows], room, least[:-1])
        margin = " " * 2 * _GAP
        return [
            [*lines, *(wrap(row[-1], room, indent=margin) if row[-1] else ())]
            for lines, row in zip(above, rows, strict=True)
        ]
    sizes = _squeezed(rows, natural, room, [max(_MIN_COLUMN, each) for each in least])
    return [_row_lines(row, sizes, room) for row in rows]


def _is_prose(column: Iterable[str]) -> bool:
    """Return True if most cells are sentences."""
    sizes = sorted(map(cells, column))
    return sizes[len(sizes) // 2] > _MIN_PROSE_COLUMNS


def _squeezed(rows: list[list[str]], natural: list[int], room: int, least: list[int]) -> list[int]:
    """Return sizes of columns that fit in a line, with as few more lines as possible."""
    sizes = list(natural)
    found = [
        Counter((cells(cell), " " in cell) for cell in column) for column in zip(*rows, strict=True)
    ]

    def lines(place: int, size: int) -> int:
        """Return about how many lines more than one a column has at a size."""
        return sum(
            # A cell without spaces has a line of its own, which is harder to read.
            count * ((long - 1) // size if has_words else 2)
            for (long, has_words), count in found[place].items()
            if long > size
        )

    over = sum(sizes) + _GAP * (len(sizes) - 1) - room
    while over > 0:
        best: tuple[float, int, int] | None = None
        for place, size in enumerate(sizes):
            for less in {least[place], *(long for long, _ in found[place])}:
                if least[place] <= less < size:
                    less = max(less, size - over)
                    more = lines(place, less) - lines(place, size)
                    best = min(best or (inf, 0, 0), (more / (size - less), place, less))
        if best is None:
            break  # too narrow for a table: the terminal wraps it
        _, place, less = best
        over -= sizes[place] - less
        sizes[place] = less
    return sizes


def _row_lines(row: Sequence[str], sizes: Sequence[int], room: int) -> list[str]:
    """Return the lines of one row; a cell with a word too long for its column has its own line."""
    before: list[str] = []
    after: list[str] = []
    parts: list[list[str]] = []
    start = 0
    for place, (cell, size) in enumerate(zip(row, sizes, strict=True)):
        lines = wrap(cell, size)
        if max(map(cells, lines)) <= size:
            parts.append(lines)
        else:
            parts.append([""])
            if place == 0:
                before += wrap(cell, room)
            else:
                margin = " " * max(2 * _GAP, min(start, room - cells(cell)))
                after += wrap(cell, room, indent=margin)
        start += size + _GAP
    count = max(map(len, parts))
    filled = [[*part, *[""] * (count - len(part))] for part in parts]
    block = [_joined(line, sizes) for line in zip(*filled, strict=True)]
    return [*before, *(line for line in block if line), *after]


def _joined(row: Sequence[str], sizes: Sequence[int]) -> str:
    padded = (cell + " " * (size - cells(cell)) for cell, size in zip(row, sizes, strict=True))
    return (" " * _GAP).join(padded).rstrip()


def columns(facts: Iterable[tuple[str, str]], *, indent: int = 0) -> str:
    """Return names and values in two columns; empty values are left out.

    On a terminal a value is wrapped; one with a word too long for its column, such as a URL, has
    lines of its own.
    """
    shown = [(f"{name}:", value) for name, value in facts if value]
    room = row_width()
    room = None if room is None else room - indent
    size = max((cells(name) for name, _ in shown), default=0) + _GAP
    lines: list[str] = []
    for name, value in shown:
        first = f"{name}{' ' * (size - cells(name))}"
        if room is not None and max(map(cells, value.split(" "))) > room - size:
            lines += [name, *wrap(value, room, indent=" " * _GAP)]
        else:
            lines += wrap(value, room, indent=first, hanging=" " * size)
    return "\n".join(f"{' ' * indent}{line}" for line in lines)


# Output


def print_json(value: Any) -> None:
    """Print one JSON document, with control characters escaped."""
    # Imported here: it loads the encoder.
    from .content import document_shown

    with writing():
        print(document_shown(value))


def highlighted(text: str, stream: TextIO | None = None) -> str:
    """Return JSON text with colours if `stream` (default: stdout) takes them."""
    if not wants_colour(stream):
        return text
    # Imported here: a pipe gets no colours.
    from .highlight import highlight

    return highlight(text)


def highlighted_document(text: str) -> str:
    """Return a JSON document for programs: coloured on a terminal, and plain in a pipe.

    FORCE_COLOR, which build servers set for all commands, does not count.
    """
    return highlighted(text) if is_terminal(sys.stdout) else text


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


def tell_error(prog: str, text: str) -> None:
    """Print an error on standard error, after the name of the command, which is in red."""
    tell(error_text(prog, text))


def error_text(prog: str, text: str) -> str:
    """Return an error as it is printed; on a terminal its sentence is wrapped.

    A command in it is not broken, since it will be copied, nor are further lines. These are
    indented: a server that puts a line break into its error must not print lines like ours.
    Control characters are escaped: names of files, entries and tools are in it.
    """
    # Imported here: help prints no errors.
    from ...errors import visible

    first, *rest = visible(text, kept="\t\n\xa0").split("\n")
    room = None if "trunkline " in first else _error_width()
    lines = wrap(f"{paint(f'{prog}:', 'bold red', sys.stderr)} {first}", room, hanging="  ")
    return "\n".join([*lines, *(line if line[:1] == " " else f"  {line}" for line in rest)])


def fitted(text: str, *, indent: str = "", hanging: str = "") -> str:
    """Return a text for standard error with its lines broken at words, if that is a terminal.

    Lines of a text that begin with a space are left as they are: they are aligned with others.
    One line can have an `indent`, and `hanging` for the lines that it is broken into.
    """
    lines = [f"{indent}{line}" for line in text.split("\n")]
    room = _error_width()
    if room is None or max(map(cells, lines)) <= room:
        return "\n".join(lines)
    if indent:
        plain = text.lstrip(" ")
        return "\n".join(
            wrap(plain, room, indent=f"{indent}{text[: len(text) - len(plain)]}", hanging=hanging)
        )
    wrapped = [
        wrap(line, room, hanging=hanging)
        if cells(line) > room and not line.startswith(" ")
        else [line]
        for line in lines
    ]
    return "\n".join(line for part in wrapped for line in part)


def _error_width() -> int | None:
    """Return the columns of standard error, or None if it is not a terminal."""
    if not is_terminal(sys.stderr):
        return None
    try:
        return max(_MIN_WIDTH, os.get_terminal_size(sys.stderr.fileno()).columns)
    except (OSError, ValueError):
        return None
