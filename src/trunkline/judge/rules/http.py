"""HTTP: sessions, status codes and event streams, of 2025-03-26 to 2025-11-25 and later."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlsplit

from ...redaction import HIDDEN
from ...spec.revisions import PER_REQUEST
from ..trace.reader import TraceEntry, TraceHttp
from .checker import Checker
from .state import (
    LISTEN,
    HttpExchange,
    ObservedMessage,
    ObservedSession,
    State,
    fingerprint,
    key_of,
)

__all__ = ["check_exchange", "check_stream", "remember_exchange"]

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_SESSION: Final = "mcp-session-id"
_CHANGES: Final = "/list_changed"
# The GET was not authorised, or its session is gone.
_REFUSED: Final = (400, 401, 403, 404)


def check_exchange(entry: TraceEntry, kinds: list[str], state: State, checker: Checker) -> None:
    """Check an HTTP request or response. `kinds` are the kinds of the messages in its body."""
    if entry.sender == "client" and entry.http is not None:
        _check_request(entry.http, kinds, state, checker)
    elif entry.sender == "server":
        exchange = state.exchange(entry)
        if entry.http is not None:
            _check_answer(entry.http, entry, exchange, state, checker)
        if exchange is not None:
            _check_events(entry, kinds, exchange, state, checker)


# -- requests --------------------------------------------------------------------------------


def _check_request(http: TraceHttp, kinds: list[str], state: State, checker: Checker) -> None:
    path = [name.lower() for name, _ in parse_qsl(_query(http.path), keep_blank_values=True)]
    kept = "access_token" not in path and "token" not in path
    checker.check("mcp.auth.not-in-query", kept, "", http.path)
    if http.headers is None or "/.well-known/" in http.path:
        return
    has_token = http.header("authorization") is not None
    if state.has_token:
        checker.check("mcp.auth.on-every-request", has_token)
    state.has_token = state.has_token or has_token
    if http.method == "POST" or (not http.method and kinds):
        accept = {
            each.partition(";")[0].strip() for each in (http.header("accept") or "").split(",")
        }
        checker.check("mcp.http.accept-both", {_JSON, _EVENTS} <= accept, "", http.header("accept"))
    _check_session(http, kinds, state, checker)


def _query(path: str) -> str:
    try:
        return urlsplit(path).query
    except ValueError:
        return ""


def _check_session(http: TraceHttp, kinds: list[str], state: State, checker: Checker) -> None:
    session = state.session
    given = http.header(_SESSION)
    opens = "initialize" in kinds
    if session.lost:
        checker.check("mcp.session.begun-anew", opens and given is None, "", given)
        session.lost = False
        return
    if opens:
        return
    if session.http_id is not None:
        checker.check("mcp.session.id-sent", given == session.http_id, "", given)
    if session.phase == "agreed":
        version = http.header("mcp-protocol-version")
        checker.check("mcp.headers.version-sent", version is not None)
        if version is not None:
            kept = version == session.revision
            checker.check("mcp.headers.version-negotiated", kept, "", version, session.revision)


# -- answers ---------------------------------------------------------------------------------


def _check_answer(
    http: TraceHttp,
    entry: TraceEntry,
    exchange: HttpExchange | None,
    state: State,
    checker: Checker,
) -> None:
    challenge = http.header("www-authenticate")
    if challenge is not None and challenge != HIDDEN:
        kept = "offline_access" not in challenge
        checker.check("mcp.auth.no-offline-access", kept, "", challenge)
    given = http.header(_SESSION)
    if given is not None and given != HIDDEN:
        kept = bool(given) and all("!" <= each <= "~" for each in given)
        checker.check("mcp.session.id-characters", kept, "", given)
    if exchange is None or http.status is None or exchange.started:
        return
    content = (http.header("content-type") or "").partition(";")[0].strip().lower()
    if exchange.method == "GET":
        _check_get(http.status, content, exchange, checker)
    elif exchange.kind:
        _check_post(http, entry, content, exchange, state, checker)
    if content == _EVENTS:
        kept = (http.header("x-accel-buffering") or "").lower() == "no"
        checker.check("mcp.sse.unbuffered", kept, "", http.header("x-accel-buffering"))


def _check_get(status: int, content: str, exchange: HttpExchange, checker: Checker) -> None:
    if status not in _REFUSED and "/.well-known/" not in exchange.path:
        kept = status == 405 or (status == 200 and content in (_EVENTS, ""))
        checker.check("mcp.http.get-stream-or-405", kept, "", status)


def _check_post(
    http: TraceHttp,
    entry: TraceEntry,
    content: str,
    exchange: HttpExchange,
    state: State,
    checker: Checker,
) -> None:
    status = http.status or 0
    succeeded = 200 <= status < 300
    if state.session.ended and exchange.session_id is not None:
        checker.check("mcp.session.ended-404", status == 404, "", status)
    if exchange.kind == "other" and succeeded:
        empty = not entry.raw and not isinstance(entry.message, dict | list)
        for rule in ("mcp.http.accepted-202", "mcp.http.notification-202"):
            checker.check(rule, status == 202 and empty, "", status)
    elif exchange.kind == "request" and succeeded and http.headers is not None:
        checker.check("mcp.http.json-or-stream", content in (_JSON, _EVENTS), "", content)


# -- events ----------------------------------------------------------------------------------


def _check_events(
    entry: TraceEntry, kinds: list[str], exchange: HttpExchange, state: State, checker: Checker
) -> None:
    event = entry.event
    is_events = exchange.is_events or _is_events(entry.http)
    if event is not None and is_events:
        id = event.get("id")
        # A client that resumes a stream has an id to resume from.
        if not exchange.started and not exchange.resumes:
            kept = id is not None and not kinds and not entry.raw
            checker.check("mcp.sse.priming-event", kept, "", id)
        if id is not None:
            now = fingerprint(entry.message if kinds else None)
            kept = state.event_ids.get(str(id), now) == now
            checker.check("mcp.sse.event-ids-unique", kept, "", id)
            state.event_ids[str(id)] = now
    if kinds and PER_REQUEST.holds(exchange.revision) and is_events:
        checker.check("mcp.sse.reply-last", not exchange.had_reply)
    if entry.ends and is_events and exchange.kind == "request":
        _check_ending(entry, kinds, exchange, checker)


def _is_events(http: TraceHttp | None) -> bool:
    content = "" if http is None else http.header("content-type") or ""
    return content.partition(";")[0].strip().lower() == _EVENTS


def _check_ending(
    entry: TraceEntry, kinds: list[str], exchange: HttpExchange, checker: Checker
) -> None:
    answered = exchange.had_reply or "reply" in kinds
    if not answered and exchange.calls and all(call.cancelled for call in exchange.calls):
        return  # no reply will come: a cancelled request has none
    event = entry.event or {}
    if answered or not (exchange.event_ids or event.get("id")):
        # A stream with event ids may be resumed, and the reply may follow then.
        checker.check("mcp.sse.reply-included", answered)
    checker.check("mcp.sse.not-closed-early", answered)
    if not answered:
        kept = exchange.retry or event.get("retry") is not None
        checker.check("mcp.sse.retry-before-close", kept)


# -- messages on streams ---------------------------------------------------------------------


def check_stream(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check that a message of the server is on the right stream."""
    exchange = state.exchange(seen.entry)
    if exchange is None or seen.sender != "server":
        return
    http = seen.entry.http
    # The body of an HTTP error is a reply to nothing, and not on a stream.
    is_error = http is not None and http.status is not None and http.status >= 400
    if exchange.method == "GET" and not exchange.resumes and not is_error:
        kept = seen.kind != "reply"
        checker.check("mcp.sse.get-no-replies", kept, "/id", seen.id)
    if seen.kind in ("reply", "request") and not exchange.resumes and seen.id is not None:
        key = (seen.kind, type(seen.id).__name__, str(seen.id))
        before = state.sent_on.get(key)
        # An id comes back only in another session, where `call` is the new request.
        kept = before is None or before == seen.entry.stream or seen.call is not None
        checker.check("mcp.sse.one-stream", kept, "/id", seen.id)
        if seen.entry.stream is not None:
            state.sent_on[key] = seen.entry.stream
    if seen.kind == "notification" and exchange.calls:
        _check_related(seen, exchange, checker)


def _check_related(seen: ObservedMessage, exchange: HttpExchange, checker: Checker) -> None:
    call = exchange.calls[0]
    if call.method == LISTEN:
        return
    token = seen.params.get("progressToken")
    if seen.method == "notifications/progress":
        kept = type(token) is type(call.token) and token == call.token
        checker.check("mcp.sse.notifications-related", kept, "/params/progressToken", token)
    else:
        is_change = (
            seen.method.endswith(_CHANGES) or seen.method == "notifications/resources/updated"
        )
        checker.check("mcp.sse.notifications-related", not is_change, "/method", seen.method)


# -- memory ----------------------------------------------------------------------------------


def remember_exchange(
    entry: TraceEntry, seen: list[ObservedMessage], state: State, revision: str
) -> None:
    """Update the HTTP exchange that an entry is part of."""
    http = entry.http
    if entry.sender == "client" and http is not None:
        if entry.stream is not None:
            _open(entry, http, seen, state, revision)
        return
    exchange = state.exchange(entry)
    if entry.sender != "server" or exchange is None:
        return
    if http is not None:
        _begin(http, exchange, state)
    exchange.started = True
    event = entry.event or {}
    exchange.event_ids = exchange.event_ids or event.get("id") is not None
    exchange.retry = exchange.retry or event.get("retry") is not None
    for each in seen:
        answers = each.kind == "reply" and (not exchange.calls or each.call in exchange.calls)
        exchange.had_reply = exchange.had_reply or answers


def _open(
    entry: TraceEntry, http: TraceHttp, seen: list[ObservedMessage], state: State, revision: str
) -> None:
    exchange = HttpExchange(http.method or "POST", http.path, revision)
    exchange.calls = [each.call for each in seen if each.kind == "request" and each.call]
    if seen:
        exchange.kind = "request" if exchange.calls else "other"
    exchange.resumes = http.header("last-event-id") is not None
    exchange.session_id = http.header(_SESSION)
    assert entry.stream is not None
    state.streams[entry.stream] = exchange


def _begin(http: TraceHttp, exchange: HttpExchange, state: State) -> None:
    exchange.status = exchange.status or http.status
    exchange.is_events = exchange.is_events or _is_events(http)
    if http.status is not None and http.status >= 400:
        _close_refused(exchange, state)
    session = state.session
    if http.status == 404 and exchange.session_id is not None:
        session.lost = True
    if exchange.method == "DELETE" and http.status is not None and 200 <= http.status < 300:
        session.ended = True
    opens = any(call.method == "initialize" for call in exchange.calls)
    given = http.header(_SESSION)
    if opens and given is not None:
        session.http_id = given
        session.ended = session.lost = False


def _close_refused(exchange: HttpExchange, state: State) -> None:
    # A status of refusal is the answer: no reply follows, and the id is free again.
    for call in exchange.calls:
        key = key_of(call.sender, call.id)
        if key is None or state.open.get(key) is not call:
            continue
        del state.open[key]
        state.closed[key] = call
        call.answered = True
        if call.method == "initialize":
            # It began no session, so its id may be that of the next.
            state.session = ObservedSession()
            state.ids.pop(key, None)
