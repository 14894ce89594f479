"""The servers of Python libraries over HTTP, one in each process, at a free port that is printed.

    python -m bench.servers.over_http own|asgi|mcp json|sse [--auth KEY] [--tracing] TOOL...

`own` is the HTTP server of Trunkline, `asgi` its ASGI application under uvicorn, `mcp` the
application of mcp under uvicorn. uvicorn finds httptools and uses it; the event loop is that of
asyncio for all. The form decides what mcp and `own` answer with; `asgi` decides by the Accept
header. With the form `ws`, `own` also serves WebSocket. KEY is a public JWK as JSON; requests
then need a token that it verifies.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

PATH: Final = "/mcp"
# Connections are idle while other servers are measured.
_IDLE_S: Final = 600
# Two benchmarks have hundreds of clients; by default 1024 connections are open at most.
_CONNECTIONS: Final = 10_000


async def _own(tools: list[str], form: str, key: Any) -> None:
    from bench.servers import ours
    from trunkline import HttpLimits, HttpSettings
    from trunkline.transports.http.endpoint import exchange

    if form == "sse":
        # Clients accept both forms, and a single answer would be JSON.
        exchange._accepted = lambda _accept: (False, True)
    limits = HttpLimits(idle_timeout=_IDLE_S, connections=_CONNECTIONS)
    auth = None
    if key:
        from bench.servers.tokens import verifier_of

        auth = verifier_of(key)
    settings = HttpSettings(websocket=form == "ws")
    address = f"http://127.0.0.1:0{PATH}"
    app = ours.make(*tools)
    async with app.listen(address, limits=limits, http=settings, auth=auth) as listening:
        print(listening.address, flush=True)
        await listening.wait()


def _asgi(tools: list[str]) -> Any:
    from bench.servers import ours

    return ours.make(*tools).asgi(path=PATH)


def _mcp(tools: list[str], form: str, key: Any) -> Any:
    from bench.servers import mcpserver

    options: dict[str, Any] = {}
    if key:
        from mcp.server.auth.settings import AuthSettings
        from pydantic import AnyHttpUrl

        from bench.servers.token_check import SameCheck
        from bench.servers.tokens import ALGORITHM, AUDIENCE, ISSUER

        options["token_verifier"] = SameCheck(ALGORITHM, key)
        options["auth"] = AuthSettings(
            issuer_url=AnyHttpUrl(ISSUER),
            resource_server_url=AnyHttpUrl(AUDIENCE),
            validate_token_resource=True,
        )
    return mcpserver.make(*tools, **options).streamable_http_app(json_response=form == "json")


async def under_uvicorn(application: Any) -> None:
    """Serve an application, and print where, until the process is ended."""
    import uvicorn

    config = uvicorn.Config(
        application,
        host="127.0.0.1",
        port=0,
        loop="asyncio",
        log_level="warning",
        timeout_keep_alive=_IDLE_S,
    )
    # Not on a socket made here: uvicorn would leave Nagle's algorithm on.
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}{PATH}", flush=True)
    await serving


def main() -> None:
    """Serve until the process is ended."""
    server, form, *tools = sys.argv[1:]
    key = None
    if tools[0] == "--auth":
        key, tools = json.loads(tools[1]), tools[2:]
    if server == "own":
        asyncio.run(_own(tools, form, key))
    else:
        asyncio.run(under_uvicorn(_asgi(tools) if server == "asgi" else _mcp(tools, form, key)))


if __name__ == "__main__":
    main()
