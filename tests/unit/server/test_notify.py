"""Notifications that a handler sends by name, and the end of a URL elicitation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Struct

from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import connected
from trunkline import Context, Server

MOVED = "notifications/stars/moved"
COMPLETE = "notifications/elicitation/complete"


class Move(Struct):
    star: str


def make() -> Server:
    app = Server("sky")

    @app.tool
    async def move(context: Context) -> str:
        await context.notify(MOVED, {"star": "vega"})
        await context.notify(MOVED, Move("sirius"))
        await context.notify("notifications/stars/set")
        return "moved"

    @app.tool
    def move_on_a_thread(context: Context) -> str:
        context.notify(MOVED, {"star": "vega"})
        return "moved"

    return app


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", PER_REQUEST])
def test_a_handler_sends_notifications_of_its_own(revision: str) -> None:
    async def main() -> list[Any]:
        async with connected(make(), revision) as wire:
            wire.ask(1, "tools/call", {"name": "move", "_meta": META})
            await wire.answer(1)
            wire.ask(2, "tools/call", {"name": "move_on_a_thread", "_meta": META})
            await wire.answer(2)
            return [each for each in wire.got if "method" in each]

    assert [(each["method"], each.get("params")) for each in asyncio.run(main())] == [
        (MOVED, {"star": "vega"}),
        (MOVED, {"star": "sirius"}),
        ("notifications/stars/set", {}),
        (MOVED, {"star": "vega"}),
    ]


@pytest.mark.parametrize(
    ("method", "params", "kind", "text"),
    [
        ("notifications/progress", {}, ValueError, "is sent by the library"),
        (COMPLETE, {}, ValueError, "is sent by the library"),
        ("tools/list", {}, ValueError, "is sent by the library"),
        ("", {}, ValueError, "named by a text"),
        (MOVED, [1], TypeError, "are a dict, not list"),
        (MOVED, {"star": object()}, TypeError, "object"),
    ],
)
def test_invalid_notification_raises_in_the_handler(
    method: str, params: Any, kind: type[Exception], text: str
) -> None:
    app, seen = Server("sky"), []

    @app.tool
    async def move(context: Context) -> str:
        try:
            await context.notify(method, params)
        except (TypeError, ValueError) as error:
            seen.append((type(error), str(error)))
        return "done"

    async def main() -> None:
        async with connected(app) as wire:
            wire.ask(1, "tools/call", {"name": "move"})
            await wire.answer(1)
            assert len(wire.got) == 1

    asyncio.run(main())
    assert seen[0][0] is kind
    assert text in seen[0][1]


def test_a_notification_after_the_answer_is_dropped() -> None:
    app, kept = Server("sky"), []

    @app.tool
    async def keep(context: Context) -> str:
        kept.append(context)
        return "kept"

    async def main() -> None:
        async with connected(app) as wire:
            wire.ask(1, "tools/call", {"name": "keep"})
            await wire.answer(1)
            await kept[0].notify(MOVED)
            wire.ask(2, "ping")
            await wire.answer(2)
            assert [each.get("method") for each in wire.got] == [None, None]

    asyncio.run(main())


def page() -> Server:
    app = Server("desk")
    app.contexts = []  # type: ignore[attr-defined]  # for the test

    @app.tool
    async def sign(context: Context) -> str:
        app.contexts.append(context)  # type: ignore[attr-defined]  # as above
        asked = context.elicit_url("Sign", "https://example.org/sign/7", elicitation_id="sign-7")
        answered = asyncio.create_task(asked)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await context.elicitation_complete("sign-7")
        return (await answered).action

    return app


def test_elicitation_complete_is_sent_to_a_client_with_url_elicitation() -> None:
    app = page()

    async def main() -> None:
        async with connected(app, "2025-11-25", {"elicitation": {"url": {}}}) as wire:
            wire.ask(1, "tools/call", {"name": "sign"})
            question, complete = await wire.until(2)
            assert question["params"]["elicitationId"] == "sign-7"
            assert complete == {
                "jsonrpc": "2.0",
                "method": COMPLETE,
                "params": {"elicitationId": "sign-7"},
            }
            wire.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
            assert (await wire.answer(1))["result"]["content"][0]["text"] == "accept"
            # Also after the answer: the user may be done later.
            await app.contexts[0].elicitation_complete("sign-7")  # type: ignore[attr-defined]  # see `page`
            assert wire.got[-1]["method"] == COMPLETE

    asyncio.run(main())


@pytest.mark.parametrize(
    ("revision", "capabilities"),
    [("2025-11-25", {"elicitation": {"form": {}}}), ("2025-06-18", {"elicitation": {}})],
)
def test_elicitation_complete_is_not_sent_without_url_elicitation(
    revision: str, capabilities: dict[str, Any]
) -> None:
    app = Server("desk")

    @app.tool
    async def done(context: Context) -> str:
        await context.elicitation_complete("sign-7")
        with pytest.raises(ValueError, match="elicitation_id"):
            context.elicitation_complete("")
        return "done"

    async def main() -> None:
        async with connected(app, revision, capabilities) as wire:
            wire.ask(1, "tools/call", {"name": "done"})
            assert (await wire.answer(1))["result"]["content"][0]["text"] == "done"
            assert len(wire.got) == 1

    asyncio.run(main())
