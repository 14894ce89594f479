"""A JSON tokenizer for checks that need no value, or come before decoding.

It finds the nesting depth, duplicate member names, long integers, and the id and
kind of a frame that is over the size limit or is not quite JSON, in one pass over
brackets and names, without recursion and with memory for the open objects and
their names. It does not validate: the decoder does.

The decoder takes as long to skip a megabyte of JSON as to decode it, so `find_result` and
`find_params` find the large member of a message by patterns at its two ends: senders write it
last or first. The patterns match printable ASCII without escapes, and valid ids alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from msgspec import DecodeError, Raw
from msgspec.json import Decoder, decode

from ..messages import RequestId, shown_tuple

__all__ = [
    "FOUND_FASTER_BYTES",
    "MAX_END_BYTES",
    "LargeMember",
    "MessageHead",
    "TokenFault",
    "comma_before",
    "find_excess",
    "find_params",
    "find_result",
    "message_heads",
    "nests_deeper",
    "place_of",
    "pointer",
]

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
# A scalar that is followed by nothing but the end of its member.
_VALUE: Final = rb"\s*+(" + _STRING + rb'|[^\s{}\[\],:"]++)(?=\s*+(?:[,}]|\Z))'
_BOM: Final = b"\xef\xbb\xbf"
_OBJECT: Final = ord("{")
_CLOSED_BY: Final = {_OBJECT: b"}", ord("["): b"]"}

# For the depth alone: all but brackets and quotes, and a bracket as a step up or down, signed.
_UNNESTED: Final = bytes(set(range(256)) - set(b'[]{}"'))
# All but those and escapes, so that no character takes the place of an escaped one.
_UNESCAPED: Final = bytes(set(_UNNESTED) - set(b"\\/bfnrtu"))
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_STEPS_AT_ONCE: Final = 128
# `find` looks at 30 bytes in the time in which `count` counts one, and costs a call for each.
FOUND_FASTER_BYTES: Final = 32 * 1024

_skim: Final = Decoder(Raw).decode

_BACKSLASH: Final = ord("\\")
# Strings before a long one: a message has at most so many before its text, even with metadata.
_STRINGS_BEFORE: Final = 64

# Of each end that is searched: an id has at most 256 characters here, and a method 128.
MAX_END_BYTES: Final = 1024

_IS_VERSION: Final = rb'"jsonrpc" ?: ?"2\.0"'
# Printable, without quotes and backslashes.
_IS_ID: Final = rb'"id" ?: ?(?P<id>0|[1-9][0-9]{0,17}|"[ !#-\[\]-~]{0,256}")'
_IS_METHOD: Final = rb'"method" ?: ?"(?P<method>[!#-\[\]-~]{1,128})"'
_COMMA: Final = rb" ?, ?"
# By the large member: the start of a message that has it last, and of one that has it first.
_STARTS: Final = {
    "result": (
        rb"\{ ?" + _IS_VERSION + _COMMA + _IS_ID + _COMMA + rb'"result" ?: ?',
        rb'\{ ?"result" ?: ?',
    ),
    "params": (
        rb"\{ ?" + _IS_VERSION + _COMMA + _IS_ID + _COMMA + _IS_METHOD + _COMMA + rb'"params" ?: ?',
        rb"\{ ?" + _IS_METHOD + _COMMA + rb'"params" ?: ?',
    ),
}
_LAST_MEMBERS: Final = _IS_VERSION + _COMMA + _IS_ID + rb" ?\}\Z"

# Characters kept at either end of a pointer: its steps are names that the peer chose.
_MAX_POINTER_END: Final = 500


class TokenFault(NamedTuple):
    """A rule that the text breaks, and the place."""

    rule: str
    where: str
    got: object

    def __repr__(self) -> str:
        return shown_tuple(self)


def nests_deeper(text: bytes, limit: int) -> bool:
    """Return True if a text has more than `limit` open brackets at any place, exactly.

    Methods of bytes do the work: 1 to 8 ms per MiB, for a text that is mostly brackets too. Where
    the text stops being JSON, the rest does not count: the decoder stops there.
    """
    if not _has_more_openings(text, limit):
        return False
    if len(text) >= FOUND_FASTER_BYTES:
        rest = _without_escaped_string(text)
        if rest is not None:
            text = rest
    if b"\\" in text:
        # Escapes begin at the first of a run of backslashes, and so does `replace`, which is
        # fastest where the length stays the same.
        text = text.translate(None, _UNESCAPED)
        text = text.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
    # Two quotes in a row begin and end the same string, or end one and begin the next: what is
    # between other quotes stays inside or outside.
    marks = text.translate(None, _UNNESTED).replace(b'""', b"")
    if b'"' in marks:
        marks = b"".join(marks.split(b'"')[::2])
    # Without the innermost brackets, at most two levels, little is left of most texts.
    outer = marks.replace(b"[]", b"").replace(b"{}", b"")
    return (limit < 2 or _climbs(outer, limit - 2)) and _climbs(marks, limit)


def _without_escaped_string(text: bytes) -> bytes | None:
    """Return a text without a long string of escaped quotes, such as JSON as text, or None.

    The string is the first that has an escape. It ends at the first quote after the last that
    follows a backslash, if all between is one string. The decoder finds that out faster than
    what is escaped can be removed.
    """
    start = _first_escaped_string(text)
    last = text.rfind(b'\\"')
    end = text.find(b'"', last + 2)
    if start < 0 or last < start or end - start < FOUND_FASTER_BYTES:
        return None
    try:
        _skim(memoryview(text)[start : end + 1])
    except DecodeError:
        return None
    return text[:start] + text[end + 1 :]


def _first_escaped_string(text: bytes) -> int:
    """Return where the first string with an escape begins, or -1 if it is not near the start."""
    start = text.find(b'"')
    for _ in range(_STRINGS_BEFORE):
        end = text.find(b'"', start + 1)
        if start < 0 or end < 0:
            return -1
        if text[end - 1] == _BACKSLASH:
            return start
        start = text.find(b'"', end + 1)
    return -1


def _has_more_openings(text: bytes, limit: int) -> bool:
    """Return True if a text has more than `limit` opening brackets, those in strings included."""
    if len(text) < FOUND_FASTER_BYTES:
        return text.count(b"[") + text.count(b"{") > limit
    for bracket in (b"[", b"{"):
        place = text.find(bracket)
        while place >= 0:
            if not limit:
                return True
            limit -= 1
            place = text.find(bracket, place + 1)
    return False


def _climbs(brackets: bytes, limit: int) -> bool:
    """Return True if more than `limit` brackets are open at any place."""
    steps = brackets.translate(_STEPS)
    depth = 0
    for start in range(0, len(steps), _STEPS_AT_ONCE):
        part = steps[start : start + _STEPS_AT_ONCE]
        ups = part.count(1)
        if depth + ups > limit and depth + max(accumulate(memoryview(part).cast("b"))) > limit:
            return True
        depth += 2 * ups - len(part)
    return False


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
                return TokenFault(
                    "jsonrpc.limit.depth", place_of(text, mark.start(kind)), len(names)
                )
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
                    return TokenFault("jsonrpc.text.duplicate-key", place_of(text, mark.end()), got)
        elif kind == _INTEGER:
            got = f"{len(mark[_INTEGER].lstrip(b'-'))} digits"
            return TokenFault("jsonrpc.limit.number", place_of(text, mark.start(kind)), got)
        elif kind == _CUT:
            break
    return None


class MessageHead(NamedTuple):
    """What the member names of a message show, though it may be truncated or malformed."""

    names: set[bytes]
    # The value of each member `id`; None for one that is not a valid id.
    ids: list[RequestId | None]
    # Whether the end of the message was found.
    is_closed: bool = False

    def __repr__(self) -> str:
        return shown_tuple(self)

    @property
    def id(self) -> RequestId | None:
        """The id, if there is exactly one member of that name and it is valid."""
        return self.ids[0] if len(self.ids) == 1 else None

    @property
    def is_reply(self) -> bool:
        """Whether it has a result or an error, and no method."""
        return b"method" not in self.names and not self.names.isdisjoint((b"result", b"error"))

    @property
    def is_notification(self) -> bool:
        """Whether it is complete and has a method and no id."""
        return self.is_closed and b"method" in self.names and not self.ids


def message_heads(text: bytes, most: int = sys.maxsize) -> list[MessageHead]:
    """Return what a text shows of its message, or of each message of a batch.

    The text may be truncated. A member counts where all brackets before it match. The list is
    empty if the text does not start with a bracket, or a second value follows the first. What
    follows the first `most` messages of a batch is not looked at.
    """
    heads: list[MessageHead] = []
    # The open brackets, and how many of them are open inside a message: one more in a batch.
    opened, level = bytearray(), 1
    for mark in _pattern(_NEXT).finditer(text):
        kind = mark.lastindex
        if kind == _OPENING:
            bracket = mark[_OPENING]
            if not opened:
                if text[: mark.start(_OPENING)].removeprefix(_BOM).strip():
                    return []
                level = 1 if bracket == b"{" else 2
            opened += bracket
            if len(opened) == level and bracket == b"{":
                if len(heads) >= most:
                    break
                heads.append(MessageHead(set(), []))
        elif kind == _CLOSING:
            if not opened or _CLOSED_BY[opened.pop()] != mark[_CLOSING]:
                break
            if len(opened) == level - 1 and mark[_CLOSING] == b"}":
                heads[-1] = heads[-1]._replace(is_closed=True)
        elif kind == _NAME:
            if len(opened) == level and opened[-1] == _OBJECT:
                name = _name(mark[_NAME])
                heads[-1].names.add(name)
                if name == b"id":
                    heads[-1].ids.append(_id_at(text, mark.end()))
        elif kind == _CUT:
            break
    return heads


class LargeMember(NamedTuple):
    """Where the large member of a message is, with the id and the method; a reply has none.

    It is there *if* the part from `start` to `end` is one JSON value. A caller that decodes the
    part proves that: a message that is anything else, such as one with a member twice, has other
    text in it. What does not decode is decoded as a whole, which finds the error.
    """

    id: RequestId
    method: str
    start: int
    end: int

    def __repr__(self) -> str:
        return shown_tuple(self)


def find_result(message: bytes) -> LargeMember | None:
    """Return where the result of a large reply is, or None if its ends do not show that."""
    return _find(message, "result")


def find_params(message: bytes) -> LargeMember | None:
    """Return where the params of a large request are, or None if its ends do not show that."""
    return _find(message, "params")


def _find(message: bytes, member: str) -> LargeMember | None:
    last, first = _STARTS[member]
    start = _pattern(last).match(message, 0, MAX_END_BYTES)
    if start is not None:
        if not message.endswith(b"}"):
            return None
        names, end = start.groupdict(), len(message) - 1
    else:
        start = _pattern(first).match(message, 0, MAX_END_BYTES)
        if start is None:
            return None
        # Inside a text it would be escaped.
        after = message.rfind(b'"jsonrpc"', max(start.end(), len(message) - MAX_END_BYTES))
        rest = None if after < 0 else _pattern(_LAST_MEMBERS).match(message, after)
        end = comma_before(message, after)
        if rest is None or end < 0:
            return None
        names = start.groupdict() | rest.groupdict()
    id = names["id"].decode()
    return LargeMember(
        id[1:-1] if id.startswith('"') else int(id),
        names.get("method", b"").decode(),
        start.end(),
        end,
    )


def comma_before(text: bytes, place: int) -> int:
    """Return where the comma before a place is, with at most one space between, or -1."""
    place -= text[place - 1 : place] == b" "
    return place - 1 if text[place - 1 : place] == b"," else -1


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


def place_of(text: bytes, end: int) -> str:
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
