"""A request: its headers, once or several times, and a repr without their values."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests.canaries import CANARY, SECRETS
from trunkline.transports.http.request import (
    KNOWN_HEADERS,
    DuplicateHeader,
    HttpRequest,
    known_headers,
)

ATTRIBUTES = {
    b"host": "host",
    b"origin": "origin",
    b"content-type": "content_type",
    b"accept": "accept",
    b"mcp-session-id": "session_id",
    b"mcp-protocol-version": "protocol_version",
    b"last-event-id": "last_event_id",
}


def request(*headers: tuple[bytes, bytes], **more: Any) -> HttpRequest:
    given = {"method": "POST", "path": "/mcp", "query": "", "http_version": "1.1", **more}
    client = given.pop("client", "127.0.0.1")
    known = known_headers(headers)
    return HttpRequest(*given.values(), [*headers], client, False, *known)


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


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_known_header_that_occurs_twice_is_refused(name: bytes) -> None:
    for second in (b"a", b"b", b""):
        with pytest.raises(DuplicateHeader, match=name.decode()):
            request((name, b"a"), (b"x", b"1"), (name, second))
        with pytest.raises(DuplicateHeader):
            request((name, b""), (name, second))


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
