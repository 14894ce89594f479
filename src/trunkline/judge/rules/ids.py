"""Ids and replies: each request is answered once, and nothing else is."""

from __future__ import annotations

from ...spec.rows import Role
from .notes import Notes
from .state import Call, Seen, State, key_of

__all__ = ["other", "watch_ids", "watch_missing_replies"]


def other(sender: Role | None) -> Role | None:
    """Return the other side."""
    if sender is None:
        return None
    return "client" if sender == "server" else "server"


def watch_ids(seen: Seen, state: State, notes: Notes) -> None:
    """Look at the id of a request, or at what a reply answers."""
    if seen.kind == "request" and seen.key is not None:
        notes.check("mcp.id.session-unique", seen.key not in state.ids, "/id", seen.id)
        notes.check("mcp.id.open-unique", seen.key not in state.open, "/id", seen.id)
    elif seen.kind == "notification" and seen.sender is not None:
        notes.check("mcp.jsonrpc.notification-unanswered", True)
    elif seen.kind == "reply":
        _watch_reply(seen, state, notes)


def _watch_reply(seen: Seen, state: State, notes: Notes) -> None:
    if seen.id is None:
        # Over HTTP an answer that refuses a notification may explain itself.
        asker = other(seen.sender)
        if asker is not None and not seen.is_http and state.notified.get(asker):
            notes.check("mcp.jsonrpc.notification-unanswered", False, "", seen.id)
        return
    key = key_of(other(seen.sender), seen.id)
    if key is None:
        return  # the judge of single messages said so
    call = seen.call
    if call is None and state.open.forgot:
        return
    again = "; this one was answered before" if key in state.closed else ""
    notes.check(
        "mcp.id.echoed",
        call is not None,
        "/id",
        seen.id,
        f"the id of an open request, of the same JSON type{again}",
    )
    if call is not None and call.in_batch:
        notes.check(_batch_rule(call), True)


def _batch_rule(call: Call) -> str:
    return f"mcp.batch.{other(call.sender)}-receives"


def watch_missing_replies(state: State, notes: Notes) -> None:
    """Look at what was left open at the end."""
    for call in state.open.values():
        if call.in_batch and not call.cancelled:
            notes.turn_to(call.revision)
            notes.check(_batch_rule(call), False, "", call.id, f"a reply to {call.method}")
