"""Too much, too slowly, or not to the end: sizes and timeouts of what a client sends."""

from __future__ import annotations

import json
import logging

import pytest

from tests.faults.http.serving import (
    Closed,
    Served,
    Session,
    Wire,
    call,
    make_app,
    serving,
    single,
    single_headers,
    text_of,
)
from tests.rigs.messages import META
from trunkline import HttpLimits
from trunkline.jsonrpc import Limits, Policy

KIB = 1024
LIMIT = 64 * KIB


@pytest.fixture(scope="module")
def small() -> Served:
    """Return a server whose messages have 64 KiB at most."""
    app, journal = make_app(policy=Policy(limits=Limits(http=LIMIT)))
    with serving(app, journal) as found:
        yield found  # type: ignore[misc]  # a fixture


def padded(size: int, id: object = 77, method: str = "tools/call", last: bool = False) -> bytes:
    """Return a call of some size; with `last` its id is at its end."""
    params = {"name": "echo", "arguments": {"text": ""}, "_meta": META}
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    message = message | {"id": id} if last else {"id": id} | message
    missing = size - len(json.dumps(message))
    params["arguments"] = {"text": "x" * missing}
    body = json.dumps(message).encode()
    assert len(body) == size
    return body


HEADERS = single_headers("tools/call", "echo")


# -- bodies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("id", [77, "seventy-seven", "\u00e9\r\n"])
def test_a_body_that_is_too_large_is_413_with_its_id(
    small: Served, is_chunked: bool, id: object
) -> None:
    session = Session(small)
    for headers in (HEADERS, session.headers):
        with small.connect() as wire:
            body = padded(LIMIT + 1, id)
            wire.try_send(_framed(wire, body, headers, is_chunked))
            answer = wire.response()
            assert answer.status == 413
            assert answer.json["id"] == id
            assert answer.json["error"]["code"] < 0
            assert wire.is_closed


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_of_the_largest_size_is_served(small: Served, is_chunked: bool) -> None:
    with small.connect() as wire:
        for _ in range(2):
            wire.send(_framed(wire, padded(LIMIT), HEADERS, is_chunked))
            assert wire.response().status == 200


@pytest.mark.parametrize("is_chunked", [False, True])
def test_an_oversized_body_without_an_id_is_413(small: Served, is_chunked: bool) -> None:
    for body in (b" " * (LIMIT * 2), b"[" * (LIMIT * 2), padded(LIMIT * 2, last=True)):
        with small.connect() as wire:
            wire.try_send(_framed(wire, body, HEADERS, is_chunked))
            answer = wire.response()
            assert answer.status == 413
            assert answer.json.get("id") is None
            assert wire.is_closed


def test_a_length_beyond_the_limit_is_413_before_the_body_is_there(small: Served) -> None:
    with small.connect() as wire:
        body = padded(2 * LIMIT)
        head = wire.post(b"", [*HEADERS, ("Content-Length", str(10**15))])
        wire.send(head + body[: LIMIT // 2])
        answer = wire.response()
        assert (answer.status, answer.json["id"]) == (413, 77)


def test_an_oversized_body_is_not_held(small: Served) -> None:
    """Far more is sent than the server may keep; it reads what comes, and drops it."""
    with small.connect() as wire:
        wire.send(wire.post(b"", [*HEADERS, ("Transfer-Encoding", "chunked")]))
        chunk = b"x" * 65_000
        sent = 0
        while sent < 64 * 1024 * KIB and wire.try_send(b"%x\r\n%b\r\n" % (len(chunk), chunk)):
            sent += len(chunk)
        assert wire.response().status == 413
    assert small.is_healthy


def test_nothing_of_a_large_body_of_one_is_left_for_the_next(small: Served) -> None:
    with small.connect() as wire:
        inner = single(wire, "echo", text="hidden in a large body")
        body = padded(LIMIT + 1) + inner
        wire.try_send(_framed(wire, body, HEADERS, False))
        assert wire.response().status == 413
        assert wire.is_closed
    assert small.on_loop(lambda: "hidden in a large body" not in small.journal.begun)


def _framed(wire: Wire, body: bytes, headers: object, is_chunked: bool) -> bytes:
    given = list(headers)  # type: ignore[call-overload]
    if not is_chunked:
        return wire.post(body, given)
    head = wire.post(b"", [*given, ("Transfer-Encoding", "chunked")])
    parts = [body[start : start + 9000] for start in range(0, len(body), 9000)]
    return head + b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("body", [b"", b"\0", b"{", b"null", b"1", b'"x"', b"\xff", b"[]", b"{}"])
def test_a_body_that_is_not_a_message_is_400(served: Served, body: bytes) -> None:
    session = Session(served)
    with served.connect() as wire:
        for headers in ([], HEADERS, session.headers):
            answer = wire.ask(wire.post(body, headers))
            assert answer.status == 400, headers
            assert answer.json["error"]["code"] in (-32700, -32600)


@pytest.mark.parametrize("depth", [100, 10_000, 1_000_000])
def test_a_deep_body_is_an_error_and_not_the_end(served: Served, depth: int) -> None:
    session = Session(served)
    with served.connect() as wire:
        for opening in (b"[", b'{"a":', b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":['):
            body = opening + b"[" * depth
            for headers in ([], HEADERS, session.headers):
                answer = wire.ask(wire.post(body, headers))
                assert answer.status == 400
    assert served.is_healthy


# -- heads -----------------------------------------------------------------------------------


def test_a_target_that_is_too_long_is_414(served: Served) -> None:
    with served.connect() as wire:
        assert wire.ask(wire.head("GET", "/healthz?" + "x" * 8000)).status == 200
        assert wire.ask(wire.head("GET", "/healthz?" + "x" * 9000)).status == 414


def test_a_header_that_is_too_long_is_431(served: Served) -> None:
    with served.connect() as wire:
        assert wire.ask(wire.head("GET", "/healthz", [("X", "y" * 8000)])).status == 200
        assert wire.ask(wire.head("GET", "/healthz", [("X", "y" * 9000)])).status == 431
    with served.connect() as wire:
        assert wire.ask(wire.head("GET", "/healthz", [("x" * 100_000, "y")])).status == 431


def test_too_many_headers_are_431(served: Served) -> None:
    with served.connect() as wire:
        many = [(f"X-{n}", "y") for n in range(101)]
        assert wire.ask(wire.head("GET", "/healthz", many[:90])).status == 200
        assert wire.ask(wire.head("GET", "/healthz", many)).status == 431


def test_headers_of_too_many_bytes_are_431(served: Served) -> None:
    with served.connect() as wire:
        many = [(f"X-{n}", "y" * 8000) for n in range(9)]
        assert wire.ask(wire.head("GET", "/healthz", many[:7])).status == 200
        assert wire.ask(wire.head("GET", "/healthz", many)).status == 431


@pytest.mark.parametrize(
    "filler", [b"X: " + b"y" * 1000 + b"\r\n", b"y" * 1000, b"X: y\r\n", b"x"], ids=range(4)
)
@pytest.mark.parametrize("is_served", [False, True], ids=["first", "behind another"])
def test_a_head_without_an_end_is_431(served: Served, filler: bytes, is_served: bool) -> None:
    """Also while another request is served: what is read meanwhile is held in memory."""
    key = f"before {filler[:8]!r}"
    with served.connect() as wire:
        if is_served:
            wire.send(single(wire, "held", key=key))
            served.until(lambda: key in served.journal.begun)
        wire.try_send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
        sent = 0
        while sent < 8 * 1024 * KIB and wire.try_send(filler * (8192 // len(filler))):
            sent += 8192
            if is_served and sent > 1024 * KIB:
                break  # the server does not answer before its turn
        if is_served:
            held = served.on_loop(_held, served)
            assert held < 1024 * KIB, held
            served.open_gate(key)
            assert text_of(wire.response().json) == f"held {key}"
        assert wire.response().status == 431
        assert wire.is_closed
    assert served.is_healthy


def _held(served: Served) -> int:
    """Return the bytes of heads that connections hold."""
    return sum(
        len(each._target) + sum(len(name) + len(value) for name, value in each._headers)
        for each in (connection.reader for connection in served.http.connections)
    )


def test_an_endless_target_is_refused(served: Served) -> None:
    with served.connect() as wire:
        wire.try_send(b"GET /")
        for _ in range(1000):
            if not wire.try_send(b"x" * 8192):
                break
        assert wire.response().status in (414, 431)
        assert wire.is_closed


def test_a_chunk_extension_without_an_end_is_refused(served: Served) -> None:
    with served.connect() as wire:
        wire.send(wire.post(b"", [*HEADERS, ("Transfer-Encoding", "chunked")]) + b"2;a=")
        for _ in range(1000):
            if not wire.try_send(b"x" * 8192):
                break
        assert wire.response().status in (400, 431)
        assert wire.is_closed


# -- timeouts --------------------------------------------------------------------------------

HURRIED = HttpLimits(header_timeout=0.2, body_timeout=0.2)


@pytest.fixture(scope="module")
def hurried() -> Served:
    """Return a server that waits for 0.2 s."""
    with serving(limits=HURRIED) as found:
        yield found  # type: ignore[misc]  # a fixture


@pytest.mark.parametrize(
    "start",
    [
        b"P",
        b"POST /mcp HTTP/1.1\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r",
    ],
)
def test_a_head_that_does_not_end_is_408(hurried: Served, start: bytes) -> None:
    with hurried.connect() as wire:
        wire.send(start)
        answer = wire.response()
        assert (answer.status, answer.header("connection")) == (408, "close")
        assert wire.is_closed


def test_a_head_that_comes_byte_by_byte_is_408_all_the_same(hurried: Served) -> None:
    """The time is that of the whole head: a byte now and then does not prolong it."""
    with hurried.connect() as wire:
        wire.sock.settimeout(0.01)
        wire.try_send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
        for _ in range(3000):
            try:
                wire._more()
                break
            except TimeoutError:
                if not wire.try_send(b"x"):
                    break
        wire.sock.settimeout(30)
        assert wire.response().status == 408


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_that_does_not_end_is_408(hurried: Served, is_chunked: bool) -> None:
    with hurried.connect() as wire:
        data = _framed(wire, padded(1000), HEADERS, is_chunked)
        wire.send(data[:-20])
        assert wire.response().status == 408
        assert wire.is_closed


def test_body_that_comes_byte_by_byte_is_408(hurried: Served) -> None:
    """The time is that of the whole body, but for a second for each 16 KiB of it."""
    with hurried.connect() as wire:
        wire.sock.settimeout(0.01)
        wire.try_send(wire.post(b"", [*HEADERS, ("Content-Length", "5000")]))
        for _ in range(3000):
            try:
                wire._more()
                break
            except TimeoutError:
                if not wire.try_send(b" "):
                    break
        wire.sock.settimeout(30)
        assert wire.response().status == 408


def test_new_connection_that_sends_nothing_is_closed_before_idle_timeout(hurried: Served) -> None:
    with hurried.connect() as wire:  # whose idle timeout is 75 s
        assert wire.rest() == b""


def over(served: Served) -> None:
    """Wait until a timeout that begins now is over."""
    with served.connect() as wire:
        wire.send(b"G")
        assert wire.response().status == 408


def test_a_connection_without_requests_is_closed_in_silence() -> None:
    with serving(limits=HttpLimits(idle_timeout=0.2, header_timeout=0.2)) as served:
        for data in (b"", b"\r\n" * 10):  # which is not the start of a request
            with served.connect() as wire:
                wire.try_send(data)
                assert wire.is_closed
        with served.connect() as wire:
            if wire.try_send(wire.head("GET", "/healthz")):
                # All, or nothing if this process had to wait for longer.
                assert wire.rest().count(b"HTTP/1.1 ") in (0, 1)


def test_a_request_that_is_served_has_no_timeout_of_a_client(hurried: Served) -> None:
    key = "slow"
    with hurried.connect() as wire:
        wire.send(single(wire, "held", key=key))
        hurried.until(lambda: key in hurried.journal.begun)
        over(hurried)
        over(hurried)
        hurried.open_gate(key)
        assert text_of(wire.response().json) == "held slow"


def test_a_slow_request_behind_another_times_out_after_its_turn_has_come(hurried: Served) -> None:
    key = "before a slow one"
    with hurried.connect() as wire:
        data = single(wire, "echo", text="slow body")
        wire.send(single(wire, "held", key=key) + data[:-5])
        hurried.until(lambda: key in hurried.journal.begun)
        over(hurried)
        over(hurried)
        hurried.open_gate(key)
        assert text_of(wire.response().json) == f"held {key}"
        assert wire.response().status == 408
        assert wire.is_closed
    assert hurried.on_loop(lambda: "slow body" not in hurried.journal.begun)


def test_a_large_body_whose_head_came_behind_another_request_is_served(served: Served) -> None:
    key = "before a large one"
    with served.connect() as wire:
        large = wire.post(padded(500 * KIB), HEADERS)
        wire.send(single(wire, "held", key=key) + large[:2000])
        served.until(lambda: key in served.journal.begun)
        served.open_gate(key)
        assert text_of(wire.response().json) == f"held {key}"
        wire.send(large[2000:])
        assert wire.response().status == 200


# -- what breaks off -------------------------------------------------------------------------


@pytest.mark.parametrize("where", [1, 30, 150, -200, -100, -1])
@pytest.mark.parametrize("how", ["close", "reset", "half"])
def test_a_request_that_breaks_off_is_not_served(
    served: Served, where: int, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    import socket
    import struct

    key = f"broken off at {where} by {how}"
    with caplog.at_level(logging.WARNING), served.connect() as wire:
        wire.send(single(wire, "echo", text=key)[:where])
        if how == "half":
            wire.sock.shutdown(socket.SHUT_WR)
            try:
                assert wire.response().status == 400
            except Closed:
                pass
        elif how == "reset":
            linger = struct.pack("ii", 1, 0)
            wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        wire.close()
    served.until(lambda: not served.http.connections, "the connection is left")
    assert served.on_loop(lambda: key not in served.journal.begun)
    assert not caplog.records, caplog.text
    assert served.is_healthy


def test_every_cut_of_an_exchange_into_two_is_read_alike(served: Served) -> None:
    session = Session(served)
    with served.connect() as wire:
        data = session.post(wire, call("tools/call", name="echo", arguments={"text": "cut"}))
        for cut in range(1, len(data)):
            wire.send(data[:cut])
            wire.send(data[cut:])
            assert text_of(wire.response().json) == "cut"
