"""Session of a client across reloads, and the parts of messages that routing needs.

The rules that live here, and only here:

* Ids match by type and value: 1, "1" and true are three.
* An unreadable frame is forwarded to the current worker, which answers with the error.
* A session keeps what each later worker must be told: the handshake, notifications/initialized,
  and the current log level and subscriptions.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType
from msgspec.json import Decoder, decode, encode

from ...jsonrpc.messages import Shown

__all__ = [
    "NegotiatedFields",
    "ReplayedSession",
    "RequestKey",
    "RoutedMessage",
    "cancelled_request",
    "decode_as",
    "error_response",
    "message",
    "owned",
    "parse_heads",
    "request_key",
]

# Replayed for a client; a server accepts no more by itself.
_MAX_SUBSCRIPTIONS: Final = 10_000


# Reading


class RoutedMessage(Shown, Struct):
    """The members of a message that routing needs."""

    id: Any = UNSET
    method: Any = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET


class _Cancelled(Shown, Struct):
    requestId: Any = UNSET  # as the wire has it


class _Subscription(Shown, Struct):
    uri: Any = UNSET


class NegotiatedFields(Shown, Struct):
    """The result of `initialize`, in part."""

    protocolVersion: Any = UNSET
    capabilities: dict[str, Any] = {}


RequestKey = tuple[type, Any]

_one: Final = Decoder(RoutedMessage).decode
_several: Final = Decoder(list[RoutedMessage]).decode


def parse_heads(frame: bytes) -> tuple[list[RoutedMessage], bool]:
    """Return the head of each message in a frame, and True for a batch."""
    try:
        if frame.lstrip()[:1] == b"[":
            return _several(frame), True
        return [_one(frame)], False
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return [], False  # the worker answers with the error


def request_key(id: object) -> RequestKey | None:
    """Return an id with its type, so that 1, "1" and true differ."""
    return (type(id), id) if isinstance(id, str | int) else None


def cancelled_request(head: RoutedMessage) -> RequestKey | None:
    """Return the request that a notifications/cancelled names."""
    return request_key(decode_as(head.params, _Cancelled).requestId)


def decode_as(params: Raw | UnsetType, kind: Any) -> Any:
    """Return params or a result as a struct; an empty one if they do not fit."""
    try:
        return kind() if params is UNSET else decode(params, type=kind)
    except (DecodeError, UnicodeDecodeError):
        return kind()


def owned(raw: Raw | UnsetType) -> Raw | UnsetType:
    """Return a copy that does not keep its frame alive."""
    return raw if raw is UNSET else raw.copy()


# Writing


def message(**members: Any) -> bytes:
    """Return a frame with these members, except UNSET ones."""
    given = {name: value for name, value in members.items() if value is not UNSET}
    return encode({"jsonrpc": "2.0", **given})


def error_response(id: Any, code: int, message: str) -> dict[str, Any]:
    """Return an error response."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


# The session


class ReplayedSession:
    """The messages of a client that are replayed to each later worker, as they came."""

    def __init__(self, key: RequestKey | None, opening: bytes) -> None:
        self.key = key
        self.opening = opening
        # As negotiated by the first worker; None until then.
        self.revision: Any = None
        self.capabilities: dict[str, Any] = {}
        # Set when initialize was answered, or never will be.
        self.is_over = asyncio.Event()
        # The frame of notifications/initialized.
        self.ready: bytes | None = None
        self._level: bytes | None = None
        self._subscriptions: dict[str, bytes] = {}

    def track(self, head: RoutedMessage, frame: bytes) -> None:
        """Record a message that has to be replayed."""
        method = head.method
        if method == "notifications/initialized":
            self.ready = frame
        elif method == "logging/setLevel":
            self._level = frame
        elif method in ("resources/subscribe", "resources/unsubscribe"):
            uri = decode_as(head.params, _Subscription).uri
            if isinstance(uri, str):
                self._subscriptions.pop(uri, None)
                if (
                    method == "resources/subscribe"
                    and len(self._subscriptions) < _MAX_SUBSCRIPTIONS
                ):
                    self._subscriptions[uri] = frame

    def requests_to_replay(self) -> list[bytes]:
        """Return the requests that are still in effect."""
        level = [] if self._level is None else [self._level]
        return [*level, *self._subscriptions.values()]

    def changed_lists(self) -> list[str]:
        """Return the list_changed notifications that the client may receive."""
        if self.ready is None:
            return []
        found = []
        for name in ("tools", "resources", "prompts"):
            declared = self.capabilities.get(name)
            if isinstance(declared, dict) and declared.get("listChanged") is True:
                found.append(f"notifications/{name}/list_changed")
        return found
