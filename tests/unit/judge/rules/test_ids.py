"""Ids: unique, answered once, and echoed with their JSON type."""

from __future__ import annotations

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
from trunkline.judge.rules.ids import other
from trunkline.spec.rows import Role

ERROR = "error"
PING, PONG = ask(1, "ping"), answer(1)


def test_the_other_side_of_an_unknown_sender_is_unknown() -> None:
    assert (other("client"), other("server"), other(None)) == ("server", "client", None)


def test_an_id_is_used_once_in_a_session() -> None:
    rule = "mcp.id.session-unique"
    keeps(rule, *opened(), PING, PONG, ask(2, "ping"), answer(2))
    breaks(rule, ERROR, "/id", *opened(), PING, PONG, PING)


def test_each_side_and_each_json_type_has_ids_of_its_own() -> None:
    same = [ask("1", "ping"), answer("1"), ask(1, "ping", by="server"), answer(1, by="client")]
    keeps("mcp.id.session-unique", *opened(), PING, PONG, *same)


def test_a_new_session_may_use_the_ids_of_the_one_before() -> None:
    start = [over(place, entry) for place, entry in enumerate(opened())]
    info = start[0].message["params"]
    again = [
        over(8, ask("j", "initialize", **info)),
        over(8, answer("j", **start[1].message["result"])),
        start[2],
    ]
    keeps("mcp.id.session-unique", *start, PING, PONG, *again, PING, PONG)
    breaks("mcp.id.session-unique", ERROR, "/id", *start, PING, PONG, *again, PING, PONG, PING)


def test_an_id_is_free_again_once_its_request_is_answered() -> None:
    rule = "mcp.id.open-unique"
    first = call(1, "tools/list")
    keeps(rule, first, listed(1), first, listed(1))
    breaks(rule, ERROR, "/id", first, first)


@pytest.mark.parametrize("id", [2, "1"])
def test_a_reply_has_the_id_of_an_open_request(id: int | str) -> None:
    rule = "mcp.id.echoed"
    keeps(rule, *opened(), PING, PONG)
    breaks(rule, ERROR, "/id", *opened(), PING, answer(id))


def test_a_request_is_answered_once() -> None:
    breaks("mcp.id.echoed", ERROR, "/id", *opened(), PING, PONG, PONG)


def test_a_second_reply_is_told_from_a_reply_to_nothing() -> None:
    def expected(reply: TraceEntry) -> str:
        talk = Conversation()
        for entry in (*opened(), PING, PONG):
            talk.feed(entry)
        (finding,) = talk.feed(reply)
        return finding.expected

    assert expected(PONG) == f"{expected(answer(2))}; this one was answered before"


def test_an_id_of_a_wrong_type_is_not_looked_up() -> None:
    breaks("mcp.id.type", ERROR, "/id", *opened(), PING, answer(1.5))


def test_a_request_that_may_have_been_forgotten_is_not_called_unknown() -> None:
    pings = [ask(id, "ping") for id in range(1025)]
    keeps("mcp.id.echoed", *opened(), *pings, answer(0), answer(1024))


def test_a_side_does_not_answer_its_own_request() -> None:
    breaks("mcp.id.echoed", ERROR, "/id", *opened(), PING, answer(1, by="client"))


NOTE = tell("notifications/roots/list_changed", by="client")
NO_ID = refuse(None, -32600)
ROOTS = {"roots": {"listChanged": True}}


def test_a_notification_is_not_answered() -> None:
    rule = "mcp.jsonrpc.notification-unanswered"
    keeps(rule, *opened(client=ROOTS), NOTE, PING, PONG)
    breaks(rule, ERROR, "", *opened(client=ROOTS), NOTE, NO_ID)
    # An error without an id may be about the request that came after the notification.
    keeps(rule, *opened(client=ROOTS), NOTE, PING, NO_ID, PONG)


def test_an_http_answer_may_say_why_a_notification_is_refused() -> None:
    refused = over(1, NO_ID, status=400)
    keeps("mcp.jsonrpc.notification-unanswered", *opened(client=ROOTS), NOTE, refused)


@pytest.mark.parametrize(
    ("rule", "asker", "answerer"),
    [
        ("mcp.batch.server-receives", "client", "server"),
        ("mcp.batch.client-receives", "server", "client"),
    ],
)
def test_every_request_of_a_batch_is_answered(rule: str, asker: Role, answerer: Role) -> None:
    start = opened("2025-03-26")
    both = batch(ask(1, "ping", by=asker), ask(2, "ping", by=asker))
    replies = batch(answer(1, by=answerer), answer(2, by=answerer))
    keeps(rule, *start, both, replies)
    # The end of the conversation shows it: its index is that of the message after the last.
    conversation: list[TraceEntry] = [*start, both, answer(1, by=answerer)]
    assert found(*conversation) == [(rule, ERROR, "")]
    cancelled = tell("notifications/cancelled", by=asker, requestId=2)
    keeps(rule, *conversation, cancelled)
    # The revision of the batch asks for it, whatever was spoken last.
    later = [call("m", "tools/list"), listed("m")]
    assert found(*conversation, *later) == [(rule, ERROR, "")]


def test_a_request_outside_a_batch_may_stay_open() -> None:
    passes_over("mcp.batch.server-receives", *opened("2025-03-26"), PING, ask(2, "ping"), PONG)
