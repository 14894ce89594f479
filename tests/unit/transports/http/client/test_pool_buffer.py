"""The connections of an HTTP client to one server."""

from __future__ import annotations

import asyncio
import sys

import pytest

from trunkline.transports.addresses import parse_address
from trunkline.transports.http.client.pool import ConnectionPool


async def buffer_of_a_connection() -> memoryview:
    pool = ConnectionPool(
        parse_address("http://127.0.0.1:1/mcp"),  # type: ignore[arg-type]  # an Http
        connections=1,
        connect_timeout=1.0,
        context=None,
        proxy=None,
    )
    return pool._make().buffer


@pytest.mark.skipif(sys.platform == "win32", reason="its loop reads in the background")
def test_clients_on_one_event_loop_read_into_the_same_memory() -> None:
    async def main() -> tuple[memoryview, memoryview]:
        return await buffer_of_a_connection(), await buffer_of_a_connection()

    first, second = asyncio.run(main())
    assert first is second


def test_clients_on_different_event_loops_read_into_different_memory() -> None:
    # Both are kept: memory that was freed may be given out again.
    first, second = asyncio.run(buffer_of_a_connection()), asyncio.run(buffer_of_a_connection())
    assert first.obj is not second.obj
