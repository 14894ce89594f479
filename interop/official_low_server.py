"""The menu, with the low-level `Server` of the official SDK.

It has what `MCPServer` leaves out: lists in pages, subscriptions to a resource and a log level.
"""

from __future__ import annotations

import asyncio
import warnings
from base64 import b64encode
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from .menu import (
    HELLO,
    INSTRUCTIONS,
    LINK,
    PIXEL,
    PROMPTS,
    RESOURCES,
    SOUND,
    STYLES,
    TEMPLATES,
    TOOLS,
)

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
}
CITY = {"type": "object", "properties": {"city": TEXT}, "required": ["city"]}
OUTPUTS: dict[str, dict[str, Any]] = {
    "add": {"type": "object", "properties": {"result": NUMBER}, "required": ["result"]},
    "forecast": {
        "type": "object",
        "properties": {"city": TEXT, "days": {"type": "array", "items": TEXT}},
        "required": ["city", "days"],
    },
}

tools = list(TOOLS)
given_up_calls = 0
level = "debug"
subscribed: set[str] = set()


def _page(items: Any, params: types.PaginatedRequestParams | None) -> tuple[list[Any], str | None]:
    start = int(params.cursor) if params is not None and params.cursor else 0
    end = start + PAGE
    return list(items[start:end]), str(end) if end < len(items) else None


def _tool(name: str) -> types.Tool:
    properties = ARGUMENTS.get(name, {})
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return types.Tool(name=name, input_schema=schema, output_schema=OUTPUTS.get(name))


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
    found, rest = _page(RESOURCES, params)
    rows = [types.Resource(name=uri.rpartition("/")[2], uri=uri) for uri in found]
    return types.ListResourcesResult(resources=rows, next_cursor=rest)


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    """List the templates."""
    found, rest = _page(TEMPLATES, params)
    rows = [types.ResourceTemplate(name=uri.partition(":")[0], uri_template=uri) for uri in found]
    return types.ListResourceTemplatesResult(resource_templates=rows, next_cursor=rest)


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    """List the prompts."""
    found, rest = _page(PROMPTS, params)
    return types.ListPromptsResult(
        prompts=[types.Prompt(name=name) for name in found], next_cursor=rest
    )


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Call a tool."""
    tool = _TOOLS.get(params.name)
    if tool is None:
        raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")
    arguments = params.arguments or {}
    missing = set(ARGUMENTS.get(params.name, {})) - set(arguments)
    if missing:
        raise MCPError(code=types.INVALID_PARAMS, message=f"missing: {', '.join(sorted(missing))}")
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
    global given_up_calls
    await ctx.session.report_progress(0)
    try:
        await anyio.sleep(30)
    except asyncio.CancelledError:
        given_up_calls += 1
        raise
    return _text("at last")


async def _given_up(ctx: Any) -> types.CallToolResult:
    return _text(str(given_up_calls))


async def _grow(ctx: Any) -> types.CallToolResult:
    tools.append("grown")
    await ctx.session.send_tool_list_changed()
    return _text("grown")


async def _touch(ctx: Any) -> types.CallToolResult:
    for uri in sorted(subscribed):
        await ctx.session.send_resource_updated(uri)
    return _text("touched")


async def _ask_model(ctx: Any) -> types.CallToolResult:
    asked = types.SamplingMessage(role="user", content=types.TextContent(text="Which way?"))
    answer = await ctx.session.create_message([asked], max_tokens=10)
    return _text(f"{answer.model} said {answer.content.text}")


async def _ask_user(ctx: Any) -> types.CallToolResult:
    answer = await ctx.session.elicit_form("Which city?", CITY)
    return _text(f"{answer.action} {answer.content}")


async def _ask_roots(ctx: Any) -> types.CallToolResult:
    answer = await ctx.session.list_roots()
    return _text(" ".join(str(root.uri) for root in answer.roots))


async def _who(ctx: Any) -> types.CallToolResult:
    params = ctx.session.client_params
    return _text(f"{params.client_info.name if params else ''} {ctx.protocol_version}")


_TOOLS = {name: globals()[f"_{name}"] for name in TOOLS}


async def read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
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
    else:
        # The number was another one before it was -32602.
        code = -32602 if ctx.protocol_version == "2026-07-28" else -32002
        raise MCPError(code=code, message="Resource not found", data={"uri": uri})
    return types.ReadResourceResult(contents=contents)


async def get_prompt(ctx: Any, params: Any) -> types.GetPromptResult:
    """Fill in a prompt."""
    given = params.arguments or {}
    said = {
        "review": [("user", f"Review this in {given.get('style')} form: {given.get('code')}")],
        "greet": [("user", f"I am {given.get('name')}."), ("assistant", HELLO)],
        "plain": [("user", "Go on.")],
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


async def main() -> None:
    """Serve standard input and output."""
    server = Server(
        "theirs, low",
        version="1.0.0",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=set_level,
    )
    told = NotificationOptions(tools_changed=True, resources_changed=True)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options(told))


if __name__ == "__main__":
    asyncio.run(main())
