"""Exceptions as text for the log: redacted, and bounded in length.

The text of an exception often repeats what a peer sent, as in `ValueError(f"no city {city}")`.

The rules that live here, and only here:

* The text of an exception and its notes are cut, by characters and by lines, before they are
  read: a peer decides how long they are.
* Line breaks and control characters in them are escaped, so that a peer can neither forge a log
  line nor control the terminal that shows the log. The lines of a traceback are our own.
* The frames of a traceback, the causes of an exception and the members of a group are limited
  in number, and so is the length of the whole.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Final

from .errors import visible
from .redaction import conceal, redact

__all__ = ["as_redacted", "one_line"]

# Of the text of one exception or note.
_MAX_CHARS: Final = 1000
_MAX_LINES: Final = 20
_MAX_NOTES: Final = 3
# Of a traceback: the outermost and the innermost. A recursion has a thousand.
_FIRST_FRAMES: Final = 10
_LAST_FRAMES: Final = 30
# In all: causes, and members of groups. A group may have one member for each item of a request.
_MAX_EXCEPTIONS: Final = 10
# Of the whole; the last line names the exception that was raised, so both ends are kept.
_MAX_TOTAL_CHARS: Final = 64 * 1024

_CAUSE: Final = "The above exception was the direct cause of the following exception:"
_CONTEXT: Final = "During handling of the above exception, another exception occurred:"


def as_redacted(error: BaseException) -> str:
    """Return an exception with its traceback, redacted, for the log."""
    text = "\n".join(_lines(error, [_MAX_EXCEPTIONS], set()))
    if len(text) <= _MAX_TOTAL_CHARS:
        return text
    half = _MAX_TOTAL_CHARS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out\n{text[-half:]}"


def one_line(text: object) -> str:
    """Return the text of an exception or of a peer as one redacted line of a log, cut if long."""
    try:
        whole = str(text)
    except Exception as error:  # noqa: BLE001  # an author's `__str__`
        return f"<its text raised {type(error).__name__}>"
    # Twice what is shown is searched: enough to recognise a credential that starts in it.
    lines = str(conceal(whole[: 2 * _MAX_CHARS])).split("\n", _MAX_LINES)[:_MAX_LINES]
    shown = "\n".join(lines)[:_MAX_CHARS]
    is_whole = len(whole) <= _MAX_CHARS and whole.count("\n") < _MAX_LINES
    return visible(shown, kept="") + ("" if is_whole else f"… ({len(whole)} characters)")


def _lines(error: BaseException, left: list[int], seen: set[int]) -> Iterator[str]:
    """Yield the lines of an exception, after those of its causes."""
    left[0] -= 1
    seen.add(id(error))
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    if cause is not None and id(cause) not in seen:
        if left[0] > 0:
            yield from _lines(cause, left, seen)
        else:
            yield "… more exceptions before"
        yield from ("", _CONTEXT if error.__cause__ is None else _CAUSE, "")
    if error.__traceback__ is not None:
        yield "Traceback (most recent call last):"
        yield from _frames([*traceback.walk_tb(error.__traceback__)])
    text = one_line(error)
    yield f"{_type_name(error)}: {text}" if text else _type_name(error)
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list | tuple):
        # With a word before it: a line that begins with a peer's text could pass for a log line.
        yield from (f"note: {one_line(note)}" for note in notes[:_MAX_NOTES])
        if len(notes) > _MAX_NOTES:
            yield f"… {len(notes) - _MAX_NOTES} more notes"
    if isinstance(error, BaseExceptionGroup):
        yield from _members(error, left, seen)


def _members(
    group: BaseExceptionGroup[BaseException], left: list[int], seen: set[int]
) -> Iterator[str]:
    count = len(group.exceptions)
    for number, each in enumerate(group.exceptions, start=1):
        if left[0] <= 0:
            yield f"  … {count - number + 1} more exceptions of the group"
            return
        yield f"  exception {number} of {count} in the group:"
        yield from (f"    {line}" for line in _lines(each, left, seen))


def _frames(found: list[tuple[FrameType, int]]) -> Iterator[str]:
    first, last = found, found[:0]
    if len(found) > _FIRST_FRAMES + _LAST_FRAMES:
        first, last = found[:_FIRST_FRAMES], found[-_LAST_FRAMES:]
    # From frames and line numbers alone, without the position marks under a line: Python parses
    # the line again for them, which in 3.11 sometimes raises SystemError if two threads do so at
    # once.
    yield from _redacted(traceback.StackSummary.extract(iter(first)).format())
    if last:
        yield f"  … {len(found) - len(first) - len(last)} more frames"
        yield from _redacted(traceback.StackSummary.extract(iter(last)).format())


def _redacted(parts: list[str]) -> Iterator[str]:
    # Line by line: `redact` cuts a text to a length that suits one value.
    yield from (str(redact(line)) for part in parts for line in part.splitlines())


def _type_name(error: BaseException) -> str:
    kind = type(error)
    plain = kind.__module__ in ("builtins", "__main__")
    return kind.__qualname__ if plain else f"{kind.__module__}.{kind.__qualname__}"
