"""The command line of MCP Inspector: a process and a connection for each step.

python -m interop.matrix.drivers.inspector NODE PROGRAM '{"command": [...]}' ERA
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from .protocol import Lacks, Target, drive, parameters, result_of

PROGRAM = sys.argv[1:3]
# Linux allows 128 KiB for each argument of a command.
MAX_ARGUMENT_BYTES = 120_000


class _Verbs:
    """What the matrix asks for, as options of the command line."""

    def __init__(self, home: Path, era: str) -> None:
        self._home = home
        self._options = ["--config", str(home / "servers.json"), "--server", "server"]
        self._options += ["--format", "json", "--quiet", "--protocol-era", era]

    async def _run(self, method: str, *options: str) -> dict[str, Any]:
        """Return the result of a method.

        Raises:
            Lacks: the Inspector does not send such a request.
            RuntimeError: it printed an error.
        """
        process = await asyncio.create_subprocess_exec(
            *PROGRAM,
            *("--cli", *self._options, "--method", method, *options),
            env={**os.environ, "HOME": str(self._home), "MCP_INSPECTOR_SECRET_STORE": "memory"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = (each.decode() for each in await process.communicate())
        for line in (*output.splitlines(), *errors.splitlines()):
            if line.startswith('{"result":'):
                found: dict[str, Any] = json.loads(line)["result"]
                return found
        if "tool_not_found" in errors:
            raise Lacks("it looks a tool up in the list first, and does not send such a call")
        raise RuntimeError(errors.strip() or output.strip())

    async def tools(self) -> dict[str, list[str]]:
        found = await self._run("tools/list")
        return {each["name"]: parameters(each["inputSchema"]) for each in found["tools"]}

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if len(json.dumps(arguments)) > MAX_ARGUMENT_BYTES:
            raise Lacks("an argument of a command has up to 128 KiB")
        given = ("--tool-name", name, "--tool-args-json", json.dumps(arguments))
        return result_of(await self._run("tools/call", *given))

    async def at_once(self, calls: list[Any]) -> list[Any]:
        raise Lacks("one request per process")

    async def resources(self) -> list[str]:
        return [each["uri"] for each in (await self._run("resources/list"))["resources"]]

    async def templates(self) -> list[str]:
        found = await self._run("resources/templates/list")
        return [each["uriTemplate"] for each in found["resourceTemplates"]]

    async def read(self, uri: str) -> dict[str, Any]:
        content = (await self._run("resources/read", "--uri", uri))["contents"][0]
        return {"text": content.get("text"), "blob": content.get("blob")}

    async def prompts(self) -> list[str]:
        return [each["name"] for each in (await self._run("prompts/list"))["prompts"]]

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[str]:
        given = [f"{key}={value}" for key, value in arguments.items()]
        options = ["--prompt-args", *given] if given else []
        found = await self._run("prompts/get", "--prompt-name", name, *options)
        return [each["content"]["text"] for each in found["messages"]]


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[_Verbs]:
    """Write the list of servers that the command line reads."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        command, *arguments = target.command or [""]
        server = (
            {"type": "streamable-http", "url": target.url}
            if target.url
            else {"command": command, "args": arguments, "cwd": os.getcwd()}
        )
        (home / "servers.json").write_text(json.dumps({"mcpServers": {"server": server}}))
        yield _Verbs(home, "modern" if target.is_modern else "legacy")


if __name__ == "__main__":
    sys.argv[1:3] = []
    drive(opened)
