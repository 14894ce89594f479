"""Results as typed values, and what to say of one that is none.

A result is read once, in C, into the Struct it should be. Only what that refuses is looked at
again: some servers write null for what is absent, and some results are of another kind.

The rules that live here, and only here:

* A result without `resultType` is complete. One with another type is not read here: whoever
  asked completes it, or is told that nobody declared that type.  [MCP 2026-07-28, basic]
* A negative `ttlMs` counts as 0.     [MCP 2026-07-28, server/utilities/caching]
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NoReturn

from msgspec import Raw, Struct, field
from msgspec.json import Decoder, encode

from ...errors import RemoteProtocolError
from ...jsonrpc.decode_errors import UNREADABLE
from ...spec.revisions import V2026_07_28, Window

__all__ = [
    "COMPLETE",
    "INPUT_REQUIRED",
    "PER_REQUEST",
    "NotComplete",
    "decoder",
    "look_again",
    "read",
    "read_own",
    "result_type",
    "where_and_what",
]

PER_REQUEST: Final = Window(V2026_07_28)

COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"

# One for each result of the protocol, and for each type that callers ask for.
_DECODERS_KEPT: Final = 512

# Members that hold somebody else's JSON: null is a value there.
_OPEN: Final = frozenset(
    ("_meta", "structuredContent", "inputSchema", "outputSchema", "data", "metadata", "arguments")
)
_PLACE: Final = re.compile(r" - at `(key in )?\$([^`]*)`$")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")

_plain: Final = Decoder().decode


class _Typed(Struct):
    """Of any result, what kind it is."""

    result_type: Any = field(default=COMPLETE, name="resultType")


class NotComplete(RemoteProtocolError):
    """A result of another type than complete: whoever can complete it looks at `got`."""

    def __init__(self, found: Any) -> None:
        super().__init__(
            "mcp.result.type-unknown",
            where="/resultType",
            got=found,
            expected="complete, or a type that this client has declared",
        )


@lru_cache(maxsize=_DECODERS_KEPT)
def decoder(kind: Any) -> Callable[[Any], Any]:
    """Return what reads JSON into a type; it is made once."""
    return Decoder(kind).decode


def read(raw: Raw | bytes, kind: Any, method: str, revision: str) -> Any:
    """Return a result as a value of the type `kind`.

    Raises:
        NotComplete: it is a result of another type.
        RemoteProtocolError: it is none; the error says where, and what was expected.
    """
    try:
        return decoder(kind)(raw)
    except UNREADABLE:
        pass  # raised from below, so that no decoder error hangs on it
    return look_again(raw, kind, method, revision)


def read_own(raw: Raw | bytes, kind: Any, method: str, revision: str) -> Any:
    """Return the result of a request that a caller wrote himself, as any type he likes.

    The protocol's own results are checked by their types; here nobody else looks what kind of
    result it is.

    Raises:
        NotComplete, RemoteProtocolError: as `read`.
    """
    if PER_REQUEST.holds(revision):
        _check_complete(result_type(raw))
    return read(raw, kind, method, revision)


def result_type(raw: Raw | bytes) -> Any:
    """Return of which type a result says it is."""
    try:
        return decoder(_Typed)(raw).result_type
    except UNREADABLE:
        return COMPLETE  # `read` says what is wrong with it


def where_and_what(error: Exception) -> tuple[str, str]:
    """Return the place, as a JSON pointer, and the sentence of what a decoder refused."""
    text = str(error)
    found = _PLACE.search(text)
    if found is None:
        return "", text
    steps = ("/" + (name or index) for name, index in _STEP.findall(found[2]))
    return "".join(steps), text[: found.start()]


def look_again(raw: Raw | bytes, kind: Any, method: str, revision: str) -> Any:
    """Return a result that was refused, with what can be forgiven mended; see `read`."""
    try:
        mended = encode(_mended(_plain(raw), revision))
    except UNREADABLE:
        # No JSON, or nested deeper than anything that is meant.
        raise RemoteProtocolError(
            "mcp.type.json-type", expected=f"a result of {method} that can be read"
        ) from None
    try:
        return decoder(kind)(mended)
    except UNREADABLE as error:
        where, what = where_and_what(error)
    _refuse(where, what, method)


def _mended(value: Any, revision: str) -> Any:
    if type(value) is not dict:
        return value
    if PER_REQUEST.holds(revision):
        _check_complete(value.get("resultType", COMPLETE))
    else:
        value.pop("resultType", None)  # somebody's own member in the revisions before
    value = _without_nulls(value)
    if type(value.get("ttlMs")) is int and value["ttlMs"] < 0:
        value["ttlMs"] = 0
    return value


def _refuse(where: str, what: str, method: str) -> NoReturn:
    rule = "mcp.type.required" if "missing required" in what else "mcp.type.json-type"
    raise RemoteProtocolError(rule, where=where, expected=f"a result of {method}: {what}")


def _check_complete(found: Any) -> None:
    if found != COMPLETE:
        raise NotComplete(found)


def _without_nulls(value: Any) -> Any:
    """Return JSON without the members that are null, apart from what is not the protocol's own."""
    if type(value) is list:
        return [_without_nulls(item) for item in value]
    if type(value) is not dict:
        return value
    return {
        name: member if name in _OPEN else _without_nulls(member)
        for name, member in value.items()
        if member is not None
    }
