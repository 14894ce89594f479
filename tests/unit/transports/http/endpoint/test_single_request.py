"""A transport for single requests: one exchange at a time, and nothing between two."""

from __future__ import annotations

import asyncio

from tests.rigs.http_endpoint import PlainResponder, request
from trunkline.transports.http.endpoint.exchange import Exchange
from trunkline.transports.http.endpoint.single_request import SingleRequest


class Made:
    """A transport with an exchange, and what it reported."""

    def __init__(self, accept: str | None = None) -> None:
        self.said: list[str] = []
        self.transport = SingleRequest()
        self.transport.on_gone = lambda: self.said.append("gone")
        self.transport.on_free = lambda: self.said.append("free")
        self.transport.on_drained = lambda: self.said.append("drained")
        self.client, self.exchange = self.use(accept)

    def use(self, accept: str | None = None) -> tuple[PlainResponder, Exchange]:
        client = PlainResponder()
        exchange = Exchange(request(accept=accept), client, self.transport, lambda _: 400, 0.0)
        client.exchange = self.transport.exchange = exchange
        return client, exchange


def test_the_answer_frees_the_transport_for_the_next_exchange() -> None:
    made = Made()
    made.transport.answer(b'{"id":1}', made.exchange, None)
    assert made.client.json == {"id": 1}
    assert made.said == ["free"]
    assert made.transport.exchange is None
    client, exchange = made.use()
    made.transport.answer(b'{"id":2}', exchange, None)
    assert client.json == {"id": 2}


def test_the_end_of_the_connection_cancels_the_request() -> None:
    made = Made()
    made.client.hang_up()
    assert made.said == ["gone", "free"]
    assert made.exchange.is_done


def test_events_have_no_ids_and_a_stream_cannot_be_sent_away() -> None:
    made = Made()
    made.transport.send(b'{"n":1}', made.exchange)
    assert made.client.events == [("", {"n": 1})]
    assert not made.exchange.close_stream()
    made.transport.settled(made.exchange)
    assert made.client.is_over


def test_a_message_about_no_request_or_about_one_before_is_dropped() -> None:
    made = Made()
    made.transport.send(b'{"n":1}')
    made.transport.answer(b'{"id":1}', made.exchange, None)
    client, second = made.use()
    # Of a task, perhaps, that outlives its request: not for this client.
    made.transport.send(b'{"n":2}', made.exchange)
    made.transport.settled(made.exchange)
    assert client.status == 0
    made.transport.answer(b'{"id":2}', second, None)
    assert client.json == {"id": 2}


def test_a_client_that_accepts_json_only_gets_the_answer_alone() -> None:
    made = Made("application/json")
    made.transport.send(b'{"n":1}', made.exchange)
    made.transport.answer(b'{"id":1}', made.exchange, None)
    assert made.client.json == {"id": 1}


def test_the_backlog_is_what_the_client_has_not_read() -> None:
    made = Made()
    made.transport.send(b'{"n":1}', made.exchange)
    made.client.unread = 5
    assert (made.transport.backlog, made.transport.written) == (5, 2)
    made.transport.is_slow(made.exchange, True)
    assert made.said == []
    made.transport.is_slow(made.exchange, False)
    assert made.said == ["drained"]
    asyncio.run(made.transport.close())
    assert made.client.is_over
    assert made.transport.backlog == 0
    asyncio.run(made.transport.close())
