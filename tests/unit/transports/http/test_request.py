"""A request: its headers, once or several times, and a repr without their values."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests.canaries import CANARY, SECRETS
from trunkline.spec.http_conditions import HTTP
from trunkline.transports.http.request import KNOWN_HEADERS, HttpRequest, read_headers
from trunkline.transports.http.response import Refusal
from trunkline.transports.http.settings import HttpLimits

ATTRIBUTES = {
    b"host": "host",
    b"origin": "origin",
    b"content-type": "content_type",
    b"accept": "accept",
    b"mcp-session-id": "session_id",
    b"mcp-protocol-version": "protocol_version",
    b"last-event-id": "last_event_id",
    b"authorization": "authorization",
}


def request(*headers: tuple[bytes, bytes], **more: Any) -> HttpRequest:
    given = {"method": "POST", "path": "/mcp", "query": "", "http_version": "1.1", **more}
    client = given.pop("client", "127.0.0.1")
    read = read_headers(headers, HttpLimits())
    assert not isinstance(read, Refusal)
    return HttpRequest(*given.values(), [*headers], client, False, *read[0])


def refusal_of(*headers: tuple[bytes, bytes], **limits: int) -> Refusal:
    read = read_headers(headers, HttpLimits(**limits))
    assert isinstance(read, Refusal)
    return read


def test_each_known_header_is_in_its_attribute() -> None:
    assert list(KNOWN_HEADERS) == list(ATTRIBUTES)
    for name, attribute in ATTRIBUTES.items():
        made = request((b"x", b"1"), (name, b"value"))
        assert getattr(made, attribute) == b"value"
        others = {each for each in ATTRIBUTES.values() if each != attribute}
        assert {getattr(made, each) for each in others} == {None}


def test_the_places_of_known_headers_are_those_of_the_arguments() -> None:
    arguments = list(inspect.signature(HttpRequest).parameters)
    assert arguments[7:] == list(ATTRIBUTES.values())
    assert list(KNOWN_HEADERS.values()) == list(range(len(ATTRIBUTES)))


@pytest.mark.parametrize(
    "name",
    [
        *(each for each in ATTRIBUTES if each != b"accept"),
        *(b"content-length", b"transfer-encoding", b"mcp-method", b"mcp-name"),
    ],
)
def test_a_header_that_occurs_twice_is_refused(name: bytes) -> None:
    for second in (b"1", b"2", b""):
        refusal = refusal_of((name, b"1"), (b"x", b"1"), (name, second))
        text = f"The header {name.decode()} is given twice"
        assert refusal == Refusal(HTTP["malformed-request"], text)


def test_accept_may_be_given_in_parts() -> None:
    made = request((b"accept", b"application/json"), (b"accept", b"text/event-stream"))
    assert made.accept == b"application/json, text/event-stream"


def test_the_length_of_the_body_is_a_number() -> None:
    limits = HttpLimits()
    assert read_headers([(b"content-length", b"17")], limits) == ([None] * len(ATTRIBUTES), 17)
    assert read_headers([(b"x", b"17")], limits) == ([None] * len(ATTRIBUTES), 0)
    for value in (b"", b"-1", b"+1", b"1 ", b"1_0", b"0x1", "\u0661".encode(), b"1" * 5000):
        assert refusal_of((b"content-length", value)).status == 400


def test_headers_are_bounded_in_number_and_in_bytes() -> None:
    many = [(b"x-%d" % each, b"1") for each in range(10)]
    assert refusal_of(*many, header_count=9).status == 431
    assert not isinstance(read_headers(many, HttpLimits(header_count=10)), Refusal)
    assert not isinstance(read_headers(many, HttpLimits(header_bytes=80)), Refusal)
    assert refusal_of(*many, header_bytes=79).status == 431
    assert refusal_of((b"x", b"1234"), header_line_bytes=3).status == 431
    assert not isinstance(read_headers([(b"x", b"123")], HttpLimits(header_line_bytes=3)), Refusal)


def test_other_headers_are_found_by_name_in_order() -> None:
    made = request((b"x-a", b"1"), (b"x-b", b"2"), (b"x-a", b"3"))
    assert made.header(b"x-a") == b"1"
    assert made.header(b"x-c") is None
    assert made.all(b"x-a") == [b"1", b"3"]
    assert made.all(b"x-c") == []


def test_a_request_has_no_place_for_anything_else() -> None:
    with pytest.raises(AttributeError):
        request().user = "x"  # type: ignore[attr-defined]


def test_a_repr_shows_no_header_and_no_query() -> None:
    headers = [(name.encode(), str(value).encode()) for name, value in SECRETS.items()]
    headers += [(name, f"{CANARY}-{name!r}".encode()) for name in KNOWN_HEADERS]
    headers.append((f"{CANARY}-name".encode(), b"1"))
    made = request(*headers, query=f"sessionId={CANARY}")
    assert all(getattr(made, each).startswith(CANARY.encode()) for each in ATTRIBUTES.values())
    assert repr(made) == f"<HttpRequest 'POST' '/mcp' from '127.0.0.1', {len(headers)} headers>"
    assert f"{made}" == str(made) == repr(made)


def test_a_secret_in_the_request_line_is_hidden_in_the_repr() -> None:
    secret = f"Bearer {CANARY}{CANARY}"
    assert CANARY not in repr(request(method=secret, path=secret, client=secret))
