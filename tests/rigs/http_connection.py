"""A client of HTTP on a real socket: one connection, requests in order, responses in full."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.rigs.conditions import WAIT_S
from tests.rigs.http_requests import request_head
from tests.rigs.http_responses import Malformed, Response, read_responses
from tests.rigs.messages import HANDSHAKE, META, PER_REQUEST, frame, initialize_params


class HttpConnection:
    """One connection of a client that sends requests in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._methods: list[str] = []
        self._got = b""

    @classmethod
    async def open(cls, port: int, host: str = "127.0.0.1", **options: Any) -> HttpConnection:
        return cls(*await asyncio.open_connection(host, port, **options))

    @classmethod
    async def open_unix(cls, path: str) -> HttpConnection:
        return cls(*await asyncio.open_unix_connection(path))

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        host: str = "localhost",
        **headers: str,
    ) -> None:
        self._methods.append(method)
        given = [("Host", host)]
        if body is not None:
            given += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        given += [(name.replace("_", "-"), value) for name, value in headers.items()]
        self._writer.write(request_head(method, path, given) + (body or b""))

    async def answers(self, count: int) -> list[Response]:
        """Return the responses so far, once so many are whole."""
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    found = read_responses(self._got, self._methods, False)
                except Malformed:
                    found = []  # a part of one; at the end of the connection it is a fault
                if len([each for each in found if each.is_whole]) >= count:
                    return found
                data = await self._reader.read(65536)
                if not data:
                    return read_responses(self._got, self._methods, True)
                self._got += data

    async def ask(
        self, method: str, path: str, body: bytes | None = None, **given: str
    ) -> Response:
        self.send(method, path, body, **given)
        return (await self.answers(len(self._methods)))[-1]

    async def until(self, text: bytes) -> None:
        """Read until a text has come."""
        async with asyncio.timeout(WAIT_S):
            while text not in self._got:
                data = await self._reader.read(65536)
                assert data, self._got
                self._got += data

    async def ended(self) -> bytes:
        """Read to the end, and return everything."""
        async with asyncio.timeout(WAIT_S):
            try:
                while data := await self._reader.read(65536):
                    self._got += data
            except ConnectionResetError:
                pass
        return self._got

    def close(self) -> None:
        self._writer.close()


async def fetch(
    port: int, method: str, path: str, body: bytes | None = None, **given: str
) -> Response:
    """Return the response to one request, on a connection of its own."""
    wire = await HttpConnection.open(port)
    try:
        return await wire.ask(method, path, body, **given)
    finally:
        wire.close()


def call(tool: str, id: Any = 1, **arguments: Any) -> dict[str, Any]:
    """Return body and headers of a single request that calls a tool."""
    params = {"name": tool, "arguments": arguments, "_meta": META}
    return {
        "body": frame("tools/call", params, id),
        "mcp_protocol_version": PER_REQUEST,
        "mcp_method": "tools/call",
        "mcp_name": tool,
    }


def initialize(revision: str = HANDSHAKE) -> bytes:
    """Return the body of the request that opens a session."""
    return frame("initialize", initialize_params(revision))


def text_of(answered: Response) -> str:
    """Return the text that a tool has answered with."""
    found: str = json.loads(answered.body)["result"]["content"][0]["text"]
    return found
