"""Integers that JSON writes as `5.0` or `1e3`: a second decoding of a value that failed the first.

    decode_integers(raw, decoder.decode, error)
    convert_integers(value, convert, error)

The decoder of a type refuses such numbers, and tells where. JSON Schema counts any number without
a fractional part as an integer, and some peers write all numbers as doubles. So a value that
failed for this reason is decoded again with those numbers as integers; any other value costs
nothing.

The rules that live here, and only here:

* Numbers change only where the decoder expected an integer.
* Beyond 2^53 a double does not say which integer was meant: it is not one.
* The work is bounded: a place in a list or a map stands for all places in it, and a value with
  more than 16 different places is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from msgspec.json import decode as _plain
from msgspec.json import encode

from ..jsonrpc.codec.decoders import UNREADABLE

__all__ = ["convert_integers", "decode_integers", "with_integers_at"]

_MAX_PLACES: Final = 16
_MAX_INTEGER: Final = 2**53
_FAULT: Final = re.compile(
    r"Expected `(?:[^`]* )?int(?: [^`]*)?`, got `float`(?: - at `\$([^`]*)`)?"
)
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(?:\d+|\.\.\.)\]")


def decode_integers(raw: Any, decode: Callable[[bytes], Any], error: Exception) -> Any:
    """Decode JSON for which `decode` raised `error` again, with doubles as integers.

    Raises:
        Exception: what `decode` raises for another reason, or `error`.
    """
    if _FAULT.fullmatch(str(error)) is None:
        raise error
    try:
        value = _plain(raw)
    except UNREADABLE:
        raise error from None
    return convert_integers(value, lambda changed: decode(encode(changed)), error)


def convert_integers(value: Any, convert: Callable[[Any], Any], error: Exception) -> Any:
    """Convert a JSON value for which `convert` raised `error` again, with doubles as integers.

    Raises:
        Exception: as for `decode_integers`.
    """
    for _ in range(_MAX_PLACES):
        found = _FAULT.fullmatch(str(error))
        if found is None:
            break
        value = _changed(value, [step or None for step in _STEP.findall(found[1] or "")])
        try:
            return convert(value)
        except UNREADABLE as another:
            if str(another) == str(error):
                break  # it has a fractional part
            error = another
    raise error


def with_integers_at(value: Any, places: Iterable[Sequence[str | int]]) -> Any:
    """Return a copy of a JSON value with integers for the doubles at these places.

    The value itself is returned if there are none.
    """
    whole = [place for place in places if _is_whole(_at(value, place))]
    if not whole:
        return value
    # In a list, so that the value itself has a place too.
    copy = [_plain(encode(value))]
    for place in whole:
        *path, last = (0, *place)
        inner = _at(copy, path)
        inner[last] = int(inner[last])
    return copy[0]


def _changed(value: Any, path: list[str | None]) -> Any:
    """Return a value with integers at a path, of which None stands for all items."""
    if not path:
        return _integer(value)
    step, *rest = path
    if type(value) is list and step is None:
        return [_changed(each, rest) for each in value]
    if type(value) is dict:
        if step is None:
            return {name: _changed(each, rest) for name, each in value.items()}
        if step in value:
            return {**value, step: _changed(value[step], rest)}
    return value


def _at(value: Any, place: Sequence[Any]) -> Any:
    """Return a part of a value; None if there is none at that place."""
    for step in place:
        is_there = (type(value) is dict and step in value) or (
            type(value) is list and type(step) is int and step < len(value)
        )
        if not is_there:
            return None
        value = value[step]
    return value


def _integer(value: Any) -> Any:
    return int(value) if _is_whole(value) else value


def _is_whole(value: Any) -> bool:
    return type(value) is float and value.is_integer() and abs(value) <= _MAX_INTEGER
