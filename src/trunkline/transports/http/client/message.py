"""The parts of a message that HTTP repeats in headers, and by which answers are matched."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from ....jsonrpc.messages import Shown
from ....spec.mcp.meta import PROTOCOL_VERSION

__all__ = [
    "UNREADABLE",
    "SentMessage",
    "SentParams",
    "error_in",
    "negotiated_version",
    "read_arguments",
    "read_messages",
    "version_in",
]

# What a decoder raises for bytes that are not what they should be.
UNREADABLE: Final = (DecodeError, UnicodeDecodeError, RecursionError)


class _Meta(Shown, Struct, frozen=True):
    version: Any = field(default=UNSET, name=PROTOCOL_VERSION)


class SentParams(Shown, Struct, frozen=True):
    """Params, of which headers repeat some."""

    name: Any = UNSET
    uri: Any = UNSET
    task_id: Any = field(default=UNSET, name="taskId")
    request_id: Any = field(default=UNSET, name="requestId")
    arguments: Raw | UnsetType = UNSET
    meta: _Meta | UnsetType = field(default=UNSET, name="_meta")


class SentMessage(Shown, Struct, frozen=True):
    """The parts of a message that headers repeat, or by which answers are matched."""

    method: str | UnsetType = UNSET
    id: int | str | UnsetType | None = UNSET
    params: SentParams | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Initialized(Shown, Struct, frozen=True):
    protocol_version: str = field(default="", name="protocolVersion")


_read: Final = Decoder(SentMessage).decode
_read_many: Final = Decoder(list[SentMessage]).decode
_read_initialized: Final = Decoder(_Initialized).decode
read_arguments: Final = Decoder().decode


def read_messages(frame: bytes) -> list[SentMessage]:
    """Return the messages of a frame: one, or those of a batch.

    Raises one of UNREADABLE for anything else.
    """
    return _read_many(frame) if frame.lstrip()[:1] == b"[" else [_read(frame)]


def version_in(message: SentMessage) -> str | None:
    """Return the protocol version that a message names in its `_meta`."""
    if message.params is UNSET or message.params.meta is UNSET:
        return None
    version = message.params.meta.version
    return version if type(version) is str else None


def negotiated_version(result: Raw) -> bytes | None:
    """Return the version in a result of `initialize`, as a header carries it."""
    try:
        version = _read_initialized(result).protocol_version
    except UNREADABLE:
        return None
    # The server chose it: a line break would be a header of its own.
    is_sendable = version.isascii() and version.isprintable() and " " not in version
    return version.encode("ascii") if version and is_sendable else None


def error_in(body: bytes) -> Any:
    """Return the JSON-RPC error in the body of an HTTP error, or None.

    An `error` that is a text is not one: authorization servers write theirs like that.
    """
    try:
        error = _read(body).error
    except UNREADABLE:
        return None
    return None if error is UNSET or bytes(error).lstrip()[:1] != b"{" else error
