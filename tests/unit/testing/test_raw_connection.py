"""A line to a server in this process: what is sent on it, and what it hands on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from trunkline import Context, PeerError, Server
from trunkline.mcp.types import ClientCapabilities, ClientCapabilitiesRoots
from trunkline.testing.raw_connection import open_connection

ROOTS = ClientCapabilities(roots=ClientCapabilitiesRoots())


def server(**options: Any) -> Server:
    app = Server("tests", **options)

    @app.tool
    async def look(context: Context) -> str:
        context.log("debug", "looking")
        context.progress(1)
        try:
            return str(len(await context.roots()))
        except PeerError as error:
            return f"refused with {error.code}"

    return app


CALL = {"name": "look", "arguments": {}}


def test_unanswered_server_request_gets_method_not_found() -> None:
    async def main() -> None:
        async with asyncio.timeout(10), open_connection(server(), "2025-11-25", ROOTS) as line:
            reply = await line.call("tools/call", CALL)
            assert reply["result"]["content"][0]["text"] == "refused with -32601"

    asyncio.run(main())


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
def test_the_whole_log_and_progress_are_asked_for(revision: str) -> None:
    async def main() -> None:
        told: list[Any] = []
        async with asyncio.timeout(10), open_connection(server(), revision, ROOTS) as line:
            line.on_notification = told.append
            await line.call("tools/call", CALL)
        assert [each["method"] for each in told] == [
            "notifications/message",
            "notifications/progress",
        ]

    asyncio.run(main())


def test_requests_are_handed_on_and_can_be_answered() -> None:
    async def main() -> None:
        async with asyncio.timeout(10), open_connection(server(), "2025-11-25", ROOTS) as line:
            result = {"roots": [{"uri": "file:///a"}]}
            line.on_request = lambda message: line.send({"id": message["id"], "result": result})
            reply = await line.call("tools/call", CALL)
            assert reply["result"]["content"][0]["text"] == "1"

    asyncio.run(main())


def test_a_server_that_cannot_begin_ends_the_line_with_its_own_reason() -> None:
    @asynccontextmanager
    async def broken(app: Server) -> AsyncIterator[None]:
        raise OSError("no database")
        yield

    async def main() -> None:
        async with (
            asyncio.timeout(10),
            open_connection(server(lifespan=broken), "2026-07-28", ROOTS),
        ):
            raise AssertionError("nothing can be open here")

    with pytest.raises(OSError, match="no database"):
        asyncio.run(main())
