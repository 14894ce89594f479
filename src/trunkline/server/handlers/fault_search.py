"""Further faults of arguments that could not be decoded.

The decoder ends at the first fault. `faults_of` decodes each argument by itself, and the parts of
one that does not fit, so that a caller can correct several faults at once. It runs only after a
call has failed.

The work is bounded, because the caller decides how much there is to search: an argument is
decoded once more as a whole, and its parts are looked at only if it is small, to a certain depth
and up to a certain number. An integer that is written as `5.0` is not a fault; values are decoded
again with such integers up to a number of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec.inspect as kinds
from msgspec import DecodeError, Raw
from msgspec.json import decode

from ...mcp.integers import decode_integers
from .custom_types import read_custom
from .error_messages import REQUIRED, fault

__all__ = ["MAX_FAULTS", "faults_of"]

# More than a model or a person corrects at a time.
MAX_FAULTS: Final = 5
MAX_PARTS: Final = 1000
MAX_DEPTH: Final = 8
# The parts of a larger value are not looked at: there may be a million of them.
MAX_SEARCHED_BYTES: Final = 64 * 1024
# Each of these bytes may be decoded 16 times more: see `mcp/integers.py`.
MAX_BYTES_DECODED_AGAIN: Final = 256 * 1024

_ARRAYS: Final = (list, set, frozenset, Sequence, Set)
_OBJECTS: Final = (dict, Mapping)

Part = tuple[str, Any, Raw]


def faults_of(
    given: Mapping[str, Raw], types: Mapping[str, Any], *, most: int = MAX_FAULTS
) -> list[tuple[str, str]]:
    """Return where arguments do not fit their types and why, `most` of them at most."""
    search = _Search(most)
    for name, type_ in types.items():
        if name in given and not search.is_over:
            search.look_at(name, type_, given[name], 0)
    return search.found


class _Search:
    def __init__(self, most: int) -> None:
        self.found: list[tuple[str, str]] = []
        self._most = most
        self._parts = 0
        self._bytes_again = MAX_BYTES_DECODED_AGAIN

    @property
    def is_over(self) -> bool:
        return len(self.found) >= self._most or self._parts >= MAX_PARTS

    def look_at(self, place: str, type_: Any, raw: Raw, depth: int) -> None:
        """Add the faults of one value."""
        self._parts += 1
        error = self._error_of(type_, raw)
        if error is None:
            return
        inside, text = fault(error)
        known = len(self.found)
        if inside and depth < MAX_DEPTH and len(memoryview(raw)) <= MAX_SEARCHED_BYTES:
            for suffix, part_type, part in _parts_of(type_, raw):
                if self.is_over:
                    break
                if part_type is None:
                    self.found.append((place + suffix, REQUIRED))
                else:
                    self.look_at(place + suffix, part_type, part, depth + 1)
        if len(self.found) == known:
            joined = inside if inside.startswith("[") else f".{inside}" if inside else ""
            self.found.append((place + joined, text))

    def _error_of(self, type_: Any, raw: Raw) -> Exception | None:
        """Return why a value does not fit its type, or None if it does."""
        read = partial(decode, type=type_, dec_hook=read_custom)
        try:
            read(raw)
        except (DecodeError, RecursionError) as error:
            size = len(memoryview(raw))
            if size > self._bytes_again:
                return error
            self._bytes_again -= size
            try:
                decode_integers(raw, read, error)
            except (DecodeError, RecursionError) as still:
                return still
        return None


def _parts_of(type_: Any, raw: Raw) -> Iterator[Part]:
    """Yield the parts of an array or object: the place, the type and the value of each.

    The type is None for a member that is required and was not sent. Nothing is yielded for a type
    that cannot be taken apart.
    """
    while get_origin(type_) is Annotated:
        type_ = type_.__origin__
    origin, inner = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType):
        others = [each for each in inner if each is not NoneType]
        if len(others) == 1:
            yield from _parts_of(others[0], raw)
    elif memoryview(raw)[0] == ord("["):
        yield from _items(origin, inner, raw)
    elif memoryview(raw)[0] == ord("{"):
        if origin in _OBJECTS and len(inner) == 2:
            values = decode(raw, type=dict[str, Raw]).values()
            yield from (("[...]", inner[1], value) for value in values)
        elif origin is None:
            yield from _members(type_, raw)


def _items(origin: Any, inner: tuple[Any, ...], raw: Raw) -> Iterator[Part]:
    items = decode(raw, type=list[Raw])
    if inner and (origin in _ARRAYS or (origin is tuple and inner[1:] == (...,))):
        yield from ((f"[{at}]", inner[0], each) for at, each in enumerate(items))
    elif origin is tuple and len(inner) == len(items):
        pairs = zip(inner, items, strict=True)
        yield from ((f"[{at}]", type_, each) for at, (type_, each) in enumerate(pairs))


def _members(cls: Any, raw: Raw) -> Iterator[Part]:
    kind = kinds.type_info(cls)
    if not isinstance(kind, kinds.StructType | kinds.DataclassType | kinds.TypedDictType):
        return
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (NameError, TypeError):
        return
    given = decode(raw, type=dict[str, Raw])
    for field in kind.fields:
        name = field.encode_name
        if name in given:
            yield f".{name}", _unwrapped(hints.get(field.name, Any)), given[name]
        elif field.required:
            yield f".{name}", None, raw


def _unwrapped(hint: Any) -> Any:
    """Return the type of a member of a TypedDict without `Required` and `NotRequired`."""
    origin = get_origin(hint)
    is_marked = getattr(origin, "_name", "") in ("Required", "NotRequired", "ReadOnly")
    return _unwrapped(get_args(hint)[0]) if is_marked else hint
