"""The low-level server of mcp with one tool, `echo`.

It checks nothing of the arguments: that is left to whoever writes the handler, and here only
the text is taken out. So it does less than the other two.
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def _list(_: Any, _params: Any) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name="echo", input_schema=_SCHEMA)])


async def _call(_: Any, params: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=params.arguments["text"])])


def make(*tools: str) -> Server[Any]:
    """Return a server with that tool."""
    if tools != ("echo",):
        raise ValueError(f"this server has echo and nothing else, not {tools}")
    return Server("bench", version="1.0.0", on_list_tools=_list, on_call_tool=_call)


async def _main() -> None:
    app = make("echo")
    async with stdio_server() as (incoming, outgoing):
        await app.run(incoming, outgoing, app.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(_main())
