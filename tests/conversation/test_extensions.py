"""Extensions of a server's own: who is offered them, and what others get."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw as RawJson

from tests.conversation.rig import PREFIX, Rig
from tests.conversation.rules import rule
from trunkline import ClientExtension
from trunkline.errors import PeerError, RemoteProtocolError
from trunkline.spec.revisions import V2026_07_28

NEW = V2026_07_28
STARS = "com.example/stars"


def declaring(**settings: Any) -> dict[str, Any]:
    return {f"{PREFIX}clientCapabilities": {"extensions": {STARS: settings}}}


@rule("BP-050", "BP-039")
async def test_an_extension_is_advertised_in_every_revision(rig: Rig) -> None:
    raw = await rig.line("extended", opened=False)
    assert (await raw.shake_hands())["capabilities"]["extensions"] == {STARS: {"most": 5}}


@rule("BP-051", since=NEW)
async def test_extension_method_is_served_if_the_request_declares_the_extension(rig: Rig) -> None:
    raw = await rig.able_line("extended")
    found = await raw.result("stars/list", {"limit": 3}, **declaring())
    assert (found["stars"], found["resultType"]) == ([0, 1, 2], "complete")
    error = await raw.error("stars/list", {"limit": "many"}, **declaring())
    assert error["code"] == -32602


@rule("BP-051", "BP-047", "BP-046", since=NEW)
async def test_extension_method_without_declaration_names_the_missing_capability(
    rig: Rig,
) -> None:
    raw = await rig.able_line("extended")
    await raw.result("stars/list", **declaring())
    error = await raw.error("stars/list")
    assert error["code"] == -32021
    assert error["data"]["requiredCapabilities"] == {"extensions": {STARS: {}}}
    assert (await raw.result("stars/count"))["count"] == 5


@rule("BP-051", "BP-015", since=NEW)
async def test_extension_result_type_is_sent_only_if_the_extension_is_declared(rig: Rig) -> None:
    raw = await rig.able_line("extended")
    plain = await raw.call("star")
    assert (plain["resultType"], plain["content"][0]["text"]) == ("complete", "plain")
    starred = await raw.result("tools/call", {"name": "star"}, **declaring(colour="red"))
    assert (starred["resultType"], starred["colour"]) == ("starred", "red")
    assert "content" not in starred


@rule("K-23", until=NEW, fresh=True)
async def test_in_a_session_an_extension_is_declared_once(rig: Rig) -> None:
    raw = await rig.line("extended", capabilities={"extensions": {STARS: {"colour": "red"}}})
    assert (await raw.result("stars/list", {"limit": 3})) == {"stars": [0, 1, 2]}
    # Results of its own type need a revision with result types.
    assert await raw.text("star") == "plain"


@rule("K-23", until=NEW)
async def test_in_a_session_without_a_declaration_the_missing_one_is_named(rig: Rig) -> None:
    raw = await rig.able_line("extended")
    error = await raw.error("stars/list")
    assert error["code"] == -32600
    assert error["data"]["requiredCapabilities"] == {"extensions": {STARS: {}}}
    assert (await raw.result("stars/count")) == {"count": 5}
    assert await raw.text("star") == "plain"


@rule("K-23", until=NEW, fresh=True)
async def test_our_client_declares_its_extensions_in_initialize(rig: Rig) -> None:
    client = await rig.connect("extended", extensions={STARS: {}})
    assert client.server_extensions == {STARS: {"most": 5}}
    assert (await client.request("stars/list", {"limit": 1}))["stars"] == [0]


@rule("BP-051", "BP-050", since=NEW, fresh=True)
async def test_our_client_has_an_extension_and_completes_its_results(rig: Rig) -> None:
    seen: list[bytes] = []

    async def complete(_: Any, __: Any, raw: Any) -> RawJson:
        seen.append(bytes(raw))
        return RawJson(b'{"resultType":"complete","content":[{"type":"text","text":"done"}]}')

    own = ClientExtension(STARS, {"colour": "blue"}, {"starred": complete})
    client = await rig.connect("extended", extensions=[own])
    assert (await client.call_tool("star")).text == "done"
    assert b'"blue"' in seen[0]
    assert (await client.request("stars/list", {"limit": 1}))["stars"] == [0]


@rule("BP-017", "BP-051", since=NEW, fresh=True)
async def test_our_client_takes_no_result_whose_type_it_cannot_complete(rig: Rig) -> None:
    client = await rig.connect("extended", extensions={STARS: {}})
    with pytest.raises(RemoteProtocolError, match="starred"):
        await client.call_tool("star")
    plain = await rig.connect("extended")
    assert (await plain.call_tool("star")).text == "plain"
    with pytest.raises(PeerError) as caught:
        await plain.request("stars/list")
    assert caught.value.code == -32021
