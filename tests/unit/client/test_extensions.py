"""Extensions of a client: what is declared, and who completes what."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.client.extensions import ClientExtension, declared, server_extensions
from trunkline.mcp.types import ServerCapabilities

STARS = "com.example/stars"


async def resolve(session: Any, question: Any, raw: Any) -> Any:
    return raw


def test_a_dict_declares_settings_by_id() -> None:
    found = declared({STARS: {"colour": "red"}, "com.example/moons": {}})
    assert found.settings == {STARS: {"colour": "red"}, "com.example/moons": {}}
    assert found.resolvers == {}


def test_nothing_declares_nothing() -> None:
    assert declared(None) == ({}, {})
    assert declared({}) == ({}, {})
    assert declared([]) == ({}, {})


def test_extensions_bring_who_completes_their_results() -> None:
    stars = ClientExtension(STARS, {"colour": "red"}, {"starred": resolve})
    found = declared(iter([stars, ClientExtension("com.example/moons")]))
    assert found.settings == {STARS: {"colour": "red"}, "com.example/moons": {}}
    assert found.resolvers == {"starred": resolve}


def test_what_is_declared_does_not_change_with_what_was_given() -> None:
    given: dict[str, Any] = {"colours": ["red"]}
    found = declared({STARS: given})
    given["colours"].append("blue")
    assert found.settings == {STARS: {"colours": ["red"]}}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"stars": {}}, "no id of an extension"),
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
def test_what_cannot_be_declared_is_refused(given: Any, why: str) -> None:
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
def test_what_is_no_extension_is_refused(given: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        declared(given)


def test_an_extension_is_looked_at_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="no id of an extension"):
        ClientExtension("stars")
    with pytest.raises(TypeError, match="cannot be sent"):
        ClientExtension(STARS, {"most": object()})
    with pytest.raises(ValueError, match="is a result type of MCP itself"):
        ClientExtension(STARS, resolvers={"input_required": resolve})
    with pytest.raises(TypeError, match="cannot be called"):
        ClientExtension(STARS, resolvers={"starred": 5})  # type: ignore[dict-item]  # that is the point


def test_the_extensions_of_a_server_are_its_settings_by_id() -> None:
    capabilities = ServerCapabilities(extensions={STARS: {"most": 5}})
    assert server_extensions(capabilities) == {STARS: {"most": 5}}
    assert server_extensions(ServerCapabilities()) == {}
    assert server_extensions(None) == {}
