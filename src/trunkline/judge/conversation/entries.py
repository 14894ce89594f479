"""Entries of a recording: made of a message in any form, and read back as a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import to_builtins

from ...errors import NOTHING
from ...jsonrpc.codec.decode_errors import read_json
from ...jsonrpc.codec.decoders import UNREADABLE
from ...jsonrpc.codec.encode_errors import UNWRITABLE
from ...spec.jsonrpc import RULES
from ...spec.mcp.methods import METHODS
from ...spec.rows import Role
from ..finding import Finding
from ..rules.state import State, key_of
from ..trace.reader import TextFault, TraceEntry, TraceHttp
from ..trace.writer import capture

__all__ = ["as_entry", "is_damaged", "outline_of", "recorded_fault", "sender_of", "value_of"]

# The methods that only one side ever sends.
_SENDERS: Final[dict[str, Role]] = {
    row.name: row.by
    for row in METHODS
    if row.by != "both" and all(row.by == other.by for other in METHODS if other.name == row.name)
}

# What is read of a message whose text is faulty.
_OUTLINE: Final = ("id", "method", "result", "error")


def as_entry(
    given: Any, sender: Role | None, transport: str, http: TraceHttp | Mapping[str, Any] | None
) -> TraceEntry:
    """Return a message, in any form that `judge` takes, as an entry of a recording."""
    if http is not None and not isinstance(http, TraceHttp):
        http = TraceHttp(**http)
    if isinstance(given, str | bytes | bytearray | memoryview):
        raw = given if isinstance(given, str) else bytes(given)
        return TraceEntry(sender=sender, transport=transport, raw=raw, http=http)
    if not isinstance(given, dict | list):
        given = _plain(given)
    return TraceEntry(sender=sender, transport=transport, message=given, http=http)


def _plain(given: Any) -> Any:
    try:
        return to_builtins(given)
    except UNWRITABLE:
        return given  # `judge` reports it


def value_of(entry: TraceEntry) -> Any:
    """Return the JSON value of an entry, or NOTHING."""
    if entry.message is not NOTHING:
        return entry.message
    if not entry.raw:
        return NOTHING
    try:
        return read_json(entry.raw)
    except UNREADABLE:
        return NOTHING


def recorded_fault(fault: TextFault) -> Finding:
    """Return the finding about a fault that only the text showed."""
    source = RULES[fault.rule].source if fault.rule in RULES else "Trunkline"
    return Finding(fault.rule, "error", fault.where, "", fault.expected, source)


def is_damaged(entry: TraceEntry) -> bool:
    """Return True if a frame that is not JSON was meant as a message."""
    return outline_of(entry) is not None


def outline_of(entry: TraceEntry) -> dict[str, Any] | None:
    """Return the members of a frame that is not JSON which say what it was, or None."""
    unread = entry.unread
    if unread is None:
        if entry.raw is None:
            return None
        unread = capture(entry).unread
        if unread is None:
            return None
    if type(unread.value) is dict and "jsonrpc" in unread.value:
        return {name: each for name, each in unread.value.items() if name in _OUTLINE}
    members: dict[str, Any] = {"method": unread.method} if unread.method else {}
    if unread.id is not None:
        members["id"] = unread.id
    if not members:
        return None
    return members if "method" in members else {**members, "result": {}}


def sender_of(members: dict[str, Any], state: State) -> Role | None:
    """Return the sender of a message in a recording without senders, if it can be known.

    A method may be one that only one side sends; a reply answers an open request.
    """
    method = members.get("method")
    if type(method) is str:
        return _SENDERS.get(method)
    asked_by_client = key_of("client", members.get("id")) in state.open
    asked_by_server = key_of("server", members.get("id")) in state.open
    if asked_by_client == asked_by_server:
        return None
    return "server" if asked_by_client else "client"
