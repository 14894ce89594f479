"""The client of the official SDK, talking to a server of ours.

The checks use its `ClientSession`, which its `Client` is made of: a session can be asked to
open in any revision, where `Client` has "legacy", "auto" and the newest only.
"""

from __future__ import annotations

import asyncio
import warnings
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import ceil
from typing import Any, TextIO

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from trunkline.spec.revisions import (
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    Window,
)

from .checks import ANY, Checks, Place, expect, leaf, raised, until
from .menu import (
    ANSWERS,
    DECLINE,
    DISMISS,
    HELLO,
    INSTRUCTIONS,
    LINK,
    NAMED,
    OUR_TOOLS,
    PIXEL,
    PROMPTS,
    REFUSE,
    RESOURCES,
    SOUND,
    STALL,
    TEMPLATES,
    TOOLS,
)
from .official_tasks import TaskExtension

__all__ = [
    "BUSY_CHECKS",
    "CHECKS",
    "HANDSHAKE",
    "REFUSED_CHECKS",
    "STRUCTURED",
    "WITH_PAGES",
    "Talk",
    "every",
    "opened",
    "refused",
    "said",
    "until_given_up",
]

# What is deprecated still has to work.
warnings.simplefilter("ignore", MCPDeprecationWarning)

HANDSHAKE = Window(until=V2026_07_28)
STRUCTURED = Window(V2025_06_18)
# Since when a user can be sent to a page, and a model be given tools.
WITH_PAGES = Window(V2025_11_25)
CHECKS = Checks()
BUSY_CHECKS = Checks()
REFUSED_CHECKS = Checks()


class Talk:
    """One connection: the session, and what was heard on it and asked by it."""

    def __init__(self, place: Place) -> None:
        self.recording = place.recording
        self.is_http = bool(place.url)
        # A `Client` where it speaks the revision, or else a session: they have verbs in common.
        self.caller: Any = None
        self.session: Any = None
        # What a session is made of, where there is no `Client`.
        self.dispatcher: JSONRPCDispatcher[Any] | None = None
        self.revision = ""
        self.logs: list[types.LoggingMessageNotificationParams] = []
        self.notes: list[Any] = []
        self.acknowledged: list[types.SubscriptionFilter] = []
        self.asked: list[Any] = []
        # Questions that nobody wanted an answer to any more.
        self.called_off = 0
        self.tasks = TaskExtension()
        self.faults: list[Exception] = []
        self.refusal: Any = None
        self.left_behind: list[asyncio.Task[Any]] = []

    async def on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Take note of a line of the log."""
        self.logs.append(params)

    async def on_message(self, message: Any) -> None:
        """Take note of a notification, or of a line that the SDK could not read."""
        if isinstance(message, Exception):
            self.faults.append(message)
            return
        self.notes.append(message.method)
        if isinstance(message, types.SubscriptionsAcknowledgedNotification):
            self.acknowledged.append(message.params.notifications)

    async def sample(self, context: Any, params: Any) -> Any:
        """Answer as a model would, which uses the first tool that it is given."""
        self.asked.append(params)
        if params.tools:
            use = types.ToolUseContent(id="1", name=params.tools[0].name, input={"city": "Oslo"})
            return types.CreateMessageResultWithTools(
                role="assistant", content=[use], model="oracle", stop_reason="toolUse"
            )
        # One message of one block is all that is asked, though a later revision has lists.
        content = params.messages[0].content
        block = content[0] if isinstance(content, list) else content
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(text=f"{block.text} That way."),
            model="oracle",
        )

    async def elicit(self, context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        """Fill in a form as far as there are answers, or agree to visit a page."""
        self.asked.append(params)
        if isinstance(params, types.ElicitRequestURLParams):
            return types.ElicitResult(action="accept")
        if params.message.startswith(NAMED):
            named = params.message.removeprefix(NAMED)
            return types.ElicitResult(action="accept", content={"city": named})
        if params.message == STALL:
            await self._stall()
        if params.message == REFUSE:
            return types.ErrorData(code=-1, message="not this user")
        if params.message == DECLINE:
            return types.ElicitResult(action="decline")
        if params.message == DISMISS:
            return types.ElicitResult(action="cancel")
        wanted = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={each: ANSWERS[each] for each in wanted})

    async def _stall(self) -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            self.called_off += 1
            raise

    async def roots(self, context: Any) -> types.ListRootsResult:
        """Say where the client works."""
        self.asked.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/oslo")])


@asynccontextmanager
async def opened(
    place: Place, mode: str, log: TextIO, *, answers: bool = True
) -> AsyncIterator[Talk]:
    """Open a connection; `mode` is one that `Client` has, or a revision with a handshake.

    One that does not answer can be asked nothing, and says so.
    """
    talk = Talk(place)
    async with _opened(talk, place, mode, log, answers):
        yield talk
    await asyncio.gather(*talk.left_behind, return_exceptions=True)


@asynccontextmanager
async def _opened(
    talk: Talk, place: Place, mode: str, log: TextIO, answers: bool
) -> AsyncIterator[None]:
    callbacks: dict[str, Any] = {
        "logging_callback": talk.on_log,
        "message_handler": talk.on_message,
        "client_info": types.Implementation(name="theirs", version="2.3.0"),
        "log_level": "warning",
    }
    if answers:
        tools = types.SamplingToolsCapability()
        callbacks |= {
            "sampling_callback": talk.sample,
            "sampling_capabilities": types.SamplingCapability(tools=tools),
            "elicitation_callback": talk.elicit,
            "list_roots_callback": talk.roots,
        }
    transport = _transport(place, log)
    if HANDSHAKE.holds(mode):
        async with transport as streams:
            talk.dispatcher = JSONRPCDispatcher(*streams)
            async with ClientSession(dispatcher=talk.dispatcher, **callbacks) as session:
                await _shake_hands(session, mode)
                talk.caller = talk.session = session
                talk.revision = session.protocol_version or ""
                yield
    else:
        extensions = [talk.tasks] if answers else []
        async with Client(transport, mode=mode, extensions=extensions, **callbacks) as client:
            talk.caller, talk.session = client, client.session
            talk.revision = client.protocol_version
            yield


def _transport(place: Place, log: TextIO) -> Any:
    if place.url.endswith("/sse"):
        return sse_client(place.url)
    if place.url:
        return streamable_http_client(place.url)
    command, *arguments = place.command
    return stdio_client(StdioServerParameters(command=command, args=arguments), log)


@asynccontextmanager
async def refused(place: Place, log: TextIO) -> AsyncIterator[Talk]:
    """Try to open a connection by a handshake that is refused; nothing is left to close."""
    talk = Talk(place)
    talk.refusal = await raised(_try(talk, place, log), MCPError)
    yield talk


async def _try(talk: Talk, place: Place, log: TextIO) -> None:
    try:
        async with _opened(talk, place, "legacy", log, True):
            pass
    except ExceptionGroup as group:
        raise leaf(group) from None


async def _shake_hands(session: ClientSession, revision: str) -> None:
    """Do what `ClientSession.initialize` does, in a revision that is not its newest."""
    params = types.InitializeRequestParams(
        protocol_version=revision,
        capabilities=types.ClientCapabilities(
            sampling=_sampling(revision),
            elicitation=_elicitation(revision),
            roots=types.RootsCapability(list_changed=True),
        ),
        client_info=types.Implementation(name="theirs", version="2.3.0"),
    )
    result = await session.send_request(
        types.InitializeRequest(params=params), types.InitializeResult
    )
    session.adopt(result)
    await session.send_notification(types.InitializedNotification())


def _sampling(revision: str) -> types.SamplingCapability:
    if WITH_PAGES.holds(revision):
        return types.SamplingCapability(tools=types.SamplingToolsCapability())
    return types.SamplingCapability()


def _elicitation(revision: str) -> types.ElicitationCapability | None:
    if WITH_PAGES.holds(revision):
        form, url = types.FormElicitationCapability(), types.UrlElicitationCapability()
        return types.ElicitationCapability(form=form, url=url)
    return types.ElicitationCapability() if STRUCTURED.holds(revision) else None


async def every(listing: Any, member: str) -> tuple[list[Any], int]:
    """Return what all pages hold, and how many there are."""
    found: list[Any] = []
    cursor, pages = None, 0
    while pages < 100:
        page = await listing(params=types.PaginatedRequestParams(cursor=cursor))
        found += getattr(page, member)
        pages += 1
        cursor = page.next_cursor
        if cursor is None:
            break
    return found, pages


async def _one(talk: Talk, name: str, arguments: dict[str, Any] | None = None) -> Any:
    """Return the only block of what a tool gives."""
    result = await talk.caller.call_tool(name, arguments or {})
    expect((len(result.content), bool(result.is_error)), (1, False), "blocks, and failure")
    return result.content[0]


async def said(talk: Talk, name: str, arguments: dict[str, Any] | None = None) -> str:
    """Return the text that a tool gives."""
    return str((await _one(talk, name, arguments)).text)


# -- opening ---------------------------------------------------------------------------------


@CHECKS.about(HANDSHAKE)
async def initialize_tells_who_and_what(talk: Talk) -> None:
    """The result of `initialize` arrives whole."""
    result = talk.session.initialize_result
    expect((result.server_info.name, result.server_info.version), ("ours", "1.0.0"))
    expect(result.instructions, INSTRUCTIONS)
    declared = result.capabilities
    expect(declared.tools.list_changed, True, "tools.listChanged")
    expect(declared.resources.subscribe, True, "resources.subscribe")
    expect(declared.logging is not None, True, "logging")
    known = talk.revision >= V2025_03_26
    expect(declared.completions is not None, known, "completions")


@CHECKS.about(Window(V2026_07_28))
async def discover_tells_who_and_what(talk: Talk) -> None:
    """The result of `server/discover` arrives whole."""
    result = types.DiscoverResult.model_validate(await talk.session.send_discover(V2026_07_28))
    expect(V2026_07_28 in result.supported_versions, True, "the newest is supported")
    expect(result.instructions, INSTRUCTIONS)
    expect(result.capabilities.tools is not None, True, "tools")
    stamp = (result.meta or {}).get("io.modelcontextprotocol/serverInfo", {})
    expect((stamp.get("name"), stamp.get("version")), ("ours", "1.0.0"))


@CHECKS.about(HANDSHAKE)
async def ping_is_answered(talk: Talk) -> None:
    """A ping has an empty answer."""
    await talk.session.send_ping()


# -- lists -----------------------------------------------------------------------------------


@CHECKS.about(ANY)
async def tools_are_listed_in_pages(talk: Talk) -> None:
    """All tools, in order, two to a page."""
    found, pages = await every(talk.session.list_tools, "tools")
    expect([tool.name for tool in found], [*TOOLS, *OUR_TOOLS])
    expect(pages, ceil(len(found) / 2), "pages")
    tools = {tool.name: tool for tool in found}
    expect(tools["add"].input_schema["required"], ["a", "b"])
    output = tools["add"].output_schema
    if talk.revision < V2025_06_18:
        expect(output, None)
    elif talk.revision < V2026_07_28:
        expect(output["properties"]["result"]["type"], "integer")
    else:
        expect(output["type"], "integer")
    execution = tools["brew"].execution
    wanted = "optional" if talk.revision == V2025_11_25 else None
    expect(execution and execution.task_support, wanted, "whether it may be a task")


@CHECKS.about(ANY)
async def resources_are_listed_in_pages(talk: Talk) -> None:
    """All resources, two to a page."""
    found, pages = await every(talk.session.list_resources, "resources")
    expect(([str(each.uri) for each in found], pages), (list(RESOURCES), 2))


@CHECKS.about(ANY)
async def templates_are_listed_in_pages(talk: Talk) -> None:
    """All templates, two to a page."""
    found, pages = await every(talk.session.list_resource_templates, "resource_templates")
    expect(([each.uri_template for each in found], pages), (list(TEMPLATES), 2))


@CHECKS.about(ANY)
async def prompts_are_listed_in_pages(talk: Talk) -> None:
    """All prompts, two to a page."""
    found, pages = await every(talk.session.list_prompts, "prompts")
    expect(([each.name for each in found], pages), (list(PROMPTS), 2))
    needed = {each.name: each.required for each in found[0].arguments}
    expect(bool(needed["code"]) and not needed["style"], True, "what is required")


@CHECKS.about(ANY)
async def a_cursor_of_nobody_is_refused(talk: Talk) -> None:
    """A cursor that was not given out is -32602."""
    params = types.PaginatedRequestParams(cursor="never given out")
    error = await raised(talk.session.list_tools(params=params), MCPError)
    expect(error.error.code, -32602)


# -- tools -----------------------------------------------------------------------------------


@CHECKS.about(ANY)
async def a_text_comes_back_as_it_went(talk: Talk) -> None:
    """Text of any kind survives both ways."""
    expect(await said(talk, "echo", {"text": HELLO}), HELLO)


@CHECKS.about(ANY)
async def many_calls_at_once_are_told_apart(talk: Talk) -> None:
    """Each of fifty calls gets its own answer."""
    sums: dict[int, str] = {}

    async def add(number: int) -> None:
        sums[number] = await said(talk, "add", {"a": number, "b": 1})

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(add, number)
    expect(sums, {number: str(number + 1) for number in range(50)})


@CHECKS.about(ANY)
async def a_number_is_structured(talk: Talk) -> None:
    """A number is text, and structured as far as the revision has it."""
    result = await talk.session.call_tool("add", {"a": 1, "b": 2})
    expect(result.content[0].text, "3")
    wanted: Any = None
    if STRUCTURED.holds(talk.revision):
        wanted = 3 if talk.revision == V2026_07_28 else {"result": 3}
    expect(result.structured_content, wanted)


@CHECKS.about(STRUCTURED)
async def an_object_is_structured(talk: Talk) -> None:
    """An object is structured as it is; the SDK checks it against the schema that it listed."""
    result = await talk.session.call_tool("forecast", {"city": "Oslo"})
    expect(result.structured_content, {"city": "Oslo", "days": ["sun", "sun"]})


@CHECKS.about(ANY)
async def an_image_is_an_image(talk: Talk) -> None:
    """Bytes of an image arrive as such."""
    block = await _one(talk, "picture")
    expect((block.type, block.mime_type, b64decode(block.data)), ("image", "image/png", PIXEL))


@CHECKS.about(ANY)
async def a_sound_is_a_sound(talk: Talk) -> None:
    """Bytes of a sound arrive as such, or in a resource where the revision has no sounds."""
    block = await _one(talk, "sound")
    if talk.revision >= V2025_03_26:
        expect((block.type, b64decode(block.data)), ("audio", SOUND))
        expect(block.mime_type in ("audio/wav", "audio/x-wav"), True, block.mime_type)
    else:
        expect((block.type, b64decode(block.resource.blob)), ("resource", SOUND))


@CHECKS.about(ANY)
async def a_link_is_a_link(talk: Talk) -> None:
    """A link arrives as such, or as a text that names it where the revision has no links."""
    block = await _one(talk, "link")
    if STRUCTURED.holds(talk.revision):
        expect((block.type, str(block.uri), block.title), ("resource_link", LINK, "An atlas"))
    else:
        expect((block.type, LINK in block.text), ("text", True))


@CHECKS.about(ANY)
async def an_embedded_resource_is_one(talk: Talk) -> None:
    """A resource within a result arrives as such."""
    block = await _one(talk, "embedded")
    expect((block.type, str(block.resource.uri)), ("resource", "note://hello"))
    expect((block.resource.text, block.resource.mime_type), (HELLO, "text/plain"))


@CHECKS.about(ANY)
async def a_tool_that_fails_says_so(talk: Talk) -> None:
    """A tool that ran and failed is a result."""
    result = await talk.session.call_tool("fails", {})
    expect((result.is_error, result.content[0].text), (True, "no luck today"))


@CHECKS.about(ANY)
async def bad_arguments_are_named(talk: Talk) -> None:
    """Arguments that do not fit are a result since 2025-11-25, an error before."""
    call = talk.session.call_tool("add", {"a": "one", "b": 2})
    if talk.revision >= V2025_11_25:
        result = await call
        expect(result.is_error, True)
        text = result.content[0].text
    else:
        error = await raised(call, MCPError)
        expect(error.error.code, -32602)
        text = error.error.message
    expect('"a"' in text or "'a'" in text, True, text)


@CHECKS.about(ANY)
async def an_unknown_tool_is_refused(talk: Talk) -> None:
    """A tool that is not there is an error, -32602."""
    error = await raised(talk.session.call_tool("no_such_tool", {}), MCPError)
    expect((error.error.code, "no_such_tool" in error.error.message), (-32602, True))


@CHECKS.about(ANY)
async def the_server_knows_who_is_asking(talk: Talk) -> None:
    """A handler is told the name of the client, and the revision."""
    expect(await said(talk, "who"), f"theirs {talk.revision}")


# -- meanwhile -------------------------------------------------------------------------------


@CHECKS.about(ANY)
async def progress_is_reported(talk: Talk) -> None:
    """Each step is told, in order, and before the result."""
    heard: list[tuple[float, float | None, str | None]] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    await talk.session.call_tool("steps", {"count": 3}, progress_callback=step)
    await until(lambda: len(heard) >= 3, "third step")
    known = talk.revision >= V2025_03_26
    expect(heard, [(n, 3, f"step {n}" if known else None) for n in (1, 2, 3)])


@CHECKS.about(ANY)
async def the_log_begins_at_its_level(talk: Talk) -> None:
    """Only lines of the level that was asked for are sent."""
    if HANDSHAKE.holds(talk.revision):
        await talk.session.set_logging_level("warning")
    talk.logs.clear()
    await talk.session.call_tool("chatter", {})
    await until(lambda: len(talk.logs) >= 2, "second line")
    found = [(line.level, line.data, line.logger) for line in talk.logs]
    wanted = [(level, f"this is {level}", "chatter") for level in ("warning", "error")]
    expect(found, wanted)


@CHECKS.about(ANY)
async def a_call_that_is_cancelled_stops(talk: Talk) -> None:
    """The handler of a call that was given up is cancelled."""
    before = int(await said(talk, "given_up"))
    with anyio.CancelScope() as scope:

        async def begun(*_: Any) -> None:
            scope.cancel()

        await talk.session.call_tool("slow", {}, progress_callback=begun)
    expect(scope.cancelled_caught, True, "the call was cancelled")
    await until_given_up(talk, before + 1)


@CHECKS.about(ANY)
async def a_call_that_takes_too_long_stops(talk: Talk) -> None:
    """A call that times out at the client is cancelled at the server."""
    before = int(await said(talk, "given_up"))
    call = talk.session.call_tool("slow", {}, read_timeout_seconds=0.5)
    await raised(call, MCPError)
    await until_given_up(talk, before + 1)


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
    (content,) = (await talk.session.read_resource("note://hello")).contents
    expect((str(content.uri), content.text), ("note://hello", HELLO))
    expect(content.mime_type, "text/plain")


@CHECKS.about(ANY)
async def bytes_are_read(talk: Talk) -> None:
    """A resource of bytes."""
    (content,) = (await talk.session.read_resource("note://pixel")).contents
    expect((b64decode(content.blob), content.mime_type), (PIXEL, "image/png"))


@CHECKS.about(ANY)
async def a_template_is_read(talk: Talk) -> None:
    """Resources by templates, with one variable, with two, and with one that is a number."""
    for uri, text in (
        ("city://Bor%C3%A5s", "Borås is a city."),
        ("street://Oslo/Storgata", "Storgata is in Oslo."),
        ("year://1999", "1999 was long."),
    ):
        (content,) = (await talk.session.read_resource(uri)).contents
        expect((str(content.uri), content.text), (uri, text))


@CHECKS.about(ANY)
async def a_missing_resource_is_an_error(talk: Talk) -> None:
    """The number of the error is that of the revision, and its data names the resource."""
    error = await raised(talk.session.read_resource("note://missing"), MCPError)
    code = -32002 if HANDSHAKE.holds(talk.revision) else -32602
    expect((error.error.code, error.error.data), (code, {"uri": "note://missing"}))


@CHECKS.about(ANY)
async def a_prompt_is_filled_in(talk: Talk) -> None:
    """Prompts of one message and of two."""
    result = await talk.session.get_prompt("review", {"code": "x = 1", "style": "long"})
    (message,) = result.messages
    wanted = ("user", "Review this in long form: x = 1")
    expect((message.role, message.content.text), wanted)
    result = await talk.session.get_prompt("greet", {"name": "Bo"})
    said = [(each.role, each.content.text) for each in result.messages]
    expect(said, [("user", "I am Bo."), ("assistant", HELLO)])


@CHECKS.about(ANY)
async def a_prompt_that_lacks_an_argument_is_refused(talk: Talk) -> None:
    """A required argument that is missing, and a prompt that is not there, are -32602."""
    for name in ("review", "no_such_prompt"):
        error = await raised(talk.session.get_prompt(name, {}), MCPError)
        expect(error.error.code, -32602, name)


@CHECKS.about(ANY)
async def arguments_are_completed(talk: Talk) -> None:
    """Of a prompt, and of a template."""
    prompt = types.PromptReference(name="review")
    result = await talk.session.complete(prompt, {"name": "style", "value": "l"})
    expect(result.completion.values, ["long"])
    template = types.ResourceTemplateReference(uri="city://{name}")
    result = await talk.session.complete(template, {"name": "name", "value": "O"})
    expect(result.completion.values, ["Oslo", "Ottawa"])


# -- closing in the middle -------------------------------------------------------------------


@BUSY_CHECKS.about(ANY)
async def it_closes_during_a_call(talk: Talk) -> None:
    """A call is left behind when the connection is closed."""
    has_begun = asyncio.Event()

    async def begun(*_: Any) -> None:
        has_begun.set()

    call = talk.session.call_tool("slow", {}, progress_callback=begun)
    talk.left_behind.append(asyncio.create_task(call))
    await has_begun.wait()


# -- refused ---------------------------------------------------------------------------------


@REFUSED_CHECKS.about(Window(""))
async def the_refusal_names_the_revisions(talk: Talk) -> None:
    """A client that is too old for the server is told what the server speaks."""
    data = types.UnsupportedProtocolVersionErrorData.model_validate(talk.refusal.error.data)
    expect((data.supported, data.requested), ([V2026_07_28], V2025_11_25))
