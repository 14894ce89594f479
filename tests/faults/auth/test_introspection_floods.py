"""A flood of made-up opaque tokens from one address, and callers from others, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from tests.cases import for_each
from tests.rigs.event_loop import on_a_loop
from tests.rigs.http_connection import HttpConnection, call, text_of
from tests.unit.auth.tokens import JsonServer, json_server
from trunkline import Context, HttpSettings, Server
from trunkline.auth import Introspection
from trunkline.transports.addresses import Http

FLOOD = "127.0.0.2"
FLOOD_SIZE = 140


class FloodedServer(NamedTuple):
    """A server whose tokens are verified by introspection, and its authorization server."""

    port: int
    login: JsonServer
    # Requests about made-up tokens wait for it.
    held: asyncio.Event

    async def ask(self, token: str, address: str, **headers: str) -> tuple[int, str]:
        """Return status and answer of a call from an address."""
        wire = await HttpConnection.open(self.port, local_addr=(address, 0))
        try:
            given: dict[str, Any] = {**call("caller"), **headers}
            found = await wire.ask("POST", "/mcp", authorization=f"Bearer {token}", **given)
            return found.status, text_of(found) if found.status == 200 else ""
        finally:
            wire.close()


@asynccontextmanager
async def flooded_server(**settings: Any) -> AsyncIterator[FloodedServer]:
    app = Server("opaque")

    @app.tool
    async def caller(ctx: Context) -> str:
        assert ctx.principal is not None
        return ctx.principal.subject

    held = asyncio.Event()

    async def introspect(body: bytes) -> Any:
        token = body.partition(b"token=")[2].partition(b"&")[0].decode()
        if token.startswith("good"):
            return {"active": True, "sub": token}
        if token.startswith("boom"):
            return b"not an answer"
        await held.wait()
        return {"active": False}

    async with json_server() as login:
        login.answers["/introspect"] = introspect
        auth = Introspection(
            endpoint=f"{login.origin}/introspect",
            client_id="a",
            client_secret="b",
            audience=None,
            timeout=60,
        )
        http = HttpSettings(**settings)
        async with app.listen("http://127.0.0.1:0/mcp", auth=auth, http=http) as listener:
            assert isinstance(listener.address, Http)
            yield FloodedServer(listener.address.port, login, held)


@for_each("is_proxied", [False, True])
@on_a_loop
async def test_good_tokens_are_verified_during_a_flood_of_made_up_ones(is_proxied: bool) -> None:
    settings = {"trusted_proxies": ["127.0.0.0/8"]} if is_proxied else {}
    async with flooded_server(**settings) as served:

        def ask(token: str, address: str) -> Any:
            if is_proxied:
                return served.ask(token, "127.0.0.9", x_forwarded_for=address.replace("127", "10"))
            return served.ask(token, address)

        flood = [asyncio.create_task(ask(f"r{each}", FLOOD)) for each in range(FLOOD_SIZE)]
        # Alone it has 7/8 of 64 requests.
        while len(served.login.requests) < 56:
            await asyncio.sleep(0.001)
        for number in range(5):
            assert await ask(f"good{number}", f"127.0.0.{3 + number}") == (200, f"good{number}")
        # None of the flood has an answer of its own: they wait for their turn.
        assert not any(each.done() for each in flood)
        served.held.set()
        assert {await each for each in flood} == {(401, "")}


@on_a_loop
async def test_good_tokens_are_verified_after_one_that_provokes_a_failure() -> None:
    async with flooded_server() as served:
        for _ in range(10):
            assert await served.ask("boom", FLOOD) == (503, "")
        assert await served.ask("good", "127.0.0.1") == (200, "good")
