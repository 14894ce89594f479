"""A server that outlives its connections may end one that is idle; its client goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from trunkline import (
    Client,
    ConnectionLost,
    Server,
    SocketLimits,
    TransportError,
    TrunklineError,
)
from trunkline.client.session.session import Session
from trunkline.jsonrpc import Policy
from trunkline.server import ServerListener
from trunkline.spec.revisions import REVISIONS
from trunkline.transports import Unix

WAIT = 20.0


def server() -> Server:
    app = Server("idle")

    @app.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @app.tool
    async def hang() -> str:
        await asyncio.sleep(WAIT)
        return "late"

    @app.resource("data://one")
    def one() -> str:
        return "1"

    return app


async def end_idle(listening: ServerListener, client: Client) -> None:
    """Have the server end a connection on which nothing is awaited."""
    for connection in list(listening._connections):
        connection.end()
    await until_async(lambda: not client.is_connected)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_call_after_an_idle_end_goes_by_a_new_connection(tmp_path: Path, revision: str) -> None:
    async def script() -> None:
        async with (
            server().listen(Unix(tmp_path / "s")) as listening,
            Client(listening.address, revision=revision) as client,
        ):
            await end_idle(listening, client)
            result = await client.call_tool("add", {"a": 1, "b": 2}, result_type=int)
            assert result.value == 3
            assert client.is_connected
            assert (await client.list_tools(fresh=True))[0].name == "add"

    asyncio.run(script())


def test_many_calls_at_once_share_the_new_connection(tmp_path: Path) -> None:
    async def script() -> None:
        async with (
            server().listen(Unix(tmp_path / "s")) as listening,
            Client(listening.address) as client,
        ):
            await end_idle(listening, client)
            calls = [client.call_tool("add", {"a": n, "b": 1}) for n in range(20)]
            results = await asyncio.gather(*calls)
            assert [each.text for each in results] == [str(n + 1) for n in range(20)]
            assert listening.connections == 1

    asyncio.run(script())


def test_subscriptions_are_renewed_on_the_new_connection(tmp_path: Path) -> None:
    async def script() -> None:
        app, told = server(), list[str]()
        async with (
            app.listen(Unix(tmp_path / "s")) as listening,
            Client(
                listening.address, revision="2025-11-25", on_resource_updated=told.append
            ) as client,
        ):
            await client.subscribe("data://one")
            await end_idle(listening, client)
            await client.call_tool("add", {"a": 1, "b": 2})
            app.notify_resource_updated("data://one")
            await until_async(lambda: told)

    asyncio.run(script())


def test_a_call_that_was_under_way_is_lost_and_not_repeated(tmp_path: Path) -> None:
    async def script() -> None:
        app = server()
        async with (
            app.listen(Unix(tmp_path / "s")) as listening,
            Client(listening.address) as client,
        ):
            call = asyncio.create_task(client.call_tool("hang"))
            await until_async(lambda: app._core.runtime.in_flight)
            for connection in list(listening._connections):
                connection.runner.cancel_all()
                connection.peer.close()
                connection.end()
            with pytest.raises(ConnectionLost):
                await call

    asyncio.run(script())


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_call_that_meets_the_end_is_lost_and_the_next_goes_on(
    tmp_path: Path, revision: str
) -> None:
    async def script() -> None:
        app = server()
        async with (
            app.listen(Unix(tmp_path / "s")) as listening,
            Client(listening.address, revision=revision) as client,
        ):
            for connection in list(listening._connections):
                connection.end()
            # It is sent before the end has arrived, and read by nobody.
            with pytest.raises(ConnectionLost):
                await client.call_tool("add", {"a": 1, "b": 2})
            assert (await client.call_tool("add", {"a": 1, "b": 3})).text == "4"

    asyncio.run(script())


def test_next_call_after_a_connection_reset_reconnects(tmp_path: Path) -> None:
    async def script() -> None:
        async with (
            server().listen("tcp://127.0.0.1:0") as listening,
            Client(listening.address) as client,
        ):
            transport: Any = client._connection.current().transport
            transport._input_ended(OSError(104, "Connection reset by peer"))
            await until_async(lambda: not client.is_connected)
            assert (await client.call_tool("add", {"a": 1, "b": 3})).text == "4"

    asyncio.run(script())


def test_a_closed_client_stays_closed(tmp_path: Path) -> None:
    async def script() -> None:
        async with server().listen(Unix(tmp_path / "s")) as listening:
            client = Client(listening.address)
            await client.connect()
            await client.close()
            with pytest.raises(TrunklineError, match="not connected"):
                await client.call_tool("add", {"a": 1, "b": 2})

    asyncio.run(script())


@pytest.mark.parametrize("times", [1, 2])
def test_a_server_that_ends_a_connection_unasked_is_tried_once_more(
    tmp_path: Path, times: int
) -> None:
    """As one does that is about to be replaced by another, which listens at the same place."""

    async def script() -> None:
        app, arrived = server(), list[Any]()
        listening = app.listen(Unix(tmp_path / "s"))
        take = listening._take

        def turn_away(transport: Any) -> None:
            arrived.append(transport)
            transport.discard() if len(arrived) <= times else take(transport)

        listening._listener._on_connection = turn_away
        async with listening:
            client = Client(listening.address)
            if times == 1:
                await client.connect()
                assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
            else:
                with pytest.raises(TransportError):
                    await client.connect()
            assert len(arrived) == 2
            await client.close()

    asyncio.run(script())


def test_client_refused_with_a_reason_does_not_retry(tmp_path: Path) -> None:
    async def script() -> None:
        limits = SocketLimits(connections=1)
        async with (
            server().listen(Unix(tmp_path / "s"), limits=limits) as listening,
            Client(listening.address),
        ):
            arrived = list[Any]()
            take = listening._take
            listening._listener._on_connection = lambda each: arrived.append(each) or take(each)
            with pytest.raises(TransportError, match="No more than 1 connections"):
                await Client(listening.address).connect()
            assert len(arrived) == 1

    asyncio.run(script())


def test_a_change_of_connections_that_is_cancelled_leaves_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script() -> None:
        app = server()
        async with app.listen(Unix(tmp_path / "s")) as listening:
            policy = Policy(max_id=6)
            client = Client(listening.address, revision="2025-11-25", policy=policy)
            await client.connect()
            stream = client.listen(uris=["data://one"])
            await stream.__aenter__()
            ask = Session.ask

            async def slow(self: Session, request: Any) -> Any:
                if request.method == "resources/subscribe":
                    await asyncio.sleep(WAIT)
                return await ask(self, request)

            monkeypatch.setattr(Session, "ask", slow)
            with pytest.raises(TimeoutError):
                for _ in range(20):
                    await asyncio.wait_for(client.call_tool("add", {"a": 1, "b": 2}), 0.3)
            monkeypatch.undo()
            await client.close()
            await until_async(lambda: listening.connections == 0)

    asyncio.run(script())


def test_call_to_a_stopped_server_raises_a_transport_error(tmp_path: Path) -> None:
    async def script() -> None:
        async with server().listen(Unix(tmp_path / "s")) as listening:
            client = Client(listening.address)
            await client.connect()
        await until_async(lambda: not client.is_connected)
        with pytest.raises(TransportError, match="No such file"):
            await client.call_tool("add", {"a": 1, "b": 2})
        await client.close()

    asyncio.run(script())


def test_a_server_in_this_process_is_not_connected_to_again() -> None:
    async def script() -> None:
        app = server()
        async with Client(app) as client:
            app.stop()
            await until_async(lambda: not client.is_connected)
            with pytest.raises(ConnectionLost):
                await client.call_tool("add", {"a": 1, "b": 2})

    asyncio.run(script())


def test_call_after_an_idle_timeout_of_the_server_reconnects(tmp_path: Path) -> None:
    async def script() -> None:
        limits = SocketLimits(idle=0.05)
        async with (
            server().listen(Unix(tmp_path / "s"), limits=limits) as listening,
            Client(listening.address, revision="2026-07-28") as client,
        ):
            await until_async(lambda: not client.is_connected)
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"

    asyncio.run(script())


def test_a_server_that_ends_the_new_connection_too_is_said_to_be_lost(tmp_path: Path) -> None:
    """And not that ids are used up, which is how a new connection is asked for otherwise."""

    async def script() -> None:
        async with (
            server().listen(Unix(tmp_path / "s")) as listening,
            Client(listening.address) as client,
        ):
            await end_idle(listening, client)
            really = client._connection._open

            async def short() -> Session:
                session = await really()
                session._lost(None)
                return session

            client._connection._open = short  # type: ignore[method-assign]  # ends as soon as it has begun
            with pytest.raises(ConnectionLost, match="ended the connection"):
                await client.call_tool("add", {"a": 1, "b": 2})

    asyncio.run(script())


def test_a_batch_goes_by_a_new_connection(tmp_path: Path) -> None:
    async def script() -> None:
        async with (
            server().listen(Unix(tmp_path / "s")) as listening,
            Client(listening.address, revision="2025-03-26") as client,
        ):
            await end_idle(listening, client)
            async with client.batch() as batch:
                call = batch.submit_tool("add", {"a": 1, "b": 2})
            assert (await call).text == "3"

    asyncio.run(script())
