"""Where a request ends: what can be read in two ways is refused, and nothing after it is served.

A proxy in front of the server may read such a request the other way. Then the rest of it is a
request that the proxy has never seen: request smuggling.
"""

from __future__ import annotations

import json

import pytest

from tests.faults.http.serving import (
    BY_HEADER,
    Served,
    Session,
    Wire,
    call,
    serving,
    single,
    single_headers,
    text_of,
    user,
)
from tests.rigs.messages import META

HOST = "Host: 127.0.0.1\r\n"
JSON = "Content-Type: application/json\r\nAccept: */*\r\n"
SINGLE = "".join(f"{name}: {value}\r\n" for name, value in single_headers("tools/call", "echo"))


def smuggled(wire: Wire, key: str) -> bytes:
    """Return a request that must not be served."""
    return single(wire, "echo", text=key)


def body(text: str) -> str:
    return json.dumps(call("tools/call", name="echo", arguments={"text": text}, _meta=META))


def chunked(text: str) -> str:
    return f"{len(text):x}\r\n{text}\r\n0\r\n\r\n"


def post(framing: str, content: str) -> bytes:
    """Return a POST with framing headers of its own."""
    head = f"POST /mcp HTTP/1.1\r\n{HOST}{JSON}{SINGLE}{framing}\r\n"
    return (head + content).encode("latin-1")


def length(text: str) -> str:
    return f"Content-Length: {len(text)}\r\n"


TE = "Transfer-Encoding: chunked\r\n"
# Each case has its own name in place of this one: what is served is in the journal.
ONE = body("%%%")

AMBIGUOUS = {
    "CL+TE": post(length(ONE) + TE, chunked(ONE)),
    "TE+CL": post(TE + length(ONE), chunked(ONE)),
    "CL.0+TE": post("Content-Length: 0\r\n" + TE, chunked(ONE)),
    "CL-twice-equal": post(length(ONE) * 2, ONE),
    "CL-twice-different": post(length(ONE) + "Content-Length: 0\r\n", ONE),
    "CL-list": post(f"Content-Length: {len(ONE)}, {len(ONE)}\r\n", ONE),
    "CL-plus": post(f"Content-Length: +{len(ONE)}\r\n", ONE),
    "CL-minus": post("Content-Length: -1\r\n", ONE),
    "CL-hexadecimal": post(f"Content-Length: {len(ONE):#x}\r\n", ONE),
    "CL-empty": post("Content-Length:\r\n", ONE),
    "CL-two-numbers": post("Content-Length: 1 2\r\n", ONE),
    "CL-underscore": post("Content-Length: 1_0\r\n", ONE),
    "CL-fraction": post(f"Content-Length: {len(ONE)}.0\r\n", ONE),
    "CL-overflow": post(f"Content-Length: {2**64 + len(ONE)}\r\n", ONE),
    "CL-space-before-colon": post(f"Content-Length : {len(ONE)}\r\n", ONE),
    "CL-leading-space": post(f"X: y\r\n {length(ONE)}", ONE),
    "TE-unknown": post("Transfer-Encoding: xchunked\r\n", chunked(ONE)),
    "TE-identity": post("Transfer-Encoding: identity\r\n", ONE),
    "TE-empty": post("Transfer-Encoding:\r\n", ""),
    "TE-two-codings": post("Transfer-Encoding: gzip, chunked\r\n", chunked(ONE)),
    "TE-chunked-not-last": post("Transfer-Encoding: chunked, identity\r\n", chunked(ONE)),
    "TE-chunked-twice": post("Transfer-Encoding: chunked, chunked\r\n", chunked(ONE)),
    "TE-empty-element": post("Transfer-Encoding: , chunked\r\n", chunked(ONE)),
    "TE-trailing-comma": post("Transfer-Encoding: chunked,\r\n", chunked(ONE)),
    "TE-two-headers": post("Transfer-Encoding: gzip\r\n" + TE, chunked(ONE)),
    "TE-two-headers-equal": post(TE * 2, chunked(ONE)),
    "TE-quoted": post('Transfer-Encoding: "chunked"\r\n', chunked(ONE)),
    "TE-parameter": post("Transfer-Encoding: chunked;a=b\r\n", chunked(ONE)),
    "TE-vertical-tab": post("Transfer-Encoding: \x0bchunked\r\n", chunked(ONE)),
    "TE-space-before-colon": post("Transfer-Encoding : chunked\r\n", chunked(ONE)),
    "TE-in-HTTP/1.0": post(TE + "Connection: keep-alive\r\n", chunked(ONE)).replace(
        b"HTTP/1.1", b"HTTP/1.0"
    ),
    "obs-fold": post("X-Folded: a\r\n b\r\n" + length(ONE), ONE),
    "obs-fold-of-TE": post("Transfer-Encoding:\r\n chunked\r\n", chunked(ONE)),
    "fold-of-first-line": b"POST /mcp HTTP/1.1\r\n " + post(length(ONE), ONE)[20:],
    "bare-LF-everywhere": post(length(ONE), "").replace(b"\r\n", b"\n") + ONE.encode(),
    "bare-LF-once": post("X: y\n" + length(ONE), ONE),
    "bare-LF-at-end": post(length(ONE), "")[:-2] + b"\n" + ONE.encode(),
    "bare-CR": post("X: y\r" + length(ONE), ONE),
    "NUL-in-value": post("X: y\0z\r\n" + length(ONE), ONE),
    "NUL-in-name": post("X\0: y\r\n" + length(ONE), ONE),
    "control-in-value": post("X: y\x01z\r\n" + length(ONE), ONE),
    "no-name": post(": y\r\n" + length(ONE), ONE),
    "no-colon": post("xyz\r\n" + length(ONE), ONE),
    "chunk-LF": post(TE, chunked(ONE).replace("\r\n", "\n", 1)),
    "chunk-data-LF": post(TE, f"{len(ONE):x}\r\n{ONE}\n0\r\n\r\n"),
    "chunk-data-longer": post(TE, f"{len(ONE):x}\r\n{ONE}x\r\n0\r\n\r\n"),
    "chunk-without-line-end": post(TE, f"{len(ONE):x}\r\n{ONE}0\r\n\r\n"),
    "chunk-size-overflow": post(TE, f"{2**64 + len(ONE):x}\r\n{ONE}\r\n0\r\n\r\n"),
    "chunk-size-prefix": post(TE, f"{len(ONE):#x}\r\n{ONE}\r\n0\r\n\r\n"),
    "chunk-size-plus": post(TE, f"+{len(ONE):x}\r\n{ONE}\r\n0\r\n\r\n"),
    "chunk-size-minus": post(TE, f"-{len(ONE):x}\r\n{ONE}\r\n0\r\n\r\n"),
    "chunk-size-space": post(TE, f"{len(ONE):x} \r\n{ONE}\r\n0\r\n\r\n"),
    "chunk-size-empty": post(TE, f"\r\n{ONE}\r\n0\r\n\r\n"),
    "chunk-extension-LF": post(TE, f"{len(ONE):x};a\nb\r\n{ONE}\r\n0\r\n\r\n"),
    "chunk-extension-CR": post(TE, f"{len(ONE):x};a\rb\r\n{ONE}\r\n0\r\n\r\n"),
    "HTTP/0.9": b"GET /mcp\r\n",
    "HTTP/1.2": post(length(ONE), ONE).replace(b"HTTP/1.1", b"HTTP/1.2"),
    "HTTP/2.0": post(length(ONE), ONE).replace(b"HTTP/1.1", b"HTTP/2.0"),
    "HTTP-lower-case": post(length(ONE), ONE).replace(b"HTTP/1.1", b"http/1.1"),
    "HTTP/2-preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "CONNECT": f"CONNECT 127.0.0.1:80 HTTP/1.1\r\n{HOST}\r\n".encode(),
    "CONNECT-with-body": f"CONNECT a:1 HTTP/1.1\r\n{HOST}{length(ONE)}\r\n{ONE}".encode(),
    "unknown-method": f"BREW /mcp HTTP/1.1\r\n{HOST}\r\n".encode(),
    "lower-case-method": f"post /mcp HTTP/1.1\r\n{HOST}\r\n".encode(),
    "TLS-hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
}

# Of three characters, so that lengths stay true.
NAMES = {case: b"q%02d" % n for n, case in enumerate(AMBIGUOUS)}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_an_ambiguous_request_is_refused_and_nothing_after_it_is_served(
    served: Served, case: str
) -> None:
    key = f"smuggled by {case}"
    with served.connect() as wire:
        wire.try_send(AMBIGUOUS[case].replace(b"%%%", NAMES[case]) + smuggled(wire, key))
        first = wire.response()
        assert first.status in (400, 405, 421, 431, 501, 505), first
        assert first.header("connection") == "close"
        assert wire.is_closed
    assert served.is_healthy
    was_served = {NAMES[case].decode(), key}
    assert served.on_loop(lambda: was_served.isdisjoint(served.journal.begun))


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_an_ambiguous_request_is_refused_after_many_that_are_not(served: Served, case: str) -> None:
    """The server compares heads with those that the connection had before."""
    key = f"smuggled after many by {case}"
    with served.connect() as wire:
        for n in range(4):
            text = body(f"c{n}")
            assert wire.ask(post(length(text), text)).status == 200
        wire.try_send(AMBIGUOUS[case].replace(b"%%%", NAMES[case].upper()))
        wire.try_send(smuggled(wire, key))
        first = wire.response()
        assert first.status in (400, 405, 421, 431, 501, 505), first
        assert wire.is_closed
    was_served = {NAMES[case].decode().upper(), key}
    assert served.on_loop(lambda: was_served.isdisjoint(served.journal.begun))


def test_a_head_that_was_repeated_does_not_decide_where_the_body_ends(served: Served) -> None:
    with served.connect() as wire:
        text, key = body("repeated"), "after a repeated head"
        whole = post(length(text), text)
        for _ in range(4):
            assert wire.ask(whole).status == 200
        # Two in one segment, one in two, and one with a longer body than it has.
        wire.send(whole + whole)
        assert [wire.response().status for _ in range(2)] == [200, 200]
        wire.send(whole[:-10])
        served.on_loop(lambda: None)
        wire.send(whole[-10:])
        assert wire.response().status == 200
        wire.send(whole + smuggled(wire, key))
        assert text_of(wire.response().json) == "repeated"
        assert text_of(wire.response().json) == key
        for wrong in ("0", "00" + str(len(text)), f"{len(text)}, {len(text)}", f"+{len(text)}"):
            with served.connect() as other:
                for _ in range(3):
                    assert other.ask(whole).status == 200
                other.send(post(f"Content-Length: {wrong}\r\n", text))
                assert other.response().status == (200 if wrong.startswith("00") else 400)


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_an_ambiguous_request_behind_another_is_not_served(served: Served, case: str) -> None:
    key = f"smuggled behind another by {case}"
    with served.connect() as wire:
        second = AMBIGUOUS[case].replace(b"%%%", NAMES[case][::-1])
        wire.try_send(single(wire, "held", key=key) + second + smuggled(wire, key))
        served.until(lambda: key in served.journal.begun)
        served.open_gate(key)
        assert text_of(wire.response().json) == f"held {key}"
        # The answer to the second may come or not; the connection ends in any case.
        assert key.encode() not in wire.rest()
    assert served.on_loop(served.journal.begun.count, key) == 1
    assert served.on_loop(lambda: NAMES[case][::-1].decode() not in served.journal.begun)


CLEAR = {
    "chunked": post(TE, chunked(body("clear"))),
    "chunked-upper-case": post("TRANSFER-ENCODING: CHUNKED\r\n", chunked(body("clear"))),
    "chunks-of-one-byte": post(
        TE, "".join(f"1\r\n{each}\r\n" for each in body("clear")) + "0\r\n\r\n"
    ),
    "chunk-size-with-zeros": post(TE, "000000" + chunked(body("clear"))),
    "chunk-extension": post(TE, f"{len(body('clear')):x};a=b;c\r\n{body('clear')}\r\n0;d\r\n\r\n"),
    "length-with-zeros": post(f"Content-Length: 000{len(body('clear'))}\r\n", body("clear")),
    "blanks-around-values": post(
        f"X: \t y \t \r\nContent-Length:   {len(body('clear'))}  \r\n", body("clear")
    ),
    "empty-lines-first": b"\r\n\r\n" + post(length(body("clear")), body("clear")),
    "upgrade-offer": post(
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"
        + length(body("clear")),
        body("clear"),
    ),
    "upgrade-offer-chunked": post(
        "Connection: Upgrade\r\nUpgrade: websocket\r\n" + TE, chunked(body("clear"))
    ),
}


@pytest.mark.parametrize("at_a_time", [None, 1, 7])
@pytest.mark.parametrize("case", CLEAR)
def test_a_request_is_served_however_it_is_framed_and_cut(
    served: Served, case: str, at_a_time: int | None
) -> None:
    with served.connect() as wire:
        for _ in range(2):
            wire.send(CLEAR[case], at_a_time=at_a_time)
            answer = wire.response()
            assert answer.status == 200, answer
            assert text_of(answer.json) == "clear"
        wire.send(CLEAR[case] * 3)
        assert [text_of(wire.response().json) for _ in range(3)] == ["clear"] * 3


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_the_body_of_a_request_that_offers_an_upgrade_is_not_a_request(
    served: Served, framing: str
) -> None:
    key = f"in the body of an upgrade, {framing}"
    with served.connect() as wire:
        inner = smuggled(wire, key).decode()
        upgrade = "Connection: Upgrade\r\nUpgrade: h2c\r\n"
        if framing == "length":
            data = post(upgrade + length(inner), inner)
        else:
            data = post(upgrade + TE, chunked(inner))
        assert wire.ask(data).status == 400  # it is not JSON
        # Still one response per request.
        assert text_of(wire.ask(single(wire, "echo", text="next")).json) == "next"
    assert served.on_loop(lambda: key not in served.journal.begun)


def test_many_upgrade_offers_in_one_segment_are_each_answered(served: Served) -> None:
    with served.connect() as wire:
        one = wire.head("GET", "/healthz", [("Connection", "Upgrade"), ("Upgrade", "h2c")])
        wire.send(one * 5 + wire.head("GET", "/healthz"))
        for _ in range(6):
            answer = wire.response()
            assert (answer.status, answer.header("upgrade")) == (200, None)


def test_an_upgrade_offer_followed_by_garbage_is_answered_and_the_garbage_refused(
    served: Served,
) -> None:
    with served.connect() as wire:
        one = wire.head("GET", "/healthz", [("Connection", "Upgrade"), ("Upgrade", "websocket")])
        wire.send(one + b"\x81\x05hello\r\n\r\n")
        assert wire.response().status == 200
        assert wire.response().status == 400
        assert wire.is_closed


# -- trailers --------------------------------------------------------------------------------


def with_trailers(text: str, trailers: str, headers: str = SINGLE) -> bytes:
    head = f"POST /mcp HTTP/1.1\r\n{HOST}{JSON}{headers}{TE}\r\n"
    return f"{head}{chunked(text)[:-2]}{trailers}\r\n".encode()


def test_trailers_are_not_headers() -> None:
    """A proxy removes `X-User` from the headers of clients; trailers pass it."""
    with serving(auth=BY_HEADER) as served, served.connect() as wire:
        message = json.dumps(call("tools/call", name="whoami", arguments={}, _meta=META))
        headers = SINGLE.replace("echo", "whoami")
        answer = wire.ask(with_trailers(message, "X-User: admin\r\n", headers))
        assert text_of(answer.json) == "None"
        answer = wire.ask(single(wire, "whoami", headers=user("alice")))
        assert text_of(answer.json) == "alice"


def test_a_required_header_in_a_trailer_is_missing(served: Served) -> None:
    name = "Mcp-Name: echo\r\n"
    with served.connect() as wire:
        answer = wire.ask(with_trailers(body("x"), name, SINGLE.replace(name, "")))
        assert (answer.status, answer.json["error"]["code"]) == (400, -32020)
        # And one that repeats a header is not a second one.
        assert wire.ask(with_trailers(body("x"), name)).status == 200


def test_trailers_are_bounded(served: Served) -> None:
    with served.connect() as wire:
        start = with_trailers(body("x"), "X: y\r\n")[:-2]
        wire.send(start)
        for _ in range(1000):
            if not wire.try_send(b"X-Filler: " + b"y" * 1000 + b"\r\n"):
                break
        assert b" 431 " in wire.rest()[:20]


# -- header injection ------------------------------------------------------------------------


@pytest.mark.parametrize("break_", ["\r\n", "\n", "\r", "\0", "%0d%0a", "\u0085"])
def test_nothing_that_a_client_sends_becomes_a_header_of_the_response(
    served: Served, break_: str
) -> None:
    evil = f"x{break_}X-Injected: yes"
    session = Session(served)
    for name in ("Mcp-Session-Id", "Last-Event-ID", "Origin", "Mcp-Name", "Accept", "X-Request-ID"):
        with served.connect() as wire:
            given = [(each, value) for each, value in session.headers if each != name]
            wire.send(wire.post(call("ping"), [*given, (name, evil)]))
            answer = wire.response()
            assert answer.header("x-injected") is None, name
            assert answer.header("x-request-id") is None
    with served.connect() as wire:
        wire.send(wire.head("GET", f"/{evil}"))
        assert wire.response().header("x-injected") is None


def test_texts_with_line_breaks_stay_inside_one_event(served: Served) -> None:
    """A tool returns what a client sent: as JSON in an event it has no line of its own."""
    text = "a\r\n\r\nid: 9-9\ndata: {}\n\nevent: x\u2028\x85\0"
    session = Session(served)
    message = call("tools/call", "1\r\n\r\n2", name="echo", arguments={"text": text})
    answer = session.ask(message, [("Accept", "text/event-stream")])
    events = answer.body.decode().split("\n\n")
    assert [len(events), events[1]] == [2, ""], answer.body
    found = json.loads(events[0].removeprefix("data: "))
    assert (found["id"], text_of(found)) == ("1\r\n\r\n2", text)
