"""The URL of a server, as far as it decides whether a credential may be sent there.

The rules that live here, and only here:

* A credential is sent over TLS, to this machine, or through a Unix socket. Plain HTTP to any
  other host needs the explicit permission of the author.                    [SEC-21]
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from ....transports.http.client.fetch import is_loopback_host, is_public_address

__all__ = ["check_secure", "has_public_address"]


def check_secure(url: str, *, allow_http: bool = False) -> None:
    """Check that a credential may be sent to a server.

    Raises:
        ValueError: the connection is neither encrypted nor to this machine.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme in ("https", "wss", "http+unix"):
        return
    if parts.scheme in ("http", "ws") and (allow_http or is_loopback_host(host)):
        return
    raise ValueError(
        f"{parts.scheme}://{host} is not encrypted: credentials are sent over https, or to this "
        "machine; allow_http=True permits it for this one"
    )


async def has_public_address(url: str) -> bool:
    """Return True if the host of a URL has a public address, or cannot be looked up."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(urlsplit(url).hostname, None)
    except (OSError, UnicodeError):  # not found, or not a name
        return True
    return any(is_public_address(str(address[0])) for *_, address in found)
