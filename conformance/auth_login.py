"""Credentials of the scenarios with a user: the authorization code grant.

`LOGIN_FAILS` has the scenarios in which the client must refuse to go on, by the step at which it
does so. There is no browser: `follow` does what one would.
"""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

from trunkline.auth import OAuth

__all__ = ["LOGIN_FAILS", "login"]

# The client id that the suites expect where metadata documents are supported.
METADATA_URL: Final = "https://conformance-test.local/client-metadata.json"

LOGIN_FAILS: Final = {
    "auth/scope-retry-limit": "scope",
    "auth/resource-mismatch": "discovery",
    "auth/metadata-issuer-mismatch": "discovery",
    "auth/iss-supported-missing": "authorization request",
    "auth/iss-wrong-issuer": "authorization request",
    "auth/iss-unexpected": "authorization request",
    "auth/iss-normalized": "authorization request",
}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


def _location(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)
    try:
        opener.open(url, timeout=10).close()
    except urllib.error.HTTPError as answer:
        return str(answer.headers["Location"])
    raise ValueError("the authorization server did not redirect")


async def follow(url: str) -> str:
    """Return where the authorization server redirects to, as a user who consents is."""
    return await asyncio.to_thread(_location, url)


def login(context: Mapping[str, str]) -> OAuth:
    """Return the login of a scenario, whose context may have a client that is registered."""
    known = context if "client_id" in context else {}
    return OAuth(
        client_id=known.get("client_id"),
        client_secret=known.get("client_secret"),
        issuer=known.get("issuer"),
        client_metadata_url=METADATA_URL,
        client_name="trunkline-conformance",
        on_authorize=follow,
    )
