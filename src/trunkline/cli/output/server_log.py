"""What a server that was started by a verb wrote before it failed, for the person who wrote it.

A traceback is shown whole, with the frames of this library folded to one line each; of the other
lines on standard error the last ten are shown.

The rules that live here, and only here:

* Only frames of the installed library are folded. A frame of the author is never hidden, unless
  a traceback is longer than 40 lines without them. An exception of the library that was raised
  in no frame of the author is its text alone: it names the place itself.
* Of several tracebacks the one is shown that was logged under the reference in the result, else
  the last.
* Credentials are concealed and control characters escaped. A line is cut after 400 characters.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from ...errors import visible
from ...redaction import conceal
from .terminal import fitted, paint

__all__ = ["has_traceback", "printed_shown", "reference_in", "stderr_shown"]

_MAX_LINES: Final = 10
_MAX_LINE_LENGTH: Final = 400
# Of a traceback: the first lines and the last. A recursion has a thousand.
_FIRST_TRACEBACK_LINES: Final = 10
_LAST_TRACEBACK_LINES: Final = 30
_MAX_PRINTED: Final = 80
# Of the second and further lines of a line that does not fit the terminal.
_HANGING: Final = " " * 8

_TRACEBACK: Final = "Traceback (most recent call last):"
_CHAINED: Final = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_BOX: Final = ("╭", "│", "╰")
# Lines that follow the last line of an exception in the log of a server of this library.
_NOTES: Final = ("note: ", "… ")
_REFERENCE: Final = "(reference "
_LIBRARY: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Where the library of another interpreter is.
_INSTALLED: Final = f"site-packages{os.sep}trunkline{os.sep}"

# A traceback, or one other line.
_Block = list[str]


def reference_in(text: str) -> str | None:
    """Return the reference of an unexpected failure in the text of a tool result, or None."""
    _, found, rest = text.partition(_REFERENCE)
    reference, end, _ = rest.partition(")")
    is_one = found and end and len(reference) == 8 and set(reference) <= set("0123456789abcdef")
    return reference if is_one else None


def has_traceback(lines: Sequence[str]) -> bool:
    """Return True if the server has logged an exception."""
    return any(map(_begins_traceback, lines))


def stderr_shown(lines: Sequence[str], reference: str | None = None) -> str:
    """Return the last lines of a server's standard error with a heading; "" if there are none."""
    whole = list(_blocks(lines))
    at = _chosen(whole, reference)
    blocks = [_folded(block) for block in whole]
    shown: list[str] = []
    left = _MAX_LINES
    is_cut = False
    for place in range(len(blocks) - 1, -1, -1):
        block = blocks[place]
        if place == at:
            shown = [_painted(line) for line in _bounded(block)] + shown
        elif at is not None and place == at - 1 and _is_heading(block[0], reference):
            continue  # the result has said so
        else:
            part = block[-left:] if left else []
            is_cut = is_cut or len(part) < len(block)
            left -= len(part)
            shown = [paint(_plain(line), "dim", sys.stderr) for line in part] + shown
    if not shown:
        return ""
    heading = "last lines on stderr of the server:" if is_cut else "stderr of the server:"
    return "\n".join([heading, *(fitted(line, indent="  ", hanging=_HANGING) for line in shown)])


def printed_shown(lines: Sequence[bytes]) -> str:
    """Return a sentence about lines on standard output that are not messages, or ""."""
    if not lines:
        return ""
    text = str(conceal(lines[0].decode("utf-8", "replace").strip()))
    shown = visible(text[:_MAX_PRINTED], kept="") + ("…" if len(text) > _MAX_PRINTED else "")
    if len(lines) == 1:
        return f"it printed '{shown}', which is not a message"
    return f"it printed '{shown}' and more lines that are not messages"


def _plain(line: str) -> str:
    whole = visible(str(conceal(line[: 2 * _MAX_LINE_LENGTH])), kept="\t")
    return whole if len(whole) <= _MAX_LINE_LENGTH else f"{whole[:_MAX_LINE_LENGTH]}…"


def _painted(line: str) -> str:
    """Return a line of a traceback: the exception in red, frames of the author as they are."""
    text = _plain(line)
    if line.startswith(("  ", *_BOX)) and not line.startswith("  … "):
        return text
    is_exception = not line.startswith(("  ", *_NOTES)) and line not in (_TRACEBACK, *_CHAINED)
    style = "red" if is_exception else "dim"
    return paint(text, style, sys.stderr)


def _begins_traceback(line: str) -> bool:
    return line.strip() == _TRACEBACK or _is_drawn(line)


def _is_drawn(line: str) -> bool:
    """Return True for the first line of a traceback in a box, as `rich` logs them."""
    return _TRACEBACK[:-1] in line and line.lstrip().startswith("╭")


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    """Yield each traceback with its causes, and every other line alone."""
    at = 0
    while at < len(lines):
        if _is_drawn(lines[at]):
            end = _end_of_box(lines, at)
            margin = min(len(line) - len(line.lstrip()) for line in lines[at:end])
            yield [line[margin:].rstrip() for line in lines[at:end]]
        elif _begins_traceback(lines[at]):
            end = _end_of_traceback(lines, at)
            yield list(lines[at:end])
        else:
            end = at + 1
            yield [lines[at].rstrip()]
        at = end


def _end_of_box(lines: Sequence[str], at: int) -> int:
    """Return the index after a box and the line below it, which names the exception."""
    while at < len(lines) and not lines[at].lstrip().startswith("╰"):
        at += 1
    return min(at + 2, len(lines))


def _end_of_traceback(lines: Sequence[str], at: int) -> int:
    """Return the index after a traceback, its exception, and the exceptions that followed."""
    indent = lines[at][: -len(lines[at].lstrip())] if lines[at][:1].isspace() else ""
    at += 1
    while at < len(lines) and lines[at].startswith(f"{indent}  "):
        at += 1
    at += 1  # the type and the text of the exception
    while at < len(lines) and lines[at].startswith(_NOTES):
        at += 1
    if at + 1 < len(lines) and lines[at] in _CHAINED and lines[at + 1].strip() == _TRACEBACK:
        return _end_of_traceback(lines, at + 1)
    return min(at, len(lines))


def _folded(block: _Block) -> _Block:
    """Return a block with each run of frames of this library as one line."""
    shown: _Block = []
    count = 0
    is_own = False
    for line in block:
        path = _path(line)
        if path is not None:
            is_own = path.startswith(f"{_LIBRARY}{os.sep}") or _INSTALLED in path
            count += is_own
        elif not line.startswith(("    ", "  [Previous line")):
            is_own = False  # the exception, or frames that were left out
        if is_own:
            continue
        if count:
            shown.append(f"  … {count} frame{'s' if count > 1 else ''} of trunkline")
            count = 0
        shown.append(line)
    if len(shown) == 3 and shown[1].startswith("  … ") and shown[2].startswith("trunkline."):
        kind, sign, text = shown[2].partition(": ")
        return [f"{kind.rpartition('.')[2]}{sign}{text}"]
    return shown


def _path(line: str) -> str | None:
    """Return the file of a frame, or None if the line does not begin one."""
    start, quote, rest = line.partition('File "')
    if not quote or start.strip():
        return None
    return rest.partition('"')[0]


def _bounded(block: _Block) -> _Block:
    left_out = len(block) - _FIRST_TRACEBACK_LINES - _LAST_TRACEBACK_LINES
    if left_out <= 0:
        return block
    first, last = block[:_FIRST_TRACEBACK_LINES], block[-_LAST_TRACEBACK_LINES:]
    return [*first, f"  … {left_out} lines left out", *last]


def _chosen(blocks: Sequence[_Block], reference: str | None) -> int | None:
    """Return the index of the traceback to show, or None if there is none."""
    tracebacks = [at for at, block in enumerate(blocks) if _begins_traceback(block[0])]
    for at in tracebacks:
        if reference and at and _is_heading(blocks[at - 1][0], reference):
            return at
    return tracebacks[-1] if tracebacks else None


def _is_heading(line: str, reference: str | None) -> bool:
    return reference is not None and f"{_REFERENCE}{reference})" in line
