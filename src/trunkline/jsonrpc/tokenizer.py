"""A JSON tokenizer for checks that need no value, or come before decoding.

It finds the nesting depth, duplicate member names, long integers, and the id of a
frame over the size limit, in one pass over brackets and names, without recursion
and with memory for the open objects and their names. It does not validate: the
decoder does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Final, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode

from .messages import RequestId

__all__ = ["TokenFault", "find_excess", "pointer", "salvage_id", "top_level_ids", "top_level_names"]

# A strict codec scans all that a peer sends, so every repeat is possessive: backtracking costs
# memory for each character.
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
# A mark is a name, a bracket, or the start of an unterminated string. A string that is a value is
# matched only to be skipped.
_NAME, _OPENING, _CLOSING, _CUT, _INTEGER = 1, 2, 3, 4, 5
_MARKS: Final = rb"(" + _STRING + rb")\s*+:|" + _STRING + rb'|([{\[])|([}\]])|(")'
# The same, with all that is before a mark skipped at once. The end of the text matches too: else
# the rest would be tried again from each of its characters.
_UNMARKED: Final = rb'(?:[^"{}\[\]]++|' + _STRING + rb"(?!\s*+:))*+"
_NEXT: Final = _UNMARKED + rb"(?:" + _MARKS + rb"|\Z)"
_VALUE: Final = rb"\s*+(" + _STRING + rb'|[^\s{}\[\],:"]++)'

# Characters kept at either end of a pointer: its steps are names that the peer chose.
_MAX_POINTER_END: Final = 500


class TokenFault(NamedTuple):
    """A rule that the text breaks, and the place."""

    rule: str
    where: str
    got: object


def find_excess(
    text: bytes, *, depth: int | None, digits: int, unique_names: bool
) -> TokenFault | None:
    """Return the first excess: nesting, a duplicate member name, or a long integer."""
    # For each open array or object, the names in it so far.
    names: list[set[bytes] | None] = []
    deepest = len(text) if depth is None else depth
    for mark in _marks_for(text, digits).finditer(text):
        kind = mark.lastindex
        if kind == _OPENING:
            names.append(None)
            if len(names) > deepest:
                return TokenFault("jsonrpc.limit.depth", _place(text, mark.start(kind)), len(names))
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
                    return TokenFault("jsonrpc.text.duplicate-key", _place(text, mark.end()), got)
        elif kind == _INTEGER:
            got = f"{len(mark[_INTEGER].lstrip(b'-'))} digits"
            return TokenFault("jsonrpc.limit.number", _place(text, mark.start(kind)), got)
        elif kind == _CUT:
            break
    return None


def salvage_id(head: bytes) -> RequestId | None:
    """Return the top-level id in the first bytes of a frame, if there is exactly one."""
    ids = top_level_ids(head)
    return ids[0] if len(ids) == 1 else None


def top_level_ids(text: bytes) -> list[RequestId]:
    """Return every valid id at the top level of a text, which may be truncated."""
    found = (_id_at(text, end) for name, end in _top_level(text) if name == b"id")
    return [id for id in found if id is not None]


def top_level_names(text: bytes) -> set[bytes]:
    """Return the member names at the top level of a text, which may be truncated."""
    return {name for name, _ in _top_level(text)}


def _top_level(text: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each member name at the top level, with the offset of its value."""
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
    if len(text) <= 2 * _MAX_POINTER_END:
        return text
    return f"{text[:_MAX_POINTER_END]}…{text[-_MAX_POINTER_END:]}"


def _marks_for(text: bytes, digits: int) -> re.Pattern[bytes]:
    """Return a pattern for the marks of `text`, and for long integers if it may have any."""
    if len(text) <= digits:
        return _pattern(_NEXT)
    integer, both = _integers_over(digits)
    return _pattern(_NEXT) if integer.search(text) is None else both


@cache  # one entry for each pattern above
def _pattern(text: bytes) -> re.Pattern[bytes]:
    # On first use: all programs load this module, and few scan.
    return re.compile(text, re.DOTALL)


@lru_cache(maxsize=8)
def _integers_over(digits: int) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return patterns for integers of more than `digits` digits, without and with marks.

    The lookbehind prevents a match inside a number; a number with a point or an exponent is a
    double, and has no limit.
    """
    integer = rb"(?<![0-9.eE+-])(-?[0-9]{%d,}+)(?![.eE])" % (digits + 1)
    return re.compile(integer), re.compile(_MARKS + rb"|" + integer, re.DOTALL)


def _place(text: bytes, end: int) -> str:
    """Return the JSON pointer of the position `end`."""
    # For each open array or object, the index or name of the current element.
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
    """Count the elements `between` two marks, where all commas are of the open array."""
    if steps and isinstance(steps[-1], int):
        steps[-1] += between.count(b",")


def _name(token: bytes) -> bytes:
    """Return a member name as UTF-8, without its quotes and escapes."""
    if b"\\" in token:
        try:
            return decode(token, type=str).encode()
        except (DecodeError, UnicodeDecodeError):
            pass  # not JSON: returned unchanged
    return token[1:-1]


def _id_at(text: bytes, start: int) -> RequestId | None:
    """Return the id at `start`, if it is valid and complete."""
    value = _pattern(_VALUE).match(text, start)
    # A number at the end of a truncated text may have more digits.
    if value is None or (value.end() == len(text) and not value[1].startswith(b'"')):
        return None
    try:
        return decode(value[1], type=int | str)
    except (DecodeError, UnicodeDecodeError):
        return None
