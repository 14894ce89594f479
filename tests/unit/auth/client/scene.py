"""A protected server, its authorization server and a client, over real sockets."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from trunkline import Client, Context, Server
from trunkline.auth import Dpop, JwtBearer
from trunkline.testing import AuthorizationServer

__all__ = ["SCOPES", "Scene", "scene"]

SCOPES = ("files:read", "files:write")


class Scene(NamedTuple):
    """What a test talks to."""

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

    return app


@asynccontextmanager
async def scene(
    *, dpop: bool = False, nonces: bool = False, **options: Any
) -> AsyncIterator[Scene]:
    """Start both servers; `options` are those of the authorization server."""
    options.setdefault("scopes", SCOPES)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
    async with AuthorizationServer(dpop_nonces=nonces, **options) as login:
        verifier: Any = JwtBearer(issuer=login.issuer, audience=url)
        if dpop:
            verifier = Dpop(verifier, nonces=nonces)
        async with files_server().listen(url, sock=sock, auth=verifier):
            yield Scene(url, login)
