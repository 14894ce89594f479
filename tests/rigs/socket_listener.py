"""A listener of sockets whose connections a test takes one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from trunkline.jsonrpc import Policy
from trunkline.transports.addresses import Tcp, Unix
from trunkline.transports.sockets.connection import AcceptedSocket
from trunkline.transports.sockets.listener import Listener

POLICY: Final = Policy()
ANY_PORT: Final = Tcp("127.0.0.1", 0)


@asynccontextmanager
async def accepting(
    address: Tcp | Unix = ANY_PORT, policy: Policy = POLICY, **options: Any
) -> AsyncIterator[tuple[Tcp | Unix, Callable[[], Awaitable[AcceptedSocket]]]]:
    """Listen; yield where, and what returns the next connection."""
    arrived: asyncio.Queue[AcceptedSocket] = asyncio.Queue()
    every: list[AcceptedSocket] = []

    def take(transport: AcceptedSocket) -> None:
        every.append(transport)
        arrived.put_nowait(transport)

    listener = Listener(address, policy, take, **options)
    await listener.open()
    try:
        yield listener.address, arrived.get
    finally:
        listener.close()
        for each in every:
            await each.close()
