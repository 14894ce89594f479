"""An MCP server in an application of another framework, under a server of another project.

    python -m tests.transports.asgi_host uvicorn starlette fd:7

It prints a line for what a test waits for: the lifespan, and what handlers see.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from trunkline import Context, HttpSettings, Server

# How server and framework are named to processes that granian starts.
SERVER = "TRUNKLINE_ASGI_SERVER"
MOUNT = "TRUNKLINE_ASGI_MOUNT"
SETTINGS = HttpSettings(old_sse=True)


def say(text: str) -> None:
    """Tell the test, at once."""
    os.write(1, f"{text}\n".encode())


@asynccontextmanager
async def lifespan(app: Server) -> AsyncIterator[str]:
    say("lifespan entered")
    # Leaving it in another task would raise.
    async with asyncio.TaskGroup():
        yield "state of the lifespan"
    say("lifespan exited")


def new_server() -> Server:
    server = Server("hosted", version="1.0.0", lifespan=lifespan)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def count(ctx: Context, to: int) -> str:
        for each in range(1, to + 1):
            await ctx.progress(each, to)
        return f"{ctx.state}"

    @server.tool
    async def wait() -> str:
        say("waiting")
        try:
            await asyncio.sleep(600)
        finally:
            say("cancelled")
        return "late"

    @server.tool
    def add_tool() -> str:
        server.add_tool(lambda: "x", "added", description="Added by a call.")
        return "added"

    return server


def plain() -> Any:
    return new_server().asgi(path="/api/mcp", http=SETTINGS)


def starlette() -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    app = new_server().asgi(path="/mcp", http=SETTINGS)
    routes = [Mount("/api", app=app)]
    if os.environ[SERVER] != "granian":
        return Starlette(routes=routes)

    # Granian closes its event loop and cancels nothing before that.
    @asynccontextmanager
    async def entered(_: Any) -> AsyncIterator[None]:
        async with app:
            yield

    return Starlette(routes=routes, lifespan=entered)


def fastapi() -> Any:
    from fastapi import FastAPI

    app = FastAPI()
    app.mount("/", new_server().asgi(path="/api/mcp", http=SETTINGS))
    return app


def django() -> Any:
    from django.conf import settings
    from django.core.asgi import get_asgi_application

    settings.configure(SECRET_KEY="x", ROOT_URLCONF=[], ALLOWED_HOSTS=["localhost"])
    pages, mcp = get_asgi_application(), new_server().asgi(path="/api/mcp", http=SETTINGS)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/api/"):
            await mcp(scope, receive, send)
        else:
            await pages(scope, receive, send)

    return application


def application() -> Any:
    return {"plain": plain, "starlette": starlette, "fastapi": fastapi, "django": django}[
        os.environ[MOUNT]
    ]()


def main(server: str, mount: str, place: str) -> None:
    os.environ[SERVER], os.environ[MOUNT] = server, mount
    where = place.partition(":")[2]
    if server == "uvicorn":
        import uvicorn

        config = uvicorn.Config(
            application(), fd=int(where), log_level="warning", timeout_graceful_shutdown=5
        )
        uvicorn.Server(config).run()
    elif server == "hypercorn":
        from hypercorn.asyncio import serve
        from hypercorn.config import Config

        settings = Config()
        settings.bind = [f"fd://{where}"]
        settings.graceful_timeout = 5
        asyncio.run(serve(application(), settings))
    else:
        from granian import Granian
        from granian.constants import Interfaces

        Granian(
            "tests.transports.asgi_host:application",
            factory=True,
            uds=Path(where),
            interface=Interfaces.ASGI,
            log_enabled=False,
        ).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
