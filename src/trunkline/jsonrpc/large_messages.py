"""The envelope of a large message, found at its two ends without a pass over what is between.

The decoder takes as long to skip a megabyte of JSON as to decode it. A sender writes the members
of an envelope in one of two orders, with the large one last or first, so patterns at both ends of
the message find it. `find_result` and `find_params` return where it is, *if* that part is one JSON
value. The caller decodes the part, which proves that: a message that is anything else, such as one
with a member twice, has other text in it. If decoding fails for any reason, the whole message goes
the usual way, which finds the same errors as without this module.

The rules that live here, and only here:

* The patterns match ASCII alone, and no escapes, so what they match needs no other check.
* They match valid ids alone: text, or an integer of at most 18 digits and not negative.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from .messages import RequestId, shown_tuple

__all__ = ["MAX_END_BYTES", "Found", "comma_before", "find_params", "find_result"]

# Of each end that is searched: an id has at most 256 characters here, and a method 128.
MAX_END_BYTES: Final = 1024

_VERSION: Final = rb'"jsonrpc" ?: ?"2\.0"'
# Printable, without quotes and backslashes.
_ID: Final = rb'"id" ?: ?(?P<id>0|[1-9][0-9]{0,17}|"[ !#-\[\]-~]{0,256}")'
_METHOD: Final = rb'"method" ?: ?"(?P<method>[!#-\[\]-~]{1,128})"'
_AND: Final = rb" ?, ?"
# By the large member: the start of a message that has it last, and of one that has it first.
_STARTS: Final = {
    "result": (
        rb"\{ ?" + _VERSION + _AND + _ID + _AND + rb'"result" ?: ?',
        rb'\{ ?"result" ?: ?',
    ),
    "params": (
        rb"\{ ?" + _VERSION + _AND + _ID + _AND + _METHOD + _AND + rb'"params" ?: ?',
        rb"\{ ?" + _METHOD + _AND + rb'"params" ?: ?',
    ),
}
_END: Final = _VERSION + _AND + _ID + rb" ?\}\Z"


class Found(NamedTuple):
    """Where the large member of a message is, with the id and the method; a reply has none."""

    id: RequestId
    method: str
    start: int
    end: int

    def __repr__(self) -> str:
        return shown_tuple(self)


def find_result(message: bytes) -> Found | None:
    """Return where the result of a large reply is, or None if its ends do not show that."""
    return _find(message, "result")


def find_params(message: bytes) -> Found | None:
    """Return where the params of a large request are, or None if its ends do not show that."""
    return _find(message, "params")


def _find(message: bytes, member: str) -> Found | None:
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
        rest = None if after < 0 else _pattern(_END).match(message, after)
        end = comma_before(message, after)
        if rest is None or end < 0:
            return None
        names = start.groupdict() | rest.groupdict()
    id = names["id"].decode()
    return Found(
        id[1:-1] if id.startswith('"') else int(id),
        names.get("method", b"").decode(),
        start.end(),
        end,
    )


def comma_before(text: bytes, place: int) -> int:
    """Return where the comma before a place is, with at most one space between, or -1."""
    place -= text[place - 1 : place] == b" "
    return place - 1 if text[place - 1 : place] == b"," else -1


@cache  # one entry for each pattern above
def _pattern(text: bytes) -> re.Pattern[bytes]:
    # On first use: many programs meet no large message.
    return re.compile(text)
