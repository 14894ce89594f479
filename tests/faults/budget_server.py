"""A server whose handlers hold what they get; started by the tests of its limits.

The first argument sets its limits. It serves the standard streams, or the address that is its
second argument, which it then prints; with TLS if files of a certificate and a key follow.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from trunkline import Server, ServerLimits, SocketLimits, Tls
from trunkline.jsonrpc import Policy
from trunkline.server.api.run import run_listening
from trunkline.transports.addresses import parse_address

logging.basicConfig(level="WARNING", format="%(levelname)s %(message)s")
settings = json.loads(sys.argv[1])
policy = Policy.mcp(settings.pop("revision")) if "revision" in settings else None
app = Server("budgets", limits=ServerLimits(**settings), policy=policy)


async def _wait_for(path: str) -> None:
    while not Path(path).exists():
        await asyncio.sleep(0.005)


@app.tool
async def hold(text: str, path: str) -> int:
    """Hold a text until there is a file."""
    await _wait_for(path)
    return len(text)


@app.tool
async def page(size: int, path: str = "") -> str:
    """Return a long text, once there is a file."""
    if path:
        await _wait_for(path)
    return "y" * size


@app.tool
async def echo(text: str) -> str:
    return text


@app.tool
def block(path: str) -> str:
    """Say that a thread is taken, and block it until there is a file."""
    with Path(path + ".begun").open("a") as file:
        file.write("x")
    while not Path(path).exists():
        time.sleep(0.005)
    return "done"


@app.tool
def on_a_thread() -> str:
    return "served"


@app.tool(inline=True)
def stats() -> dict[str, Any]:
    return to_builtins(app.stats())  # type: ignore[no-any-return]  # of a Struct, a dict


@app.method("x/stats", inline=True)
def plain_stats() -> dict[str, Any]:
    """The same, where no handler may start: it is answered by name."""
    return to_builtins(app.stats())  # type: ignore[no-any-return]  # as above


@app.notification("x/wait")
async def wait(params: dict[str, Any]) -> None:
    await _wait_for(params["path"])


@app.notification("x/block")
def block_too(params: dict[str, Any]) -> None:
    while not Path(params["path"]).exists():
        time.sleep(0.005)


@app.notification("x/exit")
async def leave(params: dict[str, Any]) -> None:
    raise {"exit": SystemExit, "interrupt": KeyboardInterrupt}[params["how"]]("bye")


@app.notification("x/exit-on-a-thread")
def leave_too(params: dict[str, Any]) -> None:
    raise {"exit": SystemExit, "interrupt": KeyboardInterrupt}[params["how"]]("bye")


@app.resource("note://{name}")
def note(name: str) -> str:
    return name


if len(sys.argv) > 2:
    tls = Tls(cert=sys.argv[3], key=sys.argv[4]) if len(sys.argv) > 3 else None
    where = parse_address(sys.argv[2], tls=tls)
    run_listening(app, where, SocketLimits(), on_ready=lambda address: print(address, flush=True))
else:
    app.run()
