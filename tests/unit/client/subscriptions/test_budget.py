"""What notifications weigh, and what a client holds of them at most."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import UNSET, Raw
from msgspec.json import encode

from tests.unit.client.scripted import SILENT, run, text
from tests.unit.client.subscriptions.test_stream import Hub, settle
from trunkline.client import Client
from trunkline.client.session.timeouts import RequestTimeouts
from trunkline.client.subscriptions.budget import SHARED_BYTES, NotificationBudget, weigh
from trunkline.jsonrpc import Limits

MIB = 1024 * 1024


def test_the_bound_grows_with_the_largest_message() -> None:
    assert NotificationBudget(Limits()).max_bytes == SHARED_BYTES + 16 * MIB
    assert NotificationBudget(Limits(stdio=64 * MIB)).max_bytes == SHARED_BYTES + 64 * MIB
    names = ("default", "stdio", "tcp", "unix", "http", "websocket", "sse")
    unlimited = Limits(**dict.fromkeys(names))
    assert NotificationBudget(unlimited).max_bytes == SHARED_BYTES


def test_containers_weigh_what_they_take_once_they_are_decoded() -> None:
    assert weigh(UNSET) == 0
    assert weigh(Raw(b'"' + b"x" * 1000 + b'"')) == 1002
    empty_lists = encode([[]] * 1000)
    assert weigh(Raw(empty_lists)) > 64 * 1000


def test_a_queue_that_is_empty_takes_a_message_of_any_size() -> None:
    budget = NotificationBudget(Limits())
    assert budget.take(10**9, is_empty=True)
    assert not budget.take(1, is_empty=False)
    assert budget.take(10**9, is_empty=True)
    budget.release(2 * 10**9)
    assert (budget.held, budget.dropped) == (0, 1)
    assert budget.take(1, is_empty=False)


def test_callbacks_and_subscriptions_of_a_client_share_one_budget() -> None:
    hub = Hub()
    seen: list[str] = []

    async def slow(method: str, params: dict[str, Any]) -> None:
        seen.append(method)
        await asyncio.Event().wait()

    async def main() -> None:
        async with Client(hub, on_notification=slow) as client:
            budget = client._connection.budget
            budget.max_bytes = 2000
            async with client.listen(uris=["x:a"]) as stream:
                id = hub.listens()[0]["id"]
                for _ in range(3):
                    hub.notify("acme", None, text="x" * 900)
                await settle()
                assert (len(seen), client.dropped_notifications) == (1, 1)
                # The buffer of the subscription is empty, so it takes one change all the same.
                hub.notify("resources/updated", id, uri="x:" + "a" * 900)
                await settle()
                assert budget.held > 2000
                assert (await anext(stream)).uri == "x:" + "a" * 900
        assert budget.held == 0

    run(main())


def test_a_subscription_that_is_left_releases_what_it_held() -> None:
    hub = Hub()

    async def main() -> None:
        async with Client(hub) as client:
            async with client.listen(uris=["x:a"]):
                hub.notify("resources/updated", hub.listens()[0]["id"], uri="x:a")
                await settle()
                assert client._connection.budget.held > 0
            assert client._connection.budget.held == 0

    run(main())


def test_notifications_of_the_protocol_are_taken_when_the_budget_is_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = asyncio.Event()

    def call(message: dict[str, Any]) -> Any:
        token = message["params"]["_meta"]["progressToken"]
        for n in range(3):
            hub.notify("progress", None, progressToken=token, progress=n)
        asyncio.get_running_loop().call_soon(answered.set)
        return SILENT

    hub = Hub(**{"tools/call": call})

    async def on_progress(*args: Any) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with Client(hub, on_progress=on_progress) as client:
            restarted: list[Any] = []
            progressed = RequestTimeouts.progressed

            def watched(self: RequestTimeouts, token: Any) -> Any:
                restarted.append(token)
                return progressed(self, token)

            monkeypatch.setattr(RequestTimeouts, "progressed", watched)
            client._connection.budget.max_bytes = 0
            pending = client.submit_tool("t")
            await answered.wait()
            await settle()
            # Each restarts the timeout; of the calls of `on_progress` two were dropped.
            assert (len(restarted), client.dropped_notifications) == (3, 2)
            id = next(each["id"] for each in hub.line.sent if each["method"] == "tools/call")
            hub.line.say({"jsonrpc": "2.0", "id": id, "result": text("done")})
            assert (await pending).text == "done"
            # A subscription is acknowledged, and ended by the server.
            async with client.listen(uris=["x:a"]) as stream:
                hub.notify("cancelled", None, requestId=hub.listens()[0]["id"], reason="over")
                assert [change async for change in stream] == []
                assert stream.reason == "over"

    run(main())
