"""Blanks around the values of headers: on a socket, and from an ASGI server that keeps them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from trunkline import Server

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
PARAMS = {"name": "echo", "arguments": {}, "_meta": META}
BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": PARAMS}).encode()


def served() -> Server:
    app = Server("blanks")
    app.add_tool(lambda: "done", "echo", description="Answer.", inline=True)
    return app


def headers(host: str, name: bytes) -> list[tuple[bytes, bytes]]:
    """Return the headers of a call, all with blanks; `name` is that of the tool."""
    return [
        (b"host", f"\t{host} \t ".encode()),
        (b"content-type", b"application/json "),
        (b"accept", b" application/json, text/event-stream\t"),
        (b"mcp-protocol-version", b" 2026-07-28 "),
        (b"mcp-method", b"tools/call\t"),
        (b"mcp-name", name),
        (b"content-length", b" %d " % len(BODY)),
    ]


async def over_socket(name: bytes) -> tuple[int, Any]:
    """Return status and body of a call on a socket."""
    async with served().listen("http://127.0.0.1:0/mcp") as listening:
        host, port = listening.address.host, listening.address.port
        reader, writer = await asyncio.open_connection(host, port)
        lines = [b"POST /mcp HTTP/1.1", b"Connection: close"]
        lines += [b"%b:%b" % each for each in headers(f"{host}:{port}", name)]
        writer.write(b"\r\n".join([*lines, b"", BODY]))
        head, _, content = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
    return int(head.split()[1]), json.loads(content)


async def over_asgi(name: bytes) -> tuple[int, Any]:
    """Return status and body of a call through ASGI."""
    sent: list[dict[str, Any]] = []
    waiting = [{"type": "http.request", "body": BODY, "more_body": False}]
    done = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop()
        await done.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
        "headers": headers("localhost", name),
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    await served().asgi()(scope, receive, send)
    done.set()
    return sent[0]["status"], json.loads(b"".join(each.get("body", b"") for each in sent))


WAYS = [over_socket, over_asgi]
Way = Callable[[bytes], Awaitable[tuple[int, Any]]]


def posted(way: Way, name: bytes) -> tuple[int, Any]:
    async def bounded() -> tuple[int, Any]:
        async with asyncio.timeout(10):
            return await way(name)

    return asyncio.run(bounded())


@pytest.mark.parametrize("way", WAYS)
def test_blanks_around_a_value_are_not_part_of_it(way: Way) -> None:
    for name in (b"echo", b"  echo", b"echo \t ", b"\t echo\t"):
        status, answer = posted(way, name)
        assert (status, "result" in answer) == (200, True), name


@pytest.mark.parametrize("way", WAYS)
def test_blanks_inside_a_value_are(way: Way) -> None:
    status, answer = posted(way, b" ec ho ")
    assert (status, answer["error"]["code"]) == (400, -32020)
