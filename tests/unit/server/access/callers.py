"""Connections in memory whose caller is known, for tests of access."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.rigs.messages import HANDSHAKE, META, PER_REQUEST
from tests.rigs.server_connection import WAIT, ServerConnection
from trunkline import Server
from trunkline.auth import Principal
from trunkline.server.dispatch.connection import Connection

BOTH = (HANDSHAKE, PER_REQUEST)


def caller(subject: str = "ann", *scopes: str, **fields: Any) -> Principal:
    return Principal(
        issuer="https://as.example", subject=subject, scopes=frozenset(scopes), **fields
    )


class CallerWire(ServerConnection):
    """A connection of one caller, in one revision."""

    connection: Connection
    revision: str
    _last = 0

    def become(self, principal: Principal | None) -> None:
        """Let the next requests come from another caller, or with another credential."""
        self.connection.principal = principal

    async def request(self, method: str, **params: Any) -> Any:
        """Send a request; return its reply without `jsonrpc` and id."""
        self._last += 1
        if self.revision == PER_REQUEST:
            params["_meta"] = META
        id = f"r{self._last}"
        self.ask(id, method, params)
        reply = await self.answer(id)
        return reply.get("error") or reply["result"]

    async def tool(self, name: str, **arguments: Any) -> Any:
        return await self.request("tools/call", name=name, arguments=arguments)


@asynccontextmanager
async def connected_as(
    app: Server, principal: Principal | None, revision: str = HANDSHAKE
) -> AsyncIterator[CallerWire]:
    """A connection of a caller; with a handshake unless the revision has none."""
    wire = CallerWire()
    wire.revision = revision
    core = app._core
    wire.connection = Connection(core, wire.far)
    if principal is not None:
        wire.connection.use_principal(principal)

    async def serve() -> None:
        async with core.runtime.opened():
            await core.runtime.serve(wire.connection)

    serving = asyncio.create_task(serve())
    await wire.near.connect()
    try:
        await wire.open(revision)
        yield wire
    finally:
        await wire.near.close()
        await asyncio.wait_for(serving, WAIT)
    assert core.runtime.in_flight == 0
