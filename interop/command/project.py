"""`init` and `serve`: a new project, and clients written elsewhere that use its server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from ..checks import describe, expect
from ..matrix.pins import pypi_version
from .scene import COMMAND

__all__ = ["CLIENTS", "ERAS", "run_project"]

# The modes of both clients, by era.
ERAS: Final = {"handshake": "legacy", "per-request": "auto"}
TIMEOUT_S: Final = 60.0

Use = Callable[[list[str], str], Awaitable[str]]


# Each client is imported where it is used: tests read this module without it.


async def _with_mcp(command: list[str], mode: str) -> str:
    import mcp
    import mcp_types as types

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"value": "French"})

    server = mcp.StdioServerParameters(command=command[0], args=command[1:])
    async with mcp.Client(server, mode=mode, elicitation_callback=elicit) as client:
        listed = await client.list_tools()
        expect([tool.name for tool in listed.tools], ["greet"])
        read = await client.read_resource("greeting://Spanish")
        expect(read.contents[0].text, "Hola")
        got = await client.get_prompt("card", {"name": "Ada"})
        expect("for Ada" in got.messages[0].content.text, True)
        result = await client.call_tool("greet", {"name": "Ada"})
        return str(result.content[0].text)


async def _with_fastmcp(command: list[str], mode: str) -> str:
    import fastmcp
    from fastmcp.client.transports import StdioTransport

    async def elicit(message: str, kind: Any, params: Any, context: Any) -> Any:
        return {"value": "French"}

    transport = StdioTransport(command[0], command[1:], keep_alive=False)
    async with fastmcp.Client(transport, mode=mode, elicitation_handler=elicit) as client:
        expect([tool.name for tool in await client.list_tools()], ["greet"])
        read = await client.read_resource("greeting://Spanish")
        expect(read[0].text, "Hola")
        got = await client.get_prompt("card", {"name": "Ada"})
        expect("for Ada" in got.messages[0].content.text, True)
        result = await client.call_tool("greet", {"name": "Ada"})
        return str(result.content[0].text)


CLIENTS: Final[dict[str, Use]] = {
    f"mcp {pypi_version('mcp', 'interop.txt')}": _with_mcp,
    f"fastmcp {pypi_version('fastmcp', 'interop-fastmcp.txt')}": _with_fastmcp,
}


async def run_project(folder: Path) -> dict[tuple[str, str], str]:
    """Write a project, and have each client use it; return what failed, or an empty text."""
    folder.mkdir()
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "init", "greeter", cwd=folder, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    expect((process.returncode, out.startswith(b"Created greeter in greeter\n")), (0, True))
    command = [sys.executable, *COMMAND[1:], "serve", str(folder / "greeter" / "greeter.py")]
    results: dict[tuple[str, str], str] = {}
    for client, use in CLIENTS.items():
        for era, mode in ERAS.items():
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    expect(await use(command, mode), "Bonjour, Ada!")
            except Exception as error:  # noqa: BLE001  # what a check raises is what it found
                results[client, era] = describe(error) or type(error).__name__
            else:
                results[client, era] = ""
    return results
