"""A protected server, its authorization server and a client, over real sockets."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from trunkline import Client, Context, Server
from trunkline.auth import AuthSettings, Dpop, JwtBearer
from trunkline.testing import AuthorizationServer

__all__ = ["SCOPES", "ProtectedServer", "hosted", "protected_server"]

SCOPES = ("files:read", "files:write")


class ProtectedServer(NamedTuple):
    """The URL of a protected server, and its authorization server."""

    url: str
    login: AuthorizationServer

    def client(self, auth: Any, **options: Any) -> Client:
        return Client(self.url, auth=auth, **options)

    def forms(self, grant: str = "") -> list[dict[str, str]]:
        """Return what was asked for at the token endpoint."""
        return [
            {**each.parameters, "resource": " ".join(each.resources)}
            for each in self.login.requests
            if each.endpoint == "token" and grant in each.parameters.get("grant_type", "")
        ]


def files_server() -> Server:
    app = Server("files")

    @app.tool
    def subject(ctx: Context) -> str:
        """Return the caller."""
        assert ctx.principal is not None
        return f"{ctx.principal.subject} {' '.join(sorted(ctx.principal.scopes))}"

    @app.tool(scopes=["files:write"])
    def save() -> str:
        """Write a file."""
        return "saved"

    @app.resource("note://one")
    def note() -> str:
        """Return a note."""
        return "a note"

    @app.prompt
    def greeting() -> str:
        """Return a greeting."""
        return "Good morning"

    return app


@asynccontextmanager
async def protected_server(
    *, dpop: bool = False, nonces: bool = False, required: bool = True, **options: Any
) -> AsyncIterator[ProtectedServer]:
    """Start both servers; `options` are those of the authorization server.

    Without `required` the server answers requests that have no token, too.
    """
    options.setdefault("scopes", SCOPES)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
    async with AuthorizationServer(dpop_nonces=nonces, **options) as login:
        verifier: Any = JwtBearer(issuer=login.issuer, audience=url)
        if dpop:
            verifier = Dpop(verifier, nonces=nonces)
        if not required:
            verifier = AuthSettings(verifiers=[verifier], required=False)
        async with files_server().listen(url, sock=sock, auth=verifier):
            yield ProtectedServer(url, login)


@contextmanager
def hosted(**options: Any) -> Iterator[ProtectedServer]:
    """Start both servers in a thread, for tests that run the command."""
    ready: list[ProtectedServer] = []
    is_ready, loop = threading.Event(), asyncio.new_event_loop()
    is_over = asyncio.Event()

    async def main() -> None:
        async with protected_server(**options) as where:
            ready.append(where)
            is_ready.set()
            await is_over.wait()

    def run() -> None:
        try:
            loop.run_until_complete(main())
        finally:
            is_ready.set()
            loop.close()

    thread = threading.Thread(target=run, name="protected server")
    thread.start()
    is_ready.wait(60)
    try:
        yield ready[0]
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(is_over.set)
        thread.join(60)


@contextmanager
def hosted_openly() -> Iterator[str]:
    """Start a server that asks for no credential, in a thread; yield its URL."""
    found: list[str] = []
    is_ready, loop = threading.Event(), asyncio.new_event_loop()
    is_over = asyncio.Event()

    async def main() -> None:
        async with files_server().listen("http://127.0.0.1:0/mcp") as listener:
            found.append(str(listener.address))
            is_ready.set()
            await is_over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    is_ready.wait(60)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(is_over.set)
        thread.join(60)
        loop.close()
