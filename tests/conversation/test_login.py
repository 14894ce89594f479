"""A user logs in at a protected server: our server, our client, both eras, HTTP and WebSocket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.unit.auth.client.login.protected_stub import Browser
from trunkline import Client, Context, HttpSettings, Server, SyncClient
from trunkline.auth import Dpop, JwtBearer, OAuth
from trunkline.testing import AuthorizationServer

ERAS = ("2025-11-25", "2026-07-28")


def files_app() -> Server:
    app = Server("files")

    @app.tool(scopes=["files:read"])
    def read(ctx: Context) -> str:
        """Return the caller."""
        assert ctx.principal is not None
        return ctx.principal.subject

    @app.tool(scopes=["files:write"])
    def write(ctx: Context) -> str:
        """Return the scopes of the caller."""
        assert ctx.principal is not None
        return " ".join(sorted(ctx.principal.scopes))

    return app


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[tuple[str, AuthorizationServer]]:
    """Start a protected server and its authorization server; yield the URL of the first."""
    is_bound = options.pop("dpop", False)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
    scopes = ["files:read", "files:write"]
    async with AuthorizationServer(scopes=scopes, user="ann", **options) as login:
        verifier: Any = JwtBearer(issuer=login.issuer, audience=url)
        auth = Dpop(verifier, nonces=True) if is_bound else verifier
        http = HttpSettings(websocket=True)
        async with files_app().listen(url, sock=sock, auth=auth, http=http):
            yield url, login


def run(main: Any) -> None:
    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("dpop", [False, True])
def test_a_user_logs_in_calls_and_is_asked_for_more_when_a_tool_needs_it(
    revision: str, dpop: bool
) -> None:
    async def main() -> None:
        browser = Browser()
        async with served(dpop=dpop, dpop_nonces=dpop) as (url, _):
            auth = OAuth(open_url=browser.open, scopes=["files:read"])
            async with Client(url, auth=auth, revision=revision) as client:
                assert (await client.call_tool("read")).text == "ann"
                assert (await client.call_tool("write")).text == "files:read files:write"
                assert {tool.name for tool in await client.list_tools()} == {"read", "write"}
            # Another connection uses what was kept.
            async with Client(url, auth=auth, revision=revision) as client:
                assert (await client.call_tool("write")).text == "files:read files:write"
        asked = [parse_qs(each)["scope"] for each in browser.queries()]
        assert asked == [["files:read"], ["files:read files:write"]]

    run(main)


def test_tokens_that_end_are_renewed_while_calls_go_on() -> None:
    async def main() -> None:
        browser = Browser()
        async with served(access_lifetime=1) as (url, login):
            auth = OAuth(open_url=browser.open, scopes=["files:read"])
            async with Client(url, auth=auth) as client:
                while len(login.asked("token")) < 3:
                    assert (await client.call_tool("read")).text == "ann"
                    await asyncio.sleep(0.02)
        assert len(browser.urls) == 1
        grants = [each.parameters["grant_type"] for each in login.asked("token")]
        assert grants == ["authorization_code", "refresh_token", "refresh_token"]

    run(main)


@pytest.mark.parametrize("revision", ERAS)
def test_a_websocket_is_opened_after_a_login(revision: str) -> None:
    async def main() -> None:
        browser = Browser()
        async with served() as (url, _):
            auth = OAuth(open_url=browser.open, scopes=["files:read"])
            there = url.replace("http://", "ws://")
            async with Client(there, auth=auth, revision=revision) as client:
                assert (await client.call_tool("read")).text == "ann"
            # The login is that of the server, whatever carries the messages.
            async with Client(url, auth=auth, revision=revision) as client:
                assert (await client.call_tool("read")).text == "ann"
        assert len(browser.urls) == 1

    run(main)


def test_a_synchronous_client_logs_in() -> None:
    async def main() -> None:
        browser = Browser()
        async with served() as (url, _):

            def use() -> str:
                auth = OAuth(open_url=browser.open, scopes=["files:read"])
                with SyncClient(url, auth=auth) as client:
                    return client.call_tool("read").text

            assert await asyncio.to_thread(use) == "ann"

    run(main)
