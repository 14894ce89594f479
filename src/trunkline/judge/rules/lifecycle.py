"""Lifecycle: initialize, and the negotiated revision and capabilities."""

from __future__ import annotations

from typing import Any, Final

from ...spec import lookup
from ...spec.mcp.methods import METHODS
from ...spec.revisions import REVISIONS
from ...spec.types import type_
from .checker import Checker
from .state import Members, ObservedCall, ObservedMessage, State, declares, object_at

__all__ = ["check_capabilities", "check_lifecycle", "check_negotiated"]

_FIELDS: Final = ("protocolVersion", "capabilities", "clientInfo")
_KNOWN: Final = frozenset(row.name for row in METHODS)
# The types of content that not every revision has.
_CONTENT: Final = {
    "audio": "AudioContent",
    "resource_link": "ResourceLink",
    "tool_use": "ToolUseContent",
    "tool_result": "ToolResultContent",
}
_END: Final = "the end of the connection: no released revision has the version of the answer"
# Methods that are allowed at any time.
_FREE: Final = ("ping", "initialize")


def check_lifecycle(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check the order in which a session starts."""
    if not checker.requires("mcp.lifecycle.initialize-first"):
        return
    if seen.sender == "client":
        _check_opening(seen, state, checker)
    if seen.kind == "request" and seen.method not in _FREE:
        _check_waiting(seen, state, checker)
    if seen.kind == "reply" and seen.call is not None:
        _check_replies(seen, state, checker)


def _check_opening(seen: ObservedMessage, state: State, checker: Checker) -> None:
    session = state.session
    if seen.method == "initialize":
        checker.check("mcp.lifecycle.initialize-first", True)
        missing = [name for name in _FIELDS if name not in seen.params]
        places = [f"/params/{name}" for name in missing]
        where = places[0] if places else ""
        checker.check("mcp.lifecycle.initialize-fields", not missing, where, also=places)
        checker.check("mcp.batch.no-initialize", not seen.in_batch, "/method", seen.method)
        if state.per_request:
            _check_fallback(seen, state, checker)
    elif session.phase == "none" and seen.method != "ping" and "first" not in session.reported:
        session.reported.add("first")
        checker.check("mcp.lifecycle.initialize-first", False, "/method", seen.method)
    goes_on = not session.is_released and seen.method != "initialize"
    if goes_on and "version" not in session.reported:
        session.reported.add("version")
        checker.check("mcp.version.disconnects", False, "", expected=_END)
    if seen.method == "notifications/initialized" and session.phase == "agreed":
        checker.check("mcp.lifecycle.server-waits", True)


def _check_fallback(seen: ObservedMessage, state: State, checker: Checker) -> None:
    # initialize after a per-request message: the newer revision forbids the fallback.
    checker.use_revision(state.per_request)
    checker.check("mcp.version.no-fallback", not state.modern_error, "/method", seen.method)
    checker.use_revision(seen.revision)


def _check_waiting(seen: ObservedMessage, state: State, checker: Checker) -> None:
    session = state.session
    if seen.sender == "client":
        if session.phase == "asked":
            checker.check("mcp.lifecycle.client-waits", False, "/method", seen.method)
        elif session.phase == "agreed" and "initialized" not in session.reported:
            session.reported.add("initialized")
            checker.check(
                "mcp.lifecycle.initialized-sent", session.initialized, "/method", seen.method
            )
    elif seen.sender == "server" and session.phase != "none":
        checker.check("mcp.lifecycle.server-waits", session.initialized, "/method", seen.method)


def _check_replies(seen: ObservedMessage, state: State, checker: Checker) -> None:
    call = seen.call
    assert call is not None
    if call.method == "initialize":
        checker.check("mcp.lifecycle.client-waits", True)
        version = (seen.result or {}).get("protocolVersion")
        if type(version) is str:
            kept = version in REVISIONS
            where = "/result/protocolVersion"
            checker.check("mcp.version.answer-released", kept, where, version)
            if not kept:
                checker.check("mcp.version.disconnects", True)  # unless it goes on
    elif call.method == "ping":
        own = set(seen.result or ()) - {"_meta"}
        kept = seen.result is not None and not own
        where = f"/result/{min(own)}" if own else "/error"
        checker.check("mcp.lifecycle.ping-empty", kept, where)


# -- what was negotiated ---------------------------------------------------------------------


def check_negotiated(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check that a session uses only methods and content of its revision."""
    if state.session.phase != "agreed" or seen.revision != state.session.revision:
        return
    if seen.method and seen.method in _KNOWN and seen.method not in _FREE:
        kept = seen.row is not None
        _both(checker, "version", kept, "/method", seen.method)
    for where, kind in _kinds(seen):
        kept = kind not in _CONTENT or type_(_CONTENT[kind], seen.revision) is not None
        _both(checker, "version", kept, where, kind)


def _both(checker: Checker, subject: str, kept: bool, where: str, got: Any) -> None:
    # A must in later revisions, a should in earlier ones.
    checker.check(f"mcp.{subject}.negotiated-preferred", kept, where, got)
    checker.check(f"mcp.{subject}.negotiated-only", kept, where, got)


def _kinds(seen: ObservedMessage) -> list[tuple[str, str]]:
    # The content types in a result, each with its place.
    if seen.result is None:
        return []
    found = _content(seen.result, "/result")
    messages = seen.result.get("messages")
    for place, message in enumerate(messages if type(messages) is list else ()):
        if type(message) is dict:
            found += _content(message, f"/result/messages/{place}")
    return found


def _content(holder: Members, at: str) -> list[tuple[str, str]]:
    content = holder.get("content")
    blocks = content if type(content) is list else [content]
    return [
        (f"{at}/content/{place}/type" if type(content) is list else f"{at}/content/type", kind)
        for place, block in enumerate(blocks)
        if type(block) is dict and type(kind := block.get("type")) is str
    ]


# -- capabilities ----------------------------------------------------------------------------


def check_capabilities(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check that the capability of a method in use was declared."""
    session = state.session
    if session.phase != "agreed" or seen.revision != session.revision:
        _check_discovered(seen, state, checker)
        return
    sides = {"client": session.client, "server": session.server}
    row = seen.row
    if row is not None and row.capability and seen.sender in row.senders:
        for role in row.declared_by(seen.sender):
            kept = declares(sides[role], row.capability)
            expected = f"the capability {row.capability!r} of the {role}"
            where = "/method"
            for id in ("mcp.capability.negotiated-preferred", "mcp.capability.negotiated-only"):
                checker.check(id, kept, where, seen.method, expected)
    if seen.kind == "reply" and seen.call is not None and seen.sender is not None:
        _check_served(seen, seen.call, sides[seen.sender], checker)
    if seen.result is not None and seen.call is not None and seen.sender is not None:
        served = lookup.method(seen.call.method, seen.revision)
        if served is not None and served.capability:
            kept = declares(sides[seen.sender], served.capability)
            expected = f"the capability {served.capability!r}, or an error"
            checker.check(
                f"mcp.capability.{seen.sender}-declares", kept, "/result", expected=expected
            )


def _check_discovered(seen: ObservedMessage, state: State, checker: Checker) -> None:
    # Without a session, the capabilities are those of the server's discovery.
    if seen.sender == "server" and seen.call is not None and state.discovered is not None:
        declared = object_at(state.discovered, "capabilities")
        _check_served(seen, seen.call, declared, checker)


def _check_served(
    seen: ObservedMessage, call: ObservedCall, declared: Members, checker: Checker
) -> None:
    row = lookup.method(call.method, seen.revision)
    if row is None or not row.capability or call.method == "tools/call":
        return
    if declares(declared, row.capability):
        kept = seen.code != -32601
        expected = f"an answer to {call.method}, or no capability {row.capability!r}"
        rule = "mcp.capability.declared-served"
        checker.check(rule, kept, "/error/code", seen.code, expected)
