"""The server of FastMCP, in an environment of its own.

    .venv-bench-fastmcp/bin/python bench/servers/fastmcp4.py TOOL...               # on stdio
    .venv-bench-fastmcp/bin/python bench/servers/fastmcp4.py --http json|sse TOOL...

Over HTTP it runs under uvicorn, at a free port that is printed.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from fastmcp import Context, FastMCP


async def echo(text: str) -> str:
    """Return the text."""
    return text


async def progress(ctx: Context, text: str) -> str:
    """Return the text after three reports."""
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3)
    return text


def make(*tools: str) -> FastMCP:
    """Return a server with these tools; each returns its text once, as those of the others."""
    app = FastMCP("bench", version="1.0.0")
    functions: dict[str, Any] = {"echo": echo, "progress": progress}
    for name in tools:
        app.tool(functions[name], output_schema=None)
    return app


def main() -> None:
    """Serve until the process is ended."""
    option, *tools = sys.argv[1:]
    if option == "--http":
        from bench.servers.over_http import under_uvicorn

        form, *tools = tools
        asyncio.run(under_uvicorn(make(*tools).http_app(path="/mcp", json_response=form == "json")))
    else:
        make(option, *tools).run(show_banner=False)


if __name__ == "__main__":
    main()
