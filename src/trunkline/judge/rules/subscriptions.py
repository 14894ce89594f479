"""Subscriptions: acknowledged first, only the requested topics, each message with its id."""

from __future__ import annotations

from typing import Any, Final

from ...spec.mcp.meta import SUBSCRIPTION_ID
from ..unknown import Unknown
from .checker import Checker
from .state import (
    LISTEN,
    Members,
    ObservedCall,
    ObservedMessage,
    State,
    key_of,
    object_at,
)

__all__ = ["check_subscriptions"]

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_SWITCHES: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
_NEVER: Final = ("notifications/progress", "notifications/message")
_WHERE: Final = "/params/_meta/io.modelcontextprotocol~1subscriptionId"


def check_subscriptions(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check the notifications of a subscription, and its final result."""
    if seen.sender != "server" or not checker.requires("mcp.subscriptions.id-carried"):
        return
    if seen.kind == "notification":
        _check_notification(seen, state, checker)
    elif seen.result is not None and seen.call is not None and seen.call.method == LISTEN:
        _check_end(seen.result, seen.call, checker)


def _check_notification(seen: ObservedMessage, state: State, checker: Checker) -> None:
    on_stream = _stream_of(seen, state)
    named = _named(seen, state)
    belongs = (seen.row is not None and seen.row.stream == LISTEN) or SUBSCRIPTION_ID in seen.meta
    if not belongs and on_stream is None:
        return
    never = seen.method in _NEVER
    checker.check("mcp.subscriptions.no-progress-or-logs", not never, "/method", seen.method)
    if never:
        return
    kept = named is not None and on_stream in (None, named)
    if kept or not state.open.evicted:
        got = seen.meta.get(SUBSCRIPTION_ID)
        checker.check("mcp.subscriptions.id-carried", kept, _WHERE, got)
    listen = named or on_stream
    if listen is not None:
        _check_content(seen, listen, checker)


def _stream_of(seen: ObservedMessage, state: State) -> ObservedCall | None:
    exchange = state.exchange(seen.entry)
    calls = [] if exchange is None else exchange.calls
    return next((call for call in calls if call.method == LISTEN), None)


def _named(seen: ObservedMessage, state: State) -> ObservedCall | None:
    key = key_of("client", seen.meta.get(SUBSCRIPTION_ID))
    call = None if key is None else state.open.get(key)
    return call if call is not None and call.method == LISTEN else None


def _check_content(seen: ObservedMessage, listen: ObservedCall, checker: Checker) -> None:
    if seen.method == _ACKNOWLEDGED:
        checker.check("mcp.subscriptions.acknowledged-first", True)
        listen.acknowledged = True
        given = object_at(seen.params, "notifications")
        extra = _beyond(given, listen.filter)
        where = f"/params/notifications/{extra}"
        kept = not extra
        checker.check("mcp.subscriptions.acknowledged-subset", kept, where, given.get(extra))
        return
    kept = listen.acknowledged
    checker.check("mcp.subscriptions.acknowledged-first", kept, "/method", seen.method)
    is_asked = _is_asked(seen, listen.filter)
    checker.check("mcp.subscriptions.asked-only", is_asked, "/method", seen.method)


def _beyond(given: Members, asked: Members) -> str:
    # The first topic that the acknowledgement has and the filter of the client has not.
    for name, value in given.items():
        wanted = asked.get(name)
        if value is True and wanted is not True:
            return name
        if type(value) is list and not _is_part(value, wanted):
            return name
    return ""


def _is_part(value: list[Any], wanted: Any) -> bool:
    # A set, because the peers choose the length of both lists.
    known = {each for each in wanted if type(each) is str} if type(wanted) is list else set()
    return all(isinstance(item, Unknown) or (type(item) is str and item in known) for item in value)


def _is_asked(seen: ObservedMessage, asked: Members) -> bool:
    switch = _SWITCHES.get(seen.method)
    if switch is not None:
        return asked.get(switch) is True
    if seen.method == "notifications/resources/updated":
        uri, wanted = seen.params.get("uri"), asked.get("resourceSubscriptions")
        # A resource below a subscribed one counts.
        return isinstance(uri, Unknown) or (
            type(uri) is str
            and any(
                type(each) is str and (uri == each or uri.startswith(each.rstrip("/") + "/"))
                for each in (wanted if type(wanted) is list else ())
            )
        )
    if seen.method == "notifications/tasks":
        return _is_part([seen.params.get("taskId")], asked.get("taskIds"))
    return True


def _check_end(result: Members, call: ObservedCall, checker: Checker) -> None:
    id = object_at(result, "_meta").get(SUBSCRIPTION_ID)
    own = set(result) - {"_meta", "resultType"}
    same = type(id) is type(call.id) and (id == call.id or isinstance(id, Unknown))
    kept = result.get("resultType") == "complete" and same and not own
    checker.check("mcp.subscriptions.end-result-form", kept, "/result", result)
