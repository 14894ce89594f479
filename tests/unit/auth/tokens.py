"""Keys, tokens and a small HTTP server for the tests of verifiers."""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from inspect import isawaitable
from typing import Any

from trunkline.auth.jose import SigningKey
from trunkline.auth.server.verifiers.credential import Credential

ISSUER = "https://login.example.org"
AUDIENCE = "https://mcp.example.org/mcp"
NOW = 1_800_000_000.0


@cache
def key(algorithm: str = "ES256", key_id: str | None = "one", number: int = 0) -> SigningKey:
    """Return a key, the same for equal arguments: RSA keys take long to make."""
    return SigningKey.generate(algorithm, key_id=key_id)


def jwks(*keys: SigningKey) -> dict[str, Any]:
    return {"keys": [each.public_jwk for each in keys or (key(),)]}


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a valid token; a change to `...` leaves a claim out."""
    found = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ann",
        "client_id": "editor",
        "scope": "files:read files:write",
        "iat": int(NOW) - 10,
        "exp": int(NOW) + 300,
        **changes,
    }
    return {name: value for name, value in found.items() if value is not ...}


def token(
    signer: SigningKey | None = None, header: dict[str, Any] | None = None, **changes: Any
) -> str:
    head = {"typ": "at+jwt", **(header or {})}
    return (signer or key()).sign(claims(**changes), head)


def segment(data: object) -> bytes:
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    return urlsafe_b64encode(text).rstrip(b"=")


def raw_token(header: object, payload: object, signer: SigningKey | None = None) -> str:
    """Return a token of a header and a payload as they are, signed well."""
    from joserfc.jws import JWSRegistry

    used = signer or key()
    signed = segment(header) + b"." + segment(payload)
    signature = JWSRegistry(algorithms=[used.algorithm]).get_alg(used.algorithm)
    return (signed + b"." + segment(signature.sign(signed, used._key))).decode()


def bearer(text: str, **more: Any) -> Credential:
    return Credential("bearer", text, **more)


class JsonServer:
    """Answers requests by path, and counts them.

    `answers` has documents, or functions of the body of the request, coroutines perhaps; what is
    not there is 404.
    """

    def __init__(self) -> None:
        self.origin = ""
        self.answers: dict[str, Any] = {}
        self.status = 200
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        # Requests wait for it.
        self.gate: asyncio.Event | None = None

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.requests]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            path = head[0].split(" ")[1]
            self.requests.append((path, headers, body))
            if self.gate is not None:
                await self.gate.wait()
            answer = self.answers.get(path)
            status = 404 if answer is None else self.status
            found = answer(body) if callable(answer) else answer
            found = await found if isawaitable(found) else found
            data = found if isinstance(found, bytes) else json.dumps(found).encode()
            writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: {len(data)}\r\n\r\n".encode())
            writer.write(data)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.close()


@asynccontextmanager
async def json_server() -> AsyncIterator[JsonServer]:
    found = JsonServer()
    server = await asyncio.start_server(found._serve, "127.0.0.1", 0)
    found.origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield found
    finally:
        server.close()


@asynccontextmanager
async def issuer(*keys: SigningKey) -> AsyncIterator[JsonServer]:
    """Run an authorization server that publishes metadata and keys."""
    async with json_server() as server:
        server.answers["/.well-known/oauth-authorization-server"] = {
            "issuer": server.origin,
            "jwks_uri": f"{server.origin}/jwks",
            "introspection_endpoint": f"{server.origin}/introspect",
        }
        server.answers["/jwks"] = jwks(*keys)
        yield server
