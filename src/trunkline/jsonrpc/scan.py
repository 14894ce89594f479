"""What a JSON text contains, told from its tokens without building a value.

Three questions need no value, or must be answered before one is built: how deep
does it nest, does an object name a member twice, and which id has a frame that
is too large to read. One pass over the brackets and names answers them; no
recursion, and no memory beyond what is open and the names in it.

The text is not validated here: the decoder does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode

from .messages import RequestId

__all__ = ["Finding", "find_excess", "pointer", "salvage_id", "top_level_ids"]

# A strict codec scans everything a peer sends. So every repeat is possessive: one that can be
# taken back costs memory for each character it took; and what bears no mark is passed over in C.
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_UNMARKED: Final = rb'(?:[^"{}\[\]]++|' + _STRING + rb"(?!\s*+:))*+"
# A mark is a name, a bracket, or the start of a string that the text does not end. The end of the
# text matches too: else what stands before it would be tried again from each of its characters.
_NAME, _OPENING, _CLOSING, _CUT, _INTEGER = 1, 2, 3, 4, 5
_MARKS: Final = rb"(" + _STRING + rb')\s*+:|([{\[])|([}\]])|(")'
_MARK: Final = re.compile(_UNMARKED + rb"(?:" + _MARKS + rb"|\Z)", re.DOTALL)
_VALUE: Final = re.compile(rb"\s*+(" + _STRING + rb'|[^\s{}\[\],:"]++)', re.DOTALL)

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
    ids: list[RequestId] = []
    depth = 0
    outermost = b""
    for mark in _MARK.finditer(text):
        kind = mark.lastindex
        if kind == _OPENING:
            outermost = outermost if depth else mark[_OPENING]
            depth += 1
        elif kind == _CLOSING:
            depth = max(0, depth - 1)
        elif kind == _NAME:
            if depth == 1 and outermost == b"{" and _name(mark[_NAME]) == b"id":
                found = _id_at(text, mark.end())
                if found is not None:
                    ids.append(found)
        elif kind == _CUT:
            break
    return ids


def pointer(steps: Iterable[str | int]) -> str:
    """Return a path as a JSON pointer; the middle of a very long one is left out.   [RFC 6901]"""
    text = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
    if len(text) <= 2 * _KEPT_OF_POINTER:
        return text
    return f"{text[:_KEPT_OF_POINTER]}…{text[-_KEPT_OF_POINTER:]}"


def _marks_for(text: bytes, digits: int) -> re.Pattern[bytes]:
    """Return what finds the marks of `text`, and its too long integers if it may have any."""
    if len(text) <= digits:
        return _MARK
    integer, both = _integers_over(digits)
    return _MARK if integer.search(text) is None else both


@lru_cache(maxsize=8)
def _integers_over(digits: int) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return what finds integers of more than `digits` digits, and what finds marks as well.

    The look behind keeps it from starting in the middle of a number; what a point or an
    exponent follows is a double, and may be as long as it likes.
    """
    integer = rb"(?<![0-9.eE+-])(-?[0-9]{%d,}+)(?![.eE])" % (digits + 1)
    # What bears no mark is not passed over at once here: an integer may stand in it.
    both = _MARKS.replace(rb")\s*+:", rb")\s*+:|" + _STRING, 1) + rb"|" + integer
    return re.compile(integer), re.compile(both, re.DOTALL)


def _place(text: bytes, end: int) -> str:
    """Return where the part of `text` before `end` leaves off."""
    # For each array or object that is open, where in it we are.
    steps: list[str | int] = []
    last = 0
    for mark in _MARK.finditer(text, 0, end):
        kind = mark.lastindex
        if steps:
            at = steps[-1]
            if isinstance(at, int):
                steps[-1] = at + _elements(text, last, mark.end())
        last = mark.end()
        if kind == _OPENING:
            steps.append(0 if mark[_OPENING] == b"[" else "")
        elif kind == _CLOSING:
            if steps:
                steps.pop()
        elif kind == _NAME and steps:
            steps[-1] = _name(mark[_NAME]).decode("utf-8", "replace")
    return pointer(steps)
