"""HTTP: sessions, statuses and event streams, and authorization."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.judge.rules.recording import (
    answer,
    ask,
    batch,
    breaks,
    call,
    found,
    keeps,
    listed,
    opened,
    over,
    passes_over,
    refuse,
    tell,
)
from trunkline.judge import Conversation, TraceEntry
from trunkline.redaction import HIDDEN

ERROR, WARN = "error", "warn"
REVISION = "2025-11-25"
JSON, EVENTS = "application/json", "text/event-stream"
BOTH = f"{JSON}, {EVENTS}"
TOOLS = {"tools": {}}


def post(stream: int, entry: TraceEntry | None, **headers: str | None) -> TraceEntry:
    """Return a POST with the headers of a session; an underscore stands for a hyphen."""
    own = {"Accept": BOTH, "Mcp-Protocol-Version": REVISION, "Mcp-Session-Id": "s"}
    given = {**own, **{name.replace("_", "-"): value for name, value in headers.items()}}
    kept = {name: value for name, value in given.items() if value is not None}
    return over(stream, entry, method="POST", path="/mcp", headers=kept)


def got(stream: int, **headers: str) -> TraceEntry:
    own = {"Mcp-Protocol-Version": REVISION, "Mcp-Session-Id": "s"}
    given = {**own, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return over(stream, method="GET", path="/mcp", headers=given)


def reply(
    stream: int, entry: TraceEntry | None = None, status: int = 200, **facts: Any
) -> TraceEntry:
    facts.setdefault("headers", {"Content-Type": JSON} if entry is not None else {})
    return over(stream, entry, by="server", status=status, **facts)


def on(stream: int, entry: TraceEntry | None = None, **facts: Any) -> TraceEntry:
    """Return an entry on a stream that has begun."""
    entry = TraceEntry(sender="server") if entry is None else entry
    return TraceEntry(
        sender="server", transport="http", message=entry.message, stream=stream, **facts
    )


FIRST, SECOND, THIRD = opened(server=TOOLS)
OPENING = post(1, FIRST, Mcp_Session_Id=None, Mcp_Protocol_Version=None)
AGREED = reply(1, SECOND, headers={"Content-Type": JSON, "Mcp-Session-Id": "s"})
START = [OPENING, AGREED, post(2, THIRD), reply(2, status=202)]
LIST = ask(5, "tools/list")
LISTED = answer(5, tools=[])


# -- authorization ---------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["access_token=x", "a=1&Token=x", "token"])
def test_a_token_is_not_in_the_query(query: str) -> None:
    rule = "mcp.auth.not-in-query"

    def request(path: str) -> TraceEntry:
        return over(1, FIRST, method="POST", path=path)

    keeps(rule, request("/mcp?tokens=x"))
    keeps(rule, request("http://["))
    breaks(rule, ERROR, "", request(f"/mcp?{query}"))


def test_a_token_is_sent_with_every_request() -> None:
    rule = "mcp.auth.on-every-request"
    with_token = [post(2, THIRD, Authorization="x"), reply(2, status=202)]
    keeps(rule, *START[:2], *with_token, post(3, LIST, Authorization="y"))
    breaks(rule, ERROR, "", *START[:2], *with_token, post(3, LIST))
    twice = [post(3, LIST), post(4, ask(6, "tools/list"))]
    assert found(*START[:2], *with_token, *twice) == [(rule, ERROR, "")] * 2
    passes_over(rule, *START, post(3, LIST))
    known = over(3, method="GET", path="/.well-known/x", headers={})
    passes_over(rule, *START[:2], *with_token, known)


def test_a_challenge_asks_for_no_offline_access() -> None:
    rule = "mcp.auth.no-offline-access"
    request = over(1, call(1, "tools/list"))

    def challenge(scope: str) -> TraceEntry:
        return reply(1, status=401, headers={"WWW-Authenticate": f'Bearer scope="{scope}"'})

    keeps(rule, request, challenge("a"))
    breaks(rule, WARN, "", request, challenge("a offline_access"))
    passes_over(rule, request, reply(1, status=401, headers={"WWW-Authenticate": HIDDEN}))


def test_published_scopes_have_no_offline_access() -> None:
    rule, path = "mcp.auth.no-offline-access", "/.well-known/oauth-protected-resource"
    start = [over(1, call(1, "tools/list")), over(2, method="GET", path=path)]

    def published(*scopes: str) -> TraceEntry:
        return reply(2, TraceEntry(sender="server", message={"scopes_supported": list(scopes)}))

    keeps(rule, *start, published("a"), revision="2026-07-28")
    where = "/scopes_supported"
    breaks(rule, WARN, where, *start, published("a", "offline_access"), revision="2026-07-28")


# -- requests --------------------------------------------------------------------------------


@pytest.mark.parametrize("accept", [JSON, EVENTS, None, "*/*"])
def test_a_client_takes_json_and_events(accept: str | None) -> None:
    rule = "mcp.http.accept-both"
    keeps(rule, *START, post(3, LIST, Accept=f"{EVENTS};q=0.5, {JSON}"))
    breaks(rule, ERROR, "", *START, post(3, LIST, Accept=accept))


def test_only_a_post_takes_both() -> None:
    assert found(*START, got(3)) == []
    # Where the recording has no method, a message tells that it is a POST.
    bare = over(3, LIST, headers={**post(3, LIST).http.headers, "Accept": JSON})
    breaks("mcp.http.accept-both", ERROR, "", *START, bare)


# -- sessions --------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["S", None])
def test_the_session_id_is_sent(id: str | None) -> None:
    rule = "mcp.session.id-sent"
    keeps(rule, *START, post(3, LIST))
    breaks(rule, ERROR, "", *START, post(3, LIST, Mcp_Session_Id=id))


def test_a_server_without_session_ids_needs_none() -> None:
    agreed = reply(1, SECOND)
    passes_over("mcp.session.id-sent", OPENING, agreed, post(2, THIRD, Mcp_Session_Id=None))


@pytest.mark.parametrize("id", ["", "a b", "ä", "a\x7f"])
def test_a_session_id_is_visible_ascii(id: str) -> None:
    rule = "mcp.session.id-characters"
    keeps(rule, OPENING, reply(1, SECOND, headers={"Content-Type": JSON, "Mcp-Session-Id": "!~"}))
    bad = reply(1, SECOND, headers={"Content-Type": JSON, "Mcp-Session-Id": id})
    breaks(rule, ERROR, "", OPENING, bad)
    hidden = reply(1, SECOND, headers={"Content-Type": JSON, "Mcp-Session-Id": HIDDEN})
    passes_over(rule, OPENING, hidden)


AGAIN = post(8, ask("j", "initialize", **FIRST.message["params"]), Mcp_Session_Id=None)


def test_after_a_lost_session_the_client_opens_a_new_one() -> None:
    rule = "mcp.session.begun-anew"
    lost = [*START, post(3, LIST), reply(3, status=404)]
    keeps(rule, *lost, AGAIN)
    breaks(rule, ERROR, "", *lost, post(4, ask(6, "tools/list")))
    without_id = [post(stream, ask(stream, "tools/list"), Mcp_Session_Id=None) for stream in (6, 7)]
    broken = found(*lost, *without_id)
    assert broken == [(rule, ERROR, ""), ("mcp.session.id-sent", ERROR, "")]
    with_id = post(8, ask("j", "initialize", **FIRST.message["params"]))
    breaks(rule, ERROR, "", *lost, with_id)
    passes_over(rule, *START, post(3, LIST), reply(3, status=400), post(4, ask(6, "tools/list")))


def test_another_session_may_be_opened_beside_one() -> None:
    assert found(*START, AGAIN) == []


def test_a_session_that_was_ended_is_not_found() -> None:
    rule = "mcp.session.ended-404"
    delete = over(3, method="DELETE", path="/mcp", headers=dict(got(3).http.headers))
    ended = [*START, delete, reply(3, status=204), post(4, LIST)]
    keeps(rule, *ended, reply(4, status=404))
    breaks(rule, ERROR, "", *ended, reply(4, LISTED))
    again = post(4, ask("j", "initialize", **FIRST.message["params"]), Mcp_Session_Id=None)
    passes_over(rule, *START, delete, reply(3, status=204), again, reply(4, refuse("j", -32603)))
    refused = [*START, delete, reply(3, status=405), post(4, LIST)]
    passes_over(rule, *refused, reply(4, LISTED))


def test_the_version_is_sent_once_it_is_agreed_on() -> None:
    rule = "mcp.headers.version-sent"
    keeps(rule, *START, post(3, LIST))
    breaks(rule, ERROR, "", *START, post(3, LIST, Mcp_Protocol_Version=None))
    passes_over(rule, OPENING)


def test_the_version_is_the_one_that_was_agreed_on() -> None:
    rule = "mcp.headers.version-negotiated"
    keeps(rule, *START, post(3, LIST))
    breaks(rule, WARN, "", *START, post(3, LIST, Mcp_Protocol_Version="2025-06-18"))


# -- answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "content"), [(200, JSON), (202, EVENTS), (500, "")])
def test_a_get_is_answered_with_a_stream_or_405(status: int, content: str) -> None:
    rule = "mcp.http.get-stream-or-405"
    keeps(rule, *START, got(3), reply(3, headers={"Content-Type": f"{EVENTS}; a=b"}))
    keeps(rule, *START, got(3), reply(3, status=405))
    bad = reply(3, status=status, headers={"Content-Type": content})
    breaks(rule, ERROR, "", *START, got(3), bad)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_get_may_be_unwanted(status: int) -> None:
    passes_over("mcp.http.get-stream-or-405", *START, got(3), reply(3, status=status))


def test_an_answer_without_a_status_or_a_request_is_not_judged_by_it() -> None:
    passes_over("mcp.http.get-stream-or-405", *START, got(3), over(3, by="server", headers={}))
    assert found(*START, reply(99, status=500)) == []
    # The first status is that of the exchange.
    assert found(*START, got(3), reply(3, status=405), reply(3, status=500)) == []


def test_a_notification_is_accepted_with_202_and_nothing_else() -> None:
    rule = "mcp.http.accepted-202"
    keeps(rule, *START)
    breaks(rule, ERROR, "", *START[:3], reply(2, status=200))
    with_body = reply(2, TraceEntry(sender="server", raw=" "), status=202)
    assert (rule, ERROR, "") in found(*START[:3], with_body)
    passes_over(rule, *START[:3], reply(2, status=400))
    passes_over(rule, OPENING, AGREED)


def test_a_notification_is_accepted_with_202_since_2026_07_28_too() -> None:
    rule = "mcp.http.notification-202"
    note = tell("notifications/cancelled", by="client", requestId=1)
    start = [over(1, call(1, "tools/list")), over(2, note)]
    keeps(rule, *start, reply(2, status=202))
    breaks(rule, ERROR, "", *start, reply(2, status=204))


def test_a_request_is_answered_with_json_or_a_stream() -> None:
    rule = "mcp.http.json-or-stream"
    request = [*START, post(3, LIST)]
    keeps(rule, *request, reply(3, LISTED, headers={"Content-Type": "Application/JSON; a=b"}))
    breaks(rule, ERROR, "", *request, reply(3, LISTED, headers={"Content-Type": "text/plain"}))
    passes_over(rule, *START[:1], reply(1, SECOND, headers=None))


# -- events ----------------------------------------------------------------------------------


def stream(number: int = 3, **facts: Any) -> TraceEntry:
    """Return the head of an event stream, which primes it."""
    facts = {"event": {"id": "0"}, "headers": {"Content-Type": EVENTS}, **facts}
    return reply(number, **facts)


def opened_with(server: dict[str, Any]) -> list[TraceEntry]:
    agreed = opened(server=server)[1]
    head = {"Content-Type": JSON, "Mcp-Session-Id": "s"}
    return [OPENING, reply(1, agreed, headers=head), *START[2:]]


REQUEST = [*START, post(3, LIST)]
END = on(3, ends=True)


def test_a_stream_begins_with_an_id_and_no_message() -> None:
    rule = "mcp.sse.priming-event"
    keeps(rule, *REQUEST, stream(), on(3, LISTED, event={"id": "1"}))
    breaks(rule, WARN, "", *REQUEST, stream(event={}))
    head = {"Content-Type": EVENTS}
    breaks(rule, WARN, "", *REQUEST, reply(3, LISTED, headers=head, event={"id": "0"}))
    passes_over(rule, *REQUEST, reply(3, LISTED, event={}))
    # A client that resumes a stream has an id already.
    resumed = reply(4, LISTED, headers=head, event={"id": "1"})
    keeps(rule, *REQUEST, stream(), got(4, Last_Event_Id="0"), resumed)


def test_an_event_id_means_one_event() -> None:
    rule = "mcp.sse.event-ids-unique"
    log = tell("notifications/message", level="info", data="x")
    start = [*opened_with({"tools": {}, "logging": {}}), post(3, LIST), stream()]
    keeps(rule, *start, on(3, log, event={"id": "1"}), on(3, LISTED, event={"id": "2"}))
    # An event that is replayed has its id again.
    keeps(rule, *start, on(3, log, event={"id": "1"}), on(3, log, event={"id": "1"}))
    first = on(3, log, event={"id": "1"})
    breaks(rule, ERROR, "", *start, first, on(3, LISTED, event={"id": "1"}))


def test_a_stream_brings_the_reply_before_it_ends() -> None:
    rule = "mcp.sse.reply-included"
    head = stream(event=None)
    keeps(rule, *REQUEST, head, on(3, LISTED, ends=True))
    keeps(rule, *REQUEST, head, on(3, LISTED), on(3, ends=True))
    also = ("mcp.sse.retry-before-close",)
    breaks(rule, WARN, "", *REQUEST, head, on(3, ends=True), also=also)
    # One that has event ids may be resumed, and bring the reply then.
    passes_over(rule, *REQUEST, stream(event={"id": "0", "retry": 1}), END)
    passes_over(rule, *REQUEST, stream(event={"id": "0", "retry": 1}), on(3, event={}), END)
    keeps(rule, *REQUEST, stream(), on(3, LISTED), END)
    # Only the stream that answers a request has a reply to bring.
    passes_over(rule, *START, got(3), stream(), END)
    passes_over(rule, *REQUEST, reply(3, ends=True, headers={"Content-Type": JSON}))


def test_a_stream_that_ends_early_says_when_to_come_again() -> None:
    rule = "mcp.sse.retry-before-close"
    retry = {"id": "1", "retry": 1}
    keeps(rule, *REQUEST, stream(), on(3, event=retry), END)
    keeps(rule, *REQUEST, stream(), on(3, event=retry, ends=True))
    breaks(rule, WARN, "", *REQUEST, stream(), END)
    passes_over(rule, *REQUEST, stream(), on(3, LISTED), END)


def test_a_stream_does_not_end_early() -> None:
    rule, old = "mcp.sse.not-closed-early", "2025-06-18"
    first, second, third = opened(old, server=TOOLS)
    head = {"Content-Type": JSON, "Mcp-Session-Id": "s"}
    version = {"Mcp_Protocol_Version": old}
    start = [post(1, first, Mcp_Session_Id=None), reply(1, second, headers=head)]
    start += [post(2, third, **version), reply(2, status=202), post(3, LIST, **version), stream()]
    keeps(rule, *start, on(3, LISTED), END)
    breaks(rule, WARN, "", *start, END)


MODERN = call(1, "tools/list", meta={"progressToken": "p"})
UNBUFFERED = {"Content-Type": EVENTS, "X-Accel-Buffering": "No"}
PROGRESS = tell("notifications/progress", progressToken="p", progress=1)


def test_the_reply_is_the_last_message_of_a_stream() -> None:
    rule = "mcp.sse.reply-last"
    start = [over(1, MODERN), reply(1, headers=UNBUFFERED)]
    keeps(rule, *start, on(1, PROGRESS), on(1, listed(1)))
    also = ("mcp.progress.stops",)
    breaks(rule, WARN, "", *start, on(1, listed(1)), on(1, PROGRESS), also=also)
    keeps(rule, *start, on(1, listed(1)), on(1, event={}))
    late = found(over(1, MODERN), reply(1, listed(1)), on(1, PROGRESS))
    assert [each for each, *_ in late] == list(also)


def test_a_stream_is_not_buffered() -> None:
    rule = "mcp.sse.unbuffered"
    keeps(rule, over(1, MODERN), reply(1, headers=UNBUFFERED))
    breaks(rule, WARN, "", over(1, MODERN), reply(1, headers={"Content-Type": EVENTS}))
    passes_over(rule, over(1, MODERN), reply(1, listed(1)))


# -- messages on streams ---------------------------------------------------------------------


def test_a_stream_of_a_get_brings_no_replies() -> None:
    rule = "mcp.sse.get-no-replies"
    asked = on(4, ask(9, "ping", by="server"))
    start = [*REQUEST, got(4), stream(4)]
    keeps(rule, *start, asked)
    breaks(rule, ERROR, "/id", *start, on(4, LISTED))
    resumed = [*REQUEST, got(4, Last_Event_Id="0"), stream(4)]
    passes_over(rule, *resumed, on(4, LISTED))


def test_the_body_of_a_refused_get_is_not_on_a_stream() -> None:
    error = {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Mcp-Session-Id is missing"}}
    body = TraceEntry(sender="server", message=error)
    passes_over("mcp.sse.get-no-replies", *REQUEST, got(4), reply(4, body, status=400))


def test_a_message_is_sent_on_one_stream() -> None:
    rule, also = "mcp.sse.one-stream", ("mcp.id.echoed",)
    both = [*REQUEST, stream(), post(4, ask(6, "tools/list")), stream(4)]
    keeps(rule, *both, on(3, LISTED), on(4, answer(6, tools=[])))
    breaks(rule, ERROR, "/id", *both, on(3, LISTED), on(4, LISTED), also=also)
    # On the same stream it is not a matter of streams.
    assert [each for each, *_ in found(*both, on(3, LISTED), on(3, LISTED))] == list(also)


def test_a_stream_that_is_resumed_brings_messages_again() -> None:
    resumed = [*REQUEST, stream(), on(3, LISTED), got(4, Last_Event_Id="0"), stream(4)]
    assert [rule for rule, *_ in found(*resumed, on(4, LISTED))] == ["mcp.id.echoed"]


@pytest.mark.parametrize(
    ("note", "where"),
    [
        (tell("notifications/progress", progressToken="q", progress=1), "/params/progressToken"),
        (tell("notifications/tools/list_changed"), "/method"),
        (tell("notifications/resources/updated", uri="a:b"), "/method"),
    ],
)
def test_a_notification_on_a_stream_is_about_its_request(note: TraceEntry, where: str) -> None:
    rule = "mcp.sse.notifications-related"
    other = call(2, "tools/list", meta={"progressToken": "q"})
    start = [over(2, other), over(1, MODERN), reply(1, headers=UNBUFFERED)]
    keeps(rule, *start, on(1, PROGRESS))
    broken = [each for each in found(*start, on(1, note)) if each[0] == rule]
    assert broken == [(rule, ERROR, where)]


def test_a_notification_on_the_stream_of_a_get_is_about_no_request() -> None:
    changed = tell("notifications/tools/list_changed")
    start = [*opened_with({"tools": {"listChanged": True}}), got(3), stream()]
    assert found(*start, on(3, changed)) == []


def test_a_stream_of_a_subscription_brings_changes() -> None:
    key = "io.modelcontextprotocol/subscriptionId"
    listen = call(1, "subscriptions/listen", notifications={"toolsListChanged": True})
    told = {"notifications": {"toolsListChanged": True}, "_meta": {key: 1}}
    first = on(1, tell("notifications/subscriptions/acknowledged", **told))
    change = on(1, tell("notifications/tools/list_changed", _meta={key: 1}))
    start = [over(1, listen), reply(1, headers=UNBUFFERED), first]
    passes_over("mcp.sse.notifications-related", *start, change)


def test_a_reply_is_counted_on_the_stream_of_its_request() -> None:
    other = call(2, "tools/list")
    start = [over(1, MODERN), over(2, other), reply(1, headers=UNBUFFERED)]
    keeps("mcp.sse.reply-last", *start, on(1, listed(2)), on(1, listed(1)))


def test_a_batch_over_http_is_one_request() -> None:
    old = "2025-03-26"
    first, second, third = opened(old, server=TOOLS)
    start = [
        over(1, first),
        over(1, second, status=200),
        over(2, third),
        over(2, by="server", status=202),
    ]
    both = over(3, batch(LIST, ask(6, "ping")))
    replies = over(3, batch(LISTED, answer(6)), status=200, headers={"Content-Type": JSON})
    keeps("mcp.http.json-or-stream", *start, both, replies)


def test_an_error_may_answer_a_notification() -> None:
    passes_over("mcp.http.accepted-202", *START[:3], reply(2, refuse(None, -32600), status=400))


# -- refusals --------------------------------------------------------------------------------


def remarks(*entries: TraceEntry) -> list[tuple[str, str]]:
    talk = Conversation()
    findings = [each for entry in entries for each in talk.feed(entry)]
    return [(each.rule, each.got) for each in [*findings, *talk.end()]]


def test_a_request_that_is_refused_by_its_status_is_not_open() -> None:
    rule = "mcp.id.open-unique"
    open = ("trace.unanswered", "tools/list with the id 5")
    assert remarks(*START, post(3, LIST), reply(3, status=403)) == []
    assert open in remarks(*START, post(3, LIST), reply(3, status=200))
    assert remarks(*START, post(3, LIST)) == [open]
    again = call(1, "tools/list"), call(1, "tools/list")
    first, second = (over(number, each) for number, each in enumerate(again))
    keeps(rule, first, over(0, by="server", status=503), second, over(1, listed(1), status=200))
    assert rule in [each for each, _ in remarks(first, second)]


def test_a_session_begins_after_an_initialize_that_was_refused_by_its_status() -> None:
    refused = [over(9, FIRST, method="POST", headers={"Accept": BOTH}), reply(9, status=403)]
    assert remarks(*refused, *START, post(3, LIST), reply(3, LISTED)) == []
    # Both are of one session otherwise: no more than one initialize is.
    assert remarks(refused[0], *START) != []
