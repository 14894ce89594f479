"""An MCP server that asks for tokens, as a test wants it to; and the browser of a user."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from tests.http_client.stub_server import PER_REQUEST, Asked, McpStub, method_of
from trunkline import Client
from trunkline.auth.jose import parse_token

__all__ = ["Browser", "ProtectedStub", "echo"]

WELL_KNOWN = "/.well-known/oauth-protected-resource"


class ProtectedStub(McpStub):
    """A server that reads the claims of tokens, and verifies nothing."""

    def __init__(self, *issuers: str, revision: str = PER_REQUEST) -> None:
        super().__init__(revision)
        self.inner = self.answer
        self.answer = self._guard
        self.issuers = list(issuers)
        # The scope that each method needs.
        self.needs: dict[str, str] = {}
        self.refused_tokens: set[str] = set()
        # What the metadata says; None for a server without.
        self.metadata: dict[str, Any] | None = {}
        # Where it is.
        self.metadata_path = f"{WELL_KNOWN}/mcp"
        # The challenge of a request without a token; None for a refusal without one.
        self.challenge: str | None = 'Bearer resource_metadata="{origin}{path}"'
        self.scheme = "Bearer"
        self.tokens: list[str] = []

    @property
    def origin(self) -> str:
        return self.url.removesuffix("/mcp")

    def _guard(self, asked: Asked) -> Any:
        if asked.path != "/mcp":
            self._describe(asked)
            return None
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        if scheme != self.scheme or token in self.refused_tokens:
            self._refuse(asked, 401, self.challenge)
            return None
        self.tokens.append(token)
        claims = parse_token(token).claims
        needed = self.needs.get(method_of(asked))
        if claims["iss"] not in self.issuers:
            self._refuse(asked, 401, self.challenge)
        elif needed is not None and needed not in claims.get("scope", "").split():
            self._refuse(asked, 403, f'Bearer error="insufficient_scope", scope="{needed}"')
        else:
            return self.inner(asked)
        return None

    def _refuse(self, asked: Asked, status: int, challenge: str | None) -> None:
        text = challenge and challenge.format(origin=self.origin, path=self.metadata_path)
        asked.status(status, {} if text is None else {"WWW-Authenticate": text})

    def _describe(self, asked: Asked) -> None:
        if self.metadata is None or asked.path != self.metadata_path:
            asked.status(404)
            return
        usual = {"resource": self.url, "authorization_servers": self.issuers}
        body = json.dumps({**usual, **self.metadata})
        asked.status(200, {"Content-Type": "application/json"}, body)

    def paths(self) -> list[str]:
        """Return the paths that were asked beside the endpoint."""
        return [each.path for each in self.requests if each.path != "/mcp"]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Browser:
    """A user who opens the URL of a login, and whose browser follows its redirect."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        # Replace parts of the URL that the browser is redirected to.
        self.changes: list[tuple[str, str]] = []
        self.pages: list[str] = []

    def location(self, url: str) -> str:
        self.urls.append(url)
        found = self._get(url).headers["Location"]
        for old, new in self.changes:
            found = found.replace(old, new)
        return str(found)

    async def paste(self, url: str) -> str:
        """Return the address that the browser was sent to."""
        return await asyncio.to_thread(self.location, url)

    def open(self, url: str) -> bool:
        """Follow the redirect to this machine."""
        with self._get(self.location(url)) as answer:
            self.pages.append(f"{answer.status} {answer.headers} {answer.read().decode()}")
        return True

    def queries(self) -> list[str]:
        return [urlsplit(each).query for each in self.urls]

    def _get(self, url: str) -> Any:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)
        try:
            return opener.open(url, timeout=10)
        except urllib.error.HTTPError as answer:
            return answer


async def echo(client: Client) -> None:
    assert (await client.call_tool("echo")).text == "done"
