"""The chatbot of `tests/ports`, a client of ours, with the tools of an official server."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests.ports.servers.chatbot import Chatbot, UseTool, scripted
from trunkline.spec.revisions import V2025_06_18, Window

from .checks import Checks, Place, expect
from .menu import HELLO, TOOLS

__all__ = ["CHECKS", "opened"]

CHECKS = Checks()
SCRIPT: dict[str, list[UseTool | str]] = {
    "What is 2 and 3?": [UseTool("official.add", {"a": 2, "b": 3}), "It is {}."],
    "Say it again.": [
        UseTool("official.add", {"a": 2}),
        UseTool("official.echo", {"text": HELLO}),
        "{}",
    ],
    "Does it fail?": [UseTool("official.fails", {}), "{}"],
    "Is the other one there?": [UseTool("broken.echo", {}), "{}"],
}


class Talk(NamedTuple):
    """A chatbot, and the revision that it agreed on with the official server."""

    chatbot: Chatbot
    revision: str


@asynccontextmanager
async def opened(place: Place, pinned: str | None, probe: float) -> AsyncIterator[Talk]:
    """Start a chatbot with two servers, of which one does not start."""
    servers = {
        "official": list(place.command),
        "broken": [sys.executable, "-c", "import sys; sys.exit('no licence')"],
    }
    options = {"revision": pinned, "probe_timeout": probe}
    async with Chatbot(servers, scripted(SCRIPT), **options) as chatbot:
        yield Talk(chatbot, chatbot.clients["official"].revision or "")


@CHECKS.about(Window(V2025_06_18))
async def a_chatbot_has_the_tools_of_the_server(talk: Talk) -> None:
    """Every tool is there by the name of its server."""
    expected = {f"official.{tool}" for tool in TOOLS}
    expect(sorted(expected - talk.chatbot.tools.keys()), [], "missing")


@CHECKS.about(Window(V2025_06_18))
async def a_scripted_model_uses_them(talk: Talk) -> None:
    """Results come back to the model, and so do mistakes of its own."""
    expect(await talk.chatbot.ask("What is 2 and 3?"), "It is 5.")
    expect(await talk.chatbot.ask("Say it again."), HELLO)
    # The low-level server refuses such a call, MCPServer answers with a failed result.
    mistake = talk.chatbot.messages[-3].text
    expect(mistake.startswith(("failed: ", "refused: ")), True, f"a call without b: {mistake}")
    expect((await talk.chatbot.ask("Does it fail?")).startswith("failed: "), True, "fails")


@CHECKS.about(Window(V2025_06_18))
async def a_server_that_does_not_start_is_left_out(talk: Talk) -> None:
    """The others work without it, and its last words are kept."""
    expect(list(talk.chatbot.failed), ["broken"])
    expect("no licence" in talk.chatbot.failed["broken"], True, talk.chatbot.failed["broken"])
    answer = await talk.chatbot.ask("Is the other one there?")
    expect(answer, "There is no tool broken.echo.")
