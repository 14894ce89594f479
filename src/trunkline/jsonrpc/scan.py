"""What a JSON text contains, told from its tokens without building a value.

Three questions need no value, or must be answered before one is built: how deep
does it nest, does an object name a member twice, and which id has a frame that
is too large to read. One pass over the tokens answers them; no recursion, and no
memory beyond the path to the present place and the names seen on it.

The text is not validated here: the decoder does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode

from .messages import RequestId

__all__ = ["Finding", "find_excess", "pointer", "salvage_id", "top_level_ids"]

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_OPENING: Final = frozenset(b"{[")


class Finding(NamedTuple):
    """A rule that the text breaks, and where."""

    rule: str
    where: str
    got: object


class _Place:
    """One object or array that is open, and where in it we are."""

    __slots__ = ("at", "is_object", "names")

    def __init__(self, *, is_object: bool) -> None:
        self.is_object = is_object
        self.names: set[str] = set()
        self.at: str | int | None = None if is_object else 0


def find_excess(
    text: bytes, *, depth: int | None, digits: int, unique_names: bool
) -> Finding | None:
    """Return the first place that nests too deep, names a member twice or is too long a number."""
    places: list[_Place] = []
    for token, is_name in _walk(text, places):
        if token in (b"{", b"["):
            if depth is not None and len(places) > depth:
                return Finding("jsonrpc.limit.depth", pointer(places[:-1]), len(places))
        elif is_name:
            name, place = _text(token), places[-1]
            if unique_names and name in place.names:
                place.at = name
                return Finding("jsonrpc.text.duplicate-key", pointer(places), name)
            place.names.add(name)
            place.at = name
        elif token[:1] in b"-0123456789" and _digits(token) > digits:
            return Finding("jsonrpc.limit.number", pointer(places), f"{_digits(token)} digits")
    return None


def salvage_id(head: bytes) -> RequestId | None:
    """Return the top-level id that the start of a frame shows, if it shows exactly one."""
    ids = top_level_ids(head)
    return ids[0] if len(ids) == 1 else None


def top_level_ids(text: bytes) -> list[RequestId]:
    """Return every readable id that a text, perhaps cut short, gives at its top level."""
    ids: list[RequestId] = []
    places: list[_Place] = []
    for token, is_name in _walk(text, places):
        if is_name:
            places[-1].at = _text(token)
        elif len(places) == 1 and places[0].is_object and places[0].at == "id":
            value = _id(token)
            if value is not None:
                ids.append(value)
    return ids


def pointer(places: list[_Place]) -> str:
    """Return the path to the present place as a JSON pointer.     [RFC 6901]"""
    steps = (str(place.at) for place in places if place.at is not None)
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def _walk(text: bytes, places: list[_Place]) -> Iterator[tuple[bytes, bool]]:
    """Yield each value, opening and member name, keeping `places` at where it stands.

    A token that touches the end of the text may be cut short, so it is not told,
    unless it closes itself.
    """
    end = len(text)
    naming = False
    for match in _TOKEN.finditer(text):
        token = match[0]
        first = token[0]
        if first in _OPENING:
            places.append(_Place(is_object=first == 0x7B))
            naming = first == 0x7B
            yield token, False
        elif token in (b"}", b"]"):
            if places:
                places.pop()
            naming = False
        elif token == b",":
            if places and not places[-1].is_object and isinstance(places[-1].at, int):
                places[-1].at += 1
            naming = bool(places) and places[-1].is_object
        elif token == b":":
            naming = False
        elif match.end() < end or first == 0x22:
            yield token, naming and first == 0x22
            naming = False


def _text(token: bytes) -> str:
    try:
        value = decode(token, type=str)
    except (DecodeError, UnicodeDecodeError):
        return token.decode("utf-8", "replace")
    return value


def _id(token: bytes) -> RequestId | None:
    try:
        return decode(token, type=int | str)
    except (DecodeError, UnicodeDecodeError):
        return None


def _digits(token: bytes) -> int:
    """Return how many digits an integer has; a fraction or exponent makes it a double."""
    return 0 if any(mark in token for mark in (b".", b"e", b"E")) else len(token.lstrip(b"-"))
