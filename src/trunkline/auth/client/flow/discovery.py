"""Discovery: the metadata of a protected server, and of the authorization server it names.

Every URL here is chosen by a peer, so that all of them are asked by `fetch`.

The rules that live here, and only here:

* Metadata of the resource is at the URL that the challenge names; without one at the well-known
  path with the path of the server behind it, and only if that is not there at the root.
                                       [MCP 2026-07-28, authorization server discovery]
* Its `resource` covers the URL of the server; otherwise nothing is asked for.  [RFC 9728, 3.3]
* Metadata of the authorization server names it by the same text as that of the resource.
                                       [RFC 8414, section 3.3; SEC-18]
* A server without any metadata of the resource is one of 2025-03-26: its authorization server is
  at its origin, with endpoints at default paths if it has no metadata either. Only then the issuer
  in the document may be another of the same origin.     [MCP 2025-03-26, authorization]
* A document is missing if its status is 4xx, or if it is not JSON: some servers answer every path
  with a page. Any other failure ends the discovery, because it is not known what would be there.
* Private addresses are asked only if the server itself is at one, and only then a browser is sent
  to an address or a name of this machine.                                      [SEC-26, SEC-27]
* An issuer has no query.                                        [RFC 8414, section 2]
* The TLS context of the server is for its own origin. Other origins get that of the configuration,
  or the authorities of the system: a certificate of the client is not shown to them.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final, TypeVar
from urllib.parse import SplitResult, urlsplit

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import decode

from ....errors import AuthorizationFailed, TransportError
from ....redaction import show
from ....transports.http.client.fetch import check_url, fetch, is_private_host
from ...challenge import Challenge
from ...metadata import (
    AuthorizationServerMetadata,
    ProtectedResourceMetadata,
    covers,
    issuer_urls,
    resource_urls,
)

__all__ = ["DiscoveredServer", "MetadataDiscovery"]

T = TypeVar("T")

# What a server of 2025-03-26 may want to know.
_LEGACY_REVISION: Final = "2025-03-26"
_CHALLENGE_METHOD: Final = "S256"


class DiscoveredServer(Struct, frozen=True, kw_only=True):
    """A protected server, as its metadata describes it."""

    # The resource, byte for byte as the metadata names it.
    resource: str
    # The authorization servers, in the order of the metadata.
    issuers: tuple[str, ...]
    scopes_supported: tuple[str, ...] = ()
    # True if tokens have to be bound to a key.
    needs_dpop: bool = False
    # True of a server without metadata.
    is_legacy: bool = False

    def __repr__(self) -> str:
        return f"<DiscoveredServer {show(self.resource)}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]


class MetadataDiscovery:
    """Finds the metadata for one server."""

    __slots__ = ("_context", "_other_context", "_url", "is_private")

    def __init__(
        self,
        url: str,
        *,
        context: ssl.SSLContext | None = None,
        other_context: ssl.SSLContext | None = None,
        is_private: Callable[[], bool] = bool,
    ) -> None:
        self._url = url
        self._context = context
        self._other_context = other_context
        self.is_private = is_private

    def __repr__(self) -> str:
        return f"<MetadataDiscovery for {show(self._url)}>"

    def context_for(self, url: str) -> ssl.SSLContext | None:
        """Return how a URL is connected to; None is with the authorities of the system."""
        is_own = _origin(urlsplit(url)) == _origin(urlsplit(self._url))
        return self._context if is_own else self._other_context

    async def server(self, challenge: Challenge | None) -> DiscoveredServer:
        """Return what a server says of itself, by the challenge in its refusal.

        Raises:
            AuthorizationFailed: its metadata is not its own, or names no authorization server.
        """
        named = None if challenge is None else challenge.resource_metadata
        urls = [named] if named is not None else resource_urls(self._url)
        found, answers = await self._first(urls, ProtectedResourceMetadata)
        if found is None:
            if named is not None:
                raise _failure(
                    f"{answers}, which the server names as the place of its metadata: does the "
                    "proxy in front of the server pass it on?"
                )
            return self._legacy_server()
        if not covers(found.resource, self._url):
            raise _failure(
                f"its metadata is that of another resource: {show(found.resource)}; behind a "
                "proxy its operator sets the URL that clients use, with --public-url"
            )
        if not found.authorization_servers:
            raise _failure("the metadata of the server names no authorization server")
        return DiscoveredServer(
            resource=found.resource,
            issuers=tuple(found.authorization_servers),
            scopes_supported=tuple(found.scopes_supported or ()),
            needs_dpop=found.dpop_bound_access_tokens_required,
        )

    def _legacy_server(self) -> DiscoveredServer:
        parts = urlsplit(self._url)
        origin = f"{parts.scheme}://{parts.netloc}"
        resource = f"{origin}{parts.path.rstrip('/')}"
        return DiscoveredServer(resource=resource, issuers=(origin,), is_legacy=True)

    async def issuer(self, issuer: str, *, is_legacy: bool = False) -> AuthorizationServerMetadata:
        """Return the metadata of an authorization server; all of its endpoints can be asked.

        Raises:
            AuthorizationFailed: there is none, it is that of another, or an endpoint is missing.
        """
        if is_legacy:
            return await self._legacy_issuer(issuer)
        if self._check(issuer, "issuer").query:
            raise _failure("the issuer of the authorization server: it has a query")
        found, answers = await self._first(issuer_urls(issuer), AuthorizationServerMetadata)
        if found is None:
            raise _failure(f"the authorization server {show(issuer)} has no metadata: {answers}")
        if found.issuer != issuer:
            raise _failure(
                f"the metadata of {show(issuer)} is that of another: {show(found.issuer)}"
            )
        return self._checked(found)

    async def _legacy_issuer(self, origin: str) -> AuthorizationServerMetadata:
        headers = {"mcp-protocol-version": _LEGACY_REVISION}
        found, _ = await self._first(issuer_urls(origin)[:1], AuthorizationServerMetadata, headers)
        if found is None:
            return AuthorizationServerMetadata(
                issuer=origin,
                authorization_endpoint=f"{origin}/authorize",
                token_endpoint=f"{origin}/token",
                registration_endpoint=f"{origin}/register",
                response_types_supported=["code"],
                code_challenge_methods_supported=[_CHALLENGE_METHOD],
            )
        named = self._check(found.issuer, "issuer")
        if _origin(named) != _origin(urlsplit(origin)):
            raise _failure(f"the metadata at {show(origin)} is of another: {show(found.issuer)}")
        return self._checked(found)

    def _checked(self, found: AuthorizationServerMetadata) -> AuthorizationServerMetadata:
        for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint"):
            url = getattr(found, name)
            if url is not None:
                self._check(url, name)
        return found

    def _check(self, url: str, name: str) -> SplitResult:
        """Check the text of a URL in metadata.                              [SEC-21, SEC-27]"""
        try:
            parts = check_url(url)
        except TransportError as error:
            raise _failure(f"the {name} of the authorization server: {error.reason}") from None
        if is_private_host(parts.hostname or "") and not self.is_private():
            raise _failure(f"the {name} of the authorization server is not public")
        return parts

    async def _first(
        self, urls: list[str], kind: type[T], headers: dict[str, str] | None = None
    ) -> tuple[T | None, str]:
        """Return the first document that is there, and for an error what the URLs answered."""
        answers: list[str] = []
        for url in urls:
            try:
                check_url(url)
                response = await fetch(
                    url,
                    headers={"accept": "application/json", **(headers or {})},
                    allow_private=self.is_private(),
                    context=self.context_for(url),
                )
            except TransportError as error:
                raise _failure(f"{_shown(url)}: {error.reason}") from None
            if 400 <= response.status < 500:
                answers.append(f"status {response.status} of {_shown(url)}")
                continue
            if response.status != 200:
                raise _failure(f"status {response.status} of {_shown(url)}")
            try:
                return decode(response.body, type=kind), ""
            except ValidationError:
                raise _failure(f"the metadata at {_shown(url)} is malformed") from None
            except (DecodeError, UnicodeDecodeError):
                answers.append(f"no JSON at {_shown(url)}")
            except RecursionError:
                raise _failure(f"the metadata at {_shown(url)} is malformed") from None
        return None, ", ".join(answers)


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _shown(url: str) -> str:
    """Return a URL for an error: without its query, which may hold a secret."""
    return show(url.partition("?")[0])


def _failure(reason: str) -> AuthorizationFailed:
    return AuthorizationFailed(reason, step="discovery")
