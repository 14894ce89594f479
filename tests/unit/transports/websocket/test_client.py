"""The client's end of a WebSocket, against servers that are written out here."""

from __future__ import annotations

import asyncio
import logging
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.utils import accept_key

import trunkline.transports.websocket.client as client_module
import trunkline.transports.websocket.connection as connection_module
from tests.certificates import Authority
from trunkline import Client, HttpSettings, Server
from trunkline.errors import AuthorizationFailed, ConnectionLost, LocalProtocolError, TransportError
from trunkline.jsonrpc import Limits, Oversize, Policy
from trunkline.testing.transport_contract import Observed
from trunkline.transports import Ws
from trunkline.transports.base import HIGH_WATER
from trunkline.transports.http.client.settings import HttpOptions

POLICY = Policy()
WAIT = 30.0
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter, str], Awaitable[None]]


def accepting(head: str, *extra: str, subprotocol: str | None = "mcp") -> bytes:
    """Return the response that accepts a handshake."""
    lines = {
        name.lower(): value for name, _, value in (e.partition(": ") for e in head.split("\r\n"))
    }
    chosen = [] if subprotocol is None else [f"Sec-WebSocket-Protocol: {subprotocol}"]
    answer = [
        "HTTP/1.1 101 Switching Protocols",
        "Connection: Upgrade",
        "Upgrade: websocket",
        f"Sec-WebSocket-Accept: {accept_key(lines['sec-websocket-key'])}",
        *chosen,
        *extra,
    ]
    return "\r\n".join([*answer, "", ""]).encode()


def frame(opcode: int, data: bytes = b"", *, size: int | None = None) -> bytes:
    length = len(data) if size is None else size
    head = bytes([0x80 | opcode])
    if length < 126:
        return head + bytes([length]) + data
    return head + bytes([127]) + struct.pack("!Q", length) + data


def closing(code: int, reason: bytes = b"") -> bytes:
    return frame(8, struct.pack("!H", code) + reason)


@asynccontextmanager
async def scripted(script: Script) -> AsyncIterator[int]:
    """Run a server that reads the handshake and then follows a script; yield its port."""
    failures: list[BaseException] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            await script(reader, writer, head)
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except Exception as error:  # noqa: BLE001  # raised by the test
            failures.append(error)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
    assert not failures, failures


def play(script: Script, use: Callable[[int], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(WAIT), scripted(script) as port:
            await use(port)

    asyncio.run(run())


def refused_with(
    script: Script, address: Callable[[int], Ws] = lambda port: Ws("127.0.0.1", port)
) -> str:
    """Return the reason for which `connect` fails."""
    found: list[str] = []

    async def use(port: int) -> None:
        transport = address(port).transport(POLICY)
        with pytest.raises((TransportError, AuthorizationFailed)) as error:
            await transport.connect()
        assert not transport.is_connected
        assert transport._transport is None, "the connection is left open"
        with pytest.raises(TransportError, match="a transport connects once"):
            await transport.connect()
        await transport.close()
        found.append(str(error.value).replace(str(port), "PORT"))

    play(script, use)
    return found[0]


# -- the handshake ---------------------------------------------------------------------------


def test_the_handshake_names_host_subprotocol_and_headers_and_no_origin() -> None:
    heads: list[str] = []

    async def script(reader: Any, writer: Any, head: str) -> None:
        heads.append(head)
        writer.write(accepting(head))

    async def use(port: int) -> None:
        options = HttpOptions(headers={"Authorization": "Bearer s3cret"})
        transport = Ws("127.0.0.1", port, "/a/b", options=options).transport(POLICY)
        await transport.connect()
        await transport.close()
        lines = heads[0].lower().split("\r\n")
        assert lines[0] == "get /a/b http/1.1"
        assert f"host: 127.0.0.1:{port}" in lines
        assert "sec-websocket-protocol: mcp" in lines
        assert "authorization: bearer s3cret" in lines
        assert not any(line.startswith(("origin", "sec-websocket-extensions")) for line in lines)

    play(script, use)


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (404, "404 Not Found"),
        (302, "302 Found"),
        (599, "599"),
        (401, "401 Unauthorized; a client logs in with auth=OAuth()"),
        (403, "403 Forbidden"),
    ],
)
def test_any_other_status_refuses_with_its_number(status: int, shown: str) -> None:
    async def script(reader: Any, writer: Any, head: str) -> None:
        writer.write(
            f"HTTP/1.1 {status} x\r\nContent-Length: 0\r\nLocation: ws://other/\r\n\r\n".encode()
        )

    reason = refused_with(script).removeprefix("request: ")  # of 401 and 403, the step of a login
    assert reason == f"ws://127.0.0.1:PORT/mcp refused the WebSocket: {shown}"


def test_404_without_a_path_is_answered_with_the_usual_one() -> None:
    async def script(reader: Any, writer: Any, head: str) -> None:
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    advice = "404 Not Found; did you mean ws://127.0.0.1:PORT/mcp?"
    reason = refused_with(script, lambda port: Ws("127.0.0.1", port, "/"))
    assert reason == f"ws://127.0.0.1:PORT/ refused the WebSocket: {advice}"


def test_certificate_that_is_not_trusted_is_refused_with_the_reason(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.certificate("localhost", "127.0.0.1")

    async def main() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(cert, key)
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context)
        async with asyncio.timeout(WAIT), server:
            port = server.sockets[0].getsockname()[1]
            transport = Ws("127.0.0.1", port, tls=True).transport(POLICY)
            expected = "cannot be trusted: unable to get local issuer certificate"
            with pytest.raises(TransportError, match=expected):
                await transport.connect()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (Ws("::1", 8000, "/a"), "http://[::1]:8000/a"),
        (Ws("example.org", 80, "/a"), "http://example.org/a"),
        (Ws("example.org", 443, "/a", tls=True), "https://example.org/a"),
        (Ws("example.org", 80, "/a", tls=True), "https://example.org:80/a"),
    ],
)
def test_url_of_the_handshake_is_that_which_credentials_are_for(address: Ws, url: str) -> None:
    assert address.transport(POLICY)._url() == url


@pytest.mark.parametrize("chosen", [None, "soap"])
def test_a_server_that_does_not_choose_mcp_is_refused(chosen: str | None) -> None:
    async def script(reader: Any, writer: Any, head: str) -> None:
        writer.write(accepting(head, subprotocol=chosen))

    assert refused_with(script).startswith("ws://127.0.0.1:PORT/mcp ")


def test_compression_that_was_not_offered_is_refused() -> None:
    async def script(reader: Any, writer: Any, head: str) -> None:
        writer.write(accepting(head, "Sec-WebSocket-Extensions: permessage-deflate"))

    assert "does not speak WebSocket" in refused_with(script)


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 101 x\r\n\r\n", b"x" * 100_000]
)
def test_invalid_handshake_response_is_refused(answer: bytes) -> None:
    async def script(reader: Any, writer: Any, head: str) -> None:
        writer.write(answer)
        writer.write_eof()

    assert refused_with(script)


def test_a_server_that_does_not_answer_is_given_up_after_the_connect_timeout() -> None:
    async def script(reader: Any, writer: Any, head: str) -> None: ...

    options = HttpOptions(connect_timeout=0.05)
    reason = refused_with(script, lambda port: Ws("127.0.0.1", port, options=options))
    assert reason == "ws://127.0.0.1:PORT/mcp did not answer within 0.05 s"


def test_closing_while_connecting_ends_the_attempt() -> None:
    async def script(reader: Any, writer: Any, head: str) -> None: ...

    async def use(port: int) -> None:
        transport = Ws("127.0.0.1", port).transport(POLICY)
        connecting = asyncio.create_task(transport.connect())
        await asyncio.sleep(0.05)
        await transport.close()
        with pytest.raises(TransportError):
            await connecting

    play(script, use)


def test_cancelled_connect_raises_cancelled_error_and_leaves_no_connection() -> None:
    has_begun = asyncio.Event()

    async def script(reader: Any, writer: Any, head: str) -> None:
        has_begun.set()

    async def use(port: int) -> None:
        transport = Ws("127.0.0.1", port).transport(POLICY)
        connecting = asyncio.create_task(transport.connect())
        await has_begun.wait()
        connecting.cancel()
        await asyncio.wait((connecting,))
        # `asyncio.timeout` makes a TimeoutError of that, and of nothing else.
        assert connecting.cancelled()
        assert transport._transport is None, "the connection is left open"
        await transport.close()

    play(script, use)


def test_a_frame_in_the_same_segment_as_the_handshake_is_delivered() -> None:
    async def script(reader: Any, writer: Any, head: str) -> None:
        writer.write(accepting(head) + frame(1, b'"first"'))

    async def use(port: int) -> None:
        end = Observed(Ws("127.0.0.1", port).transport(POLICY))
        await end.transport.connect()
        assert await end.received(1) == [b'"first"']
        await end.transport.close()

    play(script, use)


def test_the_connection_goes_through_a_proxy_by_connect() -> None:
    app = Server("behind")
    asked: list[bytes] = []

    @app.tool
    async def echo(text: str) -> str:
        return text

    async def main() -> None:
        async with app.listen("http://127.0.0.1:0/mcp", http=HttpSettings(websocket=True)) as there:
            port = there.address.port

            async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                asked.append(await reader.readuntil(b"\r\n\r\n"))
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

            async with await asyncio.start_server(tunnel, "127.0.0.1", 0) as proxy:
                where = proxy.sockets[0].getsockname()[1]
                options = HttpOptions(proxy=f"http://user:pass@127.0.0.1:{where}")
                async with Client(f"ws://127.0.0.1:{port}/mcp", http=options) as client:
                    assert (await client.call_tool("echo", {"text": "hello"})).text == "hello"
        assert asked[0].startswith(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n" % port)
        assert b"Proxy-Authorization: Basic " in asked[0]

    asyncio.run(asyncio.wait_for(main(), WAIT))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


# -- the end ---------------------------------------------------------------------------------


def end_of(data: bytes, policy: Policy = POLICY, *, eof: bool = False) -> tuple[list[Any], Any]:
    """Return the frames that a client receives and how its connection ends."""
    found: list[Any] = []

    async def script(reader: Any, writer: Any, head: str) -> None:
        writer.write(accepting(head) + data)
        if eof:
            writer.write_eof()

    async def use(port: int) -> None:
        end = Observed(Ws("127.0.0.1", port).transport(policy))
        await end.transport.connect()
        found.extend((await end.ended(), end.frames))
        await end.transport.close()
        assert len(end.ends) == 1

    play(script, use)
    return found[1], found[0]


@pytest.mark.parametrize("code", [1000, 1001])
def test_a_normal_close_of_the_server_is_not_an_error(code: int) -> None:
    assert end_of(frame(1, b'"last"') + closing(code)) == ([b'"last"'], None)


def test_another_close_code_is_an_error_with_code_and_reason() -> None:
    _, error = end_of(closing(1011, b"out of order"))
    assert str(error) == "the server closed the connection: 1011 'out of order'"


def test_an_end_without_a_close_frame_is_an_error() -> None:
    _, error = end_of(b"", eof=True)
    assert "without a Close frame" in str(error)


def test_a_masked_frame_of_the_server_is_an_error() -> None:
    _, error = end_of(bytes([0x81, 0x82]) + b"\0\0\0\0{}")
    assert "broke the WebSocket protocol" in str(error)


def test_a_binary_message_is_an_error() -> None:
    frames, error = end_of(frame(2, b"{}"))
    assert frames == []
    assert "binary" in str(error)


def test_a_message_over_the_limit_is_delivered_as_oversize_before_the_end() -> None:
    policy = POLICY.replace(limits=Limits(websocket=100))
    message = b'{"jsonrpc":"2.0","id":7,"result":{"text":"%s"}}' % (b"x" * 200)
    frames, error = end_of(frame(1, message), policy)
    assert frames == [Oversize(message[:100], None, 100)]
    assert "exceeds limit" in str(error)


def test_pings_are_answered() -> None:
    async def script(reader: asyncio.StreamReader, writer: Any, head: str) -> None:
        writer.write(accepting(head) + frame(9, b"there?"))
        first, second = await reader.readexactly(2)
        key = await reader.readexactly(4)
        masked = await reader.readexactly(second & 0x7F)
        assert first == 0x8A
        assert bytes(each ^ key[at % 4] for at, each in enumerate(masked)) == b"there?"
        writer.write(closing(1000))

    async def use(port: int) -> None:
        end = Observed(Ws("127.0.0.1", port).transport(POLICY))
        await end.transport.connect()
        assert await end.ended() is None
        await end.transport.close()

    play(script, use)


def test_a_silent_server_is_pinged_and_lost_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_module, "KEEP_ALIVE_S", 0.05)
    monkeypatch.setattr(client_module, "_CHECK_INTERVAL_S", 0.02)
    monkeypatch.setattr(connection_module, "PONG_TIMEOUT_S", 0.1)
    pings: list[int] = []

    async def script(reader: asyncio.StreamReader, writer: Any, head: str) -> None:
        writer.write(accepting(head))
        pings.append((await reader.readexactly(2))[0])

    async def use(port: int) -> None:
        end = Observed(Ws("127.0.0.1", port).transport(POLICY))
        await end.transport.connect()
        assert "has not answered a ping" in str(await end.ended())
        await end.transport.close()

    play(script, use)
    assert pings == [0x89]


def test_closing_ends_though_the_server_neither_reads_nor_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_module, "_CLOSE_TIMEOUT_S", 0.1)
    monkeypatch.setattr(connection_module, "_ANSWER_TIMEOUT_S", 0.1)
    left = asyncio.Event()

    async def script(reader: Any, writer: Any, head: str) -> None:
        writer.write(accepting(head))
        await left.wait()

    async def use(port: int) -> None:
        end = Observed(Ws("127.0.0.1", port).transport(POLICY))
        await end.transport.connect()
        for _ in range(20):
            end.transport.send(b'"%s"' % (b"x" * 1_000_000))
        await end.transport.close()
        assert end.ends == [None]
        left.set()

    play(script, use)


# -- sending ---------------------------------------------------------------------------------


def test_a_backlog_above_high_water_is_reported_when_it_has_drained() -> None:
    reads = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: Any, head: str) -> None:
        writer.write(accepting(head))
        await reads.wait()

    async def use(port: int) -> None:
        end = Observed(Ws("127.0.0.1", port).transport(POLICY))
        await end.transport.connect()
        for n in range(20):
            end.transport.send(b'"%d%s"' % (n, b"b" * 1_000_000))
        assert end.transport.backlog > HIGH_WATER
        assert (end.drained, end.transport.written < 20_000_000) == (0, True)
        reads.set()
        await end.until(lambda each: each.drained > 0)
        while end.transport.backlog:
            await asyncio.sleep(0.001)
        assert end.drained == 1
        assert end.transport.written > 20_000_000
        await end.transport.close()

    play(script, use)


def test_frame_that_is_not_utf_8_is_not_sent() -> None:
    async def script(reader: Any, writer: Any, head: str) -> None:
        writer.write(accepting(head))

    async def use(port: int) -> None:
        transport = Ws("127.0.0.1", port).transport(POLICY)
        await transport.connect()
        with pytest.raises(LocalProtocolError, match="UTF-8"):
            transport.send(b'"\xff"')
        assert transport.is_connected
        await transport.close()

    play(script, use)


def test_neither_headers_nor_messages_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def script(reader: Any, writer: Any, head: str) -> None:
        writer.write(accepting(head) + frame(1, b'"s3cret answer"') + closing(1000))

    async def use(port: int) -> None:
        options = HttpOptions(headers={"Authorization": "Bearer s3cret"})
        end = Observed(Ws("127.0.0.1", port, options=options).transport(POLICY))
        await end.transport.connect()
        end.transport.send(b'"s3cret question"')
        await end.ended()
        await end.transport.close()
        assert "s3cret" not in repr(end.transport)

    play(script, use)
    assert "s3cret" not in caplog.text


# -- as a client uses it ---------------------------------------------------------------------


def test_a_client_reconnects_after_a_lost_connection_and_repeats_no_call() -> None:
    app = Server("coming and going")
    begun: list[str] = []

    @app.tool
    async def held(text: str) -> str:
        begun.append(text)
        if text == "lost":
            await asyncio.Event().wait()
        return text

    async def main() -> None:
        async with (
            app.listen("http://127.0.0.1:0/mcp", http=HttpSettings(websocket=True)) as there,
            Client(f"ws://127.0.0.1:{there.address.port}/mcp") as client,
        ):
            lost = asyncio.create_task(client.call_tool("held", {"text": "lost"}))
            while not begun:
                await asyncio.sleep(0.001)
            assert there._http is not None
            for each in list(there._http.connections):
                each.abort()
            with pytest.raises(ConnectionLost):
                await lost
            assert (await client.call_tool("held", {"text": "found"})).text == "found"
        assert begun == ["lost", "found"]

    asyncio.run(asyncio.wait_for(main(), WAIT))
