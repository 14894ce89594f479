"""What our server asks the official client, in either era, and what it makes of the answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError

from trunkline.spec.revisions import V2025_06_18, V2025_11_25, V2026_07_28, Window

from .checks import ANY, Checks, expect, raised, until
from .menu import DECLINE, DISMISS, NAMED, PAGE, REFUSE, STALL
from .official_client import HANDSHAKE, STRUCTURED, WITH_PAGES, Talk, said
from .recordings import sent

__all__ = ["CHECKS", "MUTE_CHECKS"]

PER_REQUEST = Window(V2026_07_28)
CHECKS = Checks()
MUTE_CHECKS = Checks()


@CHECKS.about(ANY)
async def the_model_of_the_client_is_asked(talk: Talk) -> None:
    """A handler asks for sampling."""
    expect(await said(talk, "ask_model"), "oracle said Which way? That way.")


@CHECKS.about(WITH_PAGES)
async def the_model_of_the_client_uses_a_tool(talk: Talk) -> None:
    """A handler brings a tool along, and is told how the model wants it called."""
    expect(await said(talk, "ask_tool"), "toolUse forecast Oslo")
    (tool,) = talk.asked[-1].tools
    expect(tool.input_schema["required"], ["city"])


@CHECKS.about(ANY)
async def the_roots_of_the_client_are_asked(talk: Talk) -> None:
    """A handler asks for the roots."""
    expect(await said(talk, "ask_roots"), "file:///home/oslo")


@CHECKS.about(STRUCTURED)
async def the_user_of_the_client_is_asked(talk: Talk) -> None:
    """A handler asks for elicitation, and is told if the user agrees, or does not."""
    expect(await said(talk, "ask_user"), "accept Oslo")
    expect(await said(talk, "ask_user", {"message": DECLINE}), "decline None")
    expect(await said(talk, "ask_user", {"message": DISMISS}), "cancel None")


@CHECKS.about(STRUCTURED)
async def a_form_has_a_field_of_each_kind(talk: Talk) -> None:
    """A typed form is a schema that the SDK takes, and what it sends back is typed again."""
    expect(await said(talk, "ask_form"), "Sunday 2 9.5 False Oslo")
    schema = talk.asked[-1].requested_schema
    fields = {name: each["type"] for name, each in schema["properties"].items()}
    wanted = {"day": "string", "persons": "integer", "price": "number", "breakfast": "boolean"}
    expect(fields, {**wanted, "city": "string"})
    expect(schema["properties"]["day"]["enum"], ["Friday", "Sunday"])
    expect(sorted(schema["required"]), ["breakfast", "day", "persons", "price"])


@CHECKS.about(WITH_PAGES)
async def several_things_can_be_chosen(talk: Talk) -> None:
    """A form whose answer is a list."""
    expect(await said(talk, "ask_choices"), "sauna dog")


@CHECKS.about(WITH_PAGES)
async def the_user_is_sent_to_a_page(talk: Talk) -> None:
    """An address, which has an id in one revision."""
    expect(await said(talk, "ask_page"), "accept")
    asked = talk.asked[-1]
    expect((asked.mode, asked.url), ("url", PAGE))
    expect(bool(asked.elicitation_id), HANDSHAKE.holds(talk.revision), "an id")


@CHECKS.about(STRUCTURED)
async def one_question_follows_from_another(talk: Talk) -> None:
    """Three questions in a row, and what is done once between them is done once."""
    wanted = "Oslo: What is Oslo? That way. accept, 1 sold"
    expect(await said(talk, "ask_often"), wanted)
    expect(len(_calls(talk, "ask_often")), 1 if HANDSHAKE.holds(talk.revision) else 4, "calls")


@CHECKS.about(STRUCTURED)
async def questions_are_asked_together(talk: Talk) -> None:
    """Three questions at once; where a round takes all of them, there is one."""
    expect(await said(talk, "ask_together"), "Oslo Which way? That way. file:///home/oslo")
    calls = _calls(talk, "ask_together")
    if PER_REQUEST.holds(talk.revision):
        expect([len(each.get("inputResponses", {})) for each in calls], [0, 3], "answers")


def _calls(talk: Talk, name: str) -> list[dict[str, Any]]:
    """Return the params of each call of a tool that went by."""
    found = (each["params"] for each in sent(talk.recording, "client", "tools/call"))
    return [each for each in found if each["name"] == name]


@CHECKS.about(STRUCTURED)
async def a_prompt_asks(talk: Talk) -> None:
    """What fills in a prompt asks the user first."""
    (message,) = (await talk.caller.get_prompt("guide", {})).messages
    expect(message.content.text, "Guide me through Oslo.")


@CHECKS.about(STRUCTURED)
async def a_resource_asks(talk: Talk) -> None:
    """What reads a resource asks the user first."""
    (content,) = (await talk.caller.read_resource("safe://gold")).contents
    expect(content.text, "gold: accept")


@CHECKS.about(STRUCTURED)
async def many_questions_at_once_are_told_apart(talk: Talk) -> None:
    """Each of twenty calls that ask gets the answer to its own question."""
    messages = [f"{NAMED}{number}" for number in range(20)]
    calls = (said(talk, "ask_user", {"message": message}) for message in messages)
    expect(await asyncio.gather(*calls), [f"accept {number}" for number in range(20)])


@CHECKS.about(STRUCTURED)
async def a_call_that_is_cancelled_calls_its_question_off(talk: Talk) -> None:
    """Who asks in a call that was given up does not wait for the answer, and says so."""
    before, asked = talk.called_off, len(talk.asked)
    call = asyncio.create_task(talk.caller.call_tool("ask_user", {"message": STALL}))
    await until(lambda: len(talk.asked) > asked, "question")
    call.cancel()
    await until(lambda: talk.called_off > before, "end of the question")
    await asyncio.wait([call])
    expect(await said(talk, "echo", {"text": "still here"}), "still here")


@CHECKS.about(STRUCTURED)
async def a_question_that_is_refused_ends_the_call(talk: Talk) -> None:
    """A callback that gives an error fails the tool, or the call, and nothing hangs."""
    call = talk.caller.call_tool("ask_user", {"message": REFUSE})
    if PER_REQUEST.holds(talk.revision):
        expect((await raised(call, MCPError)).error.code, -1)
    else:
        expect((await call).is_error, True)


@CHECKS.about(STRUCTURED)
async def what_was_told_is_not_told_again(talk: Talk) -> None:
    """A handler that is run again reports each step once, and logs each line once."""
    heard: list[tuple[float, str | None]] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    talk.logs.clear()
    await talk.caller.call_tool("ask_steps", {}, progress_callback=step)
    await until(lambda: len(heard) >= 3 and len(talk.logs) >= 3, "third step")
    expect(heard, [(n, f"step {n}") for n in (1, 2, 3)])
    expect([line.data for line in talk.logs], [f"this is {n}" for n in (1, 2, 3)])


@CHECKS.about(Window(V2025_11_25, V2026_07_28))
async def a_page_comes_first(talk: Talk) -> None:
    """An error that names the page that the user is to visit is one that the SDK knows."""
    error = (await raised(talk.caller.call_tool("pay_first", {}), MCPError)).error
    (page,) = UrlElicitationRequiredError.from_error(error).elicitations
    expect((page.url, page.elicitation_id), (PAGE, "page-1"))


@CHECKS.about(PER_REQUEST)
async def a_round_can_be_driven_by_hand(talk: Talk) -> None:
    """The SDK shows the questions, and takes up again where it was, with the state it was given."""
    first = await talk.session.call_tool("ask_user", {}, allow_input_required=True)
    expect(type(first), types.InputRequiredResult)
    ((key, question),) = first.input_requests.items()
    expect((question.method, bool(first.request_state)), ("elicitation/create", True))
    answer = types.ElicitResult(action="accept", content={"city": "Rome"})
    last = await talk.session.call_tool(
        "ask_user", {}, input_responses={key: answer}, request_state=first.request_state
    )
    expect(last.content[0].text, "accept Rome")


@CHECKS.about(PER_REQUEST)
async def a_state_of_nobody_is_refused(talk: Talk) -> None:
    """A state that was not given out, or for another call, is -32602."""
    first = await talk.session.call_tool("ask_user", {}, allow_input_required=True)
    (key,) = first.input_requests
    answer = types.ElicitResult(action="accept", content={"city": "Rome"})
    for name, state in (("ask_user", "made up"), ("ask_form", first.request_state)):
        again = talk.session.call_tool(name, {}, input_responses={key: answer}, request_state=state)
        error = await raised(again, MCPError)
        expect(error.error.code, -32602, name)


@CHECKS.about(PER_REQUEST)
async def a_round_without_answers_is_asked_again(talk: Talk) -> None:
    """A call that brings its state and no answer is asked the same once more."""
    first = await talk.session.call_tool("ask_user", {}, allow_input_required=True)
    again = await talk.session.call_tool(
        "ask_user", {}, request_state=first.request_state, allow_input_required=True
    )
    expect(again.input_requests, first.input_requests)


@CHECKS.about(PER_REQUEST)
async def an_answer_that_does_not_fit_is_refused(talk: Talk) -> None:
    """What is no answer to the form is -32602."""
    first = await talk.session.call_tool("ask_user", {}, allow_input_required=True)
    (key,) = first.input_requests
    answer = types.ElicitResult(action="accept", content={"city": 7})
    again = talk.session.call_tool(
        "ask_user", {}, input_responses={key: answer}, request_state=first.request_state
    )
    expect((await raised(again, MCPError)).error.code, -32602)


@CHECKS.about(PER_REQUEST)
async def nothing_is_asked_by_requests(talk: Talk) -> None:
    """All that a server sends is answers and notifications."""
    asked = [each["method"] for each in sent(talk.recording, "server") if "id" in each]
    expect(asked, [])


@CHECKS.about(Window(until=V2025_06_18))
async def a_user_who_cannot_be_asked_is_not(talk: Talk) -> None:
    """In revisions without elicitation the tool fails, and its text says what is missing."""
    await _fails_without(talk, "ask_user", "elicitation/create")


# -- a client that answers nothing -----------------------------------------------------------


@MUTE_CHECKS.about(ANY)
async def what_the_client_cannot_do_is_not_asked(talk: Talk) -> None:
    """The error, or the text of the failed tool, names what is missing; the connection goes on."""
    for name, needed in (
        ("ask_model", {"sampling": {}}),
        ("ask_user", {"elicitation": {}}),
        ("ask_page", {"elicitation": {"url": {}}}),
        ("ask_roots", {"roots": {}}),
    ):
        if HANDSHAKE.holds(talk.revision):
            await _fails_without(talk, name, next(iter(needed)))
        else:
            await _is_missing(talk, name, needed, -32021)
    expect(await said(talk, "echo", {"text": "still here"}), "still here")


@MUTE_CHECKS.about(ANY)
async def a_tool_that_takes_long_is_a_call(talk: Talk) -> None:
    """A client that has no tasks gets its result."""
    expect(await said(talk, "brew", {"cups": 3}), "3 cups")


@MUTE_CHECKS.about(ANY)
async def a_tool_that_is_a_task_or_nothing_is_refused(talk: Talk) -> None:
    """A client that has no tasks is told that it needs them."""
    if PER_REQUEST.holds(talk.revision):
        needed = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        await _is_missing(talk, "brew_only", needed, -32021)
    else:
        error = await raised(talk.caller.call_tool("brew_only", {}), MCPError)
        expect(error.error.code, -32601)


async def _fails_without(talk: Talk, name: str, needed: str) -> None:
    result = await talk.caller.call_tool(name, {})
    expect((result.is_error, needed in result.content[0].text), (True, True), name)


async def _is_missing(talk: Talk, name: str, wanted: dict[str, Any], code: int) -> None:
    error = (await raised(talk.caller.call_tool(name, {}), MCPError)).error
    data = types.MissingRequiredClientCapabilityErrorData.model_validate(error.data)
    found = data.required_capabilities.model_dump(by_alias=True, exclude_none=True)
    expect((error.code, json.dumps(found)), (code, json.dumps(wanted)), name)
