"""The menu, with the low-level `Server` of the official SDK.

It has what `MCPServer` leaves out: lists in pages, subscriptions to a resource, a log level and
the end of a stream.
"""

from __future__ import annotations

import asyncio
import warnings
from base64 import b64encode
from typing import Any

import anyio
import mcp_types as types
from mcp.server.extension import compose_tool_call_handler
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError, UrlElicitationRequiredError

from . import official_questions as questions
from .menu import (
    HELLO,
    INSTRUCTIONS,
    LINK,
    OFFICIAL_TOOLS,
    PIXEL,
    PROMPTS,
    RESOURCES,
    SOUND,
    STYLES,
    TEMPLATES,
    TOOLS,
)
from .official_low_asking import Round, ask, come_back
from .official_tasks import CoreTaskServing, TaskServing

# Logging, sampling and roots still have to work for those who use them.
warnings.simplefilter("ignore", MCPDeprecationWarning)

PAGE = 2
LEVELS = ("debug", "info", "warning", "error")
NUMBER = {"type": "integer"}
TEXT = {"type": "string"}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "echo": {"text": TEXT},
    "add": {"a": NUMBER, "b": NUMBER},
    "forecast": {"city": TEXT},
    "steps": {"count": NUMBER},
    "brew": {"cups": NUMBER},
}
OUTPUTS: dict[str, dict[str, Any]] = {
    "add": {"type": "object", "properties": {"result": NUMBER}, "required": ["result"]},
    "forecast": {
        "type": "object",
        "properties": {"city": TEXT, "days": {"type": "array", "items": TEXT}},
        "required": ["city", "days"],
    },
}

tools = [*TOOLS, *OFFICIAL_TOOLS]
prompts = list(PROMPTS)
resources = list(RESOURCES)
bus = InMemorySubscriptionBus()
listening = ListenHandler(bus)
given_up_calls = 0
tickets = 0
level = "debug"
subscribed: set[str] = set()


def _page(items: Any, params: types.PaginatedRequestParams | None) -> tuple[list[Any], str | None]:
    start = int(params.cursor) if params is not None and params.cursor else 0
    end = start + PAGE
    return list(items[start:end]), str(end) if end < len(items) else None


def _tool(name: str) -> types.Tool:
    properties = ARGUMENTS.get(name, {})
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    support = types.ToolExecution(task_support="optional") if name.startswith("brew") else None
    return types.Tool(
        name=name, input_schema=schema, output_schema=OUTPUTS.get(name), execution=support
    )


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


def _note() -> types.TextResourceContents:
    return types.TextResourceContents(uri="note://hello", text=HELLO, mime_type="text/plain")


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    """List the tools."""
    found, rest = _page(tools, params)
    return types.ListToolsResult(tools=[_tool(name) for name in found], next_cursor=rest)


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    """List the resources."""
    found, rest = _page(resources, params)
    rows = [types.Resource(name=uri.rpartition("/")[2], uri=uri) for uri in found]
    return types.ListResourcesResult(resources=rows, next_cursor=rest)


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    """List the templates."""
    found, rest = _page(TEMPLATES, params)
    rows = [types.ResourceTemplate(name=uri.partition(":")[0], uri_template=uri) for uri in found]
    return types.ListResourceTemplatesResult(resource_templates=rows, next_cursor=rest)


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    """List the prompts."""
    found, rest = _page(prompts, params)
    return types.ListPromptsResult(
        prompts=[types.Prompt(name=name) for name in found], next_cursor=rest
    )


async def call_tool(
    ctx: Any, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    """Call a tool."""
    tool = _TOOLS.get(params.name)
    if tool is None:
        raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")
    arguments = params.arguments or {}
    missing = set(ARGUMENTS.get(params.name, {})) - set(arguments)
    if missing:
        raise MCPError(code=types.INVALID_PARAMS, message=f"missing: {', '.join(sorted(missing))}")
    if params.name in _ASKING:
        try:
            return _text(await _ASKING[params.name](ctx, params))
        except Round as questions_first:
            return questions_first.result
    return await tool(ctx, **arguments)


async def _echo(ctx: Any, text: str) -> types.CallToolResult:
    return _text(text)


async def _add(ctx: Any, a: int, b: int) -> types.CallToolResult:
    text = types.TextContent(text=str(a + b))
    return types.CallToolResult(content=[text], structured_content={"result": a + b})


async def _forecast(ctx: Any, city: str) -> types.CallToolResult:
    text = types.TextContent(text=f'{{"city": "{city}", "days": ["sun", "sun"]}}')
    structured = {"city": city, "days": ["sun", "sun"]}
    return types.CallToolResult(content=[text], structured_content=structured)


async def _picture(ctx: Any) -> types.CallToolResult:
    data = b64encode(PIXEL).decode()
    return types.CallToolResult(content=[types.ImageContent(data=data, mime_type="image/png")])


async def _sound(ctx: Any) -> types.CallToolResult:
    data = b64encode(SOUND).decode()
    return types.CallToolResult(content=[types.AudioContent(data=data, mime_type="audio/wav")])


async def _link(ctx: Any) -> types.CallToolResult:
    block = types.ResourceLink(name="atlas", uri=LINK, title="An atlas")
    return types.CallToolResult(content=[block])


async def _embedded(ctx: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.EmbeddedResource(resource=_note())])


async def _fails(ctx: Any) -> types.CallToolResult:
    text = types.TextContent(text="no luck today")
    return types.CallToolResult(content=[text], is_error=True)


async def _steps(ctx: Any, count: int) -> types.CallToolResult:
    for step in range(count):
        await ctx.session.report_progress(step + 1, count, f"step {step + 1}")
    return _text(f"{count} steps")


async def _chatter(ctx: Any) -> types.CallToolResult:
    for each in LEVELS[LEVELS.index(level) :]:
        await ctx.session.send_log_message(
            each, f"this is {each}", "chatter", related_request_id=ctx.request_id
        )
    return _text("said")


async def _slow(ctx: Any) -> types.CallToolResult:
    await ctx.session.report_progress(0)
    try:
        await anyio.sleep(30)
    except asyncio.CancelledError:
        _give_up()
        raise
    return _text("at last")


def _give_up() -> None:
    global given_up_calls
    given_up_calls += 1


async def _given_up(ctx: Any) -> types.CallToolResult:
    return _text(str(given_up_calls))


async def _grow(ctx: Any) -> types.CallToolResult:
    tools.append("grown")
    prompts.append("grown")
    resources.append("note://grown")
    await ctx.session.send_tool_list_changed()
    await ctx.session.send_prompt_list_changed()
    await ctx.session.send_resource_list_changed()
    for event in (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()):
        await bus.publish(event)
    return _text("grown")


async def _touch(ctx: Any) -> types.CallToolResult:
    if "note://hello" in subscribed:
        await ctx.session.send_resource_updated("note://hello")
    await bus.publish(ResourceUpdated("note://hello"))
    return _text("touched")


async def _brew(ctx: Any, cups: int) -> types.CallToolResult:
    return _text(f"{cups} cups")


async def _brew_failing(ctx: Any) -> types.CallToolResult:
    text = types.TextContent(text="no beans")
    return types.CallToolResult(content=[text], is_error=True)


async def _brew_slow(ctx: Any) -> types.CallToolResult:
    await anyio.sleep(30)
    return _text("at last")


async def _hush(ctx: Any) -> types.CallToolResult:
    listening.close()
    return _text("hushed")


async def _who(ctx: Any) -> types.CallToolResult:
    params = ctx.session.client_params
    return _text(f"{params.client_info.name if params else ''} {ctx.protocol_version}")


# -- asking ----------------------------------------------------------------------------------


async def _ask_model(ctx: Any, params: Any) -> str:
    answer = (await ask(ctx, params, way=questions.model("Which way?")))["way"]
    return f"{answer.model} said {answer.content.text}"


async def _ask_user(ctx: Any, params: Any) -> str:
    message = (params.arguments or {}).get("message", "Which city?")
    answer = (await ask(ctx, params, city=questions.form(message, questions.CITY)))["city"]
    return f"{answer.action} {(answer.content or {}).get('city')}"


async def _ask_roots(ctx: Any, params: Any) -> str:
    answer = (await ask(ctx, params, roots=questions.roots()))["roots"]
    return " ".join(str(root.uri) for root in answer.roots)


async def _ask_page(ctx: Any, params: Any) -> str:
    # An id is required in the revision that has a handshake, and gone from the next.
    id = None if ctx.protocol_version == "2026-07-28" else "page-1"
    answer = (await ask(ctx, params, page=questions.page(id)))["page"]
    if id is not None:
        await ctx.session.send_elicit_complete(id)
    return str(answer.action)


async def _ask_form(ctx: Any, params: Any) -> str:
    answer = await ask(ctx, params, trip=questions.form("Which trip?", questions.TRIP))
    trip = answer["trip"].content
    return " ".join(str(trip[each]) for each in ("day", "persons", "price", "breakfast", "city"))


async def _ask_choices(ctx: Any, params: Any) -> str:
    answer = await ask(ctx, params, room=questions.form("Which extras?", questions.ROOM))
    return " ".join(answer["room"].content["extras"])


async def _ask_often(ctx: Any, params: Any) -> str:
    global tickets
    asked: dict[str, Any] = {"city": questions.form("Which city?", questions.CITY)}
    city = (await ask(ctx, params, **asked))["city"].content["city"]
    about = questions.model(f"What is {city}?")
    said = (await ask(ctx, params, about=about))["about"].content.text
    sure = (await ask(ctx, params, sure=questions.form("Are you sure?", questions.SURE)))["sure"]
    tickets += 1
    return f"{city}: {said} {sure.action}, {tickets} sold"


async def _ask_together(ctx: Any, params: Any) -> str:
    city, way = questions.form("Which city?", questions.CITY), questions.model("Which way?")
    answers = await ask(ctx, params, city=city, way=way, roots=questions.roots())
    where = answers["roots"].roots[0].uri
    return f"{answers['city'].content['city']} {answers['way'].content.text} {where}"


async def _ask_tool(ctx: Any, params: Any) -> str:
    said = (await ask(ctx, params, weather=questions.tool_user()))["weather"]
    blocks = said.content if isinstance(said.content, list) else [said.content]
    (use,) = (block for block in blocks if isinstance(block, types.ToolUseContent))
    return f"{said.stop_reason} {use.name} {use.input['city']}"


async def _pay_first(ctx: Any) -> types.CallToolResult:
    page = questions.page("page-1").params
    assert isinstance(page, types.ElicitRequestURLParams)
    raise UrlElicitationRequiredError([page])


async def _brew_asking(ctx: Any, params: Any) -> str:
    city, way = questions.form("Which city?", questions.CITY), questions.model("Which way?")
    answers = await ask(ctx, params, city=city, way=way)
    return f"{answers['city'].content['city']} {answers['way'].content.text}"


async def _come_back(ctx: Any, params: Any) -> str:
    return f"back with {come_back(ctx, params)}"


async def _ask_forever(ctx: Any, params: Any) -> str:
    if ctx.protocol_version != "2026-07-28":
        return "not here"
    asked = questions.form("Which city?", questions.CITY)
    raise Round(types.InputRequiredResult(input_requests={"city": asked}, request_state="again"))


async def _ask_anyway(ctx: Any, params: Any) -> str:
    asked = questions.form("Which city?", questions.CITY)
    if ctx.protocol_version == "2026-07-28":
        raise Round(types.InputRequiredResult(input_requests={"city": asked}))
    answer = await ctx.session.send_request(asked, types.ElicitResult)
    return str(answer.action)


_TOOLS = {name: globals()[f"_{name}"] for name in (*TOOLS, *OFFICIAL_TOOLS)}
_ASKING = {
    name: tool
    for name, tool in _TOOLS.items()
    if name.startswith("ask_") or name in ("brew_asking", "come_back")
}


# -- the rest --------------------------------------------------------------------------------


async def read_resource(
    ctx: Any, params: Any
) -> types.ReadResourceResult | types.InputRequiredResult:
    """Read a resource."""
    uri = str(params.uri)
    contents: list[Any] = []
    if uri == "note://hello":
        contents = [_note()]
    elif uri == "note://pixel":
        data = b64encode(PIXEL).decode()
        contents = [types.BlobResourceContents(uri=uri, blob=data, mime_type="image/png")]
    elif uri.startswith("city://"):
        name = uri.removeprefix("city://")
        contents = [types.TextResourceContents(uri=uri, text=f"{name} is a city.")]
    elif uri.startswith("safe://"):
        name = uri.removeprefix("safe://")
        asked = questions.form(f"Open {name}?", questions.SURE)
        try:
            answer = (await ask(ctx, params, sure=asked))["sure"]
        except Round as questions_first:
            return questions_first.result
        contents = [types.TextResourceContents(uri=uri, text=f"{name}: {answer.action}")]
    else:
        # The number was another one before it was -32602.
        code = -32602 if ctx.protocol_version == "2026-07-28" else -32002
        raise MCPError(code=code, message="Resource not found", data={"uri": uri})
    return types.ReadResourceResult(contents=contents)


async def get_prompt(ctx: Any, params: Any) -> types.GetPromptResult | types.InputRequiredResult:
    """Fill in a prompt."""
    given = dict(params.arguments or {})
    if params.name == "guide":
        try:
            asked = questions.form("Which city?", questions.CITY)
            given["city"] = (await ask(ctx, params, city=asked))["city"].content["city"]
        except Round as questions_first:
            return questions_first.result
    said = {
        "review": [("user", f"Review this in {given.get('style')} form: {given.get('code')}")],
        "greet": [("user", f"I am {given.get('name')}."), ("assistant", HELLO)],
        "plain": [("user", "Go on.")],
        "guide": [("user", f"Guide me through {given.get('city')}.")],
    }.get(params.name)
    if said is None:
        raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown prompt: {params.name}")
    messages = [
        types.PromptMessage(role=role, content=types.TextContent(text=text)) for role, text in said
    ]
    return types.GetPromptResult(messages=messages)


async def complete(ctx: Any, params: Any) -> types.CompleteResult:
    """Complete a style, or the name of a city."""
    is_prompt = isinstance(params.ref, types.PromptReference)
    choices = STYLES if is_prompt else ("Oslo", "Ottawa", "Rome")
    values = [each for each in choices if each.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values))


async def subscribe(ctx: Any, params: Any) -> types.EmptyResult:
    """Take note of who wants to be told."""
    subscribed.add(str(params.uri))
    return types.EmptyResult()


async def unsubscribe(ctx: Any, params: Any) -> types.EmptyResult:
    """Take note of who no longer wants to be told."""
    subscribed.discard(str(params.uri))
    return types.EmptyResult()


async def set_level(ctx: Any, params: Any) -> types.EmptyResult:
    """Take note of what is worth telling."""
    global level
    level = params.level
    return types.EmptyResult()


def made() -> Server[Any]:
    """Return a server with all of it."""
    long_work = TaskServing(_give_up)
    server = Server(
        "theirs, low",
        version="1.0.0",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=compose_tool_call_handler([long_work], call_tool),
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_subscriptions_listen=listening,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=set_level,
    )
    server.extensions[long_work.identifier] = long_work.settings()
    CoreTaskServing(_give_up, long_work).install(server)
    return server


def http_app() -> Any:
    """Return an application that serves HTTP."""
    return made().streamable_http_app()


async def main() -> None:
    """Serve standard input and output."""
    server = made()
    told = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
    async with stdio_server() as (reading, writing):
        options = server.create_initialization_options(told)
        options.capabilities.tasks = CoreTaskServing.declared()
        await server.run(reading, writing, options)


if __name__ == "__main__":
    asyncio.run(main())
