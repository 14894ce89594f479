"""What a server offers as one document."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trunkline import Client, Server
from trunkline.cli.connect.listing import _versions, listing_of
from trunkline.errors import PeerError, RemoteProtocolError
from trunkline.transports import memory_pair


def listing(app: Any, *kinds: str, **options: Any) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with Client(app, **options) as client:
            return await (listing_of(client, kinds) if kinds else listing_of(client))

    return asyncio.run(asyncio.wait_for(run(), 30))


def by_hand(answers: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the listing of a server that gives these answers, each once."""
    from msgspec.json import decode, encode

    ours, theirs = memory_pair()
    opening = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {}},
        "serverInfo": {"name": "x", "version": "1"},
    }

    def answer(frame: Any, route: Any) -> None:
        asked = decode(frame)
        if "id" not in asked:
            return
        left = answers.get(asked["method"])
        reply = left.pop(0) if left else {"error": {"code": -32601, "message": "no"}}
        if asked["method"] == "initialize":
            reply = {"result": opening}
        theirs.send(encode({"jsonrpc": "2.0", "id": asked["id"], **reply}))

    async def run() -> dict[str, Any]:
        theirs.on_message = answer
        await theirs.connect()
        try:
            async with Client(ours, revision="2025-11-25") as client:
                return await listing_of(client)
        finally:
            await theirs.close()

    return asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28"])
def test_a_listing_has_everything(revision: str) -> None:
    app = Server("demo", version="1", instructions="Be kind.")

    @app.tool
    def add(a: int) -> int:
        """Add."""
        return a

    @app.resource("x://{y}")
    def x(y: str) -> str:
        return y

    found = listing(app, revision=revision)
    assert list(found) == [
        "format",
        "server",
        "revision",
        "capabilities",
        "instructions",
        *(["supportedVersions"] if revision == "2026-07-28" else []),
        "tools",
        "resources",
        "resourceTemplates",
        "prompts",
    ]
    assert found["format"] == "trunkline.listing/1"
    assert found["server"] == {"name": "demo", "version": "1"}
    assert found["revision"] == revision
    assert "tools" in found["capabilities"]
    assert found["tools"][0]["name"] == "add"
    assert found["resourceTemplates"][0]["uriTemplate"] == "x://{y}"
    assert (found["resources"], found["prompts"]) == ([], [])


def test_kinds_that_are_not_asked_for_are_not_there() -> None:
    found = listing(Server("demo", version="1"), "prompts")
    assert "tools" not in found
    assert found["prompts"] == []


def test_unknown_members_are_kept_on_every_page() -> None:
    pages = [
        {"result": {"tools": [{"name": "a", "odd": [1]}], "nextCursor": "2"}},
        {"result": {"tools": [{"name": "b"}]}},
    ]
    found = by_hand({"tools/list": pages, "resources/list": [{"result": {"resources": []}}]})
    assert found["tools"] == [{"name": "a", "odd": [1]}, {"name": "b"}]


def test_a_server_may_have_no_templates() -> None:
    empty = {"tools/list": [{"result": {"tools": []}}]}
    found = by_hand({**empty, "resources/list": [{"result": {"resources": []}}]})
    assert found["resourceTemplates"] == []
    with pytest.raises(PeerError):
        by_hand(empty)


@pytest.mark.parametrize("tools", [None, {}, ["a"], 3])
def test_value_that_is_not_a_list_is_a_protocol_error(tools: Any) -> None:
    with pytest.raises(RemoteProtocolError, match="a list of objects"):
        by_hand({"tools/list": [{"result": {"tools": tools}}]})


def test_list_with_a_repeated_cursor_is_a_protocol_error() -> None:
    page = {"result": {"tools": [], "nextCursor": "again"}}
    with pytest.raises(RemoteProtocolError, match="a list that ends"):
        by_hand({"tools/list": [page, page, page]})


def test_the_revisions_are_those_that_the_server_says_it_speaks() -> None:
    found = listing(Server("demo", version="1"), revision="2026-07-28")
    assert {"2024-11-05", "2026-07-28"} <= set(found["supportedVersions"])
    # A handshake tells one, which need not be all.
    assert "supportedVersions" not in listing(Server("demo", version="1"), revision="2025-11-25")


@pytest.mark.parametrize("answer", [{"supportedVersions": 5}, {"supportedVersions": [5]}, {}, None])
def test_a_server_that_does_not_say_what_it_speaks_is_listed(answer: Any) -> None:
    class Odd:
        """A client, as far as it is asked about revisions."""

        era = "per_request"

        async def request(self, method: str, params: Any) -> Any:
            assert method == "server/discover"
            if answer is None:
                raise PeerError(-32601, "no")
            return answer

    assert asyncio.run(_versions(Odd())) is None  # type: ignore[arg-type]  # it has what is used
