"""What a JSON text contains, told from its tokens without building a value.

Three questions need no value, or must be answered before one is built: how deep
does it nest, does an object name a member twice, and which id has a frame that
is too large to read. One pass over the brackets and names answers them; no
recursion, and no memory beyond what is open and the names in it.

The text is not validated here: the decoder does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Final, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode

from .messages import RequestId

__all__ = ["Finding", "find_excess", "pointer", "salvage_id", "top_level_ids", "top_level_names"]

# A strict codec scans all that a peer sends, so every repeat is possessive: one that can be taken
# back costs memory for each character it took.
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
# A mark is a name, a bracket, or the start of a string that the text does not end. A string that
# is a value bears none, and is matched only to be passed over.
_NAME, _OPENING, _CLOSING, _CUT, _INTEGER = 1, 2, 3, 4, 5
_MARKS: Final = rb"(" + _STRING + rb")\s*+:|" + _STRING + rb'|([{\[])|([}\]])|(")'
# The same, with all that stands before a mark passed over at once. The end of the text matches
# too: else what stands before it would be tried again from each of its characters.
_UNMARKED: Final = rb'(?:[^"{}\[\]]++|' + _STRING + rb"(?!\s*+:))*+"
_NEXT: Final = _UNMARKED + rb"(?:" + _MARKS + rb"|\Z)"
_VALUE: Final = rb"\s*+(" + _STRING + rb'|[^\s{}\[\],:"]++)'

# How much of a pointer is kept at either end: its steps are names that the peer made up.
_KEPT_OF_POINTER: Final = 500


class Finding(NamedTuple):
    """A rule that the text breaks, and where."""

    rule: str
    where: str
    got: object


def find_excess(
    text: bytes, *, depth: int | None, digits: int, unique_names: bool
) -> Finding | None:
    """Return the first place that nests too deep, names a member twice or is too long a number."""
    # For each array or object that is open, the names in it so far.
    names: list[set[bytes] | None] = []
    deepest = len(text) if depth is None else depth
    for mark in _marks_for(text, digits).finditer(text):
        kind = mark.lastindex
        if kind == _OPENING:
            names.append(None)
            if len(names) > deepest:
                return Finding("jsonrpc.limit.depth", _place(text, mark.start(kind)), len(names))
        elif kind == _CLOSING:
            if names:
                names.pop()
        elif kind == _NAME:
            if unique_names and names:
                name = _name(mark[_NAME])
                seen = names[-1]
                if seen is None:
                    names[-1] = {name}
                elif name not in seen:
                    seen.add(name)
                else:
                    got = name.decode("utf-8", "replace")
                    return Finding("jsonrpc.text.duplicate-key", _place(text, mark.end()), got)
        elif kind == _INTEGER:
            got = f"{len(mark[_INTEGER].lstrip(b'-'))} digits"
            return Finding("jsonrpc.limit.number", _place(text, mark.start(kind)), got)
        elif kind == _CUT:
            break
    return None


def salvage_id(head: bytes) -> RequestId | None:
    """Return the top-level id that the start of a frame shows, if it shows exactly one."""
    ids = top_level_ids(head)
    return ids[0] if len(ids) == 1 else None


def top_level_ids(text: bytes) -> list[RequestId]:
    """Return every readable id that a text, perhaps cut short, gives at its top level."""
    found = (_id_at(text, end) for name, end in _top_level(text) if name == b"id")
    return [id for id in found if id is not None]


def top_level_names(text: bytes) -> set[bytes]:
    """Return the names that a text, perhaps cut short, gives at its top level."""
    return {name for name, _ in _top_level(text)}


def _top_level(text: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each member name at the top level, and where its value begins."""
    depth = 0
    outermost = b""
    for mark in _pattern(_NEXT).finditer(text):
        kind = mark.lastindex
        if kind == _OPENING:
            outermost = outermost if depth else mark[_OPENING]
            depth += 1
        elif kind == _CLOSING:
            depth = max(0, depth - 1)
        elif kind == _NAME:
            if depth == 1 and outermost == b"{":
                yield _name(mark[_NAME]), mark.end()
        elif kind == _CUT:
            break


def pointer(steps: Iterable[str | int]) -> str:
    """Return a path as a JSON pointer; the middle of a very long one is left out.   [RFC 6901]"""
    text = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
    if len(text) <= 2 * _KEPT_OF_POINTER:
        return text
    return f"{text[:_KEPT_OF_POINTER]}…{text[-_KEPT_OF_POINTER:]}"


def _marks_for(text: bytes, digits: int) -> re.Pattern[bytes]:
    """Return what finds the marks of `text`, and its too long integers if it may have any."""
    if len(text) <= digits:
        return _pattern(_NEXT)
    integer, both = _integers_over(digits)
    return _pattern(_NEXT) if integer.search(text) is None else both


@cache  # one entry for each pattern above
def _pattern(text: bytes) -> re.Pattern[bytes]:
    # On first use: all programs load this module, and few ever scan.
    return re.compile(text, re.DOTALL)


@lru_cache(maxsize=8)
def _integers_over(digits: int) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return what finds integers of more than `digits` digits, and what finds marks as well.

    The look behind keeps it from starting in the middle of a number; what a point or an
    exponent follows is a double, and may be as long as it likes.
    """
    integer = rb"(?<![0-9.eE+-])(-?[0-9]{%d,}+)(?![.eE])" % (digits + 1)
    return re.compile(integer), re.compile(_MARKS + rb"|" + integer, re.DOTALL)


def _place(text: bytes, end: int) -> str:
    """Return where the part of `text` before `end` leaves off."""
    # For each array or object that is open, where in it we are.
    steps: list[str | int] = []
    last = 0
    for mark in _pattern(_MARKS).finditer(text, 0, end):
        _go_on(steps, text[last : mark.start()])
        last = mark.end()
        kind = mark.lastindex
        if kind == _OPENING:
            steps.append(0 if mark[_OPENING] == b"[" else "")
        elif kind == _CLOSING and steps:
            steps.pop()
        elif kind == _NAME and steps:
            steps[-1] = _name(mark[_NAME]).decode("utf-8", "replace")
    _go_on(steps, text[last:end])
    return pointer(steps)


def _go_on(steps: list[str | int], between: bytes) -> None:
    """Count the elements that end `between` two marks: only commas of the open array are there."""
    if steps and isinstance(steps[-1], int):
        steps[-1] += between.count(b",")


def _name(token: bytes) -> bytes:
    """Return a member name as UTF-8, without its quotes and escapes."""
    if b"\\" in token:
        try:
            return decode(token, type=str).encode()
        except (DecodeError, UnicodeDecodeError):
            pass  # no JSON: told as it stands
    return token[1:-1]


def _id_at(text: bytes, start: int) -> RequestId | None:
    """Return the id that stands at `start`, if it is one and is there to its end."""
    value = _pattern(_VALUE).match(text, start)
    # A string closes itself; of a number that touches the end there may be more.
    if value is None or (value.end() == len(text) and not value[1].startswith(b'"')):
        return None
    try:
        return decode(value[1], type=int | str)
    except (DecodeError, UnicodeDecodeError):
        return None
