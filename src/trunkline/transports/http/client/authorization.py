"""What an HTTP client needs of authorization: headers for a request, and another try.

The transport knows no tokens. `HttpAuth` adds the headers of each request, and decides whether a
request that was refused is worth another try.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["HttpAuth"]


class HttpAuth(Protocol):
    """Credentials of a client for one server."""

    def headers(self, method: str, url: str) -> bytes | None:
        """Return encoded header lines for a request, or None if `prepare` has to run first.

        It is called for every request, and again for every retry.
        """
        ...

    async def prepare(self, url: str) -> None:
        """Obtain a credential for a server, or renew one that has ended.

        Raises:
            AuthorizationFailed: there is none to be had.
        """
        ...

    async def refused(
        self, method: str, url: str, status: int, headers: list[tuple[bytes, bytes]], sent: bytes
    ) -> bool:
        """React to status 401 or 403; return True if the request is to be sent again.

        `sent` are the header lines that the request was sent with: if the credential was replaced
        meanwhile, the request is sent again without any further step.

        Raises:
            AuthorizationFailed: a step of the authorization failed; the text says which.
        """
        ...

    def responded(self, url: str, headers: list[tuple[bytes, bytes]]) -> None:
        """Take the headers of any response, which may hold a nonce for the next request."""
        ...
