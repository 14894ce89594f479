from __future__ import annotations

import asyncio
import gc
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import trunkline.transports.http.client.pool as pool_module
from tests.certificates import Authority
from tests.http_client.stub_server import WAIT, Asked, McpStub, StubServer
from trunkline import Client, Http, HttpOptions, Tls
from trunkline.errors import TransportError
from trunkline.transports.http.client.connection import HttpClientConnection
from trunkline.transports.http.client.pool import ConnectionPool

ASK = b"GET / HTTP/1.1\r\n\r\n"


class Waiting:
    """A response, which a test waits for."""

    def __init__(self) -> None:
        self.over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def on_head(self, status: int, headers: Any) -> None: ...

    def on_data(self, data: bytes) -> None: ...

    def on_complete(self) -> None:
        self.over.set_result(True)

    def on_lost(self, error: Exception | None, *, was_reused: bool, has_begun: bool) -> None:
        self.over.set_result(False)


async def use(connection: HttpClientConnection) -> bool:
    """Send a request; return True if the response was complete."""
    waiting = Waiting()
    connection.send(ASK, waiting)
    return await asyncio.wait_for(waiting.over, WAIT)


@asynccontextmanager
async def opened(connections: int = 10) -> AsyncIterator[tuple[ConnectionPool, StubServer]]:
    async with StubServer(lambda asked: asked.status(200)) as stub:
        pool = ConnectionPool(
            Http("127.0.0.1", stub.port),
            connections=connections,
            connect_timeout=WAIT,
            context=None,
            proxy=None,
        )
        try:
            yield pool, stub
        finally:
            await pool.close()


def test_a_connection_is_used_again_and_the_latest_first() -> None:
    async def scene() -> None:
        async with opened() as (pool, stub):
            first, second = await pool.open(), await pool.open()
            assert first is not second
            assert await use(first)
            assert await use(second)
            assert pool.take() is second
            assert pool.take() is first
            assert pool.take() is None
            assert stub.connections == 2
            assert repr(pool) == "<ConnectionPool, 2 connections, 0 idle>"

    asyncio.run(scene())


def test_requests_beyond_the_bound_wait_in_order() -> None:
    async def scene() -> None:
        async with opened(1) as (pool, stub):
            held = await pool.open()
            order: list[int] = []

            async def ask(number: int) -> None:
                connection = await pool.open()
                order.append(number)
                assert await use(connection)

            asking = [asyncio.create_task(ask(number)) for number in range(5)]
            await asyncio.sleep(0)
            assert order == []
            assert await use(held)
            # It was given to the first that waits, so a latecomer gets none.
            assert pool.take() is None
            await asyncio.wait_for(asyncio.gather(*asking), WAIT)
            assert order == [0, 1, 2, 3, 4]
            assert stub.connections == 1

    asyncio.run(scene())


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_waiter_that_is_cancelled_as_it_gets_a_connection_passes_it_on(is_lost: bool) -> None:
    async def scene() -> None:
        async with opened(1) as (pool, _):
            held = await pool.open()
            first, second = (asyncio.create_task(pool.open()) for _ in range(2))
            await asyncio.sleep(0)
            if is_lost:
                held.close()
                while not pool._opening and held in pool._open:
                    await asyncio.sleep(0)
            else:
                pool.release(held)
            first.cancel()
            made = await asyncio.wait_for(second, WAIT)
            assert made.is_usable
            assert (made is held) is not is_lost
            assert first.cancelled()

    asyncio.run(scene())


def test_a_connection_that_opens_does_not_change_the_order_of_those_that_wait() -> None:
    async def scene() -> None:
        async with opened(2) as (pool, _):
            order: list[int] = []

            async def ask(number: int) -> None:
                connection = await pool.open()
                order.append(number)
                assert await use(connection)

            asking = [asyncio.create_task(ask(number)) for number in range(6)]
            await asyncio.wait_for(asyncio.gather(*asking), WAIT)
            assert order == [0, 1, 2, 3, 4, 5]

    asyncio.run(scene())


def test_reserved_connections_are_opened_beyond_the_bound_and_are_bounded() -> None:
    async def scene() -> None:
        async with opened(1) as (pool, stub):
            held = await pool.open()
            reserved = [await pool.open(is_reserved=True) for _ in range(8)]
            later, first = (
                asyncio.create_task(pool.open(is_reserved=each)) for each in (False, True)
            )
            await asyncio.sleep(0)
            assert stub.connections <= 9
            assert not later.done()
            assert not first.done()
            # What is free and beyond the bound is closed, which makes room for one more of these.
            pool.release(reserved[0])
            made = await asyncio.wait_for(first, WAIT)
            for each in (held, *reserved[1:]):
                pool.release(each)
            await stub.until(lambda: len(pool._open) == 1)
            assert not later.done()
            pool.release(made)
            assert await asyncio.wait_for(later, WAIT) is made

    asyncio.run(scene())


def test_a_connection_attempt_that_is_cancelled_at_any_moment_leaves_no_socket(
    request: pytest.FixtureRequest,
) -> None:
    request.addfinalizer(gc.enable)

    async def scene() -> None:
        async with opened() as (pool, stub):
            gc.disable()  # a socket that was forgotten is closed with its last reference
            for turns in range(12):
                opening = asyncio.create_task(pool.open())
                for _ in range(turns):
                    await asyncio.sleep(0)
                opening.cancel()
                await asyncio.wait([opening])
            await pool.close()
            await stub.until(lambda: stub.connections > 0 and stub.open == 0)

    asyncio.run(scene())


def test_a_lost_connection_makes_room_for_another() -> None:
    async def scene() -> None:
        async with opened(1) as (pool, stub):
            held = await pool.open()
            waiting = asyncio.create_task(pool.open())
            await asyncio.sleep(0)
            held.close()
            assert await use(await asyncio.wait_for(waiting, WAIT))
            assert stub.connections == 2

    asyncio.run(scene())


def test_idle_connections_are_closed_and_those_in_use_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_module, "IDLE_TIMEOUT_S", 0.01)

    async def scene() -> None:
        async with opened() as (pool, stub):
            idle, busy = await pool.open(), await pool.open()
            pool.release(idle)
            await stub.until(lambda: stub.open == 1)
            assert await use(busy)
            assert pool.take() in (busy, None)

    asyncio.run(scene())


def test_a_connection_that_the_server_closed_is_not_taken() -> None:
    async def scene() -> None:
        async with opened() as (pool, stub):
            stub.answer = Asked.drop
            connection = await pool.open()
            assert not await use(connection)
            assert pool.take() is None

    asyncio.run(scene())


def test_a_closed_pool_opens_nothing_and_ends_those_that_wait() -> None:
    async def scene() -> None:
        async with opened(1) as (pool, stub):
            await pool.open()
            waiting = asyncio.create_task(pool.open())
            await asyncio.sleep(0)
            await pool.close()
            with pytest.raises(TransportError, match="the client was closed"):
                await asyncio.wait_for(waiting, WAIT)
            with pytest.raises(TransportError, match="the client was closed"):
                await pool.open()
            await stub.until(lambda: stub.open == 0)

    asyncio.run(scene())


def test_a_server_that_does_not_listen_is_named() -> None:
    async def scene() -> None:
        async with StubServer(Asked.drop) as stub:
            port = stub.port
        text = f"http://127.0.0.1:{port}/mcp cannot be reached: Connection refused"
        with pytest.raises(TransportError, match=f"^{text}$"):
            await Client(f"http://127.0.0.1:{port}/mcp").connect()

    asyncio.run(scene())


def test_a_server_that_does_not_finish_its_tls_handshake_is_not_waited_for() -> None:
    async def scene() -> None:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        options = HttpOptions(connect_timeout=0.05)
        with pytest.raises(TransportError, match=r"did not accept within 0\.05 s"):
            await Client(f"https://127.0.0.1:{port}/mcp", http=options).connect()
        server.close()

    asyncio.run(scene())


# -- memory ----------------------------------------------------------------------------------


async def buffer_of_a_connection() -> memoryview:
    pool = ConnectionPool(
        Http("127.0.0.1", 1), connections=1, connect_timeout=1.0, context=None, proxy=None
    )
    return pool._make().buffer


@pytest.mark.skipif(sys.platform == "win32", reason="its loop reads in the background")
def test_clients_on_one_event_loop_read_into_the_same_memory() -> None:
    async def main() -> tuple[memoryview, memoryview]:
        return await buffer_of_a_connection(), await buffer_of_a_connection()

    first, second = asyncio.run(main())
    assert first is second


def test_clients_on_different_event_loops_read_into_different_memory() -> None:
    # Both are kept: memory that was freed may be given out again.
    first, second = asyncio.run(buffer_of_a_connection()), asyncio.run(buffer_of_a_connection())
    assert first.obj is not second.obj


# -- TLS -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "end", [asyncio.StreamWriter.close, lambda writer: writer.transport.abort()]
)
def test_a_server_that_ends_its_tls_handshake_is_an_error_with_a_reason(end: Any) -> None:
    async def scene() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            end(writer)

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
            for scheme in ("https", "wss"):
                with pytest.raises(TransportError, match=rf"{address} cannot be reached: \w"):
                    await Client(f"{scheme}://{address}").connect()

    asyncio.run(scene())


def test_a_certificate_is_expected_for_the_name_in_the_options(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.certificate("server", "example.org"))

    async def scene() -> None:
        async with McpStub(context=context) as stub:
            tls = Tls(ca=authority.ca, server_name="example.org")
            async with Client(Http("127.0.0.1", stub.port, tls=tls)) as client:
                assert (await client.call_tool("echo")).text == "done"

    asyncio.run(scene())


def server_context(authority: Authority, *, asks: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.certificate("server", "127.0.0.1"))
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.ca)
    return context


def test_a_custom_authority_and_a_client_certificate_are_used(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.certificate("client")

    async def scene() -> None:
        async with McpStub(context=server_context(authority, asks=True)) as stub:
            tls = Tls(ca=authority.ca, cert=cert, key=key)
            async with Client(Http("127.0.0.1", stub.port, tls=tls)) as client:
                assert (await client.call_tool("echo")).text == "done"
            assert stub.connections == 1

    asyncio.run(scene())


def test_a_server_of_an_unknown_authority_is_not_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def scene() -> None:
        async with McpStub(context=server_context(authority)) as stub:
            with pytest.raises(TransportError, match=r"cannot be trusted: .*certificate"):
                await Client(stub.url).connect()
            assert stub.requests == []

    asyncio.run(scene())


def test_a_certificate_of_another_host_is_not_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.certificate("server", "example.org"))

    async def scene() -> None:
        async with McpStub(context=context) as stub:
            tls = Tls(ca=authority.ca)
            with pytest.raises(TransportError, match="cannot be trusted: IP address mismatch"):
                await Client(Http("127.0.0.1", stub.port, tls=tls)).connect()
            assert stub.requests == []

    asyncio.run(scene())


def test_a_server_may_have_a_certificate_of_another_name_if_tls_says_so(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.certificate("server", "example.org"))

    async def scene() -> None:
        async with McpStub(context=context) as stub:
            tls = Tls(ca=authority.ca, server_name="example.org")
            async with Client(Http("127.0.0.1", stub.port, tls=tls)) as client:
                assert (await client.call_tool("echo")).text == "done"

    asyncio.run(scene())
