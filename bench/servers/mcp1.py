"""The decorator server of mcp before 2.0, in an environment of its own.

    .venv-bench-mcp1/bin/python bench/servers/mcp1.py TOOL...               # on stdio
    .venv-bench-mcp1/bin/python bench/servers/mcp1.py --http json|sse TOOL...
    .venv-bench-mcp1/bin/python bench/servers/mcp1.py --ws TOOL...

Over HTTP and WebSocket it runs under uvicorn, at a free port that is printed.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from typing import Any

from mcp.server.fastmcp import Context, FastMCP


async def echo(text: str) -> str:
    """Return the text."""
    return text


async def progress(ctx: Context[Any, Any, Any], text: str) -> str:
    """Return the text after three reports."""
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3)
    return text


def make(*tools: str, **options: Any) -> FastMCP[Any]:
    """Return a server with these tools."""
    app: FastMCP[Any] = FastMCP("bench", log_level="ERROR", **options)
    functions: dict[str, Any] = {"echo": echo, "progress": progress}
    for name in tools:
        app.add_tool(functions[name], structured_output=False)
    return app


def websocket(app: FastMCP[Any]) -> Any:
    """Return an application that serves every WebSocket."""
    from mcp.server.websocket import websocket_server

    server = app._mcp_server

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            return
        async with websocket_server(scope, receive, send) as streams:
            await server.run(*streams, server.create_initialization_options())

    return application


def main() -> None:
    """Serve until the process is ended."""
    # WebSocket is deprecated; the warning is not of interest here.
    warnings.simplefilter("ignore")
    option, *tools = sys.argv[1:]
    if option == "--http":
        from bench.servers.over_http import under_uvicorn

        form, *tools = tools
        made = make(*tools, json_response=form == "json")
        asyncio.run(under_uvicorn(made.streamable_http_app()))
    elif option == "--ws":
        from bench.servers.over_http import under_uvicorn

        asyncio.run(under_uvicorn(websocket(make(*tools))))
    else:
        make(option, *tools).run()


if __name__ == "__main__":
    main()
