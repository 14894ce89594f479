"""A bearer token that the caller has already.

The rules that live here, and only here:

* A token is sent over TLS, or to this machine.                          [RFC 6750, section 5.3]
* A token that cannot be renewed is refused once: the request is not sent again.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from ...redaction import HIDDEN
from ...transports.http.client.fetch import is_loopback_host

__all__ = ["Bearer"]

# The characters of a token.                                             [RFC 6750, section 2.1]
_is_token: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*").fullmatch


class Bearer:
    """A token that is sent with every request: `Client(url, auth=Bearer(token))`.

    Raises:
        ValueError: the text is not a token.
    """

    __slots__ = ("_token",)

    def __init__(self, token: str) -> None:
        if not isinstance(token, str) or _is_token(token) is None:
            # Without the value: it is a secret.
            raise ValueError("a token has letters, digits and -._~+/ alone")
        self._token = token

    def __repr__(self) -> str:
        return f"Bearer({HIDDEN})"

    def for_server(
        self,
        url: str,
        *,
        context: ssl.SSLContext | None = None,
        is_private: Callable[[], bool] = bool,
    ) -> BearerAuth:
        """Return the credentials for the server at a URL.

        Raises:
            ValueError: the connection is neither encrypted nor to this machine.
        """
        check_secure(url)
        return BearerAuth(self._token)


class BearerAuth:
    """The token of one transport."""

    __slots__ = ("_lines",)

    def __init__(self, token: str) -> None:
        self._lines = f"authorization: Bearer {token}\r\n".encode("ascii")

    def __repr__(self) -> str:
        return f"BearerAuth({HIDDEN})"

    def headers(self, method: str, url: str) -> bytes | None:
        """Return the header of a request."""
        return self._lines

    async def prepare(self, url: str) -> None:
        """Do nothing: the token is there."""

    async def refused(
        self, method: str, url: str, status: int, headers: list[tuple[bytes, bytes]], sent: bytes
    ) -> bool:
        """Return False: there is no other token."""
        return False

    def responded(self, url: str, headers: list[tuple[bytes, bytes]]) -> None:
        """Ignore the headers of a response."""


def check_secure(url: str) -> None:
    """Check that a token may be sent to a server.

    Raises:
        ValueError: the connection is neither encrypted nor to this machine.
    """
    parts = urlsplit(url)
    if parts.scheme in ("https", "http+unix"):
        return
    if parts.scheme != "http" or not is_loopback_host(parts.hostname or ""):
        raise ValueError(
            "credentials are sent over https, or to this machine; "
            "headers={'Authorization': ...} sends them over http too"
        )
