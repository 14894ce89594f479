"""A server that listens where its first argument says; started by the tests beside it.

It says where on its standard output, one line, once it does. The second argument sets limits of
the sockets, the third those of the server.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trunkline import Server, ServerLimits, SocketLimits
from trunkline.server.api.run import run_listening

logging.basicConfig(level="WARNING", format="%(levelname)s %(message)s")


@asynccontextmanager
async def lifespan(app: Server) -> AsyncIterator[None]:
    print("lifespan entered", file=sys.stderr, flush=True)
    yield
    print("lifespan left", file=sys.stderr, flush=True)


given = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
app = Server("sockets", limits=ServerLimits(**{"grace": 3600, **given}), lifespan=lifespan)


@app.tool
async def echo(text: str) -> str:
    return text


@app.tool
async def large(size: int) -> str:
    return "x" * size


@app.tool
async def until_file(path: str) -> str:
    """Say that it has begun, and wait for a file."""
    Path(path + ".begun").touch()
    while not Path(path).exists():
        await asyncio.sleep(0.005)
    return path


limits = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
run_listening(
    app,
    sys.argv[1],
    SocketLimits(**limits),
    on_ready=lambda address: print(address, flush=True),
)
