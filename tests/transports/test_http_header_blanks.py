"""Blanks around the values of headers, over a real socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from trunkline import Server

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def posted(name: bytes) -> tuple[int, dict[str, Any]]:
    """Return status and body of a call of the tool "echo" with `name` after "Mcp-Name:"."""
    app = Server("blanks")
    app.add_tool(lambda: "done", "echo", description="Answer.", inline=True)
    params = {"name": "echo", "arguments": {}, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    async with asyncio.timeout(10), app.listen("http://127.0.0.1:0/mcp") as listening:
        address = listening.address
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(
            b"POST /mcp HTTP/1.1\r\n"
            + f"Host: \t{address.host}:{address.port} \t \r\n".encode()
            + b"Connection: close\r\nContent-Type: application/json \r\n"
            + b"Accept: application/json, text/event-stream\r\n"
            + b"MCP-Protocol-Version: 2026-07-28 \r\nMcp-Method:tools/call\t\r\n"
            + b"Mcp-Name:%b\r\n" % name
            + b"Content-Length: %d\r\n\r\n" % len(body)
            + body.encode()
        )
        head, _, content = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
    return int(head.split()[1]), json.loads(content)


def test_blanks_around_a_value_are_not_part_of_it() -> None:
    for name in (b"echo", b"  echo", b"echo \t ", b"\t echo\t"):
        status, answer = asyncio.run(posted(name))
        assert (status, "result" in answer) == (200, True), name


def test_blanks_inside_a_value_are() -> None:
    status, answer = asyncio.run(posted(b" ec ho "))
    assert (status, answer["error"]["code"]) == (400, -32020)
