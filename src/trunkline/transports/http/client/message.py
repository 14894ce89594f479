"""The parts of a message that HTTP repeats in headers, and by which answers are matched.

The rules that live here, and only here:

* A frame that comes with its request is not decoded: the parts are read from the request. Any
  other frame is: a notification, a reply, a batch, and what a relay forwards.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from ....jsonrpc.messages import RequestId, SentRequest, Shown
from ....spec.mcp.headers import NAME_MEMBERS
from ....spec.mcp.meta import PROTOCOL_VERSION

__all__ = [
    "UNREADABLE",
    "FactsReader",
    "SentFacts",
    "SentMessage",
    "SentParams",
    "error_in",
    "error_text",
    "negotiated_version",
    "read_arguments",
    "read_messages",
]

# What a decoder raises for bytes that are not what they should be.
UNREADABLE: Final = (DecodeError, UnicodeDecodeError, RecursionError)


class _SentMeta(Shown, Struct, frozen=True):
    version: Any = field(default=UNSET, name=PROTOCOL_VERSION)


class SentParams(Shown, Struct, frozen=True):
    """Params, of which headers repeat some."""

    name: Any = UNSET
    uri: Any = UNSET
    task_id: Any = field(default=UNSET, name="taskId")
    request_id: Any = field(default=UNSET, name="requestId")
    arguments: Raw | UnsetType = UNSET
    meta: _SentMeta | UnsetType = field(default=UNSET, name="_meta")


class SentMessage(Shown, Struct, frozen=True):
    """A decoded message: what headers repeat, or by which answers are matched."""

    method: str | UnsetType = UNSET
    id: int | str | UnsetType | None = UNSET
    params: SentParams | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class SentFacts(Shown, Struct, frozen=True):
    """What the transport needs to know of a frame that it sends: of its first message, and ids."""

    # None for a reply.
    method: str | None
    # Of all of its requests.
    ids: tuple[RequestId, ...]
    # The protocol version that its `_meta` names.
    version: str | None = None
    # What `Mcp-Name` repeats.
    name: str | None = None
    # Of the request that it cancels.
    cancelled_id: RequestId | None = None


class _Initialized(Shown, Struct, frozen=True):
    protocol_version: str = field(default="", name="protocolVersion")


_read: Final = Decoder(SentMessage).decode
_read_many: Final = Decoder(list[SentMessage]).decode
_read_meta: Final = Decoder(_SentMeta).decode
_read_initialized: Final = Decoder(_Initialized).decode
_read_any: Final = Decoder().decode

# The attribute of params that `Mcp-Name` repeats, by method.
_NAMES: Final = {
    method: {"taskId": "task_id"}.get(member, member) for method, member in NAME_MEMBERS.items()
}


def read_messages(frame: bytes) -> list[SentMessage]:
    """Return the messages of a frame: one, or those of a batch.

    Raises one of UNREADABLE for anything else.
    """
    return _read_many(frame) if frame.lstrip()[:1] == b"[" else [_read(frame)]


def read_arguments(frame: bytes) -> Any:
    """Return the arguments of a tool call as they are on the wire; none if they are unreadable."""
    try:
        params = _read(frame).params
        return {} if params is UNSET or params.arguments is UNSET else _read_any(params.arguments)
    except UNREADABLE:
        return {}  # nested too deep, which the server will say


class FactsReader:
    """Reads the facts of the frames of one client."""

    def __init__(self) -> None:
        # Most requests of a client have the same `_meta`, encoded once, and so the same version.
        self._meta: object = UNSET
        self._version: str | None = None

    def read(self, frame: bytes, route: object) -> SentFacts:
        """Return the facts of a frame; `route` is its request, if that is known.

        Raises one of UNREADABLE for a frame without a route that is not a message.
        """
        if type(route) is not SentRequest or not isinstance(route.params, Struct):
            return _decoded(frame)
        method, params = route.method, route.params
        member = _NAMES.get(method)
        name = None if member is None else getattr(params, member, UNSET)
        if name is not None and type(name) is not str:
            return _decoded(frame)  # such as an enum: what counts is how it was encoded
        meta: Any = getattr(params, "meta", UNSET)
        if meta is not self._meta:
            self._meta, self._version = meta, _version_in(meta)
        return SentFacts(method, (route.id,), self._version, name)


def _version_in(meta: Any) -> str | None:
    if meta is UNSET:
        return None
    version = _read_meta(meta).version if isinstance(meta, Raw) else meta.get(PROTOCOL_VERSION)
    return version if type(version) is str else None


def _decoded(frame: bytes) -> SentFacts:
    messages = read_messages(frame)
    first = messages[0] if messages else SentMessage()
    ids = tuple(
        each.id for each in messages if each.method is not UNSET and isinstance(each.id, int | str)
    )
    method = None if first.method is UNSET else first.method
    if first.params is UNSET:
        return SentFacts(method, ids)
    params = first.params
    version = UNSET if params.meta is UNSET else params.meta.version
    member = _NAMES.get(method or "")
    name = UNSET if member is None else getattr(params, member)
    cancelled = params.request_id if method == "notifications/cancelled" else None
    return SentFacts(
        method,
        ids,
        version if type(version) is str else None,
        name if type(name) is str else None,
        cancelled if type(cancelled) in (int, str) else None,
    )


def negotiated_version(result: Raw) -> bytes | None:
    """Return the version in a result of `initialize`, as a header carries it."""
    try:
        version = _read_initialized(result).protocol_version
    except UNREADABLE:
        return None
    # The server chose it: a line break would be a header of its own.
    is_sendable = version.isascii() and version.isprintable() and " " not in version
    return version.encode("ascii") if version and is_sendable else None


def error_in(body: bytes) -> SentMessage | None:
    """Return the message with a JSON-RPC error in the body of an HTTP error, or None.

    An `error` that is a text is not one: authorization servers write theirs like that.
    """
    try:
        found = _read(body)
    except UNREADABLE:
        return None
    is_error = found.error is not UNSET and bytes(found.error).lstrip()[:1] == b"{"
    return found if is_error else None


def error_text(found: SentMessage) -> str:
    """Return the text of the error in a message of `error_in`; "" if it has none."""
    try:
        text = None if found.error is UNSET else _read_any(found.error).get("message")
    except UNREADABLE:
        return ""
    return text if isinstance(text, str) else ""
