"""What users of `mcp` and FastMCP type first: it works, or the error says what to write.

Each row is a line as it is typed, and either WORKS or a part of the advice. The names that stand in
the lines are those of `names_of`; a line about `ctx` runs in a handler.
"""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any, Final

import trunkline
from tests.cases import for_each
from trunkline import Client, Context, Server

WORKS: Final = ""
# The text of Python alone.
NO_ADVICE: Final = "object is not callable"
# Lines whose error does not say what to write instead.
WITHOUT_ADVICE: Final = {"client.is_connected()"}  # a property here: nothing can see the call

SERVERS: Final = {
    'Server("a", "Use it well.")': "instructions=",
    'Server("a", instructions="Use it well.")': WORKS,
    'Server("a", tools=[one])': "add_tool(handler)",
    'Server("a", stateless_http=True)': "not supported yet",
    'Server("a", json_response=True)': "an answer is JSON",
    'Server("a", middleware=[])': "@app.middleware",
    'Server("a", on_duplicate="error")': "raises ValueError",
    'Server("a", on_duplicate_tools="warn")': "raises ValueError",
    'Server("a", mask_error_details=True)': "raise ToolError",
    'Server("a", include_tags={"x"})': "visible=",
    'Server("a", exclude_tags={"x"})': "visible=",
    'Server("a", lifespan=None)': WORKS,
    'Server("a", auth=None)': WORKS,
    'Server("a", version="1")': WORKS,
    'Server("a", port=8000)': "run('http://127.0.0.1:8000/mcp')",
    'Server("a", debug=True)': "standard library",
    "app.tool(one)": WORKS,
    "app.tool()(one)": WORKS,
    'app.tool("named")(one)': WORKS,
    'app.tool(name="other")(one)': WORKS,
    'app.tool(description="…")(one)': WORKS,
    'app.tool(tags={"a"})(one)': "meta=",
    'app.tool(annotations={"readOnlyHint": True})(one)': WORKS,
    "app.tool(read_only=True)(one)": "annotations={'readOnlyHint': True}",
    "app.tool(destructive=True)(one)": "annotations={'destructiveHint': True}",
    "app.tool(meta={'a': 1})(one)": WORKS,
    "app.tool(timeout=5)(one)": WORKS,
    "app.tool(task=True)(awaited)": WORKS,
    "app.tool(enabled=False)(one)": "visible=",
    "app.tool(auth=print)(one)": "scopes=[...]",
    "app.tool(exclude_args=['a'])(one)": "functools.partial",
    "app.tool(version='2')(one)": "not supported yet",
    "app.tool(output_schema=None)(one)": WORKS,
    "app.tool(structured_output=False)(one)": "output_schema=None",
    'app.resource("y://a", mime_type="text/plain")(text)': WORKS,
    'app.resource("y://a", tags={"a"})(text)': "meta=",
    'app.resource("y://a", enabled=False)(text)': "remove_resource(uri)",
    "app.prompt(text)": WORKS,
    'app.prompt("named")(text)': WORKS,
    'app.prompt(tags={"a"})(text)': "meta=",
    "app.prompt(enabled=False)(text)": "visible=",
    'app.custom_route("/x", methods=["GET"])': "not supported yet",
    "app.http_app()": "use asgi(",
    "app.streamable_http_app()": "use asgi(",
    'app.run(transport="http", port=1)': "run('http://...')",
    'app.run("http", port=1)': "run('http://127.0.0.1:8000/mcp')",
    "app.run_async()": "app.serve(StdioServer())",
    "app.run_http_async()": "app.listen(",
    'app.mount(Server("z"), prefix="x")': WORKS,
    'app.mount(Server("z"), "x")': WORKS,
    "app.mount(url)": "mount takes a Server",
    'app.mount(Server("z"), namespace="x")': "use prefix=",
    "app.mount(Server('z'), as_proxy=True)": "keep its middleware",
    "app.import_server(Server('z'))": "use mount(other, prefix=...)",
    "app.add_middleware(print)": "@app.middleware",
    "app.add_tool(one)": WORKS,
    "app.remove_tool('add')": WORKS,
    "app.get_tools()": "Client(app)",
    "app.list_tools()": "Client(app)",
    "app.call_tool('add', {'a': 1})": "Client(app)",
    "app.disable(names={'add'})": "visible=",
    "app.enable(names={'add'})": "visible=",
    "app.get_context()": "ctx: Context",
    "app.settings": "arguments of Server(...)",
    "app.name": WORKS,
    "app.instructions": WORKS,
    "Server.from_openapi({}, client=None)": "not supported yet",
    "Server.from_fastapi(None)": "not supported yet",
    "Server.as_proxy('http://127.0.0.1:1/mcp')": "not supported yet",
}

CLIENTS: Final = {
    "Client(server_file)": WORKS,
    "Client(url)": WORKS,
    "Client(app)": WORKS,
    "Client({'mcpServers': {'a': {'url': url}}})": WORKS,
    "Client.from_config('mcp.json')": "Client('mcp.json')",
    "Client(app, 5)": "timeout=",
    "Client(app, timeout=5)": WORKS,
    "Client(app, elicitation_handler=print)": "use on_elicit=",
    "Client(app, elicitation_callback=print)": "use on_elicit=",
    "Client(app, sampling_handler=print)": "use on_sample=",
    "Client(app, sampling_callback=print)": "use on_sample=",
    "Client(app, log_handler=print)": "use on_log=",
    "Client(app, logging_callback=print)": "use on_log=",
    "Client(app, message_handler=print)": "use on_notification=",
    "Client(app, progress_handler=print)": "use on_progress=",
    "Client(app, roots=['file:///tmp'])": WORKS,
    "Client(app, mode='legacy')": "use revision=",
    "Client(url, auth='oauth')": "OAuth()",
    "Client(url, auth='some-token')": "Bearer(token)",
    "Client(url, headers={'X-Team': 'a'})": WORKS,
    "OAuth(open_browser=print)": "use open_url=",
    "OAuth('https://example.org/mcp')": "Client(url, auth=OAuth())",
    "OAuth(scopes=['read'])": WORKS,
    "client.call_tool('add', {'a': 1})": WORKS,
    "client.call_tool('add', arguments={'a': 1})": WORKS,
    "client.call_tool('add', a=1)": "call_tool('add', {'a': ...})",
    "client.call_tool('add', {'a': 1}, progress_handler=print)": "use on_progress=",
    "client.call_tool('add', {'a': 1}, raise_on_error=False)": "value raises ToolFailed",
    "client.call_tool_mcp('add', {'a': 1})": "without `_mcp`",
    "client.list_tools()": WORKS,
    "client.list_tools_mcp()": "without `_mcp`",
    "client.list_resources()": WORKS,
    "client.read_resource('note://1')": WORKS,
    "client.get_prompt('greet', {'who': 'Ann'})": WORKS,
    "client.session": "a client is its own session",
    "client.initialize()": "connects and negotiates",
    "client.initialize_result": WORKS,
    "client.is_connected": WORKS,
    "client.is_connected()": NO_ADVICE,
    "client.ping()": "Send nothing",  # 2026-07-28 has no ping
    "client.set_logging_level": WORKS,
    "client.set_log_level('info')": "use set_logging_level(level)",
    "client.send_roots_list_changed": WORKS,
    "client.complete": WORKS,
    "client.close": WORKS,
    "client.disconnect()": "use close()",
    "client.new()": "another Client",
    "client.transport": "a client makes its transport",
    "client.server_capabilities": WORKS,
    "client.get_server_capabilities()": "use server_capabilities",
    "client.server_info": WORKS,
    "client.protocol_version": "use revision",
    "result.data": "use value",
    "result.structured_content": WORKS,
    "result.structuredContent": "use structured_content",
    "result.content": WORKS,
    "result.content[0].text": WORKS,
    "result.is_error": WORKS,
    "result.isError": "use is_error",
    "result.text": WORKS,
    "result.value": WORKS,
    "result.meta": WORKS,
    "read.contents": WORKS,
    "read.contents[0].text": WORKS,
    "read.text": WORKS,
    "read.value": "use text",
    "read[0].text": "use text",
    "tool.name": WORKS,
    "tool.input_schema": WORKS,
    "tool.inputSchema": "use input_schema",
    "tool['name']": "use the attribute name",
    "prompt.messages": WORKS,
    "prompt.messages[0].content.text": WORKS,
    "prompt[0]": "messages[0]",
}

MODULES: Final = {
    "trunkline.FastMCP": "use Server",
    "trunkline.MCPServer": "use Server",
    "trunkline.ClientSession": "Client(...)",
    "trunkline.ClientSessionGroup": "'mcpServers'",
    "trunkline.ClientGroup": "'mcpServers'",
    "trunkline.StdioServerParameters": "Stdio('python'",
    "trunkline.stdio_client": "Stdio('python'",
    "trunkline.StdioTransport": "Stdio('python'",
    "trunkline.StreamableHttpTransport": "HttpOptions(...)",
    "trunkline.streamablehttp_client": "HttpOptions(...)",
    "trunkline.Client": WORKS,
    "trunkline.Context": WORKS,
    "trunkline.Image": WORKS,
    "trunkline.Audio": WORKS,
    "trunkline.File": WORKS,
    "trunkline.ToolResult": WORKS,
    "trunkline.ToolResult(content=[], structured_content={})": "ToolOutput(value, text=...)",
    "trunkline.ToolError": WORKS,
    "trunkline.McpError": "PeerError",
    "trunkline.ResourceError": "RequestError",
    "trunkline.PromptError": "RequestError",
    "trunkline.Message": "UserMessage",
    "trunkline.Middleware": "@app.middleware",
    "trunkline.OAuth": "from trunkline.auth import OAuth",
    "trunkline.Bearer": "from trunkline.auth import Bearer",
    "trunkline.JwtBearer": "from trunkline.auth import JwtBearer",
    "trunkline.TextContent": "from trunkline.mcp import TextContent",
    "trunkline.types": "from trunkline.mcp import types",
    "trunkline.Progress": "ctx.progress(",
    "trunkline.Depends": "not supported yet",
    "trunkline.CurrentContext": "ctx: Context",
    "trunkline.get_context": "ctx: Context",
    "trunkline.get_http_headers": "ctx.headers",
    "trunkline.get_access_token": "ctx.principal",
    "trunkline.BearerAuth": "use Bearer(token)",
    "trunkline.JWTVerifier": "use JwtBearer",
    "trunkline.OAuthProxy": "not supported yet",
    "trunkline.create_proxy": "not supported yet",
}

HANDLERS: Final = {
    "ctx.info('x')": WORKS,
    "ctx.debug('x')": WORKS,
    "ctx.warning('x')": WORKS,
    "ctx.error('x')": WORKS,
    "ctx.log('info', 'x')": WORKS,
    "ctx.info('x', logger_name='a')": "use logger=",
    "ctx.report_progress(1, 3)": WORKS,
    "ctx.progress(1, 3)": WORKS,
    "ctx.elicit": WORKS,
    "ctx.elicit('x', response_type=str)": "elicit(message, form)",
    "ctx.sample": WORKS,
    "ctx.roots": WORKS,
    "ctx.list_roots()": "await ctx.roots()",
    "ctx.read_resource('note://1')": "call the function",
    "ctx.list_resources()": "call the function",
    "ctx.list_tools()": "call the function",
    "ctx.get_prompt('greet')": "call the function",
    "ctx.request_id": WORKS,
    "ctx.client_id": "ctx.client.name",
    "ctx.session": "ctx.elicit(...)",
    "ctx.session_id": "a session does not exist in 2026-07-28",
    "ctx.state": WORKS,
    "ctx.get_state('x')": "use a store",
    "ctx.set_state('x', 1)": "use a store",
    "ctx.lifespan_context": "use ctx.state",
    "ctx.request_context.lifespan_context": "ctx.state",
    "ctx.fastmcp": "use ctx.app",
    "ctx.headers": WORKS,
    "ctx.principal": WORKS,
    "ctx.tenant": WORKS,
    "ctx.send_notification(None)": "ctx.notify(method, params)",
    "ctx.origin_request_id": "use ctx.request_id",
    "ctx.transport": "the same on every transport",
    "ctx.is_background_task": "ctx.become_task()",
    "ctx.client_capabilities": "ctx.client.supports(",
    "ctx.meta": WORKS,
}


def server() -> Server:
    app = Server("a")

    @app.tool
    def add(a: int) -> int:
        return a + 1

    @app.tool(inline=True)
    async def run(ctx: Context, line: str) -> None:
        found = eval(line, {"ctx": ctx})  # a line of the table above
        if inspect.isawaitable(found) and not inspect.iscoroutine(found):
            await found

    @app.resource("note://{id}")
    def note(id: str) -> str:
        return f"note {id}"

    @app.prompt
    def greet(who: str) -> str:
        return f"Hello, {who}!"

    return app


async def names_of(client: Client, app: Server, folder: Path) -> dict[str, Any]:
    """Return what the lines of the tables may use."""
    path = folder / "server.py"
    path.write_text("from trunkline import Server\napp = Server('a')\n")
    return {
        "trunkline": trunkline,
        "Client": Client,
        "OAuth": trunkline.auth.OAuth,
        "Server": Server,
        "app": app,
        "client": client,
        "url": "http://127.0.0.1:1/mcp",
        "server_file": str(path),
        "one": _one,
        "awaited": _awaited,
        "text": _text,
        "result": await client.call_tool("add", {"a": 1}),
        "read": await client.read_resource("note://1"),
        "tool": (await client.list_tools())[0],
        "prompt": await client.get_prompt("greet", {"who": "Ann"}),
    }


def _one(a: int) -> int:
    return a


async def _awaited(a: int) -> int:
    return a


def _text() -> str:
    return "x"


async def outcome(line: str, folder: Path) -> str:
    """Return the error of a line; empty if it works."""
    app = server()
    async with Client(app, raise_exceptions=True) as client:
        names = await names_of(client, app, folder)
        try:
            if line in HANDLERS:
                await client.call_tool("run", {"line": line})
                return WORKS
            found = eval(line, names)  # as above
            if inspect.isawaitable(found):
                await asyncio.wait_for(found, 30)
        except Exception as error:  # noqa: BLE001  # the text of any of them is what is tested
            return str(error) or type(error).__name__
    return WORKS


HABITS: Final = {**SERVERS, **CLIENTS, **MODULES, **HANDLERS}


@for_each(("line", "advice"), HABITS.items(), ids=HABITS)
def test_what_users_of_other_libraries_type_works_or_has_advice(
    line: str, advice: str, tmp_path: Path
) -> None:
    found = asyncio.run(outcome(line, tmp_path))
    if advice == WORKS:
        assert found == WORKS
    else:
        assert advice in found


def test_lines_without_advice_are_listed_by_name() -> None:
    assert {line for line, advice in HABITS.items() if advice == NO_ADVICE} == WITHOUT_ADVICE
    assert len(HABITS) > 200


def test_no_line_is_in_two_tables() -> None:
    assert len(HABITS) == sum(map(len, (SERVERS, CLIENTS, MODULES, HANDLERS)))
