"""The official client, with its own OAuth provider and a browser without a window."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

from ..checks import Unexpected
from .browser import REDIRECT, visit

__all__ = ["Tokens", "connected", "registered"]


class Tokens:
    """Keeps tokens and the registration in memory."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep the tokens."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registration."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the registration."""
        self.client = client_info


async def registered(issuer: str) -> Tokens:
    """Return storage with a registration that is not limited to any scopes.

    The official client registers with the scopes of its first request, and `oidc-provider` refuses
    others from then on: such a client cannot step up.
    """
    document = {
        "redirect_uris": [REDIRECT],
        "application_type": "native",
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
    }
    async with httpx2.AsyncClient(trust_env=False) as http:
        response = await http.post(f"{issuer}/reg", json=document)
    storage = Tokens()
    storage.client = OAuthClientInformationFull(**response.json(), issuer=issuer)
    return storage


@asynccontextmanager
async def connected(url: str, storage: Tokens, mode: str = "auto") -> AsyncIterator[Any]:
    """Return a client that logs in by itself."""
    answers: list[AuthorizationCodeResult] = []

    async def open_browser(authorization_url: str) -> None:
        query = parse_qs(urlsplit(await visit(authorization_url)).query)
        given = {name: values[0] for name, values in query.items()}
        if "error" in given:
            raise Unexpected(f"{given['error']}: {given.get('error_description')}")
        answers.append(
            AuthorizationCodeResult(
                code=given["code"], state=given.get("state"), iss=given.get("iss")
            )
        )

    async def wait_for_answer() -> AuthorizationCodeResult:
        return answers.pop()

    auth = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="official",
            redirect_uris=[REDIRECT],
            grant_types=["authorization_code", "refresh_token"],
            token_endpoint_auth_method="none",
        ),
        storage=storage,
        redirect_handler=open_browser,
        callback_handler=wait_for_answer,
    )
    async with (
        httpx2.AsyncClient(auth=auth, trust_env=False, timeout=20) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client
