"""Extensions of a client: what is declared, and who completes what."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec import Raw
from msgspec.json import encode

from trunkline import Client, Context, Extension, PeerError, RemoteProtocolError, Server
from trunkline.client.connect.extensions import ClientExtension, declared
from trunkline.mcp.types import TextContent

STARS = "com.example/stars"


async def resolve(session: Any, request: Any, raw: Any) -> Any:
    return raw


def test_a_dict_declares_settings_by_id() -> None:
    found = declared({STARS: {"colour": "red"}, "com.example/moons": {}})
    assert found.settings == {STARS: {"colour": "red"}, "com.example/moons": {}}
    assert found.resolvers == {}


def test_nothing_declares_nothing() -> None:
    assert declared(None) == ({}, {})
    assert declared({}) == ({}, {})
    assert declared([]) == ({}, {})


def test_declared_extensions_collect_settings_and_resolvers() -> None:
    stars = ClientExtension(STARS, {"colour": "red"}, {"starred": resolve})
    found = declared(iter([stars, ClientExtension("com.example/moons")]))
    assert found.settings == {STARS: {"colour": "red"}, "com.example/moons": {}}
    assert found.resolvers == {"starred": resolve}


def test_declared_settings_are_copied_from_the_argument() -> None:
    given: dict[str, Any] = {"colours": ["red"]}
    found = declared({STARS: given})
    given["colours"].append("blue")
    assert found.settings == {STARS: {"colours": ["red"]}}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"stars": {}}, "is not an extension id"),
        ([ClientExtension(STARS), ClientExtension(STARS)], "declared twice"),
        (
            [
                ClientExtension(STARS, resolvers={"starred": resolve}),
                ClientExtension("com.example/moons", resolvers={"starred": resolve}),
            ],
            "'starred' are completed by somebody already",
        ),
    ],
)
def test_conflicting_or_misnamed_extensions_are_refused(given: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        declared(given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({STARS: ["red"]}, "are a dict, not list"),
        ([STARS], "is a ClientExtension, not str"),
        (STARS, "several"),
        (ClientExtension(STARS), "several"),
    ],
)
def test_value_that_is_not_an_extension_is_refused(given: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        declared(given)


def test_an_extension_is_looked_at_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="is not an extension id"):
        ClientExtension("stars")
    with pytest.raises(TypeError, match="cannot be sent"):
        ClientExtension(STARS, {"most": object()})
    with pytest.raises(ValueError, match="is a result type of MCP itself"):
        ClientExtension(STARS, resolvers={"input_required": resolve})
    with pytest.raises(TypeError, match="cannot be called"):
        ClientExtension(STARS, resolvers={"starred": 5})  # type: ignore[dict-item]  # that is the point


# -- with a server ---------------------------------------------------------------------------


def stars_server() -> Server:
    extension = Extension(STARS, settings={"most": 5}, result_types=("starred",))

    @extension.method("stars/colour")
    async def colour(context: Context) -> dict[str, Any]:
        return {"told": context.extension(STARS)}

    app = Server("sky", extensions=[extension])

    @app.tool
    async def observe(star: str) -> str:
        answer: str = extension.result("starred", {"star": star})
        return answer

    return app


def test_a_client_declares_its_settings_on_every_request() -> None:
    async def main() -> None:
        async with Client(stars_server(), extensions={STARS: {"colour": "red"}}) as client:
            assert (await client.request("stars/colour"))["told"] == {"colour": "red"}
            assert client.server_extensions == {STARS: {"most": 5}}
        async with Client(stars_server()) as client:
            with pytest.raises(PeerError) as caught:
                await client.request("stars/colour")
            assert caught.value.code == -32021

    asyncio.run(main())


def test_a_result_of_its_type_is_completed_by_its_resolver() -> None:
    async def seen(session: Any, request: Any, raw: Any) -> Any:
        star = json.loads(bytes(raw))["star"]
        return Raw(encode({"resultType": "complete", "content": [TextContent(f"saw {star}")]}))

    async def main() -> None:
        mine = ClientExtension(STARS, resolvers={"starred": seen})
        async with Client(stars_server(), extensions=[mine]) as client:
            assert (await client.call_tool("observe", {"star": "vega"})).text == "saw vega"

    asyncio.run(main())


def test_result_type_without_a_resolver_is_a_protocol_error() -> None:
    async def main() -> None:
        async with Client(stars_server(), extensions={STARS: {}}) as client:
            with pytest.raises(RemoteProtocolError, match="starred"):
                await client.call_tool("observe", {"star": "vega"})

    asyncio.run(main())
