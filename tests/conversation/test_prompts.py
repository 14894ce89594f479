"""Prompts, and suggestions for the arguments of prompts and templates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conversation.app import CANARY, CITIES
from tests.conversation.rig import Rig
from tests.conversation.rules import rule
from trunkline.errors import PeerError
from trunkline.mcp import AudioContent, EmbeddedResource, ImageContent
from trunkline.spec.revisions import V2025_03_26, V2025_06_18, V2025_11_25


@rule("F-26")
async def test_prompts_are_listed_with_their_arguments(rig: Rig) -> None:
    result = await rig.raw.result("prompts/list")
    listed = {each["name"]: each for each in result["prompts"]}
    review = listed["review"]
    assert review["description"] == "Ask for a review."
    assert review["arguments"] == [
        {"name": "code", "description": "what to read", "required": True},
        {"name": "style", "required": False},
    ]
    assert review.get("title") == ("Review" if rig.since(V2025_06_18) else None)
    assert ("icons" in review) == rig.since(V2025_11_25)
    assert {each.name for each in await rig.client.list_prompts()} == listed.keys()


@rule("F-26")
async def test_a_prompt_is_filled_in(rig: Rig) -> None:
    arguments = {"code": "x = 1", "style": "long"}
    result = await rig.raw.result("prompts/get", {"name": "review", "arguments": arguments})
    text = "Review this in long form:\nx = 1"
    assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": text}}]
    assert result["description"] == "Ask for a review."
    ours = await rig.client.get_prompt("review", {"code": "y"})
    assert ours.messages[0].content.text == "Review this in short form:\ny"


@rule("F-26")
async def test_an_argument_that_is_more_than_a_text_is_read_from_one(rig: Rig) -> None:
    get = {"name": "counted", "arguments": {"times": "3"}}
    result = await rig.raw.result("prompts/get", get)
    assert result["messages"][0]["content"]["text"] == "again again again "


@rule("F-26", "E-106")
async def test_messages_hold_what_the_revision_has_blocks_for(rig: Rig) -> None:
    result = await rig.raw.result("prompts/get", {"name": "pictured"})
    audio = "audio" if rig.since(V2025_03_26) else "resource"
    said = [(each["role"], each["content"]["type"]) for each in result["messages"]]
    assert said == [("user", "text"), ("user", "image"), ("assistant", audio)]
    _, image, sound = (await rig.client.get_prompt("pictured")).messages
    assert isinstance(image.content, ImageContent)
    assert image.content.to_bytes() == b"image"
    if isinstance(sound.content, EmbeddedResource):
        assert sound.content.resource.to_bytes() == b"sound"
    else:
        assert isinstance(sound.content, AudioContent)
        assert sound.content.to_bytes() == b"sound"


@rule("K-18", "F-26")
async def test_an_unknown_prompt_is_named(rig: Rig) -> None:
    error = await rig.raw.error("prompts/get", {"name": "nobody"})
    assert error["code"] == -32602
    assert "nobody" in error["message"]
    with pytest.raises(PeerError):
        await rig.client.get_prompt("nobody")


@rule("F-26", "mcp.prompts.inputs-validated")
@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"name": "review"}, "code"),
        ({"name": "review", "arguments": {"style": "long"}}, "code"),
        ({"name": "counted", "arguments": {"times": "many"}}, "times"),
        ({"name": "review", "arguments": {"code": "x", "colour": "red"}}, "colour"),
        ({"name": "review", "arguments": {"code": 5}}, "arguments"),
        ({"name": "review", "arguments": []}, "arguments"),
        ({}, "name"),
    ],
)
async def test_arguments_that_do_not_fit_a_prompt_are_invalid(
    rig: Rig, params: dict[str, Any], named: str
) -> None:
    error = await rig.raw.error("prompts/get", params)
    assert error["code"] == -32602
    assert named in error["message"]


@rule("P-49", "F-26")
async def test_prompt_handler_exception_is_not_shown_to_the_client(rig: Rig) -> None:
    reply = await rig.raw.ask("prompts/get", {"name": "broken"})
    assert reply["error"]["code"] == -32603
    assert CANARY not in json.dumps(reply)


# -- completion ------------------------------------------------------------------------------

CITY = {"type": "ref/resource", "uri": "city://{country}/{name}"}
REVIEW = {"type": "ref/prompt", "name": "review"}


async def completed(rig: Rig, ref: Any, name: str, value: str, **more: Any) -> dict[str, Any]:
    params = {"ref": ref, "argument": {"name": name, "value": value}, **more}
    found: dict[str, Any] = (await rig.raw.result("completion/complete", params))["completion"]
    return found


@rule("F-31", "K-71")
async def test_an_argument_of_a_prompt_is_completed(rig: Rig) -> None:
    found = await completed(rig, REVIEW, "style", "sh")
    assert found == {"values": ["short", "shorter"], "total": 2, "hasMore": False}
    ours = await rig.client.complete("style", "lo", prompt="review")
    assert ours.values == ["long"]


@rule("BP-160", "F-31")
async def test_no_more_than_a_hundred_values_are_sent(rig: Rig) -> None:
    found = await completed(rig, CITY, "name", "")
    assert found == {"values": CITIES[:100], "total": 250, "hasMore": True}


@rule("F-31", since=V2025_06_18)
async def test_a_completion_sees_what_else_was_filled_in(rig: Rig) -> None:
    context = {"arguments": {"country": "se"}}
    found = await completed(rig, CITY, "name", "-12", context=context)
    assert found["values"] == [each for each in CITIES if each.startswith("se-12")]
    ours = await rig.client.complete("name", "-12", resource=CITY["uri"], context={"country": "no"})
    assert all(each.startswith("no-12") for each in ours.values)


@rule("F-31", until=V2025_06_18)
async def test_our_client_does_not_send_a_context_that_the_revision_lacks(rig: Rig) -> None:
    ours = await rig.client.complete("name", "-12", resource=CITY["uri"], context={"country": "no"})
    assert ours.total == len([each for each in CITIES if "-12" in each])


@rule("F-31")
async def test_argument_without_completion_handler_has_no_values(rig: Rig) -> None:
    found = await completed(rig, REVIEW, "code", "x")
    assert found["values"] == []


@rule("F-31")
async def test_a_completion_may_refer_to_a_resource_by_its_uri(rig: Rig) -> None:
    found = await completed(rig, {"type": "ref/resource", "uri": "note://text"}, "name", "")
    assert found["values"] == []
    matched = {"type": "ref/resource", "uri": "city://se/se-1"}
    found = await completed(rig, matched, "name", "-12")
    assert found == await completed(rig, CITY, "name", "-12")
    assert found["values"]


@rule("F-31", "K-71", "mcp.completion.inputs-validated")
@pytest.mark.parametrize(
    "params",
    [
        {"ref": {"type": "ref/prompt", "name": "nobody"}},
        {"ref": {"type": "ref/resource", "uri": "note://nowhere"}},
        {"ref": "review"},
        {"ref": {"type": "ref/tool", "name": "echo"}},
        {"ref": {"name": "review"}},
        {},
        {"ref": REVIEW, "argument": "style"},
        {"ref": REVIEW, "argument": {"name": "style"}},
        {"ref": REVIEW, "argument": {"name": "style", "value": 5}},
    ],
)
async def test_completion_without_a_known_reference_is_invalid_params(
    rig: Rig, params: dict[str, Any]
) -> None:
    params = {"argument": {"name": "style", "value": ""}, **params}
    assert (await rig.raw.error("completion/complete", params))["code"] == -32602
