"""A browser without a window: it keeps cookies, and follows redirects up to the client."""

from __future__ import annotations

import asyncio
from http.cookiejar import CookieJar
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, ProxyHandler, build_opener

from ..checks import Unexpected

__all__ = ["REDIRECT", "visit"]

# Where the clients are sent back to; nothing listens there.
REDIRECT: Final = "http://127.0.0.1:7777/callback"
_MAX_REDIRECTS: Final = 10
_TIMEOUT_S: Final = 10.0


class _Stay(HTTPRedirectHandler):
    """Leaves redirects to the loop below."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


async def visit(url: str, redirect: str = REDIRECT) -> str:
    """Open the URL of an authorization server; return the URL of the client it leads to.

    Raises:
        Unexpected: it leads elsewhere.
    """
    return await asyncio.to_thread(_visit, url, redirect)


def _visit(url: str, redirect: str) -> str:
    opener = build_opener(ProxyHandler({}), _Stay, HTTPCookieProcessor(CookieJar()))
    for _ in range(_MAX_REDIRECTS):
        try:
            response = opener.open(url, timeout=_TIMEOUT_S)
        except HTTPError as error:
            location = error.headers.get("location")
            if location is None:
                text = error.read().decode("utf-8", "replace")
                raise Unexpected(f"status {error.code} instead of a redirect: {text}") from None
            url = urljoin(url, location)
            if url.partition("?")[0] == redirect:
                return url
        else:
            raise Unexpected(f"status {response.status} instead of a redirect")
    raise Unexpected("too many redirects")
