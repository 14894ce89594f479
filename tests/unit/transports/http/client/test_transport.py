"""Sessions of the HTTP client, and where its requests go."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.http_client.stub_server import SESSION, WAIT, Asked, McpStub, method_of
from tests.unit.transports.http.client.test_post import nth, play, succeeds
from trunkline import Client, Http, HttpOptions
from trunkline.errors import (
    ConnectionLost,
    LocalProtocolError,
    RemoteProtocolError,
    TransportError,
)
from trunkline.jsonrpc import Policy
from trunkline.transports.http.client.transport import HttpTransport


def transport_to(address: Http) -> HttpTransport:
    made = address.transport(Policy())
    assert isinstance(made, HttpTransport)
    return made


@pytest.mark.parametrize(
    ("address", "location", "path"),
    [
        (Http("example.org", 80), b"http://example.org/a", b"/a"),
        (Http("example.org", 80), b"http://EXAMPLE.org:80/a", b"/a"),
        (Http("example.org", 443, tls=True), b"https://example.org/a?b=c", b"/a?b=c"),
        (Http("example.org", 443, tls=True), b"http://example.org:443/a", None),
        (Http("example.org", 80), b"https://example.org:80/a", None),
        (Http("example.org", 8080), b"http://example.org/a", None),
        (Http("example.org", 80), b"http://user@example.org.evil.net/a", None),
        (Http("::1", 80), b"http://[::1]/a", b"/a"),
        (Http("example.org", 80), b"http://example.org", None),
        (Http("example.org", 80), "/ä".encode(), None),
        (Http("example.org", 80), b"/a\x7f", None),
        (Http(unix="/run/x.sock"), b"/a", b"/a"),
        (Http(unix="/run/x.sock"), b"http://example.org/a", None),
        (Http(unix="/run/x.sock"), b"http://localhost/a", b"/a"),
        (Http("example.org", 80), b"/a?b=?", b"/a?b=?"),
        (Http("b\u00fccher.example", 80), b"http://xn--bcher-kva.example/a", b"/a"),
        (Http("example.org", 80), None, None),
    ],
)
def test_a_redirect_leads_to_a_path_of_the_same_origin(
    address: Http, location: bytes | None, path: bytes | None
) -> None:
    assert transport_to(address).path_of(location) == path


@pytest.mark.parametrize(
    ("address", "host"),
    [
        (Http("example.org", 80), b"host: example.org\r\n"),
        (Http("example.org", 8080), b"host: example.org:8080\r\n"),
        (Http("example.org", 443, tls=True), b"host: example.org\r\n"),
        (Http("::1", 8080), b"host: [::1]:8080\r\n"),
        (Http(unix="/run/x.sock"), b"host: localhost\r\n"),
        (Http("b\u00fccher.example", 80), b"host: xn--bcher-kva.example\r\n"),
    ],
)
def test_the_host_header_names_the_server(address: Http, host: bytes) -> None:
    head = transport_to(address)._request_head()
    assert head == host + b"accept-encoding: identity\r\n"


def test_a_transport_connects_once_and_may_be_closed_before() -> None:
    async def scene() -> None:
        unused = transport_to(Http("127.0.0.1", 1))
        await unused.close()
        async with McpStub() as stub:
            transport = transport_to(Http("127.0.0.1", stub.port))
            assert (transport.backlog, transport.written) == (0, 0)
            await transport.connect()
            with pytest.raises(TransportError, match="a transport connects once"):
                await transport.connect()
            await transport.close()
            await transport.close()
            transport.send(b'{"jsonrpc": "2.0", "method": "ping", "id": 1}')
            assert stub.requests == []

    asyncio.run(scene())


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example", "\u00fc" * 64 + ".example"])
def test_a_host_that_cannot_be_looked_up_is_an_error_of_the_transport(host: str) -> None:
    with pytest.raises(TransportError, match="has a host that is not valid"):
        asyncio.run(Client(Http(host, 80), http=HttpOptions(proxy="")).connect())


def test_closing_while_connecting_ends_the_attempt() -> None:
    async def scene() -> None:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(1)
            begun.set()
            await reader.read()
            writer.close()
            left.set()

        begun, left = asyncio.Event(), asyncio.Event()
        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            # TLS, whose handshake the server does not answer.
            client = Client(Http("127.0.0.1", port, tls=True), connect_timeout=1000)
            connecting = asyncio.create_task(client.connect())
            await begun.wait()
            await client.close()
            with pytest.raises(TransportError, match="closed while connecting"):
                await connecting
            await left.wait()

    asyncio.run(asyncio.wait_for(scene(), WAIT))


VERSION = "io.modelcontextprotocol/protocolVersion"


@pytest.mark.parametrize(
    "message",
    [
        {"id": 7, "method": "ping", "params": {"_meta": {VERSION: "x\r\nX-Evil: 1"}}},
        {"id": 7, "method": "ping", "params": {"_meta": {VERSION: "\u00e9"}}},
    ],
)
def test_a_version_that_no_header_can_carry_is_not_sent(message: dict[str, Any]) -> None:
    lost: list[Any] = []

    async def scene() -> None:
        async with McpStub() as stub:
            transport = transport_to(Http("127.0.0.1", stub.port))
            transport.on_request_lost = lambda id, error: lost.append((id, type(error)))
            await transport.connect()
            transport.send(json.dumps({"jsonrpc": "2.0", **message}).encode())
            await transport.close()
            assert stub.requests == []

    asyncio.run(scene())
    assert lost == [(7, LocalProtocolError)]


@pytest.mark.parametrize(
    "frame",
    [
        b"[]",
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}',
    ],
)
def test_a_message_of_another_shape_is_left_to_the_server(frame: bytes) -> None:
    async def scene() -> None:
        async with McpStub() as stub:
            transport = transport_to(Http("127.0.0.1", stub.port))
            await transport.connect()
            transport.send(frame)
            await stub.until(lambda: bool(stub.requests))
            await transport.close()
            assert stub.requests[0].body == frame

    asyncio.run(scene())


# -- sessions --------------------------------------------------------------------------------


def test_a_session_stays_where_the_redirect_of_its_beginning_led() -> None:
    stub = McpStub(SESSION)
    elsewhere = stub.answer

    def answer(asked: Asked) -> object:
        if asked.path == "/mcp":
            return asked.status(307, {"Location": "/mcp/"})
        return elsewhere(asked)

    async def script(client: Client) -> None:
        await stub.until(lambda: bool(stub.asked("GET")))
        await succeeds(client)

    stub.answer = answer
    play(stub, script)
    assert [each.path for each in stub.requests] == ["/mcp"] + ["/mcp/"] * 5


def test_calls_that_find_the_same_session_lost_report_it_once_and_are_all_repeated() -> None:
    async def script(client: Client) -> None:
        await asyncio.gather(*(succeeds(client) for _ in range(5)))

    async def call(asked: Asked) -> None:
        if asked.headers["mcp-session-id"] == "s1":
            in_flight.append(asked)
            # Each of them is refused, not only the first to arrive.
            while len(in_flight) < 5:
                await asyncio.sleep(0)
            asked.status(404)
        else:
            asked.text("done")

    in_flight: list[Asked] = []
    stub = McpStub(SESSION)
    stub.on["tools/call"] = call
    assert play(stub, script) == [("session-lost", "the server has ended the session")]
    assert len(stub.asked("tools/call")) == 10
    assert len(stub.asked("initialize")) == 2


def test_a_session_has_an_id_a_version_a_stream_and_an_end() -> None:
    stub = McpStub(SESSION)
    play(stub, succeeds)
    methods = [method_of(each) for each in stub.requests]
    assert methods[:2] == ["initialize", "notifications/initialized"]
    assert methods[-1] == "DELETE"
    first, *others = stub.requests
    assert "mcp-session-id" not in first.headers
    assert {each.headers["mcp-session-id"] for each in others} == {"s1"}
    assert {each.headers["mcp-protocol-version"] for each in others} == {SESSION}


@pytest.mark.parametrize("status", [202, 500])
def test_nothing_is_sent_before_the_response_to_initialized(status: int) -> None:
    arrived: list[str] = []

    async def initialized(asked: Asked) -> None:
        # Time for requests on other connections to arrive.
        for _ in range(200):
            await asyncio.sleep(0)
        arrived.append("notifications/initialized")
        asked.status(status)

    def call(asked: Asked) -> None:
        arrived.append("tools/call")
        asked.text("done")

    stub = McpStub(SESSION)
    stub.on.update([("notifications/initialized", initialized), ("tools/call", call)])
    play(stub, succeeds)
    assert arrived == ["notifications/initialized", "tools/call"]


def test_a_request_cancelled_before_the_response_to_initialized_is_not_sent() -> None:
    called = asyncio.Event()

    async def initialized(asked: Asked) -> None:
        await called.wait()
        asked.status(202)

    async def script(client: Client) -> None:
        pending = client.submit_tool("echo")
        assert pending.cancel()
        called.set()
        await succeeds(client)

    stub = McpStub(SESSION)
    stub.on["notifications/initialized"] = initialized
    play(stub, script)
    assert len(stub.asked("tools/call")) == 1


@pytest.mark.parametrize("answers", [("DELETE", Asked.drop), ("DELETE", Asked.reset)])
def test_closing_does_not_fail_with_the_end_of_the_session(answers: Any) -> None:
    stub = McpStub(SESSION)
    stub.on.update([answers])
    play(stub, succeeds)
    assert len(stub.asked("DELETE")) == 1


def test_a_session_that_was_lost_is_begun_again_and_the_call_repeated_once() -> None:
    def call(asked: Asked) -> None:
        if asked.headers["mcp-session-id"] == "s1":
            asked.status(404)
        else:
            asked.text("done")

    async def script(client: Client) -> None:
        await succeeds(client)
        await succeeds(client)

    stub = McpStub(SESSION)
    stub.on["tools/call"] = call
    events = play(stub, script)
    assert events == [("session-lost", "the server has ended the session")]
    sessions = [each.headers["mcp-session-id"] for each in stub.asked("tools/call")]
    assert sessions == ["s1", "s2", "s2"]
    # `initialize` is sent without the id of the session that was lost.
    assert all("mcp-session-id" not in each.headers for each in stub.asked("initialize"))


def test_calls_that_wait_for_a_connection_are_sent_in_the_next_session() -> None:
    def call(asked: Asked) -> None:
        if asked.headers["mcp-session-id"] == "s1":
            asked.status(404)
        else:
            asked.text("done")

    async def script(client: Client) -> None:
        await asyncio.gather(*(succeeds(client) for _ in range(4)))

    stub = McpStub(SESSION)
    stub.on["tools/call"] = call
    play(stub, script, http=HttpOptions(connections=1))
    sessions = [each.headers["mcp-session-id"] for each in stub.asked("tools/call")]
    assert sessions == ["s1", "s2", "s2", "s2", "s2"]


def test_a_question_for_the_era_that_is_not_answered_keeps_no_connection() -> None:
    stub = McpStub(SESSION)
    stub.on["server/discover"] = lambda asked: None

    async def script(client: Client) -> None:
        await succeeds(client)
        asked = stub.asked("server/discover")[0]
        await stub.until(lambda: asked.writer.transport.is_closing())

    play(stub, script, revision=None, probe_timeout=0.01)


def test_a_session_that_is_lost_again_at_once_is_an_error() -> None:
    async def script(client: Client) -> None:
        with pytest.raises(ConnectionLost, match="the server has ended the session"):
            await client.call_tool("echo")

    stub = McpStub(SESSION)
    stub.on["tools/call"] = lambda asked: asked.status(404)
    play(stub, script)
    assert len(stub.asked("tools/call")) == 2


def test_404_without_a_session_is_an_error_of_its_call() -> None:
    def initialize(asked: Asked) -> None:
        result = {"protocolVersion": SESSION, "capabilities": {"tools": {}}}
        asked.result({**result, "serverInfo": {"name": "stub", "version": "1"}})

    async def script(client: Client) -> None:
        with pytest.raises(RemoteProtocolError, match="status 404"):
            await client.call_tool("echo")
        await succeeds(client)

    stub = McpStub(SESSION)
    stub.on["initialize"] = initialize
    nth(stub, "tools/call", lambda asked: asked.status(404), lambda asked: asked.text("done"))
    assert play(stub, script) == []
    assert len(stub.asked("initialize")) == 1
    assert stub.asked("GET") == stub.asked("DELETE") == []


@pytest.mark.parametrize("id", ["with space", "x" * 1025, "é"])
def test_a_session_id_that_is_not_one_is_not_sent(id: str) -> None:
    def initialize(asked: Asked) -> None:
        result = {"protocolVersion": SESSION, "capabilities": {"tools": {}}}
        info = {"serverInfo": {"name": "stub", "version": "1"}}
        asked.result({**result, **info}, **{"Mcp-Session-Id": id})

    stub = McpStub(SESSION)
    stub.on["initialize"] = initialize
    play(stub, succeeds)
    assert all("mcp-session-id" not in each.headers for each in stub.requests)


def test_a_server_that_is_gone_ends_calls_and_the_next_reaches_its_successor() -> None:
    async def scene() -> None:
        async with asyncio.timeout(WAIT):
            stub = McpStub()
            async with stub:
                client = Client(stub.url)
                await client.connect()
            with pytest.raises((ConnectionLost, TransportError)):
                await client.call_tool("echo")
            async with stub:  # on the same port
                assert (await client.call_tool("echo")).text == "done"
                await client.close()

    asyncio.run(scene())
