"""Progress, cancellation and logging: messages about a request in progress."""

from __future__ import annotations

from typing import Any

from ...spec.mcp.meta import LOG_LEVEL, LOG_LEVELS
from .checker import Checker
from .messages import other
from .state import LISTEN, Key, ObservedCall, ObservedMessage, ObservedProgress, State, key_of

__all__ = ["check_cancellation", "check_logging", "check_progress"]


# -- progress --------------------------------------------------------------------------------


def check_progress(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check progress tokens of requests, and progress notifications."""
    if seen.kind == "request" and "progressToken" in seen.meta:
        _check_token(seen, state, checker)
    elif seen.method == "notifications/progress" and seen.kind == "notification":
        _check_report(seen, state, checker)


def _check_token(seen: ObservedMessage, state: State, checker: Checker) -> None:
    token, where = seen.meta["progressToken"], "/params/_meta/progressToken"
    key = key_of(seen.sender, token)
    checker.check("mcp.progress.token-type", key is not None, where, token)
    if key is not None:
        known = state.tokens.get(key)
        taken = known is not None and _is_open(known, state)
        checker.check("mcp.progress.token-unique", not taken, where, token)


def _check_report(seen: ObservedMessage, state: State, checker: Checker) -> None:
    token, value = seen.params.get("progressToken"), seen.params.get("progress")
    key: Key | None = key_of(other(seen.sender), token)
    known = None if key is None else state.tokens.get(key)
    if known is None:
        if not state.tokens.evicted and seen.sender is not None:
            checker.check("mcp.progress.known-token", False, "/params/progressToken", token)
        return
    checker.check("mcp.progress.known-token", True)
    checker.check("mcp.progress.stops", _is_open(known, state), "/params/progressToken", token)
    if isinstance(value, int | float):
        grown = known.last is None or value > known.last
        expected = f"more than {known.last}"
        checker.check("mcp.progress.grows", grown, "/params/progress", value, expected)
        known.last = value


def _is_open(known: ObservedProgress, state: State) -> bool:
    # A token lives as long as its request, or the task that the request became.
    if known.task is None:
        return not known.call.answered
    holder = other(known.call.sender) or ""
    task = state.tasks.get((holder, known.task))
    return task is None or task.status not in ("completed", "failed", "cancelled")


# -- cancellation ----------------------------------------------------------------------------


def check_cancellation(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check which request a cancellation names."""
    if seen.method != "notifications/cancelled" or "requestId" not in seen.params:
        return
    id, where = seen.params["requestId"], "/params/requestId"
    call = _named(seen.sender, id, state)
    if checker.requires("mcp.cancel.own-request"):
        if call is not None or not state.open.evicted:
            checker.check("mcp.cancel.own-request", call is not None, where, id)
        if seen.sender == "client":
            is_opening = call is not None and call.method == "initialize"
            checker.check("mcp.cancel.not-initialize", not is_opening, where, id)
    elif seen.sender == "server":
        # The server may end only a subscription of the client.
        listen = _named("client", id, state)
        kept = listen is not None and listen.method == LISTEN
        if kept or not state.open.evicted:
            checker.check("mcp.cancel.server-only-listen", kept, where, id)


def _named(sender: str | None, id: Any, state: State) -> ObservedCall | None:
    key = key_of(sender, id)
    return None if key is None else state.open.get(key) or state.closed.get(key)


# -- logging ---------------------------------------------------------------------------------


def check_logging(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check that log messages were requested, and their level."""
    if seen.kind == "request":
        _check_level(seen)
    elif seen.method == "notifications/message" and checker.requires("mcp.logging.asked-only"):
        _check_log(seen, state, checker)


def _check_log(seen: ObservedMessage, state: State, checker: Checker) -> None:
    asking = [call for call in state.open.values() if call.level in LOG_LEVELS]
    exchange = state.exchange(seen.entry)
    if exchange is not None:
        own = [call for call in exchange.calls if call.level in LOG_LEVELS]
        checker.check("mcp.logging.own-stream", own, "/method", seen.method)
        asking = own or asking
    if not state.open.evicted or asking:
        checker.check("mcp.logging.asked-only", asking, "/method", seen.method)
    level = seen.params.get("level")
    if asking and level in LOG_LEVELS:
        least = min(LOG_LEVELS.index(call.level) for call in asking)
        kept = LOG_LEVELS.index(level) >= least
        expected = f"{LOG_LEVELS[least]} or more severe"
        checker.check("mcp.logging.level-kept", kept, "/params/level", level, expected)


def _check_level(seen: ObservedMessage) -> None:
    # The server has to refuse a level that does not exist.
    assert seen.call is not None
    if seen.method == "logging/setLevel" and seen.params.get("level") not in LOG_LEVELS:
        seen.call.refusals_due.append(("mcp.logging.bad-level", -32602))
    if LOG_LEVEL in seen.meta and seen.meta[LOG_LEVEL] not in LOG_LEVELS:
        seen.call.refusals_due.append(("mcp.logging.bad-request-level", -32602))
