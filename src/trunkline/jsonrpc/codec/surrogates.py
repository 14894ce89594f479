r"""Lone surrogates: a `\ud83d` without its other half, as cutting a text in UTF-16 leaves it.

RFC 8259 allows the escape, UTF-8 has no form for it, and the decoder rejects it. `mark` makes a
text decodable: it writes a mark over each lone surrogate, of the same length, that does not occur
in the text otherwise. `replace` makes U+FFFD of the marks.

The rules that live here, and only here:

* The replacement is for texts alone. Two identifiers that differ must not become one, so a mark
  in an identifier (`spec/mcp/methods.py`) or in a member name is found, and not replaced.

A peer can send megabytes of these. Every search runs in C in linear time; a message over 1 MiB
whose identifiers could only be told apart by their place is treated as having a mark in one.
"""

from __future__ import annotations

import re
from functools import cache
from types import GenericAlias
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import UNSET, DecodeError, Raw, UnsetType, defstruct
from msgspec.json import Decoder, encode

from ...spec.mcp.methods import IDENTIFIERS

__all__ = ["Found", "find_in_identifier", "mark", "replace"]

_REPLACEMENT: Final = rb"\ufffd"
# Escapes of noncharacters, which no text should have: the first that a text does not have is used.
_MARKS: Final = tuple(rb"\ufd%02x" % low for low in range(0xD0, 0xF0))
# Stands for an escaped backslash, so that each backslash left begins an escape. Valid JSON has
# no NUL.
_MASKED: Final = b"\0\0"
_HIGH: Final = rb"[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = rb"[dD][c-fC-F][0-9a-fA-F]{2}"
# Both alternatives share their first letters, so that the search for those runs in C.
_LONE: Final = rb"\\u(?:%b(?!\\u%b)|(?<!\\u%b\\u)%b)" % (_HIGH, _LOW, _HIGH, _LOW)
# A string up to the next mark, so that no part of a text is searched twice.
_UNMARKED: Final = rb'(?:[^"\\]++|\\(?!%b).)*+'
_IN_NAME: Final = rb'%b%b"\s*+:'
# The value of a member with one of these names, or a string in an array that is its value.
_IN_VALUE: Final = rb'"(?:%b)"\s*+:\s*+(?:\[(?:[\s,]++|"%b")*+)?+"%b%b'
# Decoding the identifiers of a message of so many empty objects takes some 20 MB.
_MAX_DECODED_BYTES: Final = 1024 * 1024

_Tree: TypeAlias = dict[str, "_Tree"]


class Found(NamedTuple):
    """A mark that cannot be replaced: its offset, and whether it is in a member name."""

    offset: int
    in_name: bool = False


def mark(text: bytes) -> tuple[bytes, bytes] | None:
    """Return the text with a mark over each lone surrogate, and the mark; None if it has none."""
    if b"\\u" not in text or b"\0" in text:
        return None
    chosen = next((each for each in _MARKS if each not in text), None)
    if chosen is None:
        return None
    masked = text.replace(rb"\\", _MASKED)
    # A backslash in a replacement is escaped once more; the result is a literal, copied in C.
    marked, count = _pattern(_LONE).subn(chosen.replace(b"\\", rb"\\"), masked)
    return (marked.replace(_MASKED, rb"\\"), chosen) if count else None


def replace(text: bytes, mark: bytes) -> bytes:
    """Return the text with U+FFFD for each mark."""
    return text.replace(mark, _REPLACEMENT)


def find_in_identifier(text: bytes, mark: bytes) -> Found | None:
    """Return the first mark that is in a member name or an identifier of a message."""
    unmarked, own = _UNMARKED % mark[1:], re.escape(mark)
    name = _pattern(_IN_NAME % (own, unmarked)).search(text)
    if name is not None:
        return Found(name.end(), in_name=True)
    names = "|".join(_last_names()).encode()
    value = _pattern(_IN_VALUE % (names, unmarked, unmarked, own)).search(text)
    if value is None:
        return None
    if len(text) <= _MAX_DECODED_BYTES:
        try:
            if mark not in encode(_decoder()(text)):
                return None
        except (DecodeError, UnicodeDecodeError, RecursionError):
            pass  # the members have other types, so their places cannot be told
    return Found(value.end())


@cache  # one entry for each pattern above, and a few for marks
def _pattern(text: bytes) -> re.Pattern[bytes]:
    return re.compile(text, re.DOTALL)


@cache
def _places() -> list[list[str]]:
    return [place.split("/") for place in IDENTIFIERS]


@cache
def _last_names() -> list[str]:
    """Return the names that members with identifiers have, wherever they are."""
    lasts = {next(step for step in reversed(steps) if step != "*") for steps in _places()}
    return sorted(name for last in lasts for name in last.split("|"))


@cache
def _decoder() -> Any:
    """Return a decoder that keeps the identifiers of a message, raw, and skips the rest."""
    tree: _Tree = {}
    for steps in _places():
        nodes = [tree]
        for step in steps:
            nodes = [node.setdefault(name, {}) for node in nodes for name in step.split("|")]
    return Decoder(_type_of(tree)).decode


def _type_of(tree: _Tree) -> Any:
    if not tree:
        return Raw
    inside = dict(tree)
    elements = inside.pop("*", None)
    kinds: Any = str | int | float | bool | None
    if elements is not None:
        element = _type_of(elements)
        kinds |= GenericAlias(list, (element,))
        if not inside:
            return kinds | GenericAlias(dict, (str, element))
    else:
        kinds |= list[Any]
    names = {f"at_{number}": name for number, name in enumerate(inside)}
    fields = [(at, _type_of(inside[name]) | UnsetType, UNSET) for at, name in names.items()]
    return kinds | defstruct("Identifiers", fields, rename=names.get, omit_defaults=True, gc=False)
