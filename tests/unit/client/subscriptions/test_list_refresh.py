"""`on_list_refreshed`: lists are fetched again when they have changed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.unit.client.scripted import NEWEST_HANDSHAKE, Place, Refused, initialized, run
from trunkline.client import Client, SyncClient
from trunkline.client.subscriptions.list_refresh import ListRefresh

CAPABLE = {"tools": {"listChanged": True}, "resources": {"listChanged": True}}


class Lists:
    """A scripted server whose lists are numbered by how often they were fetched."""

    def __init__(self, **answers: Any) -> None:
        self.fetched = {"tools": 0, "resources": 0, "templates": 0}
        opened = initialized(NEWEST_HANDSHAKE, capabilities=CAPABLE)
        lists = {
            "initialize": opened,
            "tools/list": self._tools,
            "resources/list": self._resources,
            "resources/templates/list": self._templates,
        }
        self.place = Place(lists | answers, revision=NEWEST_HANDSHAKE)

    def _tools(self, message: Any) -> Any:
        self.fetched["tools"] += 1
        tool = {"name": f"t{self.fetched['tools']}", "inputSchema": {"type": "object"}}
        return {"tools": [tool]}

    def _resources(self, message: Any) -> Any:
        self.fetched["resources"] += 1
        return {"resources": [{"uri": "note://a", "name": f"r{self.fetched['resources']}"}]}

    def _templates(self, message: Any) -> Any:
        self.fetched["templates"] += 1
        return {"resourceTemplates": [{"uriTemplate": "note://{x}", "name": "t"}]}

    def change(self, kind: str = "tools") -> None:
        self.place.line.say({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"})


class Refreshed:
    """What the callback got."""

    def __init__(self) -> None:
        self.lists: asyncio.Queue[tuple[str, list[str]]] = asyncio.Queue()

    async def __call__(self, kind: str, entries: list[Any]) -> None:
        self.lists.put_nowait((kind, [each.name for each in entries]))


def use(lists: Lists, work: Any, **options: Any) -> None:
    async def main() -> None:
        async with Client(lists.place, revision=NEWEST_HANDSHAKE, **options) as client:
            await work(client)

    run(main())


def test_a_list_that_has_changed_is_fetched_and_passed_on() -> None:
    lists, refreshed = Lists(), Refreshed()

    async def work(client: Client) -> None:
        assert [tool.name for tool in await client.list_tools()] == ["t1"]
        lists.change()
        assert await refreshed.lists.get() == ("tools", ["t2"])
        lists.change("resources")
        assert await refreshed.lists.get() == ("resources", ["r1"])
        assert await refreshed.lists.get() == ("resource_templates", ["t"])

    use(lists, work, on_list_refreshed=refreshed)


def test_nothing_is_fetched_without_the_callback() -> None:
    lists = Lists()
    seen: list[str] = []

    async def work(client: Client) -> None:
        lists.change()
        await client.ping()

    use(lists, work, on_list_changed=seen.append)
    assert (seen, lists.fetched["tools"]) == (["tools"], 0)


def test_both_callbacks_are_called_and_that_of_other_notifications_is_not() -> None:
    lists, refreshed = Lists(), Refreshed()
    seen: list[Any] = []

    async def work(client: Client) -> None:
        lists.change()
        assert await refreshed.lists.get() == ("tools", ["t1"])

    use(
        lists,
        work,
        on_list_refreshed=refreshed,
        on_list_changed=seen.append,
        on_notification=lambda *facts: seen.append(facts),
    )
    assert seen == ["tools"]


def test_many_changes_are_covered_by_two_fetches() -> None:
    lists = Lists()
    got: list[list[Any]] = []
    first, go_on = asyncio.Event(), asyncio.Event()

    async def slow(kind: str, entries: list[Any]) -> None:
        got.append([each.name for each in entries])
        first.set()
        await go_on.wait()

    async def work(client: Client) -> None:
        lists.change()
        await first.wait()
        for _ in range(100):
            lists.change()
        await client.ping()
        go_on.set()
        while len(got) < 2:
            await asyncio.sleep(0)
        await client.ping()

    use(lists, work, on_list_refreshed=slow)
    assert got == [["t1"], ["t2"]]


def test_a_server_without_templates_has_no_list_of_them(caplog: pytest.LogCaptureFixture) -> None:
    lists, refreshed = Lists(**{"resources/templates/list": Refused(-32601)}), Refreshed()

    async def work(client: Client) -> None:
        lists.change("resources")
        assert await refreshed.lists.get() == ("resources", ["r1"])
        lists.change()
        assert await refreshed.lists.get() == ("tools", ["t1"])

    use(lists, work, on_list_refreshed=refreshed)
    assert caplog.records == []


def test_a_list_that_cannot_be_fetched_is_logged_and_fetched_after_the_next_change(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lists, refreshed = Lists(), Refreshed()
    usual = lists.place.answers["tools/list"]
    failing = [Refused(-32603, "busy")]

    def answer(message: Any) -> Any:
        return failing.pop() if failing else usual(message)

    lists.place.answers["tools/list"] = answer

    async def work(client: Client) -> None:
        lists.change()
        while failing:
            await asyncio.sleep(0)
        await client.ping()
        lists.change()
        assert await refreshed.lists.get() == ("tools", ["t1"])

    use(lists, work, on_list_refreshed=refreshed)
    assert "on_list_refreshed raised an exception" in caplog.text
    assert "busy" in caplog.text


def test_a_refresh_that_was_dropped_does_not_stop_later_ones() -> None:
    async def main() -> None:
        fetched: list[int] = []

        async def fetch() -> list[Any]:
            fetched.append(1)
            return []

        refresh = ListRefresh({"tools": {"tools": fetch}}, lambda kind, entries: None)
        dropped: Any = refresh("tools")
        dropped.close()
        await refresh("tools")
        assert fetched == [1]
        await refresh("tools")
        assert fetched == [1, 1]

    run(main())


def test_a_synchronous_client_has_the_callback_too() -> None:
    import threading
    from queue import Queue

    from trunkline import Server

    app = Server("garden")
    app.add_tool(lambda: "wet", name="water")
    lists: Queue[tuple[str, list[str], int]] = Queue()

    def refreshed(kind: str, entries: list[Any]) -> None:
        lists.put((kind, [each.name for each in entries], threading.get_ident()))

    @app.tool
    def plant() -> str:
        app.add_tool(lambda: "cut", name="mow")
        return json.dumps("planted")

    with SyncClient(app, on_list_refreshed=refreshed) as client:
        client.call_tool("plant")
        kind, names, thread = lists.get(timeout=30)
    assert (kind, names) == ("tools", ["water", "plant", "mow"])
    assert thread != threading.get_ident()
