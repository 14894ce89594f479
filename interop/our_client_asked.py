"""What servers of the official SDK ask our client, in either era, and how it answers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from trunkline import PeerError, RemoteProtocolError
from trunkline.errors import InputRequestFailed, TooManyRoundTrips
from trunkline.spec.revisions import V2025_11_25, V2026_07_28, Window

from .checks import ANY, Checks, expect, raised, until
from .menu import DECLINE, DISMISS, NAMED, PAGE, REFUSE, STALL
from .our_client import HANDSHAKE, STRUCTURED, Talk, said
from .recordings import sent

__all__ = ["CHECKS", "MUTE_CHECKS"]

PER_REQUEST = Window(V2026_07_28)
# Since when a user can be sent to a page, and a model be given tools.
WITH_PAGES = Window(V2025_11_25)
COMPLETE = "notifications/elicitation/complete"
CHECKS = Checks()
MUTE_CHECKS = Checks()


@CHECKS.about(ANY)
async def our_model_is_asked(talk: Talk) -> None:
    """The server asks for sampling."""
    expect(await said(talk, "ask_model"), "oracle said Which way? That way.")


@CHECKS.about(WITH_PAGES)
async def our_model_uses_a_tool(talk: Talk) -> None:
    """The server brings a tool along, and is told how our model wants it called."""
    expect(await said(talk, "ask_tool"), "toolUse forecast Oslo")


@CHECKS.about(ANY)
async def our_roots_are_asked(talk: Talk) -> None:
    """The server asks for the roots."""
    expect(await said(talk, "ask_roots"), "file:///home/oslo")


@CHECKS.about(STRUCTURED)
async def our_user_is_asked(talk: Talk) -> None:
    """The server asks for elicitation, and is told if the user agrees, or does not."""
    expect(await said(talk, "ask_user", {"message": "Which city?"}), "accept Oslo")
    expect(await said(talk, "ask_user", {"message": DECLINE}), "decline None")
    expect(await said(talk, "ask_user", {"message": DISMISS}), "cancel None")


@CHECKS.about(STRUCTURED)
async def our_user_fills_in_a_form(talk: Talk) -> None:
    """A form with a field of each kind."""
    expect(await said(talk, "ask_form"), "Sunday 2 9.5 False Oslo")


@CHECKS.about(WITH_PAGES)
async def our_user_chooses_several(talk: Talk) -> None:
    """A form whose answer is a list."""
    expect(await said(talk, "ask_choices"), "sauna dog")


@CHECKS.about(WITH_PAGES)
async def our_user_is_sent_to_a_page(talk: Talk) -> None:
    """An address, which has an id in one revision."""
    expect(await said(talk, "ask_page"), "accept")
    asked = talk.asked[-1]
    expect((asked.mode, asked.url), ("url", PAGE))
    has_id = HANDSHAKE.holds(talk.revision)
    expect(asked.elicitation_id is not None, has_id, "an id")
    if has_id:
        await until(lambda: COMPLETE in talk.others, "word that the user was there")
        talk.others.remove(COMPLETE)


@CHECKS.about(STRUCTURED)
async def one_question_follows_from_another(talk: Talk) -> None:
    """Three questions in a row: as many rounds, or as many requests."""
    wanted = "Oslo: What is Oslo? That way. accept, 1 sold"
    expect(await said(talk, "ask_often"), wanted)
    expect(len(_calls(talk, "ask_often")), 1 if HANDSHAKE.holds(talk.revision) else 4, "calls")


@CHECKS.about(STRUCTURED)
async def questions_are_asked_together(talk: Talk) -> None:
    """Three questions at once; where a round takes all of them, there is one."""
    expect(await said(talk, "ask_together"), "Oslo Which way? That way. file:///home/oslo")
    if PER_REQUEST.holds(talk.revision):
        calls = _calls(talk, "ask_together")
        expect([len(each.get("inputResponses", {})) for each in calls], [0, 3], "answers")


@CHECKS.about(PER_REQUEST)
async def a_call_without_a_question_is_made_again(talk: Talk) -> None:
    """A server that only gives a state out gets it back, character for character."""
    expect((await said(talk, "come_back")).startswith("back with "), True)
    first, second = _calls(talk, "come_back")
    expect(("requestState" in first, "inputResponses" in second), (False, False))
    expect(bool(second["requestState"]), True, "a state")


def _calls(talk: Talk, name: str) -> list[dict[str, Any]]:
    """Return the params of each call of a tool that went by."""
    found = (each["params"] for each in sent(talk.recording, "client", "tools/call"))
    return [each for each in found if each["name"] == name]


@CHECKS.about(STRUCTURED)
async def a_prompt_asks(talk: Talk) -> None:
    """What fills in a prompt asks our user first."""
    (message,) = (await talk.client.get_prompt("guide")).messages
    expect(message.content.text, "Guide me through Oslo.")


@CHECKS.about(STRUCTURED)
async def a_resource_asks(talk: Talk) -> None:
    """What reads a resource asks our user first, and is asked again the next time."""
    for _ in range(2):
        before = len(talk.asked)
        (content,) = (await talk.client.read_resource("safe://gold")).contents
        expect((content.text, len(talk.asked) - before), ("gold: accept", 1))


@CHECKS.about(STRUCTURED)
async def many_questions_at_once_are_told_apart(talk: Talk) -> None:
    """Each of twenty calls that ask gets the answer to its own question."""
    messages = [f"{NAMED}{number}" for number in range(20)]
    calls = (said(talk, "ask_user", {"message": message}) for message in messages)
    expect(await asyncio.gather(*calls), [f"accept {number}" for number in range(20)])


@CHECKS.about(STRUCTURED)
async def a_call_that_is_cancelled_calls_its_question_off(talk: Talk) -> None:
    """Nobody is asked any more for the sake of a call that was given up."""
    before, asked = talk.called_off, len(talk.asked)
    call = talk.client.submit_tool("ask_user", {"message": STALL})
    await until(lambda: len(talk.asked) > asked, "question")
    call.cancel()
    await until(lambda: talk.called_off > before, "end of the question")
    expect(await said(talk, "echo", {"text": "still here"}), "still here")


@CHECKS.about(STRUCTURED)
async def a_question_that_is_refused_ends_the_call(talk: Talk) -> None:
    """A handler of ours that refuses fails the tool, or the call, and nothing hangs."""
    call = talk.client.call_tool("ask_user", {"message": REFUSE})
    if PER_REQUEST.holds(talk.revision):
        failed = await raised(call, InputRequestFailed)
        expect(failed.asked, "elicitation/create")
    else:
        with suppress(PeerError):  # whether the tool fails or the call is the server's affair
            expect((await call).is_error, True)


@CHECKS.about(PER_REQUEST)
async def a_server_that_asks_without_end_is_left(talk: Talk) -> None:
    """A call that is answered with questions each time is given up."""
    await raised(talk.client.call_tool("ask_forever"), TooManyRoundTrips)
    expect(len(_calls(talk, "ask_forever")), 17, "calls")


@CHECKS.about(Window(V2025_11_25, V2026_07_28))
async def a_page_comes_first(talk: Talk) -> None:
    """The error that names the page that the user is to visit."""
    error = await raised(talk.client.call_tool("pay_first"), PeerError)
    (page,) = error.data["elicitations"]
    expect((error.code, page["url"]), (-32042, PAGE))


@CHECKS.about(HANDSHAKE)
async def that_roots_changed_may_be_told(talk: Talk) -> None:
    """The server takes word of new roots, and goes on."""
    talk.client.send_roots_list_changed()
    expect(await said(talk, "echo", {"text": "still here"}), "still here")


@CHECKS.about(PER_REQUEST)
async def nothing_is_answered_by_responses(talk: Talk) -> None:
    """All that a client sends is requests and notifications, and no server asks otherwise."""
    asked = [each["method"] for each in sent(talk.recording, "server") if "id" in each]
    expect(asked, [])


# -- a client that answers nothing -----------------------------------------------------------


@MUTE_CHECKS.about(ANY)
async def what_we_cannot_do_is_not_asked(talk: Talk) -> None:
    """The server says what is missing, and the connection goes on."""
    for name, missing in (("ask_model", "sampling"), ("ask_form", "elicitation")):
        error = await raised(talk.client.call_tool(name), PeerError)
        expect(error.code, -32021, name)
        expect(list(error.data["requiredCapabilities"]), [missing], name)
    expect(await said(talk, "echo", {"text": "still here"}), "still here")


@MUTE_CHECKS.about(ANY)
async def what_is_asked_all_the_same_is_not_answered(talk: Talk) -> None:
    """A question that was not declared to be welcome fails the call, and only the call."""
    call = talk.client.call_tool("ask_anyway")
    if PER_REQUEST.holds(talk.revision):
        await raised(call, RemoteProtocolError)
    else:
        with suppress(PeerError):  # as above
            expect((await call).is_error, True)
    expect(len(_calls(talk, "ask_anyway")), 1, "calls")
    expect(await said(talk, "echo", {"text": "still here"}), "still here")


@MUTE_CHECKS.about(ANY)
async def a_tool_that_takes_long_is_a_call(talk: Talk) -> None:
    """A client that has no tasks gets its result."""
    expect(await said(talk, "brew", {"cups": 3}), "3 cups")
