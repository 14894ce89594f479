"""The params of requests, before and while they are decoded."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, ValidationError, field
from msgspec.json import Decoder

from ...jsonrpc.messages import Shown
from ...jsonrpc.peer.incoming import IncomingRequest

__all__ = [
    "EMPTY",
    "PARAMS",
    "UNREADABLE",
    "ToolCall",
    "members_of",
    "params_of",
    "text_in",
]

# What a decoder raises for params that are not what they should be.
UNREADABLE: Final = (ValidationError, DecodeError, UnicodeDecodeError, RecursionError)

EMPTY: Final = Raw(b"{}")

members_of: Final = Decoder(dict[str, Raw]).decode
_text: Final = Decoder(str).decode


def params_of(asked: IncomingRequest) -> Raw:
    """Return the params of a request as JSON; absent ones are an empty object."""
    return EMPTY if asked.params is UNSET else asked.params


def text_in(params: Any, member: str | None) -> str | None:
    """Return a text in params that are not decoded yet, or None."""
    if member is None or not isinstance(params, Raw):
        return None
    try:
        value = members_of(params).get(member)
        return None if value is None else _text(value)
    except UNREADABLE:
        return None


class ToolCall(Shown, Struct, frozen=True):
    """The params of `tools/call` as decoded with the envelope: arguments raw."""

    name: str
    arguments: Raw | UnsetType = UNSET
    meta: Raw | UnsetType = field(default=UNSET, name="_meta")
    # A lenient policy accepts it here.  [K-32]
    progress_token: Any = field(default=UNSET, name="progressToken")
    # Requests a task, in 2025-11-25.
    task: Raw | UnsetType = UNSET
    # Of a retry, in 2026-07-28; without meaning elsewhere.
    input_responses: Raw | UnsetType = field(default=UNSET, name="inputResponses")
    request_state: Raw | UnsetType = field(default=UNSET, name="requestState")


# Params that are decoded with the envelope, by method.
PARAMS: Final = {"tools/call": ToolCall}
