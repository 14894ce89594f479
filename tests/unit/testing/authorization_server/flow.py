"""A client of the development authorization server: requests as any OAuth client sends them."""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from trunkline.testing import AuthorizationServer
from trunkline.transports.http.client.fetch import FetchedResponse, fetch

WAIT = 30
REDIRECT = "http://127.0.0.1:7777/callback"
RESOURCE = "https://files.example.org/mcp"
VERIFIER = "CANARY-verifier-" + "v" * 40


def challenge(verifier: str = VERIFIER) -> str:
    """Return the challenge of a verifier."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


async def request(
    url: str,
    *,
    method: str = "GET",
    form: dict[str, Any] | None = None,
    document: Any = None,
    headers: dict[str, str] | None = None,
) -> FetchedResponse:
    """Send a request; a form or a JSON document makes it a POST."""
    body, kind = None, {}
    if form is not None:
        method, body = "POST", urlencode(form, doseq=True).encode()
        kind = {"content-type": "application/x-www-form-urlencoded"}
    elif document is not None:
        method, body = "POST", json.dumps(document).encode()
        kind = {"content-type": "application/json"}
    return await fetch(
        url, method=method, body=body, headers={**kind, **(headers or {})}, allow_private=True
    )


def authorization_url(server: AuthorizationServer, **changes: str | None) -> str:
    """Return the URL that a client sends the user to; None leaves a parameter out."""
    given: dict[str, str | None] = {
        "response_type": "code",
        "client_id": "known",
        "redirect_uri": REDIRECT,
        "code_challenge": challenge(),
        "code_challenge_method": "S256",
        "scope": "read",
        "state": "CANARY-state",
        "resource": RESOURCE,
        **changes,
    }
    present = {name: value for name, value in given.items() if value is not None}
    return f"{server.authorization_endpoint}?{urlencode(present)}"


async def authorize(server: AuthorizationServer, **changes: str | None) -> dict[str, str]:
    """Return the parameters that the user is sent back with."""
    # HEAD: a browser follows the redirect to the client, which `fetch` refuses for GET.
    response = await request(authorization_url(server, **changes), method="HEAD")
    location = response.header(b"location")
    assert response.status == 303
    assert location is not None
    return answer_of(location.decode(), changes.get("redirect_uri") or REDIRECT)


def answer_of(location: str, redirect_uri: str = REDIRECT) -> dict[str, str]:
    """Return the parameters of a redirect to a client."""
    assert location.partition("?")[0] == redirect_uri
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


async def token(
    server: AuthorizationServer, headers: dict[str, str] | None = None, **form: Any
) -> dict[str, Any]:
    """Return the answer of the token endpoint with its status."""
    present = {name: value for name, value in form.items() if value is not None}
    response = await request(server.token_endpoint, form=present, headers=headers)
    assert response.header(b"cache-control") == b"no-store"
    answer: dict[str, Any] = json.loads(response.body)
    return {**answer, "status": response.status}


async def redeem(
    server: AuthorizationServer,
    code: str,
    headers: dict[str, str] | None = None,
    **changes: str | None,
) -> dict[str, Any]:
    """Exchange a code as the client that it was sent to."""
    given: dict[str, str | None] = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": "known",
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
        "resource": RESOURCE,
        **changes,
    }
    return await token(server, headers, **given)


async def refresh(
    server: AuthorizationServer, refresh_token: str, **changes: Any
) -> dict[str, Any]:
    """Use a refresh token."""
    given = {
        "grant_type": "refresh_token",
        "refresh_token": refresh_token,
        "client_id": "known",
        **changes,
    }
    return await token(server, **given)


async def log_in(server: AuthorizationServer, **changes: str | None) -> dict[str, Any]:
    """Return the tokens of a user that has consented."""
    answer = await authorize(server, **changes)
    return await redeem(server, answer["code"])


def known_server(**settings: Any) -> AuthorizationServer:
    """Return a server with a public client that is called "known"."""
    server = AuthorizationServer(**{"scopes": ["read", "write"], **settings})
    server.client("known", redirect_uris=[REDIRECT])
    return server
