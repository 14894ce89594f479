"""One exchange: which form its response has, and what ends it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rigs.http_endpoint import PlainResponder, request
from trunkline.jsonrpc.messages import ErrorObject
from trunkline.transports.http.endpoint.exchange import Exchange, accepted_types, event_of

JSON = "application/json"
EVENTS = "text/event-stream"


class Carrier:
    """What an exchange reports to."""

    def __init__(self, *, primes: bool = False) -> None:
        self.primes = primes
        self.ended: list[Exchange] = []
        self.gone: list[Exchange] = []
        self.elsewhere: list[bytes] = []
        self.slow: list[bool] = []

    def event(self, exchange: Exchange, frame: bytes) -> bytes:
        exchange.last_event += 1
        return event_of(frame, b"1-%d" % exchange.last_event if self.primes else None)

    def priming_event(self, exchange: Exchange) -> bytes:
        return b"id: 1-0\nretry: 1000\ndata: \n\n" if self.primes else b""

    def exchange_ended(self, exchange: Exchange) -> None:
        self.ended.append(exchange)

    def client_gone(self, exchange: Exchange) -> None:
        self.gone.append(exchange)

    def undeliverable(self, exchange: Exchange, frame: bytes) -> None:
        self.elsewhere.append(frame)

    def is_slow(self, exchange: Exchange, value: bool) -> None:
        self.slow.append(value)


class Made:
    """An exchange, its client and what carries it."""

    def __init__(self, accept: str | None = None, *, primes: bool = False) -> None:
        self.client = PlainResponder()
        self.carrier = Carrier(primes=primes)
        self.exchange = Exchange(
            request(accept=accept), self.client, self.carrier, self.status_of, 100.0
        )
        self.client.exchange = self.exchange

    def status_of(self, error: Any) -> int:
        return 418 if error.code == -1 else 503

    def messages(self) -> list[Any]:
        return self.client.messages


# -- the form ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "allowed"),
    [
        (None, (True, True)),
        ("*/*", (True, True)),
        ("application/json", (True, False)),
        ("text/event-stream", (False, True)),
        ("application/json, text/event-stream", (True, True)),
        ("Application/JSON ; q=0.1 , text/*", (True, True)),
        ("application/json;q=0, */*", (False, True)),
        ("text/html", (False, False)),
        ("", (False, False)),
    ],
)
def test_accept_allows_json_events_or_both(accept: str | None, allowed: tuple[bool, bool]) -> None:
    assert accepted_types(None if accept is None else accept.encode()) == allowed


def test_odd_accept_headers_displace_those_of_clients_for_a_moment_alone() -> None:
    for n in range(1000):
        accepted_types(b"text/x-%d" % n)
    usual = b"application/json, text/event-stream"
    assert accepted_types(usual) == (True, True)
    before = accepted_types.cache_info()
    assert before.currsize == 64
    assert accepted_types(usual) == (True, True)
    assert accepted_types.cache_info().hits == before.hits + 1


def test_an_answer_alone_is_json() -> None:
    made = Made("application/json, text/event-stream")
    made.exchange.answer(b'{"id":1}')
    assert (made.client.status, made.client.json) == (200, {"id": 1})
    assert made.exchange.is_done
    assert made.carrier.ended == [made.exchange]


def test_an_answer_to_a_client_that_accepts_events_only_is_a_whole_stream() -> None:
    made = Made(EVENTS, primes=True)
    made.exchange.answer(b'{"id":1}')
    assert not made.client.is_stream
    # Without an id: there is nothing to resume.
    assert made.client.events == [("", {"id": 1})]


def test_a_message_before_the_answer_makes_a_stream() -> None:
    made = Made()
    made.exchange.send(b'{"n":1}')
    assert made.exchange.is_streaming
    made.exchange.send(b'{"n":2}')
    made.exchange.answer(b'{"id":1}')
    assert made.client.is_over
    assert made.client.events == [("", {"n": 1}), ("", {"n": 2}), ("", {"id": 1})]
    assert made.client.headers["x-accel-buffering"] == "no"
    assert made.carrier.ended == [made.exchange]


def test_a_message_for_a_client_that_accepts_json_only_goes_elsewhere() -> None:
    made = Made(JSON)
    made.exchange.send(b'{"n":1}')
    assert made.carrier.elsewhere == [b'{"n":1}']
    made.exchange.answer(b'{"id":1}')
    assert made.client.json == {"id": 1}


def test_a_stream_that_can_be_polled_begins_with_an_empty_event() -> None:
    made = Made(primes=True)
    made.exchange.send(b'{"n":1}')
    assert made.client.body.startswith(b"id: 1-0\nretry: 1000\ndata: \n\n")
    assert made.client.events == [("1-0", None), ("1-1", {"n": 1})]


def test_line_breaks_in_a_message_stay_inside_its_event() -> None:
    for frame in (b'{"a":1,\n"b":2}', b'{"a":1,\r\n"b":2}'):
        event = event_of(frame, b"1-2")
        assert event.endswith(b"\n\n")
        assert b"\n\n" not in event[:-2]
        assert event.count(b"data:") == 2
        # A client that has received the event can resume after it.
        assert b"id: 1-2\n" in event
        assert b"id:" not in event_of(frame)


# -- statuses ----------------------------------------------------------------------------------


def test_an_error_has_its_status_unless_another_was_decided() -> None:
    made = Made(EVENTS)
    made.exchange.answer(b'{"error":{}}', ErrorObject(-1, "no"))
    # As JSON also for a client that accepts events only: a stream has status 200.
    assert (made.client.status, made.client.json) == (418, {"error": {}})
    made = Made()
    made.exchange.status = 413
    made.exchange.answer(b'{"error":{}}', ErrorObject(-1, "no"))
    assert made.client.status == 413


@pytest.mark.parametrize(
    ("data", "seconds"), [({"retryAfterMs": 1500}, "2"), ({"retryAfterMs": 1}, "1"), (None, "1")]
)
def test_overload_error_is_503_with_retry_after(data: Any, seconds: str) -> None:
    made = Made()
    made.exchange.answer(b"{}", ErrorObject(-2, "later", data))
    assert (made.client.status, made.client.headers["retry-after"]) == (503, seconds)


def test_an_error_inside_a_stream_is_an_event() -> None:
    made = Made()
    made.exchange.send(b'{"n":1}')
    made.exchange.answer(b'{"error":{}}', ErrorObject(-1, "no"))
    assert made.client.status == 200
    assert made.messages() == [{"n": 1}, {"error": {}}]


@pytest.mark.parametrize("accept", [JSON, EVENTS])
def test_a_session_id_is_sent_with_success_only(accept: str) -> None:
    made = Made(accept)
    made.exchange.opening_headers = ((b"mcp-session-id", b"s"),)
    made.exchange.answer(b"{}")
    assert made.client.headers["mcp-session-id"] == "s"
    made = Made(accept)
    made.exchange.opening_headers = ((b"mcp-session-id", b"s"),)
    made.exchange.answer(b"{}", ErrorObject(-1, "no"))
    assert "mcp-session-id" not in made.client.headers


def test_extra_headers_are_in_each_form() -> None:
    def sent(made: Made) -> str:
        return made.client.headers["x"]

    for act in (
        lambda made: made.exchange.answer(b"{}"),
        lambda made: made.exchange.send(b"{}"),
        lambda made: made.exchange.settle(),
    ):
        for accept in (None, EVENTS):
            made = Made(accept)
            made.exchange.extra_headers = ((b"x", b"y"),)
            act(made)
            assert sent(made) == "y"


def test_exchange_without_a_request_is_202_or_its_settled_status() -> None:
    made = Made()
    made.exchange.is_receiving = True
    made.exchange.settle()
    assert (made.client.status, made.client.body, made.client.headers) == (202, b"", {})
    made = Made()
    made.exchange.is_receiving, made.exchange.settled_status = True, 400
    made.exchange.settle()
    assert made.client.status == 400


def test_a_cancelled_request_ends_without_an_answer() -> None:
    made = Made()
    made.exchange.settle()
    assert (made.client.status, made.client.events) == (200, [])
    made = Made(JSON)
    made.exchange.settle()
    assert (made.client.status, made.client.body) == (202, b"")
    made = Made()
    made.exchange.send(b"{}")
    made.exchange.settle()
    assert made.client.is_over


# -- time --------------------------------------------------------------------------------------


def test_an_answer_that_takes_long_becomes_a_stream_that_is_kept_alive() -> None:
    made = Made()
    made.exchange.tick(109.9, 10.0, 15.0)
    assert made.client.status == 0
    made.exchange.tick(110.0, 10.0, 15.0)
    assert made.client.body == b":\n\n"
    made.exchange.tick(124.9, 10.0, 15.0)
    assert made.client.body == b":\n\n"
    made.exchange.tick(125.0, 10.0, 15.0)
    assert made.client.body == b":\n\n:\n\n"
    # A client that does not read has enough to read.
    made.client.unread = 1
    made.exchange.tick(140.0, 10.0, 15.0)
    assert made.client.body == b":\n\n:\n\n"
    made.exchange.answer(b'{"id":1}')
    assert made.messages() == [{"id": 1}]
    made.exchange.tick(1000.0, 10.0, 15.0)


def test_an_answer_in_json_only_is_waited_for() -> None:
    made = Made(JSON)
    made.exchange.tick(1000.0, 10.0, 15.0)
    assert made.client.status == 0
    # So is one whose status is known.
    made = Made()
    made.exchange.status = 413
    made.exchange.tick(1000.0, 10.0, 15.0)
    assert made.client.status == 0


# -- streams that are closed and resumed -------------------------------------------------------


def test_a_stream_that_can_be_polled_is_closed_and_resumed() -> None:
    made = Made(primes=True)
    assert made.exchange.close_stream()
    assert made.client.is_over
    assert made.client.events == [("1-0", None)]
    # Sent while nothing reads: it is kept by what carries the exchange.
    made.exchange.send(b'{"n":1}')
    assert not made.exchange.is_done
    again = PlainResponder()
    made.exchange.attach(again, [b'id: 1-1\ndata: {"n":1}\n\n'], 200.0, ((b"x", b"y"),))
    made.exchange.answer(b'{"id":1}')
    assert again.is_over
    assert again.headers["x"] == "y"
    assert again.events == [("1-1", {"n": 1}), ("1-2", {"id": 1})]
    assert not made.exchange.close_stream()


@pytest.mark.parametrize(("accept", "primes"), [(None, False), (JSON, True)])
def test_a_stream_that_cannot_be_polled_is_not_closed(accept: str | None, primes: bool) -> None:
    made = Made(accept, primes=primes)
    assert not made.exchange.close_stream()
    made.exchange.answer(b'{"id":1}')
    assert made.client.json == {"id": 1}


def test_resuming_ends_the_connection_before() -> None:
    made = Made(primes=True)
    made.exchange.send(b'{"n":1}')
    again = PlainResponder()
    made.exchange.attach(again, [], 200.0)
    assert made.client.is_over
    made.exchange.send(b'{"n":2}')
    assert [id for id, _ in again.events] == ["1-2"]
    # Neither connection counts as slow any more.
    assert made.carrier.slow == [False]


# -- the end -----------------------------------------------------------------------------------


def test_the_end_of_the_connection_is_reported_until_the_answer() -> None:
    made = Made()
    made.client.hang_up()
    assert made.carrier.gone == [made.exchange]
    assert made.exchange.unread == 0
    made.exchange.send(b'{"n":1}')
    made.exchange.answer(b'{"id":1}')
    assert made.exchange.is_done
    assert made.client.status == 0
    made = Made()
    made.exchange.answer(b'{"id":1}')
    made.exchange.disconnected()
    assert made.carrier.gone == []


def test_an_exchange_that_is_closed_before_its_answer_is_503_or_ends_its_stream() -> None:
    made = Made()
    made.exchange.close()
    assert (made.client.status, made.client.headers["retry-after"]) == (503, "1")
    made = Made()
    made.exchange.send(b'{"n":1}')
    made.exchange.close()
    assert made.client.is_over
    made.exchange.close()
    made.exchange.answer(b'{"id":1}')
    assert made.messages() == [{"n": 1}]
    assert made.carrier.ended == [made.exchange]


def test_the_unread_bytes_are_those_of_the_connection() -> None:
    made = Made()
    made.client.unread = 7
    assert made.exchange.unread == 7
