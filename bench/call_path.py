"""The path of one `tools/call`: Python calls, modules and packages it passes through.

    python -m bench.call_path

A server on standard streams, a server over HTTP that verifies a JWT, and the client of that
server, each in two revisions. What is counted is the third of five calls, after five that warm
up: from one run of the handler to the next, so that the way out and the way in are both in it.
Calls of the standard library and of other packages count as Python calls, calls into C do not.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import trunkline
from trunkline import Client, Server, Stdio
from trunkline.auth import JwtBearer
from trunkline.testing import AuthorizationServer

REVISIONS: Final = ("2026-07-28", "2025-11-25")
_ROOT: Final = os.path.dirname(trunkline.__file__) + os.sep
_WARM_UP: Final = 5
_CALLS: Final = 5
_COUNTED: Final = 2
_SERVER_TIMEOUT_S: Final = 60


class CallPath(NamedTuple):
    """What one call passed through."""

    calls: int
    own_calls: int
    modules: int
    # In the order of calls: between packages (`server`), and between their rooms
    # (`server/dispatch`).
    package_switches: int
    room_switches: int
    depth: int


class Recorder:
    """Records the calls and returns of Python functions on every thread."""

    def __init__(self) -> None:
        self._events: list[tuple[bool, str, str]] = []

    def start(self) -> None:
        """Begin to record."""
        self._events.clear()
        threading.setprofile(self._record)
        sys.setprofile(self._record)

    def stop(self, marker: str) -> CallPath:
        """Return the path between two calls of the function with the qualified name `marker`."""
        sys.setprofile(None)
        threading.setprofile(None)
        marks = [i for i, each in enumerate(self._events) if each[0] and each[2] == marker]
        return _path_of(self._events[marks[_COUNTED] : marks[_COUNTED + 1]])

    def _record(self, frame: Any, event: str, _: object) -> None:
        if event in ("call", "return"):
            code = frame.f_code
            self._events.append((event == "call", code.co_filename, code.co_qualname))


def _path_of(events: list[tuple[bool, str, str]]) -> CallPath:
    calls = [file for is_call, file, _ in events if is_call]
    own = [file.removeprefix(_ROOT) for file in calls if file.startswith(_ROOT)]
    depth = deepest = 0
    for is_call, file, _ in events:
        if file.startswith(_ROOT):
            depth = max(0, depth + (1 if is_call else -1))
            deepest = max(deepest, depth)
    return CallPath(
        calls=len(calls),
        own_calls=len(own),
        modules=len(set(own)),
        package_switches=_switches([module.split(os.sep)[0] for module in own]),
        room_switches=_switches([_room_of(module) for module in own]),
        depth=deepest,
    )


def _room_of(module: str) -> str:
    """Return the package and sub-package of a file."""
    parts = module.split(os.sep)
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def _switches(places: list[str]) -> int:
    return sum(one != other for one, other in pairwise(places))


# -- the servers -----------------------------------------------------------------------------


def make_server() -> Server:
    """Return a server that records its own calls."""
    app, recorder = Server("call path", version="1"), Recorder()

    @app.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @app.tool
    async def start() -> str:
        """Begin to record."""
        recorder.start()
        return ""

    @app.tool
    async def stop() -> list[int]:
        """Return the path of a call of `add`."""
        return list(recorder.stop("make_server.<locals>.add"))

    return app


async def _serve_http() -> None:
    """Serve over HTTP with tokens; print the address and a token."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        async with AuthorizationServer(scopes=("a",)) as login:
            auth = JwtBearer(issuer=login.issuer, audience=url)
            async with make_server().listen(url, sock=listening, auth=auth):
                print(json.dumps([url, str(login.issue(audience=url))]), flush=True)
                await asyncio.sleep(_SERVER_TIMEOUT_S)


# -- the calls -------------------------------------------------------------------------------


async def _call(client: Client) -> None:
    await client.call_tool("add", {"a": 1, "b": 2})


async def _path_in_server(client: Client) -> CallPath:
    for _ in range(_WARM_UP):
        await _call(client)
    await client.call_tool("start", {})
    for _ in range(_CALLS):
        await _call(client)
    found = (await client.call_tool("stop", {})).value
    return CallPath(*found)


async def stdio_server(revision: str) -> CallPath:
    """Return the path of a call in a server on standard streams."""
    target = Stdio(sys.executable, ["-m", "bench.call_path", "stdio"], cwd=str(_project()))
    async with Client(target, revision=revision) as client:
        return await _path_in_server(client)


async def over_http(revision: str) -> tuple[CallPath, CallPath]:
    """Return the path of a call in a server over HTTP, and in its client."""
    command = [sys.executable, "-m", "bench.call_path", "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_project()) as server:
        try:
            assert server.stdout is not None
            url, token = json.loads(server.stdout.readline())
            headers = {"Authorization": f"Bearer {token}"}
            async with Client(url, revision=revision, headers=headers) as client:
                found = await _path_in_server(client)
                recorder = Recorder()
                recorder.start()
                for _ in range(_CALLS):
                    await _call(client)
                return found, recorder.stop("_call")
        finally:
            server.kill()


def _project() -> Path:
    return Path(__file__).resolve().parents[1]


def main() -> None:
    """Print the table, or serve."""
    if sys.argv[1:] == ["stdio"]:
        make_server().run()
        return
    if sys.argv[1:] == ["http"]:
        asyncio.run(_serve_http())
        return
    width = 34
    print(f"{'':{width}}" + "".join(f"{name.replace('_', ' '):>18}" for name in CallPath._fields))
    for revision in REVISIONS:
        on_stdio = asyncio.run(stdio_server(revision))
        server, client = asyncio.run(over_http(revision))
        for name, path in (
            ("stdio server", on_stdio),
            ("HTTP server with a JWT", server),
            ("HTTP client", client),
        ):
            print(f"{f'{name}, {revision}':{width}}" + "".join(f"{count:>18}" for count in path))


if __name__ == "__main__":
    main()
