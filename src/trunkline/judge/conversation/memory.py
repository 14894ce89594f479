"""What is remembered of a conversation: open requests, the session, and what was discovered."""

from __future__ import annotations

from typing import Any

from ...spec.revisions import HANDSHAKE, PER_REQUEST, REVISIONS
from ..rules import lists, multi_round_trip, tasks
from ..rules.state import (
    ObservedCall,
    ObservedMessage,
    ObservedProgress,
    ObservedSession,
    State,
    key_of,
    object_at,
)

__all__ = ["close_request", "remember", "remember_request"]


def remember(seen: ObservedMessage, state: State) -> None:
    """Store what later messages are judged by."""
    if PER_REQUEST.holds(seen.revision):
        state.per_request = seen.revision
    if seen.sender is not None:
        state.notified[seen.sender] = seen.kind == "notification"
    lists.remember_listing(seen, state)
    if seen.kind == "request":
        remember_request(seen, state)
    elif seen.kind == "reply" and seen.call is not None:
        _remember_reply(seen, seen.call, state)
    elif seen.method == "notifications/initialized":
        state.session.initialized = True
    elif seen.method == "notifications/cancelled":
        for asker in ("client", "server"):
            key = key_of(asker, seen.params.get("requestId"))
            if key is not None and key in state.open:
                state.open[key].cancelled = True
    tasks.remember_task(seen, state)


def remember_request(seen: ObservedMessage, state: State) -> None:
    """Store an open request."""
    call = seen.call
    if call is None or seen.key is None:
        return
    if seen.method == "initialize" and state.session.phase != "asked":
        _begin_session(seen, state)
    state.open[seen.key] = call
    state.closed.pop(seen.key, None)
    state.ids[seen.key] = None
    token = key_of(seen.sender, call.token)
    if token is not None:
        state.tokens[token] = ObservedProgress(call)


def _begin_session(seen: ObservedMessage, state: State) -> None:
    if seen.is_http or state.session.phase == "none":
        # Ids are unique within a session, and a new one starts here.
        state.ids.clear()
    state.session = ObservedSession()
    state.session.phase = "asked"
    state.session.revision = seen.revision
    state.session.client = object_at(seen.params, "capabilities")


def close_request(call: ObservedCall, state: State) -> None:
    """Store that a request was answered."""
    key = key_of(call.sender, call.id)
    call.answered = True
    if key is not None and state.open.get(key) is call:
        del state.open[key]
        state.closed[key] = call


def _remember_reply(seen: ObservedMessage, call: ObservedCall, state: State) -> None:
    close_request(call, state)
    multi_round_trip.remember_round(seen, state)
    result = seen.result
    if call.method == "initialize":
        _settle(seen, state)
    elif call.method == "server/discover" and result is not None:
        state.discovered = result
        state.supported = _texts(result.get("supportedVersions"))
    if seen.code == -32022 and seen.error is not None:
        supported = _texts(object_at(seen.error, "data").get("supported"))
        state.modern_error = any(not HANDSHAKE.holds(each) for each in supported)
        if call.retry_key is not None and supported:
            state.refused[call.retry_key] = supported


def _settle(seen: ObservedMessage, state: State) -> None:
    if seen.result is None:
        state.session = ObservedSession()
        return
    state.session.phase = "agreed"
    state.session.revision = seen.revision
    state.session.server = object_at(seen.result, "capabilities")
    version = seen.result.get("protocolVersion")
    state.session.is_released = type(version) is not str or version in REVISIONS


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if type(each) is str) if type(value) is list else ()
