"""Decodes results into typed values, and completes results of other types than `complete`.

A result is decoded once, in C, into its Struct. Only a result that fails is examined again: some
servers write null for an absent member, and some results have another `resultType`.

An incomplete result goes to the resolver of its type: the client has one for `input_required`,
a declared extension may bring others.

The rules that live here, and only here:

* A result without `resultType`, or with null, is complete. A type without a resolver is invalid.
                                                                    [MCP 2026-07-28, basic]
* A resolver may return a result of another incomplete type: a call that requested input may
  become a task.
* An absent or negative `ttlMs` counts as 0.     [MCP 2026-07-28, server/utilities/caching]
* An integer may be written as `5.0`.   [JSON Schema 2020-12, section 6.1.1 of validation]
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from msgspec import Raw, Struct, field
from msgspec.json import Decoder, encode

from ...errors import RemoteProtocolError, ResultTypeMismatch, TooManyRoundTrips
from ...jsonrpc.codec.decoders import UNREADABLE
from ...jsonrpc.messages import Shown
from ...mcp.types import Wire
from ...spec.revisions import PER_REQUEST

if TYPE_CHECKING:
    from .request import OutgoingRequest
    from .session import Session

__all__ = [
    "COMPLETE",
    "INPUT_REQUIRED",
    "NotComplete",
    "Resolver",
    "complete",
    "decode_again",
    "decoder",
    "look_again",
    "read",
    "read_own",
    "result_type",
    "type_name",
    "where_and_what",
]

COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"

# Given the session, the request and its incomplete result: a result that is complete or of a type
# that another resolver completes.
Resolver: TypeAlias = Callable[["Session", "OutgoingRequest", Raw], Awaitable[Raw]]

# How often a result may change its type: input and then a task are two. A server that alternates
# between types without end would never release the caller.
_MAX_RESULT_TYPES: Final = 16

# One for each result of the protocol, and for each `result_type` of callers.
_MAX_DECODERS: Final = 512

# What an absent member of a result counts as, where a type of the protocol requires it.
_IF_ABSENT: Final[dict[str, dict[str, Any]]] = {
    "server/discover": {"capabilities": {}, "ttlMs": 0, "cacheScope": "private"},
}
# Members that hold application JSON, where null is a value.
_OPEN: Final = frozenset(
    ("_meta", "structuredContent", "inputSchema", "outputSchema", "data", "metadata", "arguments")
)
_PLACE: Final = re.compile(r" - at `(key in )?\$([^`]*)`$")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")

_plain: Final = Decoder().decode


class _Typed(Shown, Struct):
    result_type: Any = field(default=COMPLETE, name="resultType")


class NotComplete(RemoteProtocolError):
    """A result of another type than `complete`, which is in `got`."""

    def __init__(self, found: Any) -> None:
        super().__init__(
            "mcp.result.type-unknown",
            where="/resultType",
            got=found,
            expected="complete, or a type that this client has declared",
        )


@lru_cache(maxsize=_MAX_DECODERS)
def decoder(kind: Any) -> Callable[[Any], Any]:
    """Return the decoder of a type, from a cache."""
    return Decoder(kind).decode


def read(raw: Raw | bytes, kind: Any, method: str, revision: str) -> Any:
    """Return a result as a value of the type `kind`.

    Raises:
        NotComplete: the result has another `resultType`.
        RemoteProtocolError: it does not match `kind`; the error says where, and what was expected.
    """
    try:
        return decoder(kind)(raw)
    except UNREADABLE:
        pass  # raised from below, so that the error has no decoder error as context
    return look_again(raw, kind, method, revision)


def read_own(raw: Raw | bytes, kind: Any, method: str, revision: str) -> Any:
    """Return the result of a request with an application's `result_type`.

    The Structs of the protocol check `resultType` themselves; other types do not.

    Raises:
        NotComplete: the result has another `resultType`.
        RemoteProtocolError: it is not an object, or does not match a type of the protocol.
        ResultTypeMismatch: it does not match any other type.
    """
    if PER_REQUEST.holds(revision):
        _check_complete(result_type(raw))
    if _is_of_protocol(kind):
        return read(raw, kind, method, revision)
    try:
        return decoder(kind)(raw)
    except UNREADABLE:
        pass  # as in `read`
    try:
        return _with_integers(_second_reading(raw, method, revision), kind)
    except UNREADABLE as error:
        where, what = where_and_what(error)
    raise ResultTypeMismatch(type_name(kind), where, what)


def type_name(kind: Any) -> str:
    """Return the name of a type, for the text of an error."""
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _is_of_protocol(kind: Any) -> bool:
    # A result is an object in MCP.
    return bool(kind == dict[str, Any]) or (isinstance(kind, type) and issubclass(kind, Wire))


def result_type(raw: Raw | bytes) -> Any:
    """Return the `resultType` of a result."""
    try:
        found = decoder(_Typed)(raw).result_type
    except UNREADABLE:
        return COMPLETE  # `read` reports what is wrong with it
    return COMPLETE if found is None else found


def where_and_what(error: Exception) -> tuple[str, str]:
    """Return the JSON pointer and the message of a decoder error."""
    text = str(error)
    found = _PLACE.search(text)
    if found is None:
        return "", text
    steps = ("/" + (name or index) for name, index in _STEP.findall(found[2]))
    return "".join(steps), text[: found.start()]


def look_again(raw: Raw | bytes, kind: Any, method: str, revision: str) -> Any:
    """Decode a result that failed once more, without what may be ignored; see `read`."""
    mended = _second_reading(raw, method, revision)
    try:
        return _with_integers(mended, kind)
    except UNREADABLE as error:
        where, what = where_and_what(error)
    _refuse(where, what, method)


def decode_again(raw: Raw | bytes, kind: Any, error: Exception) -> Any:
    """Decode JSON that failed with `error` again, with integers that are written as `5.0`."""
    # Imported here, because few peers write them so.
    from ...mcp.integers import decode_integers

    return decode_integers(raw, decoder(kind), error)


def _with_integers(raw: bytes, kind: Any) -> Any:
    try:
        return decoder(kind)(raw)
    except UNREADABLE as error:
        return decode_again(raw, kind, error)


def _second_reading(raw: Raw | bytes, method: str, revision: str) -> bytes:
    """Return a result without what may be ignored."""
    try:
        return encode(_mended(_plain(raw), method, revision))
    except UNREADABLE:
        # Not JSON, or nested too deeply.
        raise RemoteProtocolError(
            "mcp.type.json-type", expected=f"a result of {method} that can be read"
        ) from None


def _mended(value: Any, method: str, revision: str) -> Any:
    if type(value) is not dict:
        return value
    if PER_REQUEST.holds(revision):
        _check_complete(value.get("resultType"))
    else:
        value.pop("resultType", None)  # an application's own member in earlier revisions
    value = {**_IF_ABSENT.get(method, {}), **_without_nulls(value)}
    if type(value.get("ttlMs")) in (int, float) and value["ttlMs"] < 0:
        value["ttlMs"] = 0
    return value


def _refuse(where: str, what: str, method: str) -> NoReturn:
    rule = "mcp.type.required" if "missing required" in what else "mcp.type.json-type"
    raise RemoteProtocolError(rule, where=where, expected=f"a result of {method}: {what}")


def _check_complete(found: Any) -> None:
    if found is not None and found != COMPLETE:
        raise NotComplete(found)


def _without_nulls(value: Any) -> Any:
    """Return JSON without the members that are null, except inside application JSON."""
    if type(value) is list:
        return [_without_nulls(item) for item in value]
    if type(value) is not dict:
        return value
    return {
        name: member if name in _OPEN else _without_nulls(member)
        for name, member in value.items()
        if member is not None
    }


async def complete(
    resolvers: Mapping[str, Resolver], session: Session, request: OutgoingRequest, raw: Raw
) -> Raw:
    """Return the complete result that follows from `raw`.

    Raises:
        NotComplete: its type has no resolver.
        TooManyRoundTrips: it changed its type too often without becoming complete.
        TrunklineError: any other error of a resolver.
    """
    for _ in range(_MAX_RESULT_TYPES):
        found = result_type(raw)
        if found == COMPLETE:
            return raw
        resolver = resolvers.get(found) if type(found) is str else None
        if resolver is None:
            raise NotComplete(found)
        raw = await resolver(session, request, raw)
    raise TooManyRoundTrips(
        f"no complete result after {_MAX_RESULT_TYPES} incomplete ones", method=request.method
    )
