"""What an HTTP client needs of authorization: headers for a request, and another try.

The transport knows no tokens. A `ClientAuth` is the configuration that a caller gives; for each
transport it makes an `HttpAuth`, which adds the headers of each request and decides whether a
request that was refused is sent again.

The rules that live here, and only here:

* Every request has the headers of its own: POST, GET, DELETE, each retry, and each step of a
  redirect, which stays within the origin.                     [MCP 2026-07-28, authorization]
* A request that was refused with 401 or 403 is sent again as long as `HttpAuth` asks for it, and
  at most `MAX_REPEATS` times.
* Requests that meet an authorization wait for it. Meanwhile no timeout of the caller counts: a
  user may have to log in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ....errors import AuthorizationFailed
from ...base import ignore

if TYPE_CHECKING:
    import socket
    import ssl

__all__ = [
    "LOGIN_ADVICE",
    "MAX_REPEATS",
    "ClientAuth",
    "HttpAuth",
    "RequestAuthorizer",
    "ServerNetwork",
]

T = TypeVar("T")

# Of one request: a nonce, a refresh, and a few steps of scopes.
MAX_REPEATS: Final = 8
_REFUSALS: Final = (401, 403)
# The end of the error of a request that had no credential.
LOGIN_ADVICE: Final = "; a client logs in with auth=OAuth()"


class HttpAuth(Protocol):
    """Credentials of a client for one server."""

    def headers(self, method: str, url: str) -> bytes | None:
        """Return encoded header lines for a request, or None if `prepare` has to run first.

        It is called for every request, and again for every retry.
        """

    async def prepare(self, url: str) -> None:
        """Obtain a credential for a server, or renew one that has ended.

        Raises:
            AuthorizationFailed: there is none to be had.
        """

    async def refused(
        self, method: str, url: str, status: int, headers: list[tuple[bytes, bytes]], sent: bytes
    ) -> bool:
        """React to status 401 or 403; return True if the request is to be sent again.

        `sent` are the header lines that the request was sent with: if the credential was replaced
        meanwhile, the request is sent again without any further step.

        Raises:
            AuthorizationFailed: a step of the authorization failed; the text says which.
        """

    def responded(self, url: str, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Take the head of any response, which may hold a nonce for the next request."""


class ClientAuth(Protocol):
    """The credentials of a client, as its caller configures them."""

    def for_server(
        self,
        url: str,
        *,
        context: ssl.SSLContext | None = None,
        is_private: Callable[[], bool] = bool,
    ) -> HttpAuth:
        """Return the credentials for the server at a URL.

        `context` is how the client connects to it. `is_private` returns True if the server is
        known to be on this machine or in a private network: then its authorization server may be
        there too.

        Raises:
            ValueError: such credentials are not sent there.
        """


class ServerNetwork:
    """Whether a server is on this machine or in a private network, by the connections to it.

    One connection to a public address is enough to make it public: a name that leads elsewhere
    from time to time is not trusted. `host` counts if it is an address, because a proxy may be
    the one who connects to it.
    """

    def __init__(self, host: str = "") -> None:
        # Imported here: that module is for requests to other servers.
        from .fetch import is_loopback_host, is_public_address

        self._is_public_address = is_public_address
        self._has_private = is_loopback_host(host)
        self._has_public = False
        try:
            self._note(host)
        except ValueError:
            pass  # a name

    def add(self, sock: socket.socket) -> None:
        """Note where a connection leads."""
        try:
            self._note(str(sock.getpeername()[0]))
        except OSError:
            pass  # it is lost already

    def _note(self, address: str) -> None:
        if self._is_public_address(address):
            self._has_public = True
        else:
            self._has_private = True

    def is_private(self) -> bool:
        """Return True if every connection led to an address that is not public."""
        return self._has_private and not self._has_public


class RequestAuthorizer:
    """Adds credentials to the requests of one transport."""

    # How often a request is sent again.
    max_repeats = MAX_REPEATS

    def __init__(self, auth: HttpAuth) -> None:
        # Header lines for a request, or None; and what takes the head of a response.
        self.headers = auth.headers
        self.responded = auth.responded
        # Called with True when the first request waits for an authorization, and with False
        # when none does.
        self.on_waiting: Callable[[bool], object] = ignore
        self._auth = auth
        self._waiting = 0

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits for an authorization."""
        return self._waiting > 0

    async def prepare(self, url: str) -> None:
        """Obtain a credential.

        Raises:
            AuthorizationFailed: there is none to be had.
        """
        await self._wait(self._auth.prepare(url))

    async def lines(self, method: str, url: str) -> bytes:
        """Return header lines for a request, with a credential that is obtained if need be.

        Raises:
            AuthorizationFailed: there is none to be had.
        """
        lines = self.headers(method, url)
        if lines is None:
            await self.prepare(url)
            lines = self.headers(method, url)
        if lines is None:
            raise AuthorizationFailed("the credential ended before it was used", step="token")
        return lines

    async def refused(
        self, method: str, url: str, status: int, headers: list[tuple[bytes, bytes]], sent: bytes
    ) -> bool:
        """Return True if a request that was refused is to be sent again.

        Raises:
            AuthorizationFailed: a step of the authorization failed.
        """
        if status not in _REFUSALS:
            return False
        return await self._wait(self._auth.refused(method, url, status, headers, sent))

    async def run(
        self,
        method: str,
        url: str,
        send: Callable[[bytes], Awaitable[tuple[int, list[tuple[bytes, bytes]]]]],
    ) -> int:
        """Call `send` with header lines until a response is not a refusal; return its status.

        Raises:
            AuthorizationFailed: a step of the authorization failed.
        """
        for repeats in range(MAX_REPEATS + 1):
            lines = await self.lines(method, url)
            status, headers = await send(lines)
            if repeats == MAX_REPEATS:
                break
            if not await self.refused(method, url, status, headers, lines):
                break
        return status

    async def _wait(self, step: Awaitable[T]) -> T:
        self._waiting += 1
        if self._waiting == 1:
            self.on_waiting(True)
        try:
            return await step
        except AuthorizationFailed:
            raise
        except Exception as error:  # of the author: the request that waits has to end
            raise AuthorizationFailed(
                f"{type(error).__name__} was raised while a credential was obtained",
                step="credential",
            ) from error
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.on_waiting(False)
