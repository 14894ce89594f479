"""The client of FastMCP, talking to a server of ours."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.exceptions import ToolError
from mcp.shared.exceptions import MCPError

from trunkline.spec.revisions import V2026_07_28, Window

from .checks import ANY, Checks, Place, expect, raised, until
from .menu import (
    ANSWERS,
    DECLINE,
    HELLO,
    INSTRUCTIONS,
    OUR_TOOLS,
    PIXEL,
    PROMPTS,
    RESOURCES,
    TEMPLATES,
    TOOLS,
)

__all__ = ["CHECKS", "Talk", "opened"]

HANDSHAKE = Window(until=V2026_07_28)
CHECKS = Checks()


class Talk:
    """One connection: the client, and what was heard on it."""

    def __init__(self, place: Place, mode: Any) -> None:
        self.logs: list[Any] = []
        self.client = Client(
            place.url,
            mode=mode,
            client_info=types.Implementation(name="theirs", version="4.1.4"),
            timeout=10,
            roots=["file:///home/oslo"],
            log_handler=self.on_log,
            elicitation_handler=self.elicit,
            sampling_handler=self.sample,
        )

    @property
    def revision(self) -> str:
        """The revision that is spoken."""
        return str(self.client.protocol_version)

    async def on_log(self, message: Any) -> None:
        """Take note of a line of the log."""
        self.logs.append(message)

    async def elicit(self, message: str, kind: Any, params: Any, context: Any) -> Any:
        """Fill in a form as far as there are answers."""
        if message == DECLINE:
            return ElicitResult(action="decline")
        return {each: ANSWERS[each] for each in params.requested_schema["properties"]}

    async def sample(self, messages: Any, params: Any, context: Any) -> str:
        """Answer as a model would."""
        content = messages[0].content
        block = content[0] if isinstance(content, list) else content
        return f"{block.text} That way."


@asynccontextmanager
async def opened(place: Place, mode: str) -> AsyncIterator[Talk]:
    """Open a connection; `mode` is "legacy" or "auto"."""
    talk = Talk(place, mode)
    async with talk.client:
        yield talk


async def _said(talk: Talk, name: str, arguments: dict[str, Any] | None = None) -> str:
    result = await talk.client.call_tool(name, arguments or {})
    return str(result.content[0].text)


@CHECKS.about(ANY)
async def the_server_says_who_it_is(talk: Talk) -> None:
    """Name, version, instructions and capabilities."""
    info = talk.client.server_info
    expect((info.name, info.version), ("ours", "1.0.0"))
    expect(talk.client.instructions, INSTRUCTIONS)
    expect(talk.client.server_capabilities.tools is not None, True, "tools")


@CHECKS.about(HANDSHAKE)
async def ping_is_answered(talk: Talk) -> None:
    """A ping has an empty answer."""
    expect(await talk.client.ping(), True)


@CHECKS.about(ANY)
async def everything_is_listed(talk: Talk) -> None:
    """All pages of the tools, resources, templates and prompts."""
    expect([tool.name for tool in await talk.client.list_tools()], [*TOOLS, *OUR_TOOLS])
    expect([str(each.uri) for each in await talk.client.list_resources()], list(RESOURCES))
    templates = await talk.client.list_resource_templates()
    expect([each.uri_template for each in templates], list(TEMPLATES))
    expect([each.name for each in await talk.client.list_prompts()], list(PROMPTS))


@CHECKS.about(ANY)
async def a_text_comes_back_as_it_went(talk: Talk) -> None:
    """Text of any kind survives both ways."""
    expect(await _said(talk, "echo", {"text": HELLO}), HELLO)


@CHECKS.about(ANY)
async def many_calls_at_once_are_told_apart(talk: Talk) -> None:
    """Each of fifty calls gets its own answer."""
    calls = (_said(talk, "add", {"a": number, "b": 1}) for number in range(50))
    expect(await asyncio.gather(*calls), [str(number + 1) for number in range(50)])


@CHECKS.about(ANY)
async def an_object_is_structured(talk: Talk) -> None:
    """FastMCP makes an object of it, by the schema that it listed."""
    data = (await talk.client.call_tool("forecast", {"city": "Oslo"})).data
    expect((data.city, data.days), ("Oslo", ["sun", "sun"]))


@CHECKS.about(ANY)
async def a_number_is_a_number(talk: Talk) -> None:
    """With a handshake a number is wrapped in an object, which FastMCP unwraps."""
    expect((await talk.client.call_tool("add", {"a": 1, "b": 2})).data, 3)


@CHECKS.about(ANY)
async def an_image_is_an_image(talk: Talk) -> None:
    """Bytes of an image arrive as such."""
    (block,) = (await talk.client.call_tool("picture")).content
    expect((block.type, block.mime_type, b64decode(block.data)), ("image", "image/png", PIXEL))


@CHECKS.about(ANY)
async def a_tool_that_fails_says_so(talk: Talk) -> None:
    """FastMCP raises what a tool says of its failure."""
    error = await raised(talk.client.call_tool("fails"), ToolError)
    expect("no luck today" in str(error), True, str(error))


@CHECKS.about(ANY)
async def what_is_not_there_is_an_error(talk: Talk) -> None:
    """A tool, a resource and a prompt."""
    missing = -32002 if HANDSHAKE.holds(talk.revision) else -32602
    for work, code in (
        (talk.client.call_tool("no_such_tool"), -32602),
        (talk.client.read_resource("note://missing"), missing),
        (talk.client.get_prompt("no_such_prompt"), -32602),
    ):
        error = await raised(work, MCPError)
        expect(error.error.code, code)


@CHECKS.about(ANY)
async def the_server_knows_who_is_asking(talk: Talk) -> None:
    """A handler is told the name of the client, and the revision."""
    expect(await _said(talk, "who"), f"theirs {talk.revision}")


@CHECKS.about(ANY)
async def progress_is_reported(talk: Talk) -> None:
    """Each step is told, in order."""
    heard: list[tuple[float, float | None, str | None]] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    await talk.client.call_tool("steps", {"count": 3}, progress_handler=step)
    await until(lambda: len(heard) >= 3, "third step")
    expect(heard, [(n, 3, f"step {n}") for n in (1, 2, 3)])


@CHECKS.about(HANDSHAKE)
async def the_log_begins_at_its_level(talk: Talk) -> None:
    """Only lines of the level that was asked for are sent."""
    await talk.client.set_logging_level("warning")
    await talk.client.call_tool("chatter")
    await until(lambda: len(talk.logs) >= 2, "second line")
    expect([line.level for line in talk.logs], ["warning", "error"])


@CHECKS.about(ANY)
async def a_call_that_takes_too_long_stops(talk: Talk) -> None:
    """A call that times out at the client is cancelled at the server."""
    before = int(await _said(talk, "given_up"))
    await raised(talk.client.call_tool("slow", timeout=0.5), MCPError)
    for _ in range(40):
        found = int(await _said(talk, "given_up"))
        if found > before:
            break
        await asyncio.sleep(0.05)
    expect(found, before + 1, "calls given up")


@CHECKS.about(ANY)
async def resources_are_read(talk: Talk) -> None:
    """Text, bytes, and one by a template."""
    (text,) = await talk.client.read_resource("note://hello")
    expect(text.text, HELLO)
    (pixel,) = await talk.client.read_resource("note://pixel")
    expect(b64decode(pixel.blob), PIXEL)
    (city,) = await talk.client.read_resource("city://Oslo")
    expect(city.text, "Oslo is a city.")


@CHECKS.about(ANY)
async def a_prompt_is_filled_in(talk: Talk) -> None:
    """A prompt, and the completion of an argument of it."""
    result = await talk.client.get_prompt("review", {"code": "x = 1", "style": "long"})
    expect(result.messages[0].content.text, "Review this in long form: x = 1")
    argument = {"name": "style", "value": "l"}
    found = await talk.client.complete(types.PromptReference(name="review"), argument)
    expect(found.values, ["long"])


@CHECKS.about(ANY)
async def the_user_of_the_client_is_asked(talk: Talk) -> None:
    """Forms, accepted and declined."""
    expect(await _said(talk, "ask_user"), "accept Oslo")
    expect(await _said(talk, "ask_user", {"message": DECLINE}), "decline None")
    expect(await _said(talk, "ask_form"), "Sunday 2 9.5 False Oslo")


@CHECKS.about(ANY)
async def the_model_and_the_roots_are_asked(talk: Talk) -> None:
    """What FastMCP makes of a sampling handler and of a list of roots."""
    said = await _said(talk, "ask_model")
    expect(said.endswith("said Which way? That way."), True, said)
    expect(await _said(talk, "ask_roots"), "file:///home/oslo")


@CHECKS.about(ANY)
async def one_question_follows_from_another(talk: Talk) -> None:
    """Three questions in a row."""
    wanted = "Oslo: What is Oslo? That way. accept, 1 sold"
    expect(await _said(talk, "ask_often"), wanted)
