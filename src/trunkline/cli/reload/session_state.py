"""What is read of the messages that `standing_in` hands on, and what is remembered of a client.

Messages are read only as far as it takes to know whose they are. Nothing is sent from here.

The rules that live here, and only here:

* Ids are found by type and value: 1, "1" and true are three.
* What cannot be read is nobody's in particular: whoever it is for says what is wrong with it.
* Of a session is remembered what every later server has to be told: the handshake, that the
  client is ready, and of its log level and subscriptions what still holds.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType
from msgspec.json import Decoder, decode, encode

__all__ = [
    "MessageHead",
    "NegotiatedFields",
    "ReplayedSession",
    "RequestKey",
    "cancelled_request",
    "decode_as",
    "error_response",
    "is_method",
    "message",
    "owned",
    "parse_heads",
    "request_key",
]

# Subscriptions that are repeated for a client; a server takes no more by itself.
_SUBSCRIPTIONS: Final = 10_000


# What is read of a message


class MessageHead(Struct):
    """A message, of which only so much is read as says whose it is."""

    id: Any = UNSET
    method: Any = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET


class _Cancelled(Struct):
    requestId: Any = UNSET  # as the wire has it


class _Subscription(Struct):
    uri: Any = UNSET


class NegotiatedFields(Struct):
    """The result of `initialize`."""

    protocolVersion: Any = UNSET
    capabilities: dict[str, Any] = {}


RequestKey = tuple[type, Any]

_one: Final = Decoder(MessageHead).decode
_several: Final = Decoder(list[MessageHead]).decode


def parse_heads(frame: bytes) -> tuple[list[MessageHead], bool]:
    """Return what is read of each message in a frame, and whether they are a batch."""
    try:
        if frame.lstrip()[:1] == b"[":
            return _several(frame), True
        return [_one(frame)], False
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return [], False  # whoever it is for will say what is wrong with it


def request_key(id: object) -> RequestKey | None:
    """Return what an id is found by: 1 and "1" are two, and so are 1 and true."""
    return (type(id), id) if isinstance(id, str | int) else None


def is_method(head: MessageHead, method: str) -> bool:
    """Say whether a message is of this method."""
    return bool(head.method == method)


def cancelled_request(head: MessageHead) -> RequestKey | None:
    """Return what a notification of that name cancels."""
    return request_key(decode_as(head.params, _Cancelled).requestId)


def decode_as(params: Raw | UnsetType, kind: Any) -> Any:
    """Return params or a result as a struct; an empty one where they are something else."""
    try:
        return kind() if params is UNSET else decode(params, type=kind)
    except (DecodeError, UnicodeDecodeError):
        return kind()


def owned(raw: Raw | UnsetType) -> Raw | UnsetType:
    """Return what was read in a form that outlives the frame it stood in."""
    return raw if raw is UNSET else raw.copy()


# What is said


def message(**members: Any) -> bytes:
    """Return a frame with these members, without those that are UNSET."""
    given = {name: value for name, value in members.items() if value is not UNSET}
    return encode({"jsonrpc": "2.0", **given})


def error_response(id: Any, code: int, message: str) -> dict[str, Any]:
    """Return the answer that a request could not be served."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


# The handshake that was made


class ReplayedSession:
    """What a client has told the first server, and every later one has to know.

    Requests are owned as they came: what an envelope holds besides belongs to them.
    """

    def __init__(self, key: RequestKey | None, opening: bytes) -> None:
        self.key = key
        self.opening = opening
        # What the first server agreed to; None until it has.
        self.revision: Any = None
        self.capabilities: dict[str, Any] = {}
        # Whether it has, or never will.
        self.is_over = asyncio.Event()
        # The notification that the client is ready.
        self.ready: bytes | None = None
        self._level: bytes | None = None
        self._subscriptions: dict[str, bytes] = {}

    def track(self, head: MessageHead, frame: bytes) -> None:
        """Remember what a client says that has to be said again."""
        method = head.method
        if method == "notifications/initialized":
            self.ready = frame
        elif method == "logging/setLevel":
            self._level = frame
        elif method in ("resources/subscribe", "resources/unsubscribe"):
            uri = decode_as(head.params, _Subscription).uri
            if isinstance(uri, str):
                self._subscriptions.pop(uri, None)
                if method == "resources/subscribe" and len(self._subscriptions) < _SUBSCRIPTIONS:
                    self._subscriptions[uri] = frame

    def requests_to_replay(self) -> list[bytes]:
        """Return the requests that still hold."""
        level = [] if self._level is None else [self._level]
        return [*level, *self._subscriptions.values()]

    def changed_lists(self) -> list[str]:
        """Return the notifications by which a client is told that there may be something new."""
        if self.ready is None:
            return []
        found = []
        for name in ("tools", "resources", "prompts"):
            declared = self.capabilities.get(name)
            if isinstance(declared, dict) and declared.get("listChanged") is True:
                found.append(f"notifications/{name}/list_changed")
        return found
