"""Elicitation, sampling and roots, requested by a handler in every revision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conversation.asking_app import CHOICES, PAGE_TO_VISIT
from tests.conversation.interactive_call import (
    CANCEL,
    DECLINE,
    FOLDERS,
    SAMPLE,
    InteractiveCall,
    accept,
)
from tests.conversation.rig import PREFIX, Rig, everything
from tests.conversation.rules import rule
from trunkline import RequestError
from trunkline.errors import InputRequestFailed
from trunkline.jsonrpc import Policy
from trunkline.spec.revisions import V2025_06_18, V2025_11_25, V2026_07_28

FORMS = V2025_06_18
NEW = V2026_07_28


# -- line by line ----------------------------------------------------------------------------


@rule("F-28", since=FORMS)
@pytest.mark.parametrize("tool", ["hello", "hello_from_a_thread"])
async def test_handler_elicits_a_form_and_continues_with_the_content(rig: Rig, tool: str) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), tool)
    (question,) = await call.questions()
    assert question["method"] == "elicitation/create"
    params = question["params"]
    assert params["message"] == "What is your name?"
    assert params.get("mode") == ("form" if rig.since(V2025_11_25) else None)
    assert params["requestedSchema"] == {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    }
    call.answer(accept(name="Ada"))
    assert await call.text() == "Hello, Ada!"
    assert call.was_answered_once()


@rule("F-28", since=FORMS)
@pytest.mark.parametrize("answer", [DECLINE, CANCEL], ids=["declined", "cancelled"])
async def test_declined_or_cancelled_elicitation_is_a_result_with_that_action(
    rig: Rig, answer: dict[str, Any]
) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), "hello")
    await call.questions()
    call.answer(answer)
    assert await call.text() == answer["action"]


@rule("F-28", since=FORMS)
@pytest.mark.parametrize(
    "answer",
    [
        {"action": "accept"},
        accept(),
        accept(name=5),
        accept(name=["Ada"]),
        accept(other="Ada"),
        {"action": "accept", "content": ["Ada"]},
        {"action": "perhaps", "content": {"name": "Ada"}},
        {"content": {"name": "Ada"}},
        SAMPLE,
    ],
    ids=lambda answer: json.dumps(answer)[:40],
)
async def test_elicited_content_that_does_not_match_the_schema_is_refused(
    rig: Rig, answer: dict[str, Any]
) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), "hello")
    await call.questions()
    call.answer(answer)
    error = await call.error()
    assert error["code"] == -32602
    assert "Ada" not in json.dumps(error)


@rule("F-28", "mcp.elicitation.mode-default", since=V2025_11_25)
async def test_elicitation_form_has_the_defaults_of_its_fields(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, "profile")
    (question,) = await call.questions()
    schema = question["params"]["requestedSchema"]
    defaults = {
        name: (each["type"], each["default"]) for name, each in schema["properties"].items()
    }
    assert defaults == {
        "name": ("string", "John Doe"),
        "age": ("integer", 30),
        "score": ("number", 95.5),
        "status": ("string", "active"),
        "verified": ("boolean", True),
    }
    assert schema["properties"]["status"]["enum"] == ["active", "inactive", "pending"]
    assert "required" not in schema
    given = {"name": "Jane", "age": 25, "score": 88, "status": "inactive", "verified": False}
    call.answer(accept(**given))
    assert json.loads(await call.text()) == {"action": "accept", "content": given}


@rule("F-28", since=FORMS)
async def test_fields_missing_from_elicited_content_get_their_defaults(rig: Rig) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), "profile")
    await call.questions()
    call.answer(accept(age=31))
    assert json.loads(await call.text())["content"] == {
        "name": "John Doe",
        "age": 31,
        "score": 95.5,
        "status": "active",
        "verified": True,
    }


@rule("F-28", since=FORMS, until=V2025_11_25)
async def test_elicitation_schema_has_only_keywords_of_its_revision(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, "profile")
    (question,) = await call.questions()
    fields = question["params"]["requestedSchema"]["properties"]
    # Only whether something is so had a default then.
    assert [name for name, each in fields.items() if "default" in each] == ["verified"]
    assert fields["status"]["enum"] == ["active", "inactive", "pending"]
    call.answer(accept())
    await call.result()
    # And several of a list could not be chosen.
    raw.received.clear()
    failed = await raw.result("tools/call", {"name": "choose"})
    assert (failed["isError"], "2025-06-18" in failed["content"][0]["text"]) == (True, True)
    assert [each for each in await raw.settle() if "method" in each] == []


@rule("F-28", since=V2025_11_25)
async def test_elicitation_form_has_every_kind_of_enum(rig: Rig) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), "choose")
    (question,) = await call.questions()
    assert question["params"]["requestedSchema"]["properties"] == CHOICES["properties"]
    given = {
        "untitledSingle": "option1",
        "titledSingle": "value1",
        "legacyEnum": "opt1",
        "untitledMulti": ["option1", "option2"],
        "titledMulti": ["value1", "value2"],
    }
    call.answer(accept(**given))
    assert json.loads(await call.text()) == {"action": "accept", "content": given}


@rule("F-28", "mcp.elicitation.secrets-by-url", since=V2025_11_25)
async def test_handler_elicits_by_url(rig: Rig) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), "visit")
    (question,) = await call.questions()
    params = question["params"]
    assert (params["mode"], params["url"]) == ("url", PAGE_TO_VISIT)
    assert ("elicitationId" in params) is not rig.is_new
    assert "requestedSchema" not in params
    call.answer({"action": "accept"})
    assert await call.text() == "accept"


@rule("F-27")
async def test_handler_requests_sampling(rig: Rig) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), "capital")
    (question,) = await call.questions()
    assert question["method"] == "sampling/createMessage"
    (message,) = question["params"]["messages"]
    assert message == {
        "role": "user",
        "content": {"type": "text", "text": "What is the capital of France?"},
    }
    assert question["params"]["maxTokens"] == 100
    call.answer(SAMPLE)
    assert await call.text() == "model-1 says Paris"


@rule("BP-166", "mcp.sampling.results-alone", "mcp.sampling.results-match")
async def test_sampling_request_has_tools_and_tool_results(rig: Rig) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), "with_tools")
    (question,) = await call.questions()
    params = question["params"]
    assert [each["name"] for each in params["tools"]] == ["weather"]
    assert params["toolChoice"] == {"mode": "auto"}
    blocks = [each["content"] for each in params["messages"]]
    kinds = [block["type"] if isinstance(block, dict) else block[0]["type"] for block in blocks]
    assert kinds == ["text", "tool_use", "tool_result"]
    use = {"type": "tool_use", "id": "use-2", "name": "weather", "input": {}}
    call.answer({**SAMPLE, "content": [use], "stopReason": "toolUse"})
    assert await call.text() == "toolUse"


@rule("F-29")
async def test_handler_requests_roots(rig: Rig) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), "folders")
    (question,) = await call.questions()
    assert question["method"] == "roots/list"
    call.answer(FOLDERS)
    assert json.loads(await call.text()) == ["file:///home/script"]


@rule("F-27", "F-28", "F-29", since=FORMS)
async def test_elicitation_sampling_and_roots_are_requested_concurrently(rig: Rig) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), "three")
    asked = await call.questions(3)
    assert [each["method"] for each in asked] == [
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
    ]
    call.answer(accept(name="Ada"), SAMPLE, FOLDERS)
    assert json.loads(await call.text()) == ["Ada", "Paris", "file:///home/script"]


@rule("F-28", since=FORMS)
async def test_handler_resumes_between_rounds_without_repeating_side_effects(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    key = f"steps-{raw.new_id()}"
    params = {"name": "stepwise", "arguments": {"key": key}}
    call = InteractiveCall(raw, "tools/call", params, progressToken=key)
    await call.questions()
    call.answer(accept(name="Ada"))
    (second,) = await call.questions()
    assert second["params"]["message"] == "ticket-1: which colour?"
    call.answer(accept(value="red"))
    assert await call.text() == "Ada likes red (ticket-1)"
    notes = await raw.text("noted", key=key)
    assert notes.count("drawn") == 1
    assert notes.count("ran") == (3 if rig.is_new else 1)
    # What was reported before a question is not reported again when the handler is.
    notified = [each["progress"] for each in raw.notifications("notifications/progress")]
    assert notified == [1, 2]


@rule("BP-047", "BP-133", "BP-036", since=FORMS, fresh=True)
@pytest.mark.parametrize(
    ("tool", "declared", "missing"),
    [
        ("hello", {}, {"elicitation": {}}),
        ("capital", {"elicitation": {}}, {"sampling": {}}),
        ("folders", {"sampling": {}}, {"roots": {}}),
    ],
)
async def test_undeclared_client_capability_fails_the_call_and_is_named(
    rig: Rig, tool: str, declared: dict[str, Any], missing: dict[str, Any]
) -> None:
    raw = await rig.line("asking", capabilities=declared)
    if rig.is_new:
        error = await raw.error("tools/call", {"name": tool})
        assert error["code"] == -32021
        assert error["data"]["requiredCapabilities"] == missing
    else:
        (name,) = missing
        failed = await raw.result("tools/call", {"name": tool})
        text = f"{tool!r} needs {name}, which the client does not support"
        assert (failed["isError"], failed["content"][0]["text"]) == (True, text)
    assert [each for each in await raw.settle() if "method" in each] == []


@rule("BP-164", "mcp.elicitation.declared-mode", fresh=True)
@pytest.mark.parametrize(
    ("tool", "declared", "missing"),
    [
        ("visit", {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("visit", {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
        ("hello", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("with_tools", {"sampling": {}}, {"sampling": {"tools": {}}}),
    ],
)
async def test_undeclared_elicitation_mode_is_not_requested(
    rig: Rig, tool: str, declared: dict[str, Any], missing: dict[str, Any]
) -> None:
    raw = await rig.line("asking", capabilities=declared)
    if rig.is_new:
        error = await raw.error("tools/call", {"name": tool})
        assert error["data"]["requiredCapabilities"] == missing
    else:
        assert (await raw.result("tools/call", {"name": tool}))["isError"] is True
    assert [each for each in await raw.settle() if "method" in each] == []


@rule("F-28", until=V2025_06_18)
async def test_handler_can_continue_if_elicitation_is_not_supported(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    assert await raw.text("hello_if_possible") == "without elicitation"
    assert (await raw.result("tools/call", {"name": "hello"}))["isError"] is True


async def declined(rig: Rig) -> str:
    """Return what a handler makes of a client that declines to sample."""
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, "capital")
    (question,) = await call.questions()
    error = {"code": -1, "message": "User rejected sampling request"}
    raw.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
    return await call.text()


@rule("K-76", until=NEW)
async def test_handler_gets_the_error_of_declined_sampling(rig: Rig) -> None:
    assert (await declined(rig)).startswith("-1 User rejected sampling request")


@rule("K-76", until=NEW)
async def test_handler_recognizes_declined_sampling_by_its_error_symbol(rig: Rig) -> None:
    assert (await declined(rig)).endswith("USER_REJECTED")


@rule("F-28", "F-38", since=FORMS, until=NEW)
@pytest.mark.parametrize("tool", ["hello", "hello_from_a_thread"])
async def test_cancelled_call_cancels_its_open_elicitation(rig: Rig, tool: str) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, tool)
    await call.questions()
    (question,) = [each for each in raw.received if "method" in each and "id" in each]
    raw.notify("notifications/cancelled", {"requestId": call.ids[0]})
    (notified,) = await raw.wait_for_notifications("notifications/cancelled")
    assert notified["requestId"] == question["id"]
    # What crosses it on the wire is of no consequence.
    raw.send({"jsonrpc": "2.0", "id": question["id"], "result": accept(name="Ada")})
    assert [each for each in await raw.settle() if each.get("id") == call.ids[0]] == []


@rule("F-28", since=FORMS, over=("stdio", "http", "asgi", "old-sse", "websocket"))
async def test_disconnect_during_elicitation_ends_the_waiting_handler(rig: Rig) -> None:
    raw = await rig.line("asking", capabilities=everything(rig.revision))
    for tool in ("hello", "hello_from_a_thread", "three"):
        await InteractiveCall.of_tool(raw, tool).questions(3 if tool == "three" else 1)
    await raw.wire.close()  # which fails if the server does not end, and well
    assert not raw.wire.is_open


@rule("F-28", since=FORMS)
async def test_elicitations_of_concurrent_calls_are_answered_in_any_order(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    calls = []
    for number in range(5):
        calls.append(InteractiveCall.of_tool(raw, "hello", greeting=f"Hello {number}"))
        await calls[-1].questions()
    for number, call in reversed(list(enumerate(calls))):
        call.answer(accept(name=f"name-{number}"))
    for number, call in enumerate(calls):
        assert await call.text() == f"Hello {number}, name-{number}!"


@rule("F-27", "BP-011", since="2025-03-26", until=FORMS)
async def test_batch_with_an_eliciting_call_is_answered_as_one_batch(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    asking = raw.request("tools/call", {"name": "capital"})
    other = raw.request("tools/call", {"name": "noted", "arguments": {"key": "x", "count": 0}})
    raw.send([asking, other])
    question = await raw.server_request("sampling/createMessage")
    raw.send({"jsonrpc": "2.0", "id": question["id"], "result": SAMPLE})
    batch = await raw.until(lambda each: isinstance(each, list))
    assert [each["id"] for each in batch] == [asking["id"], other["id"]]
    assert batch[0]["result"]["content"][0]["text"] == "model-1 says Paris"


@rule("BP-067", "BP-022", since=NEW, fresh=True)
async def test_requests_of_both_eras_on_one_connection_elicit_in_the_way_of_their_era(
    rig: Rig,
) -> None:
    raw = await rig.line("asking", opened=False)
    raw.revision = V2025_11_25
    await raw.shake_hands(capabilities=everything(V2025_11_25))
    old = InteractiveCall.of_tool(raw, "hello", greeting="Old")
    (asked,) = await old.questions()
    assert asked["params"]["mode"] == "form"
    raw.revision, raw.capabilities = NEW, everything(NEW)
    new = InteractiveCall.of_tool(raw, "hello", greeting="New")
    await new.round()
    new.answer(accept(name="Bea"))
    assert await new.text() == "New, Bea!"
    assert len([each for each in raw.received if "method" in each]) == 1
    raw.revision = V2025_11_25
    old.answer(accept(name="Ada"))
    assert await old.text() == "Old, Ada!"


# -- by our client, which answers the same in both eras --------------------------------------


@rule("F-28", since=FORMS)
async def test_client_answers_elicitation(rig: Rig) -> None:
    client, callbacks, _ = await rig.able_client("asking")
    callbacks.content = {"name": "Ada"}
    assert (await client.call_tool("hello")).text == "Hello, Ada!"
    (question,) = callbacks.questions
    assert question.message == "What is your name?"
    callbacks.content = {"name": "Bea"}
    assert (await client.call_tool("hello_from_a_thread")).text == "Hello, Bea!"


@rule("F-27", "F-29")
async def test_client_answers_sampling_and_roots(rig: Rig) -> None:
    client, callbacks, _ = await rig.able_client("asking")
    assert (await client.call_tool("capital")).text == "model-1 says a sample"
    assert callbacks.questions[0].max_tokens == 100
    folders = await client.call_tool("folders", result_type=list[str])
    assert folders.value == ["file:///home/script"]


@rule("F-27", "F-28", "F-29", since=FORMS)
async def test_client_answers_three_requests_at_once(rig: Rig) -> None:
    client, callbacks, _ = await rig.able_client("asking")
    callbacks.content = {"name": "Ada"}
    found = await client.call_tool("three", result_type=list[str])
    assert found.value == ["Ada", "a sample", "file:///home/script"]


@rule("F-28", "mcp.elicitation.mode-default", since=V2025_11_25)
async def test_client_answers_url_elicitation_and_sampling_with_tools(rig: Rig) -> None:
    client, callbacks, _ = await rig.able_client("asking")
    assert (await client.call_tool("visit")).text == "accept"
    assert callbacks.questions[0].url == PAGE_TO_VISIT
    assert (await client.call_tool("with_tools")).text == "None"
    assert callbacks.questions[1].tools[0].name == "weather"


@rule("F-28", since=FORMS)
async def test_client_completes_one_call_in_several_rounds(rig: Rig) -> None:
    key = f"ours-{rig.raw.new_id()}"
    reports: list[float] = []

    def answer(params: Any) -> dict[str, Any]:
        wanted = params.requested_schema["properties"]
        return {name: value for name, value in FILLED.items() if name in wanted}

    client = await rig.connect("asking", on_elicit=answer)
    result = await client.call_tool(
        "stepwise", {"key": key}, on_progress=lambda *report: reports.append(report[0])
    )
    assert result.text == "Ada likes red (ticket-1)"
    assert reports == [1, 2]


FILLED = {"name": "Ada", "value": "red"}


@rule("F-28", since=FORMS)
async def test_prompts_and_resources_can_elicit(rig: Rig) -> None:
    client, callbacks, _ = await rig.able_client("asking")
    callbacks.content = {"value": "trains"}
    prompt = await client.get_prompt("briefing")
    assert prompt.messages[0].content.text == "Say something about trains."
    callbacks.content = {"name": "Ada"}
    (contents,) = (await client.read_resource("note://asked")).contents
    assert contents.text == "for Ada"


@rule("F-28", since=FORMS)
async def test_client_does_not_send_content_that_does_not_match_the_schema(rig: Rig) -> None:
    client, callbacks, record = await rig.able_client("asking")
    callbacks.content = {"name": 5}
    count = len(record.lines)
    if rig.is_new:
        with pytest.raises(InputRequestFailed, match="user_name"):
            await client.call_tool("hello")
    else:
        assert (await client.call_tool("hello")).is_error
    sent = [line for who, line in record.lines[count:] if who == "client"]
    assert not any(b'"name":5' in line for line in sent)


@rule("K-76", fresh=True)
@pytest.mark.parametrize("policy", [None, "erlmcp"])
async def test_declined_sampling_has_the_error_code_of_the_profile(
    rig: Rig, policy: str | None
) -> None:
    def decline(_: Any) -> Any:
        raise RequestError("USER_REJECTED")

    chosen = {} if policy is None else {"policy": Policy.erlmcp()}
    variant = "asking" if policy is None else "asking-erlmcp"
    client, record = await rig.connect_recorded(
        variant, on_sample=decline, judged=policy is None, **chosen
    )
    if rig.is_new:
        # There is no place for an error among the answers, so the call is not sent again.
        with pytest.raises(InputRequestFailed) as caught:
            await client.call_tool("capital")
        assert caught.value.asked == "sampling/createMessage"
        assert sum(b"tools/call" in line for who, line in record.lines if who == "client") == 1
        return
    text = (await client.call_tool("capital")).text
    code = -1 if policy is None else -32046
    assert text.startswith(f"{code} "), text


@rule("BP-022", since=NEW)
async def test_server_of_2026_07_28_sends_no_requests(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, "three")
    await call.questions(3)
    assert [each for each in await raw.settle() if "method" in each] == []


@rule("BP-046", "BP-133", since=NEW)
async def test_client_capabilities_of_a_request_apply_to_it_alone(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    only_sampling = {f"{PREFIX}clientCapabilities": {"sampling": {}}}
    call = InteractiveCall(raw, "tools/call", {"name": "as_able"}, **only_sampling)
    (question,) = await call.questions()
    assert question["method"] == "sampling/createMessage"
    error = await raw.error("tools/call", {"name": "hello"}, **only_sampling)
    assert error["code"] == -32021
    both = InteractiveCall.of_tool(raw, "as_able")
    assert len(await both.questions(2)) == 2
