"""Our client, talking to servers of the official SDK, and to old ones that know neither."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct

from trunkline import (
    Client,
    ConnectionLost,
    ErrorKind,
    PeerError,
    PendingCall,
    RequestError,
    RequestTimeout,
    Stdio,
    ToolFailed,
)
from trunkline.mcp.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    TextContent,
    ToolUseContent,
)
from trunkline.spec.revisions import (
    V2025_03_26,
    V2025_06_18,
    V2026_07_28,
    Window,
)

from .checks import ANY, Checks, Place, expect, raised, until
from .menu import (
    ANSWERS,
    DECLINE,
    DISMISS,
    HELLO,
    INSTRUCTIONS,
    LINK,
    NAMED,
    OFFICIAL_TOOLS,
    PIXEL,
    PROMPTS,
    REFUSE,
    RESOURCES,
    SOUND,
    STALL,
    TEMPLATES,
    TOOLS,
)
from .recordings import connections, first_method

__all__ = [
    "BUSY_CHECKS",
    "CHECKS",
    "HANDSHAKE",
    "OLD_CHECKS",
    "STRUCTURED",
    "Talk",
    "declared",
    "opened",
    "said",
    "until_given_up",
]

HANDSHAKE = Window(until=V2026_07_28)
STRUCTURED = Window(V2025_06_18)
CHECKS = Checks()
OLD_CHECKS = Checks()
BUSY_CHECKS = Checks()


class Forecast(Struct):
    """What the weather will be."""

    city: str
    days: list[str]


class Talk:
    """One connection: the client, what was heard on it, and what it was asked."""

    def __init__(
        self, place: Place, revision: str | None, probe_timeout: float, answers: bool
    ) -> None:
        self.place = place
        self.recording = place.recording
        self.logs: list[Any] = []
        self.lists: list[str] = []
        self.updated: list[str] = []
        self.others: list[str] = []
        self.asked: list[Any] = []
        # Recoveries: of a stream, a connection, a session.
        self.events: list[str] = []
        # Questions that nobody wanted an answer to any more.
        self.called_off = 0
        self.progress: list[tuple[float, float | None, str | None]] = []
        handlers: dict[str, Any] = {
            "roots": self.roots,
            "on_sample": self.sample,
            "sampling_tools": True,
            "on_elicit": self.elicit,
            "on_elicit_url": self.visit,
        }
        self.client = Client(
            place.url or Stdio(list(place.command)),
            revision=revision,
            name="ours",
            timeout=5.0,
            connect_timeout=10.0,
            probe_timeout=probe_timeout,
            on_log=self.logs.append,
            on_list_changed=self.lists.append,
            on_resource_updated=self.updated.append,
            on_notification=lambda method, params: self.others.append(method),
            on_event=lambda kind, text: self.events.append(kind),
            tasks=answers,
            **(handlers if answers else {}),
        )

    @property
    def revision(self) -> str:
        """The revision that is spoken."""
        return self.client.revision

    def step(self, progress: float, total: float | None, message: str | None) -> None:
        """Take note of a report of progress."""
        self.progress.append((progress, total, message))

    async def sample(self, params: CreateMessageRequestParams) -> CreateMessageResult:
        """Answer as a model would, which uses the first tool that it is given."""
        self.asked.append(params)
        if params.tools:
            use = ToolUseContent("1", {"city": "Oslo"}, params.tools[0].name)
            return CreateMessageResult([use], "oracle", "assistant", stop_reason="toolUse")
        content: Any = params.messages[0].content
        block = content[0] if isinstance(content, list) else content
        return CreateMessageResult(TextContent(f"{block.text} That way."), "oracle", "assistant")

    async def elicit(self, params: ElicitRequestParams) -> dict[str, Any] | str | None:
        """Fill in a form as far as there are answers."""
        self.asked.append(params)
        if params.message.startswith(NAMED):
            return {"city": params.message.removeprefix(NAMED)}
        if params.message == STALL:
            await self._stall()
        if params.message == REFUSE:
            raise RequestError(ErrorKind.USER_REJECTED)
        if params.message == DECLINE:
            return None
        if params.message == DISMISS:
            return "cancel"
        assert params.requested_schema is not None
        return {each: ANSWERS[each] for each in params.requested_schema["properties"]}

    async def _stall(self) -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            self.called_off += 1
            raise

    def visit(self, params: ElicitRequestParams) -> bool:
        """Agree to visit a page."""
        self.asked.append(params)
        return True

    def roots(self) -> list[str]:
        """Say where the client works."""
        self.asked.append("roots")
        return ["file:///home/oslo"]


@asynccontextmanager
async def opened(
    place: Place, revision: str | None, probe_timeout: float, *, answers: bool = True
) -> AsyncIterator[Talk]:
    """Open a connection, in a revision or in whichever is found.

    One that does not answer can be asked nothing, and says so.
    """
    talk = Talk(place, revision, probe_timeout, answers)
    async with talk.client:
        yield talk


async def said(talk: Talk, name: str, arguments: dict[str, Any] | None = None) -> str:
    """Return the text that a tool gives."""
    result = await talk.client.call_tool(name, arguments or {})
    expect(result.is_error, False, result.text)
    return result.text


def declared(talk: Talk, *names: str) -> None:
    """See that the server says that it can do something, before it is asked to."""
    found: Any = talk.client.server_capabilities
    for name in names:
        found = getattr(found, name, None)
    expect(found not in (None, False), True, f"the capability {'.'.join(names)}")


# -- opening ---------------------------------------------------------------------------------


@CHECKS.about(ANY)
async def the_server_says_who_it_is(talk: Talk) -> None:
    """Who it is, what it wants to be known, what it can do."""
    info = talk.client.server_info
    expect(info is not None and info.name.startswith("theirs"), True, str(info))
    expect(talk.client.instructions, INSTRUCTIONS)
    declared = talk.client.server_capabilities
    for name in ("tools", "resources", "prompts"):
        expect(getattr(declared, name) is not None, True, name)
    opening = talk.client.initialize_result
    expect(opening is not None, HANDSHAKE.holds(talk.revision), "a result of initialize")


@CHECKS.about(Window(V2026_07_28))
async def discover_tells_who_and_what(talk: Talk) -> None:
    """The result of `server/discover` arrives whole."""
    result = await talk.client.discover(fresh=True)
    expect(V2026_07_28 in result.supported_versions, True, "the newest is supported")
    expect(result.instructions, INSTRUCTIONS)


@CHECKS.about(HANDSHAKE)
async def ping_is_answered(talk: Talk) -> None:
    """A ping has an empty answer."""
    await talk.client.ping()


# -- lists -----------------------------------------------------------------------------------


@CHECKS.about(ANY)
async def tools_are_listed(talk: Talk) -> None:
    """All tools, in order, over all pages."""
    found = await talk.client.list_tools()
    expect([tool.name for tool in found], [*TOOLS, *OFFICIAL_TOOLS])
    tools = {tool.name: tool for tool in found}
    expect(tools["add"].input_schema["required"], ["a", "b"])
    if STRUCTURED.holds(talk.revision):
        expect(tools["forecast"].output_schema is not None, True, "an output schema")


@CHECKS.about(ANY)
async def resources_are_listed(talk: Talk) -> None:
    """All resources."""
    expect([each.uri for each in await talk.client.list_resources()], list(RESOURCES))


@CHECKS.about(ANY)
async def templates_are_listed(talk: Talk) -> None:
    """All templates."""
    found = await talk.client.list_resource_templates()
    expect([each.uri_template for each in found], list(TEMPLATES))


@CHECKS.about(ANY)
async def prompts_are_listed(talk: Talk) -> None:
    """All prompts."""
    expect([each.name for each in await talk.client.list_prompts()], list(PROMPTS))


@CHECKS.about(ANY)
async def a_list_has_pages(talk: Talk) -> None:
    """A first page of two tools, and a cursor to the next."""
    page = await talk.client.list_tools_page()
    expect(len(page.tools), 2, "tools on the first page")
    following = await talk.client.list_tools_page(page.next_cursor)
    expect([tool.name for tool in following.tools], list(TOOLS[2:4]))


# -- tools -----------------------------------------------------------------------------------


@CHECKS.about(ANY)
async def a_text_comes_back_as_it_went(talk: Talk) -> None:
    """Text of any kind survives both ways."""
    expect(await said(talk, "echo", {"text": HELLO}), HELLO)


@CHECKS.about(ANY)
async def many_calls_at_once_are_told_apart(talk: Talk) -> None:
    """Each of fifty calls gets its own answer."""
    calls = [talk.client.submit_tool("add", {"a": n, "b": 1}, result_type=int) for n in range(50)]
    expect([(await call).value for call in calls], list(range(1, 51)))


@CHECKS.about(ANY)
async def values_have_the_type_asked_for(talk: Talk) -> None:
    """A number, an object and a text, whatever the revision makes of them on the wire."""
    number = await talk.client.call_tool("add", {"a": 1, "b": 2}, result_type=int)
    expect(number.value, 3)
    weather = await talk.client.call_tool("forecast", {"city": "Oslo"}, result_type=Forecast)
    expect(weather.value, Forecast("Oslo", ["sun", "sun"]))
    text = await talk.client.call_tool("echo", {"text": HELLO}, result_type=str)
    expect(text.value, HELLO)


@CHECKS.about(ANY)
async def an_image_is_an_image(talk: Talk) -> None:
    """An image block."""
    (block,) = (await talk.client.call_tool("picture")).content
    expect((block.type, block.mime_type, b64decode(block.data)), ("image", "image/png", PIXEL))


@CHECKS.about(Window(V2025_03_26))
async def a_sound_is_a_sound(talk: Talk) -> None:
    """An audio block."""
    (block,) = (await talk.client.call_tool("sound")).content
    expect((block.type, block.mime_type, b64decode(block.data)), ("audio", "audio/wav", SOUND))


@CHECKS.about(STRUCTURED)
async def a_link_is_a_link(talk: Talk) -> None:
    """A resource link."""
    (block,) = (await talk.client.call_tool("link")).content
    expect((block.type, block.uri, block.title), ("resource_link", LINK, "An atlas"))


@CHECKS.about(ANY)
async def an_embedded_resource_is_one(talk: Talk) -> None:
    """A resource within a result."""
    (block,) = (await talk.client.call_tool("embedded")).content
    expect((block.type, block.resource.uri), ("resource", "note://hello"))
    expect((block.resource.text, block.resource.mime_type), (HELLO, "text/plain"))


@CHECKS.about(ANY)
async def a_tool_that_fails_says_so(talk: Talk) -> None:
    """A tool that ran and failed is a result, and its value raises."""
    result = await talk.client.call_tool("fails", result_type=str)
    expect((result.is_error, "no luck today" in result.text), (True, True))
    try:
        raise AssertionError(result.value)
    except ToolFailed as failed:
        expect("no luck today" in str(failed), True, str(failed))


@CHECKS.about(ANY)
async def bad_arguments_are_told(talk: Talk) -> None:
    """Arguments that do not fit are a result or an error, and one that can be read."""
    try:
        result = await talk.client.call_tool("add", {"a": 1})
    except PeerError as error:
        expect(error.code, -32602)
    else:
        expect((result.is_error, "b" in result.text), (True, True))


@CHECKS.about(ANY)
async def an_unknown_tool_is_refused(talk: Talk) -> None:
    """A tool that is not there is an error, -32602."""
    error = await raised(talk.client.call_tool("no_such_tool", {}), PeerError)
    expect(error.code, -32602)


@CHECKS.about(ANY)
async def an_unknown_method_is_refused(talk: Talk) -> None:
    """A method that is not there is an error, -32601."""
    error = await raised(talk.client.request("interop/no_such_method"), PeerError)
    expect(error.code, -32601)


@CHECKS.about(ANY)
async def the_server_knows_who_is_asking(talk: Talk) -> None:
    """A handler is told the name of the client, and the revision."""
    expect(await said(talk, "who"), f"ours {talk.revision}")


# -- meanwhile -------------------------------------------------------------------------------


@CHECKS.about(ANY)
async def progress_is_reported(talk: Talk) -> None:
    """Each step is told, in order."""
    await talk.client.call_tool("steps", {"count": 3}, on_progress=talk.step)
    await until(lambda: len(talk.progress) >= 3, "third step")
    heard = [(progress, total) for progress, total, _ in talk.progress]
    expect(heard, [(n, 3) for n in (1, 2, 3)])
    if talk.revision >= V2025_03_26:
        expect(talk.progress[-1][2], "step 3")


@CHECKS.about(ANY)
async def the_log_begins_at_its_level(talk: Talk) -> None:
    """Only lines of the level that was asked for are sent."""
    if HANDSHAKE.holds(talk.revision):
        declared(talk, "logging")
    await talk.client.set_logging_level("warning")
    talk.logs.clear()
    await talk.client.call_tool("chatter")
    await until(lambda: len(talk.logs) >= 2, "second line")
    found = [(line.level, line.data, line.logger) for line in talk.logs]
    wanted = [(level, f"this is {level}", "chatter") for level in ("warning", "error")]
    expect(found, wanted)


@CHECKS.about(ANY)
async def lines_of_the_log_are_heard(talk: Talk) -> None:
    """Whatever the level, an error is told."""
    talk.logs.clear()
    await talk.client.call_tool("chatter")
    await until(lambda: any(line.level == "error" for line in talk.logs), "line of an error")


@CHECKS.about(ANY)
async def a_call_that_is_cancelled_stops(talk: Talk) -> None:
    """The handler of a call that was given up is cancelled."""
    before = int(await said(talk, "given_up"))
    call = await _begun(talk)
    call.cancel()
    await until_given_up(talk, before + 1)


@CHECKS.about(ANY)
async def a_call_that_takes_too_long_stops(talk: Talk) -> None:
    """A call that times out here is cancelled there."""
    before = int(await said(talk, "given_up"))
    await raised(talk.client.call_tool("slow", timeout=0.5), RequestTimeout)
    await until_given_up(talk, before + 1)


async def _begun(talk: Talk) -> PendingCall[Any]:
    """Return a slow call, as soon as its handler is at work."""
    has_begun = asyncio.Event()
    call = talk.client.submit_tool("slow", on_progress=lambda *_: has_begun.set())
    await has_begun.wait()
    return call


async def until_given_up(talk: Talk, wanted: int) -> None:
    """See that so many handlers were cancelled."""
    # A handler is cancelled in its own time, beside what is asked next.
    for _ in range(20):
        found = int(await said(talk, "given_up"))
        if found >= wanted:
            break
        await asyncio.sleep(0.05)
    expect(found, wanted, "calls given up")


# -- resources, prompts, completion ----------------------------------------------------------


@CHECKS.about(ANY)
async def a_text_is_read(talk: Talk) -> None:
    """A resource of text."""
    (content,) = (await talk.client.read_resource("note://hello")).contents
    expect((content.uri, content.text), ("note://hello", HELLO))


@CHECKS.about(ANY)
async def bytes_are_read(talk: Talk) -> None:
    """A resource of bytes."""
    (content,) = (await talk.client.read_resource("note://pixel")).contents
    expect((b64decode(str(content.blob)), content.mime_type), (PIXEL, "image/png"))


@CHECKS.about(ANY)
async def a_template_is_read(talk: Talk) -> None:
    """A resource by a template."""
    (content,) = (await talk.client.read_resource("city://Oslo")).contents
    expect(content.text, "Oslo is a city.")


@CHECKS.about(ANY)
async def a_missing_resource_is_an_error(talk: Talk) -> None:
    """Whatever its number in the revision, its kind is that of a missing resource."""
    error = await raised(talk.client.read_resource("note://missing"), PeerError)
    code = -32002 if HANDSHAKE.holds(talk.revision) else -32602
    expect((error.code, error.data), (code, {"uri": "note://missing"}))


@CHECKS.about(ANY)
async def a_prompt_is_filled_in(talk: Talk) -> None:
    """Prompts of one message and of two."""
    result = await talk.client.get_prompt("review", {"code": "x = 1", "style": "long"})
    (message,) = result.messages
    wanted = ("user", "Review this in long form: x = 1")
    expect((message.role, message.content.text), wanted)
    result = await talk.client.get_prompt("greet", {"name": "Bo"})
    said = [(each.role, each.content.text) for each in result.messages]
    expect(said, [("user", "I am Bo."), ("assistant", HELLO)])


@CHECKS.about(ANY)
async def an_unknown_prompt_is_refused(talk: Talk) -> None:
    """A prompt that is not there is -32602."""
    error = await raised(talk.client.get_prompt("no_such_prompt", {}), PeerError)
    expect(error.code, -32602)


@CHECKS.about(ANY)
async def arguments_are_completed(talk: Talk) -> None:
    """Of a prompt, and of a template."""
    found = await talk.client.complete("style", "l", prompt="review", context={"code": "x"})
    expect(found.values, ["long"])
    found = await talk.client.complete("name", "O", resource="city://{name}")
    expect(found.values, ["Oslo", "Ottawa"])


# -- old servers -----------------------------------------------------------------------------


@OLD_CHECKS.about(ANY)
async def the_old_revision_is_spoken(talk: Talk) -> None:
    """The client settled for what the server has."""
    expect((talk.revision, talk.client.era), ("2024-11-05", "handshake"))


@OLD_CHECKS.about(ANY)
async def tools_are_listed_and_called(talk: Talk) -> None:
    """What came before does not confuse what comes now."""
    expect([tool.name for tool in await talk.client.list_tools()], ["hi"])
    expect(await said(talk, "hi"), "hi")


@OLD_CHECKS.about(ANY)
async def it_can_be_connected_to_again(talk: Talk) -> None:
    """A client that was closed connects anew."""
    await talk.client.close()
    await talk.client.connect()
    expect(await said(talk, "hi"), "hi")


@OLD_CHECKS.about(ANY)
async def its_era_is_remembered(talk: Talk) -> None:
    """The second connection began with `initialize`, without a question that is not answered."""
    first, second = connections(talk.recording)
    expect((first_method(first), first_method(second)), ("server/discover", "initialize"))


# -- closing in the middle -------------------------------------------------------------------


@BUSY_CHECKS.about(ANY)
async def it_closes_during_a_call(talk: Talk) -> None:
    """The call ends with the connection, at once, and the server with it."""
    call = await _begun(talk)
    await talk.client.close()
    await raised(call, ConnectionLost)
