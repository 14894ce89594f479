"""`KnownHeads`: a head that a connection repeats is not parsed again, and nothing else changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.fuzz.fuzz_http import (
    LIMITS,
    REVISION,
    FuzzedConnection,
    FuzzedHttpServer,
    Response,
    body_of,
    plain,
    scene,
)
from tests.rigs.messages import META
from trunkline import HttpSettings
from trunkline.auth.server.resource_server import resource_server_of
from trunkline.spec.revisions import LATEST
from trunkline.transports.http.endpoint.endpoint import McpEndpoint
from trunkline.transports.http.endpoint.routes import Routes
from trunkline.transports.http.gate.admission import Admission
from trunkline.transports.http.request import HttpRequest
from trunkline.transports.http.server.http_server import HttpServer
from trunkline.transports.http.server.known_heads import KnownHeads

LINES = (
    f"MCP-Protocol-Version: {LATEST}\r\nMcp-Method: tools/call\r\nMcp-Name: inline\r\n"
).encode()


def call(text: str = "text", lines: bytes = LINES) -> bytes:
    """A call of a tool that answers at once."""
    params = {"name": "inline", "arguments": {"text": text}, "_meta": META}
    return plain(body_of("tools/call", params, 1), lines)


def parsed(wire: FuzzedConnection) -> list[int]:
    """Count, from now on, what is handed to the parser."""
    counted: list[int] = []
    parser = wire.protocol.reader._parser

    class Counting:
        def feed_data(self, data: memoryview) -> None:
            counted.append(len(data))
            parser.feed_data(data)

        def __getattr__(self, name: str) -> object:
            return getattr(parser, name)

    wire.protocol.reader._parser = Counting()
    return counted


def run(act: Callable[[FuzzedHttpServer, FuzzedConnection], Awaitable[None]]) -> None:
    stage = scene()

    async def acted() -> None:
        wire = FuzzedConnection(stage.http)
        try:
            async with asyncio.timeout(10):
                await act(stage, wire)
        finally:
            await wire.lose()

    stage.runner.run(acted())
    assert stage.faults == []


async def answers(wire: FuzzedConnection, *requests: bytes) -> list[Response]:
    for each in requests:
        await wire.feed(each, turns=5)
    return wire.responses()


# -- what is saved ---------------------------------------------------------------------------


def test_a_head_is_parsed_twice_and_then_known_whatever_the_length_of_the_body() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        counted = parsed(wire)
        found = await answers(wire, *(call("x" * size) for size in (1, 5, 5, 80, 1000, 5)))
        assert [each.status for each in found] == [200] * 6
        assert len(counted) == 2
        for response, size in zip(found, (1, 5, 5, 80, 1000, 5), strict=True):
            assert b'"' + b"x" * size + b'"' in response.body

    run(act)


def test_a_head_is_known_whatever_its_trace_context_and_its_tool_are() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        counted = parsed(wire)
        for number, tool in enumerate(["inline", "inline", "echo", "missing", "inline"] * 2):
            lines = LINES.replace(b"inline", tool.encode())
            lines += b"traceparent: 00-%032x-%016x-01\r\nX-Request-Id: %d\r\n" % (
                number,
                number,
                number,
            )
            params = {"name": tool, "arguments": {"text": f"text {number}"}, "_meta": META}
            await wire.feed(plain(body_of("tools/call", params, 1), lines), turns=5)
        found = wire.responses()
        assert [each.status for each in found] == [200] * 10
        assert len(counted) == 2
        assert b"text 9" in found[-1].body
        # The headers of each request are its own: those before named another tool.
        await wire.feed(call("a", LINES.replace(b"inline", b"echo") + lines[len(LINES) :]), turns=5)
        assert wire.responses()[-1].status == 400

    run(act)


def test_several_heads_that_take_turns_are_known() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        kinds = [LINES + b"X-Kind: %d\r\n" % kind for kind in range(4)]
        await answers(wire, *(call("a", each) for each in (kinds[0], *kinds)))
        counted = parsed(wire)
        await answers(wire, *(call("b", each) for each in kinds * 3))
        assert counted == []

    run(act)


def test_a_client_whose_heads_differ_each_time_is_not_compared_any_more() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        for number in range(20):
            await wire.feed(call("a", LINES + b"X-Kind: %d\r\n" % number), turns=5)
        known = wire.protocol.reader.known
        assert known is not None
        assert not known.heads
        assert not known.learns
        assert [each.status for each in wire.responses()] == [200] * 20

    run(act)


def test_a_connection_of_one_request_remembers_nothing() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        await answers(wire, call())
        assert not (wire.protocol.reader.known and wire.protocol.reader.known.heads)
        assert wire.protocol.reader._learnt is None

    run(act)


def test_known_heads_are_bounded_in_number_and_length() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        for number in range(60):
            lines = LINES + b"X-Kind: %d\r\n" % (number // 3)
            await wire.feed(call("a", lines), turns=5)
        known = wire.protocol.reader.known
        assert known is not None
        assert 0 < len(known.heads) <= 4
        long = LINES + b"X-Long: " + b"x" * 500 + b"\r\n" + b"X-Other: " + b"x" * 500 + b"\r\n"
        heads = list(known.heads)
        longer = long + long.replace(b"X-", b"Y-").replace(LINES, b"")
        await answers(wire, *[call("a", longer)] * 3)
        assert known.heads == heads

    run(act)


# -- what is unchanged -----------------------------------------------------------------------


def test_a_known_request_has_its_own_content_length() -> None:
    known = KnownHeads()
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nX-A: b\r\n\r\n"
    headers = [(b"host", b"localhost"), (b"content-length", b"5"), (b"x-a", b"b")]
    request = HttpRequest("POST", "/mcp", "", "1.1", headers, "::1", True, b"localhost")
    known.learn(head % 5 + b"12345", request)
    assert known.find(head % 5 + b"abcde") == (request, b"abcde")
    found = known.find(head % 11 + b"hello world")
    assert found is not None
    other, body = found
    assert body == b"hello world"
    assert other.headers == [(b"host", b"localhost"), (b"content-length", b"11"), (b"x-a", b"b")]
    assert request.headers[1] == (b"content-length", b"5")
    for name in HttpRequest.__slots__:
        if name != "headers":
            assert getattr(other, name) == getattr(request, name)


@pytest.mark.parametrize(
    "value",
    [b"", b" a", b"a ", b"a\tb", b"a\x00b", b"a\x7fb", b"a\x80b", b"a\rb", b"a\nb", b"x" * 257],
)
def test_a_value_that_the_parser_has_to_decide_on_is_left_to_it(value: bytes) -> None:
    head = b"POST / HTTP/1.1\r\ntraceparent: %b\r\nContent-Length: 2\r\n\r\n"
    known = KnownHeads()
    known.learn(head % b"00" + b"{}", request_of(head % b"00"))
    assert known.find(head % b"00-aa bb" + b"{}") is not None
    assert known.find(head % value + b"{}") is None


def test_values_together_do_not_make_a_head_longer_than_any_that_is_remembered() -> None:
    lines = b"".join(b"b3: %(v)b\r\n" for _ in range(20))
    head = b"POST / HTTP/1.1\r\n" + lines + b"Content-Length: 2\r\n\r\n"
    known = KnownHeads()
    known.learn(head % {b"v": b"1"} + b"{}", request_of(head % {b"v": b"1"}))
    assert known.find(head % {b"v": b"x" * 80} + b"{}") is not None
    assert known.find(head % {b"v": b"x" * 120} + b"{}") is None


@pytest.mark.parametrize(
    "name",
    [
        *(b"Host", b"Origin", b"Content-Type", b"Accept", b"Mcp-Session-Id", b"Authorization"),
        *(b"MCP-Protocol-Version", b"Last-Event-ID", b"Connection", b"Forwarded", b"Cookie"),
        *(b"X-Forwarded-For", b"X-Forwarded-Host", b"X-Forwarded-Proto", b"Transfer-Encoding"),
    ],
)
def test_a_header_that_decides_something_is_compared_whole(name: bytes) -> None:
    head = b"POST / HTTP/1.1\r\n%b: %b\r\nContent-Length: 2\r\n\r\n"
    known = KnownHeads()
    known.learn(head % (name, b"a") + b"{}", request_of(head % (name, b"a")))
    assert known.find(head % (name, b"b") + b"{}") is None


def test_limits_on_headers_below_those_of_known_heads_are_kept() -> None:
    stage = scene()

    async def act() -> None:
        limits = replace(LIMITS, header_line_bytes=200)
        server = HttpServer(stage.http.routes, limits, 4096)
        wire = FuzzedConnection(server)
        lines = LINES + b"traceparent: %b\r\n"
        found = await answers(
            wire, *(call("a", lines % (b"x" * size)) for size in (1, 1, 1, 199, 201))
        )
        assert [each.status for each in found] == [200, 200, 200, 200, 431]
        await wire.lose()
        await server.close(1)

    stage.runner.run(act())


HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nX-A: b\r\n\r\n"


def request_of(head: bytes) -> HttpRequest:
    line, *lines = head.replace(b"\r\n", b"\n").strip(b"\n").split(b"\n")
    pairs = [each.split(b": ", 1) for each in lines if b": " in each]
    headers = [(name.lower(), value) for name, value in pairs]
    method, path, version = line.decode().split()
    return HttpRequest(method, path, "", version[5:], headers, "::1", False)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (HEAD, b"1234"),
        (HEAD, b"123456"),
        (HEAD.replace(b"5", b"05"), b"12345"),
        (HEAD.replace(b"5\r", b"5 \r"), b"12345"),
        (HEAD.replace(b"POST", b"PUT"), b"12345"),
        (HEAD.replace(b"1.1", b"1.0"), b"12345"),
        (HEAD.replace(b"\r\nHost", b"\nHost"), b"12345"),
        (HEAD.replace(b"X-A: b", b"X-A: b\r\n c"), b"12345"),
        (HEAD.replace(b"X-A: b", b"X-A: \rb"), b"12345"),
        (HEAD.replace(b"X-A: b", b"Content-Length: 5"), b"12345"),
        (HEAD.replace(b"X-A", b"Transfer-Encoding"), b"12345"),
        (HEAD.replace(b"Content-Length: 5\r\n", b""), b"12345"),
    ],
)
def test_a_head_whose_end_or_length_is_in_doubt_is_not_remembered(head: bytes, body: bytes) -> None:
    known = KnownHeads()
    known.learn(head + body, request_of(head))
    assert not known.heads
    known.learn(HEAD + b"12345", request_of(HEAD))
    assert known.heads


def test_a_head_that_differs_after_content_length_is_not_known() -> None:
    known = KnownHeads()
    known.learn(HEAD + b"12345", request_of(HEAD))
    assert known.find(HEAD + b"12345") is not None
    assert known.find(HEAD.replace(b"X-A: b", b"X-A: c") + b"12345") is None
    assert known.find(HEAD.replace(b"X-A: b", b"X-B: b") + b"12345") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data + b"x",
        lambda data: data[:-1],
        lambda data: data.replace(b"Length: ", b"Length: 0"),
        lambda data: data.replace(b"Length: ", b"Length: +"),
        lambda data: data.replace(b"Length: ", b"Length:  "),
        lambda data: data.replace(b"Length: ", b"Length: 5\r\nContent-Length: "),
        lambda data: data.replace(b"\r\nHost", b"\r\nTransfer-Encoding: chunked\r\nHost"),
        lambda data: data.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"),
        lambda data: data.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"),
        lambda data: data.replace(b"\r\n\r\n", b"\r\nX-Late: 1\r\n\r\n"),
        lambda data: data.replace(b"\r\n\r\n", b"\n\n"),
        lambda data: data.replace(b"\r\n", b"\n", 1),
        lambda data: data.replace(b"Host: localhost", b"Host: evil.example"),
        lambda data: data.replace(b"Host: localhost", b"Host: localhost\r\nHost: localhost"),
        lambda data: data.replace(b"POST", b"post"),
        lambda data: b"\r\n" + data,
        lambda data: data + data,
    ],
)
def test_head_that_differs_from_a_known_one_is_parsed(
    change: Callable[[bytes], bytes],
) -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        await answers(wire, call(), call(), call())
        fresh = FuzzedConnection(stage.http)
        before = len(wire.responses())
        changed = change(call())
        counted = parsed(wire)
        await wire.feed(changed, turns=5)
        await fresh.feed(changed, turns=5)
        assert counted == [len(changed)]
        assert _outcomes(wire.responses()[before:]) == _outcomes(fresh.responses())
        assert wire.transport.is_closed == fresh.transport.is_closed
        await fresh.lose()

    run(act)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_damaged_request_is_answered_as_on_a_connection_that_knows_nothing(
    data: st.DataObject,
) -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        # On a busy machine its timeouts would end one of the two before they are compared.
        if stage.http._timer is not None:
            stage.http._timer.cancel()
        await answers(wire, call("a"), call("b"), call("c"))
        fresh = FuzzedConnection(stage.http)
        before = len(wire.responses())
        request = call("damaged")
        start = data.draw(st.integers(0, len(request)))
        end = data.draw(st.integers(start, min(len(request), start + 3)))
        inside = data.draw(st.sampled_from([b"", b"0", b"1", b"\r\n", b"\n", b" ", b":", b"x"]))
        damaged = request[:start] + inside + request[end:]
        for each in (wire, fresh):
            await each.feed(damaged, turns=5)
        assert _outcomes(wire.responses()[before:]) == _outcomes(fresh.responses())
        assert wire.transport.is_closed == fresh.transport.is_closed
        assert wire.protocol.phase is fresh.protocol.phase
        assert wire.protocol.reader.part is fresh.protocol.reader.part
        await fresh.lose()

    run(act)


def _outcomes(responses: list[Response]) -> list[tuple[int, bytes, bool]]:
    return [(each.status, each.body, each.closes) for each in responses]


@pytest.mark.parametrize(
    "line",
    [
        b"Expect: 100-continue\r\n",
        b"Upgrade: h2c\r\n",
        b"Connection: upgrade\r\nUpgrade: websocket\r\n",
        b"Content-Length:  1\r\n",
    ],
)
def test_heads_that_change_how_a_message_is_read_are_not_remembered(line: bytes) -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        await answers(wire, call("a", LINES + line), call("a", LINES + line))
        assert not (wire.protocol.reader.known and wire.protocol.reader.known.heads)

    run(act)


def test_a_head_that_was_refused_is_refused_again() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        await answers(wire, call(), call(), call())
        # In two parts, so that nothing is learnt of the last request that was admitted.
        empty = plain(b"", LINES)
        await answers(wire, empty[:100], empty[100:])
        ping = empty.replace(b"localhost", b"evil.example")
        known = list(wire.protocol.reader.known.heads if wire.protocol.reader.known else ())
        found = await answers(wire, ping, ping, ping, call())
        assert [each.status for each in found] == [200] * 3 + [400] + [421] * 3 + [200]
        assert wire.protocol.reader.known is not None
        assert wire.protocol.reader.known.heads == known

    run(act)


def test_a_session_that_has_ended_is_not_found_by_a_known_head() -> None:
    async def act(stage: FuzzedHttpServer, wire: FuzzedConnection) -> None:
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": info}
        (opened,) = await answers(wire, plain(body_of("initialize", params, 1), b""))
        id = opened.headers[b"mcp-session-id"]
        lines = b"Mcp-Session-Id: %b\r\nMCP-Protocol-Version: %b\r\n" % (id, REVISION.encode())
        ping = plain(body_of("ping", {}, 2), lines)
        found = await answers(wire, ping, ping, ping)
        assert [each.status for each in found] == [200] * 4
        session = stage.endpoint.sessions.get(id.decode(), None, 0)
        assert session is not None
        stage.endpoint.sessions.discard(session)
        session.on_end()
        counted = parsed(wire)
        found = await answers(wire, ping)
        assert found[-1].status == 404
        assert counted == []

    run(act)


def test_principal_and_rate_are_checked_for_each_request() -> None:
    stage = scene()

    async def act() -> None:
        asked: list[HttpRequest] = []

        def principal(request: HttpRequest) -> str:
            asked.append(request)
            if len(asked) == 4:
                raise PermissionError
            return "someone"

        http = HttpSettings(rate=0.001, burst=4)
        auth = resource_server_of(principal, path="/mcp", address="http://127.0.0.1:8000/mcp")
        admission = Admission(http, [("127.0.0.1", 8000)])
        routes = Routes(admission, http, lambda: 0.0, auth)
        McpEndpoint(stage.service, routes, http, LIMITS, "/mcp")
        server = HttpServer(routes, LIMITS, 4096)
        wire = FuzzedConnection(server)
        counted = parsed(wire)
        found = await answers(wire, *[call()] * 6)
        assert [each.status for each in found] == [200, 200, 200, 401, 200, 429]
        assert len(asked) == 6
        assert len(counted) == 2
        await wire.lose()
        await server.close(1)

    stage.runner.run(act())
