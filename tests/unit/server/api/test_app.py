"""The server info that a client receives, by revision."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import to_builtins

from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import WAIT, ServerConnection
from trunkline import Client, Server

NAMED = {"name": "tests", "version": "2"}
TITLED = {**NAMED, "title": "The tests"}
WHOLE = {
    **TITLED,
    "description": "What it is for",
    "websiteUrl": "https://example.com",
    "icons": [{"src": "https://example.com/a.png"}],
}


async def described(app: Server, revision: str) -> Any:
    """Return the server info in the answer to the first request."""
    wire = ServerConnection()
    serving = asyncio.create_task(app.serve(wire.far))
    await wire.near.connect()
    try:
        if revision == PER_REQUEST:
            wire.ask(1, "server/discover", {"_meta": META})
            result = (await wire.answer(1))["result"]
            return result["_meta"]["io.modelcontextprotocol/serverInfo"]
        client = {"name": "tests", "version": "1"}
        asked = {"protocolVersion": revision, "capabilities": {}, "clientInfo": client}
        wire.ask(1, "initialize", asked)
        return (await wire.answer(1))["result"]["serverInfo"]
    finally:
        await wire.near.close()
        await asyncio.wait_for(serving, WAIT)


@pytest.mark.parametrize(
    ("revision", "info"),
    [
        ("2024-11-05", NAMED),
        ("2025-03-26", NAMED),
        ("2025-06-18", TITLED),
        ("2025-11-25", WHOLE),
        (PER_REQUEST, WHOLE),
    ],
)
def test_a_client_gets_of_the_server_info_what_its_revision_has(revision: str, info: Any) -> None:
    app = Server(
        "tests",
        version="2",
        title="The tests",
        description="What it is for",
        website_url="https://example.com",
        icons=["https://example.com/a.png"],
    )
    assert asyncio.run(described(app, revision)) == info


def test_members_of_the_server_info_that_were_not_given_are_not_sent() -> None:
    assert asyncio.run(described(Server("tests", version="2"), PER_REQUEST)) == NAMED


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
def test_an_author_says_whether_lists_change_and_resources_can_be_subscribed_to(
    revision: str,
) -> None:
    async def declared(**options: Any) -> Any:
        app = Server("s", **options)
        app.resource("note://one")(lambda: "one")
        async with Client(app, revision=revision) as client:
            return to_builtins(client.server_capabilities.resources)

    assert asyncio.run(declared()) == {"listChanged": True, "subscribe": True}
    assert asyncio.run(declared(subscribe=False)) == {"listChanged": True}
    assert asyncio.run(declared(subscribe=False, list_changed=False)) == {}
