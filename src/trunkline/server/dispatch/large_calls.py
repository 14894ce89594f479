"""Decodes a large call of a tool and its arguments in one pass.

The usual way skips the arguments first, to find the tool, and then decodes them; before both it
checks the encoding and the nesting of the whole message. Where the ends of the message show the
tool, and its arguments are texts, numbers, and lists and dicts of those, decoding them proves all
of that. Whatever does not decode goes the usual way, which finds the error.

Nothing that a client could notice happens here: no code of the author runs, no answer is sent.
"""

from __future__ import annotations

import re
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

from msgspec import UNSET, Raw

from ...jsonrpc.codec.tokenizer import comma_before
from ...jsonrpc.messages import Call
from .params import UNREADABLE, ToolCall, members_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..handlers.arguments import Arguments
    from ..registry.entries import ToolEntry
    from .connection import Connection

__all__ = ["LargeCall", "read_large_call"]

# Of each end that is searched: the name of a tool and `_meta` with a client's capabilities.
_MAX_END_BYTES: Final = 4096
# Levels around the arguments: the message and its params.
_OUTER_LEVELS: Final = 2

_TEXT: Final = rb'"[ !#-\[\]-~]*+"'
_SCALAR: Final = _TEXT + rb"|[-+.0-9A-Za-z]++"
# Objects in objects, no arrays and no escapes: `_meta` of a client. It is decoded later.
_INNER: Final = rb"\{(?:[ ,:]++|" + _SCALAR + rb")*+\}"
_META: Final = rb'"_meta" ?: ?(?P<meta>\{(?:[ ,:]++|' + _SCALAR + rb"|" + _INNER + rb")*+\})"
_START: Final = (
    rb'\{ ?"name" ?: ?"(?P<name>[ !#-\[\]-~]{1,256})" ?, ?(?:' + _META + rb' ?, ?)?"arguments" ?: ?'
)
_END: Final = _META + rb" ?\}\Z"

_CLOSING: Final = ord("}")
_SCALARS: Final = (str, int, float, bool, NoneType)


class LargeCall(Call, gc=False, kw_only=True):
    """A call of a tool with its arguments decoded; its params have none."""

    values: Any


def read_large_call(connection: Connection, frame: bytes) -> LargeCall | None:
    """Return a call with its arguments decoded, or None if it has to go the usual way."""
    core, codec = connection.core, connection.peer.codec
    if (
        core.services.is_gated
        or core.middleware
        or core.runtime.observers
        or core.catalog.tool_sets is not None
    ):
        return None  # these see a request before its arguments are decoded
    found = codec.large_params(frame)
    if found is None or found.method != "tools/call" or not connection.runner.has_room(len(frame)):
        return None
    start = _pattern(_START).match(frame, found.start, found.start + _MAX_END_BYTES)
    entry = None if start is None else core.catalog.tools.get(start["name"].decode())
    if start is None or entry is None or not _is_plain(entry):
        return None
    depth = _depth_of(entry.arguments)
    if depth is None or depth + _OUTER_LEVELS > codec.max_depth:
        return None
    meta, end = start["meta"], found.end - 1
    # Inside a text it would be escaped.
    after = frame.rfind(b'"_meta"', max(start.end(), end - _MAX_END_BYTES), end)
    if after >= 0:
        last = _pattern(_END).match(frame, after, found.end)
        end = comma_before(frame, after)
        if last is None or end < 0 or meta is not None:
            return None
        meta = last["meta"]
    elif frame[end] != _CLOSING:
        return None
    try:
        if meta is not None:
            members_of(meta)
        values = entry.arguments.decode(memoryview(frame)[start.end() : end])
    except UNREADABLE:
        return None
    return LargeCall(
        id=found.id,
        method=found.method,
        params=ToolCall(entry.name, meta=UNSET if meta is None else Raw(meta)),
        values=values,
    )


def _is_plain(entry: ToolEntry) -> bool:
    """Return True if a call needs nothing of its request but the arguments."""
    return (
        entry.guard is None
        and entry.input_schema is None
        and entry.task == "never"
        and not entry.path
        and not entry.arguments.wants_context
    )


def _depth_of(arguments: Arguments) -> int | None:
    """Return how deep the JSON of arguments can nest, or None if their types do not tell.

    Of these types the decoder skips nothing, and calls no code of an author.
    """
    return _deepest(arguments.types.values(), 1)


def _deepest(kinds: Iterable[Any], levels: int) -> int | None:
    deepest = 0
    for kind in kinds:
        depth = _depth(kind)
        if depth is None:
            return None
        deepest = max(deepest, depth)
    return deepest + levels


def _depth(kind: Any) -> int | None:
    if any(kind is each for each in _SCALARS):
        return 0
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _depth(inner[0])
    if origin is Union or origin is UnionType:
        return _deepest(inner, 0)
    if origin is list or (origin is dict and inner[0] is str):
        return _deepest(inner[-1:], 1)
    return None


@cache  # one entry for each pattern above
def _pattern(text: bytes) -> re.Pattern[bytes]:
    return re.compile(text)
