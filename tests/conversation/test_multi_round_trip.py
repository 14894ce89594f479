"""Multi-round calls: input requests inside results, request states, and retries."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conversation.asking_app import ROUNDS
from tests.conversation.interactive_call import SAMPLE, InteractiveCall, accept
from tests.conversation.rig import PREFIX, Rig
from tests.conversation.rules import rule
from trunkline.errors import PeerError, TooManyRoundTrips
from trunkline.spec.revisions import V2026_07_28

NEW = V2026_07_28
CAPABILITIES = f"{PREFIX}clientCapabilities"


@rule("BP-131", "BP-132", "BP-015", since=NEW)
async def test_input_required_result_has_input_requests_by_key_and_a_request_state(
    rig: Rig,
) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, "hello")
    asked = await call.round()
    assert list(asked["inputRequests"]) == ["user_name"]
    assert asked["inputRequests"]["user_name"].keys() == {"method", "params"}
    assert isinstance(asked["requestState"], str)
    # Nothing that a complete result has, and nothing that could be kept.
    assert asked.keys() == {"resultType", "inputRequests", "requestState", "_meta"}
    assert asked["_meta"][f"{PREFIX}serverInfo"]["name"] == "asking"
    call.send_again({"user_name": accept(name="Ada")}, asked["requestState"])
    assert await call.text() == "Hello, Ada!"
    assert "requestState" not in await call.result()
    assert len(set(call.ids)) == 2


@rule("BP-132", since=NEW)
@pytest.mark.parametrize(
    ("tool", "key", "method"),
    [
        ("hello", "user_name", "elicitation/create"),
        ("capital", "capital_question", "sampling/createMessage"),
        ("folders", "client_roots", "roots/list"),
        ("visit", "pay", "elicitation/create"),
        # Without a key of the author's, the kind and its number.
        ("hello_from_a_thread", "elicitation-1", "elicitation/create"),
        ("with_tools", "sampling-1", "sampling/createMessage"),
    ],
)
async def test_input_request_has_the_key_given_by_the_handler(
    rig: Rig, tool: str, key: str, method: str
) -> None:
    asked = await InteractiveCall.of_tool(await rig.able_line("asking"), tool).round()
    assert {name: each["method"] for name, each in asked["inputRequests"].items()} == {key: method}


@rule("BP-131", "BP-137", since=NEW)
async def test_each_round_has_a_state_of_its_own_and_needs_only_its_own_answers(
    rig: Rig,
) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, "stepwise", key=f"rounds-{raw.new_id()}")
    first = await call.round()
    assert list(first["inputRequests"]) == ["step1"]
    call.answer(accept(name="Ada"))
    second = await call.round()
    assert list(second["inputRequests"]) == ["step2"]
    assert first["requestState"] != second["requestState"]
    call.answer(accept(value="red"))
    assert await call.text() == "Ada likes red (ticket-1)"


@rule("BP-138", since=NEW)
async def test_responses_under_wrong_keys_repeat_the_input_requests(rig: Rig) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), "hello")
    first = await call.round()
    call.send_again({"wrong_key": accept(name="Ada")}, first["requestState"])
    again = await call.round()
    assert again["inputRequests"] == first["inputRequests"]
    call.answer(accept(name="Ada"))
    assert await call.text() == "Hello, Ada!"


@rule("BP-138", since=NEW)
async def test_input_responses_under_unknown_keys_are_ignored(rig: Rig) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), "hello")
    state = (await call.round())["requestState"]
    extra = {"extra": accept(name="Eve"), "odd": 5, "user_name": accept(name="Ada")}
    call.send_again(extra, state)
    assert await call.text() == "Hello, Ada!"


@rule("BP-138", since=NEW)
async def test_unanswered_input_requests_are_repeated_in_the_next_round(rig: Rig) -> None:
    call = InteractiveCall.of_tool(await rig.able_line("asking"), "three")
    first = await call.round()
    call.send_again({"greeting": SAMPLE}, first["requestState"])
    second = await call.round()
    assert sorted(second["inputRequests"]) == ["client_roots", "user_name"]
    rest = {"user_name": accept(name="Ada"), "client_roots": {"roots": [{"uri": "file:///a"}]}}
    call.send_again(rest, second["requestState"])
    assert json.loads(await call.text()) == ["Ada", "Paris", "file:///a"]


@rule("BP-138", since=NEW)
async def test_answers_without_a_state_answer_only_what_has_a_key_of_its_own(rig: Rig) -> None:
    line = await rig.able_line("asking")
    call = InteractiveCall.of_tool(line, "hello")
    await call.round()
    call.send_again({"user_name": accept(name="Ada"), "extra": 5})
    assert await call.text() == "Hello, Ada!"
    call = InteractiveCall.of_tool(line, "hello_from_a_thread")
    (key,) = (await call.round())["inputRequests"]
    call.send_again({key: accept(name="Ada")})
    assert list((await call.round())["inputRequests"]) == [key]


@rule("BP-138", since=NEW)
@pytest.mark.parametrize(
    "responses",
    [
        5,
        None,
        [],
        "Ada",
        {"user_name": 5},
        {"user_name": None},
        {"user_name": {}},
        {"user_name": {"action": "perhaps"}},
        {"user_name": {"action": "accept", "content": "Ada"}},
        {"user_name": {"result": accept(name="Ada")}},
        {"user_name": SAMPLE},
    ],
    ids=lambda each: json.dumps(each)[:32],
)
async def test_malformed_answers_are_refused_and_the_state_is_good_for_a_better_one(
    rig: Rig, responses: Any
) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, "hello")
    state = (await call.round())["requestState"]
    call.send_again(responses, state)
    assert (await call.error())["code"] == -32602
    call.send_again({"user_name": accept(name="Ada")}, state)
    assert await call.text() == "Hello, Ada!"


@rule("SEC-31", since=NEW)
async def test_no_handler_runs_for_answers_or_a_state_that_are_refused(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    key = f"refused-{raw.new_id()}"
    call = InteractiveCall.of_tool(raw, "stepwise", key=key)
    state = (await call.round())["requestState"]
    for responses, brought in ({"step1": 5}, state), ({"step1": accept(name="Ada")}, state + "x"):
        call.send_again(responses, brought)
        assert (await call.error())["code"] == -32602
    assert await raw.text("noted", key=key) == ["ran"]


@rule("BP-138", since=NEW)
async def test_answers_to_a_tool_that_asks_nothing_are_ignored(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    params = {
        "name": "noted",
        "arguments": {"key": "nothing", "count": 0},
        "inputResponses": {"user_name": accept(name="Ada")},
    }
    assert (await raw.result("tools/call", params))["resultType"] == "complete"


SPOILT: list[Callable[[str], Any]] = [
    lambda state: f"{state}-TAMPERED",
    lambda state: state[:-1],
    lambda state: state[:10] + ("A" if state[10] != "A" else "B") + state[11:],
    lambda state: state[::-1],
    lambda state: "",
    lambda state: "x" * 100_000,
    lambda state: "é\x00\n",
    lambda state: 5,
    lambda state: [state],
]


@rule("mcp.rounds.state-untrusted", "mcp.rounds.state-protected", "SEC-31", since=NEW)
@pytest.mark.parametrize("spoil", SPOILT, ids=[str(number) for number in range(len(SPOILT))])
async def test_tampered_request_state_is_refused(rig: Rig, spoil: Callable[[str], Any]) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, "hello")
    state = (await call.round())["requestState"]
    call.send_again({"user_name": accept(name="Ada")}, spoil(state))
    error = await call.error()
    assert error["code"] == -32602
    assert "Hello" not in json.dumps(error)
    assert state not in json.dumps(error)


@rule("mcp.rounds.state-request-bound", "SEC-32", "BP-137", since=NEW)
async def test_request_state_of_another_request_is_refused(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, "hello")
    state = (await call.round())["requestState"]
    given = {"inputResponses": {"user_name": accept(name="Ada")}, "requestState": state}
    for params in (
        {"name": "three", **given},
        {"name": "hello", "arguments": {"greeting": "Bye"}, **given},
    ):
        assert (await raw.error("tools/call", params))["code"] == -32602
    prompt = {"name": "briefing", **given}
    assert (await raw.error("prompts/get", prompt))["code"] == -32602
    # What tells one attempt from the next does not count, nor how it is spelt.
    same = {"arguments": {}, "name": "hello", **given}
    result = await raw.result("tools/call", same, progressToken="other")
    assert result["content"][0]["text"] == "Hello, Ada!"


@rule("SEC-31", "BP-046", since=NEW, fresh=True)
async def test_a_state_is_good_on_another_connection_and_none_is_kept_for_it(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, "hello")
    state = (await call.round())["requestState"]
    other = await rig.line("asking", capabilities=raw.capabilities)
    params = {
        "name": "hello",
        "arguments": {},
        "inputResponses": {"user_name": accept(name="Ada")},
        "requestState": state,
    }
    # Another process has another key, and says so. What one server has sealed, it opens.
    assert (await other.error("tools/call", params))["code"] == -32602
    assert (await raw.result("tools/call", params))["content"][0]["text"] == "Hello, Ada!"
    assert (await raw.result("tools/call", params))["content"][0]["text"] == "Hello, Ada!"


@rule("BP-130", since=NEW)
async def test_a_prompt_and_a_resource_are_answered_with_questions_too(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    prompt = InteractiveCall(raw, "prompts/get", {"name": "briefing"})
    asked = await prompt.round()
    assert list(asked["inputRequests"]) == ["user_context"]
    prompt.answer(accept(value="trains"))
    (message,) = (await prompt.result())["messages"]
    assert message["content"]["text"] == "Say something about trains."
    read = InteractiveCall(raw, "resources/read", {"uri": "note://asked"})
    asked = await read.round()
    # An interim result says nothing of how long it may be kept.
    assert asked.keys().isdisjoint({"ttlMs", "cacheScope", "contents"})
    read.answer(accept(name="Ada"))
    assert (await read.result())["contents"][0]["text"] == "for Ada"


@rule("BP-130", since=NEW)
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("server/discover", {}),
        ("tools/list", {}),
        ("prompts/list", {}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "briefing"},
                "argument": {"name": "topic", "value": "t"},
            },
        ),
    ],
)
async def test_nothing_else_is_answered_with_questions(
    rig: Rig, method: str, params: dict[str, Any]
) -> None:
    raw = await rig.able_line("asking")
    for more in ({}, {"inputResponses": {"user_name": accept(name="Ada")}}):
        assert (await raw.result(method, {**params, **more}))["resultType"] == "complete"


@rule("BP-133", since=NEW)
@pytest.mark.parametrize(
    ("declared", "methods"),
    [
        ({"sampling": {}}, ["sampling/createMessage"]),
        ({"elicitation": {}}, ["elicitation/create"]),
        ({"elicitation": {"form": {}}}, ["elicitation/create"]),
        ({"elicitation": {}, "sampling": {}}, ["elicitation/create", "sampling/createMessage"]),
    ],
)
async def test_only_what_the_request_declared_is_asked(
    rig: Rig, declared: dict[str, Any], methods: list[str]
) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall(raw, "tools/call", {"name": "as_able"}, **{CAPABILITIES: declared})
    asked = (await call.round())["inputRequests"]
    assert [each["method"] for each in asked.values()] == methods


@rule("BP-047", "BP-133", since=NEW)
async def test_a_retry_that_no_longer_declares_what_is_needed_is_refused(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, "stepwise", key=f"less-{raw.new_id()}")
    state = (await call.round())["requestState"]
    params = {
        "name": "stepwise",
        "arguments": call.arguments,
        "inputResponses": {"step1": accept(name="Ada")},
        "requestState": state,
    }
    error = await raw.error("tools/call", params, **{CAPABILITIES: {}})
    assert error["code"] == -32021
    assert error["data"]["requiredCapabilities"] == {"elicitation": {}}


@rule("BP-131", since=NEW)
async def test_handler_with_too_many_rounds_is_ended(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    for times in (ROUNDS, ROUNDS + 1):
        call = InteractiveCall.of_tool(raw, "on_and_on", times=times)
        for _ in range(ROUNDS):
            await call.round()
            call.answer(accept(value=True))
        if times == ROUNDS:
            assert await call.text() == "enough"
        else:
            assert (await call.error())["code"] == -32603


@rule("BP-131", since=NEW)
async def test_many_calls_ask_side_by_side_and_none_gets_the_answers_of_another(
    rig: Rig,
) -> None:
    raw = await rig.able_line("asking")
    names = [f"name-{number}" for number in range(10)]
    calls = [InteractiveCall.of_tool(raw, "hello", greeting=name) for name in names]
    for call in calls:
        await call.round()
    for call, name in reversed(list(zip(calls, names, strict=True))):
        call.answer(accept(name=name.upper()))
    for call, name in zip(calls, names, strict=True):
        assert await call.text() == f"{name}, {name.upper()}!"


@rule("BP-075", "BP-153", since=NEW)
async def test_abandoned_round_leaves_no_state_on_the_server(rig: Rig) -> None:
    raw = await rig.able_line("asking")
    call = InteractiveCall.of_tool(raw, "hello")
    await call.round()
    # The request was answered, so there is nothing to cancel.
    raw.notify("notifications/cancelled", {"requestId": call.ids[0]})
    await raw.settle()
    call.answer(accept(name="Ada"))
    assert await call.text() == "Hello, Ada!"


# -- our client ------------------------------------------------------------------------------


@rule("BP-134", "BP-135", "BP-136", "BP-137", since=NEW)
async def test_our_client_sends_the_same_again_with_answers_and_state_under_a_new_id(
    rig: Rig,
) -> None:
    client, callbacks, record = await rig.able_client("asking")
    callbacks.content = {"name": "Ada"}
    count = len(record.lines)
    assert (await client.call_tool("hello", {"greeting": "Hey"})).text == "Hey, Ada!"
    lines = [(who, json.loads(line)) for who, line in record.lines[count:]]
    (_, first), (_, asked), (_, again), (_, done) = lines
    assert again["id"] != first["id"]
    expected = {
        **first["params"],
        "inputResponses": {"user_name": accept(name="Ada")},
        "requestState": asked["result"]["requestState"],
    }
    assert again["params"] == expected
    assert done["result"]["resultType"] == "complete"
    # And nothing of it goes into the next call.
    count = len(record.lines)
    await client.call_tool("noted", {"key": "none", "count": 0})
    assert b"requestState" not in record.lines[count][1]


@rule("BP-134", "BP-133", since=NEW, fresh=True)
async def test_our_client_declares_what_it_has_handlers_for(rig: Rig) -> None:
    client, record = await rig.connect_recorded("asking", on_sample=lambda _: None)
    with pytest.raises(PeerError, match="elicitation") as caught:
        await client.call_tool("hello")
    assert caught.value.code == -32021
    sent = [json.loads(line) for who, line in record.lines if who == "client"]
    declared = sent[-1]["params"]["_meta"][CAPABILITIES]
    assert declared["sampling"] == {}
    assert "elicitation" not in declared


@rule("BP-134", since=NEW, fresh=True)
async def test_client_stops_after_too_many_rounds(rig: Rig) -> None:
    client = await rig.connect("asking", max_rounds=2, on_elicit=lambda _: {"value": True})
    with pytest.raises(TooManyRoundTrips):
        await client.call_tool("on_and_on", {"times": 3})
    assert (await client.call_tool("on_and_on", {"times": 2})).text == "enough"


@rule("BP-146", since=NEW, fresh=True)
async def test_result_of_a_multi_round_read_is_not_cached(rig: Rig) -> None:
    names = iter(["Ada", "Bea"])
    client = await rig.connect("asking", on_elicit=lambda _: {"name": next(names)})
    for name in ("Ada", "Bea"):
        (contents,) = (await client.read_resource("note://asked")).contents
        assert contents.text == f"for {name}"
