"""Resources and templates: listed, read, missed, and watched."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest

from tests.conversation.app import CANARY, ODD
from tests.conversation.rig import Rig
from tests.conversation.rules import rule
from trunkline.errors import PeerError
from trunkline.spec.revisions import V2025_06_18, V2026_07_28


async def contents(rig: Rig, uri: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await rig.raw.result("resources/read", {"uri": uri}))["contents"]
    return found


@rule("F-25")
async def test_resources_are_listed_with_what_the_revision_knows_of_them(rig: Rig) -> None:
    listed = {each.uri: each for each in await rig.client.list_resources()}
    assert {"note://text", "note://blob", "config://app", "filler://2"} <= listed.keys()
    page = await rig.raw.result("resources/list")
    rows = {each["uri"]: each for each in page["resources"]}
    note = rows["note://text"]
    assert (note["name"], note["description"]) == ("text", "A text.")
    assert note["annotations"] == {"priority": 0.5}
    assert note.get("title") == ("A note" if rig.since(V2025_06_18) else None)
    assert (rows["note://markdown"]["mimeType"], rows["note://markdown"]["size"]) == (
        "text/markdown",
        7,
    )
    # Templates are on a list of their own.
    assert not any("{" in uri for uri in listed)


@rule("F-25")
async def test_templates_are_listed(rig: Rig) -> None:
    result = await rig.raw.result("resources/templates/list")
    found = {each["uriTemplate"]: each for each in result["resourceTemplates"]}
    assert found.keys() == {"city://{country}/{name}", "number://{value}"}
    assert found["city://{country}/{name}"]["mimeType"] == "text/plain"
    assert found["city://{country}/{name}"]["name"] == "city"
    assert len(await rig.client.list_resource_templates()) == 2


@rule("E-105", "K-34", "F-25")
async def test_a_text_is_read_as_text_whatever_its_type(rig: Rig) -> None:
    (note,) = await contents(rig, "note://text")
    assert note == {"uri": "note://text", "mimeType": "text/plain", "text": "héllo\nworld"}
    (page,) = await contents(rig, "note://markdown")
    assert (page["mimeType"], page["text"]) == ("text/markdown", "# title")
    (config,) = await contents(rig, "config://app")
    assert config["mimeType"] == "application/json"
    assert json.loads(config["text"]) == {"units": "metric"}


@rule("E-104", "E-106", "K-34", "mcp.resources.blob-encoded")
async def test_bytes_are_read_as_base64_beside_their_type(rig: Rig) -> None:
    (blob,) = await contents(rig, "note://blob")
    assert (blob["uri"], blob["mimeType"]) == ("note://blob", "application/pdf")
    assert b64decode(blob["blob"], validate=True) == ODD
    assert "text" not in blob
    (ours,) = (await rig.client.read_resource("note://blob")).contents
    assert ours.to_bytes() == ODD
    (ours,) = (await rig.client.read_resource("note://text")).contents
    assert ours.text is not None
    assert ours.to_bytes() == ours.text.encode()


@rule("F-25", "K-34")
async def test_one_resource_may_have_several_contents(rig: Rig) -> None:
    first, second = await contents(rig, "note://many")
    assert (first["uri"], first["text"]) == ("note://many/1", "first")
    assert (second["uri"], second["mimeType"]) == ("note://many/2", "text/x-own")


@rule("F-25")
async def test_resource_template_is_matched_by_uri(rig: Rig) -> None:
    (city,) = await contents(rig, "city://no/Oslo")
    assert city == {"uri": "city://no/Oslo", "mimeType": "text/plain", "text": "Oslo is in no."}
    (spaced,) = await contents(rig, "city://no/Hamar%20by")
    assert spaced["text"] == "Hamar by is in no."
    (number,) = await contents(rig, "number://41")
    assert json.loads(number["text"]) == {"value": 41}


@rule("F-25", "P-62")
async def test_resource_handler_context_has_revision_and_requested_uri(rig: Rig) -> None:
    (seen,) = await contents(rig, "note://caller")
    assert json.loads(seen["text"]) == {"revision": rig.revision, "what": "note://caller"}


MISSING = ["note://nowhere", "city://no", "city://no/a/b", "number://many", "gibberish", ""]


@rule("K-16", "BP-163", "BP-018", "mcp.resources.uris-validated")
@pytest.mark.parametrize("uri", [*MISSING, "note://gone"])
async def test_a_missing_resource_has_the_number_of_its_revision_and_is_named(
    rig: Rig, uri: str
) -> None:
    error = await rig.raw.error("resources/read", {"uri": uri})
    assert error["code"] == (-32602 if rig.is_new else -32002)
    assert error["data"]["uri"] == uri


@rule("K-16")
async def test_our_client_knows_a_missing_resource_in_every_revision(rig: Rig) -> None:
    with pytest.raises(PeerError) as caught:
        await rig.client.read_resource("note://nowhere")
    assert caught.value.code == (-32602 if rig.is_new else -32002)
    if not rig.is_new:
        assert caught.value.kind == "RESOURCE_NOT_FOUND"


@rule("P-49")
@pytest.mark.parametrize("uri", ["note://broken", "note://unwritable"])
async def test_failing_resource_handler_is_an_internal_error_without_details(
    rig: Rig, uri: str
) -> None:
    reply = await rig.raw.ask("resources/read", {"uri": uri})
    assert reply["error"]["code"] == -32603
    assert CANARY not in json.dumps(reply)
    assert uri in await rig.raw.logged(uri)


@rule("BP-008")
@pytest.mark.parametrize("params", [{}, {"uri": 5}, {"uri": None}, {"uri": ["note://text"]}])
async def test_read_without_uri_is_invalid_params(rig: Rig, params: dict[str, Any]) -> None:
    assert (await rig.raw.error("resources/read", params))["code"] == -32602


# -- watching --------------------------------------------------------------------------------


@rule("F-25", until=V2026_07_28)
async def test_subscriber_receives_updates_until_it_unsubscribes(rig: Rig) -> None:
    raw = rig.raw
    assert await raw.result("resources/subscribe", {"uri": "note://text"}) == {}
    assert await raw.result("resources/subscribe", {"uri": "city://no/Oslo"}) == {}
    await raw.call("touch", uris=["note://text", "note://blob", "city://no/Oslo"])
    notified = await raw.wait_for_notifications("notifications/resources/updated", 2)
    assert [each["uri"] for each in notified] == ["note://text", "city://no/Oslo"]
    for uri in ("note://text", "city://no/Oslo"):
        assert await raw.result("resources/unsubscribe", {"uri": uri}) == {}
    raw.received.clear()
    await raw.call("touch", uris=["note://text", "city://no/Oslo"])
    await raw.call("step", key="after", name="x")
    await raw.settle()
    assert raw.notifications("notifications/resources/updated") == []


@rule("F-25", until=V2026_07_28)
async def test_client_receives_updates_of_a_subscribed_resource(rig: Rig) -> None:
    await rig.client.subscribe("note://text")
    await rig.client.call_tool("touch", {"uris": ["note://text"]})
    await rig.callbacks.until(lambda: bool(rig.callbacks.updates))
    assert rig.callbacks.updates == ["note://text"]
    await rig.client.unsubscribe("note://text")


@rule("K-16", until=V2026_07_28)
async def test_subscribing_to_a_missing_resource_is_an_error_with_its_uri(rig: Rig) -> None:
    error = await rig.raw.error("resources/subscribe", {"uri": "note://nowhere"})
    assert (error["code"], error["data"]["uri"]) == (-32002, "note://nowhere")
    assert (await rig.raw.error("resources/subscribe", {}))["code"] == -32602
    assert await rig.raw.result("resources/unsubscribe", {"uri": "note://nowhere"}) == {}
