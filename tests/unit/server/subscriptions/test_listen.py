"""What `subscriptions/listen` is answered: which part of a filter is honoured, and refusals."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import connected
from tests.unit.server.subscriptions.test_registry import KEY, listen, make
from trunkline import RequestError, Server
from trunkline.spec.error_kinds import ErrorKind

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def acknowledged(app: Server, **notifications: Any) -> Any:
    """Return what one request is acknowledged with."""

    async def main() -> Any:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, "x", **notifications)
            (first,) = wire.got
            assert first["method"] == ACKNOWLEDGED
            assert first["params"]["_meta"] == {KEY: "x"}
            return first["params"]["notifications"]

    return asyncio.run(main())


def refused(params: Any, app: Server | None = None) -> Any:
    """Return the error that one request is answered with."""

    async def main() -> Any:
        async with connected(app or make(), PER_REQUEST) as wire:
            wire.ask(1, "subscriptions/listen", params)
            return (await wire.answer(1))["error"]

    return asyncio.run(main())


def test_offered_notifications_are_acknowledged() -> None:
    wanted = {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": ["note://1", "note://2"],
    }
    assert acknowledged(make(), **wanted) == wanted


def test_notifications_not_offered_or_not_requested_are_not_acknowledged() -> None:
    app = Server("only tools", capabilities={"prompts": False, "resources": False})
    app.add_resource(lambda: "1", "note://1")
    app.add_tool(lambda: 1, "first")
    assert acknowledged(
        app,
        toolsListChanged=True,
        promptsListChanged=True,
        resourcesListChanged=True,
        resourceSubscriptions=["note://1"],
        moonPhaseChanged=True,
    ) == {"toolsListChanged": True}
    assert acknowledged(app, toolsListChanged=False) == {}


def test_resources_that_do_not_exist_are_left_out_and_none_is_named_twice() -> None:
    named = ["note://1", "nowhere://x", "note://1", ""]
    assert acknowledged(make(), resourceSubscriptions=named) == {
        "resourceSubscriptions": ["note://1"]
    }


def test_a_stream_without_anything_on_it_is_acknowledged_and_stays_open() -> None:
    app = make()

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            listen(wire, 1, resourceSubscriptions=["nowhere://x"])
            assert wire.got[0]["params"]["notifications"] == {}
            await asyncio.sleep(0.03)
            assert len(wire.got) == 1
            app.stop()
            assert (await wire.answer(1))["result"]["_meta"][KEY] == 1

    asyncio.run(main())


def test_task_ids_are_not_acknowledged_by_a_server_without_tasks() -> None:
    assert acknowledged(make(), taskIds=["a"]) == {}


def test_task_ids_are_acknowledged_as_the_hook_decides() -> None:
    app, asked = make(), []

    def known(request: Any, ids: list[str]) -> list[str]:
        asked.append((request.connection.core.app, request.revision, ids))
        return [each for each in ids if each != "b"]

    app._core.services.streams.honoured_task_ids = known
    assert acknowledged(app, taskIds=["a", "b", "a"]) == {"taskIds": ["a"]}
    assert asked == [(app, PER_REQUEST, ["a", "b"])]
    assert acknowledged(app) == {}
    assert len(asked) == 1


def test_task_ids_hook_may_refuse_the_request() -> None:
    app = make()

    def refuse(*_: Any) -> list[str]:
        raise RequestError(ErrorKind.MISSING_REQUIRED_CLIENT_CAPABILITY)

    app._core.services.streams.honoured_task_ids = refuse
    params = {"notifications": {"taskIds": ["a"]}, "_meta": META}
    assert refused(params, app)["code"] == -32021
    assert not app._core.services.streams._listeners


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": {"toolsListChanged": "yes"}},
        {"notifications": {"toolsListChanged": None}},
        {"notifications": {"resourceSubscriptions": "note://1"}},
        {"notifications": {"resourceSubscriptions": [1]}},
        {"notifications": {"taskIds": {}}},
    ],
)
def test_a_malformed_filter_is_refused(params: dict[str, Any]) -> None:
    error = refused({**params, "_meta": META})
    assert error["code"] == -32602
    assert error["message"].startswith("Invalid params")


def test_listen_request_in_a_batch_is_refused() -> None:
    async def main() -> None:
        async with connected(make(), "2025-03-26") as wire:
            params = {"notifications": {"toolsListChanged": True}, "_meta": META}
            request = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
            wire.send([{**request, "params": params}, {**request, "id": 2, "method": "ping"}])
            (answers,) = await wire.until(1)
            assert answers[0]["error"]["code"] == -32600
            assert "batch" in answers[0]["error"]["message"]
            assert answers[1]["result"] == {}

    asyncio.run(main())


def test_revisions_with_a_handshake_have_no_such_method() -> None:
    async def main() -> None:
        async with connected(make()) as wire:
            wire.ask(1, "subscriptions/listen", {"notifications": {}})
            assert (await wire.answer(1))["error"]["code"] == -32601

    asyncio.run(main())


def test_the_id_of_an_open_stream_is_taken() -> None:
    async def main() -> None:
        async with connected(make(), PER_REQUEST) as wire:
            listen(wire, 1, toolsListChanged=True)
            listen(wire, 1, toolsListChanged=True)
            assert wire.got[1]["error"]["code"] == -32600
            assert len(wire.got) == 2

    asyncio.run(main())


def test_listen_request_cancelled_at_acknowledgement_gets_no_notifications() -> None:
    app = make()

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            take = wire.near.on_message

            def cancel(frame: Any, route: Any) -> None:
                take(frame, route)
                wire.tell("notifications/cancelled", {"requestId": 1, "_meta": META})

            wire.near.on_message = cancel
            listen(wire, 1, toolsListChanged=True)
            app.add_tool(lambda: 1, "more")
            await asyncio.sleep(0.05)
            assert [each["method"] for each in wire.got] == [ACKNOWLEDGED]
            assert not app._core.services.streams._listeners

    asyncio.run(main())


def test_discover_declares_list_changed_and_subscribe() -> None:
    async def main() -> None:
        async with connected(make(), PER_REQUEST) as wire:
            wire.ask(1, "server/discover", {"_meta": META})
            declared = (await wire.answer(1))["result"]["capabilities"]
            assert declared["tools"] == {"listChanged": True}
            assert declared["prompts"] == {"listChanged": True}
            assert declared["resources"] == {"listChanged": True, "subscribe": True}

    asyncio.run(main())
